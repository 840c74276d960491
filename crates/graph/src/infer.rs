//! The layout of an operation's result, and which layouts it takes.

use crate::several::fits;
use crate::{GraphError, Heads, Lanes, Layout, Op, Rest, Vector};

/// Below this a rest counts as zero: a constant and the subtraction of the same constant.
const NEGLIGIBLE: f64 = 1e-9;

/// The layout of the result, for slots of one token and the number of tokens.
pub(crate) fn infer(
    name: &str,
    op: &Op,
    inputs: &[Layout],
    (slots, tokens): (usize, usize),
) -> Result<Layout, GraphError> {
    let check = Check {
        name,
        op,
        slots,
        tokens,
    };
    match op {
        Op::Input { layout, .. } => {
            check.arity(inputs, 0, 0)?;
            check.layout(
                layout.period() <= slots && layout.period().is_power_of_two(),
                "a period that divides the slots",
                layout,
            )?;
            Ok(*layout)
        }
        Op::Add | Op::Sub | Op::Mul => {
            check.arity(inputs, 2, 2)?;
            check.combine(&inputs[0], &inputs[1])
        }
        Op::Square => {
            check.arity(inputs, 1, 1)?;
            Ok(map_rest(&inputs[0], |value| value * value))
        }
        Op::AddPlain { vector, elsewhere } => {
            check.arity(inputs, 1, 1)?;
            check.vector(vector, &inputs[0])?;
            Ok(map_rest(&inputs[0], |value| value + elsewhere))
        }
        Op::MulPlain { vector } => {
            check.arity(inputs, 1, 1)?;
            check.vector(vector, &inputs[0])?;
            Ok(inputs[0].with_rest(Rest::Constant(0.0)))
        }
        Op::SumEntries { left } => {
            check.arity(inputs, 1, 1)?;
            let Layout { values, run, .. } = inputs[0];
            check.layout(
                *left > 0 && values % left == 0,
                format!("a value of a multiple of {left} entries"),
                &inputs[0],
            )?;
            let summed = map_rest(&inputs[0], |value| value * (values / left) as f64);
            Ok(match summed.lanes {
                Lanes::All => Layout::repeated(*left, run),
                Lanes::One { lane, rest } => Layout::spaced(*left, run, lane, rest),
            })
        }
        Op::Turn { by } => {
            check.arity(inputs, 1, 1)?;
            check.layout(
                *by < inputs[0].values,
                format!("a value of more than {by} entries"),
                &inputs[0],
            )?;
            Ok(inputs[0])
        }
        Op::Select { of, which } => {
            check.arity(inputs, 1, 1)?;
            let Layout { values, run, .. } = inputs[0];
            check.layout(
                of.is_power_of_two() && which < of && *of <= values && run * of > 1,
                format!("a value of at least {of} entries, {which} being one of each {of}"),
                &inputs[0],
            )?;
            let lane = which * run + inputs[0].lane().unwrap_or(0);
            Ok(Layout::spaced(values / of, run * of, lane, Rest::Garbage))
        }
        Op::Interleave => {
            check.arity(inputs, 2, inputs[0].run)?;
            check.masked(&inputs[0])?;
            let (first, count) = (inputs[0], inputs.len());
            check.layout(
                first.lane() == Some(0) && count.is_power_of_two(),
                format!("one of a power of two of values (here {count}) spaced at lane 0"),
                &first,
            )?;
            inputs[1..]
                .iter()
                .try_for_each(|input| check.equal(&first, input))?;
            let zero = Rest::Constant(0.0);
            Ok(Layout::spaced(
                first.values * count,
                first.run / count,
                0,
                zero,
            ))
        }
        Op::Polynomial(nonlinear) => {
            check.arity(inputs, 1, 1)?;
            Ok(map_rest(&inputs[0], |value| {
                nonlinear.polynomial.evaluate(value)
            }))
        }
        Op::SubtractImage { counts, .. } => {
            check.arity(inputs, 1, 1)?;
            check.vector(counts, &inputs[0])?;
            Ok(inputs[0])
        }
        Op::ProductSpaced { matrix, lane } => {
            check.arity(inputs, 1, 1)?;
            let (rows, columns) = (matrix.rows(), matrix.columns());
            check.matrix(rows, columns)?;
            check.equal(&Layout::periodic(rows), &inputs[0])?;
            let run = slots / columns;
            check.shape(
                *lane < run,
                format!("a lane below {run}"),
                format!("lane {lane}"),
            )?;
            Ok(Layout::spaced(columns, run, *lane, Rest::Garbage))
        }
        Op::ProductPeriodic { matrix } => {
            check.arity(inputs, 1, 1)?;
            let (rows, columns) = (matrix.rows(), matrix.columns());
            check.matrix(rows, columns)?;
            check.equal(&Layout::repeated(rows, slots / rows), &inputs[0])?;
            Ok(Layout::periodic(columns))
        }
        Op::Repeat => {
            check.arity(inputs, 1, 1)?;
            check.masked(&inputs[0])?;
            Ok(Layout::repeated(inputs[0].values, inputs[0].run))
        }
        Op::Flatten => {
            check.arity(inputs, 1, 1)?;
            check.layout(
                inputs[0].is_full(),
                "a value in every slot of its runs",
                &inputs[0],
            )?;
            Ok(Layout::periodic(inputs[0].period()))
        }
        Op::Rope { cos, sin } => {
            check.arity(inputs, 2, 2)?;
            check.equal(&inputs[0], &inputs[1])?;
            check.vector(cos, &inputs[0])?;
            check.vector(sin, &inputs[0])?;
            let fills = inputs[0].period() == slots && inputs[0].values >= 2;
            check.layout(fills, "a value whose runs fill the slots", &inputs[0])?;
            Ok(inputs[0].with_rest(Rest::Constant(0.0)))
        }
        Op::Append { .. } => {
            check.arity(inputs, 1, 2)?;
            check.masked(&inputs[0])?;
            check.layout(
                inputs[0].period() == slots,
                "a value whose runs fill the slots",
                &inputs[0],
            )?;
            let cache = Layout::periodic(slots);
            inputs[1..]
                .iter()
                .try_for_each(|input| check.equal(&cache, input))?;
            Ok(cache)
        }
        Op::Scores(heads) => {
            let queries = heads.queries();
            check.arity(inputs, 2 * queries, queries + heads.parts())?;
            check.heads(heads)?;
            let (queries, keys) = inputs.split_at(queries);
            check.shape(
                keys.len().is_multiple_of(queries.len()),
                format!(
                    "a key cache per query and group of {} queries",
                    queries.len()
                ),
                format!("{} key caches", keys.len()),
            )?;
            queries
                .iter()
                .try_for_each(|query| check.equal(&heads.repeated(), query))?;
            keys.iter()
                .try_for_each(|key| check.equal(&heads.cache(), key))?;
            Ok(heads.scores())
        }
        Op::SumTokens(heads) => {
            check.arity(inputs, 1, usize::MAX)?;
            check.heads(heads)?;
            inputs
                .iter()
                .try_for_each(|input| check.equal(&heads.scores(), input))?;
            Ok(heads.per_head(Rest::Garbage))
        }
        Op::WeightedValues(heads) => {
            check.arity(inputs, 1 + heads.groups(), 1 + heads.groups())?;
            check.heads(heads)?;
            check.equal(&heads.scores(), &inputs[0])?;
            inputs[1..]
                .iter()
                .try_for_each(|value| check.equal(&heads.cache(), value))?;
            Ok(heads.spaced(0, Rest::Garbage))
        }
        Op::Several(several) => {
            if let Some(expected) = several.fault(tokens, slots) {
                return check
                    .shape(false, expected.to_owned(), format!("{several:?}"))
                    .map(|()| Layout::periodic(slots));
            }
            let (expected, result) = several.layouts(slots);
            check.arity(inputs, expected.len(), expected.len())?;
            expected
                .iter()
                .zip(inputs)
                .try_for_each(|(expected, input)| check.equal(expected, input))?;
            Ok(result)
        }
    }
}

fn map_rest(layout: &Layout, f: impl Fn(f64) -> f64) -> Layout {
    match layout.rest() {
        Some(Rest::Constant(value)) => layout.with_rest(constant(f(value))),
        _ => *layout,
    }
}

fn constant(value: f64) -> Rest {
    Rest::Constant(if value.abs() < NEGLIGIBLE { 0.0 } else { value })
}

struct Check<'a> {
    name: &'a str,
    op: &'a Op,
    slots: usize,
    tokens: usize,
}

impl Check<'_> {
    fn arity(&self, inputs: &[Layout], least: usize, most: usize) -> Result<(), GraphError> {
        if (least..=most).contains(&inputs.len()) {
            return Ok(());
        }
        let expected = if least == most {
            least.to_string()
        } else {
            format!("{least} to {most}")
        };
        let (name, kind) = (self.name.to_owned(), self.op.kind());
        Err(GraphError::Arity {
            name,
            kind,
            expected,
            got: inputs.len(),
        })
    }

    fn layout(
        &self,
        holds: bool,
        expected: impl Into<String>,
        got: &Layout,
    ) -> Result<(), GraphError> {
        if holds {
            return Ok(());
        }
        let (name, kind) = (self.name.to_owned(), self.op.kind());
        Err(GraphError::Layout {
            name,
            kind,
            expected: expected.into(),
            got: *got,
        })
    }

    fn equal(&self, expected: &Layout, got: &Layout) -> Result<(), GraphError> {
        self.layout(expected == got, expected.to_string(), got)
    }

    /// Spaced with zero elsewhere, or in runs of one slot.
    fn masked(&self, got: &Layout) -> Result<(), GraphError> {
        let masked = got.rest() == Some(Rest::Constant(0.0)) || (got.is_full() && got.run == 1);
        self.layout(masked, "a spaced value with zero elsewhere", got)
    }

    fn shape(&self, holds: bool, expected: String, got: String) -> Result<(), GraphError> {
        if holds {
            return Ok(());
        }
        Err(GraphError::Shape {
            name: self.name.to_owned(),
            kind: self.op.kind(),
            expected,
            got,
        })
    }

    fn vector(&self, vector: &Vector, layout: &Layout) -> Result<(), GraphError> {
        let expected = format!("a vector of {} entries", layout.values);
        self.shape(
            fits(vector, layout.values, self.tokens),
            expected,
            format!("{} entries", vector.entries()),
        )
    }

    fn matrix(&self, rows: usize, columns: usize) -> Result<(), GraphError> {
        let fits = |n: usize| n.is_power_of_two() && n <= self.slots;
        let expected = format!(
            "rows and columns that are powers of two up to {}",
            self.slots
        );
        self.shape(
            fits(rows) && fits(columns),
            expected,
            format!("{rows} x {columns}"),
        )
    }

    fn heads(&self, heads: &Heads) -> Result<(), GraphError> {
        let covered = heads.width() * heads.lanes();
        self.shape(
            covered == self.slots,
            format!("heads for {} slots", self.slots),
            format!("heads for {covered}"),
        )
    }

    /// The value with fewer entries is repeated; one of a single entry in every slot goes with everything.
    fn combine(&self, a: &Layout, b: &Layout) -> Result<Layout, GraphError> {
        let scalar = Layout::periodic(1);
        let aligned = a.run == b.run && (a.lane() == b.lane() || a.is_full() || b.is_full());
        self.layout(
            *a == scalar || *b == scalar || aligned,
            format!("a value to go with {a}"),
            b,
        )?;
        let larger = if *a == scalar {
            b
        } else if *b == scalar || a.values >= b.values {
            a
        } else {
            b
        };
        let Some(lane) = a.lane().or(b.lane()) else {
            return Ok(*larger);
        };
        let rest = match (a.rest(), b.rest()) {
            (Some(Rest::Constant(a)), Some(Rest::Constant(b))) => constant(match self.op {
                Op::Add => a + b,
                Op::Sub => a - b,
                _ => a * b,
            }),
            (Some(Rest::Constant(0.0)), _) | (_, Some(Rest::Constant(0.0)))
                if matches!(self.op, Op::Mul) =>
            {
                Rest::Constant(0.0)
            }
            _ => Rest::Garbage,
        };
        Ok(Layout::spaced(larger.values, larger.run, lane, rest))
    }
}
