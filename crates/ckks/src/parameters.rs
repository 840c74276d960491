//! Parameters as a checked type: a set that is inconsistent or past its security bound cannot be built.

use std::{ops::Range, sync::Arc};

use taciturn_ring::{Backend, Basis, Ring, primes_near};

use crate::{
    CkksError, Gadget, GadgetName, Level, Scale, SecretDistribution, SecurityEstimate, bound_bits,
    keys::used_digits,
};

/// What a parameter set is made from; `Parameters::new` checks it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParametersLiteral {
    /// log2 of the ring degree.
    pub log_n: u32,
    /// Bits of the base limb q0 (and of all bootstrap and special limbs); at most 50.
    pub base_bits: u32,
    /// Bits of scale per level.
    pub level_bits: u32,
    /// Levels above the base limb, those that a bootstrap's SlotsToCoeffs consumes included.
    pub levels: usize,
    /// Limbs that EvalMod consumes.
    pub eval_mod_limbs: usize,
    /// Limbs that CoeffsToSlots consumes at most.
    pub coeffs_to_slots_limbs: usize,
    /// Special limbs of the bootstrap gadget.
    pub bootstrap_special_limbs: usize,
    /// Special limbs of the model gadget.
    pub model_special_limbs: usize,
    /// Hamming weight of the ephemeral secret.
    pub sparse_weight: usize,
    /// Skips the security bound; the set's name must contain `insecure`.
    pub insecure: bool,
    /// What the lattice estimator says, for sets that ship.
    pub estimate: Option<SecurityEstimate>,
}

struct Inner {
    name: String,
    literal: ParametersLiteral,
    ring: Ring,
    level_scales: Vec<Scale>,
    gadgets: Vec<Gadget>,
}

/// A checked parameter set; cheap to clone.
///
/// Limbs are numbered: 0 the base limb, 1..=levels the model's, then EvalMod's, CoeffsToSlots', and the special ones.
#[derive(Clone)]
pub struct Parameters(Arc<Inner>);

impl Parameters {
    /// Builds primes, scales and gadgets, and checks the security bound of each secret.
    pub fn new(name: &str, literal: ParametersLiteral) -> Result<Self, CkksError> {
        let fail = |what: String| CkksError::Parameters {
            name: name.into(),
            what,
        };
        let l = &literal;
        if l.insecure != name.contains("insecure") {
            return Err(fail(
                "the name must contain 'insecure' exactly when the security bound is skipped"
                    .into(),
            ));
        }
        if !(l.level_bits >= 30 && l.level_bits <= l.base_bits && l.base_bits <= 50) {
            let what = format!(
                "expected 30 <= level_bits <= base_bits <= 50, got {} and {}",
                l.level_bits, l.base_bits
            );
            return Err(fail(what));
        }
        check_bootstrap(l).map_err(fail)?;
        let ciphertext_limbs = 1 + l.levels + l.eval_mod_limbs + l.coeffs_to_slots_limbs;
        let total = ciphertext_limbs + l.bootstrap_special_limbs;
        if total > 64 || l.levels == 0 || l.bootstrap_special_limbs < l.model_special_limbs.max(1) {
            return Err(fail(format!(
                "expected 1 to 64 limbs with at least one level, got {total}"
            )));
        }

        let gadgets = gadgets(l, ciphertext_limbs);
        for gadget in &gadgets {
            check_digits(gadget, l).map_err(fail)?;
        }

        let wide_count = total - l.levels;
        // Slightly below the power of two, so that all of them stay under it.
        let wide_target =
            2f64.powi(l.base_bits as i32) - wide_count as f64 * 2f64.powi(l.log_n as i32 + 6);
        let mut wide = primes_near(wide_target, l.log_n, wide_count, &[])?.into_iter();
        // Each model prime is the one nearest to what keeps the next level's canonical scale at 2^level_bits, so that the
        // deviation, which doubles with every squaring, is pulled back at every level.
        let nominal = 2f64.powi(l.level_bits as i32);
        let mut scales = vec![nominal];
        let mut model_primes: Vec<u64> = Vec::new();
        for _ in 0..l.levels {
            let scale = scales[scales.len() - 1];
            let q = primes_near(scale * scale / nominal, l.log_n, 1, &model_primes)?[0];
            model_primes.push(q);
            scales.push(scale * scale / q as f64);
        }
        scales.reverse();
        model_primes.reverse();

        let mut primes: Vec<u64> = wide.by_ref().take(1).collect();
        primes.extend(model_primes);
        primes.extend(wide);
        let ring = Ring::new(l.log_n, &primes)?;
        let bits = |b: Basis| b.iter().map(|i| (primes[i] as f64).log2()).sum::<f64>();
        for g in &gadgets {
            let got = bits(g.limbs.union(g.special));
            match bound_bits(l.log_n, g.encrypted_under) {
                Some(bound) if got <= bound => {}
                _ if l.insecure => {}
                bound => {
                    let bound = bound.map_or("unknown".into(), |b| format!("{b:.0} bits"));
                    let what = format!(
                        "the {:?} keys need log2(QP) = {got:.1} bits under a {:?} secret, but the 128-bit bound at N = 2^{} is \
                         {bound}; use fewer levels or a larger ring",
                        g.name, g.encrypted_under, l.log_n
                    );
                    return Err(fail(what));
                }
            }
        }
        let level_scales = scales.into_iter().map(Scale).collect();
        Ok(Self(Arc::new(Inner {
            name: name.into(),
            literal,
            ring,
            level_scales,
            gadgets,
        })))
    }

    /// The same set, computing with a backend from elsewhere. Keys and ciphertexts of one serve the other.
    pub fn on_backend(&self, backend: Arc<dyn Backend>) -> Result<Self, CkksError> {
        let inner = &self.0;
        let primes: Vec<u64> = inner.ring.moduli().iter().map(|q| q.value()).collect();
        Ok(Self(Arc::new(Inner {
            name: inner.name.clone(),
            literal: inner.literal,
            ring: Ring::from_backend(inner.literal.log_n, &primes, backend)?,
            level_scales: inner.level_scales.clone(),
            gadgets: inner.gadgets.clone(),
        })))
    }

    /// The set's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What the set was made from.
    pub fn literal(&self) -> &ParametersLiteral {
        &self.0.literal
    }

    /// The ring underneath.
    pub fn ring(&self) -> &Ring {
        &self.0.ring
    }

    /// Number of slots, N / 2.
    pub fn slots(&self) -> usize {
        self.0.ring.n() / 2
    }

    /// log2 of the number of slots.
    pub fn log_slots(&self) -> u32 {
        self.0.literal.log_n - 1
    }

    /// The highest level.
    pub fn max_level(&self) -> Level {
        Level(self.0.literal.levels)
    }

    /// The limbs of a ciphertext at a level.
    pub fn level_basis(&self, level: Level) -> Basis {
        Basis::range(0..level.0 + 1)
    }

    /// The level of a basis, if it is one of the model's.
    pub fn level_of(&self, basis: Basis) -> Option<Level> {
        let level = Level(basis.len().checked_sub(1)?);
        (level <= self.max_level() && basis == self.level_basis(level)).then_some(level)
    }

    /// The canonical scale of a level: a product of two values at it, rescaled, lands on that of the next level below.
    pub fn scale(&self, level: Level) -> Scale {
        self.0.level_scales[level.0]
    }

    /// EvalMod's limbs.
    pub fn eval_mod_limbs(&self) -> Range<usize> {
        let start = 1 + self.0.literal.levels;
        start..start + self.0.literal.eval_mod_limbs
    }

    /// CoeffsToSlots' limbs.
    pub fn coeffs_to_slots_limbs(&self) -> Range<usize> {
        let start = self.eval_mod_limbs().end;
        start..start + self.0.literal.coeffs_to_slots_limbs
    }

    /// The value of a limb's prime.
    pub fn prime(&self, limb: usize) -> u64 {
        self.0.ring.moduli()[limb].value()
    }

    /// log2 of the product of a basis.
    pub fn bits(&self, basis: Basis) -> f64 {
        basis.iter().map(|i| (self.prime(i) as f64).log2()).sum()
    }

    /// log2(Q*P) over all limbs.
    pub fn log_qp(&self) -> f64 {
        self.bits(Basis::range(0..self.0.ring.moduli().len()))
    }

    /// Number of ciphertext limbs and of special limbs.
    pub fn limb_counts(&self) -> (usize, usize) {
        let special = self.0.literal.bootstrap_special_limbs;
        (self.0.ring.moduli().len() - special, special)
    }

    /// Security in bits: 128 for a checked set, 0 for an insecure one.
    pub fn security_bits(&self) -> u32 {
        if self.0.literal.insecure { 0 } else { 128 }
    }

    /// A gadget by name.
    pub fn gadget(&self, name: GadgetName) -> &Gadget {
        self.0
            .gadgets
            .iter()
            .find(|g| g.name == name)
            .expect("every set has every gadget")
    }

    /// The gadget that switches a ciphertext on this basis most cheaply.
    pub fn cheapest_gadget(&self, basis: Basis) -> GadgetName {
        if basis.is_subset(self.gadget(GadgetName::Model).limbs) {
            GadgetName::Model
        } else {
            GadgetName::Bootstrap
        }
    }
}

/// Limbs that the polynomial of EvalMod and its double angles consume.
const EVAL_MOD_LIMBS: usize = 8;
/// Limbs that CoeffsToSlots consumes at the full size, and SlotsToCoeffs after it in levels.
const TRANSFORM_LIMBS: usize = 3;
/// The largest weight of the ephemeral secret whose bound on EvalMod's integers holds.
const MAX_SPARSE_WEIGHT: usize = 32;

/// What a bootstrap and its keys need of a set; the error says which field and why.
fn check_bootstrap(l: &ParametersLiteral) -> Result<(), String> {
    let counts = [
        ("levels", l.levels),
        ("bootstrap_special_limbs", l.bootstrap_special_limbs),
        ("coeffs_to_slots_limbs", l.coeffs_to_slots_limbs),
    ];
    if let Some((field, got)) = counts.into_iter().find(|(_, count)| *count > 64) {
        return Err(format!("{field}: expected at most 64, got {got}"));
    }
    if l.eval_mod_limbs != EVAL_MOD_LIMBS {
        return Err(format!(
            "eval_mod_limbs: expected {EVAL_MOD_LIMBS}, which its polynomial consumes, got {}",
            l.eval_mod_limbs
        ));
    }
    for (field, got) in [
        ("coeffs_to_slots_limbs", l.coeffs_to_slots_limbs),
        ("levels", l.levels),
    ] {
        if got < TRANSFORM_LIMBS {
            return Err(format!(
                "{field}: expected at least {TRANSFORM_LIMBS}, which a bootstrap's transforms consume, got {got}"
            ));
        }
    }
    if l.model_special_limbs == 0 {
        return Err("model_special_limbs: expected at least 1, got 0".into());
    }
    if !(1..=MAX_SPARSE_WEIGHT).contains(&l.sparse_weight) {
        return Err(format!(
            "sparse_weight: expected 1 to {MAX_SPARSE_WEIGHT}, for which EvalMod's bound holds, got {}",
            l.sparse_weight
        ));
    }
    if !l.insecure && l.estimate.is_none() {
        return Err(
            "estimate: expected the lattice estimator's result for a secure set, got none".into(),
        );
    }
    Ok(())
}

/// Every basis that occurs meets the digits of a gadget from the front, none left out ([`used_digits`] stops at the first that is not met):
/// a level's limbs together with the first of EvalMod's and CoeffsToSlots', as a bootstrap raises to them and drops them from the top.
fn check_digits(gadget: &Gadget, l: &ParametersLiteral) -> Result<(), String> {
    for level in 0..=l.levels {
        for raised in 0..=l.eval_mod_limbs + l.coeffs_to_slots_limbs {
            let limbs = Basis::range(0..level + 1)
                .union(Basis::range(1 + l.levels..1 + l.levels + raised))
                .intersection(gadget.limbs);
            let used: usize = used_digits(gadget, limbs).map(|digit| digit.len()).sum();
            if used != limbs.len() {
                return Err(format!(
                    "the {:?} gadget: expected digits that limbs fill from the front, but level {level} with {raised} raised limbs leaves \
                     one out; use fewer coeffs_to_slots_limbs or more bootstrap_special_limbs",
                    gadget.name
                ));
            }
        }
    }
    Ok(())
}

fn gadgets(l: &ParametersLiteral, ciphertext_limbs: usize) -> Vec<Gadget> {
    let all = Basis::range(0..ciphertext_limbs);
    let special = |count: usize| Basis::range(ciphertext_limbs..ciphertext_limbs + count);
    let dense = SecretDistribution::DenseTernary;
    // Bootstrap limbs first: a bootstrap to a low level then fills its first digits and saves the last.
    let order: Vec<usize> = [0]
        .into_iter()
        .chain(1 + l.levels..ciphertext_limbs)
        .chain(1..1 + l.levels)
        .collect();
    let eval_mod = 1 + l.levels..1 + l.levels + l.eval_mod_limbs;
    let product: Vec<usize> = [0]
        .into_iter()
        .chain(eval_mod.clone())
        .chain(1..1 + l.levels)
        .collect();
    let model: Vec<usize> = (0..1 + l.levels).collect();
    let divisor = |special: usize| special as u32 * l.base_bits;
    let bootstrap = digits(&order, l, divisor(l.bootstrap_special_limbs));
    // Of CoeffsToSlots' limbs a single value needs the first alone.
    let trace_special =
        Basis::range(eval_mod.end + 1..ciphertext_limbs + l.bootstrap_special_limbs);
    let trace: Vec<usize> = [0]
        .into_iter()
        .chain(eval_mod.start..eval_mod.end + 1)
        .chain(1..1 + l.levels)
        .collect();
    let trace_digits = digits(&trace, l, divisor(trace_special.len()));
    // What the rescale divides by: the prime of an EvalMod limb.
    let product_digits = digits(&product, l, divisor(l.bootstrap_special_limbs + 1));
    let model_digits = digits(&model, l, divisor(l.model_special_limbs));
    let base = Basis::single(0);
    vec![
        Gadget {
            name: GadgetName::Bootstrap,
            limbs: all,
            special: special(l.bootstrap_special_limbs),
            digits: bootstrap,
            encrypted_under: dense,
        },
        Gadget {
            name: GadgetName::Product,
            limbs: Basis::range(0..eval_mod.end),
            special: special(l.bootstrap_special_limbs),
            digits: product_digits,
            encrypted_under: dense,
        },
        Gadget {
            name: GadgetName::Trace,
            limbs: Basis::range(0..eval_mod.end + 1),
            special: trace_special,
            digits: trace_digits,
            encrypted_under: dense,
        },
        Gadget {
            name: GadgetName::Model,
            limbs: Basis::range(0..1 + l.levels),
            special: special(l.model_special_limbs),
            digits: model_digits,
            encrypted_under: dense,
        },
        Gadget {
            name: GadgetName::Encapsulate,
            limbs: base,
            special: special(1),
            digits: vec![base],
            encrypted_under: SecretDistribution::SparseTernary {
                weight: l.sparse_weight,
            },
        },
        Gadget {
            name: GadgetName::Decapsulate,
            limbs: all,
            special: special(1),
            digits: vec![all],
            encrypted_under: dense,
        },
    ]
}

/// Room that is left between a digit and what the switch is divided by, so that a switch's noise, the digit's size over that divisor times the
/// keys' noise, stays below the rounding that ends it anyway.
const DIGIT_MARGIN_BITS: u32 = 8;

/// Cuts limbs into digits whose product stays within a divisor of so many bits: the special modulus, and the prime of a rescale at the same time.
fn digits(order: &[usize], l: &ParametersLiteral, divisor_bits: u32) -> Vec<Basis> {
    let bits = |limb: usize| {
        if (1..=l.levels).contains(&limb) {
            l.level_bits
        } else {
            l.base_bits
        }
    };
    let room = divisor_bits - DIGIT_MARGIN_BITS;
    let mut out: Vec<(Basis, u32)> = Vec::new();
    for &limb in order {
        // The first digit with room: model limbs fill up what bootstrap limbs leave.
        match out.iter_mut().find(|(_, used)| used + bits(limb) <= room) {
            Some((digit, used)) => (*digit, *used) = (digit.with(limb), *used + bits(limb)),
            None => out.push((Basis::single(limb), bits(limb))),
        }
    }
    out.into_iter().map(|(digit, _)| digit).collect()
}
