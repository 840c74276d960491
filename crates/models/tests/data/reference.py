"""Writes the reference folders of this directory: small GPT-2 checkpoints and their logits by a textbook forward pass.

Needs numpy only; shares nothing with the Rust code. Run it from here: python3 reference.py
"""
import json, math, os, struct
import numpy as np

SHAPE = dict(n_embd=12, n_layer=2, n_head=3, n_inner=20, n_positions=9, vocab_size=17)
TOKENS = [0, 5, 16, 5, 2, 11, 7, 7, 1]


def tensors(rng, tied):
    d, f = SHAPE["n_embd"], SHAPE["n_inner"]
    shapes = {"wte.weight": (SHAPE["vocab_size"], d), "wpe.weight": (SHAPE["n_positions"], d)}
    for i in range(SHAPE["n_layer"]):
        shapes |= {f"h.{i}.ln_1.weight": (d,), f"h.{i}.ln_1.bias": (d,), f"h.{i}.ln_2.weight": (d,), f"h.{i}.ln_2.bias": (d,),
                   f"h.{i}.attn.c_attn.weight": (d, 3 * d), f"h.{i}.attn.c_attn.bias": (3 * d,),
                   f"h.{i}.attn.c_proj.weight": (d, d), f"h.{i}.attn.c_proj.bias": (d,),
                   f"h.{i}.mlp.c_fc.weight": (d, f), f"h.{i}.mlp.c_fc.bias": (f,),
                   f"h.{i}.mlp.c_proj.weight": (f, d), f"h.{i}.mlp.c_proj.bias": (d,)}
    shapes |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
    if not tied:
        shapes["lm_head.weight"] = shapes["wte.weight"]
    return {name: rng.normal(0.8 if ".ln_" in name and name.endswith("weight") else 0.1, 0.6, shape) for name, shape in shapes.items()}


def forward(T, tokens, activation, eps):
    def norm(x, name):
        return np.array([(v - v.mean()) / math.sqrt(((v - v.mean()) ** 2).mean() + eps) for v in x]) * T[name + ".weight"] + T[name + ".bias"]

    def act(v):
        if activation == "gelu":
            return 0.5 * v * (1 + math.erf(v / math.sqrt(2)))
        return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3)))

    d, heads = SHAPE["n_embd"], SHAPE["n_head"]
    c = d // heads
    x = T["wte.weight"][tokens] + T["wpe.weight"][: len(tokens)]
    for i in range(SHAPE["n_layer"]):
        p = f"h.{i}."
        qkv = norm(x, p + "ln_1") @ T[p + "attn.c_attn.weight"] + T[p + "attn.c_attn.bias"]
        q, k, v = np.split(qkv, 3, axis=1)
        mix = np.zeros_like(x)
        for h in range(heads):
            lanes = slice(h * c, (h + 1) * c)
            for t in range(len(tokens)):
                w = np.exp(k[: t + 1, lanes] @ q[t, lanes] / math.sqrt(c))
                mix[t, lanes] = w @ v[: t + 1, lanes] / w.sum()
        x = x + mix @ T[p + "attn.c_proj.weight"] + T[p + "attn.c_proj.bias"]
        hidden = norm(x, p + "ln_2") @ T[p + "mlp.c_fc.weight"] + T[p + "mlp.c_fc.bias"]
        x = x + np.vectorize(act)(hidden) @ T[p + "mlp.c_proj.weight"] + T[p + "mlp.c_proj.bias"]
    return norm(x, "ln_f") @ T.get("lm_head.weight", T["wte.weight"]).T


def encode(array, kind):
    if kind == "F32":
        return array.astype("<f4").tobytes()
    if kind == "F16":
        return array.astype("<f2").tobytes()
    return (array.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()


def decode(data, shape, kind):
    if kind == "BF16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").astype(float).reshape(shape)
    return np.frombuffer(data, "<f4" if kind == "F32" else "<f2").astype(float).reshape(shape)


def safetensors(path, arrays, kind):
    header, body = {}, b""
    for name, array in arrays.items():
        data = encode(array, kind)
        header[name] = dict(dtype=kind, shape=list(array.shape), data_offsets=[len(body), len(body) + len(data)])
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)


for folder, kind, tied, prefix, activation, shards in [
    ("tied_f32", "F32", True, "transformer.", "gelu_new", 1),
    ("untied_f16", "F16", False, "", "gelu", 1),
    ("sharded_bf16", "BF16", False, "transformer.", "gelu_new", 3),
]:
    T = tensors(np.random.default_rng(len(folder)), tied)
    os.makedirs(folder, exist_ok=True)
    config = dict(model_type="gpt2", **SHAPE, activation_function=activation, layer_norm_epsilon=1e-3, tie_word_embeddings=tied,
                  bos_token_id=0, eos_token_id=0)
    json.dump(config, open(f"{folder}/config.json", "w"), indent=1)
    named = {(name if name.startswith("lm_head") else prefix + name): array for name, array in T.items()}
    if shards == 1:
        safetensors(f"{folder}/model.safetensors", named, kind)
    else:
        index, names = {}, list(named)
        for s in range(shards):
            file = f"model-{s + 1:05}-of-{shards:05}.safetensors"
            part = {n: named[n] for n in names[s::shards]}
            safetensors(f"{folder}/{file}", part, kind)
            index |= {n: file for n in part}
        json.dump(dict(metadata={}, weight_map=index), open(f"{folder}/model.safetensors.index.json", "w"), indent=1)
    stored = {name: decode(encode(array, kind), array.shape, kind) for name, array in T.items()}
    logits = forward(stored, TOKENS, activation, 1e-3)
    json.dump(dict(tokens=TOKENS, logits=logits.round(12).tolist()), open(f"{folder}/logits.json", "w"))
