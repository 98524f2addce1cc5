#!/usr/bin/python3
"""medians.py VOCAB.tsv COUNTS.tsv RANK: the medians of a fitted vocabulary against numpy. RANK 0: equal to 1e-12; else the share of a
gene's values below or above the reported median is at most 0.5 + RANK."""
import sys
from collections import defaultdict
import numpy as np

vocab, counts, tolerance = sys.argv[1], sys.argv[2], float(sys.argv[3])
values = defaultdict(list)
with open(counts) as f:
    head = next(f).rstrip("\n").split("\t")
    for line in f:
        row = dict(zip(head, line.rstrip("\n").split("\t")))
        for g, c in zip(row["gene"].split(), row["count"].split()):
            values[g].append(int(c) / int(row["n_counts"]) * 1e4)
rows = [line.split("\t") for line in open(vocab).read().splitlines()[1:]]
assert [int(r[0]) for r in rows] == list(range(len(rows)))
genes = [r for r in rows if not r[1].startswith("<")]
assert [r[1] for r in genes] == sorted(values), "the genes are not those of the corpus, in order"
worst = 0
for _, g, _, m in genes:
    v, m = np.array(values[g]), float(m)
    if tolerance == 0:
        assert abs(m - np.median(v)) <= 1e-12 * m, (g, m, np.median(v), len(v))
    # one value of a small sample is more than the tolerance
    worst = max(worst, max((v < m).mean(), (v > m).mean()) - 0.5)
assert worst <= max(tolerance, 1e-9), worst
print("%d genes, worst rank %.5f" % (len(genes), worst))
