"""table.py reliance/table RELIANCE PREPARED "STRATEGY..." "SEED..." DATA HOW: the table of make reliance from the losses under RELIANCE. HOW is a line on the
trainings. The figure draws RELIANCE/points.tsv and RELIANCE/reference.tsv (reliance/points.py)."""
import sys
from pathlib import Path

from table import SIMULATED, fields, highest_visible, known, not_learned, num, rows, span, spec, split_by, split_note, tell, tool

points_py = spec("reliance/points")
WORDS = """
Loss (natural logarithm) of one masked gene of a cell. visible: as many unrelated genes are masked as the gene has partners in the cell;
hidden: these partners are masked instead. R = hidden - visible: how much the network relies on partners; mean over seeds, sd: standard deviation
"""
DIFFERENCES = """
R minus R of {base} masks, paired by seed: mean, 95 % interval, two-sided t test, p after Holm's correction. 80 %: the true difference that
this many seeds find in 80 % of experiments. cells: the 95 % interval that comes from the choice of the cells"""


def print_means(points, summary, reference):
    print(f"{'masks in training':42} {'visible':>9} {'hidden':>9} {'R':>9} {'sd':>9}  R of each seed")
    mean = {(r["value"], r["arm"]): r["mean"] for r in summary}
    for r in (r for r in summary if r["value"] == "R"):
        s = r["arm"]
        each = "".join(" " + num(p["R"], "%+.3f") for p in points if p["strategy"] == s)
        print(f"{points_py.NAMES[s]:42} {float(mean['visible', s]):9.3f} {float(mean['hidden', s]):9.3f} {num(r['mean'], '%+.3f'):>9} {num(r['sd'], '%.3f'):>9} {each}")
    for name, column in (("gene frequencies", "frequency"), ("medians of neighbours", "medians")):
        of = {r["masks"]: float(r[column]) for r in reference}
        print(f"{f'table of {name}, no network':42} {of['visible']:9.3f} {of['hidden']:9.3f} {of['hidden'] - of['visible']:+9.3f}")


def print_differences(differences, cells):
    form = lambda name, *texts: print(f"{name:26} " + " ".join(f"{t:>{wide}}" for t, wide in zip(texts, (9, 20, 9, 9, 9, 9, 20))))
    if differences:
        form("", "mean", "95 % interval", "t", "p", "p, Holm", "80 %", "cells")
    for r in differences:
        form(points_py.NAMES[r["arm"]], num(r["difference"], "%+.3f"), span(r, "%+.3f"), num(r["t"], "%.1f"), num(r["p"], "%.2g"), num(r["p_corrected"], "%.2g"),
             num(r["detectable"], "%.3f"), span(cells[r["arm"]], "%+.3f"))


def sentence(r, by_chance, unlearned):
    """A difference: the t test says so, and the choice of the cells does not explain it."""
    what = "CorrMask with a shuffled graph" if r["arm"] == "shuffled" else "CorrMask"
    if unlearned:
        return f"{what}: No comparison: the network has learned less than the gene frequencies. Train longer: EPOCHS=."
    mean, reference = float(r["mean"]), float(r["reference_mean"])
    if int(r["n"]) < 2:
        return f"{what}: R is {mean:.3f}, with random masks {reference:.3f}. Two seeds or more are needed to compare."
    if known(r["p_corrected"]) and float(r["p_corrected"]) < .05 and not by_chance:
        more = "less" if float(r["difference"]) < 0 else "more"
        return f"{what}: the network relies on visible partners {more} than with random masks (R {mean:.3f}, not {reference:.3f})."
    return f"{what}: we found no difference in R from random masks ({mean:.3f} and {reference:.3f})."


def main(folder, prepared, strategies, seeds, data, how):
    strategies, seeds, seeds_text = strategies.split(), seeds.split(), seeds
    points, summary, differences, cells = points_py.measure(folder, strategies, seeds, folder)
    if not points:
        sys.exit("reliance: no gene of the test cells has partners in its cell: the graph has too few edges: raise MAXLEN or CELLS")
    reference = rows(f"{folder}/reference.tsv")
    cells = {r["arm"]: r for r in cells}
    print(f"corrmask partner reliance: {data or SIMULATED}\n{how}; seeds {seeds_text}")
    probed = [row[0] for row in fields(f"{folder}/{strategies[0]}-{seeds[0]}.hidden.cells")[1:] if float(row[2]) > 0]
    stats = dict(line.split("\t")[:2] for line in tool("depgraph", "-q", "-O", "stats", f"{prepared}/corpus.graph").splitlines())
    print(f"{len(probed)} genes of {len(set(probed))} test cells are probed; graph: {stats['genes_with_neighbours']} genes with partners, {stats['edges']} edges")
    if Path(prepared, "group").exists():
        print("cells:", split_by(prepared))
    split_note(prepared, f"{prepared}/test.tok")
    print(WORDS)
    print_means(points, summary, reference)
    print(DIFFERENCES.format(base=strategies[0]))
    print_differences(differences, cells)
    print()
    why = {s: not_learned(*highest_visible(points, reference, [s])) for s in strategies}
    if why[strategies[0]]:
        return tell(folder, why[strategies[0]])
    low_high = {s: [r["low"], r["high"]] for s, r in cells.items()}
    by_chance = {s: not known(low) or float(low) <= 0 <= float(high) for s, (low, high) in low_high.items()}
    return tell(folder, *(sentence(r, by_chance[r["arm"]], why[r["arm"]]) for r in differences))
