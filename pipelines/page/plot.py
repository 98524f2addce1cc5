"""Figures with axes, each a panel: plot (curves and points), arms (a row for each arm, with bars, points or intervals), matrices, flows. All are
WIDE, so that a phone shows them. figure() puts panels below each other in a file with the colours of page.css for light and dark readers."""
import base64
import math
import re
import struct
import zlib
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from chart import NAMED, beside, decades, element, short, steps, svg

WIDE = 440
LINE = 17  # from one line of text to the next
MANY = 400  # points of a curve that are drawn


def long(text, bold=False):
    """The width of a text, or a little more: no font is known."""
    return (1.2 if bold else 1) * sum(4.8 if c in " .,:;'|!()[]ijlftr-" else 12.2 if c in "mwMW@%—" else 9.3 if c.isupper() else 8.1 for c in str(text))


def wrapped(text, width, bold=False):
    """Lines of a text; it may end one by a newline."""
    for part in str(text).split("\n"):
        line = ""
        for word in part.split():
            while long(word, bold) > width:  # such as a path
                line, word = f"{line} {word}".strip(), ""
                cut = next(i for i in range(len(line), 0, -1) if long(line[:i], bold) <= width)
                yield line[:cut]
                line, word = "", line[cut:]
            if line and long(f"{line} {word}", bold) > width:
                yield line
                line = word
            else:
                line = f"{line} {word}".strip()
        yield line


@dataclass
class Series:
    """Points (x, y) or (x, y, low, high) under one name of the legend. look: the class of a colour; marks: "line", "dots", "both" or "faint" dots."""
    name: str
    points: list
    look: str = "c0"
    marks: str = "both"
    dash: int = 0
    hollow: bool = False


@dataclass
class Arm:
    """A row: its value and interval, the values of its seeds (value, or value, low, high), others (the class of a line, or diamond CLASS: its value),
    and words after it."""
    name: str
    value: float = None
    low: float = None
    high: float = None
    look: str = "c0"
    seeds: tuple = ()
    others: dict = None
    words: str = ""


class Scale:
    """An axis: numbers to places from start to end. names: pairs of a number and its name, in place of ticks."""
    def __init__(self, values, start, end, log=False, fixed=None, zero=False, room=0.05, names=None):
        values = [v for v in values if v is not None and math.isfinite(v) and (v > 0 or not log)]
        low, high = min(values, default=1 if log else 0), max(values, default=1)
        if zero:
            low, high = min(low, 0), max(high, 0)
        if log:
            extra = max((high / low) ** room, 1.05)
            low, high = low / extra, high * extra
        else:
            extra = (high - low or abs(high) or 1) * room
            low, high = low if zero and low == 0 else low - extra, high if zero and high == 0 else high + extra
        if fixed:
            low, high = (a if b is None else b for a, b in zip((low, high), fixed))
        self.low, self.high, self.start, self.end, self.log, self.names = low, high, start, end, log, names

    def __call__(self, v):
        low, high = self.low, self.high
        v = min(max(v, low - (high - low)), high + (high - low)) if not self.log else max(v, low / 100)
        if self.log:
            low, high, v = math.log10(low), math.log10(high), math.log10(v)
        return self.start + (self.end - self.start) * (v - low) / (high - low or 1)

    def holds(self, v):
        return self.low <= v <= self.high

    def ticks(self):
        return self.names or [(v, short(v)) for v in (decades if self.log else steps)(self.low, self.high)]


class Panel:
    """Grows downwards: y is the place of what comes next."""
    def __init__(self, title):
        self.title, self.out, self.y = title, [], 4
        for line in wrapped(title, WIDE - 16, bold=True) if title else ():
            self.line(line, 8, "title")

    def text(self, text, x, y, class_):
        self.out.append(element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", class_=class_))

    def line(self, text, x, class_):
        self.y += LINE
        self.text(text, x, self.y, class_)

    def path(self, d, class_):
        self.out.append(element("path", d=d, class_=class_))

    def legend(self, items):
        """Pairs of a sample, a function of its place, and words."""
        x, self.y = 8, self.y + (LINE + 3 if items else 0)
        for sample, words in items:
            lines = list(wrapped(words, WIDE - 50))
            room = 42 + max(map(long, lines))
            if x > 8 and x + room > WIDE:
                x, self.y = 8, self.y + LINE + 2
            self.out += sample(x, self.y - 4)
            for i, line in enumerate(lines):
                self.y += LINE if i else 0
                self.text(line, x + 28, self.y, "tick")
            x += room

    def frame(self, x, x_name, y=None):
        """Ticks below the panel, whose bottom is self.y, and the name of the axis; y: the scale with ticks to the left."""
        bottom = self.y
        if y:
            for v, name in y.ticks():
                self.path(f"M{x.start} {y(v):.1f}H{x.end}", "grid")
                self.text(name, x.start - 5, y(v) + 4, "tick end")
        free = -math.inf
        for v, name in x.ticks():
            half = long(name) / 2
            at = min(max(x(v), half + 1), WIDE - half - 1)
            if not y:
                self.path(f"M{x(v):.1f} {x.top}V{bottom}", "grid")
            if at - half > free:
                self.text(name, at, bottom + LINE, "tick middle")
                free = at + half + 4
        self.path(f"M{x.start} {bottom}H{x.end}" if not y else f"M{x.start} {y.end}V{bottom}H{x.end}", "axis")
        self.y = bottom + LINE
        lines = list(wrapped(x_name, WIDE - 16)) if x_name else []
        for line in lines:
            self.line(line, min((x.start + x.end) / 2, WIDE - 8 - max(map(long, lines)) / 2), "name middle")

    def done(self, note, about=None):
        self.y += 4 if note else 0
        for line in wrapped(note, WIDE - 16) if note else []:
            self.line(line, 8, "note")
        return svg(WIDE, self.y + 10, self.title, about or note or self.title, *self.out)


def sample(look, marks, dash=0, hollow=False):
    def at(x, y):
        if marks == "diamond":
            return [diamond(x + 12, y, look)]
        line = [element("path", d=f"M{x} {y}h24", class_=f"line {look} dash{dash}")] if marks in ("line", "both") else []
        bar = [element("rect", x=x + 4, y=y - 5, width=16, height=10, class_=f"cell bar {look}")] if marks == "bar" else []
        return line + bar + ([dot(x + 12, y, look, hollow)] if marks in ("dots", "both", "faint") else [])
    return at


def diamond(x, y, look):
    return element("path", d=f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z", class_=f"line {look}")


def dot(x, y, look, hollow=False, r=3.5, title=None):
    return element("circle", element("title", title) if title else None, cx=f"{x:.1f}", cy=f"{y:.1f}", r=r,
                   class_=f"cell {look}" + (" hollow" if hollow else ""))


def thinned(points):
    every = len(points) // MANY + 1
    return points[::every] + ([points[-1]] if (len(points) - 1) % every else [])


def plot(title, series, x_name, y_name, *, log_x=False, log_y=False, x_range=None, y_range=None, x_names=None, across=(), down=(), named=(),
         note="", tall=220, about=None):
    """Curves, points or both by x. x_names: pairs of a place and its name in place of ticks; across, down: reference lines (value, name, look, dash);
    named: texts at points (x, y, text)."""
    p = Panel(title)
    lines = [(sample(look, "line", dash), name) for _, name, look, dash in (*across, *down) if name]
    p.legend([(sample(s.look, s.marks, s.dash, s.hollow), s.name) for s in series if s.name] + lines)
    p.y += 2
    p.line(y_name, 8, "name")
    top = p.y + 9
    xs = [q[0] for s in series for q in s.points] + [v for v, *_ in down]
    ys = [v for s in series for q in s.points for v in q[1:4]] + [v for v, *_ in across]
    y = Scale(ys, top + tall, top, log_y, y_range, room=0.04)
    x = Scale(xs, 16 + max((long(name) for _, name in y.ticks()), default=8), WIDE - 12, log_x, x_range, room=0.2 if x_names else 0.03, names=x_names)
    p.y = top + tall
    p.frame(x, x_name, y)
    inside = Panel("")  # what leaves the panel is cut
    for v, _, look, dash in across:
        inside.path(f"M{x.start} {y(v):.1f}H{x.end}", f"line {look} dash{dash}")
    for v, _, look, dash in down:
        inside.path(f"M{x(v):.1f} {y.start}V{y.end}", f"line {look} dash{dash}")
    for s in series:
        points = [q for q in s.points if None not in q[:2] and (q[0] > 0 or not log_x) and (q[1] > 0 or not log_y)]
        if s.marks in ("line", "both") and len(points) > 1:
            inside.path("M" + "L".join(f"{x(q[0]):.1f} {y(q[1]):.1f}" for q in thinned(points)), f"line {s.look} dash{s.dash}")
        shown = [q for q in thinned(points) if y.holds(q[1])]
        for q in shown:
            if len(q) > 3 and q[2] is not None and q[3] is not None:
                inside.path(f"M{x(q[0]) - 3:.1f} {y(q[2]):.1f}h6m-3 0V{y(q[3]):.1f}m-3 0h6", f"line thin {s.look}")
        if s.marks == "faint":
            inside.path("".join(f"M{x(q[0]):.1f} {y(q[1]):.1f}h0" for q in shown), f"points small {s.look}")
        elif s.marks in ("dots", "both"):
            inside.out += [dot(x(q[0]), y(q[1]), s.look, s.hollow, 3, q[4] if len(q) > 4 else None) for q in shown]
    left, above, width, height = x.start - 4, top - 4, x.end - x.start + 12, tall + 8
    p.out.append(element("svg", inside.out, aria_hidden="true", x=left, y=above, width=width, height=height,
                         viewBox=f"{left} {above} {width} {height}"))
    if named:
        texts = beside([(x(a) - left, y(b) - above) for a, b, _ in named], range(min(len(named), NAMED)), [text for *_, text in named], width, height)
        p.out.append(element("g", list(texts), transform=f"translate({left} {above})"))
    return p.done(note, about)


def arms(title, rows, x_name, *, bars=False, log=False, x_range=None, line=0, include=(), legend=(), ends=None, note="", about=None):
    """A row for each Arm. bars: from 0 to its value; line: where a reference line stands, if the axis has it; legend: (look, marks, words);
    ends: words at both ends of the axis."""
    p = Panel(title)
    p.legend([(sample(look, marks), words) for look, marks, words in legend])
    names = [list(wrapped(r.name, WIDE / 2.6)) for r in rows]
    widest = max((long(line) for lines in names for line in lines), default=0)
    room = max((long(r.words) + 8 for r in rows if r.words), default=0)
    values = [v for r in rows for v in (r.value, r.low, r.high, *flat(r.seeds), *(r.others or {}).values()) if v is not None] + list(include)
    x = Scale(values, 14 + widest, WIDE - 14 - room, log, x_range, zero=bars)
    x.top = p.y = p.y + 12
    marks = []
    for r, lines in zip(rows, names):
        tall = max(24, 16 * len(lines) + 6)
        for i, text in enumerate(lines):
            p.text(text, x.start - 7, p.y + tall / 2 + 4.5 + 16 * (i - (len(lines) - 1) / 2), "tick end")
        marks.append((r, p.y + tall / 2))
        p.y += tall
    p.y += 4
    drawn, p.out = p.out, []
    if line is not None and x.holds(line):
        p.path(f"M{x(line):.1f} {x.top}V{p.y:.1f}", "axis")
    p.frame(x, x_name)
    p.out += drawn
    for r, at in marks:
        if bars and r.value is not None:
            a, b = sorted((x(0 if not log else x.low), x(r.value)))
            p.out.append(element("rect", element("title", f"{r.name}: {r.value:.4g}"), x=f"{a:.1f}", y=at - 7, width=f"{b - a:.1f}", height=14,
                                 class_=f"cell bar {r.look}"))
        for i, s in enumerate(r.seeds):
            v, low, top = s if isinstance(s, tuple) else (s, None, None)
            y = at + (12 * (i / (len(r.seeds) - 1) - 0.5) if len(r.seeds) > 1 else 0)
            if low is not None and top is not None:
                p.path(f"M{x(low):.1f} {y:.1f}H{x(top):.1f}", f"line thin {r.look}")
            p.out.append(dot(x(v), y, r.look, r=2.4))
        for look, v in (r.others or {}).items():
            if v is not None:
                shape, _, of = look.partition(" ")
                p.out.append(diamond(x(v), at, of) if shape == "diamond" else element("path", d=f"M{x(v):.1f} {at - 9}v18", class_=f"line {look}"))
        if r.value is not None and not r.seeds:
            ink = "ink" if bars else r.look
            if r.low is not None and r.high is not None:
                p.path(f"M{x(r.low):.1f} {at - 3.5}v7m0 -3.5H{x(r.high):.1f}m0 -3.5v7", f"line {'thin ' if bars else ''}{ink}")
            if not bars:
                p.out.append(dot(x(r.value), at, r.look, r=4.2, title=f"{r.name}: {r.value:+.4g}"))
        if r.words:
            p.text(r.words, max(x(v) for v in (r.value, r.high, *flat(r.seeds)) if v is not None) + 7, at + 4.5, "tick")
    if ends:
        p.y += LINE
        p.text(ends[0], 8, p.y, "note")
        p.text(ends[1], WIDE - 8, p.y, "note end")
    return p.done(note, about)


def forest(rows, by, name, columns, x_name, look, title=str, **options):
    """A panel for each word by(row), with a row for each of its rows: name(row), columns (value, low and high), look(row). All have one scale."""
    every = [v for r in rows for v in r.numbers(columns) if v is not None]
    return [arms(title(word), [Arm(name(r), *r.numbers(columns), look(r)) for r in rows if by(r) == word], x_name, include=every, **options)
            for word in dict.fromkeys(map(by, rows))]


def flat(seeds):
    for s in seeds:
        yield from (s if isinstance(s, tuple) else (s,))


def picture(matrix, most):
    """A PNG of one red whose strength is the number, from 0 to `most`, so that the paper shows through."""
    rows = b"".join(b"\0" + bytes(int(255 * min(max(v / most, 0), 1)) for v in row) for row in matrix)
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", len(matrix[0]), len(matrix), 8, 3, 0, 0, 0)), (b"PLTE", b"\xc0\x40\x20" * 256),
              (b"tRNS", bytes(range(256))), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
    return "data:image/png;base64," + base64.b64encode(png).decode()


def matrices(title, panels, ends, note):
    """Matrices side by side, (words, matrix, number of the strongest colour); ends: the numbers of the first and the last row."""
    p = Panel(title)
    side = (WIDE - 16 - 10 * (len(panels) - 1)) / len(panels)
    heads = [list(wrapped(words, side)) for words, _, _ in panels]
    top = p.y + LINE * max(map(len, heads)) + 8
    for i, (_, matrix, most) in enumerate(panels):
        x = 8 + i * (side + 10)
        for j, text in enumerate(heads[i]):
            p.text(text, x, p.y + LINE * (j + 1), "tick")
        box = dict(x=f"{x:.1f}", y=top, width=f"{side:.1f}", height=f"{side:.1f}")
        p.out += [element("image", href=picture(matrix, most), **box, preserveAspectRatio="none"), element("rect", **box, class_="frame")]
    p.text(ends[0], 8, top + side + LINE, "tick")
    p.text(ends[1], 8 + side, top + side + LINE, "tick end")
    p.y = top + side + LINE
    return p.done(note)


def flows(title, pairs, kinds, note):
    """Flows from a name to the left to a name to the right: (left, right, kind, number). kinds: kind -> look. The largest ones are on top."""
    p = Panel(title)
    p.legend([(sample(look, "bar"), kind) for kind, look in kinds.items() if any(k == kind for _, _, k, _ in pairs)])
    total = sum(n for *_, n in pairs) or 1
    tall, start = 320, p.y + 14
    x = 0.36 * WIDE, 0.64 * WIDE
    ends = []
    for side in (0, 1):
        size = {}
        for pair in pairs:
            size[pair[side]] = size.get(pair[side], 0) + pair[3]
        names = sorted(size, key=lambda name: -size[name])
        gap = max(LINE, 0.4 * tall / max(len(names), 1))
        y, at = start, {}
        for name in names:
            at[name] = y
            y += size[name] / total * 0.6 * tall + gap
        ends.append(at)
        p.y = max(p.y, y)
        for name in names:
            lines = list(wrapped(f"{name} ({size[name]:g})", x[0] - 14))
            half = at[name] + size[name] / total * 0.3 * tall + 4.5
            for i, text in enumerate(lines):
                p.text(text, x[side] + (8 if side else -8), half + 15 * (i - (len(lines) - 1) / 2), "tick" if side else "tick end")
    middle = (x[0] + x[1]) / 2
    used = [dict(at) for at in ends]
    order = [{name: i for i, name in enumerate(at)} for at in ends]
    for left, right, kind, n in sorted(pairs, key=lambda q: (list(kinds).index(q[2]), order[0][q[0]], order[1][q[1]])):
        h = n / total * 0.6 * tall
        a, b = used[0][left], used[1][right]
        there = f"C{middle} {a:.1f} {middle} {b:.1f} {x[1]:.1f} {b:.1f}"
        back = f"C{middle} {b + h:.1f} {middle} {a + h:.1f} {x[0]:.1f} {a + h:.1f}"
        p.out.append(element("path", element("title", f"{left}, {right}: {n:g} ({kind})"), d=f"M{x[0]:.1f} {a:.1f}{there}v{h:.1f}{back}z",
                             class_=f"cell bar {kinds[kind]}"))
        used[0][left] += h
        used[1][right] += h
    return p.done(note)


# ---- a file of its own ----

def style(used):
    """The rules of page.css for these classes, for light and dark, with colours in place of their names, which only browsers know."""
    css = (Path(__file__).resolve().parent / "page.css").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w+)", block)) for block in re.findall(r":root \{(.*?)\}", css, re.S)[:2])
    rules = re.findall(r"[^{}]+\{[^{}]*\}", css[css.index("/* Charts */") + 12:css.index("/* Tables */")])
    rules = [r.strip() for r in rules if any(set(re.findall(r"\.([\w-]+)", s)) <= used for s in r.partition("{")[0].split(","))]

    def filled(some, values):
        return "\n".join(re.sub(r"var\(--([\w-]+)\)", lambda m: values.get(m[1], m[0]), r) for r in some)
    return (f"{filled(rules, {**light, 'card': light['paper']})}\n@media (prefers-color-scheme: dark) {{\n"
            f"{filled([r for r in rules if 'var(--' in r], {**dark, 'card': dark['paper']})}\n}}\n")


def alone(drawn):
    """The text of an SVG file: the element, with its style and the paper under it."""
    used = {c for e in drawn.iter() for c in e.get("class", "").split()} | {"chart", "back"}
    at = sum(1 for e in drawn if e.tag in ("title", "desc"))
    drawn.insert(at, element("style", style(used)))
    drawn.insert(at + 1, element("rect", width="100%", height="100%", class_="back"))
    drawn.set("xmlns", "http://www.w3.org/2000/svg")
    return ET.tostring(drawn, encoding="unicode") + "\n"


def figure(title, panels):
    """Panels, one below the other, as the text of a file."""
    y, out = 0, []
    for panel in panels:
        panel.set("y", f"{y:g}")
        y += float(panel.get("height")) + 8
        out.append(panel)
    return alone(svg(WIDE, max(y - 8, 1), title, title, *out))
