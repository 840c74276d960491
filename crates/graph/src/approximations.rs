//! Approximations as circuits, each once: for every machine, and for graphs.

use crate::{Function, FunctionKind, Machine, Plain};
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
    circuit(&mut OnMachine(machine), approximation, u)
}

/// What approximations are made of. `u` stands for arguments in [-1, 1].
pub(crate) trait Arithmetic {
    type Value: Clone;
    type Error;

    fn add(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Self::Error>;
    fn sub(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Self::Error>;
    fn mul(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Self::Error>;
    fn square(&mut self, a: &Self::Value) -> Result<Self::Value, Self::Error>;
    /// `scale x + shift`, where `u` is `x` mapped from an interval, and that interval's middle and half width; one level.
    fn affine(
        &mut self,
        u: &Self::Value,
        (scale, shift): (f64, f64),
        (middle, half): (f64, f64),
    ) -> Result<Self::Value, Self::Error> {
        let scaled = self.times(u, scale * half)?;
        self.plus(&scaled, shift + scale * middle)
    }
    /// `a + constant`.
    fn plus(&mut self, a: &Self::Value, constant: f64) -> Result<Self::Value, Self::Error>;
    /// `constant * a`, one level.
    fn times(&mut self, a: &Self::Value, constant: f64) -> Result<Self::Value, Self::Error>;
    /// The sum of three products.
    fn dot(&mut self, pairs: [(&Self::Value, &Self::Value); 3])
    -> Result<Self::Value, Self::Error>;
    /// A polynomial on [-1, 1], and the function that it stands for.
    fn polynomial(
        &mut self,
        u: &Self::Value,
        polynomial: Chebyshev,
        exact: Function,
    ) -> Result<Self::Value, Self::Error>;
}

/// On a machine's values, brought to one level where two meet.
struct OnMachine<'m, M>(&'m mut M);

impl<M: Machine> OnMachine<'_, M> {
    fn align(&mut self, a: &M::Value, b: &M::Value) -> Result<(M::Value, M::Value), M::Error> {
        let level = self.0.level(a).min(self.0.level(b));
        Ok((self.0.drop_to(a, level)?, self.0.drop_to(b, level)?))
    }
}

impl<M: Machine> Arithmetic for OnMachine<'_, M> {
    type Value = M::Value;
    type Error = M::Error;

    fn add(&mut self, a: &M::Value, b: &M::Value) -> Result<M::Value, M::Error> {
        let (a, b) = self.align(a, b)?;
        self.0.add(&a, &b)
    }

    fn sub(&mut self, a: &M::Value, b: &M::Value) -> Result<M::Value, M::Error> {
        let (a, b) = self.align(a, b)?;
        self.0.sub(&a, &b)
    }

    fn mul(&mut self, a: &M::Value, b: &M::Value) -> Result<M::Value, M::Error> {
        let (a, b) = self.align(a, b)?;
        self.0.mul(&a, &b)
    }

    fn square(&mut self, a: &M::Value) -> Result<M::Value, M::Error> {
        self.0.square(a)
    }

    fn plus(&mut self, a: &M::Value, constant: f64) -> Result<M::Value, M::Error> {
        self.0.add_plain(a, &Plain::constant(constant))
    }

    fn times(&mut self, a: &M::Value, constant: f64) -> Result<M::Value, M::Error> {
        self.0.mul_constant(a, constant)
    }

    fn dot(&mut self, pairs: [(&M::Value, &M::Value); 3]) -> Result<M::Value, M::Error> {
        let mut aligned = Vec::new();
        for (a, b) in pairs {
            aligned.push(self.align(a, b)?);
        }
        let pairs: Vec<_> = aligned.iter().map(|(a, b)| (a, b)).collect();
        self.0.dot(&pairs)
    }

    fn polynomial(
        &mut self,
        u: &M::Value,
        polynomial: Chebyshev,
        _: Function,
    ) -> Result<M::Value, M::Error> {
        on_unit(self.0, u, &polynomial)
    }
}

/// A polynomial on [-1, 1] of any degree; `0` and `1` are no work for the machine's evaluation of polynomials.
pub(crate) fn on_unit<M: Machine>(
    machine: &mut M,
    u: &M::Value,
    polynomial: &Chebyshev,
) -> Result<M::Value, M::Error> {
    let (value, constant) = match polynomial.coefficients[..] {
        [constant] => (machine.sub(u, u)?, constant),
        [constant, linear] => (machine.mul_constant(u, linear)?, constant),
        _ => return machine.polynomial(u, polynomial),
    };
    machine.add_plain(&value, &Plain::constant(constant))
}

/// The approximation of `u`.
pub(crate) fn circuit<A: Arithmetic>(
    arithmetic: &mut A,
    approximation: &Approximation,
    u: &A::Value,
) -> Result<A::Value, A::Error> {
    let (low, high) = approximation.interval();
    let kind = FunctionKind::of(approximation.target());
    let mut circuit = Circuit {
        arithmetic,
        half: (high - low) / 2.0,
        middle: (high + low) / 2.0,
        exact: Function::folded(kind, low, high),
    };
    match approximation {
        Approximation::Inverse(f) => circuit.inverse(f, u),
        Approximation::GoldschmidtInverse(f) => circuit.goldschmidt_inverse(f, u),
        Approximation::InverseSqrt(f) => circuit.inverse_sqrt(f, u),
        Approximation::GoldschmidtInverseSqrt(f) => circuit.goldschmidt_inverse_sqrt(f, u),
        Approximation::Exp(f) => circuit.exp(f, u),
        Approximation::Activation { poly, .. } => circuit.start(poly, u),
        Approximation::Composite(f) => circuit.composite(f, u),
        Approximation::Piecewise(f) => circuit.piecewise(f, u),
        Approximation::Sign(f) => circuit.sign(f, u, circuit.exact),
        Approximation::Max(f) => circuit.max(f, u),
    }
}

/// The argument is `half u + middle`.
struct Circuit<'a, A> {
    arithmetic: &'a mut A,
    half: f64,
    middle: f64,
    /// What is approximated, of `u`.
    exact: Function,
}

/// `u` itself: where values are exact, the stages of a composition but the last leave them.
const UNCHANGED: Function = Function {
    kind: FunctionKind::Identity,
    input_scale: 1.0,
    input_shift: 0.0,
    output_scale: 1.0,
};

/// The same value for every `u`.
const fn always(value: f64) -> Function {
    Function {
        input_scale: 0.0,
        input_shift: value,
        ..UNCHANGED
    }
}

type Out<A> = Result<<A as Arithmetic>::Value, <A as Arithmetic>::Error>;

impl<A: Arithmetic> Circuit<'_, A> {
    fn plus(&mut self, a: &A::Value, constant: f64) -> Out<A> {
        self.arithmetic.plus(a, constant)
    }

    fn mul(&mut self, a: &A::Value, b: &A::Value) -> Out<A> {
        self.arithmetic.mul(a, b)
    }

    /// `scale x + shift`.
    fn affine(&mut self, u: &A::Value, scale: f64, shift: f64) -> Out<A> {
        let interval = (self.middle, self.half);
        self.arithmetic.affine(u, (scale, shift), interval)
    }

    /// The polynomial `scale x + shift` in place of a function.
    fn linear(&mut self, u: &A::Value, scale: f64, shift: f64, exact: Function) -> Out<A> {
        let coefficients = vec![shift + scale * self.middle, scale * self.half];
        self.arithmetic.polynomial(u, unit(coefficients), exact)
    }

    /// `factor poly(x)`, where `u` is `x` mapped from the polynomial's interval.
    fn polynomial(
        &mut self,
        poly: &Chebyshev,
        factor: f64,
        u: &A::Value,
        exact: Function,
    ) -> Out<A> {
        let coefficients = poly.coefficients.iter().map(|c| factor * c).collect();
        self.arithmetic.polynomial(u, unit(coefficients), exact)
    }

    /// A polynomial in place of the whole function: steps after it leave what is exact.
    fn start(&mut self, poly: &Chebyshev, u: &A::Value) -> Out<A> {
        self.polynomial(poly, 1.0, u, self.exact)
    }

    /// A step is `y + y (1 - x y)`, as `y (2 - x y)`.
    fn inverse(&mut self, f: &Inverse, u: &A::Value) -> Out<A> {
        let mut y = self.start(&f.start, u)?;
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

    fn goldschmidt_inverse(&mut self, f: &GoldschmidtInverse, u: &A::Value) -> Out<A> {
        let (mut y, mut e) = match f.start.coefficients[..] {
            // The first iteration of a constant `c` is `c (2 - c x)`.
            [c] => (
                self.linear(u, -c * c, 2.0 * c, self.exact)?,
                self.linear(u, -c, 1.0, always(0.0))?,
            ),
            _ => {
                let y = self.start(&f.start, u)?;
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
            e = self.arithmetic.square(&e)?;
            let factor = self.plus(&e, 1.0)?;
            y = self.mul(&y, &factor)?;
        }
        Ok(y)
    }

    /// A step is `3/2 y - (x/2 y) (y y)`.
    fn inverse_sqrt(&mut self, f: &InverseSqrt, u: &A::Value) -> Out<A> {
        let mut y = self.start(&f.start, u)?;
        if f.newton == 0 {
            return Ok(y);
        }
        let negative_half = self.affine(u, -0.5, 0.0)?;
        for _ in 0..f.newton {
            let product = self.mul(&negative_half, &y)?;
            let square = self.arithmetic.square(&y)?;
            let correction = self.mul(&product, &square)?;
            let most = self.arithmetic.times(&y, 1.5)?;
            y = self.arithmetic.add(&most, &correction)?;
        }
        Ok(y)
    }

    /// With a fourth of the error, `g = (1 - x y^2) / 4`, all factors are whole: `y <- y (1 + 2 g)` and `g <- g^2 (3 + 4 g)`.
    fn goldschmidt_inverse_sqrt(&mut self, f: &GoldschmidtInverseSqrt, u: &A::Value) -> Out<A> {
        let (mut y, mut g) = match f.start.coefficients[..] {
            // The first iteration of a constant `c` is `c (3 - c^2 x) / 2`.
            [c] => (
                self.linear(u, -c * c * c / 2.0, 1.5 * c, self.exact)?,
                self.linear(u, -c * c / 4.0, 0.25, always(0.0))?,
            ),
            _ => {
                let y = self.start(&f.start, u)?;
                if f.iterations == 0 {
                    return Ok(y);
                }
                let negative_fourth = self.affine(u, -0.25, 0.0)?;
                let product = self.mul(&negative_fourth, &y)?;
                let negative = self.mul(&product, &y)?;
                let g = self.plus(&negative, 0.25)?;
                let twice = self.arithmetic.add(&g, &g)?;
                let factor = self.plus(&twice, 1.0)?;
                (self.mul(&y, &factor)?, g)
            }
        };
        for _ in 1..f.iterations {
            let twice = self.arithmetic.add(&g, &g)?;
            let four = self.arithmetic.add(&twice, &twice)?;
            let factor = self.plus(&four, 3.0)?;
            let square = self.arithmetic.square(&g)?;
            g = self.mul(&square, &factor)?;
            let twice = self.arithmetic.add(&g, &g)?;
            let factor = self.plus(&twice, 1.0)?;
            y = self.mul(&y, &factor)?;
        }
        Ok(y)
    }

    fn exp(&mut self, f: &Exp, u: &A::Value) -> Out<A> {
        // What is squared is the function of a smaller argument.
        let power = f64::from(1u32 << f.squarings);
        let (low, high) = (f.poly.low / power, f.poly.high / power);
        let exact = Function::folded(FunctionKind::Exp, low, high);
        let mut y = self.polynomial(&f.poly, 1.0, u, exact)?;
        for _ in 0..f.squarings {
            y = self.arithmetic.square(&y)?;
        }
        Ok(y)
    }

    /// The inner polynomial's result comes mapped for the outer one, whose interval is symmetric.
    fn composite(&mut self, f: &Composite, u: &A::Value) -> Out<A> {
        let inner = self.polynomial(&f.inner, 1.0 / f.outer.high, u, UNCHANGED)?;
        let (low, high) = (f.inner.low, f.inner.high);
        let exact = Function::folded(FunctionKind::Gate(f.gate), low, high);
        let gate = self.polynomial(&f.outer, 1.0, &inner, exact)?;
        let x = self.affine(u, 1.0, 0.0)?;
        self.mul(&x, &gate)
    }

    /// `exact` stands for all stages.
    fn sign(&mut self, f: &Sign, x: &A::Value, exact: Function) -> Out<A> {
        let stages = f.stages();
        let mut y = x.clone();
        for (i, stage) in stages.iter().enumerate() {
            let exact = match i + 1 == stages.len() {
                true => exact,
                false => UNCHANGED,
            };
            y = self.polynomial(stage, 1.0, &y, exact)?;
        }
        Ok(y)
    }

    /// `x/2 (sign(x) + 1)`.
    fn max(&mut self, f: &Sign, x: &A::Value) -> Out<A> {
        let sign = self.sign(f, x, Function::plain(FunctionKind::Sign))?;
        let above = self.plus(&sign, 1.0)?;
        let half = self.arithmetic.times(x, 0.5)?;
        self.mul(&half, &above)
    }

    /// With signs `s_i` from the borders, `(s_0 + 1) F_0/2 + (s_1 + 1) (F_1 - F_0)/2 + (s_2 + 1) (x - F_1)/2`.
    fn piecewise(&mut self, f: &PiecewiseGelu, u: &A::Value) -> Out<A> {
        // Where values are exact, both pieces are the function, and so is the sum: nothing but the first piece counts.
        let half = Function {
            output_scale: 0.5,
            ..self.exact
        };
        let signs = [1.0, 1.0, -1.0].map(always);
        let f0 = self.polynomial(&f.pieces[0], 0.5, u, half)?;
        let f1 = self.polynomial(&f.pieces[1], 0.5, u, half)?;
        let x = self.affine(u, 0.5, 0.0)?;
        let second = self.arithmetic.sub(&f1, &f0)?;
        let third = self.arithmetic.sub(&x, &f1)?;
        let mut above = Vec::new();
        for (border, exact) in f.borders().into_iter().zip(signs) {
            let distance = self.affine(u, 1.0 / f.reach(), -border / f.reach())?;
            let sign = self.sign(&f.sign, &distance, exact)?;
            above.push(self.plus(&sign, 1.0)?);
        }
        let pairs = [(&f0, &above[0]), (&second, &above[1]), (&third, &above[2])];
        self.arithmetic.dot(pairs)
    }
}

/// A polynomial on [-1, 1].
fn unit(coefficients: Vec<f64>) -> Chebyshev {
    Chebyshev {
        low: -1.0,
        high: 1.0,
        coefficients,
    }
}
