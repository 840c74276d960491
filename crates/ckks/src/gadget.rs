//! Gadget decompositions for hybrid key switching.

use taciturn_ring::Basis;

use crate::SecretDistribution;

/// Which of a parameter set's gadgets a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GadgetName {
    /// The whole modulus: rotations inside a bootstrap.
    Bootstrap,
    /// EvalMod's modulus: products inside a bootstrap, which are rescaled together with their switch, so that digits may exceed P by nearly the
    /// prime that is dropped.
    Product,
    /// The trace of a single value, which needs one of CoeffsToSlots' limbs: the others are special ones here, for fewer digits.
    Trace,
    /// The model's levels only, with fewer special primes: smaller keys, cheaper switches.
    Model,
    /// Dense to sparse secret, modulo the base limb and one special prime.
    Encapsulate,
    /// Sparse to dense secret, after an automorphism of the sparse one, for a value that is small against the base limb: one digit that is
    /// the value itself.
    Decapsulate,
}

/// One way to decompose a polynomial for key switching: `digits` partition `limbs`; `special` is the auxiliary modulus P.
///
/// The gadget vector has, for digit j, the value P on the limbs of the digit and 0 on the others, so that a key works for
/// every subset of `limbs` (hybrid key switching, Han and Ki 2020, with limb sets in place of prefixes).
#[derive(Clone, Debug, PartialEq)]
pub struct Gadget {
    /// Its name.
    pub name: GadgetName,
    /// Ciphertext limbs that a key of this gadget covers.
    pub limbs: Basis,
    /// Special limbs.
    pub special: Basis,
    /// The digits, each a set of limbs.
    pub digits: Vec<Basis>,
    /// Distribution of the secret that keys of this gadget are encrypted under.
    pub encrypted_under: SecretDistribution,
}
