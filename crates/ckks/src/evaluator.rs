//! Arithmetic on ciphertexts with public material only.

use std::sync::Arc;

use num_complex::Complex64;
use taciturn_ring::Basis;

use crate::{
    Ciphertext, CkksError, Decomposed, EvaluationKey, EvaluationKeys, GadgetName, IntegerPlaintext,
    KeyId, Level, Parameters, Plaintext, Scale, recorded::Recordings,
};

/// Computes on ciphertexts with a set of evaluation keys. Results are new ciphertexts; `_assign` forms change their operand.
#[derive(Clone)]
pub struct Evaluator {
    params: Parameters,
    keys: EvaluationKeys,
    /// Shared by copies, which have the same keys.
    recordings: Option<Arc<Recordings>>,
}

impl Evaluator {
    /// An evaluator over these keys; operations whose key is absent fail with [`CkksError::MissingKey`].
    pub fn new(params: &Parameters, keys: EvaluationKeys) -> Self {
        Self {
            params: params.clone(),
            keys,
            recordings: Some(Arc::default()),
        }
    }

    pub(crate) fn recordings(&self) -> Option<&Recordings> {
        self.recordings.as_deref()
    }

    /// The same with no circuit recorded: on a device each kernel is queued by itself.
    #[must_use]
    pub fn without_recordings(self) -> Self {
        Self {
            recordings: None,
            ..self
        }
    }

    /// The parameters.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// The keys.
    pub fn keys(&self) -> &EvaluationKeys {
        &self.keys
    }

    fn same(
        &self,
        operation: &'static str,
        a: &Ciphertext,
        basis: Basis,
        scale: Scale,
    ) -> Result<(), CkksError> {
        if a.basis() == basis && a.scale.matches(scale) {
            return Ok(());
        }
        Err(CkksError::Mismatch {
            operation,
            expected: format!("{} limbs at scale {}", a.basis().len(), a.scale),
            got: format!("{} limbs at scale {scale}", basis.len()),
        })
    }

    /// a += b; equal limbs and scales. No level.
    pub fn add_assign(&self, a: &mut Ciphertext, b: &Ciphertext) -> Result<(), CkksError> {
        self.same("addition", a, b.basis(), b.scale)?;
        for (i, p) in b.polys.iter().enumerate() {
            match a.polys.get_mut(i) {
                Some(mine) => self.params.ring().add_assign(mine, p),
                None => a.polys.push(p.clone()),
            }
        }
        Ok(())
    }

    /// a -= b; equal limbs and scales. No level.
    pub fn sub_assign(&self, a: &mut Ciphertext, b: &Ciphertext) -> Result<(), CkksError> {
        self.same("subtraction", a, b.basis(), b.scale)?;
        for (i, p) in b.polys.iter().enumerate() {
            match a.polys.get_mut(i) {
                Some(mine) => self.params.ring().sub_assign(mine, p),
                None => {
                    let mut negated = p.clone();
                    self.params.ring().neg_assign(&mut negated);
                    a.polys.push(negated);
                }
            }
        }
        Ok(())
    }

    /// a = -a. No level.
    pub fn neg_assign(&self, a: &mut Ciphertext) {
        a.polys
            .iter_mut()
            .for_each(|p| self.params.ring().neg_assign(p));
    }

    /// a += p; the plaintext covers a's limbs at a's scale. No level.
    pub fn add_plain_assign(&self, a: &mut Ciphertext, p: &Plaintext) -> Result<(), CkksError> {
        let basis = p.poly.basis().intersection(a.basis());
        self.same("plain addition", a, basis, p.scale)?;
        self.params.ring().add_assign(&mut a.polys[0], &p.poly);
        Ok(())
    }

    /// a += c in every slot. No level.
    pub fn add_constant_assign(&self, a: &mut Ciphertext, c: Complex64) -> Result<(), CkksError> {
        let ring = self.params.ring();
        let re = scaled_integer("constant addition", c.re, a.scale)?;
        let im = scaled_integer("constant addition", c.im, a.scale)?;
        if re != 0 {
            ring.add_integer_assign(&mut a.polys[0], re);
        }
        if im != 0 {
            ring.add_imaginary_integer_assign(&mut a.polys[0], im);
        }
        Ok(())
    }

    /// a times p at the product of the scales; the plaintext covers a's limbs. The caller rescales.
    pub fn mul_plain(&self, a: &Ciphertext, p: &Plaintext) -> Result<Ciphertext, CkksError> {
        if !a.basis().is_subset(p.poly.basis()) {
            return Err(CkksError::Mismatch {
                operation: "plain product",
                expected: format!("a plaintext on {} limbs", a.basis().len()),
                got: format!("one on {}", p.poly.basis().len()),
            });
        }
        let polys = a
            .polys
            .iter()
            .map(|c| self.params.ring().mul_new(c, &p.poly))
            .collect();
        Ok(Ciphertext {
            polys,
            scale: Scale(a.scale.0 * p.scale.0),
        })
    }

    /// The sum of products of ciphertexts with integer plaintexts, transformed as they are used, at the product of the scales, which are
    /// those of all pairs. The caller rescales.
    pub fn dot_integers(
        &self,
        pairs: &[(&Ciphertext, &IntegerPlaintext)],
    ) -> Result<Ciphertext, CkksError> {
        let scale = |(a, p): &(&Ciphertext, &IntegerPlaintext)| Scale(a.scale.0 * p.scale.0);
        let Some(first) = pairs.first() else {
            return Err(CkksError::Mismatch {
                operation: "sum of plain products",
                expected: "at least one pair".into(),
                got: "none".into(),
            });
        };
        let (basis, sum) = (first.0.basis(), scale(first));
        let fits = |pair: &&(&Ciphertext, &IntegerPlaintext)| {
            pair.0.basis() == basis && pair.0.degree() == 1 && scale(pair).matches(sum)
        };
        if let Some(pair) = pairs.iter().find(|pair| !fits(pair)) {
            return Err(CkksError::Mismatch {
                operation: "sum of plain products",
                expected: format!("degree 1, {} limbs, products of scale {sum}", basis.len()),
                got: format!(
                    "degree {}, {} limbs, a product of scale {}",
                    pair.0.degree(),
                    pair.0.basis().len(),
                    scale(pair)
                ),
            });
        }
        let terms: Vec<_> = pairs
            .iter()
            .map(|(a, p)| ([&a.polys[0], &a.polys[1]], &p.coefficients))
            .collect();
        let (c0, c1) = self.params.ring().dot_integers(&terms, basis);
        Ok(Ciphertext {
            polys: vec![c0, c1],
            scale: sum,
        })
    }

    /// a times an integer: the value grows, the scale stays.
    pub fn mul_integer_assign(&self, a: &mut Ciphertext, integer: i128) {
        a.polys
            .iter_mut()
            .for_each(|p| self.params.ring().mul_integer_assign(p, integer));
    }

    /// a times the imaginary unit. No level.
    pub fn mul_by_i_assign(&self, a: &mut Ciphertext) {
        a.polys
            .iter_mut()
            .for_each(|p| self.params.ring().mul_by_i_assign(p));
    }

    /// a times a real constant, rescaled to land exactly on `scale`: one limb.
    pub fn mul_constant_to(
        &self,
        a: &Ciphertext,
        c: f64,
        scale: Scale,
    ) -> Result<Ciphertext, CkksError> {
        let top = self.droppable(a.basis())?;
        let factor = Scale(scale.0 * self.params.prime(top) as f64 / a.scale.0);
        let mut out = a.clone();
        self.mul_integer_assign(&mut out, scaled_integer("constant product", c, factor)?);
        out.scale = Scale(a.scale.0 * factor.0);
        let mut out = self.rescale(&out)?;
        out.scale = scale;
        Ok(out)
    }

    /// a times b on the limbs that both have, of degree 2, at the product of the scales; one's limbs must contain the other's. The caller
    /// relinearizes and rescales.
    pub fn mul(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, CkksError> {
        let (mine, others) = (a.basis(), b.basis());
        if !(mine.is_subset(others) || others.is_subset(mine)) || a.degree() != 1 || b.degree() != 1
        {
            return Err(CkksError::Mismatch {
                operation: "product",
                expected: format!("two relinearized ciphertexts on {} limbs", mine.len()),
                got: format!(
                    "degrees {} and {}, {} limbs",
                    a.degree(),
                    b.degree(),
                    others.len()
                ),
            });
        }
        let ring = self.params.ring();
        let mut cross = ring.mul_new(&a.polys[0], &b.polys[1]);
        ring.mul_add_assign(&mut cross, &a.polys[1], &b.polys[0]);
        let polys = vec![
            ring.mul_new(&a.polys[0], &b.polys[0]),
            cross,
            ring.mul_new(&a.polys[1], &b.polys[1]),
        ];
        Ok(Ciphertext {
            polys,
            scale: Scale(a.scale.0 * b.scale.0),
        })
    }

    /// 2 a^2, of degree 2, at the square of the scale: as [`mul`](Self::mul) and a product with 2, in fewer passes over memory.
    pub fn double_square(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        let [c0, c1] = a.polys.as_slice() else {
            return Err(CkksError::Mismatch {
                operation: "square",
                expected: "a relinearized ciphertext".into(),
                got: format!("degree {}", a.degree()),
            });
        };
        let ring = self.params.ring();
        let [d0, d1] = [c0, c1].map(|c| {
            let mut doubled = ring.restrict(c, c.basis());
            ring.mul_integer_assign(&mut doubled, 2);
            doubled
        });
        Ok(Ciphertext {
            polys: vec![
                ring.mul_new(&d0, c0),
                ring.mul_new(&d0, &d1),
                ring.mul_new(&d1, c1),
            ],
            scale: Scale(a.scale.0 * a.scale.0),
        })
    }

    /// acc += integer * a on acc's limbs, all of which a has. Scales are the caller's business.
    pub fn add_multiple_assign(
        &self,
        acc: &mut Ciphertext,
        a: &Ciphertext,
        integer: i128,
    ) -> Result<(), CkksError> {
        if !acc.basis().is_subset(a.basis()) || a.degree() > acc.degree() {
            return Err(CkksError::Mismatch {
                operation: "adding a multiple",
                expected: format!(
                    "a ciphertext of degree {} on {} limbs",
                    acc.degree(),
                    acc.basis().len()
                ),
                got: format!("degree {} on {} limbs", a.degree(), a.basis().len()),
            });
        }
        let moduli = self.params.ring().moduli();
        for (acc, p) in acc.polys.iter_mut().zip(&a.polys) {
            self.params
                .ring()
                .add_scaled_to_limbs(acc, p, &|limb| moduli[limb].from_i128(integer));
        }
        Ok(())
    }

    /// Back to degree 1. One key switch.
    pub fn relinearize(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        if a.degree() == 1 {
            return Ok(a.clone());
        }
        let (key, gadget) = self.galois_key(1, a.basis())?;
        let extended = self.relinearize_extended(a, key, gadget);
        let mut out = self.mod_down(&extended);
        self.params
            .ring()
            .add_assign(&mut out.polys[0], &a.polys[0]);
        self.params
            .ring()
            .add_assign(&mut out.polys[1], &a.polys[1]);
        Ok(out)
    }

    /// Back to degree 1 and one limb lower, both divisions in one. One key switch.
    pub fn relinearize_rescale(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        if a.degree() == 1 {
            return self.rescale(a);
        }
        // Beside the model's limbs there is one of EvalMod's, and the highest is dropped: a prime as large as the gadget counts on.
        let gadget = GadgetName::Product;
        let (key, gadget) = match self.keys.find(KeyId { gadget, galois: 1 }, a.basis()) {
            Some(key) if self.params.cheapest_gadget(a.basis()) == GadgetName::Bootstrap => {
                (key, gadget)
            }
            _ => self.galois_key(1, a.basis())?,
        };
        let mut extended = self.relinearize_extended(a, key, gadget);
        let special = extended.special;
        for (acc, p) in extended.polys.iter_mut().zip(&a.polys) {
            self.add_extended(acc, p, special);
        }
        self.mod_down_rescale(&extended)
    }

    fn relinearize_extended(
        &self,
        a: &Ciphertext,
        key: &EvaluationKey,
        gadget: GadgetName,
    ) -> crate::Extended {
        let decomposed = self.decompose(&a.polys[2], gadget);
        self.key_product(&decomposed, key, 1, a.scale)
    }

    /// Divides by the highest limb's prime, and the scale with it.
    pub fn rescale(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        let top = self.droppable(a.basis())?;
        let ring = self.params.ring();
        let polys = ring.mod_down_all(&a.polys, Basis::single(top));
        Ok(Ciphertext {
            polys,
            scale: Scale(a.scale.0 / self.params.prime(top) as f64),
        })
    }

    /// The limb that a rescale of this basis drops: the highest, unless it is the only one.
    pub(crate) fn droppable(&self, basis: Basis) -> Result<usize, CkksError> {
        match basis.highest() {
            Some(top) if basis.len() > 1 => Ok(top),
            _ => Err(CkksError::Mismatch {
                operation: "rescale",
                expected: "at least two limbs".into(),
                got: format!("{}", basis.len()),
            }),
        }
    }

    /// The same value on fewer limbs, at the same scale.
    pub fn restrict(&self, a: &Ciphertext, basis: Basis) -> Result<Ciphertext, CkksError> {
        if !basis.is_subset(a.basis()) {
            return Err(CkksError::Mismatch {
                operation: "dropping limbs",
                expected: format!("some of {} limbs", a.basis().len()),
                got: format!("{} limbs", basis.len()),
            });
        }
        let polys = a
            .polys
            .iter()
            .map(|p| self.params.ring().restrict(p, basis))
            .collect();
        Ok(Ciphertext {
            polys,
            scale: a.scale,
        })
    }

    /// The same value at a lower or equal level, at that level's canonical scale. Free where the scale already matches;
    /// otherwise one product with a constant, which needs (and uses) one of the levels that are dropped.
    pub fn drop_to(&self, a: &Ciphertext, level: Level) -> Result<Ciphertext, CkksError> {
        let target = self.params.scale(level);
        let basis = self.params.level_basis(level);
        if a.scale.matches(target) {
            return self.restrict(a, basis);
        }
        let above = self.params.level_basis(Level(level.0 + 1));
        self.mul_constant_to(&self.restrict(a, above)?, 1.0, target)
    }

    /// The Galois element of a left rotation by `k` slots.
    pub fn galois_of_rotation(params: &Parameters, k: i64) -> u64 {
        let order = 2 * params.ring().n() as u64;
        let mut k = k.rem_euclid(params.slots() as i64) as u64;
        // 5^k by squaring and multiplying.
        let (mut galois, mut power) = (1, 5 % order);
        while k > 0 {
            if k & 1 == 1 {
                galois = galois * power % order;
            }
            power = power * power % order;
            k >>= 1;
        }
        galois
    }

    /// The Galois element of complex conjugation.
    pub fn galois_of_conjugation(params: &Parameters) -> u64 {
        2 * params.ring().n() as u64 - 1
    }

    /// The cheapest key for a Galois element (1: relinearization) on these limbs.
    pub fn galois_key(
        &self,
        galois: u64,
        basis: Basis,
    ) -> Result<(&EvaluationKey, GadgetName), CkksError> {
        let cheapest = self.params.cheapest_gadget(basis);
        if let Some(key) = self.keys.find(
            KeyId {
                gadget: cheapest,
                galois,
            },
            basis,
        ) {
            return Ok((key, cheapest));
        }
        let gadget = GadgetName::Bootstrap;
        Ok((self.keys.get(KeyId { gadget, galois }, basis)?, gadget))
    }

    /// Slot i of the result is slot i + k of the operand. One key switch.
    pub fn rotate(&self, a: &Ciphertext, k: i64) -> Result<Ciphertext, CkksError> {
        self.automorphism(a, Self::galois_of_rotation(&self.params, k))
    }

    /// The complex conjugate of every slot. One key switch.
    pub fn conjugate(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        self.automorphism(a, Self::galois_of_conjugation(&self.params))
    }

    /// Rotations of one operand that share its decomposition. One key switch each, without the decomposition.
    pub fn rotate_many(&self, a: &Ciphertext, steps: &[i64]) -> Result<Vec<Ciphertext>, CkksError> {
        let mut shared: Vec<(GadgetName, Decomposed)> = Vec::new();
        steps
            .iter()
            .map(|&k| {
                let galois = Self::galois_of_rotation(&self.params, k);
                if galois == 1 {
                    return Ok(a.clone());
                }
                let (key, gadget) = self.galois_key(galois, a.basis())?;
                if !shared.iter().any(|(name, _)| *name == gadget) {
                    shared.push((gadget, self.decompose(&a.polys[1], gadget)));
                }
                let (_, decomposed) = shared
                    .iter()
                    .find(|(name, _)| *name == gadget)
                    .expect("just added");
                Ok(self.finish_automorphism(a, decomposed, key, galois))
            })
            .collect()
    }

    fn automorphism(&self, a: &Ciphertext, galois: u64) -> Result<Ciphertext, CkksError> {
        if galois == 1 {
            return Ok(a.clone());
        }
        if a.degree() != 1 {
            return Err(CkksError::Mismatch {
                operation: "rotation",
                expected: "a relinearized ciphertext".into(),
                got: format!("degree {}", a.degree()),
            });
        }
        let (key, gadget) = self.galois_key(galois, a.basis())?;
        let decomposed = self.decompose(&a.polys[1], gadget);
        Ok(self.finish_automorphism(a, &decomposed, key, galois))
    }

    fn finish_automorphism(
        &self,
        a: &Ciphertext,
        d: &Decomposed,
        key: &EvaluationKey,
        galois: u64,
    ) -> Ciphertext {
        let mut out = self.mod_down(&self.key_product(d, key, galois, a.scale));
        self.params
            .ring()
            .add_automorphism_assign(&mut out.polys[0], &a.polys[0], galois);
        out
    }
}

/// round(value * scale) as an integer.
pub(crate) fn scaled_integer(
    operation: &'static str,
    value: f64,
    scale: Scale,
) -> Result<i128, CkksError> {
    let scaled = (value * scale.0).round();
    // False for NaN.
    if scaled.abs() < 2f64.powi(120) {
        return Ok(scaled as i128);
    }
    Err(CkksError::TooLarge {
        operation,
        value,
        log_scale: scale.log2(),
        limit: "2^120",
    })
}
