"""Figures of make panel: how well genes outside a panel are predicted."""
from chart import tint
from plot import Arm, Series, arms, plot

ARMS = {"ridge": "ridge regression", "components": "regression on components", "nearest": "nearest cells", "r2mae-wide": "network, R2MAE", "fixed-0.25": "network, fixed rate .25",
        "corrmask-wide": "network, CorrMask"}


def panel(t):
    genes = t("genes.tsv")
    curves = [Series(f"panel of {k} genes", [(i + 1, v) for i, v in enumerate(r.number("pearson") for r in genes if r["panel"] == k)], look, "line")
              for k, look in zip(sorted({r["panel"] for r in genes}, key=float), ("c0", "c1", "c2", "c5", "c7"))]
    return "How well each gene is predicted", [plot("How well each gene outside the panel is predicted", curves, "genes outside the panel, the best one first",
                                                    "Pearson correlation in cells of other donors")]


def docs_panel(t):
    rows = [r for r in t("panel.tsv") if r["data"].startswith("mean of") and r["method"] in ARMS]
    every = [r.number(end) for r in rows for end in ("low", "high")]
    return "Genes outside a panel", [
        arms(f"Panel of {k} genes", [Arm(ARMS[r["method"]], r.number("gap"), r.number("low"), r.number("high"), tint(r["method"]) if "-" in r["method"] else "m-expression")
                                     for r in rows if r["k"] == k],
             "Pearson correlation of a gene minus that of Poisson regression on the panel", include=every, note="Means of six sets. Lines: 95 % intervals over the sets.")
        for k in dict.fromkeys(r["k"] for r in rows)]
