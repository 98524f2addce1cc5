#!/usr/bin/python3
"""Write one small seeded matrix in every layout that h5tok reads, and the expected output of h5tok beside each file.

    make_layouts.py DIR

DIR/NAME is the file (or matrix directory). DIR/NAME.expected is the table that
    h5tok NAME | scview -c cell,barcode,n_counts,OBS...,gene,count --gene-names id
prints; its first line names the columns. Cells, genes and counts are invented. The files differ only in how the matrix is stored."""
import gzip
import os
import sys
import anndata
import h5py
import numpy as np
import pandas as pd
import scipy.sparse as sp

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rng = np.random.default_rng(7)
N, G = 23, 40
X = rng.poisson(rng.gamma(0.4, 2.0, G) * np.ones((N, 1)))
X[5] = 0                                        # a cell without counts
X[7, 3] = 70000                                 # beyond 16 bits
ids = ["ENSG%011d" % (100 + 7 * g) for g in range(G)]
symbols = ["GENE%d" % g for g in range(G)]
cells = ["CELL%02d-1" % i for i in range(N)]
types = np.array(["T cell", "B cell", "Émile's"])[rng.integers(0, 3, N)].astype(object)
types[4] = None
score = np.round(rng.normal(0, 1, N), 3)
score[2] = np.nan
age = rng.integers(20, 80, N)
flag = rng.random(N) < 0.5
donor = np.array(["d%d" % (i % 9) for i in range(N)])
text = {"cell_type": ["NA" if t is None else t for t in types], "score": ["NA" if s != s else repr(float(s)) for s in score],
        "age": [str(a) for a in age], "flag": [str(bool(f)) for f in flag], "donor": list(donor)}


def expect(name, obs=("cell_type", "score", "age", "flag", "donor"), x=X, gene=ids, columns=None, barcodes=cells):
    """gene: id of each column; columns: obs values by name."""
    columns = {**text, **(columns or {})}
    order, at = [], {}
    for g in gene:
        if g is not None and g not in at:
            at[g] = len(order)
            order.append(g)
    with open(os.path.join(out, name + ".expected"), "w") as f:
        f.write("\t".join(["cell", "barcode", "n_counts", *obs, "gene", "count"]) + "\n")
        for i in range(len(x)):
            row = np.zeros(len(order), np.int64)
            for g, v in zip(gene, x[i]):
                if g is not None:
                    row[at[g]] += v
            j = np.flatnonzero(row)
            f.write("\t".join([str(i), barcodes[i], str(row.sum()), *(columns[c][i] for c in obs),
                               " ".join(order[k] for k in j), " ".join(str(row[k]) for k in j)]) + "\n")


def frames(index_ids=True):
    obs = pd.DataFrame({"cell_type": pd.Categorical(types), "score": score, "age": age, "flag": flag, "donor": donor}, index=cells)
    var = pd.DataFrame({"symbol": symbols, "ensembl_id": ids}, index=ids if index_ids else symbols)
    return obs, var


def write(name, x, raw=None, layers=None, index_ids=True, var=None, obs=None, **kw):
    o, v = frames(index_ids)
    a = anndata.AnnData(obs=o if obs is None else obs, var=v if var is None else var)
    a.X = x # anndata 0.8 would make float32 of an argument X
    if layers:
        a.layers.update(layers)
    if raw is not None:
        a.raw = raw
    a.write_h5ad(os.path.join(out, name), **kw)


def patch(name):
    return h5py.File(os.path.join(out, name), "r+")


def replace(group, name, value, **kw):
    attrs = dict(group[name].attrs)
    del group[name]
    d = group.create_dataset(name, data=value, **kw)
    d.attrs.update(attrs)


csr = sp.csr_matrix(X.astype(np.float32))
write("csr_gzip.h5ad", csr, compression="gzip")
write("csr_lzf.h5ad", csr, compression="lzf")
write("csr_plain.h5ad", csr)
write("csc_gzip.h5ad", sp.csc_matrix(X.astype(np.float32)), compression="gzip")
write("dense_gzip.h5ad", X.astype(np.float32), compression="gzip")
write("dense_plain.h5ad", X.astype(np.float64))
write("symbols_index.h5ad", csr, index_ids=False)       # ids found in var/ensembl_id
for n in ("csr_gzip", "csr_lzf", "csr_plain", "csc_gzip", "dense_gzip", "dense_plain", "symbols_index"):
    expect(n + ".h5ad")

# number types and filters of the arrays
for n, data, index, kw in (("i64", np.int64, np.int64, {}), ("u8shuffle", np.uint32, np.uint8, {"compression": "gzip", "shuffle": True}),
                           ("f64shuffle", np.float64, np.uint16, {"compression": "gzip", "shuffle": True, "chunks": (7,)}),
                           ("bigendian", ">i4", ">i8", {}), ("fletcher", np.float32, np.int32, {"compression": "gzip", "fletcher32": True}),
                           ("checksum", np.float32, np.uint8, {"fletcher32": True, "chunks": (7,)}),
                           ("lzfshuffle", np.int32, np.int32, {"compression": "lzf", "shuffle": True, "chunks": (16,)}),
                           ("bigchunk", np.float32, np.int32, {"compression": "gzip", "chunks": (16384,), "maxshape": (None,)}),
                           ("f16", np.float16, np.int32, {})):
    x = np.minimum(X, 200) if n == "f16" else X
    name = "csr_%s.h5ad" % n
    write(name, sp.csr_matrix(x.astype(np.float32)))
    with patch(name) as f:
        replace(f["X"], "data", f["X/data"][:].astype(data), **kw)
        replace(f["X"], "indices", f["X/indices"][:].astype(index), **kw)
        if n == "checksum":
            replace(f["obs"], "_index", np.array(cells, "S32"), **kw)
    expect(name, x=x)

# a row stored backwards, with explicit zeros
write("unsorted.h5ad", csr)
with patch("unsorted.h5ad") as f:
    parts = []
    for i in range(N):
        j = rng.permutation(np.r_[np.flatnonzero(X[i]), np.flatnonzero(X[i] == 0)[:2]])
        parts.append(j)
    replace(f["X"], "indices", np.concatenate(parts).astype(np.int32))
    replace(f["X"], "data", np.concatenate([X[i, j] for i, j in enumerate(parts)]).astype(np.float32))
    replace(f["X"], "indptr", np.cumsum([0] + [len(j) for j in parts]).astype(np.int32))
expect("unsorted.h5ad")

# dense, one chunk per column; chunks that were never written
write("dense_columns.h5ad", X.astype(np.int32))
with patch("dense_columns.h5ad") as f:
    replace(f, "X", f["X"][:], chunks=(N, 1), compression="gzip")
expect("dense_columns.h5ad")
write("dense_holes.h5ad", np.zeros((N, G), np.float32))
with patch("dense_holes.h5ad") as f:
    attrs = dict(f["X"].attrs)
    del f["X"]
    d = f.create_dataset("X", (N, G), np.float32, chunks=(6, 11), compression="gzip")
    d[6:12, 11:22] = X[6:12, 11:22]
    d.attrs.update(attrs)
holes = np.zeros_like(X)
holes[6:12, 11:22] = X[6:12, 11:22]
expect("dense_holes.h5ad", x=holes)

# duplicates and versions: the ids of columns 3 and 8 name the same gene
twice = [g + ".%d" % (k % 4 + 1) for k, g in enumerate(ids)]
twice[8] = ids[3] + ".9"
write("versions.h5ad", csr, var=pd.DataFrame(index=twice))
gene = list(ids)
gene[8] = ids[3]
expect("versions.h5ad", gene=gene)

# X is normalised and has only some of the genes; the counts are in raw and in a layer
norm = np.log1p(X / np.maximum(X.sum(1, keepdims=True), 1) * 1e4).astype(np.float32)
full = anndata.AnnData(csr, obs=frames()[0], var=frames()[1])
write("raw.h5ad", norm[:, ::2], raw=full, var=frames()[1].iloc[::2])
expect("raw.h5ad")
write("layer.h5ad", norm, layers={"counts": csr})
expect("layer.h5ad")
write("normalised.h5ad", norm, layers={"counts": csr, "more": csr})

# anndata 0.7: categoricals as codes with a reference; h5sparse before that
write("old07.h5ad", csr)
with patch("old07.h5ad") as f:
    for k in ("encoding-type", "encoding-version"):
        f.attrs.pop(k, None)
    codes, cats = f["obs/cell_type/codes"][:], f["obs/cell_type/categories"][:]
    del f["obs/cell_type"]
    f.create_dataset("obs/__categories/cell_type", data=cats, dtype=h5py.string_dtype())
    f.create_dataset("obs/cell_type", data=codes)
    f["obs/cell_type"].attrs["categories"] = f["obs/__categories/cell_type"].ref
    f["obs"].attrs["encoding-version"] = "0.1.0"
expect("old07.h5ad")
with h5py.File(os.path.join(out, "old06.h5ad"), "w") as f:
    known = sorted({t for t in types if t})
    code = np.array([-1 if t is None else known.index(t) for t in types], np.int8)
    f.create_dataset("uns/cell_type_categories", data=np.array([k.encode() for k in known]))
    obs = np.zeros(N, [("index", "S12"), ("cell_type", "i1"), ("score", "<f4"), ("age", "<i8"), ("flag", "?"), ("donor", "S4")])
    obs["index"], obs["cell_type"], obs["age"], obs["flag"] = [c.encode() for c in cells], code, age, flag
    obs["score"], obs["donor"] = score, [d.encode() for d in donor]
    f["obs"] = obs
    var = np.zeros(G, [("index", "S18"), ("n", "<i8")])
    var["index"] = [g.encode() for g in ids]
    f["raw.var"] = var
    f["var"] = var[:5]
    f["X"] = norm[:, :5]
    x = f.create_group("raw.X")
    x.attrs["h5sparse_format"], x.attrs["h5sparse_shape"] = b"csr", np.array([N, G])
    x["data"], x["indices"], x["indptr"] = csr.data, csr.indices, csr.indptr
expect("old06.h5ad", columns={"score": ["NA" if s != s else repr(float(np.float32(s))) for s in score]})

# nullable columns, and a nullable index
write("nullable.h5ad", csr)
with patch("nullable.h5ad") as f:
    mask = rng.random(N) < 0.3
    for col, values in (("age", age), ("flag", flag)):
        del f["obs/" + col]
        g = f.create_group("obs/" + col)
        g.attrs["encoding-type"] = "nullable-integer" if col == "age" else "nullable-boolean"
        g["values"], g["mask"] = values, mask
    for col, values in (("donor", donor), ("_index", np.array(cells))):
        del f["obs/" + col]
        g = f.create_group("obs/" + col)
        g.attrs["encoding-type"] = "nullable-string-array"
        g.create_dataset("values", data=[str(v) for v in values], dtype=h5py.string_dtype())
        g["mask"] = mask if col == "donor" else np.zeros(N, bool)
expect("nullable.h5ad", columns={k: ["NA" if m else v for m, v in zip(mask, text[k])] for k in ("age", "flag", "donor")})

# 10x: genes x cells by columns; three antibodies among the features of the newer one
ab = rng.poisson(30, (N, 3))
both = sp.csr_matrix(np.hstack([X, ab]))
with h5py.File(os.path.join(out, "tenx3.h5"), "w") as f:
    m = f.create_group("matrix")
    m["barcodes"] = np.array([c.encode() for c in cells])
    m["shape"] = np.array([G + 3, N], np.int32)
    for k, v in (("data", both.data.astype(np.int32)), ("indices", both.indices.astype(np.int64)), ("indptr", both.indptr.astype(np.int64))):
        m.create_dataset(k, data=v, chunks=(80000,), maxshape=(None,), compression="gzip", shuffle=True)
    m["features/id"] = np.array([g.encode() for g in ids] + [b"CD3", b"CD4", b"CD8"])
    m["features/name"] = np.array([g.encode() for g in symbols] + [b"CD3", b"CD4", b"CD8"])
    m["features/feature_type"] = np.array([b"Gene Expression"] * G + [b"Antibody Capture"] * 3)
expect("tenx3.h5", obs=())
with h5py.File(os.path.join(out, "tenx2.h5"), "w") as f:
    for genome, x in (("GRCh38", csr), ("mm10", sp.csr_matrix(X[:, ::-1]))):
        m = f.create_group(genome)
        m["barcodes"] = np.array([c.encode() for c in cells])
        m["shape"] = np.array([G, N], np.int32)
        m["data"], m["indices"], m["indptr"] = x.data.astype(np.int32), x.indices.astype(np.int64), x.indptr.astype(np.int64)
        m["genes"], m["gene_names"] = np.array([g.encode() for g in ids]), np.array([g.encode() for g in symbols])
expect("tenx2.h5", obs=())
for name, gz in (("mtx", False), ("mtx_gz", True)):
    d = os.path.join(out, name)
    os.makedirs(d, exist_ok=True)
    coo = sp.coo_matrix(both)
    order = rng.permutation(coo.nnz) if not gz else np.arange(coo.nnz)
    files = {"barcodes.tsv": "".join(c + "\n" for c in cells),
             "features.tsv": "".join("%s\t%s\t%s\n" % (i, s, "Gene Expression" if k < G else "Antibody Capture") for k, (i, s) in
                                     enumerate(zip(ids + ["CD3", "CD4", "CD8"], symbols + ["CD3", "CD4", "CD8"]))),
             "matrix.mtx": "%%%%MatrixMarket matrix coordinate integer general\n%% made up\n%d %d %d\n" % (G + 3, N, coo.nnz) +
                           "".join("%d %d %d\n" % (coo.col[k] + 1, coo.row[k] + 1, coo.data[k]) for k in order)}
    for fn, content in files.items():
        with (gzip.open(os.path.join(d, fn + ".gz"), "wt") if gz else open(os.path.join(d, fn), "w")) as f:
            f.write(content)
    expect(name, obs=())
