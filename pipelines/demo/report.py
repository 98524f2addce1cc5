"""table.py demo/report DEMO PREPARED PRETRAINED RELIANCE "SEED..." DATA LABEL CELLS MAXLEN HOW: print the demo's tables from the losses, probes and logs under
these folders. HOW is a line on the trainings. The figure draws DEMO/points.tsv and DEMO/macro_f1.tsv."""
import os
import shlex
import shutil
from pathlib import Path

from table import (BASELINES, SIMULATED, as_table, columns, differences, fields, highest_visible, known, lines, means, no_edges, not_learned, num, padded,
                   put, reported, rows, span, spec, split_by, split_note, stage_times, tell, units, values, write)

MODELS = ["random", "corrmask"]
METRICS = ["macro_f1", "macro_f1_low", "macro_f1_high", "f1_rare", "accuracy", "converged"]
NAMES = BASELINES | {"expression": "log-normalised expression, no network", "pca": "50 principal components, no network",
                     "read": "expression, of the genes that networks read", "random": "network, random masks", "corrmask": "network, CorrMask masks"}
IN_TEXT = BASELINES | {"random": "random masks", "corrmask": "CorrMask"}
PARTNERS = "How much does the network copy a masked gene from its partners? Loss with the partners visible, and hidden; R is the difference"
TYPES = ("Linear probe of cell types, test cells. Networks: means over the seeds. First two rows: all genes (the 2,000 that vary most). "
         "Interval of macro F1: bootstrap of {drawn}")


def print_inputs(folder, prepared, data, label, cells, maxlen, how, seeds):
    print(f"corrmask demo: {data or SIMULATED}, label {label}")
    train, test = (reported(f"{prepared}/log/scsample-{part}.report", "cells_out") for part in ("train", "test"))
    print(f"cells: {train} to train, {test} to test, {split_by(prepared)}" + (f"; at most {cells}, sampled with a seed (CELLS=0: all)" if cells != "0" else ""))
    split_note(prepared, f"{prepared}/test.tok")
    graph, encoded = values(f"{prepared}/log/depgraph.report"), values(f"{prepared}/log/rankenc-train.report")
    edges, all_edges = graph.get("edges", ""), reported(f"{folder}/log/depgraph-all-genes.report", "edges")
    print(f"graph: {graph.get('genes_with_neighbours', '')} genes with partners, {edges} edges")
    # what the cut to MAXLEN genes takes away
    print(f"genes: networks read at most {maxlen} of each cell, those of highest rank (MAXLEN), and {encoded.get('cells_of_full_length', '')} of "
          f"{encoded.get('cells_out', '')} training cells have as many or more")
    if 2 * int(edges or 0) < int(all_edges or 0):
        print(f"note: with all genes of the cells the graph has {all_edges} edges. CorrMask masks partners by the {edges} that are left; a larger MAXLEN keeps more")
    print(f"networks: {how}; seeds {seeds}\n")
    return edges


def print_partners(folder, prepared, reliance, points, summary, reference):
    Path(folder, "1-partners.table").unlink(missing_ok=True)
    if not points:
        print("How much a network copies from partners cannot be measured here: the graph has too few edges (more cells make more).")
        return
    cells = [target.split() for target, in columns(f"{reliance}/hidden.masked", "target") if target]
    scored = len({gene for cell in cells for gene in cell})
    put(f"{folder}/scored.tsv", f"{scored}\t{len(cells)}\n")
    genes = sum(not row[1].startswith("<") for row in fields(f"{prepared}/vocab.tsv")[1:])
    print(f"R is over the genes that have partners in their cell: {scored} of the {genes} genes of the vocabulary")
    mean = {(r["value"], r["arm"]): float(r["mean"]) for r in summary}
    table = [(NAMES[s], mean["visible", s], mean["hidden", s], " ".join(num(p["R"], "%+.3f") for p in points if p["strategy"] == s)) for s in MODELS]
    for name, column in (("gene frequencies", "frequency"), ("medians of neighbours", "medians")):
        of = {r["masks"]: float(r[column]) for r in reference}
        table.append((f"table of {name}, no network", of["visible"], of["hidden"], ""))
    as_table(f"{folder}/1-partners.table", PARTNERS, [["", "visible", "hidden", "R", "R of each seed"], *(
        [name, f"{v:.3f}", f"{h:.3f}", num(str(h - v), "%+.3f"), each] for name, v, h, each in table)])


def interval(r):
    """Of a row of armstat compare."""
    shown = span(r, "%+.3f")
    return "no interval" if not known(r["low"]) else "within 0.001 of 0" if shown == "+0.000 to +0.000" else shown


def compared(quantity, arm, reference, trainings, cells):
    """Whether the arm differs from the reference, both values, and the difference with its intervals: there is a difference if a t test over the seeds says
    so, and if the interval over the test cells (for F1: over the draws of the bootstrap) does not include 0."""
    r, over_cells = (next(r for r in table if (r["arm"], r["reference"]) == (arm, reference)) for table in (trainings, cells))
    a, b, n, p, size = IN_TEXT[arm], IN_TEXT[reference], int(r["n"]), r["p"], num(r["difference"], "%+.3f")
    chance = not known(over_cells["low"]) or float(over_cells["low"]) <= 0 <= float(over_cells["high"])
    if not known(p) or not known(over_cells["low"]):
        say = f"{a} and {b}, {quantity}, not tested"
    elif float(p) < .05 and not chance:
        say = f"{a} {'have' if a.endswith('s') else 'has'} a {'lower' if float(r['difference']) < 0 else 'higher'} {quantity} than {b}"
    else:
        say = f"We found no difference in {quantity} between {a} and {b}"
    told = "" if not known(p) else ", p < 0.0001" if float(p) < .0001 else f", p = {float(p):.2g}"
    return (f"{say[0].upper() + say[1:]}:\n  {num(r['mean'], '%.3f')} and {num(r['reference_mean'], '%.3f')}, difference "
            f"{'smaller than 0.001' if size != '-' and float(size) == 0 else size} (95 % interval over {n} training{'s' * (n != 1)} {interval(r)}{told}; "
            f"over test cells {interval(over_cells)}).")


def print_classes(folder, seeds):
    print("\nper class: F1 of the probe, means over the seeds")
    f1, n = {}, {}
    for s in MODELS:
        for k in seeds:
            for name, value in values(f"{folder}/{s}-{k}.probe.tsv").items():
                what, _, of = name.partition(":")
                if what == "f1":
                    f1.setdefault((s, of), []).append(float(value))
                elif what == "n":
                    n[of] = int(float(value))
    table = [[str(n[c]), c, *(f"{sum(f1[s, c]) / len(f1[s, c]):.4f}" for s in MODELS)] for c in n]
    table.sort(key=lambda row: (-int(row[0]), "\t".join(row)))
    table.insert(0, ["cells", "class", "random", "CorrMask"])
    for (cells, _, *row), name in zip(table, padded([row[1] for row in table])):
        print(f"  {name} {cells:>7}" + "".join(f" {x:>10}" for x in row))


def print_next(model, data):
    command = os.environ.get("CORRMASK_BY", "make")
    train, label = (f"{command} pretrain DATA={shlex.quote(data or 'FOLDER')} HELD_OUT=donor",
                    f"{command} annotate REFERENCE=atlas.h5ad LABEL=cell_type DATA={shlex.quote(data or 'new.h5ad')}")
    print(f"""
model: {model} (transformers: BertForMaskedLM.from_pretrained)
next, with your own files:
  {train:{len(label)}}   train one model on them, with a graph, CorrMask's masks and scores
  {label}   label cells from a reference, without a network""")


def main(folder, prepared, pretrained, reliance, seeds, data, label, cells, maxlen, how):
    seeds, seeds_text = seeds.split(), seeds
    edges = print_inputs(folder, prepared, data, label, cells, maxlen, how, seeds_text)
    points, summary, of_r, of_r_cells = spec("reliance/points").measure(reliance, MODELS, seeds, folder)
    shutil.copy(f"{reliance}/reference.tsv", folder)
    reference = rows(f"{reliance}/reference.tsv")
    print_partners(folder, prepared, reliance, points, summary, reference)

    probes = [["arm", "seed", *METRICS]]
    for p in ["expression", "pca", "read", *(f"{s}-{k}" for s in ("untrained", *MODELS) for k in seeds)]:
        arm, _, seed = p.partition("-")
        v = values(f"{folder}/{p}.probe.tsv")
        probes.append([arm, seed or "0", *(v.get(m, "") for m in METRICS)])
    write(f"{folder}/probes.tsv", *probes)
    mean = {}
    for r in means(None, probes, "--metrics", ",".join(METRICS)):
        mean.setdefault(r["arm"], []).append(r["mean"])
    write(f"{folder}/macro_f1.tsv", *([arm, *row] for arm, row in mean.items()))
    print()
    as_table(f"{folder}/2-types.table", TYPES.format(drawn=units(values(f"{folder}/pca.probe.tsv"))), [
        ["", "macro F1", "rarest F1", "accuracy", "95 % interval"],
        *([NAMES[arm], f"{float(f1):.4f}", f"{float(rarest):.4f}", f"{float(accuracy):.4f}", (f"{float(low):.4f} - {float(high):.4f}" if known(low) else "-")
           + " (did not converge)" * (known(converged) and float(converged) < 1)] for arm, (f1, low, high, rarest, accuracy, converged) in mean.items())])

    # The better baseline is paired with each seed
    best = "expression" if float(mean["expression"][0]) > float(mean["pca"][0]) else "pca"
    pairs = [("corrmask", "random"), (best, "random"), (best, "corrmask")]
    paired = [row for arm, seed, *of in probes for row in ([[arm, k, *of] for k in seeds] if arm == best else [[arm, seed, *of]] if arm in ("arm", *MODELS) else [])]
    f1 = differences(f"{folder}/f1.tsv", paired, pairs, "--pair", "seed", "--metrics", "macro_f1")
    draws = [["arm", "seed", "draw", "accuracy", "balanced_accuracy", "macro_f1"]]
    for k in seeds:
        for s, f in [*((s, f"{folder}/{s}-{k}.probe.replicates") for s in MODELS), (best, f"{prepared}/{best}.score.replicates")]:
            draws += ([s, k, *row] for row in fields(f)[1:])
    f1_cells = differences(f"{folder}/f1_cells.tsv", draws, pairs, "--pair", "seed", "--draws", "draw", "--metrics", "macro_f1")
    print_classes(folder, seeds)
    print()
    stage_times(*(f"{d}/log" for d in (prepared, pretrained, reliance, folder)))
    print("\nWhat was found")
    why = [no_edges(edges), not_learned(*highest_visible(points, reference, MODELS))]
    if any(why):
        tell(folder, *why)
    else:
        tell(folder, compared("partner reliance R", *pairs[0], of_r, of_r_cells) if of_r else "", *(compared("macro F1", *pair, f1, f1_cells) for pair in pairs),
             f"Expression of the genes that the networks read has a macro F1 of {float(mean['read'][0]):.3f}.",
             'One seed: nothing can be said about other trainings (SEEDS="1 2").' if len(seeds) == 1 else "")
    print_next(f"{pretrained}/corrmask-{seeds[0]}.model", data)
