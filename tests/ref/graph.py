"""CorrMask's Algorithm 1 written with numpy and scipy alone, for small corpora.

    graph.py TOKENS.tsv SPECIAL OPTION=VALUE...        prints  u <TAB> v <TAB> rho <TAB> overlap  for u < v

TOKENS.tsv has one cell a line, tokens separated by spaces; ids below SPECIAL are special tokens.
"""
import sys

import numpy as np
from scipy.stats import rankdata


def spearman(a, b):
    a, b = rankdata(a), rankdata(b)
    a, b = a - a.mean(), b - b.mean()
    norm = np.sqrt((a @ a) * (b @ b))
    return a @ b / norm if norm > 0 else 0.0


def edges(cells, max_len=2048, min_cells=50, top_genes=2000, neighbours=50, rho_min=0.2, min_overlap=200):
    vocab = 1 + max(max(c, default=0) for c in cells)
    X = np.zeros((len(cells), vocab))
    there = np.zeros((len(cells), vocab), bool)
    for i, c in enumerate(cells):
        for k, g in enumerate(c[:max_len]):
            X[i, g] = max_len - (k + 1)
            there[i, g] = True
    genes = np.flatnonzero(there.sum(0) >= min_cells)
    if top_genes:
        genes = np.sort(genes[np.argsort(-X[:, genes].sum(0), kind="stable")[:top_genes]])
    R = np.column_stack([rankdata(X[:, g]) for g in genes])
    sd = R.std(0)
    Z = (R - R.mean(0)) / np.where(sd > 0, sd, np.inf)
    C = Z.T @ Z / len(cells)
    np.fill_diagonal(C, 0)
    C = np.round(C, 12)         # equal correlations must stay ties
    out = {}
    for a, u in enumerate(genes):
        for b in np.argsort(-np.abs(C[a]), kind="stable")[:neighbours]:
            v = genes[b]
            both = there[:, u] & there[:, v]
            if b == a or sd[a] == 0 or sd[b] == 0 or abs(C[a, b]) < rho_min or both.sum() < min_overlap:
                continue
            if (min(u, v), max(u, v)) not in out:
                out[min(u, v), max(u, v)] = spearman(X[both, u], X[both, v]), both.sum()
    return out


if __name__ == "__main__":
    special = int(sys.argv[2])
    options = {k: (float if k == "rho_min" else int)(v) for k, v in (a.split("=") for a in sys.argv[3:])}
    with open(sys.argv[1]) as f:
        cells = [[int(t) for t in line.split() if int(t) >= special] for line in f]
    for (u, v), (rho, n) in sorted(edges(cells, **options).items()):
        print(u, v, f"{rho:.8f}", n, sep="\t")
