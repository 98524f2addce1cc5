"""table.py audit/report table3|table8|genesets DIR DATA [GENESETS SKIP]: the table, from the files under DIR."""
from table import fields, header_lines, tool, values

TABLE3 = {"random": ("random", "1.08   1.93 %"), "bernoulli": ("random, Bernoulli", ""), "pmi": ("PMI", "1.08   1.95 %"), "pmi-rand": ("PMI-Rand", ""),
          "corrmask": ("CorrMask", "1.65   9.32 %"), "corrmask-100": ("CorrMask-100", "")}
WORDS3 = """
pair span   mean number of masked genes in a pair of partners, over the pairs in the cell with at least one masked gene.
            It is 1/(1-h/2), where h is the hit rate over present partners. Independent masks at 15 % give 1.08, the published
            value for random and PMI masks. The paper defines no span: this definition is a guess from that value,
            and it does not give the published 1.65 (see maskgen(1), Audit).
mean span   mean length of the runs of adjacent masked positions: 1/(1-0.15) = 1.18 for independent masks. The paper does not print 1.18.
hit rate    share of a masked gene's partners that are masked too. Partners that are not in the cell count as not masked.
(present)   the same over the partners in the cell: 15 % for independent masks. If the paper counts all partners, its 1.93 % is
            15 % of the 12.9 % that are present.
linked      masking rate of the genes with partners, and of all others: the paper's coverage bias (section 3). Where few genes have
            partners, they share the graph's part of the budget and are masked most of the time.
All values are measured with the graph of these cells. maskgen(1), Audit, has the definitions.
"""
TABLE8 = {"tokens with a partner among the 5 nearest on either side": "neighbour_within_5", "  the same, over tokens with partners in the graph": "neighbour_within_5_linked",
          "5-grams that contain a pair of partners": "grams_5_with_pair", "pairs of partners in the cell at most 5 positions apart": "pairs_within_5"}
WORDS8 = """
the paper: lung 9.34 %, kidney 18.16 %, heart 14.67 %, pan-cancer 23.01 %. Its text describes three of these measures: the first
("a correlated gene exists inside the 5 closest tokens on either side of the targeted gene"), the third ("spans containing a pair"),
and in section 3 the fourth."""
GRAPHS = {"corrmask": "CorrMask's graph (the 2,000 most expressed genes)", "corrmask-all": "CorrMask's graph, all genes", "pmi": "PMI graph, all genes"}
WORDS_SETS = """
+-: 1.96 standard errors, computed as if edges were independent, which they are not. genes: number of genes in the k edges.
The graphs have genes of different frequency: compare ratios, not precisions. GENE_SKIP='^RP[LS][0-9]' leaves out ribosomal
proteins, if these make up most of the first edges and of their random pairs."""


class Audits:
    def __init__(self, folder):
        self.folder = folder

    def get(self, audit, name):
        return float(values(f"{self.folder}/audit.{audit}.tsv").get(name, "nan"))

    def number(self, audit, name):
        x = self.get(audit, name)
        return f"{x:.2f}" if x == x else "-"

    def percent(self, audit, name):
        x = self.get(audit, name)
        return f"{100 * x:.2f} %" if x == x else "-"

    def graph(self, name="corrmask"):
        stats = dict(line.split("\t")[:2] for line in tool("depgraph", "-q", "-O", "stats", f"{self.folder}/{name}.graph").splitlines())
        overlap = [words[i + 1] for words in (line.split() for line in header_lines(f"{self.folder}/{name}.graph")) for i, w in enumerate(words) if w == "--min-overlap"]
        return f"{stats['genes_with_neighbours']} genes with partners, {stats['edges']} edges" + (f" (--min-overlap {overlap[-1]})" if overlap else "")

    def cells(self):
        return values(f"{self.folder}/audit.random.tsv")["cells"]


def table3(a, data):
    print(f"Table 3, masking audit: {data}")
    print(f"{a.cells()} cells, masking rate {a.percent('random', 'masking_rate')}, graph: {a.graph()}\n")
    print(f"{'masks':22}" + "".join(f" {x:>9}" for x in ("pair span", "mean span", "hit rate", "(present)", "linked", "others")) + "   the paper: span, hit rate")
    for audit, (name, paper) in TABLE3.items():
        texts = [a.number(audit, m) for m in ("pair_span", "mean_span")] + [a.percent(audit, m) for m in ("hit_rate", "hit_rate_present", "masking_rate_linked", "masking_rate_others")]
        print(f"{name:22}" + "".join(f" {x:>9}" for x in texts) + f"   {paper}")
    print(WORDS3)
    print(f"The readings of Table 3 that are nearest to the paper; none of them gives all of its values\ngraph with rho_min 0.35: {a.graph('corrmask-rho35')}\n")
    form = lambda name, *texts: print(f"{name:72}" + "".join(f" {x:>9}" for x in texts))
    form("", "random", "PMI", "CorrMask")
    masks = ("random", "pmi", "corrmask")
    form("span: masked genes of a pair in the cell, rho_min 0.35", *(a.number(f"{m}-rho35", "pair_span") for m in masks))
    form("  the paper", "1.08", "1.08", "1.65")
    form("hit rate: share of all tokens that are masked and have a masked partner", *(a.percent(m, "hit_tokens") for m in masks))
    form("  the paper", "1.93 %", "1.95 %", "9.32 %")
    hits = [a.get(f"{m}-rho35", "hit_rate_present") for m in masks]
    form("ratio to random: hit rate over partners in the cell, rho_min 0.35", *(f"{x / hits[0]:.2f}" if x == x and hits[0] > 0 else "-" for x in hits))
    form("  the paper", "1.00", "1.01", "4.83")


def table8(a, data):
    print(f"Table 8, correlated partners within 5-grams: {data}\n{a.cells()} cells, graph: {a.graph()}\n")
    for name, metric in TABLE8.items():
        print(f"{name:58} {a.percent('random', metric):>9}")
    print(WORDS8)


def genesets(folder, data, sets, skip):
    print(f"Edges within known gene sets: {data}\nsets: {sets}" + (f"; without genes {skip}" if skip else ""))
    print("precision: share of the k strongest edges (|weight|) that join two genes of one set; only genes of some set count")
    print("random: the same for random pairs of equally frequent genes")
    for graph, title in GRAPHS.items():
        print(f"\n{title}\n{'k':>8} {'precision':>10} {'+-':>10} {'random':>10} {'ratio':>8} {'genes':>8}")
        table = fields(f"{folder}/genesets.{graph}.tsv")[1:]
        for k, precision, random, ratio, se, genes in table:
            print(f"{k:>8} {float(precision):10.4f} {1.96 * float(se):10.4f} {float(random):10.4f} {float(ratio):8.2f} {genes:>8}")
        if not table:
            print("       (no edges)")
    print(WORDS_SETS)


def main(what, folder, data, sets="", skip=""):
    if what == "genesets":
        genesets(folder, data, sets, skip)
    else:
        {"table3": table3, "table8": table8}[what](Audits(folder), data)
