#!/usr/bin/env python3
"""scmetric integration and scib-metrics in turns:    make bench-integration [INTEGRATION_CELLS=20000] [THREADS=2] [ROUNDS=1]

    integration.py run SCMETRIC CELLS DIR THREADS ROUNDS     the table
    integration.py peer IN.h5ad THREADS OUT.tsv              one run of scib-metrics: prints "wall SECONDS cpu SECONDS peak MB"

Both score one embedding by the default table of scib-metrics: its Benchmarker as users call it, with pynndescent's approximate neighbours.
Ours is timed from start to exit; scib-metrics without its imports and reading, but with what JAX compiles.
"""
import os
import re
import resource
import subprocess
import sys
import time

NAMES = {"isolated_labels": "isolated_labels", "nmi_ari_cluster_labels_kmeans_nmi": "kmeans_nmi", "nmi_ari_cluster_labels_kmeans_ari": "kmeans_ari",
         "silhouette_label": "silhouette_label", "clisi_knn": "clisi", "bras": "bras", "ilisi_knn": "ilisi", "kbet_per_label": "kbet_per_label",
         "graph_connectivity": "graph_connectivity"}


def make(path, cells):
    """30 types of different sizes in 8 batches, 50 components of falling variance."""
    import anndata
    import numpy as np
    import pandas as pd
    rng = np.random.default_rng(3)
    size, sd = 0.9 ** np.arange(30), 1 / np.sqrt(np.arange(1, 51))
    y, b = rng.choice(30, cells, p=size / size.sum()), rng.integers(0, 8, cells)
    x = rng.normal(size=(30, 50))[y] * 1.2 + rng.normal(size=(8, 50))[b] * 0.3 + rng.normal(size=(cells, 50)) * 0.6
    obs = pd.DataFrame({"label": pd.Categorical(["t%d" % i for i in y]), "batch": pd.Categorical(["b%d" % i for i in b])},
                       index=["c%d" % i for i in range(cells)])
    anndata.AnnData(obs=obs, obsm={"X_pca": (x * sd).astype("f4")}).write_h5ad(path)


def peer(path, threads, out):
    import warnings
    warnings.simplefilter("ignore")
    os.environ["JAX_PLATFORMS"] = "cpu"
    import anndata
    from scib_metrics.benchmark import Benchmarker
    a = anndata.read_h5ad(path)
    start = time.perf_counter(), time.process_time()
    found = Benchmarker(a, batch_key="batch", label_key="label", embedding_obsm_keys=["X_pca"], pre_integrated_embedding_obsm_key="X_pca",
                        n_jobs=int(threads), progress_bar=False)
    found.benchmark()
    wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    value = found._results["X_pca"]
    with open(out, "w") as f:
        for name, ours in NAMES.items():
            if name in value:
                print(ours, value[name], sep="\t", file=f)
    print(f"wall {wall:.3f} cpu {cpu:.3f} peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")


def run(scmetric, cells, folder, threads, rounds):
    h5ad, theirs, ours = (f"{folder}/integration-{cells}.{s}" for s in ("h5ad", "peer", "report"))
    seconds = {"scmetric": [], "scib-metrics": []}
    if not os.path.exists(h5ad):
        make(h5ad, int(cells))
    for _ in range(int(rounds)):
        t = time.perf_counter()
        subprocess.run([scmetric, "integration", "-q", "-l", "label", "-b", "batch", "--embedding", "X_pca", "-@", threads, h5ad, "-o",
                        f"{folder}/integration.tsv", "--report", ours], check=True)
        t, r = time.perf_counter() - t, dict(line.rstrip("\n").split("\t") for line in open(ours))
        seconds["scmetric"].append((t, float(r["cpu_seconds"]), float(r["peak_memory_mb"])))
        text = subprocess.run([sys.executable, __file__, "peer", h5ad, threads, theirs], check=True, stdout=subprocess.PIPE, text=True).stdout
        seconds["scib-metrics"].append(tuple(float(re.search(k + r" ([\d.]+)", text)[1]) for k in ("wall", "cpu", "peak")))
    print("metric\tscmetric\tscib-metrics")
    for line in open(theirs):
        name, v = line.split("\t")
        print(name, "%.6f" % float(r["X_pca:" + name]), "%.6f" % float(v), sep="\t")
    print("program\tcells\tthreads\twall_seconds\tcpu_seconds\tpeak_mb")
    for name, v in seconds.items():
        wall, cpu, peak = (sorted(s[i] for s in v)[len(v) // 2] for i in (0, 1, 2))
        print(f"{name}\t{cells}\t{threads}\t{wall:.1f}\t{cpu:.2f}\t{peak:.0f}")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
