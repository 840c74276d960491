//! Public operands in logical coordinates: vectors and matrices of the model.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A vector in the logical coordinates of the value that it meets.
#[derive(Clone, Debug, PartialEq)]
pub enum Vector {
    /// The same entry everywhere.
    Uniform(f64),
    /// One entry per logical entry of the value.
    Dense(Arc<[f64]>),
}

impl Vector {
    /// Entry `i`.
    pub fn at(&self, i: usize) -> f64 {
        match self {
            Vector::Uniform(value) => *value,
            Vector::Dense(values) => values[i],
        }
    }

    /// Whether it can meet a value of `values` logical entries.
    pub fn fits(&self, values: usize) -> bool {
        match self {
            Vector::Uniform(_) => true,
            Vector::Dense(entries) => entries.len() == values,
        }
    }

    /// Number of entries, 1 for a uniform vector.
    pub fn entries(&self) -> usize {
        match self {
            Vector::Uniform(_) => 1,
            Vector::Dense(entries) => entries.len(),
        }
    }
}

impl From<f64> for Vector {
    fn from(value: f64) -> Self {
        Vector::Uniform(value)
    }
}

impl From<Vec<f64>> for Vector {
    fn from(values: Vec<f64>) -> Self {
        Vector::Dense(values.into())
    }
}

impl Hash for Vector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Vector::Uniform(value) => (0u8, value.to_bits()).hash(state),
            Vector::Dense(values) => {
                (1u8, values.len()).hash(state);
                values.iter().for_each(|value| value.to_bits().hash(state));
            }
        }
    }
}

type Entry = Arc<dyn Fn(usize, usize) -> f64 + Send + Sync>;
type Product = Arc<dyn Fn(&[f64]) -> Vec<f64> + Send + Sync>;

#[derive(Clone)]
enum Entries {
    Dense(Arc<[f32]>),
    Computed(Entry),
    /// As `Computed`, with a faster way to the whole product.
    WithProduct(Entry, Product),
}

/// A weight matrix; a product maps `x` of `rows` entries to `x * W` of `columns` entries.
///
/// `rows` and `columns` are powers of two (padded with zeros). The name must name the content: it goes into the ids of the
/// plaintexts made from it.
#[derive(Clone)]
pub struct Matrix {
    name: Arc<str>,
    rows: usize,
    columns: usize,
    entries: Entries,
}

impl Matrix {
    /// From stored entries, row by row; `None` unless there are `rows * columns`.
    pub fn dense(
        name: impl Into<Arc<str>>,
        rows: usize,
        columns: usize,
        entries: impl Into<Arc<[f32]>>,
    ) -> Option<Self> {
        let entries = entries.into();
        (rows.checked_mul(columns) == Some(entries.len())).then(|| Matrix {
            name: name.into(),
            rows,
            columns,
            entries: Entries::Dense(entries),
        })
    }

    /// From a function of row and column, called whenever an entry is needed.
    pub fn computed(
        name: impl Into<Arc<str>>,
        rows: usize,
        columns: usize,
        entry: impl Fn(usize, usize) -> f64 + Send + Sync + 'static,
    ) -> Self {
        Matrix {
            name: name.into(),
            rows,
            columns,
            entries: Entries::Computed(Arc::new(entry)),
        }
    }

    /// The same matrix with `x * W` in one call, for one that is computed.
    pub fn with_product(
        self,
        product: impl Fn(&[f64]) -> Vec<f64> + Send + Sync + 'static,
    ) -> Self {
        let entries = match self.entries {
            Entries::Computed(entry) => Entries::WithProduct(entry, Arc::new(product)),
            other => other,
        };
        Matrix { entries, ..self }
    }

    /// Names the content.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Entries of the input.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Entries of the output.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The entry at a row and column.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        match &self.entries {
            Entries::Dense(entries) => f64::from(entries[row * self.columns + column]),
            Entries::Computed(entry) | Entries::WithProduct(entry, _) => entry(row, column),
        }
    }

    /// Columns `start .. start + columns`, zero beyond the last.
    pub fn block(&self, start: usize, columns: usize) -> Matrix {
        let whole = self.clone();
        Matrix::computed(
            format!("{}[{start}+{columns}]", self.name),
            self.rows,
            columns,
            move |row, column| {
                if start + column < whole.columns {
                    whole.at(row, start + column)
                } else {
                    0.0
                }
            },
        )
    }

    /// `x * W`.
    pub fn apply(&self, x: &[f64]) -> Vec<f64> {
        if let Entries::WithProduct(_, product) = &self.entries {
            return product(x);
        }
        let mut y = vec![0.0; self.columns];
        for (row, &x) in x.iter().enumerate() {
            match &self.entries {
                Entries::Dense(entries) => {
                    let row = &entries[row * self.columns..][..self.columns];
                    y.iter_mut()
                        .zip(row)
                        .for_each(|(y, &w)| *y += x * f64::from(w));
                }
                Entries::Computed(entry) | Entries::WithProduct(entry, _) => {
                    y.iter_mut()
                        .enumerate()
                        .for_each(|(column, y)| *y += x * entry(row, column));
                }
            }
        }
        y
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix({}, {} x {})", self.name, self.rows, self.columns)
    }
}
