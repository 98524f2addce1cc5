#!/usr/bin/env python3
"""A training with several heads on one network, read again in float64 with bert.py.

heads.py step MODEL STREAM [OBO all|known]
    MODEL: a training of one step with --lr 0 --clip 0 --dropout 0 --save-every 1 --keep-checkpoints 1, so that its weights are those of the
    start, and exp_avg of checkpoint-1 is a tenth of the gradient. STREAM: its masked stream. The loss sum(w L) / sum(w) over the heads that have
    targets and learn from the first step, each head's mean loss, the norm of the gradient (train.tsv) and the gradient of every tensor (checkpoint) must agree.
    OBO: of a head of kind hce, whose mean is over all cells or over those with a label.
heads.py predict MODEL HEAD TOKENS.tsv PREDICTION
    The logits, or numbers, of this head.
"""
import json
import os
import sys
import numpy as np

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), d) for d in (".", "../../python")]
import bert      # noqa: E402
import ontology  # noqa: E402
import corrmask.stream as scstream  # noqa: E402
from head import near  # noqa: E402


def heads_of(config):
    for h in config["corrmask_heads"]:
        h["labels"] = [h["id2label"][str(i)] for i in range(len(h["id2label"]))] if "id2label" in h else None
        h["tensor"] = h.get("prefix", "") + "classifier"
        yield h


def forward(tape, head, x):
    """Outputs of one cell, and the way back from their gradient to that of its hidden states."""
    at = head.get("position", 0)
    direct = head.get("pooler") is False
    if direct:
        z = x[at:at + 1]
    else:
        z, pool_back = tape.linear(x[at:at + 1], "bert.pooler.dense")
        z = np.tanh(z)
    y, back = tape.linear(z, head["tensor"])

    def to_states(dy):
        d, dz = np.zeros_like(x), back(dy)
        if "reverse" in head:
            dz = dz * -head["reverse"]
        d[at:at + 1] = dz if direct else pool_back(dz * (1 - z * z))
        return d
    return y, to_states


def target(head, block, i):
    column = block[head["column"]]
    if head["labels"] is None:
        v = float(column[i])
        return None if np.isnan(v) else (v - head["mean"]) / head["scale"]
    code = column.codes[i]
    if code < 0:
        return None
    if "under" in head:
        return head["under"].get(head["ontology"].find(column.categories[code]))
    return head["labels"].index(column.categories[code])


def loss_of(head, y, t):
    if head["labels"] is None:
        return (y[0, 0] - t) ** 2, 2 * (y - t)
    if isinstance(t, list):
        p = np.exp(y - y.max())
        p /= p.sum()
        part = np.zeros_like(p)
        part[0, t] = p[0, t]
        return -np.log(part.sum()), p - part / part.sum()
    return bert.softmax_loss(y, np.array([t]))


def step(model, stream, obo=None, mean=None):
    config, p = bert.load(model)
    heads, tape = list(heads_of(config)), bert.Tape(config, p)
    for h in heads:
        if h["kind"] == "hce":
            h["ontology"] = ontology.Ontology(obo)
            _, leaves, h["under"] = h["ontology"].prune(h["labels"])
            assert leaves == h["labels"]
    block = next(iter(scstream.read(stream)))
    at, ids = block["input"]
    cells = [[int(t) for t in ids[i:j]] for i, j in zip(at, at[1:])]
    todo = {h["name"]: [(i, t) for i in range(len(cells)) if cells[i] and (t := target(h, block, i)) is not None] for h in heads}
    learns = [h for h in heads if todo[h["name"]] and not h.get("from")]
    total = sum(h["weight"] for h in learns)
    count = {h["name"]: len(cells) if "under" in h and mean == "all" else len(todo[h["name"]]) for h in heads}
    sums = dict.fromkeys(todo, 0.0)
    for i, ids in enumerate(cells):
        if not ids:
            continue
        x = bert.encode(config, p, ids, tape)[-1]
        steps, d = tape.steps, np.zeros_like(x)
        for h in learns:
            for k, t in todo[h["name"]]:
                if k != i:
                    continue
                y, back = forward(tape, h, x)
                loss, dy = loss_of(h, y, t)
                sums[h["name"]] += loss
                d += back(dy * h["weight"] / total / count[h["name"]])
        for s in reversed(steps):
            d = s(d)
    head, row = [line.rstrip("\n").split("\t") for line in open(model + "/train.tsv")][:2]
    got = dict(zip(head, row))
    means = {h["name"]: sums[h["name"]] / count[h["name"]] for h in learns}
    near("loss", float(got["loss"]), sum(h["weight"] * means[h["name"]] for h in learns) / total, 2e-6)
    for h in heads:
        if h in learns:
            near("loss." + h["name"], float(got["loss." + h["name"]]), means[h["name"]], 2e-6)
        else:
            assert got["loss." + h["name"]] == "NA", "a head without targets has a loss"
    near("norm", float(got["grad_norm"]), sum((g ** 2).sum() for g in tape.grad.values()) ** 0.5, 1e-5)
    raw = open(model + "/checkpoint-1/optimizer.safetensors", "rb").read()
    n = int.from_bytes(raw[:8], "little")
    table, worst = json.loads(raw[8:8 + n]), 0
    largest = max(np.abs(g).max() for g in tape.grad.values())
    for name, x in p.items():
        a, b = table["exp_avg." + name]["data_offsets"]
        g = np.frombuffer(raw[8 + n + a:8 + n + b], "<f4").astype(float).reshape(x.shape) * 10
        want = tape.grad.get(name, np.zeros_like(x))
        size = max(np.abs(want).max(), 1e-3 * largest)
        off = np.abs(g - want).max() / size
        assert off < 2e-4, f"gradient of {name}: apart by {off:.1e}"
        worst = max(worst, off)
    print(f"gradients of {len(p)} tensors within {worst:.1e}")


def predict(model, name, tokens, prediction):
    config, p = bert.load(model)
    head = next(h for h in heads_of(config) if h["name"] == name)
    rows = [list(map(int, line.split())) for line in open(tokens).read().split("\n")[1:-1]]
    y = np.concatenate([forward(bert.Tape(config, p), head, bert.encode(config, p, ids)[-1])[0] for ids in rows])
    blocks = list(scstream.read(prediction))
    if head["labels"] is None:
        near("predicted", np.concatenate([b["predicted"] for b in blocks]), head["mean"] + head["scale"] * y[:, 0])
    else:
        near("logit", np.concatenate([b["logit"] for b in blocks]), y)


if __name__ == "__main__":
    {"step": step, "predict": predict}[sys.argv[1]](*sys.argv[2:])
