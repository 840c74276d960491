//! Approximations by Taylor's series, as the papers have them: no fit, so far more steps for the same error.

use crate::error::{ApproxError, check_interval};
use crate::fit::interpolate;
use crate::{Chebyshev, Exp, InverseSqrt};

impl InverseSqrt {
    /// Taylor's polynomial of degree 3 around `(low + high) / 2 + 1`, then Newton steps (EncryptedLLM, D.3, after Qu and Xu, 2023, who
    /// take 16). It is below the function everywhere, so the steps converge on any interval, by a factor of 1.5 each where it is far below.
    pub fn taylor(low: f64, high: f64, newton: u32) -> Result<Self, ApproxError> {
        check_interval("1/sqrt(x)", "above 0", (low, high), 0.0)?;
        let center = (low + high) / 2.0 + 1.0;
        let series = |x: f64| {
            let u = (x - center) / center;
            (1.0 + u * (-1.0 / 2.0 + u * (3.0 / 8.0 - u * 5.0 / 16.0))) / center.sqrt()
        };
        let start = interpolate(series, low, high, 3)?;
        Ok(Self { start, newton })
    }
}

impl Exp {
    /// `(1 + x / 2^r)^(2^r)`, the limit that defines the function (EncryptedLLM, D.4, after Lu et al., 2023, who take r = 7). It is for `x <= 0`;
    /// an upper end above 0 is taken off first, and comes back as a factor.
    pub fn limit(low: f64, high: f64, squarings: u32) -> Result<Self, ApproxError> {
        let domain = "from the upper end, or 0, down to twice the power";
        check_interval("exp(x)", domain, (low, high), f64::NEG_INFINITY)?;
        let power = 2f64.powi(squarings.min(30) as i32);
        let off = high.max(0.0);
        // Below minus the power the base is negative, and below twice that the result exceeds one.
        if low - off < -2.0 * power {
            return Err(ApproxError::Interval {
                function: "exp(x)",
                domain,
                low,
                high,
            });
        }
        let factor = (off / power).exp();
        let middle = (low + high) / 2.0 - off;
        let poly = Chebyshev {
            low,
            high,
            coefficients: vec![
                factor * (1.0 + middle / power),
                factor * (high - low) / 2.0 / power,
            ],
        };
        Ok(Self { poly, squarings })
    }
}
