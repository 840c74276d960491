//! Passes of several tokens: prompts, and guessed tokens that are checked.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use taciturn_ckks::Ciphertext;
use taciturn_graph::{Plan, Step, run, run_in_step};
use taciturn_models::{Pass, StepModel};

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

/// What passes that fill the caches return to the client.
pub struct PassesOutput {
    /// Encrypted witnesses of every pass by name.
    pub outputs: Vec<Vec<(String, Ciphertext)>>,
    /// Bootstraps done.
    pub bootstraps: usize,
    /// Time of all passes.
    pub seconds: f64,
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

    /// Processes the encrypted embeddings of successive tokens of which only the cached keys and values are wanted: tokens of a prompt before its
    /// last. Every input has as many tokens as it says, all in one block of positions. Several passes are computed in step, so that
    /// weights that are not kept are encoded once for all of them. `observe` hears of every node when it is computed.
    pub fn absorb_several(
        &mut self,
        inputs: Vec<(Ciphertext, usize)>,
        mut observe: impl FnMut(&str, usize, usize),
    ) -> Result<PassesOutput, ServerError> {
        let start = Instant::now();
        let before = self.machine.bootstraps();
        self.guess = None;
        let (mut graphs, mut named) = (Vec::new(), Vec::new());
        let mut end = self.position;
        let (passes, _) = self.pass(0)?;
        let pass = self.model.pass(passes.tokens)?;
        for (input, count) in inputs {
            let positions = end..self.pass_end(end, count)?;
            check::input(&input, &passes.plan, &self.params)?;
            graphs.push(pass.step_graph(&passes.plan, positions.clone(), false)?);
            named.push(Caches::from([(
                StepModel::input_name().to_owned(),
                Arc::new(input),
            )]));
            end = positions.end;
        }
        let mut caches = self.caches.clone();
        let mut observe = |step: Step<'_, Arc<Ciphertext>>| {
            observe(step.name, step.index, step.total);
        };
        let computed = run_in_step(
            &graphs,
            &passes.plan,
            &mut self.machine,
            &mut caches,
            named,
            &mut observe,
        )?;
        self.caches = caches;
        self.position = end;
        let owned = |outputs: Caches| {
            let outputs = outputs.into_iter();
            outputs
                .map(|(name, value)| (name, Arc::unwrap_or_clone(value)))
                .collect()
        };
        Ok(PassesOutput {
            outputs: computed.into_iter().map(owned).collect(),
            bootstraps: self.machine.bootstraps() - before,
            seconds: start.elapsed().as_secs_f64(),
        })
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
        let end = self.pass_end(self.position, count)?;
        Ok((passes, self.position..end))
    }

    /// The position after so many tokens.
    fn pass_end(&self, start: usize, count: usize) -> Result<usize, ServerError> {
        let end = start.saturating_add(count);
        match end > self.model.context() {
            true => Err(ServerError::ContextFull {
                position: end - 1,
                context: self.model.context(),
            }),
            false => Ok(end),
        }
    }
}
