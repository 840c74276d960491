//! Records the circuit of an approximation as nodes of a graph, with a bound for each.
//!
//! Everything in a circuit is a function of the one argument, so that values on a grid of its interval bound it: no sample text has to pass through
//! an approximation before its values can be refreshed.

use crate::approximations::{Arithmetic, circuit};
use crate::{Function, Graph, GraphError, NodeId, NonLinear, Vector};
use std::sync::Arc;
use taciturn_approx::{Approximation, Chebyshev};

/// Intervals of the grid on [-1, 1].
const GRID: usize = 512;
/// Share by which the largest magnitude on the grid is exceeded: for what lies between its points, noise, and edges.
const MARGIN: f64 = 0.25;

/// The value that arguments are mapped from: what is derived from it in place of the mapped argument has less noise, as the map widens a small
/// interval of `x` that spans a large ratio, and a level more.
#[derive(Clone, Copy)]
pub(crate) struct Unmapped<'g> {
    /// `x` is `factor` times this, plus `added`.
    pub(crate) value: NodeId,
    pub(crate) factor: f64,
    pub(crate) added: f64,
    /// A vector with the first number at the entries that are used and the second at padding.
    pub(crate) spread: &'g dyn Fn(f64, f64) -> Vector,
}

/// Adds nodes to a graph.
pub(crate) struct Recorder<'g> {
    graph: &'g mut Graph,
    /// How nodes are called.
    name: &'g dyn Fn(Part) -> String,
    unmapped: Option<Unmapped<'g>>,
    recorded: usize,
    polynomials: usize,
}

/// Which node of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The first polynomial: the only node of most circuits.
    Start,
    /// Any other, by its place.
    Number(usize),
}

/// A node with its values at arguments in [-1, 1].
#[derive(Clone)]
pub(crate) struct Traced {
    id: NodeId,
    values: Arc<[f64]>,
}

impl<'g> Recorder<'g> {
    pub(crate) fn new(graph: &'g mut Graph, name: &'g dyn Fn(Part) -> String) -> Self {
        Recorder {
            graph,
            name,
            unmapped: None,
            recorded: 0,
            polynomials: 0,
        }
    }

    /// With what the argument is mapped from.
    pub(crate) fn from(self, unmapped: Unmapped<'g>) -> Self {
        Recorder {
            unmapped: Some(unmapped),
            ..self
        }
    }

    /// The nodes of an approximation of an argument that is mapped to [-1, 1]; the last of them is the result.
    pub(crate) fn record(
        mut self,
        approximation: &Approximation,
        u: NodeId,
    ) -> Result<NodeId, GraphError> {
        let values = (0..=GRID).map(|k| 2.0 * k as f64 / GRID as f64 - 1.0);
        let argument = Traced {
            id: u,
            values: values.collect(),
        };
        Ok(circuit(&mut self, approximation, &argument)?.id)
    }

    fn next(&mut self) -> String {
        self.recorded += 1;
        (self.name)(Part::Number(self.recorded - 1))
    }

    /// A node with its values, bounded by these.
    fn bounded(&mut self, id: NodeId, values: Arc<[f64]>) -> Traced {
        let largest = values
            .iter()
            .fold(0.0, |most: f64, value| most.max(value.abs()));
        if largest > 0.0 && largest.is_finite() {
            self.graph.set_bound(id, (1.0 + MARGIN) * largest);
        }
        Traced { id, values }
    }

    fn combined(
        &mut self,
        id: NodeId,
        a: &Traced,
        b: &Traced,
        f: impl Fn(f64, f64) -> f64,
    ) -> Traced {
        let values = a.values.iter().zip(&*b.values).map(|(a, b)| f(*a, *b));
        self.bounded(id, values.collect())
    }

    fn mapped(&mut self, id: NodeId, a: &Traced, f: impl Fn(f64) -> f64) -> Traced {
        let values = a.values.iter().map(|a| f(*a)).collect();
        self.bounded(id, values)
    }
}

impl Arithmetic for Recorder<'_> {
    type Value = Traced;
    type Error = GraphError;

    fn add(&mut self, a: &Traced, b: &Traced) -> Result<Traced, GraphError> {
        let name = self.next();
        let id = self.graph.add(name, a.id, b.id)?;
        Ok(self.combined(id, a, b, |a, b| a + b))
    }

    fn sub(&mut self, a: &Traced, b: &Traced) -> Result<Traced, GraphError> {
        let name = self.next();
        let id = self.graph.sub(name, a.id, b.id)?;
        Ok(self.combined(id, a, b, |a, b| a - b))
    }

    fn mul(&mut self, a: &Traced, b: &Traced) -> Result<Traced, GraphError> {
        let name = self.next();
        let id = self.graph.mul(name, a.id, b.id)?;
        Ok(self.combined(id, a, b, |a, b| a * b))
    }

    fn square(&mut self, a: &Traced) -> Result<Traced, GraphError> {
        let name = self.next();
        let id = self.graph.square(name, a.id)?;
        Ok(self.mapped(id, a, |a| a * a))
    }

    fn affine(
        &mut self,
        u: &Traced,
        (scale, shift): (f64, f64),
        (middle, half): (f64, f64),
    ) -> Result<Traced, GraphError> {
        let Some(from) = self.unmapped else {
            let scaled = self.times(u, scale * half)?;
            return self.plus(&scaled, shift + scale * middle);
        };
        let (name, added) = (self.next(), self.next());
        let scaled = (from.spread)(scale * from.factor, 0.0);
        let scaled = self.graph.mul_plain(name, from.value, scaled)?;
        // Padding is at the middle of the interval, as its mapped argument is.
        let padding = scale * middle + shift;
        let vector = (from.spread)(scale * from.added + shift, padding);
        let id = self.graph.add_filled(added, scaled, vector, padding)?;
        Ok(self.mapped(id, u, |u| scale * (half * u + middle) + shift))
    }

    /// Everywhere, padding included: a circuit's values stay functions of its argument.
    fn plus(&mut self, a: &Traced, constant: f64) -> Result<Traced, GraphError> {
        let name = self.next();
        let id = self.graph.add_filled(name, a.id, constant, constant)?;
        Ok(self.mapped(id, a, |a| a + constant))
    }

    fn times(&mut self, a: &Traced, constant: f64) -> Result<Traced, GraphError> {
        let name = self.next();
        let id = self.graph.mul_plain(name, a.id, constant)?;
        Ok(self.mapped(id, a, |a| constant * a))
    }

    fn dot(&mut self, pairs: [(&Traced, &Traced); 3]) -> Result<Traced, GraphError> {
        let [(a, b), second, third] = pairs;
        let mut sum = self.mul(a, b)?;
        for (a, b) in [second, third] {
            let product = self.mul(a, b)?;
            sum = self.add(&sum, &product)?;
        }
        Ok(sum)
    }

    fn polynomial(
        &mut self,
        u: &Traced,
        polynomial: Chebyshev,
        exact: Function,
    ) -> Result<Traced, GraphError> {
        let name = match self.polynomials {
            0 => (self.name)(Part::Start),
            _ => self.next(),
        };
        self.polynomials += 1;
        let function = Arc::new(NonLinear {
            function: exact,
            polynomial,
        });
        let id = self.graph.polynomial(name, u.id, &function)?;
        Ok(self.mapped(id, u, |u| function.polynomial.evaluate(u)))
    }
}
