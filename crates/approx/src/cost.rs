//! What an approximation costs on ciphertexts, and the search for the cheapest one.

use crate::Chebyshev;
use crate::error::ApproxError;

/// Degrees tried by the choosers: one below a power of two is the largest of each depth.
pub const DEGREES: [usize; 6] = [7, 15, 31, 63, 127, 255];

/// Most Newton steps or squarings tried by the choosers.
pub(crate) const MAX_STEPS: u32 = 7;

/// Points of the grid on which errors are measured.
pub(crate) const GRID: usize = 20_000;

impl Chebyshev {
    /// Ciphertext products of a baby-step giant-step evaluation at the least depth.
    pub fn products(&self) -> u32 {
        products(self.degree())
    }
}

/// With `k` baby steps: T_2..T_{k-1}, then T_k, T_2k, ..., then one product to join each block of `k` coefficients to the next.
fn products(degree: usize) -> u32 {
    let terms = (degree + 1).next_power_of_two();
    let count = |k: usize| {
        k.saturating_sub(2) + (terms / k).ilog2() as usize + (degree + 1).div_ceil(k) - 1
    };
    (1..=terms.ilog2())
        .map(|b| count(1 << b))
        .min()
        .unwrap_or(0) as u32
}

/// One way to compute a function: a polynomial's degree and a number of steps after it.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) degree: usize,
    pub(crate) steps: u32,
}

/// What is asked of a choice: the function's name, interval and bits, and the cost of one step.
pub(crate) struct Request {
    pub(crate) function: &'static str,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) bits: f64,
    pub(crate) max_steps: u32,
    pub(crate) step_depth: u32,
    pub(crate) step_products: u32,
}

/// The first candidate, by depth and then by products, whose measured error reaches the bits.
pub(crate) fn cheapest<A>(
    request: &Request,
    mut make: impl FnMut(Candidate) -> Result<A, ApproxError>,
    measure: impl Fn(&A) -> f64,
) -> Result<A, ApproxError> {
    let mut candidates: Vec<Candidate> = DEGREES
        .iter()
        .flat_map(|&degree| (0..=request.max_steps).map(move |steps| Candidate { degree, steps }))
        .collect();
    candidates.sort_by_key(|c| {
        let depth = (c.degree + 1).ilog2() + request.step_depth * c.steps;
        (depth, products(c.degree) + request.step_products * c.steps)
    });
    let mut best = f64::NEG_INFINITY;
    for candidate in candidates {
        let approximation = make(candidate)?;
        let got = measure(&approximation);
        if got >= request.bits {
            return Ok(approximation);
        }
        best = best.max(got);
    }
    let Request {
        function,
        low,
        high,
        bits,
        ..
    } = *request;
    Err(ApproxError::TooWide {
        function,
        low,
        high,
        bits,
        best,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_counts_grow_like_the_square_root() {
        let counts: Vec<u32> = DEGREES.iter().map(|&d| products(d)).collect();
        assert_eq!(counts, [4, 7, 11, 16, 24, 33]);
        assert_eq!(
            (products(0), products(1), products(2), products(3)),
            (0, 0, 2, 2)
        );
    }
}
