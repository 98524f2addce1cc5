"""The scores of clusters of new cells by ctaprobe transfer --unlike, by numpy and plain loops, of cells of which one class is not in the reference.

usage: transfer_unlike.py > tests/ref/transfer_unlike.tsv        for tests/unit/test_transfer_unlike.c
"""
import numpy as np
from scipy.stats import rankdata

CLASSES, FEATURES, CLUSTERS = 3, 16, 5
rng = np.random.default_rng(7)
level = rng.gamma(2, 1, (CLASSES + 1, FEATURES))
y = np.arange(72) % CLASSES
true = np.arange(65) % (CLASSES + 1)
x = np.round(rng.poisson(level[y]) * rng.uniform(.7, 1.3, (72, 1)), 2)
new = np.round(rng.poisson(level[true] + .3) * rng.uniform(.7, 1.3, (65, 1)), 2)
predicted = np.where(true == CLASSES, rng.choice(2, 65), true)
cluster = np.where(rng.random(65) < .1, rng.choice(CLASSES + 1, 65), true)
cluster[60] = CLUSTERS  # the last one has a single cell; number 4 has none

mean = np.array([x[y == c].mean(0) for c in range(CLASSES)])
variance = np.array([x[y == c].var(0) for c in range(CLASSES)])
sd = np.sqrt(np.average(variance, axis=0, weights=np.bincount(y)))
marker = np.zeros((CLASSES, FEATURES), int)
for a in range(CLASSES):
    for b in range(CLASSES):
        d = (mean[a] - mean[b]) / np.sqrt((variance[a] + variance[b]) / 2 + 1e-6)
        marker[a, [j for j in np.argsort(-d)[:10] if d[j] > 0]] = 1
shift = np.median([new[predicted == c].mean(0) - mean[c] for c in range(CLASSES)], axis=0)
scale = sd ** 2 + .01
near = [min(((mean[c] - mean[b]) ** 2 / scale).sum() for b in range(CLASSES) if b != c) for c in range(CLASSES)]
# as many components as features: the largest first, each with its largest entry positive, so that the medians are of the same axes
values, axes = np.linalg.eigh(np.cov(x.T))
order = np.argsort(-values)
axes = (axes * np.sign(axes[np.abs(axes).argmax(0), range(FEATURES)]))[:, order]
on = lambda rows: (rows - x.mean(0)) @ axes
w = np.cov((on(x) - on(mean)[y]).T, bias=True)
white = np.linalg.inv(np.linalg.cholesky(w + np.eye(FEATURES) * 1e-3 * np.trace(w) / FEATURES)).T
z, types = on(new) @ white, on(mean) @ white
moved = np.median([z[predicted == c].mean(0) - types[c] for c in range(CLASSES)], axis=0)
far = np.array([min(((r - moved - t) ** 2).sum() for t in types) for r in z])
gaps = ((z[:, None] - z) ** 2).sum(2)
outside = np.array([far[np.argsort(g)[:16]].mean() for g in gaps])

rows = []
for c in np.unique(cluster):
    own = cluster == c
    n, u = own.sum(), new[own].mean(0)
    k = np.bincount(predicted[own], minlength=CLASSES).argmax()
    noise = ((new[own].var(0) / (n - 1) if n > 1 else sd ** 2) / scale).sum()
    distances = ((u - shift - mean) ** 2 / scale).sum(1)
    m = marker[k] == 1
    lacks = [j for j in np.argsort(-(mean[k] - u + shift) / np.sqrt(scale)) if m[j] and 2 * (u - shift)[j] < mean[k][j]][:8]
    others = (mean.sum(0) - mean[k]) / (CLASSES - 1)
    has = [j for j in np.argsort(-(mean[k] - others) / np.sqrt(scale)) if m[j] and 2 * (u - shift)[j] >= mean[k][j]][:8]
    more = [j for j in np.argsort(-(u - shift - mean[k]) / np.sqrt(scale)) if (u - shift)[j] > mean[k][j]][:8]
    rows.append([c, n, k, *np.argsort(distances)[:2], (distances[k] - noise) / near[k], (u - shift)[m].sum() / mean[k][m].sum(), outside[own].mean(), lacks, has, more])
ranks = rankdata([r[5] for r in rows]) + rankdata([-r[6] for r in rows]) + rankdata([r[7] for r in rows]) - 1.5

print("# tests/ref/transfer_unlike.py: reference class values; new class cluster values; cluster id cells class nearest nearest distance level outside ranks lacks has more")
for c, row in zip(y, x):
    print("reference", c, *("%g" % v for v in row), sep="\t")
for p, c, row in zip(predicted, cluster, new):
    print("new", p, c, *("%g" % v for v in row), sep="\t")
for i in sorted(range(len(rows)), key=lambda i: (-ranks[i], -rows[i][1])):
    print("cluster", *rows[i][:5], *("%.12g" % v for v in (*rows[i][5:8], ranks[i])), *(" ".join(map(str, g)) for g in rows[i][8:]), sep="\t")
