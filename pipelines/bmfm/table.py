"""table.py bmfm/table FOLDER INPUTS NAME "ARM..." "SEED..." DATA LABEL "METRIC=CAPTION,..." HOW: the tables of the experiments on objectives (objectives.mk) from
the scores under INPUTS/runs; runs without scores are left out. FOLDER/points.tsv has the values, summary.tsv their means, differences.tsv the paired
differences, effects.tsv those of a masking rate and of labels over all objectives."""
import sys
from itertools import count, product
from pathlib import Path

from table import (BASELINES, NO_NETWORK, SIMULATED, after_holm, armstat, as_table, bracket, collect, counted, crossed, differences, known, lines, means, median, num,
                   rows, setting, shown, split_by, splits, stage_times, tell, text, tool, tsv, values, write)

PARTS = ["r2mae", "hce"]  # what is compared over all arms that are there with it and without it
GATES = {"gated": [], "ungated": ["--ungated"]}


def pairs_of(arms):
    """Each arm is compared with the first one, with the same arm without one of its parts, and with what has learned nothing from an objective."""
    for arm in arms:
        yield from ((arm, other) for other in [arms[0], *BASELINES])
        objective, *parts = arm.split("+")
        less = [arm.replace("+" + part, "", 1) for part in parts]
        yield from ((arm, other) for other in less if other not in (arms[0], "untrained"))
        if parts:
            yield arm, "untrained" + arm.removeprefix(objective)


def effects_of(out, compared):
    """A part over all arms that are there with it and without it. Pairs of one seed have the same cells."""
    table = [["part", "arm", "rest", "seed", "metric", "value"]]
    table += [[part, "with" if part in arm.split("+") else "without", arm.replace("+" + part, "", 1), *row] for part in PARTS for arm, *row in compared]
    if any(row[1] == "with" for row in table):
        return armstat(out, table, "--compare", "with:without", "--within", "part,metric", "--pair", "rest,seed", "--cluster", "seed")
    return []


def matrix(found, metric, arms, reference=""):
    """Objectives below each other, what is added to them side by side; with a reference, differences from it."""
    of = {r["arm"]: r for r in found if r["metric"] == metric and (not reference or r["reference"] == reference)}
    for arm in (a for a in [*BASELINES, *arms] if a in of):
        value, form = (of[arm]["difference"], "%+.3f") if reference else (of[arm]["mean"], "%.3f")
        objective, plus, parts = arm.partition("+")
        yield BASELINES.get(objective, objective), plus + parts or "alone", f"{num(value, form)} {bracket(of[arm])}" if known(value) else "NA"


def odds(ratio):
    return "NA" if ratio == "nan" else text(ratio, "%.3g")


def overlaps(folder, inputs, arms, seeds):
    """Winners of one objective among those of another, each seed for itself."""
    yield ["gate", "winners of", "winners of the other", "seed", "first", "second", "both", "odds ratio", "p"]
    for gate, one, two, seed in product(GATES, arms, arms, seeds):
        a, b = (Path(inputs, "runs", f"{arm}-{seed}") for arm in (one, two))
        if one >= two or not all((d / f"{gate}.genes.tsv").exists() for d in (a, b)):
            continue
        winners = [[name, "winner"] for name, *_, label in (list(r.values())[:7] for r in rows(b / f"{gate}.genes.tsv")) if label == "winner"]
        if winners:
            write(f"{folder}/winners", ["gene", "label"], *winners)
            said = tool("scmetric", "learnability", "-q", *GATES[gate], "--min-expressed", setting(inputs, "MIN_EXPRESSED") or "100", "--groups", f"{folder}/winners",
                        a / "genes.tsv", may_fail=True)
            v = dict(line.split("\t")[:2] for line in said.splitlines())
            if "p:winner" in v:
                yield [gate, one, two, seed, v["winners"], v["group_genes:winner"], v["group_winners:winner"], odds(v["odds_ratio:winner"]), text(v["p:winner"], "%.2g")]
    Path(folder, "winners").unlink(missing_ok=True)


def groups(inputs, arms, seeds):
    yield ["gate", "arm", "seed", "group", "genes", "winners", "odds ratio", "p (Benjamini and Hochberg)"]
    for gate, arm, seed in product(GATES, arms, seeds):
        v = values(f"{inputs}/runs/{arm}-{seed}/{gate}.learned.tsv")
        for g, p in ((name.removeprefix("p_bh:"), p) for name, p in v.items() if name.startswith("p_bh:") and float(p) < .05):
            yield [gate, arm, seed, g, v[f"group_genes:{g}"], v[f"group_winners:{g}"], odds(v[f"odds_ratio:{g}"]), text(p, "%.2g")]


def findings(folder, found, caption, seeds, data):
    if len(seeds) < 2:
        return tell(folder, "One seed: nothing can be said about other trainings.")
    listed = [f"  {r['arm']} - {r['reference']}, {caption[r['metric']]}: {float(r['difference']):+.3f} ({float(r['low']):.3f} to {float(r['high']):.3f}), "
              f"p {float(r['p_corrected']):.2g}" for r in shown(found)]
    sizes = {m: [float(r["detectable"]) for r in found if r["metric"] == m and known(r["detectable"])] for m in caption if not m.endswith("_genes")}
    usual = ", ".join(f"{caption[m]} {median(d):.3f}" for m, d in sizes.items() if d)
    return tell(folder, counted(found, " (differences.tsv)"), after_holm(listed), usual and
                f"What this cannot tell: with {len(seeds)} seeds a difference of one arm is found in 80 % of cases only from this size on: {usual} (median); and one "
                f"small network on {'these' if data else 'simulated'} cells cannot tell what a larger one on more cells would gain.")


def main(folder, inputs, name, arms, seeds, data, label, metrics, how):
    arms, seeds, seeds_text = arms.split(), seeds.split(), seeds
    caption = dict(m.partition("=")[::2] for m in metrics.split(","))
    for f in [*Path(folder).glob("*.table"), Path(folder, "effects.tsv")]:
        f.unlink(missing_ok=True)
    points = [["arm", "seed", "metric", "value"], *collect(f"{inputs}/runs", dict.fromkeys([*BASELINES, *arms]), seeds)]
    write(f"{folder}/points.tsv", *points)
    if name == "bmfm-learnability" and not any(row[2] == "gated_genes" for row in points):
        sys.exit(f"{name}: no network has two genes with {setting(inputs, 'MIN_EXPRESSED') or 100} expressed pairs in the test cells: expected a lower MIN_EXPRESSED")
    summary = means(f"{folder}/summary.tsv", points, "--within", "metric")
    compared = [row for row in points[1:] if row[2] in caption and not row[2].endswith(("_low", "_high"))]
    found = differences(f"{folder}/differences.tsv", [points[0], *compared], pairs_of(arms), "--pair", "seed", "--within", "metric", *splits(data))
    effects = [r for r in effects_of(f"{folder}/effects.tsv", compared) if int(r["n"]) > 0]

    print(f"corrmask {name}: {data or SIMULATED}, label {label}\n{how}; seeds {seeds_text}")
    first = f"{inputs}/split-{seeds[0]}"
    if Path(first, "group").exists():
        print(f"cells: {split_by(first)}, a quarter for the test")
    print("".join(line + "\n" for line in lines(f"{inputs}/log/terms-split-{seeds[0]}.log") if line.startswith("warning: ") and " cells have no term" in line), end="")
    print("Means over seeds, with 95 % intervals of the mean (t distribution; NA: one seed).")
    if data:
        print("The splits overlap, so these intervals are too narrow; those of the differences are wider for it (Nadeau and Bengio 2003).")
    number = count(1)

    def show(what, title, table):
        print()
        as_table(f"{folder}/{next(number)}-{what}.table", title, list(table))
    for m, title in caption.items():
        show(m, title, crossed("objective", matrix(summary, m, arms)))
        for other in NO_NETWORK if m.endswith("f1") or m.startswith("avg_bio") else ():
            if any(r["metric"] == m and r["reference"] == other and int(r["n"]) > 0 for r in found):
                show(m, f"{title} minus that of {BASELINES[other]}", crossed("objective", matrix(found, m, arms, other)))
    if effects:
        show("effects", "A part, over all arms that are there with it and without it; the seed is the unit", [
            ["part", "metric", "pairs", "difference", "from", "to", "p (Holm)"],
            *(["+" + r["part"], caption[r["metric"]], r["n"], num(r["difference"], "%+.3f"), *(num(r[x], form) if known(r[x]) else "NA" for x, form in (
                ("low", "%+.3f"), ("high", "%+.3f"), ("p_corrected", "%.2g")))] for r in effects)])
    if name == "bmfm-learnability":
        show("overlap", "Genes that win in both of two arms (Fisher's exact test; first, second: winners of each)", overlaps(folder, inputs, arms, seeds))
        show("groups", "Groups of genes with more or fewer winners than the others, each training for itself; only those with p below .05", groups(inputs, arms, seeds))
    print()
    findings(folder, found, caption, seeds, data)
    print()
    stage_times(f"{inputs}/log")
