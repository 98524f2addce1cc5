#!/usr/bin/env python3
"""scmetric integration beside scib-metrics, in turns:    make bench-integration [INTEGRATION_CELLS=20000] [THREADS=2] [ROUNDS=3]

    integration.py run CTAPROBE CELLS DIR THREADS ROUNDS     the table
    integration.py peer IN.emb THREADS                       one run of scib-metrics: prints "wall SECONDS cpu SECONDS"

Both search neighbours exactly and compute NMI and ARI of Leiden over ten resolutions (one run), ASW of labels and batches, graph connectivity,
LISI, kBET and PCR. Ours is timed from start to exit; scib-metrics without its imports and reading, but with what JAX compiles.
"""
import os
import re
import resource
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here + "/../ref", here + "/../../python"]


def make(path, cells):
    """Overlapping types in 40 dimensions of 256."""
    import numpy as np
    import corrmask.stream as scstream
    rng = np.random.default_rng(3)
    y, b = rng.integers(0, 30, cells), rng.integers(0, 8, cells)
    z = rng.normal(size=(30, 40))[y] * 0.9 + rng.normal(size=(8, 40))[b] * 0.3 + rng.normal(size=(cells, 40))
    x = (z @ rng.normal(size=(40, 256)) / 6 + 0.1 * rng.normal(size=(cells, 256))).astype("f4")
    names = {"cell_type": ["t%d" % i for i in range(30)], "batch": ["b%d" % i for i in range(8)]}
    header = {"kind": "embedding", "provenance": [],
              "columns": [{"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "barcode", "type": "str", "shape": "scalar"},
                          *({"name": k, "type": "categorical", "shape": "scalar", "categories": v} for k, v in names.items()),
                          {"name": "cluster", "type": "u32", "shape": "scalar"}, {"name": "x", "type": "f32", "shape": "fixed", "n": 256}],
              "vocab": {"id": ["<pad>", "<mask>", "G1"], "symbol": ["", "", "A"], "median": [None, None, 1.5]}}
    cut = [slice(a, min(a + 1000, cells)) for a in range(0, cells, 1000)]
    scstream.write(path, header, [{"cell": np.arange(s.start, s.stop), "barcode": ["c%d" % i for i in range(s.start, s.stop)],
                                   "cell_type": y[s], "batch": b[s], "cluster": y[s], "x": x[s]} for s in cut])


def peer(path, threads):
    import warnings
    warnings.simplefilter("ignore")
    import igraph
    import leidenalg
    import numpy as np
    import scib_metrics as sm
    from integration import load
    from scib_metrics.nearest_neighbors import NeighborsResults
    from scipy.sparse import triu
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
    from sklearn.neighbors import NearestNeighbors
    x, y, batch, _ = load(path)
    start = time.perf_counter(), time.process_time()
    far, near = NearestNeighbors(n_neighbors=90, algorithm="brute", n_jobs=int(threads)).fit(x).kneighbors(x)
    found = NeighborsResults(indices=near, distances=far)
    fifteen = found.subset_neighbors(15)
    w = triu(fifteen.knn_graph_connectivities).tocoo()
    g = igraph.Graph(n=len(x), edges=np.stack([w.row, w.col], 1).tolist())
    best = 0, 0
    for r in np.arange(1, 11) / 5:
        c = leidenalg.find_partition(g, leidenalg.RBConfigurationVertexPartition, weights=w.data.astype("f8"), n_iterations=-1, seed=0,
                                     resolution_parameter=r).membership
        best = max(best, (normalized_mutual_info_score(y, c), adjusted_rand_score(y, c)))
    print("nmi", best[0], "ari", best[1], "asw_label", sm.silhouette_label(x, y), "asw_batch", sm.silhouette_batch(x, y, batch),
          "connectivity", sm.graph_connectivity(fifteen, y), "ilisi", sm.ilisi_knn(found, batch), "clisi", sm.clisi_knn(found, y), "kbet",
          sm.kbet(found.subset_neighbors(50), batch)[0],
          "pcr", sm.utils.principal_component_regression(x, batch, categorical=True, n_components=50), file=sys.stderr)
    print(f"wall {time.perf_counter() - start[0]:.3f} cpu {time.process_time() - start[1]:.3f}")


def run(scmetric, cells, folder, threads, rounds):
    emb, seconds = f"{folder}/integration-{cells}.emb", {"scmetric": [], "scib-metrics": []}
    if not os.path.exists(emb):
        make(emb, int(cells))
    for _ in range(int(rounds)):
        a, t = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([scmetric, "integration", "-q", "-l", "cell_type", "-b", "batch", "-@", threads, emb, "-o",
                        f"{folder}/integration.tsv"], check=True)
        t, b = time.perf_counter() - t, resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds["scmetric"].append((t, b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime))
        out = subprocess.run([sys.executable, __file__, "peer", emb, threads], check=True, stdout=subprocess.PIPE, text=True).stdout
        seconds["scib-metrics"].append(tuple(float(re.search(k + r" ([\d.]+)", out)[1]) for k in ("wall", "cpu")))
    print("program\tcells\tthreads\twall_seconds\tcpu_seconds")
    for name, v in seconds.items():
        wall, cpu = (sorted(s[i] for s in v)[len(v) // 2] for i in (0, 1))
        print(f"{name}\t{cells}\t{threads}\t{wall:.1f}\t{cpu:.1f}")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
