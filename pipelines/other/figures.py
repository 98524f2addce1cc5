"""The figure of make r2mae-other: masking rates for images, text and DNA."""
from plot import Series, plot


def panels(rows, arm, r2mae):
    """arm: the column of the arms, in which r2mae is the name of R2MAE."""
    def of(kind, test):
        return [r for r in rows if r["kind"] == kind and test(r[arm])]

    def points(some, x):
        return [(x(r), r.number("mean"), *((r.number("mean") + s * r.number("sd") for s in (-1, 1)) if r.number("sd") else ())) for r in some]
    digits, across = [], []
    for width, look in (("16", "c2"), ("256", "c5")):
        digits.append(Series(f"width {width}", points(of(f"digits-{width}", lambda a: a != r2mae), lambda r: r.number(arm)), look))
        across += [(r.number("mean"), f"width {width}, R2MAE", look, 1) for r in of(f"digits-{width}", lambda a: a == r2mae)]
    note = "Lines up and down: standard deviations over the seeds."
    yield plot("Digits: error of the probe", digits, "masking rate in training", "error", x_range=(0, 1), y_range=(0, None), across=across, note=note)
    for kind, title in (("text", "Text: loss of masked characters"), ("dna", "Genome: loss of masked bases")):
        rates = (("0.15", 2, False), ("0.3", 1, True), ("0.5", 0, True), (r2mae, 0, False))
        series = [Series("R2MAE" if a == r2mae else f"rate {a} in training", points(of(kind, lambda v: v == a), lambda r: float(r["metric"].removeprefix("loss-"))),
                         "m-r2mae" if a == r2mae else "m-random", dash=dash, hollow=open_) for a, dash, open_ in rates]
        if any(s.points for s in series):
            yield plot(title, series, "masking rate in the test", "loss (nats)", x_range=(0.1, 0.55), note=note)


def other(t):
    return "Masking rates for images, text and DNA", list(panels(t("summary.tsv"), "arm", "r2mae"))


def docs_r2mae_other(t):
    return "Masking rates for images, text and DNA", list(panels(t("r2mae-other.tsv"), "masking_rate", "R2MAE"))
