#!/usr/bin/env python3
"""Errors of products in bfloat16: ours beside torch's autocast, both against torch in double, tensor by tensor.

    precision.py BENCH_PRECISION [LENGTH BATCH [HIDDEN LAYERS HEADS INTERMEDIATE VOCAB ACT]]      (needs torch and transformers)

The network is transformers' BertForMaskedLM with random weights, larger than at the start of training, so that attention is not uniform;
no dropout. An error is the norm of the difference over the norm of the tensor. The key's biases, whose gradient is 0, are left out.
"""
import subprocess
import sys
import tempfile

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM

bench, arg = sys.argv[1], sys.argv[2:] + ["256", "8", "256", "6", "4", "512", "2000", "relu"][len(sys.argv) - 2:]
length, batch, hidden, layers, heads, inner, vocab = (int(x) for x in arg[:7])
act = arg[7]
torch.manual_seed(1)
rng = np.random.default_rng(1)
model = BertForMaskedLM(BertConfig(
    vocab_size=vocab, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=inner,
    max_position_embeddings=length, hidden_act=act, hidden_dropout_prob=0, attention_probs_dropout_prob=0, layer_norm_eps=1e-12,
    initializer_range=0.05)).train()
with torch.no_grad():
    for n, p in model.named_parameters():
        if "LayerNorm" in n or n.endswith("bias"):
            p.add_(torch.tensor(rng.normal(0, 0.1, p.shape), dtype=p.dtype))
ids = rng.integers(2, vocab, (batch, length))
labels = np.where(rng.random((batch, length)) < 0.15, ids, -100)
ids[labels >= 0] = 1
row = np.flatnonzero(labels.ravel() >= 0)


def run(dtype=None):
    model.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype is not None):
        r = model(input_ids=torch.tensor(ids), attention_mask=torch.ones(batch, length, dtype=torch.int64), labels=torch.tensor(labels),
                  output_hidden_states=True)
    r.loss.backward()
    got = {f"hidden{i}": h.detach().double().numpy().reshape(-1, hidden) for i, h in enumerate(r.hidden_states)}
    got["logits"] = r.logits.detach().double().numpy().reshape(-1, vocab)[row]
    got["loss"] = np.array([r.loss.item()])
    got.update({"grad." + n: p.grad.double().numpy().copy() for n, p in model.named_parameters()})
    return got


autocast = run(torch.bfloat16)
weights = {n: p.detach().numpy().copy() for n, p in model.named_parameters()}
model.double()
exact = run()


def write(f, name, x, kind):
    x = np.ascontiguousarray(x).astype("<" + kind)
    f.write(f"{name} {kind} {x.size}\n".encode() + x.tobytes())


with tempfile.NamedTemporaryFile() as f:
    write(f, "config", np.array([vocab, hidden, layers, heads, inner, length, {"relu": 1, "gelu": 2}[act]]), "i4")
    for n, p in weights.items():
        write(f, "param." + n, p, "f4")
    write(f, "offset", np.arange(batch + 1) * length, "u4")
    write(f, "id", ids, "u4")
    write(f, "row", row, "u4")
    write(f, "target", labels.ravel()[row], "u4")
    for n, x in exact.items():
        write(f, n, x, "f4")
    f.flush()
    out = subprocess.run([bench, f.name], check=True, capture_output=True, text=True).stdout
print(f"torch {torch.__version__}, length {length}, batch {batch}, {layers} layers of {hidden}, {act}")
print("tensor\tfloat32\tbf16\ttorch autocast\tratio")
ratios = []
for line in out.splitlines():
    name, plain, ours = line.split()
    if "key.bias" in name:
        continue
    want = exact[name]
    theirs = abs(autocast[name][0] / want[0] - 1) if name == "loss" else np.linalg.norm(autocast[name] - want) / np.linalg.norm(want)
    print(f"{name}\t{plain}\t{ours}\t{theirs:.3e}\t{float(ours) / theirs:.2f}")
    if name != "loss":
        ratios.append(float(ours) / theirs)
print(f"ratio of ours to torch's: median {np.median(ratios):.2f}, largest {max(ratios):.2f}, {sum(x > 1 for x in ratios)} of {len(ratios)} above 1")
