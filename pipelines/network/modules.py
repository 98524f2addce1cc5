"""table.py network/modules DIR RESOLUTION SEED: a table of the genes of DIR/network.graph with their modules, the names of these and how stable they are
over DIR/halves/*.graph; DIR/modules.tsv, DIR/edges.tsv, DIR/chance.tsv and DIR/network.graphml, too."""
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

from table import columns, put, rows, tool, tsv, write

LEAST = 3       # genes of a module that sets name
COVERED = 0.2   # of its genes are in the set at least
HUBS = 3        # that name another module


def modules_of(graph):
    """token -> module of the genes with partners"""
    return {token: int(module) for token, module in columns(graph, "token", "module") if module != "-1"}


def together(genes, halves):
    """The share of the pairs of these genes that are in one module in both halves of the donors: the mean over the halvings. The network chose its
    modules in all donors, so one half alone repeats its noise, too. None without halves, or without pairs."""
    pairs = len(genes) * (len(genes) - 1) / 2
    shares = [sum(n * (n - 1) / 2 for n in Counter((a[g], b[g]) for g in genes if g in a and g in b).values()) / pairs for a, b in halves if pairs]
    return sum(shares) / len(shares) if shares else None


def names_of(modules, hubs, sets):
    """A name for each module: the set that has most of its genes, of those it is rich in, or its hubs. No two have one name."""
    best = {}
    for r in sorted(sets, key=lambda r: (-int(r["both"]), float(r["p"]))):
        m = int(r["module"])
        if len(modules[m]) >= LEAST and int(r["both"]) >= max(2, COVERED * len(modules[m])):
            best.setdefault(m, r)
    name = {}
    for m in modules:
        own = best[m]["set"] if m in best else ", ".join(hubs[m][:HUBS])
        name[m] = own if own not in name.values() else f"{own} ({hubs[m][0]})"
    return name, best


def share(value):
    return "NA" if value is None else f"{value:.4f}"


def name_graphml(text, name, stability):
    """The same graph, whose nodes also have the name and the stability of their module."""
    space = "{http://graphml.graphdrawing.org/xmlns}"
    ET.register_namespace("", space[1:-1])
    root = ET.fromstring(text)
    for i, (key, kind) in enumerate((("module_name", "string"), ("stability", "double"))):
        root.insert(i, ET.Element(f"{space}key", {"id": key, "for": "node", "attr.name": key, "attr.type": kind}))
    for node in root.iter(f"{space}node"):
        m = next(int(d.text) for d in node if d.get("key") == "module")
        for key, value in (("module_name", name[m]), ("stability", stability[m])):
            if value is not None:
                ET.SubElement(node, f"{space}data", key=key).text = value if key == "module_name" else share(value)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def main(folder, resolution, seed):
    graph = f"{folder}/network.graph"
    module = modules_of(graph)
    halves = [(modules_of(f), modules_of(f.with_name(f.name.replace(".train.", ".test.")))) for f in sorted(Path(folder, "halves").glob("*.train.graph"))]
    head, *edges = [line.split("\t") for line in tool("depgraph", "-q", "-O", "tsv", graph).splitlines()]
    edges.sort(key=lambda e: -float(e[6]))
    gene, partners, strength = {}, Counter(), Counter()
    for a, id_a, symbol_a, b, id_b, symbol_b, score, *_ in edges:
        for token, id_, symbol in ((a, id_a, symbol_a), (b, id_b, symbol_b)):
            gene[token] = id_, symbol or id_
            partners[token] += 1
            strength[token] += float(score) * (module[a] == module[b])
    of = {m: sorted((t for t in module if module[t] == m), key=lambda t: (-strength[t], int(t))) for m in sorted(set(module.values()))}
    stability = {m: together(of[m], halves) for m in of}
    name, best = names_of(of, {m: [gene[t][1] for t in of[m]] for m in of}, rows(f"{folder}/sets.tsv"))

    inner = Counter(module[e[0]] for e in edges if module[e[0]] == module[e[3]])
    write(f"{folder}/modules.tsv", ["module", "module_name", "genes", "edges", "stability", "set", "in_set", "set_q", "strongest_genes"], *(
        [str(m), name[m], str(len(of[m])), str(inner[m]), share(stability[m]), *([best[m][c] for c in ("set", "both", "q")] if m in best else ["NA"] * 3),
         " ".join(gene[t][1] for t in of[m][:10])] for m in of))
    write(f"{folder}/edges.tsv", ["gene_a", "symbol_a", "gene_b", "symbol_b", *head[6:], "module_name"], *(
        [*gene[e[0]], *gene[e[3]], *e[6:], name[module[e[0]]] if module[e[0]] == module[e[3]] else "NA"] for e in edges))
    write(f"{folder}/chance.tsv", ["pairs_together"], [share(together(list(module), halves))])
    graphml = tool("depgraph", "-q", "-O", "graphml", "--leiden", resolution, "--seed", seed, graph)
    put(f"{folder}/network.graphml", name_graphml(graphml, name, stability))
    print(tsv([["gene", "symbol", "module", "module_name", "stability", "partners", "strength"], *(
        [*gene[t], str(m), name[m], share(stability[m]), str(partners[t]), f"{strength[t]:.4f}"] for m in of for t in of[m])]), end="")
