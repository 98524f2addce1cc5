"""table.py reliance/points RELIANCE "STRATEGY..." "SEED..." OUT: partner reliance from the losses of make reliance.

OUT/points.tsv       each network: mean loss with visible and with hidden partners, R, and its 95 % interval over the cells
OUT/summary.tsv      each strategy: the means of these over the seeds
OUT/differences.tsv  R of each strategy minus that of the first one, paired by seed
OUT/cells.tsv        the same differences, with the interval that comes from the choice of the cells

All are tables of armstat compare. They are empty if there was no target."""
import sys
from itertools import zip_longest

from table import differences, fields, means, plain, put, write

NAMES = {"random": "random masks", "corrmask": "CorrMask", "shuffled": "CorrMask, shuffled graph"}


def losses(folder, strategies, seeds):
    """The rows of both streams are the same cells and targets in the same order."""
    for s in strategies:
        for k in seeds:
            for hidden, visible in zip_longest(*(fields(f"{folder}/{s}-{k}.{masks}.cells")[1:] for masks in ("hidden", "visible")), fillvalue=[]):
                if hidden[:3] != visible[:3]:
                    sys.exit(f"reliance: {s}-{k}: rows of hidden and visible partners differ")
                if float(hidden[2]) > 0:
                    yield [s, k, *hidden[:2], visible[3], hidden[3], plain(float(hidden[3]) - float(visible[3]), 17)]


def measure(folder, strategies, seeds, out):
    """The rows of the four tables."""
    rows = [["strategy", "seed", "cell", "epoch", "visible", "hidden", "R"], *losses(folder, strategies, seeds)]
    if len(rows) == 1:
        for name in ("points", "summary", "differences", "cells"):
            put(f"{out}/{name}.tsv", "")
        return [], [], [], []
    of = {(r["strategy"], r["arm"], r["value"]): r for r in means(None, rows, "--arm", "seed", "--within", "strategy", "--metrics", "visible,hidden,R", "--cluster", "cell")}
    points = [["strategy", "seed", "visible", "hidden", "R", "low", "high"]]
    points += [[s, k, of[s, k, "visible"]["mean"], of[s, k, "hidden"]["mean"], r["mean"], r["low"], r["high"]] for (s, k, value), r in of.items() if value == "R"]
    write(f"{out}/points.tsv", *points)
    arm, pairs = ["--arm", "strategy"], [(s, strategies[0]) for s in strategies]
    return ([dict(zip(points[0], row)) for row in points[1:]], means(f"{out}/summary.tsv", points, *arm, "--metrics", "visible,hidden,R"),
            differences(f"{out}/differences.tsv", points, pairs, *arm, "--metrics", "R", "--pair", "seed"),
            differences(f"{out}/cells.tsv", rows, pairs, *arm, "--metrics", "R", "--pair", "seed,cell,epoch", "--cluster", "cell"))


def main(folder, strategies, seeds, out):
    measure(folder, strategies.split(), seeds.split(), out)
