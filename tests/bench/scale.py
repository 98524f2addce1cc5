#!/usr/bin/env python3
"""Cells a second from an .h5ad file to masked batches, beside other loaders:   scale.py BIN CELLS.h5ad VOCAB.tsv

Ours, for the same cells: h5tok --rank and maskgen, from start to exit. The others give raw counts of random cells; ranks and masks are then
made from them in NumPy, a batch at once, as rankenc and maskgen --strategy random define them. They are timed without imports, for ten
seconds each, one process. A library that is not installed is left out, and that is said.
"""
import importlib.metadata
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

BATCH, SECONDS, MAX_LEN, SHARE = 64, 10, 2048, 0.15


def medians(path):
    rows = [line.rstrip("\n").split("\t") for line in open(path) if not line.startswith("#")]
    names = rows[0]
    table = {r[names.index("gene_id")]: float(r[names.index("median")]) for r in rows[1:] if r[names.index("median")] != "NA"}
    return table


def masked(x, median, rng):
    """A CSR batch of counts -> tokens [B][T] by rank, and the same with a share of them hidden."""
    tokens = []
    value = x.data / np.repeat(np.asarray(x.sum(axis=1)).ravel(), np.diff(x.indptr)) * 1e4 / median[x.indices]
    for i in range(x.shape[0]):
        s = slice(x.indptr[i], x.indptr[i + 1])
        tokens.append(x.indices[s][np.argsort(-value[s], kind="stable")][:MAX_LEN] + 4)
    length = np.array([len(t) for t in tokens])
    batch = np.zeros((len(tokens), length.max()), np.int64)
    there = np.arange(batch.shape[1]) < length[:, None]
    batch[there] = np.concatenate(tokens)
    hide = there & (rng.random(batch.shape) < SHARE)
    return batch, np.where(hide, 1, batch)


def rate(batches, work):
    """(cells a second, cells a CPU second) after the first batch."""
    it = iter(batches)
    next(it)
    wall, cpu, cells = time.perf_counter(), time.process_time(), 0
    for x in it:
        work(x)
        cells += x.shape[0]
        if time.perf_counter() - wall > SECONDS:
            break
    return cells / (time.perf_counter() - wall), cells / (time.process_time() - cpu)


def ours(bin, cells, vocab):
    def run(command):
        a, t = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, shell=True, stdout=subprocess.DEVNULL, executable="/bin/bash")
        b, t = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - t
        return t, b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime
    with tempfile.TemporaryDirectory(dir=".") as d:
        once = run(f"set -o pipefail; '{bin}/h5tok' -q --rank {vocab} {cells} -o {d}/tok")
        epoch = run(f"'{bin}/maskgen' -q -u -b {BATCH} {d}/tok")
    return once, epoch


def row(name, a, b=None):
    print(name, f"{a[0]:.0f}", f"{a[1]:.0f}", *([f"{b[0]:.0f}", f"{b[1]:.0f}"] if b else ["", ""]), sep="\t", flush=True)


def main(bin, path, vocab):
    import anndata
    a = anndata.read_h5ad(path, backed="r")
    cells, table = a.n_obs, medians(vocab)
    median = np.array([table.get(g, 1.0) for g in a.var_names])
    rng = np.random.default_rng(1)
    print(f"{cells} cells; " + ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("anndata", "numpy", "scdataset")
                                        if importlib.util.find_spec(p)))
    print("loader\tcells/s, masked batches\tper CPU second\tcells/s, raw counts\tper CPU second")
    once, epoch = ours(bin, path, vocab)
    row("h5tok --rank, then maskgen (first epoch)", (cells / (once[0] + epoch[0]), cells / (once[1] + epoch[1])))
    row("maskgen (every further epoch)", (cells / epoch[0], cells / epoch[1]))

    def both(name, batches):
        row(name, rate(batches(), lambda x: masked(x, median, rng)), rate(batches(), lambda x: None))

    def rows():
        order = np.random.default_rng(1).permutation(cells)
        for i in range(0, cells, BATCH):
            yield a[np.sort(order[i:i + BATCH])].to_memory().X
    both("anndata, backed, rows at random", rows)

    if importlib.util.find_spec("scdataset"):
        from scdataset import BlockShuffling, scDataset
        csr = lambda x: getattr(x, "X", x)
        for block, fetch in ((16, 64), (256, 64)):
            both(f"scDataset, blocks of {block}, fetch factor {fetch}", lambda: scDataset(
                a, BlockShuffling(block_size=block), batch_size=BATCH, fetch_factor=fetch,
                fetch_transform=lambda b: b.to_memory().X, batch_transform=csr))
    else:
        print("scDataset: not installed")


if __name__ == "__main__":
    main(*sys.argv[1:4])
