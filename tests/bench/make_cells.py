#!/usr/bin/python3
"""Write a synthetic .h5ad for timing: CELLS cells of about DEPTH counts (5,300: 2,500 genes; 3,700: 2,000) in 30,000 genes, gzip-compressed
CSR as anndata writes it. 8,192 different cells are drawn and repeated, which changes nothing for the decoder."""
import sys
import h5py
import numpy as np

path, cells = sys.argv[1], int(sys.argv[2])
mean = float(sys.argv[3]) if len(sys.argv) > 3 else 5300
genes, distinct, width = 30000, min(8192, cells), 256
rng = np.random.default_rng(1)
level = np.exp(rng.normal(0, 2.2, genes))
level /= level.sum()
col, val, n = [], [], []
for start in range(0, distinct, width):
    depth = np.exp(rng.normal(np.log(mean), 0.35, (min(width, distinct - start), 1)))
    mod = np.exp(rng.normal(0, 0.5, (8, genes)))[rng.integers(0, 8, len(depth))]
    x = rng.poisson(depth * level * mod)
    row, c = np.nonzero(x)
    col.append(c.astype(np.int32))
    val.append(x[row, c].astype(np.float32))
    n.append(np.bincount(row, minlength=len(depth)))
col, val, n = np.concatenate(col), np.concatenate(val), np.concatenate(n)
times = -(-cells // distinct)
n = np.tile(n, times)[:cells]
nnz = int(n.sum())
with h5py.File(path, "w") as f:
    f.attrs["encoding-type"], f.attrs["encoding-version"] = "anndata", "0.1.0"
    x = f.create_group("X")
    x.attrs["encoding-type"], x.attrs["encoding-version"] = "csr_matrix", "0.1.0"
    x.attrs["shape"] = np.array([cells, genes])
    x.create_dataset("indptr", data=np.concatenate([[0], np.cumsum(n)]).astype(np.int64), compression="gzip")
    for name, part in (("data", val), ("indices", col)):
        d = x.create_dataset(name, (nnz,), part.dtype, compression="gzip", maxshape=(None,))
        for at in range(0, nnz, len(part)):
            d[at:min(at + len(part), nnz)] = part[:min(len(part), nnz - at)]
    for name, rows, prefix in (("obs", cells, "cell%07d"), ("var", genes, "ENSG%011d")):
        g = f.create_group(name)
        g.attrs["encoding-type"], g.attrs["encoding-version"], g.attrs["_index"] = "dataframe", "0.2.0", "_index"
        g.attrs["column-order"] = np.array(["cell_type"] if name == "obs" else [], dtype=h5py.string_dtype())
        g.create_dataset("_index", data=[prefix % i for i in range(rows)], dtype=h5py.string_dtype(), compression="gzip")
    t = f["obs"].create_group("cell_type")
    t.attrs["encoding-type"], t.attrs["encoding-version"], t.attrs["ordered"] = "categorical", "0.2.0", False
    t.create_dataset("codes", data=rng.integers(0, 20, cells).astype(np.int8), compression="gzip")
    t.create_dataset("categories", data=["type %d" % i for i in range(20)], dtype=h5py.string_dtype())
with open(path + ".vocab.tsv", "w") as f:
    f.write("token\tgene_id\tsymbol\tmedian\n0\t<pad>\t\tNA\n1\t<mask>\t\tNA\n")
    for i, m in enumerate(np.exp(rng.normal(1, 0.7, genes))):
        f.write("%d\tENSG%011d\t\t%.17g\n" % (i + 2, i, m))
print("%d cells, %.0f genes a cell" % (cells, nnz / cells))
