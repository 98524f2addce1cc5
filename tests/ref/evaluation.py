"""Embeddings of donors for ctaprobe's tests, and the answers of scikit-learn and scipy.

usage: evaluation.py make OUT.emb [seed=N] [donors=N] [first=N] [what=...]      cells of donors first, first + 1, ... with age and disease
       evaluation.py classes TRAIN.emb TEST.emb FOLDS.pred TEST.pred METRICS.tsv LABEL [standardize=1]
       evaluation.py target TRAIN.emb TEST.emb FOLDS.pred TEST.pred METRICS.tsv [standardize=1] [alpha=X]
       evaluation.py rank OUT.emb METRICS.tsv
       evaluation.py counts OUT.pred [what=...]                                 predictions of counts
       evaluation.py reconstruction IN.pred METRICS.tsv
       evaluation.py bootstrap PREDICTIONS METRICS.tsv REPLICATES.tsv [group=1]
       evaluation.py ranks TABLE.tsv
       evaluation.py other IN.counts OUT.counts                                 the same cells, with another table of genes
       evaluation.py expression FIT.counts IN.counts OUT.emb genes=N [components=K]
       evaluation.py auroc PREDICTIONS METRICS.tsv LABEL                        a cross-validation, all folds together
FOLDS.pred are predictions of a cross-validation of TRAIN.emb, with the folds that --search uses. Without search, alpha or C is given.
Exits 1 with a message on a difference.
"""
import os
import sys
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
import probe                                                            # noqa: E402
from probe import close, scstream                                       # noqa: E402

warnings.simplefilter("ignore")


def make(out, seed=1, donors=11, first=0, features=10, what=""):
    rng = np.random.default_rng(seed)
    per_donor = np.random.default_rng(5)
    age = per_donor.integers(20, 90, 40)
    disease = np.arange(40) % 3
    shift = per_donor.normal(size=(40, features)) * 0.3
    size = 8 + 3 * rng.permutation(donors)                             # no two donors have as many cells
    donor = rng.permutation(np.repeat(np.arange(first, first + donors), size))
    n = len(donor)
    kind = rng.choice(4, n, p=[0.45, 0.3, 0.17, 0.08])
    centre = np.random.default_rng(6).normal(size=(4, features))
    x = centre[kind] + shift[donor] + rng.normal(size=(n, features)) * np.linspace(0.5, 3, features)
    x[:, 0] += (age[donor] - 50) / 60
    x[:, 1] += disease[donor] == 1
    x[:, 2] += 2 * (disease[donor] == 2)
    x = x * np.logspace(-1, 1, features) + 3
    years = age[donor] + np.where(np.arange(n) % 2, 0.0, 0.25)
    if what == "missing":
        years[::5] = np.nan
    if what == "constant":
        years[:] = 7
    if what == "infinite":
        years[3] = np.inf
    header = {"kind": "embedding", "provenance": [],
              "columns": [{"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "barcode", "type": "str", "shape": "scalar"},
                          {"name": "cell_type", "type": "categorical", "shape": "scalar", "categories": ["T", "B", "NK", "Mono"]},
                          {"name": "donor", "type": "categorical", "shape": "scalar", "categories": ["d%02d" % i for i in range(40)]},
                          {"name": "disease", "type": "categorical", "shape": "scalar", "categories": ["none", "mild", "severe"]},
                          {"name": "age", "type": "f64", "shape": "scalar"},
                          {"name": "x", "type": "f32", "shape": "fixed", "n": features}]}
    blocks = []
    for a in range(0, n, 150):
        s = slice(a, min(a + 150, n))
        blocks.append({"cell": np.arange(a, s.stop) + 1000 * first, "barcode": ["c%d" % i for i in range(a, s.stop)], "cell_type": kind[s],
                       "donor": donor[s], "disease": disease[donor[s]], "age": years[s], "x": x[s].astype("f4")})
    scstream.write(out, header, blocks)


def load(path, *columns):
    """Values of the columns, categories by name."""
    out = [[] for _ in columns]
    for b in scstream.read(path):
        for o, name in zip(out, columns):
            v = b[name]
            o.append(np.array(v[1], object)[np.asarray(v[0])] if isinstance(v, tuple) else np.asarray(v))
    return [np.concatenate(o) for o in out]


def folds_of(path):
    fold = load(path, "fold")[0]
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in np.unique(fold)]


def auc(probability, y, classes):
    from sklearn.metrics import roc_auc_score
    if len(classes) == 2:
        return roc_auc_score(y == classes[1], probability[:, 1])
    return roc_auc_score(y, probability, multi_class="ovr", average="macro", labels=classes)


def check_auroc(m, probability, y, donor, classes):
    close("auroc", float(m["auroc"]), auc(probability, y, classes), 1e-6)
    one = {d: set(y[donor == d]) for d in np.unique(donor)}
    if all(len(v) == 1 for v in one.values()):
        mean = np.array([probability[donor == d].mean(0) for d in one])
        close("group_auroc", float(m["group_auroc"]), auc(mean, np.array([v.pop() for v in one.values()]), classes), 1e-6)
    else:
        assert "group_auroc" not in m


def classes(train, test, folds, predictions, metrics, label, standardize=0):
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    xa, ya = load(train, "x", label)
    xb, yb, donor = load(test, "x", label, "donor")
    xa, xb, ya, yb = xa.astype("f8"), xb.astype("f8"), ya.astype(str), yb.astype(str)
    steps = ([StandardScaler()] if standardize else []) + [LogisticRegression(solver="newton-cg", tol=1e-7, max_iter=10000)]
    grid = {"logisticregression__C": np.logspace(-6, 2, 10)}
    fit = GridSearchCV(make_pipeline(*steps), grid, scoring="balanced_accuracy", cv=folds_of(folds)).fit(xa, ya)
    print("mean balanced accuracy:", *np.round(fit.cv_results_["mean_test_score"], 4))
    m = probe.read_metrics(metrics)
    close("C", np.log(float(m["inverse_penalty"])), np.log(fit.best_params_["logisticregression__C"]), 1e-9)
    logit = load(predictions, "logit")[0].astype("f8")
    want = fit.decision_function(xb)
    if want.ndim == 1:
        want = np.stack([0 * want, want], 1)
    close("logits", logit - logit.mean(1, keepdims=True), want - want.mean(1, keepdims=True), 1e-2)
    guess = fit.predict(xb)
    from sklearn import metrics as M
    close("balanced_accuracy", float(m["balanced_accuracy"]), M.balanced_accuracy_score(yb, guess), 1e-12)
    close("macro_f1", float(m["macro_f1"]), M.f1_score(yb, guess, average="macro"), 1e-12)
    check_auroc(m, fit.predict_proba(xb), yb, donor, list(fit.classes_))


def auroc(predictions, metrics, label):
    from scipy.special import softmax
    logit, y, donor = load(predictions, "logit", label, "donor")
    check_auroc(probe.read_metrics(metrics), softmax(logit.astype("f8"), 1), y.astype(str), donor,
                list(scstream.read(predictions).header["labels"]))


def target(train, test, folds, predictions, metrics, standardize=0, alpha=0.0):
    from scipy.stats import spearmanr
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    xa, ya, da = load(train, "x", "age", "donor")
    xb, yb, db = load(test, "x", "age", "donor")
    xa, xb = xa.astype("f8")[~np.isnan(ya)], xb.astype("f8")[~np.isnan(yb)]
    da, db, ya, yb = da[~np.isnan(ya)], db[~np.isnan(yb)], ya[~np.isnan(ya)], yb[~np.isnan(yb)]
    m = probe.read_metrics(metrics)
    pipe = make_pipeline(*([StandardScaler()] if standardize else []), Ridge(alpha=alpha or 1.0, solver="svd"))
    if not alpha:
        cv = folds_of(folds)
        groups = {frozenset(t) for _, t in GroupKFold(len(cv)).split(xa, groups=da)}
        assert groups == {frozenset(t) for _, t in cv}, "other folds than GroupKFold"
        pipe = GridSearchCV(pipe, {"ridge__alpha": np.logspace(0, 8, 20)}, scoring="neg_mean_squared_error", cv=cv)
    want = pipe.fit(xa, ya).predict(xb)
    if not alpha:
        print("mean squared error:", *np.round(-pipe.cv_results_["mean_test_score"], 2))
        close("alpha", float(m["penalty"]) / pipe.best_params_["ridge__alpha"], 1, 1e-9)
    got = load(predictions, "expected")[0]
    close("expected", got, want, 1e-6)
    close("spearman", float(m["spearman"]), spearmanr(want, yb)[0], 1e-6)
    donors = np.unique(db)
    close("group_spearman", float(m["group_spearman"]),
          spearmanr([want[db == d].mean() for d in donors], [yb[db == d].mean() for d in donors])[0], 1e-6)
    close("mse", float(m["mse"]), ((want - yb) ** 2).mean(), 1e-6 * yb.var())
    close("r2", float(m["r2"]), 1 - ((want - yb) ** 2).mean() / yb.var(), 1e-6)


def rank(embeddings, metrics):
    x = load(embeddings, "x")[0].astype("f8")
    m = probe.read_metrics(metrics)
    for key, v in (("", x), ("_centred", x - x.mean(0))):
        s = np.linalg.svd(v, compute_uv=False)
        p = s[s > 0] / s.sum()
        close("entropy" + key, float(m["entropy" + key]), -(p * np.log(p)).sum(), 1e-9)
        close("effective_rank" + key, float(m["effective_rank" + key]), np.exp(-(p * np.log(p)).sum()), 1e-8)


def counts(out, cells=230, genes=40, seed=1, what=""):
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.3, 2, genes)
    count = rng.poisson(rate, (cells, genes))
    masked = [np.sort(rng.choice(genes, rng.integers(0, 12), replace=False)) for _ in range(cells)]
    if what == "constant":
        count[:] = 1
    library = count.sum(1)
    lists = np.concatenate(masked)
    row = np.repeat(np.arange(cells), [len(m) for m in masked])
    expected = (rate[lists] * rng.uniform(0.5, 2, len(lists))).round(1).astype("f4")         # some are equal
    if what == "nan":
        expected[len(expected) // 2] = np.nan
    if what == "library":
        library[20:40] = count[20:40] = 0
    header = {"kind": "prediction", "provenance": [],
              "columns": [{"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "library", "type": "u64", "shape": "scalar"},
                          {"name": "gene", "type": "u16", "shape": "ragged", "group": "gene"},
                          {"name": "count", "type": "u32", "shape": "ragged", "group": "gene"},
                          {"name": "expected", "type": "f32", "shape": "ragged", "group": "gene"}],
              "vocab": {"id": ["ENSG%d" % i for i in range(genes)], "symbol": [""] * genes, "median": [None] * genes}}
    offset = np.concatenate([[0], np.cumsum([len(m) for m in masked])])

    def lists_of(v, a, b):
        return offset[a:b + 1] - offset[a], v[offset[a]:offset[b]]
    blocks = [{"cell": np.arange(a, min(a + 100, cells)), "library": library[a:a + 100], "gene": lists_of(lists, a, min(a + 100, cells)),
               "count": lists_of(count[row, lists], a, min(a + 100, cells)), "expected": lists_of(expected, a, min(a + 100, cells))}
              for a in range(0, cells, 100)]
    scstream.write(out, header, blocks)


def reconstruction(path, metrics):
    from scipy.stats import pearsonr, spearmanr
    r, rho, cells = [], [], 0
    for b in scstream.read(path):
        for i in range(len(b["cell"])):
            at = slice(*b["count"][0][i:i + 2])
            x = np.log1p(1e4 * np.asarray(b["expected"][1][at], "f8") / b["library"][i])
            y = np.log1p(1e4 * np.asarray(b["count"][1][at], "f8") / b["library"][i])
            cells += 1
            if len(x) > 1 and np.ptp(x) > 0 and np.ptp(y) > 0:
                r.append(pearsonr(x, y)[0])
                rho.append(spearmanr(x, y)[0])
    m = probe.read_metrics(metrics)
    close("undefined", float(m["undefined"]), cells - len(r), 0)
    for key, v in (("pearson", r), ("spearman", rho)):
        close(key, float(m[key]), np.mean(v), 1e-9)
        close(key + "_sd", float(m[key + "_sd"]), np.std(v, ddof=1), 1e-9)


def bootstrap(predictions, metrics, replicates, group=0):
    from scipy import stats
    from sklearn.metrics import f1_score
    logit, y, donor = load(predictions, "logit", "cell_type", "donor")
    labels = np.array(scstream.read(predictions).header["labels"])
    y, guess = y.astype(str), labels[logit.argmax(1)]
    rows = [line.rstrip("\n").split("\t") for line in open(replicates)]
    value = np.array(rows[1:], float)[:, 1:]
    m = probe.read_metrics(metrics)
    for i, key in enumerate(rows[0][1:]):
        close(key + "_low", float(m[key + "_low"]), max(0, np.quantile(value[:, i], 0.025)), 1e-12)
        close(key + "_high", float(m[key + "_high"]), min(1, np.quantile(value[:, i], 0.975)), 1e-12)
    units = [np.flatnonzero(donor == d) for d in np.unique(donor)] if group else [np.array([i]) for i in range(len(y))]
    close("units", float(m["bootstrap_units"]), len(units), 0)
    rng = np.random.default_rng(1)
    draws = [np.arange(len(y))] + [np.concatenate([units[u] for u in rng.integers(0, len(units), len(units))]) for _ in range(600)]
    want = np.array([[(y[d] == guess[d]).mean(), f1_score(y[d], guess[d], average="macro", zero_division=0)] for d in draws])
    if group:  # draws of few groups vary too little
        p = np.array([len(u) for u in units]) / len(y)
        q = p ** 2 / (1 - p)
        df = 1 / ((p ** 2).sum() + q.sum() ** 2 - (q ** 2).sum())
        want = want[0] + stats.t.ppf(0.975, df) / stats.norm.ppf(0.975) * len(p) / (len(p) - 1) * (want - want[0])
    want = want[1:]
    for i, j in ((0, 0), (2, 1)):
        close("mean", value[:, i].mean(), want[:, j].mean(), 5 * want[:, j].std() / 600 ** 0.5)
        close("sd", value[:, i].std() / want[:, j].std(), 1, 0.15)


def ranks(path):
    from scipy.stats import rankdata
    rows = [line.rstrip("\n").split("\t") for line in open(path)][1:]
    v = np.array([[float(x) for x in r[1:]] for r in rows])
    close("score", v[:, 0], v[:, 2:].mean(1), 1e-12)
    close("rank", v[:, 1], np.mean([rankdata(-c, method="min") for c in v[:, 2:].T], 0), 1e-12)


def other(path, out):
    s = scstream.read(path)
    blocks = list(s)
    V = len(s.header["vocab"]["id"])
    header = dict(s.header, vocab={k: v[::-1] for k, v in s.header["vocab"].items() if isinstance(v, list)})
    for i in range(3):
        header["vocab"]["id"][i * 7] = "unknown%d" % i
    for b in blocks:
        offset, gene = b["gene"]
        order = np.concatenate([np.arange(y - 1, x - 1, -1) for x, y in zip(offset[:-1], offset[1:])]).astype(int)      # ids still increase
        b["gene"] = offset, (V - 1 - np.asarray(gene)[order]).astype(np.asarray(gene).dtype)
        b["count"] = offset, np.asarray(b["count"][1])[order]
    scstream.write(out, header, blocks)


def log_normalised(path):
    s = scstream.read(path)
    rows = []
    for b in s:
        offset, gene = b["gene"]
        for i in range(len(b["cell"])):
            x = np.zeros(len(s.header["vocab"]["id"]))
            at = slice(offset[i], offset[i + 1])
            x[gene[at]] = np.log1p(1e4 * np.asarray(b["count"][1][at], "f8") / b["n_counts"][i])
            rows.append(x)
    return np.array(rows), list(s.header["vocab"]["id"])


def expression(fit, path, out, genes, components=0):
    from sklearn.decomposition import PCA
    x, names = log_normalised(fit)
    best = np.sort(np.argsort(-x.var(0), kind="stable")[:genes or len(names)])
    best = best[x[:, best].var(0) > 0]
    y, found = log_normalised(path)
    y = np.stack([y[:, found.index(names[g])] if names[g] in found else np.zeros(len(y)) for g in best], 1)
    got = load(out, "x")[0].astype("f8")
    if components:
        pca = PCA(components, svd_solver="full").fit(x[:, best])
        y = pca.transform(y)
        w = pca.components_
        y *= np.sign(w[np.arange(components), np.abs(w).argmax(1)])
    close("x", got, y, 1e-6 * np.abs(y).max())


if __name__ == "__main__":
    plain = [a for a in sys.argv[2:] if "=" not in a]
    named = dict(a.split("=", 1) for a in sys.argv[2:] if "=" in a)
    globals()[sys.argv[1]](*plain, **{k: v if k == "what" else float(v) if k == "alpha" else int(v) for k, v in named.items()})
