//! The prompt's tokens, if there is room for them and for what is asked.

use anyhow::Result;

use crate::checkpoint::Loaded;
use crate::failure::usage;

/// The tokens of a text that the server may know.
pub fn public(loaded: &Loaded, text: Option<&str>, new_tokens: usize) -> Result<Vec<u32>> {
    let ids = match text {
        Some(text) => loaded.tokenizer.encode(text)?,
        None => Vec::new(),
    };
    // Beside the beginning-of-text token and a prompt of one.
    let most = loaded.longest_context().saturating_sub(2 + new_tokens);
    if ids.len() > most {
        return Err(usage(format!(
            "--public-prefix: expected at most {most} tokens beside a prompt and {new_tokens} new tokens, got {}; shorten it; {}",
            ids.len(),
            room_of(loaded)
        )));
    }
    Ok(ids)
}

/// The beginning-of-text token, the public text's and the prompt's, if there is room for what is asked.
pub fn tokens(loaded: &Loaded, prompt: &str, new_tokens: usize) -> Result<Vec<u32>> {
    let ids = loaded.tokenizer.encode(prompt)?;
    if ids.is_empty() {
        return Err(usage(
            "--prompt: expected text of at least one token, got none; write the beginning of what is to be continued",
        ));
    }
    let longest = loaded.longest_context() - loaded.public.len();
    if let Some(refusal) = room(longest, ids.len(), new_tokens) {
        return Err(usage(format!("{refusal}; {}", room_of(loaded))));
    }
    Ok([&[loaded.checkpoint.config.bos][..], &loaded.public, &ids].concat())
}

/// What is wrong with a prompt of `prompt` tokens and `new` more beside a beginning-of-text token, where `context` have room in all.
fn room(context: usize, prompt: usize, new: usize) -> Option<String> {
    // Beside the beginning-of-text token and the least that the other may be.
    let most = context.saturating_sub(2);
    if new > most {
        return Some(format!(
            "--max-new-tokens: expected at most {most}, got {new}; generate fewer"
        ));
    }
    if prompt > most {
        return Some(format!(
            "--prompt: expected at most {most} tokens, got {prompt}; shorten it"
        ));
    }
    (1 + prompt + new > context).then(|| {
        format!(
            "--prompt and --max-new-tokens: expected at most {} tokens together, got {prompt} and {new}; shorten the prompt or take \
             --max-new-tokens {}",
            context - 1,
            context - 1 - prompt
        )
    })
}

/// Where the room comes from, and how there is more.
fn room_of(loaded: &Loaded) -> String {
    let (folder, longest) = (loaded.folder.display(), loaded.longest_context());
    if loaded.calibration.context < loaded.checkpoint.config.positions {
        format!(
            "the model in {folder} is calibrated for {longest} tokens in all, the beginning-of-text token included; \
             `taciturn calibrate --context N` makes it more"
        )
    } else {
        format!(
            "the model in {folder} has {longest} positions in all, the beginning-of-text token's included"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::room;

    #[test]
    fn the_flag_that_asks_too_much_is_named() {
        assert_eq!(room(16, 10, 5), None);
        let named = |prompt, new| room(16, prompt, new).expect("too much");
        assert!(named(1, 15).starts_with("--max-new-tokens: expected at most 14, got 15"));
        assert!(named(15, 1).starts_with("--prompt: expected at most 14 tokens, got 15"));
        let both = named(10, 6);
        assert!(both.starts_with("--prompt and --max-new-tokens: expected at most 15 tokens"));
        assert!(both.ends_with("take --max-new-tokens 5"), "{both}");
    }
}
