"""Figures of predicted cell types (make annotate): maps with the names of the types on the clusters, and marker genes in the reference and in the new
cells. A type has one colour on all of them; unknown cells, and cells without a type, are grey."""
from collections import Counter

import chart
from chart import element
from run import columns_of, number, read_table, spread, tool

GREY_ONES = ("unknown", "no type")
MOST_MARKERS = 30  # types
MOST_UNLIKE = 3  # clusters
RARE_MARKER = 0.1  # share of the cells of its type in the reference; a gene of fewer is not drawn


def colours(types):
    """Numbers of the styles of chart.py, all but the grey ones, in turn; grey for what is no type."""
    free = [i for i in range(chart.COLOURS) if i != chart.GREY]
    known = [t for t in types if t not in GREY_ONES]
    of = {t: i // len(free) * chart.COLOURS + free[i % len(free)] for i, t in enumerate(known)}
    return [of.get(t, chart.GREY) for t in types]


def unlike(f, drawn, xy, types, figure):
    """The cells of the first clusters of the list of unlike ones, which has the same numbers; the others are grey."""
    first = [str(k) for k in range(1, MOST_UNLIKE + 1)]
    of = [v if v in first else "others" for v in tool("scview", "-q", "-c", "unlike", f)[1:]]
    looks = [*colours(types + first)[len(types):], chart.GREY]
    head = "The clusters most unlike the reference, by their place in the list"
    return figure(head, chart.cell_map(xy, [of[i] for i in drawn], [*first, "others"], head, looks=looks))


def maps(run, most, figure):
    """Of each stream of predictions with `assigned`: its cells by that column and, if there are any, by their own column of types and by the list of unlike
    clusters, at the same places."""
    label = run.setting("LABEL")
    for f in sorted(run.dir.glob("*.pred")):
        columns = [line.split("\t")[1] for line in tool("scview", "--header-tsv", f) if line.startswith("column\t")]
        places = f if "X_umap" in columns else f.with_suffix(".map")
        if "assigned" not in columns or not places.exists():
            continue
        at = tool("scview", "-q", "-c", "X_umap", places)[1:]
        panels = {"assigned": [v or "no type" for v in tool("scview", "-q", "-c", "assigned", f)[1:]]}
        if label in columns:
            own = ["no type" if v in ("", "NA") else v for v in tool("scview", "-q", "-c", label, f)[1:]]
            if set(own) != {"no type"}:
                panels[label] = own
        cells = [Counter(of) for of in panels.values()]
        both = sum(cells, Counter())
        types = sorted(both, key=lambda t: (t in GREY_ONES, -both[t], t))
        drawn = [i for i in spread(len(at), most) if "nan" not in at[i]]
        if not drawn:
            continue
        xy = [tuple(map(float, at[i].split())) for i in drawn]
        shown = f"{len(drawn)} of {len(at)} cells are drawn." if len(drawn) < len(at) else f"All {len(at)} cells are drawn."
        heads = ["Assigned types"] + [f"{c}, as your file has it" for c in list(panels)[1:]]
        yield element("div", element("h3", "Map of the new cells (UMAP)"),
                      element("p", shown, f" The legend counts all cells: as assigned, and as in {label}." if len(panels) > 1 else None, class_="quiet"),
                      element("div", [figure(head, chart.cell_map(xy, [of[i] for i in drawn], types, f"Map of the new cells: {head}", looks=colours(types)))
                                      for head, of in zip(heads, panels.values())] + ([unlike(f, drawn, xy, types, figure)] if "unlike" in columns else []),
                              class_="figures"),
                      chart.keys([(chart.points([(12, 7)], i, 9), [t, element("span", " " + ", ".join(str(c[t]) for c in cells), class_="quiet")])
                                  for t, i in zip(types, colours(types))]), class_="maps")


class Markers:
    """markers.tsv (scgenes markers): the markers of the types that new cells got, and their expression by type."""
    def __init__(self, rows):
        names = ("marker_of", "symbol", "gene", "class", "cells", "mean", "share", "new_cells", "new_mean", "new_share")
        at = columns_of(rows, *names) or []
        new = {r[3]: int(r[7]) for r in at}
        of = sorted((t for t in {r[0] for r in at} if new.get(t)), key=lambda t: (-new[t], t))[:MOST_MARKERS]
        self.new, self.types = new, of
        self.unknown = [t for t in GREY_ONES if new.get(t)]
        self.genes, self.value = {t: [] for t in of}, {}
        hardly = {(r[0], r[2]) for r in at if r[0] == r[3] and (number(r[6]) or 0) < RARE_MARKER}
        for marker_of, symbol, gene, t, cells, mean, share, _, new_mean, new_share in at:
            if marker_of not in self.genes or (marker_of, gene) in hardly:
                continue
            name = symbol or gene
            if name not in self.genes[marker_of]:
                self.genes[marker_of].append(name)
            self.value["reference", name, t] = number(mean), number(share), cells
            self.value["new", name, t] = number(new_mean), number(new_share), new[t]

    def most(self):
        """So many genes of a type that the figure can be read."""
        return 3 if len(self.types) <= 10 else 2 if len(self.types) <= 16 else 1

    def figure(self, part, title, types):
        """Colours of a gene are shares of its highest mean in a type, of the reference or of the new cells."""
        genes = [(g, t) for t in self.types for g in self.genes[t][:self.most()]]
        highest = {g: max(v[0] or 0 for (_, name, _), v in self.value.items() if name == g) for g, _ in genes}
        dots = {}
        for g, _ in genes:
            for t in types:
                mean, share, cells = self.value.get((part, g, t), (None, None, 0))
                if share:
                    dots[g, t] = mean / highest[g], share, f"{g} in {t}: {100 * share:.0f} % of {cells} cells, mean {mean:.2f}"
        return chart.dots(genes, types, dots, title)


def markers(run, figure):
    for f in run.named("markers.tsv"):
        m = Markers(read_table(f))
        if not m.types:
            continue
        titles = "Marker genes in the reference", "Marker genes in the new cells, by assigned type"
        some = f" The {len(m.types)} types with most new cells are drawn." if len(m.types) == MOST_MARKERS else ""
        yield element("div", element("h3", "Do the new cells have the marker genes of their types?"),
                      element("p", "The genes that distinguish each type in the reference, and the same genes in the new cells. A frame marks the markers of a "
                              "type: the two figures should look alike." + some, class_="quiet"),
                      element("div", figure(titles[0], m.figure("reference", titles[0], m.types)),
                              figure(titles[1], m.figure("new", titles[1], m.types + m.unknown)), class_="figures"),
                      chart.keys([*((chart.dot(12, 7, share, 1), f"{100 * share:.0f} % of the cells") for share in (0.25, 0.5, 1)),
                                  *((chart.dot(12, 7, 1, c), f"mean {words}") for c, words in ((0.1, "near 0"), (1, "as in the type with the highest")))]),
                      class_="markers")
