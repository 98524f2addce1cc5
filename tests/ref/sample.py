"""The choices of scsample, written again from its manual page: reads `scview -c cell,CLASS` tables.

usage: sample.py number N | stratify N | balance [N] | cap N | split F  ALL.tsv CHOSEN.tsv [SEED]
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
want = [r for r in rows if r in set(want)]      # order kept
if want != chosen:
    sys.exit(f"{what} {arg}: {len(chosen)} cells chosen, {len(want)} expected, {len(set(want) ^ set(chosen))} differ")
