"""Figures of make r2mae-fig1, the linear theory and trained models, and of make r2mae-cells, masking rates for cells."""
from chart import METHODS, tint
from plot import Arm, Series, arms, plot

LOOKS = ("c0", "c1", "c2", "c5", "c7", "c6")
QUANTILES = ("0.5", "0.75", "0.9", "1")


def fig1(t, runs):
    """runs: the number of simulations, which makes standard deviations of standard errors."""
    def curve(name, look, words, column="risk"):
        return Series(words, [(r.number("ratio"), r.number(column)) for r in t(f"{name}.theory.tsv")], look, "line")

    def trials(name, look, column="risk", most=float("inf"), bars=True, marks="dots"):
        rows = [(r.number("ratio"), r.number(column), r.number(f"{column}_se") * float(runs) ** 0.5) for r in t(f"{name}.simulate.tsv") if r.number(column) is not None]
        return Series("", [(x, y, y - e, y + e) if bars and y < most else (x, y) for x, y, e in rows], look, marks, dash=2)

    def panel(title, y_name, curves, y_range, column="risk", **options):
        """curves: pairs of a name of the tables and words."""
        both = [(look, name, words) for look, (name, words) in zip(LOOKS, curves)]
        return plot(title, [curve(name, look, words, column) for look, name, words in both] + [trials(name, look, column, 100) for look, name, _ in both],
                    "masking rate", y_name, x_range=(0, 1), y_range=y_range, note="Lines: theory. Points: means of simulations, with standard deviations.", **options)
    relative = "risk / risk of predicting 0"
    panels = [
        panel("A  isotropic: p / n = 2 and 0.5 (pole at 0.5)", "risk", [("over", "p / n = 2"), ("under", "p / n = 0.5")], (0.5, 50), log_y=True),
        panel("B  spiked, aligned: strength c of the spike", "risk", [(f"spike-{c}", f"c = {c}") for c in (0, 1, 2, 5)], (0, 8)),
        panel("C  spiked, c = 5: alignment of the coefficients", "risk", [*((f"align-{a}", f"alignment {a}") for a in (0, 0.25, 0.5, 0.75)), ("spike-5", "alignment 1")], (0, 9)),
        panel("D  magnitude of predictions, c = 5", "mean squared prediction", [("spike-5", "aligned"), ("align-0", "orthogonal")], (0, 14), "magnitude"),
        *(panel(f"E  {words}: quantile of the eigenvector", relative, [(f"{model}-{q}", f"quantile {q}") for q in QUANTILES], (0, 2), across=[(1, "", "faint", 1)])
          for model, words in (("uniform", "uniform eigenvalues"), ("beta", "Beta(1, 10) eigenvalues"), ("latent", "latent space, I + W W^T")))]
    models = []  # a line with the name of a model, then its points
    for r in t("panel-f.tsv", "rate error"):
        if "error" in r:
            models[-1].points.append((r.number("rate"), r.number("error")))
        else:
            models.append(Series(r["rate"], [], LOOKS[len(models) % 6], dash=len(models) // 6 % 4))
    panels.append(plot("F  trained models: errors with a common start and slope", models, "masking rate", "scaled error", x_range=(0, 1)))
    samples = [trials(f"sample-{i}", LOOKS[1], bars=False, marks="both") for i in range(1, 7)]
    samples[0].name = "its samples (six, not selected)"
    panels.append(plot("G  latent space with equal factors: rows drawn once",
                       [curve("linear", LOOKS[0], "n = 50, p = 1000, 20 factors"), trials("linear", LOOKS[0], bars=False), curve("sample-1", LOOKS[1], "n = 20, p = 300, 5 factors"),
                        *samples], "masking rate", relative, x_range=(0, 1), y_range=(0, 1.6), note="Lines: theory. Points: simulations."))
    return "Risk by masking rate", panels


def marked(method):
    """A method has a colour; rates of the fixed ones and schedules of others differ by dashes and dots."""
    return dict(look=tint(method, 3), dash={"fixed-0.10": 2, "fixed-0.50": 1}.get(method, 3 if method.endswith("-easy") else 0), hollow=method.endswith(("0.10", "0.50", "-cl")))


def r2mae_cells(t):
    summary = [r for r in t("summary.tsv") if r.number("mean") is not None]
    methods = [m for m in dict.fromkeys(r["arm"] for r in summary if r["stage"].startswith("valid-")) if m != "untrained"]

    def of(arm, metric, stage=""):
        return [(r, r.number("mean"), r.number("sd") or 0) for r in summary if r["arm"] == arm and r["metric"] == metric and r["stage"].startswith(stage)]
    genes = [Series(m, [(float(r["stage"][6:]) + 0.004 * (i - len(methods) / 2), y, y - sd, y + sd) for r, y, sd in of(m, "pearson", "valid-")], **marked(m))
             for i, m in enumerate(methods)]
    probes = [Arm(METHODS.get(m, m), y, y - sd, y + sd, tint(m, 3)) for m in dict.fromkeys(r["arm"] for r in summary) for r, y, sd in of(m, "balanced_accuracy", "label") if r["stage"] == "label"]
    curves = []
    for m in methods:
        first = sorted((t.folder / "runs").glob(f"{m}-[0-9]*/train.tsv"), key=lambda f: int(f.parent.name.rpartition("-")[2]) if f.parent.name.rpartition("-")[0] == m else 1e9)
        rows = t(first[0].relative_to(t.folder)) if first else []
        points = [(r.number("step"), r.number("eval_loss")) for r in rows if r.number("eval_loss") is not None]
        if points:
            curves.append(Series(m, points, **{**marked(m), "marks": "line"}))
    note = "Lines up and down: standard deviations over the seeds."
    return "Masking rates for cells", [
        plot("Masked genes", genes, "share of masked genes", "Pearson correlation in a cell", x_range=(0.05, 0.75), note=note),
        arms("Probe, cells of other donors", probes, "balanced accuracy", note="Lines: standard deviations over the seeds."),
        plot("Validation cells, 30 % of the genes masked", curves, "step", "negative log-likelihood", x_range=(0, None), note="One training of each method.")]


def docs_r2mae_cells(t):
    rows = [r for r in t("r2mae-cells-genes.tsv") if r.number("low") is not None and r["masked"] == ".3"]
    looks = {"MDLM": "m-mdlm", "dynamic": "m-dynamic", "R2MAE": "m-r2mae", "CL": "m-cl", "R2MAE + dynamic": "m-r2mae-dynamic", "R2MAE + CL": "m-r2mae"}
    every = [r.number(end) for r in rows for end in ("low", "high")]
    return "Masked genes", [
        arms(data[0].upper() + data[1:], [Arm(r["method"], r.number("gap"), r.number("low"), r.number("high"), looks.get(r["method"], "m-random")) for r in rows if r["data"] == data],
             "Pearson correlation of masked genes minus that of a fixed rate of 0.25", include=every, note="30 % masked, recalibrated. Lines: 95 % intervals over the seeds.")
        for data in dict.fromkeys(r["data"] for r in rows)]
