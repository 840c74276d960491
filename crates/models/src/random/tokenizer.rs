//! A tokenizer that needs no training.

use serde_json::{Value, json};

/// A byte-level BPE without merges: id 0 ends a text, id 1 + n is byte n.
pub(super) fn byte_tokenizer() -> Value {
    // Bytes that do not print stand for the letters from U+0100 on, in order.
    let mut unprintable = 0;
    let mut vocabulary = serde_json::Map::from_iter([("<|endoftext|>".to_owned(), json!(0))]);
    for byte in 0..=255u8 {
        let letter = if matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) {
            char::from(byte)
        } else {
            unprintable += 1;
            char::from_u32(0xff + unprintable).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        vocabulary.insert(letter.to_string(), json!(u32::from(byte) + 1));
    }
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [{
            "id": 0, "content": "<|endoftext|>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true
        }],
        "normalizer": null,
        "pre_tokenizer": byte_level,
        "post_processor": null,
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocabulary, "merges": []
        }
    })
}
