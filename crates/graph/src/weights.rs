//! Public operands in logical coordinates: vectors and matrices of the model.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
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

/// Entries of a weight matrix wherever they lie. Rows and columns are in range.
pub trait Entries: Send + Sync {
    /// The entry at a row and column.
    fn at(&self, row: usize, column: usize) -> f64;

    /// All entries of some rows and columns, row by row.
    fn read(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f64]) {
        let places = rows.flat_map(|row| columns.clone().map(move |column| (row, column)));
        for (out, (row, column)) in out.iter_mut().zip(places) {
            *out = self.at(row, column);
        }
    }

    /// Called when no entry is needed for a while: memory that only repeats a file may go.
    fn release(&self) {}

    /// `x * W` where there is a faster way than by its entries.
    fn apply(&self, _x: &[f64]) -> Option<Vec<f64>> {
        None
    }
}

/// Stored row by row.
struct Dense {
    columns: usize,
    entries: Arc<[f32]>,
}

impl Entries for Dense {
    fn at(&self, row: usize, column: usize) -> f64 {
        f64::from(self.entries[row * self.columns + column])
    }
}

struct Computed<F>(F);

impl<F: Fn(usize, usize) -> f64 + Send + Sync> Entries for Computed<F> {
    fn at(&self, row: usize, column: usize) -> f64 {
        (self.0)(row, column)
    }
}

/// Columns of a matrix from `start` on, zero beyond the last.
struct Block {
    whole: Matrix,
    start: usize,
}

impl Entries for Block {
    fn at(&self, row: usize, column: usize) -> f64 {
        match self.start + column {
            column if column < self.whole.columns => self.whole.at(row, column),
            _ => 0.0,
        }
    }

    fn read(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f64]) {
        let end = (self.start + columns.end).min(self.whole.columns);
        let known = (self.start + columns.start).min(end)..end;
        if known.len() == columns.len() {
            return self.whole.read(rows, known, out);
        }
        out.fill(0.0);
        if !known.is_empty() {
            for (row, out) in rows.zip(out.chunks_exact_mut(columns.len())) {
                let out = &mut out[..known.len()];
                self.whole.read(row..row + 1, known.clone(), out);
            }
        }
    }

    fn release(&self) {
        self.whole.release();
    }
}

/// Rows of a matrix from `start` on.
struct RowBlock {
    whole: Matrix,
    start: usize,
}

impl Entries for RowBlock {
    fn at(&self, row: usize, column: usize) -> f64 {
        self.whole.at(self.start + row, column)
    }

    fn read(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f64]) {
        let rows = self.start + rows.start..self.start + rows.end;
        self.whole.read(rows, columns, out);
    }

    fn release(&self) {
        self.whole.release();
    }
}

/// All entries times a factor.
struct Scaled {
    whole: Matrix,
    factor: f64,
}

impl Entries for Scaled {
    fn at(&self, row: usize, column: usize) -> f64 {
        self.factor * self.whole.at(row, column)
    }

    fn read(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f64]) {
        self.whole.read(rows, columns, out);
        out.iter_mut().for_each(|entry| *entry *= self.factor);
    }

    fn release(&self) {
        self.whole.release();
    }
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
    entries: Arc<dyn Entries>,
}

impl Matrix {
    /// A matrix over entries wherever they lie.
    pub fn new(
        name: impl Into<Arc<str>>,
        rows: usize,
        columns: usize,
        entries: impl Entries + 'static,
    ) -> Self {
        Matrix {
            name: name.into(),
            rows,
            columns,
            entries: Arc::new(entries),
        }
    }

    /// From stored entries, row by row; `None` unless there are `rows * columns`.
    pub fn dense(
        name: impl Into<Arc<str>>,
        rows: usize,
        columns: usize,
        entries: impl Into<Arc<[f32]>>,
    ) -> Option<Self> {
        let entries = entries.into();
        (rows.checked_mul(columns) == Some(entries.len()))
            .then(|| Matrix::new(name, rows, columns, Dense { columns, entries }))
    }

    /// From a function of row and column, called whenever an entry is needed.
    pub fn computed(
        name: impl Into<Arc<str>>,
        rows: usize,
        columns: usize,
        entry: impl Fn(usize, usize) -> f64 + Send + Sync + 'static,
    ) -> Self {
        Matrix::new(name, rows, columns, Computed(entry))
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
        self.entries.at(row, column)
    }

    /// All entries of some rows and columns, row by row: much faster than one at a time.
    pub fn read(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f64]) {
        self.entries.read(rows, columns, out);
    }

    /// No entry is needed for a while: memory that only repeats a file may go.
    pub fn release(&self) {
        self.entries.release();
    }

    /// All entries times a factor.
    pub fn scaled(&self, factor: f64) -> Matrix {
        let name = format!("{} times {factor:e}", self.name);
        let whole = self.clone();
        Matrix::new(name, self.rows, self.columns, Scaled { whole, factor })
    }

    /// Columns `start .. start + columns`, zero beyond the last.
    pub fn block(&self, start: usize, columns: usize) -> Matrix {
        let name = format!("{}[{start}+{columns}]", self.name);
        let whole = self.clone();
        Matrix::new(name, self.rows, columns, Block { whole, start })
    }

    /// Block number `number` of blocks of `rows` rows, which divide the matrix's.
    pub fn row_block(&self, number: usize, rows: usize) -> Matrix {
        let start = number * rows;
        let name = format!("{}[rows {start}+{rows}]", self.name);
        let whole = self.clone();
        Matrix::new(name, rows, self.columns, RowBlock { whole, start })
    }

    /// `x * W`.
    pub fn apply(&self, x: &[f64]) -> Vec<f64> {
        if let Some(product) = self.entries.apply(x) {
            return product;
        }
        let mut y = vec![0.0; self.columns];
        let mut weights = vec![0.0; self.columns];
        for (row, &x) in x.iter().enumerate() {
            self.read(row..row + 1, 0..self.columns, &mut weights);
            y.iter_mut().zip(&weights).for_each(|(y, &w)| *y += x * w);
        }
        y
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix({}, {} x {})", self.name, self.rows, self.columns)
    }
}
