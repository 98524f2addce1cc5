#!/usr/bin/python3
"""scview --gene-names id X.counts | counts.py FILE: hold a counts stream to what anndata (or h5py, for 10x files) reads from FILE."""
import re
import sys
import anndata
import h5py
import numpy as np
import pandas as pd
import scipy.sparse as sp

path = sys.argv[1]
if path.endswith(".h5ad"):
    a = anndata.read_h5ad(path)
    x, obs = sp.csr_matrix(a.X), a.obs
    if "ensembl_id" in a.var:
        ids = [i if i else n for i, n in zip(a.var["ensembl_id"].astype(str), a.var_names)]
    else:
        ids = list(a.var_names)
    cells = list(a.obs_names)
else:
    with h5py.File(path) as f:
        m = f["matrix"] if "matrix" in f else f[[k for k in f if "genes" in f[k]][0]]
        n_genes, n_cells = m["shape"][:]
        x = sp.csr_matrix((m["data"][:], m["indices"][:], m["indptr"][:]), (n_cells, n_genes))
        ids = [s.decode() for s in (m["features/id"] if "features" in m else m["genes"])[:]]
        cells = [s.decode() for s in m["barcodes"][:]]
        obs = pd.DataFrame(index=cells)
ids = [re.sub(r"^[^_]+_(ENSG\d+)$", r"\1", i) for i in ids]  # a symbol that two genes have, as CELLxGENE writes it
ids = [i.rsplit(".", 1)[0] if i.startswith("ENSG") and "." in i else i for i in ids]
names = list(dict.fromkeys(ids))
at = {n: k for k, n in enumerate(names)}
x = (x.astype(np.float64) @ sp.csr_matrix((np.ones(len(ids)), (range(len(ids)), [at[i] for i in ids])), (len(ids), len(names)))).tocsr()
x.eliminate_zeros()
x.sort_indices()
head = next(sys.stdin).rstrip("\n").split("\t")
n = 0
for i, line in enumerate(sys.stdin):
    row = dict(zip(head, line.rstrip("\n").split("\t")))
    j = slice(x.indptr[i], x.indptr[i + 1])
    assert row["cell"] == str(i) and row["barcode"] == cells[i], (i, row["barcode"], cells[i])
    assert row["gene"].split() == [names[k] for k in x.indices[j]], "genes of cell %d" % i
    assert np.array_equal(np.array(row["count"].split(), float), x.data[j]), "counts of cell %d" % i
    assert int(row["n_counts"]) == x.data[j].sum(), "n_counts of cell %d" % i
    for c in obs:
        got, want = row["obs_" + c if c in ("n_counts", "value") else c], obs[c].iloc[i]
        if isinstance(want, float) or isinstance(want, np.floating):
            assert (got == "NA" and want != want) or float(got) == float(want), (i, c, got, want)
        else:
            assert got == ("NA" if pd.isna(want) else str(want)), (i, c, got, want)
    n += 1
assert n == x.shape[0], "%d cells, expected %d" % (n, x.shape[0])
