"""table.py finetune/report DIR DATA LABEL START...: the table of make finetune, from the scores and logs under DIR."""
from pathlib import Path

from table import NO_NETWORK, SIMULATED, armstat, as_table, fields, known, padded, rows, stage_times, units, values


def number(v, name):
    return f"{float(v[name]):.4f}" if v.get(name, "nan") != "nan" else "-"


def best(folder, start):
    """The step whose weights were kept: smallest validation loss."""
    path = Path(folder, f"{start}.model/train.tsv")
    steps = [(float(r["eval_loss"]), r["step"]) for r in rows(path) if known(r.get("eval_loss"))]
    return min(steps, key=lambda step: step[0], default=("", "-"))[1] if path.exists() else ""


def print_cells(folder, first):
    for part in ("train", "valid", "test"):
        v = values(f"{folder}/log/scsample-{part}.report")
        if v:
            print(f"{part}: {v.get('cells_out', '')} of {v.get('cells_in', '')} cells")
    log = f"{folder}/log/ctaprobe-{first}.report"
    if Path(log).exists():
        v = values(log)
        print(f"test: {v.get('cells', '')} cells scored, {v.get('classes', '')} classes, {v.get('model_classes', '')} of them the model's")
        print("".join(row[1] + "\n" for row in fields(log) if row[0] == "warning"), end="")


def print_classes(scores):
    print("\nper class (cells in training, cells scored, F1)")
    first, of = next(iter(scores.values())), {name.partition(":")[2] for v in scores.values() for name in v if name.startswith(("f1:", "n:", "train_n:"))}
    count = lambda c: [f"{int(float(first.get(f'{what}:{c}') or 0)):7}" for what in ("train_n", "n")]
    table = sorted(([c, *count(c), *(f"{float(v.get(f'f1:{c}') or 0):10.4f}" for v in scores.values())] for c in of), key=lambda row: (-int(row[1]), row))
    table.insert(0, ["class", f"{'train':>7}", f"{'test':>7}", *(f"{s:>10}" for s in scores)])
    for (_, *row), name in zip(table, padded([row[0] for row in table])):
        print(" ", name, *row)


def main(folder, data, label, *starts):
    scores = {m: v for m in (*starts, *NO_NETWORK) if (v := values(f"{folder}/{m}.score.tsv"))}
    print(f"corrmask fine-tuning: {data or SIMULATED}, label {label}")
    print_cells(folder, starts[0])
    print()
    head = ["start", "accuracy", "balanced accuracy", "macro F1", "rarest F1", "unknown", "step",
            f"95 % interval of macro F1: bootstrap of {units(scores[starts[0]])}"]
    as_table(f"{folder}/starts.table", "Cell types of the test cells, by what the network started from", [head, *(
        [m, *(number(v, of) for of in ("accuracy", "balanced_accuracy", "macro_f1", "f1_rare")), number(v, "unknown").partition(".")[0], best(folder, m),
         f"{number(v, 'macro_f1_low')} - {number(v, 'macro_f1_high')}"] for m, v in scores.items())])
    print("expression, pca: logistic regression on log-normalised expression, and on 50 principal components; naive-bayes: of the counts; no network")
    for m in starts[1:]:
        draws = [["start", "draw", "accuracy", "balanced_accuracy", "macro_f1"],
                 *([s, *row] for s in (starts[0], m) for row in fields(f"{folder}/{s}.score.replicates")[1:])]
        for r in armstat(None, draws, "--arm", "start", "--draws", "draw", "--metrics", "macro_f1"):
            if int(r["n"]) > 0:
                print(f"macro F1, {r['arm']} - {r['reference']}: 95 % interval {float(r['low']):+.4f} to {float(r['high']):+.4f} over the same draws; one seed, "
                      "so other trainings can differ more")
    print_classes({m: scores[m] for m in starts})
    print()
    stage_times(f"{folder}/log")
