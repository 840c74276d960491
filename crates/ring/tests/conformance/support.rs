//! Random and extreme operands, for whichever backends run the suite.

use taciturn_ring::{Basis, Form, Poly, Ring, primes_near};

/// Primes of all sizes, interleaved so that neighbours differ.
pub fn primes(log_n: u32, count: usize) -> Vec<u64> {
    let mut primes = Vec::new();
    for k in 0..count {
        let bits = [50, 33, 40, 45, 49, 36][k % 6];
        primes.extend(primes_near(2f64.powi(bits), log_n, 1, &primes).unwrap());
    }
    primes
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Residues with many values at the edges.
    pub fn poly(&mut self, ring: &Ring, basis: Basis, form: Form) -> Poly {
        let mut out = ring.zero(basis, form);
        for i in basis.iter() {
            let q = ring.moduli()[i].value();
            for word in out.limb_mut(i) {
                let draw = self.next();
                *word = match draw >> 61 {
                    0 => [0, 1, q - 1, q - 2, q / 2, q / 2 + 1][(draw % 6) as usize],
                    _ => draw % q,
                };
            }
        }
        out
    }
}

/// All words equal to `q - 1`: the largest intermediate values.
pub fn all_largest(ring: &Ring, basis: Basis, form: Form) -> Poly {
    let mut out = ring.zero(basis, form);
    for i in basis.iter() {
        out.limb_mut(i).fill(ring.moduli()[i].value() - 1);
    }
    out
}

pub fn mul(a: u64, b: u64, q: u64) -> u64 {
    (a as u128 * b as u128 % q as u128) as u64
}
