//! Seeds of uniform polynomials, kept beside the words that they stand for.

use crate::Attachment;

/// What [`Ring::uniform`](crate::Ring::uniform) expanded into a polynomial: whoever computes elsewhere may expand it there rather than bring
/// the words over.
#[derive(Debug)]
pub struct Seed {
    bytes: [u8; 32],
    attachment: Attachment,
}

impl Seed {
    pub(crate) fn new(bytes: [u8; 32]) -> Self {
        Self {
            bytes,
            attachment: Attachment::default(),
        }
    }

    /// The key of the generator.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// Where a backend keeps what it derives from the seed and the polynomial's limbs.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }
}
