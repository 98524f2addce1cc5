#!/usr/bin/python3
"""Labels of unequal detail: does the term that ctaprobe transfer --ontology answers hold the true type as often as promised? Half of the donors of the reference
have the pairs of types 0 and 1, 2 and 3 as one label each, which leaves them the easy type 4; all new donors have all detail.

usage: terms.py [REPLICATES [SCENARIO ...]]       a table of means over the replicates; exits 1 and names the promises that are false
"""
import subprocess
import sys

import numpy as np

from cells import World, scstream, write
from transfer import ERRORS, MOST, NEW, below, by_donor, load, main

COVERAGE = .9
PAIR = ["pair01", "pair01", "pair23", "pair23", "type4"]
ONTOLOGY = "format-version: 1.2\n" + "".join("\n[Term]\nid: %s\n%s" % (t, "is_a: %s\n" % up if up else "") for t, up in [
    ("any", ""), ("pair01", "any"), ("pair23", "any"), ("type4", "any")] + [("type%d" % i, PAIR[i]) for i in range(4)])
# coarse: of each donor, the share of its cells with coarse labels; promised: in so many replicates at least, or 0: in none
SCENARIOS = {
    "half of 24 donors": dict(coarse=[1, 0] * 12, promised=MOST),
    "few cells of all": dict(coarse=[.02] * 20, promised=MOST),
    "half of 12 donors": dict(coarse=[1, 0] * 6, promised=0),
    "half of the cells": dict(coarse=[.5] * 20, promised=0),
}


def rename(path, types, coarse):
    """The labels of a stream by cells.write."""
    names = sorted(set(PAIR) | {"type%d" % i for i in range(len(PAIR))})
    with scstream.read(path) as s:
        blocks = [{c["name"]: b[c["name"]] for c in s.header["columns"]} for b in s]
        header = {k: s.header[k] for k in ("kind", "provenance", "vocab", "columns")}
    at = 0
    for b in blocks:
        n = len(b["cell"])
        b["cell_type"] = [names.index(PAIR[t] if c else "type%d" % t) for t, c in zip(types[at:at + n], coarse[at:at + n])]
        b["donor"] = b["donor"].codes
        at += n
    for c in header["columns"]:
        if c["name"] == "cell_type":
            c["categories"] = names
    scstream.write(path, header, blocks)


def replicate(s, rng, folder):
    w = World(rng)
    counts, types, donors = w.cells(rng, [25] * len(s["coarse"]))
    share = dict(zip(sorted(set(donors), key=lambda d: int(d[1:])), s["coarse"]))
    write(folder + "/ref", counts, types, donors)
    rename(folder + "/ref", types, rng.random(len(types)) < [share[d] for d in donors])
    write(folder + "/new", *w.cells(rng, NEW))
    with open(folder + "/obo", "w") as f:
        f.write(ONTOLOGY)
    subprocess.run(["ctaprobe", "transfer", "-q", "--reference", folder + "/ref", "-l", "cell_type", "--group", "donor", "--coverage", str(COVERAGE),
                    "--ontology", folder + "/obo", "--report", folder + "/report", "-o", folder + "/pred", folder + "/new"], check=True)
    p, labels = load(folder + "/pred")
    report = dict(line.rstrip("\n").split("\t")[:2] for line in open(folder + "/report"))
    hit = np.array([term in (t, PAIR[int(t[4:])], "any", "NA") for t, term in zip(p["cell_type"], p["term"])])
    in_set = np.array([p["in_set"][i, labels.index(t)] > 0 for i, t in enumerate(p["cell_type"])])
    return {"promised": float(report["promise:coverage"]), "term": by_donor(hit, p["donor"]), "set": by_donor(in_set, p["donor"]),
            "finest": (p["term_classes"] == 1).mean(), "classes": p["term_classes"].mean(), "set_size": p["in_set"].sum(1).mean()}


def false_promises(s, r):
    made = r["promised"] > 0
    if made.any() if s["promised"] == 0 else made.mean() < s["promised"]:
        yield "coverage is promised in %d of %d replicates" % (made.sum(), len(made))
    for what in ("term", "set"):
        if made.sum() > 1 and below(r[what][made], COVERAGE):
            yield "a coverage of %g is promised, and that of the %s is %.3f (%g errors)" % (COVERAGE, what, r[what][made].mean(), ERRORS)


if __name__ == "__main__":
    sys.exit(main(SCENARIOS, replicate, false_promises, (34,), *sys.argv[1:]))
