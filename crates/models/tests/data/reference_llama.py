"""Writes the Llama folders of this directory: small random checkpoints saved by Hugging Face's transformers, with the logits of its models.

Needs torch and transformers (made with 2.15.0 and the version named in each config.json). Run it from here: python3 reference_llama.py
"""
import json, os
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

TOKENS = [0, 5, 16, 5, 2, 11, 7, 7, 1, 3, 12, 9]
COMMON = dict(vocab_size=17, hidden_size=12, intermediate_size=20, num_hidden_layers=2, max_position_embeddings=len(TOKENS),
              bos_token_id=0, eos_token_id=[1, 2], rms_norm_eps=1e-3)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)

for folder, config, model, shard in [
    ("llama_grouped", LlamaConfig(**COMMON, num_attention_heads=6, num_key_value_heads=2, head_dim=2), LlamaForCausalLM, "10GB"),
    ("llama_biased_scaled", LlamaConfig(**COMMON, num_attention_heads=2, num_key_value_heads=1, head_dim=8, attention_bias=True, mlp_bias=True,
                                        tie_word_embeddings=True, rope_parameters=dict(LLAMA3, rope_theta=100.0)), LlamaForCausalLM, "10GB"),
    ("qwen2", Qwen2Config(**COMMON, num_attention_heads=2, num_key_value_heads=2, tie_word_embeddings=True), Qwen2ForCausalLM, "4KB"),
    ("qwen3", Qwen3Config(**COMMON, num_attention_heads=4, num_key_value_heads=2, head_dim=6), Qwen3ForCausalLM, "10GB"),
]:
    torch.manual_seed(len(folder))
    net = model(config).float().eval()
    with torch.no_grad():
        for name, weight in net.named_parameters():
            weight.normal_(1.0 if "norm" in name else 0.0, 0.3)
        net.tie_weights()
        # Weights as stored, computed in double precision.
        os.makedirs(folder, exist_ok=True)
        net.save_pretrained(folder, max_shard_size=shard)
        logits = net.double()(torch.tensor([TOKENS])).logits[0]
    json.dump(dict(tokens=TOKENS, logits=[[round(x, 9) for x in row] for row in logits.tolist()]), open(f"{folder}/logits.json", "w"))
    os.remove(f"{folder}/generation_config.json")
