//! Small secret polynomials: ternary secrets and discrete Gaussian errors.
//!
//! The Gaussian sampler takes the same time and memory accesses for all values. The ternary ones draw again when a draw is
//! out of range; how often says nothing about the values that are kept. The positions of a sparse secret steer memory
//! accesses; they are wiped. The caller wipes what is returned.

use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// `n` coefficients, each -1, 0 or 1 with equal probability.
pub fn ternary<R: CryptoRng + ?Sized>(rng: &mut R, n: usize) -> Vec<i64> {
    let mut out = Vec::with_capacity(n);
    while out.len() < n {
        let word = rng.next_u64();
        let draws = (0..32)
            .map(|k| (word >> (2 * k) & 3) as i64)
            .filter(|&draw| draw < 3);
        out.extend(draws.take(n - out.len()).map(|draw| draw - 1));
    }
    out
}

/// `n` coefficients of which `min(weight, n)`, at uniform positions, are -1 or 1 and the others 0.
pub fn sparse_ternary<R: CryptoRng + ?Sized>(rng: &mut R, n: usize, weight: usize) -> Vec<i64> {
    let mut positions = Zeroizing::new((0..n).collect::<Vec<usize>>());
    let mut out = vec![0; n];
    for k in 0..weight.min(n) {
        positions.swap(k, k + below(rng, (n - k) as u64) as usize);
        out[positions[k]] = 1 - 2 * (rng.next_u32() & 1) as i64;
    }
    out
}

/// A uniform integer below `bound`.
fn below<R: CryptoRng + ?Sized>(rng: &mut R, bound: u64) -> u64 {
    let mask = u64::MAX >> ((bound - 1) | 1).leading_zeros();
    loop {
        let draw = rng.next_u64() & mask;
        if draw < bound {
            return draw;
        }
    }
}

/// The standard deviation of [`gaussian`].
pub const SIGMA: f64 = 3.2;
/// The largest magnitude that [`gaussian`] yields: 6 sigma.
pub const GAUSSIAN_BOUND: i64 = 19;

/// `2^63` times the probability of a magnitude of at most `k`, for the discrete Gaussian of deviation 3.2 on -19..=19, each
/// rounded to the nearest integer.
const CUMULATIVE: [u64; GAUSSIAN_BOUND as usize] = [
    0x0ff52b40a5917f1d,
    0x2e5a25d4bf0e400e,
    0x489ae26955b04bd6,
    0x5d2bc20f621bf185,
    0x6bc8694c3cc80ff5,
    0x7532d89ac6ba7dcf,
    0x7ab396cb74436799,
    0x7d9e4e916643eb08,
    0x7f05495819eb2051,
    0x7fa1ce9c0039a957,
    0x7fdfb3f212e8c4e9,
    0x7ff5e6f9d2314fcc,
    0x7ffd1f97bc4406a3,
    0x7fff40fa0088d11e,
    0x7fffd2e835e1c57e,
    0x7ffff6524386ff1e,
    0x7ffffe1db4769da5,
    0x7fffffac0a1dcb09,
    0x7ffffff428673853,
];

/// `n` draws from the discrete Gaussian of deviation [`SIGMA`], cut at [`GAUSSIAN_BOUND`], by inversion of the cumulative table.
pub fn gaussian<R: CryptoRng + ?Sized>(rng: &mut R, n: usize) -> Vec<i64> {
    let draw = |word: u64| {
        let (sign, uniform) = ((word & 1) as i64, word >> 1);
        let magnitude: i64 = CUMULATIVE
            .iter()
            .map(|&bound| i64::from(uniform >= bound))
            .sum();
        (magnitude ^ -sign) + sign
    };
    (0..n).map(|_| draw(rng.next_u64())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    const DRAWS: usize = 1 << 18;

    fn rng() -> ChaCha20Rng {
        ChaCha20Rng::from_seed([7; 32])
    }

    /// Pearson's statistic over cells with an expected count above 5.
    fn chi_square(draws: &[i64], probability: impl Fn(i64) -> f64, bound: i64) -> (f64, usize) {
        let cells: Vec<(f64, f64)> = (-bound..=bound)
            .map(|x| {
                (
                    draws.iter().filter(|&&d| d == x).count() as f64,
                    probability(x) * draws.len() as f64,
                )
            })
            .filter(|cell| cell.1 > 5.0)
            .collect();
        (
            cells
                .iter()
                .map(|(seen, expected)| (seen - expected).powi(2) / expected)
                .sum(),
            cells.len(),
        )
    }

    #[test]
    fn ternary_is_uniform() {
        let draws = ternary(&mut rng(), DRAWS);
        assert_eq!(draws.len(), DRAWS);
        let (statistic, cells) = chi_square(&draws, |_| 1.0 / 3.0, 1);
        assert!(cells == 3 && statistic < 14.0, "chi-square {statistic}");
    }

    #[test]
    fn sparse_has_its_weight_everywhere() {
        let mut rng = rng();
        let mut hits = vec![0i64; 64];
        let mut sum = 0;
        for _ in 0..4000 {
            let s = sparse_ternary(&mut rng, 64, 16);
            assert_eq!(s.iter().map(|x| x.abs()).sum::<i64>(), 16);
            hits.iter_mut().zip(&s).for_each(|(h, x)| *h += x.abs());
            sum += s.iter().sum::<i64>();
        }
        // 1,000 expected with a deviation of 27; the signs' sum has a deviation of 253.
        assert!(hits.iter().all(|h| (850..1150).contains(h)), "{hits:?}");
        assert!(sum.abs() < 1500, "{sum}");
        assert_eq!(
            sparse_ternary(&mut rng, 4, 9)
                .iter()
                .map(|x| x.abs())
                .sum::<i64>(),
            4
        );
    }

    #[test]
    fn gaussian_follows_its_density() {
        let density = |x: i64| (-(x * x) as f64 / (2.0 * SIGMA * SIGMA)).exp();
        let total: f64 = (-GAUSSIAN_BOUND..=GAUSSIAN_BOUND).map(density).sum();
        let mut cumulative = 0.0;
        for (k, &entry) in CUMULATIVE.iter().enumerate() {
            cumulative += density(k as i64) * if k == 0 { 1.0 } else { 2.0 };
            assert!(
                (entry as f64 / 2f64.powi(63) - cumulative / total).abs() < 1e-14,
                "entry {k}"
            );
        }
        let draws = gaussian(&mut rng(), DRAWS);
        let (statistic, cells) = chi_square(&draws, |x| density(x) / total, GAUSSIAN_BOUND);
        assert!(
            cells > 20 && statistic < 70.0,
            "chi-square {statistic} over {cells} cells"
        );
        let variance = draws.iter().map(|x| (x * x) as f64).sum::<f64>() / DRAWS as f64;
        assert!((variance.sqrt() - SIGMA).abs() < 0.03, "{variance}");
        assert!(draws.iter().all(|x| x.abs() <= GAUSSIAN_BOUND));
    }
}
