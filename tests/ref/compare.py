"""armstat compare against scipy: random tables with ties, missing values and single seeds, compared by every kind of test.

    compare.py CTAPROBE SEED       prints the largest relative difference of each quantity; fails above 1e-10
"""
import subprocess
import sys

import numpy as np
import scipy
from scipy import stats
from scipy.optimize import brentq

import results

armstat, seed = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(seed)
worst = {}


def compare(rows, *options):
    names = list(rows[0])
    text = "\n".join(["\t".join(names)] + ["\t".join(str(r[n]) for n in names) for r in rows]) + "\n"
    done = subprocess.run([armstat, "compare", "-q", *options], input=text, text=True, capture_output=True, check=True)
    return results.records(done.stdout.splitlines())


def same(what, got, want, size=0):
    """size: of the numbers whose difference this is; near 0 there are fewer digits"""
    want = float(want)
    if got is None or np.isnan(want):
        assert got is None and np.isnan(want), (what, got, want)
        return
    error = abs(got - want) / max(abs(want), 1e-3 * size, 1e-300) if got != want else 0
    worst[what] = max(worst.get(what, 0), error)
    assert error < 1e-10, (what, got, want)


def signs(d):
    """2 P(sum of the ranks of positive values >= that of d) over all signs; also for ties, which scipy before 1.15 gives to the normal distribution"""
    rank = stats.rankdata(abs(d))
    sums = ((np.arange(2 ** len(d))[:, None] >> np.arange(len(d))) & 1) @ rank
    seen = rank[d > 0].sum()
    return min(1, 2 * min((sums >= seen).mean(), (sums <= seen).mean()))


def wilcoxon(d, method):
    for name in ("exact",) if method == "exact" else ("asymptotic", "approx"):  # scipy has changed the name
        try:
            return stats.wilcoxon(d, method=name, correction=False).pvalue
        except ValueError:
            pass


def signed_rank(r, d):
    left = d[d != 0]
    plain = len(left) == len(d) and len(set(abs(left))) == len(left)
    exact = len(d) <= 13 or len(d) <= 50 and plain
    if len(d) < 2 or not len(left):
        return same("signed rank", r["p_wilcoxon"], np.nan)
    assert r["wilcoxon"] == ("exact" if exact else "normal"), r
    want = wilcoxon(left, "exact" if exact else "") if plain or not exact else signs(left)
    same("signed rank, " + r["wilcoxon"], r["p_wilcoxon"], want)
    if [int(v) for v in scipy.__version__.split(".")[:2]] >= [1, 15]:
        same("signed rank, all", r["p_wilcoxon"], stats.wilcoxon(d).pvalue)


def interval(r, mean, se, df, size):
    # t.ppf of scipy 1.10 has nine digits
    half = brentq(lambda t: 2 * stats.t.sf(t, df) - 0.05, 1, 2000, xtol=1e-15, rtol=1e-15) * se
    same("se", r["se"], se)
    same("interval", r["low"], mean - half, size)
    same("interval", r["high"], mean + half, size)


def numbers(n, shift, ties):
    x = rng.normal(shift, rng.uniform(0.3, 2), n)
    return np.round(x, 1) if ties else x


def texts(x, missing):
    return [rng.choice(["NA", "nan", ""]) if m else repr(float(v)) for v, m in zip(x, missing)]


def value(text):
    return float(text) if text not in ("NA", "") else np.nan


for _ in range(40):  # pairs
    n, ties = int(rng.integers(1, 70)), rng.random() < 0.4
    some = rng.choice([0, 0.2])
    arms = {a: texts(numbers(n, rng.normal(), ties), rng.random(n) < some) for a in "abc"}
    rows = [dict(arm=a, seed=k, value=v) for a in arms for k, v in enumerate(arms[a]) if rng.random() > some / 2 or a == "a" and not k]
    rows = [rows[i] for i in (0, *(1 + rng.permutation(len(rows) - 1)))]
    splits = rng.random() < 0.3
    at = {(r["arm"], r["seed"]): value(r["value"]) for r in rows}
    got = compare(rows, "--pair", "seed", *(["--splits", "3:1"] if splits else []))
    for r in got:
        keys = sorted({k for a, k in at if a in ("a", r["arm"])})
        x, y = (np.array([at.get((a, k), np.nan) for k in keys]) for a in (r["arm"], "a"))
        ok = ~np.isnan(x - y)
        x, y, d = x[ok], y[ok], (x - y)[ok]
        assert (r["n"], r["reference_n"], r["dropped"]) == (len(d), len(d), len(keys) - len(d)), (r, len(d), len(keys))
        size = np.abs(np.r_[x, y]).max() if len(d) else 1
        for key, v in ("mean", x), ("reference_mean", y), ("difference", d):
            same("mean", r[key], v.mean() if len(v) else np.nan, size)
        signed_rank(r, d)
        sd = d.std(ddof=1) if len(d) > 1 else np.nan
        same("sd", r["sd"], sd)
        if len(d) < 2 or sd < 1e-13:
            assert r["t"] is None and r["p"] is None and r["p_corrected"] is None and r["detectable"] is None
            continue
        se = sd * (1 / len(d) + splits / 3) ** 0.5
        t = d.mean() / se
        if not splits:
            t, p = stats.ttest_rel(x, y)
            same("paired p", r["p"], p)
        same("resampled t" if splits else "paired t", r["t"], t, size / sd)
        same("resampled p" if splits else "paired p", r["p"], 2 * stats.t.sf(abs(t), len(d) - 1))
        interval(r, d.mean(), se, len(d) - 1, size)
        if len(d) < 30:  # scipy's noncentral t
            c, delta = stats.t.ppf(0.975, len(d) - 1), r["detectable"] / se
            power = stats.nct.sf(c, len(d) - 1, delta) + stats.nct.sf(c, len(d) - 1, -delta)
            assert len(d) == 2 or abs(power - 0.8) < 1e-9, (len(d), power)

for _ in range(30):  # no pairs
    ties, sizes = rng.random() < 0.4, rng.integers(1, 40, 2)
    x = {a: texts(numbers(n, rng.normal(), ties), rng.random(n) < 0.1) for a, n in zip("ab", sizes)}
    r, = compare([dict(arm=a, value=v) for a in "ab" for v in x[a]])
    b, a = (np.array([value(v) for v in x[k]]) for k in "ba")
    assert r["dropped"] == np.isnan(a).sum() + np.isnan(b).sum()
    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    assert (r["n"], r["reference_n"]) == (len(b), len(a))
    if not len(a) or not len(b):
        assert r["p"] is None and r["p_wilcoxon"] is None
        continue
    exact = min(len(a), len(b)) <= 8 and len(set(a) | set(b)) == len(a) + len(b)
    assert r["wilcoxon"] == ("exact" if exact else "normal")
    same("rank sum, " + r["wilcoxon"], r["p_wilcoxon"], stats.mannwhitneyu(b, a, method="exact" if exact else "asymptotic", alternative="two-sided").pvalue)
    if len(a) < 2 or len(b) < 2 or a.std() + b.std() == 0:
        assert r["p"] is None
        continue
    t, p = stats.ttest_ind(b, a, equal_var=False)
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    df = (va + vb) ** 2 / (va ** 2 / (len(a) - 1) + vb ** 2 / (len(b) - 1))
    size = np.abs(np.r_[a, b]).max()
    same("Welch t", r["t"], t, size / (va + vb) ** 0.5)
    same("Welch p", r["p"], p)
    same("Welch df", r["df"], df)
    interval(r, b.mean() - a.mean(), (va + vb) ** 0.5, df, size)


def root(m):
    """M^(-1/2) of a symmetric matrix"""
    value, vector = np.linalg.eigh(m)
    return vector @ np.diag(value ** -0.5) @ vector.T


def cr2(X, y, cluster):
    """se and Satterthwaite's df of the first coefficient of a regression, by the general formulas of Bell and McCaffrey (2002)"""
    n, bread = len(y), np.linalg.inv(X.T @ X)
    left = np.eye(n) - X @ bread @ X.T  # residuals
    e, G, se2 = left @ y, [], 0
    for c in set(cluster):
        k = cluster == c
        a = root(left[np.ix_(k, k)]) @ X[k] @ bread[:, 0]
        se2 += (a @ e[k]) ** 2
        G.append(left[:, k] @ a)
    gram = np.array(G) @ np.array(G).T
    return se2 ** 0.5, np.trace(gram) ** 2 / (gram ** 2).sum()


few = 0
for i in range(30):  # clusters; some of nearly all rows
    n, cells = int(rng.integers(2, 60)), int(rng.integers(1, 20))
    cell = np.where(rng.random(n) < 0.05, 1, 0) if i % 6 == 5 else rng.integers(0, cells, n)
    x, y = numbers(n, 1, False) + rng.normal(0, 1, cells)[cell], numbers(n, 0, False)
    rows = [dict(how=h, cell=c, row=i, loss=repr(float(v[i]))) for h, v in (("y", y), ("x", x)) for i, c in enumerate(cell)]
    r, = compare(rows, "--arm", "how", "--metrics", "loss", "--pair", "cell,row", "--cluster", "cell")
    d = x - y
    same("mean", r["difference"], d.mean(), 1)
    assert r["p_wilcoxon"] is None
    if len(set(cell)) < 2:
        assert r["se"] is None and r["df"] is None and r["p"] is None
        continue
    se, df = cr2(np.ones((n, 1)), d, cell)
    same("clusters df", r["df"], df)
    if df < 1.2:
        same("se", r["se"], se)
        assert r["low"] is None and r["p"] is None and r["detectable"] is None
        few += 1
        continue
    interval(r, d.mean(), se, df, 3)
    same("clusters p", r["p"], 2 * stats.t.sf(abs(d.mean() / se), df))
    m = compare(rows, "--arm", "how", "--metrics", "loss", "--means", "--cluster", "cell")
    same("mean", m[1]["mean"], x.mean(), 1)
    same("se", m[1]["se"], cr2(np.ones((n, 1)), x, cell)[0])
assert few

for _ in range(10):  # draws of a bootstrap, means over seeds
    draws, seeds = int(rng.integers(1, 50)), int(rng.integers(1, 4))
    x, y = rng.normal(1, 1, (draws, seeds)), rng.normal(0, 1, (draws, seeds))
    rows = [dict(arm=a, draw=i, seed=k, value=repr(float(v[i, k]))) for a, v in (("y", y), ("x", x)) for i in range(draws) for k in range(seeds)]
    r, = compare(rows, "--draws", "draw", "--pair", "seed")
    d = (x - y).mean(1)
    assert r["n"] == draws and r["p"] is None
    same("draws", r["difference"], d.mean(), 1)
    same("draws", r["low"], np.quantile(d, 0.025), 1)
    same("draws", r["high"], np.quantile(d, 0.975), 1)
    same("draws", r["se"], d.std(ddof=1) if draws > 1 else np.nan)

for _ in range(10):  # means of several columns
    n = int(rng.integers(1, 20))
    x, y = numbers(n, 0, False), numbers(n, 5, True)
    m = compare([dict(arm="a", u=repr(float(a)), v=repr(float(b))) for a, b in zip(x, y)], "--means", "--metrics", "u,v")
    assert [r["value"] for r in m] == ["u", "v"] and [r["n"] for r in m] == [n, n]
    for r, v in zip(m, (x, y)):
        same("mean", r["mean"], v.mean(), 5)
        same("sd", r["sd"], v.std(ddof=1) if n > 1 else np.nan, 1e-12)
        if n > 1 and v.std() > 0:
            interval(r, v.mean(), v.std(ddof=1) / n ** 0.5, n - 1, 5)

for name, error in sorted(worst.items()):
    print(f"{name}\t{error:.1e}")
