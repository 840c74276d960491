//! Dense matrices: views of weights where they lie, one product.

use std::fmt;

use rayon::prelude::*;

use crate::elements::Elements;

/// From this many entries on a product is shared among threads.
const PARALLEL_ENTRIES: usize = 1 << 20;
/// Neighbouring elements that are converted at once.
const GATHERED: usize = 128;

/// A `rows x cols` matrix that acts on row vectors from the right: `y = x W`, so `rows` is the input's width. Cloning copies no entries.
#[derive(Clone)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    /// Where entry (0, 0) is, and how far the next row and the next column are.
    offset: usize,
    row_stride: usize,
    col_stride: usize,
    elements: Elements,
}

impl Matrix {
    /// A matrix from its entries, row after row.
    ///
    /// # Panics
    /// If `data` does not hold `rows * cols` entries.
    pub fn new(rows: usize, cols: usize, data: Vec<f32>) -> Self {
        Self::stored(rows, cols, Elements::Memory(data.into()))
    }

    /// A matrix over elements that hold it row after row.
    pub(crate) fn stored(rows: usize, cols: usize, elements: Elements) -> Self {
        assert_eq!(
            elements.len(),
            rows * cols,
            "a {rows}x{cols} matrix has rows * cols entries"
        );
        Self {
            rows,
            cols,
            offset: 0,
            row_stride: cols,
            col_stride: 1,
            elements,
        }
    }

    /// Number of rows: the width of the input.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns: the width of the output.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The entry in row `i`, column `j`.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        let index = self.offset + i * self.row_stride + j * self.col_stride;
        f64::from(self.elements.at(index))
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> Vec<f64> {
        if self.col_stride != 1 {
            return (0..self.cols).map(|j| self.at(i, j)).collect();
        }
        let mut row = vec![0.0; self.cols];
        self.elements
            .read(self.offset + i * self.row_stride, &mut row);
        row.into_iter().map(f64::from).collect()
    }

    /// The entries are not needed for a while: pages of a mapped file go.
    pub(crate) fn release(&self) {
        self.elements.release();
    }

    /// The entries in some rows and columns, row by row; zero where either is `padding`. Read along the way they are stored.
    pub(crate) fn gather(&self, rows: &[u32], columns: &[u32], padding: u32, out: &mut [f64]) {
        let width = columns.len();
        out.fill(0.0);
        if self.row_stride == 1 {
            for (j, &column) in columns.iter().enumerate() {
                if column != padding {
                    let start = self.offset + column as usize * self.col_stride;
                    let put = |i: usize, w| out[i * width + j] = w;
                    self.gather_line((start, 1), rows, padding, put);
                }
            }
        } else {
            for (&row, out) in rows.iter().zip(out.chunks_exact_mut(width)) {
                if row != padding {
                    let start = self.offset + row as usize * self.row_stride;
                    let put = |j: usize, w| out[j] = w;
                    self.gather_line((start, self.col_stride), columns, padding, put);
                }
            }
        }
    }

    /// The elements at some places of a row or column, those that are neighbours at once.
    fn gather_line(
        &self,
        (start, stride): (usize, usize),
        places: &[u32],
        padding: u32,
        mut put: impl FnMut(usize, f64),
    ) {
        let mut buffer = [0.0; GATHERED];
        let mut first = 0;
        while first < places.len() {
            let place = places[first];
            if place == padding {
                first += 1;
                continue;
            }
            let neighbours = (place..).zip(&places[first..]);
            let limit = if stride == 1 { GATHERED } else { 1 };
            let count = (neighbours.take(limit))
                .take_while(|&(expected, &got)| expected == got)
                .count();
            let buffer = &mut buffer[..count];
            self.elements.read(start + place as usize * stride, buffer);
            for (i, &w) in (first..).zip(buffer.iter()) {
                put(i, f64::from(w));
            }
            first += count;
        }
    }

    /// The matrix with rows and columns exchanged; a view.
    pub fn transposed(&self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self.clone()
        }
    }

    /// Columns `from .. from + count`; a view.
    pub fn columns(&self, from: usize, count: usize) -> Self {
        assert!(from + count <= self.cols, "columns of the matrix");
        Self {
            cols: count,
            offset: self.offset + from * self.col_stride,
            ..self.clone()
        }
    }

    /// `bias + x W` in f64.
    pub fn affine(&self, x: &[f64], bias: &[f64]) -> Vec<f64> {
        let mut y = bias.to_vec();
        if self.col_stride == 1 {
            let mut row = vec![0.0; self.cols];
            for (i, &xi) in x.iter().enumerate() {
                self.elements
                    .read(self.offset + i * self.row_stride, &mut row);
                for (y, &w) in y.iter_mut().zip(&row) {
                    *y += xi * f64::from(w);
                }
            }
            return y;
        }
        let column = |buffer: &mut Vec<f32>, j: usize| -> f64 {
            let start = self.offset + j * self.col_stride;
            buffer.resize(self.rows, 0.0);
            if self.row_stride == 1 {
                self.elements.read(start, buffer);
            } else {
                let entries = (0..self.rows).map(|i| self.elements.at(start + i * self.row_stride));
                buffer
                    .iter_mut()
                    .zip(entries)
                    .for_each(|(to, from)| *to = from);
            }
            dot(x, buffer)
        };
        if self.rows * self.cols < PARALLEL_ENTRIES {
            let mut buffer = Vec::new();
            y.iter_mut()
                .enumerate()
                .for_each(|(j, y)| *y += column(&mut buffer, j));
        } else {
            y.par_iter_mut()
                .enumerate()
                .for_each_init(Vec::new, |buffer, (j, y)| *y += column(buffer, j));
        }
        y
    }

    /// `x W` in f64.
    pub fn apply(&self, x: &[f64]) -> Vec<f64> {
        self.affine(x, &vec![0.0; self.cols])
    }
}

impl PartialEq for Matrix {
    fn eq(&self, other: &Self) -> bool {
        (self.rows, self.cols) == (other.rows, other.cols)
            && (0..self.rows).all(|i| self.row(i) == other.row(i))
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix({} x {})", self.rows, self.cols)
    }
}

/// In lanes, so that it is a few instructions per vector register.
fn dot(x: &[f64], w: &[f32]) -> f64 {
    const LANES: usize = 8;
    let (x, x_rest) = x.as_chunks::<LANES>();
    let (w, w_rest) = w.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (x, w) in x.iter().zip(w) {
        for k in 0..LANES {
            sums[k] += x[k] * f64::from(w[k]);
        }
    }
    let rest = x_rest.iter().zip(w_rest);
    sums.iter().sum::<f64>() + rest.map(|(x, &w)| x * f64::from(w)).sum::<f64>()
}
