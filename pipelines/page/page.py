#!/usr/bin/env python3
"""One page on a run, FOLDER/report.html, from what its folder holds: tables, figures, embeddings, trainings, reports of its stages.
The page needs no other file and no network, and this program needs Python alone. Maps and layouts are kept in FOLDER/report.

    page.py FOLDER

    *.table              the answer: tables of the summary; the first line is "# CAPTION"
    findings.txt         the answer in sentences, one a line, which may go on in lines that begin with spaces
    *.txt                reports as text
    *.svg                figures
    NAME.KIND.tsv        metrics, if the columns are metric and value: shown side by side by KIND; also runs/NAME/KIND.tsv
    *.tsv                other tables; with the columns fpr and tpr, ROC curves
    NAME.model/train.tsv trainings, also in the runs that this one was made from
    NAME.emb, *.graph    maps and modules; NAME.map is the map of NAME.emb, if it is there already; of genes, NAME.modules.tsv names the modules; a graph with
                         a figure NAME.svg has no other
    NAME.pred            transferred types: a map by type; markers.tsv (scgenes markers): a dot plot of their genes
    log/NAME.report      time and memory of a stage; log/NAME.log its warnings and notes
"""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import chart
import cell_types
from chart import element
from plot import Arm, Series, arms, plot
from metrics import Metrics, details, table
from run import Run, columns_of, commands, cuts, digests, has, inputs, messages, natural, number, read_table, read_text, spread, stages, tool, trainings, versions

MOST_CELLS = 2000  # of a map
PARTS = {"pretrained": "pre-training"}  # what the runs are that others are made from
# What the graphs of the experiments are of, and what their tables of differences and means (armstat compare) are of
GRAPHS = {"corpus": "the dependency graph of the genes that the networks read", "all-genes": "the dependency graph of all genes",
          "train": "the dependency graph of the training cells", "genes": "the graph of nearest genes in the embedding"}
COMPARED = {("demo", "differences"): "R, over trainings", ("demo", "cells"): "R, over test cells", ("demo", "f1"): "Macro F1, over trainings",
            ("demo", "f1_cells"): "Macro F1, over draws of test cells"}
SQUARE = 360        # the height of a plot of shares
MOST_CURVES = 24   # trainings that are drawn, eight a figure
HERE = Path(__file__).resolve().parent


# ---- figures ----

def figure(title, content, class_=None):
    """title: None if the content has it."""
    return element("figure", element("figcaption", title) if title else None, content, class_=class_)


def adopt(path, title, prefix):
    """An SVG file as figures of the page: one for each of its panels, if it is drawn by plot.py, which the style of the page colours. A figure of another
    program has names of its own and a title, and no scripts."""
    def bare(name):
        return name.rpartition("}")[2]

    def own(text):
        return re.sub(r"url\(\s*#", f"url(#{prefix}", text)

    def copy(e):
        attributes = {}
        for k, v in e.attrib.items():
            k = bare(k)
            if not (k.startswith("on") or k == "href" and not v.startswith(("#", "data:image/png;"))):
                attributes[k] = prefix + v if k == "id" else f"#{prefix}{v[1:]}" if k == "href" and v[0] == "#" else own(v)
        out = ET.Element(bare(e.tag), attributes)
        out.text, out.tail = e.text, e.tail
        out.extend(copy(c) for c in e if isinstance(c.tag, str) and bare(c.tag) not in ("script", "foreignObject", "a", *(() if ours else ("title", "desc"))))
        return out

    root = ET.parse(path).getroot()
    ours = root.get("class") == "chart"
    svg = copy(root)
    if ours:
        panels = [e for e in svg if e.tag == "svg"]
        for e in panels:
            e.attrib.pop("y")
        return [figure(None, e) for e in panels]
    svg.set("role", "img")
    svg.set("aria-label", title)
    svg.insert(0, element("title", title))
    svg.tail = None
    width = re.match(r"\d+", svg.get("width", "0"))
    return [figure(title, svg, "wide foreign" if width is not None and int(width.group()) > 620 else "foreign")]


def first_of_seeds(curves):
    """Of curves whose names differ in the seed, NAME-1, NAME-2, the first one."""
    first = {}
    for name, curve in curves:
        first.setdefault(re.sub(r"-\d+$", "", name), (name, curve))
    return list(first.values())


def in_eights(title, items, draw):
    """Figures of at most eight items each."""
    pages = [items[i:i + 8] for i in range(0, len(items), 8)]
    for i, page in enumerate(pages):
        t = title if len(pages) == 1 else f"{title} ({i + 1} of {len(pages)})"
        yield figure(None, draw(page, t))


def curves_of(some):
    return [Series(chart.words(name), c, chart.look(name, i)[0], "line", chart.look(name, i)[1]) for i, (name, c) in enumerate(some)]


def loss_figures(run):
    kinds = [(run.dir, "train", ""), (run.dir, "pretrain", ", pre-training"), (run.dir, "finetune", ", fine-tuning")]
    for top, name, what in kinds + [(d, "train", ", " + PARTS.get(d.parent.name, d.parent.name)) for d in run.parts if not (d / "report.html").exists()]:
        for column, title in (("loss", "Training loss"), ("eval_loss", "Validation loss")):
            smooth = column == "loss"
            curves = []
            for n, c in trainings(run, top, name, column, MOST_CURVES):
                y = chart.running_mean([v for _, v in c]) if smooth else [v for _, v in c]
                curves.append((n, list(zip([x for x, _ in c], y))))
            curves.sort(key=lambda c: chart.rank(c[0]))
            yield from in_eights(title + what, curves, lambda some, t: plot(
                t, curves_of(some), "step", "loss (running mean)" if smooth else "loss", about="Loss of " + ", ".join(n for n, _ in some) + " by step."))


def roc_figures(run):
    curves = []
    for f in run.named(".tsv"):
        rows = read_table(f)
        values = columns_of(rows, "fpr", "tpr") or columns_of(rows, "fpr", "mean")  # one curve, or the mean of folds
        if values:
            curves.append((f.name.removesuffix(".tsv").removesuffix(".roc").removesuffix(".probe").removesuffix(".score"), [(float(x), float(y)) for x, y in values if number(x) is not None and number(y) is not None]))
    curves = [c for c in curves if c[1]]
    curves.sort(key=lambda c: chart.rank(c[0]))
    yield from in_eights("ROC curves", first_of_seeds(curves) if len(curves) > 8 else curves, lambda some, t: plot(
        t, curves_of(some), "false positive rate", "true positive rate", about="True positive rate by false positive rate.", tall=SQUARE, x_range=(0, 1), y_range=(0, 1)))


CURVES = {"reliability": ("probability of the predicted class", "share of right classes"), "risk": ("share of the cells, the most confident first", "share of errors")}


def calibration_figures(run):
    """Tables of ctaprobe score --curves: a figure for each of its curves."""
    by_curve = {}
    for f in run.named(".tsv"):
        for curve, x, y, cells in columns_of(read_table(f), "curve", "x", "y", "cells") or []:
            few = curve == "reliability" and (number(cells) or 0) < 10  # say nothing of a share
            if curve in CURVES and not few and number(x) is not None and number(y) is not None:
                by_curve.setdefault(curve, {}).setdefault(f.name.removesuffix(".tsv").removesuffix(".curves"), []).append((number(x), number(y)))
    for curve, found in by_curve.items():
        lines = list(found.items())
        if curve == "reliability":
            lines.append(("perfect calibration", [(0, 0), (1, 1)]))
        x, y = CURVES[curve]
        title = "Reliability of the probabilities" if curve == "reliability" else "Errors among the most confident cells"
        yield from in_eights(title, lines, lambda some, t: plot(t, curves_of(some), x, y, about=f"{y} by {x}", tall=SQUARE, x_range=(0, 1),
                                                                  y_range=(0, 1) if curve == "reliability" else None))


def f1_figures(metrics):
    for kind in metrics.kinds:
        groups = list(metrics.f1_groups(kind))[:MOST_CURVES]
        trained = all(metrics.trained(kind, name) for name, _ in groups)
        yield from in_eights(f"F1 of every class by its number of cells{metrics.of(kind)}", groups, lambda some, t: plot(
            t, [Series(chart.words(name), [(x, y, None, None, text) for x, y, text in points], chart.look(name, i)[0], "dots", hollow=i % 2 == 1)
                for i, (name, points) in enumerate(some)],
            "cells of the class in training" if trained else "test cells of the class", "F1", about="One point per class.", log_x=True, y_range=(-0.03, 1.03)))


def newer(a, b):
    return a.exists() and a.stat().st_mtime >= b.stat().st_mtime


def of_genes(stream):
    """Is this a stream of vectors of genes, not of cells?"""
    return "column\ttoken" in tool("scview", "--header-tsv", stream)


def add_maps(by_column, name, stream, wanted):
    """The map of a stream, or of the same cells in NAME.map, by those of the wanted columns that the stream has; in one colour if it has none of them."""
    columns = [line.split("\t")[1] for line in tool("scview", "--header-tsv", stream) if line.startswith("column\t")]
    source = stream if "X_umap" in columns else stream.with_suffix(".map")
    if not source.exists() or of_genes(source):
        return
    at = tool("scview", "-q", "-c", "X_umap", source)[1:]
    present = [c for c in dict.fromkeys(wanted) if c in columns]
    for column in present or [""]:
        value = tool("scview", "-q", "-c", column, stream)[1:] if column else ["cells"] * len(at)
        rows = [(tuple(map(float, xy.split())), v) for xy, v in ((at[i], value[i]) for i in spread(len(at), MOST_CELLS)) if "nan" not in xy]
        if rows and (not column or len({v for _, v in rows}) > 1):  # one donor makes no map
            by_column.setdefault(column, []).append((name, [xy for xy, _ in rows], [v for _, v in rows]))


def gene_map_figures(run):
    """Maps of genes, NAME.map, by the modules of NAME.graph with the names that NAME.modules.tsv (scgenes genesets --module) gives them."""
    for f in run.named(".map"):
        graph, names = f.with_suffix(".graph"), f.with_suffix(".modules.tsv")
        if not (graph.exists() and of_genes(f)):
            continue
        module = tool("scview", "-q", "-c", "module", graph)[1:]
        name = {}
        for row in columns_of(read_table(names), "module", "set") or []:
            name.setdefault(row[0], row[1])
        rows = [line.split("\t") for line in tool("scview", "-q", "-c", "token,X_umap", f)[1:]]
        rows = [(module[int(t)], tuple(map(float, xy.split()))) for t, xy in rows if "nan" not in xy]
        size = Counter(m for m, _ in rows)
        large = sorted(size, key=lambda m: (m == "-1", -size[m]))[:20]
        of = [f"{name.get(m, 'no set')} (module {m})" if m in large and m != "-1" else "other modules" for m, _ in rows]
        classes = sorted(set(of), key=lambda c: (c == "other modules", -of.count(c), c))
        title = "Map of genes by module"
        yield element("div", element("h3", title + " (UMAP of their embeddings)"),
                      element("div", figure(title, chart.cell_map([xy for _, xy in rows], of, classes, title, "genes")), class_="figures"),
                      chart.legend(classes, [of.count(c) for c in classes]), class_="maps")


def map_figures(run):
    """Maps of the test cells' embeddings, of runs that differ in the seed the first one; one legend for all maps of a column."""
    label, seed = run.setting("LABEL"), run.setting("SEED") or "1"
    group = next((read_text(d / "group").strip() for d in (*run.parts, run.dir) if (d / "group").exists()), "")
    seen, by_column = set(), {}
    for f in sorted(run.dir.glob("*.emb"), key=natural):
        if of_genes(f):
            continue
        if f.with_suffix(".pred").exists():
            continue  # cell_types.maps
        name = f.name[:-4]
        stem = re.sub(r"-\d+(\.test)?$", "", name)
        if name.endswith((".train", ".known")) or stem in seen:
            continue
        seen.add(stem)
        made = run.own / (name + ".umap")
        if f.with_suffix(".map").exists():
            made = f.with_suffix(".map")
        elif not newer(made, f):
            few = run.own / "few.emb"
            tool("scsample", "-q", "-n", MOST_CELLS, "--seed", seed, "-o", few, f)
            tool("screduce", "map", "-q", "--seed", seed, "-o", made, few)
            few.unlink()
        add_maps(by_column, name, made, (label, group))
    for column, maps in by_column.items():
        cells = Counter(maps[0][2])
        classes = sorted({c for *_, of in maps for c in of}, key=lambda c: (-cells[c], c))
        by = f" by {column}" if column else ""
        yield element("div", element("h3", f"Maps of cells{by} (UMAP)"),
                      element("div", [figure(chart.words(name), chart.cell_map(xy, of, classes, f"Map of cells{by}: {chart.words(name)}"))
                                      for name, xy, of in sorted(maps, key=lambda m: chart.rank(m[0]))], class_="figures"),
                      chart.legend(classes, [cells[c] for c in classes]), class_="maps")


class Modules:
    """The modules of a graph, with its layout: genes as (x, y, module), edges, and a table."""
    def __init__(self, graph, own):
        name = graph.name.removesuffix(".graph")
        self.name = GRAPHS.get(name, f"the dependency graph of {name}")
        layout = own / (name + ".layout.txt")
        if not newer(layout, graph):
            tool("depgraph", "-q", "-O", "layout", "--leiden", "1", "-o", layout, graph)
        rows = read_table(layout)
        at = {n: i for i, n in enumerate(rows[0])}
        rows = rows[1:]
        self.genes = [(float(r[at["x"]]), float(r[at["y"]]), int(r[at["module"]])) for r in rows]
        self.names = [r[at["symbol"]] or r[at["gene"]] for r in rows]
        self.degree = [int(r[at["degree"]]) for r in rows]
        number_of = {r[at["token"]]: i for i, r in enumerate(rows)}
        edges = [line.split("\t") for line in tool("depgraph", "-q", "-O", "tsv", graph)[1:]]
        edges.sort(key=lambda r: -abs(float(r[6])))
        self.edges = [(number_of[r[0]], number_of[r[3]]) for r in edges]

    def table(self):
        of = {}
        inner = Counter(self.genes[a][2] for a, b in self.edges if self.genes[a][2] == self.genes[b][2])
        for i, g in enumerate(self.genes):
            of.setdefault(g[2], []).append(i)
        rows = []
        for m in sorted(of)[:200]:
            hubs = sorted(of[m], key=lambda i: -self.degree[i])[:8]
            rows.append([str(m), str(len(of[m])), str(inner[m]), ", ".join(self.names[i] for i in hubs)])
        return table(f"Modules of {self.name}", ["module", "genes", "edges in it", "genes with most partners"], rows)


def graphs(run):
    for d in (*run.parts, run.dir):
        for g in sorted(d.glob("*.graph"), key=natural):
            if not g.with_suffix(".svg").exists() and any(line.split("\t")[:1] == ["edges"] and line.split("\t")[1] != "0" for line in tool("depgraph", "-q", "-O", "stats", g)):
                yield Modules(g, run.own)


# ---- differences between arms (armstat compare) ----

def compared(run):
    """Tables of differences: file, names of the columns that say what is compared, rows of (those columns, arm, reference, numbers)."""
    for f in run.named(".tsv"):
        rows = read_table(f)
        numbers = columns_of(rows, "difference", "low", "high", "p_corrected")
        if numbers and "reference" in rows[0] and rows[0].index("reference") > 0:
            at = rows[0].index("reference")
            yield f, rows[0][:at - 1], [(row[:at - 1], row[at - 1], row[at], n) for row, n in zip(rows[1:], numbers)]


def grouped(run):
    """The tables of differences, those of one comparison together, for which the columns have no names: title, columns, rows as compared() has them."""
    singles = []
    for f, within, rows in compared(run):
        name = COMPARED.get((run.dir.parent.name, f.stem))
        if not within and len(rows) == 1 and name:
            singles.append(([name], *rows[0][1:]))
            pair = f"{chart.words(rows[0][1])} - {chart.words(rows[0][2])}"
        else:
            yield name or "Differences" + (f": {f.stem}" if f.stem != "differences" else ""), within, rows
    if singles:
        singles.sort(key=lambda row: list(COMPARED.values()).index(row[0][0]))
        yield f"Differences, {pair}", None, singles


def rounded(text, sign="+"):
    """Three digits, but no more than five after the point."""
    v = number(text)
    return text if v is None else format(v, f"{sign}.3g" if abs(v) >= 1e-4 or v == 0 else f"{sign}.5f")


def probability(text):
    v = number(text)
    return text if v is None else "<0.0001" if v < 1e-4 else f"{v:.2g}"


def difference_tables(run):
    for title, within, rows in grouped(run):
        body = [[*what, *([chart.words(arm), "- " + chart.words(reference)] if within is not None else []), rounded(d),
                 "NA" if low == "NA" else f"{rounded(low)} to {rounded(high)}", probability(p)] for what, arm, reference, (d, low, high, p) in rows]
        yield table(title, [*([*within, "arm", ""] if within is not None else ["value"]), "difference", "95 % interval",
                            "p, corrected" if within is not None else "p"], body)


def means(f):
    return "Means" if f.stem == "summary" else f"Means: {f.stem}"


def mean_tables(run):
    """Tables of means (armstat compare --means): a row for each arm, a column for each quantity; of many quantities, a row for each mean."""
    for f in run.named(".tsv"):
        rows = read_table(f)
        numbers = columns_of(rows, "n", "mean", "low", "high")
        if not numbers or rows[0].index("n") < 1 or rows[0][-1] != "high":
            continue
        at = rows[0].index("n")
        what = [" ".join(row[:at - 1]) for row in rows[1:]]
        arms, each = list(dict.fromkeys(row[at - 1] for row in rows[1:])), list(dict.fromkeys(what))
        if len(each) <= 10:
            mean = {(row[at - 1], w): n[1] for row, w, n in zip(rows[1:], what, numbers)}
            yield table(means(f), ["arm", *[w or "mean" for w in each]], [[chart.words(a), *(mean.get((a, w), "") for w in each)] for a in arms])
        else:
            yield table(means(f), [*rows[0][:at], "n", "mean", "low", "high"], [[*row[:at], *n] for row, n in zip(rows[1:], numbers)])


def forests(run):
    for name, within, rows in grouped(run):
        labelled = [(" ".join([*what, chart.words(arm), "-", chart.words(reference)]) if within is not None else what[0], number(d), number(low), number(high),
                     chart.tint(arm)) for what, arm, reference, (d, low, high, _) in rows]
        labelled = [row for row in labelled if row[1] is not None]
        for i in range(0, min(len(labelled), 96), 24):
            title = f"{name}, with 95 % intervals" + (f", {i // 24 + 1}" if len(labelled) > 24 else "")
            yield figure(None, arms(title, [Arm(*row) for row in labelled[i:i + 24]], "difference", note="Lines: 95 % intervals."))


# ---- the page ----

def summary(run, metrics):
    findings = [re.sub("\n +", " ", line) for f in run.named("findings.txt") for line in re.split(r"\n(?! )", read_text(f)) if line.strip()]
    tables = []
    for f in run.named(".table"):
        rows = read_table(f)
        if len(rows) > 1 and rows[0][0].startswith("# "):
            head = rows[1]
            tables.append(table("\t".join(rows[0])[2:], head, rows[2:], [i for i, h in enumerate(head) if h.endswith(("F1", "accuracy")) or h == "F1 new"]))
    texts = [element("div", element("h3", f.name), element("pre", read_text(f))) for f in sorted(run.dir.glob("*.txt"), key=natural)
             if f.name != "findings.txt"]
    tables += [*mean_tables(run), *difference_tables(run)]
    warned = [*cuts(run), *messages(run, "warning")]
    promised = (run.dir / "sentences.tsv").exists()  # the first sentence is a promise, the last one a line of Python
    lines = [element("strong", t) if promised and t == findings[0] else element("code", t) if promised and t == findings[-1] else t for t in findings]
    answer = [element("ul", [element("li", t) for t in lines], class_="findings") if findings else None, tables,
              [element("h3", "Warnings of the tools"), element("ul", [element("li", t) for t in warned], class_="findings")] if warned else None]
    if texts:
        answer.append(details("The report as text", texts) if findings or tables else texts)
    if not (findings or tables or texts):
        answer = element("p", "This run has no table of results yet.")
    classes = [] if promised else list(metrics.class_tables())  # the answer has them
    few = all(len(t.findall(".//th")) <= 6 for t in classes)  # a wide table is below the answer
    return element("div", element("div", answer), classes, class_="beside" if few else None)


def figures(run, metrics, modules):
    """A machine that only trains has not all tools; its page has what they are not needed for."""
    own = []
    for i, f in enumerate(run.named(".svg")):
        own += adopt(f, f.stem, f"f{i + 1}-")
    own += forests(run)
    drawn = [*loss_figures(run), *roc_figures(run), *calibration_figures(run), *f1_figures(metrics)]
    drawn += [figure(title, svg) for title, svg in metrics.confusion_figures()]
    drawn += [figure(f"Modules of {m.name}", chart.network(m.genes, m.edges, m.names, m.degree, f"Modules of {m.name}"))
              for m in modules]
    maps = [*cell_types.maps(run, MOST_CELLS, figure), *cell_types.markers(run, figure), *gene_map_figures(run), *map_figures(run)] if has("screduce", "scview", "scsample") else []
    return [element("div", own, class_="figures"), maps, element("h3", "Other figures") if drawn and maps else None,
            element("div", drawn, class_="figures")]


def tables(run, metrics, modules):
    out = list(metrics.tables())
    for f in run.named(".tsv"):
        name = str(f.relative_to(run.dir))
        if f in metrics.paths or f.name in ("train.tsv", "vocab.tsv", "sentences.tsv") or name.startswith("runs/"):
            continue
        rows = read_table(f)
        if rows:
            out.append(details(name, table(name, rows[0], rows[1:])))
    return out + [details(f"Modules of {m.name}", m.table()) for m in modules]


def provenance(run):
    settings = [[k, v] for k, v in run.settings]
    made = list(commands(run)) if has("scview") else []
    read = list(inputs(run))
    return [table("Settings", ["setting", "value"], settings, texts=True),
            table("What was read", ["file", "property", "value"], read, texts=True) if read else None, table("Time and memory", ["stage", "seconds", "peak memory (MB)"], list(stages(run)), texts=True),
            details("Commands, with versions and seeds", table("commands", ["file", "program", "version", "options"], made, texts=True)),
            details("Notes of the tools", element("ul", [element("li", t) for t in messages(run, "note")])),
            details("Digests of files", table("digests", ["file", "bytes", "SHA-256"], list(digests(run)), texts=True)),
            details("Programs", table("versions", ["program", "version"], list(versions()), texts=True))]


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
    root.find(".//style").text = read_text(HERE / "page.css")
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
