#!/usr/bin/env python3
"""Tables of an experiment: what the scores of its runs say, as text on standard output, and as tables for the figures and the page.

    table.py EXPERIMENT/NAME ARGUMENT...      runs `main` of pipelines/EXPERIMENT/NAME.py, which says what is shown

Means, differences, their intervals and their p are those of armstat compare. This program needs Python alone, and the tools.
"""
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
BASELINES = {"expression": "log-normalised expression", "pca": "50 principal components", "naive-bayes": "naive Bayes of the counts",
             "untrained": "untrained network"}  # what networks are compared with
NO_NETWORK = [b for b in BASELINES if b != "untrained"]
SIMULATED = "simulated cells (scsim)"


# ---- files and tools ----

def lines(path):
    """Of a file; one that is not there has none."""
    path = Path(path)
    text = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
    return text.removesuffix("\n").split("\n") if text else []


def fields(path):
    return [line.split("\t") for line in lines(path)]


def word(path):
    """The one line of a file, or nothing."""
    return "\n".join(lines(path)).rstrip("\n")


def named(table):
    """The rows of a table below its names, each as name -> text."""
    return [dict(zip(table[0], row)) for row in table[1:]]


def rows(path):
    return named(fields(path))


def values(path, start=0):
    """name -> value, of a table with these two columns; the last one counts."""
    return {row[0]: row[1] if len(row) > 1 else "" for row in fields(path)[start:]}


def setting(folder, name):
    return next((line.partition(" = ")[2] for line in lines(Path(folder, "settings")) if line.startswith(name + " = ")), "")


def put(path, text):
    """Write a file, whole and on disk before it has its name."""
    new = Path(f"{path}.new")
    with open(new, "w", encoding="utf-8", errors="surrogateescape") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    new.replace(path)


def tsv(table):
    return "".join("\t".join(row) + "\n" for row in table)


def write(path, *table):
    put(path, tsv(table))


def tool(*command, text=None, may_fail=False):
    """The output of a program; what it says is on standard error. If it fails, this program ends with its status."""
    done = subprocess.run([str(c) for c in command], input=text, stdout=subprocess.PIPE, encoding="utf-8", errors="surrogateescape",
                          stderr=subprocess.DEVNULL if may_fail else None, check=False)
    if done.returncode and not may_fail:
        sys.exit(done.returncode)
    return done.stdout


def columns(stream, *names, n=None):
    """The rows of a stream, or the first n, with these columns."""
    said = tool("scview", "-q", *(["-n", n] if n else []), "-c", ",".join(names), stream)
    return [line.split("\t") for line in said.removesuffix("\n").split("\n")[1:]]


def header_lines(stream):
    return tool("scview", "-q", "--header-tsv", stream).split("\n")


def sizes(stream):
    """The number of its rows."""
    return next(row[2] for row in (line.split("\t") for line in tool("scview", "-s", stream).split("\n")) if row[1:2] == ["rows"])


# ---- scores and their comparison ----

def collect(runs, arms, seeds):
    """Arm, seed and the fields of each line of RUNS/ARM-SEED/scores.tsv; runs without scores are left out."""
    return [[arm, seed, *row] for seed in seeds for arm in arms for row in fields(f"{runs}/{arm}-{seed}/scores.tsv") if row != ["metric", "value"]]


def armstat(out, table, *options):
    """armstat compare of a table (rows of text, or a file): its rows, also in the file `out`."""
    given = {"text": tsv(table)} if isinstance(table, list) else {}
    text = tool("armstat", "compare", "-q", *options, *([] if given else [table]), **given)
    if out:
        put(out, text)
    return named([line.split("\t") for line in text.splitlines()] or [[]])


def means(out, table, *options):
    return armstat(out, table, "--means", *options)


def differences(out, table, pairs, *options):
    """Of these pairs of arms that both have values; without any there are none."""
    there = {row[table[0].index(options[options.index("--arm") + 1] if "--arm" in options else "arm")] for row in table[1:]}
    pairs = [f"{arm}:{reference}" for arm, reference in pairs if arm != reference and {arm, reference} <= there]
    if pairs:
        return armstat(out, table, *(w for pair in pairs for w in ("--compare", pair)), *options)
    put(out, "")
    return []


def splits(data):
    """Options of armstat: with DATA, the splits of the cells overlap."""
    return ["--splits", "3:1"] if data else []


def median(numbers):
    return sorted(numbers)[(len(numbers) - 1) // 2]


# ---- words ----

def known(text):
    return text not in ("NA", "", None)


def num(text, form):
    """A number, without a sign if it prints as 0, and - if there is none."""
    if not known(text):
        return "-"
    shown = form % float(text)
    return form % 0 if float(shown) == 0 else shown


def span(row, form):
    """The interval of a row of armstat compare."""
    return f"{num(row['low'], form)} to {num(row['high'], form)}" if known(row["low"]) else "-"


def plain(x, digits=6):
    return f"{int(x)}" if x == x // 1 else f"{x:.{digits}g}"


def bracket(row, form="%.3f"):
    return f"[{num(row['low'], form)}, {num(row['high'], form)}]" if known(row["low"]) else "[NA]"


def text(value, form):
    return form % float(value) if known(value) else "NA"


def crossed(first, cells):
    """A table of (row, column, text), which both keep their order; - where there is none."""
    cells = list(cells)
    at = {(row, column): shown_ for row, column, shown_ in cells}
    names = dict.fromkeys(column for _, column, _ in cells)
    return [[first, *names], *([row, *(at.get((row, column), "-") for column in names)] for row in dict.fromkeys(row for row, _, _ in cells))]


def fold(text, width):
    """The lines of a text, each of at most so many characters, broken at blanks."""
    out = []
    while len(text) > width:
        at = text.rfind(" ", 0, width) + 1 or width
        out.append(text[:at].rstrip(" "))
        text = text[at:]
    return [*out, text.rstrip(" ")]


def as_table(path, caption, table, width=0):
    """A table whose first row has the names, as a file for the summary of the page, and as text: names to the left, numbers to the right. The names of
    the first column are cut where a line would have more than `width` characters."""
    put(path, f"# {caption}\n" + tsv(table))
    print(*fold(caption, width or 1000), sep="\n")
    most = max(map(len, table))
    table = [[*row, *[""] * (most - len(row))] for row in table]
    wide = [max(map(len, column)) for column in zip(*table)]
    texts = [any(not re.fullmatch(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?|NA|-?", cell) for cell in column[1:]) for column in zip(*table)]
    keep = wide[0] - sum(wide) - 3 * (most - 1) + width
    if width and 2 < keep < wide[0]:
        table = [[row[0] if len(row[0]) <= keep else row[0][:keep - 2] + "..", *row[1:]] for row in table]
        wide[0] = keep
    for row in table:
        print("   ".join(cell.ljust(n) if text else cell.rjust(n) for cell, n, text in zip(row, wide, texts)).rstrip(" "))


def padded(names):
    wide = max(map(len, names))
    return [name.ljust(wide) for name in names]


def tell(folder, *sentences):
    """The answer in sentences, a line each, printed, and in findings.txt for the page."""
    text = "".join(s + "\n" for s in sentences if s)
    put(f"{folder}/findings.txt", text)
    print(text, end="")


def counted(rows_, where=""):
    """What is below .05 among differences, before a correction."""
    p = [float(r["p"]) for r in rows_ if known(r["p"])]
    return (f"{len(p)} differences{where}; without any effect {len(p) * .05:.1f} of them would have p below .05 on average, and "
            f"{sum(x < .05 for x in p)} have.")


def shown(rows_):
    """Those with p below .05 after Holm's correction."""
    return [r for r in rows_ if known(r["p_corrected"]) and float(r["p_corrected"]) < .05]


def after_holm(found):
    return "\n".join(["Those with p below .05 after Holm's correction:", *found]) if found else "None has p below .05 after Holm's correction."


# ---- what is said of all experiments ----

def units(scores):
    """What the intervals of these scores of ctaprobe are over, such as "6 groups"."""
    n = scores.get("bootstrap_units", "")
    return f"{n} {'groups' if float(n or 0) < float(scores.get('cells') or 0) else 'cells'}"


def reported(path, name):
    """The last value of a name in a report, or nothing."""
    return values(path).get(name, "")


def split_by(folder):
    """How the prepared cells of a folder are split; it has the files group and settings."""
    return f"split by {word(Path(folder, 'group')) or 'cell'}"


def split_note(folder, stream):
    """If GROUP=auto found no column, say it, and which columns the stream has."""
    if not Path(folder, "group").exists() or word(Path(folder, "group")) or "GROUP = auto" not in lines(Path(folder, "settings")):
        return
    label = setting(folder, "LABEL")
    such = [line.removeprefix("categories:").split("\t") for line in header_lines(stream) if line.startswith("categories:")]
    such = [name for name, n, *_ in such if float(n) > 1]
    such = [name for name in such if name != label][:5]
    print("note: split by cell: no column such as donor, patient or sample was found. Cells of one donor may then be in both parts.",
          "GROUP=COLUMN names one" + (f" (such as: {', '.join(such)})" if such else "") + "; GROUP=none says that cells are right")


def no_edges(edges):
    return "No comparison: the graph has no edges, so CorrMask's masks were random masks. Raise MAXLEN or CELLS." if edges == "0" else ""


def not_learned(loss, table):
    """Why networks cannot be compared, if they cannot: the highest loss of these networks, beside that of the table of gene frequencies on the same
    masked genes (nothing: unknown)."""
    if loss is None or not re.search("[0-9]", table) or loss < float(table):
        return ""
    small = ", or leave out SCALE=tiny" if os.environ.get("SCALE") == "tiny" else ""
    return (f"No comparison: a network has learned less than the gene frequencies (loss {loss:.2f}, not below {float(table):.2f}). "
            f"Train longer: EPOCHS={small}.")


def highest_visible(points, reference, strategies):
    """The highest mean loss of these strategies with visible partners, and that of the gene frequencies."""
    losses = {s: [float(r["visible"]) for r in points if r["strategy"] == s] for s in strategies}
    table = [r["frequency"] for r in reference if r["masks"] == "visible"]
    return max((sum(v) / len(v) for v in losses.values() if v), default=None), table[-1] if table else ""


def warnings(*reports):
    """Of the stages with these reports, each once."""
    found = {row[1] for f in reports for row in fields(f) if row[0] == "warning"}
    print("".join(f"warning: {w}\n" for w in sorted(found)), end="")


def stage_times(*folders):
    """The stages in these folders of logs, one line for those whose names begin with the same word: runs, seconds, the largest peak memory."""
    reports = sorted((f for d in folders for f in Path(d).rglob("*.report")), key=lambda f: (f.stat().st_mtime_ns, str(f)))
    kinds = {}
    for f in reports:
        found = [row for row in fields(f) if len(row) > 1]
        seconds = [row[1] for row in found if row[0] == "seconds"]
        memory = max((float(row[1]) for row in found if row[0] == "peak_memory_mb"), default=0)
        kind = kinds.setdefault(f.stem.partition("-")[0], [0, 0, 0])
        kind[:] = kind[0] + 1, kind[1] + float(f"{float(seconds[-1]) if seconds else 0:.2f}"), max(kind[2], int(memory))
    print(f"{'stages':16} {'runs':>5} {'seconds':>10} {'peak memory':>12}")
    for kind, (n, seconds, memory) in kinds.items():
        print(f"{kind:16} {n:5} {seconds:10.2f} {f'{memory} MB':>12}")


def spec(name):
    """The module pipelines/NAME.py."""
    found = importlib.util.spec_from_file_location(name.replace("/", "_"), HERE / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def main(name, *arguments):
    if os.environ.get("BIN"):
        os.environ["PATH"] = os.path.abspath(os.environ["BIN"]) + os.pathsep + os.environ.get("PATH", "")
    module = spec(name)
    try:
        inspect.signature(module.main).bind(*arguments)
    except TypeError:
        sys.exit(module.__doc__)
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    module.main(*arguments)


if __name__ == "__main__":
    sys.modules["table"] = sys.modules["__main__"]  # for the experiment's file
    sys.dont_write_bytecode = True
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
