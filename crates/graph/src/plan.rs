//! Plans: at which level every value sits and where it is refreshed, as a file with a hash.

use crate::shape::hexadecimal;
use crate::{Level, Node, PlanError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A refresh of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootstrapPlan {
    /// Size of the bootstrap in slots; a multiple of the value's period.
    pub slots: usize,
    /// Level afterwards.
    pub target: Level,
    /// The node whose value is refreshed in the same bootstrap, as the other half of a complex value. It names this one in turn; both
    /// are refreshed when the second of them is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partner: Option<String>,
}

/// Where one node computes. Users whose inputs are at [`level_out`](NodePlan::level_out) or below take the result as it was before
/// its refresh, those above take it refreshed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePlan {
    /// Level to which all inputs are dropped.
    pub level_in: Level,
    /// Level of the result.
    pub level_out: Level,
    /// The refresh of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<BootstrapPlan>,
    /// Predicted time, the refresh included.
    pub microseconds: u64,
}

impl NodePlan {
    /// Level at which the value is handed on: after the refresh where there is one.
    pub fn level(&self) -> Level {
        self.bootstrap
            .as_ref()
            .map_or(self.level_out, |bootstrap| bootstrap.target)
    }
}

/// A module's part of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModulePlan {
    /// The common beginning of its nodes' names.
    pub name: String,
    /// Predicted time.
    pub microseconds: u64,
    /// How many bootstraps it has.
    pub bootstraps: usize,
    /// Level of its first operation's inputs.
    pub level_in: Level,
    /// Level of its last result.
    pub level_out: Level,
}

/// The plan of a step; one plan serves all token positions, whose graphs have the same names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Of the file's format.
    pub version: u32,
    /// Of everything else, as hexadecimal SHA-256.
    pub hash: String,
    /// Of the graph that it was made for, weights apart, as hexadecimal SHA-256.
    pub model: String,
    /// Name of the parameter set that it was made for; empty where it was made for none.
    pub parameters: String,
    /// Tokens that the graph has room for; 0 where nobody said.
    pub context: usize,
    /// Slots of the machine.
    pub slots: usize,
    /// The highest level that is used by anything.
    pub max_level: Level,
    /// Bootstraps of a step.
    pub bootstraps: usize,
    /// Predicted time of a step.
    pub microseconds: u64,
    /// Every rotation that occurs, with the highest level at which it does: what keys are needed.
    pub rotations: BTreeMap<i64, Level>,
    /// The highest level of a product of two values; none where there is none.
    pub relinearization: Option<Level>,
    /// The highest level of a conjugation; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conjugation: Option<Level>,
    /// The fixed level of every family of caches.
    pub caches: BTreeMap<String, Level>,
    /// What the graph's functions are approximated by, where it says so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub approximations: BTreeMap<String, String>,
    /// In the order of the graph.
    pub modules: Vec<ModulePlan>,
    /// By the names of the graph.
    pub nodes: BTreeMap<String, NodePlan>,
}

/// The format that this build writes and reads.
pub const PLAN_VERSION: u32 = 1;

/// What every version begins with.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Plan {
    /// A plan of nothing on a machine of `slots` slots.
    pub fn empty(slots: usize) -> Self {
        Plan {
            version: PLAN_VERSION,
            hash: String::new(),
            model: String::new(),
            parameters: String::new(),
            context: 0,
            slots,
            max_level: Level(0),
            bootstraps: 0,
            microseconds: 0,
            rotations: BTreeMap::new(),
            relinearization: None,
            conjugation: None,
            caches: BTreeMap::new(),
            approximations: BTreeMap::new(),
            modules: Vec::new(),
            nodes: BTreeMap::new(),
        }
    }

    /// This plan, saying for which parameters and how many tokens it was made.
    pub fn made_for(self, parameters: &str, context: usize) -> Self {
        Plan {
            parameters: parameters.to_owned(),
            context,
            ..self
        }
        .seal()
    }

    /// The plan of a node.
    pub fn node(&self, name: &str) -> Result<&NodePlan, PlanError> {
        self.nodes.get(name).ok_or_else(|| PlanError::Missing {
            node: name.to_owned(),
        })
    }

    /// The level at which an input is taken: of a cache's member that of its family, because a plan that only fills caches may leave out members
    /// that other positions have.
    pub fn input_level(&self, node: &Node) -> Result<Level, PlanError> {
        let family = (node.op.cache_family()).and_then(|family| self.caches.get(family.as_ref()));
        match family {
            Some(&level) => Ok(level),
            None => Ok(self.node(&node.name)?.level()),
        }
    }

    /// Sizes of the bootstraps that occur, with the highest target of each.
    pub fn bootstrap_sizes(&self) -> BTreeMap<usize, Level> {
        let mut sizes = BTreeMap::new();
        for bootstrap in self
            .nodes
            .values()
            .filter_map(|node| node.bootstrap.as_ref())
        {
            let target: &mut Level = sizes.entry(bootstrap.slots).or_default();
            *target = bootstrap.target.max(*target);
        }
        sizes
    }

    /// Sets the hash to that of the content.
    pub(crate) fn seal(mut self) -> Self {
        self.hash = self.content_hash();
        self
    }

    fn content_hash(&self) -> String {
        let unsealed = Plan {
            hash: String::new(),
            ..self.clone()
        };
        let bytes = serde_json::to_vec(&unsealed).expect("plans hold numbers and strings only");
        hexadecimal(&Sha256::digest(bytes))
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plans hold numbers and strings only")
    }

    /// From JSON; the format must be this build's and the hash that of the content. [`check`](Plan::check) it before it is used.
    pub fn from_json(json: &str) -> Result<Self, PlanError> {
        let parse = |error: serde_json::Error| PlanError::Parse(error.to_string());
        let Versioned { version } = serde_json::from_str(json).map_err(parse)?;
        if version != PLAN_VERSION {
            return Err(PlanError::Version {
                expected: PLAN_VERSION,
                got: version,
            });
        }
        let plan: Plan = serde_json::from_str(json).map_err(parse)?;
        let expected = plan.content_hash();
        if plan.hash != expected {
            return Err(PlanError::Hash {
                expected,
                got: plan.hash,
            });
        }
        Ok(plan)
    }
}
