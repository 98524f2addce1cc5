"""Figure 4: accuracy by modularity, of random masks and of masks by module."""
from plot import Series, forest, plot

READINGS = {"scale": "Exp(0.1) of mean 0.1", "rate": "Exp(0.1) of mean 10"}
TITLES = {"mean 0.1": "Exp(0.1) of mean 0.1: a lead at gamma 1 alone", "mean 10": "Exp(0.1) of mean 10: no certain lead"}
ARMS = (("nearest", "nearest class mean", "m-expression", "line"), ("random", "random masks", "m-random", "both"),
        ("corrmask", "CorrMask", "m-corrmask", "both"))


def fig4(t):
    means, gaps = t("summary.tsv"), t("differences.tsv")
    readings = sorted({r["exp"] for r in means}, reverse=True)
    series = [Series(f"{words}, {READINGS[e]}", [(r.number("gamma"), *r.spread()) for r in means if (r["exp"], r["value"], r["arm"]) == (e, "accuracy", arm)],
                     look, marks, dash=2 * i) for arm, words, look, marks in ARMS for i, e in enumerate(readings)]
    here = [Series(f"here, {READINGS[e]}", [r.numbers("gamma difference low high") for r in gaps if r["exp"] == e], "m-corrmask", dash=2 * i)
            for i, e in enumerate(readings)]
    paper = Series("the paper's words", [(0, 0), (0.25, 0), (1, 10)], "ink", dash=1, hollow=True)
    return "Accuracy by modularity", [
        plot("Test accuracy of logistic regression on [CLS]", series, "modularity gamma", "accuracy (%)", x_range=(-0.05, 1.05), y_range=(25, 105),
             note="Lines up and down: standard deviations over the trials."),
        plot("CorrMask minus random masks, paired by trial", [paper, *here], "modularity gamma", "percentage points", x_range=(-0.05, 1.05),
             across=[(0, "", "faint", 0)], note="Lines up and down: 95 % intervals over the trials.")]


def docs_fig4(t):
    return "Masks by module minus random masks", forest(
        [r for r in t("fig4.tsv") if r["run"] == "table"], lambda r: r["exp"], lambda r: f"gamma {r['gamma']}", "gap gap_low gap_high",
        "masks by module minus random masks (points of accuracy)", lambda r: "m-corrmask", TITLES.get,
        note="Lines: 95 % intervals over the trials.")
