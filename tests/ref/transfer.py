"""ctaprobe transfer and score, by scikit-learn, scipy and plain loops.

usage: transfer.py make OUT.emb [cells=N] [seed=N] [donors=N] [shift=X] [what=...]     embeddings of donors, who differ by shift
       transfer.py compare REF.emb NEW.emb HELD NEW.pred [C=1] [nearest=K] [standardize=1] [group=donor] [coverage=.9] [unknown=.05] [calibration=FILE]
       transfer.py score PREDICTIONS METRICS.tsv CURVES.tsv        ece, aurc, coverage, curves, AUROC of unknown classes
Exits 1 with a message on a difference.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../python"))
sys.path.insert(0, os.path.dirname(__file__))
import corrmask.stream as scstream                                                         # noqa: E402
from probe import close, read_metrics                                   # noqa: E402


def make(out, cells=400, seed=1, donors=8, shift=0.3, classes=4, features=10, what=""):
    rng = np.random.default_rng(seed)
    centre = np.random.default_rng(0).normal(size=(classes + 1, features)) * 1.1      # the last class is not in a reference
    y = rng.choice(classes, cells, p=np.array([.4, .3, .2, .1])[:classes] / sum([.4, .3, .2, .1][:classes]))
    if what == "novel":
        y[: cells // 5] = classes
    if what == "single":
        y[0], y[y == 3] = 3, 2
        y[0] = 3
    donor = rng.integers(0, donors, cells)
    x = (centre[y] + (shift * rng.normal(size=(donors, features)))[donor] + rng.normal(size=(cells, features))) * 1.3 ** np.arange(features) / 9
    if what == "nan":
        x[cells // 2, 2] = np.nan
    if what == "empty":
        x[3::50] = np.nan
    names = ["T cell", "B, cell", "NK", "mono | DC", "new"]
    code = np.where(np.arange(cells) % 41 == 40, -1, y) if what == "unlabelled" else y
    header = {"kind": "embedding", "provenance": [{"program": "scembed", "version": "1", "options": "--emb-layer -1 --pool mean --model xxh3:" + ("b" if what == "model" else "a") * 32}],
              "columns": [{"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "barcode", "type": "str", "shape": "scalar"},
                          {"name": "cell_type", "type": "categorical", "shape": "scalar", "categories": names},
                          {"name": "donor", "type": "categorical", "shape": "scalar", "categories": ["d%d.%d" % (seed, i) for i in range(donors)]},
                          {"name": "x", "type": "f32", "shape": "fixed", "n": features}]}
    blocks = []
    for a in range(0, cells, 150):
        s = slice(a, min(a + 150, cells))
        blocks.append({"cell": np.arange(a, s.stop), "barcode": ["c%d.%d" % (seed, i) for i in range(a, s.stop)],
                       "cell_type": code[s], "donor": donor[s], "x": x[s].astype("f4")})
    scstream.write(out, header, blocks)


def load(path):
    """Columns of a stream; categories and texts as arrays of names, None where missing."""
    out, header = {}, None
    for b in scstream.read(path):
        for k, v in b.items():
            if isinstance(v, tuple) and len(v) == 2:
                v = np.array([v[1][c] if c >= 0 else None for c in v[0]], object)
            out.setdefault(k, []).append(np.asarray(v, object if k in ("barcode", "label_set") else None))
    return {k: np.concatenate(v) for k, v in out.items()}, scstream.read(path).header


def method(x, y, classes, C, nearest, standardize):
    """Returns a function: logits and distances of rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import NearestNeighbors
    scale = np.ones(x.shape[1])
    if standardize:
        scale = x.std(0)
        scale[scale == 0] = 1
    z = x / scale
    known = [i for i, c in enumerate(classes) if (y == c).any()]
    near = NearestNeighbors(n_neighbors=nearest or min(10, len(x)), algorithm="brute").fit(x)
    if not nearest:
        fit = LogisticRegression(C=C, tol=1e-8, max_iter=10000, solver="newton-cg").fit(z - z.mean(0), y)

    def predict(q):
        distance, at = near.kneighbors(q)
        logit = np.full((len(q), len(classes)), -np.inf)
        if nearest:
            votes = np.stack([(y[at] == classes[k]).sum(1) for k in known], 1)
            logit[:, known] = np.log((votes + 1 / len(known)) / (nearest + 1))
        else:
            d = fit.decision_function(q / scale - z.mean(0))
            logit[:, known] = d if len(known) > 2 else np.stack([np.zeros(len(q)), d], 1)
        return logit, distance.mean(1)
    return predict


def needed(group, miss):
    """The sum over the groups of the share of their cells at or below the threshold, at least."""
    groups = len(np.unique(group))
    promised = (1 - miss) * (groups + 1) <= groups + 1e-9
    return (1 - miss) * (groups + promised) - 1e-9


def quantile(score, group, miss):
    """The threshold, by its definition."""
    for s in np.sort(score):
        if sum((score[group == g] <= s).mean() for g in np.unique(group)) >= needed(group, miss):
            return s
    return np.inf


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def compare(ref, new, held, pred, C=1.0, nearest=0, standardize=1, group="donor", coverage=.9, unknown=.05, calibration=""):
    from scipy.optimize import minimize_scalar
    r, _ = load(ref)
    n, _ = load(new)
    h, _ = load(held)
    p, header = load(pred)
    r = {k: v[[c is not None for c in r["cell_type"]]] for k, v in r.items()}
    classes = header["labels"]
    assert classes == sorted(set(r["cell_type"]))
    fit = lambda rows: method(r["x"][rows].astype(float), r["cell_type"][rows], classes, C, nearest, standardize)
    if calibration:
        c, _ = load(calibration)
        c = {k: v[np.isin(c["cell_type"].astype(str), classes)] for k, v in c.items()}
        logit, far = fit(np.ones(len(r["x"]), bool))(c["x"].astype(float))
    else:
        c = r
        fold = h["fold"]
        assert sorted(set(fold)) == list(range(1, max(fold) + 1))
        assert (h["barcode"] == r["barcode"]).all()
        logit, far = np.empty((len(fold), len(classes))), np.empty(len(fold))
        for f in np.unique(fold):
            logit[fold == f], far[fold == f] = fit(fold != f)(r["x"][fold == f].astype(float))
        if group:
            assert all(len(set(fold[r[group] == g])) == 1 for g in set(r[group])), "a group is in two folds"
    y = np.array([classes.index(v) for v in c["cell_type"]])
    fitted = np.isfinite(logit[np.arange(len(y)), y])
    who = c[group] if group else np.arange(len(y))
    loss = lambda b: -np.mean(np.log(softmax(np.exp(b) * logit[fitted])[np.arange(fitted.sum()), y[fitted]]))
    T = np.exp(-minimize_scalar(loss, bounds=(-np.log(16), np.log(16)), method="bounded", options={"xatol": 1e-10}).x)
    score = 1 - softmax(logit / T)[np.arange(len(y)), y]
    most = quantile(score[fitted], who[fitted], 1 - coverage)
    def p_of(value, known):
        """(1 + sum over the groups of the share of cells with at least this value) / (G + 1); known: value and group of unseen cells"""
        values, group = known
        shares = sum((values[group == g] >= value[:, None] * (1 - 1e-9)).mean(1) for g in np.unique(group))
        return (1 + shares) / (len(np.unique(group)) + 1)

    def strange_of(logit, far):
        unsure = (1 - softmax(logit / T).max(1)).astype("f4").astype(float)
        return 2 - p_of(far, (far0[fitted], who[fitted])) - p_of(unsure, (unsure0[fitted], who[fitted]))

    guess, far0 = logit.argmax(1), far
    unsure0 = (1 - softmax(logit / T).max(1)).astype("f4").astype(float)
    strange0 = strange_of(logit, far)
    own = [((guess == k) & fitted) if unknown * (((guess == k) & fitted).sum() + 1) >= 1 else fitted for k in range(len(classes))]
    limits = np.array([quantile(strange0[o], who[o], unknown) if unknown else np.inf for o in own])

    def check(s, logit, far, what):
        want = softmax(logit / T)
        close(what + " probabilities", np.exp(s["logit"].astype(float)), want, 2e-3)
        close(what + " probability", s["probability"], np.exp(s["logit"].astype(float)).max(1), 1e-6)
        best = want.argmax(1)
        sure = np.sort(want, 1)[:, -1] - np.sort(want, 1)[:, -2] > 3e-3
        assert (s["predicted"] == np.array(classes, object)[best])[sure].all(), "another class"
        inside = 1 - want <= most
        inside[np.arange(len(best)), best] = True
        clear = (np.abs(1 - want - most) > 3e-3) & sure[:, None]
        assert (inside == s["in_set"].astype(bool))[clear].all(), "another set"
        print("clear members of sets: %.3f" % clear.mean())
        assert clear.mean() > .9
        for row in range(len(best)):
            order = sorted((-q, k) for k, q in enumerate(s["logit"][row]) if s["in_set"][row][k])
            assert s["label_set"][row] == " | ".join(classes[k] for _, k in order), s["label_set"][row]
        best = np.array([classes.index(v) for v in s["predicted"]])
        # the p-value of the two shares jumps where our optimum and theirs differ in the last digits: nearly all cells agree
        strange, limit = strange_of(logit, far), limits[best]
        p = np.empty(len(best))
        for k in range(len(classes)):
            p[best == k] = p_of(strange[best == k], (strange0[own[k]], who[own[k]]))
        off = np.abs(p - s["likeness"])
        print(f"{what} likeness: largest difference {off.max():.3g}, of {(off < 1e-9).mean():.3f} of the cells none")
        assert (off < 0.02).mean() > .97 and off.max() < .15, "other p-values"
        unk = strange > limit
        clear = np.abs(strange - limit) > 0.02
        assert ((s["assigned"] == "unknown") == unk)[clear].all(), "others are unknown"
        assert clear.mean() > .8
        assert (s["assigned"] == s["predicted"])[~unk & clear].all()
        print(f"{what}: T {T:.4f}, sets of {inside.sum(1).mean():.2f} classes, {unk.mean():.3f} unknown")

    logit2, far2 = fit(np.ones(len(r["x"]), bool))(n["x"].astype(float))
    check(h, logit, far, "held-out")
    # of the cells that set the thresholds
    shares = lambda v, at: sum(v[at & (who == g)].mean() for g in np.unique(who[at]))
    assert shares(h["in_set"][np.arange(len(y)), y] > 0, fitted) >= needed(who[fitted], 1 - coverage)
    assert all(shares(h["assigned"] != "unknown", o) >= needed(who[o], unknown) for o in own)
    check(p, logit2, far2, "new")


def shift(ref, new, held, pred, report):
    """The rows held_out_coverage, and shift: how far the new cells are from the reference, of the spread of its donors."""
    r, n, h, p = (load(path)[0] for path in (ref, new, held, pred))
    r = {k: v[[c is not None for c in r["cell_type"]]] for k, v in r.items()}
    classes = sorted(set(r["cell_type"]))
    known = np.array([np.isfinite(z[classes.index(c)]) for z, c in zip(h["logit"], r["cell_type"])])
    said = dict(line.rstrip("\n").split("\t")[:2] for line in open(report))
    for k, c in enumerate(classes):
        own, told = known & (r["cell_type"] == c), float(said["held_out_coverage:" + c])
        assert abs(told - h["in_set"][own, k].mean()) < 1e-9 if own.any() else np.isnan(told), (c, told)
    check_shift(report, r["x"][known].astype(float), r["donor"][known], h["predicted"][known], n["x"].astype(float), p["predicted"])


def check_shift(report, x, donor, guess, new, new_guess, shared=1):
    """shared: 1 for the features that the new cells have."""
    from scipy.stats import t as student
    said = dict(line.rstrip("\n").split("\t")[:2] for line in open(report))

    def log_distance(x, guess, others, of_others):
        own = [(x[guess == c], others[of_others == c]) for c in set(guess) if c in set(of_others)]
        cells, free = sum(len(a) for a, _ in own), sum(len(a) - 1 for a, _ in own)
        if not free:
            return np.nan
        variance = sum(((a - a.mean(0)) ** 2).sum() for a, _ in own) / free
        square = sum(len(a) * ((a.mean(0) - b.mean(0)) ** 2).sum() for a, b in own)
        noise = sum(len(a) * variance * (1 / len(a) + 1 / len(b)) for a, b in own)
        return np.log(max(square - noise, noise / 10) / cells) / 2

    for c in [None, *sorted(set(new_guess))]:
        of, of_new = (np.ones(len(g), bool) if c is None else g == c for g in (guess, new_guess))
        far = np.array([log_distance(x[of & (donor == d)], guess[of & (donor == d)], x[of & (donor != d)], guess[of & (donor != d)]) for d in sorted(set(donor))])
        far = far[~np.isnan(far)]
        if not len(far):                                                     # a type of too few donors
            continue
        t = (log_distance(new[of_new], new_guess[of_new], (x * shared)[of], guess[of]) - far.mean()) / (far.std(ddof=1) * np.sqrt(1 + 1 / len(far)))
        got = float(said["shift" if c is None else "shift:" + c])
        if not np.isnan([t, got]).all():                                     # the same
            close("shift of %s" % c, got, t, 1e-6)
        if c is None:
            close("limit", float(said["shift:limit"]), student.isf(.05, len(far) - 1), 1e-9)
            unseen = np.exp(far.mean() + float(said["shift:limit"]) * far.std(ddof=1) * np.sqrt(1 + 1 / len(far))) / np.exp(far.mean())
            close("unseen", float(said["shift:unseen"]), unseen, 1e-6)


def score(pred, metrics, curves):
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import roc_auc_score
    p, header = load(pred)
    m = read_metrics(metrics)
    labels = header["labels"]
    keep = np.array([c is not None and g is not None for c, g in zip(p["cell_type"], p["predicted"])], bool)
    p = {k: v[keep] for k, v in p.items()}
    known = np.isin(p["cell_type"].astype(str), labels)
    prob = softmax(p["logit"].astype(float))
    at = np.array([labels.index(v) for v in p["predicted"]])
    conf = prob[np.arange(len(at)), at].astype('f4').astype(float)       # equal votes are ties
    right = p["predicted"] == p["cell_type"]
    frac, mean = calibration_curve(right, conf, n_bins=10)
    bins = np.clip(np.ceil(conf * 10).astype(int) - 1, 0, 9)
    size = np.bincount(bins, minlength=10)
    close("ece", float(m["ece"]), np.abs(frac - mean) @ size[size > 0] / len(conf), 1e-12)
    order = np.sort(conf)[::-1]
    # cells of equal confidence: the mean over their orders
    risk = np.array([(1 - right[conf > c]).sum() + (1 - right[conf == c]).mean() * (k - (conf > c).sum()) for k, c in enumerate(order, 1)]) / np.arange(1, len(conf) + 1)
    close("aurc", float(m["aurc"]), risk.mean(), 1e-12)
    rows = [line.rstrip("\n").split("\t") for line in open(curves)][1:]
    rel = np.array([[float(v) for v in r[1:]] for r in rows if r[0] == "reliability"])
    close("reliability", rel, np.stack([mean, frac, size[size > 0]], 1), 1e-8)
    got = np.array([[float(v) for v in r[1:]] for r in rows if r[0] == "risk"])
    count = -(-len(conf) * np.arange(1, 101) // 100)
    close("risk", got, np.stack([np.arange(1, 101) / 100, risk[count - 1], count], 1), 1e-8)
    if "in_set" in p:
        column = np.array([labels.index(v) if v in labels else 0 for v in p["cell_type"]])
        close("coverage", float(m["coverage"]), p["in_set"][np.arange(len(at)), column][known].mean(), 1e-12)
        close("set_size", float(m["set_size"]), p["in_set"][known].sum(1).mean(), 1e-12)
        close("known_called_unknown", float(m["known_called_unknown"]), (p["assigned"] == "unknown")[known].mean(), 1e-12)
    if not known.all():
        if "in_set" in p:
            close("novel_called_unknown", float(m["novel_called_unknown"]), (p["assigned"] == "unknown")[~known].mean(), 1e-12)
        close("novel_auroc", float(m["novel_auroc"]), roc_auc_score(~known, -(p["likeness"] if "likeness" in p else conf)), 1e-12)


def main():
    options = dict(a.split("=", 1) for a in sys.argv[2:] if "=" in a)
    for k, v in options.items():
        if k not in ("what", "group", "calibration"):
            options[k] = float(v) if k in ("C", "coverage", "unknown", "shift") else int(v)
    {"make": make, "compare": compare, "shift": shift, "score": score}[sys.argv[1]](*(a for a in sys.argv[2:] if "=" not in a), **options)


if __name__ == "__main__":
    main()
