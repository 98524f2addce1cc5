"""The figure of make plot-train: loss, validation metrics and learning rate of a training."""
from chart import running_mean
from plot import Series, plot


def train(t):
    rows = t("train.tsv")

    def column(name):
        return [(r.number("step"), r.number(name)) for r in rows if r.number(name) is not None]
    loss = column("loss")
    smooth = list(zip((x for x, _ in loss), running_mean([y for _, y in loss])))
    series = [Series("", loss, "m-random", "faint"), Series("training, running mean", smooth, "m-random", "line")]
    held = "eval_loss" in (rows[0] if rows else {})
    if held:
        series.append(Series("validation", column("eval_loss"), "m-corrmask"))
        middle = [Series("validation accuracy", column("eval_accuracy"), "m-corrmask"), Series("validation macro F1", column("eval_macro_f1"), "m-expression", hollow=True)]
        middle = plot("Validation", [s for s in middle if s.points], "step", "share", x_range=(0, None), tall=150)
    else:
        middle = plot("Gradient", [Series("", column("grad_norm"), "m-random", "faint")], "step", "gradient norm", x_range=(0, None), log_y=True, tall=150)
    return "Training", [plot(f"Loss of {t.folder}", series, "step", "loss", x_range=(0, None)), middle,
                        plot("Learning rate", [Series("", column("lr"), "m-expression", "line")], "step", "learning rate", x_range=(0, None), y_range=(0, None), tall=120)]
