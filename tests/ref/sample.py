"""The choices of scsample, written again from its manual page: reads `scview -c cell,CLASS` tables.

usage: sample.py number N | stratify N | balance [N] | cap N | split F  ALL.tsv CHOSEN.tsv [SEED]
       sample.py again N      ALL.tsv has the columns cell, barcode and those of --balance; CHOSEN.tsv cell, barcode
       sample.py known 0|1    ALL.tsv has the columns cell, data set, type; 1: the test part
Exits 1 with a message when CHOSEN is not what the rule gives for ALL.
"""
import sys
from collections import Counter


def philox(key, ctr):
    """Philox4x32-10 [Salmon et al. 2011]."""
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * ctr[0], 0xCD9E8D57 * ctr[2]
        ctr = ((p1 >> 32) ^ ctr[1] ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ ctr[3] ^ k1, p0 & 0xFFFFFFFF)
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return ctr


assert philox((0, 0), (0, 0, 0, 0))[0] == 0x6627E8D5


def draw(seed, cell, purpose):
    w = philox((seed, 1), (0, purpose, cell & 0xFFFFFFFF, cell >> 32))
    return w[0] << 32 | w[1]


def table(path):
    rows = [l.rstrip("\n").split("\t") for l in open(path)][1:]
    return [(int(r[0]), "\t".join(r[1:])) for r in rows]


def smallest(rows, n, seed, purpose):
    return sorted(rows, key=lambda r: draw(seed, r[0], purpose))[:n]


def by_quota(rows, quota, seed, purpose):
    return sum((smallest([r for r in rows if r[1] == c], q, seed, purpose) for c, q in quota.items()), [])


def proportional(count, n):
    total = sum(count.values())
    quota = {c: count[c] * n // total for c in count}
    order = sorted(count, key=lambda c: (-(count[c] * n % total), c))
    for c in order[:n - sum(quota.values())]:
        quota[c] += 1
    return quota


def round_robin(count, n):
    quota = dict.fromkeys(count, 0)
    while n and any(quota[c] < count[c] for c in count):
        for c in sorted(count):
            if quota[c] < count[c] and n:
                quota[c] += 1
                n -= 1
    return quota


def again(rows, n, seed):
    """Numbers and barcodes of n draws with replacement: a class, then a cell of it, in the order of the input."""
    def below(words, n):
        while True:
            m = next(words) * n
            if m & 0xFFFFFFFF >= 2 ** 32 % n:
                return m >> 32

    by_class = {}
    for cell, text in rows:
        barcode, *label = text.split("\t")
        by_class.setdefault("\t".join(label), []).append((draw(seed, cell, 5), cell, barcode))
    classes = [sorted(by_class[c]) for c in sorted(by_class)]
    drawn = Counter()
    for t in range(n):
        words = iter(philox((seed, 1), (0, 4, t, 0)))
        of = classes[below(words, len(classes))]
        drawn[of[below(words, len(of))][1]] += 1
    return list(enumerate(text.split("\t")[0] for cell, text in rows for _ in range(drawn[cell])))


def known(rows, test):
    sets = {}
    for _, text in rows:
        s, t = text.split("\t")
        sets.setdefault(s, set()).add(t)
    train, tested, chosen = set(), set(), set()
    for s in sorted(sets):
        types = sets[s] - {""}
        if types and types <= train and types - tested:
            tested |= types
            chosen.add(s)
        else:
            train |= types
    return [r for r in rows if (r[1].split("\t")[0] in chosen) == test]


what, arg, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[5]) if len(sys.argv) > 5 else 1
rows, chosen = table(sys.argv[3]), table(sys.argv[4])
count = Counter(r[1] for r in rows)
n = int(arg)
if what == "number":
    want = smallest(rows, n, seed, 0)
elif what == "split":
    want = smallest(rows, int(arg * len(rows) + 0.5), seed, 1)
elif what == "stratify":
    want = by_quota(rows, proportional(count, n), seed, 3)
elif what == "balance":
    want = by_quota(rows, round_robin(count, n or min(count.values()) * len(count)), seed, 3)
elif what == "cap":
    want = by_quota(rows, dict.fromkeys(count, n), seed, 16)
elif what == "again":
    want = again(rows, n, seed)
elif what == "known":
    want = known(rows, bool(n))
if what != "again":
    want = [r for r in rows if r in set(want)]      # order kept
if want != chosen:
    sys.exit(f"{what} {arg}: {len(chosen)} cells chosen, {len(want)} expected, {len(set(want) ^ set(chosen))} differ")
