#!/usr/bin/env python3
"""Golden values of highly variable genes, by scanpy 1.11 and scikit-misc 0.5 (neither is in Debian 12: use a virtual environment).

    tests/ref/hvg.py lists H5TOK_COUNTS...    lines of file, flavor, batch key, number, and the ids of the chosen genes: tests/ref/hvg_lists.tsv
    tests/ref/hvg.py loess                    lines of set, x, y and fitted y: tests/ref/hvg_loess.tsv

The counts streams are named like the files of tests/scsample.bats: sim, kang, facs.
"""
import os
import sys
import warnings

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import corrmask.stream as scstream  # noqa: E402

warnings.filterwarnings("ignore")


def load(path):
    import anndata
    import pandas as pd
    import scipy.sparse
    stream = scstream.read(path)
    names, obs, rows = stream.header["vocab"]["id"], [], []
    for b in stream:
        offset, gene = b["gene"]
        rows.append(scipy.sparse.csr_matrix((b["count"][1].astype(float), gene.astype(np.int64), np.asarray(offset, np.int64)),
                                            shape=(b.rows, len(names))))
        if "donor" in b:
            obs += [b["donor"].categories[k] for k in b["donor"].codes]
    a = anndata.AnnData(scipy.sparse.vstack(rows).tocsr(), var=pd.DataFrame(index=names))
    if obs:
        a.obs["donor"] = pd.Categorical(obs)
    return a


def lists(paths):
    import scanpy
    for path in paths:
        cells = load(path)
        name = os.path.basename(path).split(".")[0]
        n = 60 if name == "sim" else 150
        for flavor in ("seurat", "seurat_v3", "cell_ranger"):
            for key in (None, "donor") if "donor" in cells.obs and cells.obs["donor"].nunique() > 1 else (None,):
                a = cells.copy()
                if flavor != "seurat_v3":
                    scanpy.pp.normalize_total(a, target_sum=1e4)
                    scanpy.pp.log1p(a)
                scanpy.pp.highly_variable_genes(a, n_top_genes=n, flavor=flavor, batch_key=key)
                print(name, flavor, key or "-", n, " ".join(a.var_names[a.var.highly_variable]), sep="\t")


def loess():
    from skmisc.loess import loess as fit
    rng = np.random.default_rng(3)
    for name, n, step in (("plain", 150, 0), ("few", 31, 0), ("ties", 150, 40), ("more_ties", 400, 60)):
        x = rng.gamma(1.5, 1, n) + .001
        x = np.log10(np.maximum(1, np.round(x * step)) / step if step else x)
        y = x + .3 * x ** 2 + rng.normal(size=n) * .1
        model = fit(x, y, span=.3, degree=2)
        model.fit()
        for row in zip(x, y, model.outputs.fitted_values):
            print(name, *("%.17g" % v for v in row), sep="\t")


if __name__ == "__main__":
    if sys.argv[1:] == ["loess"]:
        loess()
    elif sys.argv[1:2] == ["lists"]:
        lists(sys.argv[2:])
    else:
        sys.exit(__doc__)
