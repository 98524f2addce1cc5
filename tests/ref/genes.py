#!/usr/bin/env python3
"""Predictions of genes for ctaprobe's tests, and scikit-learn's answers.

usage: genes.py make OUT.pred [cells=N] [genes=N] [classes=N] [seed=N] [what=all|oneclass|nan|badlabel|changed|none]
           tokens of genes that are told apart now and then, coarse logits among them for ties; what=all: some have no class
       genes.py compare METRICS.tsv SCORES.tsv ROC.tsv FOLD.pred...
           ROC.tsv is - for more than two classes. Weights, means and curves as Geneformer's evaluation_utils.py has them.
Exits 1 with a message on a difference.
"""
import os
import math
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import corrmask.stream as scstream                                                         # noqa: E402


def make(out, cells=60, genes=40, classes=2, seed=1, what=""):
    rng = np.random.default_rng(seed)
    names = ["sensitive", "insensitive", "third, if any", "fourth"][:classes]
    label = rng.integers(0, classes, genes)
    label[:classes] = range(classes)
    if what == "oneclass":
        label[:] = 0
    if what == "all":
        label[::5] = -1
        label[:classes] = range(classes)
    shift = rng.normal(size=(genes, classes))
    shift[np.arange(genes), label] += 0.7
    blocks = []
    for a in range(0, cells, 25):
        offset, token = [0], []
        for _ in range(a, min(a + 25, cells)):
            token += [] if what == "none" else list(rng.permutation(genes)[:rng.integers(0, genes)])
            offset.append(len(token))
        token = np.array(token, "i8")
        logit = (shift[token] + rng.normal(size=(len(token), classes))).astype("f4")
        logit[::3] = np.round(logit[::3])
        y = label[token]
        if len(token) and what == "nan":
            logit[5, 1] = np.nan
        if len(token) and what == "badlabel":
            y = np.where(np.arange(len(y)) == 9, classes, y)
        if len(token) and what == "changed":
            y = np.where((np.arange(len(y)) == len(y) - 1), (y + 1) % classes, y)
        offset = np.array(offset)
        b = {"cell": np.arange(a, a + len(offset) - 1), "token": (offset, (token + 2).astype("u2")), "label": (offset, y.astype("i4"))}
        for k in range(classes):
            b["logit." + names[k]] = (offset, logit[:, k].copy())
        blocks.append(b)
    ragged = [("token", "u16"), ("label", "i32")] + [("logit." + n, "f32") for n in names]
    header = {"kind": "prediction", "provenance": [], "labels": names,
              "columns": [{"name": "cell", "type": "u64", "shape": "scalar"}] +
                         [{"name": n, "type": t, "shape": "ragged", "group": "token"} for n, t in ragged],
              "vocab": {"id": ["<pad>", "<mask>"] + ["ENSG%03d" % i for i in range(genes)], "symbol": ["", ""] + ["G%d" % i for i in range(genes)],
                        "median": [None, None] + [1.5] * genes}}
    scstream.write(out, header, blocks)


def close(what, got, want, limit=1e-12):
    got, want = np.asarray(got, float), np.asarray(want, float)
    if got.shape != want.shape:
        sys.exit(f"{what}: shape {got.shape}, expected {want.shape}")
    worst = np.abs(got - want).max(initial=0)
    print(f"{what}: largest difference {worst:.2g}")
    if not worst <= limit:
        sys.exit(f"{what}: {got} differs from {want} by {worst:.3g}")


def read(path):
    s = scstream.read(path)
    labels, cols = s.header["labels"], {}
    for b in s:
        for c in b:
            if isinstance(b[c], scstream.Ragged):
                cols.setdefault(c, []).append(b[c].values)
    cols = {c: np.concatenate(v) for c, v in cols.items()}
    z = np.stack([cols["logit." + n] for n in labels], 1).astype("f8")
    # math.exp: numpy's own gives one argument two values, apart by rounding, with some processors, and so parts what is tied
    e = np.vectorize(math.exp)(z - z.max(1, keepdims=True))     # Geneformer's py_softmax does not subtract: rounding then parts what is tied
    p = e / e.sum(1, keepdims=True)
    return s.header, labels, cols["token"], cols["label"], p


def compare(metrics_path, scores_path, roc_path, *folds):
    from sklearn import metrics as M
    m = dict(line.rstrip("\n").split("\t") for line in open(metrics_path))
    scores = [line.rstrip("\n").split("\t") for line in open(scores_path)]
    auc, gene_auc, tprs, weight, truth, guess, rows = [], [], [], [], [], [], []
    grid = np.linspace(0, 1, 100)
    for i, path in enumerate(folds):
        header, labels, token, y, p = read(path)
        K = len(labels)
        for g in np.unique(token):
            at = token == g
            rows.append([str(i + 1), header["vocab"]["id"][g], header["vocab"]["symbol"][g], labels[y[at][0]] if y[at][0] >= 0 else "NA",
                         str(at.sum()), p[at].mean(0)])
        keep = y >= 0
        token, y, p = token[keep], y[keep], p[keep]
        genes = np.unique(token)
        mean = np.stack([p[token == g].mean(0) for g in genes])
        gene_y = np.array([y[token == g][0] for g in genes])
        if K == 2:
            fpr, tpr, _ = M.roc_curve(y == 1, p[:, 1])
            auc.append(M.auc(fpr, tpr))
            close("auc once more", auc[-1], M.roc_auc_score(y == 1, p[:, 1]))
            gene_auc.append(M.roc_auc_score(gene_y == 1, mean[:, 1]))
            weight.append(len(tpr))
            tprs.append(np.interp(grid, fpr, tpr))
            tprs[-1][0] = 0
        else:
            auc.append(M.roc_auc_score(y, p, multi_class="ovr", average="macro"))
            gene_auc.append(M.roc_auc_score(gene_y, mean, multi_class="ovr", average="macro"))
            each = [M.roc_auc_score(y == k, p[:, k]) for k in range(K)]
            if len(folds) == 1:
                close("auc of each class", [float(m["auc:" + n]) for n in labels], each)
        truth.append(y)
        guess.append(p.argmax(1))
    for key, want in ("auc", auc), ("gene_auc", gene_auc):
        close(key, [float(m[f"{key}_fold:{i + 1}"]) for i in range(len(folds))], want)
        close(key + " mean", float(m[key + "_fold_mean"]), np.mean(want))
        if len(folds) > 1:
            close(key + " sd", float(m[key + "_fold_sd"]), np.std(want, ddof=1))
    for key, score in ("accuracy", M.accuracy_score), ("macro_f1", lambda a, b: M.f1_score(a, b, average="macro")):
        close(key, [float(m[f"{key}_fold:{i + 1}"]) for i in range(len(folds))], [score(a, b) for a, b in zip(truth, guess)])
        close(key + " of all", float(m[key]), score(np.concatenate(truth), np.concatenate(guess)))
    truth, guess = np.concatenate(truth), np.concatenate(guess)
    close("tokens", float(m["tokens"]), len(truth))
    close("f1", [float(m["f1:" + n]) for n in labels], M.f1_score(truth, guess, average=None))
    close("n", [float(m["n:" + n]) for n in labels], np.bincount(truth))
    close("confusion", [[float(m.get(f"confusion:{a}:{b}", 0)) for b in labels] for a in labels], M.confusion_matrix(truth, guess))
    if K == 2:
        w = np.array(weight) / sum(weight)                              # get_cross_valid_roc_metrics
        mean_auc = (w * auc).sum()
        close("auc_weighted", float(m["auc_weighted"]), mean_auc)
        close("auc_weighted_sd", float(m["auc_weighted_sd"]), np.sqrt(np.average((auc - mean_auc) ** 2, weights=w)))
        mean_tpr = (w[:, None] * tprs).sum(0)
        mean_tpr[-1] = 1
        roc = np.array([line.rstrip("\n").split("\t") for line in open(roc_path)][1:], float)
        close("roc", roc, np.column_stack([grid, mean_tpr] + tprs), 1e-9)
    assert scores[0] == ["fold", "gene_id", "symbol", "label", "tokens"] + ["probability." + n for n in labels]
    assert [r[:5] for r in scores[1:]] == [r[:5] for r in rows], "other genes"
    close("genes", [list(map(float, r[5:])) for r in scores[1:]], [r[5] for r in rows], 1e-8)


if __name__ == "__main__":
    plain = [a for a in sys.argv[2:] if "=" not in a]
    named = dict(a.split("=", 1) for a in sys.argv[2:] if "=" in a)
    {"make": make, "compare": compare}[sys.argv[1]](*plain, **{k: v if k == "what" else int(v) for k, v in named.items()})
