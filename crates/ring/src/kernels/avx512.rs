//! placeholder
use super::portable::Portable;
#[derive(Copy, Clone)]
pub(crate) struct Avx512;
impl Avx512 {
    pub(crate) fn detect() -> Option<Portable> {
        None
    }
}
