"""The figure of make demo: copying from partners, and cell types."""
from chart import METHODS
from plot import Arm, Series, arms, plot

PLACES = [(0, "partners visible"), (1, "partners hidden")]


def copying(points, reference, tables):
    """The losses with visible and with hidden partners: a line for each network, and for each table without a network (its column: words, look, dash)."""
    seen, series = set(), []
    for r in points:
        arm = r["strategy"]
        series.append(Series("" if arm in seen else METHODS[arm], list(enumerate(r.numbers("visible hidden"))), f"m-{arm}"))
        seen.add(arm)
    loss = {r["masks"]: r for r in reference}
    return series + [Series(words, [(i, loss[masks].number(column)) for i, masks in enumerate(("visible", "hidden"))], look, "line", dash)
                     for column, words, look, dash in tables if loss]


def demo(t):
    points, scored = t("points.tsv"), t("scored.tsv", "genes cells")
    panels = []
    if points:
        panels.append(plot(f"Copying from partners: loss of a masked gene ({scored[0]['genes']} genes with partners)",
                           copying(points, t("reference.tsv"), [("frequency", "gene frequencies, no network", "ink", 1)]), "", "loss (nats)", x_names=PLACES,
                           note="A line is a network (a seed). The more it rises, the more the network copies from partners."))
    rows = [Arm(METHODS[r["arm"]], *r.numbers("mean low high"), f"m-{r['arm']}") for r in t("macro_f1.tsv", "arm mean low high")]
    panels.append(arms("Cell types of test cells: linear probe", rows, "macro F1", bars=True, x_range=(0, 1),
                       note="Bars: means over the seeds. Lines: 95 % intervals."))
    return "Copying from partners, and cell types", panels
