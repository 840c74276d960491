//! Feed-forward networks.

use crate::folded::to_unit;
use crate::recorder::{Part, Recorder};
use crate::{Graph, GraphError, Matrix, NodeId, Vector};
use taciturn_approx::{Approximation, Target};

/// A feed-forward network; with a gate (SwiGLU) the function is applied to the gate.
#[derive(Clone, Debug)]
pub struct FeedForwardSpec {
    /// True number of hidden entries; those after them are padding.
    pub hidden: usize,
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
    /// Of the non-linear function.
    pub activation: Approximation,
}

impl FeedForwardSpec {
    /// What one block of the hidden entries takes and gives.
    fn block(&self, number: usize, columns: usize) -> Self {
        let start = number * columns;
        let entries = |bias: &Option<Vec<f64>>| {
            let bias = bias.as_ref()?;
            Some(bias[start..start + columns].to_vec())
        };
        FeedForwardSpec {
            up: self.up.block(start, columns),
            up_bias: entries(&self.up_bias),
            gate: self.gate.as_ref().map(|gate| gate.block(start, columns)),
            gate_bias: entries(&self.gate_bias),
            down: self.down.row_block(number, columns),
            ..self.clone()
        }
    }
}

impl Graph {
    /// A feed-forward network for a normed periodic value. Nodes `name.*`. Where it is wider than the slots, in blocks of as many columns, whose
    /// nodes are numbered; a block of padding only is left out.
    pub fn feed_forward(
        &mut self,
        name: &str,
        x: NodeId,
        spec: &FeedForwardSpec,
    ) -> Result<NodeId, GraphError> {
        if !matches!(spec.activation.target(), Target::Activation(_)) {
            return Err(GraphError::Function {
                name: name.to_owned(),
                expected: "an activation",
                got: spec.activation.target().name(),
            });
        }
        let columns = spec.up.columns().min(self.token_slots());
        let mut sum = None;
        for number in 0..spec.hidden.div_ceil(columns) {
            let down = match spec.up.columns() == columns {
                true => self.feed_forward_block(name, x, spec, "")?,
                false => {
                    let block = spec.block(number, columns);
                    self.feed_forward_block(name, x, &block, &format!(".{number}"))?
                }
            };
            sum = Some(match sum {
                None => down,
                Some(sum) => self.add(format!("{name}.down_sum.{number}"), sum, down)?,
            });
        }
        let down = sum.expect("there is at least one block");
        match &spec.down_bias {
            Some(bias) => self.add_plain(format!("{name}.down_bias"), down, bias.clone()),
            None => Ok(down),
        }
    }

    /// One block, without the last bias; `suffix` ends the names of its nodes.
    fn feed_forward_block(
        &mut self,
        name: &str,
        x: NodeId,
        spec: &FeedForwardSpec,
        suffix: &str,
    ) -> Result<NodeId, GraphError> {
        let part = |part: &str| format!("{name}.{part}{suffix}");
        let (scale, shift) = to_unit(spec.activation.interval());
        let argument = spec.gate.as_ref().unwrap_or(&spec.up);
        // Where the columns fill the slots there is nothing to mask: the interval's map goes into the weights.
        let masked = match argument.columns() == self.token_slots() {
            true => self.product_spaced(part("mask"), x, &argument.scaled(scale), 0)?,
            false => {
                let product = self.product_spaced(part("argument"), x, argument, 0)?;
                self.mul_plain(part("mask"), product, scale)?
            }
        };
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
        let names = |which| match which {
            Part::Start => part("function"),
            Part::Number(number) => part(&format!("function_step{number}")),
        };
        let mut hidden = self.approximated(name, |graph| {
            let value = Recorder::new(graph, &names).record(&spec.activation, unit)?;
            graph.clear_rest(part("clear"), value)
        })?;
        if spec.gate.is_some() {
            // The zeros of the gated side mask this one.
            let mut up = self.product_spaced(part("up"), x, &spec.up, 0)?;
            if let Some(bias) = &spec.up_bias {
                up = self.add_plain(part("up_bias"), up, bias.clone())?;
            }
            hidden = self.mul(part("gated"), hidden, up)?;
        }
        let hidden = self.repeat(part("repeat"), hidden)?;
        // A part may be larger than the whole, whose bound is known by its name.
        let down = match suffix {
            "" => part("down"),
            _ => part("down_part"),
        };
        self.product_periodic(down, hidden, &spec.down)
    }
}
