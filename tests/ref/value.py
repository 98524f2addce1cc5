#!/usr/bin/env python3
"""The value objective, against plain Python and bert.py's float64 reading of a model. Tables are scview's.

value.py masks MASK TOKENS.tsv TOKEN.tsv VALUE.tsv    columns cell,token,rank,value of the tokens; cell,epoch,input,rank,position,target of
    maskgen; and these and value of maskgen --objective value, of equal options and seeds. MASK: the token <mask>
    The same positions and targets; every token is visible; the rank is 0 where the other stream hides the token, and there alone; those of the
    other tokens are in the same order, and no number is missing among them; the values are those of the targets. Prints the number of hidden and of predicted tokens.
value.py eval MODEL MASKED.tsv EVAL.tsv ROWS.tsv    columns cell,epoch,input,rank,position,value; what sctrain eval --cell-scores wrote
    Loss, rmse, r2 and standard error agree to 1e-5; the loss of a row as far as predictions that agree to 1e-5 make it.
"""
import math
import os
import sys
import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bert  # noqa: E402


def rows(path, columns):
    for line in open(path).read().split("\n")[1:-1]:
        yield [f.split() for f in (line.split("\t") + [""] * columns)[:columns]]


def masks(mask, tokens, token, value):
    cells = {cell[0]: rest for cell, *rest in rows(tokens, 4)}
    a, b = list(rows(token, 6)), list(rows(value, 7))
    assert len(a) == len(b) > 0
    hidden = predicted = changed = gaps = 0
    for (cell, epoch, seen, _, at, target), (cell2, epoch2, got, rank, at2, target2, values) in zip(a, b):
        ids, ranks, numbers = cells[cell[0]]
        assert (cell, epoch, at, target) == (cell2, epoch2, at2, target2), cell
        assert got == ids and len(ids) == len(ranks) == len(rank), cell
        gone = {int(p) for p in at} | {p for p, t in enumerate(seen) if t == mask}
        left = sorted({int(r) for p, r in enumerate(ranks) if p not in gone} - {0})
        assert rank == ["0" if p in gone or r == "0" else str(1 + left.index(int(r))) for p, r in enumerate(ranks)], cell
        gaps += len(left) < max([0, *map(int, ranks)])
        assert values == [numbers[int(p)] for p in at], cell
        assert target == [ids[int(p)] for p in at], cell
        hidden, predicted, changed = hidden + len(gone), predicted + len(at), changed + (seen != ids)
    assert changed and gaps
    print(hidden, predicted)


def evaluate(model, masked, table, by_row):
    c, w = bert.load(model)
    got = dict(line.split("\t") for line in open(table).read().split("\n")[1:-1])
    want, off, all_values = [], {}, []
    for cell, epoch, ids, rank, at, value in rows(masked, 6):
        at, value = [int(p) for p in at], np.array([float("nan") if v == "NA" else float(v) for v in value])
        x = bert.encode(c, w, [int(i) for i in ids], rank=[int(r) for r in rank])[-1] if ids else np.zeros((0, c["hidden_size"]))
        y = bert.classify(c, w, x)[at, 0]
        there = ~np.isnan(value)
        want.append((cell[0], epoch[0], int(there.sum()), ((y - value)[there] ** 2).sum()))
        all_values.append(value[there])
    n, total = sum(r[2] for r in want), sum(r[3] for r in want)
    values, loss = np.concatenate(all_values), total / n
    for cell, _, m, s in want:
        off[cell] = off.get(cell, 0) + s - loss * m
    cells = len({r[0] for r in want if r[2]})
    se = math.sqrt(cells / (cells - 1) * sum(x * x for x in off.values())) / n
    for name, x in ("masked", n), ("loss", loss), ("rmse", math.sqrt(loss)), ("r2", 1 - loss / values.var()), ("loss_se", se):
        print(f"{name}: {float(got[name]):.9g}, here {x:.9g}")
        assert abs(float(got[name]) - x) <= 1e-5 * abs(x), name
    assert "accuracy" not in got and "accuracy_se" not in got
    lines = [line.split("\t") for line in open(by_row).read().split("\n")]
    assert lines[0] == ["cell", "epoch", "masked", "loss"] and len(lines) == len(want) + 2
    # in any order of the cells
    for got_row, row in zip(sorted(lines[1:-1]), sorted([*map(str, r[:3]), r[3]] for r in want)):
        # n predictions, each off by d, change a sum s of squares by no more than 2 d sqrt(n s) + n d^2 (Cauchy-Schwarz)
        n, s, d = int(row[2]), row[3], 1e-5
        assert got_row[:3] == row[:3] and abs(float(got_row[3]) - s) <= 2 * d * math.sqrt(n * s) + n * d * d, (got_row, row)


{"masks": masks, "eval": evaluate}[sys.argv[1]](*sys.argv[2:])
