//! What users demand of one value.

use crate::Problem;

/// What the users taken so far demand of a value. Users below the highest demand have paid for their drop; those at it pay when a
/// higher demand comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Demand {
    /// Highest level demanded of the value as it is computed.
    pub computed: u32,
    /// How many users are at exactly that level.
    pub computed_users: u32,
    /// Highest level demanded of the refreshed value; 0 where nobody uses that.
    pub refreshed: u32,
    /// How many users are at exactly that level.
    pub refreshed_users: u32,
    /// Its refresh is shared with a later node's and paid there; nobody before that node can use it.
    pub paired: bool,
    /// Its family of caches has its level: nobody can demand more.
    pub fixed: bool,
}

impl Demand {
    /// One more user of the value as computed: the drops that it costs, `None` where the level is fixed below.
    pub fn use_computed(&mut self, level: u32, problem: &Problem<'_>) -> Option<f64> {
        if level > self.computed && self.fixed {
            return None;
        }
        let (top, users) = (&mut self.computed, &mut self.computed_users);
        Some(one_more(top, users, level, problem))
    }

    /// One more user of the refreshed value: the drops that it costs.
    pub fn use_refreshed(&mut self, level: u32, problem: &Problem<'_>) -> f64 {
        let (top, users) = (&mut self.refreshed, &mut self.refreshed_users);
        one_more(top, users, level, problem)
    }

    /// Computes the value at a level at least: the drops that it costs.
    pub fn raise_computed(&mut self, level: u32, problem: &Problem<'_>) -> f64 {
        raise(&mut self.computed, &mut self.computed_users, level, problem)
    }

    /// Refreshes the value to a level at least: the drops that it costs.
    pub fn raise_refreshed(&mut self, level: u32, problem: &Problem<'_>) -> f64 {
        raise(
            &mut self.refreshed,
            &mut self.refreshed_users,
            level,
            problem,
        )
    }

    /// What it costs at most to go on with this demand wherever one can go on with `other`; `None` where there is no such way.
    pub fn excess(&self, other: &Demand, problem: &Problem<'_>) -> Option<f64> {
        let worse = self.computed > other.computed
            || self.refreshed > other.refreshed
            || (self.paired && !other.paired)
            || ((self.fixed || other.fixed)
                && (self.fixed, self.computed) != (other.fixed, other.computed));
        if worse {
            return None;
        }
        let pay = |level: u32, users: u32, at: u32, paid: u32| {
            // Users that would have to drop if the level rose, less those that the other would pay for too.
            let users = if level < at {
                users
            } else {
                users.saturating_sub(paid)
            };
            f64::from(users) * problem.drop_ms(level)
        };
        Some(
            pay(
                self.computed,
                self.computed_users,
                other.computed,
                other.computed_users,
            ) + pay(
                self.refreshed,
                self.refreshed_users,
                other.refreshed,
                other.refreshed_users,
            ),
        )
    }
}

fn one_more(top: &mut u32, users: &mut u32, level: u32, problem: &Problem<'_>) -> f64 {
    if level < *top {
        return problem.drop_ms(level);
    }
    let drops = raise(top, users, level, problem);
    *users += 1;
    drops
}

fn raise(top: &mut u32, users: &mut u32, level: u32, problem: &Problem<'_>) -> f64 {
    if level <= *top {
        return 0.0;
    }
    let drops = f64::from(*users) * problem.drop_ms(*top);
    (*top, *users) = (level, 0);
    drops
}
