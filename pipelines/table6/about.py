"""table.py table6/about INPUTS DATA "SIZE...": what the cells and graphs of make table6 are."""
from table import SIMULATED, no_edges, sizes, split_by, split_note, tool, word


def edges(graph):
    return next(value for name, value in (line.split("\t")[:2] for line in tool("depgraph", "-q", "-O", "stats", graph).splitlines()) if name == "edges")


def main(folder, data, corpora):
    learn, test, train, valid = (sizes(f"{folder}/{part}.tok") for part in ("learn", "test", "train", "valid"))
    print(f"{data or SIMULATED}: {learn} cells to train, {test} to test, {split_by(folder)}", flush=True)
    split_note(folder, f"{folder}/test.tok")
    print(f"fine-tuning uses {train} labelled cells for training and {valid} for validation")
    for size in corpora.split():
        corrmask = edges(f"{folder}/corrmask-{size}.graph")
        print(f"graphs of {word(f'{folder}/corpus-{size}.cells')} cells: {corrmask} edges, PMI {edges(f'{folder}/pmi-{size}.graph')}")
        if no_edges(corrmask):
            print(no_edges(corrmask).replace("No comparison:", "No comparison of corrmask with random at this size:"))
