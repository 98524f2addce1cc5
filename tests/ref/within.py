"""depgraph --within written with numpy and scipy alone; cells x genes and genes x genes must fit into memory.

    within.py COUNTS COLUMN,... GRAPH.tsv [OPTION=VALUE...]     compares the edges of depgraph --within COLUMN,... -O tsv
    within.py COUNTS COLUMN,... GRAPH.tsv states=COLUMN [...]   compares those of --states COLUMN, q with that of every way to deal the states
    within.py COUNTS COLUMN,... null=N [OPTION=VALUE...]        permutes each gene within the strata N times, and prints how many edges have q < .05

COUNTS is a counts stream, the first column names the donors. Options: min_cells, neighbours.
"""
import sys
from itertools import combinations

import numpy as np
from corrmask import stream
from scipy.sparse import csr_matrix
from scipy.stats import t as student


def read(path, columns):
    s = stream.read(path)
    size, gene, count, total, label = [], [], [], [], {c: [] for c in columns}
    for b in s:
        offset, g = b["gene"]
        size += list(np.diff(offset))
        gene.append(g)
        count.append(b["count"][1])
        total.append(b["n_counts"])
        for c in columns:
            code, category = b[c] if isinstance(b[c], tuple) else (slice(None), b[c])
            label[c].append(np.array(category, object)[code].astype(str))
    X = csr_matrix((np.concatenate(count).astype(float), np.concatenate(gene), np.cumsum([0] + size)), shape=(len(size), len(s.header["vocab"]["id"])))
    return X, np.concatenate(total), [np.unique(np.concatenate(label[c]), return_inverse=True)[1] for c in columns]


def centred(L, stratum):
    M = csr_matrix((np.ones(len(stratum)), (stratum, np.arange(len(stratum)))))
    return L - ((M @ L) / np.maximum(M.sum(1).A, 1))[stratum]


def varying(square, all):
    return np.where(square > 1e-9 * all, square, 0)


def edges(L, donor, stratum, genes, neighbours=50):
    """{(u, v): (score, overlap, r, donors, agree, se, q)} of L [cells, genes]"""
    D, Z, B = donor.max() + 1, centred(L, stratum), (L > 0).astype(np.float32)
    by = [varying((Z[donor == d] ** 2).sum(0), (L[donor == d] ** 2).sum(0)) for d in range(D)]
    V = np.sum(by, 0)
    sd = np.where(V > 0, np.sqrt(V), np.inf)
    O = B.T @ B
    S = Z.T @ Z
    S *= O / (O + 10) / sd[:, None] / sd
    np.fill_diagonal(S, -1)
    best = np.argpartition(-S, min(neighbours, len(S) - 1) - 1, axis=1)[:, :neighbours]
    u, v = np.repeat(np.arange(len(S)), best.shape[1]), best.ravel()
    u, v = np.minimum(u, v), np.maximum(u, v)
    u, v = np.unique(np.stack([u, v]), axis=1)
    u, v = (x[S[u, v] > 0] for x in (u, v))
    out = {"u": genes[u], "v": genes[v], "score": S[u, v], "overlap": O[u, v]}
    floor = np.sort(S, axis=1)[:, -min(neighbours, len(S) - 1)]
    near = {(genes[a], genes[b]) for a, b in zip(*np.nonzero(np.abs(S - floor[:, None]) < 1e-12))}
    del S, O, B
    xy = np.zeros((D, len(u)))
    for d in range(D):
        for i in range(0, len(u), 20000):
            k = slice(i, i + 20000)
            xy[d, k] = np.einsum("cp,cp->p", Z[donor == d][:, u[k]], Z[donor == d][:, v[k]])
    X, of_u, of_v = xy.sum(0), V[u] - np.array(by)[:, u], V[v] - np.array(by)[:, v]
    fine = (of_u > 1e-9 * V[u]) & (of_v > 1e-9 * V[v])
    low = np.where(fine, (X - xy) / np.sqrt(np.where(fine, of_u * of_v, 1)), 0)
    both = (np.array(by)[:, u] > 0) & (np.array(by)[:, v] > 0)
    out["r"] = X / np.sqrt(V[u] * V[v])
    out["donors"], out["agree"] = both.sum(0), (both & (xy * out["r"] > 0)).sum(0)
    out["se"] = np.sqrt((D - 1) / D * ((low - low.mean(0)) ** 2).sum(0)) if D > 1 else np.full(len(u), np.nan)
    p = np.where(out["donors"] >= 6, student.sf(out["r"] / out["se"], np.maximum(out["donors"] - 1, 1)), np.nan)
    order, m = np.argsort(p), int((p == p).sum())
    pairs = (V > 0).sum() * ((V > 0).sum() - 1) / 2
    out["sums"] = xy, np.array(by)[:, u], np.array(by)[:, v]
    out["q"] = np.full(len(p), np.nan)
    out["q"][order[:m]] = np.minimum(1, np.minimum.accumulate((p[order[:m]] * pairs / np.arange(1, m + 1))[::-1])[::-1])
    return out, near


def compare(want, near, path):
    with open(path) as f:
        name = next(f).rstrip("\n").split("\t")
        rows = [dict(zip(name, line.rstrip("\n").split("\t"))) for line in f]
    want = {(min(u, v), max(u, v)): i for i, (u, v) in enumerate(zip(want["u"], want["v"]))}, want
    got = {(int(r["token_a"]), int(r["token_b"])): r for r in rows}
    for u, v in got.keys() ^ want[0].keys():
        assert (u, v) in near or (v, u) in near, (u, v, got.get((u, v)), "in one of the graphs alone")
    worst = dict.fromkeys(("score", "overlap", "r", "donors", "agree", "se", "q"), 0)
    for key in got.keys() & want[0].keys():
        for c in worst:
            a, b = float(got[key][c].replace("NA", "nan")), want[1][c][want[0][key]]
            difference = 0 if a != a and b != b else abs(a - b) / (max(b, 1e-3) if c in ("q", "se") else 1)
            worst[c] = max(worst[c], difference if difference == difference else np.inf)
    assert len(got) > 100 and max(worst.values()) < 1e-5 and worst["overlap"] == worst["donors"] == worst["agree"] == 0, worst
    print(f"{len(got)} edges, {len(got.keys() ^ want[0].keys())} ties; largest differences", *(f"{c} {x:.0e}" for c, x in worst.items()))


def state_r(sums, which):
    """r, donors with both genes and the jackknife's se of each pair, from some donors"""
    xy, of_u, of_v = (s[which] for s in sums)
    X, U, V, n = xy.sum(0), of_u.sum(0), of_v.sum(0), len(xy)
    left = (U - of_u > 1e-9 * U) & (V - of_v > 1e-9 * V)
    low = np.where(left, (X - xy) / np.sqrt(np.where(left, (U - of_u) * (V - of_v), 1)), 0)
    there = U * V > 0
    return (np.where(there, X / np.sqrt(np.where(there, U * V, 1)), 0), np.where(there, ((of_u > 0) & (of_v > 0)).sum(0), 0),
            np.sqrt((n - 1) / n * ((low - low.mean(0)) ** 2).sum(0)))


def contrast(sums, a):
    (r, n, se), (s, m, te) = state_r(sums, a), state_r(sums, ~a)
    both, se = (n >= 3) & (m >= 3), np.hypot(se, te)
    return np.where(both, np.abs(r - s) / (se + np.sort(se[both])[both.sum() // 2]), -1), r - s, se


def compare_states(found, state, path):
    t, difference, se = contrast(found["sums"], state == 0)
    deals = [np.isin(np.arange(len(state)), a) for a in combinations(range(len(state)), int((state == 0).sum()))]
    null = np.sort(np.concatenate([contrast(found["sums"], a)[0] for a in deals]))
    with open(path) as f:
        name = next(f).rstrip("\n").split("\t")
        got = [dict(zip(name, line.rstrip("\n").split("\t"))) for line in f]
    order = np.argsort(-t, kind="stable")
    q = (len(null) - np.searchsorted(null, t[order] - 1e-9)) / len(deals) / np.arange(1, len(t) + 1)
    q = np.minimum(1, np.minimum.accumulate(q[::-1])[::-1])
    known = int((t >= 0).sum())
    assert len(got) == len(t) and [r["q"] == "NA" for r in got] == [k >= known for k in range(len(t))]
    value = lambda c: np.array([float(r[c]) for r in got[:known]])
    worst = [np.abs(value(c) - of[order[:known]]).max() for c, of in (("difference", difference), ("se", se))]
    assert max(worst) < 1e-5 and np.abs(value("q") - q[:known]).max() < .05, (worst, np.abs(value("q") - q[:known]).max())
    print(f"{known} of {len(t)} edges; {len(deals)} deals; largest difference of q {np.abs(value('q') - q[:known]).max():.3f}, lowest q {q[0]:.3f}")


def main():
    counts, columns, what, *options = sys.argv[1:]
    options = dict(o.split("=") for o in options)
    states = options.pop("states", None)
    options = {k: int(v) for k, v in options.items()}
    X, total, label = read(counts, columns.split(","))
    genes = np.flatnonzero((X > 0).sum(0).A1 >= options.pop("min_cells", 50))
    X = X[:, genes]
    X.data = np.log1p(1e4 * X.data / np.repeat(total, np.diff(X.indptr))).astype(np.float32).astype(float)
    L, donor = X.toarray(), label[0]
    stratum = np.unique(np.stack(label), axis=1, return_inverse=True)[1].ravel()
    if states:
        state = read(counts, [states])[2][0]
        of = np.array([state[donor == d][0] for d in range(donor.max() + 1)])
        return compare_states(edges(L, donor, stratum, genes, **options)[0], of, what)
    if not what.startswith("null="):
        return compare(*edges(L, donor, stratum, genes, **options), what)
    real = edges(L, donor, stratum, genes, **options)[0]
    cells = [np.flatnonzero(stratum == s) for s in range(stratum.max() + 1)]
    for draw in range(int(what[5:])):
        random = np.random.default_rng(draw)
        for c in cells:
            L[c] = random.permuted(L[c], axis=0)
        null = edges(L, donor, stratum, genes, **options)[0]
        print(f"draw {draw}: q < .05: {(null['q'] < .05).sum()} edges, of the real ones {(real['q'] < .05).sum()}; largest r {null['r'].max():.3f}", flush=True)


main()
