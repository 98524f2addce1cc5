"""The figure of make r2mae-other: masking rates for images, text and DNA."""
from plot import Series, plot

TITLES = ("Digits: error of the probe", "Text: loss of masked characters", "Genome: loss of masked bases")
NOTE = "Lines up and down: standard deviations over the seeds."


def panels(rows, arm, r2mae, titles=TITLES):
    """arm: the column of the arms, in which r2mae is the name of R2MAE."""
    digits, across = [], []
    for width, look in (("16", "c2"), ("256", "c5")):
        some = [r for r in rows if r["kind"] == f"digits-{width}"]
        digits.append(Series(f"width {width}", [(r.number(arm), *r.spread()) for r in some if r[arm] != r2mae], look))
        across += [(r.number("mean"), f"width {width}, R2MAE", look, 1) for r in some if r[arm] == r2mae]
    yield plot(titles[0], digits, "masking rate in training", "error of the probe", x_range=(0, 1), y_range=(0, None), across=across, note=NOTE)
    for kind, title in (("text", titles[1]), ("dna", titles[2])):
        series = [Series("R2MAE" if a == r2mae else f"rate {a} in training",
                         [(float(r["metric"].removeprefix("loss-")), *r.spread()) for r in rows if (r["kind"], r[arm]) == (kind, a)],
                         "m-r2mae" if a == r2mae else "m-random", dash=dash, hollow=hollow)
                  for a, dash, hollow in (("0.15", 2, False), ("0.3", 1, True), ("0.5", 0, True), (r2mae, 0, False))]
        if any(s.points for s in series):
            yield plot(title, series, "masking rate in the test", "loss (nats)", x_range=(0.1, 0.55), note=NOTE)


def other(t):
    return "Masking rates for images, text and DNA", list(panels(t("summary.tsv"), "arm", "r2mae"))


def docs_r2mae_other(t):
    return "Masking rates for images, text and DNA", list(panels(t("r2mae-other.tsv"), "masking_rate", "R2MAE", (
        "Digits: R2MAE is near the best fixed rate", "Text: training at 0.15 is worse on half-masked text", "DNA: hardly anything is learned")))
