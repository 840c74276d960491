//! Weight matrices with what their neighbours fold into them, computed when an entry is asked for: no copy of the weights is made.

use std::sync::Arc;

use crate::matrix::Matrix;
use crate::weights::{LinearWeights, NormWeights};

/// Entry (i, j) is `scale * gain[i] * (w[i, j] - mean[i])` of a stored matrix w.
#[derive(Clone, Debug)]
pub struct FoldedMatrix {
    stored: Matrix,
    scale: f64,
    gain: Option<Arc<[f64]>>,
    mean: Option<Arc<[f64]>>,
}

impl FoldedMatrix {
    fn new(stored: &Matrix) -> Self {
        Self {
            stored: stored.clone(),
            scale: 1.0,
            gain: None,
            mean: None,
        }
    }

    /// Number of rows: the width of the input.
    pub fn rows(&self) -> usize {
        self.stored.rows()
    }

    /// Number of columns: the width of the output.
    pub fn cols(&self) -> usize {
        self.stored.cols()
    }

    /// The entry in row `i`, column `j`.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        let mean = self.mean.as_ref().map_or(0.0, |mean| mean[i]);
        let gain = self.gain.as_ref().map_or(1.0, |gain| gain[i]);
        self.scale * gain * (self.stored.at(i, j) - mean)
    }

    /// The stored entries are not needed for a while.
    pub(crate) fn release(&self) {
        self.stored.release();
    }

    /// The entries in some rows and columns, row by row; zero where either is `padding`.
    pub(crate) fn gather(&self, rows: &[u32], columns: &[u32], padding: u32, out: &mut [f64]) {
        self.stored.gather(rows, columns, padding, out);
        for (&row, out) in rows.iter().zip(out.chunks_exact_mut(columns.len())) {
            if row == padding {
                continue;
            }
            let mean = self.mean.as_ref().map_or(0.0, |mean| mean[row as usize]);
            let factor = self.scale * self.gain.as_ref().map_or(1.0, |gain| gain[row as usize]);
            for (w, &column) in out.iter_mut().zip(columns) {
                if column != padding {
                    *w = factor * (*w - mean);
                }
            }
        }
    }

    /// `bias + x W` in f64.
    pub fn affine(&self, x: &[f64], bias: &[f64]) -> Vec<f64> {
        let mut x: Vec<f64> = x.iter().map(|x| self.scale * x).collect();
        if let Some(gain) = &self.gain {
            x.iter_mut().zip(gain.iter()).for_each(|(x, g)| *x *= g);
        }
        let mut bias = bias.to_vec();
        if let Some(mean) = &self.mean {
            let shift: f64 = x.iter().zip(mean.iter()).map(|(x, m)| x * m).sum();
            bias.iter_mut().for_each(|b| *b -= shift);
        }
        self.stored.affine(&x, &bias)
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> Vec<f64> {
        let mean = self.mean.as_ref().map_or(0.0, |mean| mean[i]);
        let factor = self.scale * self.gain.as_ref().map_or(1.0, |gain| gain[i]);
        let mut row = self.stored.row(i);
        row.iter_mut().for_each(|w| *w = factor * (*w - mean));
        row
    }
}

/// A folded matrix with its bias.
#[derive(Clone, Debug)]
pub struct FoldedLinear {
    /// Input width x output width.
    pub weight: FoldedMatrix,
    /// One value per output.
    pub bias: Vec<f64>,
}

impl FoldedLinear {
    /// `bias + x W` in f64.
    pub fn apply(&self, x: &[f64]) -> Vec<f64> {
        self.weight.affine(x, &self.bias)
    }

    /// As it is stored.
    pub(crate) fn plain(linear: &LinearWeights) -> Self {
        Self {
            weight: FoldedMatrix::new(&linear.weight),
            bias: linear.bias.clone(),
        }
    }

    /// The product after a norm: `(n gamma + beta) W + b = n (gamma W) + (beta W + b)`.
    pub(crate) fn after_norm(norm: &NormWeights, linear: &LinearWeights) -> Self {
        let bias = match norm.beta.iter().all(|&beta| beta == 0.0) {
            true => linear.bias.clone(),
            false => linear.weight.affine(&norm.beta, &linear.bias),
        };
        let mut weight = FoldedMatrix::new(&linear.weight);
        weight.gain = Some(norm.gamma.clone().into());
        Self { weight, bias }
    }

    /// Followed by the subtraction of its output's mean.
    pub(crate) fn centred(linear: &LinearWeights) -> Self {
        let mean = linear.bias.iter().sum::<f64>() / linear.bias.len() as f64;
        Self {
            weight: centred_rows(&linear.weight),
            bias: linear.bias.iter().map(|b| b - mean).collect(),
        }
    }

    /// Followed by a factor.
    pub(crate) fn scaled(mut self, factor: f64) -> Self {
        self.weight.scale *= factor;
        self.bias.iter_mut().for_each(|b| *b *= factor);
        self
    }
}

/// The rows of a matrix, as they are or each less its mean.
pub(crate) fn rows(matrix: &Matrix, centre: bool) -> FoldedMatrix {
    match centre {
        true => centred_rows(matrix),
        false => FoldedMatrix::new(matrix),
    }
}

fn centred_rows(matrix: &Matrix) -> FoldedMatrix {
    let ones = vec![1.0 / matrix.cols() as f64; matrix.cols()];
    let mut weight = FoldedMatrix::new(matrix);
    weight.mean = Some(matrix.transposed().apply(&ones).into());
    weight
}
