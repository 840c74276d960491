//! One exchange: encrypted caches, and a step for every token.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use taciturn_ckks::{Ciphertext, EvaluationKeys, Evaluator, Parameters};
use taciturn_graph::{CpuMachine, ENCODED_AT_ONCE, Graph, Plan, Step, run};
use taciturn_models::StepModel;

use crate::passes::{Guess, PassPlan};
use crate::{ServerError, check};

/// Members of the caches by name.
pub(crate) type Caches = HashMap<String, Arc<Ciphertext>>;

/// What a step returns to the client.
pub struct StepOutput {
    /// Encrypted logits and witnesses by name.
    pub outputs: Vec<(String, Ciphertext)>,
    /// Bootstraps done.
    pub bootstraps: usize,
    /// Time of the step.
    pub seconds: f64,
}

/// A client's exchange. The caches stay on the server, encrypted under the client's secret.
pub struct Session {
    pub(crate) model: Arc<StepModel>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) params: Parameters,
    pub(crate) machine: CpuMachine,
    /// What every exchange begins with: the caches after the public beginning-of-text token, by the names of their members.
    first: Caches,
    /// Members of the caches by name.
    pub(crate) caches: Caches,
    pub(crate) position: usize,
    pub(crate) passes: Option<Arc<PassPlan>>,
    pub(crate) guess: Option<Guess>,
}

impl Session {
    /// A session after the public beginning-of-text token, with the client's keys. Encodes the weights, of which at most `weight_limit` bytes are
    /// kept, all where it is not given; `progress` hears how many of how many operands are done.
    ///
    /// Fails where the plan asks for what the parameters do not have or does not know the model's nodes, and where the keys do not cover it.
    pub fn new(
        model: Arc<StepModel>,
        plan: Plan,
        params: &Parameters,
        keys: EvaluationKeys,
        weight_limit: Option<u64>,
        progress: impl FnMut(usize, usize),
    ) -> Result<Self, ServerError> {
        // The longest step has every node and every operand of all others.
        let longest = model.step_graph(&plan, model.context() - 1)?;
        check::plan(&plan, params, &longest)?;
        check::keys(&keys, &plan, params)?;
        let mut machine = CpuMachine::new(Evaluator::new(params, keys));
        if let Some(bytes) = weight_limit {
            machine.limit_weights(bytes, ENCODED_AT_ONCE);
        }
        machine.prepare(&longest, &plan, progress)?;
        let position = model.prefix_tokens();
        let mut session = Session {
            model,
            plan: Arc::new(plan),
            params: params.clone(),
            machine,
            first: HashMap::new(),
            caches: HashMap::new(),
            position,
            passes: None,
            guess: None,
        };
        session.begin_caches(None)?;
        Ok(session)
    }

    /// Forgets all tokens but the public ones: another exchange under the same keys and plan.
    pub fn restart(&mut self) {
        self.caches = self.first.clone();
        self.position = self.model.prefix_tokens();
        self.guess = None;
    }

    /// Position of the next token; the public ones come before it.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Processes one encrypted embedding and returns the logits after it; `observe` hears of every node when it is computed.
    pub fn step(
        &mut self,
        input: Ciphertext,
        observe: impl FnMut(&str, usize, usize),
    ) -> Result<StepOutput, ServerError> {
        let graph = self.model.step_graph(&self.plan, self.position)?;
        self.one(&graph, input, observe)
    }

    /// Processes one encrypted embedding of which only the cached keys and values are wanted: a prompt's token before the last.
    pub fn absorb(
        &mut self,
        input: Ciphertext,
        observe: impl FnMut(&str, usize, usize),
    ) -> Result<StepOutput, ServerError> {
        let graph = self.model.prompt_graph(&self.plan, self.position)?;
        self.one(&graph, input, observe)
    }

    fn one(
        &mut self,
        graph: &Graph,
        input: Ciphertext,
        mut observe: impl FnMut(&str, usize, usize),
    ) -> Result<StepOutput, ServerError> {
        check::input(&input, &self.plan, &self.params)?;
        let plan = self.plan.clone();
        let mut observe = |step: Step<'_, Arc<Ciphertext>>| {
            observe(step.name, step.index, step.total);
        };
        let (answer, caches) = self.compute(graph, &plan, input, &mut observe)?;
        self.caches.extend(caches);
        self.position += 1;
        Ok(answer)
    }

    /// Runs a graph of a plan on the caches; they come back beside the answer as they would be afterwards.
    pub(crate) fn compute(
        &mut self,
        graph: &Graph,
        plan: &Plan,
        input: Ciphertext,
        observe: &mut dyn FnMut(Step<'_, Arc<Ciphertext>>),
    ) -> Result<(StepOutput, Caches), ServerError> {
        let start = Instant::now();
        let before = self.machine.bootstraps();
        // A guess that was not accepted by now is none.
        self.guess = None;
        let mut inputs = self.cached(graph);
        inputs.insert(StepModel::input_name().to_owned(), Arc::new(input));
        let computed = run(graph, plan, &mut self.machine, inputs, observe)?;
        let (mut outputs, mut caches) = (Vec::new(), Caches::new());
        for (name, id) in graph.outputs() {
            let Some(value) = computed.get(name) else {
                continue;
            };
            if graph.node(*id).op.cache_family().is_some() {
                caches.insert(name.clone(), value.clone());
            } else {
                outputs.push((name.clone(), Ciphertext::clone(value)));
            }
        }
        let answer = StepOutput {
            outputs,
            bootstraps: self.machine.bootstraps() - before,
            seconds: start.elapsed().as_secs_f64(),
        };
        Ok((answer, caches))
    }

    /// The caches that a graph takes.
    pub(crate) fn cached(&self, graph: &Graph) -> Caches {
        let members = graph.inputs().filter_map(|(name, _)| {
            let cache = self.caches.get(name)?;
            Some((name.to_owned(), cache.clone()))
        });
        members.collect()
    }

    /// The public tokens' caches, every family at a level of its own.
    pub(crate) fn begin_caches(&mut self, passes: Option<&Plan>) -> Result<(), ServerError> {
        for (name, plain) in self.model.prefix_caches() {
            let family = name
                .rsplit_once('.')
                .map_or(name.as_str(), |(family, _)| family);
            let plans = std::iter::once(&*self.plan).chain(passes);
            let level = plans.filter_map(|plan| plan.caches.get(family)).max();
            if let Some(&level) = level {
                let cache = self.machine.trivial(&plain, level)?;
                self.first.insert(name, cache);
            }
        }
        self.restart();
        Ok(())
    }
}
