"""Embeddings for scmetric integration, and what other libraries say of them.

usage: integration.py make OUT.emb [cells=N] [features=N] [types=N] [batches=N] [seed=N] [what=...]
       integration.py others IN.emb                      mixed.emb, scaled.emb, mirror.emb: the same scores
       integration.py compare IN.emb SCORES.tsv        numpy, scipy and scikit-learn in float64, from the definitions
       integration.py peers IN.emb SCORES.tsv          scib, scanpy, scib-metrics, scikit-learn; these must be installed
       integration.py cz IN.emb SCORES.tsv [fold=COL] [nearest=K]     ctaprobe cells --protocol cz --fold COL, by scikit-learn
       integration.py umap > umap_graph.tsv             rows, and the weights of their graph by scanpy
Exits 1 with a message on a difference.
"""
import os
import sys

import numpy as np

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), d) for d in (".", "../../python")]
import results                                                          # noqa: E402
import scstream                                                         # noqa: E402


def make(out, cells=400, features=12, types=5, batches=3, seed=1, what=""):
    rng = np.random.default_rng(seed)
    p = 0.7 ** np.arange(types)
    y = np.concatenate([np.arange(types), rng.choice(types, cells, p=p / p.sum())])[:cells]
    rng.shuffle(y)
    b = rng.integers(0, batches, cells)
    x = rng.normal(size=(types, features))[y] * 1.2 + rng.normal(size=(batches, features))[b] * 0.5 + rng.normal(size=(cells, features))
    cluster = np.where(rng.random(cells) < 0.2, rng.integers(0, types + 2, cells), y)
    if what == "uneven":                            # a type of one cell, a type in one batch, a type of which each cell has its own batch
        y = np.where(y == types - 1, 0, y)
        y[7] = types - 1
        b = np.where(y == 1, 0, b)
        own = np.flatnonzero(y == types - 2)
        y[own[batches:]] = 0
        b[own[:batches]] = np.arange(len(own[:batches]))
    if what == "twins":                             # equal rows
        x = x[np.arange(cells) // 5 * 5]
    if what == "equal":
        x[:] = 2.5
    if what == "far":                               # far from 0; one cell very far
        x = x / 64 + 1e4
        x[3] = 1e7
    if what == "tiny":
        x *= 2.0 ** -100
    if what == "huge":
        x *= 2.0 ** 100
    if what == "nan" and cells:
        x[cells // 2, 1] = np.nan
    if what == "infinite":
        x[cells // 2, 1] = np.inf
    if what == "empty":                             # cells without an embedding
        x[::9] = np.nan
    if what == "unlabelled":
        y = np.where(np.arange(cells) % 6 == 0, -1, y)
    if what == "nobatch":
        b[cells // 2] = -1
    if what == "drugs":                             # each batch is of one type
        y = b % types
    if what == "onelabel":
        y[:] = 1
    if what == "ownlabel":
        y = np.arange(cells)
    header = {"kind": "embedding", "provenance": [],
              "columns": [{"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "barcode", "type": "str", "shape": "scalar"},
                          {"name": "cell_type", "type": "categorical", "shape": "scalar",
                           "categories": ["type%d" % i for i in range(max(types, y.max(initial=0) + 1))]},
                          {"name": "batch", "type": "categorical", "shape": "scalar", "categories": ["b%d" % i for i in range(batches)]},
                          {"name": "cluster", "type": "u32", "shape": "scalar"},
                          {"name": "x", "type": "f32", "shape": "fixed", "n": features}],
              "vocab": {"id": ["<pad>", "<mask>", "ENSG1"], "symbol": ["", "", "A"], "median": [None, None, 1.5]}}
    blocks = []
    for a in range(0, cells, 150):
        s = slice(a, min(a + 150, cells))
        blocks.append({"cell": np.arange(a, s.stop), "barcode": ["c%d" % i for i in range(a, s.stop)], "cell_type": y[s], "batch": b[s],
                       "cluster": cluster[s], "x": x[s].astype("f4")})
    scstream.write(out, header, blocks)


def columns(path):
    """All columns; of categorical ones the codes."""
    s = scstream.read(path)
    blocks = [{k: v[0] if isinstance(v, tuple) else v for k, v in b.items()} for b in s]
    return s.header, {k: np.concatenate([np.asarray(b[k]) for b in blocks]) for k in blocks[0]}


def others(path):
    """The same cells in another order, in another unit, and as in a mirror."""
    header, c = columns(path)
    order = np.random.default_rng(1).permutation(len(c["x"]))
    scstream.write("mixed.emb", header, [{k: v[order] for k, v in c.items()}])
    scstream.write("scaled.emb", header, [dict(c, x=c["x"] * np.float32(2.0 ** 40))])
    scstream.write("mirror.emb", header, [dict(c, x=-c["x"][:, ::-1])])


def load(path):
    """Rows in float32, labels, batches and clusters of the labelled cells that have an embedding."""
    c = columns(path)[1]
    keep = (c["cell_type"] >= 0) & ~np.isnan(c["x"]).all(1)
    return c["x"][keep], c["cell_type"][keep], c["batch"][keep], c["cluster"][keep].astype(int)


def cz(path, scores, fold="batch", nearest=0):
    """The protocol of cz-benchmarks with given folds, and logistic regressions that converge."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score, roc_auc_score
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    header, c = columns(path)
    x, y, at = c["x"].astype("f8"), c["cell_type"], c[fold]
    keep = (y >= 0) & ~np.isnan(x).all(1)
    keep &= np.isin(y, [k for k in np.unique(y[keep]) if (y[keep] == k).sum() >= 10])
    x, y, at = x[keep], y[keep], at[keep]
    want = {k: [] for k in ("accuracy", "f1", "precision", "recall", "auroc")}
    for f in sorted(np.unique(at), key=str):
        test = at == f
        model = KNeighborsClassifier(nearest) if nearest else LogisticRegression(tol=1e-10, max_iter=20000)
        model = make_pipeline(StandardScaler(with_mean=False), model).fit(x[~test], y[~test])
        guess, p = model.predict(x[test]), model.predict_proba(x[test])
        binary = len(np.unique(y)) == 2
        how = {"average": "binary" if binary else "macro", "zero_division": 0, **({"pos_label": y.max()} if binary else {})}
        want["accuracy"].append(accuracy_score(y[test], guess))
        for name, score in ("f1", f1_score), ("precision", precision_score), ("recall", recall_score):
            want[name].append(score(y[test], guess, **how))
        want["auroc"].append(roc_auc_score(y[test], p[:, 1] if binary else p, **({} if binary else {"multi_class": "ovr"})))
    got = results.load(open(scores))
    for name, v in want.items():
        off = np.abs(np.array(got["cz_%s_fold" % name]) - v).max()
        if not off < 1e-6:
            sys.exit("%s: %s, expected %s" % (name, got["cz_%s_fold" % name], v))
    if got["cells"] != len(x):
        sys.exit("%s cells, expected %d" % (got["cells"], len(x)))


# ---- from the definitions ----

def neighbours(x, k):
    """The k nearest rows without the row itself; of equal ones the lower row."""
    x = np.ldexp(x.astype("f8"), -int(np.frexp(np.abs(x).max() or 1)[1]))
    d = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        d[i] = np.sqrt(((x - x[i]) ** 2).sum(1))
    at = d + np.diag(np.full(len(x), np.inf))
    near = np.argsort(at, axis=1, kind="stable")[:, :k]
    return near, np.take_along_axis(d, near, 1), d


def graph(near, d):
    """The weights of UMAP as a dense matrix, from the neighbours without the row itself."""
    n, k = near.shape
    w = np.zeros((n, n))
    for i in range(n):
        rho = d[i][d[i] > 0].min() if (d[i] > 0).any() else 0
        mean = d[i].sum() / (k + 1) if rho else d.sum() / (n * (k + 1))
        off = np.maximum(d[i] - rho, 0)
        low, high = 0, 1e6 * (mean or 1)
        for _ in range(200):
            s = (low + high) / 2
            low, high = (low, s) if np.exp(-off / s).sum() > np.log2(k + 1) else (s, high)
        w[i, near[i]] = np.exp(-off / max(low, 1e-3 * mean, 1e-300))
    return w + w.T - w * w.T


def lisi(near, d, group, perplexity):
    out = []
    for i in range(len(near)):
        low, high = 0, 1e8 / (d[i].mean() or 1)
        for _ in range(200):
            beta = (low + high) / 2
            p = np.exp(-beta * (d[i] - d[i].min()))
            p /= p.sum()
            h = -(p[p > 0] * np.log(p[p > 0])).sum()
            low, high = (beta, high) if h > np.log(perplexity) else (low, beta)
        out.append(1 / (np.bincount(group[near[i]], p) ** 2).sum())
    return np.median(out)


def kbet(near, batch):
    from scipy.stats import chi2
    share = np.bincount(batch) / len(batch)
    rows = np.concatenate([np.arange(len(near))[:, None], near], 1)
    seen = np.array([np.bincount(batch[r], minlength=len(share)) for r in rows])
    want = share * rows.shape[1]
    return (chi2.sf(((seen - want) ** 2 / want).sum(1), len(share) - 1) >= 0.05).mean()


def pcr(x, batch):
    x = x.astype("f8") - x.astype("f8").mean(0)
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    u, v = u[:, :50], s[:50] ** 2
    between = sum((batch == b).sum() * u[batch == b].mean(0) ** 2 for b in np.unique(batch))
    return (v * between).sum() / v.sum()


def widths(d, y):
    """Silhouette widths of all cells from their distances; 0 where it is 0 / 0."""
    out = np.zeros(len(y))
    for i in range(len(y)):
        mean = {c: d[i][y == c].sum() / max((y == c).sum() - (c == y[i]), 1) for c in np.unique(y)}
        a = mean.pop(y[i])
        b = min(mean.values())
        out[i] = 0 if (y == y[i]).sum() == 1 or max(a, b) == 0 else (b - a) / max(a, b)
    return out


def expected(x, y, batch, cluster):
    from scipy.sparse.csgraph import connected_components
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
    y, batch = (np.unique(v, return_inverse=True)[1] for v in (y, batch))
    k, b = y.max() + 1, batch.max() + 1
    near, far, d = neighbours(x, min(89, len(x) - 1))
    w = graph(near[:, :14], far[:, :14]).astype("f4")              # scanpy drops what float32 cannot tell from 0
    want = {"asw_label": (1 + widths(d, y).mean()) / 2,
            "graph_connectivity": np.mean([np.bincount(connected_components(w[np.ix_(y == c, y == c)] > 0)[1]).max() / (y == c).sum()
                                           for c in range(k)]),
            "nmi_clusters": normalized_mutual_info_score(y, cluster), "ari_clusters": adjusted_rand_score(y, cluster),
            "cells": len(x), "batches": b}
    if len(x) >= 90:
        want["clisi"] = (k - lisi(near, far, y, 30)) / (k - 1)
    if b > 1:
        by_type = []
        for c in range(k):
            at = np.flatnonzero(y == c)
            if 1 < len(np.unique(batch[at])) < len(at):
                by_type.append(1 - np.abs(widths(d[np.ix_(at, at)], batch[at])).mean())
        want["asw_batch"] = np.mean(by_type) if by_type else None
        want["pcr"] = pcr(x, batch) if len(np.unique(x, axis=0)) > 1 else None
        if len(x) >= 50:
            want["kbet"] = kbet(near[:, :49], batch)
        if len(x) >= 90:
            want["ilisi"] = (lisi(near, far, batch, 30) - 1) / (b - 1)
    bio = np.mean([want["nmi_clusters"], want["ari_clusters"], want["asw_label"]])
    want["avg_bio_clusters"] = bio
    for key in "asw_batch", "ilisi", "kbet", "pcr", "clisi":
        want.setdefault(key, None)
    want["avg_batch"] = None if want["asw_batch"] is None else (want["graph_connectivity"] + want["asw_batch"]) / 2
    want["score_clusters"] = None if want["asw_batch"] is None else 0.6 * bio + 0.4 * want["avg_batch"]
    return want


def close(got, want, tolerance):
    return (got is None) == (want is None) and (want is None or abs(got - want) <= tolerance)


def compare(path, scores):
    got = results.load(open(scores))
    want = expected(*load(path))
    for key, v in want.items():
        if key in got and not close(got[key], v, 1e-4 if key in ("ilisi", "clisi") else 1e-9):
            sys.exit(f"{key}: {got[key]}, expected {v}")
    print("asw_label %.4f ilisi %s" % (got["asw_label"], got["ilisi"]))


# ---- other libraries ----

def peers(path, scores):
    """The tolerances are those that float32 of these libraries leaves."""
    import warnings
    warnings.simplefilter("ignore")
    import anndata
    import pandas as pd
    import scanpy as sc
    import scib
    from scib_metrics import clisi_knn, ilisi_knn, kbet as peer_kbet
    from scib_metrics.nearest_neighbors import NeighborsResults
    got = results.load(open(scores))
    x, y, batch, cluster = load(path)
    obs = pd.DataFrame({"label": pd.Categorical(y.astype(str)), "batch": pd.Categorical(batch.astype(str)),
                        "cluster": pd.Categorical(cluster.astype(str))}, index=np.arange(len(x)).astype(str))
    a = anndata.AnnData(X=x.astype("f8"), obs=obs, obsm={"X_emb": x.astype("f8")})
    sc.pp.neighbors(a, use_rep="X_emb", n_neighbors=15)
    near, far, _ = neighbours(x, 89)
    unit = 2.0 ** int(np.frexp(np.abs(x).max())[1])
    me = np.arange(len(x))[:, None]
    found = NeighborsResults(indices=np.concatenate([me, near], 1).astype("i4"),
                             distances=np.concatenate([0.0 * me, far * unit], 1).astype("f4"))
    want = {"asw_label": (scib.me.silhouette(a, "label", "X_emb"), 1e-6),
            "asw_batch": (scib.me.silhouette_batch(a, "batch", "label", "X_emb", verbose=False), 1e-6),
            "graph_connectivity": (scib.me.graph_connectivity(a, "label"), 1e-9),
            "pcr": (scib.me.pcr(a, "batch", embed="X_emb"), 1e-6),
            "ilisi": (float(ilisi_knn(found, batch)), 1e-4), "clisi": (float(clisi_knn(found, y)), 1e-4),
            "kbet": (float(peer_kbet(found.subset_neighbors(50), batch)[0]), 1e-4)}
    if "nmi_clusters" in got:
        want["nmi_clusters"] = scib.me.nmi(a, "cluster", "label"), 1e-9
        want["ari_clusters"] = scib.me.ari(a, "cluster", "label"), 1e-9
    else:
        sc.tl.leiden(a, resolution=1, random_state=0, flavor="leidenalg", n_iterations=-1)
        w, c = a.obsp["connectivities"].astype("f8"), a.obs["leiden"].cat.codes.to_numpy()
        same = np.eye(c.max() + 1)[c]
        degree = np.asarray(w.sum(1)).ravel()
        q = ((same * (w @ same)).sum() - ((same.T @ degree) ** 2).sum() / degree.sum()) / degree.sum()
        print("modularity %.6f, leidenalg %.6f" % (got["modularity_resolution_1"], q))
        if got["modularity_resolution_1"] < 0.995 * q:
            sys.exit("modularity: %g, expected %g" % (got["modularity_resolution_1"], q))
    for key, (v, tolerance) in want.items():
        print("%s\t%.9g\t%.9g\t%.1g" % (key, got[key], v, abs(got[key] - v)))
        if not close(got[key], v, tolerance):
            sys.exit(f"{key}: {got[key]}, expected {v}")


def umap():
    """60 rows, of which one is far."""
    import anndata
    import scanpy as sc
    x = np.round(np.random.default_rng(5).normal(size=(60, 3)), 3).astype("f4")
    x[20] = 40
    a = anndata.AnnData(X=x)
    sc.pp.neighbors(a, use_rep="X", n_neighbors=15)
    print("# tests/ref/integration.py umap, scanpy %s: rows, then pairs and their weights" % sc.__version__)
    for i, row in enumerate(x):
        print("row", i, *("%.3f" % v for v in row), sep="\t")
    w = a.obsp["connectivities"].tocoo()
    for i, j, v in zip(w.row, w.col, w.data):
        if i < j:
            print("pair", i, j, "%.9g" % v, sep="\t")


if __name__ == "__main__":
    words = dict(w.split("=") for w in sys.argv[2:] if "=" in w)
    files = [w for w in sys.argv[2:] if "=" not in w]
    globals()[sys.argv[1]](*files, **{k: int(v) if v.isdigit() else v for k, v in words.items()})
