//! What sites are approximated by where somebody says so.

use std::collections::BTreeMap;

use crate::error::ModelError;

/// Sites with the names of their approximations, as [`taciturn_approx::Named::parse`] reads them; of several entries for a site the last holds.
///
/// A site is meant by its name in the calibration table (`layer0.norm1.variance`, or without what is measured, `layer0.norm1`), by its part of the
/// model (`layer0.softmax.exp`, `layer0.softmax.inverse1`, `layer0.gelu`) or by its function (`norm`, `exp`, `inverse`, `gelu`, `silu`); in all of
/// these a `*` stands for any text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection(Vec<(String, String)>);

impl Selection {
    /// From sites or patterns and approximations.
    pub fn new(entries: Vec<(String, String)>) -> Self {
        Selection(entries)
    }

    /// With approximations for sites by their names in the calibration table. Where a site is selected already, it keeps that.
    pub fn with_others(&self, labels: BTreeMap<String, String>) -> Self {
        let own = self.0.iter().cloned();
        Selection(labels.into_iter().chain(own).collect())
    }

    /// The approximation that is selected for a site of these names.
    pub(super) fn find(&self, names: &[String]) -> Option<&str> {
        let entries = self.0.iter().rev();
        let mut found =
            entries.filter(|(pattern, _)| names.iter().any(|name| matches(pattern, name)));
        found
            .next()
            .map(|(_, approximation)| approximation.as_str())
    }

    /// Every entry has to mean a site; `sites` are the names of each.
    pub(super) fn check(&self, sites: &[[String; 4]]) -> Result<(), ModelError> {
        let meant = |pattern: &str| sites.iter().flatten().any(|name| matches(pattern, name));
        match self.0.iter().find(|(pattern, _)| !meant(pattern)) {
            None => Ok(()),
            Some((got, _)) => {
                let names: Vec<&str> = sites.iter().map(|names| names[0].as_str()).collect();
                Err(ModelError::UnknownSite {
                    expected: names.join(", "),
                    got: got.clone(),
                })
            }
        }
    }
}

/// Whether a name is a pattern's, in which every `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, mut rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(before) else {
        return false;
    };
    while let Some((part, after)) = rest.split_once('*') {
        // The first place leaves most to the parts after it.
        let Some(at) = left.find(part) else {
            return false;
        };
        (left, rest) = (&left[at + part.len()..], after);
    }
    left.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_everywhere() {
        for (pattern, name, expected) in [
            ("gelu", "gelu", true),
            ("gelu", "layer0.gelu", false),
            ("*.norm1", "layer12.norm1", true),
            ("*.norm1", "layer12.norm1.variance", false),
            ("layer*.norm*", "layer3.norm2.variance", true),
            ("*", "", true),
            ("a*a", "a", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("*.softmax.inverse*", "layer1.softmax.inverse0", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn the_last_entry_holds_and_others_stay() {
        let entry = |site: &str, name: &str| (site.to_owned(), name.to_owned());
        let selection = Selection::new(vec![entry("norm", "a"), entry("*.norm1", "b")]);
        let names = |site: &str| [site.to_owned(), "norm".to_owned()];
        assert_eq!(selection.find(&names("layer0.norm1")), Some("b"));
        assert_eq!(selection.find(&names("layer0.norm2")), Some("a"));
        let labels = [entry("layer0.norm1", "c"), entry("layer0.hidden", "d")];
        let all = selection.with_others(labels.into());
        assert_eq!(all.find(&names("layer0.norm1")), Some("b"));
        assert_eq!(all.find(&["layer0.hidden".to_owned()]), Some("d"));
        assert_eq!(selection.find(&["layer0.hidden".to_owned()]), None);
    }
}
