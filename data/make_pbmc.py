#!/usr/bin/env python3
"""
The two samples of blood cells that experiments use where no file is given: data/pbmc3k_sample.h5ad and data/pbmc4k_sample.h5ad, of files of
docs/experiments/data.md. Each has the cells of every type in their shares, but at least 30 of each where there are so many, and the genes that
most cells of both express, with all of their counts.

    data/make_pbmc.py pbmc3k_10x.h5ad pbmc4k_10x_soupx.h5ad

Needs anndata. The counts are those of 10x Genomics (3k and 4k PBMCs from a healthy donor, CC BY 4.0); the types of 3k are those of scanpy's
tutorial, the author_type of 4k those of Young & Behjati, GigaScience 2020.
"""
import os
import sys

import anndata
import h5py
import numpy as np

GENES = 3200
SAMPLES = (("pbmc3k", "cell_type", 400), ("pbmc4k", "author_type", 330))


def sample(cells, n):
    rng = np.random.default_rng(1)
    kept = [rng.permutation(rows)[:max(30, round(n * len(rows) / cells.n_obs))]
        for rows in cells.obs.groupby("cell_type", observed=True).indices.values()]
    return cells[np.sort(np.concatenate(kept))]


def write(path, cells):
    """As small as h5ad can be: one chunk an array, and a copy without what HDF5 had deleted."""
    cells.write_h5ad(path + ".new")
    with h5py.File(path + ".new", "r+") as file:
        for name in ("data", "indices"):
            array = file["X"][name][:]
            del file["X"][name]
            file["X"].create_dataset(name, data=array, chunks=array.shape, compression="gzip", compression_opts=9, shuffle=True)
        with h5py.File(path, "w") as copy:
            for name in file:
                file.copy(name, copy)
            copy.attrs.update(file.attrs)
    os.remove(path + ".new")


cells = [sample(anndata.read_h5ad(path), n) for path, (_, _, n) in zip(sys.argv[1:3], SAMPLES)]
shared = cells[0].var_names.intersection(cells[1].var_names, sort=False)
expressed = sum(np.asarray((c[:, shared].X > 0).sum(axis=0)).ravel() for c in cells)
most = set(shared[np.argsort(-expressed, kind="stable")[:GENES]])
for c, (name, column, _) in zip(cells, SAMPLES):
    c = c[:, [gene for gene in c.var_names if gene in most]].copy()
    c.X = c.X.tocsr().astype("float32")
    c.X.sort_indices()
    c.X.indices = c.X.indices.astype("int32")
    c.obs = c.obs[["cell_type"]].rename(columns={"cell_type": column})
    c.var, c.uns = c.var[[]], {"source": "10x Genomics, CC BY 4.0; data/make_pbmc.py of corrmask has the details"}
    write(f"{os.path.dirname(os.path.abspath(__file__))}/{name}_sample.h5ad", c)
