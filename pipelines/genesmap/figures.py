"""A figure of docs/experiments/genes-map.md: gene sets among the edges of five graphs."""
from plot import Arm, arms


def docs_genes_map(t):
    rows = [r for r in t("genes-map.tsv") if r["which"] == "all"]
    every = [r.number(end) for r in rows for end in ("fold_low", "fold_high")]
    return "Pairs of one gene set among the edges", [
        arms(sets[0].upper() + sets[1:], [Arm(r["graph"], r.number("fold"), r.number("fold_low"), r.number("fold_high"), "m-corrmask" if "dependency" in r["graph"] else "c0")
                                          for r in rows if r["sets"] == sets],
             "pairs of one gene set among the edges, times chance", log=True, line=1, include=every, note="Lines: 95 % intervals over genes. Line across: chance.")
        for sets in dict.fromkeys(r["sets"] for r in rows)]
