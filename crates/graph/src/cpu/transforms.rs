//! Encoded weights of linear maps: kept as far as there is room, otherwise made when they are used.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rayon::prelude::*;
use taciturn_circuits::LinearTransform;
use taciturn_ckks::{Ciphertext, CkksError, IntegerPlaintext, Level, Scale};

use super::CpuMachine;
use crate::{Diagonals, PlainId};

/// Plaintexts that one thread computes before it encodes them: neighbours share what is read of the weights.
const NEIGHBOURS: usize = 32;

/// Bytes of weights that are encoded for one use at a time: those of the largest products of a block with 4,096 channels. Every further
/// part of a product computes its baby steps again.
pub const ENCODED_AT_ONCE: usize = 512 << 20;

/// The map, and the level of its operand.
type Key = (PlainId, usize);

/// Linear maps that are kept encoded, and those for which there is no room. A fixed choice: with every map used once in a step, one that
/// always makes room for the latest would have none of them when it comes again.
#[derive(Default)]
pub(super) struct Transforms {
    kept: HashMap<Key, Arc<LinearTransform>>,
    bytes: u64,
    /// Bytes that may be kept, and bytes of what is encoded for one use at a time.
    limit: Option<(u64, usize)>,
    /// Never kept.
    left_out: HashSet<Key>,
    /// The last of those, where it was encoded as a whole: several passes that are computed in step take it one after the other.
    latest: Option<(Key, Arc<LinearTransform>)>,
}

impl Transforms {
    fn fits(&self, bytes: u64) -> bool {
        (self.limit).is_none_or(|(limit, _)| self.bytes + bytes <= limit)
    }
}

/// Plaintexts by giant and baby rotation.
type Steps = Vec<(i64, i64, IntegerPlaintext)>;

fn bytes(steps: &Steps) -> u64 {
    let bytes = steps.iter().map(|(_, _, plain)| plain.coefficients.bytes());
    bytes.sum::<usize>() as u64
}

impl CpuMachine {
    /// Keeps at most `kept` bytes of encoded weights of linear maps: as many products of the first step as fit, always the same ones. The
    /// others are encoded whenever they are used, about `at_once` bytes at a time. All are kept where nothing is said.
    pub fn limit_weights(&mut self, kept: u64, at_once: usize) {
        self.transforms.limit = Some((kept, at_once));
    }

    /// A linear map of a value, where `product` multiplies as the plaintexts say: of a packed one operand and result are complex.
    pub(super) fn linear_map(
        &self,
        a: &Ciphertext,
        diagonals: &Diagonals,
        product: impl Fn(&Ciphertext) -> Result<Ciphertext, CkksError>,
    ) -> Result<Ciphertext, CkksError> {
        let Some(turn) = diagonals.turn() else {
            return self.landed(product(a)?);
        };
        let mut both = self.evaluator.rotate(a, turn)?;
        self.evaluator.mul_by_i_assign(&mut both);
        self.evaluator.add_assign(&mut both, a)?;
        let mut sum = product(&both)?;
        let conjugate = self.evaluator.conjugate(&sum)?;
        self.evaluator.add_assign(&mut sum, &conjugate)?;
        self.landed(sum)
    }

    /// Giant steps of a map that is not kept that are encoded at a time.
    fn giants_at_once(&self, diagonals: &Diagonals) -> usize {
        let bytes = (self.transforms.limit).map_or(ENCODED_AT_ONCE, |limit| limit.1);
        (bytes / (diagonals.bytes() / diagonals.giant_steps())).max(1)
    }

    /// A map that is not kept, where it is encoded as a whole: the latest one, or this one from now on.
    pub(super) fn latest_transform(
        &mut self,
        diagonals: &Diagonals,
        level: Level,
    ) -> Result<Option<Arc<LinearTransform>>, CkksError> {
        let key = (diagonals.id(), level.0);
        if let Some((_, latest)) = (self.transforms.latest.as_ref()).filter(|(of, _)| *of == key) {
            return Ok(Some(latest.clone()));
        }
        self.transforms.latest = None;
        let giants = diagonals.giant_steps();
        if self.giants_at_once(diagonals) < giants {
            return Ok(None);
        }
        let scale = self.params.scale(level);
        let steps = self.encode_giant_steps(diagonals, 0, giants, scale)?;
        diagonals.release();
        let whole = Arc::new(LinearTransform::from_steps(steps, scale));
        self.transforms.latest = Some((key, whole.clone()));
        Ok(Some(whole))
    }

    /// The product with a map that is not kept, whose plaintexts are encoded for this use, some giant steps at a time.
    pub(super) fn transformed_in_parts(
        &self,
        operand: &Ciphertext,
        diagonals: &Diagonals,
    ) -> Result<Ciphertext, CkksError> {
        let level = self.level_of(operand);
        let giants = diagonals.giant_steps();
        let at_once = self.giants_at_once(diagonals);
        let scale = self.params.scale(level);
        let mut sum: Option<Ciphertext> = None;
        for first in (0..giants).step_by(at_once) {
            let steps = self.encode_giant_steps(diagonals, first, at_once, scale)?;
            let part = LinearTransform::from_steps(steps, scale);
            let part = part.apply(&self.encoder, &self.evaluator, operand)?;
            match &mut sum {
                None => sum = Some(part),
                Some(sum) => self.evaluator.add_assign(sum, &part)?,
            }
        }
        diagonals.release();
        sum.ok_or_else(|| CkksError::Mismatch {
            operation: "linear map",
            expected: "at least one diagonal".into(),
            got: "none".into(),
        })
    }

    /// Encodes a map that is not kept yet, unless there is no room for it.
    pub(super) fn keep_transform(
        &mut self,
        diagonals: &Diagonals,
        level: Level,
    ) -> Result<Option<Arc<LinearTransform>>, CkksError> {
        let key = (diagonals.id(), level.0);
        if let Some(kept) = self.transforms.kept.get(&key) {
            return Ok(Some(kept.clone()));
        }
        // Coefficients take half of the bytes at best.
        let least = diagonals.bytes() as u64 / 2;
        if self.transforms.left_out.contains(&key) || !self.transforms.fits(least) {
            self.transforms.left_out.insert(key);
            return Ok(None);
        }
        // At the operand's own scale a plaintext takes the product to the next level's canonical scale.
        let scale = self.params.scale(level);
        let steps = self.encode_giant_steps(diagonals, 0, diagonals.giant_steps(), scale)?;
        diagonals.release();
        let bytes = bytes(&steps);
        if !self.transforms.fits(bytes) {
            self.transforms.left_out.insert(key);
            return Ok(None);
        }
        let transform = Arc::new(LinearTransform::from_steps(steps, scale));
        self.transforms.bytes += bytes;
        self.transforms.kept.insert(key, transform.clone());
        Ok(Some(transform))
    }

    /// The plaintexts of at most `count` giant steps.
    fn encode_giant_steps(
        &self,
        diagonals: &Diagonals,
        first: usize,
        count: usize,
        scale: Scale,
    ) -> Result<Steps, CkksError> {
        let babies = diagonals.baby_steps();
        let parts: Vec<(usize, usize)> = (first..diagonals.giant_steps().min(first + count))
            .flat_map(|giant| (0..babies).step_by(NEIGHBOURS).map(move |b| (giant, b)))
            .collect();
        let encode = |(giant, first): (usize, usize)| {
            let some = first..(first + NEIGHBOURS).min(babies);
            let values = diagonals.baby_giant_values(some.clone(), giant);
            let turn = diagonals.giant_rotation(giant);
            let mut steps = Vec::with_capacity(some.len());
            for (baby, values) in some.zip(values) {
                let integers = self.encoder.encode_integers(&values, scale)?;
                steps.push((turn, (baby * diagonals.stride()) as i64, integers));
            }
            Ok(steps)
        };
        let steps: Vec<Steps> =
            (parts.into_par_iter().map(encode)).collect::<Result<_, CkksError>>()?;
        Ok(steps.into_iter().flatten().collect())
    }
}
