#!/usr/bin/env python3
"""Are the cells of a type that the reference lacks in the first clusters of ctaprobe transfer --unlike?    make bench-transfer-unlike FOLDER=data

    transfer_unlike.py BIN FOLDER [OUT.tsv]    a row for each type that is left out of a reference: reference, new cells, type; its new cells;
                                               AUROC of a cell by the list, and by the probability and the likeness of its prediction; the share
                                               found at 5 % false alarms by each; without a type: the same sets with nothing left out, and the scores
                                               of the first cluster

Sets and common names are those of transfer_pairs.py; where both sets are one, a quarter of its donors has the new cells.
"""
import os
import sys
import tempfile
import warnings

import numpy as np
from sklearn.metrics import roc_auc_score

from transfer import read_tsv, tool
from transfer_pairs import FILES, PAIRS, prepare

BETWEEN = {("Kang", "PBMC 3k"): ("B cells", "NK cells", "CD14+ Monocytes", "CD8 T cells", "FCGR3A+ Monocytes"), ("Kang", "PBMC 4k"): ("B", "MNP", "NK"),
           ("PBMC 3k", "PBMC 4k"): ("B", "NK", "MNP"), ("PBMC 4k", "PBMC 3k"): ("B", "MNP"), ("PBMC 3k", "Kang (9,015 genes)"): ("B cells", "CD14+ Monocytes"),
           ("lung", "PBMC 3k"): ("B", "NK", "MNP"), ("sorted PBMC", "PBMC 3k"): ("B", "NK", "MNP"), ("bone marrow", "PBMC 3k"): ("T", "B", "MNP"),
           ("lines, CEL-seq2", "lines, Drop-seq"): ("H1975", "HCC827")}
WITHIN = {"lung": ("T lymphocytes", "B lymphocytes", "NK cells", "MAST cells", "Fibroblasts", "Myeloid cells"),
          "Kang": ("B cells", "NK cells", "CD14+ Monocytes", "Dendritic cells"), "bone marrow": ("T", "B", "Plasma", "NK", "lateEry", "Mono")}
SCORES = ("list", "probability", "likeness")


def split(folder, out, name):
    import anndata
    file, column = FILES[name]
    a = anndata.read_h5ad(f"{folder}/{file}.h5ad")
    a.var_names = a.var.ensembl_id.astype(str)
    a = a[:, a.var_names.str.startswith("ENSG") & ~a.var_names.duplicated()]
    a = a[np.sort(np.random.default_rng(1).permutation(a.n_obs)[:4500])]
    group = a.obs[column].astype(str).to_numpy()
    donors = np.random.default_rng(2).permutation(np.unique(group))
    new = np.isin(group, donors[:len(donors) // 4])
    a.obs["type"] = a.obs.cell_type.astype(str)
    for part, rows in ("ref", ~new), ("new", new):
        b = anndata.AnnData(a[rows].X.copy(), a.obs[rows][["type", column]].copy(), None)
        b.var_names = a.var_names
        b[np.asarray(b.X.sum(1)).ravel() > 0].copy().write_h5ad(f"{out}/{part}.h5ad")


def measure(out, reference, type_):
    group = FILES[reference][1]
    tool("scsample", "-q", *(["--where", f"type!={type_}"] if type_ else []), "--min-class", "type:2", "-o", f"{out}/left.counts", f"{out}/ref.counts")
    tool("ctaprobe", "transfer", "-q", "--reference", f"{out}/left.counts", "--label", "type", *(["--group", group] if group else []), "--unlike", f"{out}/unlike.tsv",
         "-o", f"{out}/new.pred", f"{out}/new.counts")
    first = dict(zip(*read_tsv(open(f"{out}/unlike.tsv").read())[0:1], read_tsv(open(f"{out}/unlike.tsv").read())[1][0]))
    cells = read_tsv(tool("scview", "-q", "-c", "type,unlike,probability,likeness", f"{out}/new.pred")[0])[1]
    new = np.array([c[0] == type_ for c in cells])
    scores = [-np.array([float(c[i]) for c in cells]) for i in (1, 2, 3)]
    auroc = [roc_auc_score(new, s) if type_ else np.nan for s in scores]
    found = [np.mean(s[new] > np.quantile(s[~new], .95)) if type_ else np.nan for s in scores]
    return [new.sum(), *auroc, *found, *(float(first[c]) for c in ("distance", "level", "outside"))]


def main():
    os.environ["PATH"] = os.path.abspath(sys.argv[1]) + ":" + os.environ["PATH"]
    warnings.filterwarnings("ignore")
    names = {(a, b): rest for a, b, *rest in PAIRS}
    settings = [(a, b, t) for (a, b), types in BETWEEN.items() for t in (*types, "")] + [(a, a, t) for a, types in WITHIN.items() for t in (*types, "")]
    to = open(sys.argv[3], "w") if len(sys.argv) > 3 else sys.stdout
    print("reference", "new", "left_out", "cells", *SCORES, *(f"found_{s}" for s in SCORES), "distance", "level", "outside", sep="\t", file=to)
    rows, made = [], None
    with tempfile.TemporaryDirectory() as out:
        for reference, new, type_ in settings:
            if made != (reference, new):
                made = reference, new
                if reference == new:
                    split(sys.argv[2], out, reference)
                else:
                    prepare(sys.argv[2], out, reference, new, *names[made])
                for part in "ref", "new":
                    tool("h5tok", "-q", f"{out}/{part}.h5ad", "-o", f"{out}/{part}.counts")
            rows.append(measure(out, reference, type_))
            print(reference, new, type_ or "-", rows[-1][0], *(f"{v:.3f}" for v in rows[-1][1:]), sep="\t", file=to, flush=True)
    print("mean", "", "", "", *(f"{v:.3f}" for v in np.nanmean([r[1:7] for r in rows], 0)), "", "", "", sep="\t", file=to)


if __name__ == "__main__":
    main()
