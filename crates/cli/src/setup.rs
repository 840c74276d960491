//! What every command on ciphertexts begins with: parameters, the prepared model, a plan that fits into memory.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use taciturn_approx::Calibration;
use taciturn_ckks::{Encoder, KeyRequest, Parameters, named};
use taciturn_graph::{Level, Plan, key_request};
use taciturn_models::{StepModel, assumed_for};

use crate::args::{MemoryArgs, ParamsArgs};
use crate::checkpoint::Loaded;
use crate::costs::Costs;
use crate::failure::usage;
use crate::memory::{Prediction, predict};
use crate::plan::file;
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
}

impl Setup {
    /// Prepares a model for exchanges of `context` tokens and plans its step.
    pub fn new(loaded: &Loaded, params: &Parameters, costs: Costs, context: usize) -> Result<Self> {
        Setup::placed(loaded, params, costs, context, Strategy::default())
    }

    /// The same with bootstraps placed by a strategy.
    pub fn placed(
        loaded: &Loaded,
        params: &Parameters,
        costs: Costs,
        context: usize,
        strategy: Strategy,
    ) -> Result<Self> {
        let model = step_model(loaded, &loaded.calibration, params, context)?;
        Setup::fastest(model, params, costs, strategy)
    }

    /// The same for any context that the model has positions for, to see what it would take: never to compute with.
    pub fn assumed(
        loaded: &Loaded,
        params: &Parameters,
        costs: Costs,
        context: usize,
        strategy: Strategy,
    ) -> Result<Self> {
        let config = &loaded.checkpoint.config;
        let calibration = assumed_for(&loaded.calibration, config, context);
        let model = step_model(loaded, &calibration, params, context)?;
        Setup::fastest(model, params, costs, strategy)
    }

    fn fastest(
        model: StepModel,
        params: &Parameters,
        costs: Costs,
        strategy: Strategy,
    ) -> Result<Self> {
        let plan = (model.plan(&costs.table, strategy.placement().as_ref())?)
            .made_for(params.name(), model.context());
        Setup::of(model, params, costs, plan)
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
        let model =
            step_model(loaded, &loaded.calibration, params, plan.context).with_context(name)?;
        let max = Level(params.max_level().0 as u32);
        plan.check(&model.graph(plan.context - 1)?, max)
            .with_context(name)?;
        Setup::of(model, params, costs, plan)
    }

    fn of(model: StepModel, params: &Parameters, costs: Costs, plan: Plan) -> Result<Self> {
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
        })
    }

    /// Keeps as many weights encoded as fit, and refuses what does not fit even so, before any of it is done.
    pub fn fit_memory(&mut self, args: &MemoryArgs) -> Result<()> {
        let (limit, what) = match args.memory_limit {
            Some(limit) => (limit, "the limit given by --memory-limit"),
            None => (
                system::memory().available,
                "what this machine has available",
            ),
        };
        self.memory = self.memory.within(limit);
        anyhow::ensure!(
            self.memory.peak <= limit,
            "memory: the plan needs {} ({} bytes) without keeping any weights, {what} is {} ({limit} bytes); \
             shorten the context, take a smaller model, or free memory",
            system::gigabytes(self.memory.peak),
            self.memory.peak,
            system::gigabytes(limit),
        );
        Ok(())
    }
}

fn step_model(
    loaded: &Loaded,
    calibration: &Calibration,
    params: &Parameters,
    context: usize,
) -> Result<StepModel> {
    Ok(StepModel::new(
        &loaded.checkpoint,
        calibration,
        params.slots(),
        context,
    )?)
}
