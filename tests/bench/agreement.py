#!/usr/bin/env python3
"""Do our results agree with those of the programs that they replace?    make agreement

    agreement.py run BIN DATA DIR OUT.tsv [JOB...]    every job, or these, on real cells of DATA; DIR keeps what is made. OUT.tsv keeps other jobs
    agreement.py page TABLE.tsv PAGE.md               PAGE with the table of TABLE.tsv below its line <!-- agreement -->

A job is commands of ours and a function that does the same with the other program. Ours is timed from start to exit, with files read and written;
the other program without its imports. Both have one thread. Memory is the largest process. This file needs only the standard library until a
function of another program runs in a process of its own: a process begins with the memory of the one that started it.
"""
import os
import resource
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "..", "ref"), os.path.join(here, "..", "..", "python")]
CELLS, FEW, LONG = 4000, 50, 128                      # cells; cells that a network embeds; tokens of the cell whose genes are deleted
STUDY = "scrna/aml_bonemarrow_vangalen2019.h5ad"
FLAVORS = [(f, key) for f in ("seurat", "seurat_v3", "cell_ranger") for key in ("", "disease")]
COLUMNS = "job result program version unit values difference cpu peer_cpu mb peer_mb".split()

# Each command is run by sh in DIR; $G is the folder of Geneformer's tables. Files: cells.counts, cells.h5ad, cells.emb and so on, of prepare().
PREPARE = """
h5tok -q "$STUDY" | scsample -q -n {cells} --seed 1 -o cells.counts -
scview -q -O h5ad -o cells.h5ad cells.counts
scview -c gene --gene-names id cells.counts | tr '\\t ' '\\n\\n' | sort | uniq -c | awk '$1 >= 50 {{ print $2 }}' > common.txt
scsample -q --keep-genes common.txt cells.counts | scview -q -O h5ad -o common.h5ad -
screduce pca -q -k 50 -o cells.emb cells.counts
scview -q -O h5ad -o emb.h5ad cells.emb
for part in train test; do scsample -q --test-fraction .25 --group donor --part $part -o $part.emb cells.emb; done
rankenc -q --fit -o vocab.tsv cells.counts
scsample -q -n {few} --seed 1 cells.counts | rankenc -q -m vocab.tsv -o few.tok -
scview -c token few.tok > few.txt
maskgen -q -o few.masked few.tok
scsample -q --min-genes {long} cells.counts | scsample -q -n 1 --seed 1 - | rankenc -q -m vocab.tsv --max-len {long} -o one.tok -
scview -c token one.tok > one.txt
rankenc -q -m vocab.tsv -o cells.tok cells.counts
depgraph -q -o cells.graph cells.tok
"""


# ---- the other programs: what they found, beside ours; measured() stands where the work ends ----

def measured(since):
    """The CPU seconds since then, and the peak memory until now."""
    return time.process_time() - since, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def tokens():
    """Geneformer's rule, read in its source: map ids, add up, x / n_counts * 10,000 / median, sort; <cls> and <eos>."""
    import gzip
    import anndata
    import numpy as np
    import scipy.sparse as sp
    table = lambda name: dict(line.rstrip("\n").split("\t") for line in list(gzip.open(f"{os.environ['G']}/{name}_gc104M.tsv.gz", "rt"))[1:])
    start = time.process_time()
    number, median, mapping = table("token_dictionary"), table("gene_median"), table("ensembl_mapping")
    a = anndata.read_h5ad("cells.h5ad")
    x = a.X.tocsr().astype("f8")
    total = np.asarray(x.sum(1)).ravel()
    ids = [mapping.get(g.upper()) for g in a.var_names]
    known = [i for i, g in enumerate(ids) if g in number]
    x = (x @ sp.csr_matrix((np.ones(len(known)), (known, [int(number[ids[i]]) for i in known])), shape=(len(ids), len(number)))).tocsr()
    factor = np.full(len(number), np.nan)
    for g, i in number.items():
        factor[int(i)] = float(median.get(g, "nan"))
    want = []
    for k in range(x.shape[0]):
        col, v = x.indices[x.indptr[k]:x.indptr[k + 1]], x.data[x.indptr[k]:x.indptr[k + 1]]
        col, v = col[v > 0], v[v > 0]
        v = v / total[k] * 10_000 / factor[col]
        want.append([2, *col[np.lexsort((col, -v))][:4094], 3])
    spent = measured(start)
    got = [line.split() for line in list(open("tokens.txt"))[1:]]
    assert len(got) == len(want) and all(int(number["<cls>"]) == int(g[0]) for g in got)
    return spent, sum(map(len, want)), sum(a != str(b) for g, w in zip(got, want) for a, b in zip(g, w)) + sum(len(g) != len(w) for g, w in zip(got, want))


def genes():
    import anndata
    import scanpy
    start = time.process_time()
    cells, want = anndata.read_h5ad("common.h5ad"), {}
    for flavor, key in FLAVORS:
        a = cells.copy()
        if flavor != "seurat_v3":
            scanpy.pp.normalize_total(a, target_sum=1e4)
            scanpy.pp.log1p(a)
        scanpy.pp.highly_variable_genes(a, n_top_genes=2000, flavor=flavor, batch_key=key or None)
        want[flavor + key] = set(a.var_names[a.var.highly_variable])
    spent = measured(start)
    got = {k: {line.split("\t")[1] for line in list(open(f"hvg.{k}"))[1:]} for k in want}
    return spent, sum(len(w) for w in want.values()), sum(len(w - got[k]) for k, w in want.items())


def components():
    import anndata
    import numpy as np
    import scanpy
    start = time.process_time()
    a = anndata.read_h5ad("cells.h5ad")
    scanpy.pp.normalize_total(a, target_sum=1e4)
    scanpy.pp.log1p(a)
    x = np.asarray(a.X.todense(), "f8")
    order = np.lexsort((np.arange(x.shape[1]), -x.var(0)))[:2000]
    a = a[:, np.sort(order)].copy()
    scanpy.pp.pca(a, n_comps=50, svd_solver="arpack", dtype="float64")
    spent = measured(start)
    got, want = anndata.read_h5ad("emb.h5ad").X.astype("f8"), a.obsm["X_pca"]
    want = want * np.sign((want * got).sum(0))
    return spent, got.size, abs(got - want).max() / abs(want).max()


def report(path, key="cells:"):
    rows = (line.rstrip("\n").split("\t") for line in open(path))
    return {k[len(key):]: float(v) for k, v in rows if k.startswith(key) and v != "NA"}


BENCHMARK = {"isolated_labels": "isolated_labels", "silhouette_label": "silhouette_label", "clisi_knn": "clisi", "bras": "bras", "ilisi_knn": "ilisi",
             "graph_connectivity": "graph_connectivity", "kbet_per_label": "kbet_per_label", "nmi_ari_cluster_labels_kmeans_nmi": "kmeans_nmi",
             "nmi_ari_cluster_labels_kmeans_ari": "kmeans_ari"}


def integration():
    """The default table as users call it. kBET and k-means have rows of their own: of(names)."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    import anndata
    from scib_metrics.benchmark import Benchmarker
    start = time.process_time()
    a = anndata.read_h5ad("emb.h5ad")
    a.obsm["X_pca"] = a.X
    found = Benchmarker(a, batch_key="donor", label_key="cell_type", embedding_obsm_keys=["X_pca"],
                        pre_integrated_embedding_obsm_key="X_pca", n_jobs=1, progress_bar=False)
    found.benchmark()
    spent = measured(start)
    got, want = report("integration.report"), found._results["X_pca"]
    off = {ours: abs(got[ours] - float(want[theirs])) for theirs, ours in BENCHMARK.items()}
    of = lambda names: (len(names), max(off[n] for n in names))
    own = ("kbet_per_label", "kmeans_nmi", "kmeans_ari")
    return spent, *of([n for n in off if n not in own]), of(own[:1]), of(own[1:])


def exact():
    """The same with exact neighbours, and kBET's transitions in float64 (tests/ref/integration_peer.py)."""
    import anndata
    import integration_peer as other
    a = anndata.read_h5ad("emb.h5ad")
    x, y, batch = a.X, *(a.obs[c].astype(str).to_numpy() for c in ("cell_type", "donor"))
    start = time.process_time()
    want = other.peer(x, y, batch, x)
    spent = measured(start)
    got = report("integration.report")
    names = [n for n in want if n in got and n in BENCHMARK.values() and not n.startswith("kmeans")]
    return spent, len(names), max(abs(got[n] - float(want[n])) for n in names)


def leiden():
    os.environ["JAX_PLATFORMS"] = "cpu"
    import anndata
    import scib_metrics
    from scib_metrics.nearest_neighbors import pynndescent
    a = anndata.read_h5ad("emb.h5ad")
    start = time.process_time()
    near = pynndescent(a.X, n_neighbors=15, random_state=0, n_jobs=1)
    want = scib_metrics.nmi_ari_cluster_labels_leiden(near, a.obs["cell_type"].astype(str).to_numpy(), optimize_resolution=True, n_jobs=1)
    spent = measured(start)
    got = report("leiden.report")
    return spent, 2, max(abs(got["leiden_" + k] - want[k]) for k in ("nmi", "ari"))


def modules():
    import igraph
    import leidenalg
    import corrmask.stream as stream
    start = time.process_time()
    weight, ours = {}, {}
    for b in stream.read("modules.graph"):
        offset, near = b["neighbour"]
        for r in range(b.rows):
            a = int(b["token"][r])
            for k in range(offset[r], offset[r + 1]):
                weight[min(a, int(near[k])), max(a, int(near[k]))] = abs(float(b["rho"][1][k]))
                ours[a] = int(b["module"][r])
    at = {t: i for i, t in enumerate(ours)}
    g = igraph.Graph(len(at), [(at[a], at[b]) for a, b in weight])
    w = list(weight.values())
    theirs = leidenalg.find_partition(g, leidenalg.RBConfigurationVertexPartition, weights=w, n_iterations=-1, seed=1)
    spent = measured(start)
    return spent, len(at), g.modularity(list(ours.values()), w) - g.modularity(theirs.membership, w)


def markers():
    import csv
    import anndata
    import scanpy
    start = time.process_time()
    a = anndata.read_h5ad("cells.h5ad")
    scanpy.pp.normalize_total(a, target_sum=1e4)
    scanpy.pp.log1p(a)
    scanpy.tl.rank_genes_groups(a, "cell_type", method="t-test")
    spent = measured(start)
    found = {c: scanpy.get.rank_genes_groups_df(a, c).set_index("names")["scores"] for c in a.obs["cell_type"].cat.categories}
    rows = [r for r in csv.DictReader(open("markers.tsv"), delimiter="\t") if r["marker_of"] == r["class"]]
    return spent, len(rows), max(abs(float(r["t"]) / found[r["class"]][r["gene"]] - 1) for r in rows)


def umap():
    import anndata
    import umap as other
    from sklearn.manifold import trustworthiness
    x, ours = anndata.read_h5ad("emb.h5ad").X, anndata.read_h5ad("map.h5ad").obsm["X_umap"]
    start = time.process_time()
    theirs = other.UMAP(n_neighbors=15, min_dist=.1, random_state=1, n_jobs=1).fit_transform(x)
    spent = measured(start)
    scores = [[trustworthiness(x, m, n_neighbors=15), trustworthiness(m, x, n_neighbors=15)] for m in (ours, theirs)]
    print("umap: trustworthiness and continuity, ours and theirs", scores, file=sys.stderr)
    return spent, len(x), min(a - b for a, b in zip(*scores))


def probe():
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler
    from probe import load, predictions
    from scipy.special import softmax
    (xa, ya, _), (xb, _, cell) = load("train.emb", "x"), load("test.emb", "x")
    start = time.process_time()
    scale = StandardScaler().fit(xa)
    fit = LogisticRegression(tol=1e-9, max_iter=10000, solver="newton-cg").fit(scale.transform(xa), ya)
    want = fit.predict_proba(scale.transform(xb))
    spent = measured(start)
    logit, _, cells, labels, _ = predictions("probe.pred")
    assert (cells == cell).all()
    got = softmax(logit[:, [list(labels).index(c) for c in fit.classes_]], 1)
    return spent, want.size, np.abs(got - want).max()


def network(special=()):
    """The mean over the genes' states one layer before the last: tests/bench/embed.py, in a process of its own."""
    import re
    import numpy as np
    from embed import embedding
    told = subprocess.run([sys.executable, f"{here}/embed.py", "peer", "v1", "few.txt", "float32", "1", "few.npy"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    got, want = embedding(os.environ["BIN"], "few.emb"), np.load("few.npy")
    return tuple(float(re.search(rf"{k} ([\d.]+)", told)[1]) for k in ("cpu", "peak")), want.size, np.abs(got - want).max() / np.abs(want).max()


def loss():
    import torch
    from transformers import BertForMaskedLM
    import corrmask.stream as stream
    torch.set_num_threads(1)
    net = BertForMaskedLM.from_pretrained("v1").eval()
    start = time.process_time()
    total = count = 0
    with torch.inference_mode():
        for b in stream.read("few.masked"):
            cut = lambda name, r: torch.tensor(b[name][1][b[name][0][r]:b[name][0][r + 1]].astype("i8"))
            for r in range(b.rows):
                z = net(cut("input", r)[None]).logits[0, cut("position", r)].double()
                total += torch.nn.functional.cross_entropy(z, cut("target", r), reduction="sum").item()
                count += len(z)
    spent = measured(start)
    got = dict(line.rstrip("\n").split("\t") for line in open("loss.tsv"))
    return spent, count, abs(float(got["loss"]) / (total / count) - 1)


def deletion():
    import re
    import numpy as np
    told = subprocess.run([sys.executable, f"{here}/perturb.py", "peer", "v1", "one.txt", "float32", "1", "one.npy"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    rows = subprocess.run([f"{os.environ['BIN']}/scview", "-c", "similarity", "one.emb"], check=True, stdout=subprocess.PIPE, text=True).stdout
    got, want = np.array([float(v) for v in rows.splitlines()[1:] if v.lower() not in ("nan", "na")]), np.load("one.npy")
    assert len(got) == len(want)
    return tuple(float(re.search(rf"{k} ([\d.]+)", told)[1]) for k in ("cpu", "peak")), len(want), np.abs(got - want).max()


# ---- jobs: the table has a row for each of `rows`: what, unit of the difference ----

JOBS = {
    tokens: ("Geneformer's rule in numpy", "numpy", [("Tokens of Geneformer V2", "tokens")],
             'h5tok -q -u cells.h5ad | rankenc -q -u --vocab-style v2 -t "$G/token_dictionary_gc104M.tsv.gz" -m "$G/gene_median_gc104M.tsv.gz" '
             '--map "$G/ensembl_mapping_gc104M.tsv.gz" - | scview -q -c token - > tokens.txt'),
    genes: ("scanpy", "scanpy", [("Variable genes, three rules, with and without batches", "genes")],
            "h5tok -q -o own.counts common.h5ad; " + "; ".join(f"scsample -q --hvg 2000 --flavor {f} {key and '--batch-key ' + key} -u own.counts | scview "
                                                              f"--vocab - > hvg.{f}{key}" for f, key in FLAVORS)),
    components: ("scanpy", "scanpy", [("50 principal components", "relative")],
                 "h5tok -q -u cells.h5ad | screduce pca -q -k 50 -o again.emb -"),
    markers: ("scanpy", "scanpy", [("Welch's *t* of marker genes", "relative")],
              "h5tok -q -u cells.h5ad | scgenes markers -q -l cell_type -k 10 -o markers.tsv -"),
    integration: ("scib-metrics", "scib-metrics", [("Integration: six metrics", ""), ("kbet_per_label", ""),
                                                   ("NMI and ARI of k-means", "")],
                  "scmetric integration -q -l cell_type -b donor --report integration.report -o integration.tsv cells.emb"),
    exact: ("scib-metrics", "scib-metrics", [("The same seven, exact neighbours, kBET in float64", "")],
            "scmetric integration -q -l cell_type -b donor --report integration.report -o integration.tsv cells.emb"),
    leiden: ("scib-metrics", "scib-metrics", [("NMI and ARI of the best Leiden clusters", "")],
             "scmetric integration -q --preset scib -l cell_type -b donor --report leiden.report -o leiden.tsv cells.emb"),
    modules: ("leidenalg", "leidenalg", [("Modularity of Leiden modules of genes", "")], "depgraph -q --leiden 1 -o modules.graph cells.graph"),
    umap: ("umap-learn", "umap-learn", [("Map: trustworthiness, continuity", "")],
           "screduce map -q -o map.emb cells.emb; scview -q -O h5ad -o map.h5ad map.emb"),
    probe: ("scikit-learn", "scikit-learn", [("Probe (LogisticRegression): probabilities of classes", "")],
            "ctaprobe cells -q -l cell_type --train train.emb --test test.emb --predictions probe.pred -o probe.tsv"),
    network: ("transformers", "transformers", [("Network of Geneformer V1's shape: embeddings", "relative")], "scembed -q -M v1 -o few.emb few.tok"),
    loss: ("transformers", "transformers", [("The same: loss of masked genes", "relative")], "sctrain eval -q -M v1 few.masked > loss.tsv"),
    deletion: ("transformers", "transformers", [("The same: cosines after deleting each gene", "")],
               f"scperturb apply -q -u --delete all --max-len {LONG} one.tok | scembed -q --similarity mean -M v1 -o one.emb -"),
}


def child(command, **more):
    """CPU seconds and peak MB of a process and those that it waited for, and what it printed."""
    r, w = os.pipe()
    p = subprocess.Popen(command, stdout=w, **more)
    os.close(w)
    out = open(r).read()
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        sys.exit(f"agreement: {command[-1]}: status {p.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, out


def run(bin, data, folder, out, *names):
    import importlib.metadata as m
    data, bin = os.path.abspath(data), os.path.abspath(bin)
    os.makedirs(folder, exist_ok=True)
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    env = dict(os.environ, **one, BIN=bin, PATH=f"{bin}:{os.environ['PATH']}", G=f"{data}/geneformer", STUDY=f"{data}/{STUDY}", HF_HUB_OFFLINE="1",
               XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", PYTHONWARNINGS="ignore", PYTHONDONTWRITEBYTECODE="1")
    here_in = dict(cwd=folder, env=env)
    child(["sh", "-ec", PREPARE.format(cells=CELLS, few=FEW, long=LONG)], **here_in)
    os.path.exists(folder + '/v1') or child([sys.executable, "-c", f"import sys; sys.path.insert(0, {here!r}); import embed; embed.make_model('v1', 'v1', 'vocab.tsv')"], **here_in)
    rows = {}
    for line in open(out) if os.path.exists(out) else ():
        rows.setdefault(line.split("\t")[0], []).append(line)
    for f, (program, package, kinds, command) in JOBS.items():
        if names and f.__name__ not in names:
            continue
        cpu, mb, _ = child(["sh", "-ec", command], **here_in)
        said = child([sys.executable, os.path.abspath(__file__), "peer", f.__name__], **here_in)[2].split("\n")[-2].split()
        peer_cpu, peer_mb, *found = map(float, said)
        spent = [f"{v:.{d}f}" for v, d in ((cpu, 2), (peer_cpu, 2), (mb, 0), (peer_mb, 0))]
        rows[f.__name__] = []
        for (what, unit), n, off in zip(kinds, found[::2], found[1::2]):
            rows[f.__name__].append("\t".join([f.__name__, what, program, m.version(package), unit or "NA", f"{n:.0f}", f"{off:.2g}", *spent]) + "\n")
            spent = ["NA"] * 4
        print(*rows[f.__name__], sep="", end="", file=sys.stderr, flush=True)
        with open(out, "w") as t:
            t.write("\t".join(COLUMNS) + "\n" + "".join(line for job in JOBS for line in rows.get(job.__name__, [])))


def peer(name):
    spent, n, off, *more = globals()[name]()
    print(*spent, n, off, *(v for pair in more for v in pair))


def put_table(path, mark, body):
    """The page with this table below its line <!-- mark -->, in place of the one that is there."""
    lines = open(path).read().split("\n")
    at = lines.index(f"<!-- {mark} -->") + 1
    end = next((i for i in range(at, len(lines)) if not lines[i].startswith("|")), at)
    print("\n".join(lines[:at] + body + lines[end:]), end="")


def page(table, path):
    rows = [line.rstrip("\n").split("\t") for line in open(table)][1:]
    body = ["| result | other program | largest difference | CPU s, ours/theirs | MB |", "|---|---|---|---|---|"]
    for row in rows:
        r = dict(zip(COLUMNS, row))
        off = f"{float(r['difference']):.2g}".replace("e-0", "e-")
        off += f" of {int(r['values']):,} {r['unit']}" if r["unit"] in ("tokens", "genes") else "" if r["unit"] == "NA" else " " + r["unit"]
        spent = ["/".join(f"{float(r[k]):.{d}f}" for k in pair) if r[pair[0]] != "NA" else "" for pair, d in ((("cpu", "peer_cpu"), 1), (("mb", "peer_mb"), 0))]
        body.append(f"| {r['result']} | {r['program']} {r['version']} | {off} | {spent[0]} | {spent[1]} |")
    put_table(path, "agreement", body)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("run", "page", "peer"):
        sys.exit(__doc__)
    {"run": run, "page": page, "peer": peer}[sys.argv[1]](*sys.argv[2:])
