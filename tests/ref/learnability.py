#!/usr/bin/env python3
"""Winners and losers among genes, and their groups, by scikit-learn and scipy.

learnability.py draw N SEED KIND TABLE GROUPS    a table as sctrain eval --gene-scores writes it. KIND: plain; ties (few zero fractions, many errors
    of 1); constant (all genes alike); missing (also NA, 0 and genes with few cells)
learnability.py check TABLE GROUPS OPTIONS METRICS GENES    OPTIONS: JSON of ungated, min_expressed, tau
"""
import json
import math
import sys
import numpy as np


def draw(n, seed, kind, table, groups):
    rng = np.random.default_rng(int(seed))
    n = int(n)
    zeros = rng.uniform(0, 1, n) ** .5
    if kind == "ties":
        zeros = np.round(zeros, 1)
    error = np.exp(-2.5 + 2 * zeros + rng.normal(0, .1 + .2 * zeros)) * np.where(rng.random(n) < .08, .6, 1)
    if kind == "ties":
        error = np.where(zeros > .8, 1, np.round(error, 2) + .01)
    if kind == "constant":
        zeros, error = np.full(n, .5), np.full(n, .25)
    cells = rng.integers(100, 4000, n)
    if kind == "missing":
        cells = rng.integers(0, 400, n)
    null = error * rng.uniform(.5, 2, n)
    with open(table, "w") as f:
        print("gene\tsymbol\texpressed\tzero_fraction\tmae_expressed\tmae_expressed_ungated\tnull_expressed\trescaled\trescaled_ungated", file=f)
        for g in range(n):
            e = "NA" if kind == "missing" and rng.random() < .1 else "0" if kind == "missing" and rng.random() < .1 else repr(float(error[g]))
            print(f"G{g}\tS{g}\t{cells[g]}\t{float(zeros[g])!r}\t{float(2 * error[g])!r}\t{float(error[g])!r}\t{float(null[g])!r}\t{e}\t"
                  f"{float(error[g]) ** .5!r}", file=f)
    p = 1 / np.arange(1, 41) ** 1.5
    with open(groups, "w") as f:
        for g in range(n):
            k = rng.choice(["", "a b"] + [f"g{i}" for i in range(38)], p=p / p.sum())
            if k:
                print(f"G{g}\t{k}", file=f)


def bh(p):
    p = np.array(p)
    order = np.argsort(p)
    q = p[order] * len(p) / np.arange(1, len(p) + 1)
    out = np.empty(len(p))
    out[order] = np.minimum(1, np.minimum.accumulate(q[::-1])[::-1])
    return out


def near(a, b, what):
    assert abs(a - b) <= 1e-9 * max(1, abs(b)) or math.isnan(a) and (math.isnan(b) or math.isinf(b)), (what, a, b)


def winners(x, y, o):
    """expected, z, kind"""
    from sklearn.isotonic import IsotonicRegression
    f = IsotonicRegression().fit(x, np.log(y)).predict(x)
    residual = np.log(y) - f
    residual[np.abs(residual) <= 1e-12] = 0
    order, n = np.argsort(x, kind="stable"), len(x)
    window = min(n, max(o["window"], math.ceil(o["share"] * n)))
    z = np.empty(n)
    for i, g in enumerate(order):
        first = min(max(i - window // 2, 0), n - window)
        z[g] = residual[g] / max(np.std(residual[order[first:first + window]], ddof=1), 1e-6)
    kind = np.where((z < -o["tau"]) & (y < (1 - o["margin"]) * np.exp(f)), -1, 0) + ((z > o["tau"]) & (y > (1 + o["margin"]) * np.exp(f)))
    return f, residual, z, kind


def check(table, groups, options, metrics, genes):
    from scipy import stats
    o = {"ungated": 0, "min_expressed": 100, "window": 201, "share": .05, "tau": 2, "margin": .1, "sparse": .65} | json.loads(options)
    lines = [line.rstrip("\n").split("\t") for line in open(table)]
    rows = [dict(zip(lines[0], line)) for line in lines[1:]]
    key = "_ungated" if o["ungated"] else ""
    enough = [r for r in rows if int(r["expressed"]) >= o["min_expressed"]]
    kept = [r for r in enough if r["rescaled" + key] not in ("NA", "0")]
    x = np.array([float(r["zero_fraction"]) for r in kept])
    y = np.array([float(r["rescaled" + key]) for r in kept])
    f, residual, z, kind = winners(x, y, o)
    want = {"genes": len(kept), "few_expressed": len(rows) - len(enough), "without_error": len(enough) - len(kept), "winners": (kind < 0).sum(),
            "losers": (kind > 0).sum(), "winners_sparse": ((kind < 0) & (x >= o["sparse"])).sum(), "rescaled_median": np.median(y),
            "spearman": stats.spearmanr(x, y)[0] if len(set(x)) > 1 and len(set(y)) > 1 else math.nan,
            "explained": 1 - (residual ** 2).sum() / ((np.log(y) - np.log(y).mean()) ** 2).sum() if len(set(y)) > 1 else math.nan,
            "better_than_mean": sum(float(r["mae_expressed" + key]) < float(r["null_expressed"]) for r in kept)}
    group = dict(line.rstrip("\n").split("\t") for line in open(groups))
    of = np.array([group.get(r["gene"], "") for r in kept])
    names = sorted(set(of) - {""})
    p, zp = [], []
    r = np.round(z, 9)
    for name in names:
        inside = of == name
        a, b, c, d = [((kind < 0) == w)[inside == i].sum() for i in (True, False) for w in (True, False)]
        odds, exact = stats.fisher_exact([[a, b], [c, d]])
        off = stats.norm.ppf(.975) * math.sqrt(1 / a + 1 / b + 1 / c + 1 / d) if min(a, b, c, d) else math.nan
        test = stats.ranksums(r[inside], r[~inside])
        p.append(exact)
        zp.append(test.pvalue)
        want |= {f"group_genes:{name}": inside.sum(), f"group_winners:{name}": a, f"odds_ratio:{name}": odds, f"p:{name}": exact,
                 f"odds_ratio_low:{name}": math.exp(math.log(odds) - off) if off > 0 else math.nan,
                 f"odds_ratio_high:{name}": math.exp(math.log(odds) + off) if off > 0 else math.nan,
                 f"z_median:{name}": np.median(r[inside]), f"z_p:{name}": test.pvalue,
                 f"z_auc:{name}": stats.mannwhitneyu(r[inside], r[~inside]).statistic / inside.sum() / (~inside).sum()}
    for name, q, zq in zip(names, bh(p), bh(zp)):
        want |= {f"p_bh:{name}": q, f"z_p_bh:{name}": zq}
    got = dict(line.rstrip("\n").split("\t") for line in open(metrics))
    for k, v in want.items():
        near(float(got[k]), float(v), k)
    assert set(got) - set(want) == {"metric", "in_groups", "groups_not_found", "classes"}, set(got) ^ set(want)
    lines = [line.rstrip("\n").split("\t") for line in open(genes)][1:]
    assert [line[0] for line in lines] == [r["gene"] for r in kept] and [line[7] for line in lines] == list(of)
    assert [line[6] for line in lines] == [{-1: "winner", 0: "", 1: "loser"}[k] for k in kind]
    for line, e, s in zip(lines, f, z):
        near(float(line[4]), math.exp(e), "expected")
        near(float(line[5]), s, "z")
    print(len(kept), want["winners"], want["losers"])


{"draw": draw, "check": check}[sys.argv[1]](*sys.argv[2:])
