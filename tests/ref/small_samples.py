"""Is p below .05 in a twentieth of a thousand cases without a difference, and do intervals hold the truth? Samples are small and uneven.

    small_samples.py clusters|pool|genesets TOOL      prints the shares; fails outside .03 to .07 (coverage below .93)
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import corrmask.stream as scstream

CASES, SETS = 1000, 60
what, tool = sys.argv[1:]
rng = np.random.default_rng(2)
good = True


def run(text, *command):
    """The output's columns; NA is NaN"""
    done = subprocess.run([tool, *command], input=text, text=True, stdout=subprocess.PIPE, check=True)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return {name: np.array([np.nan if v == "NA" else v for v in column]) for name, *column in zip(*lines)}


def judge(name, p, least=0.03, low=None, high=None):
    global good
    rate = (p.astype(float) < 0.05).mean()
    held = np.nan if low is None else ((low.astype(float) < 0) & (high.astype(float) > 0)).mean()
    fine = least <= rate <= 0.07 and not held < 0.93 and not np.isnan(p.astype(float)).any()
    good &= fine
    print(f"{name}: p < .05 in {rate:.3f}" + ("" if low is None else f", interval has 0 in {held:.3f}") + ("" if fine else "   WRONG"), flush=True)


def clusters():
    for size in [10] * 3, [20, 30, 30], [10] * 5, [3, 30, 3, 30, 3], [5, 10, 20, 40, 80], [2, 2, 2, 60] * 2, [5] * 20:
        lines = ["set\tarm\tcell\tdonor\tvalue"]
        for case in range(CASES):
            for donor, n in enumerate(size):
                for i, v in enumerate(rng.normal() + rng.normal(0, 0.5, n)):
                    lines += [f"{case}\tA\t{donor}-{i}\t{donor}\t{v}", f"{case}\tB\t{donor}-{i}\t{donor}\t0"]
        t = run("\n".join(lines) + "\n", *"compare -q --within set --pair cell --cluster donor".split())
        judge(f"clusters of {size}", t["p"], 0.03, t["low"], t["high"])


def genesets():
    """Graphs whose hubs are random genes, and sets in which some genes are much more often than others"""
    genes = [f"G{i}" for i in range(400)]
    n = len(genes)
    often = rng.pareto(1.5, n) + 0.2
    chosen = [rng.choice(n, rng.integers(5, 40), replace=False, p=often / often.sum()) for _ in range(SETS)]
    made = {"program": "depgraph", "version": "0", "options": ""}
    header = {"kind": "graph", "provenance": [made], "vocab": {"id": genes, "symbol": genes, "median": [1.0] * n},
              "columns": [{"name": "token", "type": "u32", "shape": "scalar"}]
              + [{"name": c, "type": t, "shape": "ragged", "group": "neighbour"} for c, t in (("neighbour", "u16"), ("rho", "f32"), ("overlap", "u32"))]}
    cases = CASES // 2
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/sets.gmt", "w") as f:
            f.writelines("\t".join([f"s{k}", "-", *(genes[g] for g in s)]) + "\n" for k, s in enumerate(chosen))
        for case in range(cases):
            degree = rng.pareto(1.2, n) + 0.2
            u, v = np.sort(rng.choice(n, (2, 4000), p=degree / degree.sum()), axis=0)
            pair = np.unique((u * n + v)[u != v])
            pair = rng.permutation(pair)[:1500]
            weight = rng.uniform(0.1, 1, len(pair)).astype("f4")
            from_, to, weight = np.r_[pair // n, pair % n], np.r_[pair % n, pair // n], np.r_[weight, weight]
            order = np.lexsort((to, from_))
            start = np.searchsorted(from_[order], np.arange(n + 1))
            lists = (to[order].astype("u2"), weight[order], np.full(len(order), 50, "u4"))
            scstream.write(f"{folder}/{case}", dict(header, graph={"weight": "rho", "cells": 100, "genes": n, "edges": len(pair)}),
                           [dict(token=np.arange(n, dtype="u4"), **{c: scstream.Ragged(start, x) for c, x in zip(("neighbour", "rho", "overlap"), lists)})])
        t = run("", "genesets", "-q", "--sets", f"{folder}/sets.gmt", *(f"{folder}/{case}" for case in range(cases)))
    judge("graphs with hubs", t["p"])


{"clusters": clusters, "genesets": genesets}[what]()
sys.exit(not good)
