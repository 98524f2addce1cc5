#!/usr/bin/env python3
"""The risk of masked ridge-less regression in numpy, written from the definitions and not from the closed forms of pipelines/r2mae/risk.py.

usage: risk.py golden                                    print the table of tests/ref/risk.tsv
       risk.py matrix OUT.tsv P                          write a covariance matrix with unequal variances
       risk.py theory MATRIX.tsv ROWS SD THEORY.tsv [normalise]   compare `r2mae/risk.py theory --model MATRIX.tsv`
       risk.py simulate MATRIX.tsv ROWS SD SIMULATED.tsv RUNS     compare `r2mae/risk.py simulate` with simulations by numpy's pinv
Exits 1 with a message on a difference.
"""
import sys

import numpy as np
from scipy.optimize import brentq


def equivalent(sigma, beta, s2, n, r):
    """The deterministic equivalent with whole matrices: null, kappa, risk, bias, variance, magnitude."""
    p, q, rows = len(beta), 1 - r, n * r
    cov = q * q * sigma + q * r * np.diag(np.diag(sigma))
    eye = np.eye(p)
    kappa = 0.0
    if rows < p:
        value = np.linalg.eigvalsh(cov)
        kappa = brentq(lambda k: (value / (value + k)).sum() - rows, 0, value.max() * p / rows, xtol=1e-15, rtol=1e-15)
    inverse = np.linalg.inv(cov + kappa * eye)
    part = cov @ inverse
    theta = q * np.linalg.solve(cov, sigma @ beta)
    null = beta @ sigma @ beta
    tau2 = s2 + null - q * beta @ sigma @ theta
    mean = part @ theta
    f = np.trace(sigma @ cov @ inverse @ inverse) / (rows - np.trace(part @ part))
    miss = (mean - beta) @ sigma @ (mean - beta)
    bias = miss + f * kappa ** 2 * theta @ inverse @ cov @ inverse @ theta
    return null, kappa, bias + f * tau2, bias, f * tau2, mean @ sigma @ mean + bias + f * tau2 - miss


def limit(gamma, c, t, b2, s2, r):
    """Theorem 2 of the paper as integrals over the spectrum of a spiked covariance; atoms at the bulk and, without mass, at the spike."""
    q = 1 - r
    bulk, spike = q, q * (1 + q * c)
    a = c * r * t / (1 + q * c)
    tau2 = s2 + r * b2 + c * r * r * t * t / (1 + q * c)
    if r > gamma:
        # the estimate is theta plus noise: theta - beta = a u
        v = tau2 * gamma / (q * (r - gamma))
        return (1 + c) * a * a + v, (1 + c) * a * a, v
    kappa = brentq(lambda k: bulk / (bulk + k) - r / gamma, 0, 1e6, xtol=1e-16, rtol=1e-15)
    mass = {"bb": (b2 - t * t, t * t), "ub": (0, t), "uu": (0, 1)}

    def integral(function, which):
        return sum(w * function(s) for s, w in zip((bulk, spike), mass[which]))
    shrunk, kept = (lambda s: kappa / (s + kappa)), (lambda s: s / (s + kappa))
    # b - beta = -(shrunk) beta + a (kept) u, and its inner product with u
    bias = integral(lambda s: shrunk(s) ** 2, "bb") - 2 * a * integral(lambda s: shrunk(s) * kept(s), "ub")
    bias += a * a * integral(lambda s: kept(s) ** 2, "uu") + c * (a * integral(kept, "uu") - integral(shrunk, "ub")) ** 2
    f = gamma / r * bulk / (bulk + kappa) ** 2 / (1 - gamma / r * bulk ** 2 / (bulk + kappa) ** 2)
    # theta = beta + a u; what the ridge-less fit leaves of it is noise too
    rest = sum(kappa ** 2 * s / (s + kappa) ** 2 * w for s, w in ((bulk, b2 - t * t), (spike, (t + a) ** 2)))
    bias += f * rest
    return bias + f * tau2, bias, f * tau2


def rowwise(sigma, beta, s2, ratios, rows):
    """Groups of rows with ratios of their own, by damped iteration on whole matrices."""
    p, groups = len(beta), range(len(ratios))
    covs = [(1 - r) ** 2 * sigma + (1 - r) * r * np.diag(np.diag(sigma)) for r in ratios]
    over = float(sum(rows) < p)
    g = np.array([np.trace(s) for s in covs]) if over else np.ones(len(ratios))
    for _ in range(20000):
        k = np.linalg.inv(over * np.eye(p) + sum(n / x * s for n, x, s in zip(rows, g, covs)))
        new = np.array([(1 - over) + np.trace(s @ k) for s in covs])
        if np.abs(new / g - 1).max() < 1e-14:
            break
        g = (new * g) ** 0.5
    mean = k @ sum(n * (1 - r) / x * sigma @ beta for n, r, x in zip(rows, ratios, g))
    weight = [rows[i] / g[i] ** 2 for i in groups]
    null = beta @ sigma @ beta
    c = np.array([s2 + null - 2 * (1 - ratios[i]) * beta @ sigma @ mean + mean @ covs[i] @ mean for i in groups])
    t = np.array([[weight[j] * np.trace(covs[i] @ k @ covs[j] @ k) for j in groups] for i in groups])
    e = np.linalg.solve(np.eye(len(c)) - t, c)
    return (mean - beta) @ sigma @ (mean - beta) + sum(weight[j] * e[j] * np.trace(sigma @ k @ covs[j] @ k) for j in groups)


def autoregressive(p, rho):
    return rho ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


def golden():
    print("# made by tests/ref/risk.py golden")
    print("# limit\tgamma\tc\tt\tb2\ts2\tr\trisk\tbias\tvariance")
    cases = [(2, 0, 0, 1, .25, .3), (2, 0, 0, 1, 1, .7), (.5, 0, 0, 1, .25, .2), (.5, 0, 0, 1, .25, .7), (.5, 0, 0, 2, .5, .85),
             (2, 20, 1, 1, .25, .25), (2, 5, .5, 1, .25, .35), (5, 10, .9, 1, .1, .6), (.5, 3, 1, 1, .25, .8), (2, 10, 0, 1, .25, .4)]
    for case in cases:
        print("limit", *case, *(repr(float(x)) for x in limit(*case)), sep="\t")
    print("# ar1\tp\trho\tn\tr\ts2\tnull\tkappa\trisk\tbias\tvariance\tmagnitude")
    for n, r in ((25, .3), (25, .6), (40, .5), (200, .5)):
        answer = equivalent(autoregressive(50, .6), np.ones(50) / 50 ** .5, .25, n, r)
        print("ar1", 50, .6, n, r, .25, *(repr(float(x)) for x in answer), sep="\t")
    print("# rowwise\tp\trho\tn\trisk: standard deviations 1 2 3 4 5 1 ..., beta = 1 / sqrt(p), noise 0.25, ratios .3 .5 .7 with n r / 3 rows each")
    for p, rho, n in ((40, .6, 20), (40, .6, 300), (40, 0, 60)):
        ratios, scale = np.array([.3, .5, .7]), 1 + np.arange(p) % 5
        sigma = autoregressive(p, rho) * np.outer(scale, scale)
        print("rowwise", p, rho, n, repr(float(rowwise(sigma, np.ones(p) / p ** .5, .25, ratios, n * ratios / 3))), sep="\t")


def table(path):
    lines = [line.rstrip("\n").split("\t") for line in open(path)]
    return lines[0], lines[1:]


def check(name, got, want, tolerance):
    if not abs(got - want) <= tolerance * max(abs(want), 1e-3):
        sys.exit("%s: %.12g, expected %.12g" % (name, got, want))


def read_model(path):
    sigma = np.loadtxt(path)
    return sigma, np.linalg.eigh(sigma)[1][:, -1]


def theory(path, rows, sd, result, normalise=""):
    sigma, beta = read_model(path)
    names, lines = table(result)
    assert names == ["ratio", "retention", "bias", "variance", "risk", "magnitude"] and lines
    for line in lines:
        if line[1] == "fixed":
            null, _, *want = equivalent(sigma, beta, float(sd) ** 2, float(rows), float(line[0]))
            for name, got, w in zip(("risk", "bias", "variance", "magnitude"), (line[4], line[2], line[3], line[5]), want):
                check("ratio %s %s" % (line[0], name), float(got), w / (null if normalise else 1), 1e-7)
        else:
            lo, hi = (float(x) for x in line[0].split(":"))
            end = lo / (1 - hi + lo)
            # 60 equal groups instead of the quadrature
            ratio = lo + ((end if line[1] == "coupled" else hi) - lo) * (np.arange(60) + .5) / 60
            keep = float(rows) / 60 * (end if line[1] == "coupled" else ratio) * np.ones(60)
            null = beta @ sigma @ beta
            check("range %s %s" % tuple(line[:2]), float(line[4]), rowwise(sigma, beta, float(sd) ** 2, ratio, keep) / (null if normalise else 1), 1e-3)


def matrix(out, p):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(2 * int(p), int(p))) @ rng.normal(size=(int(p), int(p))) ** 3 * rng.uniform(.2, 2, int(p))
    np.savetxt(out, np.cov(x.T) / np.cov(x.T).max() * 10, delimiter="\t", fmt="%.17g")


def simulate(path, rows, sd, result, runs):
    sigma, beta = read_model(path)
    rows, p, rng = int(rows), len(beta), np.random.default_rng(1)
    factor = np.linalg.cholesky(sigma)
    for line in table(result)[1]:
        if line[1] == "fixed":
            def kept(r):
                return np.arange(rows) < round(rows * r), np.full(rows, r)
        elif line[1] == "independent":
            def kept(r):
                p_i = rng.uniform(*r, rows)
                return rng.uniform(size=rows) < p_i, p_i
        else:
            def kept(r):
                u = rng.uniform(size=rows)
                p_i = r[0] + (r[1] - r[0]) * u
                return u < p_i, p_i
        r = float(line[0]) if line[1] == "fixed" else [float(x) for x in line[0].split(":")]
        risks, sizes = [], []
        for _ in range(int(runs)):
            x = rng.normal(size=(rows, p)) @ factor.T
            y = x @ beta + float(sd) * rng.normal(size=rows)
            keep, ratio = kept(r)
            z = x * (rng.uniform(size=(rows, p)) >= ratio[:, None])
            b = np.linalg.pinv(z[keep]) @ y[keep]
            risks.append((b - beta) @ sigma @ (b - beta))
            sizes.append(b @ sigma @ b)
        for name, got, se, mine in (("risk", line[2], line[3], risks), ("magnitude", line[4], line[5], sizes)):
            spread = (float(se) ** 2 + np.var(mine, ddof=1) / len(mine)) ** .5
            if not abs(float(got) - np.mean(mine)) < 4 * spread:
                sys.exit("%s %s %s: %s, numpy has %.6g, standard error of the difference %.4g" % (*line[:2], name, got, np.mean(mine), spread))


if __name__ == "__main__":
    commands = {f.__name__: f for f in (golden, matrix, theory, simulate)}
    commands[sys.argv[1]](*sys.argv[2:])
