//! What a backend derives from a table and keeps beside it.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

/// A place for one value of a backend's own type, made at first use and dropped with its owner: tables in device memory.
#[derive(Default)]
pub struct Attachment(OnceLock<Box<dyn Any + Send + Sync>>);

impl Attachment {
    /// The value, made by `make` at first use. Contract: all calls name one type; a ring's tables serve its backend alone.
    pub fn get_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        let value = self.0.get_or_init(|| Box::new(make()));
        value
            .downcast_ref()
            .expect("tables stay with the backend that first used them")
    }
}

/// Starts empty: the copy's backend makes its own.
impl Clone for Attachment {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attachment")
    }
}
