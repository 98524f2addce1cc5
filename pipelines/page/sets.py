"""table.py page/sets GOAL FOLDER SETS RESULTS MAKE...: make GOAL SETS=: the experiment on each row of the table SETS, and one table of all. Its first column, set,
has names; the others are variables of make, such as DATA, LABEL and GENES; an empty field leaves the default. RESULTS/FOLDER/sets-DIGEST has points.tsv
(set, arm, seed, metric, value), differences.tsv (of each set, and over all) and table.txt. A row that fails does not stop the others."""
import contextlib
import hashlib
import io
import re
import subprocess
import sys
from pathlib import Path

from table import BASELINES, armstat, as_table, bracket, crossed, fields, known, means, num, put, rows, setting, splits, tsv, write

ALL = "mean of the sets"


def settings(path):
    """Name and words VARIABLE=VALUE of each row."""
    if not Path(path).is_file():
        sys.exit(f"SETS={path}: no such file")
    head, *table = fields(path) or [[""]]
    wrong = next((name for name in head[1:] if not re.fullmatch("[A-Z][A-Z0-9_]*", name) or name == "SETS"), None)
    if head[0] != "set" or wrong or not table:
        sys.exit(f"SETS={path}: " + (f"column '{wrong}' is no variable" if wrong else "no rows" if head[0] == "set" else f"the first column is '{head[0]}'") +
                 ": expected a table with the columns set, DATA, LABEL ..., and a row for each set")
    for at, row in enumerate(table, 2):
        if len(row) != len(head) or not row[0] or row[0] in [other[0] for other in table[:at - 2]]:
            sys.exit(f"SETS={path}: line {at}: expected {len(head)} columns and a name of its own")
    return [(row[0], [f"{name}={value}" for name, value in zip(head[1:], row[1:]) if value]) for row in table]


def run(make, goal, name, words, latest):
    """The folder of the experiment on one set, or nothing if it failed."""
    print(f"== {name}: {' '.join(words)}", file=sys.stderr, flush=True)
    done = subprocess.run([*make, goal, "SETS=", *words], stdout=sys.stderr, check=False).returncode == 0
    folder = Path(latest).resolve()
    return folder if done and (folder / "points.tsv").exists() else None  # none after make -n


def over_all(points, sets):
    """Arm, seed and metric that every set has, with the mean of their values."""
    values = {}
    for _, arm, seed, metric, value in points:
        values.setdefault((arm, seed, metric), []).append(value)
    return [[ALL, *key, f"{sum(map(float, v)) / len(v):.9g}"] for key, v in values.items() if len(v) == len(sets) > 1 and all(map(known, v))]


def compare(folder, runs):
    """The points of all, and the differences that the experiment looks at: those of each set, and those of the means of the sets with their own Holm."""
    of = {name: (rows(run / "points.tsv"), rows(run / "differences.tsv")) for name, run in runs.items()}
    points = [[name, *(p[c] for c in ("arm", "seed", "metric", "value"))] for name, (all_points, _) in of.items() for p in all_points]
    points += over_all(points, runs)
    write(f"{folder}/points.tsv", ["set", "arm", "seed", "metric", "value"], *points)
    pairs = dict.fromkeys((d["arm"], d["reference"], d["metric"]) for _, all_differences in of.values() for d in all_differences)
    found = [{"set": name, **d} for name, (_, all_differences) in of.items() for d in all_differences]
    metrics = {metric for *_, metric in pairs}
    joined = [row[1:] for row in points if row[0] == ALL and row[3] in metrics]
    there = {row[0] for row in joined}
    both = dict.fromkeys((arm, reference) for arm, reference, _ in pairs if {arm, reference} <= there)
    if both:
        split = splits(all(setting(run, "DATA") for run in runs.values()))
        found += [{"set": ALL, **d} for d in armstat("", [["arm", "seed", "metric", "value"], *joined], *(w for a, b in both for w in ("--compare", f"{a}:{b}")),
                                                    "--pair", "seed", "--within", "metric", *split)]
    names = list(dict.fromkeys(name for d in found for name in d))
    write(f"{folder}/differences.tsv", names, *([d.get(name, "NA") for name in names] for d in found))
    return points, found


def show(folder, goal, runs, failed, points, found):
    print(f"corrmask {goal}: {len(runs)} sets" + "".join(f"\nfailed, and left out: {name}" for name in failed))
    for name, run in runs.items():
        print(f"  {name}: {run}/report.html")
    print("Means over seeds; of differences also 95 % intervals, paired by seed, and p after Holm's correction: of a set's own differences, and of those of the means")
    summary = means(f"{folder}/summary.tsv", [["set", "arm", "seed", "metric", "value"], *points], "--within", "set,metric")
    for number, metric in enumerate(dict.fromkeys(d["metric"] for d in found if known(d["p"])), 1):
        print()
        as_table(f"{folder}/{number}-means.table", f"{metric}: means",
                 crossed("arm", ((BASELINES.get(r["arm"], r["arm"]), r["set"], num(r["mean"], "%.3f")) for r in summary if r["metric"] == metric)))
        print()
        as_table(f"{folder}/{number}-differences.table", f"{metric}: differences", [["arm", "minus", "set", "difference", "p", "p (Holm)"], *(
            [*(BASELINES.get(d[x], d[x]) for x in ("arm", "reference")), d["set"], f"{num(d['difference'], '%+.3f')} {bracket(d)}", num(d["p"], "%.2g"),
             num(d["p_corrected"], "%.2g")] for d in sorted((d for d in found if d["metric"] == metric and known(d["p"])),
                                                            key=lambda d: (d["arm"], d["reference"])))])


def main(goal, of, sets, results, *make):
    each = settings(sets)
    runs = {name: run(make, goal, name, words, f"{results}/{of}/latest") for name, words in each}
    failed = [name for name, folder in runs.items() if not folder]
    runs = {name: folder for name, folder in runs.items() if folder}
    if not runs:
        sys.exit(f"{goal}: no set is done")
    folder = Path(results, of, "sets-" + hashlib.sha256(tsv([[*map(str, runs.values())]]).encode()).hexdigest()[:8])
    folder.mkdir(parents=True, exist_ok=True)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        show(folder, goal, runs, failed, *compare(folder, runs))
    put(folder / "table.txt", out.getvalue())
    print(out.getvalue() + f"\n  {folder}/table.txt")
    sys.exit(f"{goal}: failed: {', '.join(failed)}" if failed else 0)
