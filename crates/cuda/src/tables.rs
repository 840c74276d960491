//! Constants in device memory, made once per ring and per base conversion.

use std::sync::Arc;

use taciturn_ring::{BaseConversion, Modulus, Tables, exponent};

use crate::abi::{ConversionSource, Prime, SplitFactor};
use crate::backend::COMPILED_LOG_N;
use crate::memory::Memory;
use crate::pool::Pool;

/// The primes of a ring and their roots of unity.
pub(crate) struct DeviceTables {
    primes: Memory,
    _roots: Memory,
}

impl DeviceTables {
    fn new(pool: &Arc<Pool>, tables: &Tables) -> Self {
        let n = tables.n();
        let mut roots = vec![0.0; n * tables.moduli().len()];
        for (i, (&q, roots)) in tables
            .moduli()
            .iter()
            .zip(roots.chunks_exact_mut(n))
            .enumerate()
        {
            let mut power = 1;
            for k in 0..n {
                // bitrev(k) = (e(k) - 1)/2.
                let at = exponent(tables.log_n(), k) / 2;
                roots[root_place(tables.log_n(), at as usize)] = centered(q, power);
                power = q.mul(power, tables.psi(i));
            }
        }
        let roots = pool.upload(&roots);
        let primes: Vec<Prime> = tables
            .moduli()
            .iter()
            .enumerate()
            .map(|(i, &q)| Prime {
                q: q.value() as f64,
                reciprocal: 1.0 / q.value() as f64,
                n_inverse: centered(q, q.inv(n as u64)),
                word: q.value(),
                inverse: inverse(q.value()),
                r2: q.mul(radix(q), radix(q)),
                quotient: (1 << 52) / q.value(),
                roots: roots.address() + (i * n * size_of::<f64>()) as u64,
            })
            .collect();
        Self {
            primes: pool.upload(&primes),
            _roots: roots,
        }
    }

    /// Those of a ring.
    pub(crate) fn of<'a>(pool: &Arc<Pool>, tables: &'a Tables) -> &'a Self {
        tables.attachment().get_or_init(|| Self::new(pool, tables))
    }

    pub(crate) fn primes(&self) -> u64 {
        self.primes.address()
    }
}

/// The constants of a base conversion.
pub(crate) struct DeviceConversion {
    sources: Memory,
    factors: Memory,
    ready: Memory,
    quotients: Memory,
}

impl DeviceConversion {
    fn new(pool: &Arc<Pool>, tables: &Tables, conversion: &BaseConversion) -> Self {
        let (moduli, source) = (tables.moduli(), conversion.source());
        let product = |p: Modulus, left_out: Option<usize>| {
            let others = source.iter().filter(|&i| Some(i) != left_out);
            others.fold(1, |product, i| {
                p.mul(product, moduli[i].value() % p.value())
            })
        };
        let inverse_of = |i: usize| moduli[i].inv(product(moduli[i], Some(i)));
        let sources: Vec<ConversionSource> = source
            .iter()
            .map(|i| ConversionSource {
                inverse: centered(moduli[i], inverse_of(i)),
                weight: ((1u128 << 84) / moduli[i].value() as u128) as u64,
            })
            .collect();
        let factors: Vec<SplitFactor> = moduli
            .iter()
            .flat_map(|&p| {
                let all = p.neg(product(p, None));
                let terms = source.iter().map(move |i| product(p, Some(i)));
                terms.chain([all]).map(move |x| split(p.mul(x, radix(p))))
            })
            .collect();
        let ready: Vec<f64> = (0..moduli.len())
            .map(|i| {
                let n_inverse = moduli[i].inv(tables.n() as u64);
                let factor = if source.contains(i) { inverse_of(i) } else { 1 };
                centered(moduli[i], moduli[i].mul(n_inverse, factor))
            })
            .collect();
        let quotients: Vec<f64> = moduli
            .iter()
            .map(|&p| centered(p, p.inv(product(p, None))))
            .collect();
        Self {
            sources: pool.upload(&sources),
            factors: pool.upload(&factors),
            ready: pool.upload(&ready),
            quotients: pool.upload(&quotients),
        }
    }

    /// Those of a conversion.
    pub(crate) fn of<'a>(
        pool: &Arc<Pool>,
        tables: &Tables,
        conversion: &'a BaseConversion,
    ) -> &'a Self {
        conversion
            .attachment()
            .get_or_init(|| Self::new(pool, tables, conversion))
    }

    /// By source limb: the constants of the first half.
    pub(crate) fn sources(&self) -> u64 {
        self.sources.address()
    }

    /// By prime: one factor per source limb and that of the quotient.
    pub(crate) fn factors(&self) -> u64 {
        self.factors.address()
    }

    /// By prime: what ends an inverse transform that a conversion follows.
    pub(crate) fn ready(&self) -> u64 {
        self.ready.address()
    }

    /// By prime: the inverse of the source's product.
    pub(crate) fn quotients(&self) -> u64 {
        self.quotients.address()
    }
}

/// Where root `k` lies. The kernels for degree 2^16 read those of the last four stages in another order: `SORTED_GROUPS` in `kernels/ntt.cuh`.
fn root_place(log_n: u32, k: usize) -> usize {
    const LOG_GROUPS: u32 = COMPILED_LOG_N - 4;
    if log_n != COMPILED_LOG_N || k >> LOG_GROUPS == 0 {
        return k;
    }
    let stage = k.ilog2() - LOG_GROUPS;
    let (group, j) = ((k >> stage) - (1 << LOG_GROUPS), k % (1 << stage));
    (((1 << stage) + j) << LOG_GROUPS) + group
}

fn centered(q: Modulus, x: u64) -> f64 {
    q.centered(x) as f64
}

/// The Montgomery radix 2^64 modulo q.
fn radix(q: Modulus) -> u64 {
    q.reduce_u128(1 << 64)
}

/// `q^-1 mod 2^64`: each Newton step doubles the number of right bits, three at first.
fn inverse(q: u64) -> u64 {
    (0..5).fold(q, |x, _| {
        x.wrapping_mul(2u64.wrapping_sub(q.wrapping_mul(x)))
    })
}

fn split(x: u64) -> SplitFactor {
    SplitFactor {
        low: (x & ((1 << 25) - 1)) as u32,
        high: (x >> 25) as u32,
    }
}
