//! Polynomials in the Chebyshev basis of an interval.

/// `sum_k coefficients[k] * T_k((2x - low - high) / (high - low))` for `x` in `[low, high]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Chebyshev {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Coefficients of T_0, T_1, ...; never empty.
    pub coefficients: Vec<f64>,
}

impl Chebyshev {
    /// Degree of the polynomial (index of the last coefficient).
    pub fn degree(&self) -> usize {
        self.coefficients.len() - 1
    }

    /// Multiplicative depth of its evaluation on a ciphertext whose values already lie in [-1, 1].
    pub fn depth(&self) -> u32 {
        (self.degree() + 1).next_power_of_two().trailing_zeros()
    }

    /// The value at `x` (Clenshaw's recurrence); meaningful inside the interval only.
    pub fn evaluate(&self, x: f64) -> f64 {
        let t = (2.0 * x - self.low - self.high) / (self.high - self.low);
        let (mut b1, mut b2) = (0.0, 0.0);
        for &c in self.coefficients[1..].iter().rev() {
            (b1, b2) = (2.0 * t * b1 - b2 + c, b1);
        }
        t * b1 - b2 + self.coefficients[0]
    }
}
