//! Root-mean-square norms: of a whole value, and of the channels of every head.

use crate::folded::to_unit;
use crate::recorder::{Part, Recorder, Unmapped};
use crate::{Graph, GraphError, NodeId, Vector};
use taciturn_approx::{Approximation, Target};

type Added = Result<NodeId, GraphError>;

/// A root-mean-square norm (a LayerNorm too, once the residual stream is centred); gains are folded into what follows.
#[derive(Clone, Debug)]
pub struct NormSpec {
    /// The true width, by which the sum of squares is divided.
    pub width: usize,
    /// Added to the mean square.
    pub epsilon: f64,
    /// Of the mean square plus `epsilon`.
    pub inverse_sqrt: Approximation,
}

impl Graph {
    /// `x / rms(x)` for a periodic value. Nodes `name.*`.
    pub fn norm(&mut self, name: &str, x: NodeId, spec: &NormSpec) -> Added {
        let squares = self.square(format!("{name}.squares"), x)?;
        let sum = self.sum_all(format!("{name}.sum"), squares)?;
        let inverse = self.approximated(name, |graph| {
            graph.inverse_rms(name, sum, spec, &|value, _| value.into())
        })?;
        self.mul(format!("{name}.result"), x, inverse)
    }

    /// `1 / rms` of the channels of every head for a spaced value in whose entries the head is `entry % heads`: one entry per head, zero
    /// elsewhere. Entries that are not `used` are padding; `used` has its first argument at the others and its second at these. Nodes `name.*`.
    pub(crate) fn head_norm(
        &mut self,
        name: &str,
        x: NodeId,
        heads: usize,
        spec: &NormSpec,
        used: &dyn Fn(f64, f64) -> Vector,
    ) -> Added {
        // Sums stay within their lanes, so that garbage needs a mask only afterwards.
        let squares = self.square(format!("{name}.squares"), x)?;
        let sum = self.sum_entries(format!("{name}.sum"), squares, heads)?;
        self.approximated(name, |graph| {
            let inverse = graph.inverse_rms(name, sum, spec, used)?;
            graph.clear_rest(format!("{name}.clear"), inverse)
        })
    }

    /// `(sum / width + epsilon)^(-1/2)` of sums of squares. `used` spreads a constant over the sums' entries and another one over
    /// padding, where the argument is the middle of its interval.
    fn inverse_rms(
        &mut self,
        name: &str,
        sum: NodeId,
        spec: &NormSpec,
        used: &dyn Fn(f64, f64) -> Vector,
    ) -> Added {
        let width = spec.width as f64;
        // The interval's map is an operation of its own, so that its result, of moderate size, can be a witness.
        let approximation = &spec.inverse_sqrt;
        self.expect(name, Target::InverseSqrt, approximation)?;
        let (scale, shift) = to_unit(approximation.interval());
        let scaled = self.mul_plain(format!("{name}.scaled"), sum, used(scale / width, 0.0))?;
        let unit = self.add_plain(
            format!("{name}.unit"),
            scaled,
            used(shift + scale * spec.epsilon, 0.0),
        )?;
        let names = |part| match part {
            Part::Start => format!("{name}.start"),
            Part::Number(number) => format!("{name}.step{number}"),
        };
        let unmapped = Unmapped {
            value: sum,
            factor: 1.0 / width,
            added: spec.epsilon,
            spread: used,
        };
        Recorder::new(self, &names)
            .from(unmapped)
            .record(approximation, unit)
    }
}
