"""table.py r2mae/accuracy TABLE: panel F of figure 1 from accuracies of models that were trained with different masking rates, such as BERT's. Lines of the table:
curve, masking rate, accuracy (0 to 1). The curves are made comparable as in the paper's appendix C.2: the error 1 - accuracy is shifted so that the line through its
two lowest ratios starts at 0, and scaled so that it rises by 1 for each unit of the ratio between 0.4 and 0.8."""
import os
import re
import sys

from table import fields


def main(path):
    def stop(why):
        sys.exit(f"r2mae-accuracy: {path}: {why}")
    if not os.access(path, os.R_OK):
        stop("cannot read it")
    curves = {}
    for row in fields(path):
        if len(row) != 3 or not row[0] or not re.fullmatch("[0-9.]+", row[1]) or not re.fullmatch("[0-9.eE-]+", row[2]) or not (0 < float(row[1]) < 1 and 0 <= float(row[2]) <= 1):
            stop(f'"{chr(9).join(row)}": expected a curve, a ratio between 0 and 1, and an accuracy from 0 to 1')
        if float(row[1]) in curves.setdefault(row[0], {}):
            stop(f"curve {row[0]} has two accuracies at ratio {row[1]}")
        curves[row[0]][float(row[1])] = 1 - float(row[2])
    if not curves:
        stop("no accuracies")
    out = []
    for name, curve in sorted(curves.items(), key=lambda c: min(c[1])):
        x = sorted(curve)
        if len(x) < 3 or x[0] > 0.4 or x[-1] < 0.8:
            stop(f"curve {name}: expected at least three ratios, up to 0.4 and from 0.8 on")

        def at(r):
            """By a line between the ratios beside r."""
            a, b = next((a, b) for a, b in zip(x, x[1:]) if b >= r or b == x[-1])
            return curve[a] + (curve[b] - curve[a]) * (r - a) / (b - a)
        start, slope = at(0), (at(0.8) - at(0.4)) / 0.4
        if slope <= 0:
            stop(f"curve {name}: its error does not rise from ratio 0.4 to 0.8, so it cannot be scaled")
        out.append(name + "\n" + "".join(f"{r:.9g}\t{(curve[r] - start) / slope:.9g}\n" for r in x))
    print(*out, sep="\n\n", end="")
