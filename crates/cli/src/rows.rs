//! `--rows`: results as soon as they are known, so that a run that is cut off has not lost them.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

/// A file that gets a line of JSON for each result, or none.
pub struct Rows(Option<(PathBuf, File)>);

/// One result.
#[derive(Serialize)]
struct Row<'a, T> {
    row: &'a str,
    #[serde(flatten)]
    result: &'a T,
}

impl Rows {
    /// Adds to the file that `--rows` names.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let open = |path: &Path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.with_context(|| {
                format!("--rows {}: expected a file to add lines to", path.display())
            })?;
            Ok::<_, anyhow::Error>((path.to_owned(), file))
        };
        path.map(open).transpose().map(Self)
    }

    /// One line, written at once: what it is, and the fields of a result.
    pub fn add(&mut self, row: &str, result: &impl Serialize) -> Result<()> {
        let Some((path, file)) = &mut self.0 else {
            return Ok(());
        };
        let mut line = serde_json::to_string(&Row { row, result })?;
        line.push('\n');
        file.write_all(line.as_bytes())
            .with_context(|| format!("--rows {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Time {
        ms: f64,
    }

    #[test]
    fn lines_are_there_at_once_and_are_added() {
        let path = std::env::temp_dir().join(format!("taciturn-rows-{}", std::process::id()));
        let mut rows = Rows::open(Some(&path)).unwrap();
        rows.add("ntt", &Time { ms: 0.5 }).unwrap();
        let one = "{\"row\":\"ntt\",\"ms\":0.5}\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), one);
        let mut rows = Rows::open(Some(&path)).unwrap();
        rows.add("ntt", &Time { ms: 0.5 }).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), one.repeat(2));
        std::fs::remove_file(&path).unwrap();
        assert!(
            Rows::open(None)
                .unwrap()
                .add("ntt", &Time { ms: 0.5 })
                .is_ok()
        );
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = Rows::open(Some(Path::new("/no/such/folder/rows")))
            .err()
            .unwrap();
        assert!(error.to_string().contains("--rows /no/such/folder/rows"));
    }
}
