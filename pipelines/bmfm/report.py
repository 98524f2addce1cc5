"""table.py bmfm/report DIR: the tables of make demo-bmfm, from the training, predictions and scores under DIR. The figure draws DIR/lineages.tsv: kind, label
or text, predicted term, number."""
from collections import Counter
from math import exp

from table import HERE, as_table, columns, header_lines, reported, rows, spec, stage_times, values, write

LOSSES = {"whole cell: is a gene 0? (cross-entropy)": ("loss.wced.is_zero", "eval_is_zero.wced"),
          "whole cell: expression of the others (squared error)": ("loss.wced.value", "eval_mse.wced"),
          "cell type, of the ontology (hierarchical cross-entropy)": ("loss.term", "eval_loss.term"),
          "all, by their weights": ("loss", "eval_loss")}
SCORES = {"exact": "exact", "finer": "finer", "coarser": "coarser", "wrong": "wrong", "hierarchical F1": "hierarchical_f1", "macro F1": "macro_f1"}


def softmax(logits):
    e = [exp(z - max(logits)) for z in logits]
    return [x / sum(e) for x in e]


def lineages(ontology, leaves, cells):
    """Figure 3 of the BMFM-RNA paper: cells whose prediction is exact, finer, coarser or wrong; of the label above a type with most cells, the mean
    probability of each term of its lineages from the top down, without those above it that are certain (lineage); and that label with its cells."""
    cells = [(label, predicted, [float(z) for z in logits.split()]) for label, predicted, logits in cells if label not in ("NA", "")]
    most = lambda counts: sorted(counts, key=lambda term: -counts[term])
    labels, flow = Counter(label for label, *_ in cells), Counter((label, predicted) for label, predicted, _ in cells)
    yield ["kind", "label", "predicted", "number"]
    for label in most(labels):
        yield from ([ontology.kind(label, b), ontology.title(label), ontology.title(b), str(flow[label, b])] for b in most(Counter(b for _, b, _ in cells)) if (label, b) in flow)
    of = next((label for label in most(labels) if any(label != leaf and ontology.above(label, leaf) for leaf in leaves)), most(labels)[0])
    mass = [sum(column) / labels[of] for column in zip(*(softmax(z) for label, _, z in cells if label == of))]
    p = {term: sum(m for m, leaf in zip(mass, leaves) if ontology.above(term, leaf)) for term in ontology.name}
    chosen = [t for t in p if p[t] >= .02 and (ontology.above(of, t) or ontology.above(t, of) and p[t] < .9995)]
    for term in sorted(chosen, key=lambda t: 2 * ontology.depth(t) - p[t]):
        yield ["lineage", ontology.title(term) + " (the label)" * (term == of), "", f"{p[term]:.4f}"]
    yield ["label", ontology.title(of), "", str(labels[of])]


def main(folder):
    print("corrmask demo of BMFM-RNA: simulated cells (scsim), labels of data/blood-cells.obo (Cell Ontology, CC BY 4.0)")
    train, test = (reported(f"{folder}/log/scsample-{part}.report", "cells_out") for part in ("train", "test"))
    print(f"cells: {train} to train, {test} to test; a third of them has a label above its type\n")
    steps = rows(f"{folder}/bmfm.model/train.tsv")
    number = lambda row, column: f"{float(row[column]):.3f}" if column in row else "-"
    best = min((r for r in steps if r.get("eval_loss") not in ("NA", "", "nan", None)), key=lambda r: float(r["eval_loss"]), default={})
    as_table(f"{folder}/1-losses.table", "Loss of each head", [["", "first step", "last step", "test cells"], *(
        [name, number(steps[0], loss), number(steps[-1], loss), number(best, of_test)] for name, (loss, of_test) in LOSSES.items())])
    print()
    scores = {how: values(f"{folder}/{how}.score.tsv") for how in ("leaf", "greedy")}
    as_table(f"{folder}/2-types.table", "Cell types of the test cells. finer: a type below the label. Predictions end at a leaf, so coarse labels can only be met by finer ones",
             [["decoding", *SCORES], *([how, *(f"{float(v[of]):.3f}" for of in SCORES.values())] for how, v in scores.items())])

    ontology, predictions = spec("bmfm/terms").Ontology(HERE / "../data/blood-cells.obo"), f"{folder}/greedy.pred"
    leaves = {int(n): term for n, term in (line[7:].split("\t")[:2] for line in header_lines(predictions) if line.startswith("labels."))}
    write(f"{folder}/lineages.tsv", *lineages(ontology, [leaves[n] for n in sorted(leaves)], columns(predictions, "term", "predicted", "logit")))
    print("\nPredicted lineages of five test cells, from the top down, with probabilities:")
    for cell, term, lineage in columns(predictions, "barcode", "term", "lineage", n=5):
        print(f"  {cell} ({ontology.name.get(term, '')})\n    {lineage}")
    print()
    stage_times(f"{folder}/log")
