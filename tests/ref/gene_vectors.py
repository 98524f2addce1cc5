"""scembed --of genes and static, scgenes network, in numpy float64.

usage: gene_vectors.py genes MODEL TOKENS VECTORS [layer=-1] [by=COL]      means, numbers of cells, spread
       gene_vectors.py static MODEL VECTORS
       gene_vectors.py probe VECTORS LABELS.tsv SCORES.tsv GENE_SCORES.tsv  ctaprobe genes --gene-labels, by scikit-learn
       gene_vectors.py network VECTORS EDGES.tsv k=N [least=-1]            edges as depgraph -O tsv prints them
Exits 1 with a message on a difference.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../python"))
sys.path.insert(0, os.path.dirname(__file__))
import bert                                                             # noqa: E402
import corrmask.stream as scstream                                                         # noqa: E402
from probe import close                                                 # noqa: E402


def names(v):
    return [v[1][c] for c in v[0]]


def vectors(path, by=None):
    rows = {}
    for b in scstream.read(path):
        for i, t in enumerate(b["token"]):
            key = (int(t), names(b[by])[i] if by else None)
            assert key not in rows, "two rows of one gene"
            rows[key] = np.asarray(b["x"][i], float), int(b["cells"][i]) if "cells" in b else None, float(b["spread"][i]) if "spread" in b else None
            want = scstream.read(path).header["vocab"]["id"][int(t)] + (f" {key[1]}" if by else "")
            assert b["barcode"][i] == want, (b["barcode"][i], want)
    return rows


def genes(model, tokens, path, layer=-1, by=None):
    config, p = bert.load(model)
    special = sum(g.startswith("<") for g in scstream.read(tokens).header["vocab"]["id"])
    states = {}
    for b in scstream.read(tokens):
        offset, values = b["token"]
        for i in range(len(offset) - 1):
            ids = np.asarray(values[offset[i]:offset[i + 1]], int)
            hidden = bert.encode(config, p, ids)[config["num_hidden_layers"] + layer]
            for t, h in zip(ids, hidden):
                if t >= special:
                    states.setdefault((int(t), names(b[by])[i] if by else None), []).append(h)
    got = vectors(path, by)
    assert list(got) == sorted(states, key=lambda k: (k[1] or "", k[0])), "other genes, or another order"
    for what, at, want, limit in (("means", 0, lambda h: np.mean(h, 0), 2e-5), ("cells", 1, len, 0),
                                  ("spread", 2, lambda h: np.sqrt(((h - np.mean(h, 0)) ** 2).sum(1).mean()), 2e-5)):
        close(what, [got[k][at] for k in states], [want(np.array(states[k])) for k in states], limit)


def static(model, path):
    _, p = bert.load(model)
    table = p["bert.embeddings.word_embeddings.weight"]
    got = vectors(path)
    special = len(table) - len(got)
    close("table", [v[0] for v in got.values()], table[special:], 0)


def network(path, edges, k=10, least=-1.0):
    got = vectors(path)
    token = np.array([t for t, _ in got])
    x = np.array([v[0] for v in got.values()])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    cosine = x @ x.T
    np.fill_diagonal(cosine, -np.inf)
    want = {}
    for i, row in enumerate(cosine):
        for j in np.argsort(-row, kind="stable")[:k]:
            if row[j] >= least:
                want[tuple(sorted((int(token[i]), int(token[j]))))] = row[j]
    rows = [line.rstrip("\n").split("\t") for line in open(edges)]
    head = rows[0]
    number = {g: i for i, g in enumerate(scstream.read(path).header["vocab"]["id"])}
    columns = [c for c in head if rows[1][head.index(c)] in number]
    ours = {tuple(sorted(number[r[head.index(c)]] for c in columns)): float(r[head.index("rho")]) for r in rows[1:]}
    assert ours.keys() == want.keys(), f"{len(ours.keys() ^ want.keys())} other edges of {len(want)}"
    close("cosine", [ours[e] for e in want], list(want.values()), 1e-6)


def probe(path, table, scores, by_gene, C=1.0):
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
    from sklearn.preprocessing import StandardScaler
    want = dict(line.rstrip("\n").split("\t") for line in open(table))
    ids = scstream.read(path).header["vocab"]["id"]
    x = {ids[t]: v[0] for (t, _), v in vectors(path).items()}
    rows = [line.rstrip("\n").split("\t") for line in open(by_gene)]
    c = {n: i for i, n in enumerate(rows[0])}
    rows = rows[1:]
    classes = sorted(set(want.values()))
    assert {r[c["gene_id"]]: r[c["label"]] for r in rows} == {g: y for g, y in want.items() if g in x}, "other genes, or other labels"
    fold = {r[c["gene_id"]]: int(r[c["fold"]]) for r in rows}
    got = {line.split("\t")[0]: line.rstrip("\n").split("\t")[1] for line in open(scores)}
    y, guess = [], []
    for f in sorted(set(fold.values())):
        train, test = [g for g in fold if fold[g] != f], [g for g in fold if fold[g] == f]
        scale = StandardScaler().fit([x[g] for g in train])
        fitted = LogisticRegression(C=C, tol=1e-10, max_iter=20000).fit(scale.transform([x[g] for g in train]), [want[g] for g in train])
        p = fitted.predict_proba(scale.transform([x[g] for g in test]))
        ours = {r[c["gene_id"]]: [float(r[c["probability." + k]]) for k in classes] for r in rows if fold[r[c["gene_id"]]] == f}
        close("probabilities", [ours[g] for g in test], p, 1e-4)
        p, truth = np.array([ours[g] for g in test]), np.array([classes.index(want[g]) for g in test])
        auc = roc_auc_score(truth, p[:, 1]) if len(classes) == 2 else np.mean([roc_auc_score(truth == k, p[:, k]) for k in range(len(classes))])
        for name in ("auc_fold", "gene_auc_fold"):
            close(name, float(got[f"{name}:{f}"]), auc, 1e-9)
        close("accuracy", float(got[f"accuracy_fold:{f}"]), accuracy_score(truth, p.argmax(1)), 1e-9)
        y += list(truth)
        guess += list(p.argmax(1))
    close("macro F1", float(got["macro_f1"]), f1_score(y, guess, average="macro"), 1e-9)


options = dict(a.split("=", 1) for a in sys.argv[2:] if "=" in a)
for key in options:
    options[key] = options[key] if key == "by" else float(options[key]) if key in ("least", "C") else int(options[key])
{"genes": genes, "static": static, "network": network, "probe": probe}[sys.argv[1]](*(a for a in sys.argv[2:] if "=" not in a), **options)
