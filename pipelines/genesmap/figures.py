"""A figure of docs/experiments/genes-map.md: gene sets among the edges of five graphs."""
from plot import forest


def docs_genes_map(t):
    return "Pairs of one gene set among the edges", forest(
        [r for r in t("genes-map.tsv") if r["which"] == "all"], lambda r: r["sets"], lambda r: r["graph"], "fold fold_low fold_high",
        "pairs of one gene set among the edges, times chance", lambda r: "m-corrmask" if "dependency" in r["graph"] else "c0",
        lambda sets: sets[0].upper() + sets[1:], log=True, line=1, note="Lines: 95 % intervals over genes. Line at 1: chance.")
