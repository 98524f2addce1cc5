"""Perturbed cells and their statistics once more, from the definitions, in float64.

    perturb.py rows CELLS PERTURBED KIND SETS [shift=Q] [max=N] [special=N]    the rows of scperturb; SETS: "all", or ids by token numbers "5,7+9"
    perturb.py similarity CELLS-DIR ...                                         see the functions
    perturb.py shift VALUES TABLE [group]                                       the table of ctaprobe shift against scipy and scikit-learn
CELLS, PERTURBED: tables of scview with the columns cell, token, and perturbation, gene, token.
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


def perturb(tokens, kind, genes, quarters, most, special):
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
    step = -quarters if kind == "activate" else quarters
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
    quarters, most, special = int(o.get("shift", 1)), int(o.get("max", 2048)), int(o.get("special", 2))
    want = []
    for c in table(cells):
        tokens = ids(c["token"])
        want.append((c["cell"], "original", [], tokens))
        body = split(tokens, special)[1]
        last = tokens
        chosen = [[t] for t in body] if sets == "all" else [[int(t) for t in s.split("+")] for s in sets.split(",")]
        for cut in (0, 1):
            for genes in chosen:
                made = perturb(tokens, kind, genes, quarters, most, special)
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


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
