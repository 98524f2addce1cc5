"""table.py bmfm/terms columns ONTOLOGY LABELS LABEL CELLS: columns of terms for CELLS, a table of barcode, label and, maybe, group. LABEL is the column's name, for
messages. Labels without a term are named in a warning, which the report shows.
    term     the term of the label in LABELS (columns label, term); NA: it has none, or the ontology does not have it
    moved    the same for every second group (without groups, every second cell); for the others the first term above it, if there is one
    dropped  the same for every second group, NA for the others
    coarse   the column coarse of LABELS, coarse types that data sets share; the term if there is none
table.py bmfm/terms leaves ONTOLOGY TERMS: those of TERMS, a file with one a line, that have none of the others below them.
table.py bmfm/terms simulated COUNTS: a table of barcode and term of data/blood-cells.obo. Every type stands for a leaf. Every third cell is labelled by a
term above it, as cells of an atlas are: the loss of an ontology learns from these too."""
import gzip
import os
import sys
from collections import Counter

from table import columns, fields, lines, rows

LEAVES = "CL:0000624 CL:0000625 CL:0000860 CL:0000236 CL:0000623 CL:0000875 CL:0000990 CL:0000784".split()  # of type1 ... type8
ABOVE = "CL:0000084 CL:0000084 CL:0000576 CL:0000542 CL:0000542 CL:0000576 CL:0000451 CL:0000451".split()


class Ontology:
    def __init__(self, path):
        self.name, self.up, term = {}, {}, None
        with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="utf-8", errors="surrogateescape") as f:
            for line in map(str.rstrip, f):
                key, _, value = line.partition(": ")
                if line.startswith("["):
                    inside, term = line == "[Term]", None
                elif key == "id" and inside:
                    term = value
                    self.name[term] = value
                elif key == "name" and term:
                    self.name[term] = value
                elif key == "is_a" and term:
                    self.up.setdefault(term, []).append(value.split()[0])

    def title(self, term):
        return self.name.get(term, term)

    def above(self, a, b):
        """Is a the term b, or above it?"""
        return a == b or any(self.above(a, up) for up in self.up.get(b, ()))

    def depth(self, term):
        """The longest way from the top."""
        return max((self.depth(up) + 1 for up in self.up.get(term, ())), default=0)

    def kind(self, label, predicted):
        return "exact" if label == predicted else "finer" if self.above(label, predicted) else "coarser" if self.above(predicted, label) else "wrong"


def of_labels(ontology, labels, label, cells):
    known, of = Ontology(ontology), {r["label"]: r for r in rows(labels)}
    half, lost, found = {}, Counter(), 0
    print("barcode", "term", "moved", "dropped", "coarse", sep="\t")
    for n, (barcode, own, *group) in enumerate(fields(cells)[1:]):
        term = of.get(own, {}).get("term")
        term = term if term in known.name else "NA"
        second = half.setdefault(group[0] if group else n, len(half) % 2)
        up = known.up.get(term, [term])[0]
        print(barcode, term, up if second and up in known.name else term, "NA" if second else term, of.get(own, {}).get("coarse") or term, sep="\t")
        found += term != "NA"
        if term == "NA" and own:
            lost[own] += 1
    if not found:
        sys.exit(f"terms: no label of column '{label}' has a term: LABELS={labels} needs lines of label and term of {ontology}")
    if lost:
        print(f"warning: {sum(lost.values())} cells have no term, because {os.path.basename(labels)} or {os.path.basename(ontology)} lacks it: "
              + ", ".join(f"'{name}' ({n})" for name, n in list(lost.items())[:5]) + ", ..." * (len(lost) > 5) + f" in column {label}", file=sys.stderr)


def leaves(ontology, terms):
    known, terms = Ontology(ontology), list(dict.fromkeys(lines(terms)))
    print(*(t for t in terms if not any(known.above(t, other) for other in terms if other != t)), sep="\n")


def simulated(counts):
    print("barcode", "term", sep="\t")
    for n, (barcode, type_) in enumerate(columns(counts, "barcode", "cell_type"), 2):
        print(barcode, (LEAVES if n % 3 else ABOVE)[int(type_.removeprefix("type")) - 1], sep="\t")


def main(what, *arguments):
    {"columns": of_labels, "leaves": leaves, "simulated": simulated}[what](*arguments)
