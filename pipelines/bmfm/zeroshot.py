"""table.py bmfm/zeroshot FOLDER "ARM..." "BASELINE..." "SET-SEED..." DATA HOW: the tables of zeroshot.mk from the scores under FOLDER/runs; runs without scores
are left out. FOLDER/points.tsv has the values, with a method (an arm, and how it predicts), means.tsv those over seeds, summary.tsv the means of these
over the sets, differences.tsv the differences, whose unit is the set that was left out."""
import re
from pathlib import Path

from table import (SIMULATED, after_holm, as_table, bracket, collect, columns, counted, crossed, differences, known, lines, means, median, shown, stage_times, tell, text,
                   write)

WAYS = {"probe": "probe", "leafprobe": "probe of leaves", "head": "likeliest leaf", "greedy": "from the top down"}
BARS = ["expression", "pca"]  # what networks are compared with
COMPARED = ["accuracy", "macro_f1", "hierarchical_f1", "avg_bio_swept", "left_avg_bio_swept", "avg_batch"]
TABLES = {"accuracy": "Cells whose predicted term is that of their label or a finer one, by the set that is left out",
          "coarser": "Cells whose predicted term is above that of their label",
          "macro_f1": "Macro F1 of the terms; a finer one counts as the label",
          "hierarchical_f1": "F1 of the terms at or above prediction and label",
          "avg_batch": "AvgBatch of the sets, all cells",
          "avg_bio_swept": "AvgBio of the lineages, all cells; arms with +hce have seen the types of all cells but those of the left-out set",
          "left_avg_bio_swept": "AvgBio of the terms, left-out cells alone; of probes and heads, that of their logits, which learned from labels of the other sets"}


def scores(folder, arms, splits):
    for split in splits:
        of_set = next(iter(columns(f"{folder}/without-{split}/test.counts", "set")), [""])[0]
        for arm, _, metric, value in collect(f"{folder}/runs", arms, [split]):
            way, _, rest = metric.partition("_")
            found = [f"{arm}, {WAYS[way]}", of_set, split.partition("-")[2], rest] if way in WAYS else [arm, of_set, split.partition("-")[2], metric]
            yield [*found, value]


def over_seeds(points):
    """The cells of a left-out set are nearly the same for every seed, so seeds are averaged first."""
    of = {}
    for method, of_set, _, metric, value in points:
        of.setdefault((method, of_set, metric), []).append(value)
    return [[*key, f"{sum(map(float, v)) / len(v):.9g}" if "NA" not in v else "NA"] for key, v in of.items()]


def pairs_of(arms):
    """Measured sets against zeros, one way to decode against the other, and networks against probes of expression and components; an embedding, which may have
    seen labels, against the logits of linear probes, which have."""
    for arm in arms:
        for way in ["", *(f", {w}" for w in WAYS.values())]:
            yield arm + way, arm.replace("wced", "wced-zeros", 1) + way
            yield from ((arm + way, other + (way and ", probe of leaves")) for other in BARS)
        yield f"{arm}, from the top down", f"{arm}, likeliest leaf"
        yield from ((arm, f"{other}, probe") for other in BARS)
    yield from ((f"{other}, probe", "pca") for other in BARS)
    yield from ((f"pca-shared{way}", f"pca{way}") for way in (", probe of leaves", ""))


def findings(folder, found):
    def told(r):
        interval = f"{text(r['low'], '%.3f')} to {text(r['high'], '%.3f')}" if known(r["low"]) else "NA"
        return f"  {r['arm']} - {r['reference']}, {r['metric']}: {text(r['difference'], '%+.3f')} ({interval}), p {text(r['p_corrected'], '%.2g')}"
    zeros = [told(r) for r in found if re.match("wced[^-]", r["arm"]) and r["reference"].startswith("wced-zeros") and r["metric"] in ("accuracy", "avg_batch")]
    zeros = "\n".join(["Measured sets minus zeros (p after Holm):", *zeros]) if zeros else ""
    bars = [told(r) for r in found if r["metric"] == "left_avg_bio_swept" and r["reference"] in ("pca", *(f"{b}, probe" for b in BARS))]
    bars = "\n".join(["Left-out cells alone, minus components and minus the logits of linear probes (p after Holm):", *bars]) if bars else ""
    if not any(known(r["p"]) for r in found):
        return tell(folder, zeros, bars, "One set was left out: nothing can be said about others.")
    usual = median([float(r["detectable"]) for r in found if known(r["detectable"]) and r["metric"] == "accuracy"] or [0])
    return tell(folder, zeros, bars, counted(found, " (differences.tsv)"), after_holm([told(r) for r in shown(found)]),
                f"What this cannot tell: with so few sets a difference in accuracy is found in 80 % of cases only from {usual:.3f} on (median); other sets may differ more.")


def main(folder, arms, without, splits, data, how):
    arms = arms.split()
    for f in Path(folder).glob("*.table"):
        f.unlink()
    points = list(scores(folder, dict.fromkeys([*without.split(), *arms]), splits.split()))
    write(f"{folder}/points.tsv", ["method", "set", "seed", "metric", "value"], *points)
    table = [["method", "set", "metric", "value"], *over_seeds(points)]
    write(f"{folder}/means.tsv", *table)
    summary = means(f"{folder}/summary.tsv", table, "--arm", "method", "--within", "metric")
    compared = [row for row in table if row[2] in ("metric", *COMPARED)]
    found = differences(f"{folder}/differences.tsv", compared, pairs_of(arms), "--arm", "method", "--pair", "set", "--within", "metric")

    print(f"corrmask bmfm-zeroshot: {data or SIMULATED}\n{how}; left-out set and seed: {splits}")
    print("".join(line + "\n" for line in lines(f"{folder}/log/h5tok.log") if line.startswith("warning: ") and " cells have no term" in line), end="")
    print("Networks and probes learned from the other sets. Values of a set are means over seeds; the last column is the mean over sets and its 95 % interval.")
    for n, (metric, title) in enumerate(TABLES.items(), 1):
        cells = [(method, of_set, text(value, "%.3f")) for method, of_set, of, value in table[1:] if of == metric]
        cells += [(r["arm"], "mean", f"{text(r['mean'], '%.3f')} {bracket(r)}") for r in summary if r["metric"] == metric]
        print()
        as_table(f"{folder}/{n}-{metric}.table", title, crossed("method", cells))
    print()
    findings(folder, found)
    print()
    stage_times(f"{folder}/log")
