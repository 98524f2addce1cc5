"""Figures of docs/ that are of no experiment: speed."""
from plot import Arm, arms

WORKS = (("raw", "Raw counts: annbatch is fastest"), ("tokens", "Geneformer's tokens: corrmask is fastest"),
         ("masked", "Masked batches in PyTorch: corrmask is fastest"))
TABLE_ONLY = ("long", "masks")


def docs_speed(t):
    rows = []
    for r in t("speed.tsv"):
        if r["work"] in TABLE_ONLY:
            continue
        times, note = r.number("other_seconds") / r.number("corrmask"), "" if r["note"] == "NA" else f" ({r['note']})"
        rows.append(Arm(f"{r['job']}: {r['corrmask']} s; {r['other']} {r['other_seconds']} s{note}", times, look="m-corrmask", words=f"{times:.{times < 9.95:d}f}"))
    less = sum(r.value >= 1.05 for r in rows)
    return "CPU seconds of the other program and of corrmask", [
        arms(f"corrmask took less CPU time in {'each' if less == len(rows) else less} of these {len(rows)} jobs", rows,
             "CPU seconds of the other program / corrmask's; one thread", log=True, line=1, x_range=(0.9, None),
             note="Label transfer: simulated cells. scib-metrics: with the time in which JAX compiles.")]


def docs_loaders(t):
    return "Cells per CPU second, by loader", [
        arms(title, [Arm(r["loader"], r.number("cells a CPU second"), look="m-corrmask" if r["loader"].startswith("corrmask") else "c6",
                         words=f"{r.number('cells a CPU second'):,.0f}") for r in t("loaders.tsv") if r["work"] == work], "cells per CPU second", bars=True)
        for work, title in WORKS]
