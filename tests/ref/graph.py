"""CorrMask's Algorithm 1 written with numpy and scipy alone; cells x kept genes must fit into memory.

    graph.py TOKENS.tsv SPECIAL OPTION=VALUE...        prints  u <TAB> v <TAB> rho <TAB> overlap <TAB> global rho  for u < v

TOKENS.tsv has one cell a line, tokens separated by spaces; ids below SPECIAL are special tokens.
"""
import sys

import numpy as np
from scipy.sparse import csr_matrix
from scipy.stats import rankdata


def spearman(a, b):
    a, b = rankdata(a), rankdata(b)
    a, b = a - a.mean(), b - b.mean()
    norm = np.sqrt((a @ a) * (b @ b))
    return a @ b / norm if norm > 0 else 0.0


def edges(cells, max_len=2048, min_cells=50, top_genes=2000, neighbours=50, rho_min=0.2, min_overlap=200):
    cells = [c[:max_len] for c in cells]
    start = np.cumsum([0] + [len(c) for c in cells])
    place = csr_matrix((np.concatenate([1 + np.arange(len(c)) for c in cells]), np.concatenate(cells), start)).tocsc()
    genes = np.flatnonzero(np.diff(place.indptr) >= min_cells)
    place = place[:, genes]
    if top_genes:
        worth = max_len * np.diff(place.indptr) - place.sum(0).A1
        best = np.sort(np.argsort(-worth, kind="stable")[:top_genes])
        place, genes = place[:, best], genes[best]
    there = place.toarray() > 0
    X = np.where(there, max_len - place.toarray(), 0).astype(float)
    Z = np.column_stack([rankdata(x) for x in X.T])
    Z -= Z.mean(0)
    sd = Z.std(0)
    Z /= np.where(sd > 0, sd, np.inf)
    C = Z.T @ Z / len(cells)
    np.fill_diagonal(C, 0)
    C = np.round(C, 12)         # equal correlations must stay ties
    out = {}
    for a, u in enumerate(genes):
        for b in np.argsort(-np.abs(C[a]), kind="stable")[:neighbours]:
            if b == a or sd[a] == 0 or sd[b] == 0 or abs(C[a, b]) < rho_min or (min(u, genes[b]), max(u, genes[b])) in out:
                continue
            both = there[:, a] & there[:, b]
            if both.sum() >= min_overlap:
                out[min(u, genes[b]), max(u, genes[b])] = spearman(X[both, a], X[both, b]), both.sum(), C[a, b]
    return out


if __name__ == "__main__":
    special = int(sys.argv[2])
    options = {k: (float if k == "rho_min" else int)(v) for k, v in (a.split("=") for a in sys.argv[3:])}
    with open(sys.argv[1]) as f:
        cells = [np.array(line.split(), int) for line in f]
    for (u, v), (rho, n, c) in sorted(edges([c[c >= special] for c in cells], **options).items()):
        print(u, v, f"{rho:.8f}", n, f"{c:.8f}", sep="\t")
