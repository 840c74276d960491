//! What can go wrong between a checkpoint folder and a running model.

use std::path::PathBuf;

use thiserror::Error;

/// Failure while loading, checking or running a model. Every variant names the file or operand, what was expected and
/// what came.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file could not be read or written.
    #[error("{path}: cannot be read or written", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is larger than anything this format should need.
    #[error("{path}: expected at most {limit} bytes, got {got}", path = path.display())]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// Largest accepted size in bytes.
        limit: u64,
        /// Its size in bytes.
        got: u64,
    },
    /// A file is not the JSON that was expected.
    #[error("{path}: not the JSON that was expected", path = path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The parser's reason with line and column.
        source: serde_json::Error,
    },
    /// A configuration field is absent, out of range or names something this version does not run.
    #[error("{path}: field `{field}`: expected {expected}, got {got}", path = path.display())]
    Config {
        /// The configuration file.
        path: PathBuf,
        /// Name of the field.
        field: &'static str,
        /// Accepted values.
        expected: String,
        /// The value found, or `nothing`.
        got: String,
    },
    /// A weight file breaks the safetensors format or uses an element type that is not a float.
    #[error("{path}: expected safetensors with f32, f16 or bf16 tensors, got {got}", path = path.display())]
    Weights {
        /// The weight file.
        path: PathBuf,
        /// What is wrong with it.
        got: String,
    },
    /// The set of tensors does not fit the configuration.
    #[error(
        "tensor `{name}`: expected {expected}, got {got}; check that config.json belongs to these weights"
    )]
    Tensor {
        /// Name of the tensor in the checkpoint.
        name: String,
        /// Shape or state that the configuration asks for.
        expected: String,
        /// What the checkpoint holds.
        got: String,
    },
    /// A tokenizer file cannot be used with the model.
    #[error("{path}: expected {expected}, got {got}", path = path.display())]
    Tokenizer {
        /// The tokenizer file.
        path: PathBuf,
        /// What the model needs.
        expected: String,
        /// What the file says.
        got: String,
    },
    /// A token id lies outside the vocabulary.
    #[error("token {token}: expected an id below the vocabulary's size {vocabulary}")]
    Token {
        /// The id.
        token: u32,
        /// Number of tokens in the vocabulary.
        vocabulary: usize,
    },
    /// The context is full.
    #[error(
        "position {position}: expected a position below the model's context of {context}; shorten the prompt"
    )]
    ContextFull {
        /// Position asked for.
        position: usize,
        /// Number of positions of the model.
        context: usize,
    },
    /// A calibration was asked for with unusable samples or settings.
    #[error("calibration: {what}: expected {expected}, got {got}")]
    Calibration {
        /// The sample or setting.
        what: &'static str,
        /// What it should be.
        expected: String,
        /// What came.
        got: String,
    },
    /// A calibration table cannot be used.
    #[error(transparent)]
    Table(#[from] taciturn_approx::CalibrationError),
    /// More tokens than the model or its calibration were made for.
    #[error(
        "context: expected 2 to {expected} tokens (the model's and its calibration's limit), got {got}; ask for fewer tokens or calibrate a longer context"
    )]
    Context {
        /// The limit.
        expected: usize,
        /// Tokens asked for.
        got: usize,
    },
    /// A number of tokens side by side that passes cannot have.
    #[error(
        "pass: expected a number of tokens side by side of {sizes:?}, those that this model has room for, got {got}; take one of them, or \
         process tokens one by one"
    )]
    PassSize {
        /// What passes can have.
        sizes: Vec<usize>,
        /// What was asked for.
        got: usize,
    },
    /// Positions that no pass computes at once.
    #[error(
        "pass: expected positions from 1 to below {context}, at least one and all in one block of {tokens}, got {start} to below {end}; cut \
         them at the blocks"
    )]
    PassPositions {
        /// First position.
        start: usize,
        /// Position after the last.
        end: usize,
        /// Tokens side by side.
        tokens: usize,
        /// Positions that there are.
        context: usize,
    },
    /// An approximation that a site cannot have.
    #[error("{site}")]
    Site {
        /// Name of the site.
        site: String,
        /// Why not.
        source: taciturn_approx::ApproxError,
    },
    /// A site that the model does not have.
    #[error(
        "approximation: expected a site of this model, a pattern as `*.norm1`, or one of norm, exp, inverse, gelu and silu, got {got}; its sites are {expected}"
    )]
    UnknownSite {
        /// All sites.
        expected: String,
        /// What was asked for.
        got: String,
    },
    /// No approximation fits a calibrated interval.
    #[error(transparent)]
    Approximation(#[from] taciturn_approx::ApproxError),
    /// A simulated step failed.
    #[error(transparent)]
    Simulation(#[from] taciturn_graph::LogicalError),
    /// No plan could be made.
    #[error(transparent)]
    Plan(#[from] taciturn_graph::PlanError),
    /// The step's graph could not be built.
    #[error(transparent)]
    Graph(#[from] taciturn_graph::GraphError),
}
