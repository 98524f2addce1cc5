#!/usr/bin/env python3
"""ctaprobe transfer next to CellTypist, SingleR, scikit-learn and scANVI when the new cells are of another study:    make bench-transfer-pairs FOLDER=data

    transfer_pairs.py run BIN FOLDER OUT     writes OUT/pairs.tsv, a row for each pair and method, from files of FOLDER; goes on where it was stopped
    transfer_pairs.py pairs OUT/pairs.tsv    a line for each pair
    transfer_pairs.py means OUT/pairs.tsv    means over pairs

All methods get the same cells and all genes that the pair shares; scikit-learn and scANVI the 2,000 of them that vary most. Cells of the query whose label has no
common name are left out; those of the reference stay, as types of their own. Macro F1 is over the types of the query.
"""
import os
import sys
import time
import warnings

from transfer import COVERAGE, read_tsv, scores_of, tool

COLUMNS = ("pair", "method", "accuracy", "macro_f1", "ece", "coverage", "set_size", "known_called_unknown", "promised", "seconds")
PBMC = {"CD4 T cells": "CD4 T", "CD8 T cells": "CD8 T", "NK cells": "NK", "B cells": "B", "CD14+ Monocytes": "MNP", "FCGR3A+ Monocytes": "MNP",
        "Dendritic cells": "MNP"}
PBMC4 = {"T_CD4": "CD4 T", "T_CD8": "CD8 T", "NK": "NK", "B": "B", "MNP": "MNP"}
SORTED = {"CD19+ B": "B", "CD56+ NK": "NK", "CD14+ Monocyte": "MNP", "CD8+ Cytotoxic T": "T", "CD4+ T Helper2": "T", "CD4+/CD45RO+ Memory": "T",
          "CD8+/CD45RA+ Naive Cytotoxic": "T", "CD4+/CD25 T Reg": "T", "CD4+/CD45RA+/CD25- Naive T": "T"}
LUNG = {"T lymphocytes": "T", "B lymphocytes": "B", "NK cells": "NK", "Myeloid cells": "MNP"}
MARROW = {"T": "T", "CTL": "T", "NK": "NK", "B": "B", "Mono": "MNP", "cDC": "MNP"}
WHOLE, WHOLE4 = ({k: "T" if v[-1] == "T" else v for k, v in names.items()} for names in (PBMC, PBMC4))  # T cells are one type
SAME = {k: k for k in (*PBMC, "Megakaryocytes")}
LINES = {k: k for k in ("H1975", "H2228", "HCC827")}  # the lines of both platforms
# file, column of donors, and where only a part of the cells is meant, column and value
FILES = {"Kang": ("pbmc_kang2018_1287genes", "donor"), "Kang (9,015 genes)": ("pbmc_kang2018_9015genes_labelled", "donor"), "PBMC 3k": ("pbmc3k_10x", ""),
         "PBMC 4k": ("pbmc4k_10x_soupx", ""), "sorted PBMC": ("pbmc_facs_zheng2017", ""), "lung": ("lung_luad_kim2020_2000genes", "sample"),
         "bone marrow": ("aml_bonemarrow_vangalen2019", "donor"), "lines, CEL-seq2": ("lung_adenocarcinoma_lines_tian2019", "batch", "technology", "CEL-seq2"),
         "lines, Drop-seq": ("lung_adenocarcinoma_lines_tian2019", "", "technology", "Drop-seq")}
PAIRS = (("Kang", "PBMC 3k", SAME, SAME), ("PBMC 3k", "Kang (9,015 genes)", SAME, SAME), ("Kang", "PBMC 4k", PBMC, PBMC4), ("PBMC 3k", "PBMC 4k", PBMC, PBMC4),
         ("PBMC 4k", "PBMC 3k", PBMC4, PBMC), ("lung", "PBMC 3k", LUNG, WHOLE), ("lung", "Kang", LUNG, WHOLE),
         ("lines, CEL-seq2", "lines, Drop-seq", LINES, LINES), ("lines, Drop-seq", "lines, CEL-seq2", LINES, LINES), ("sorted PBMC", "PBMC 3k", SORTED, WHOLE),
         ("sorted PBMC", "PBMC 4k", SORTED, WHOLE4), ("PBMC 4k", "Kang (9,015 genes)", PBMC4, PBMC), ("bone marrow", "PBMC 3k", MARROW, WHOLE),
         ("PBMC 3k", "bone marrow", WHOLE, MARROW))
REFERENCE, NEW = 3000, 1500  # at most so many cells


def log_normalised(counts):
    import numpy as np
    import scipy.sparse as sp
    x = sp.csr_matrix(counts).astype("f4")
    x = (sp.diags((1e4 / np.asarray(x.sum(1)).ravel()).astype("f4")) @ x).tocsr()
    x.data = np.log1p(x.data)
    return x


def varying(x):
    """The columns that vary most, at most 2,000."""
    import numpy as np
    mean = np.asarray(x.mean(0)).ravel()
    return np.sort(np.argsort(mean ** 2 - np.asarray(x.multiply(x).mean(0)).ravel())[:2000])


def prepare(folder, out, reference, new, *names):
    """out/ref.h5ad and out/new.h5ad: cells of both with their common types, of the genes that both have, by Ensembl id. Log-normalised counts and types of both."""
    import anndata
    import numpy as np
    sets = []
    for name, common, most, is_new in (reference, names[0], REFERENCE, 0), (new, names[1], NEW, 1):
        file, _, *where = FILES[name]
        a = anndata.read_h5ad(f"{folder}/{file}.h5ad")
        a = a[a.obs[where[0]] == where[1]] if where else a
        a.var_names = a.var.ensembl_id.astype(str)
        a = a[:, a.var_names.str.startswith("ENSG") & ~a.var_names.duplicated()]
        a.obs["type"] = [common.get(t, None if is_new else t) for t in a.obs.cell_type.astype(str)]
        a = a[a.obs.type.notna() & a.obs.type.map(a.obs.type.value_counts()).gt(1)]
        sets.append(a[np.sort(np.random.default_rng(1).permutation(a.n_obs)[:most])])
    shared = sets[0].var_names[sets[0].var_names.isin(sets[1].var_names)]
    parts = []
    for part, a, name in zip(("ref", "new"), sets, (reference, new)):
        a = anndata.AnnData(a[:, shared].X.copy(), a.obs[["type"] + ([FILES[name][1]] if FILES[name][1] else [])].copy(), None)
        a.var_names = shared
        a = a[np.asarray(a.X.sum(1)).ravel() > 0].copy()
        a.write_h5ad(f"{out}/{part}.h5ad")
        parts.append((log_normalised(a.X), a.obs.type.astype(str).to_numpy()))
    return parts, shared


def scores(classes, probability, truth, inside=None):
    """scores_of, but F1 of the types that the query has."""
    import numpy as np
    from sklearn.metrics import f1_score
    out = scores_of(classes, probability, truth)
    guess = np.asarray(classes).astype(str)[probability.argmax(1)]
    out["macro_f1"] = f1_score(truth, guess, labels=sorted(set(truth)), average="macro", zero_division=0)
    if inside is not None:
        of = {c: i for i, c in enumerate(classes)}
        out["coverage"] = np.mean([row[of[t]] for row, t in zip(inside, truth) if t in of])
        out["set_size"] = inside.sum(1).mean()
    return out


def ours(out, group):
    import numpy as np
    for part in "ref", "new":
        tool("h5tok", "-q", f"{out}/{part}.h5ad", "-o", f"{out}/{part}.counts")
    seconds = tool("ctaprobe", "transfer", "-q", "--unknown", "0.05", "--reference", f"{out}/ref.counts", "--label", "type", *(["--group", group] if group else []), "--coverage", COVERAGE,
                   "--report", f"{out}/report", "-o", f"{out}/new.pred", f"{out}/new.counts")[1]
    report = dict(line.split("\t")[:2] for line in open(f"{out}/report").read().splitlines())
    shown = read_tsv(tool("scview", "-q", "-c", "type,logit,in_set,assigned", f"{out}/new.pred")[0])[1]
    classes = [name.partition(":")[2] for name in report if name.startswith("held_out_coverage:")]
    probability = np.exp(np.array([[float(v) for v in r[1].split()] for r in shown]))
    inside = np.array([[int(v) for v in r[2].split()] for r in shown])
    found = scores(classes, probability, np.array([r[0] for r in shown]), inside)
    found["known_called_unknown"] = np.mean([r[3] == "unknown" for r in shown])
    found["promised"] = int(float(report["promise:coverage"]))
    return found, seconds


def logistic_regression(parts, genes):
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler
    (x, y), (q, _) = parts
    top = varying(x)
    start = time.process_time()
    scale = StandardScaler().fit(x[:, top].toarray())
    fit = LogisticRegression(max_iter=1000).fit(scale.transform(x[:, top].toarray()), y)
    return fit.classes_, fit.predict_proba(scale.transform(q[:, top].toarray())), time.process_time() - start


def nearest(parts, genes):
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsClassifier
    (x, y), (q, _) = parts
    top = varying(x)
    start = time.process_time()
    pca = PCA(50, random_state=0).fit(x[:, top].toarray())
    fit = KNeighborsClassifier(15).fit(pca.transform(x[:, top].toarray()), y)
    return fit.classes_, fit.predict_proba(pca.transform(q[:, top].toarray())), time.process_time() - start


def celltypist(parts, genes):
    import anndata
    import celltypist
    import pandas as pd
    start = time.process_time()
    reference, new = (anndata.AnnData(a, pd.DataFrame({"type": t}), pd.DataFrame(index=genes)) for a, t in parts)
    model = celltypist.train(reference, labels="type", check_expression=False, n_jobs=1)
    found = celltypist.annotate(new, model=model).probability_matrix
    return found.columns, found.to_numpy(), time.process_time() - start


def single_r(parts, genes):
    """With markers by Cohen's d, for references of single cells; by AUC, its macro F1 is lower. Its scores are no probabilities."""
    import numpy as np
    import singler
    (x, y), (q, _) = parts
    start = time.process_time()
    found = singler.annotate_single(q.T.tocsr(), x.T.tocsr(), list(y), list(genes), list(genes), train_args={"marker_method": "cohens_d"}, num_threads=1)
    classes = np.array(sorted(set(y)))
    return classes, (np.array(found["best"], str)[:, None] == classes).astype(float), time.process_time() - start


def scanvi(python, out):
    import numpy as np
    tool(python, os.path.join(os.path.dirname(__file__), "transfer_scanvi.py"), f"{out}/ref.h5ad", f"{out}/new.h5ad", f"{out}/scanvi.npz")
    found = np.load(f"{out}/scanvi.npz")
    return found["classes"], found["probability"], float(found["seconds"])


THEIRS = {"scikit-learn, logistic regression": logistic_regression, "scikit-learn, 15 nearest": nearest, "CellTypist": celltypist, "SingleR": single_r}


def run(bin_dir, folder, out, scanvi_python=""):
    """With scanvi_python, a Python with scvi-tools, scANVI too."""
    warnings.filterwarnings("ignore")
    os.environ["PATH"] = os.path.abspath(bin_dir) + ":" + os.environ["PATH"]
    os.makedirs(out, exist_ok=True)
    path = out + "/pairs.tsv"
    if not os.path.exists(path):
        print(*COLUMNS, sep="\t", file=open(path, "w"))
    done = {tuple(r[:2]) for r in read_tsv(open(path).read())[1]}
    plan = [(*p, m) for m in (("corrmask", *THEIRS), ("scANVI",) if scanvi_python else ()) for p in PAIRS]  # the slow one last
    for reference, new, *names, methods in plan:
        pair = f"{reference} to {new}"
        todo = [m for m in methods if (pair, m) not in done]
        parts, genes = prepare(folder, out, reference, new, *names) if todo else (None, None)
        for method in todo:
            if method == "corrmask":
                found, seconds = ours(out, FILES[reference][1])
            else:
                *predicted, seconds = scanvi(scanvi_python, out) if method == "scANVI" else THEIRS[method](parts, genes)
                found = scores(*predicted, parts[1][1])
            columns = COLUMNS[2:4] if method == "SingleR" else COLUMNS[2:-1]
            with open(path, "a") as f:
                print(pair, method, *("%.4f" % found[k] if k in found and k in columns else "NA" for k in COLUMNS[2:-1]), "%.1f" % seconds, sep="\t", file=f)
            print(pair, method, "%.1f s" % seconds, flush=True)


def rows_of(path):
    head, rows = read_tsv(open(path).read())
    return [dict(zip(head, r)) for r in rows]


def pairs(path):
    """A line for each pair: macro F1 of all methods, and what corrmask says and does."""
    rows = rows_of(path)
    methods = list(dict.fromkeys(r["method"] for r in rows))
    print("pair", *methods, *(c for c in COLUMNS[4:-1] if c != "set_size"), sep="\t")
    for pair in dict.fromkeys(r["pair"] for r in rows):
        mine = {r["method"]: r for r in rows if r["pair"] == pair}
        print(pair, *(mine[m]["macro_f1"] if m in mine else "NA" for m in methods), *(mine["corrmask"][c] for c in COLUMNS[4:-1] if c != "set_size"), sep="\t")


def interval(differences, times=10000):
    """The 95 % interval of their mean by the bootstrap over pairs."""
    import random
    draw = random.Random(1)
    drawn = sorted(sum(draw.choices(differences, k=len(differences))) / len(differences) for _ in range(times))
    return drawn[times // 40], drawn[-1 - times // 40]


def means(path):
    """Means over pairs; how much higher corrmask's macro F1 is, with its interval. The pairs share sets, so the intervals are too narrow."""
    rows = rows_of(path)
    own = {r["pair"]: float(r["macro_f1"]) for r in rows if r["method"] == "corrmask"}
    print("method", "pairs", *COLUMNS[2:], "corrmask_ahead", "lower", "upper", sep="\t")
    for m in dict.fromkeys(r["method"] for r in rows):
        mine = [r for r in rows if r["method"] == m]
        values = [[float(r[k]) for r in mine if r[k] != "NA"] for k in COLUMNS[2:]]
        ahead = [own[r["pair"]] - float(r["macro_f1"]) for r in mine]
        ahead = [sum(ahead) / len(ahead), *interval(ahead)] if m != "corrmask" else []
        print(m, len(mine), *("%.4f" % (sum(v) / len(v)) if v else "NA" for v in values), *("%.4f" % v for v in ahead), *(["NA"] * (3 - len(ahead))), sep="\t")


if __name__ == "__main__":
    {"run": run, "pairs": pairs, "means": means}[sys.argv[1]](*sys.argv[2:])
