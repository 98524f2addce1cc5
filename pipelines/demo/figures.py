"""The figure of make demo: copying from partners, and cell types."""
from chart import METHODS
from plot import Arm, Series, arms, plot

PLACES = [(0, "partners visible"), (1, "partners hidden")]


def copying(points, reference, tables):
    """The losses with visible and with hidden partners: a line for each network, and for each table without a network (its column: words, look, dash)."""
    series = []
    for arm in dict.fromkeys(r["strategy"] for r in points):
        for i, r in enumerate(q for q in points if q["strategy"] == arm):
            series.append(Series("" if i else METHODS[arm], [(0, r.number("visible")), (1, r.number("hidden"))], f"m-{arm}"))
    loss = {r["masks"]: r for r in reference}
    for column, words, look, dash in tables if loss else ():
        series.append(Series(words, [(0, loss["visible"].number(column)), (1, loss["hidden"].number(column))], look, "line", dash))
    return series


def demo(t):
    points, scored = t("points.tsv"), t("scored.tsv", "genes cells")
    panels = []
    if points:
        panels.append(plot(f"Copying from partners: loss of a masked gene ({scored[0]['genes']} genes with partners)",
                           copying(points, t("reference.tsv"), [("frequency", "gene frequencies, no network", "ink", 1)]), "", "loss (nats)", x_names=PLACES,
                           note="A line is a network (a seed). The more it rises, the more the network copies from partners."))
    rows = [Arm(METHODS[r["arm"]], r.number("mean"), r.number("low"), r.number("high"), f"m-{r['arm']}") for r in t("macro_f1.tsv", "arm mean low high")]
    panels.append(arms("Cell types of test cells: linear probe", rows, "macro F1", bars=True, x_range=(0, 1), note="Bars: means over the seeds. Lines: 95 % intervals."))
    return "Copying from partners, and cell types", panels
