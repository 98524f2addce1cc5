"""table.py table6/table DIR INPUTS STRATEGIES SIZES SEEDS HOW: the table of make table6 from the scores under DIR/runs; runs without scores are left out.
HOW is a line on the trainings.

The figure draws DIR/summary.tsv (means of the networks), DIR/baselines.tsv (the values without a network) and DIR/rare.tsv (the gaps among
the rarest classes). DIR/points.tsv has the value of each network, DIR/differences.tsv the gaps to the first strategy (armstat compare)."""
import re
from itertools import accumulate
from math import exp, log

from table import BASELINES, NO_NETWORK, collect, differences, known, lines, means, num, padded, plain, span, stage_times, units, values, word, write

TABLES = [("finetune", "macro_f1", "Macro F1 after fine-tuning (the paper's measure)"),
          ("finetune", "accuracy", "Accuracy after fine-tuning"),
          ("finetune", "f1_rare", "F1 of the rarest third of the classes after fine-tuning"),
          ("probe", "macro_f1", "Macro F1 of a linear probe, no fine-tuning"),
          ("probe", "accuracy", "Accuracy of the probe"),
          ("probe", "f1_rare", "F1 of the rarest third of the classes, probe")]
METRICS = ["macro_f1", "accuracy", "f1_rare"]
PAPER = """
the paper (other cells, many more of them, another network):
              30,000 cells      100,000 cells     300,000 cells     1,000,000 cells (kidney 814,000)
  lung
random        0.831 ± 0.005     0.845 ± 0.001     0.864 ± 0.008     0.883 ± 0.001
pmi           0.830 ± 0.004     0.846 ± 0.001     0.853 ± 0.005     0.870 ± 0.004
pmi-rand      0.829 ± 0.003     0.844 ± 0.004     0.850 ± 0.0007    0.875 ± 0.001
corrmask      0.833 ± 0.008     0.862 ± 0.010     0.875 ± 0.009     0.886 ± 0.007
  kidney
random        0.840 ± 0.028     0.858 ± 0.012     0.875 ± 0.009     0.886 ± 0.007
pmi           0.851 ± 0.010     0.863 ± 0.010     0.874 ± 0.008     0.887 ± 0.009
pmi-rand      0.850 ± 0.012     0.853 ± 0.004     0.876 ± 0.010     0.884 ± 0.005
corrmask      0.856 ± 0.008     0.870 ± 0.013     0.887 ± 0.010     0.894 ± 0.011"""


def is_number(text):
    return re.match("[0-9.]", text)


def without_network(folder, inputs):
    """Scores of the classifiers that are no networks, and what their intervals are over."""
    table, drawn = [], ""
    for name in NO_NETWORK:
        v = values(f"{inputs}/{name}.tsv")
        drawn = units(v) if v else drawn
        for metric in METRICS if v else ():
            of = [v.get(key, "") for key in (metric, metric + "_low", metric + "_high", "converged")]
            table.append([name, metric, *(x if is_number(x) else "NA" for x in of)])
    write(f"{folder}/baselines.tsv", *table)
    return table, drawn


def rare_classes(scores, size, ours, others):
    """Classes of this size so far, the rarest first: training cells, class, then the gap of the mean F1 over these classes, of ours to each of the others."""
    f1, train, tested = {}, {}, {}
    for strategy, of_size, _, stage, metric, value in scores:
        what, _, name = metric.partition(":")
        if stage != "finetune" or of_size != size or not is_number(value):
            continue
        if what == "f1":
            f1.setdefault((name, strategy), []).append(float(value))
        elif what == "train_n":
            train[name] = value
        elif what == "n" and float(value) > 0:
            tested[name] = True

    def gap(name, other):
        own, theirs = f1.get((name, ours)), f1.get((name, other))
        return float(plain(sum(own) / len(own) - sum(theirs) / len(theirs))) if own and theirs else float("nan")
    names = sorted(tested, key=lambda c: (float(train.get(c) or 0), c.encode("utf-8", "surrogateescape")))
    sums = list(zip(*(list(accumulate([gap(c, other) for c in names])) for other in others))) or [()] * len(names)
    return [[str(n), train.get(c, ""), c, *("NA" if x != x else plain(x / n) for x in row)] for n, (c, row) in enumerate(zip(names, sums), 1)]


class Shown:
    """What is shown of a stage and metric: size and strategy -> the text of a mean, and those of the gap to the first strategy."""
    def __init__(self, stage, metric, summary, gaps, seeds):
        rows = [r for r in summary if (r["stage"], r["metric"]) == (stage, metric) and int(r["n"]) >= 1]
        few = lambda r: f" [{r['n']}]" if int(r["n"]) < len(seeds) else ""
        self.mean = {(r["arm"], r["cells"]): f"{num(r['mean'], '%.3f')} (sd {num(r['sd'], '%.3f')}){few(r)}" for r in rows}
        self.f1 = {(r["arm"], r["cells"]): float(r["mean"]) for r in rows if known(r["mean"])}
        self.sizes = list(dict.fromkeys(r["cells"] for r in rows if r["cells"] != "0"))
        self.gap, self.p, self.power = {}, {}, {}
        for r in (r for r in gaps if (r["stage"], r["metric"]) == (stage, metric) and int(r["n"]) >= 1):
            at = r["arm"], r["cells"]
            self.gap[at] = num(r["difference"], "%+.3f") + (f" ({span(r, '%+.3f')})" if known(r["low"]) else "") + few(r)
            self.p[at] = f"{float(r['p']):.2g}; {float(r['p_corrected']):.2g}" if known(r["p"]) else "-"
            self.power[at] = num(r["detectable"], "%.3f")

    def block(self, head, text, strategies):
        if head:
            print("  " + head)
        for s in (s for s in strategies if any(arm == s for arm, _ in self.mean)):
            print(f"{'  ' * bool(head) + s:14}" + "".join(f"{text.get((s, z), '-'):>31}" for z in self.sizes))

    def needed(self, base, cells, want):
        """How many times these cells the first strategy needs for this mean: log cells are interpolated between its corpora."""
        have = [(int(z), self.f1[base, z]) for z in self.sizes if (base, z) in self.f1]
        for (z0, a), (z1, b) in zip(have, have[1:]):
            if a <= want <= b and a < b:
                return f"{exp(log(z0) + (want - a) / (b - a) * log(z1 / z0)) / cells:.2f}"
        if have and want > max(f1 for _, f1 in have):
            return f"> {have[-1][0] / cells:.2f}"
        return f"< {have[0][0] / cells:.2f}" if have and want < min(f1 for _, f1 in have) else "-"


def main(folder, inputs, strategies, sizes, seeds, how):
    strategies, sizes, seeds, seeds_text = strategies.split(), sizes.split(), seeds.split(), seeds
    base, others = strategies[0], strategies[1:]
    cells = {z: word(f"{inputs}/corpus-{z}.cells") for z in sizes} | {"0": "0"}
    scores = [[*arm.rsplit("-", 1), *row] for arm, *row in collect(f"{folder}/runs", ["scratch-0", *(f"{s}-{z}" for z in sizes for s in strategies)], seeds)]
    write(f"{folder}/scores.tsv", *scores)
    baselines, drawn = without_network(folder, inputs)
    points = [["stage", "metric", "cells", "strategy", "seed", "value"]]
    points += [[stage, metric, cells[z], strategy, seed, value] for stage in ("finetune", "probe") for metric in METRICS for z in ("0", *sizes)
               for strategy, size, seed, *of, value in scores if [size, *of] == [z, stage, metric]]
    write(f"{folder}/points.tsv", *points)
    within = ["--arm", "strategy", "--within", "stage,metric,cells"]
    summary = means(f"{folder}/summary.tsv", points, *within)
    gaps = differences(f"{folder}/differences.tsv", points, [(s, base) for s in strategies], "--pair", "seed", *within)
    ours = "corrmask" if "corrmask" in strategies else strategies[-1]
    rivals = [s for s in strategies if s != ours]
    rare = rare_classes(scores, sizes[-1], ours, rivals)
    write(f"{folder}/rare.tsv", ["classes", "cells", "class", *rivals] if rare else ["classes"], *rare)

    print("corrmask table 6: " + "\n".join(lines(f"{inputs}/about")))
    print(how)
    print(f"mean (sd: standard deviation) over seeds ({seeds_text}); gaps to {base} are paired by seed, with the 95 % interval and the two-sided p of a t test; p, Holm: p")
    print(f"after a correction over all {sum(known(r['p']) for r in gaps)} gaps of this table; [n]: only n seeds are done")
    if baselines:
        names = ", ".join(dict.fromkeys(row[0] for row in baselines))
        print(f"{names}: classifiers without a network, from all training cells; in brackets the 95 % interval, bootstrap of {drawn}")
    for stage, metric, title in TABLES:
        t = Shown(stage, metric, summary, gaps, seeds)
        print(f"\n{title}\n{'':14}" + "".join(f"{z + ' cells':>31}" for z in t.sizes))
        for name, of, value, low, high, converged in baselines:
            if stage == "probe" and of == metric and known(value):
                text = f"{float(value):.3f}" + (f" ({float(low):.3f} to {float(high):.3f})" if known(low) else "")
                print(f"{name:14}{text:>31}   ({BASELINES[name]}, no network{'; did not converge' if known(converged) and float(converged) == 0 else ''})")
        if ("scratch", "0") in t.mean:
            print(f"{'scratch':14}{t.mean['scratch', '0']:>31}   (random weights, no pre-training)")
        t.block("", t.mean, strategies)
        if others:
            t.block(f"gap to {base}, 95 % interval", t.gap, others)
            t.block("p; p, Holm", t.p, others)
            t.block("smallest gap that this many seeds find in 80 % of experiments", t.power, others)
        if (stage, metric) == ("finetune", "macro_f1"):
            if others and len(t.sizes) > 1:  # the paper's figure 5
                print(f"  times the cells with which {base} has the same mean (compare with the gaps and their p)")
                for s in others:
                    print(f"  {s:12}" + "".join(f"{t.needed(base, int(z), t.f1[s, z]) if (s, z) in t.f1 else '-':>31}" for z in t.sizes))
            print(PAPER)
    if rare:
        print(f"\nMacro F1 over the rarest classes, {ours} - other, after fine-tuning, {cells[sizes[-1]]} cells (the paper's figure 6)")
        head = ["rarest", "training", "up to class", *rivals]
        table = [head, *([n, train, name, *("NA" if x == "NA" else num(x, "%+.3f") for x in row)] for n, train, name, *row in rare)]
        for (n, train, _, *row), name in zip(table, padded([row[2] for row in table])):
            print(f"{n:>8} {train:>9}  {name}" + "".join(f" {x:>12}" for x in row))
    print()
    stage_times(f"{folder}/log")
