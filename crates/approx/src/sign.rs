//! The sign by composed polynomials: Cheon, Kim and Kim, "Efficient homomorphic comparison methods with optimal complexity" (2020), as
//! EncryptedLLM has it (D.1): `g` takes small arguments away from 0, `f` takes them to -1 and 1.

use crate::Chebyshev;
use crate::cost::GRID;
use crate::fit::worst_on_grid;

/// Coefficients of `x, x^3, ..., x^9` in their `g_4`, times 2^10.
const G: [f64; 5] = [5850.0, -34974.0, 97015.0, -113492.0, 46623.0];

/// `f_4` composed `f` times after `g_4` composed `g` times, on [-1, 1].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// Times that `g_4` is applied.
    pub g: u32,
    /// Times that `f_4` is applied, after it.
    pub f: u32,
}

impl Sign {
    /// As EncryptedLLM takes it: each twice.
    pub const TWICE: Sign = Sign { g: 2, f: 2 };

    /// The polynomials in the order in which they are applied, each of degree 9 on [-1, 1].
    pub fn stages(&self) -> Vec<Chebyshev> {
        let g = odd(&G.map(|c| c / 1024.0));
        // f_4(x) = sum over i <= 4 of 4^-i binomial(2i, i) x (1 - x^2)^i.
        let f = odd(&[315.0, -420.0, 378.0, -180.0, 35.0].map(|c| c / 128.0));
        let times = |poly: &Chebyshev, count| std::iter::repeat_n(poly.clone(), count as usize);
        times(&g, self.g).chain(times(&f, self.f)).collect()
    }

    /// The approximation at `x` in [-1, 1].
    pub fn evaluate(&self, x: f64) -> f64 {
        self.stages().iter().fold(x, |x, stage| stage.evaluate(x))
    }

    /// Multiplicative depth.
    pub fn depth(&self) -> u32 {
        self.stages().iter().map(Chebyshev::depth).sum()
    }

    /// Ciphertext products.
    pub fn products(&self) -> u32 {
        self.stages().iter().map(Chebyshev::products).sum()
    }

    /// Bits of the worst error for arguments of at least this magnitude, up to 1.
    pub fn worst_error_bits(&self, least: f64) -> f64 {
        -worst_on_grid(least, 1.0, GRID, |x| self.evaluate(x) - 1.0).log2()
    }

    /// The greater of two numbers in [0, 1]: `((a + b) + (a - b) sign(a - b)) / 2`.
    pub fn max(&self, a: f64, b: f64) -> f64 {
        (a + b + (a - b) * self.evaluate(a - b)) / 2.0
    }
}

/// A polynomial of odd powers in the Chebyshev basis of [-1, 1], by `x^k = 2^(1-k) sum over j < k/2 of binomial(k, j) T_(k-2j)`.
fn odd(coefficients: &[f64]) -> Chebyshev {
    let mut out = vec![0.0; 2 * coefficients.len()];
    for (i, c) in coefficients.iter().enumerate() {
        let k = 2 * i + 1;
        let mut binomial = 1.0;
        for j in 0..=i {
            out[k - 2 * j] += c * binomial * 2f64.powi(1 - k as i32);
            binomial *= (k - j) as f64 / (j + 1) as f64;
        }
    }
    Chebyshev {
        low: -1.0,
        high: 1.0,
        coefficients: out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_become_chebyshev_polynomials() {
        let poly = odd(&[2.0, -3.0, 0.5]);
        for x in [-1.0, -0.3, 0.0, 0.7, 1.0f64] {
            let want = 2.0 * x - 3.0 * x.powi(3) + 0.5 * x.powi(5);
            assert!((poly.evaluate(x) - want).abs() < 1e-14);
        }
    }

    /// By its formula.
    #[test]
    fn f_is_the_one_of_the_paper() {
        let f = Sign { g: 0, f: 1 };
        for x in [-0.9, -0.2, 0.1, 0.5, 1.0f64] {
            let mut want = 0.0;
            let mut factor = 1.0;
            for i in 0..=4 {
                want += factor * x * (1.0 - x * x).powi(i);
                factor *= (2.0 * f64::from(i) + 1.0) / (2.0 * f64::from(i) + 2.0);
            }
            assert!((f.evaluate(x) - want).abs() < 1e-13, "{x}");
        }
    }

    #[test]
    fn signs_and_maxima() {
        let sign = Sign::TWICE;
        assert_eq!((sign.depth(), sign.stages().len()), (16, 4));
        assert!(sign.worst_error_bits(0.05) > 20.0);
        for (a, b) in [(0.3, 0.9), (0.52, 0.5), (0.0, 0.0), (1.0, 0.1)] {
            assert!((sign.max(a, b) - f64::max(a, b)).abs() < 2e-3, "{a} {b}");
        }
        assert!((sign.evaluate(-0.4) + sign.evaluate(0.4)).abs() < 1e-12);
    }
}
