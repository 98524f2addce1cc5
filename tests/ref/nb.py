#!/usr/bin/env python3
"""R2MAE's single-cell model read from a model directory, in numpy and double, for tests/sctrain_nb.bats.

    nb.py loss MODEL CELLS.tsv          mean negative log likelihood of the masked genes
    nb.py latent MODEL CELLS.tsv EMB.tsv     compare with scembed's column x
    nb.py expected MODEL CELLS.tsv REC.tsv   compare with scpredict expression
CELLS.tsv is scview -c gene,count,masked[,donor] (latent: without masked) of the cells. One more such file at the end, without masked:
normalise by the statistics of its cells under each mask (--recalibrate).
"""
import csv
import json
import sys
import numpy as np
from scipy.special import logsumexp
from scipy.stats import nbinom


def read_weights(path):
    raw = open(path, "rb").read()
    n = int.from_bytes(raw[:8], "little")
    return {name: np.frombuffer(raw, "<f4", offset=8 + n + t["data_offsets"][0], count=int(np.prod(t["shape"])))
            .reshape(t["shape"]).astype(float) for name, t in json.loads(raw[8:8 + n]).items() if name != "__metadata__"}


def read_rows(path):
    csv.field_size_limit(1 << 30)
    return list(csv.DictReader(open(path), delimiter="\t"))


def numbers(text, kind=int):
    return np.array([kind(x) for x in text.split()], dtype=kind)


model, cells = sys.argv[2], read_rows(sys.argv[3])
w = read_weights(f"{model}/model.safetensors")
config = json.load(open(f"{model}/config.json"))
genes = config["vocab_size"]
names = open(f"{model}/groups.tsv").read().split("\n")[:-1] if config["num_groups"] else []


def matrices(cells):
    x, masked = np.zeros((len(cells), genes)), np.zeros((len(cells), genes), bool)
    group = np.zeros((len(cells), config["num_groups"]))
    for i, c in enumerate(cells):
        x[i, numbers(c["gene"])] = numbers(c["count"])
        masked[i, numbers(c.get("masked", ""))] = True
        if names and c.get(names[0]) in names[1:]:
            group[i, names.index(c[names[0]]) - 1] = 1
    return x, masked, group


def forward(x, masked, group, stats, learn=False):
    """The latent vectors and logits. stats[NAME] is (mean, variance); learn: take them from these cells."""
    def norm(z, name):
        if learn:
            stats[name] = z.mean(0), z.var(0, ddof=1)
        z = (z - stats[name][0]) / np.sqrt(stats[name][1] + config["batch_norm_eps"])
        return np.maximum(z * w[f"{name}.weight"] + w[f"{name}.bias"], 0)

    def one_hot(name):
        return group @ w[name] if names else 0

    y = norm(np.log1p(np.where(masked, 0, x)) @ w["encoder.genes.weight"] + one_hot("encoder.groups.weight"), "encoder.norm1")
    latent = norm(y @ w["encoder.hidden.weight"].T, "encoder.norm2") @ w["encoder.latent.weight"].T
    z = norm(latent @ w["decoder.hidden.weight"].T + one_hot("decoder.groups.weight"), "decoder.norm")
    return latent, z @ w["decoder.output.weight"].T + w["decoder.output.bias"]


x, masked, group = matrices(cells)
running = {n: (w[f"{n}.running_mean"], w[f"{n}.running_var"]) for n in ("encoder.norm1", "encoder.norm2", "decoder.norm")}
if len(sys.argv) > 5 or sys.argv[1] == "loss" and len(sys.argv) > 4:   # the last argument: cells of whom the statistics are taken
    others, _, others_group = matrices(read_rows(sys.argv[-1]))
    latent, z = np.zeros((len(x), config["hidden_size"])), np.zeros((len(x), genes))
    for mask in np.unique(masked, axis=0):
        rows = (masked == mask).all(1)
        forward(others, mask[None], others_group, running, learn=True)
        latent[rows], z[rows] = forward(x[rows], masked[rows], group[rows], running)
else:
    latent, z = forward(x, masked, group, running)
mu = x.sum(1, keepdims=True) * np.exp(z - logsumexp(z, 1, keepdims=True))

if sys.argv[1] == "loss":
    theta = np.exp(w["decoder.log_theta"])
    print(-nbinom.logpmf(x, theta, theta / (theta + mu))[masked].mean())
elif sys.argv[1] == "latent":
    got = np.array([numbers(r["x"].replace("NA", "nan"), float) for r in read_rows(sys.argv[4])])
    empty = x.sum(1) == 0
    assert np.isnan(got[empty]).all()
    worst = abs(got - latent)[~empty].max() / abs(latent[~empty]).max()
    print(f"{len(got)} cells, apart by {worst:.1e}")
    sys.exit(not (got.shape == latent.shape and worst < 1e-5))
else:
    worst = 0
    rows = read_rows(sys.argv[4])
    for i, r in enumerate(rows):
        g = numbers(r["gene"])
        assert (g == np.flatnonzero(masked[i])).all() and (numbers(r["count"]) == x[i, g]).all()
        assert int(r["library"]) == x[i].sum()
        worst = max(worst, (abs(numbers(r["expected"], float) - mu[i, g]) / np.maximum(mu[i, g], 1e-30)).max(initial=0))
    print(f"{len(rows)} cells, apart by {worst:.1e}")
    sys.exit(not (len(rows) == len(cells) and worst < 1e-4))
