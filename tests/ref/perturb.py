"""Perturbed cells and their statistics once more, from the definitions, in float64.

    perturb.py rows CELLS PERTURBED KIND SETS [max=N] [special=N]    the rows of scperturb; SETS: "all", or ids by token numbers "5,7+9"
    perturb.py controls CELLS PERTURBED [SPECIAL]                              the random sets of --controls
    perturb.py similarity MODEL PERTURBED OUT [SPECIAL [LAYER]]                scembed --similarity, by bert.py
    perturb.py rest MODEL PERTURBED OUT [SPECIAL [LAYER]]                      scembed --pool rest: the columns x and x_original
    perturb.py shift EMBEDDINGS TABLE [state=COL,FROM,TO,OTHER...] [group=COL]
                                                                               scperturb shift, by scipy
CELLS, PERTURBED, OUT, EMBEDDINGS: tables of scview.
"""
import csv
import sys

import numpy as np

csv.field_size_limit(1 << 30)


def table(path):
    with open(path) as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


def ids(text):
    return [int(t) for t in text.split()]


def split(tokens, special):
    a, b = 0, len(tokens)
    while a < b and tokens[a] < special:
        a += 1
    while b > a and tokens[b - 1] < special:
        b -= 1
    return tokens[:a], tokens[a:b], tokens[b:]


def perturb(tokens, kind, genes, most, special):
    """(perturbed tokens, tokens to compare with) or None"""
    front, body, back = split(tokens, special)
    rest = [t for t in body if t not in genes]
    has = [t for t in body if t in genes]
    if kind != "overexpress" and not has:
        return None
    if kind == "delete":
        return front + rest + back, tokens
    if kind == "overexpress":
        room = most - len(front) - len(back) - len(genes)
        kept = rest[:room]
        gone = set(rest[room:])
        return front + list(genes) + kept + back, [t for t in tokens if t not in gone]
    n = len(body)
    step = -1 if kind == "activate" else 1
    goals = []
    for g in has:
        p = body.index(g)
        q = 4 * p // n + step
        goals.append((0 if q < 0 else n - 1 if q > 3 else (2 * q + 1) * n // 8, p, g))
    goals.sort()
    slots = []
    for goal, _, g in goals:
        slots.append(max(goal, slots[-1] + 1) if slots else goal)
    top = n
    for i in range(len(slots) - 1, -1, -1):
        slots[i] = min(slots[i], top - 1)
        top = slots[i]
    out = [None] * n
    for s, (_, _, g) in zip(slots, goals):
        out[s] = g
    others = iter(rest)
    return front + [next(others) if t is None else t for t in out] + back, tokens


def rows(cells, perturbed, kind, sets, *more):
    o = dict(m.split("=") for m in more)
    most, special = int(o.get("max", 2048)), int(o.get("special", 2))
    want = []
    for c in table(cells):
        tokens = ids(c["token"])
        want.append((c["cell"], "original", [], tokens))
        body = split(tokens, special)[1]
        last = tokens
        chosen = [[t] for t in body] if sets == "all" else [[int(t) for t in s.split("+")] for s in sets.split(",")]
        for cut in (0, 1):
            for genes in chosen:
                made = perturb(tokens, kind, genes, most, special)
                if not made or (sets == "all" and made[0] == tokens) or (len(made[1]) < len(tokens)) != bool(cut):
                    continue
                if made[1] != last:
                    last = made[1]
                    want.append((c["cell"], "truncated", [], last))
                want.append((c["cell"], kind, genes, made[0]))
    got = [(r["cell"], r["perturbation"], ids(r["gene"]), ids(r["token"])) for r in table(perturbed)]
    assert len(got) == len(want), (len(got), len(want))
    for g, w in zip(got, want):
        assert g == w, f"{g}\nexpected\n{w}"
    print(len(got), "rows")


def controls(cells, perturbed, special=2):
    """Controls: as many genes, distinct, not those of the set, each in the window of ranks of the gene that it stands for."""
    tokens = {c["cell"]: split(ids(c["token"]), int(special))[1] for c in table(cells)}
    genes, n, offsets = None, 0, []
    for r in table(perturbed):
        body = tokens[r["cell"]]
        if r["perturbation"] in ("original", "truncated"):
            continue
        if r["control"] == "0":
            genes = ids(r["gene"])
            continue
        draw = ids(r["gene"])
        w = max(5, len(body) // 40)
        assert len(draw) == len(genes) == len(set(draw)) and not set(draw) & set(genes), (draw, genes)
        for d, g in zip(draw, genes):
            assert (d in body) == (g in body), (d, g)
            if g in body:
                assert abs(body.index(d) - body.index(g)) <= w * (1 if len(genes) == 1 else 2), (d, g)
                offsets.append((body.index(d) - body.index(g)) / w)
        n += 1
    assert n and abs(np.mean(offsets or [0])) < 0.35, np.mean(offsets)
    print(n, "controls")


def states(model, perturbed, special, layer):
    """For each perturbed row: (row, tokens that are compared, their states before, after); None for rows that are not perturbed."""
    import bert
    c, w = bert.load(model)
    base = None
    for r in table(perturbed):
        tokens = ids(r["token"])
        h = bert.encode(c, w, tokens)[int(layer) - 1] if tokens else np.zeros((0, c["hidden_size"]))
        if r["perturbation"] in ("original", "truncated"):
            base = tokens, h
            genes = []
        else:
            genes = ids(r["gene"])
        keep = [[i for i, t in enumerate(x) if t >= special and t not in genes] for x in (base[0], tokens)]
        assert [base[0][i] for i in keep[0]] == [tokens[i] for i in keep[1]]
        yield r, [tokens[i] for i in keep[1]], base[1][keep[0]], h[keep[1]]


def cosine(a, b):
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def similarity(model, perturbed, out, special=2, layer=-1):
    worst = n = 0
    for (r, tokens, before, after), o in zip(states(model, perturbed, int(special), layer), table(out), strict=True):
        if r["perturbation"] in ("original", "truncated"):
            assert o["similarity"] == "NA" and not o.get("token"), o
            continue
        c = cosine(before, after)
        if not len(c):
            assert o["similarity"] == "NA"
            continue
        worst = max(worst, abs(c.mean() - float(o["similarity"])))
        if "cosine" in o:
            assert ids(o["token"]) == tokens
            worst = max(worst, np.abs(c - np.array(o["cosine"].split(), float)).max())
        n += 1
    print(f"{n} rows, largest difference {worst:.1e}")
    assert n and worst < 2e-6


def rest(model, perturbed, out, special=2, layer=-1):
    worst = n = top = 0
    for (r, _, before, after), o in zip(states(model, perturbed, int(special), layer), table(out), strict=True):
        for want, name in ((after, "x"), (before, "x_original")):
            got = np.array(o[name].replace("NA", "nan").split(), float)
            if not len(want):
                assert np.isnan(got).all()
                continue
            worst = max(worst, np.abs(want.mean(0) - got).max())
            top = max(top, np.abs(got).max())
        n += 1
    print(f"{n} rows, largest difference {worst / top:.1e}")
    assert n and worst < 1e-5 * top


# ---- statistics ----


def records(path, state, group):
    """[(set, kind, group, values, mean of the controls or None)]: a value for each state, or one."""
    rows = table(path)
    vec = lambda r, name="x": np.array(r[name].split(), np.float32).astype(float)
    centre = {}
    if state:
        for s in state[2:]:
            centre[s] = np.mean([vec(r) for r in rows if r["perturbation"] == "original" and r[state[0]] == s], 0)
    out, base = [], None
    for r in rows:
        if r["perturbation"] in ("original", "truncated"):
            if r["perturbation"] == "original":
                whole = r
            base = r
            continue
        if state and whole[state[0]] != state[1]:
            continue
        if "similarity" in r:
            v = [float(r["similarity"])]
        elif state:
            before = vec(r, "x_original") if "x_original" in r else vec(whole)
            v = [cosine(vec(r), centre[s]) - cosine(before, centre[s]) for s in state[2:]]
        else:
            v = [cosine(vec(r), vec(r, "x_original") if "x_original" in r else vec(base))]
        if r.get("control", "0") != "0":
            out[-1][4].append(v)
        else:
            out.append((r["perturbed"], r["perturbation"], r[group] if group else None, v, []))
    return out


def bh(p):
    """Benjamini and Hochberg's correction; nan is no comparison"""
    p = np.asarray(p, float)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known])][::-1]
    out, least = np.full(len(p), np.nan), 1.0
    for i, k in enumerate(order):
        least = min(least, p[k] * len(known) / (len(known) - i))
        out[k] = least
    return out


def t_interval(x):
    from scipy import stats
    x = np.asarray(x, float)
    if len(x) < 2 or np.std(x) == 0:
        return np.nan, np.nan
    half = stats.t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x))
    return x.mean() - half, x.mean() + half


def area(x, y):
    """P(x > y) + P(x = y) / 2 and its interval by DeLong's variance, from all pairs"""
    x, y = np.asarray(x)[:, None], np.asarray(y)[None]
    above = (x > y) + 0.5 * (x == y)
    a = above.mean()
    if len(x) < 2 or y.size < 2:
        return a, np.nan, np.nan
    se = np.sqrt(above.mean(1).var(ddof=1) / x.size + above.mean(0).var(ddof=1) / y.size)
    return a, max(0, a - 1.959963984540054 * se), min(1, a + 1.959963984540054 * se)


def flips(d):
    import itertools
    d = np.asarray(d)
    if not len(d):
        return np.nan
    sums = np.array([np.dot(s, d) for s in itertools.product((1, -1), repeat=len(d))])
    return np.mean(np.abs(sums) >= abs(d.sum()) - 1e-12 * np.abs(d).sum())


def shift(embeddings, out, *more):
    from scipy import stats
    o = dict(m.split("=") for m in more)
    state, group = o["state"].split(",") if "state" in o else None, o.get("group")
    data = records(embeddings, state, group)
    got = {(r["perturbed"], r["kind"], r.get("state")): r for r in table(out)}
    names = state[2:] if state else [None]
    worst, n = {}, 0

    def close(row, column, want):
        v = float(row[column]) if row[column] != "NA" else np.nan
        if np.isnan(want) or np.isnan(v):
            assert np.isnan(want) and np.isnan(v), (column, row, want)
            return
        worst[column] = max(worst.get(column, 0), abs(v - want) / max(abs(want), 1e-9))

    for kind in {d[1] for d in data}:
        of_kind = [d for d in data if d[1] == kind]
        sets = sorted({d[0] for d in of_kind})
        for k, name in enumerate(names):
            every = np.array([d[3][k] for d in of_kind])
            p, pg = [], []
            lines = []
            for s in sets:
                row = got[s, kind, name]
                mine = [d for d in of_kind if d[0] == s]
                v = np.array([d[3][k] for d in mine])
                lines.append((row, v))
                close(row, "cells", len(v))
                close(row, "mean", v.mean())
                close(row, "sd", v.std(ddof=1) if len(v) > 1 else np.nan)
                z, pv = stats.ranksums(v, every) if len(sets) > 1 else (np.nan, np.nan)
                a, low, high = area(v, every) if len(sets) > 1 else (np.nan,) * 3
                p.append(pv)
                for column, want in zip(("z", "p", "auc", "auc_low", "auc_high"), (z, pv, a, low, high)):
                    close(row, column, want)
                controlled = [d for d in mine if d[4]]
                excess = [d[3][k] - np.mean([c[k] for c in d[4]]) for d in controlled]
                interval = t_interval(v)
                if group:
                    donors = sorted({d[2] for d in mine})
                    of = [np.mean([d[3][k] for d in mine if d[2] == g]) for g in donors]
                    close(row, "group_mean", np.mean(of))
                    close(row, "groups", len(donors))
                    interval = t_interval(of)
                    if "control_mean" in row:
                        differ = [np.mean([e for e, d in zip(excess, controlled) if d[2] == g]) for g in donors if any(d[2] == g for d in controlled)]
                    else:
                        differ = []
                        for g, m in zip(donors, of):
                            others = [d[3][k] for d in of_kind if d[2] == g and d[0] != s]
                            if others:
                                differ.append(m - np.mean(others))
                    pg.append(flips(differ))
                    close(row, "p_group", pg[-1])
                close(row, "low", interval[0])
                close(row, "high", interval[1])
                if "control_mean" in row:
                    close(row, "control_mean", np.mean([np.mean([c[k] for c in d[4]]) for d in controlled]) if controlled else np.nan)
                    over = differ if group else excess
                    close(row, "excess", np.mean(over) if over else np.nan)
                    for column, want in zip(("excess_low", "excess_high"), t_interval(over)):
                        close(row, column, want)
                n += 1
            for column, raw in (("q", p), ("q_group", pg)):
                for (row, _), want in zip(lines, bh(raw)) if raw else ():
                    close(row, column, want)
    assert n == len(got), (n, len(got))
    print(n, "lines;", " ".join(f"{k} {v:.0e}" for k, v in worst.items()))
    assert max(worst.values()) < 1e-6, worst


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path.insert(0, __file__.rsplit("/", 1)[0])
    globals()[sys.argv[1]](*sys.argv[2:])
