"""What the folder of a run holds, and what its streams and the reports of its stages say."""
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

STREAMS = (".counts", ".tok", ".graph", ".emb", ".pred", ".masked")
BIN = os.environ.get("BIN", "")


# ---- files ----

def natural(path):
    """The order of names with numbers: a-2 before a-10."""
    return [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", str(path))]


def read_text(path):
    return Path(path).read_text(encoding="utf-8", errors="replace")


def lines_of(text):
    """Names of types may have other characters at which splitlines() splits."""
    return text.removesuffix("\n").split("\n") if text else []


def read_table(path):
    """Rows of fields; a file that is not there has none."""
    try:
        return [line.split("\t") for line in lines_of(read_text(path))]
    except FileNotFoundError:
        return []


def columns_of(rows, *names):
    """The named columns of the rows below the first, or None if one is not there."""
    if not rows or any(n not in rows[0] for n in names):
        return None
    at = [rows[0].index(n) for n in names]
    return [[row[i] if i < len(row) else "" for i in at] for row in rows[1:]]


def number(text):
    try:
        return float(text) if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text) else None
    except ValueError:
        return None


def spread(n, most):
    """At most `most` of the numbers below n, evenly spaced."""
    return [i * n // min(n, most) for i in range(min(n, most))]


def tool(name, *arguments):
    """The output of one of the tools, as lines; the tools of the build (BIN) come first."""
    path = os.path.join(BIN, name) if BIN else name
    done = subprocess.run([path, *map(str, arguments)], stdout=subprocess.PIPE, check=True)
    return lines_of(done.stdout.decode("utf-8", "replace"))


def has(*names):
    return all(shutil.which(n, path=BIN + os.pathsep + os.environ.get("PATH", "")) for n in names)


class Run:
    def __init__(self, folder):
        self.dir = folder
        self.own = folder / "report"
        self.results = folder.parent.parent
        self.settings = [line.partition(" = ")[::2] for line in read_text(folder / "settings").splitlines()]
        self.parts = list(self.made_from())
        self.files = sorted((Path(top) / f for top, folders, names in os.walk(folder) for f in names
                             if not self.skipped(Path(top))), key=natural)

    def skipped(self, folder):
        return self.own == folder or self.own in folder.parents or any(p.name.startswith("checkpoint-") for p in (folder, *folder.parents))

    def setting(self, name):
        return dict(self.settings).get(name, "")

    def made_from(self):
        """The folders of other runs whose settings are all among this one's, such as its prepared cells."""
        mine = set(self.settings)
        for path in sorted(self.results.glob("*/*/settings")):
            other = path.parent
            if other.is_symlink() or other == self.dir:
                continue
            theirs = [line.partition(" = ")[::2] for line in read_text(path).splitlines()]
            theirs = [s for s in theirs if s[0] != "name"]
            if any(k in ("DATA", "TOKENS") for k, _ in theirs) and set(theirs) <= mine:
                yield other

    def named(self, *endings):
        return [f for f in self.files if f.name.endswith(endings)]

    def everywhere(self, pattern):
        """Files of this run and of those that it was made from."""
        return [f for d in (*self.parts, self.dir) for f in sorted(d.glob(pattern), key=natural) if not self.skipped(f.parent)]


def trainings(run, top, table_name, column, most):
    """The curves of one column of the tables of the trainings in the folder top; of a larger grid those that come first."""
    curves = []
    for f in (f for f in run.everywhere(f"**/{table_name}.tsv") if top in f.parents):
        name = str(f.relative_to(top).parent).removesuffix(".model").removeprefix("runs/")
        values = columns_of(read_table(f), "step", column) or []
        curve = [(number(x), number(y)) for x, y in values]
        curve = [(x, y) for x, y in curve if x is not None and y is not None]
        if len(curve) > 1:
            curves.append((name, curve))
    return curves[:most]


# ---- provenance ----

def stages(run):
    """Stage, seconds and peak memory, in the order of the run."""
    logs = [f for d in (*run.parts, run.dir) for f in d.glob("log/*.report")]
    for f in sorted(logs, key=lambda f: f.stat().st_mtime):
        rows = [r for r in read_table(f) if len(r) == 2]
        seconds = [v for k, v in rows if k == "seconds"]
        memory = [float(v) for k, v in rows if k == "peak_memory_mb"]
        yield [f.name.removesuffix(".report"), f"{float(seconds[-1]):.2f}" if seconds else "", f"{max(memory):.0f}" if memory else ""]


def inputs(run):
    """What h5tok decided about each file that was read, as its reports say: file, property, value."""
    for f in sorted((f for d in (*run.parts, run.dir) for f in d.glob("log/*.report")), key=natural):
        rows = [(k.split(":", 2)[1:], v) for k, v in (r for r in read_table(f) if len(r) == 2) if k.startswith("input:")]
        names = {number: v for (number, k), v in rows if k == "file"}
        yield from ([names[number], k, v] for (number, k), v in rows if k != "file")


def messages(run, kind):
    """The warnings or notes of the stages, each once, whatever file they are of."""
    found = {}
    for f in sorted((f for d in (*run.parts, run.dir) for f in d.glob("log/*.log")), key=lambda f: f.stat().st_mtime):
        for line in read_text(f).splitlines():
            m = re.match(rf"([a-z0-9 -]+): {kind}: (?:[^ ]*/[^ ]*: +)?(.*)", line)
            if m:
                found[f"{m[1]}: {m[2]}"] = True
    return list(found)


def cuts(run):
    """A sentence for each stage that has cut cells to a maximum number of tokens."""
    for f in sorted((f for d in (*run.parts, run.dir) for f in d.glob("log/*.report")), key=lambda f: f.stat().st_mtime):
        found = {r[0]: r[1] for r in read_table(f) if len(r) == 2}
        if "cells_cut" in found:
            yield (f"{f.stem}: {found['cells_cut']} of {found.get('cells_in') or found.get('cells')} cells are cut to {found['cut_to']} tokens (MAXLEN): "
                   f"those of the lowest rank, {float(found['percent_of_tokens_cut']):.1f} % of all, are not read")


def streams(run, endings):
    return [f for d in (*run.parts, run.dir) for f in sorted(d.glob("*"), key=natural) if f.name.endswith(endings)]


def commands(run):
    """Which commands made each stream, as the stream itself says."""
    for f in streams(run, STREAMS):
        made = {}
        for line in tool("scview", "--header-tsv", f):
            m = re.match(r"provenance\.(\d+)\.(program|version|options)\t(.*)", line)
            if m:
                made.setdefault(int(m[1]), {})[m[2]] = m[3]
        for i in sorted(made):
            yield [str(f.relative_to(run.results)), *(made[i].get(k, "") for k in ("program", "version", "options"))]


def digests(run):
    models = [f for f in run.everywhere("**/model.safetensors") if "runs" not in f.parts]
    for f in [*streams(run, (*STREAMS, ".tsv", ".table")), *models]:
        h = hashlib.sha256()
        with open(f, "rb") as data:
            for piece in iter(lambda: data.read(1 << 20), b""):
                h.update(piece)
        yield [str(f.relative_to(run.results)), str(f.stat().st_size), h.hexdigest()]


def versions():
    for t in ("h5tok", "rankenc", "depgraph", "maskgen", "sctrain", "scembed", "scpredict", "screduce", "ctaprobe", "scmetric", "armstat"):
        if has(t):
            yield [t, " ".join(tool(t, "--version"))]
