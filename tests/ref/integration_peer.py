"""scmetric integration beside scib-metrics: every metric of the presets, in numbers.

    integration_peer.py random SCMETRIC FILES             FILES AnnData files of ten random embeddings each
    integration_peer.py real SCMETRIC FILE LABEL BATCH    50 components of the log counts of an AnnData file, and these centred by batch

Both search neighbours exactly: pynndescent is replaced, of scib-metrics too. Its transitions for kbet_per_label are made in float64: in float32
the largest eigenvalue, 1, may come out as 0.99999994, and l / (1 - l) of it then drowns all other components (DIFFUSION=float32 leaves it so).
k-means and Leiden begin at random in both: their NMI and ARI are printed only.
"""
import os
import subprocess
import sys
import tempfile
import warnings

warnings.simplefilter("ignore")
os.environ["JAX_PLATFORMS"] = "cpu"
import anndata                                                          # noqa: E402
import jax                                                              # noqa: E402
import numpy as np                                                      # noqa: E402
import pandas as pd                                                     # noqa: E402
import scib_metrics as sm                                               # noqa: E402
from scib_metrics.utils import _diffusion_nn as diffusion               # noqa: E402
from scib_metrics.nearest_neighbors import NeighborsResults             # noqa: E402

TOLERANCE = {"clisi": 1e-4, "ilisi": 1e-4}                              # both search the perplexity to 1e-5
FLOAT32 = 3e-5                                                          # what float32 leaves of the other library's values


def exact(x, n_neighbors, **_):
    """The nearest rows with the row itself first; of equal ones the lower row."""
    x = np.asarray(x, "f8")
    near, far = np.empty((len(x), n_neighbors), "i4"), np.empty((len(x), n_neighbors), "f4")
    for i, row in enumerate(x):
        d = np.sqrt(((x - row) ** 2).sum(1))
        d[i] = -1
        at = np.lexsort((np.arange(len(x)), d))[:n_neighbors] if len(x) < 500 else first(d, n_neighbors)
        near[i], far[i] = at, np.maximum(d[at], 0)
    return NeighborsResults(indices=near, distances=far)


def first(d, k):
    at = np.argpartition(d, k)[:k + 1]
    at = at[np.lexsort((at, d[at]))]
    return at[:k]


sm.nearest_neighbors.pynndescent = exact
if os.environ.get("DIFFUSION") != "float32":
    transitions = diffusion._compute_transitions
    diffusion._compute_transitions = lambda x: transitions(x.astype("f8"))


def peer(x, y, batch, before):
    found = exact(x, 90)
    fifteen, fifty = found.subset_neighbors(15), found.subset_neighbors(50)
    score, table = sm.kbet_per_label(fifty, batch, y, return_df=True)
    return {"isolated_labels": sm.isolated_labels(x, y, batch), "silhouette_label": sm.silhouette_label(x, y), "clisi": sm.clisi_knn(found, y),
            "bras": sm.bras(x, y, batch), "silhouette_batch": sm.silhouette_batch(x, y, batch), "ilisi": sm.ilisi_knn(found, batch),
            "kbet_per_label": score, "graph_connectivity": sm.graph_connectivity(fifteen, y),
            "pcr_comparison": sm.pcr_comparison(before, x, batch, categorical=True), "sbee": sm.sbee(found, x, batch, y),
            "kbet": sm.kbet(fifty, batch)[0], **{"kmeans_" + k: v for k, v in sm.nmi_ari_cluster_labels_kmeans(x, y).items()}}


def ours(scmetric, path, keys):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([scmetric, "integration", "-q", "-l", "label", "-b", "batch", "--embedding", ",".join(keys), path, "-o", folder + "/out",
                        "--report", folder + "/report"], check=True)
        return dict(line.rstrip("\n").split("\t") for line in open(folder + "/report"))


def compare(scmetric, path, keys, a, worst):
    y, batch = (a.obs[c].astype(str).to_numpy() for c in ("label", "batch"))
    got, bad = ours(scmetric, path, keys), 0
    for key in keys:
        want = peer(a.obsm[key], y, batch, a.obsm[keys[0]])
        for name, v in want.items():
            mine = float(got[key + ":" + name].replace("NA", "nan"))
            off = abs(mine - float(v))
            worst.setdefault(name, []).append(off)
            if not name.startswith("kmeans") and not off <= TOLERANCE.get(name, FLOAT32):
                print("%s %s %s: %s, scib-metrics %s" % (path, key, name, mine, v))
                bad += 1
    return bad


def summary(worst):
    print("metric\tembeddings\tequal_1e-6\tmedian\tlargest")
    for name, v in worst.items():
        v = np.array(v)
        print("%s\t%d\t%d\t%.1e\t%.1e" % (name, len(v), (v < 1e-6).sum(), np.median(v), v.max()))


def make(seed, path):
    rng = np.random.default_rng(seed)
    n, d, types, batches = ((300, 10, 4, 3), (700, 20, 6, 2), (450, 7, 3, 5))[seed % 3]
    p = 0.6 ** np.arange(types)
    y, b = rng.choice(types, n, p=p / p.sum()), rng.integers(0, batches, n)
    y[:2 * types] = np.repeat(np.arange(types), 2)
    if seed % 4 == 1:                                                   # a type in one batch
        b[y == types - 1] = 0
    obs = pd.DataFrame({"label": pd.Categorical(["t%d" % i for i in y]), "batch": pd.Categorical(["b%d" % i for i in b])},
                       index=["c%d" % i for i in range(n)])
    x = [rng.normal(size=(types, d))[y] * rng.uniform(0.3, 4) + rng.normal(size=(batches, d))[b] * rng.uniform(0, 2) + rng.normal(size=(n, d))
         for _ in range(10)]
    x[0] = x[0] + rng.normal(size=(batches, d))[b] * 3                # the one before integration
    a = anndata.AnnData(obs=obs, obsm={"X_%d" % i: v.astype("f4") for i, v in enumerate(x)})
    a.write_h5ad(path)
    return a


def random(scmetric, files):
    worst, bad = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(int(files)):
            a = make(seed, folder + "/a.h5ad")
            bad += compare(scmetric, folder + "/a.h5ad", list(a.obsm.keys()), a, worst)
    summary(worst)
    sys.exit(bad > 0)


def real(scmetric, path, label, batch):
    worst = {}
    full = anndata.read_h5ad(path)
    full = full[full.obs[label].notna() & full.obs[batch].notna()]
    x = full.X.toarray() if hasattr(full.X, "toarray") else np.asarray(full.X)
    x = np.log1p(1e4 * x / x.sum(1, keepdims=True))
    u, s, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    pca = (u[:, :50] * s[:50]).astype("f4")
    b = full.obs[batch].astype(str).to_numpy()
    centred = np.array([row - pca[b == of].mean(0) for row, of in zip(pca, b)], "f4")
    obs = pd.DataFrame({"label": pd.Categorical(full.obs[label].astype(str)), "batch": pd.Categorical(b)}, index=list(full.obs_names))
    a = anndata.AnnData(obs=obs, obsm={"X_pca": pca, "X_centred": centred})
    with tempfile.TemporaryDirectory() as folder:
        a.write_h5ad(folder + "/a.h5ad")
        bad = compare(scmetric, folder + "/a.h5ad", list(a.obsm.keys()), a, worst)
    summary(worst)
    sys.exit(bad > 0)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
