#!/usr/bin/env python3
"""BERT in numpy float64, cell by cell, with every gradient by hand: an independent reading of the network.

As a module, for tests of trained models:
    config, p = load("model.dir")            config.json and model.safetensors (F32, F16, BF16)
    hidden = encode(config, p, ids)          list of [T, C]: embeddings, layer 1 .. L, of one cell; rank: positions of the tokens
    logits = mlm_logits(config, p, hidden[-1][positions])
    loss, grads = mlm_loss_and_gradients(config, p, cells)     cells = [(ids, positions, targets[, rank]), ...]; mean over positions

As a program: bert.py tests/golden/v1/bert.bin holds this file to transformers' values; exit 1 where they differ.
"""
import json
import math
import os
import sys
import numpy as np

erf = np.vectorize(math.erf, otypes=[np.float64])


def load(directory):
    with open(os.path.join(directory, "config.json")) as f:
        config = json.load(f)
    with open(os.path.join(directory, "model.safetensors"), "rb") as f:
        raw = f.read()
    n = int.from_bytes(raw[:8], "little")
    params = {}
    for name, t in json.loads(raw[8:8 + n]).items():
        if name == "__metadata__" or t["dtype"] not in ("F32", "F16", "BF16"):
            continue
        a, b = t["data_offsets"]
        data = raw[8 + n + a:8 + n + b]
        if t["dtype"] == "BF16":
            x = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        else:
            x = np.frombuffer(data, {"F32": "<f4", "F16": "<f2"}[t["dtype"]])
        params[name] = x.astype(np.float64).reshape(t["shape"])
    return config, params


def act(config, z):
    if config.get("hidden_act", "gelu") == "relu":
        return np.maximum(z, 0), (z > 0).astype(float)
    phi = 0.5 * (1 + erf(z / math.sqrt(2)))
    return z * phi, phi + z * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)


class Tape:
    """Forward functions that push their backward step; backward() runs them in reverse order."""

    def __init__(self, config, params):
        self.config, self.p, self.grad, self.steps = config, params, {}, []

    def add(self, name, g):
        self.grad[name] = self.grad.get(name, 0) + g

    def linear(self, x, name):
        w, b = self.p[name + ".weight"], self.p[name + ".bias"]

        def back(dy):
            self.add(name + ".weight", dy.T @ x)
            self.add(name + ".bias", dy.sum(0))
            return dy @ w
        return x @ w.T + b, back

    def norm(self, x, name):
        mean = x.mean(-1, keepdims=True)
        rstd = 1 / np.sqrt(x.var(-1, keepdims=True) + self.config["layer_norm_eps"])
        xhat = (x - mean) * rstd
        g = self.p[name + ".weight"]

        def back(dy):
            self.add(name + ".weight", (dy * xhat).sum(0))
            self.add(name + ".bias", dy.sum(0))
            d = dy * g
            return rstd * (d - d.mean(-1, keepdims=True) - xhat * (d * xhat).mean(-1, keepdims=True))
        return xhat * g + self.p[name + ".bias"], back

    def embed(self, ids, rank=None):
        e = "bert.embeddings."
        w, pos, typ = self.p[e + "word_embeddings.weight"], self.p[e + "position_embeddings.weight"], self.p[e + "token_type_embeddings.weight"]
        at = np.arange(len(ids)) if rank is None else np.asarray(rank)
        y, norm_back = self.norm(w[ids] + typ[0] + pos[at], e + "LayerNorm")

        def back(dy):
            d = norm_back(dy)
            dw = np.zeros_like(w)
            np.add.at(dw, ids, d)
            dw[self.config.get("pad_token_id", 0)] = 0  # torch's padding_idx
            dp, dt = np.zeros_like(pos), np.zeros_like(typ)
            np.add.at(dp, at, d)
            dt[0] = d.sum(0)
            self.add(e + "word_embeddings.weight", dw)
            self.add(e + "position_embeddings.weight", dp)
            self.add(e + "token_type_embeddings.weight", dt)
        return y, back

    def attention(self, x, a):
        NH = self.config["num_attention_heads"]
        T, C = x.shape
        D = C // NH
        q, q_back = self.linear(x, a + "query")
        k, k_back = self.linear(x, a + "key")
        v, v_back = self.linear(x, a + "value")
        split = lambda m: m.reshape(T, NH, D).transpose(1, 0, 2)
        join = lambda m: m.transpose(1, 0, 2).reshape(T, C)
        q, k, v = split(q), split(k), split(v)
        s = q @ k.transpose(0, 2, 1) / math.sqrt(D)
        s = np.exp(s - s.max(-1, keepdims=True))
        s /= s.sum(-1, keepdims=True)

        def back(dy):
            dy = split(dy)
            ds = dy @ v.transpose(0, 2, 1)
            ds = s * (ds - (ds * s).sum(-1, keepdims=True)) / math.sqrt(D)
            return q_back(join(ds @ k)) + k_back(join(ds.transpose(0, 2, 1) @ q)) + v_back(join(s.transpose(0, 2, 1) @ dy))
        return join(s @ v), back

    def layer(self, x, i):
        n = f"bert.encoder.layer.{i}."
        ctx, ctx_back = self.attention(x, n + "attention.self.")
        a, a_back = self.linear(ctx, n + "attention.output.dense")
        x1, norm1_back = self.norm(a + x, n + "attention.output.LayerNorm")
        z, up_back = self.linear(x1, n + "intermediate.dense")
        h, slope = act(self.config, z)
        o, down_back = self.linear(h, n + "output.dense")
        x2, norm2_back = self.norm(o + x1, n + "output.LayerNorm")

        def back(dy):
            d2 = norm2_back(dy)
            d1 = norm1_back(d2 + up_back(down_back(d2) * slope))
            return d1 + ctx_back(a_back(d1))
        return x2, back

    def transform(self, x):
        z, dense_back = self.linear(x, "cls.predictions.transform.dense")
        h, slope = act(self.config, z)
        y, norm_back = self.norm(h, "cls.predictions.transform.LayerNorm")
        return y, lambda dy: dense_back(norm_back(dy) * slope)


def encode(config, params, ids, tape=None, rank=None):
    tape = tape or Tape(config, params)
    x, back = tape.embed(np.asarray(ids), rank)
    hidden, tape.steps = [x], [back]
    for i in range(config["num_hidden_layers"]):
        x, back = tape.layer(x, i)
        hidden.append(x)
        tape.steps.append(back)
    return hidden


def mlm_logits(config, params, x):
    y, _ = Tape(config, params).transform(x)
    return y @ params["bert.embeddings.word_embeddings.weight"].T + params["cls.predictions.bias"]


def softmax_loss(z, target):
    """Summed cross-entropy and its gradient."""
    z = z - z.max(-1, keepdims=True)
    p = np.exp(z)
    total = p.sum(-1, keepdims=True)
    rows = np.arange(len(target))
    loss = (np.log(total[:, 0]) - z[rows, target]).sum()
    p /= total
    p[rows, target] -= 1
    return loss, p


def mlm_loss_and_gradients(config, params, cells):
    tape = Tape(config, params)
    word = params["bert.embeddings.word_embeddings.weight"]
    loss, count = 0.0, sum(len(c[1]) for c in cells)
    for ids, positions, targets, *rank in cells:
        x = encode(config, params, ids, tape, *rank)[-1]
        y, back = tape.transform(x[positions])
        cell_loss, dz = softmax_loss(y @ word.T + params["cls.predictions.bias"], targets)
        loss += cell_loss
        dz /= count
        tape.add("bert.embeddings.word_embeddings.weight", dz.T @ y)
        tape.add("cls.predictions.bias", dz.sum(0))
        d = np.zeros_like(x)
        d[positions] = back(dz @ word)
        for step in reversed(tape.steps):
            d = step(d)
    return loss / count, tape.grad


def classify(config, params, x, tape=None):
    """Logits of one cell's last hidden state: by cell where there is a pooler, else by token."""
    tape = tape or Tape(config, params)
    if "bert.pooler.dense.weight" in params:
        x = np.tanh(tape.linear(x[:1], "bert.pooler.dense")[0])
    return tape.linear(x, "classifier")[0]


# ---- the golden file ----

def read_golden(path):
    arrays = {}
    with open(path, "rb") as f:
        while line := f.readline():
            name, kind, n = line.decode().split()
            arrays[name] = np.frombuffer(f.read(4 * int(n)), "<" + kind)
    return arrays


def check(path):
    golden, bad = read_golden(path), 0

    def near(what, got, want, tol):
        nonlocal bad
        want = want.astype(np.float64).reshape(got.shape)
        d = np.abs(got - want).max() / max(np.abs(want).max(), 1e-6)
        if not d <= tol:
            print(f"{what}: apart by {d:.1e}, at most {tol:.0e} expected")
            bad += 1
        return d

    for case in sorted({n.split(".")[0] for n in golden}):
        V, C, L, NH, F, P, K, a = golden[case + ".config"]
        config = {"num_hidden_layers": L, "num_attention_heads": NH, "layer_norm_eps": 1e-12, "pad_token_id": 0,
                  "hidden_act": {1: "relu", 2: "gelu"}[a]}
        shape = lambda n, x: x.reshape(len(x) // C, C) if x.size > C and "intermediate.dense.bias" not in n and not n.startswith("cls.predictions.bias") else x
        params = {}
        for n, x in golden.items():
            if n.startswith(case + ".param."):
                n = n[len(case) + 7:]
                x = x.astype(np.float64)
                params[n] = x.reshape(C, F) if n.endswith("output.dense.weight") and "attention" not in n else shape(n, x)
        b = {n: golden[f"{case}.b0.{n}"].astype(int) for n in ("offset", "id", "mask", "target")}
        cells, hidden = [], []
        for i, j in zip(b["offset"], b["offset"][1:]):
            here = (b["mask"] >= i) & (b["mask"] < j)
            cells.append((b["id"][i:j], b["mask"][here] - i, b["target"][here]))
            hidden.append(encode(config, params, b["id"][i:j]))
        worst = max(near(f"{case} hidden {k}", np.concatenate([h[k] for h in hidden]), golden[f"{case}.hidden{k}"], 1e-5) for k in range(L + 1))
        if K:
            z = np.concatenate([classify(config, params, h[-1]) for h in hidden])
            y = golden[case + ".b0.label"]
            loss = softmax_loss(z[y >= 0], y[y >= 0])[0] / (y >= 0).sum()
        else:
            z = np.concatenate([mlm_logits(config, params, h[-1][c[1]]) for h, c in zip(hidden, cells)])
            loss, grads = mlm_loss_and_gradients(config, params, cells)
            for n, g in grads.items():
                if "key.bias" not in n:  # 0 but for rounding
                    worst = max(worst, near(f"{case} gradient {n}", g, golden[f"{case}.grad.{n}"], 1e-5))
        worst = max(worst, near(case + " logits", z, golden[case + ".logits"], 1e-5))
        near(case + " loss", np.array([loss]), golden[case + ".loss"], 1e-6)
        print(f"{case}: within {worst:.1e} of transformers")
    return bad


if __name__ == "__main__":
    sys.exit(1 if check(sys.argv[1]) else 0)
