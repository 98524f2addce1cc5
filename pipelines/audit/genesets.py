"""table.py audit/genesets cells TOKENS: the number of cells with each token, as token <TAB> cells.
table.py audit/genesets graph OUT EDGES DIR NAMES SET_MAX "K..." SKIP GMT...: how many of the k strongest edges join two genes of one gene set, compared with
random pairs of equally frequent genes. Only genes that are in a set of at most SET_MAX genes are counted: nothing is known about the others. NAMES: a table
of name and gene id, or nothing. SKIP: symbols to leave out, a regular expression. In a random pair each gene of the edge is replaced by one of the
2 WIDTH + 1 genes around it in the order of frequency, DRAWS pairs per edge."""
import gzip
import re
import sys
from collections import Counter
from math import sqrt

from table import fields, rows, tool, write

WIDTH, DRAWS = 25, 20


class Random:
    """Park and Miller's generator."""
    def __init__(self):
        self.seed = 1

    def below(self, n):
        self.seed = self.seed * 16807 % 2147483647
        return int(self.seed / 2147483647 * n)


def unpacked(path):
    with open(path, "rb") as f:
        zipped = f.read(2) == b"\x1f\x8b"
    with (gzip.open if zipped else open)(path, "rt", encoding="utf-8", errors="surrogateescape", newline="\n") as f:
        return [line.rstrip("\n").split("\t") for line in f]


def sets_of_genes(folder, names, most, files):
    """id -> numbers of its sets: genes go by id, by symbol, or by the names of the table."""
    ids = {row["gene_id"] for row in rows(f"{folder}/genes.tsv")}
    called = {}
    for row in (*rows(f"{folder}/genes.tsv"), *rows(f"{folder}/names.tsv")):
        if row.get("symbol"):
            called.setdefault(row["symbol"], row["gene_id"])
    alias = {}
    for row in unpacked(names)[1:] if names else ():
        if len(row) > 1 and row[0] and row[1]:
            alias.setdefault(row[0], row[1])
    found = {}
    for number, (_, _, *genes) in enumerate(row for f in files for row in unpacked(f) if 4 <= len(row) <= most + 2):
        for g in genes:
            g = g if g in ids else called[g] if called.get(g) in ids else alias.get(g)
            if g in ids:
                found.setdefault(g, set()).add(number)
    return found


def strongest(path):
    """The edges, those of the largest |weight| first."""
    edges = [(row[0], row[3], abs(float(row[6]))) for row in fields(path)[1:]]
    return sorted(edges, key=lambda e: (-e[2], int(e[0]), int(e[1])))


def graph(out, edges, folder, names, most, ks, skip, *files):
    genes = rows(f"{folder}/genes.tsv")
    token = {row["gene_id"]: row["token"] for row in reversed(genes)}
    sets = {token[g]: s for g, s in sets_of_genes(folder, names, int(most), files).items()}
    skipped = {token.get(row["gene_id"]) for row in (*genes, *rows(f"{folder}/names.tsv")) if skip and row.get("symbol") and re.search(skip, row["symbol"])}
    order = sorted((int(n), int(t), t) for t, n in fields(f"{folder}/cells.tsv") if t in sets and t not in skipped)
    order = [t for *_, t in order]
    place, random, seen, n, hits, random_hits = {t: i for i, t in enumerate(order)}, Random(), set(), 0, 0, 0

    def near(t):
        low, high = max(place[t] - WIDTH, 0), min(place[t] + WIDTH, len(order) - 1)
        return order[low + random.below(high - low + 1)]

    def report():
        p, q = hits / n, random_hits / (n * DRAWS)
        return [f"{n}", f"{p:.4f}", f"{q:.4f}", f"{p / q if q else 0:.2f}", f"{sqrt(p * (1 - p) / n):.4f}", f"{len(seen)}"]

    table = [["k", "precision", "random", "ratio", "se", "genes"]]
    edges = strongest(edges)
    if edges and len(order) < 2:
        sys.exit(f"genesets: no gene of the cells is in a gene set of at most {most} genes: name a table of names and ids as GENE_NAMES")
    for a, b, _ in edges:
        if a not in place or b not in place:
            continue
        n += 1
        seen |= {a, b}
        hits += not sets[a].isdisjoint(sets[b])
        for _ in range(DRAWS):
            u = v = None
            while u == v:
                u, v = near(a), near(b)
            random_hits += not sets[u].isdisjoint(sets[v])
        if str(n) in ks.split():
            table.append(report())
    if n and table[-1][0] != str(n):
        table.append(report())
    write(out, *table)


def cells(tokens):
    found = Counter(t for line in tool("scview", "-c", "token", tokens).splitlines()[1:] for t in line.split())
    for token, n in found.items():
        print(token, n, sep="\t")


def main(what, *arguments):
    {"cells": cells, "graph": graph}[what](*arguments)
