"""What ctaprobe transfer decides and measures, of cells whose logits and distances are given, by numpy and scipy and plain loops.

usage: transfer_rule.py > tests/ref/transfer_rule.tsv        for tests/unit/test_transfer.c
"""
import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from scipy.stats import t as student

COVERAGE, UNKNOWN, CLASSES, GROUPS = .8, .12, 3, 20
rng = np.random.default_rng(5)
y = rng.choice(CLASSES, 160, p=[.55, .37, .08])
group = np.arange(160) % GROUPS
x = np.round(np.eye(CLASSES)[y][:, :2] * 2 + rng.normal(size=(GROUPS, 2))[group] * .4 + rng.normal(size=(160, 2)), 3)
logit = np.round(np.stack([x[:, 0], x[:, 1], .8 - x.sum(1) / 2], 1) * 1.7 + rng.normal(size=(160, CLASSES)) * .5, 3)
logit[:4, 2] = -np.inf                       # of cells whose method did not know the class
far = np.round(np.abs(x).sum(1) + rng.random(160), 3)
known = np.isfinite(logit[np.arange(160), y])


def quantile(score, of, miss):
    """The smallest score that so many cells, each group as one, do not exceed."""
    n = len(set(of))
    need = (1 - miss) * (n + ((1 - miss) * (n + 1) <= n + 1e-9))
    return min(s for s in score if sum((score[of == g] <= s).mean() for g in set(of)) >= need - 1e-9)


def p_value(value, score, of):
    return min(1, (1 + sum((score[of == g] >= value).mean() for g in set(of))) / (len(set(of)) + 1))


T = 1 / np.exp(minimize_scalar(lambda b: -np.log(softmax(np.exp(b) * logit[known], axis=1)[np.arange(known.sum()), y[known]]).mean(),
                               bounds=(-np.log(16), np.log(16)), method="bounded", options={"xatol": 1e-12}).x)
p = softmax(logit / T, axis=1)
best = logit.argmax(1)
unsure = (1 - p.max(1)).astype("f4").astype(float)
most_missed = quantile((1 - p[np.arange(160), y])[known], group[known], 1 - COVERAGE)
strange = np.array([2 - p_value(f, far[known], group[known]) - p_value(u, unsure[known], group[known]) for f, u in zip(far, unsure)])
own = [known & (best == k) if UNKNOWN * ((known & (best == k)).sum() + 1) >= 1 else known for k in range(CLASSES)]
most = np.array([quantile(strange[o], group[o], UNKNOWN) for o in own])
likeness = np.array([p_value(s, strange[own[k]], group[own[k]]) for s, k in zip(strange, best)])
in_set = (1 - p <= most_missed) | (np.arange(CLASSES) == best[:, None])
unlike = strange > most[best]


def share(hit, of):
    return sum(hit[of & (group == g)].mean() for g in set(group[of]))


def log_distance(x, guess, others, of_others):
    pairs = [(x[guess == c], others[of_others == c]) for c in set(guess) if c in set(of_others)]
    cells, free = sum(len(a) for a, _ in pairs), sum(len(a) - 1 for a, _ in pairs)
    variance = sum(((a - a.mean(0)) ** 2).sum() for a, _ in pairs) / free
    square = sum(len(a) * ((a.mean(0) - b.mean(0)) ** 2).sum() for a, b in pairs)
    noise = sum(len(a) * variance * (1 / len(a) + 1 / len(b)) for a, b in pairs)
    return np.log(max(square - noise, noise / 10) / cells) / 2


new, guess = x[known] + .3, best[known]
k, of = known, group
between = np.array([log_distance(x[k & (of == g)], best[k & (of == g)], x[k & (of != g)], best[k & (of != g)]) for g in range(GROUPS)])
shift = (log_distance(new, guess, x[k], best[k]) - between.mean()) / (between.std(ddof=1) * np.sqrt(1 + 1 / GROUPS))
prior = np.bincount(y[known], minlength=CLASSES) / known.sum()
mix, third = prior, p[y == 2]
for _ in range(50):
    mix = (third * mix / prior / (third * mix / prior).sum(1, keepdims=True)).mean(0)
covered = np.array([in_set[known & (y == c), c].mean() for c in range(CLASSES)])
print("# tests/ref/transfer_rule.py: cell y group x0 x1 logit0 logit1 logit2 far class probability likeness unlike set0 set1 set2")
for i in range(160):
    print("cell", y[i], group[i], *x[i], *logit[i], far[i], best[i], "%.12g" % p[i].max(), "%.12g" % likeness[i], int(unlike[i]), *in_set[i].astype(int), sep="\t")
values = {"temperature": T, "most_missed": most_missed, "coverage": share(in_set[np.arange(160), y], known), "shift": shift,
          "limit": student.isf(.05, GROUPS - 1), **{"known%d" % c: share(~unlike, known & (best == c)) for c in range(CLASSES)},
          **{"groups%d" % c: len(set(group[known & (best == c)])) for c in range(CLASSES)},
          "mix2": mix[2], "mix_covered": mix @ covered, **{"covered%d" % c: in_set[known & (y == c), c].mean() for c in range(CLASSES)}}
for name, v in values.items():
    print(name, "%.12g" % v, sep="\t")
