"""The figure of make plot-train: loss, validation metrics and learning rate of a training."""
from chart import running_mean
from plot import Series, plot


def train(t):
    rows = t("train.tsv")

    def column(name):
        return [r.numbers(f"step {name}") for r in rows if r.number(name) is not None]

    def panel(title, series, y_name, **options):
        return plot(title, [s for s in series if s.points], "step", y_name, x_range=(0, None), **options)
    loss = column("loss")
    smooth = list(zip([x for x, _ in loss], running_mean([y for _, y in loss])))
    middle = panel("Validation", [Series("validation accuracy", column("eval_accuracy"), "m-corrmask"),
                                  Series("validation macro F1", column("eval_macro_f1"), "m-expression", hollow=True)], "share", tall=150)
    if "eval_loss" not in (rows[0] if rows else {}):
        middle = panel("Gradient", [Series("", column("grad_norm"), "m-random", "faint")], "gradient norm", log_y=True, tall=150)
    return "Training", [
        panel(f"Loss of {t.folder}", [Series("", loss, "m-random", "faint"), Series("training, running mean", smooth, "m-random", "line"),
                                      Series("validation", column("eval_loss"), "m-corrmask")], "loss"),
        middle, panel("Learning rate", [Series("", column("lr"), "m-expression", "line")], "learning rate", y_range=(0, None), tall=120)]
