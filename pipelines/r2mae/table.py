"""table.py r2mae/table FOLDER INPUTS "METHOD..." "SEED..." NETWORK: the tables of make r2mae-cells from the scores under FOLDER/runs; runs without scores are left
out. FOLDER/points.tsv has the values, summary.tsv their means, differences.tsv the gaps to the first method, draws.tsv those of the probe over
draws of the tested cells (armstat compare)."""
import re
from pathlib import Path

from table import HERE, NO_NETWORK, collect, differences, fields, known, lines, means, num, span, stage_times, tool, word, write

RATES = ["0.1", "0.2", "0.3", "0.5", "0.7"]
OF_TARGET = {"target/spearman": "Spearman", "target/group_spearman": "by-group"}
RANK = {"rank/entropy": "entropy", "rank/effective_rank": "exp(entropy)"}
OF_LABEL = {"balanced_accuracy": "BAcc", "macro_f1": "F1", "auroc": "AUROC"}


def compared(stage, metric):
    return (stage.startswith("valid-") and metric == "pearson" or stage.startswith("label") and metric in OF_LABEL
            or stage == "target" and metric.endswith("spearman"))


def draws(folder, inputs, methods, seeds, stages):
    """A draw of the tested cells is the same for all methods; a baseline is paired with each seed."""
    yield ["method", "seed", "stage", "draw", "accuracy", "balanced_accuracy", "macro_f1"]
    for method in methods:
        for seed in seeds:
            for stage in (s for s in stages if Path(f"{folder}/runs/{methods[0]}-{seed}/{s}.replicates.tsv").exists()):
                own = f"{inputs}/{method}" if method in NO_NETWORK else f"{folder}/runs/{method}-{seed}"
                yield from ([method, seed, stage, *row] for row in fields(f"{own}/{stage}.replicates.tsv")[1:])


def few(r, want):
    return f" [{r['n']}]" if int(r["n"]) < want and r["arm"] not in NO_NETWORK else ""


def print_table(title, summary, methods, columns, want):
    """One line for each method. columns: STAGE/METRIC -> its name."""
    shown = {(r["arm"], f"{r['stage']}/{r['metric']}"): f"{float(r['mean']):.4f}" + (f" (sd {float(r['sd']):.4f})" if known(r["sd"]) else "") + few(r, want)
             for r in summary if int(r["n"]) > 0}
    print(f"\n{title}\n{'':16}" + "".join(f"{name:>24}" for name in columns.values()))
    for m in methods:
        row = [shown.get((m, of), "-") for of in columns]
        if set(row) != {"-"}:
            print(f"{m:16}" + "".join(f"{x:>24}" for x in row))


def print_gaps(found, base, methods, columns, want):
    """One line for each column and method."""
    form = lambda *texts: "".join(f"{t:>{wide}}" for t, wide in zip(texts, (10, 24, 10, 10)))
    print(f"\n  {'gap to ' + base:24}" + form("mean", "95 % interval", "p", "p, Holm"))
    rows = {(f"{r['stage']}/{r['metric']}", r["arm"]): r for r in found if int(r["n"]) > 0}
    for of, name in columns.items():
        for r in (rows[of, m] for m in methods if (of, m) in rows):
            print(f"  {name:8}{r['arm']:16}" + form(num(r["difference"], "%+.4f"), span(r, "%+.4f"), num(r["p"], "%.2g"), num(r["p_corrected"], "%.2g")) + few(r, want))


def print_draws(found, stage):
    if found:
        print(f"{'':16}{'BAcc':>30}{'F1':>30}")
    for arm in dict.fromkeys(r["arm"] for r in found if r["stage"] == stage):
        print(f"{arm:16}" + "".join(f"{span(r, '%+.4f'):>30}" for r in found if (r["arm"], r["stage"]) == (arm, stage)))


def print_ranks(folder, summary, methods, metrics, words):
    """Score and mean rank of the methods, by their mean metrics [R2MAE, table 6]"""
    Path(folder, "means").mkdir(exist_ok=True)
    ranked = []
    for m in methods:
        found = [[of, r["mean"]] for r in summary if r["arm"] == m and (of := f"{r['stage']}/{r['metric']}") in metrics]
        write(f"{folder}/means/{m}", ["metric", "value"], *found)
        ranked += [f"{folder}/means/{m}"] * (len(found) == len(metrics))
    if len(ranked) > 1:
        print(f"\nScore (mean of the metrics) and mean rank, by {words}")
        for line in tool("armstat", "leaderboard", "-q", "-m", "+".join(metrics), *ranked).splitlines()[1:]:
            path, score, rank = line.split("\t")[:3]
            print(f"{path.rpartition('/')[2]:16}{float(score):20.4f}{float(rank):20.2f}")


def main(folder, inputs, methods, seeds, network):
    methods, seeds, seeds_text = methods.split(), seeds.split(), seeds
    base, *others = methods
    labels, target, group, want = lines(f"{inputs}/label"), word(f"{inputs}/target"), word(f"{inputs}/group"), len(seeds)
    stages = {"label" if i == 1 else f"label-{i}": label for i, label in enumerate(labels, 1)}
    points = [*collect(f"{folder}/runs", ["untrained", *methods], seeds), *([name, "0", *row] for name, *row in fields(f"{inputs}/baselines.tsv"))]
    points = [["method", "seed", "stage", "metric", "value"], *(row for row in points if re.match("-?[0-9.]", row[4]) and ":" not in row[3])]
    write(f"{folder}/points.tsv", *points)
    summary = means(f"{folder}/summary.tsv", points, "--arm", "method", "--within", "stage,metric")
    gaps = differences(f"{folder}/differences.tsv", [points[0], *(row for row in points[1:] if compared(*row[2:4]))], [(m, base) for m in others],
                       "--arm", "method", "--pair", "seed", "--within", "stage,metric")
    rest = [*NO_NETWORK, "untrained", *others]
    of_draws = differences(f"{folder}/draws.tsv", list(draws(folder, inputs, [base, *rest], seeds, stages)), [(m, base) for m in rest],
                           "--arm", "method", "--pair", "seed", "--within", "stage", "--draws", "draw", "--metrics", "balanced_accuracy,macro_f1")

    print("corrmask r2mae-cells: " + "\n".join(lines(f"{inputs}/about")))
    print(network)
    print(f"mean (sd: standard deviation) over seeds ({seeds_text}); gaps to {base} are paired by seed: mean (95 % interval); two-sided p of a t test; p after Holm's")
    print("correction over all gaps of this table; [n]: only n seeds are done")
    networks = ["untrained", *methods]
    rates = {f"valid-{r}/pearson": r for r in RATES}
    print_table("Masked genes of validation cells: Pearson correlation in a cell, by the share of genes that are masked", summary, networks, rates, want)
    print_gaps(gaps, base, others, rates, want)
    print_table("The same, Spearman correlation", summary, networks, {f"valid-{r}/spearman": r for r in RATES}, want)
    for stage, label in stages.items():
        columns = {f"{stage}/{metric}": name for metric, name in OF_LABEL.items()}
        print_table(f"Probe of {label} in cells of other donors", summary, [*NO_NETWORK, *networks], columns, want)
        if stage == "label":
            print("no network: log-normalised expression, its 50 principal components (pca), naive Bayes of the counts; untrained: random weights")
        print_gaps(gaps, base, others, columns, want)
        print(f"\n  gap to {base}, mean over seeds: 95 % interval over 1,000 draws of the tested {group or 'cell'}s")
        print_draws(of_draws, stage)
    if target:
        print_table(f"Probe of {target} in cells of other donors", summary, ["expression", "pca", *networks], OF_TARGET, want)
        print_gaps(gaps, base, others, OF_TARGET, want)
    print_table("Effective rank of the embeddings of validation cells", summary, networks, RANK, want)
    metrics = [f"{stage}/{metric}" for metric in ("balanced_accuracy", "macro_f1") for stage in stages] + list(OF_TARGET if target else ())
    print_ranks(folder, summary, [*NO_NETWORK, *networks], metrics,
                f"balanced accuracy and macro F1 of {', '.join(labels)}" + (f" and both Spearman correlations of {target}" if target else ""))
    print("\n" + "\n".join(lines(HERE / "r2mae/paper.txt")) + "\n")
    stage_times(f"{folder}/log")
