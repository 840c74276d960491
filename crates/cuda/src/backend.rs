//! The launch plans: which kernels an operation is, over which limbs.

mod expansion;
mod hoisting;
mod pointwise;
mod products;
mod rns;
mod transform;

use std::sync::Arc;

use taciturn_ring::{
    Automorphism, Backend, BaseConversion, DeviceMemory, Form, Hoisted, IntegerPoly, Poly, Queue,
    Step, Tables, Terms,
};

pub(crate) use pointwise::copies;
use products::KeyProducts;
pub(crate) use transform::COMPILED_LOG_N;

use crate::abi::{CopyJob, NttJob, Operand};
use crate::memory::Memory;
use crate::params::Params;
use crate::pool::{Pool, done};
use crate::{Device, Kernel, Launch, Transfers};

/// Where the device takes words from that a seed stands for: half of every key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seeded {
    /// From the host, like others; they stay on the device.
    #[default]
    Copied,
    /// Expanded on the device at their first use, where they stay.
    Expanded,
    /// Expanded by each key product that uses them, as it goes: half of the keys' memory.
    EachTime,
}

/// The ring's operations on a device.
pub struct CudaBackend {
    pool: Arc<Pool>,
    seeded: Seeded,
}

impl CudaBackend {
    /// Computes on this device.
    pub fn new(device: Arc<dyn Device>) -> Self {
        Self {
            pool: Arc::new(Pool::new(device)),
            seeded: Seeded::default(),
        }
    }

    /// The same with another way to get at words that have a seed. Results do not depend on it.
    #[must_use]
    pub fn with_seeded(self, seeded: Seeded) -> Self {
        Self { seeded, ..self }
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// What went between host and device so far.
    pub fn transfers(&self) -> Transfers {
        self.pool.transfers()
    }

    /// Bytes of device memory that are held, in use or free for the next result.
    pub fn held_bytes(&self) -> usize {
        self.pool.held()
    }

    /// A polynomial to be read.
    pub(crate) fn operand(&self, a: &Poly) -> Operand {
        let memory: &Memory = a.device(|words| self.pool.upload(words));
        self.pool.check(memory);
        Operand {
            words: memory.address(),
            basis: a.basis().mask(),
        }
    }

    /// A polynomial to be written, and read where the operation does.
    fn operand_mut(&self, a: &mut Poly) -> Operand {
        let memory: &mut Memory = a.device_mut(|words| self.pool.upload(words));
        self.pool.check(memory);
        Operand {
            words: memory.address(),
            basis: a.basis().mask(),
        }
    }

    /// Queues a kernel.
    ///
    /// # Safety
    /// The parameters are the kernel's, and their addresses those of memory in use that is large enough.
    unsafe fn launch<P: Params>(&self, launch: Launch, params: &P) {
        // SAFETY: the caller's contract.
        unsafe { self.pool.launch(launch, params) };
    }
}

/// A thread for each of `n` words of each limb.
fn words_by_limbs(kernel: Kernel, n: usize, limbs: u64) -> Launch {
    const THREADS: u32 = 256;
    let threads = THREADS.min(n as u32);
    Launch {
        kernel,
        grid: [n as u32 / threads, limbs.count_ones(), 1],
        threads,
        shared_bytes: 0,
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &'static str {
        self.pool.device().name()
    }

    fn allocate(&self, words: usize) -> Option<Box<dyn DeviceMemory>> {
        Some(Box::new(self.pool.allocate(words * size_of::<u64>())))
    }

    fn clear(&self, out: &mut Poly) {
        let log_n = out.n().trailing_zeros();
        let job = CopyJob::whole(self.operand_mut(out), Operand::NONE);
        self.copies(log_n, &[job]);
    }

    fn copy_limbs(&self, tables: &Tables, out: &mut Poly, a: &Poly) {
        let source = self.operand(a);
        let job = CopyJob::whole(self.operand_mut(out), source);
        self.copies(tables.log_n(), &[job]);
    }

    fn reduce_signed(&self, tables: &Tables, out: &mut Poly, coefficients: &[i64]) {
        let (count, memory) = (coefficients.len(), self.pool.upload(coefficients));
        let out = self.operand_mut(out);
        self.residues(tables, Kernel::ReduceSigned, out, &memory, count);
    }

    fn reduce_integers(&self, tables: &Tables, out: &mut Poly, integers: &IntegerPoly) {
        self.residues_of(tables, self.operand_mut(out), integers);
    }

    fn transform_integers(&self, tables: &Tables, out: &mut Poly, integers: &IntegerPoly) {
        let target = self.operand_mut(out);
        let job = self.integers(tables, target, integers);
        self.forward(tables, &[job]);
        out.set_form(Form::Evaluation);
    }

    fn compress(&self, tables: &Tables, a: &Poly, stride: usize) -> Option<Box<dyn DeviceMemory>> {
        Some(Box::new(self.every(tables, a, stride)))
    }

    fn ntt(&self, tables: &Tables, a: &mut Poly) {
        let job = self.in_place(a);
        self.forward(tables, &[job]);
        a.set_form(Form::Evaluation);
    }

    fn intt(&self, tables: &Tables, a: &mut Poly) {
        let job = self.in_place(a);
        self.inverse(tables, &[job]);
        a.set_form(Form::Coefficient);
    }

    fn intt_into(&self, tables: &Tables, out: &mut Poly, a: &Poly) {
        let source = self.operand(a);
        let job = NttJob {
            source,
            ..self.in_place(out)
        };
        self.inverse(tables, &[job]);
    }

    fn add(&self, tables: &Tables, a: &mut Poly, b: &Poly) {
        self.update(tables, Kernel::Add, a, b);
    }

    fn add_to_limbs(&self, tables: &Tables, a: &mut Poly, b: &Poly) {
        self.update(tables, Kernel::Add, a, b);
    }

    fn sub(&self, tables: &Tables, a: &mut Poly, b: &Poly) {
        self.update(tables, Kernel::Sub, a, b);
    }

    fn neg(&self, tables: &Tables, a: &mut Poly) {
        self.negate(tables, a);
    }

    fn mul(&self, tables: &Tables, a: &mut Poly, b: &Poly) {
        self.update(tables, Kernel::MulInto, a, b);
    }

    fn mul_add(&self, tables: &Tables, acc: &mut Poly, a: &Poly, b: &Poly) {
        self.pointwise(tables, Kernel::MulAdd, acc, a, Some(b), None);
    }

    fn mul_into(&self, tables: &Tables, out: &mut Poly, a: &Poly, b: &Poly) {
        self.pointwise(tables, Kernel::MulInto, out, a, Some(b), None);
    }

    fn scale(&self, tables: &Tables, a: &mut Poly, factors: &[[u64; 2]]) {
        self.scalars_in_place(tables, Kernel::Scale, a, factors);
    }

    fn shift(&self, tables: &Tables, a: &mut Poly, terms: &[[u64; 2]]) {
        self.scalars_in_place(tables, Kernel::Shift, a, terms);
    }

    fn automorphism(&self, tables: &Tables, out: &mut Poly, a: &Poly, map: &Automorphism) {
        let (kernel, galois) = match a.form() {
            Form::Evaluation => (Kernel::Automorphism, map.galois()),
            Form::Coefficient => {
                let inverse = inverse_galois(map.galois(), tables.log_n());
                (Kernel::AutomorphismCoefficients, inverse)
            }
        };
        self.pointwise(tables, kernel, out, a, None, Some(galois));
    }

    fn add_automorphism(&self, tables: &Tables, acc: &mut Poly, a: &Poly, map: &Automorphism) {
        let kernel = Kernel::AddAutomorphism;
        self.pointwise(tables, kernel, acc, a, None, Some(map.galois()));
    }

    fn add_scaled(&self, tables: &Tables, acc: &mut Poly, a: &Poly, factors: &[u64]) {
        let factors: Vec<[u64; 2]> = factors.iter().map(|&factor| [factor; 2]).collect();
        self.scaled_sum(tables, acc, a, &factors);
    }

    fn convert(&self, tables: &Tables, out: &mut Poly, a: &Poly, conversion: &BaseConversion) {
        self.convert_limbs(tables, out, a, conversion);
    }

    fn extend_digit(
        &self,
        tables: &Tables,
        out: &mut Poly,
        coefficient: &Poly,
        evaluation: &Poly,
        conversion: &BaseConversion,
    ) {
        let out = std::slice::from_mut(out);
        self.mod_up(tables, out, coefficient, evaluation, &[conversion]);
    }

    fn extend_digits(
        &self,
        tables: &Tables,
        out: &mut [Poly],
        coefficient: &Poly,
        evaluation: &Poly,
        conversions: &[Arc<BaseConversion>],
    ) {
        let conversions: Vec<&BaseConversion> = conversions.iter().map(|c| &**c).collect();
        self.mod_up(tables, out, coefficient, evaluation, &conversions);
    }

    fn key_product(
        &self,
        tables: &Tables,
        out: (&mut Poly, &mut Poly),
        digits: &[Poly],
        keys: &[(Poly, Poly)],
        map: Option<&Automorphism>,
        accumulate: bool,
    ) {
        let out = [self.operand_mut(out.0), self.operand_mut(out.1)];
        let products = KeyProducts {
            digits,
            keys,
            map,
            addend: Operand::NONE,
            accumulate,
        };
        self.sum_of_keys(tables, out, &products);
    }

    fn dot_integers(
        &self,
        tables: &Tables,
        out: (&mut Poly, &mut Poly),
        terms: &[([&Poly; 2], &IntegerPoly)],
    ) {
        let out = [self.operand_mut(out.0), self.operand_mut(out.1)];
        self.sum_of_integer_products(tables, out, terms);
    }

    fn hoisted_sums(
        &self,
        tables: &Tables,
        outs: &mut [(Poly, Poly)],
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
        sums: &[Terms<'_>],
    ) {
        self.sums_over_steps(tables, outs, hoisted, steps, sums);
    }

    fn sum_of_rotations(
        &self,
        tables: &Tables,
        out: (&mut Poly, &mut Poly),
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
    ) {
        let out = [self.operand_mut(out.0), self.operand_mut(out.1)];
        self.spread_value(tables, out, hoisted);
        for step in steps {
            self.rotate(tables, out, hoisted, step, true);
        }
    }

    fn mod_down(&self, tables: &Tables, out: &mut Poly, a: &Poly, conversion: &BaseConversion) {
        self.divide(tables, std::slice::from_mut(out), &[a], conversion);
    }

    fn mod_down_all(
        &self,
        tables: &Tables,
        out: &mut [Poly],
        a: &[Poly],
        conversion: &BaseConversion,
    ) {
        self.divide(tables, out, &a.iter().collect::<Vec<_>>(), conversion);
    }

    fn synchronize(&self) {
        done(self.pool.device().synchronize());
    }

    fn queue(&self) -> Option<&dyn Queue> {
        Some(self)
    }
}

/// `g^-1` modulo `2N`, for odd `g`, by Newton's iteration.
fn inverse_galois(galois: u64, log_n: u32) -> u64 {
    let inverse = (0..5).fold(galois, |x, _| {
        x.wrapping_mul(2u64.wrapping_sub(galois.wrapping_mul(x)))
    });
    inverse & ((2 << log_n) - 1)
}
