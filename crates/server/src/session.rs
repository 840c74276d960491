//! One exchange: encrypted caches, and a step for every token.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use taciturn_ckks::{Ciphertext, EvaluationKeys, Evaluator, Parameters};
use taciturn_graph::{CpuMachine, ENCODED_AT_ONCE, Graph, Plan, Step, run};
use taciturn_models::StepModel;

use crate::{ServerError, check};

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
    model: Arc<StepModel>,
    plan: Plan,
    params: Parameters,
    machine: CpuMachine,
    /// What every exchange begins with: the caches after the public beginning-of-text token, by the names of their members.
    first: HashMap<String, Arc<Ciphertext>>,
    /// Members of the caches by name.
    caches: HashMap<String, Arc<Ciphertext>>,
    position: usize,
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
        let mut caches = HashMap::new();
        for (name, plain) in model.prefix_caches() {
            let family = name
                .rsplit_once('.')
                .map_or(name.as_str(), |(family, _)| family);
            if let Some(&level) = plan.caches.get(family) {
                let cache = machine.trivial(&plain, level)?;
                caches.insert(name, cache);
            }
        }
        Ok(Session {
            model,
            plan,
            params: params.clone(),
            machine,
            first: caches.clone(),
            caches,
            position: 1,
        })
    }

    /// Forgets all tokens but the beginning-of-text token: another exchange under the same keys and plan.
    pub fn restart(&mut self) {
        self.caches = self.first.clone();
        self.position = 1;
    }

    /// Position of the next token; the beginning-of-text token had position 0.
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
        self.compute(&graph, input, observe)
    }

    /// Processes one encrypted embedding of which only the cached keys and values are wanted: a prompt's token before the last.
    pub fn absorb(
        &mut self,
        input: Ciphertext,
        observe: impl FnMut(&str, usize, usize),
    ) -> Result<StepOutput, ServerError> {
        let graph = self.model.prompt_graph(&self.plan, self.position)?;
        self.compute(&graph, input, observe)
    }

    fn compute(
        &mut self,
        graph: &Graph,
        input: Ciphertext,
        mut observe: impl FnMut(&str, usize, usize),
    ) -> Result<StepOutput, ServerError> {
        let start = Instant::now();
        let before = self.machine.bootstraps();
        check::input(&input, &self.plan, &self.params)?;
        let mut inputs = HashMap::from([(StepModel::input_name().to_owned(), Arc::new(input))]);
        for (name, _) in graph.inputs() {
            if let Some(cache) = self.caches.get(name) {
                inputs.insert(name.to_owned(), cache.clone());
            }
        }
        let mut observe = |step: Step<'_, Arc<Ciphertext>>| {
            observe(step.name, step.index, step.total);
        };
        let computed = run(graph, &self.plan, &mut self.machine, inputs, &mut observe)?;
        let mut outputs = Vec::new();
        for (name, id) in graph.outputs() {
            let Some(value) = computed.get(name) else {
                continue;
            };
            if graph.node(*id).op.cache_family().is_some() {
                self.caches.insert(name.clone(), value.clone());
            } else {
                outputs.push((name.clone(), Ciphertext::clone(value)));
            }
        }
        self.position += 1;
        Ok(StepOutput {
            outputs,
            bootstraps: self.machine.bootstraps() - before,
            seconds: start.elapsed().as_secs_f64(),
        })
    }
}
