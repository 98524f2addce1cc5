"""Figures of the page as SVG elements. Colours are classes (c0 ... c7, ink, quiet, those of the methods), which page.css sets for light and dark pages."""
import math
import re
import xml.etree.ElementTree as ET

COLOURS = 8  # [Okabe and Ito 2008], but for black and yellow; from the ninth class on in other shades, from the 25th with other marks
SHADES = 3
NUMBERED = 30  # classes, from which on their numbers would hide a map
GREY = 6  # the colour of small modules
NAMED = 30  # genes, all of which have their names
MARKS = ("disc", "square", "cross")
# What the experiments compare, in the order of their figures, each with the words of all tables and figures and a colour in page.css (m-NAME)
METHODS = {"expression": "expression", "pca": "50 components", "read": "expression of the genes read", "naive-bayes": "naive Bayes",
           "untrained": "untrained network", "model": "network", "random": "random masks", "shuffled": "CorrMask, shuffled graph", "corrmask": "CorrMask"}
MASKS = ("bernoulli", "pmi", "pmi-rand", "fixed", "mdlm", "dynamic", "r2mae", "r2mae-dynamic", "cl", "r2mae-cl")  # more that have a colour


def element(tag, *children, **attributes):
    """An element of HTML or SVG. None and "" are left out, texts become text, lists their members; class_ is class, a_b is a-b."""
    e = ET.Element(tag, {k.rstrip("_").replace("_", "-"): str(v) for k, v in attributes.items() if v is not None})
    last = None
    for child in flat(children):
        if isinstance(child, str):
            if last is None:
                e.text = (e.text or "") + child
            else:
                last.tail = (last.tail or "") + child
        else:
            e.append(child)
            last = child
    return e


def flat(children):
    for child in children:
        if isinstance(child, (list, tuple)):
            yield from flat(child)
        elif child is not None and not (isinstance(child, str) and child == ""):
            yield child if isinstance(child, (str, ET.Element)) else str(child)


def short(v):
    """A number as people read it."""
    return f"{v:.4g}" if abs(v) < 1e3 else f"{v:,.10g}" if abs(v) < 1e7 else f"{v:.2e}"


def svg(width, height, title, about, *children):
    return element("svg", element("title", title), element("desc", about), *children, class_="chart", role="img", aria_label=title,
                   viewBox=f"0 0 {width:g} {height:g}", width=f"{width:g}", height=f"{height:g}")


def style(i):
    """Classes of the i-th series: colour and shade."""
    return f"c{i % COLOURS} shade{i // COLOURS % SHADES}"


def method(name):
    """The method of a file's name, METHOD, METHOD-SEED or one of these with .test, and its seed, or (None, None)."""
    m = re.fullmatch(r"([a-z-]+?)(?:-(\d+))?(?:\.(?:test|train))?", name)
    return (m[1], m[2]) if m and m[1] in METHODS else (None, None)


def words(name):
    """The name of a model as people read it: corrmask-1.test is CorrMask, seed 1."""
    m, seed = method(name)
    return METHODS[m] + (f", seed {seed}" if seed else "") if m else re.sub(r"\.test$", "", name)


def rank(name):
    """The methods come first, in their order; others as they are."""
    m, _ = method(name)
    return list(METHODS).index(m) if m else len(METHODS)


def look(name, i):
    """Classes of the i-th of several models: a method has its colour, and its seeds differ in the dashes."""
    m, seed = method(name)
    return (f"m-{m}", (int(seed or 1) - 1) % 3) if m else (tint(name, i), i // COLOURS % 3)


def tint(arm, i=0):
    """The class of an arm's colour: the colour of its method, or of its masks (median-corrmask, corrmask+10, fixed-0.25), or else the i-th one."""
    base = arm.partition("+")[0]
    known = [part for part in (base, base.rpartition("-")[2], base.partition("-")[0]) if part in METHODS or part in MASKS]
    return f"m-{known[0]}" if known else style(i)


def mark(i):
    return MARKS[i // (COLOURS * SHADES) % len(MARKS)]


def points(places, i, size, title=None):
    """Marks of one class as one path."""
    cross = mark(i) == "cross"
    d = "".join(f"M{x:.1f} {y:.1f}" + (f"m-{size / 2:g} 0h{size:g}m-{size / 2:g}-{size / 2:g}v{size:g}" if cross else "h0") for x, y in places)
    return element("path", element("title", title) if title else None, d=d, class_=f"points {mark(i)} {style(i)}", stroke_width=f"{1.2 if cross else size:g}")


def legend(names, counts):
    """Classes of cells with their numbers on the maps, their colours and their cells, once for all maps that show them."""
    return keys([(points([(12, 7)], i, 9), [element("span", f"{i + 1} ", class_="quiet") if len(names) < NUMBERED else None, name,
                                            element("span", f" {counts[i]}", class_="quiet")]) for i, name in enumerate(names)])


def keys(names):
    """A legend: pairs of a sample and what it means."""
    items = [element("li", element("svg", sample, viewBox="0 0 24 14", width="24", height="14", aria_hidden="true"), element("span", name), data_k=i)
             for i, (sample, name) in enumerate(names)]
    return element("ul", items, class_="legend" + (" many" if len(names) > 12 else ""))


def steps(low, high, most=6):
    """Round numbers between low and high, for an axis."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    unit = 10 ** math.floor(math.log10(rough))
    unit = next(unit * f for f in (1, 2, 5, 10) if unit * f >= rough)
    first = math.ceil(low / unit - 1e-9)
    return [round((first + i) * unit, 12) for i in range(int((high - first * unit) / unit + 1e-9) + 1)]


def decades(low, high):
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    def within(factors):
        return [f * 10.0 ** i for i in range(first - 1, last + 1) for f in factors if low * 0.99 <= f * 10.0 ** i <= high * 1.01]

    for ticks in (within([1]), within([1, 2, 5])):
        if len(ticks) > 2:
            return ticks
    return steps(low, high, 3)


def running_mean(y):
    """Over about 20 steps; of the first steps over those that there are."""
    total, out = 0.0, []
    for i, v in enumerate(y):
        total = 0.95 * total + 0.05 * v
        out.append(total / (1 - 0.95 ** (i + 1)))
    return out


def confusion(classes, cells, count, title):
    """Rows are true classes, the most frequent first. count[(true, predicted)]; the colour is the share of the row's cells."""
    n = len(classes)
    side = 26 if n <= 12 else 16 if n <= 30 else 9
    names = [c if len(c) <= 34 else c[:33] + "…" for c in classes]
    left, top = 40 + 6.9 * max(len(c) for c in names), 34
    middle_x = max(left + n * side / 2, 100)  # the texts are wider than a few classes
    out = [element("text", "predicted class", x=middle_x, y=12, class_="name middle")]
    for i in range(n):
        middle = (i + 0.5) * side
        if side > 14 or i == 0 or (i + 1) % 5 == 0:
            out.append(element("text", i + 1, x=f"{left + middle:.1f}", y=top - 4, class_="tick small middle"))
        out.append(element("text", element("tspan", i + 1, class_="faint"), f"  {names[i]}", x=left - 5, y=f"{top + middle + 3.5:.1f}", class_="tick end" + (" small" if side < 14 else "")))
        for j in range(n):
            k = count.get((classes[i], classes[j]), 0)
            if not k:
                continue
            share = k / cells[classes[i]] if cells.get(classes[i]) else 0
            out.append(element("rect", element("title", f"{classes[i]}, predicted {classes[j]}: {k:g} of {cells.get(classes[i], 0):g} cells"),
                               x=f"{left + j * side:.1f}", y=f"{top + i * side:.1f}", width=side - 1, height=side - 1, class_="cell c0",
                               fill_opacity=f"{0.08 + 0.92 * share:.3f}"))
            if side > 20:
                out.append(element("text", f"{100 * share:.0f}", x=f"{left + (j + 0.5) * side - 0.5:.1f}", y=f"{top + middle + 3.5:.1f}",
                                   class_="number middle" + (" strong" if share > 0.55 else "")))
    out.append(element("rect", x=left - 1, y=top - 1, width=n * side + 1, height=n * side + 1, class_="frame"))
    out.append(element("text", "% of the cells of the true class", x=middle_x, y=top + n * side + 18, class_="name middle"))
    width = max(left + n * side + 8, 300)
    return svg(width, top + n * side + 26, title, f"Confusion matrix of {n} classes. The report has its numbers as a table.", out)


def place(xy, width, height, margin=10):
    """Positions on a panel, with one scale for both axes."""
    xs, ys = [p[0] for p in xy], [p[1] for p in xy]
    scale = min((width - 2 * margin) / ((max(xs) - min(xs)) or 1), (height - 2 * margin) / ((max(ys) - min(ys)) or 1))
    left = (width - scale * (max(xs) - min(xs))) / 2 - scale * min(xs)
    low = (height + scale * (max(ys) - min(ys))) / 2 + scale * min(ys)
    return [(left + scale * x, low - scale * y) for x, y in xy]


def amid(some):
    """The point that is next to the medians of its coordinates, so in one of the clusters of its class."""
    x, y = (sorted(c)[len(some) // 2] for c in zip(*some))
    return min(some, key=lambda p: (p[0] - x) ** 2 + (p[1] - y) ** 2)


def cell_map(xy, of, classes, title, what="cells", looks=None):
    """Cells, or genes, at xy, coloured by their class. Names are in a legend next to the maps. looks: the styles of the classes (style), whose names
    are then on the map."""
    places = place(xy, 460, 400)
    size = 2 if len(xy) > 6000 else 3 if len(xy) > 1500 else 4 if len(xy) > 500 else 5
    number = {c: i for i, c in enumerate(classes)}
    by_class = [[] for _ in classes]
    for p, c in zip(places, of):
        by_class[number[c]].append(p)
    there = [i for i in range(len(classes)) if by_class[i]]
    body = [element("g", points(by_class[i], looks[i] if looks else i, size, f"{classes[i]}, {len(by_class[i])} {what}"), data_k=i) for i in there]
    middles = [amid(by_class[i]) for i in there]
    if looks:
        large = sorted(range(len(there)), key=lambda j: -len(by_class[there[j]]))[:NAMED]
        body += beside(middles, large, [cut(classes[i], 26) for i in there], 460, 400, all_names=False)
    elif len(classes) < NUMBERED:
        body += [element("text", i + 1, x=f"{x:.1f}", y=f"{y + 4:.1f}", class_="place middle") for i, (x, y) in zip(there, middles)]
    return svg(460, 400, title, f"Map of {len(xy)} {what} in {len(there)} classes: nearby {what} have similar embeddings.", body)


def cut(name, most):
    return name if len(name) <= most else name[:most - 1] + "…"


def dot(x, y, share, colour, title=None):
    """A dot whose area is the share and whose colour, between 0 and 1, is as strong."""
    return element("circle", element("title", title) if title else None, cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{7 * math.sqrt(share):.2f}", class_="cell c0 dot",
                   fill_opacity=f"{0.08 + 0.92 * colour:.3f}")


def dots(genes, classes, values, title):
    """A dot plot: genes, pairs of a name and its class, are rows, classes columns. values[(name, class)]: colour, share, text."""
    side = 17
    names = [cut(c, 24) for c in classes]
    left, top = 12 + 8.4 * max(len(g) for g, _ in genes), 14 + 7.4 * max(len(n) for n in names)
    out = []
    for j, name in enumerate(names):
        x = left + (j + 0.5) * side
        out.append(element("text", name, x=f"{x + 4:.1f}", y=f"{top - 6:.1f}", class_="tick", transform=f"rotate(-90 {x + 4:.1f} {top - 6:.1f})"))
        own = [i for i, (_, c) in enumerate(genes) if c == classes[j]]
        if own:
            out.append(element("rect", x=f"{left + j * side:.1f}", y=f"{top + own[0] * side:.1f}", width=side, height=side * len(own), class_="frame"))
    for i, (g, _) in enumerate(genes):
        y = top + (i + 0.5) * side
        out.append(element("text", g, x=f"{left - 6:.1f}", y=f"{y + 4:.1f}", class_="tick end"))
        for j, c in enumerate(classes):
            if (g, c) in values:
                colour, share, text = values[g, c]
                out.append(dot(left + (j + 0.5) * side, y, share, colour, text))
    return svg(left + len(classes) * side + 12, top + len(genes) * side + 8, title, f"Dot plot of {len(genes)} genes in {len(classes)} classes: the area of a dot is the share "
               "of the cells that have the gene, its colour their mean expression. The report has the numbers as a table.", out)


def beside(places, order, names, width, height, all_names=True):
    """Names beside the points `order` of the places, the first ones first, where they hide the fewest others: element, for each. Without all_names
    one that would hide another name or leave the figure is not drawn."""
    drawn = []
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in places] if len(places) <= NAMED else []
    for i in order:
        x, y = places[i]
        wide = 8.4 * len(names[i])  # bold
        spots = [(x + 7, y + 4, "start"), (x - 7, y + 4, "end"), (x, y - 8, "middle"), (x, y + 16, "middle"),
                 *((x + 5 * side, y + v, "start" if side > 0 else "end") for side in (1, -1) for v in (-7, 15))]
        boxes = [(left, v - 10, left + wide, v + 2) for u, v, anchor in spots for left in [u - {"start": 0, "end": wide, "middle": wide / 2}[anchor]]]
        hidden = [sum(l < r2 and l2 < r and t < b2 and t2 < b for l2, t2, r2, b2 in taken) 
                  + 9 * (l < 0 or r > width or t < 0 or b > height or not all_names and any(l < r2 and l2 < r and t < b2 and t2 < b for l2, t2, r2, b2 in drawn))
                  for l, t, r, b in boxes]
        best = hidden.index(min(hidden))
        if not all_names and hidden[best] >= 9:
            continue
        taken.append(boxes[best])
        drawn.append(boxes[best])
        u, v, anchor = spots[best]
        yield element("text", names[i], x=f"{u:.1f}", y=f"{v:.1f}", class_=f"place {anchor}")


def network(genes, edges, names, degree, title):
    """genes: list of (x, y, module); edges: pairs of indices, the strongest first. The largest modules have a colour, and the name of the gene
    with most partners; a small graph has the names of all genes."""
    places = place([g[:2] for g in genes], 460, 460, 30)
    shown = edges[:2500]
    d = "".join(f"M{places[a][0]:.1f} {places[a][1]:.1f}L{places[b][0]:.1f} {places[b][1]:.1f}" for a, b in shown)
    of = {}
    for i, g in enumerate(genes):
        of.setdefault(g[2], []).append(i)
    size = 4 if len(genes) > 500 else 7
    largest = sorted((m for m in of if len(of[m]) > 2), key=lambda m: (-len(of[m]), m))[:COLOURS - 1]
    colour = {m: i + (i >= GREY) for i, m in enumerate(largest)}
    body = [element("path", d=d, class_="edge")]
    for m in sorted(of, key=lambda m: m in colour):
        body.append(points([places[i] for i in of[m]], colour.get(m, GREY), size, f"module {m}, {len(of[m])} genes"))
    hubs = [max(of[m], key=lambda i: degree[i]) for m in largest]
    order = sorted(range(len(genes)), key=lambda i: -degree[i]) if len(genes) <= NAMED else hubs
    body += beside(places, order, names, 460, 460)
    return svg(460, 460, title, f"{len(genes)} genes in {len(of)} modules, with the {len(shown)} strongest of {len(edges)} edges. "
               "The largest modules have colours; others are grey. The report has the modules as a table.", body)
