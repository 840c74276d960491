//! Base conversion, ModUp and ModDown.

use taciturn_ring::{BaseConversion, Form, Poly, Tables};

use super::CudaBackend;
use crate::abi::{ConversionJob, ConversionParams, CopyJob, MAX_BATCH, NttJob, Operand};
use crate::memory::Memory;
use crate::tables::{DeviceConversion, DeviceTables};
use crate::{Kernel, Launch};

/// Coefficients of a block: each has a column in shared memory.
const THREADS: u32 = 64;
/// Targets of a block.
const TARGETS: u32 = 8;

impl CudaBackend {
    pub(super) fn convert_limbs(
        &self,
        tables: &Tables,
        out: &mut Poly,
        a: &Poly,
        conversion: &BaseConversion,
    ) {
        let (target, source) = (self.operand_mut(out), self.operand(a));
        let limbs = target.basis & source.basis;
        self.copies(
            tables.log_n(),
            &[CopyJob {
                target,
                source,
                limbs,
            }],
        );
        let limbs = target.basis & !source.basis;
        let job = self.conversion_job(tables, target, source, limbs, conversion);
        self.conversions(tables, &[job], false);
    }

    /// ModUp of several digits: their copies are one launch, and so are their conversions and each pass of their transforms.
    pub(super) fn mod_up(
        &self,
        tables: &Tables,
        out: &mut [Poly],
        coefficient: &Poly,
        evaluation: &Poly,
        conversions: &[&BaseConversion],
    ) {
        let (coefficient, evaluation) = (self.operand(coefficient), self.operand(evaluation));
        let mut copied = Vec::with_capacity(out.len());
        let mut jobs = Vec::with_capacity(out.len());
        let mut transforms = Vec::with_capacity(out.len());
        for (out, conversion) in out.iter_mut().zip(conversions) {
            let digit = conversion.source().mask();
            let target = self.operand_mut(out);
            copied.push(CopyJob {
                target,
                source: evaluation,
                limbs: target.basis & digit,
            });
            let limbs = target.basis & !digit;
            jobs.push(self.conversion_job(tables, target, coefficient, limbs, conversion));
            transforms.push(NttJob::in_place(target, limbs));
        }
        self.copies(tables.log_n(), &copied);
        self.conversions(tables, &jobs, false);
        self.forward(tables, &transforms);
    }

    /// ModDown of several polynomials of one form: each step is one launch for all.
    pub(super) fn divide(
        &self,
        tables: &Tables,
        out: &mut [Poly],
        a: &[&Poly],
        conversion: &BaseConversion,
    ) {
        let constants = DeviceConversion::of(&self.pool, tables, conversion);
        let pairs: Vec<(Operand, Operand, Form)> = out
            .iter_mut()
            .zip(a)
            .map(|(out, a)| (self.operand_mut(out), self.operand(a), a.form()))
            .collect();
        let drop = conversion.source().mask();
        let Some(&(_, _, form)) = pairs.first() else {
            return;
        };
        if form == Form::Coefficient {
            let jobs: Vec<ConversionJob> = pairs
                .iter()
                .map(|&(target, a, _)| {
                    self.conversion_job(tables, target, a, target.basis, conversion)
                })
                .collect();
            self.conversions(tables, &jobs, false);
            for &(target, a, _) in &pairs {
                self.sub_scale(tables, target, a, constants.quotients());
            }
            return;
        }
        let remainders: Vec<(Memory, Operand)> =
            pairs.iter().map(|_| self.scratch(tables, drop)).collect();
        let with_remainders = || {
            pairs
                .iter()
                .zip(&remainders)
                .map(|(&(t, a, _), r)| (t, a, r.1))
        };
        let jobs: Vec<NttJob> = with_remainders()
            .map(|(_, a, remainder)| NttJob {
                source: a,
                factors: constants.ready(),
                ..NttJob::in_place(remainder, drop)
            })
            .collect();
        self.inverse(tables, &jobs);
        let jobs: Vec<ConversionJob> = with_remainders()
            .map(|(target, _, remainder)| {
                self.conversion_job(tables, target, remainder, target.basis, conversion)
            })
            .collect();
        self.conversions(tables, &jobs, true);
        let jobs: Vec<NttJob> = with_remainders()
            .map(|(target, a, _)| NttJob {
                factors: constants.quotients(),
                minuend: a,
                ..NttJob::in_place(target, target.basis)
            })
            .collect();
        self.forward(tables, &jobs);
    }

    /// Memory for limbs that only this operation needs.
    pub(super) fn scratch(&self, tables: &Tables, basis: u64) -> (Memory, Operand) {
        let words = tables.n() * basis.count_ones() as usize;
        let memory = self.pool.allocate(words * size_of::<u64>());
        let words = memory.address();
        (memory, Operand { words, basis })
    }

    fn conversion_job(
        &self,
        tables: &Tables,
        target: Operand,
        source: Operand,
        limbs: u64,
        conversion: &BaseConversion,
    ) -> ConversionJob {
        let constants = DeviceConversion::of(&self.pool, tables, conversion);
        ConversionJob {
            target,
            source,
            from: conversion.source().mask(),
            limbs,
            sources: constants.sources(),
            factors: constants.factors(),
        }
    }

    /// Converts; `ready` says that sources are multiplied by their inverses already.
    fn conversions(&self, tables: &Tables, jobs: &[ConversionJob], ready: bool) {
        let threads = THREADS.min(tables.n() as u32);
        for batch in jobs.chunks(MAX_BATCH) {
            let most = |bits: fn(&ConversionJob) -> u64| {
                batch
                    .iter()
                    .map(|job| bits(job).count_ones())
                    .max()
                    .unwrap_or(0)
            };
            let launch = Launch {
                kernel: Kernel::Convert,
                grid: [
                    tables.n() as u32 / threads,
                    most(|job| job.limbs).div_ceil(TARGETS),
                    batch.len() as u32,
                ],
                threads,
                shared_bytes: (most(|job| job.from) + 1) * THREADS * 8,
            };
            let mut params = ConversionParams {
                primes: DeviceTables::of(&self.pool, tables).primes(),
                log_n: tables.log_n(),
                ready: ready.into(),
                jobs: [ConversionJob::NONE; MAX_BATCH],
            };
            params.jobs[..batch.len()].copy_from_slice(batch);
            // SAFETY: jobs name polynomials in use that have the limbs asked for.
            unsafe { self.launch(launch, &params) };
        }
    }
}
