//! Client and server of one exchange in one process. The server side has public material only.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;
use taciturn_ckks::{Ciphertext, Parameters};
use taciturn_client::{Client, ClientError, check_interval};
use taciturn_graph::{Graph, Level, Plan};
use taciturn_models::StepModel;
use taciturn_server::{PassPlan, Session};
use zeroize::Zeroizing;

use crate::progress;
use crate::setup::Setup;

/// Passes that are computed in step at most: their values are in memory side by side, about 1 GB for each of GPT-2 small.
pub const PASSES_IN_STEP: usize = 2;

/// An exchange after the public beginning-of-text token.
pub struct Exchange {
    params: Parameters,
    model: Arc<StepModel>,
    plan: Plan,
    /// How several tokens of a prompt are read at once.
    passes: Option<PassPlan>,
    input_level: Level,
    client: Client,
    session: Session,
    /// What was made before the first token.
    pub made: Made,
}

/// Keys and encoded weights, made once per exchange.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Made {
    /// Evaluation keys as they would be sent: one half and a seed each.
    pub key_bytes: usize,
    /// The same in the server's memory, both halves expanded.
    pub key_resident_bytes: usize,
    /// Making the keys.
    pub key_seconds: f64,
    /// Encoding the weights, masks and transforms of bootstraps.
    pub encode_seconds: f64,
}

/// What came of one token.
pub struct Stepped {
    /// The vocabulary's logits.
    pub logits: Vec<f64>,
    /// Bootstraps that the server did.
    pub bootstraps: usize,
}

impl Exchange {
    /// Makes keys and begins a session with them. `server` are the setup's parameters where the server computes.
    pub fn begin(setup: &Setup, server: &Parameters) -> Result<Self> {
        let mut client = Client::new(&setup.params)?;
        let bar = progress::bar(setup.keys.len(), "making keys");
        let start = Instant::now();
        let keys = client.requested_keys(&setup.keys, |done, _| bar.set_position(done as u64))?;
        let key_seconds = start.elapsed().as_secs_f64();
        bar.finish_and_clear();
        let (key_bytes, key_resident_bytes) = (keys.stored_bytes(), keys.resident_bytes());
        let input_level = setup.plan.node(StepModel::input_name())?.level();
        let bar = progress::bar(0, "encoding weights");
        let start = Instant::now();
        let mut session = Session::new(
            setup.model.clone(),
            setup.plan.clone(),
            server,
            keys,
            setup.memory.weight_limit(),
            |done, total| {
                bar.set_length(total as u64);
                bar.set_position(done as u64);
            },
        )?;
        let passes = match &setup.passes {
            None => None,
            Some(planned) => {
                session.permit_passes(planned.passes.clone())?;
                Some(planned.passes.clone())
            }
        };
        let encode_seconds = start.elapsed().as_secs_f64();
        bar.finish_and_clear();
        Ok(Exchange {
            params: setup.params.clone(),
            model: setup.model.clone(),
            plan: setup.plan.clone(),
            passes,
            input_level,
            client,
            session,
            made: Made {
                key_bytes,
                key_resident_bytes,
                key_seconds,
                encode_seconds,
            },
        })
    }

    /// Begins another exchange with the same keys and encoded weights.
    pub fn restart(&mut self) {
        self.session.restart();
    }

    /// Encrypts a token's embedding, has the server process it, decrypts, and checks every witness before it hands out logits.
    pub fn step(&mut self, token: u32, observe: impl FnMut(&str, usize, usize)) -> Result<Stepped> {
        let position = self.session.position();
        let graph = self.model.step_graph(&self.plan, position)?;
        let input = self.embedding(token, position)?;
        let answer = self
            .session
            .step(input, observe)
            .with_context(|| format!("position {position}"))?;
        let logits = self
            .check(&graph, &answer.outputs)
            .and_then(|()| self.logits(&graph, &answer.outputs))
            .with_context(|| format!("position {position}"))?;
        Ok(Stepped {
            logits,
            bootstraps: answer.bootstraps,
        })
    }

    /// The same for a token of the prompt before the last, which only enters the caches.
    pub fn absorb(&mut self, token: u32, observe: impl FnMut(&str, usize, usize)) -> Result<()> {
        let position = self.session.position();
        let graph = self.model.prompt_graph(&self.plan, position)?;
        let input = self.embedding(token, position)?;
        let answer = self
            .session
            .absorb(input, observe)
            .with_context(|| format!("position {position}"))?;
        self.check(&graph, &answer.outputs)
            .with_context(|| format!("position {position}"))
    }

    /// How many of these tokens are read at once: those of passes in step that begin here, or one.
    pub fn at_once(&self, tokens: usize) -> Result<usize> {
        let Some(passes) = &self.passes else {
            return Ok(tokens.min(1));
        };
        let start = self.session.position();
        let pass = self.model.pass(passes.tokens)?;
        let mut end = start;
        for _ in 0..PASSES_IN_STEP {
            let next = pass.positions(end, start + tokens);
            // One token takes less time alone.
            if end > start && next.len() == 1 {
                break;
            }
            end = next.end.max(end);
        }
        Ok(end - start)
    }

    /// As [`absorb`](Self::absorb), for tokens that are read [at once](Self::at_once).
    pub fn absorb_several(
        &mut self,
        tokens: &[u32],
        observe: impl FnMut(&str, usize, usize),
    ) -> Result<()> {
        let passes = match (&self.passes, tokens) {
            (Some(passes), [_, _, ..]) => passes.clone(),
            (_, &[token]) => return self.absorb(token, observe),
            _ => anyhow::bail!("{} tokens at once, without passes", tokens.len()),
        };
        let start = self.session.position();
        let end = start + tokens.len();
        let at = || format!("positions {start} to {}", end - 1);
        let model = self.model.clone();
        let pass = model.pass(passes.tokens)?;
        let level = passes.plan.node(StepModel::input_name())?.level();
        let (mut graphs, mut inputs) = (Vec::new(), Vec::new());
        let mut from = start;
        while from < end {
            let positions = pass.positions(from, end);
            let new = &tokens[from - start..positions.end - start];
            inputs.push((self.encrypt(&pass.embed(new, from)?, level)?, new.len()));
            from = positions.end;
            graphs.push(pass.step_graph(&passes.plan, positions, false)?);
        }
        let answer = self
            .session
            .absorb_several(inputs, observe)
            .with_context(at)?;
        for (graph, outputs) in graphs.iter().zip(&answer.outputs) {
            self.check(graph, outputs).with_context(at)?;
        }
        Ok(())
    }

    fn embedding(&mut self, token: u32, position: usize) -> Result<Ciphertext> {
        let embedding = self.model.embed(token, position)?;
        self.encrypt(&embedding, self.input_level)
    }

    fn encrypt(&mut self, slots: &[f64], level: Level) -> Result<Ciphertext> {
        Ok(self.client.encrypt(slots, level)?.expand(&self.params))
    }

    fn decrypt(
        &self,
        outputs: &[(String, Ciphertext)],
        name: &str,
        period: usize,
    ) -> Result<Zeroizing<Vec<f64>>, ClientError> {
        let (_, ciphertext) = outputs
            .iter()
            .find(|(output, _)| output == name)
            .ok_or_else(|| ClientError::MissingOutput { name: name.into() })?;
        self.client.decrypt(ciphertext, period)
    }

    /// Every witness lies in its interval, or nothing else is looked at.
    fn check(&self, graph: &Graph, outputs: &[(String, Ciphertext)]) -> Result<()> {
        for witness in self.model.witnesses(graph) {
            let slots = self.decrypt(outputs, &witness.output, witness.period())?;
            let values = witness.values(&slots);
            check_interval(&witness.site, witness.low, witness.high, &values)?;
        }
        Ok(())
    }

    fn logits(&self, graph: &Graph, outputs: &[(String, Ciphertext)]) -> Result<Vec<f64>> {
        let slots = self
            .model
            .logit_outputs(graph)
            .iter()
            .map(|(name, layout)| self.decrypt(outputs, name, layout.period()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(self.model.logits(graph, &slots))
    }
}
