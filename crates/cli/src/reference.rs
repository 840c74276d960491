//! The clear model beside another way of computing, on the same tokens.

use anyhow::Result;
use taciturn_models::{ClearCache, ClearModel};

use crate::checkpoint::Loaded;

/// The clear model after the tokens that the server knows.
pub struct Reference<'a> {
    model: ClearModel<'a>,
    cache: ClearCache,
}

impl<'a> Reference<'a> {
    /// Processes the beginning-of-text token and the public text.
    pub fn new(loaded: &'a Loaded) -> Result<Self> {
        let model = ClearModel::new(&loaded.checkpoint);
        let mut cache = model.cache();
        for &token in std::iter::once(&loaded.checkpoint.config.bos).chain(&loaded.public) {
            model.step(&mut cache, token)?;
        }
        Ok(Reference { model, cache })
    }

    /// The logits after one more token.
    pub fn step(&mut self, token: u32) -> Result<Vec<f64>> {
        Ok(self.model.step(&mut self.cache, token)?)
    }
}
