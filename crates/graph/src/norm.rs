//! Root-mean-square norms: of a whole value, and of the channels of every head.

use crate::folded::{folded, to_unit};
use crate::{FunctionKind, Graph, GraphError, NodeId, Vector};
use taciturn_approx::InverseSqrt;

type Added = Result<NodeId, GraphError>;

/// A root-mean-square norm (a LayerNorm too, once the residual stream is centred); gains are folded into what follows.
#[derive(Clone, Debug)]
pub struct NormSpec {
    /// The true width, by which the sum of squares is divided.
    pub width: usize,
    /// Added to the mean square.
    pub epsilon: f64,
    /// Of the mean square plus `epsilon`.
    pub inverse_sqrt: InverseSqrt,
}

impl Graph {
    /// `x / rms(x)` for a periodic value. Nodes `name.*`.
    pub fn norm(&mut self, name: &str, x: NodeId, spec: &NormSpec) -> Added {
        let squares = self.square(format!("{name}.squares"), x)?;
        let sum = self.sum_all(format!("{name}.sum"), squares)?;
        let inverse = self.inverse_rms(name, sum, spec, &Vector::from)?;
        self.mul(format!("{name}.result"), x, inverse)
    }

    /// `1 / rms` of the channels of every head for a spaced value in whose entries the head is `entry % heads`: one entry per head, zero
    /// elsewhere. Entries that are not `used` are padding; `used(value)` has the value at the others. Nodes `name.*`.
    pub(crate) fn head_norm(
        &mut self,
        name: &str,
        x: NodeId,
        heads: usize,
        spec: &NormSpec,
        used: &dyn Fn(f64) -> Vector,
    ) -> Added {
        // Sums stay within their lanes, so that garbage needs a mask only afterwards.
        let squares = self.square(format!("{name}.squares"), x)?;
        let sum = self.sum_entries(format!("{name}.sum"), squares, heads)?;
        let inverse = self.inverse_rms(name, sum, spec, used)?;
        self.clear_rest(format!("{name}.clear"), inverse)
    }

    /// `(sum / width + epsilon)^(-1/2)` of sums of squares. `used` spreads a constant over the sums' entries; where it leaves zeros, the
    /// polynomial meets the middle of its interval.
    fn inverse_rms(
        &mut self,
        name: &str,
        sum: NodeId,
        spec: &NormSpec,
        used: &dyn Fn(f64) -> Vector,
    ) -> Added {
        let width = spec.width as f64;
        // The interval's map is an operation of its own, so that its result, of moderate size, can be a witness.
        let InverseSqrt { start, newton } = &spec.inverse_sqrt;
        let (scale, shift) = to_unit(start);
        let scaled = self.mul_plain(format!("{name}.scaled"), sum, used(scale / width))?;
        let unit = self.add_plain(
            format!("{name}.unit"),
            scaled,
            used(shift + scale * spec.epsilon),
        )?;
        let function = folded(FunctionKind::InverseSqrt, start, 1.0);
        let mut inverse = self.polynomial(format!("{name}.start"), unit, &function)?;
        if *newton > 0 {
            let scaled = self.mul_plain(format!("{name}.half"), sum, used(0.5 / width))?;
            let half = self.add_plain(
                format!("{name}.half_variance"),
                scaled,
                used(0.5 * spec.epsilon),
            )?;
            for step in 0..*newton {
                inverse =
                    self.newton_inverse_sqrt(&format!("{name}.newton{step}"), half, inverse)?;
            }
        }
        Ok(inverse)
    }
}
