//! Approximations as operations, each once for every machine, for comparison.
//!
//! The models' own go through [`crate::lower()`]; here is what any of [`Approximation`] takes, the papers' included.

use crate::{Machine, Plain};
use taciturn_approx::{
    Approximation, Chebyshev, Composite, Exp, GoldschmidtInverse, GoldschmidtInverseSqrt, Inverse,
    InverseSqrt, PiecewiseGelu, Sign,
};

/// The approximation of an argument that is mapped from its interval to [-1, 1]; takes [`Approximation::depth`] levels.
pub fn approximate<M: Machine>(
    machine: &mut M,
    approximation: &Approximation,
    u: &M::Value,
) -> Result<M::Value, M::Error> {
    let (low, high) = approximation.interval();
    let mut circuit = Circuit {
        machine,
        half: (high - low) / 2.0,
        middle: (high + low) / 2.0,
    };
    match approximation {
        Approximation::Inverse(f) => circuit.inverse(f, u),
        Approximation::GoldschmidtInverse(f) => circuit.goldschmidt_inverse(f, u),
        Approximation::InverseSqrt(f) => circuit.inverse_sqrt(f, u),
        Approximation::GoldschmidtInverseSqrt(f) => circuit.goldschmidt_inverse_sqrt(f, u),
        Approximation::Exp(f) => circuit.exp(f, u),
        Approximation::Activation { poly, .. } => circuit.polynomial(poly, 1.0, u),
        Approximation::Composite(f) => circuit.composite(f, u),
        Approximation::Piecewise(f) => circuit.piecewise(f, u),
        Approximation::Sign(f) => circuit.sign(f, u),
        Approximation::Max(f) => circuit.max(f, u),
    }
}

/// Operations on values at any levels. The argument is `half u + middle`.
struct Circuit<'m, M> {
    machine: &'m mut M,
    half: f64,
    middle: f64,
}

impl<M: Machine> Circuit<'_, M> {
    /// Both at the lower one's level.
    fn align(&mut self, a: &M::Value, b: &M::Value) -> Result<(M::Value, M::Value), M::Error> {
        let level = self.machine.level(a).min(self.machine.level(b));
        Ok((
            self.machine.drop_to(a, level)?,
            self.machine.drop_to(b, level)?,
        ))
    }

    fn mul(&mut self, a: &M::Value, b: &M::Value) -> Result<M::Value, M::Error> {
        let (a, b) = self.align(a, b)?;
        self.machine.mul(&a, &b)
    }

    fn add(&mut self, a: &M::Value, b: &M::Value) -> Result<M::Value, M::Error> {
        let (a, b) = self.align(a, b)?;
        self.machine.add(&a, &b)
    }

    fn plus(&mut self, a: &M::Value, constant: f64) -> Result<M::Value, M::Error> {
        self.machine.add_plain(a, &Plain::constant(constant))
    }

    /// `scale x + shift`.
    fn affine(&mut self, u: &M::Value, scale: f64, shift: f64) -> Result<M::Value, M::Error> {
        let scaled = self.machine.mul_constant(u, scale * self.half)?;
        self.plus(&scaled, shift + scale * self.middle)
    }

    /// `factor poly(x)`, where `u` is `x` mapped from the polynomial's interval.
    fn polynomial(
        &mut self,
        poly: &Chebyshev,
        factor: f64,
        u: &M::Value,
    ) -> Result<M::Value, M::Error> {
        let coefficients: Vec<f64> = poly.coefficients.iter().map(|c| factor * c).collect();
        if let [constant, linear] = coefficients[..] {
            let scaled = self.machine.mul_constant(u, linear)?;
            return self.plus(&scaled, constant);
        }
        let poly = Chebyshev {
            low: -1.0,
            high: 1.0,
            coefficients,
        };
        self.machine.polynomial(u, &poly)
    }

    /// A step is `y + y (1 - x y)`, as `y (2 - x y)`.
    fn inverse(&mut self, f: &Inverse, u: &M::Value) -> Result<M::Value, M::Error> {
        let mut y = self.polynomial(&f.start, 1.0, u)?;
        if f.newton == 0 {
            return Ok(y);
        }
        let negative = self.affine(u, -1.0, 0.0)?;
        for _ in 0..f.newton {
            let product = self.mul(&negative, &y)?;
            let factor = self.plus(&product, 2.0)?;
            y = self.mul(&y, &factor)?;
        }
        Ok(y)
    }

    fn goldschmidt_inverse(
        &mut self,
        f: &GoldschmidtInverse,
        u: &M::Value,
    ) -> Result<M::Value, M::Error> {
        let (mut y, mut e) = match f.start.coefficients[..] {
            // The first iteration of a constant `c` is `c (2 - c x)`.
            [c] => (self.affine(u, -c * c, 2.0 * c)?, self.affine(u, -c, 1.0)?),
            _ => {
                let y = self.polynomial(&f.start, 1.0, u)?;
                if f.iterations == 0 {
                    return Ok(y);
                }
                let negative = self.affine(u, -1.0, 0.0)?;
                let product = self.mul(&negative, &y)?;
                let e = self.plus(&product, 1.0)?;
                let factor = self.plus(&e, 1.0)?;
                (self.mul(&y, &factor)?, e)
            }
        };
        for _ in 1..f.iterations {
            e = self.machine.square(&e)?;
            let factor = self.plus(&e, 1.0)?;
            y = self.mul(&y, &factor)?;
        }
        Ok(y)
    }

    /// A step is `3/2 y - (x/2 y) (y y)`.
    fn inverse_sqrt(&mut self, f: &InverseSqrt, u: &M::Value) -> Result<M::Value, M::Error> {
        let mut y = self.polynomial(&f.start, 1.0, u)?;
        if f.newton == 0 {
            return Ok(y);
        }
        let negative_half = self.affine(u, -0.5, 0.0)?;
        for _ in 0..f.newton {
            let product = self.mul(&negative_half, &y)?;
            let square = self.machine.square(&y)?;
            let correction = self.mul(&product, &square)?;
            let most = self.machine.mul_constant(&y, 1.5)?;
            y = self.add(&most, &correction)?;
        }
        Ok(y)
    }

    /// With a fourth of the error, `g = (1 - x y^2) / 4`, all factors are whole: `y <- y (1 + 2 g)` and `g <- g^2 (3 + 4 g)`.
    fn goldschmidt_inverse_sqrt(
        &mut self,
        f: &GoldschmidtInverseSqrt,
        u: &M::Value,
    ) -> Result<M::Value, M::Error> {
        let (mut y, mut g) = match f.start.coefficients[..] {
            // The first iteration of a constant `c` is `c (3 - c^2 x) / 2`.
            [c] => (
                self.affine(u, -c * c * c / 2.0, 1.5 * c)?,
                self.affine(u, -c * c / 4.0, 0.25)?,
            ),
            _ => {
                let y = self.polynomial(&f.start, 1.0, u)?;
                if f.iterations == 0 {
                    return Ok(y);
                }
                let negative_fourth = self.affine(u, -0.25, 0.0)?;
                let product = self.mul(&negative_fourth, &y)?;
                let negative = self.mul(&product, &y)?;
                let g = self.plus(&negative, 0.25)?;
                let twice = self.machine.add(&g, &g)?;
                let factor = self.plus(&twice, 1.0)?;
                (self.mul(&y, &factor)?, g)
            }
        };
        for _ in 1..f.iterations {
            let twice = self.machine.add(&g, &g)?;
            let four = self.machine.add(&twice, &twice)?;
            let factor = self.plus(&four, 3.0)?;
            let square = self.machine.square(&g)?;
            g = self.mul(&square, &factor)?;
            let twice = self.machine.add(&g, &g)?;
            let factor = self.plus(&twice, 1.0)?;
            y = self.mul(&y, &factor)?;
        }
        Ok(y)
    }

    fn exp(&mut self, f: &Exp, u: &M::Value) -> Result<M::Value, M::Error> {
        let mut y = self.polynomial(&f.poly, 1.0, u)?;
        for _ in 0..f.squarings {
            y = self.machine.square(&y)?;
        }
        Ok(y)
    }

    /// The inner polynomial's result comes mapped for the outer one, whose interval is symmetric.
    fn composite(&mut self, f: &Composite, u: &M::Value) -> Result<M::Value, M::Error> {
        let inner = self.polynomial(&f.inner, 1.0 / f.outer.high, u)?;
        let gate = self.polynomial(&f.outer, 1.0, &inner)?;
        let x = self.affine(u, 1.0, 0.0)?;
        self.mul(&x, &gate)
    }

    fn sign(&mut self, f: &Sign, x: &M::Value) -> Result<M::Value, M::Error> {
        let mut y = x.clone();
        for stage in f.stages() {
            y = self.polynomial(&stage, 1.0, &y)?;
        }
        Ok(y)
    }

    /// `x/2 (sign(x) + 1)`.
    fn max(&mut self, f: &Sign, x: &M::Value) -> Result<M::Value, M::Error> {
        let sign = self.sign(f, x)?;
        let above = self.plus(&sign, 1.0)?;
        let half = self.machine.mul_constant(x, 0.5)?;
        self.mul(&half, &above)
    }

    /// With signs `s_i` from the borders, `(s_0 + 1) F_0/2 + (s_1 + 1) (F_1 - F_0)/2 + (s_2 + 1) (x - F_1)/2`.
    fn piecewise(&mut self, f: &PiecewiseGelu, u: &M::Value) -> Result<M::Value, M::Error> {
        let f0 = self.polynomial(&f.pieces[0], 0.5, u)?;
        let f1 = self.polynomial(&f.pieces[1], 0.5, u)?;
        let x = self.affine(u, 0.5, 0.0)?;
        let (low, high) = self.align(&f0, &f1)?;
        let second = self.machine.sub(&high, &low)?;
        let (x, high) = self.align(&x, &f1)?;
        let third = self.machine.sub(&x, &high)?;
        let mut above = Vec::new();
        for border in f.borders() {
            let distance = self.affine(u, 1.0 / f.reach(), -border / f.reach())?;
            let sign = self.sign(&f.sign, &distance)?;
            above.push(self.plus(&sign, 1.0)?);
        }
        let mut pairs = Vec::new();
        for (piece, above) in [f0, second, third].iter().zip(&above) {
            pairs.push(self.align(piece, above)?);
        }
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a, b)).collect();
        self.machine.dot(&pairs)
    }
}
