"""Figures of docs/ that are of no experiment: speed."""
from plot import Arm, arms


def docs_speed(t):
    rows = []
    for r in t("speed.tsv"):
        ours, theirs = r.number("corrmask"), float(r["other_seconds"].split()[0])
        rows.append(Arm(f"{r['job']}: {ours:g} s; {r['other']} {r['other_seconds'].replace(' (', ' s (') if '(' in r['other_seconds'] else r['other_seconds'] + ' s'}",
                        theirs / ours, look="m-corrmask", words=f"{theirs / ours:.2g}" if theirs < 9.95 * ours else f"{theirs / ours:.0f}"))
    return "CPU seconds of the same job", [
        arms("How many times less CPU time corrmask takes than another program for the same job, one thread", rows, "CPU seconds of the other program / those of corrmask",
             log=True, line=1, x_range=(0.9, None), note="Label transfer: simulated cells. scib-metrics: with the time in which JAX compiles.")]


def docs_loaders(t):
    rows = t("loaders.tsv")
    return "Cells a CPU second, by loader", [
        arms(title, [Arm(r["loader"], r.number("cells a CPU second"), look="m-corrmask" if r["loader"].startswith("corrmask") else "c6",
                         words=f"{r.number('cells a CPU second'):,.0f}") for r in rows if r["work"] == work], "cells a CPU second", bars=True)
        for work, title in (("raw", "Raw counts"), ("tokens", "Geneformer's tokens"), ("masked", "Masked batches in PyTorch"))]
