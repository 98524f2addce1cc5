"""Figures of make r2mae-fig1, the linear theory and trained models, and of make r2mae-cells, masking rates for cells."""
from chart import METHODS, rank, tint
from plot import Arm, Series, arms, forest, plot

LOOKS = ("c0", "c1", "c2", "c5", "c7", "c6")
RELATIVE = "risk / risk of predicting 0"
QUANTILES = ("0.5", "0.75", "0.9", "1")
# title, name of y, curves (name of the tables, words), range of y, column, more options
PANELS = [
    ("A  isotropic: p / n = 2 and 0.5 (pole at 0.5)", "risk", [("over", "p / n = 2"), ("under", "p / n = 0.5")], (0.5, 50), "risk", {"log_y": True}),
    ("B  spiked, aligned: strength c of the spike", "risk", [(f"spike-{c}", f"c = {c}") for c in (0, 1, 2, 5)], (0, 8), "risk", {}),
    ("C  spiked, c = 5: alignment of the coefficients", "risk",
     [*((f"align-{a}", f"alignment {a}") for a in (0, 0.25, 0.5, 0.75)), ("spike-5", "alignment 1")], (0, 9), "risk", {}),
    ("D  magnitude of predictions, c = 5", "mean squared prediction", [("spike-5", "aligned"), ("align-0", "orthogonal")], (0, 14), "magnitude", {}),
    *((f"E  {words}: quantile of the eigenvector", RELATIVE, [(f"{model}-{q}", f"quantile {q}") for q in QUANTILES], (0, 2), "risk",
       {"across": [(1, "", "faint", 1)]})
      for model, words in (("uniform", "uniform eigenvalues"), ("beta", "Beta(1, 10) eigenvalues"), ("latent", "latent space, I + W W^T")))]


def fig1(t, runs):
    """runs: the number of simulations, which makes standard deviations of standard errors."""
    def theory(name, look, words, column="risk"):
        return Series(words, [r.numbers(f"ratio {column}") for r in t(f"{name}.theory.tsv")], look, "line")

    def trials(name, look, column="risk"):
        rows = [r.numbers(f"ratio {column} {column}_se") for r in t(f"{name}.simulate.tsv")]
        bars = [(x, y, y - se * float(runs) ** 0.5, y + se * float(runs) ** 0.5) if y is not None and y < 100 else (x, y) for x, y, se in rows]
        return Series("", bars, look, "dots")

    def points(name, look, marks="dots", words=""):
        return Series(words, [r.numbers("ratio risk") for r in t(f"{name}.simulate.tsv")], look, marks, dash=2)
    panels = [plot(title, [theory(name, look, words, column) for look, (name, words) in zip(LOOKS, curves)]
                   + [trials(name, look, column) for look, (name, _) in zip(LOOKS, curves)], "masking rate", y_name, x_range=(0, 1), y_range=y_range,
                   note="Lines: theory. Points: means of simulations, with standard deviations.", **options)
              for title, y_name, curves, y_range, column, options in PANELS]
    models = []  # a line with the name of a model, then its points
    for r in t("panel-f.tsv", "rate error"):
        if "error" in r:
            models[-1].points.append(r.numbers("rate error"))
        else:
            models.append(Series(r["rate"], [], LOOKS[len(models) % 6], dash=len(models) // 6 % 4))
    return "Risk by masking rate", [
        *panels, plot("F  trained models: errors with a common start and slope", models, "masking rate", "scaled error", x_range=(0, 1)),
        plot("G  latent space with equal factors: rows drawn once",
             [theory("linear", "c0", "n = 50, p = 1000, 20 factors"), points("linear", "c0"), theory("sample-1", "c1", "n = 20, p = 300, 5 factors"),
              *(points(f"sample-{i}", "c1", "both", "" if i > 1 else "its samples (six, not selected)") for i in range(1, 7))],
             "masking rate", RELATIVE, x_range=(0, 1), y_range=(0, 1.6), note="Lines: theory. Points: simulations.")]


def marks(method):
    """A method has a colour; the rates of the fixed ones, and schedules, differ by dashes and dots."""
    return dict(look=tint(method, 3), dash={"fixed-0.10": 2, "fixed-0.50": 1}.get(method, 3 if method.endswith("-easy") else 0),
                hollow=method.endswith(("0.10", "0.50", "-cl")))


def r2mae_cells(t):
    summary = [r for r in t("summary.tsv") if r["mean"] != "NA"]
    genes = [r for r in summary if r["stage"].startswith("valid-") and r["metric"] == "pearson" and r["arm"] != "untrained"]
    methods = list(dict.fromkeys(r["arm"] for r in genes))
    series = [Series(m, [(float(r["stage"][6:]) + 0.004 * (i - len(methods) / 2), *r.spread()) for r in genes if r["arm"] == m], **marks(m))
              for i, m in enumerate(methods)]  # side by side
    probes = [Arm(METHODS.get(r["arm"], r["arm"]), *(*r.spread(), None, None)[:3], tint(r["arm"], 3)) for r in sorted(summary, key=lambda r: rank(r["arm"]))
              if (r["stage"], r["metric"]) == ("label", "balanced_accuracy")]
    curves = []
    for m in methods:
        seeds = sorted(int(f.parent.name[len(m) + 1:]) for f in (t.folder / "runs").glob(f"{m}-*/train.tsv") if f.parent.name[len(m) + 1:].isdigit())
        curves += [Series(m, [r.numbers("step eval_loss") for r in t(f"runs/{m}-{k}/train.tsv") if r.number("eval_loss") is not None],
                          **{**marks(m), "marks": "line"}) for k in seeds[:1]]
    return "Masking rates for cells", [
        plot("Masked genes", series, "share of masked genes", "Pearson correlation in a cell", x_range=(0.05, 0.75),
             note="Lines up and down: standard deviations over the seeds."),
        arms("Probe, cells of other donors", probes, "balanced accuracy", note="Lines: standard deviations over the seeds."),
        plot("Validation cells, 30 % of the genes masked", curves, "step", "negative log-likelihood", x_range=(0, None), note="One training of each method.")]


def docs_r2mae_cells(t):
    looks = {"MDLM": "m-mdlm", "dynamic": "m-dynamic", "R2MAE": "m-r2mae", "CL": "m-cl", "R2MAE + dynamic": "m-r2mae-dynamic", "R2MAE + CL": "m-r2mae"}
    return "Masked genes", forest(
        [r for r in t("r2mae-cells-genes.tsv") if r["low"] != "NA" and r["masked"] == ".3"], lambda r: r["data"], lambda r: r["method"], "gap low high",
        "Pearson correlation of masked genes minus that of a fixed rate of 0.25", lambda r: looks.get(r["method"], "m-random"),
        {"lung": "Lung: the curriculum (CL) is clearly worse", "PBMC Kang": "PBMC Kang: CL is clearly worse",
         "bone marrow": "Bone marrow: no difference is certain"}.get, note="30 % masked, recalibrated. Lines: 95 % intervals over the seeds.")
