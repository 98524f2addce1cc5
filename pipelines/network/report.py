"""table.py network/report DIR DATA WITHIN: the report of make network from the tables under DIR."""
from pathlib import Path

from table import as_table, columns, fields, known, num, plain, reported, rows, sizes, stage_times, tell, warnings, word

LEAST = 3       # genes of a module that is shown
LARGE = 5       # genes of a module that the answer names
SHOWN = 30, 15  # modules and edges of the tables
DONORS = 6      # for q (depgraph --within)
REPEATED = .1   # stability from which a module is said to be repeated; those of permuted cells have less


def and_(words):
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def recurrence(halves, edges):
    """A sentence on the first edges of a half, as many as the network has, or nearly."""
    if not halves:
        return ""
    r = [h for h in halves if int(h["edges"]) <= edges][-1:] or halves[:1]
    r = r[0]
    spread = f", sd {num(r['sd'], '%.3f')}" if known(r["sd"]) else ""
    n = int(r["halves"])
    return (f"Of the first {r['edges']} edges of one half of the donors, {100 * float(r['recurrence']):.0f} % are among those of the other half ({n} halving{'s' * (n != 1)}{spread}); "
            f"their mean r is {float(r['r']):.2f} where they were chosen and {float(r['r_other']):.2f} in the other half.")


def answer(shown, genes, edges, columns_):
    if not edges:
        return "No genes vary together within donors. LEAST_CELLS= takes rarer genes."
    if not shown:
        return f"The {edges} strongest edge{'s join' if edges > 1 else ' joins'} {genes} genes in pairs: no module has three genes. EDGES= takes more edges."
    said = f"The {edges} strongest edges join {genes} genes; {len(shown)} module{'s have' if len(shown) > 1 else ' has'} three or more"
    stable = [m for m in shown if known(m["stability"])]
    if not stable:
        return said + ". All cells count as one donor, so whether other donors have these modules is not known" + (
            " (WITHIN= names a column of donors)." if columns_ == "input_file" else ".")
    best = sorted(stable, key=lambda m: (-float(m["stability"]), -int(m["genes"])))
    if float(best[0]["stability"]) < REPEATED:
        return f"{said}. Halves of the donors repeat none of them: no stability is above {float(best[0]['stability']):.2f}."
    best = [m for m in best if float(m["stability"]) >= REPEATED]
    large = [m for m in best if int(m["genes"]) >= LARGE]
    return (said + (f". Of those with {LARGE} or more, halves of the donors repeat best: " if large else ". Halves of the donors repeat best: ")
            + and_([f"{m['module_name']} ({float(m['stability']):.2f})" for m in (large or best)[:5]]) + ".")


def main(folder, data, within):
    modules, edges, halves = (rows(f"{folder}/{name}.tsv") for name in ("modules", "edges", "halves"))
    shown = [m for m in modules if int(m["genes"]) >= LEAST]
    strata = word(f"{folder}/within")
    genes, chance = len(fields(f"{folder}/genes.tsv")) - 1, rows(f"{folder}/chance.tsv")[0]["pairs_together"]
    donors = len({d for d, in columns(f"{folder}/cells.counts", strata.partition(",")[0]) if d not in ("", "NA")})
    certain = [e for e in edges if known(e["q"])]
    used, cells = reported(f"{folder}/log/depgraph.report", "cells"), sizes(f"{folder}/cells.counts")
    print(f"corrmask network: {data}\n" + (f"{cells} cells" if used == cells else f"{used} of {cells} cells (the others lack a donor, a type or counts)") + f", {plain(donors)} donor{'s' * (donors != 1)}; within {strata.replace(',', ' x ')}"
          + (" x 15 clusters of the cells" if "," not in strata else ""))
    tell(folder, answer(shown, genes, len(edges), strata), recurrence(halves, len(edges)),
         f"Stability is the share of a module's pairs of genes that are in one module in both halves of the donors, on average; of all pairs of these genes it is {float(chance):.2f}." if known(chance) and shown else "",
         f"{sum(float(e['q']) < .05 for e in certain)} of the {len(edges)} edges have q below .05, with donors as replicates." if certain else
         f"No edge has a q: donors are its replicates, and {DONORS} are needed.",
         "" if all(known(m["set"]) for m in shown) else "A module with - for its set is rich in none: its name is its strongest genes.",
         "Correlation by the depth and the batch of cells remains within a donor. Copies of a gene that share reads make modules too.",
         "network.graphml is for Cytoscape, genes.tsv for adata.var in scanpy.")
    warnings(*Path(folder, "log").glob("*.report"))
    print()
    as_table(f"{folder}/modules.table", "Modules of three or more genes", [
        ["module", "genes", "edges", "stability", "strongest genes", "in its set", "q"],
        *([m["module_name"], m["genes"], m["edges"], num(m["stability"], "%.2f"), " ".join(m["strongest_genes"].split()[:6]),
           m["in_set"] if known(m["in_set"]) else "-", num(m["set_q"], "%.2g")] for m in shown[:SHOWN[0]])])
    print()
    as_table(f"{folder}/strongest.table", "The strongest edges", [
        ["gene", "gene", "r", "cells with both", "donors", "of one sign", "q", "module"],
        *([e["symbol_a"], e["symbol_b"], num(e["r"], "%.2f"), e["overlap"], e["donors"], e["agree"], num(e["q"], "%.2g"), e["module_name"] if known(e["module_name"]) else "two modules"]
          for e in edges[:SHOWN[1]])])
    print()
    stage_times(f"{folder}/log")
