//! Building graphs: one method per operation. `name` is the node's name.

use crate::{
    Graph, GraphError, Heads, Layout, Matrix, NodeId, NonLinear, Op, Rest, Source, Vector,
};
use std::sync::Arc;

type Added = Result<NodeId, GraphError>;

impl Graph {
    /// A value that the client encrypts for this step.
    pub fn input(&mut self, name: impl Into<String>, layout: Layout) -> Added {
        self.add_node(
            name,
            Op::Input {
                source: Source::Fresh,
                layout,
            },
            &[],
        )
    }

    /// A member of a cache as the last step left it.
    pub fn cache(&mut self, name: impl Into<String>, family: &str, layout: Layout) -> Added {
        self.add_node(
            name,
            Op::Input {
                source: Source::Cache {
                    family: family.into(),
                },
                layout,
            },
            &[],
        )
    }

    /// `a + b`.
    pub fn add(&mut self, name: impl Into<String>, a: NodeId, b: NodeId) -> Added {
        self.add_node(name, Op::Add, &[a, b])
    }

    /// `a - b`.
    pub fn sub(&mut self, name: impl Into<String>, a: NodeId, b: NodeId) -> Added {
        self.add_node(name, Op::Sub, &[a, b])
    }

    /// `a * b`.
    pub fn mul(&mut self, name: impl Into<String>, a: NodeId, b: NodeId) -> Added {
        self.add_node(name, Op::Mul, &[a, b])
    }

    /// `x * x`.
    pub fn square(&mut self, name: impl Into<String>, x: NodeId) -> Added {
        self.add_node(name, Op::Square, &[x])
    }

    /// Adds `vector` to the logical entries and nothing elsewhere.
    pub fn add_plain(
        &mut self,
        name: impl Into<String>,
        x: NodeId,
        vector: impl Into<Vector>,
    ) -> Added {
        self.add_node(
            name,
            Op::AddPlain {
                vector: vector.into(),
                elsewhere: 0.0,
            },
            &[x],
        )
    }

    /// Adds `vector` to the logical entries and `elsewhere` to the slots outside of them.
    pub fn add_filled(
        &mut self,
        name: impl Into<String>,
        x: NodeId,
        vector: impl Into<Vector>,
        elsewhere: f64,
    ) -> Added {
        self.add_node(
            name,
            Op::AddPlain {
                vector: vector.into(),
                elsewhere,
            },
            &[x],
        )
    }

    /// Multiplies the logical entries by `vector` and masks what is elsewhere.
    pub fn mul_plain(
        &mut self,
        name: impl Into<String>,
        x: NodeId,
        vector: impl Into<Vector>,
    ) -> Added {
        self.add_node(
            name,
            Op::MulPlain {
                vector: vector.into(),
            },
            &[x],
        )
    }

    /// The sum of all entries of a periodic value.
    pub fn sum_all(&mut self, name: impl Into<String>, x: NodeId) -> Added {
        self.sum_entries(name, x, 1)
    }

    /// Sums of the entries with equal index modulo `left`.
    pub fn sum_entries(&mut self, name: impl Into<String>, x: NodeId, left: usize) -> Added {
        self.add_node(name, Op::SumEntries { left }, &[x])
    }

    /// Entry `i + by`, cyclically, as entry `i`; the value itself where `by` is 0.
    pub fn turn(&mut self, name: impl Into<String>, x: NodeId, by: usize) -> Added {
        match by {
            0 => Ok(x),
            _ => self.add_node(name, Op::Turn { by }, &[x]),
        }
    }

    /// Entries `i * of + which` of a spaced value, garbage between them; the value itself where `of` is 1.
    pub fn select(&mut self, name: impl Into<String>, x: NodeId, of: usize, which: usize) -> Added {
        match of {
            1 => Ok(x),
            _ => self.add_node(name, Op::Select { of, which }, &[x]),
        }
    }

    /// Masked values spaced at lane 0 in turn: entry `i * count + k` is entry `i` of value `k`. A single value stays as it is.
    pub fn interleave(&mut self, name: impl Into<String>, values: &[NodeId]) -> Added {
        match values {
            [one] => Ok(*one),
            _ => self.add_node(name, Op::Interleave, values),
        }
    }

    /// A non-linear function.
    pub fn polynomial(
        &mut self,
        name: impl Into<String>,
        x: NodeId,
        function: &Arc<NonLinear>,
    ) -> Added {
        self.add_node(name, Op::Polynomial(function.clone()), &[x])
    }

    /// Subtracts `counts * function(at)^(2^squarings)`.
    pub fn subtract_image(
        &mut self,
        name: impl Into<String>,
        x: NodeId,
        function: &Arc<NonLinear>,
        squarings: u32,
        at: f64,
        counts: impl Into<Vector>,
    ) -> Added {
        self.add_node(
            name,
            Op::SubtractImage {
                function: function.clone(),
                squarings,
                at,
                counts: counts.into(),
            },
            &[x],
        )
    }

    /// Periodic `x` times a matrix, spaced at `lane`.
    pub fn product_spaced(
        &mut self,
        name: impl Into<String>,
        x: NodeId,
        matrix: &Matrix,
        lane: usize,
    ) -> Added {
        self.add_node(
            name,
            Op::ProductSpaced {
                matrix: matrix.clone(),
                lane,
            },
            &[x],
        )
    }

    /// Periodic `x` times a matrix of any number of columns, in blocks of as many columns as there are slots (at most; the
    /// last is padded). One node `name.0`, `name.1`, ... for each.
    pub fn product_blocks(
        &mut self,
        name: &str,
        x: NodeId,
        matrix: &Matrix,
    ) -> Result<Vec<NodeId>, GraphError> {
        let columns = matrix.columns().next_power_of_two().min(self.token_slots());
        (0..matrix.columns().div_ceil(columns))
            .map(|i| {
                self.product_spaced(
                    format!("{name}.{i}"),
                    x,
                    &matrix.block(i * columns, columns),
                    0,
                )
            })
            .collect()
    }

    /// Repeated `x` times a matrix, periodic.
    pub fn product_periodic(
        &mut self,
        name: impl Into<String>,
        x: NodeId,
        matrix: &Matrix,
    ) -> Added {
        self.add_node(
            name,
            Op::ProductPeriodic {
                matrix: matrix.clone(),
            },
            &[x],
        )
    }

    /// A masked spaced value, repeated over its runs.
    pub fn repeat(&mut self, name: impl Into<String>, x: NodeId) -> Added {
        self.add_node(name, Op::Repeat, &[x])
    }

    /// A repeated value with every slot of a run as an entry of its own.
    pub fn flatten(&mut self, name: impl Into<String>, x: NodeId) -> Added {
        self.add_node(name, Op::Flatten, &[x])
    }

    /// Rotary embedding of a spaced value, which comes turned by half its entries as well; masked.
    pub fn rope(
        &mut self,
        name: impl Into<String>,
        x: NodeId,
        turned: NodeId,
        cos: impl Into<Vector>,
        sin: impl Into<Vector>,
    ) -> Added {
        self.add_node(
            name,
            Op::Rope {
                cos: cos.into(),
                sin: sin.into(),
            },
            &[x, turned],
        )
    }

    /// A masked spaced value added to a cache's member (which it founds where there is none).
    pub fn append(
        &mut self,
        name: impl Into<String>,
        family: &str,
        x: NodeId,
        cache: Option<NodeId>,
    ) -> Added {
        let inputs: Vec<NodeId> = std::iter::once(x).chain(cache).collect();
        self.add_node(
            name,
            Op::Append {
                family: family.into(),
            },
            &inputs,
        )
    }

    /// Scores of repeated queries with the key caches of groups 0, 1, ..., in each group one for every query.
    pub fn scores(
        &mut self,
        name: impl Into<String>,
        heads: Heads,
        queries: &[NodeId],
        keys: &[NodeId],
    ) -> Added {
        let inputs = [queries, keys].concat();
        self.add_node(name, Op::Scores(heads), &inputs)
    }

    /// Sum over tokens of exponentials, in one value or several, per query head.
    pub fn sum_tokens(
        &mut self,
        name: impl Into<String>,
        heads: Heads,
        exponentials: &[NodeId],
    ) -> Added {
        self.add_node(name, Op::SumTokens(heads), exponentials)
    }

    /// Sum of values weighted by exponentials.
    pub fn weighted_values(
        &mut self,
        name: impl Into<String>,
        heads: Heads,
        exponentials: NodeId,
        values: &[NodeId],
    ) -> Added {
        let inputs: Vec<NodeId> = std::iter::once(exponentials)
            .chain(values.iter().copied())
            .collect();
        self.add_node(name, Op::WeightedValues(heads), &inputs)
    }

    /// Brings the constant that a spaced value has outside its entries to zero; the value itself where it is zero already
    /// or there are no such slots. Garbage stays: only a mask removes it.
    pub fn clear_rest(&mut self, name: impl Into<String>, x: NodeId) -> Added {
        match self.node(x).layout.rest() {
            Some(Rest::Constant(value)) if value != 0.0 => self.add_filled(name, x, 0.0, -value),
            _ => Ok(x),
        }
    }
}
