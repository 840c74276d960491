//! Which first choices a logit error could have changed.

use serde::Serialize;

/// A first choice is decided where the clear model's two largest logits are this many times the largest logit error apart.
const DECIDED: f64 = 4.0;

/// The most likely token after one position.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Choice {
    /// Predictions made up to this one.
    pub position: usize,
    /// The clear model's choice.
    pub clear: u32,
    /// The choice that is compared with it.
    pub got: u32,
    /// How far the clear model's two largest logits are apart.
    pub margin: f64,
}

impl Choice {
    /// Whether both chose the same token.
    pub fn agrees(&self) -> bool {
        self.clear == self.got
    }
}

/// First choices, those apart that are too close to call, or differ.
#[derive(Debug, Serialize)]
pub struct Agreement {
    /// Positions whose clear margin exceeds [`DECIDED`] times the largest logit error.
    decided: usize,
    /// Those of them with equal choices.
    decided_agreed: usize,
    /// All others, and any decided one that differs.
    listed: Vec<Choice>,
}

impl Agreement {
    /// Sorts the choices under the largest logit error over all of them.
    pub fn new(choices: Vec<Choice>, error: f64) -> Self {
        let decided = |choice: &Choice| choice.margin > DECIDED * error;
        let count = choices.iter().filter(|choice| decided(choice)).count();
        let agreed = |choice: &&Choice| decided(choice) && choice.agrees();
        Agreement {
            decided: count,
            decided_agreed: choices.iter().filter(agreed).count(),
            listed: choices
                .into_iter()
                .filter(|choice| !(decided(choice) && choice.agrees()))
                .collect(),
        }
    }

    /// One line, and one for every listed position.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} of {} positions agree whose clear margin is above {DECIDED} times the largest logit error\n",
            self.decided_agreed, self.decided
        );
        for choice in &self.listed {
            let verdict = if choice.agrees() { "agrees" } else { "differs" };
            text += &format!(
                "  position {}: margin {:.2e}, {verdict} (token {}, clear {})\n",
                choice.position, choice.margin, choice.got, choice.clear
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_too_close_to_call_are_listed_apart() {
        let choice = |position, got, margin| Choice {
            position,
            clear: 5,
            got,
            margin,
        };
        let choices = vec![choice(1, 5, 1.0), choice(2, 6, 0.3), choice(3, 5, 0.4)];
        let agreement = Agreement::new(choices.clone(), 0.1);
        assert_eq!((agreement.decided, agreement.decided_agreed), (1, 1));
        let listed: Vec<_> = agreement.listed.iter().map(|c| c.position).collect();
        assert_eq!(listed, [2, 3]);
        // A smaller error decides all three, and shows the one that differs.
        let agreement = Agreement::new(choices, 0.01);
        assert_eq!((agreement.decided, agreement.decided_agreed), (3, 2));
        assert_eq!(agreement.listed.len(), 1);
        assert!(agreement.text().contains("position 2") && agreement.text().contains("differs"));
    }
}
