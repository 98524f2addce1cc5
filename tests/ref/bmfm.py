#!/usr/bin/env python3
"""The encoder of BMFM-RNA in float64, cell by cell, written from its equations; gradients are autograd.py's.

As a module:
    config, p = load("model.dir")              config.json and model.safetensors; p: name -> V
    states = encode(config, p, ids, values)    list of [T, C] of one cell: embeddings, block 1 .. L; values: of its tokens, or None
    mlm_loss(config, p, cells), class_loss(config, p, cells), gene_loss(config, p, cells)
                                               mean loss of cells = [(ids, values, targets), ...]; loss.backward() fills p[...].grad

As a program:
    bmfm.py golden OUT.bin                     the cases below, for tests/unit/test_bmfm.c
    bmfm.py embed MODEL TOKENS.tsv X.tsv LAYER POSITION,...    columns cell,token[,value] of the tokens, and cell and x of scembed
"""
import os
import sys

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import autograd as ag  # noqa: E402
import bert  # noqa: E402
from autograd import V  # noqa: E402

ENCODER = "core.encoder."
VALUE = ENCODER + "embeddings.expressions_embeddings."


def load(directory):
    config, arrays = bert.load(directory)
    return config, {n: V(a) for n, a in arrays.items()}


def linear(p, name, x):
    y = x @ p[name + ".weight"].T
    return y + p[name + ".bias"] if name + ".bias" in p else y


def layer_norm(p, name, x, eps):
    d = x - x.mean(-1, True)
    return d / ag.sqrt((d ** 2).mean(-1, True) + eps) * p[name + ".weight"] + p[name + ".bias"]


def rms_norm(p, name, x, eps):
    return x / ag.sqrt((x ** 2).mean(-1, True) + eps) * p[name + ".scale"]


def encode_values(config, p, values, name=VALUE):
    """The vectors [T, C] that the values add to the embeddings."""
    kind, x = config["value_encoder"], np.asarray(values, np.float64)
    if kind == "mlp":
        return ag.leaky(linear(p, name + "dense_2", ag.leaky(linear(p, name + "dense_1", V(x[:, None])))))
    specials = config.get("value_specials", 36)
    own_zero = not config.get("value_zero_is_number", False)
    coded = (x < 0) | ((x == 0) & own_zero)
    row = np.where(x < 0, -x - 1, specials).astype(int)[coded]
    pad = config.get("pad_token_id", 0) if kind == "periodic" else 2
    table = p[name + "special_token_embeddings.weight"]
    rows = table[row] * (row != pad)[:, None] + table.x[row] * (row == pad)[:, None]  # torch's padding_idx has no gradient
    order = np.argsort(np.concatenate([np.flatnonzero(coded), np.flatnonzero(~coded)]))
    number = V(x[~coded][:, None])
    if kind == "mlp_special":
        u = ag.leaky(linear(p, name + "dense_1", number))
        return linear(p, name + "dense_2", ag.leaky(ag.join([rows, u], 0)[order]))
    y, features = number - config.get("value_shift", 0), []
    if name + "basis" in p:
        phase = y * p[name + "basis"]
        features += [ag.sin(phase), ag.cos(phase)]
    if name + "sigmoid_centers" in p:
        features.append(ag.sigmoid(y * p[name + "sigmoid_orientations"].x - p[name + "sigmoid_centers"].x))
    return ag.join([rows, linear(p, name + "dense", ag.join(features, 1))], 0)[order]


def attention(config, p, name, x):
    T, C = x.shape
    NH = config["num_attention_heads"]
    D = C // NH
    q, k, v = (linear(p, name + "c_attn", x).reshape(T, 3, NH, D)[:, i].turn(1, 0, 2) for i in range(3))
    y = ag.softmax(q @ k.turn(0, 2, 1) / np.sqrt(D)) @ v
    return linear(p, name + "proj", y.turn(1, 0, 2).reshape(T, C))


def block(config, p, i, x):
    name, eps = f"{ENCODER}blocks.{i}.", config.get("rms_norm_eps", 1e-5)
    first = rms_norm(p, name + "rms_1", x, eps) if i > 0 or config.get("first_norm", False) else x
    x = x + attention(config, p, name + "attn.", first)
    u = rms_norm(p, name + "rms_2", x, eps)
    gate = linear(p, name + "mlp.c_fc1", u)
    return x + linear(p, name + "mlp.c_proj", gate * ag.sigmoid(gate) * linear(p, name + "mlp.c_fc2", u))


def encode(config, p, ids, values):
    ids, gene = np.asarray(ids, int), p[ENCODER + "embeddings.genes_embeddings.weight"]
    pad = (ids == config.get("pad_token_id", 0))[:, None]
    e = gene[ids] * ~pad + gene.x[ids] * pad
    if config.get("value_encoder", "none") != "none":
        e = e + encode_values(config, p, values)
    states = [layer_norm(p, ENCODER + "embeddings.LayerNorm", e, config["layer_norm_eps"])]
    for i in range(config["num_hidden_layers"]):
        states.append(block(config, p, i, states[-1]))
    return states


# ---- losses ----

def transform(config, p, x, name="cls.predictions.transform."):
    act = ag.relu if config.get("hidden_act") == "relu" else ag.gelu
    return layer_norm(p, name + "LayerNorm", act(linear(p, name + "dense", x)), config["layer_norm_eps"])


def cross_entropy(z, target):
    """Of each row."""
    return ag.logsumexp(z)[:, 0] - z[np.arange(len(target)), np.asarray(target, int)]


def mean(parts):
    total, n = V(0), 0
    for losses in parts:
        total, n = total + losses.sum(), n + losses.x.size
    return total / n


def mlm_loss(config, p, cells):
    """targets: pairs of a position and a token."""
    parts = []
    for ids, values, targets in cells:
        if len(targets):
            at, token = np.asarray(targets, int).T
            z = transform(config, p, encode(config, p, ids, values)[-1][at]) @ p["cls.predictions.decoder.weight"].T
            parts.append(cross_entropy(z + p["cls.predictions.bias"], token))
    return mean(parts)


def pool(p, x):
    return ag.tanh(linear(p, "core.pooler.dense", x[:1]))


def class_loss(config, p, cells):
    """targets: the class of the cell, read from its first token through the pooler."""
    return mean([cross_entropy(linear(p, "classifier", pool(p, encode(config, p, i, v)[-1])), [t]) for i, v, t in cells])


def gene_loss(config, p, cells):
    """targets: the class of each token."""
    return mean([cross_entropy(linear(p, "classifier", encode(config, p, i, v)[-1]), t) for i, v, t in cells])


# ---- the golden file ----

V_, C, L = 41, 8, 2
CASES = [
    {"name": "periodic", "value_encoder": "periodic", "value_frequencies": 20, "value_scale": 0.01, "head": "mlm"},
    {"name": "learned", "value_encoder": "periodic", "value_frequencies": 5, "value_scale": 1.5, "value_learned_frequencies": True,
     "value_shift": 0.25, "value_sigmoid_centers": [0.5, 1, 2], "value_sigmoid_orientations": [1, -2, 4], "value_zero_is_number": True,
     "first_norm": True, "head": "cells"},
    {"name": "mlp", "value_encoder": "mlp", "head": "mlm"},
    {"name": "mlp_special", "value_encoder": "mlp_special", "head": "genes"},
    {"name": "none", "value_encoder": "none", "first_norm": True, "head": "mlm"},
]
LENGTHS = [9, 1, 20, 2, 33]


class Draw:
    """The numbers of draw() in tests/unit/test_bmfm.c."""

    def __init__(self, text):
        self.x = 2166136261
        for c in text.encode():
            self.x = (self.x ^ c) * 16777619 % 2 ** 32

    def __call__(self, n):
        self.x = (self.x * 1664525 + 1013904223) % 2 ** 32
        return self.x * n >> 32


def values_of(name, shape):
    d = Draw(name)
    x = np.array([d(1 << 20) for _ in range(int(np.prod(shape)))]) / 2 ** 19 - 1
    if name.endswith("scale") or name.endswith("LayerNorm.weight"):
        return 1 + x / 4
    if name.endswith("basis"):
        return 4 * x
    return x.reshape(shape) / (4 if len(shape) == 2 and "embeddings" not in name else 2)


def shapes(c):
    F, K = 256, 3
    s = {ENCODER + "embeddings.genes_embeddings.weight": (V_, C), ENCODER + "embeddings.LayerNorm.weight": (C,),
         ENCODER + "embeddings.LayerNorm.bias": (C,)}
    for i in range(L):
        n = f"{ENCODER}blocks.{i}."
        s |= {n + "rms_1.scale": (C,)} if i or c.get("first_norm") else {}
        s |= {n + "attn.c_attn.weight": (3 * C, C), n + "attn.proj.weight": (C, C), n + "rms_2.scale": (C,),
              n + "mlp.c_fc1.weight": (F, C), n + "mlp.c_fc2.weight": (F, C), n + "mlp.c_proj.weight": (C, F)}
    kind, rows = c["value_encoder"], 36 + (not c.get("value_zero_is_number", False))
    if kind == "periodic":
        m, n = len(c.get("value_sigmoid_centers", [])), c["value_frequencies"]
        s |= {VALUE + "special_token_embeddings.weight": (rows, C), VALUE + "dense.weight": (C, 2 * n + m)}
        s |= {VALUE + "basis": (n,)} if c.get("value_learned_frequencies") else {}
    elif kind != "none":
        s |= {VALUE + "special_token_embeddings.weight": (rows, 128)} if kind == "mlp_special" else {}
        s |= {VALUE + "dense_1.weight": (128, 1), VALUE + "dense_1.bias": (128,), VALUE + "dense_2.weight": (C, 128), VALUE + "dense_2.bias": (C,)}
    if c["head"] == "mlm":
        t = "cls.predictions."
        s |= {t + "transform.dense.weight": (C, C), t + "transform.dense.bias": (C,), t + "transform.LayerNorm.weight": (C,),
              t + "transform.LayerNorm.bias": (C,), t + "decoder.weight": (V_, C), t + "bias": (V_,)}
    else:
        s |= {"classifier.weight": (K, C), "classifier.bias": (K,)}
        s |= {"core.pooler.dense.weight": (C, C), "core.pooler.dense.bias": (C,)} if c["head"] == "cells" else {}
    return s


def make_cells(c):
    """A special token, then genes; a fifth of the values 0, a tenth hidden. Values have four binary digits behind the point."""
    d, cells = Draw(c["name"]), []
    for n in LENGTHS:
        ids = [3 if t == 0 else 5 + d(V_ - 5) for t in range(n)]
        values = [-4.0 if t == 0 else 0.0 if d(5) == 0 else -5.0 if d(10) == 0 else (1 + d(160)) / 16 for t in range(n)]
        if n > 20:
            ids[7], values[7], values[8] = 0, -1.0, -3.0  # the rows that are not learned
        cells.append((ids, values, {"mlm": [(t, d(V_)) for t in range(n) if t % 3 == 1], "cells": d(3), "genes": [d(3) for _ in ids]}[c["head"]]))
    return cells


def losses_of(config, p, cells, loss, steps):
    """The losses of a training as the released models' (AdamW of torch, warm-up of 5 steps), and what it leaves in p."""
    rate, b1, b2, decay, clip, warmup, out = 1e-3, 0.9, 0.99, 0.1, 0.5, 5, []
    learned = [n for n, v in p.items() if "sigmoid" not in n and not (n.endswith("basis") and not config.get("value_learned_frequencies"))]
    m, v = ({n: np.zeros_like(p[n].x) for n in learned} for _ in range(2))
    for t in range(1, steps + 1):
        now = loss(config, p, cells)
        now.backward()
        out.append(float(now.x))
        norm = np.sqrt(sum((p[n].grad ** 2).sum() for n in learned))
        lr = rate * min(1, (t - 1) / warmup)
        for n in learned:
            g = p[n].grad * min(1, clip / (norm + 1e-6))
            m[n] = b1 * m[n] + (1 - b1) * g
            v[n] = b2 * v[n] + (1 - b2) * g * g
            x = p[n].x
            if x.ndim == 2 and "embeddings.weight" not in n:
                x = x * (1 - lr * decay)
            p[n].x = x - lr / (1 - b1 ** t) * m[n] / (np.sqrt(v[n]) / np.sqrt(1 - b2 ** t) + 1e-8)
    return out


def golden(path):
    arrays, losses = [], {"mlm": mlm_loss, "cells": class_loss, "genes": gene_loss}
    for c in CASES:
        config = dict(c, num_hidden_layers=L, num_attention_heads=2, layer_norm_eps=1e-12, rms_norm_eps=1e-5, pad_token_id=0)
        p = {n: V(values_of(n, s)) for n, s in shapes(c).items()}
        if c["value_encoder"] == "periodic" and not c.get("value_learned_frequencies"):
            p[VALUE + "basis"] = V(np.float32(2 * np.pi * c["value_scale"]) * 2.0 ** np.arange(c["value_frequencies"]))
        for n in ("centers", "orientations"):
            if c.get("value_sigmoid_" + n):
                p[VALUE + "sigmoid_" + n] = V(c["value_sigmoid_" + n])
        cells = make_cells(c)
        states = [encode(config, p, i, v) for i, v, _ in cells]
        loss = losses[c["head"]](config, p, cells)
        loss.backward()
        name = c["name"] + "."
        for k in range(L + 1):
            arrays.append((f"{name}state{k}", "f8", np.concatenate([s[k].x for s in states])))
        arrays.append((name + "loss", "f8", loss.x.reshape(1)))
        arrays.append((name + "length", "u4", np.array(LENGTHS)))
        arrays.append((name + "id", "u4", np.concatenate([i for i, _, _ in cells])))
        arrays.append((name + "value", "f4", np.concatenate([v for _, v, _ in cells])))
        if c["head"] == "mlm":
            start = np.cumsum([0] + LENGTHS)
            at = np.array([(start[k] + t, token) for k, cell in enumerate(cells) for t, token in cell[2]])
            arrays += [(name + "row", "u4", at[:, 0]), (name + "target", "u4", at[:, 1])]
        else:
            arrays.append((name + "target", "u4", np.concatenate([np.atleast_1d(t) for _, _, t in cells])))
        for n, v in p.items():
            if "sigmoid" not in n and not (n.endswith("basis") and not c.get("value_learned_frequencies")):
                arrays.append((f"{name}grad.{n}", "f8", v.grad.reshape(-1)[:256]))  # of large tensors the first rows
        if c["name"] in ("periodic", "learned"):
            arrays.append((name + "losses", "f8", np.array(losses_of(config, p, cells, losses[c["head"]], 50))))
    with open(path, "wb") as f:
        for n, kind, x in arrays:
            f.write(f"{n} {kind} {x.size}\n".encode() + np.ascontiguousarray(x).astype("<" + kind).tobytes())


# ---- scembed ----

def embed(model, tokens, table, layer, positions):
    config, p = load(model)
    rows = {}
    for line in open(tokens).read().split("\n")[1:-1]:
        cell, ids, *values = line.split("\t")
        rows[cell] = [int(i) for i in ids.split()], [float(x) for x in values[0].split()] if values else None
    worst = 0
    for line in open(table).read().split("\n")[1:-1]:
        cell, got = line.split("\t")
        state = encode(config, p, *rows[cell])[config["num_hidden_layers"] + int(layer)].x
        want = np.concatenate([state[int(k)] for k in positions.split(",")])
        got = np.array([float(x) for x in got.split()])
        assert got.shape == want.shape, (cell, got.shape, want.shape)
        worst = max(worst, np.abs(got - want).max() / np.abs(want).max())
    print(f"{len(rows)} cells, within {worst:.1e}")
    assert worst < 2e-5


if __name__ == "__main__":
    {"golden": golden, "embed": embed}[sys.argv[1]](*sys.argv[2:])
