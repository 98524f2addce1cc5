#!/usr/bin/python3
"""An independent reading of the rank value encoding, to hold h5tok | rankenc to.

    scview -c cell,token X.tok | tokens.py FILE.h5ad TOKENS MEDIANS [MAP] v1|v2 [CELLS]

The tables are .tsv.gz, or Geneformer's .pkl. CELLS: the number of cells, if they are a part of the file.

Reads the AnnData file with anndata, takes var["ensembl_id"], or the name of the gene where that is empty, in upper case as Geneformer does (mapped
through MAP where one is given, and left out where MAP lacks it), adds up columns with the same id, computes x / n_counts * 10,000 / median in float64 as the Geneformer tokenizer writes it down, orders every cell, and
compares with the tokens on standard input. Where they differ, the two tokens' values must agree to 1e-6 relative. Prints
    cells N tokens N swaps N
and exits 1 at the first real difference."""
import gzip
import pickle
import sys
import anndata
import numpy as np
import scipy.sparse as sp


def table(path):
    if path.endswith(".pkl"):
        with open(path, "rb") as f:
            return pickle.load(f).items()
    with gzip.open(path, "rt") as f:
        next(f)
        return [line.rstrip("\n").split("\t") for line in f]


h5ad, tokens, medians, *rest = sys.argv[1:]
part = int(rest.pop()) if rest[-1].isdigit() else None
style = rest.pop()
mapping = dict(table(rest[0])) if rest else None
number = {k: int(v) for k, v in table(tokens)}
median = {k: float(v) for k, v in table(medians)}
limit, special = (2048, False) if style == "v1" else (4096, True)

adata = anndata.read_h5ad(h5ad)
x = sp.csr_matrix(adata.X).astype(np.float64)
n_counts = np.asarray(x.sum(1)).ravel()
ids = []
for given, symbol in zip(adata.var["ensembl_id"].astype(str), adata.var_names):
    g = given.split(".")[0] if given else symbol
    if mapping is not None:
        g = mapping.get(g.upper())
    ids.append(g)
known = [i for i, g in enumerate(ids) if g in number]
# genes x tokens, one 1 a known gene: the product adds up columns of one gene
merge = sp.csr_matrix((np.ones(len(known)), (known, [number[ids[i]] for i in known])), shape=(len(ids), len(number)))
x = (x @ merge).tocsr()
x.eliminate_zeros()
factor = np.full(len(number), np.nan)
for g, i in number.items():
    factor[i] = median.get(g, np.nan)

total = swaps = cells = 0
seen = set()
lines = sys.stdin
assert next(lines).rstrip("\n") == "cell\ttoken"
for line in lines:
    cell, ours = line.rstrip("\n").split("\t")
    cell, ours = int(cell), np.array(ours.split(), dtype=np.int64)
    seen.add(cell)
    col = x.indices[x.indptr[cell]:x.indptr[cell + 1]]
    value = x.data[x.indptr[cell]:x.indptr[cell + 1]] / n_counts[cell] * 10_000 / factor[col]
    order = np.lexsort((col, -value))
    score = dict(zip(col, value))
    want = col[order][:limit - 2 if special else limit]
    if special:
        assert ours[0] == number["<cls>"] and ours[-1] == number["<eos>"], "cell %d: special tokens" % cell
        ours = ours[1:-1]
    assert len(ours) == len(want), "cell %d: %d tokens, expected %d" % (cell, len(ours), len(want))
    assert len(set(ours)) == len(ours), "cell %d: a token occurs twice" % cell
    for at in np.flatnonzero(ours != want):
        a, b = score.get(ours[at]), score[want[at]]
        assert a is not None and abs(a - b) <= 1e-6 * b, \
            "cell %d place %d: token %d (%r), expected %d (%r)" % (cell, at, ours[at], a, want[at], b)
        swaps += 1
    total += len(want)
    cells += 1
assert part is None or cells == part, "%d cells" % cells
for cell in set(range(x.shape[0] if part is None else 0)) - seen:
    assert x.indptr[cell] == x.indptr[cell + 1], "cell %d is missing" % cell
print("cells %d tokens %d swaps %d" % (cells, total, swaps))
