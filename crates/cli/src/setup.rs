//! What every command on ciphertexts begins with: parameters, the prepared model, a plan that fits into memory.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use taciturn_approx::Calibration;
use taciturn_ckks::{Encoder, KeyRequest, Parameters, named};
use taciturn_graph::{Graph, Level, Plan, key_request};
use taciturn_models::{ModelError, Selection, StepModel, assumed_for};

use crate::args::{MemoryArgs, ParamsArgs};
use crate::checkpoint::Loaded;
use crate::costs::Costs;
use crate::failure::usage;
use crate::memory::{Prediction, predict};
use crate::passes::PlannedPasses;
use crate::plan::file;
use crate::plan::fit::{Candidate, Fastest, Planner};
use crate::strategy::Strategy;
use crate::system;

/// The parameter set that the flags name.
pub fn parameters(args: &ParamsArgs) -> Result<Parameters> {
    let params = named(&args.params).map_err(|error| usage(format!("--params: {error}")))?;
    if params.security_bits() == 0 {
        if !args.allow_insecure {
            return Err(usage(format!(
                "--params: {} protects nothing and exists for tests; expected a 128-bit set as n16-128, \
                 or --allow-insecure with it",
                params.name()
            )));
        }
        eprintln!(
            "warning: {} is insecure: anyone can recover what is encrypted under it",
            params.name()
        );
    }
    Ok(params)
}

/// Parameters as reports show them.
#[derive(Serialize)]
pub struct ParamsReport {
    name: String,
    log_n: u32,
    log_qp: f64,
    security_bits: u32,
}

impl ParamsReport {
    /// Of a set.
    pub fn new(params: &Parameters) -> Self {
        ParamsReport {
            name: params.name().to_owned(),
            log_n: params.literal().log_n,
            log_qp: params.log_qp(),
            security_bits: params.security_bits(),
        }
    }

    /// The set's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Security in bits; 0 for sets without any.
    pub fn security_bits(&self) -> u32 {
        self.security_bits
    }
}

/// What plans are made for.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Tokens of an exchange.
    pub context: usize,
    /// How bootstraps are placed.
    pub strategy: Strategy,
    /// Approximations that are not the plan's to choose.
    pub selection: &'a Selection,
}

/// A model that is ready for steps under one plan.
pub struct Setup {
    /// The parameters.
    pub params: Parameters,
    /// The model's public half.
    pub model: Arc<StepModel>,
    /// Where everything computes.
    pub plan: Plan,
    /// The keys that it needs.
    pub keys: KeyRequest,
    /// What the plan was made from.
    pub costs: Costs,
    /// Memory that it will take.
    pub memory: Prediction,
    /// How the prompt is read, where that is not token by token.
    pub passes: Option<PlannedPasses>,
    /// The fastest plan, where that takes too much memory and this one does not.
    pub instead_of: Option<Fastest>,
    /// The step of the last position with approximations of least depth, where this one's are chosen.
    pub shallow: Option<Graph>,
    /// How others are made; none for a plan from a file.
    strategy: Option<Strategy>,
}

impl Setup {
    /// Prepares a model for exchanges and plans its step.
    pub fn new(
        loaded: &Loaded,
        params: &Parameters,
        costs: Costs,
        wanted: &Wanted<'_>,
    ) -> Result<Self> {
        let model = step_model(loaded, &loaded.calibration, params, wanted.context)?;
        Setup::fastest(model, params, costs, wanted)
    }

    /// The same for any context that the model has positions for, to see what it would take: never to compute with.
    pub fn assumed(
        loaded: &Loaded,
        params: &Parameters,
        costs: Costs,
        wanted: &Wanted<'_>,
    ) -> Result<Self> {
        let config = &loaded.checkpoint.config;
        let calibration = assumed_for(&loaded.calibration, config, wanted.context);
        let model = step_model(loaded, &calibration, params, wanted.context)?;
        Setup::fastest(model, params, costs, wanted)
    }

    fn fastest(
        mut model: StepModel,
        params: &Parameters,
        costs: Costs,
        wanted: &Wanted<'_>,
    ) -> Result<Self> {
        let strategy = wanted.strategy;
        model.select(wanted.selection).map_err(of_flag)?;
        let shallow = match strategy {
            Strategy::Optimal => Some(model.choose(&costs.table)?),
            _ => {
                model.choose_shallow()?;
                None
            }
        };
        let plan = (model.plan(&costs.table, strategy.placement().as_ref())?)
            .made_for(params.name(), model.context());
        let setup = Setup::of(model, params, costs, plan, Some(strategy))?;
        Ok(Setup { shallow, ..setup })
    }

    /// Prepares a model for exchanges of at least `context` tokens under a plan from a file, after checking that it fits.
    pub fn planned(
        loaded: &Loaded,
        params: &Parameters,
        costs: Costs,
        context: usize,
        path: &Path,
    ) -> Result<Self> {
        let plan = file::read(path)?;
        let name = || format!("--plan: {}", path.display());
        ensure!(
            plan.parameters == params.name(),
            "{}: expected a plan for the parameters {}, got one for {:?}; make it with `taciturn plan --params {} --out FILE`",
            name(),
            params.name(),
            plan.parameters,
            params.name()
        );
        ensure!(
            (context..=loaded.longest_context()).contains(&plan.context),
            "{}: expected a plan for {context} to {} tokens, got one for {}; make it with `taciturn plan --context N --out FILE`",
            name(),
            loaded.longest_context(),
            plan.context
        );
        let mut model =
            step_model(loaded, &loaded.calibration, params, plan.context).with_context(name)?;
        let approximations = plan.approximations.clone().into_iter().collect();
        model
            .select(&Selection::new(approximations))
            .with_context(name)?;
        let max = Level(params.max_level().0 as u32);
        plan.check(&model.graph(plan.context - 1)?, max)
            .with_context(name)?;
        Setup::of(model, params, costs, plan, None)
    }

    fn of(
        model: StepModel,
        params: &Parameters,
        costs: Costs,
        plan: Plan,
        strategy: Option<Strategy>,
    ) -> Result<Self> {
        let keys = key_request(&Encoder::new(params), &plan)?;
        let graph = model.graph(model.context() - 1)?;
        let memory = predict(params, &graph, &plan, &keys);
        Ok(Setup {
            params: params.clone(),
            model: Arc::new(model),
            plan,
            keys,
            costs,
            memory,
            instead_of: None,
            shallow: None,
            strategy,
            passes: None,
        })
    }

    /// Keeps as many weights encoded as fit. Takes a slower plan where this one does not fit without any, and refuses before any of it is
    /// done where none does. A plan from a file, and one that passes were made for, are taken as they are.
    pub fn fit_memory(&mut self, args: &MemoryArgs) -> Result<()> {
        let what = match args.memory_limit {
            Some(_) => "the limit given by --memory-limit",
            None => "what this machine has available",
        };
        let limit = args.limit();
        self.memory = self.memory.within(limit);
        if self.memory.peak <= limit {
            return Ok(());
        }
        let mut smallest = self.memory.peak;
        if let (Some(strategy), None) = (self.strategy, &self.passes) {
            let encoder = Encoder::new(&self.params);
            let graphs = self.model.planned_graphs()?;
            let context = self.model.context();
            let mut planner = Planner::new(&encoder, &graphs, context, &self.costs, strategy);
            let fitted = planner.fit(&self.plan, limit)?;
            smallest = smallest.min(fitted.smallest);
            if let Some(best) = fitted.best {
                self.take(best);
                return Ok(());
            }
        }
        bail!(
            "memory: the plan needs {} ({} bytes), {what} is {} ({limit} bytes); the smallest plan for {} tokens needs {} ({smallest} bytes): \
             shorten the context, take a smaller model, or free memory",
            system::gigabytes(self.memory.peak),
            self.memory.peak,
            system::gigabytes(limit),
            self.model.context(),
            system::gigabytes(smallest),
        );
    }

    fn take(&mut self, best: Candidate) {
        let fastest = Fastest {
            seconds: self.plan.microseconds as f64 / 1e6,
            bytes: self.memory.peak,
        };
        eprintln!(
            "note: the fastest plan, {:.1} s per token, needs {} and does not fit; this one takes {:.1} s and {}",
            fastest.seconds,
            system::gigabytes(fastest.bytes),
            best.plan.microseconds as f64 / 1e6,
            system::gigabytes(best.memory.peak)
        );
        self.instead_of = Some(fastest);
        (self.plan, self.keys, self.memory) = (best.plan, best.keys, best.memory);
    }
}

/// An approximation that cannot be is a wrong command line.
fn of_flag(error: ModelError) -> anyhow::Error {
    match error {
        ModelError::UnknownSite { .. } => usage(format!("--{error}")),
        ModelError::Site { site, source } => usage(format!("--approximation: {site}: {source}")),
        error => error.into(),
    }
}

fn step_model(
    loaded: &Loaded,
    calibration: &Calibration,
    params: &Parameters,
    context: usize,
) -> Result<StepModel> {
    Ok(StepModel::after(
        &loaded.checkpoint,
        calibration,
        params.slots(),
        context,
        &loaded.public,
    )?)
}
