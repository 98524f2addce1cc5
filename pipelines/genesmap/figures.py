"""A figure of docs/experiments/genes-map.md: gene sets among the edges of five graphs."""
from plot import forest

TITLES = {"Reactome": "Pathways: found by the graphs, not by embeddings", "protein complexes": "Complexes: by the graphs, not by embeddings"}


def docs_genes_map(t):
    return "Pairs of one gene set among the edges", forest(
        [r for r in t("genes-map.tsv") if r["which"] == "all"], lambda r: r["sets"], lambda r: r["graph"], "fold fold_low fold_high",
        "pairs of one gene set among the edges, times chance", lambda r: "m-corrmask" if "dependency" in r["graph"] else "c0",
        TITLES.get, log=True, line=1, note="Lines: 95 % intervals over genes. Line at 1: chance.")
