#!/usr/bin/env python3
"""ctaprobe transfer beside CellTypist by the number of reference cells, simulated:    make bench-transfer-size SIZES="5000 50000 200000"

    transfer_size.py run BIN FOLDER SIZE...      a row for each size and program; the new cells are of other donors
    transfer_size.py recommended BIN FOLDER SIZE...      the same, but CellTypist on mini-batches alone
    transfer_size.py many BIN FOLDER FILE.h5ad CELLS    ours alone, with so many reference cells that are mixed of real ones (MANY=FILE.h5ad CELLS=1000000)
    transfer_size.py celltypist REF.h5ad NEW.h5ad [batches]      batches: stochastic gradient descent, as CellTypist recommends for many cells

Seconds are of the processor, on one thread: ours with reading, calibration and writing, CellTypist's without imports, reading and calibration. Memory is the
peak of the process. A process that needs more than LIMIT seconds is stopped.
"""
import os
import resource
import subprocess
import sys
import time

from transfer import tool

SIMULATED = "--genes 3000 --modules 60 --types 12 --donors 20 --separation .3 --seed 1".split()
NEW = 10000  # cells at most
LIMIT = 1500


def measured(*command):
    """What it prints (None: it was stopped), CPU seconds, peak MB."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=limit)
    out = child.stdout.read().decode()
    _, status, used = os.wait4(child.pid, 0)
    seconds = used.ru_utime + used.ru_stime
    if status and seconds < LIMIT - 1:
        raise SystemExit(f"{command}: status {status}")
    return None if status else out, seconds, used.ru_maxrss / 1024


def row(cells, program, seconds, memory, f1):
    print(cells, program, "%.1f" % seconds if f1 else "over %d" % LIMIT, "%.0f" % memory, "%.3f" % float(f1) if f1 else "", sep="\t", flush=True)


def start(bin_dir, folder):
    """Where the files of the folder are."""
    os.environ["PATH"] = os.path.abspath(bin_dir) + ":" + os.environ["PATH"]
    os.makedirs(folder, exist_ok=True)
    print("reference_cells", "program", "seconds", "megabytes", "macro_f1", sep="\t")
    return lambda name: os.path.join(folder, name)


def ours(at, cells):
    _, seconds, memory = measured("ctaprobe", "transfer", "-q", "-@", 1, "--reference", at("ref.counts"), "--label", "cell_type", "--group", "donor",
                                  "-o", at("new.pred"), at("new.counts"))
    scores = dict(line.split("\t") for line in tool("ctaprobe", "score", "-q", "--label", "cell_type", at("new.pred"))[0].splitlines())
    row(cells, "ctaprobe transfer", seconds, memory, scores["macro_f1"])


WAYS = (("CellTypist, mini-batches", ["batches"]), ("CellTypist", []))


def run(bin_dir, folder, *sizes, ways=WAYS):
    at = start(bin_dir, folder)
    for size in map(int, sizes):
        tool("scsim", "-q", "--cells", size * 5 // 4, *SIMULATED, "-o", at("all.counts"))
        for part, name in ("train", "ref"), ("test", "new"):
            most = ["-n", NEW] if part == "test" and size > 4 * NEW else []
            tool("scsample", "-q", "--test-fraction", .2, "--group", "donor", "--part", part, "--seed", 1, "-o", at("part.counts"), at("all.counts"))
            tool("scsample", "-q", *most, "-o", at(name + ".counts"), at("part.counts"))
            tool("scview", "-q", "-O", "h5ad", "-o", at(name + ".h5ad"), at(name + ".counts"))
        cells = tool("scview", "-q", "-c", "cell", at("ref.counts"))[0].count("\n") - 1
        ours(at, cells)
        for name, how in ways:
            out, _, memory = measured(sys.executable, __file__, "celltypist", at("ref.h5ad"), at("new.h5ad"), *how)
            seconds, f1 = map(float, out.splitlines()[-1].split()) if out else (0, None)
            row(cells, name, seconds, memory, f1)


def many(bin_dir, folder, path, cells):
    """Each cell mixes two real ones of a type. 20 donors of the reference and 4 new ones have no real cell in common, and expression of their own of each gene."""
    import numpy as np
    import scipy.sparse as sp
    from corrmask import stream
    at = start(bin_dir, folder)
    tool("h5tok", "-q", "-o", at("real.counts"), path)
    real = stream.to_anndata(at("real.counts"))
    x, types, rng = sp.csr_matrix(real.X), real.obs.cell_type.cat.codes.to_numpy(), np.random.default_rng(1)
    header = dict(stream.read(at("real.counts")).header)
    columns = {c["name"]: c for c in header["columns"]}
    columns["donor"] = {"name": "donor", "type": "categorical", "shape": "scalar", "categories": [f"donor{d}" for d in range(24)]}
    header["columns"] = [columns[c] for c in ("cell", "n_counts", "cell_type", "donor", "gene", "count")]
    header.pop("obs_index", None)

    def thinned(rows, share, factor):
        part = x[rows]
        part.data = rng.binomial(part.data.astype("i8"), np.repeat(share, np.diff(part.indptr)) * factor[part.indices])
        return part

    def blocks(donors, n):
        for first in range(0, n, 1000):
            donor, m = donors[first // 1000 % len(donors)], min(1000, n - first)
            factor = np.exp(-.3 * np.abs(np.random.default_rng(donor).normal(size=x.shape[1])))
            own = np.arange(donor, x.shape[0], 24)
            one, share = rng.choice(own, m), .7 * rng.random(m)
            two = np.array([rng.choice(own[types[own] == t]) for t in types[one]])
            part = thinned(one, share, factor) + thinned(two, .7 - share, factor)
            part.eliminate_zeros()
            part.sort_indices()
            yield {"cell": np.arange(first, first + m), "n_counts": np.asarray(part.sum(1)).ravel(), "cell_type": types[one], "donor": np.full(m, donor),
                   "gene": (part.indptr, part.indices), "count": (part.indptr, part.data)}

    stream.write(at("ref.counts"), header, blocks(range(20), int(cells)))
    stream.write(at("new.counts"), header, blocks(range(20, 24), NEW))
    ours(at, cells)


def celltypist(reference, new, how=None):
    import anndata
    import celltypist
    import numpy as np
    from sklearn.metrics import f1_score
    parts = [anndata.read_h5ad(f) for f in (reference, new)]
    start = time.process_time()
    for a in parts:
        a.X = a.X.astype("f4")
        a.X.data *= np.repeat(1e4 / np.asarray(a.X.sum(1)).ravel(), np.diff(a.X.indptr)).astype("f4")
        np.log1p(a.X.data, out=a.X.data)
    model = celltypist.train(parts[0], labels="cell_type", check_expression=False, n_jobs=1, use_SGD=bool(how), mini_batch=bool(how))
    found = celltypist.annotate(parts[1], model=model).predicted_labels.predicted_labels
    print("%.2f" % (time.process_time() - start), f1_score(parts[1].obs.cell_type.astype(str), found.astype(str), average="macro", zero_division=0))


if __name__ == "__main__":
    {"run": run, "recommended": lambda *a: run(*a, ways=WAYS[:1]), "many": many, "celltypist": celltypist}[sys.argv[1]](*sys.argv[2:])
