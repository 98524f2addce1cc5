#!/usr/bin/python3
"""Does ctaprobe transfer hold what the report of make annotate promises? Many references, each with new donors, of a model of cells that is independent of scsim (cells.py).

usage: transfer.py [REPLICATES [SCENARIO ...]]       a table of means over the replicates; exits 1 and names the promises that are false
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cells import SHARES, World, scstream, write                        # noqa: E402
sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../pipelines/page"))
import table                                                             # noqa: E402

COVERAGE, UNKNOWN = .9, .1      # what is asked for
NEW = [40] * 9                  # cells of the new donors, or of three studies
SENTENCES = table.spec("annotate/report").Sentences
ERRORS = 2.6                    # a mean may be on the wrong side of a promise by so many of its standard errors


def unequal(rng):
    return np.maximum(4, 25 * np.exp(rng.normal(0, 1, 20) - .5)).astype(int)


# reference: cells of its donors; world, donors: of the model; new: what differs in new donors; hidden: type that the reference lacks.
# promised: coverage, unknown, accuracy; MOST: in so many replicates, as a donor like the others is now and then taken for another platform;
# 0: in none; None: if it is there it must be true.
MOST = .75
TWENTY = dict(reference=[25] * 20, promised=(MOST, None, MOST))
SCENARIOS = {
    "1 donor": dict(reference=[400], group=None, promised=(0, 0, 0)),
    "no donors": dict(reference=[25] * 20, group=None, promised=(0, 0, 0)),
    "2 donors": dict(reference=[200] * 2, promised=(0, 0, None)),
    "5 donors": dict(reference=[80] * 5, promised=(0, 0, None)),
    "9 donors": dict(reference=[50] * 9, promised=(MOST, None, MOST)),
    "20 donors": dict(TWENTY, promised=(MOST, MOST, MOST)),
    "40 donors": dict(reference=[15] * 40, promised=(MOST, MOST, MOST)),
    "unequal donors": dict(TWENTY, reference=unequal),
    "donors differ much": dict(TWENTY, world=dict(donor=.6)),
    "left-out type": dict(TWENTY, hidden=4),
    "rare type": dict(TWENTY, world=dict(shares=[.37, .27, .2, .13, .03])),
    "type of one donor": dict(TWENTY, donors=dict(only={3: [0]})),
    "class shift": dict(TWENTY, new=dict(shares=SHARES[::-1]), promised=(None, None, None)),
    "two like types": dict(TWENTY, new=dict(shares=[.48, .48, .02, .01, .01]), promised=(None, None, None)),
    "rare types": dict(TWENTY, world=dict(shares=[.4, .36, .1, .08, .06]), new=dict(shares=[.05, .05, .4, .4, .1]), promised=(None, None, None)),
    "hard types": dict(TWENTY, world=dict(shares=[.03, .03, .03, .03, .88], apart=.15), new=dict(shares=[.3, .3, .15, .15, .1]), promised=(None, None, 0)),
    "ambient RNA": dict(TWENTY, reference=[25] * 30, new=dict(ambient=.2), promised=(None, 0, 0)),
    "a tenth of the depth": dict(TWENTY, new=dict(depth=15), promised=(None, None, None)),
    "another platform": dict(TWENTY, new=dict(platform=1.2), promised=(0, 0, 0)),
    # five donors say little of how much donors differ: in 1 of 20 replicates the platform was not seen
    "another platform, 5 donors": dict(reference=[80] * 5, new=dict(platform=1.2), promised=(0, 0, None)),
    # the studies of a joined reference are what is held out, and the new cells are of other studies
    "2 studies": dict(reference=[70] * 6, donors=dict(study=.4), new=dict(study=.4), promised=(0, 0, None)),
    "9 studies": dict(reference=[20] * 27, donors=dict(study=.4), new=dict(study=.4), promised=(MOST, None, MOST)),
    "20 studies": dict(reference=[10] * 60, donors=dict(study=.4), new=dict(study=.4), promised=(MOST, MOST, MOST)),
}


def load(path):
    """Columns of a prediction stream, with names of categories, and its labels."""
    out = {}
    with scstream.read(path) as s:
        for b in s:
            for k, v in b.items():
                if isinstance(v, scstream.Categorical):
                    v = np.array(list(v.categories) + ["NA"])[v.codes]
                out.setdefault(k, []).append(np.asarray(v))
        return {k: np.concatenate(v) for k, v in out.items()}, s.header["labels"]


def ece(right, p):
    at = np.minimum((p * 10).astype(int), 9)
    return sum(abs(right[at == k].mean() - p[at == k].mean()) * (at == k).mean() for k in set(at))


def by_donor(v, donor):
    """Each donor counts as one, as in the promise."""
    return np.mean([v[donor == d].mean() for d in set(donor)]) if len(v) else np.nan


def told(report, run):
    """What the report of make annotate promises of these measurements, by the names of its sentences."""
    sentences = dict(SENTENCES(table.values(report), {}, {}, run))
    expected = float(sentences["expect"].split(" % ")[0].rsplit(" ", 1)[1]) / 100 if "expect" in sentences else np.nan
    return {"expected": expected, "coverage": "promise" in sentences and "no-promise-coverage" not in sentences,
            "unknown": "promise" in sentences and "no-promise-unknown" not in sentences, "accuracy": "right" in sentences}


def replicate(s, rng, folder):
    """One reference and its new donors: what was promised, and what came."""
    w = World(rng, **s.get("world", {}))
    sizes = s["reference"]
    counts, types, donors = w.cells(rng, sizes(rng) if callable(sizes) else sizes, **s.get("donors", {}))
    there = (types != s.get("hidden", -1)) & (np.bincount(types)[types] > 1)
    write(folder + "/ref", counts[there], types[there], donors[there])
    write(folder + "/new", *w.cells(rng, NEW, **s.get("new", {})))
    group = s.get("group", "donor")
    subprocess.run(["ctaprobe", "transfer", "-q", "--reference", folder + "/ref", "-l", "cell_type", *(["--group", group] if group else []),
                    "--coverage", str(COVERAGE), "--unknown", str(UNKNOWN), "--held-out", folder + "/held", "--report", folder + "/report",
                    "-o", folder + "/pred", folder + "/new"], check=True)
    p, labels = load(folder + "/pred")
    h, _ = load(folder + "/held")
    # promises are for types that were held out while other cells of them were there
    tested = [t for t in labels if len(set(h["donor"][h["cell_type"] == t])) > 1 or not group]
    known = np.isin(p["cell_type"], tested)
    hit = np.array([k and p["in_set"][i, labels.index(p["cell_type"][i])] > 0 for i, k in enumerate(known)])
    right, donor, unknown = p["predicted"] == p["cell_type"], p["donor"], p["assigned"] == "unknown"
    last = p["cell_type"] == "type%d" % (len(SHARES) - 1)
    promised = told(folder + "/report", {"group": group or "", "coverage": COVERAGE, "map": "X_umap"})
    expected, held_out = promised.pop("expected"), by_donor(h["predicted"] == h["cell_type"], h["donor"])
    return {**{"promised_" + k: float(v) for k, v in promised.items()},
            "coverage": by_donor(hit[known], donor[known]), "of_last_type": hit[last].mean(), "size": p["in_set"][known].sum(1).mean(),
            "accuracy": by_donor(right[known], donor[known]), "held_out": held_out if np.isnan(expected) else expected,
            "probability": by_donor(p["probability"][known], donor[known]), "ece": ece(right[known], p["probability"][known]),
            "known_unknown": by_donor(unknown[known], donor[known]), "novel_unknown": unknown[~known].mean() if (~known).any() else np.nan}


def below(value, limit):
    """Is the mean of value below limit, beyond its error?"""
    return value.mean() + ERRORS * value.std(ddof=1) / np.sqrt(len(value)) < limit


def false_promises(s, r):
    for promise, must in zip(("coverage", "unknown", "accuracy"), s["promised"]):
        made = r["promised_" + promise] > 0
        if must is not None and (made.any() if must == 0 else made.mean() < must):
            yield "%s is promised in %d of %d replicates, expected %s" % (promise, made.sum(), len(made), "three quarters" if must else "none")
        if made.sum() < 2:
            continue
        r_ = {k: v[made] for k, v in r.items()}
        if promise == "coverage" and below(r_["coverage"], COVERAGE):
            yield "a coverage of %g is promised, and it is %.3f" % (COVERAGE, r_["coverage"].mean())
        if promise == "unknown" and below(-r_["known_unknown"], -UNKNOWN):
            yield "%g of the known cells may be unknown, and %.3f are" % (UNKNOWN, r_["known_unknown"].mean())
        if promise == "accuracy" and below(r_["accuracy"] - r_["held_out"], -.01):
            yield "of held-out donors, with the types of the new cells, %.3f are right, of new ones %.3f" % (r_["held_out"].mean(), r_["accuracy"].mean())
        if promise == "accuracy" and below(r_["accuracy"] - r_["probability"], -.03):
            yield "the mean probability is %.3f, and %.3f are right" % (r_["probability"].mean(), r_["accuracy"].mean())


def main(scenarios, replicate, false_promises, seed, replicates="8", *names):
    """A row of means for each scenario, and the promises that are false. True if there is one."""
    wrong, shown = [], None
    for i, (name, s) in enumerate(scenarios.items()):
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows = [replicate(s, np.random.default_rng((i, k, *seed)), folder) for k in range(int(replicates))]
        r = {k: np.array([x[k] for x in rows]) for k in rows[0]}
        if not shown:
            shown = print("scenario", *r, sep="\t") or 1
        print(name, *("%.3f" % v.mean() for v in r.values()), sep="\t", flush=True)
        for text in false_promises(s, r):
            print("false:", name + ":", text)
            wrong.append(text)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(SCENARIOS, replicate, false_promises, (), *sys.argv[1:]))
