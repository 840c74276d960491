//! Errors as the user sees them: what happened, a hint, an exit code.

use std::process::ExitCode;

use taciturn_client::ClientError;
use taciturn_graph::{LogicalError, PlanError};
use taciturn_models::{CALIBRATION_FILE, ModelError};
use thiserror::Error;

/// Wrong usage: the command line asks for something that cannot be. Exit code 2.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// A wrong command line, as an error.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    Usage(message.into()).into()
}

/// Prints an error with a hint and says how to exit.
pub fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    if let Some(hint) = error.chain().find_map(hint) {
        eprintln!("hint: {hint}");
    }
    let wrong_usage = error.chain().any(|cause| cause.is::<Usage>());
    ExitCode::from(if wrong_usage { 2 } else { 1 })
}

const RECALIBRATE: &str = "recalibrate with `taciturn calibrate --model DIR --text FILE` on text like the prompt, \
                           or with a larger --margin";

fn hint(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    if let Some(ClientError::LeftInterval { .. }) = cause.downcast_ref() {
        return Some(RECALIBRATE);
    }
    if let Some(LogicalError::LeftInterval(_)) = cause.downcast_ref() {
        return Some(RECALIBRATE);
    }
    if let Some(PlanError::TooDeep { .. }) = cause.downcast_ref() {
        return Some(
            "measure the bounds of the model's values with `taciturn calibrate --model DIR --text FILE`",
        );
    }
    match cause.downcast_ref()? {
        ModelError::Io { path, .. } if path.ends_with(CALIBRATION_FILE) => Some(
            "this model has no table of ranges yet: make it with `taciturn calibrate --model DIR --text FILE`",
        ),
        ModelError::Io { .. } => Some(
            "--model takes a Hugging Face folder with config.json, model.safetensors (or its shards) and tokenizer.json",
        ),
        ModelError::Table(_) | ModelError::Calibration { .. } => Some(RECALIBRATE),
        _ => None,
    }
}
