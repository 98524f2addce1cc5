#!/usr/bin/env python3
"""h5tok --unlog against counts that numpy normalises as scanpy, Seurat and scran do: unlog.py FILE.h5ad CELLS TARGET... (median: of the cells)

Every cell's counts must come back equal, but for the greatest common divisor of its own. Prints the share of cells with one above 1."""
import subprocess
import sys
import warnings

import anndata as ad
import numpy as np
import scipy.sparse as sp

warnings.filterwarnings("ignore")


def tool(*args):
    r = subprocess.run(args, capture_output=True, text=True)
    assert r.returncode == 0, (args, r.stderr)
    return r.stderr


def written(x, like, name):
    a = ad.AnnData(shape=x.shape)
    a.X, a.var_names = x, like.var_names
    a.write_h5ad(name)


path, cells, targets = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
a = ad.read_h5ad(path)
a = a[np.asarray(a.X.sum(1)).ravel() > 0][:cells]
x = sp.csr_matrix(a.X)
x.eliminate_zeros()
total = np.asarray(x.sum(1)).ravel()
length = np.diff(x.indptr)
divisor = np.array([np.gcd.reduce(row.astype(int)) for row in np.split(x.data, x.indptr[1:-1])])
want = x.copy()
want.data /= np.repeat(divisor, length)
f4, f8 = np.float32, np.float64
logs = {"log1p": np.log1p, "log2": lambda y: np.log2(y + y.dtype.type(1)), "log10": lambda y: np.log10(y + y.dtype.type(1)), "none": lambda y: y}
n = 0
for target in targets:
    size = total / (np.median(total) if target == "median" else float(target))
    for name, log in logs.items():
        for dtype in f4, f8:
            y = x.astype(dtype)
            y.data = log((y.data / np.repeat(size.astype(dtype), length)).astype(dtype))
            layout = (sp.csr_matrix, sp.csc_matrix, sp.spmatrix.toarray)[n % 3]
            n += 1
            written(layout(y), a, "normalised.h5ad")
            said = tool("h5tok", "--unlog", "normalised.h5ad", "-o", "back.counts")
            assert f"all {len(total)} cells" in said, said
            tool("scview", "-q", "-O", "h5ad", "-o", "back.h5ad", "back.counts")
            back = ad.read_h5ad("back.h5ad")[:, a.var_names].X
            wrong = np.unique(sp.csr_matrix(back != want).nonzero()[0])
            assert len(wrong) == 0, (target, name, dtype, layout, wrong[:5])
print(f"{path.split('/')[-1]}\t{n} ways\t{len(total)} cells\t{(divisor > 1).mean():.4%} have a common factor")
