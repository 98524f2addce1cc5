#!/usr/bin/env python3
"""Model directories with a classifier, and bert.py's float64 reading of what scpredict cells says with them.

head.py make MODEL OUT cells|genes LABEL... [seed=N]
    A model directory with MODEL's encoder and vocabulary and a random head, large enough that its classes differ. For genes also
    genes.tsv: every third gene of the vocabulary is in no class, of the others every second one is of split test.
head.py cells MODEL TOKENS.tsv PREDICTION      TOKENS.tsv: scview -c token of the tokens stream; PREDICTION: scembed's stream
head.py genes MODEL TOKENS.tsv PREDICTION [all]
    Logits, classes and probabilities (cells) or tokens, labels and logits (genes) must agree. Exits 1 with a message otherwise.
"""
import json
import os
import sys
import numpy as np

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), d) for d in (".", "../../python")]
import bert      # noqa: E402
import corrmask.stream as scstream  # noqa: E402


def make(model, out, task, *labels, seed=1):
    config, p = bert.load(model)
    c, k, rng = config["hidden_size"], len(labels), np.random.default_rng(seed)
    p = {n: x for n, x in p.items() if not n.startswith("cls.")}
    if task == "cells":
        p["bert.pooler.dense.weight"] = rng.normal(size=(c, c)) * 4 / c ** 0.5
        p["bert.pooler.dense.bias"] = rng.normal(size=c)
    p["classifier.weight"] = rng.normal(size=(k, c)) * 2 / c ** 0.5
    p["classifier.bias"] = rng.normal(size=k) / 4
    config["architectures"] = ["BertForSequenceClassification" if task == "cells" else "BertForTokenClassification"]
    # text order of the keys is not the order of the classes
    config["id2label"] = {str(i): labels[i] for i in sorted(range(k), key=lambda i: -i)}
    config["label2id"] = {label: i for i, label in enumerate(labels)}
    os.makedirs(out, exist_ok=True)
    json.dump(config, open(out + "/config.json", "w"))
    vocab = open(model + "/vocab.tsv").read()
    open(out + "/vocab.tsv", "w").write(vocab)
    head, data = {"__metadata__": {"format": "pt"}}, b""
    for name, x in sorted(p.items()):
        raw = x.astype("<f4").tobytes()
        head[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    open(out + "/model.safetensors", "wb").write(len(text).to_bytes(8, "little") + text + data)
    if task == "genes":
        genes = [line.split("\t")[1:3] for line in vocab.split("\n")[1:-1] if not line.split("\t")[1].startswith("<")]
        with open(out + "/genes.tsv", "w") as f:
            f.write("gene_id\tsymbol\tlabel\tfold\tsplit\n")
            for i, (gene, symbol) in enumerate(genes):
                if i % 3:
                    f.write(f"{gene}\t{symbol}\t{labels[rng.integers(k)]}\t0\t{'test' if i % 2 else 'train'}\n")
            f.write(f"ENSG_ELSEWHERE\t\t{labels[0]}\t0\ttest\n")


def read(model, tokens, prediction):
    config, p = bert.load(model)
    rows = [list(map(int, line.split())) for line in open(tokens).read().split("\n")[1:-1]]
    z = [bert.classify(config, p, bert.encode(config, p, ids)[-1]) if ids else None for ids in rows]
    stream = scstream.read(prediction)
    blocks = list(stream)
    labels = [config["id2label"][str(i)] for i in range(len(config["id2label"]))]
    assert stream.header["kind"] == "prediction" and stream.header["labels"] == labels, "kind or labels"
    assert sum(b.rows for b in blocks) == len(rows), "other cells"
    return rows, z, blocks, labels


def near(what, got, want, tol=1e-5):
    got, want = np.asarray(got, float), np.asarray(want, float)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    worst = np.abs(got - want).max(initial=0) / max(np.abs(want).max(initial=0), 1e-9)
    print(f"{what}: {got.size} values within {worst:.1e}")
    assert worst <= tol, what


def cells(model, tokens, prediction):
    rows, z, blocks, labels = read(model, tokens, prediction)
    logit, best = (np.concatenate([b[c] for b in blocks]) for c in ("logit", "probability"))
    code = np.concatenate([b["predicted"].codes for b in blocks])
    assert list(blocks[0]["predicted"].categories) == labels
    there = np.array([bool(r) for r in rows])
    assert np.isnan(logit[~there]).all() and np.isnan(best[~there]).all() and (code[~there] == -1).all(), "cells without tokens"
    want = np.concatenate([x for x in z if x is not None])
    near("logits", logit[there], want)
    q = np.exp(want - want.max(1, keepdims=True))
    q /= q.sum(1, keepdims=True)
    near("probability", best[there], q.max(1))
    assert (code[there] == logit[there].argmax(1)).all(), "classes"
    firsts = len({r[0] for r in rows if r})
    assert firsts == 1 or len(set(code[there])) > 1, "all cells are of one class: this tests little"
    if "probabilities" in blocks[0]:
        near("probabilities", np.concatenate([b["probabilities"] for b in blocks])[there], q)


def genes(model, tokens, prediction, everything=""):
    rows, z, blocks, labels = read(model, tokens, prediction)
    vocab = [line.split("\t")[1] for line in open(model + "/vocab.tsv").read().split("\n")[1:-1]]
    table = [line.split("\t") for line in open(model + "/genes.tsv").read().split("\n")[1:-1]]
    label = {vocab.index(t[0]): labels.index(t[2]) for t in table if t[0] in vocab}
    test = {vocab.index(t[0]) for t in table if t[0] in vocab and t[4] == "test"}
    got = {c: [] for c in ["token", "label"] + ["logit." + x for x in labels] if c in blocks[0]}
    for b in blocks:
        for c in got:
            offset, values = b[c]
            got[c] += [values[i:j] for i, j in zip(offset, offset[1:])]
    assert ("label" in got) == (not everything)
    want = []
    for i, (ids, x) in enumerate(zip(rows, z)):
        keep = [t for t, g in enumerate(ids) if (not vocab[g].startswith("<") if everything else g in test)]
        ids = [ids[t] for t in keep]
        assert list(got["token"][i]) == ids, f"tokens of row {i}"
        assert everything or list(got["label"][i]) == [label.get(g, -1) for g in ids], f"labels of row {i}"
        want.append(np.zeros((0, len(labels))) if x is None else x[keep])
    for k, name in enumerate(labels):
        near("logit." + name, np.concatenate(got["logit." + name]), np.concatenate(want)[:, k])


if __name__ == "__main__":
    plain = [a for a in sys.argv[2:] if not a.startswith("seed=")]
    {"make": make, "cells": cells, "genes": genes}[sys.argv[1]](*plain, **{"seed": int(a[5:]) for a in sys.argv[2:] if a.startswith("seed=")})
