//! Non-linear functions: the exact one and its polynomial.

use taciturn_approx::{Chebyshev, Gate, Target, gelu_erf, gelu_tanh, silu};

/// The exact functions of the models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// `x^(-1/2)`.
    InverseSqrt,
    /// `1 / x`.
    Inverse,
    /// `e^x`.
    Exp,
    /// GeLU in its tanh form, as GPT-2 has it.
    GeluTanh,
    /// GeLU by the error function.
    GeluErf,
    /// `x / (1 + e^-x)`.
    Silu,
    /// What an activation multiplies its argument by.
    Gate(Gate),
    /// The sign.
    Sign,
    /// The greater of `x` and zero.
    Max,
    /// `x`.
    Identity,
}

impl FunctionKind {
    /// The exact value.
    pub fn evaluate(self, x: f64) -> f64 {
        match self {
            FunctionKind::InverseSqrt => 1.0 / x.sqrt(),
            FunctionKind::Inverse => 1.0 / x,
            FunctionKind::Exp => x.exp(),
            FunctionKind::GeluTanh => gelu_tanh(x),
            FunctionKind::GeluErf => gelu_erf(x),
            FunctionKind::Silu => silu(x),
            FunctionKind::Gate(gate) => gate.exact(x),
            FunctionKind::Sign => x.signum(),
            FunctionKind::Max => x.max(0.0),
            FunctionKind::Identity => x,
        }
    }

    /// What an approximation stands for.
    pub fn of(target: Target) -> Self {
        match target {
            Target::Inverse => FunctionKind::Inverse,
            Target::InverseSqrt => FunctionKind::InverseSqrt,
            Target::Exp => FunctionKind::Exp,
            Target::Activation(Gate::NormalByTanh) => FunctionKind::GeluTanh,
            Target::Activation(Gate::Normal) => FunctionKind::GeluErf,
            Target::Activation(Gate::Logistic) => FunctionKind::Silu,
            Target::Sign => FunctionKind::Sign,
            Target::Max => FunctionKind::Max,
        }
    }
}

/// `u -> output_scale * f(input_scale * u + input_shift)`: a function as the graph meets it, with the interval's map and
/// other constants folded into the plaintexts around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Function {
    /// `f`.
    pub kind: FunctionKind,
    /// Multiplies the argument.
    pub input_scale: f64,
    /// Added to the scaled argument.
    pub input_shift: f64,
    /// Multiplies the result.
    pub output_scale: f64,
}

impl Function {
    /// `f` itself.
    pub fn plain(kind: FunctionKind) -> Self {
        Function {
            kind,
            input_scale: 1.0,
            input_shift: 0.0,
            output_scale: 1.0,
        }
    }

    /// `f` on [low, high] seen from [-1, 1]: the argument's map to [-1, 1] is folded into what comes before.
    pub fn folded(kind: FunctionKind, low: f64, high: f64) -> Self {
        Function {
            kind,
            input_scale: (high - low) / 2.0,
            input_shift: (high + low) / 2.0,
            output_scale: 1.0,
        }
    }

    /// The exact value at `u`.
    pub fn evaluate(&self, u: f64) -> f64 {
        self.output_scale * self.kind.evaluate(self.input_scale * u + self.input_shift)
    }
}

/// A function and the polynomial that stands for it under encryption, both of the same argument.
#[derive(Clone, Debug, PartialEq)]
pub struct NonLinear {
    /// What is meant.
    pub function: Function,
    /// What is computed.
    pub polynomial: Chebyshev,
}
