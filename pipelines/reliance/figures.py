"""The figure of make reliance: losses with visible and hidden partners, and their difference R."""
from chart import METHODS
from plot import Arm, arms, plot
from demo.figures import PLACES, copying


def reliance(t):
    points = t("points.tsv")
    tables = [("frequency", "table of gene frequencies", "ink", 1), ("medians", "table of neighbours' medians", "m-expression", 2)]
    losses = plot("Loss of a masked gene of a test cell", copying(points, t("reference.tsv"), tables), "", "loss (nats)", x_names=PLACES, note="A line is a network (a seed).")
    rows = []
    for arm in dict.fromkeys(r["strategy"] for r in points):
        seeds = tuple((r.number("R"), r.number("low"), r.number("high")) for r in points if r["strategy"] == arm)
        rows.append(Arm(METHODS[arm], sum(s[0] for s in seeds) / len(seeds), look=f"m-{arm}", seeds=seeds))
    return "Partner reliance", [losses, arms("Partner reliance R: loss with hidden minus loss with visible partners", rows, "R (nats)", bars=True,
                                             note="Points: seeds, with 95 % intervals over the cells. Bars: means.")]


def docs_reliance(t):
    rows = [r for r in t("reliance-differences.tsv") if r["reference"] == "random masks"]
    where = {"demo": "simulated cells, 3 seeds", "reliance": "bone marrow, 8 seeds"}
    every = [r.number(end) for r in rows for end in ("low", "high")]
    looks = {words: f"m-{arm}" for arm, words in METHODS.items()}
    return "Partner reliance R minus that of random masks", [
        arms(f"Partner reliance R: {words}", [Arm(r["arm"], r.number("difference"), r.number("low"), r.number("high"), looks[r["arm"]]) for r in rows if r["experiment"] == name],
             "R minus that of random masks (nats)", include=every, ends=("← copies less", "copies more →"), note="Lines: 95 % intervals over the seeds.") for name, words in where.items()]
