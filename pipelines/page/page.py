#!/usr/bin/env python3
"""One page on a run, FOLDER/report.html, from what its folder holds: tables, figures, embeddings, trainings, reports of its stages.
The page needs no other file and no network, and this program needs Python alone. Maps and layouts are kept in FOLDER/report.

    page.py FOLDER

    *.table              the answer: tables of the summary; the first line is "# CAPTION"
    findings.txt         the answer in sentences, one a line
    *.txt                reports as text
    *.svg                figures
    NAME.KIND.tsv        metrics, if the columns are metric and value: shown side by side by KIND; also runs/NAME/KIND.tsv
    *.tsv                other tables; with the columns fpr and tpr, ROC curves
    NAME.model/train.tsv trainings, also in the runs that this one was made from
    NAME.emb, *.graph    maps and modules
    log/NAME.report      time and memory of a stage
"""
import hashlib
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import chart
from chart import element

MOST_ROWS = 1000   # of a table
MOST_CELLS = 2000  # of a map
MOST_CURVES = 24   # trainings that are drawn, eight a figure
HERE = Path(__file__).resolve().parent
STREAMS = (".counts", ".tok", ".graph", ".emb", ".pred", ".masked")
BIN = os.environ.get("BIN", "")


# ---- files ----

def natural(path):
    """The order of names with numbers: a-2 before a-10."""
    return [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", str(path))]


def read_text(path):
    return Path(path).read_text(encoding="utf-8", errors="replace")


def read_table(path):
    """Rows of fields; a file that is not there has none."""
    try:
        return [line.split("\t") for line in read_text(path).splitlines()]
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


def tool(name, *arguments):
    """The output of one of the tools, as lines; the tools of the build (BIN) come first."""
    path = os.path.join(BIN, name) if BIN else name
    done = subprocess.run([path, *map(str, arguments)], stdout=subprocess.PIPE, check=True)
    return done.stdout.decode("utf-8", "replace").splitlines()


def has(*names):
    from shutil import which
    return all(which(n, path=BIN + os.pathsep + os.environ.get("PATH", "")) for n in names)


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


# ---- tables ----

def cell(text, share=False):
    """A long number is shown with four digits; the element data has all of them. share: with a bar."""
    v = number(text)
    if v is None:
        missing = text in ("NA", "nan", "-nan", "inf", "-inf", "")
        return element("td", text, class_="n" if missing else "long" if len(text) > 40 else None)
    shown = text
    if len(text) > 7 and re.search("[.e]", text):
        shown = f"{v:.1f}" if abs(v) >= 1000 else f"{v:.4g}"
    bar = share and 0 <= v <= 1
    return element("td", shown if shown == text else element("data", shown, value=text), class_="n bar" if bar else "n",
                   style=f"--v:{v:.3f}" if bar else None)


def table(caption, head, rows, shares=()):
    """shares: numbers of the columns whose values between 0 and 1 get a bar."""
    most = element("p", f"The first {MOST_ROWS} of {len(rows)} rows.") if len(rows) > MOST_ROWS else None
    heads = [element("th", element("button", h, type="button"), scope="col") for h in head]
    body = [element("tr", [cell(v, i in shares) for i, v in enumerate(row)]) for row in rows[:MOST_ROWS]]
    return element("div", element("table", element("caption", caption), element("thead", element("tr", heads)), element("tbody", body)), most,
                   class_="scroll", tabindex="0", role="region", aria_label=caption)


def details(title, *children):
    return element("details", element("summary", title), *children)


# ---- metrics of models ----

class Metrics:
    """Tables of metric and value, by kind: kind -> name -> metric -> text of the value."""
    def __init__(self, run):
        self.kinds, self.paths = {}, set()
        for f in run.named(".tsv"):
            with open(f, encoding="utf-8", errors="replace") as lines:
                if lines.readline().rstrip("\n") != "metric\tvalue":
                    continue
            stem = f.name[:-4]
            if f.parent != run.dir:
                name, kind = f.parent.name, stem
            elif "." in stem:
                name, kind = stem.split(".", 1)
            else:
                name, kind = stem, "metrics"
            self.paths.add(f)
            values = self.kinds.setdefault(kind, {}).setdefault(name, {})
            values.update((row[0], row[1] if len(row) > 1 else "") for row in read_table(f)[1:])

    @staticmethod
    def classes(values):
        return [k[2:] for k in values if k.startswith("n:")]

    @staticmethod
    def confusion(values, classes):
        """(true, predicted) -> cells; names of classes may have colons."""
        known, count = set(classes), {}
        for k, v in values.items():
            if k.startswith("confusion:"):
                rest = k[10:]
                for i in (m.start() for m in re.finditer(":", rest)):
                    if rest[:i] in known and rest[i + 1:] in known:
                        count[rest[:i], rest[i + 1:]] = v
                        break
        return count

    @staticmethod
    def groups(models):
        """Names that differ in the seed, NAME-1, NAME-2, are one group: group -> names."""
        out = {}
        for name in models:
            out.setdefault(re.sub(r"-\d+$", "", name), []).append(name)
        return out

    def class_tables(self):
        """For the summary: F1 of every class, means over the seeds, the most frequent class first."""
        for kind, models in self.kinds.items():
            groups = self.groups(m for m, v in models.items() if any(k.startswith("f1:") for k in v))
            if not groups or len(groups) > 12:
                continue
            first = models[next(iter(groups.values()))[0]]
            classes = sorted(self.classes(first), key=lambda c: -(number(first["n:" + c]) or 0))
            trained = any("train_n:" + c in first for c in classes)
            rows = []
            for c in classes:
                row = [c, *([first.get("train_n:" + c, "")] if trained else []), first["n:" + c]]
                for names in groups.values():
                    f1 = [number(models[n].get("f1:" + c, "")) for n in names]
                    f1 = [v for v in f1 if v is not None]
                    row.append(f"{sum(f1) / len(f1):.3f}" if f1 else "NA")
                rows.append(row)
            head = ["class", *(["training"] if trained else []), "cells", *groups]
            yield table(f"F1 of every class, {kind}" + (", means over the seeds" if any(len(n) > 1 for n in groups.values()) else ""), head, rows,
                        range(2 + trained, len(head)))

    def tables(self):
        for kind, models in self.kinds.items():
            names = list(models)
            keys = list(dict.fromkeys(k for v in models.values() for k in v))
            classes = list(dict.fromkeys(c for v in models.values() for c in self.classes(v)))
            known = set(classes)
            of_class = [k for k in keys if ":" in k and k.split(":", 1)[1] in known and not k.startswith("confusion:")]
            plain = [k for k in keys if k not in set(of_class) and not k.startswith("confusion:")]
            yield table(kind, ["metric", *names], [[k, *(models[n].get(k, "") for n in names)] for k in plain])
            if not classes:
                continue
            head, values = ["class"], []
            for k in dict.fromkeys(k.split(":", 1)[0] for k in of_class):
                each = [[models[n].get(f"{k}:{c}", "") for c in classes] for n in names]
                if all(v == each[0] for v in each):
                    head.append(k)
                    values.append(each[0])
                else:
                    head += [f"{k} {n}" for n in names]
                    values += each
            yield details(f"{kind}: classes", table(f"{kind}, classes", head, [list(row) for row in zip(classes, *values)]))
            each = [self.confusion(models[n], classes) for n in names]
            pairs = list(dict.fromkeys(p for e in each for p in e))
            if pairs:
                yield details(f"{kind}: confusion", table(f"{kind}, confusion", ["true class", "predicted class", *names],
                                                          [[*p, *(e.get(p, "0") for e in each)] for p in pairs]))

    def f1_groups(self, kind):
        """F1 and training cells of every class; of runs that differ in the seed the first one, if there are many."""
        models, seen = self.kinds[kind], set()
        for name, v in models.items():
            group = re.sub(r"-\d+$", "", name) if len(models) > 8 else name
            if group in seen:
                continue
            seen.add(group)
            classes = self.classes(v)
            trained = any("train_n:" + c in v for c in classes)
            dots = [(number(v.get(("train_n:" if trained else "n:") + c, "")), number(v.get("f1:" + c, "")), c) for c in classes]
            dots = [(x, y, f"{c}: F1 {y:.3f}, {x:g} cells") for x, y, c in dots if x and y is not None and number(v["n:" + c])]
            if dots:
                yield name, dots

    def confusion_figures(self):
        for kind, models in self.kinds.items():
            having = {n: v for n, v in models.items() if any(k.startswith("confusion:") for k in v)}
            groups = self.groups(having) if len(having) > 8 else {n: [n] for n in having}
            for group, names in groups.items():
                cells, count = {}, {}
                for n in names:
                    classes = self.classes(models[n])
                    for c in classes:
                        cells[c] = cells.get(c, 0) + (number(models[n]["n:" + c]) or 0)
                    for p, v in self.confusion(models[n], classes).items():
                        count[p] = count.get(p, 0) + (number(v) or 0)
                guessed = {p for _, p in count}
                classes = sorted((c for c in cells if cells[c] or c in guessed), key=lambda c: -cells[c])
                title = f"Confusion matrix, {kind}: {group}" + (f" ({len(names)} seeds)" if len(names) > 1 else "")
                if classes:
                    yield title, chart.confusion(classes, cells, count, title)


# ---- figures ----

def figure(title, content, wide=False):
    return element("figure", element("figcaption", title), content, class_="wide" if wide else None)


DARK = {}  # colours of other programs' figures that a dark page needs lighter: name -> colour


def page_colour(text):
    """A colour of a figure in the colours of the page: black is ink, white is the paper, light grey a line; dark ones get a lighter twin."""
    m = re.fullmatch(r"rgb\(\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)", text)
    h = re.fullmatch(r"#([0-9a-fA-F]{2})([0-9a-fA-F]{2})([0-9a-fA-F]{2})", text)
    rgb = {"black": (0, 0, 0), "white": (255, 255, 255)}.get(text) or (
        tuple(map(int, m.groups())) if m else tuple(int(v, 16) for v in h.groups()) if h else None)
    if rgb is None:
        return None
    if max(rgb) < 40:
        return "var(--ink)"
    if min(rgb) > 250:
        return "var(--card)"
    if max(rgb) - min(rgb) < 8 and min(rgb) > 200:
        return "var(--line)"
    if 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2] < 130:
        name = "--k-%02x%02x%02x" % rgb
        DARK[name] = "#%02x%02x%02x" % tuple(int(c + (255 - c) * 0.45) for c in rgb)
        return f"var({name}, #{name[4:]})"
    return None


def adopt(path, title, prefix):
    """An SVG file as a part of the page: names of its own, a title and a description, the colours of the page; no scripts."""
    def bare(name):
        return name.rpartition("}")[2]

    def own(text):
        return re.sub(r"url\(\s*#", f"url(#{prefix}", text)

    def copy(e):
        attributes, look = {}, []
        for k, v in e.attrib.items():
            k = bare(k)
            if k.startswith("on") or k == "href" and not v.startswith("#"):
                continue
            colour = page_colour(v) if k in ("fill", "stroke", "color", "stop-color") else None
            if colour and k == "fill" and colour == "var(--card)" and bare(e.tag) != "text":
                v, colour = "none", None
            if colour:
                look.append(f"{k}:{colour}")
            else:
                attributes[k] = prefix + v if k == "id" else f"#{prefix}{v[1:]}" if k == "href" else own(v)
        if look:
            attributes["style"] = ";".join(filter(None, [attributes.get("style"), *look]))
        out = ET.Element(bare(e.tag), attributes)
        out.text, out.tail = e.text, e.tail
        out.extend(copy(c) for c in e if isinstance(c.tag, str) and bare(c.tag) not in ("script", "foreignObject", "title", "desc", "a"))
        return out

    svg = copy(ET.parse(path).getroot())
    svg.set("role", "img")
    svg.set("aria-label", title)
    svg.insert(0, element("title", title))
    svg.tail = None
    width = re.match(r"\d+", svg.get("width", "0"))
    return svg, width is not None and int(width.group()) > 620


def trainings(run, table_name, column):
    """The curves of one column of the trainings' tables, of at most MOST_CURVES; of a larger grid those that come first."""
    curves = []
    for f in run.everywhere(f"**/{table_name}.tsv"):
        top = next(d for d in (run.dir, *run.parts) if d in f.parents)
        name = str(f.relative_to(top).parent).removesuffix(".model").removeprefix("runs/")
        values = columns_of(read_table(f), "step", column) or []
        curve = [(number(x), number(y)) for x, y in values]
        curve = [(x, y) for x, y in curve if x is not None and y is not None]
        if len(curve) > 1:
            curves.append((name, curve))
    return curves[:MOST_CURVES]


def thinned(curve, most=400):
    every = len(curve) // most + 1
    return curve[::every] + ([curve[-1]] if (len(curve) - 1) % every else [])


def in_eights(title, items, draw):
    """Figures of at most eight items each."""
    pages = [items[i:i + 8] for i in range(0, len(items), 8)]
    for i, page in enumerate(pages):
        t = title if len(pages) == 1 else f"{title} ({i + 1} of {len(pages)})"
        yield figure(t, draw(page, t))


def loss_figures(run):
    for name, what in (("train", ""), ("pretrain", ", pre-training"), ("finetune", ", fine-tuning")):
        for column, title in (("loss", "Training loss"), ("eval_loss", "Validation loss")):
            smooth = column == "loss"
            curves = []
            for n, c in trainings(run, name, column):
                y = chart.running_mean([v for _, v in c]) if smooth else [v for _, v in c]
                curves.append((n, thinned(list(zip([x for x, _ in c], y)))))
            yield from in_eights(title + what, curves, lambda some, t: chart.lines(
                some, "step", "loss (running mean)" if smooth else "loss", t, "Loss of " + ", ".join(n for n, _ in some) + " by step."))


def roc_figures(run):
    curves = []
    for f in run.named(".tsv"):
        values = columns_of(read_table(f), "fpr", "tpr")
        if values:
            curves.append((f.name[:-4], [(float(x), float(y)) for x, y in values if number(x) is not None and number(y) is not None]))
    yield from in_eights("ROC curves", [c for c in curves if c[1]], lambda some, t: chart.lines(
        some, "false positive rate", "true positive rate", t, "True positive rate by false positive rate.", square=True, x_range=(0, 1), y_range=(0, 1)))


def f1_figures(metrics):
    for kind in metrics.kinds:
        groups = list(metrics.f1_groups(kind))[:MOST_CURVES]
        yield from in_eights(f"F1 of every class by its frequency, {kind}", groups, lambda some, t: chart.scatter(
            some, "cells of the class in training", "F1", t, "A point a class.", log_x=True, y_range=(-0.03, 1.03)))


def newer(a, b):
    return a.exists() and a.stat().st_mtime >= b.stat().st_mtime


def map_figures(run):
    """Maps of the test cells' embeddings, of runs that differ in the seed the first one; one legend for all maps of a column."""
    label, seed = run.setting("LABEL"), run.setting("SEED") or "1"
    group = next((read_text(d / "group").strip() for d in (*run.parts, run.dir) if (d / "group").exists()), "")
    seen, by_column = set(), {}
    for f in sorted(run.dir.glob("*.emb"), key=natural):
        name = f.name[:-4]
        stem = re.sub(r"-\d+(\.test)?$", "", name)
        if name.endswith(".train") or stem in seen:
            continue
        seen.add(stem)
        made = run.own / (name + ".umap")
        if not newer(made, f):
            few = run.own / "few.emb"
            tool("scsample", "-q", "-n", MOST_CELLS, "--seed", seed, "-o", few, f)
            tool("ctaprobe", "map", "-q", "--seed", seed, "-o", made, few)
            few.unlink()
        columns = [line.split("\t")[1] for line in tool("scview", "--header-tsv", made) if line.startswith("column\t")]
        for column in dict.fromkeys(c for c in (label, group) if c in columns):
            rows = [line.split("\t") for line in tool("scview", "-q", "-c", "X_umap," + column, made)[1:]]
            if len({c for _, c in rows}) > 1:  # one donor makes no map
                by_column.setdefault(column, []).append((name, [tuple(map(float, xy.split())) for xy, _ in rows], [c for _, c in rows]))
    for column, maps in by_column.items():
        cells = {}
        for c in maps[0][2]:
            cells[c] = cells.get(c, 0) + 1
        for _, _, of in maps[1:]:
            for c in of:
                cells.setdefault(c, 0)
        classes = sorted(cells, key=lambda c: (-cells[c], c))
        yield element("div", element("h3", f"Maps of cells by {column} (UMAP)"),
                      element("div", [figure(f"Map of cells by {column}: {name}", chart.cell_map(xy, of, classes, f"Map of cells by {column}: {name}"))
                                      for name, xy, of in maps], class_="figures"),
                      chart.legend(classes, [cells[c] for c in classes]), class_="maps")


class Modules:
    """The modules of a graph, with its layout: genes as (x, y, module), edges, and a table."""
    def __init__(self, graph, own):
        self.name = graph.name.removesuffix(".graph")
        layout = own / (self.name + ".layout.txt")
        if not newer(layout, graph):
            tool("depgraph", "-q", "--layout", "--modules", "1", "-o", layout, graph)
        rows = read_table(layout)
        at = {n: i for i, n in enumerate(rows[0])}
        rows = rows[1:]
        self.genes = [(float(r[at["x"]]), float(r[at["y"]]), int(r[at["module"]])) for r in rows]
        self.names = [r[at["symbol"]] or r[at["gene"]] for r in rows]
        self.degree = [int(r[at["degree"]]) for r in rows]
        number_of = {r[at["token"]]: i for i, r in enumerate(rows)}
        edges = [line.split("\t") for line in tool("depgraph", "-q", "--tsv", graph)[1:]]
        edges.sort(key=lambda r: -abs(float(r[6])))
        self.edges = [(number_of[r[0]], number_of[r[3]]) for r in edges]

    def table(self):
        inner, of = {}, {}
        for a, b in self.edges:
            if self.genes[a][2] == self.genes[b][2]:
                inner[self.genes[a][2]] = inner.get(self.genes[a][2], 0) + 1
        for i, g in enumerate(self.genes):
            of.setdefault(g[2], []).append(i)
        rows = []
        for m in sorted(of)[:200]:
            hubs = sorted(of[m], key=lambda i: -self.degree[i])[:8]
            rows.append([str(m), str(len(of[m])), str(inner.get(m, 0)), ", ".join(self.names[i] for i in hubs)])
        return table(f"Modules of {self.name}", ["module", "genes", "edges in it", "genes with most neighbours"], rows)


def graphs(run):
    for d in (*run.parts, run.dir):
        for g in sorted(d.glob("*.graph"), key=natural):
            if any(line.split("\t")[:1] == ["edges"] and line.split("\t")[1] != "0" for line in tool("depgraph", "-q", "--stats", g)):
                yield Modules(g, run.own)


# ---- provenance ----

def stages(run):
    """Stage, seconds and peak memory, in the order of the run."""
    logs = [f for d in (*run.parts, run.dir) for f in d.glob("log/*.report")]
    for f in sorted(logs, key=lambda f: f.stat().st_mtime):
        rows = [r for r in read_table(f) if len(r) == 2]
        seconds = [v for k, v in rows if k == "seconds"]
        memory = [float(v) for k, v in rows if k == "peak_memory_mb"]
        yield [f.name.removesuffix(".report"), f"{float(seconds[-1]):.2f}" if seconds else "", f"{max(memory):.0f}" if memory else ""]


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
    for t in ("h5tok", "rankenc", "depgraph", "maskgen", "sctrain", "scembed", "ctaprobe"):
        if has(t):
            yield [t, " ".join(tool(t, "--version"))]


# ---- the page ----

def summary(run, metrics):
    findings = [line for f in run.named("findings.txt") for line in read_text(f).splitlines() if line]
    tables = []
    for f in run.named(".table"):
        rows = read_table(f)
        if len(rows) > 1 and rows[0][0].startswith("# "):
            head = rows[1]
            tables.append(table("\t".join(rows[0])[2:], head, rows[2:], [i for i, h in enumerate(head) if h.endswith(("F1", "accuracy"))]))
    texts = [element("div", element("h3", f.name), element("pre", read_text(f))) for f in sorted(run.dir.glob("*.txt"), key=natural)
             if f.name != "findings.txt"]
    answer = [element("ul", [element("li", t) for t in findings], class_="findings") if findings else None, tables]
    if texts:
        answer.append(details("The report as text", texts) if findings or tables else texts)
    if not (findings or tables or texts):
        answer = element("p", "This run has no table of results yet.")
    return element("div", element("div", answer), list(metrics.class_tables()), class_="beside")


def figures(run, metrics, modules):
    """A machine that only trains has not all tools; its page has what they are not needed for."""
    own = []
    for i, f in enumerate(run.named(".svg")):
        svg, wide = adopt(f, f.stem, f"f{i + 1}-")
        own.append(figure(f.stem, svg, wide))
    drawn = [*loss_figures(run), *roc_figures(run), *f1_figures(metrics)]
    drawn += [figure(title, svg) for title, svg in metrics.confusion_figures()]
    drawn += [figure(f"Modules of the dependency graph: {m.name}", chart.network(m.genes, m.edges, f"Modules of the dependency graph: {m.name}"))
              for m in modules]
    maps = list(map_figures(run)) if has("ctaprobe", "scview", "scsample") else []
    return [element("div", own, class_="figures"), maps, element("h3", "Curves, classes and modules") if drawn and maps else None,
            element("div", drawn, class_="figures")]


def tables(run, metrics, modules):
    out = list(metrics.tables())
    for f in run.named(".tsv"):
        name = str(f.relative_to(run.dir))
        if f in metrics.paths or f.name in ("train.tsv", "vocab.tsv") or name.startswith("runs/"):
            continue
        rows = read_table(f)
        if rows:
            out.append(details(name, table(name, rows[0], rows[1:])))
    return out + [details(f"Modules: {m.name}", m.table()) for m in modules]


def provenance(run):
    settings = [[k, v] for k, v in run.settings]
    made = list(commands(run)) if has("scview") else []
    return [table("Settings", ["setting", "value"], settings), table("Time and memory", ["stage", "seconds", "peak memory (MB)"], list(stages(run))),
            details("Commands, with versions and seeds", table("commands", ["file", "program", "version", "options"], made)),
            details("Digests of files", table("digests", ["file", "bytes", "SHA-256"], list(digests(run)))),
            details("Programs", table("versions", ["program", "version"], list(versions())))]


def page(run):
    root = ET.parse(HERE / "page.html").getroot()
    title = f"corrmask {run.dir.parent.name}: {run.dir.name}"
    metrics = Metrics(run)
    modules = list(graphs(run)) if has("depgraph") else []
    root.find(".//title").text = root.find(".//h1").text = title
    shown = [(k, re.sub(r" \(\d+ bytes, [^)]*\)$", "", v)) for k, v in run.settings if k != "name" and v]
    root.find(".//ul[@id='settings']").extend(element("li", element("b", k), " " + v) for k, v in shown)
    for name, content in (("summary", summary(run, metrics)), ("figures", figures(run, metrics, modules)),
                          ("tables", tables(run, metrics, modules)), ("provenance", provenance(run))):
        root.find(f".//section[@id='{name}']").extend(chart.flat([content]))
    lighter = "".join(f"{k}:{v};" for k, v in sorted(DARK.items()))
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {lighter} }} }}\n" if lighter else ""
    root.find(".//style").text = read_text(HERE / "page.css") + dark
    root.find(".//script").text = read_text(HERE / "page.js")
    text = ET.tostring(root, encoding="unicode", method="html")
    return "<!DOCTYPE html>\n" + re.sub("[\0-\x08\x0b-\x1f\x7f]", "\ufffd", text) + "\n"


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: page.py FOLDER")
    folder = Path(sys.argv[1])
    if not (folder / "settings").is_file():
        sys.exit(f"page.py: {folder}: no file 'settings' in it: expected the folder of a run (make list-runs)")
    run = Run(folder.resolve())
    run.own.mkdir(exist_ok=True)
    new = run.own / "report.html"
    try:
        text = page(run)
        with open(new, "w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        new.rename(run.dir / "report.html")
    except subprocess.CalledProcessError as e:
        sys.exit(f"page.py: {e.cmd[0]} failed")
    except OSError as e:
        sys.exit(f"page.py: {e.filename or new}: {e.strerror}")


main()
