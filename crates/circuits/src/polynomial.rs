//! Chebyshev evaluation on ciphertexts: Paterson-Stockmeyer with optimal depth and exact scales.

use std::collections::BTreeMap;
use std::rc::Rc;

use taciturn_ckks::{Ciphertext, CkksError, Complex64, Evaluator, Scale};
use taciturn_ring::{Basis, Form};

/// Levels that a polynomial of this degree consumes: ceil(log2(degree + 1)).
pub fn depth_of_degree(degree: usize) -> usize {
    (degree + 1).next_power_of_two().trailing_zeros() as usize
}

/// `sum_k coefficients[k] T_k(t)` for a ciphertext t with values in [-1, 1], landing exactly on `target` scale,
/// [`depth_of_degree`] limbs lower. Degree 0 gives a constant; no coefficients are an error.
///
/// Products with the powers are summed before their common relinearization and rescaling, and every constant is encoded at
/// the scale that lands on the target, so that no approximation of scales is made (as in Lattigo's evaluator; Bossuat et al. 2021, 5).
pub fn evaluate_chebyshev(
    ev: &Evaluator,
    t: &Ciphertext,
    coefficients: &[f64],
    target: Scale,
) -> Result<Ciphertext, CkksError> {
    if coefficients.is_empty() {
        return Err(CkksError::Mismatch {
            operation: "polynomial evaluation",
            expected: "at least one coefficient".into(),
            got: "none".into(),
        });
    }
    let coefficients = trimmed(coefficients);
    let depth = depth_of_degree(coefficients.len() - 1).max(1);
    let mut bases = vec![t.basis()];
    for _ in 0..depth {
        let last = bases[bases.len() - 1];
        let top = last
            .highest()
            .filter(|_| last.len() > 1)
            .ok_or_else(|| CkksError::Mismatch {
                operation: "polynomial evaluation",
                expected: format!("{} limbs to consume and one to keep", depth),
                got: format!("{} limbs", t.basis().len()),
            })?;
        bases.push(last.without(top));
    }
    // Powers below the bound are summed directly, higher parts are split off by the powers of two.
    let baby_bound = 1 << depth.div_ceil(2);
    let mut powers = Powers {
        ev,
        bases,
        known: BTreeMap::from([(1, Rc::new(t.clone()))]),
        baby_bound,
    };
    let last = powers.dropped_prime(depth - 1);
    let sum = powers.combine(coefficients, depth - 1, Scale(target.0 * last))?;
    let mut out = ev.relinearize_rescale(&sum)?;
    out.scale = target;
    Ok(out)
}

fn trimmed(coefficients: &[f64]) -> &[f64] {
    let used = coefficients
        .iter()
        .rposition(|&c| c != 0.0)
        .map_or(1, |i| i + 1);
    &coefficients[..used]
}

struct Powers<'a> {
    ev: &'a Evaluator,
    /// The limbs after 0, 1, 2, ... rescalings.
    bases: Vec<Basis>,
    known: BTreeMap<usize, Rc<Ciphertext>>,
    baby_bound: usize,
}

impl Powers<'_> {
    /// The prime that a rescale at this depth drops.
    fn dropped_prime(&self, depth: usize) -> f64 {
        let top = self.bases[depth].highest().expect("bases are not empty");
        self.ev.params().prime(top) as f64
    }

    /// T_k at its own depth, ceil(log2 k).
    fn power(&mut self, k: usize) -> Result<Rc<Ciphertext>, CkksError> {
        if let Some(known) = self.known.get(&k) {
            return Ok(known.clone());
        }
        let a = k.next_power_of_two() / 2;
        let b = k - a;
        let (left, right) = (self.power(a)?, self.power(b)?);
        let product = if a == b {
            let mut product = self.ev.double_square(&left)?;
            self.ev
                .add_constant_assign(&mut product, Complex64::new(-1.0, 0.0))?;
            product
        } else {
            let mut product = self.ev.mul(&left, &right)?;
            self.ev.mul_integer_assign(&mut product, 2);
            let lower = self.power(a - b)?;
            self.add_multiple(&mut product, &lower, -1.0)?;
            product
        };
        let out = Rc::new(self.ev.relinearize_rescale(&product)?);
        self.known.insert(k, out.clone());
        Ok(out)
    }

    /// acc += c * value, exactly up to the rounding of one integer; acc's limbs and scale stay.
    fn add_multiple(
        &self,
        acc: &mut Ciphertext,
        value: &Ciphertext,
        c: f64,
    ) -> Result<(), CkksError> {
        let factor = (c * acc.scale.0 / value.scale.0).round();
        if !factor.is_finite() || factor.abs() >= 2f64.powi(120) {
            return Err(CkksError::TooLarge {
                operation: "polynomial coefficient",
                value: c,
                log_scale: acc.scale.log2(),
                limit: "2^120",
            });
        }
        self.ev.add_multiple_assign(acc, value, factor as i128)
    }

    /// An encryption of zero without noise.
    fn zero(&self, basis: Basis, scale: Scale) -> Ciphertext {
        let zero = || self.ev.params().ring().zero(basis, Form::Evaluation);
        Ciphertext {
            polys: vec![zero(), zero()],
            scale,
        }
    }

    /// The polynomial on the limbs of `depth`, at scale `target`, before the rescale that ends it (of degree 2 where it ends in products).
    fn combine(
        &mut self,
        coefficients: &[f64],
        depth: usize,
        target: Scale,
    ) -> Result<Ciphertext, CkksError> {
        let coefficients = trimmed(coefficients);
        let degree = coefficients.len() - 1;
        let basis = self.bases[depth];
        let reachable = degree <= 1 || depth_of_degree(degree - 1) <= depth;
        if reachable && degree < self.baby_bound {
            let mut sum = self.zero(basis, target);
            self.add_babies(&mut sum, coefficients)?;
            return Ok(sum);
        }
        let g = (degree + 1).next_power_of_two() / 2;
        let (quotient, remainder) = divide(coefficients, g);
        let giant = self.power(g)?;
        let mut sum = if quotient.len() == 1 {
            let mut sum = self.zero(basis, target);
            self.add_multiple(&mut sum, &giant, quotient[0])?;
            sum
        } else {
            let scale = Scale(target.0 / giant.scale.0);
            let pre = Scale(scale.0 * self.dropped_prime(depth - 1));
            let mut q = self
                .ev
                .relinearize_rescale(&self.combine(&quotient, depth - 1, pre)?)?;
            q.scale = scale;
            let mut product = self.ev.mul(&q, &giant)?;
            product.scale = target;
            product
        };
        let remainder = trimmed(&remainder);
        if remainder.len() <= self.baby_bound {
            self.add_babies(&mut sum, remainder)?;
        } else {
            let rest = self.combine(remainder, depth, target)?;
            self.ev.add_assign(&mut sum, &rest)?;
        }
        Ok(sum)
    }

    /// sum += the polynomial, whose powers are all known or cheap, on sum's limbs and at its scale.
    fn add_babies(&mut self, sum: &mut Ciphertext, coefficients: &[f64]) -> Result<(), CkksError> {
        for (k, &c) in coefficients
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, c)| **c != 0.0)
        {
            let power = self.power(k)?;
            self.add_multiple(sum, &power, c)?;
        }
        self.ev
            .add_constant_assign(sum, Complex64::new(coefficients[0], 0.0))
    }
}

/// p = q T_g + r for deg p < 2g, by T_{g+i} = 2 T_g T_i - T_{g-i}.
fn divide(p: &[f64], g: usize) -> (Vec<f64>, Vec<f64>) {
    let mut remainder = p[..g].to_vec();
    let mut quotient = vec![p[g]];
    for i in 1..p.len() - g {
        quotient.push(2.0 * p[g + i]);
        remainder[g - i] -= p[g + i];
    }
    (quotient, remainder)
}
