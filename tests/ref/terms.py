"""ctaprobe transfer --ontology, by plain loops and scipy in float64.

usage: terms.py make OUT.counts IN.counts "TYPE=LABEL,COARSE ..." [DONOR=SHARE ...]     a copy with these labels: of a donor this share is coarse
       terms.py compare ONTOLOGY REF.counts HELD NEW.pred COVERAGE     thresholds and answers from the probabilities that are written
       terms.py fit ONTOLOGY REF.counts HELD [FOLD]       the regression of each fold: hierarchical cross-entropy
Exits 1 with a message on a difference.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../python"))
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import corrmask.stream as scstream                                                         # noqa: E402
from transfer import quantile                                           # noqa: E402


def cells(path, *columns):
    out = {c: [] for c in columns}
    with scstream.read(path) as s:
        for b in s:
            for c in columns:
                v = b[c]
                out[c].append(np.array(list(v.categories) + ["NA"], object)[v.codes] if hasattr(v, "codes") else np.asarray(v))
        return {c: np.concatenate(v) for c, v in out.items()}, s.header


class Ontology:
    """Names, and the terms at or above each."""

    def __init__(self, path):
        parents, synonym, self.name, at = {}, {}, {}, None
        for line in open(path):
            key, _, value = line.strip().partition(": ")
            if key.startswith("["):
                at = None if key != "[Term]" else ""
            elif key == "id" and at == "":
                at, parents[value], self.name[value] = value, [], value
            elif at and key == "name":
                self.name[at] = value
            elif at and key == "synonym" and '" EXACT' in value:
                synonym[value.split('"')[1]] = at
            elif at and key == "is_a":
                parents[at].append(value.split(" ")[0])
            elif at and key == "is_obsolete" and value == "true":
                del parents[at], self.name[at]
                at = None
        self.above = {}
        for t in parents:
            todo, seen = [t], set()
            while todo:
                v = todo.pop()
                if v not in seen:
                    seen.add(v)
                    todo += parents[v]
            self.above[t] = seen
        self.id = {**synonym, **{n: t for t, n in self.name.items()}}

    def term(self, label):
        return label if label in self.above else self.id.get(label)


class Labels:
    """Which classes does each label hold?"""

    def __init__(self, o, labels):
        term = {x: o.term(x) for x in labels}
        first = {term[x] or x: x for x in sorted(labels, reverse=True)}     # of the labels of a term
        classes = {}        # of each label's term, at or below; a label with two classes below is coarse
        for x in sorted(first.values(), key=lambda x: -len(o.above[term[x]]) if term[x] else 1):
            below = set().union(*(classes[y] for y in classes if term[x] and term[y] and term[x] in o.above[term[y]] and y != x))
            classes[x] = below if len(below) > 1 else below | {x}
        own = [x for x in sorted(classes) if x in classes[x]]
        name = {x: min(y for y in labels if first[term[y] or y] == x and (y != term[y] or sum(term[z] == term[y] for z in labels) == 1)) for x in own}
        self.classes = [name[x] for x in own]
        below = lambda t: frozenset(i for i, x in enumerate(own) if term[x] and t in o.above[term[x]])
        self.holds = {x: frozenset([own.index(first[t or x])]) if first[t or x] in own else below(t) for x, t in term.items()}
        self.terms = {t: below(t) for t in set().union(*(o.above[t] for t in term.values() if t))}
        self.terms.update({x: self.holds[x] for x, t in term.items() if not t})

    def chain(self, p):
        """Sets that hold the likeliest class, from small to large: those that are likelier than all smaller ones."""
        best, most = int(np.argmax(p)), 0
        for s in sorted({s for s in self.terms.values() if best in s}, key=lambda s: (len(s), sorted(s))):
            q = p[sorted(s)].sum()
            if q > most:
                most = q
                yield s, q

    def score(self, p, truth):
        return max([q for s, q in self.chain(p) if not truth <= s], default=0)

    def answer(self, p, threshold):
        return next((s for s, q in self.chain(p) if q > threshold), frozenset(range(len(p))))


def detailed(labels, types, donors, miss):
    """The donors that count, and the cells of them; without such a donor, the cells with fine labels."""
    coarse = np.array([len(labels.holds[t]) > 1 for t in types])
    whole = [d for d in sorted(set(donors)) if coarse[donors == d].mean() <= miss / 2]
    return whole, np.isin(donors, whole) if whole else ~coarse


def compare(ontology, ref, held, new, coverage):
    o = Ontology(ontology)
    r, _ = cells(ref, "cell_type", "donor")
    h, header = cells(held, "cell_type", "donor", "logit", "fine_label")
    n, _ = cells(new, "logit", "term", "term_name", "term_classes", "in_set")
    labels = Labels(o, sorted(set(r["cell_type"])))
    assert header["labels"] == labels.classes, (header["labels"], labels.classes)
    whole, counted = detailed(labels, h["cell_type"], h["donor"], 1 - float(coverage))
    p = np.exp(h["logit"].astype(float))
    at = [i for i in np.flatnonzero(counted) if max(p[i][sorted(labels.holds[h["cell_type"][i]])]) > 0]
    score = np.array([labels.score(p[i], labels.holds[h["cell_type"][i]]) for i in at])
    t = quantile(score, h["donor"][at], 1 - float(coverage))
    # at the best temperature the loss has no slope; of a coarse label the likeliest class counts
    z = np.where(p > 0, h["logit"], -99.)
    slope = np.mean([p[i] @ z[i] - max(z[i][sorted(labels.holds[h["cell_type"][i]])]) for i in at])
    assert abs(slope) < 1e-5, slope
    print(len(whole), "donors count, threshold", t)
    differ = 0
    missed = quantile(np.array([1 - min(p[i][sorted(labels.holds[h["cell_type"][i]])]) for i in at]), h["donor"][at], 1 - float(coverage))
    q = np.exp(n["logit"].astype(float))
    near = abs(1 - q - missed) < 1e-5
    assert ((n["in_set"] > 0) == (1 - q <= missed) | (q == q.max(1, keepdims=True)))[~near].all() and near.mean() < .01
    assert [labels.classes[min(labels.holds[t])] if len(labels.holds[t]) == 1 else "NA" for t in h["cell_type"]] == list(h["fine_label"])
    for i, q in enumerate(np.exp(n["logit"].astype(float))):
        s = labels.answer(q, t)
        term = n["term"][i]
        if (labels.terms[term] if term != "NA" else frozenset(range(len(q)))) != s or n["term_classes"][i] != len(s):
            # a term that is as likely as the threshold, but for rounding
            assert min(abs(v - t) for _, v in labels.chain(q)) < 1e-5, (i, s, term)
            differ += 1
        assert term == "NA" or n["term_name"][i] == o.name.get(term, term)
        # no term below it has the same classes
        assert term not in o.above or not any(term in o.above[u] and u != term and labels.terms[u] == s for u in labels.terms if u in o.above)
    assert differ < 1 + len(n["term"]) / 500, differ


def make(out, path, names, *donors):
    name = {t: v.replace("_", " ").split(",") for t, v in (x.split("=") for x in names.split(" "))}
    share = {d: float(v) for d, v in (x.split("=") for x in donors)}
    rng = np.random.default_rng(0)
    all_names, blocks = sorted(set(sum(name.values(), []))), []
    with scstream.read(path) as s:
        for b in s:
            types, donor = (np.array(b[c].categories)[b[c].codes] for c in ("cell_type", "donor"))
            coarse = rng.random(len(types)) < [share.get(d, 0) for d in donor]
            block = {c["name"]: b[c["name"]] for c in s.header["columns"]}
            block.update({c: v.codes for c, v in block.items() if hasattr(v, "codes")})
            block["cell_type"] = [all_names.index(name[t][-1 if k else 0]) for t, k in zip(types, coarse)]
            blocks.append(block)
        header = {k: s.header[k] for k in ("kind", "provenance", "vocab", "columns")}
    for c in header["columns"]:
        if c["name"] == "cell_type":
            c["categories"] = all_names
    scstream.write(out, header, blocks)


def expression(path):
    with scstream.read(path) as s:
        rows = []
        for b in s:
            (start, gene), (_, count) = b["gene"], b["count"]
            x = np.zeros((b.rows, len(s.header["vocab"]["id"])))
            x[np.repeat(np.arange(b.rows), np.diff(start.astype(int))), gene] = count
            rows.append(x)
    x = np.concatenate(rows)
    return np.log1p(1e4 * x / x.sum(1, keepdims=True))


def hierarchical(x, sets, penalty):
    """Weights that minimise the mean of -log of the probability of the set of a row [rows, classes], in float64."""
    from scipy.optimize import minimize
    k, mean = sets.shape[1], x.mean(0)
    x = np.c_[x - mean, np.ones(len(x))]

    def objective(u):
        w = u.reshape(-1, k)
        z = x @ w
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        inside = (p * sets).sum(1, keepdims=True)
        g = x.T @ (p - p * sets / inside) / len(x)
        g[:-1] += penalty * w[:-1]
        return -np.log(inside).mean() + penalty / 2 * (w[:-1] ** 2).sum(), g.ravel()
    w = minimize(objective, np.zeros(x.shape[1] * k), jac=True, method="L-BFGS-B", options={"maxiter": 4000, "maxfun": 8000, "ftol": 1e-14, "gtol": 1e-8}).x.reshape(-1, k)
    return lambda q: np.c_[q - mean, np.ones(len(q))] @ w


def ranks(x, y, k, test):
    """Probabilities of k classes from Spearman's correlations with their mean cells, over markers."""
    from scipy.special import softmax
    from scipy.stats import rankdata
    mean, variance = (np.array([f(x[y == c], 0) for c in range(k)]) for f in (np.mean, np.var))
    markers = set()
    for a in range(k):
        for b in range(k):
            d = (mean[a] - mean[b]) / np.sqrt((variance[a] + variance[b]) / 2 + 1e-6)
            markers |= {g for g in np.argsort(-d)[:10] if d[g] > 0}
    test, mean = (rankdata(v[:, sorted(markers)], axis=1) for v in (test, mean))
    return softmax(np.corrcoef(test, mean)[:len(test), len(test):] / .03, axis=1)


def fit(ontology, ref, held, fold=None):
    r, _ = cells(ref, "cell", "cell_type")
    h, _ = cells(held, "cell", "fold", "logit", "predicted")
    labels, x = Labels(Ontology(ontology), sorted(set(r["cell_type"]))), expression(ref)
    assert (r["cell"] == h["cell"]).all()
    sets = np.array([[k in labels.holds[t] for k in range(len(labels.classes))] for t in r["cell_type"]], float)
    for f in [int(fold)] if fold else np.unique(h["fold"]):
        out = h["fold"] == f
        known = (sets[~out] * (sets[~out].sum(1, keepdims=True) == 1)).any(0)      # classes; a coarse label may have none of them
        rows = ~out & sets[:, known].any(1)
        z = hierarchical(x[rows], sets[rows][:, known], 3e-3)(x[out])
        fine = np.where(sets[rows].sum(1) == 1, sets[rows][:, known].argmax(1), -1)
        p = np.exp(z - z.max(1, keepdims=True))
        z = np.log(p / p.sum(1, keepdims=True) + ranks(x[rows], fine, known.sum(), x[out]))
        got = h["logit"][out].astype(float)
        assert (np.isfinite(got) == known).all()
        got = got[:, known]
        same = (np.array(labels.classes, object)[known][z.argmax(1)] == h["predicted"][out]).mean()
        z, got = z - z.mean(1, keepdims=True), got - got.mean(1, keepdims=True)
        got = got * (z * got).sum() / (got * got).sum()        # the temperature
        print("fold", f, "same type", same, "difference", np.abs(z - got).mean() / np.abs(z).mean())
        assert same > .97 and np.abs(z - got).mean() < .08 * np.abs(z).mean()


if __name__ == "__main__":
    {"make": make, "compare": compare, "fit": fit}[sys.argv[1]](*sys.argv[2:])
