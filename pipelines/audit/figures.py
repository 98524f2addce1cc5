"""Figures of make genesets: are the strongest edges pairs of known gene sets?"""
from plot import Arm, Series, arms, plot

GRAPHS = {"corrmask": ("CorrMask, 2,000 genes", "m-corrmask"), "corrmask-all": ("CorrMask, all genes", "m-corrmask"), "pmi": ("PMI", "m-pmi")}


def genesets(t):
    precise, chance = [], []
    for graph, (words, look) in GRAPHS.items():
        rows = [(r.number("k"), r.number("precision"), r.number("random"), 1.96 * r.number("se")) for r in t(f"genesets.{graph}.tsv")]
        if rows:
            hollow = graph == "corrmask-all"
            precise.append(Series(words, [(k, p, p - e, p + e) for k, p, _, e in rows], look, hollow=hollow))
            chance.append(Series("", [(k, r) for k, _, r, _ in rows], look, "line", dash=2 if hollow else 1))
    title = "Edges within a gene set" if precise else "No edge joins two genes of sets"
    return "Edges within a gene set", [plot(title, precise + chance + [Series("random pairs of equally frequent genes", [], "ink", "line", dash=1)], "k strongest edges",
                                            "share of edges within a gene set", log_x=True, y_range=(0, None), note="Lines up and down: 95 % intervals.")]


def docs_genesets(t):
    looks = dict(GRAPHS.values())
    rows = t("genesets.tsv")
    return "Edges within a gene set", [
        arms(name, [Arm(f"{r['graph']}, {int(r['k']):,} edges", r.number(f"{column}_ratio"), look=looks[r["graph"]]) for r in rows],
             "pairs of one gene set among the edges, times random pairs", log=True, line=1, include=(1, 20), note="Line: as many as random pairs.")
        for name, column in (("Reactome", "reactome"), ("Protein complexes", "complexes"))]
