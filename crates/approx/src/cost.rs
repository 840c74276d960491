//! What an approximation costs on ciphertexts, and the search for the cheapest one.

use std::collections::BTreeSet;

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

/// Products of an evaluation by Paterson and Stockmeyer: powers below a bound are summed directly, higher parts are split off by the
/// powers of two, down to where the depth that is left suffices.
fn products(degree: usize) -> u32 {
    let depth = (degree + 1).next_power_of_two().ilog2();
    let mut powers = BTreeSet::from([1]);
    let joints = depth.checked_sub(1).map_or(0, |last| {
        joints(degree, last, 1 << depth.div_ceil(2), &mut powers)
    });
    powers.len() as u32 - 1 + joints
}

/// Products of quotients with powers, of a polynomial that may take `depth` levels before the last; notes the powers that it takes.
fn joints(degree: usize, depth: u32, babies: usize, powers: &mut BTreeSet<usize>) -> u32 {
    let reachable = degree <= 1 || degree.next_power_of_two().ilog2() <= depth;
    if reachable && degree < babies {
        (1..=degree).for_each(|k| power(k, powers));
        return 0;
    }
    let giant = (degree + 1).next_power_of_two() / 2;
    power(giant, powers);
    let quotient = match degree - giant {
        0 => 0,
        quotient => 1 + joints(quotient, depth - 1, babies, powers),
    };
    let remainder = if giant <= babies {
        (1..giant).for_each(|k| power(k, powers));
        0
    } else {
        joints(giant - 1, depth, babies, powers)
    };
    quotient + remainder
}

/// `T_(a+b) = 2 T_a T_b - T_(a-b)` with the largest power of two below.
fn power(k: usize, powers: &mut BTreeSet<usize>) {
    if k > 0 && powers.insert(k) {
        let a = k.next_power_of_two() / 2;
        for k in [a, k - a, 2 * a - k] {
            power(k, powers);
        }
    }
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
        assert_eq!(counts, [5, 8, 13, 18, 27, 36]);
        assert_eq!([0, 1, 2, 3].map(products), [0, 0, 1, 2]);
    }
}
