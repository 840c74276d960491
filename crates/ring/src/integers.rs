//! Polynomials with integer coefficients, not reduced modulo any prime.

use crate::Attachment;

/// A polynomial in `X^stride` by its coefficients, those of the multiples of the stride; from it follow the residues modulo
/// any set of primes.
///
/// Coefficients take 32 bits each where all of them fit, as those of nearly every encoded weight do, and 64 otherwise.
#[derive(Clone, Debug)]
pub struct IntegerPoly {
    storage: Storage,
    attachment: Attachment,
}

#[derive(Clone, Debug)]
enum Storage {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

/// The coefficients of an [`IntegerPoly`], as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coefficients<'a> {
    /// All fit 32 bits, and so lie below every modulus of a ring.
    Narrow(&'a [i32]),
    /// Some do not.
    Wide(&'a [i64]),
}

impl Coefficients<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Narrow(x) => x.len(),
            Self::Wide(x) => x.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that they take.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Narrow(x) => size_of_val(*x),
            Self::Wide(x) => size_of_val(*x),
        }
    }

    /// One of them.
    pub(crate) fn get(&self, i: usize) -> i64 {
        match self {
            Self::Narrow(x) => x[i].into(),
            Self::Wide(x) => x[i],
        }
    }
}

impl IntegerPoly {
    /// The polynomial with these coefficients; a ring of degree `N` takes `N/stride` of them, for a stride that is a power of two.
    pub fn new(coefficients: Vec<i64>) -> Self {
        // Without an early end, which would keep the loop from several coefficients at a time.
        let fits = (coefficients.iter()).fold(true, |fits, &x| fits & (i64::from(x as i32) == x));
        if fits {
            return coefficients
                .iter()
                .map(|&x| x as i32)
                .collect::<Vec<_>>()
                .into();
        }
        Self {
            storage: Storage::Wide(coefficients),
            attachment: Attachment::default(),
        }
    }

    /// The coefficients at the multiples of the stride.
    pub fn coefficients(&self) -> Coefficients<'_> {
        match &self.storage {
            Storage::Narrow(x) => Coefficients::Narrow(x),
            Storage::Wide(x) => Coefficients::Wide(x),
        }
    }

    /// The memory that the coefficients take.
    pub fn bytes(&self) -> usize {
        self.coefficients().bytes()
    }

    /// Where a backend keeps what it derives from this polynomial.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }
}

/// As [`IntegerPoly::new`], for coefficients that are known to fit.
impl From<Vec<i32>> for IntegerPoly {
    fn from(coefficients: Vec<i32>) -> Self {
        Self {
            storage: Storage::Narrow(coefficients),
            attachment: Attachment::default(),
        }
    }
}
