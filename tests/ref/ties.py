#!/usr/bin/python3
"""Orders of equal counts and masks over them, against plain Python. Tables are scview's.

ties.py order TOKENS.tsv MASKED.tsv    columns cell,token,tie and cell,epoch,input of maskgen --strategy none
    Every token is there, and each place holds a token of the place's tie. Prints the number of places whose token is another one than in
    TOKENS.tsv, over the number that uniform orders have on average.
ties.py targets NONE.tsv MASKED.tsv    columns cell,epoch,input and cell,epoch,input,position,target, of equal seeds
    The targets are the tokens of their places, and nothing else has changed.
ties.py runs RATE TOKENS.tsv MASKED.tsv    columns cell,token,tie and cell,input,position,target; vocabulary v2
    The budget is exact, special tokens are visible, and a stretch of equal ties ends only where its run or the budget does.
"""
import sys


def rows(path):
    return [line.split("\t") for line in open(path).read().split("\n")[1:-1]]


def order(tokens, masked):
    cells = {c: (t.split(), k.split()) for c, t, k in rows(tokens)}
    moved = expected = 0
    seen = set()
    for cell, epoch, got in rows(masked):
        (token, tie), got = cells[cell], got.split()
        of = dict(zip(token, tie))
        assert sorted(got) == sorted(token) and [of[t] for t in got] == tie, (cell, epoch)
        seen.add((cell, tuple(got)))
        expected += sum(1 - 1 / tie.count(k) for k in tie if k != "0")
        moved += sum(a != b for a, b in zip(got, token))
    assert len(seen) == len(rows(masked)), "an order was drawn twice"
    print("%.3f" % (moved / expected))


def targets(none, masked):
    a, b = sorted(rows(none)), sorted(rows(masked))
    assert len(a) == len(b) > 0
    for (cell, epoch, before), (cell2, epoch2, after, at, target) in zip(a, b):
        before, after = before.split(), after.split()
        for p, t in zip(map(int, at.split()), target.split(), strict=True):
            after[p] = t
        assert (cell, epoch) == (cell2, epoch2) and before == after, cell


def runs(rate, tokens, masked):
    cells = {c: (t.split(), k.split()) for c, t, k in rows(tokens)}
    beside = ends = crossed = 0
    for cell, got, at, target in rows(masked):
        token, tie = cells[cell]
        at = list(map(int, at.split()))
        assert len(at) == int(float(rate) * (len(token) - 2) + 1e-9) and [token[p] for p in at] == target.split(), cell
        assert not {0, len(token) - 1} & set(at), cell
        assert all(g == t for p, (g, t) in enumerate(zip(got.split(), token)) if p not in at), cell
        stops = [p for p in at if tie[p + 1] == tie[p] and p + 1 not in at]
        assert len(stops) <= 1, (cell, at, tie)
        beside += sum(p + 1 in at for p in at)
        last = [p for p in at if tie[p + 1] != tie[p]]
        ends += len(last)
        crossed += sum(p + 1 in at for p in last)
    assert beside > 0
    # the next run is masked only by chance
    assert float(rate) > 0.2 or 0 < crossed < 0.3 * ends, (crossed, ends)


{"order": order, "targets": targets, "runs": runs}[sys.argv[1]](*sys.argv[2:])
