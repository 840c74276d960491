//! New text on standard output as it comes.

use std::io::{IsTerminal, Write, stdout};

use anyhow::{Context, Result};
use taciturn_models::TextTokenizer;

/// New text, printed as it comes: piece by piece, or above the progress bar where both go to one terminal.
pub struct TextStream<'a> {
    tokenizer: &'a TextTokenizer,
    tokens: Vec<u32>,
    text: String,
    printed: usize,
    silent: bool,
    above_bar: bool,
}

impl<'a> TextStream<'a> {
    /// Text that begins empty; `silent` prints none of it.
    pub fn new(tokenizer: &'a TextTokenizer, silent: bool) -> Self {
        TextStream {
            tokenizer,
            tokens: Vec::new(),
            text: String::new(),
            printed: 0,
            silent,
            above_bar: stdout().is_terminal() && std::io::stderr().is_terminal(),
        }
    }

    /// Takes a token and prints what it completes.
    pub fn push(&mut self, token: u32) -> Result<()> {
        self.tokens.push(token);
        self.text = self.tokenizer.decode(&self.tokens)?;
        // A character whose bytes are not all there yet decodes to a replacement; it waits.
        if !self.above_bar && !self.text.ends_with(char::REPLACEMENT_CHARACTER) {
            self.print()?;
        }
        Ok(())
    }

    /// What a progress bar has to leave visible above it.
    pub fn shown(&self) -> &str {
        if self.above_bar && !self.silent {
            &self.text
        } else {
            ""
        }
    }

    fn print(&mut self) -> Result<()> {
        if self.silent {
            return Ok(());
        }
        let piece = self.text.get(self.printed..).unwrap_or_default();
        let mut out = stdout().lock();
        out.write_all(piece.as_bytes())
            .and_then(|()| out.flush())
            .context("standard output")?;
        self.printed = self.text.len();
        Ok(())
    }

    /// Prints what is left; the whole text.
    pub fn finish(&mut self) -> Result<String> {
        self.print()?;
        if !self.silent {
            writeln!(stdout()).context("standard output")?;
        }
        Ok(std::mem::take(&mut self.text))
    }
}
