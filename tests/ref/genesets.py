"""scgenes genesets, by numpy, scikit-learn and exact fractions.

usage: genesets.py edges SETS.gmt TABLE EDGES.tsv... [least=3] [most=200] [strongest=0] [replicates=0] [draws=0]   EDGES: depgraph -O tsv of each graph, in order
       genesets.py modules SETS.gmt TABLE EDGES.tsv MODULES.tsv [least=3] [most=200]                MODULES: gene id and module
Exits 1 with a message on a difference.
"""
import itertools
import sys
from fractions import Fraction
from math import comb

import numpy as np
from sklearn.metrics import roc_auc_score


def close(what, got, want, limit):
    if np.isnan(want) and got == "NA":
        return
    error = abs(float(got) - want) / max(abs(want), 1e-300)
    assert error <= limit, (what, got, want)


def tail(x, N, K, n):
    return float(sum(Fraction(comb(K, i) * comb(N - K, n - i)) for i in range(x, min(K, n) + 1)) / comb(N, n))


def table(path):
    rows = [line.rstrip("\n").split("\t") for line in open(path)]
    return [dict(zip(rows[0], r)) for r in rows[1:]]


def edges(path, strongest):
    rows = [line.rstrip("\n").split("\t") for line in open(path)][1:]
    found = [(np.float32(r[6]), int(r[0]), int(r[3]), frozenset((r[1], r[4]))) for r in rows]
    found.sort(key=lambda f: (-f[0], f[1], f[2]))
    return {f[3]: f[0] for f in found[:strongest or None]}


def read_sets(path, genes, least, most):
    sets = {}
    for line in open(path):
        name, _, *members = line.rstrip("\n").split("\t")
        members = set(members) & genes
        if least <= len(members) <= most:
            sets[name] = members
    return sets, sorted(set().union(*sets.values()))


def score(genes, shared, edge, times):
    pairs = list(itertools.combinations(range(len(genes)), 2))
    y = np.array([frozenset((genes[a], genes[b])) in shared for a, b in pairs])
    x = np.array([edge.get(frozenset((genes[a], genes[b])), 0) for a, b in pairs], float)
    w = np.array([times[a] * times[b] for a, b in pairs], float)
    is_edge = np.array([frozenset((genes[a], genes[b])) in edge for a, b in pairs])
    inside = (w * y * is_edge).sum()
    return roc_auc_score(y, x, sample_weight=w), inside / (w * is_edge).sum() / ((w * y).sum() / w.sum()), inside, is_edge.sum(), y.sum(), len(y)


def check_edges(sets, path, *files, least=3, most=200, strongest=0, replicates=0, draws=0):
    graphs = [edges(f, 0) for f in files]
    sets, genes = read_sets(sets, set().union(*(e for g in graphs for e in g)), least, most)
    shared = {frozenset(p) for s in sets.values() for p in itertools.combinations(s, 2)}
    rows = table(path)
    assert len(rows) == len(files)
    rng = np.random.default_rng(1)
    for row, f in zip(rows, files):
        e = edges(f, strongest)
        auroc, fold, inside, n, positive, pairs = score(genes, shared, e, np.ones(len(genes)))
        for name, want in (("genes", len(genes)), ("pairs", pairs), ("set_pairs", positive), ("edges", n), ("set_edges", inside)):
            assert float(row[name]) == want, (f, name, row[name], want)
        close("AUROC", row["auroc"], auroc, 1e-9)
        close("fold", row["fold"], fold, 1e-9)
        close("share", row["share"], inside / n, 1e-9)
        close("expected", row["expected"], positive / pairs, 1e-9)
        if not replicates:
            assert row["p"] == "NA"
            continue
        shared_of = np.array([[frozenset((a, b)) in shared for b in genes] for a in genes])
        at = {g: i for i, g in enumerate(genes)}
        u, v = np.array([[at[g] for g in pair] for pair in e if pair <= at.keys()]).T
        orders = (rng.permutation(len(genes)) for _ in range(4 * replicates))
        p = np.mean([shared_of[to[u], to[v]].sum() >= inside for to in orders])
        assert abs(float(row["p"]) - p) < 5 * (p * (1 - p) * 1.25 / replicates) ** 0.5 + 2 / replicates, (row["p"], p)
        assert float(row["p"]) * (replicates + 1) % 1 < 1e-6 or float(row["p"]) * (replicates + 1) % 1 > 1 - 1e-6
        if draws:
            drawn = [score(genes, shared, e, rng.multinomial(len(genes), np.full(len(genes), 1 / len(genes)))) for _ in range(draws)]
            for k, name in ((0, "auroc"), (1, "fold")):
                low, high = np.quantile([d[k] for d in drawn], (0.025, 0.975))
                for end, want in (("_low", low), ("_high", high)):
                    assert abs(float(row[name + end]) - want) < 0.25 * (high - low), (name + end, row[name + end], low, high)


def check_modules(sets, path, file, modules, least=3, most=200):
    module = dict(line.rstrip("\n").split("\t") for line in open(modules))
    sets, genes = read_sets(sets, set(module), least, most)
    tests = []
    of = {m: {g for g in genes if module[g] == m} for m in {module[g] for g in genes}}
    for m, inside in of.items():
        if len(inside) > 1:
            tests += [(tail(len(inside & s), len(genes), len(s), len(inside)), m, name) for name, s in sets.items()]
    order = sorted(tests)
    q, least_q = {}, 1
    for i in range(len(order) - 1, -1, -1):
        least_q = min(least_q, order[i][0] * len(order) / (i + 1))
        q[order[i][1:]] = least_q
    p = {t[1:]: t[0] for t in tests}
    rows = table(path)
    assert {(r["module"], r["set"]) for r in rows} == {k for k in q if q[k] <= 0.05 and of[k[0]] & sets[k[1]]}, "other rows"
    assert [(int(r["module"]), float(r["p"])) for r in rows] == sorted((int(r["module"]), float(r["p"])) for r in rows), "another order"
    for r in rows:
        key = r["module"], r["set"]
        assert int(r["both"]) == len(of[key[0]] & sets[key[1]]) and int(r["genes"]) == len(of[key[0]]) and int(r["set_genes"]) == len(sets[key[1]])
        close("p", r["p"], p[key], 1e-9)
        close("q", r["q"], q[key], 1e-9)
        close("fold", r["fold"], int(r["both"]) / float(r["expected"]), 1e-9)
    assert rows


options = {k: int(v) for k, v in (a.split("=") for a in sys.argv[2:] if "=" in a)}
{"edges": check_edges, "modules": check_modules}[sys.argv[1]](*(a for a in sys.argv[2:] if "=" not in a), **options)
