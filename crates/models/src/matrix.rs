//! Dense row-major matrices: plain data, one product.

/// A `rows x cols` matrix that acts on row vectors from the right: `y = x W`, so `rows` is the input's width.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f32>,
}

impl Matrix {
    /// A matrix from its entries, row after row.
    ///
    /// # Panics
    /// If `data` does not hold `rows * cols` entries.
    pub fn new(rows: usize, cols: usize, data: Vec<f32>) -> Self {
        assert_eq!(
            data.len(),
            rows * cols,
            "a {rows}x{cols} matrix has rows * cols entries"
        );
        Self { rows, cols, data }
    }

    /// Number of rows: the width of the input.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns: the width of the output.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All entries, row after row.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// The entry in row `i`, column `j`.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        f64::from(self.data[i * self.cols + j])
    }

    /// A new matrix whose entry (i, j) is `f(i, j, old entry)`, computed in f64 and stored as f32.
    pub fn map(&self, f: impl Fn(usize, usize, f64) -> f64) -> Self {
        let data = (self.data.iter().enumerate())
            .map(|(k, &v)| f(k / self.cols, k % self.cols, f64::from(v)) as f32)
            .collect();
        Self {
            rows: self.rows,
            cols: self.cols,
            data,
        }
    }

    /// The matrix with rows and columns exchanged.
    pub fn transposed(&self) -> Self {
        let mut data = Vec::with_capacity(self.data.len());
        for j in 0..self.cols {
            data.extend((0..self.rows).map(|i| self.data[i * self.cols + j]));
        }
        Self {
            rows: self.cols,
            cols: self.rows,
            data,
        }
    }

    /// Columns `from .. from + count`.
    pub fn columns(&self, from: usize, count: usize) -> Self {
        let mut data = Vec::with_capacity(self.rows * count);
        for i in 0..self.rows {
            data.extend_from_slice(&self.row(i)[from..from + count]);
        }
        Self {
            rows: self.rows,
            cols: count,
            data,
        }
    }

    /// `bias + x W` in f64.
    pub fn affine(&self, x: &[f64], bias: &[f64]) -> Vec<f64> {
        let mut y = bias.to_vec();
        for (i, &xi) in x.iter().enumerate() {
            for (y, &w) in y.iter_mut().zip(self.row(i)) {
                *y += xi * f64::from(w);
            }
        }
        y
    }

    /// `x W` in f64.
    pub fn apply(&self, x: &[f64]) -> Vec<f64> {
        self.affine(x, &vec![0.0; self.cols])
    }
}
