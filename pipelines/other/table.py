"""table.py other/table FOLDER "KIND..." "ARM..." "SEED...": the table of make r2mae-other. FOLDER gets points.tsv, summary.tsv (means) and differences.tsv (to the
first arm and of r2mae to every other)."""
from table import as_table, collect, crossed, differences, known, means, num, span, word, write


def main(folder, kinds, arms, seeds):
    kinds, arms, seeds, seeds_text = kinds.split(), arms.split(), seeds.split(), seeds
    points = [["kind", "arm", "seed", "metric", "value"], *([kind, *row] for kind in kinds for row in collect(f"{folder}/{kind}", arms, seeds))]
    write(f"{folder}/points.tsv", *points)
    within = ["--within", "kind,metric"]
    summary = means(f"{folder}/summary.tsv", points, *within)
    found = differences(f"{folder}/differences.tsv", points, [("r2mae", arm) for arm in arms], "--pair", "seed", *within)

    print(f"corrmask r2mae-other: test error of a probe of the digit (digits), loss of masked tokens at three rates (text, dna); seeds {seeds_text}")
    for kind in ("text", "dna"):
        frequency = word(f"{folder}/{kind}/inputs/frequency")
        if frequency:
            print(f"loss of a table of frequencies, {kind}: {float(frequency):.3f}")
    print()
    for metric in ("error", "loss"):
        as_table(f"{folder}/1-{metric}.table", f"Mean {metric} over seeds", crossed("masking rate in training", [
            (f"{r['kind']} {r['metric']}", r["arm"], num(r["mean"], "%.3f") + (f" (sd {num(r['sd'], '%.3f')})" if known(r["sd"]) else ""))
            for r in summary if metric in r["metric"]]))
        print()
    as_table(f"{folder}/2-differences.table", "r2mae minus a fixed rate, paired by seed", [
        ["kind", "metric", "minus", "difference", "95 %", "p", "p (Holm)", "found in 80 %"],
        *([r["kind"], r["metric"], r["reference"], num(r["difference"], "%+.4f"), span(r, "%+.4f"), num(r["p"], "%.2g"), num(r["p_corrected"], "%.2g"),
           num(r["detectable"], "%.4f")] for r in found)])
