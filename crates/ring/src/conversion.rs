//! Constants of the centred fast base conversion.

use crate::{Attachment, Basis, Tables, modulus::WORD};

/// From a source basis with product `Q` to every modulus `p_j` of the ring.
///
/// For residues `x_i` the result, the same on all backends, is
/// ```text
/// y_i   = x_i·(Q/q_i)^-1 mod q_i
/// r_i   = floor(y_i·floor(2^84/q_i) / 2^52)          y_i/q_i with 32 fractional bits
/// v     = floor((sum of r_i + 2^31) / 2^32)
/// out_j = sum of y_i·(Q/q_i) - v·Q mod p_j
/// ```
/// which is the representative in `(-Q/2, Q/2)`, except that a value within about `k·Q/2^32` of `±Q/2` may come out as the other
/// representative.
pub struct BaseConversion {
    source: Basis,
    /// By position in the source: `(Q/q_i)^-1·2^52 mod q_i`.
    inverses: Vec<u64>,
    /// By position in the source: `floor(2^84/q_i)`.
    weights: Vec<u64>,
    targets: Vec<Target>,
    attachment: Attachment,
}

/// Constants for one modulus `p` of the ring, in Montgomery form.
pub(crate) struct Target {
    /// By position in the source: `Q/q_i`; one more at the end: `-Q`.
    pub(crate) factors: Vec<u64>,
    /// `Q^-1`, or zero when `p` is in the source.
    pub(crate) inverse: u64,
}

impl BaseConversion {
    pub(crate) fn new(tables: &Tables, source: Basis) -> Self {
        let moduli = tables.moduli();
        let product_without = |p: crate::Modulus, left_out: Option<usize>| {
            let others = source.iter().filter(|&i| Some(i) != left_out);
            others.fold(1, |product, i| {
                p.mul(product, moduli[i].value() % p.value())
            })
        };
        let inverses = source
            .iter()
            .map(|i| moduli[i].to_montgomery(moduli[i].inv(product_without(moduli[i], Some(i)))))
            .collect();
        let weights = source
            .iter()
            .map(|i| ((1u128 << (WORD + 32)) / moduli[i].value() as u128) as u64)
            .collect();
        let targets = moduli
            .iter()
            .map(|&p| {
                let product = product_without(p, None);
                let mut factors: Vec<u64> = source
                    .iter()
                    .map(|i| p.to_montgomery(product_without(p, Some(i))))
                    .collect();
                factors.push(p.to_montgomery(p.neg(product)));
                Target {
                    factors,
                    inverse: p.to_montgomery(p.inv(product)),
                }
            })
            .collect();
        Self {
            source,
            inverses,
            weights,
            targets,
            attachment: Attachment::default(),
        }
    }

    /// The limbs converted from.
    pub fn source(&self) -> Basis {
        self.source
    }

    /// Where a backend keeps what it derives from this conversion.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    pub(crate) fn inverses(&self) -> &[u64] {
        &self.inverses
    }

    pub(crate) fn weights(&self) -> &[u64] {
        &self.weights
    }

    pub(crate) fn target(&self, i: usize) -> &Target {
        &self.targets[i]
    }
}
