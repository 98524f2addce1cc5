#!/usr/bin/env python3
"""ctaprobe transfer beside CellTypist by the number of reference cells, simulated:    make bench-transfer-size SIZES="5000 50000 200000"

    transfer_size.py run BIN FOLDER SIZE...      a row for each size and program; the new cells are of other donors
    transfer_size.py celltypist REF.h5ad NEW.h5ad

Seconds are of the processor, on one thread: ours with reading, calibration and writing, CellTypist's without imports, reading and calibration. Memory is the peak of the process.
"""
import os
import subprocess
import sys
import time

from transfer import tool

SIMULATED = "--genes 3000 --modules 60 --types 12 --donors 20 --separation .3 --seed 1".split()
NEW = 10000  # cells at most


def measured(*command):
    """What it prints, CPU seconds, peak MB."""
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = child.stdout.read().decode()
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{command}: status {status}")
    return out, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def run(bin_dir, folder, *sizes):
    os.environ["PATH"] = os.path.abspath(bin_dir) + ":" + os.environ["PATH"]
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name)
    print("reference_cells", "program", "seconds", "megabytes", "macro_f1", sep="\t")
    for size in map(int, sizes):
        tool("scsim", "-q", "--cells", size * 5 // 4, *SIMULATED, "-o", at("all.counts"))
        for part, name in ("train", "ref"), ("test", "new"):
            most = ["-n", NEW] if part == "test" and size > 4 * NEW else []
            tool("scsample", "-q", "--test-fraction", .2, "--group", "donor", "--part", part, "--seed", 1, "-o", at("part.counts"), at("all.counts"))
            tool("scsample", "-q", *most, "-o", at(name + ".counts"), at("part.counts"))
            tool("scview", "-q", "-O", "h5ad", "-o", at(name + ".h5ad"), at(name + ".counts"))
        cells = tool("scview", "-q", "-c", "cell", at("ref.counts"))[0].count("\n") - 1
        _, seconds, memory = measured("ctaprobe", "transfer", "-q", "--reference", at("ref.counts"), "--label", "cell_type", "--group", "donor",
                                      "-o", at("new.pred"), at("new.counts"))
        f1 = dict(line.split("\t") for line in tool("ctaprobe", "score", "-q", "--label", "cell_type", at("new.pred"))[0].splitlines())["macro_f1"]
        print(cells, "ctaprobe transfer", "%.1f" % seconds, "%.0f" % memory, "%.3f" % float(f1), sep="\t", flush=True)
        out, _, memory = measured(sys.executable, __file__, "celltypist", at("ref.h5ad"), at("new.h5ad"))
        seconds, f1 = out.splitlines()[-1].split()
        print(cells, "CellTypist", "%.1f" % float(seconds), "%.0f" % memory, "%.3f" % float(f1), sep="\t", flush=True)


def celltypist(reference, new):
    import anndata
    import celltypist
    import numpy as np
    from sklearn.metrics import f1_score
    parts = [anndata.read_h5ad(f) for f in (reference, new)]
    start = time.process_time()
    for a in parts:
        a.X = a.X.astype("f4")
        a.X.data *= np.repeat(1e4 / np.asarray(a.X.sum(1)).ravel(), np.diff(a.X.indptr)).astype("f4")
        np.log1p(a.X.data, out=a.X.data)
    model = celltypist.train(parts[0], labels="cell_type", check_expression=False, n_jobs=1)
    found = celltypist.annotate(parts[1], model=model).predicted_labels.predicted_labels
    print("%.2f" % (time.process_time() - start), f1_score(parts[1].obs.cell_type.astype(str), found.astype(str), average="macro", zero_division=0))


if __name__ == "__main__":
    {"run": run, "celltypist": celltypist}[sys.argv[1]](*sys.argv[2:])
