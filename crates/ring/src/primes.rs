//! Finding NTT primes.

use crate::{MAX_MODULUS_BITS, MIN_MODULUS_BITS, RingError, tables::check_degree};

/// The `count` primes `q = 1 (mod 2^(log_n + 1))` nearest to `target` on either side, nearest first, without those in
/// `exclude`. All lie between 2^32 and 2^50.
pub fn primes_near(
    target: f64,
    log_n: u32,
    count: usize,
    exclude: &[u64],
) -> Result<Vec<u64>, RingError> {
    check_degree(log_n)?;
    let step = 1u64 << (log_n + 1);
    let (low, high) = (1u64 << MIN_MODULUS_BITS, 1u64 << MAX_MODULUS_BITS);
    let mut found = Vec::with_capacity(count.min(64));
    // A NaN clamps to the low end and finds primes there: harmless, and the caller sees them.
    let start = target.max(low as f64).min(high as f64) as u64;
    let mut below = start - (start - 1) % step;
    let mut above = below + step;
    while found.len() < count {
        let (below_ok, above_ok) = (below > low, above < high);
        if !below_ok && !above_ok {
            return Err(RingError::TooFewPrimes {
                target,
                log_n,
                wanted: count,
                found: found.len(),
            });
        }
        let take_below = below_ok && (!above_ok || target - below as f64 <= above as f64 - target);
        let candidate = if take_below { below } else { above };
        if take_below {
            below -= step;
        } else {
            above += step;
        }
        if candidate < high && !exclude.contains(&candidate) && is_prime(candidate) {
            found.push(candidate);
        }
    }
    Ok(found)
}

/// Whether `n` is prime: Miller-Rabin with the first twelve primes as bases, which decides every 64-bit integer
/// (Sorenson and Webster, 2015).
pub fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 2 {
        return false;
    }
    if let Some(p) = BASES.iter().find(|&&p| n.is_multiple_of(p)) {
        return n == *p;
    }
    let mul = |a: u64, b: u64| (a as u128 * b as u128 % n as u128) as u64;
    let twos = (n - 1).trailing_zeros();
    let odd = (n - 1) >> twos;
    BASES.iter().all(|&base| {
        let mut x = 1;
        for bit in (0..64 - odd.leading_zeros()).rev() {
            x = mul(x, x);
            if odd >> bit & 1 == 1 {
                x = mul(x, base);
            }
        }
        if x == 1 || x == n - 1 {
            return true;
        }
        (1..twos).any(|_| {
            x = mul(x, x);
            x == n - 1
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_and_strong_pseudoprimes() {
        let primes: Vec<u64> = (0..60).filter(|&n| is_prime(n)).collect();
        assert_eq!(
            primes,
            [
                2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59
            ]
        );
        // The least strong pseudoprimes to the first 7 and 9 bases.
        assert!(!is_prime(341_550_071_728_321));
        assert!(!is_prime(3_825_123_056_546_413_051));
        assert!(is_prime((1 << 61) - 1));
    }

    #[test]
    fn nearest_first_on_both_sides() {
        let target = 2f64.powi(40);
        let primes = primes_near(target, 16, 12, &[]).unwrap();
        let distance = |q: u64| (q as f64 - target).abs();
        assert!(primes.windows(2).all(|w| distance(w[0]) <= distance(w[1])));
        assert!(primes.iter().all(|&q| q % (1 << 17) == 1 && is_prime(q)));
        assert!(
            primes.iter().any(|&q| q as f64 > target)
                && primes.iter().any(|&q| (q as f64) < target)
        );
        let rest = primes_near(target, 16, 11, &primes[..1]).unwrap();
        assert_eq!(rest, primes[1..]);
    }

    #[test]
    fn stays_in_range_and_reports_exhaustion() {
        let primes = primes_near(2f64.powi(50), 16, 30, &[]).unwrap();
        assert!(primes.iter().all(|&q| q < 1 << 50));
        assert!(
            primes_near(0.0, 4, 3, &[])
                .unwrap()
                .iter()
                .all(|&q| q > 1 << 32)
        );
        assert!(matches!(
            primes_near(1e12, 3, 1, &[]),
            Err(RingError::Degree { got: 3 })
        ));
    }
}
