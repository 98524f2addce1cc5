"""Embedding streams for ctaprobe's tests, and scikit-learn's answers.

usage: probe.py make OUT.emb [cells=N] [features=N] [classes=N] [seed=N] [what=...]     write embeddings with labels
       probe.py compare TRAIN.emb TEST.emb PREDICTIONS METRICS.tsv [C=1] [standardize=1]
       probe.py nearest TRAIN.emb TEST.emb PREDICTIONS METRICS.tsv k=N [standardize=1]
                                                              predictions with the column fold: each fold by the other cells of TRAIN
       probe.py bayes TRAIN.counts TEST.counts PREDICTIONS METRICS.tsv      the same folds
       probe.py predict OUT.pred [cells=N] [classes=N] [seed=N] [what=unlabelled|unknown|nologits|nan|...]
                                                              predictions that are right now and then; ties; labels in no order
       probe.py metrics PREDICTIONS METRICS.tsv      the scores of the predictions by sklearn.metrics
Exits 1 with a message on a difference.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../python"))
import corrmask.stream as scstream                                                         # noqa: E402


def make(out, cells=400, features=24, classes=5, seed=1, what=""):
    rng = np.random.default_rng(seed)
    # rare classes: frequencies fall by half; the first types' names are not in the order of their codes
    p = 0.6 ** np.arange(classes)
    y = np.concatenate([np.arange(classes), rng.choice(classes, cells, p=p / p.sum())])[:cells]
    rng.shuffle(y)
    x = np.random.default_rng(0).normal(size=(classes, features))[y] * 0.7 + rng.normal(size=(cells, features)) * rng.uniform(0.3, 2, features) + 3
    donor = rng.integers(0, 6, cells)
    names = ["type%d" % (classes - i) for i in range(classes)]
    if what == "unlabelled":
        y[::7] = -1
    if what == "nolabel":
        y[:] = -1
    if what == "oneclass":
        y[:] = 0
    if what == "twoclasses":
        y = y % 2
    if what == "nan" and cells:
        x[cells // 2, 3] = np.nan
    if what == "constant":
        x[:, 2] = 5
    if what == "small":
        x = x.astype("f4") / 4096                                   # a power of two: nothing is rounded
    if what == "large":
        x[:, :3] *= 1e9
    if what == "numbers":
        names = [str(i) for i in range(classes)]
    header = {"kind": "embedding", "provenance": [],
              "columns": [{"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "barcode", "type": "str", "shape": "scalar"},
                          {"name": "n_counts", "type": "u64", "shape": "scalar"},
                          {"name": "cell_type", "type": "categorical", "shape": "scalar", "categories": names},
                          {"name": "donor", "type": "categorical", "shape": "scalar", "categories": ["d%d" % i for i in range(6)]},
                          {"name": "x", "type": "f32", "shape": "fixed", "n": features}],
              "vocab": {"id": ["<pad>", "<mask>", "ENSG1"], "symbol": ["", "", "A"], "median": [None, None, 1.5]}}
    blocks = []
    for a in range(0, cells, 150):
        s = slice(a, min(a + 150, cells))
        blocks.append({"cell": np.arange(a, s.stop), "barcode": ["c%d" % i for i in range(a, s.stop)],
                       "n_counts": np.full(s.stop - a, 1000), "cell_type": y[s], "donor": donor[s], "x": x[s].astype("f4")})
    scstream.write(out, header, blocks)


def predict(out, cells=500, classes=5, seed=1, what=""):
    rng = np.random.default_rng(seed)
    labels = ["type%d" % i for i in rng.permutation(classes)]
    names = labels[::-1] + ["other1", "other2"]                    # the categories are not the model's classes
    p = 0.6 ** np.arange(classes)
    y = rng.choice(classes, cells, p=p / p.sum())
    logit = rng.normal(size=(cells, classes))
    logit[np.arange(cells), classes - 1 - y] += 1.5
    logit[::9] = np.round(logit[::9])                               # ties
    logit[::31] = 0
    if what == "unlabelled":
        y[::7] = -1
    if what == "unknown":
        y[::11] = classes + (np.arange(len(y[::11])) % 2)
    if what == "nologits":
        logit[::10] = np.nan
    if what == "nan":
        logit[7, 2] = np.nan
    if what == "impossible":
        logit[7] = -np.inf
    if what == "infinite":
        logit[7, 2] = np.inf
    header = {"kind": "prediction", "provenance": [], "labels": labels,
              "columns": [{"name": "cell", "type": "u64", "shape": "scalar"},
                          {"name": "cell_type", "type": "categorical", "shape": "scalar", "categories": names},
                          {"name": "logit", "type": "f32", "shape": "fixed", "n": classes}]}
    blocks = [{"cell": np.arange(a, min(a + 150, cells)), "cell_type": y[a:a + 150], "logit": logit[a:a + 150].astype("f4")}
              for a in range(0, cells, 150)]
    scstream.write(out, header, blocks)


def load(path, column):
    x, y, cell = [], [], []
    for b in scstream.read(path):
        codes, names = b["cell_type"]
        y += [names[c] if c >= 0 else None for c in codes]
        x.append(np.asarray(b[column], "f8"))
        cell += list(b["cell"])
    keep = np.array([v is not None for v in y], bool)
    return np.concatenate(x)[keep], np.array(y, object)[keep].astype(str), np.array(cell)[keep]


def predictions(path):
    logit, truth, cell = load(path, "logit")
    labels = np.array(scstream.read(path).header["labels"])
    return logit, truth, cell, labels, labels[logit.argmax(1)]


def close(what, a, b, limit):
    a, b = np.asarray(a, float), np.asarray(b, float)
    if a.shape != b.shape:
        sys.exit(f"{what}: shape {a.shape}, expected {b.shape}")
    worst = np.abs(a - b).max(initial=0)
    print(f"{what}: largest difference {worst:.3g}")
    if not worst <= limit:
        sys.exit(f"{what}: differs by {worst:.3g}, more than {limit}")


def read_metrics(path):
    m = dict(line.rstrip("\n").split("\t") for line in open(path))
    assert m.pop("metric") == "value"
    return m


def metrics(pred_path, metrics_path):
    from sklearn import metrics as M
    logit, truth, _, labels, guess = predictions(pred_path)
    m = read_metrics(metrics_path)
    unknown = ~np.isin(truth, labels)
    known_logits = ~np.isnan(logit).any(1) & (logit.max(1) > -np.inf)
    if "unknown" in m:
        close("unknown", float(m["unknown"]), unknown.sum(), 0)
        close("unpredicted", float(m["unpredicted"]), (~known_logits).sum(), 0)
    keep = known_logits
    truth, guess = truth[keep], guess[keep]
    labels = np.unique(np.concatenate([labels, truth]))
    close("classes", float(m["classes"]), len(labels), 0)
    for key, want in {"accuracy": M.accuracy_score(truth, guess), "balanced_accuracy": M.recall_score(truth, guess, average="macro",
                      labels=np.unique(truth), zero_division=0), "macro_f1": M.f1_score(truth, guess, average="macro", zero_division=0),
                      "weighted_f1": M.f1_score(truth, guess, average="weighted", zero_division=0), "cells": len(truth)}.items():
        close(key, float(m[key]), want, 1e-14)
    each = M.f1_score(truth, guess, average=None, labels=labels, zero_division=0)
    close("f1", [float(m["f1:" + c]) for c in labels], each, 1e-14)
    close("n", [float(m["n:" + c]) for c in labels], [(truth == c).sum() for c in labels], 0)
    close("confusion", [[float(m.get(f"confusion:{a}:{b}", 0)) for b in labels] for a in labels], M.confusion_matrix(truth, guess, labels=labels), 0)
    occur = [c for c in labels if (truth == c).any()]
    train = "train_n:" if "train_n:" + labels[0] in m else "n:"
    order = sorted(occur, key=lambda c: (int(m[train + c]), c))[:max(1, round(len(occur) / 3))]
    close("f1_rare", float(m["f1_rare"]), np.mean([each[list(labels).index(c)] for c in order]), 1e-14)


def compare(train, test, pred_path, metrics_path, C=1.0, standardize=0):
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler
    xa, ya, _ = load(train, "x")
    xb, yb, cell = load(test, "x")
    scale = StandardScaler().fit(xa) if standardize else None
    za = scale.transform(xa) if scale else xa
    # scikit-learn's lbfgs also stops when the objective changes by less than 2e-9 of itself, a few 1e-3 short in the weights here. Its newton-cg
    # has the same objective and goes on. Ours ends at a gradient of 1e-5 a cell; the less penalty, the further from the optimum that can be.
    fit = LogisticRegression(C=C, tol=1e-9, max_iter=10000, solver="newton-cg").fit(za, ya)
    known = list(fit.classes_)
    logit, truth, cells, labels, guess = predictions(pred_path)
    assert (cells == cell).all() and (truth == yb).all(), "other cells, or another order"
    want = fit.decision_function(scale.transform(xb) if scale else xb)
    if len(known) == 2:
        want = np.stack([np.zeros(len(want)), want], 1)
    at = [list(labels).index(c) for c in known]
    assert np.isneginf(np.delete(logit, at, 1)).all(), "a class without training cells has a logit"
    got = logit[:, at]
    close("logits", got - got.mean(1, keepdims=True), want - want.mean(1, keepdims=True), 1e-2 * max(C, 0.1))
    assert (guess == fit.classes_[want.argmax(1)]).all(), "other predictions"
    metrics(pred_path, metrics_path)


def nearest(train, test, pred_path, metrics_path, k=1, standardize=0):
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import StandardScaler
    xa, ya, _ = load(train, "x")
    xb, yb, cell = load(test, "x")
    logit, truth, cells, labels, guess = predictions(pred_path)
    assert (cells == cell).all() and (truth == yb).all(), "other cells, or another order"
    blocks = list(scstream.read(pred_path))
    fold = np.concatenate([b["fold"] for b in blocks]) if "fold" in blocks[0] else np.zeros(len(xb), int)
    for f in np.unique(fold):
        use = fold != f if len(np.unique(fold)) > 1 else np.ones(len(xa), bool)
        scale = StandardScaler(with_mean=bool(standardize), with_std=bool(standardize)).fit(xa[use])
        fit = KNeighborsClassifier(k, algorithm="brute").fit(scale.transform(xa[use]), ya[use])
        at = [list(labels).index(c) for c in fit.classes_]
        share = fit.predict_proba(scale.transform(xb[fold == f]))
        close("shares", np.exp(logit[fold == f])[:, at], share, 1e-6)
        assert (guess[fold == f] == fit.predict(scale.transform(xb[fold == f]))).all(), "other predictions"
    metrics(pred_path, metrics_path)


def bayes(train, test, pred_path, metrics_path):
    from sklearn.naive_bayes import MultinomialNB

    def load_counts(path):                                          # {gene: count} of each cell, and its type
        rows, types = [], []
        with scstream.read(path) as stream:
            genes = stream.header["vocab"]["id"]
            for b in stream:
                (offset, gene), (_, count), (code, names) = b["gene"], b["count"], b["cell_type"]
                for i in range(len(code)):
                    at = slice(offset[i], offset[i + 1])
                    rows.append(dict(zip((genes[g] for g in gene[at]), count[at])))
                    types.append(names[code[i]])
        return genes, rows, np.array(types)
    (genes, rows_a, ya), (with_, rows_b, yb) = load_counts(train), load_counts(test)
    shared = [g for g in genes if g in with_]
    xa, xb = (np.array([[row.get(g, 0) for g in shared] for row in rows], float) for rows in (rows_a, rows_b))
    logit, truth, _, labels, guess = predictions(pred_path)
    assert (truth == yb).all(), "other cells, or another order"
    blocks = list(scstream.read(pred_path))
    fold = np.concatenate([b["fold"] for b in blocks]) if "fold" in blocks[0] else np.zeros(len(xb), int)
    for f in np.unique(fold):
        use = fold != f if len(np.unique(fold)) > 1 else np.ones(len(xa), bool)
        fit = MultinomialNB().fit(xa[use], ya[use])
        at = [list(labels).index(c) for c in fit.classes_]
        want = fit._joint_log_likelihood(xb[fold == f])
        close("logits", logit[fold == f][:, at] / np.abs(want).max(), want / np.abs(want).max(), 1e-6)
        assert np.isneginf(np.delete(logit[fold == f], at, 1)).all(), "a class that was not trained"
        assert (guess[fold == f] == fit.predict(xb[fold == f])).all(), "other predictions"
    metrics(pred_path, metrics_path)


if __name__ == "__main__":
    command = {"make": make, "predict": predict, "compare": compare, "nearest": nearest, "bayes": bayes, "metrics": metrics}[sys.argv[1]]
    plain = [a for a in sys.argv[2:] if "=" not in a]
    named = dict(a.split("=", 1) for a in sys.argv[2:] if "=" in a)
    command(*plain, **{k: v if k == "what" else float(v) if k == "C" else int(v) for k, v in named.items()})
