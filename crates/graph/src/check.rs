//! Whether a plan that comes from outside fits a graph and parameters.

use crate::shape::structure_hash;
use crate::{
    BootstrapPlan, Graph, Level, Node, NodePlan, Op, Plan, PlanError, bootstrap_input_levels,
};
use std::collections::BTreeSet;

impl Plan {
    /// Checks the plan against the graph of the last position that it serves and the highest level of the parameters: every node is there
    /// and no other; levels are in range and follow from each other; every bootstrap gets the levels that it takes and serves its value;
    /// pairs name each other; every key that is needed is listed. A plan that passes runs.
    pub fn check(&self, graph: &Graph, max: Level) -> Result<(), PlanError> {
        expect("number of slots", graph.slots(), self.slots)?;
        self.same_approximations(graph)?;
        for node in graph.nodes() {
            self.node(&node.name)?;
        }
        let known = |name: &&String| graph.find(name.as_str()).is_some();
        if let Some(unknown) = self.nodes.keys().find(|name| !known(name)) {
            return unfit(unknown, "a node of the model", "one that it does not have");
        }
        expect("model", structure_hash(graph), self.model.clone())?;
        let mut bootstraps = 0;
        for (index, node) in graph.nodes().iter().enumerate() {
            let planned = self.node(&node.name)?;
            levels(node, planned, max)?;
            self.inputs(graph, node, planned)?;
            if let Some(bootstrap) = &planned.bootstrap {
                refresh(graph, node, planned, bootstrap, max)?;
                bootstraps += usize::from(self.pair(graph, index, bootstrap)?);
            }
            self.cache(node, planned)?;
        }
        expect("number of bootstraps", bootstraps, self.bootstraps)?;
        let handed = self.nodes.values().map(NodePlan::level).max();
        expect("highest level", handed.unwrap_or_default(), self.max_level)?;
        self.keys(graph, max)
    }

    /// Functions are approximated as they were when the plan was made.
    fn same_approximations(&self, graph: &Graph) -> Result<(), PlanError> {
        let (own, theirs) = (&self.approximations, graph.approximations());
        let sites = own.keys().chain(theirs.keys());
        let named = |name: Option<&String>| name.map_or("none", |name| name.as_str()).to_owned();
        for site in sites {
            if own.get(site) != theirs.get(site) {
                let expected = format!("the approximation {}", named(theirs.get(site)));
                return unfit(site, &expected, &named(own.get(site)));
            }
        }
        Ok(())
    }

    /// Every input is found at the level where it is needed, refreshed if it must be, and by then both of a pair are there.
    fn inputs(&self, graph: &Graph, node: &Node, planned: &NodePlan) -> Result<(), PlanError> {
        for id in &node.inputs {
            let input = graph.node(*id);
            let found = self.node(&input.name)?;
            if planned.level_in <= found.level_out {
                continue;
            }
            if planned.level_in > found.level() {
                let (needed, got) = (planned.level_in, found.level());
                return unfit(
                    &input.name,
                    &format!("level {needed} for {}", node.name),
                    &format!("level {got}"),
                );
            }
            let partner = (found.bootstrap.as_ref())
                .and_then(|bootstrap| bootstrap.partner.as_ref())
                .and_then(|partner| graph.find(partner));
            let user = graph.find(&node.name);
            if partner.is_some_and(|partner| user.is_none_or(|user| user <= partner)) {
                return unfit(
                    &node.name,
                    "a place after both values of a pair that it takes one of",
                    "one before",
                );
            }
        }
        Ok(())
    }

    /// Whether the bootstrap of a node is done when the node is computed; a pair's is, at the second.
    fn pair(
        &self,
        graph: &Graph,
        index: usize,
        bootstrap: &BootstrapPlan,
    ) -> Result<bool, PlanError> {
        let name = &graph.nodes()[index].name;
        let Some(partner) = &bootstrap.partner else {
            return Ok(true);
        };
        let other = self.node(partner)?.bootstrap.as_ref();
        let mutual = other.is_some_and(|other| {
            other.partner.as_ref() == Some(name)
                && (other.slots, other.target) == (bootstrap.slots, bootstrap.target)
        });
        if !mutual || partner == name {
            return unfit(
                name,
                &format!("a bootstrap shared with {partner}, of one size and to one level"),
                "one that is not",
            );
        }
        Ok(graph
            .find(partner)
            .is_some_and(|partner| partner.index() < index))
    }

    fn cache(&self, node: &Node, planned: &NodePlan) -> Result<(), PlanError> {
        let Some(family) = node.op.cache_family() else {
            return Ok(());
        };
        match self.caches.get(family.as_ref()) {
            Some(&level) if level == planned.level_out => Ok(()),
            Some(level) => unfit(
                &node.name,
                &format!("level {level}, as its cache {family} has"),
                &format!("level {}", planned.level_out),
            ),
            None => unfit(
                &node.name,
                &format!("a level for its cache {family}"),
                "none",
            ),
        }
    }

    /// What the graph rotates and multiplies by is listed, and nothing out of range.
    fn keys(&self, graph: &Graph, max: Level) -> Result<(), PlanError> {
        let slots = self.slots as i64;
        let rotations = self.rotations.iter();
        let levels = rotations.map(|(&steps, &level)| (steps, level));
        if let Some((steps, level)) = levels
            .chain(self.relinearization.map(|level| (0, level)))
            .chain(self.conjugation.map(|level| (0, level)))
            .find(|(steps, level)| !(-slots..slots).contains(steps) || *level > max)
        {
            return unfit(
                &format!("the key of rotation {steps}"),
                &format!("fewer than {slots} steps and level {max} at most"),
                &format!("{steps} steps at level {level}"),
            );
        }
        let families: BTreeSet<&str> = (graph.nodes().iter())
            .filter_map(|node| node.op.cache_family())
            .map(AsRef::as_ref)
            .collect();
        if let Some(family) =
            (self.caches.keys()).find(|family| !families.contains(family.as_str()))
        {
            return unfit(family, "a cache of the model", "one that it does not have");
        }
        let covered = self.clone().cover(graph)?;
        let listed = |plan: &Plan| {
            (
                plan.rotations.clone(),
                plan.relinearization,
                plan.conjugation,
            )
        };
        if listed(&covered) != listed(self) {
            return unfit("the list of keys", "all that the model needs", "fewer");
        }
        Ok(())
    }
}

/// A node's levels are in range and its depth apart.
fn levels(node: &Node, planned: &NodePlan, max: Level) -> Result<(), PlanError> {
    let NodePlan {
        level_in,
        level_out,
        ..
    } = planned;
    if *level_in > max || level_in.after(node.op.depth()) != Some(*level_out) {
        return unfit(
            &node.name,
            &format!(
                "{} levels from inputs to result, from level {max} at most",
                node.op.depth()
            ),
            &format!("level {level_in} to {level_out}"),
        );
    }
    Ok(())
}

/// A bootstrap serves its value and gets the levels that it takes.
fn refresh(
    graph: &Graph,
    node: &Node,
    planned: &NodePlan,
    bootstrap: &BootstrapPlan,
    max: Level,
) -> Result<(), PlanError> {
    let &BootstrapPlan { slots, target, .. } = bootstrap;
    if node.bound.is_none()
        || node.op.cache_family().is_some()
        || matches!(node.op, Op::Input { .. })
    {
        return unfit(&node.name, "no bootstrap, as its range is not known", "one");
    }
    let period = graph.period(node);
    if !slots.is_power_of_two() || slots < period || slots > graph.slots() {
        return unfit(
            &node.name,
            &format!(
                "a bootstrap of a power of two from {period} to {} slots",
                graph.slots()
            ),
            &format!("{slots} slots"),
        );
    }
    let needed = Level(bootstrap_input_levels(slots.ilog2()));
    if planned.level_out < needed || target > max {
        return unfit(
            &node.name,
            &format!("a bootstrap from level {needed} at least to level {max} at most"),
            &format!("one from level {} to level {target}", planned.level_out),
        );
    }
    Ok(())
}

fn expect<T: PartialEq + std::fmt::Display>(
    what: &str,
    expected: T,
    got: T,
) -> Result<(), PlanError> {
    if expected == got {
        return Ok(());
    }
    unfit(what, &expected.to_string(), &got.to_string())
}

fn unfit<T>(what: &str, expected: &str, got: &str) -> Result<T, PlanError> {
    Err(PlanError::Unfit {
        what: what.to_owned(),
        expected: expected.to_owned(),
        got: got.to_owned(),
    })
}
