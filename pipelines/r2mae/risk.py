#!/usr/bin/env python3
"""The test risk of masked ridge-less regression, by theory and by simulation [Dong et al. 2025, section 3, appendices B and C.1].

    risk.py theory OPTIONS       bias, variance and risk of each masking rate, from formulas
    risk.py simulate OPTIONS     the risk of each rate over repeated draws of rows, noise and masks

A target y = x'beta + noise is predicted from p features x ~ N(0, Sigma). A row of n is used if its target is masked, with probability r. Of its
features a share r is set to 0, without rescaling; q = 1 - r. beta_hat is the least-squares solution of smallest norm. The test sample is not masked:
    risk = E (x'beta_hat - x'beta)^2 = bias + variance,   magnitude = E (x'beta_hat)^2
The formulas are derived anew where the paper gives none (docs/experiments/r2mae-theory.md). Ranges A:B are rates that every row draws (R2MAE); a
row is kept with its rate as the probability, by a draw of its own (independent), or by the draw that made the rate (coupled).
"""
import argparse
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # experiments run side by side
import numpy as np  # noqa: E402

SPECTRUM, ROTATION, FACTOR, COEFFICIENT, SPIKE, DRAW = range(6)  # what random numbers are for


# ---- models ----

def unit(x):
    return x / np.linalg.norm(x)


def rotated(value, rng):
    """Q diag(value) Q', Q a uniform rotation; the signs of its columns cancel."""
    q = np.linalg.qr(rng.normal(size=(len(value), len(value))))[0]
    return (q * value) @ q.T


def model(o):
    """Sigma [p, p] and beta [p] of norm 1. Uniform entries if isotropic, alignment to the spike if spiked, else the eigenvector at a quantile of the
    spectrum, or a random direction in the span of the largest `top` ones."""
    def rng(what):
        return np.random.default_rng([o.seed, what])
    p, kind = o.features, o.model
    if kind == "isotropic":
        return np.eye(p), unit(rng(COEFFICIENT).uniform(size=p))
    if kind == "spiked":
        u = unit(rng(SPIKE).uniform(size=p))
        v = rng(COEFFICIENT).uniform(size=p)
        v = unit(v - (u @ v) * u)
        return np.eye(p) + o.spike * np.outer(u, u), unit(o.alignment * u + (1 - o.alignment ** 2) ** .5 * v)
    if kind == "latent":  # the largest eigenvalue of W W' is about 9 [Marchenko-Pastur]
        d = (p + 1) // 2
        w = rng(FACTOR).normal(size=(p, d)) * 3 / (p ** .5 + d ** .5)
        sigma = np.eye(p) + w @ w.T
    elif kind == "uniform":
        sigma = rotated(rng(SPECTRUM).uniform(1, 10, p), rng(ROTATION))
    elif kind == "beta":
        value = rng(SPECTRUM).beta(1, 10, p)
        sigma = rotated(1 + 9 * (value - value.min()) / np.ptp(value), rng(ROTATION))
    elif kind == "eigen":
        sigma = rotated(np.concatenate([np.full(int(times), float(value)) for value, times in
                                        (part.split(":") for part in o.eigenvalues.split(","))]), rng(ROTATION))
    else:
        sigma = np.loadtxt(kind, ndmin=2)
    vector = np.linalg.eigh(sigma)[1]
    if o.top:
        return sigma, unit(vector[:, -o.top:] @ rng(COEFFICIENT).normal(size=o.top))
    return sigma, vector[:, round(o.quantile * (len(sigma) - 1))]


# ---- theory ----

class Theory:
    def __init__(self, sigma, beta, noise):
        self.sigma, self.beta, self.noise, self.diagonal = sigma, beta, noise ** 2, np.diag(sigma)
        self.cov = sigma @ beta
        self.null = beta @ self.cov  # the risk of predicting 0

    def size(self, x):
        return x @ self.sigma @ x

    def fixed(self, n, r):
        """The deterministic equivalent for finite n and p. S = q^2 Sigma + q r D, theta = q S^-1 Sigma beta, kappa >= 0 with
        tr S (S + kappa)^-1 = n r (0 if n r >= p), P = S (S + kappa)^-1, f = tr Sigma S (S + kappa)^-2 / (n r - tr P^2),
        bias = |P theta - beta|^2 + f kappa^2 theta' (S + kappa)^-1 S (S + kappa)^-1 theta, variance = f (noise + null - q beta' Sigma theta)."""
        q, rows = 1 - r, n * r
        s, w = np.linalg.eigh(q * q * self.sigma + q * r * np.diag(self.diagonal))
        kappa = find_kappa(s, rows)
        theta, share = q * (w.T @ self.cov) / s, s / (s + kappa)
        trace = np.einsum("ij,ij->j", w, self.sigma @ w) @ (share ** 2 / s)
        with np.errstate(divide="ignore"):
            f = trace / (rows - share @ share)
        b = w @ (share * theta)
        miss = self.size(b - self.beta)
        bias = miss + (f * (kappa ** 2 * theta ** 2 * s / (s + kappa) ** 2).sum() if kappa else 0)
        variance = f * (self.noise + self.null - q * (w.T @ self.cov) @ theta)
        return bias, variance, bias + variance, self.size(b) + bias + variance - miss

    def spiked(self, n, r, c, t):
        """The limit of many features for Sigma = I + c u u', t = u' beta [theorem 1, corollary 1]."""
        gamma, q, t2 = len(self.beta) / n, 1 - r, t * t
        k, tau2 = (1 + c) / (1 + q * c), self.noise + r + c * r * r * t2 / (1 + q * c)
        if r < gamma:
            rho = r / gamma  # what is left of a direction of the bulk, and pi of the spike
            pi = rho * (1 + q * c) / (1 + rho * q * c)
            bias = (1 - rho) * (1 - t2) + t2 * (1 + pi * k * (k - 2) + c * (pi * k - 1) ** 2)
            variance = tau2 * r / (q * (gamma - r))
            size = rho * (1 - t2) + t2 * pi * k * k * (1 + c * pi)
        else:
            bias = (1 + c) * (c * r * t / (1 + q * c)) ** 2
            variance = tau2 * gamma / (q * (r - gamma)) if r > gamma else np.inf
            size = 1 - t2 + (1 + c) * t2 * k * k
        return bias, variance, bias + variance, size + variance

    def ranges(self, n, lo, hi, coupled):
        """Rows whose rate is uniform in [lo, hi], as 16 groups at the nodes of a quadrature, with the expected number of kept rows of each."""
        node, weight = np.polynomial.legendre.leggauss(16)
        end = lo / (1 - (hi - lo))  # coupled: u < lo + (hi - lo) u, so u and the rate end here
        node = lo + ((end if coupled else hi) - lo) * (node + 1) / 2
        return np.nan, np.nan, *self.rowwise(node, n * weight / 2 * (end if coupled else node))

    def rowwise(self, ratio, rows):
        """Groups of rows [rows_i expected kept rows with ratio_i]. S_i = a_i Sigma + d_i D; g_i = tr S_i K, K = (I + sum rows_i / g_i S_i)^-1; with at
        least p rows K is without I, and g_i = 1 + tr S_i K. Traces with S_i are sums of traces with Sigma and D."""
        p, a, d = len(self.beta), (1 - ratio) ** 2, (1 - ratio) * ratio
        over = float(rows.sum() < p)
        g = np.trace(self.sigma) * (a + d) if over else np.ones(len(ratio))
        for _ in range(10000):
            k = np.linalg.inv(over * np.eye(p) + (rows / g @ a) * self.sigma + np.diag((rows / g @ d) * self.diagonal))
            new = 1 - over + a * np.sum(self.sigma * k) + d * (self.diagonal @ np.diag(k))
            change, g = np.abs(new / g - 1).max(), new
            if change < 1e-12:
                break
        else:
            sys.exit("risk.py: the fixed point of rates by row does not converge: %g expected rows for %d features" % (rows.sum(), p))
        sk, dk = self.sigma @ k, self.diagonal[:, None] * k
        ss, sd, dd = (np.sum(x * y.T) for x, y in ((sk, sk), (sk, dk), (dk, dk)))
        b = (rows @ ((1 - ratio) / g)) * (k @ self.cov)
        c = self.noise + self.null - 2 * (1 - ratio) * (b @ self.cov) + a * self.size(b) + d * (self.diagonal @ b ** 2)
        traces = np.outer(a, a) * ss + (np.outer(a, d) + np.outer(d, a)) * sd + np.outer(d, d) * dd
        error = np.linalg.solve(np.eye(len(a)) - traces * rows / g ** 2, c)
        more = (rows * error / g ** 2) @ (a * ss + d * sd)
        return self.size(b - self.beta) + more, self.size(b) + more


def find_kappa(s, rows):
    """Newton's method from 0: the trace is convex and falls, so kappa rises to the solution."""
    kappa = 0.0
    for _ in range(200 if rows < len(s) else 0):
        share = s / (s + kappa)
        step = (share.sum() - rows) / (share / (s + kappa)).sum()
        kappa += step
        if step <= 1e-15 * kappa:
            break
    return kappa


def theory(o, sigma, beta, scale):
    t = Theory(sigma, beta, o.noise)
    print("ratio\tretention\tbias\tvariance\trisk\tmagnitude")
    for text, how, lo, hi in o.rates:
        if how != "fixed":
            values = t.ranges(o.rows, lo, hi, how == "coupled")
        elif o.form == "closed":
            values = t.spiked(o.rows, lo, o.spike if o.model == "spiked" else 0, o.alignment if o.model == "spiked" else 0)
        else:
            values = t.fixed(o.rows, lo)
        print(text, how, *("NA" if np.isnan(v) else "%.9g" % (v / scale) for v in values), sep="\t")


# ---- simulation ----

def least_squares(x, y):
    """The solution of smallest norm, by the smaller Gram matrix; by the SVD if that is singular."""
    gram = x @ x.T if len(x) < x.shape[1] else x.T @ x
    try:
        np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(x, y, rcond=1e-10)[0]
    return x.T @ np.linalg.solve(gram, y) if len(x) < x.shape[1] else np.linalg.solve(gram, x.T @ y)


def simulate(o, sigma, beta, scale):
    """All rates of a run share rows, noise, and one uniform number for each entry (masked if below the rate) and each row (kept if below), so
    differences between rates are more exact than the risks."""
    factor, result = np.linalg.cholesky(sigma), np.empty((len(o.rates), o.runs, 3))
    for run in range(o.runs):
        of_rows, of_masks = (np.random.default_rng([o.seed, DRAW, what, 0 if o.same == name else run]) for what, name in ((0, "rows"), (1, "masks")))
        x = of_rows.normal(size=(o.rows, len(beta))) @ factor.T
        y = x @ beta + o.noise * np.random.default_rng([o.seed, DRAW, 2, run]).normal(size=o.rows)
        mask, keep, mix = of_masks.uniform(size=x.shape), of_masks.uniform(size=o.rows), of_masks.uniform(size=o.rows)
        for i, (_, how, lo, hi) in enumerate(o.rates):
            rate = lo + (hi - lo) * (keep if how == "coupled" else mix)
            kept = keep < rate
            if how == "fixed" and o.retention == "rounded":
                kept = np.arange(o.rows) < round(o.rows * lo)
            b = least_squares(np.where(mask[kept] < rate[kept, None], 0, x[kept]), y[kept])
            result[i, run] = (b - beta) @ sigma @ (b - beta) / scale, b @ sigma @ b / scale, kept.sum()
    print("ratio\tretention\trisk\trisk_se\tmagnitude\tmagnitude_se\trows")
    for (text, how, _, _), values in zip(o.rates, result):
        mean = values.mean(0)
        se = values.std(0, ddof=1) / o.runs ** .5 if o.runs > 1 else [np.nan] * 3
        print(text, how, "%.9g" % mean[0], "%.4g" % se[0], "%.9g" % mean[1], "%.4g" % se[1], "%.9g" % mean[2], sep="\t")


# ---- options ----

def rates(text):
    """A:B:STEP, or A,B,..."""
    if ":" in text:
        a, b, step = map(float, text.split(":"))
        values = [a + i * step for i in range(int((b - a) / step + 1.000001))]
    else:
        values = [float(x) for x in text.split(",")]
    if not values or not all(0 < v < 1 for v in values):
        raise ValueError
    return [("%.9g" % v, "fixed", v, v) for v in values]


def ranges(text):
    lo, hi = map(float, text.split(":"))
    if not 0 < lo <= hi < 1:
        raise ValueError
    return [(text, how, lo, hi) for how in ("independent", "coupled")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("theory", "simulate"))
    parser.add_argument("--model", default="isotropic", help="isotropic, spiked, uniform, beta, latent, eigen, or a file with a covariance matrix")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--features", type=int, default=600)
    parser.add_argument("--noise", type=float, default=.5, help="standard deviation; the coefficients have norm 1")
    parser.add_argument("--rates", type=rates, default=rates("0.05:0.9:0.05"), help="A:B:STEP or A,B,...")
    parser.add_argument("--ranges", type=ranges, default=[], help="A:B: also rates that every row draws from [A, B]")
    parser.add_argument("--normalise", action="store_true", help="divide by the risk of predicting 0")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spike", type=float, default=5, help="spiked: its strength")
    parser.add_argument("--alignment", type=float, default=1, help="spiked: inner product of coefficients and spike")
    parser.add_argument("--eigenvalues", help="eigen: VALUE:TIMES,...")
    parser.add_argument("--quantile", type=float, default=1, help="the coefficients are the eigenvector at this quantile of the spectrum")
    parser.add_argument("--top", type=int, default=0, help="instead: a random mix of the largest eigenvectors")
    parser.add_argument("--form", choices=("finite", "closed"), default="finite", help="theory: closed is the limit of many features")
    parser.add_argument("--runs", type=int, default=100, help="simulate: number of runs")
    parser.add_argument("--retention", choices=("rounded", "random"), default="rounded", help="simulate: r n rows, or each row with probability r")
    parser.add_argument("--same", choices=("nothing", "masks", "rows"), default="nothing", help="simulate: what the runs share")
    o = parser.parse_args()
    o.rates = o.rates + o.ranges
    sigma, beta = model(o)
    {"theory": theory, "simulate": simulate}[o.command](o, sigma, beta, beta @ sigma @ beta if o.normalise else 1)


if __name__ == "__main__":
    main()
