"""Figures of make genesets: are the strongest edges pairs of known gene sets?"""
from plot import Series, plot

GRAPHS = {"corrmask": ("CorrMask, 2,000 genes", "m-corrmask"), "corrmask-all": ("CorrMask, all genes", "m-corrmask"), "pmi": ("PMI", "m-pmi")}


def genesets(t):
    precise, chance = [], [Series("random pairs of equally frequent genes", [], "ink", "line", dash=1)]
    for graph, (words, look) in GRAPHS.items():
        rows = [r.numbers("k precision random se") for r in t(f"genesets.{graph}.tsv")]
        if rows:
            precise.append(Series(words, [(k, p, p - 1.96 * se, p + 1.96 * se) for k, p, _, se in rows], look, hollow=graph == "corrmask-all"))
            chance.append(Series("", [(k, r) for k, _, r, _ in rows], look, "line", dash=1))
    return "Edges within a gene set", [
        plot("Edges within a gene set" if precise else "No edge joins two genes of sets", precise + chance, "k strongest edges",
             "share of edges within a gene set", log_x=True, y_range=(0, None), note="Lines up and down: 95 % intervals.")]
