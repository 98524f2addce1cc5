#!/usr/bin/python3
"""encode.py VOCAB.tsv COUNTS.tsv TOKENS.tsv [rankenc's options]: rank value encoding in plain Python, one cell after the other."""
import math
import sys

vocab, counts, tokens, *opt = sys.argv[1:]
style = opt[opt.index("--vocab-style") + 1]
limit = int(opt[opt.index("--max-len") + 1]) if "--max-len" in opt else {"v1": 2048, "v2": 4096}[style]
number, median = {}, {}
for line in open(vocab).read().splitlines()[1:]:
    t, g, _, m = line.split("\t")
    number[g] = int(t)
    median[g] = float(m) if m != "NA" else None


def table(path):
    head, *lines = open(path).read().splitlines()
    return [dict(zip(head.split("\t"), line.split("\t"))) for line in lines]


got = {row["cell"]: row for row in table(tokens)}
want = 0
for row in table(counts):
    cell = [(-int(c) / median[g], number[g], int(c)) for g, c in zip(row["gene"].split(), row["count"].split()) if g in number]
    cell.sort()
    if not cell:
        assert row["cell"] not in got
        continue
    want += 1
    cell = cell[:limit - 2 if style == "v2" else limit]
    ids = [t for _, t, _ in cell]
    values = [math.log1p(c / int(row["n_counts"]) * 1e4) for _, _, c in cell]
    high = sorted({c for _, _, c in cell}, reverse=True)
    ties = [1 + high.index(c) for _, _, c in cell]
    if style == "v2":
        ids, values, ties = [number["<cls>"], *ids, number["<eos>"]], [0, *values, 0], [0, *ties, 0]
    ours = got[row["cell"]]
    assert ours["token"].split() == [str(t) for t in ids], "cell %s" % row["cell"]
    if "random" in opt:
        assert ours["tie"].split() == [str(t) for t in ties], "ties of cell %s" % row["cell"]
    if "group" in opt:
        assert ours["rank"].split() == [str(min(t, limit - 1)) for t in ties], "ranks of cell %s" % row["cell"]
    if "--value" in opt:
        assert all(abs(float(a) - b) <= 1e-6 * (1 + b) for a, b in zip(ours["value"].split(), values, strict=True)), "values of cell %s" % row["cell"]
assert want > 0 and len(got) >= want
