"""Figure 4: accuracy by modularity, of random masks and of masks by module."""
from plot import Arm, Series, arms, plot

READINGS = {"scale": "Exp(0.1) of mean 0.1", "rate": "Exp(0.1) of mean 10"}


def fig4(t):
    means, gaps = t("summary.tsv"), t("differences.tsv")
    readings = sorted({r["exp"] for r in means}, reverse=True)

    def accuracy(exp, arm):
        rows = [r for r in means if (r["exp"], r["value"], r["arm"]) == (exp, "accuracy", arm)]
        return [(r.number("gamma"), r.number("mean"), *((r.number("mean") + s * r.number("sd") for s in (-1, 1)) if arm != "nearest" and r.number("sd") else ())) for r in rows]
    series = [Series(f"{words}, {READINGS[e]}", accuracy(e, arm), look, "line" if arm == "nearest" else "both", dash=2 * i)
              for arm, words, look in (("nearest", "nearest class mean", "m-expression"), ("random", "random masks", "m-random"), ("corrmask", "CorrMask", "m-corrmask"))
              for i, e in enumerate(readings)]
    here = [Series(f"here, {READINGS[e]}", [(r.number("gamma"), r.number("difference"), r.number("low"), r.number("high")) for r in gaps if r["exp"] == e], "m-corrmask", dash=2 * i)
            for i, e in enumerate(readings)]
    paper = Series("the paper's words", [(0, 0), (0.25, 0), (1, 10)], "ink", dash=1, hollow=True)
    return "Accuracy by modularity", [
        plot("Test accuracy of logistic regression on [CLS]", series, "modularity gamma", "accuracy (%)", x_range=(-0.05, 1.05), y_range=(25, 105),
             note="Lines up and down: standard deviations over the trials."),
        plot("CorrMask minus random masks, paired by trial", [paper, *here], "modularity gamma", "percentage points", x_range=(-0.05, 1.05),
             across=[(0, "", "faint", 0)], note="Lines up and down: 95 % intervals over the trials.")]


def docs_fig4(t):
    rows = [r for r in t("fig4.tsv") if r["run"] == "table"]
    return "Masks by module minus random masks", [
        arms(f"Exp(0.1) with {exp}", [Arm(f"gamma {r['gamma']}", r.number("gap"), r.number("gap_low"), r.number("gap_high"), "m-corrmask") for r in rows if r["exp"] == exp],
             "masks by module minus random masks (points of accuracy)", note="Lines: 95 % intervals over the trials.") for exp in dict.fromkeys(r["exp"] for r in rows)]
