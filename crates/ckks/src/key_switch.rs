//! Hybrid key switching: decomposition, inner product with a key, division by the special modulus.

use taciturn_ring::{Basis, Hoisted, Poly, Rotation, Terms};

use crate::{
    Ciphertext, CkksError, EvaluationKey, Evaluator, GadgetName, KeyId, Scale, keys::used_digits,
};

/// A polynomial decomposed by a gadget: its digits over its own and the special limbs. Made once, it serves any number of
/// switches (hoisting: Halevi and Shoup 2018).
pub struct Decomposed {
    digits: Vec<Poly>,
    basis: Basis,
    gadget: GadgetName,
}

impl Decomposed {
    /// The gadget that it was decomposed by.
    pub fn gadget(&self) -> GadgetName {
        self.gadget
    }
}

/// A ciphertext times the special modulus P, over its limbs and the special ones: what a switch gives before its division
/// by P. Sums of such values share one division (double hoisting: Bossuat et al. 2021).
#[derive(Clone)]
pub struct Extended {
    /// The polynomials, by power of the secret.
    pub polys: [Poly; 2],
    /// The special limbs.
    pub special: Basis,
    /// The scale after the division by P.
    pub scale: Scale,
}

impl Evaluator {
    /// Decomposes a polynomial in evaluation form.
    pub fn decompose(&self, poly: &Poly, gadget: GadgetName) -> Decomposed {
        let ring = self.params().ring();
        let g = self.params().gadget(gadget);
        let basis = poly.basis();
        let target = basis.union(g.special);
        let coefficients = ring.intt_new(poly);
        let digits: Vec<Basis> = used_digits(g, basis).collect();
        let digits = ring.extend_digits(&coefficients, poly, &digits, target);
        Decomposed {
            digits,
            basis,
            gadget,
        }
    }

    /// The inner product of a decomposition with a key, after the automorphism X -> X^galois of the digits (1: none).
    pub fn key_product(
        &self,
        decomposed: &Decomposed,
        key: &EvaluationKey,
        galois: u64,
        scale: Scale,
    ) -> Extended {
        let ring = self.params().ring();
        let special = self.params().gadget(decomposed.gadget).special;
        let target = decomposed.basis.union(special);
        let (c0, c1) = if galois == 1 {
            ring.key_product(
                &decomposed.digits,
                &key.digits[..decomposed.digits.len()],
                target,
            )
        } else {
            ring.key_product_automorphism(
                &decomposed.digits,
                &key.digits[..decomposed.digits.len()],
                galois,
                target,
            )
        };
        Extended {
            polys: [c0, c1],
            special,
            scale,
        }
    }

    /// Adds [`key_product`](Self::key_product) to extended polynomials.
    pub fn add_key_product(
        &self,
        acc: (&mut Poly, &mut Poly),
        decomposed: &Decomposed,
        key: &EvaluationKey,
        galois: u64,
    ) {
        let digits = &key.digits[..decomposed.digits.len()];
        self.params()
            .ring()
            .add_key_product_automorphism(acc, &decomposed.digits, digits, galois);
    }

    /// A polynomial that is small against the base limb, lifted to `target`, times a key of the single-digit gadget.
    pub fn lifted_product(
        &self,
        lifted: Poly,
        key: &EvaluationKey,
        special: Basis,
        scale: Scale,
    ) -> Extended {
        let target = lifted.basis();
        let (c0, c1) = self
            .params()
            .ring()
            .key_product(&[lifted], &key.digits, target);
        Extended {
            polys: [c0, c1],
            special,
            scale,
        }
    }

    /// Adds P times `poly` to an extended polynomial.
    pub fn add_extended(&self, acc: &mut Poly, poly: &Poly, special: Basis) {
        self.params()
            .ring()
            .add_scaled_to_limbs(acc, poly, &|limb| self.product_of(special, limb));
    }

    /// P times a polynomial on its own limbs: where it is zero on the special limbs, they are left out.
    pub fn times_special(&self, poly: &Poly, special: Basis) -> Poly {
        let mut scaled = poly.clone();
        self.params()
            .ring()
            .mul_scalar_assign(&mut scaled, &|limb| self.product_of(special, limb));
        scaled
    }

    /// Sums over rotations of a ciphertext: for each list of terms, weights times steps, where step `i` is the ciphertext rotated by
    /// `steps[i]` slots. One decomposition for all; the sums are not divided by P yet. The weights' scale is `weight_scale`.
    pub fn hoisted_sums(
        &self,
        ct: &Ciphertext,
        gadget: GadgetName,
        steps: &[i64],
        sums: &[Terms<'_>],
        weight_scale: Scale,
    ) -> Result<Vec<Extended>, CkksError> {
        let special = self.params().gadget(gadget).special;
        let rotations = steps
            .iter()
            .map(|&k| {
                (k != 0)
                    .then(|| self.rotation(k, gadget, ct.basis()))
                    .transpose()
            })
            .collect::<Result<Vec<_>, _>>()?;
        let decomposed = self.decompose(&ct.polys[1], gadget);
        let value = [&ct.polys[0], &ct.polys[1]].map(|p| self.times_special(p, special));
        let hoisted = Hoisted {
            value: [&value[0], &value[1]],
            digits: &decomposed.digits,
        };
        let target = ct.basis().union(special);
        let sums = self
            .params()
            .ring()
            .hoisted_sums(hoisted, &rotations, sums, target);
        let scale = Scale(ct.scale.0 * weight_scale.0);
        Ok(sums
            .into_iter()
            .map(|(a, b)| Extended {
                polys: [a, b],
                special,
                scale,
            })
            .collect())
    }

    /// A key as sums over rotations take it.
    fn rotation(
        &self,
        steps: i64,
        gadget: GadgetName,
        basis: Basis,
    ) -> Result<Rotation<'_>, CkksError> {
        let galois = Self::galois_of_rotation(self.params(), steps);
        let key = self.keys().get(KeyId { gadget, galois }, basis)?;
        Ok(Rotation {
            galois,
            key: &key.digits,
        })
    }

    /// Adds the rotations of a ciphertext by each of `steps` to itself. One decomposition and one division by P for all.
    pub fn add_rotations(&self, ct: &Ciphertext, steps: &[i64]) -> Result<Ciphertext, CkksError> {
        let Some(&first) = steps.first() else {
            return Ok(ct.clone());
        };
        let galois = Self::galois_of_rotation(self.params(), first);
        let (_, gadget) = self.galois_key(galois, ct.basis())?;
        let special = self.params().gadget(gadget).special;
        let rotations = steps
            .iter()
            .map(|&k| self.rotation(k, gadget, ct.basis()))
            .collect::<Result<Vec<_>, _>>()?;
        let decomposed = self.decompose(&ct.polys[1], gadget);
        let value = [&ct.polys[0], &ct.polys[1]].map(|p| self.times_special(p, special));
        let hoisted = Hoisted {
            value: [&value[0], &value[1]],
            digits: &decomposed.digits,
        };
        let target = ct.basis().union(special);
        let (a, b) = self
            .params()
            .ring()
            .sum_of_rotations(hoisted, &rotations, target);
        Ok(self.mod_down(&Extended {
            polys: [a, b],
            special,
            scale: ct.scale,
        }))
    }

    /// Divides by the special modulus.
    pub fn mod_down(&self, value: &Extended) -> Ciphertext {
        self.mod_down_dropping(value, value.special)
    }

    /// Divides by the special modulus and by the highest ciphertext limb at once: one rounding instead of two.
    pub fn mod_down_rescale(&self, value: &Extended) -> Result<Ciphertext, CkksError> {
        let limbs = value.polys[0].basis().difference(value.special);
        let top = self.droppable(limbs)?;
        let mut out = self.mod_down_dropping(value, value.special.with(top));
        out.scale = Scale(value.scale.0 / self.params().prime(top) as f64);
        Ok(out)
    }

    fn mod_down_dropping(&self, value: &Extended, drop: Basis) -> Ciphertext {
        let ring = self.params().ring();
        Ciphertext {
            polys: ring.mod_down_all(&value.polys, drop),
            scale: value.scale,
        }
    }

    /// The product of the primes in a basis, modulo the prime of a limb.
    fn product_of(&self, basis: Basis, limb: usize) -> u64 {
        let modulus = self.params().ring().moduli()[limb];
        basis.iter().fold(1, |acc, i| {
            modulus.mul(acc, self.params().prime(i) % modulus.value())
        })
    }
}
