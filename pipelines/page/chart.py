"""Figures of the page as SVG elements. Colours are classes (c0 ... c7, ink, quiet), which page.css sets for light and dark pages."""
import math
import xml.etree.ElementTree as ET

COLOURS = 8  # [Okabe and Ito 2008], but for black and yellow; from the ninth class on in other shades, from the 25th with other marks
SHADES = 3
MARKS = ("disc", "square", "cross")


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
    return f"{v:.4g}" if abs(v) < 1e5 else f"{v:.2e}"


def svg(width, height, title, about, *children):
    return element("svg", element("title", title), element("desc", about), *children, class_="chart", role="img", aria_label=title,
                   viewBox=f"0 0 {width:g} {height:g}", width=f"{width:g}", height=f"{height:g}")


def style(i):
    """Classes of the i-th series: colour and shade."""
    return f"c{i % COLOURS} shade{i // COLOURS % SHADES}"


def mark(i):
    return MARKS[i // (COLOURS * SHADES) % len(MARKS)]


def points(places, i, size, title=None):
    """Marks of one class as one path."""
    cross = mark(i) == "cross"
    d = "".join(f"M{x:.1f} {y:.1f}" + (f"m-{size / 2:g} 0h{size:g}m-{size / 2:g}-{size / 2:g}v{size:g}" if cross else "h0") for x, y in places)
    return element("path", element("title", title) if title else None, d=d, class_=f"points {mark(i)} {style(i)}", stroke_width=f"{1.2 if cross else size:g}")


def legend(names, counts=None, dashes=False):
    """Names with their colours, once for all figures that show them."""
    items = []
    for i, name in enumerate(names):
        if dashes:
            sample = element("path", d="M1 7H23", class_=f"line {style(i)} dash{i // COLOURS % 3}")
        else:
            sample = points([(12, 7)], i, 9)
        items.append(element("li", element("svg", sample, viewBox="0 0 24 14", width="24", height="14", aria_hidden="true"), name,
                             element("span", f" {counts[i]}", class_="quiet") if counts else None, data_k=i))
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
    return [10.0 ** i for i in range(first, last + 1) if low * 0.99 <= 10.0 ** i <= high * 1.01] or steps(low, high, 3)


class Axes:
    """A panel with axes; x and y give places on it."""
    def __init__(self, x_range, y_range, x_name, y_name, width=460, height=300, log_x=False):
        self.width, self.height, self.log_x = width, height, log_x
        self.names = x_name, y_name
        self.x_range, self.y_range = x_range, y_range
        self.left, self.right, self.top, self.bottom = 58, width - 12, 10, height - 42

    def x(self, v):
        low, high = self.x_range
        if self.log_x:
            low, high, v = math.log10(low), math.log10(high), math.log10(v)
        return self.left + (self.right - self.left) * ((v - low) / (high - low) if high > low else 0.5)

    def y(self, v):
        low, high = self.y_range
        return self.bottom - (self.bottom - self.top) * ((v - low) / (high - low) if high > low else 0.5)

    def frame(self):
        out = []
        for v in decades(*self.x_range) if self.log_x else steps(*self.x_range):
            out.append(element("path", d=f"M{self.x(v):.1f} {self.top}V{self.bottom}", class_="grid"))
            out.append(element("text", short(v), x=f"{self.x(v):.1f}", y=self.bottom + 16, class_="tick middle"))
        for v in steps(*self.y_range):
            out.append(element("path", d=f"M{self.left} {self.y(v):.1f}H{self.right}", class_="grid"))
            out.append(element("text", short(v), x=self.left - 6, y=f"{self.y(v) + 4:.1f}", class_="tick end"))
        out.append(element("path", d=f"M{self.left} {self.top}V{self.bottom}H{self.right}", class_="axis"))
        out.append(element("text", self.names[0], x=(self.left + self.right) / 2, y=self.height - 6, class_="name middle"))
        y = (self.top + self.bottom) / 2
        out.append(element("text", self.names[1], x=14, y=y, class_="name middle", transform=f"rotate(-90 14 {y:g})"))
        return out


def widen(values, share=0.04):
    low, high = min(values), max(values)
    extra = (high - low or abs(high) or 1) * share
    return low - extra, high + extra


def running_mean(y):
    """Over about 20 steps; of the first steps over those that there are."""
    total, out = 0.0, []
    for i, v in enumerate(y):
        total = 0.95 * total + 0.05 * v
        out.append(total / (1 - 0.95 ** (i + 1)))
    return out


def lines(curves, x_name, y_name, title, about, square=False, x_range=None, y_range=None):
    """curves: list of (name, [(x, y)]), each drawn as a line."""
    xs = [x for _, c in curves for x, _ in c]
    ys = [y for _, c in curves for _, y in c]
    a = Axes(x_range or (min(xs), max(xs)), y_range or widen(ys), x_name, y_name, height=460 if square else 300)
    body = [element("path", element("title", name), d="M" + "L".join(f"{a.x(x):.1f} {a.y(y):.1f}" for x, y in c),
                    class_=f"line {style(i)} dash{i // COLOURS % 3}") for i, (name, c) in enumerate(curves)]
    return [svg(a.width, a.height, title, about, a.frame(), body), legend([name for name, _ in curves], dashes=True)]


def scatter(groups, x_name, y_name, title, about, log_x=False, y_range=None):
    """groups: list of (name, [(x, y, text)]), each drawn as points whose texts show under the pointer."""
    xs = [p[0] for _, g in groups for p in g]
    low, high = min(xs), max(xs)
    x_range = (low / 1.3, high * 1.3) if log_x else widen(xs)
    a = Axes(x_range, y_range or widen([p[1] for _, g in groups for p in g]), x_name, y_name, log_x=log_x)
    body = [element("g", [element("circle", element("title", text), cx=f"{a.x(x):.1f}", cy=f"{a.y(y):.1f}", r="3.5") for x, y, text in g],
                    class_=f"dots {style(i)}") for i, (_, g) in enumerate(groups)]
    return [svg(a.width, a.height, title, about, a.frame(), body), legend([name for name, _ in groups])]


def forest(rows, x_name, title, about):
    """rows: (label, value, low, high); an interval that is not known is None. A line at 0."""
    known = [v for row in rows for v in row[1:] if v is not None]
    left = 20 + 6.2 * max(len(row[0]) for row in rows)
    a = Axes(widen([0, *known]), (0, len(rows)), x_name, "", width=left + 340, height=22 * len(rows) + 60)
    a.left = left
    out = [element("path", d=f"M{a.x(0):.1f} {a.top}V{a.bottom}", class_="axis")]
    for v in steps(*a.x_range):
        out.append(element("path", d=f"M{a.x(v):.1f} {a.top}V{a.bottom}", class_="grid"))
        out.append(element("text", short(v), x=f"{a.x(v):.1f}", y=a.bottom + 16, class_="tick middle"))
    for i, (label, v, low, high) in enumerate(rows):
        y = a.y(len(rows) - i - 0.5)
        out.append(element("text", label, x=f"{left - 8:.1f}", y=f"{y + 4:.1f}", class_="tick end"))
        if low is not None and high is not None:
            out.append(element("path", d=f"M{a.x(low):.1f} {y:.1f}H{a.x(high):.1f}", class_="line c0"))
        out.append(element("circle", element("title", f"{label}: {v:+.4g}"), cx=f"{a.x(v):.1f}", cy=f"{y:.1f}", r="4", class_="cell c0"))
    out.append(element("text", x_name, x=f"{(left + a.right) / 2:.1f}", y=a.height - 6, class_="name middle"))
    return svg(a.width, a.height, title, about, out)


def confusion(classes, cells, count, title):
    """Rows are true classes, the most frequent first. count[(true, predicted)]; the colour is the share of the row's cells."""
    n = len(classes)
    side = 26 if n <= 12 else 16 if n <= 30 else 9
    names = [c if len(c) <= 34 else c[:33] + "…" for c in classes]
    left, top = 30 + 6.4 * max(len(c) for c in names), 34
    middle_x = max(left + n * side / 2, 100)  # the texts are wider than a few classes
    out = [element("text", "predicted class", x=middle_x, y=12, class_="name middle")]
    for i in range(n):
        middle = (i + 0.5) * side
        if side > 14 or i == 0 or (i + 1) % 5 == 0:
            out.append(element("text", i + 1, x=f"{left + middle:.1f}", y=top - 4, class_="tick small middle"))
        out.append(element("text", f"{names[i]}  {i + 1}", x=left - 5, y=f"{top + middle + 3.5:.1f}", class_="tick end" + (" small" if side < 14 else "")))
        for j in range(n):
            k = count.get((classes[i], classes[j]), 0)
            if not k:
                continue
            share = k / cells[classes[i]] if cells[classes[i]] else 0
            out.append(element("rect", element("title", f"{classes[i]}, predicted {classes[j]}: {k:g} of {cells[classes[i]]:g} cells"),
                               x=f"{left + j * side:.1f}", y=f"{top + i * side:.1f}", width=side - 1, height=side - 1, class_="cell c0",
                               fill_opacity=f"{0.08 + 0.92 * share:.3f}"))
            if side > 20:
                out.append(element("text", f"{100 * share:.0f}", x=f"{left + (j + 0.5) * side - 0.5:.1f}", y=f"{top + middle + 3.5:.1f}",
                                   class_="number middle" + (" strong" if share > 0.55 else "")))
    out.append(element("rect", x=left - 1, y=top - 1, width=n * side + 1, height=n * side + 1, class_="frame"))
    out.append(element("text", "% of the cells of the true class", x=middle_x, y=top + n * side + 18, class_="name middle"))
    width = max(left + n * side + 8, 300)
    return svg(width, top + n * side + 26, title, f"Confusion matrix of {n} classes. The page has its numbers as a table.", out)


def place(xy, width, height, margin=10):
    """Positions on a panel, with one scale for both axes."""
    xs, ys = [p[0] for p in xy], [p[1] for p in xy]
    scale = min((width - 2 * margin) / ((max(xs) - min(xs)) or 1), (height - 2 * margin) / ((max(ys) - min(ys)) or 1))
    left = (width - scale * (max(xs) - min(xs))) / 2 - scale * min(xs)
    low = (height + scale * (max(ys) - min(ys))) / 2 + scale * min(ys)
    return [(left + scale * x, low - scale * y) for x, y in xy]


def cell_map(xy, of, classes, title):
    """Cells at xy, coloured by their class. Names are in a legend beside the maps."""
    places = place(xy, 460, 400)
    size = 2 if len(xy) > 6000 else 3 if len(xy) > 1500 else 4 if len(xy) > 500 else 5
    number = {c: i for i, c in enumerate(classes)}
    by_class = [[] for _ in classes]
    for p, c in zip(places, of):
        by_class[number[c]].append(p)
    body = [element("g", points(by_class[i], i, size, f"{c}, {len(by_class[i])} cells"), data_k=i) for i, c in enumerate(classes) if by_class[i]]
    return svg(460, 400, title, f"Map of {len(xy)} cells in {len(classes)} classes: near cells have similar embeddings.", body)


def network(genes, edges, title):
    """genes: list of (x, y, module); edges: pairs of indices, the strongest first. Modules are coloured."""
    places = place([g[:2] for g in genes], 460, 460, 14)
    shown = edges[:2500]
    d = "".join(f"M{places[a][0]:.1f} {places[a][1]:.1f}L{places[b][0]:.1f} {places[b][1]:.1f}" for a, b in shown)
    modules = sorted({g[2] for g in genes})
    size = 4 if len(genes) > 500 else 7
    body = [element("path", d=d, class_="edge")]
    for m in modules:
        of_module = [p for p, g in zip(places, genes) if g[2] == m]
        body.append(points(of_module, m, size, f"module {m}, {len(of_module)} genes"))
    return svg(460, 460, title, f"{len(genes)} genes in {len(modules)} modules, with the {len(shown)} strongest of {len(edges)} edges. "
               "The page has the modules as a table.", body)
