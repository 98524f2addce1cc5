#!/usr/bin/env python3
"""corrmask beside today's Python libraries, in turns:    make bench-peers [ROUNDS=3] [THREADS=1]

    peers.py run BIN BENCH_SCTRAIN CELLS.h5ad DIR THREADS ROUNDS       the table
    peers.py tokens CELLS.h5ad | spearman TOKENS.txt one peer: prints "wall SECONDS cpu SECONDS" of its work

Ours is timed from start to exit, with files read and written. A peer is timed without its imports, and where it says so without reading.
"""
import os
import re
import resource
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))


def clock():
    return time.perf_counter(), time.process_time()


def tell(start):
    wall, cpu = clock()
    print(f"wall {wall - start[0]:.4f} cpu {cpu - start[1]:.4f}")


# ---- peers ----

def tokens(path):
    """Geneformer's rank value encoding as its tokenizer computes it: anndata, chunks of 512 cells, one sort a cell."""
    import anndata
    import numpy as np
    medians = np.array([float(x) if x != "NA" else 1 for x in
                        (line.rstrip("\n").split("\t")[3] for line in list(open(path + ".vocab.tsv"))[3:])], dtype=float)
    start = clock()
    a = anndata.read_h5ad(path, backed="r")
    out = []
    for i in range(0, a.n_obs, 512):
        x = a[i:i + 512].to_memory().X
        total = np.asarray(x.sum(axis=1)).ravel()
        x = (x.multiply(1e4 / total[:, None]).multiply(1 / medians[:x.shape[1]])).tocsr()
        for k in range(x.shape[0]):
            s = slice(x.indptr[k], x.indptr[k + 1])
            out.append(x.indices[s][np.argsort(-x.data[s])][:2048])
    tell(start)


def spearman(path):
    """Correlations of all pairs of genes, without ranks within the cell, candidates and local weights: pandas, from a dense matrix."""
    import numpy as np
    import pandas as pd
    cells = [np.array(line.split(), dtype=int) for line in list(open(path))[1:]]
    count = np.bincount(np.concatenate(cells))
    top = np.argsort(-count)[:2000]
    column = np.full(len(count), -1)
    column[top] = np.arange(len(top))
    x = np.zeros((len(cells), len(top)))
    for i, c in enumerate(cells):
        j = column[c]
        x[i, j[j >= 0]] = (2048 - np.arange(len(c)))[j >= 0]
    start = clock()
    pd.DataFrame(x).rank().corr()
    tell(start)


# ---- turns ----

def run(command, **more):
    """Wall and CPU seconds of a command, and what it printed."""
    a, t = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout
    t, b = time.perf_counter() - t, resource.getrusage(resource.RUSAGE_CHILDREN)
    return t, b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime, out


def told(out):
    return tuple(float(re.search(name + r" ([\d.]+)", out)[1]) for name in ("wall", "cpu"))


def turns(rounds, *works):
    """[(wall of every round, cpu of every round)] for each work."""
    seen = [([], []) for _ in works]
    for _ in range(rounds):
        for w, s in zip(works, seen):
            wall, cpu = w()
            s[0].append(wall)
            s[1].append(cpu)
    return [tuple(sorted(x) for x in s) for s in seen]


def row(name, peer, seen):
    ours, theirs = seen
    middle = len(ours[0]) // 2
    print(name, peer, *(f"{s[i][0]:.2f} ({s[i][middle]:.2f})" for i in (1, 0) for s in (ours, theirs)),
          f"{theirs[1][0] / ours[1][0]:.1f}", f"{theirs[0][0] / ours[0][0]:.1f}", sep="\t", flush=True)


def table(bin, bench, cells, folder, threads, rounds):
    import importlib.metadata as m
    tool = lambda name: os.path.join(bin, name)
    env = dict(os.environ, OMP_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads, NUMBA_NUM_THREADS=threads)
    me = [sys.executable, os.path.abspath(__file__)]
    peer = lambda *args: (lambda: told(run([*me, *args], env=env)[2]))
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    print(f"# {cpu}, {threads} threads; " + ", ".join(
        f"{p} {m.version(p)}" for p in ("torch", "transformers", "scikit-learn", "scanpy", "anndata", "pandas", "numpy")))
    print("work\tpeer\tours, CPU s\tpeer, CPU s\tours, wall s\tpeer, wall s\tratio, CPU\tratio, wall", flush=True)

    for length, batch in (("256", "12"), ("2048", "1")):
        def ours():
            out = run([bench, threads, "2", length, batch])[2]
            return tuple(float(re.search(name + r" ([\d.]+)", out)[1]) for name in ("step_s", "step_cpu_s"))
        row(f"training step, {batch} x {length}", "BertForMaskedLM", turns(
            rounds, ours, lambda: told(run([sys.executable, f"{here}/sctrain_torch.py", threads, "2", length, batch])[2])))

    tok = f"{folder}/peers.tok"
    def tokenise():
        return run(["sh", "-c", f'"{tool("h5tok")}" -q -u -@{threads} "{cells}" | "{tool("rankenc")}" -q -m "{cells}.vocab.tsv" -@{threads} -o "{tok}"'])[:2]
    row("tokens from .h5ad", "anndata, numpy", turns(rounds, tokenise, peer("tokens", cells)))

    text = f"{folder}/peers.txt"
    with open(text, "w") as f:
        subprocess.run([tool("scview"), "-c", "token", tok], check=True, stdout=f)
    items = int(re.search(r"^token\[\]\titems\t(\d+)", run([tool("scview"), "-s", tok])[2], re.M)[1])
    few = f"{folder}/peers.few.txt"
    open(few, "w").writelines(open(text).readlines()[1:2001])
    def collate():
        out = run([sys.executable, f"{here}/maskgen_torch.py", few, "0"], env=env)[2]
        return 2 * (items / 1e6 / float(re.search(r"hf_collator_mtokens_per_s\t([\d.]+)", out)[1]),)
    mask = lambda: run([tool("maskgen"), "-u", "-@", threads, "--bernoulli", "-o", f"{folder}/peers.masked", tok])[:2]
    row("masks", "DataCollatorForLanguageModeling", turns(rounds, mask, collate))

    graph = lambda: run([tool("depgraph"), "-q", "-@", threads, "-o", f"{folder}/peers.graph", tok])[:2]
    row("graph of 2,000 genes; all correlations", "pandas", turns(rounds, graph, peer("spearman", text)))


if __name__ == "__main__":
    if sys.argv[1] == "run":
        table(*sys.argv[2:7], int(sys.argv[7]))
    else:
        {"tokens": tokens, "spearman": spearman}[sys.argv[1]](*sys.argv[2:])
