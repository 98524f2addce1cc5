"""Figures of make panel: how well genes outside a panel are predicted."""
from chart import tint
from plot import Series, forest, plot

ARMS = {"ridge": "ridge regression", "components": "regression on components", "nearest": "nearest cells", "r2mae-wide": "network, R2MAE",
        "fixed-0.25": "network, fixed rate .25", "corrmask-wide": "network, CorrMask"}


def panel(t):
    genes = t("genes.tsv")
    curves = [Series(f"panel {k}", list(enumerate((r.number("pearson") for r in genes if r["panel"] == k), 1)), ("c0", "c1", "c2", "c5", "c7")[i % 5], "line", i // 5)
              for i, k in enumerate(dict.fromkeys(r["panel"] for r in genes))]
    return "How well each gene is predicted", [plot("How well each gene outside the panel is predicted", curves, "genes outside the panel, the best one first",
                                                    "Pearson correlation in cells of other donors")]


def docs_panel(t):
    return "Genes outside a panel", forest(
        [r for r in t("panel.tsv") if r["data"].startswith("mean of") and r["method"] in ARMS], lambda r: r["k"], lambda r: ARMS[r["method"]], "gap low high",
        "Pearson correlation of a gene minus that of Poisson regression on the panel", lambda r: tint(r["method"]) if "-" in r["method"] else "m-expression",
        lambda k: f"Panel of {k} genes: no difference is certain", note="Means of six sets. Lines: 95 % intervals over the sets.")
