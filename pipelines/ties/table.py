"""table.py ties/table TIES "ARM..." "SEED..." DATA LABEL FEW HOW [PREPARED]: the table of make ties from the scores under TIES; runs without scores are left out.
HOW is a line on the trainings. The figure draws TIES/points.tsv and TIES/summary.tsv; TIES/differences.tsv has the differences (armstat compare)."""
from pathlib import Path

from table import (BASELINES, NO_NETWORK, SIMULATED, collect, counted, differences, fields, known, means, no_edges, not_learned, num, plain, reported,
                   shown, span, split_by, split_note, splits, tell, write)

# name, form and width of a column; those of 17 characters have a standard deviation
COLUMNS = [("loss", "loss", "%.3f", 7), ("lookup", "medians", "%.3f", 7), ("freq.", "frequency", "%.3f", 7), ("gain", "gain", "%+.3f", 7),
           ("visible", "visible", "%.3f", 7), ("hidden", "hidden", "%.3f", 7), ("R", "R", "%+.3f", 17), ("macro F1", "macro_f1", "%.3f", 17),
           ("few labels", "few_macro_f1", "%.3f", 17), ("neighbours", "knn_macro_f1", "%.3f", 17)]
NO_RESULT = ["loss", "visible", "hidden", "R"]  # of an untrained network
COMPARED = {"gain": "gain over the lookup", "R": "partner reliance R", "macro_f1": "macro F1, all labels", "few_macro_f1": "macro F1, few labels",
            "knn_macro_f1": "macro F1, nearest neighbours"}
WORDS = """
An arm is an encoding and the masks of the training. median: genes of equal count are sorted by their medians; random: in random order, a new one
every epoch; group: they share a position; value: as group, and the value of a masked gene is predicted, not the gene (mean squared error).
Measured on the test cells, mean over seeds (sd: standard deviation). loss: of a masked token, random masks. lookup: loss of a table that knows only
the medians of the visible neighbours in the order (group: of the visible genes of equal count; value: the mean value of the gene). gain: lookup -
loss. R: loss with hidden partners - loss with visible partners (make reliance). Cell types: macro F1 of a linear probe from all labels and from
{few} a class, and of the 15 nearest neighbours
"""
DIFFERENCES = """
Differences, paired by seed: mean, 95 % interval, two-sided p of a t test, p after Holm's correction over all differences of this table, and the
true difference that as many seeds find in 80 % of experiments"""


def scores(folder, arms, seeds):
    """Arm, seed, metric, value. gain: how much lower the loss is than that of the table of neighbours' medians on the same masked genes."""
    for seed in seeds:
        for arm in [*BASELINES, *arms]:
            run = [(metric, value) for _, _, metric, value in collect(f"{folder}/runs", [arm], [seed])]
            medians = ""
            for of, frequency, medians_, *_ in fields(f"{folder}/split-{seed}/{arm.rpartition('-')[0] or arm}.reference.tsv") if run else ():
                if of.endswith("test"):
                    medians = medians_
                    yield from ([arm, seed, "frequency", frequency], [arm, seed, "medians", medians])
            for metric, value in run:
                yield [arm, seed, metric, value]
                if metric == "loss" and medians and known(value):
                    yield [arm, seed, "gain", plain(float(medians) - float(value), 9)]


def print_means(summary, arms):
    mean = {(r["arm"], r["metric"]): r for r in summary}
    arms = [a for a in arms if (a, "macro_f1") in mean]
    n = {a: int(mean[a, "macro_f1"]["n"]) for a in arms}
    print(f"{'':26}" + "".join(f" {title:>{wide}}" for title, *_, wide in COLUMNS))
    stopped = False
    for a in arms:
        line = f"{BASELINES.get(a, a):26}"
        for _, metric, form, wide in COLUMNS:
            r = mean.get((a, metric), {"mean": "NA", "sd": "NA"})
            text = num(r["mean"], form) + (f" (sd {float(r['sd']):.3f})" if wide == 17 and known(r["sd"]) else "")
            line += f" {'' if a == 'untrained' and metric in NO_RESULT and (known(r['mean']) or metric == 'R') else text:>{wide}}"
        converged = mean.get((a, "converged"), {"mean": "0"})["mean"]
        off = known(converged) and float(converged) < 1
        stopped = stopped or off
        print(line + (f" [{n[a]} seed{'s' * (n[a] != 1)}]" if n[a] < max(n.values()) else "") + "  *" * off)
    if stopped:
        print("* the probe from all labels was stopped before it had converged, in some seeds or all")


def print_differences(rows, head):
    last = None
    for r in rows:
        if not last:
            print(f"\n{head}")
        form = lambda *texts: "".join(f" {t:>{wide}}" for t, wide in zip(texts, (10, 20, 8, 10, 10, 8)))
        if r["metric"] != last:
            metric = r["metric"].removesuffix(" of values")
            print(f"  {COMPARED[metric] + ', values' * (metric != r['metric']):28}" + form("mean", "95 % interval", "t", "p", "p, Holm", "80 %"))
        last = r["metric"]
        print(f"    {BASELINES.get(r['arm'], r['arm']):26}" + form(num(r["difference"], "%+.3f"), span(r, "%+.3f"), num(r["t"], "%.1f"), num(r["p"], "%.2g"),
                                                                 num(r["p_corrected"], "%.2g"), num(r["detectable"], "%.3f")))


def worst(summary):
    """The mean loss of the arm that predicts genes worst, next to that of the gene frequencies on the same masked genes."""
    mean = {(r["metric"], r["arm"]): r["mean"] for r in summary if "-" in r["arm"] and not r["arm"].startswith("value-") and int(r["n"]) > 0}
    losses = [(float(loss), mean.get(("frequency", arm), "")) for (metric, arm), loss in mean.items() if metric == "loss"]
    return max(losses, key=lambda pair: pair[0] - float(pair[1] or 0), default=(None, ""))


def main(folder, arms, seeds, data, label, few, how, prepared=""):
    arms, seed_list = arms.split(), seeds.split()
    base = arms[0]
    points = [["arm", "seed", "metric", "value"], *scores(folder, arms, seed_list)]
    write(f"{folder}/points.tsv", *points)
    summary = means(f"{folder}/summary.tsv", points, "--within", "metric")
    # Every arm is compared with the first one, and CorrMask with random masks of the same encoding. The losses of values are other metrics than those of
    # genes. Without DATA, every seed has other cells.
    pairs = [(arm, base) for arm in [*arms, *NO_NETWORK]]
    pairs += [(arm, random) for arm in arms if (random := arm.removesuffix("-corrmask") + "-random") != base]
    compared = [[arm, seed, metric + " of values" * (metric in ("gain", "R") and arm.startswith("value-")), value]
                for of in COMPARED for arm, seed, metric, value in points if metric == of]
    found = differences(f"{folder}/differences.tsv", [points[0], *compared], pairs, "--pair", "seed", "--within", "metric", *splits(data))

    print(f"corrmask ties: {data or SIMULATED}, label {label}\n{how}; seeds {seeds}")
    if prepared:
        if Path(prepared, "group").exists():
            print("cells:", split_by(prepared))
        split_note(prepared, f"{prepared}/cells.counts")
    print(WORDS.format(few=few))
    print_means(summary, [*BASELINES, *arms])
    print(DIFFERENCES)
    if data:
        print("The splits of the seeds share cells: intervals and tests are corrected for it (Nadeau and Bengio).")
    print_differences([r for r in found if r["reference"] == base], f"- {base}")
    print_differences([r for r in found if r["reference"] != base], "- random masks of the same encoding")
    print()
    edges = [reported(f"{folder}/log/depgraph-split-{k}.report", "edges") for k in seed_list]
    edges = str(sum(int(e) for e in edges if e)) if any(edges) else ""
    why = not_learned(*worst(summary))
    if why:
        return tell(folder, why)
    of_corrmask = no_edges(edges).replace("No comparison:", "No comparison of CorrMask with random masks:") if any("-corrmask" in a for a in arms) else ""
    if not any(known(r["p"]) for r in found):
        return tell(folder, of_corrmask, "One seed: nothing can be said about other trainings.")
    listed = "".join(f"\n  {r['arm']} - {r['reference']}, {r['metric']} {float(r['difference']):+.3f}" for r in shown(found))
    return tell(folder, of_corrmask, f"{counted(found)} Shown against all {sum(known(r['p']) for r in found)} (Holm):{listed or ' none'}")
