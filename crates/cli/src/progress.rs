//! Progress on stderr, where that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

const TEMPLATE: &str = "{prefix}{msg} [{bar:30}] {percent}% {elapsed}";

/// A bar of `total` steps. Nothing is drawn where stderr is not a terminal.
pub fn bar(total: usize, message: impl Into<String>) -> ProgressBar {
    let style =
        ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total as u64)
        .with_style(style.progress_chars("=> "))
        .with_message(message.into())
}

/// A bar below text that is not finished yet.
pub fn bar_below(text: &str, total: usize, message: impl Into<String>) -> ProgressBar {
    let above = if text.is_empty() {
        String::new()
    } else {
        format!("{text}\n")
    };
    bar(total, message).with_prefix(above)
}
