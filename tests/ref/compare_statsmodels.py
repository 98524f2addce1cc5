"""Makes tests/ref/compare.tsv: what statsmodels says of a random table, for armstat compare. Needs statsmodels 0.15, which Debian 12 does not have.

    compare_statsmodels.py > compare.tsv

Lines "data": data set, arm, seed, value. Lines "holm": corrected p of each difference, over all of them. Lines "power": of n pairs, the
difference in standard deviations that is found with power .8.
"""
import numpy as np
from scipy import stats
from scipy.optimize import brentq
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

rng = np.random.default_rng(8)
arms, sets, seeds = ["a", "b", "c", "d"], ["s1", "s2", "s3", "s4", "s5"], 6
# b: the same effect everywhere; c, d: it varies
shift = {"a": [0] * 5, "b": [0.3] * 5, "c": rng.normal(0.5, 1, 5), "d": rng.normal(0, 2, 5)}
x = {(s, a): np.round(rng.normal(shift[a][i], 0.4 + 0.2 * i, seeds), 6) for i, s in enumerate(sets) for a in arms}


def line(*fields):
    print(*(f if isinstance(f, str) else repr(float(f)) if isinstance(f, float) else str(f) for f in fields), sep="\t")


for (s, a), v in x.items():
    for k, one in enumerate(v, 1):
        line("data", s, a, k, float(one))
rows = [(s, a) for s in sets for a in arms[1:]]
p = [stats.ttest_rel(x[s, a], x[s, "a"]).pvalue for s, a in rows]
for (s, a), v in zip(rows, multipletests(p, method="holm")[1]):
    line("holm", s, a, float(v))
for n in range(3, 31):
    line("power", n, float(brentq(lambda d: TTestPower().power(d, n, 0.05) - 0.8, 2.5 / n ** 0.5, 6 / n ** 0.5, xtol=1e-15, rtol=1e-15)))
