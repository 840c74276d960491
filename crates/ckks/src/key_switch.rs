//! Hybrid key switching: decomposition, inner product with a key, division by the special modulus.

use taciturn_ring::{Basis, Form, Hoisted, Poly, Rotation, Terms};

use crate::{
    Ciphertext, CkksError, EvaluationKey, Evaluator, GadgetName, KeyId, Scale,
    evaluator::scaled_integer, keys::used_digits,
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

/// A value ready for rotations: times P, and decomposed.
pub struct HoistedValue {
    /// P times the value, on its own limbs, or with the special ones where it was not divided by them yet.
    value: [Poly; 2],
    /// Of the second polynomial.
    decomposed: Decomposed,
    scale: Scale,
}

impl HoistedValue {
    /// The gadget that it was decomposed by.
    pub fn gadget(&self) -> GadgetName {
        self.decomposed.gadget
    }

    /// The value's limbs, without special ones.
    pub fn basis(&self) -> Basis {
        self.decomposed.basis
    }

    /// The value's scale.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    fn operand(&self) -> Hoisted<'_> {
        Hoisted {
            value: [&self.value[0], &self.value[1]],
            digits: &self.decomposed.digits,
        }
    }
}

impl Evaluator {
    /// Decomposes a polynomial in evaluation form.
    pub fn decompose(&self, poly: &Poly, gadget: GadgetName) -> Decomposed {
        let ring = self.params().ring();
        let g = self.params().gadget(gadget);
        let basis = poly.basis();
        let target = basis.union(g.special);
        let digits: Vec<Basis> = used_digits(g, basis).collect();
        let digits = ring.decompose(poly, &digits, target);
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

    /// The sum over Galois elements g of `lifted(X^g)` times the key of g under the single-digit gadget, for a polynomial that is small
    /// against the base limb, lifted to its limbs and the special one. No decomposition: the polynomial is its own digit.
    pub fn sum_of_lifted_products(
        &self,
        lifted: Poly,
        galois: &[u64],
        scale: Scale,
    ) -> Result<Extended, CkksError> {
        let ring = self.params().ring();
        let gadget = GadgetName::Decapsulate;
        let special = self.params().gadget(gadget).special;
        let target = lifted.basis();
        let limbs = target.difference(special);
        let (c0, c1) = if let [1] = galois {
            let key = self.keys().get(KeyId { gadget, galois: 1 }, limbs)?;
            ring.key_product(&[lifted], &key.digits, target)
        } else {
            let rotations = self.key_rotations(galois, gadget, limbs)?;
            // What the sum starts from: nothing, which one limb of zeros says as well as all.
            let nothing = ring.zero(Basis::single(0), Form::Evaluation);
            let hoisted = Hoisted {
                value: [&nothing; 2],
                digits: &[lifted],
            };
            ring.sum_of_rotations(hoisted, &rotations, target)
        };
        Ok(Extended {
            polys: [c0, c1],
            special,
            scale,
        })
    }

    /// Adds P times `poly` to an extended polynomial.
    pub fn add_extended(&self, acc: &mut Poly, poly: &Poly, special: Basis) {
        self.params()
            .ring()
            .add_scaled_to_limbs(acc, poly, &|limb| self.product_of(special, limb));
    }

    /// Makes a ciphertext ready for rotations: one decomposition for all of them.
    pub fn hoist(&self, ct: &Ciphertext, gadget: GadgetName) -> HoistedValue {
        let special = self.params().gadget(gadget).special;
        let decomposed = self.decompose(&ct.polys[1], gadget);
        let times_special = |poly: &Poly| {
            let mut scaled = self.params().ring().restrict(poly, poly.basis());
            self.mul_by_primes(&mut scaled, special);
            scaled
        };
        HoistedValue {
            value: [times_special(&ct.polys[0]), times_special(&ct.polys[1])],
            decomposed,
            scale: ct.scale,
        }
    }

    /// [`hoist`](Self::hoist) for a value that is not divided by its special limbs yet, which are among the gadget's: only the half that is
    /// decomposed needs the division.
    pub fn hoist_extended(&self, value: Extended, gadget: GadgetName) -> HoistedValue {
        let special = self.params().gadget(gadget).special;
        let divided = self
            .params()
            .ring()
            .mod_down(&value.polys[1], value.special);
        let decomposed = self.decompose(&divided, gadget);
        let missing = special.difference(value.special);
        let mut polys = value.polys;
        if !missing.is_empty() {
            polys
                .iter_mut()
                .for_each(|poly| self.mul_by_primes(poly, missing));
        }
        HoistedValue {
            value: polys,
            decomposed,
            scale: value.scale,
        }
    }

    /// A polynomial times the product of some primes, on its own limbs.
    fn mul_by_primes(&self, poly: &mut Poly, primes: Basis) {
        self.params()
            .ring()
            .mul_scalar_assign(poly, &|limb| self.product_of(primes, limb));
    }

    /// Sums over rotations of a value: for each list of terms, weights times steps, where step `i` is the value rotated by
    /// `steps[i]` slots. The sums are not divided by P yet. The weights' scale is `weight_scale`.
    pub fn hoisted_sums(
        &self,
        hoisted: &HoistedValue,
        steps: &[i64],
        sums: &[Terms<'_>],
        weight_scale: Scale,
    ) -> Result<Vec<Extended>, CkksError> {
        let gadget = hoisted.decomposed.gadget;
        let rotations = steps
            .iter()
            .map(|&k| {
                let galois = Self::galois_of_rotation(self.params(), k);
                (k != 0)
                    .then(|| self.key_rotation(galois, gadget, hoisted.decomposed.basis))
                    .transpose()
            })
            .collect::<Result<Vec<_>, _>>()?;
        let special = self.params().gadget(gadget).special;
        let target = hoisted.decomposed.basis.union(special);
        let sums = self
            .params()
            .ring()
            .hoisted_sums(hoisted.operand(), &rotations, sums, target);
        let scale = Scale(hoisted.scale.0 * weight_scale.0);
        Ok(sums
            .into_iter()
            .map(|(a, b)| Extended {
                polys: [a, b],
                special,
                scale,
            })
            .collect())
    }

    /// The value plus its automorphisms by each of `galois`.
    pub fn add_automorphisms(
        &self,
        hoisted: &HoistedValue,
        galois: &[u64],
    ) -> Result<Extended, CkksError> {
        let Decomposed { gadget, basis, .. } = hoisted.decomposed;
        let special = self.params().gadget(gadget).special;
        let rotations = self.key_rotations(galois, gadget, basis)?;
        let (a, b) = self.params().ring().sum_of_rotations(
            hoisted.operand(),
            &rotations,
            basis.union(special),
        );
        Ok(Extended {
            polys: [a, b],
            special,
            scale: hoisted.scale,
        })
    }

    /// A key as sums over rotations take it.
    fn key_rotation(
        &self,
        galois: u64,
        gadget: GadgetName,
        basis: Basis,
    ) -> Result<Rotation<'_>, CkksError> {
        let key = self.keys().get(KeyId { gadget, galois }, basis)?;
        Ok(Rotation {
            galois,
            key: &key.digits,
        })
    }

    fn key_rotations(
        &self,
        galois: &[u64],
        gadget: GadgetName,
        basis: Basis,
    ) -> Result<Vec<Rotation<'_>>, CkksError> {
        let rotation = |&g| self.key_rotation(g, gadget, basis);
        galois.iter().map(rotation).collect()
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

    /// As [`mod_down_rescale`](Self::mod_down_rescale), after a product with the integer that makes it land on (nearly) `scale`.
    pub fn rescale_extended_to(
        &self,
        mut value: Extended,
        scale: Scale,
    ) -> Result<Ciphertext, CkksError> {
        let top = self.droppable(value.polys[0].basis().difference(value.special))?;
        let factor = Scale(scale.0 * self.params().prime(top) as f64 / value.scale.0);
        let integer = scaled_integer("constant product", 1.0, factor)?;
        for poly in &mut value.polys {
            self.params().ring().mul_integer_assign(poly, integer);
        }
        let mut out = self.mod_down_rescale(&value)?;
        out.scale = scale;
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
