//! Passes of several tokens: prompts, and guessed tokens that are checked.

use std::ops::Range;
use std::sync::Arc;

use taciturn_ckks::Ciphertext;
use taciturn_graph::{Plan, Step, run};
use taciturn_models::Pass;

use crate::session::Caches;
use crate::{ServerError, Session, StepOutput, check};

/// How several tokens are computed side by side.
#[derive(Clone, Debug)]
pub struct PassPlan {
    /// Tokens side by side.
    pub tokens: usize,
    /// The plan of a pass.
    pub plan: Plan,
    /// Whether it is made for logits too; else for what enters the caches.
    pub logits: bool,
}

/// Guessed tokens that were computed and not accepted yet.
pub(crate) struct Guess {
    positions: Range<usize>,
    /// The values that do not depend on which of the tokens are accepted.
    values: Caches,
}

impl Session {
    /// Permits passes under a plan, and begins the exchange again. Weights are encoded when the first pass needs them.
    ///
    /// Fails where the plan does not fit the model and the parameters, and where the session's keys do not cover it.
    pub fn permit_passes(&mut self, passes: PassPlan) -> Result<(), ServerError> {
        let longest = self
            .model
            .pass(passes.tokens)?
            .longest(&passes.plan, passes.logits)?;
        check::plan(&passes.plan, &self.params, &longest)?;
        let keys = self.machine.evaluator().keys();
        check::keys(keys, &passes.plan, &self.params)?;
        self.begin_caches(Some(&passes.plan))?;
        self.passes = Some(Arc::new(passes));
        Ok(())
    }

    /// Processes the encrypted embeddings of `count` tokens, all in one block of positions, of which only the cached keys and values are
    /// wanted: tokens of a prompt before its last. `observe` hears of every node when it is computed.
    pub fn absorb_several(
        &mut self,
        input: Ciphertext,
        count: usize,
        mut observe: impl FnMut(&str, usize, usize),
    ) -> Result<StepOutput, ServerError> {
        let (passes, positions) = self.pass(count)?;
        let pass = self.model.pass(passes.tokens)?;
        let graph = pass.step_graph(&passes.plan, positions.clone(), false)?;
        check::input(&input, &passes.plan, &self.params)?;
        let mut observe = |step: Step<'_, Arc<Ciphertext>>| {
            observe(step.name, step.index, step.total);
        };
        let (answer, caches) = self.compute(&graph, &passes.plan, input, &mut observe)?;
        self.caches.extend(caches);
        self.position = positions.end;
        Ok(answer)
    }

    /// Processes the encrypted embeddings of `count` guessed tokens, all in one block of positions, and returns the logits after each. The caches
    /// stay as they are until some of the tokens are [accepted](Self::accept); whatever else is computed first discards the guess.
    pub fn guess(
        &mut self,
        input: Ciphertext,
        count: usize,
        mut observe: impl FnMut(&str, usize, usize),
    ) -> Result<StepOutput, ServerError> {
        let (passes, positions) = self.pass(count)?;
        if !passes.logits {
            return Err(ServerError::Guess {
                what: "a plan of passes without logits",
                expected: "one that is made for logits".to_owned(),
            });
        }
        let pass = self.model.pass(passes.tokens)?;
        let graph = pass.step_graph(&passes.plan, positions.clone(), true)?;
        check::input(&input, &passes.plan, &self.params)?;
        let mut values = Caches::new();
        let mut observe = |step: Step<'_, Arc<Ciphertext>>| {
            if Pass::is_before_acceptance(step.name) {
                values.insert(step.name.to_owned(), step.value.clone());
            }
            observe(step.name, step.index, step.total);
        };
        let (answer, _) = self.compute(&graph, &passes.plan, input, &mut observe)?;
        self.guess = Some(Guess { positions, values });
        Ok(answer)
    }

    /// Takes the first `count` of the guessed tokens into the caches and forgets the others.
    pub fn accept(&mut self, count: usize) -> Result<(), ServerError> {
        let none = |expected: String| ServerError::Guess {
            what: "tokens to accept",
            expected,
        };
        let guess = (self.guess.take())
            .ok_or_else(|| none("guessed tokens, with nothing computed since".to_owned()))?;
        let Range { start, end } = guess.positions;
        if count > end - start {
            let expected = format!("at most the {} that were guessed", end - start);
            self.guess = Some(guess);
            return Err(none(expected));
        }
        if count == 0 {
            return Ok(());
        }
        let (passes, positions) = self.pass(count)?;
        let graph = self
            .model
            .pass(passes.tokens)?
            .acceptance_graph(positions.clone())?;
        let mut inputs = self.cached(&graph);
        inputs.extend(guess.values);
        let caches = run(&graph, &passes.plan, &mut self.machine, inputs, &mut |_| ())?;
        self.caches.extend(caches);
        self.position = positions.end;
        Ok(())
    }

    /// The passes' plan and the positions of the next tokens, if one pass computes them.
    fn pass(&self, count: usize) -> Result<(Arc<PassPlan>, Range<usize>), ServerError> {
        let passes = self.passes.clone().ok_or_else(|| ServerError::Guess {
            what: "several tokens at once",
            expected: "a session that was given a plan of passes".to_owned(),
        })?;
        let (start, end) = (self.position, self.position.saturating_add(count));
        if end > self.model.context() {
            return Err(ServerError::ContextFull {
                position: end - 1,
                context: self.model.context(),
            });
        }
        Ok((passes, start..end))
    }
}
