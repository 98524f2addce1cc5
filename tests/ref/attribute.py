#!/usr/bin/env python3
"""Integrated gradients in float64, by their definition: the integral of the gradient along the straight line from vectors of 0, by
Gauss-Legendre on quarters of decades of its length.

attribute.py MODEL TOKENS.tsv ATTRIBUTIONS.tsv HEAD SPECIALS TOLERANCE
    TOKENS.tsv: columns cell, token and perhaps value; ATTRIBUTIONS.tsv: cell, attributed (or - for a number), output, baseline, token, attribution,
    of scpredict attribution. SPECIALS: ids below this are no genes. HEAD: a name, or - for a model with one head. The class
    must be the predicted one.
"""
import os
import sys

import numpy as np

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), d) for d in (".", "../../python")]
import autograd as ag  # noqa: E402
import bert            # noqa: E402
import bmfm            # noqa: E402
from autograd import V  # noqa: E402

NODES, WEIGHTS = np.polynomial.legendre.leggauss(5)
EDGES = [0] + [10 ** (k / 4) for k in range(-32, 1)]


class Bert:
    """What the vectors of a cell's tokens bring about."""
    gene, pooler, value = "bert.embeddings.word_embeddings.weight", "bert.pooler.dense", "bert.embeddings.expressions_embeddings."

    def states(self, config, p, v):
        tape = bert.Tape(config, {n: a.x for n, a in p.items()})
        e = "bert.embeddings."
        rest = p[e + "token_type_embeddings.weight"].x[0] + p[e + "position_embeddings.weight"].x[:len(v)]
        x, back = tape.norm(v + rest, e + "LayerNorm")
        steps = [back]
        for i in range(config["num_hidden_layers"]):
            x, back = tape.layer(x, i)
            steps.append(back)

        def to_vectors(dx):
            for step in reversed(steps):
                dx = step(dx)
            return dx
        return x, to_vectors


class Llama:
    gene, pooler, value = bmfm.ENCODER + "embeddings.genes_embeddings.weight", "core.pooler.dense", bmfm.VALUE

    def states(self, config, p, v):
        v = V(v)
        x = bmfm.layer_norm(p, bmfm.ENCODER + "embeddings.LayerNorm", v, config["layer_norm_eps"])
        for i in range(config["num_hidden_layers"]):
            x = bmfm.block(config, p, i, x)

        def to_vectors(dx):
            (x * dx).sum().backward()
            return v.grad
        return x.x, to_vectors


class Head:
    def __init__(self, config, p, net, name):
        head = next((h for h in config.get("corrmask_heads", []) if h["name"] == name), {})
        names = head.get("id2label") or (config["id2label"] if name == "-" else None)
        self.labels = [names[str(i)] for i in range(len(names))] if names else None
        self.mean, self.scale = head.get("mean", 0), head.get("scale", 1)
        self.at, self.direct = head.get("position", 0), head.get("pooler") is False
        self.w, self.b = (p[head.get("prefix", "") + "classifier." + k].x for k in ("weight", "bias"))
        self.pool = None if self.direct else (p[net.pooler + ".weight"].x, p[net.pooler + ".bias"].x)

    def outputs(self, x):
        h = x[self.at]
        self.h = h if self.direct else np.tanh(self.pool[0] @ h + self.pool[1])
        y = self.w @ self.h + self.b
        return y if self.labels else self.mean + self.scale * y

    def back(self, k, x):
        dh = self.w[k] * (1 if self.labels else self.scale)
        dx = np.zeros_like(x)
        dx[self.at] = dh if self.direct else (dh * (1 - self.h ** 2)) @ self.pool[0]
        return dx


def attribute(config, p, net, head, v, genes, label):
    def at(a, k):
        x, back = net.states(config, p, np.where(genes[:, None], a * v, v))
        y = head.outputs(x)
        k = int(y.argmax()) if k is None else k
        return k, y[k], back(head.back(k, x))
    k, high, _ = at(1, None if label is None else head.labels.index(label) if head.labels else 0)
    total = np.zeros(len(v))
    for a, b in zip(EDGES, EDGES[1:]):
        for node, weight in zip(NODES, WEIGHTS):
            total += (b - a) / 2 * weight * (at(a + (b - a) * (node + 1) / 2, k)[2] * v).sum(1)
    return high, at(0, k)[1], total[genes]


def lines(path):
    return [l.split("\t") for l in open(path).read().split("\n")[1:-1]]


def main(model, tokens, table, name, specials, tolerance):
    config, p = bmfm.load(model)
    net = Llama() if config["model_type"] == "bmfm_llama" else Bert()
    head = Head(config, p, net, name)
    rows = {c: ([int(i) for i in ids.split()], [float(x) for x in rest[0].split()] if rest else None) for c, ids, *rest in lines(tokens)}
    worst = {"output": 0, "baseline": 0, "attribution": 0, "sum": 0}
    got = lines(table)
    for cell, label, output, baseline, token, values in got:
        ids, x = rows[cell]
        v = p[net.gene].x[ids]
        if config.get("value_encoder", "none") != "none":
            v = v + bmfm.encode_values(config, p, x, net.value).x
        genes = np.array(ids) >= int(specials)
        assert [int(t) for t in token.split()] == [i for i in ids if i >= int(specials)], cell
        high, low, want = attribute(config, p, net, head, v, genes, label if head.labels else "")
        if head.labels:
            assert head.labels[int(head.outputs(net.states(config, p, v)[0]).argmax())] == label, cell
        mine = np.array([float(a) for a in values.split()])
        for what, a, b in (("output", float(output), high), ("baseline", float(baseline), low)):
            worst[what] = max(worst[what], abs(a - b) / (abs(high) + abs(low)))
        worst["attribution"] = max(worst["attribution"], np.abs(mine - want).sum() / np.abs(want).sum())
        worst["sum"] = max(worst["sum"], abs(want.sum() - (high - low)) / abs(high - low))
    print(f"{len(got)} cells:", ", ".join(f"{k} {x:.1e}" for k, x in worst.items()))
    assert got and worst["sum"] < 5e-3 and worst["output"] < 1e-5 and worst["baseline"] < 1e-5 and worst["attribution"] < float(tolerance)


if __name__ == "__main__":
    main(*sys.argv[1:7])
