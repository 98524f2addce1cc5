"""scmetric reference, written plainly: the mean loss of hidden tokens by the genes' frequencies, and by a table of contexts.

    lookup.py VOCAB TRAIN TEST      tables of scview: --vocab; input [rank]; input, position, target [rank]

The context of a token is the medians of the genes before and after it. With ranks, which genes of equal count share, it is the rank and the
middle median of the other genes of this rank. Prints both losses.
"""
import sys
from collections import Counter
from math import log


def rows(name):
    return [line.rstrip("\n").split("\t") for line in open(name)][1:]


def cells(name):
    return [[[int(x) for x in text.split()] for text in row] for row in rows(name)]


vocab, train, test = rows(sys.argv[1]), cells(sys.argv[2]), cells(sys.argv[3])
ranked = len(train[0]) == 2
median = {int(r[0]): float(r[3]) for r in vocab if r[1][0] != "<"}
n = Counter(t for c in train for t in c[0] if t in median)
seen, genes = sum(n.values()), len(median)
LEVELS = 4, 16, 64
quantile, at = {}, 0  # of each level and median
for g in sorted(n, key=lambda g: median[g]):
    for k in LEVELS:
        quantile.setdefault((k, median[g]), 1 + int(k * at / seen))
    at += n[g]


def share(g):
    return (n[g] + 1) / (seen + genes)


def neighbour(tokens, i, step, hidden):
    i += step
    while 0 <= i < len(tokens) and (i in hidden or tokens[i] not in median):
        i += step
    return median[tokens[i]] if 0 <= i < len(tokens) else None


def context(tokens, rank, i, hidden):
    if not rank:
        return neighbour(tokens, i, -1, hidden), neighbour(tokens, i, 1, hidden)
    same = sorted(median[t] for j, t in enumerate(tokens) if j != i and j not in hidden and t in median and rank[j] == rank[i])
    return (same[(len(same) - 1) // 2] if same else None), rank[i]


def key(k, c):
    return k, quantile.get((k, c[0]), 0), min(c[1], k) if ranked else quantile.get((k, c[1]), 0)


of, total, kept = Counter(), Counter(), []
for line, (tokens, *rank) in enumerate(train, 2):
    for i, g in enumerate(tokens):
        if g not in median:
            continue
        c = context(tokens, rank[0] if rank else None, i, ())
        if line % 10 == 0:
            kept.append((c, g))
        else:
            for k in LEVELS:
                of[key(k, c), g] += 1
                total[key(k, c)] += 1
assert len(kept) > 100
weight = {}  # of the coarser level


def estimate(c, g):
    p = share(g)
    for k, x in weight.items():
        p = (of[key(k, c), g] + x * p) / (total[key(k, c)] + x)
    return p


for k in LEVELS:
    best = None
    for x in (1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 100000, 1e9):
        weight[k] = x
        loss = -sum(log(estimate(*t)) for t in kept)
        if best is None or loss < best[0] - 1e-9:
            best = loss, x
    weight[k] = best[1]
frequency = medians = hidden = 0
for tokens, position, target, *rank in test:
    for i, g in zip(position, target):
        frequency -= log(share(g))
        medians -= log(estimate(context(tokens, rank[0] if rank else None, i, set(position)), g))
        hidden += 1
print(frequency / hidden, medians / hidden)
