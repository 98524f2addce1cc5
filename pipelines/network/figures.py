"""The figures of make network: the network by its modules, one cell's masks in it, and how far other donors repeat it."""
import math
from collections import Counter

from chart import COLOURS, GREY, element, style
from plot import WIDE, Arm, Panel, Series, arms, dot, long, plot, sample, wrapped

LEAST = 3       # genes of a module that is drawn
MOST = 16       # modules that are drawn
ROOM = 0.3      # of the panel is for genes
TALL = 400      # of a panel with few names
NAME = 110      # of a line of a name, if its words are no wider
JOINED = 5      # edges that bring modules together
TURN = math.pi * (3 - math.sqrt(5))     # from a gene of a module to the next one, as in a sunflower


def neighbours(modules, edges):
    """The modules from the largest on, but those that edges join to the last one before others."""
    of = {g: i for i, (_, genes) in enumerate(modules) for g in genes}
    joined = Counter(frozenset((of[a], of[b])) for a, b in edges if of[a] != of[b])
    left, order = list(range(len(modules))), []
    while left:
        near = max(left, key=lambda i: joined[frozenset((order[-1], i))]) if order else 0
        order.append(near if order and joined[frozenset((order[-1], near))] >= JOINED else left[0])
        left.remove(order[-1])
    return [modules[i] for i in order]


def places(modules):
    """Where the genes of each module are, the strongest in the middle, modules in rows, names below them: (gene -> (x, y), lines of names as
    (x, y, text), height)."""
    total = sum(len(genes) for _, genes in modules)
    step = min(8, math.sqrt(ROOM * WIDE * TALL / (math.pi * total))) if total else 1
    boxes = []
    for name, genes in modules:
        r = step * math.sqrt(len(genes)) + 4
        lines = list(wrapped(name, max(NAME, *(long(word, bold=True) for word in name.split())), bold=True))
        boxes.append((max(2 * r, *(0.9 * long(line, bold=True) for line in lines)) + 8, r, lines, genes))
    rows, room = [], 0
    for box in boxes:
        if room < box[0]:
            rows.append([])
            room = WIDE - 8
        rows[-1].append(box)
        room -= box[0]
    at, names, top = {}, [], 6
    for row in rows:
        free = WIDE - 8 - sum(w for w, *_ in row)
        gap = min(free / len(row), 30)
        x, low = 4 + (free - gap * (len(row) - 1)) / 2, top + 2 * max(r for _, r, _, _ in row)
        for w, r, lines, genes in row:
            for k, g in enumerate(genes):
                far = step * math.sqrt(k + 0.5 if len(genes) > 1 else 0)
                at[g] = x + w / 2 + far * math.cos(k * TURN), low - r + far * math.sin(k * TURN)
            names += [(x + w / 2, low + 15 * (i + 1), line) for i, line in enumerate(lines)]
            x += w + gap
        top = low + 15 * max(len(lines) for _, _, lines, _ in row) + 12
    return at, names, top


def lines_between(pairs, at, down):
    return "".join(f"M{at[a][0]:.1f} {at[a][1] + down:.1f}L{at[b][0]:.1f} {at[b][1] + down:.1f}" for a, b in pairs)


def drawing(title, modules, edges, at, names, tall, looks, legend, bright, note):
    """A panel of the network. looks: gene -> class of its dot, or None for a small hollow one; bright: edges that are not faint."""
    p = Panel(title)
    p.legend(legend)
    down = p.y + 4
    p.path(lines_between(edges, at, down), "edge")
    if bright:
        p.path(lines_between(bright, at, down), "line thin m-corrmask")
    for name, genes in modules:
        for look in dict.fromkeys(looks[g] for g in genes):
            d = "".join(f"M{at[g][0]:.1f} {at[g][1] + down:.1f}h0" for g in genes if looks[g] == look)
            p.out.append(element("path", element("title", f"{name}, {len(genes)} genes"), d=d, class_=f"points disc {look}", stroke_width="2" if look == "faint" else "6"))
    p.out += [element("text", text, x=f"{x:.1f}", y=f"{y + down:.1f}", class_="place middle") for x, y, text in names]
    p.y = down + tall - 6
    return p.done(note, f"{len(at)} genes in {len(modules)} modules with names, and {len(edges)} edges between them. The report has the modules as a table.")


def drawings(genes, every, most, where):
    """Panels of the network, and of one cell's masks if they are known (column state). genes: rows with module, module_name, gene; every: rows of edges."""
    of = {}
    for r in genes:
        of.setdefault((int(r["module"]), r["module_name"]), []).append(r["gene"])
    large = [(name, some) for (_, name), some in sorted(of.items()) if len(some) >= LEAST]
    drawn = {g for _, some in large[:most] for g in some}
    edges = [(r["gene_a"], r["gene_b"]) for r in every if r["gene_a"] in drawn and r["gene_b"] in drawn]
    modules = neighbours(large[:most], edges)
    at, names, tall = places(modules)
    colour = {g: style(i % (COLOURS - 1) + (i % (COLOURS - 1) >= GREY)) for i, (_, some) in enumerate(modules) for g in some}
    if not modules:
        return
    yield drawing("Genes that vary together within donors", modules, edges, at, names, tall, colour, [], [],
                  "A dot is a gene, the strongest of a module in its middle; lines are edges" + where(len(large), len(edges), len(every)))
    state = {r["gene"]: r["state"] for r in genes if "state" in r}
    hidden = {g for g in at if state.get(g) == "masked"}
    if hidden:
        looks = {g: {"masked": "m-corrmask", "present": "c6"}.get(state[g], "faint") for g in at}
        legend = [(sample("m-corrmask", "dots"), f"masked ({len(hidden)})"), (sample("c6", "dots"), "in the cell"),
                  (lambda x, y: [dot(x + 12, y, "faint", r=1.2)], "not in it")]
        yield drawing("One cell: what CorrMask masks", modules, [], at, names, tall, looks, legend, [e for e in edges if hidden.issuperset(e)],
                      "Lines: edges of the network whose genes are both masked. Half of the masks or more are random; the others are partners in the graph of Algorithm 1.")


def network(t):
    state = {r["gene"]: r["state"] for r in t("cell.tsv")}
    panels = [*drawings([r | {"state": state.get(r["gene"])} for r in t("genes.tsv")], t("edges.tsv"), MOST, lambda large, edges, every: (
        f" ({edges} of {every}; the others are between genes of smaller modules)." + (f" {large - MOST} smaller ones are in the table." if large > MOST else "")))]
    rows = t("halves.tsv")
    if rows:
        points = [(edges, again, *((again - sd, min(1, again + sd)) if sd else ())) for edges, again, sd in (r.numbers("edges recurrence sd") for r in rows)]
        panels.append(plot("Edges that the other half of the donors repeats", [Series("", points, "c0")], "strongest edges of each half", "share found again",
                           log_x=True, y_range=(0, 1), x_names=[(q[0], f"{q[0]:,.0f}") for q in points],
                           note="Of the strongest edges of one half of the donors, the share that is among as many of the other half."
                                + " Bars: one standard deviation over halvings." * bool(rows[0].number("sd"))))
    stable = [r for r in t("modules.tsv") if r.number("stability") is not None and r.number("genes") >= LEAST][:MOST]
    if stable:
        chance = t("chance.tsv")[0].number("pairs_together")
        panels.append(arms("Stability of modules", [Arm(r["module_name"], r.number("stability"), words=r["genes"]) for r in stable],
                           "pairs of genes that stay together in both halves", bars=True, x_range=(0, 1.12), line=chance,
                           note=f"Numbers: genes. Line: all pairs of genes of the network ({chance:.2f})."))
    return "Network of genes", panels


def docs_network(t):
    return "Genes that vary together in bone marrow", drawings(t("network-genes.tsv"), t("network-edges.tsv"), MOST, lambda *_: ". The eight largest modules of bone marrow.")
