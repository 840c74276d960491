//! Feed-forward networks.

use crate::folded::{folded, to_unit};
use crate::{FunctionKind, Graph, GraphError, Matrix, NodeId, Vector};
use taciturn_approx::Chebyshev;

/// A feed-forward network; with a gate (SwiGLU) the function is applied to the gate.
#[derive(Clone, Debug)]
pub struct FeedForwardSpec {
    /// First weights.
    pub up: Matrix,
    /// Their bias.
    pub up_bias: Option<Vec<f64>>,
    /// Weights of the gate.
    pub gate: Option<Matrix>,
    /// Their bias.
    pub gate_bias: Option<Vec<f64>>,
    /// Second weights.
    pub down: Matrix,
    /// Their bias.
    pub down_bias: Option<Vec<f64>>,
    /// The non-linear function.
    pub kind: FunctionKind,
    /// Its approximation.
    pub polynomial: Chebyshev,
}

impl Graph {
    /// A feed-forward network for a normed periodic value. Nodes `name.*`.
    pub fn feed_forward(
        &mut self,
        name: &str,
        x: NodeId,
        spec: &FeedForwardSpec,
    ) -> Result<NodeId, GraphError> {
        let part = |part: &str| format!("{name}.{part}");
        let (scale, shift) = to_unit(&spec.polynomial);
        let argument = spec.gate.as_ref().unwrap_or(&spec.up);
        let product = self.product_spaced(part("argument"), x, argument, 0)?;
        let masked = self.mul_plain(part("mask"), product, scale)?;
        let bias = match spec.gate {
            Some(_) => &spec.gate_bias,
            None => &spec.up_bias,
        };
        let shifts: Vector = match bias {
            Some(bias) => bias
                .iter()
                .map(|bias| scale * bias + shift)
                .collect::<Vec<_>>()
                .into(),
            None => shift.into(),
        };
        // Elsewhere stays 0, the middle of the interval.
        let unit = self.add_plain(part("unit"), masked, shifts)?;
        let function = folded(spec.kind, &spec.polynomial, 1.0);
        let value = self.polynomial(part("function"), unit, &function)?;
        let mut hidden = self.clear_rest(part("clear"), value)?;
        if spec.gate.is_some() {
            // The zeros of the gated side mask this one.
            let mut up = self.product_spaced(part("up"), x, &spec.up, 0)?;
            if let Some(bias) = &spec.up_bias {
                up = self.add_plain(part("up_bias"), up, bias.clone())?;
            }
            hidden = self.mul(part("gated"), hidden, up)?;
        }
        let hidden = self.repeat(part("repeat"), hidden)?;
        let down = self.product_periodic(part("down"), hidden, &spec.down)?;
        match &spec.down_bias {
            Some(bias) => self.add_plain(part("down_bias"), down, bias.clone()),
            None => Ok(down),
        }
    }
}
