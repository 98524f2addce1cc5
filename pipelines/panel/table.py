"""table.py panel/table FOLDER "ARM..." "SEED..." DATA HOW: the tables of make panel from the scores under FOLDER/runs; runs without scores are left out.
FOLDER/points.tsv has the values, summary.tsv their means, differences.tsv the gaps to poisson, genes.tsv the scores of each gene by the first arm."""
import re
from pathlib import Path

from table import SIMULATED, collect, differences, fields, known, lines, means, num, plain, put, span, write

BASE = "poisson"
METRICS = {"pearson": "pearson", "spearman": "spearman", "deviance_explained": "deviance"}
WORDS = f"""
Counts of the genes outside the panel, in cells of other donors. pearson: of log(1 + count) and log(1 + expected), spearman, mean over genes; deviance:
share of Poisson's deviance explained. gap: to {BASE}, with a 95 % interval over the splits, corrected for the cells that they share"""


def genes_of(folder, arm):
    """The scores of each gene by an arm: mean, least and most over the splits, the best first."""
    of = {}
    for run in sorted(d for d in Path(folder, "runs").glob(f"{arm}-*") if re.fullmatch(r"\d+", d.name[len(arm) + 1:])):
        for f in sorted([*run.glob("*=readout.genes.tsv"), *run.glob("*=fit.genes.tsv")]):
            for gene, symbol, *scores in fields(f)[1:]:
                if scores[1] not in ("nan", "-nan"):
                    of.setdefault((f.name.rpartition("=")[0], gene, symbol), []).append(scores)
    table = []
    for key, scores in of.items():
        count, pearson, spearman, deviance = (plain(sum(float(row[i]) for row in scores) / len(scores)) for i in range(4))
        table.append([*key, str(len(scores)), count, pearson, *(of_all((row[1] for row in scores), key=float) for of_all in (min, max)), spearman, deviance])
    return sorted(table, key=lambda row: (row[0], -float(row[5]), row[1:]))


def print_panel(folder, panel, summary, found, arms):
    own = "" if re.fullmatch(r"(graph-)?\d+", panel) else f": {len({g for f in Path(folder).glob(f'split-*/{panel}.tsv') for g in lines(f)[1:]})} genes"
    print(f"\npanel {panel}{own}")
    of = {r["metric"]: r["mean"] for r in reversed(summary) if r["panel"] == panel}
    without = float(of.get("without_panel", 0))
    if without > 0:
        print(f"{without:.0f} of {without + float(of['train_cells']) + float(of['cells']):.0f} cells have no count in the panel and are left out")
    print(f"{'':20}" + "".join(f"{name:>9}{'gap':>28}" for name in METRICS.values()))
    mean = {(r["arm"], r["metric"]): num(r["mean"], "%.3f") for r in summary if r["panel"] == panel}
    gap = {(r["arm"], r["metric"]): num(r["difference"], "%+.3f") + (f" ({span(r, '%+.3f')})" if known(r["low"]) else "") for r in found if r["panel"] == panel}
    for arm in arms:
        print((f"{arm:20}" + "".join(f"{mean.get((arm, m), '-'):>9}{gap.get((arm, m), ''):>28}" for m in METRICS)).rstrip(" "))


def sentence(panel, arm, genes):
    r = [float(row[5]) for row in genes]
    best = ", ".join(f"{row[2] or row[1]} {float(row[5]):.2f}" for row in genes[:8])
    return (f"Panel {panel}, {arm}: of {len(r)} genes outside it, {sum(x >= .5 for x in r)} have a Pearson correlation of 0.5 or more, "
            f"{sum(x < .2 for x in r)} below 0.2. Best: {best}.\n")


def main(folder, arms, seeds, data, how):
    arms, seeds, seeds_text = arms.split(), seeds.split(), seeds
    points = [["arm", "seed", "panel", "metric", "value"]]
    points += [[arm + "-decoder" * (of == "decoder"), seed, panel, *row] for arm, seed, panel, of, *row in collect(f"{folder}/runs", arms, seeds)]
    write(f"{folder}/points.tsv", *points)
    summary = means(f"{folder}/summary.tsv", points, "--within", "panel,metric")
    there = {row[0] for row in points[1:]}
    shown = [b for a in arms for b in (a, f"{a}-decoder") if b in there]
    found = differences(f"{folder}/differences.tsv", [row for row in points if row[3] in ("metric", *METRICS)], [(a, BASE) for a in shown],
                        "--pair", "seed", "--within", "panel,metric", "--splits", "3:1")
    genes = genes_of(folder, arms[0])
    write(f"{folder}/genes.tsv", ["panel", "gene", "symbol", "splits", "mean_count", "pearson", "low", "high", "spearman", "deviance_explained"], *genes)

    print(f"corrmask panel: {data or SIMULATED}")
    about = [lines(f"{folder}/split-{k}/about") for k in seeds]
    print(*next(filter(None, about), []), f"{how}; splits {seeds_text}", sep="\n")
    print(WORDS)
    panels = sorted({row[2] for row in points[1:]}, key=lambda name: [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", name)])
    for panel in panels:
        print_panel(folder, panel, summary, found, shown)
    said = "".join(sentence(panel, arms[0], own) for panel in panels if (own := [row for row in genes if row[0] == panel]))
    put(f"{folder}/findings.txt", said)
    print("\n" + said, end="")
