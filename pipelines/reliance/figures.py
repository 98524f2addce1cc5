"""The figure of make reliance, losses with visible and hidden partners and their difference R, and that of its page."""
from chart import METHODS
from demo.figures import PLACES, copying
from plot import Arm, arms, forest, plot

TABLES = [("frequency", "table of gene frequencies", "ink", 1), ("medians", "table of neighbours' medians", "m-expression", 2)]


def reliance(t):
    points, rows = t("points.tsv"), []
    for arm in dict.fromkeys(r["strategy"] for r in points):
        seeds = [tuple(r.numbers("R low high")) for r in points if r["strategy"] == arm]
        rows.append(Arm(METHODS[arm], sum(s[0] for s in seeds) / len(seeds), look=f"m-{arm}", seeds=seeds))
    return "Partner reliance", [
        plot("Loss of a masked gene of a test cell", copying(points, t("reference.tsv"), TABLES), "", "loss (nats)", x_names=PLACES,
             note="A line is a network (a seed)."),
        arms("Partner reliance R: loss with hidden minus loss with visible partners", rows, "R (nats)", bars=True,
             note="Points: seeds, with 95 % intervals over the cells. Bars: means.")]


def docs_reliance(t):
    rows = [r for r in t("reliance-differences.tsv") if r["reference"] == "random masks"]
    where = {"demo": "Simulated cells, 3 seeds: CorrMask copies less", "reliance": "Bone marrow, 8 seeds: CorrMask copies less"}
    looks = {words: f"m-{arm}" for arm, words in METHODS.items()}
    return "Partner reliance R minus that of random masks", forest(
        rows, lambda r: where[r["experiment"]], lambda r: r["arm"], "difference low high", "partner reliance R minus that of random masks (nats)",
        lambda r: looks[r["arm"]], str, ends=("← copies less", "copies more →"), note="Lines: 95 % intervals over the seeds.")
