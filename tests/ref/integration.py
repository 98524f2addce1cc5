"""Embeddings for scmetric integration, and what other libraries say of them.

usage: integration.py make OUT.emb [cells=N] [features=N] [types=N] [batches=N] [seed=N] [what=...]
       integration.py others IN.emb                      mixed.emb, scaled.emb, mirror.emb: the same scores
       integration.py compare NAME...                    reports of NAME.emb: numpy, scipy and scikit-learn in float64, from the definitions
       integration.py cz IN.emb SCORES.tsv [fold=COL] [nearest=K]     ctaprobe cells --protocol cz --fold-column COL, by scikit-learn
       integration.py umap > umap_graph.tsv             rows, and the weights of their graph by scanpy
       integration.py values > integration.tsv          metrics of these rows, of types i % 3 and batches x > 0
Exits 1 with a message on a difference.
"""
import os
import sys

import numpy as np

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), d) for d in (".", "../../python")]
import results                                                          # noqa: E402
import corrmask.stream as scstream                                                         # noqa: E402


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


def search(n, high, above):
    """For each of n rows, the number between 0 and high at which above(numbers) turns from True to False."""
    low = np.zeros(n)
    for _ in range(200):
        middle = (low + high) / 2
        more = above(middle)
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return low


def graph(near, d):
    """The weights of UMAP as a dense matrix, from the neighbours without the row itself."""
    n, k = near.shape
    rho = np.array([r[r > 0].min() if (r > 0).any() else 0 for r in d])[:, None]
    mean = np.where(rho[:, 0] > 0, d.sum(1) / (k + 1), d.sum() / (n * (k + 1)))
    off = np.maximum(d - rho, 0)
    sigma = search(n, 1e6 * np.where(mean > 0, mean, 1), lambda s: np.exp(-off / s[:, None]).sum(1) <= np.log2(k + 1))
    w = np.zeros((n, n))
    w[np.arange(n)[:, None], near] = np.exp(-off / np.maximum(np.maximum(sigma, 1e-3 * mean), 1e-300)[:, None])
    return w + w.T - w * w.T


def lisi(near, d, group, perplexity):
    def shares(beta):
        p = np.exp(-beta[:, None] * (d - d.min(1, keepdims=True)))
        return p / p.sum(1, keepdims=True)

    def entropy(p):
        return -(p * np.log(np.where(p > 0, p, 1))).sum(1)

    mean = d.mean(1)
    p = shares(search(len(near), 1e8 / np.where(mean > 0, mean, 1), lambda beta: entropy(shares(beta)) > np.log(perplexity)))
    return np.median([1 / (np.bincount(group[near[i]], p[i]) ** 2).sum() for i in range(len(near))])


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


def bras(x, y, batch):
    from sklearn.metrics.pairwise import cosine_distances          # it takes very small rows for 0
    x, out = x.astype("f8") / np.abs(x).max(), []
    for c in np.unique(y):
        at = np.flatnonzero(y == c)
        b, d = batch[at], cosine_distances(x[at])
        d[np.arange(len(at)), np.arange(len(at))] = 0
        if not 1 < len(np.unique(b)) < len(at):
            continue
        width = []
        for i in range(len(at)):
            own, rest = d[i][b == b[i]].sum() / max((b == b[i]).sum() - 1, 1), d[i][b != b[i]].mean()
            width.append(0 if (b == b[i]).sum() == 1 or max(own, rest) == 0 else abs(rest - own) / max(own, rest))
        out.append(1 - np.mean(width))
    return np.mean(out) if out else None


def sbee(d, near, y, batch):
    from scipy.spatial.distance import jensenshannon
    score, k = np.zeros(len(y)), batch.max() + 1
    for i in range(len(y)):
        mine = (y == y[i]) & (np.arange(len(y)) != i)
        u, v = d[i][mine & (batch == batch[i])], d[i][mine & (batch != batch[i])]
        u = np.median(u) if len(u) else 0
        v = np.median(v) if len(v) else u
        local = np.concatenate([[i], near[i]])[:(y == y[i]).sum()]
        p = np.bincount(batch[local[y[local] == y[i]]], minlength=k)
        mixed = 1 - jensenshannon(np.maximum(p, 1e-10), np.maximum(np.bincount(batch[y == y[i]], minlength=k), 1e-10), base=2)
        far = np.exp(-(1 - min(1, u / v)) / 0.15) if u > 0 and v > 0 else 0
        score[i] = 2 * mixed * far / (mixed + far) if u > 0 and v > 0 else 0
    return np.mean([np.mean([score[(y == c) & (batch == b)].mean() for b in np.unique(batch[y == c])]) for c in np.unique(y)])


def kbet_per_label(w, y, batch):
    from scipy.sparse.csgraph import connected_components
    out, most = [], 100
    for c in np.unique(y):
        at = np.flatnonzero(y == c)
        if len(at) < 10 or len(np.unique(batch[at])) == 1:
            continue
        k = min(70, max(10, int(np.mean(np.unique(batch[at], return_counts=True)[1]) / 4)))
        parts, part = connected_components(w[np.ix_(at, at)] > 0)
        if parts > 1:
            large = np.bincount(part)[part] >= 3 * k
            if large.mean() < 0.75:
                out.append(0)
                continue
            at = at[large]
        most = min(most, len(at) - 1)
        if len(np.unique(batch[at])) == 1:
            out.append(0)
            continue
        t = w[np.ix_(at, at)].astype("f8")
        t = t / t.sum(0) / t.sum(0)[:, None]
        root = np.sqrt(t.sum(0))
        value, vector = np.linalg.eigh(t / root / root[:, None])
        order = np.argsort(-np.abs(value))[:most]
        value = value[order].astype("f4")
        at_map = vector[:, order].astype("f4") * np.array([1 if v >= 1 else v / (1 - v) for v in value], "f4")
        out.append(kbet(neighbours(at_map, min(k, len(at) - 1))[0], np.unique(batch[at], return_inverse=True)[1]))
    return np.mean(out) if out else None


def connectivity(graph, y, how):
    from scipy.sparse.csgraph import connected_components
    return np.mean([np.bincount(connected_components(graph[np.ix_(y == c, y == c)], connection=how)[1]).max() / (y == c).sum()
                    for c in np.unique(y)])


def expected(x, y, batch):
    y, batch = (np.unique(v, return_inverse=True)[1] for v in (y, batch))
    k, b = y.max() + 1, batch.max() + 1
    near, far, d = neighbours(x, min(89, len(x) - 1))
    w = graph(near[:, :14], far[:, :14]).astype("f4")              # scanpy drops what float32 cannot tell from 0
    directed = np.zeros(w.shape, bool)
    directed[np.arange(len(x))[:, None], near[:, :14]] = True
    width = (1 + widths(d, y)) / 2
    want = {"silhouette_label": width.mean(), "graph_connectivity": {"scib": connectivity(w > 0, y, "weak"),
            "scib-metrics": connectivity(directed, y, "strong")}, "clisi": (k - lisi(near, far, y, 30)) / (k - 1) if len(x) >= 90 else None}
    if b > 1:
        by_type = []
        for c in range(k):
            at = np.flatnonzero(y == c)
            if 1 < len(np.unique(batch[at])) < len(at):
                by_type.append(1 - np.abs(widths(d[np.ix_(at, at)], batch[at])).mean())
        want["silhouette_batch"] = np.mean(by_type) if by_type else None
        want["pcr"] = pcr(x, batch)
        in_batches = np.array([len(np.unique(batch[y == c])) for c in range(k)])
        want["isolated_labels"] = np.mean([width[y == c].mean() for c in np.flatnonzero(in_batches == in_batches.min())])
        want["bras"] = bras(x, y, batch)
        want["sbee"] = sbee(d, near, y, batch)
        if len(x) >= 50:
            want["kbet"] = kbet(near[:, :49], batch)
            want["kbet_per_label"] = kbet_per_label(graph(near[:, :49], far[:, :49]).astype("f4"), y, batch)
        if len(x) >= 90:
            want["ilisi"] = (lisi(near, far, batch, 30) - 1) / (b - 1)
    for key in "silhouette_batch", "isolated_labels", "bras", "sbee", "ilisi", "kbet", "kbet_per_label", "pcr":
        want.setdefault(key, None)
    return want


# LISI: the perplexity is searched to 1e-5; BRAS: 1 - cosine of rows far from 0 has few digits
TOLERANCE = {"ilisi": 1e-4, "clisi": 1e-4, "bras": 1e-4}


def compare(*names):
    """Every metric, with all digits, of NAME.scib.report and NAME.scib-metrics.report of NAME.emb. The means are those of the metrics that are there."""
    for name in names:
        want = expected(*load(name + ".emb")[:3])
        for preset in "scib", "scib-metrics":
            lines = [line.rstrip("\n").split("\t") for line in open(f"{name}.{preset}.report")]
            got = {key.partition(":")[2]: results.number(v) for key, v in lines if key.startswith(name + ":")}
            if not 5 < len(want.keys() & got.keys()):
                sys.exit(f"{name}, {preset}: few metrics: {got.keys()}")
            for key in want.keys() & got.keys():
                v, mine = want[key], got[key]
                v = v[preset] if isinstance(v, dict) else v
                if (mine is None) != (v is None) or (v is not None and not abs(mine - v) <= TOLERANCE.get(key, 1e-9)):
                    sys.exit(f"{name}, {preset}: {key}: {mine}, expected {v}")


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


def values():
    from sklearn.cluster import KMeans
    lines = [line.split() for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "umap_graph.tsv"))]
    x = np.array([line[2:] for line in lines if line[0] == "row"], "f4")
    y, batch = np.arange(60) % 3, (x[:, 0] > 0).astype(int)
    near, far, d = neighbours(x, 59)
    w = graph(near[:, :14], far[:, :14])
    found = {"bras": bras(x, y, batch), "sbee": sbee(d, near[:, :40], y, batch),
             "kbet_per_label": kbet_per_label(graph(near[:, :49], far[:, :49]).astype("f4"), y, batch),
             "kmeans": KMeans(3, n_init=100, tol=0, random_state=1).fit(x.astype("f8")).inertia_}
    e = np.linalg.eigvalsh(w)
    for i, v in enumerate(e[np.argsort(-np.abs(e))][:5]):
        found["eigenvalue%d" % i] = v
    print("# tests/ref/integration.py values, numpy %s" % np.__version__)
    for name, v in found.items():
        print("%s\t%.12g" % (name, v))


if __name__ == "__main__":
    words = dict(w.split("=") for w in sys.argv[2:] if "=" in w)
    files = [w for w in sys.argv[2:] if "=" not in w]
    globals()[sys.argv[1]](*files, **{k: int(v) if v.isdigit() else v for k, v in words.items()})
