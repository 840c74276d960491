//! The security bounds that every parameter set and every key is checked against.

/// Distribution of a secret, as far as its security bound depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SecretDistribution {
    /// Every coefficient uniform in {-1, 0, 1}.
    DenseTernary,
    /// Exactly this many coefficients in {-1, 1}, the others 0.
    SparseTernary {
        /// The Hamming weight.
        weight: usize,
    },
}

/// What the lattice estimator says of a parameter set that ships.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SecurityEstimate {
    /// Classical security in bits under the estimator's default cost model.
    pub bits: f64,
    /// The attack that gives it.
    pub attack: &'static str,
    /// Date of the estimator used.
    pub date: &'static str,
}

/// Largest log2(Q*P) at 128-bit classical security, or `None` where no bound is known (then no set can be built).
///
/// Dense ternary: Bossuat et al., "Security Guidelines for Implementing Homomorphic Encryption" (2024), Table 4.2,
/// uniform ternary secrets, sigma 3.19. Sparse, weight 32, N = 2^16: 121 bits is where the hybrid primal attack meets 128 bits;
/// the project's own use stays at 100 bits, where the lattice estimator (June 2026) gives 177 (primal hybrid).
pub fn bound_bits(log_n: u32, secret: SecretDistribution) -> Option<f64> {
    match (secret, log_n) {
        (SecretDistribution::DenseTernary, 10) => Some(26.0),
        (SecretDistribution::DenseTernary, 11) => Some(53.0),
        (SecretDistribution::DenseTernary, 12) => Some(106.0),
        (SecretDistribution::DenseTernary, 13) => Some(214.0),
        (SecretDistribution::DenseTernary, 14) => Some(430.0),
        (SecretDistribution::DenseTernary, 15) => Some(868.0),
        (SecretDistribution::DenseTernary, 16) => Some(1747.0),
        (SecretDistribution::SparseTernary { weight }, 16) if weight >= 32 => Some(121.0),
        _ => None,
    }
}
