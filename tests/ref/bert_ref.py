#!/usr/bin/env python3
"""BERT by numpy in float64: an independent reading of config.json and model.safetensors.

bert_ref.py embed MODEL TOKENS.tsv LAYER mean|cls|first EMBEDDING.npy [CLS EOS]
    TOKENS.tsv     scview --columns token of the tokens stream     EMBEDDING.npy    scview -O npy of scembed's output
    Prints the largest difference, relative to the largest value, and exits 1 above 1e-5. Missing vectors must be NaN in both.
bert_ref.py mlm MODEL MASKED.tsv EVAL.tsv
    MASKED.tsv     scview --columns input,position,target of the masked stream      EVAL.tsv    what sctrain eval wrote
    The mean cross-entropy over all masked positions must agree to 1e-6, the accuracy exactly.
"""
import json
import math
import sys
import numpy as np


def safetensors(path):
    raw = open(path, "rb").read()
    n = int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:8 + n])
    assert head.pop("__metadata__") == {"format": "pt"}
    data, out, last = raw[8 + n:], {}, 0
    for name, t in sorted(head.items(), key=lambda kv: kv[1]["data_offsets"]):
        a, b = t["data_offsets"]
        assert a == last and t["dtype"] == "F32"
        last = b
        out[name] = np.frombuffer(data[a:b], "<f4").astype("f8").reshape(t["shape"])
    assert last == len(data) and n % 8 == 0
    return out


def norm(x, w, name, eps):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) / np.sqrt(v + eps) * w[name + ".LayerNorm.weight"] + w[name + ".LayerNorm.bias"]


def linear(x, w, name):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def hidden(ids, w, c, layers):
    """Hidden states after `layers` layers, one cell."""
    e, eps, heads = "bert.embeddings", c["layer_norm_eps"], c["num_attention_heads"]
    x = w[e + ".word_embeddings.weight"][ids] + w[e + ".token_type_embeddings.weight"][0] + w[e + ".position_embeddings.weight"][:len(ids)]
    x = norm(x, w, e, eps)
    for i in range(layers):
        p = f"bert.encoder.layer.{i}."
        q, k, v = (linear(x, w, p + "attention.self." + s).reshape(len(ids), heads, -1).transpose(1, 0, 2) for s in ("query", "key", "value"))
        s = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        s = np.exp(s - s.max(-1, keepdims=True))
        a = (s / s.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), -1)
        x = norm(linear(a, w, p + "attention.output.dense") + x, w, p + "attention.output", eps)
        h = linear(x, w, p + "intermediate.dense")
        assert c["hidden_act"] == "relu"
        x = norm(linear(np.maximum(h, 0), w, p + "output.dense") + x, w, p + "output", eps)
    return x


def lists(path, columns):
    """Lists of whole numbers of a table of scview: for every row, one list a column."""
    for line in open(path).read().split("\n")[1:-1]:
        yield [list(map(int, f.split())) for f in (line.split("\t") + [""] * columns)[:columns]]


def embed(model, tokens, layer, pool, npy, cls=-1, eos=-1):
    cls, eos = int(cls), int(eos)
    c = json.load(open(model + "/config.json"))
    w = safetensors(model + "/model.safetensors")
    got = np.load(npy)
    rows = [r[0] for r in lists(tokens, 1)]
    assert got.shape == (len(rows), c["hidden_size"]), got.shape
    worst = top = 0
    for ids, x in zip(rows, got):
        h = hidden(ids, w, c, c["num_hidden_layers"] + int(layer)) if ids else np.zeros((0, len(x)))
        if pool == "mean":
            h = h[1:] if ids[:1] == [cls] else h
            h = h[:-1] if ids[-1:] == [eos] else h
        else:
            h = h[:1]
        if not len(h):
            assert np.isnan(x).all()
            continue
        want = h.mean(0)
        top = max(top, abs(want).max())
        worst = max(worst, abs(want - x).max())
    print(f"{len(rows)} cells, largest difference {worst / top:.1e}")
    return worst < 1e-5 * top


def mlm(model, masked, table):
    c = json.load(open(model + "/config.json"))
    w = safetensors(model + "/model.safetensors")
    got = dict(l.split("\t") for l in open(table).read().split("\n")[1:-1])
    loss = right = n = 0
    for ids, at, target in lists(masked, 3):
        if not at:
            continue
        h = hidden(ids, w, c, c["num_hidden_layers"])[at]
        h = norm(np.maximum(linear(h, w, "cls.predictions.transform.dense"), 0), w, "cls.predictions.transform", c["layer_norm_eps"])
        z = h @ w["bert.embeddings.word_embeddings.weight"].T + w["cls.predictions.bias"]
        z -= z.max(-1, keepdims=True)
        z -= np.log(np.exp(z).sum(-1, keepdims=True))
        loss -= z[range(len(at)), target].sum()
        right += (z.argmax(-1) == target).sum()
        n += len(at)
    print(f"{n} masked, loss {loss / n:.8f}, sctrain {got['loss']}, accuracy {right / n:.6f}, sctrain {got['accuracy']}")
    return (n == int(got["masked"]) and abs(loss / n - float(got["loss"])) < 1e-6 * loss / n
            and abs(right / n - float(got["accuracy"])) < 0.5 / n)


sys.exit(not {"embed": embed, "mlm": mlm}[sys.argv[1]](*sys.argv[2:]))
