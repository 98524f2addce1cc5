#!/usr/bin/env python3
"""ctaprobe transfer beside CellTypist and scikit-learn, on cells of donors that were held out:    make bench-transfer

    transfer.py run BIN FOLDER NAME=FILE.h5ad:GROUP:CELLS...    writes FOLDER/runs.tsv, a row for each run and method; goes on where it was stopped
    transfer.py table FOLDER/runs.tsv                           means over splits, and over left-out classes

All methods learn from the same cells, and all but the first (all genes) from the 2,000 genes whose log-normalised expression varies most among them. Seconds are of the
processor, on one thread: ours with reading and writing all streams and with the calibration, the others without imports, reading and calibration.
The sets of the others are the most probable classes whose probabilities sum to .9; their score for unknown cells is the largest probability.
"""
import collections
import os
import resource
import subprocess
import sys
import time
import warnings

SPLITS = (1, 2)
LEFT_OUT = 2          # classes, each left out of the reference of the first split
COVERAGE = .9
COLUMNS = ("data", "split", "left_out", "method", "accuracy", "macro_f1", "ece", "coverage", "set_size", "known_called_unknown", "novel_auroc", "seconds")


def tool(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return out, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def read_tsv(text):
    rows = [line.split("\t") for line in text.splitlines()]
    return rows[0], rows[1:]


# ---- ours ----

def ours(at, group):
    """method -> the scores that ctaprobe score prints, and seconds."""
    components = 0
    for part in "ref", "new":
        components += tool("screduce", "pca", "-k", 50, "--train", at + "ref.counts", "-o", f"{at}{part}.emb", f"{at}{part}.counts")[1]
    for method, kind, options, before in (("transfer, counts", "counts", (), 0), ("transfer, 50 components", "emb", (), components),
                                          ("transfer, 50 components, 15 nearest", "emb", ("--nearest", 15), components)):
        seconds = before + tool("ctaprobe", "transfer", "-q", "--unknown", "0.05", *options, "--reference", f"{at}ref.{kind}", "--label", "cell_type", "--group", group,
                                "--coverage", COVERAGE, "-o", at + "new.pred", f"{at}new.{kind}")[1]
        scores = dict(line.split("\t") for line in tool("ctaprobe", "score", "-q", "--label", "cell_type", at + "new.pred")[0].splitlines())
        yield method, scores, seconds


# ---- theirs ----

def scores_of(classes, probability, truth):
    """As ctaprobe score: the cells of classes that are not among `classes` count in accuracy and F1."""
    import numpy as np
    from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
    classes = np.asarray(classes).astype(str)
    best = probability.argmax(1)
    guess, sure = classes[best], probability.max(1)
    known = np.isin(truth, classes)
    bins = np.clip(np.ceil(sure * 10).astype(int) - 1, 0, 9)
    ece = sum(abs((guess == truth)[bins == b].mean() - sure[bins == b].mean()) * (bins == b).mean() for b in range(10) if (bins == b).any())
    order = np.argsort(-probability, 1)
    ranked = np.take_along_axis(probability, order, 1) / probability.sum(1, keepdims=True)
    size = (np.cumsum(ranked, 1) < COVERAGE).sum(1) + 1
    rank = (classes[order] == truth[:, None]).argmax(1)
    out = {"accuracy": accuracy_score(truth, guess), "macro_f1": f1_score(truth, guess, average="macro", zero_division=0), "ece": ece,
           "coverage": (rank < size)[known].mean(), "set_size": size[known].mean()}
    if not known.all():
        out["novel_auroc"] = roc_auc_score(~known, -sure)
    return out


def theirs(path, at, genes):
    import anndata
    import celltypist
    import numpy as np
    import pandas as pd
    import scipy.sparse as sp
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import StandardScaler
    a = anndata.read_h5ad(path)
    parts = {}
    for part in "ref", "new":
        names = [r[0] for r in read_tsv(tool("scview", "-q", "-c", "barcode", f"{at}{part}.counts")[0])[1]]
        b = a[names]
        x = sp.csr_matrix(b.X).astype("f4")
        x = sp.diags((1e4 / np.asarray(x.sum(1)).ravel()).astype("f4")) @ x
        x.data = np.log1p(x.data)
        parts[part] = x, b.obs.cell_type.astype(str).to_numpy()
    x, y = parts["ref"]
    mean = np.asarray(x.mean(0)).ravel()
    variance = np.asarray(x.multiply(x).mean(0)).ravel() - mean ** 2
    top = np.sort(np.argsort(-variance)[:genes])
    full = {p: v[0].tocsr() for p, v in parts.items()}
    x, q = parts["ref"][0][:, top].toarray(), parts["new"][0][:, top].toarray()
    truth = parts["new"][1]

    start = time.process_time()
    scale = StandardScaler().fit(x)
    fit = LogisticRegression(max_iter=1000).fit(scale.transform(x), y)
    probability = fit.predict_proba(scale.transform(q))
    yield "scikit-learn, logistic regression", scores_of(fit.classes_, probability, truth), time.process_time() - start

    start = time.process_time()
    pca = PCA(50, random_state=0).fit(x)
    fit = KNeighborsClassifier(15).fit(pca.transform(x), y)
    probability = fit.predict_proba(pca.transform(q))
    yield "scikit-learn, 15 nearest", scores_of(fit.classes_, probability, truth), time.process_time() - start

    # CellTypist wants to see the expression of all genes; its model learns from those of the others
    every = {p: anndata.AnnData(v, pd.DataFrame({"cell_type": parts[p][1]}), pd.DataFrame(index=a.var_names)) for p, v in full.items()}
    start = time.process_time()
    model = celltypist.train(every["ref"][:, top].copy(), labels="cell_type", check_expression=False, n_jobs=1)
    found = celltypist.annotate(every["new"], model=model).probability_matrix
    yield "CellTypist", scores_of(found.columns, found.to_numpy(), truth), time.process_time() - start


# ---- runs ----

def prepare(name, path, group, cells, at):
    counts = at + "all.counts"
    if not os.path.exists(counts):
        tool("h5tok", path, "-o", at + "file.counts")
        tool("scsample", "-q", *(["-n", cells] if int(cells) else []), "--where", "cell_type!=NA", "-o", counts, at + "file.counts")
    return counts


def split(counts, group, seed, left_out, at):
    for part, name in ("train", "ref"), ("test", "new"):
        without = ["--where", "cell_type!=" + left_out] if left_out and part == "train" else []
        tool("scsample", "-q", "--test-fraction", .25, "--group", group, "--part", part, "--seed", seed, "-o", at + "part.counts", counts)
        tool("scsample", "-q", *without, *(["--min-class", "cell_type:2"] if part == "train" else []), "-o", f"{at}{name}.counts", at + "part.counts")


def classes_in_both(at, group):
    count = {}
    for part in "ref", "new":
        rows = read_tsv(tool("scview", "-q", "-c", "cell_type," + group, f"{at}{part}.counts")[0])[1]
        count[part] = collections.Counter(r[0] for r in rows)
    return [c for c, n in count["new"].most_common() if n >= 20 and count["ref"][c] >= 20]


def run(bin_dir, folder, *sets):
    warnings.filterwarnings("ignore")
    os.environ["PATH"] = bin_dir + ":" + os.environ["PATH"]
    os.makedirs(folder, exist_ok=True)
    out = os.path.join(folder, "runs.tsv")
    done = set()
    if os.path.exists(out):
        done = {tuple(r[:3]) for r in read_tsv(open(out).read())[1]}
    else:
        print(*COLUMNS, sep="\t", file=open(out, "w"))
    for s in sets:
        name, _, rest = s.partition("=")
        path, group, cells = rest.rsplit(":", 2)
        at = os.path.join(folder, name + ".")
        counts = prepare(name, path, group, cells, at)
        split(counts, group, 1, "", at)
        # every other class by its number of cells, so that frequent and rare ones are left out
        plan = [(seed, "") for seed in SPLITS] + [(1, c) for c in classes_in_both(at, group)[::2][:LEFT_OUT]]
        for seed, left_out in plan:
            if (name, str(seed), left_out) in done:
                continue
            split(counts, group, seed, left_out, at)
            rows = [*ours(at, group), *theirs(path, at, 2000)]
            with open(out, "a") as f:
                for method, scores, seconds in rows:
                    values = [scores.get(k, "NA") for k in COLUMNS[4:-1]]
                    print(name, seed, left_out, method, *(v if isinstance(v, str) else "%.17g" % v for v in values), "%.3f" % seconds, sep="\t", file=f)
            print(name, seed, left_out, flush=True)


def table(path):
    head, rows = read_tsv(open(path).read())
    rows = [dict(zip(head, r)) for r in rows]
    methods = list(dict.fromkeys(r["method"] for r in rows))
    mean = lambda rows, k: sum(v) / len(v) if (v := [float(r[k]) for r in rows if r[k] != "NA"]) else None
    print("data", "method", *COLUMNS[4:], "splits", "classes", sep="\t")
    for data in dict.fromkeys(r["data"] for r in rows):
        for m in methods:
            mine = [r for r in rows if r["data"] == data and r["method"] == m]
            plain, novel = [r for r in mine if not r["left_out"]], [r for r in mine if r["left_out"]]
            values = [mean(novel if k == "novel_auroc" else plain, k) for k in COLUMNS[4:]]
            print(data, m, *("NA" if v is None else "%.4f" % v for v in values), len(plain), len(novel), sep="\t")


if __name__ == "__main__":
    {"run": run, "table": table}[sys.argv[1]](*sys.argv[2:])
