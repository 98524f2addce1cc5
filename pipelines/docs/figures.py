"""Figures of docs/ that are of no experiment: speed."""
from plot import Arm, arms

WORKS = (("raw", "Raw counts"), ("tokens", "Geneformer's tokens"), ("masked", "Masked batches in PyTorch"))


def docs_speed(t):
    rows = []
    for r in t("speed.tsv"):
        seconds, _, note = r["other_seconds"].partition(" ")
        times = float(seconds) / r.number("corrmask")
        rows.append(Arm(f"{r['job']}: {r['corrmask']} s; {r['other']} {seconds} s {note}", times, look="m-corrmask", words=f"{times:.{times < 9.95:d}f}"))
    return "CPU seconds of the same job", [
        arms("CPU time of other programs as a multiple of corrmask's: same job, one thread", rows,
             "times the CPU seconds of corrmask", log=True, line=1, x_range=(0.9, None),
             note="Label transfer: simulated cells. scib-metrics: with the time in which JAX compiles.")]


def docs_loaders(t):
    return "Cells a CPU second, by loader", [
        arms(title, [Arm(r["loader"], r.number("cells a CPU second"), look="m-corrmask" if r["loader"].startswith("corrmask") else "c6",
                         words=f"{r.number('cells a CPU second'):,.0f}") for r in t("loaders.tsv") if r["work"] == work], "cells a CPU second", bars=True)
        for work, title in WORKS]
