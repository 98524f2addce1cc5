"""Figures of make table6: macro F1 by the number of pre-training cells (the paper's figure 5), the rarest classes (figure 6), and by lambda (figure 7)."""
from chart import METHODS, tint
from plot import Series, plot

SUFFIXES = ("", "+10", "+25", "+50", "+r2mae", "+dyn", "+mdlm")
STAGES = {"finetune": "Cell types, fine-tuned", "probe": "Cell types, linear probe"}
NOTE = "Lines up and down: standard deviations over the seeds."


def marks(arm, i):
    """An arm has the colour of its masks; a part for the masking rate, or lambda, changes the dashes and the dots."""
    base, plus, part = arm.partition("+")
    k = i if base[-1:].isdigit() or plus + part not in SUFFIXES else SUFFIXES.index(plus + part)
    return dict(look=tint(arm, i), dash=k % 4, hollow=k > 3 or base[-1:].isdigit())


def table6(t):
    summary, rare = [r for r in t("summary.tsv") if r["metric"] == "macro_f1" and r["mean"] != "NA"], t("rare.tsv")
    names = [a for a in dict.fromkeys(r["arm"] for r in summary) if a != "scratch"]
    sizes = sorted({r["cells"] for r in summary if r["cells"] != "0"}, key=float)
    panels = []
    for stage, title in STAGES.items() if sizes else ():
        series = []
        for i, arm in enumerate(names):
            aside = 1 + (0.12 / len(names) if len(names) > 6 else 0.02) * (i - (len(names) - 1) / 2)  # so that lines do not hide each other
            series.append(Series(arm, [(r.number("cells") * aside, *r.spread()) for r in summary if (r["stage"], r["arm"]) == (stage, arm)], **marks(arm, i)))
        across = [(r.number("mean"), "not pre-trained", "ink", 1) for r in summary if (r["stage"], r["arm"]) == (stage, "scratch")]
        if stage == "probe":
            across += [(r.number("mean"), METHODS[r["arm"]], f"m-{r['arm']}", 2) for r in t("baselines.tsv", "arm metric mean")
                       if r["metric"] == "macro_f1" and r["mean"] != "NA"]
        panels.append(plot(title, series, "cells pre-trained on", "macro F1", log_x=True, x_names=[(float(x), f"{int(x):,}") for x in sizes],
                           across=across, note=NOTE))
    others = list(rare[0])[3:] if rare else []
    if any(r.number(a) is not None for r in rare for a in others):
        ours = "corrmask" if "corrmask" in names else names[-1]
        panels.append(plot("The rarest classes, fine-tuned, largest corpus",
                           [Series(f"{ours} - {a}", [(i, r.number(a)) for i, r in enumerate(rare, 1)], **marks(a, i)) for i, a in enumerate(others)],
                           "rarest classes", f"{ours} minus other, macro F1", across=[(0, "", "faint", 0)]))
    return "Macro F1 by masks and number of cells", panels


def share(arm):
    """lambda, the share of the masks that follow the graph."""
    base, _, percent = arm.partition("-")
    return 0 if arm == "random" else float(percent or 50) / 100 if base == "corrmask" and (percent or "50").isdigit() else None


def fig7(t):
    rows = [r for r in t("summary.tsv") if r["metric"] == "macro_f1" and r["mean"] != "NA" and share(r["arm"]) is not None]
    most = max((r["cells"] for r in rows), key=float, default="0")
    return "Macro F1 by lambda", [
        plot(title, [Series("", sorted((share(r["arm"]), *r.spread()) for r in rows if (r["stage"], r["cells"]) == (stage, most)), "m-corrmask")],
             "lambda (0: random masks)", "macro F1", x_range=(-0.1, 1.1), note=NOTE) for stage, title in STAGES.items()]
