"""Figures of make table6: macro F1 by the number of pre-training cells (the paper's figure 5), the rarest classes (figure 6), and by lambda (figure 7)."""
from chart import METHODS, tint
from plot import Arm, Series, arms, plot

SUFFIXES = ("", "+10", "+25", "+50", "+r2mae", "+dyn", "+mdlm")
STAGES = {"finetune": "Cell types, fine-tuned", "probe": "Cell types, linear probe"}
NOTE = "Lines up and down: standard deviations over the seeds."


def mark(arm, i):
    """An arm has the colour of its masks; a part for the masking rate changes the dashes and the dots."""
    base, plus, part = arm.partition("+")
    k = i if base[-1:].isdigit() or plus + part not in SUFFIXES else SUFFIXES.index(plus + part)
    return dict(look=tint(arm, i), dash=k % 4, hollow=k > 3 or base[-1:].isdigit())


def spread(r):
    mean, sd = r.number("mean"), r.number("sd")
    return (mean, mean - sd, mean + sd) if sd else (mean,)


def of(summary, stage, arm):
    return [r for r in summary if (r["stage"], r["metric"], r["arm"]) == (stage, "macro_f1", arm) and r.number("mean") is not None]


def table6(t):
    summary, rare = t("summary.tsv"), t("rare.tsv")
    names = [a for a in dict.fromkeys(r["arm"] for r in summary) if a != "scratch"]
    sizes = sorted({r["cells"] for r in summary if r["cells"] != "0"}, key=float)
    panels = []
    for stage, title in STAGES.items() if sizes else ():
        series = []
        for i, arm in enumerate(names):
            aside = 1 + (0.12 / len(names) if len(names) > 6 else 0.02) * (i - (len(names) - 1) / 2)  # so that lines do not hide each other
            series.append(Series(arm, [(r.number("cells") * aside, *spread(r)) for r in of(summary, stage, arm) if r["cells"] != "0"], **mark(arm, i)))
        across = [(r.number("mean"), "not pre-trained", "ink", 1) for r in of(summary, stage, "scratch")]
        if stage == "probe":
            across += [(r.number("mean"), METHODS[r["arm"]], f"m-{r['arm']}", 2) for r in t("baselines.tsv", "arm metric mean") if r["metric"] == "macro_f1" and r["mean"] != "NA"]
        panels.append(plot(title, series, "cells pre-trained on", "macro F1", log_x=True, x_names=[(float(x), f"{int(x):,}") for x in sizes], across=across, note=NOTE))
    if rare and any(r.number(a) is not None for r in rare for a in list(r)[3:]):
        ours = "corrmask" if "corrmask" in names else names[-1]
        panels.append(plot("The rarest classes, fine-tuned, largest corpus",
                           [Series(f"{ours} - {a}", [(i + 1, r.number(a)) for i, r in enumerate(rare)], **mark(a, i)) for i, a in enumerate(list(rare[0])[3:])],
                           "rarest classes", f"{ours} minus other, macro F1", across=[(0, "", "faint", 0)]))
    return "Macro F1 by masks and number of cells", panels


def share(arm):
    """lambda, the share of the masks that follow the graph."""
    return {"random": 0, "corrmask": 0.5}.get(arm) if "-" not in arm else float(arm[9:]) / 100 if arm.startswith("corrmask-") else None


def fig7(t):
    summary = t("summary.tsv")
    most = max((r["cells"] for r in summary), key=float, default="0")
    rows = sorted((share(r["arm"]), r["stage"], spread(r)) for r in summary
                  if r["cells"] == most and r["metric"] == "macro_f1" and share(r["arm"]) is not None and r.number("mean") is not None)
    return "Macro F1 by lambda", [plot(title, [Series("", [(x, *y) for x, s, y in rows if s == stage], "m-corrmask")], "lambda (0: random masks)", "macro F1",
                                       x_range=(-0.1, 1.1), note=NOTE) for stage, title in STAGES.items()]


def docs_table6(t):
    words = {"macro_f1": "macro F1", "accuracy": "accuracy", "rare_f1": "F1 of the rarest third"}
    rows = [(*r["metric"].split("_", 1), r) for r in t("table6-differences.tsv") if r["method"] == "CorrMask"]
    every = [r.number(end) for *_, r in rows for end in ("low", "high")]
    return "CorrMask minus random masks", [
        arms(title, [Arm(words[metric], r.number("mean"), r.number("low"), r.number("high"), "m-corrmask") for s, metric, r in rows if s == stage], "CorrMask minus random masks",
             include=every, note="Lines: 95 % intervals over five seeds.") for stage, title in (("fine", "Fine-tuned"), ("probe", "Linear probe"))]
