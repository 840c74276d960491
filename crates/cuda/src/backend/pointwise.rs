//! Word by word operations.

use taciturn_ring::{Poly, Tables};

use super::{CudaBackend, words_by_limbs};
use crate::Kernel;
use crate::abi::{CopyJob, CopyParams, MAX_BATCH, Operand, PointwiseParams, ScalarParams};
use crate::memory::Memory;
use crate::pool::Pool;
use crate::tables::DeviceTables;

impl CudaBackend {
    /// `out = f(out, a, b)` on the limbs that `out` and `a` have.
    pub(super) fn pointwise(
        &self,
        tables: &Tables,
        kernel: Kernel,
        out: &mut Poly,
        a: &Poly,
        b: Option<&Poly>,
        galois: Option<u64>,
    ) {
        let (a, b) = (
            self.operand(a),
            b.map_or(Operand::NONE, |b| self.operand(b)),
        );
        let out = self.operand_mut(out);
        let params = PointwiseParams {
            argument: galois.unwrap_or(0) as u32,
            ..self.params(tables, out, a, b)
        };
        self.run(tables, kernel, &params);
    }

    /// `a = f(a, b)` on the limbs that both have.
    pub(super) fn update(&self, tables: &Tables, kernel: Kernel, a: &mut Poly, b: &Poly) {
        let b = self.operand(b);
        let a = self.operand_mut(a);
        let mut params = self.params(tables, a, a, b);
        params.limbs &= b.basis;
        self.run(tables, kernel, &params);
    }

    pub(super) fn negate(&self, tables: &Tables, a: &mut Poly) {
        let a = self.operand_mut(a);
        self.run(
            tables,
            Kernel::Neg,
            &self.params(tables, a, a, Operand::NONE),
        );
    }

    /// The residues of `count` integers of the kernel's size, the coefficients at the multiples of `N/count`.
    pub(super) fn residues(
        &self,
        tables: &Tables,
        kernel: Kernel,
        out: Operand,
        coefficients: &Memory,
        count: usize,
    ) {
        let a = Operand {
            words: coefficients.address(),
            basis: out.basis,
        };
        let params = PointwiseParams {
            argument: (tables.n() / count).trailing_zeros(),
            ..self.params(tables, out, a, Operand::NONE)
        };
        self.run(tables, kernel, &params);
    }

    /// Every word of index `k·stride` of each limb.
    pub(super) fn every(&self, tables: &Tables, a: &Poly, stride: usize) -> Memory {
        let a = self.operand(a);
        let log_stride = stride.trailing_zeros();
        let count = (tables.n() / stride) * a.basis.count_ones() as usize;
        let memory = self.pool.allocate(count * size_of::<u64>());
        let out = Operand {
            words: memory.address(),
            basis: a.basis,
        };
        let params = PointwiseParams {
            log_n: tables.log_n() - log_stride,
            argument: log_stride,
            ..self.params(tables, out, a, Operand::NONE)
        };
        let launch = words_by_limbs(Kernel::Compress, tables.n() / stride, params.limbs);
        // SAFETY: the memory has the words of the shorter limbs.
        unsafe { self.launch(launch, &params) };
        memory
    }

    /// `out = (a - out)·factor` with a factor per prime, in coefficient form.
    pub(super) fn sub_scale(&self, tables: &Tables, out: Operand, a: Operand, factors: u64) {
        let params = PointwiseParams {
            factors,
            ..self.params(tables, out, a, out)
        };
        self.run(tables, Kernel::SubScale, &params);
    }

    /// Copies limbs of several polynomials; zeros where the source lacks them.
    pub(super) fn copies(&self, log_n: u32, jobs: &[CopyJob]) {
        // SAFETY: jobs name polynomials in use that have the limbs asked for.
        unsafe { copies(&self.pool, log_n, jobs) };
    }

    pub(super) fn params(
        &self,
        tables: &Tables,
        out: Operand,
        a: Operand,
        b: Operand,
    ) -> PointwiseParams {
        PointwiseParams {
            primes: DeviceTables::of(&self.pool, tables).primes(),
            out,
            a,
            b,
            limbs: out.basis & a.basis,
            factors: 0,
            log_n: tables.log_n(),
            argument: 0,
        }
    }

    pub(super) fn run(&self, tables: &Tables, kernel: Kernel, params: &PointwiseParams) {
        let launch = words_by_limbs(kernel, tables.n(), params.limbs);
        // SAFETY: the operands are whole polynomials in use, and have the limbs asked for.
        unsafe { self.launch(launch, params) };
    }

    /// `a = f(a, values)`, a value for each half of each limb.
    pub(super) fn scalars_in_place(
        &self,
        tables: &Tables,
        kernel: Kernel,
        a: &mut Poly,
        values: &[[u64; 2]],
    ) {
        let a = self.operand_mut(a);
        self.scalars(tables, kernel, a, a, values);
    }

    /// `acc + a·values` on the limbs that both have, whose values are numbered as `a`'s limbs.
    pub(super) fn scaled_sum(
        &self,
        tables: &Tables,
        acc: &mut Poly,
        a: &Poly,
        values: &[[u64; 2]],
    ) {
        let a = self.operand(a);
        let acc = self.operand_mut(acc);
        self.scalars(tables, Kernel::AddScaled, acc, a, values);
    }

    fn scalars(
        &self,
        tables: &Tables,
        kernel: Kernel,
        out: Operand,
        a: Operand,
        values: &[[u64; 2]],
    ) {
        let mut params = ScalarParams {
            primes: DeviceTables::of(&self.pool, tables).primes(),
            out,
            a,
            limbs: out.basis & a.basis,
            log_n: tables.log_n(),
            padding: 0,
            values: [[0; 2]; 64],
        };
        params.values[..values.len()].copy_from_slice(values);
        let launch = words_by_limbs(kernel, tables.n(), params.limbs);
        // SAFETY: as in `run`.
        unsafe { self.launch(launch, &params) };
    }
}

/// Copies limbs of several polynomials; zeros where the source lacks them.
///
/// # Safety
/// Jobs name memory in use that has the limbs asked for.
pub(crate) unsafe fn copies(pool: &Pool, log_n: u32, jobs: &[CopyJob]) {
    for batch in jobs.chunks(MAX_BATCH) {
        let most = batch
            .iter()
            .map(|job| job.limbs)
            .max_by_key(|limbs| limbs.count_ones());
        let mut launch = words_by_limbs(Kernel::Copy, 1 << log_n, most.unwrap_or(0));
        launch.grid[2] = batch.len() as u32;
        let mut params = CopyParams {
            log_n: log_n.into(),
            jobs: [CopyJob::NONE; MAX_BATCH],
        };
        params.jobs[..batch.len()].copy_from_slice(batch);
        // SAFETY: the caller's contract.
        unsafe { pool.launch(launch, &params) };
    }
}
