"""table.py genesmap/report DIR DATA MODEL SETS: the report of make genes-map from the tables under DIR."""
from pathlib import Path

from table import SIMULATED, as_table, columns, fields, known, num, put, rows, sizes, stage_times, warnings

NAMES = {"genes": "embedding, mean over cells", "static": "embedding, table of tokens", "dependency": "dependency graph", "co-expression": "co-expression"}
MOST = 40  # modules that are shown


def compared(strongest):
    """The strongest edges of the embedding beside the better graph that needs no network."""
    genes, best = strongest["genes"], max(("co-expression", "dependency"), key=lambda name: float(strongest[name]["fold"]) if known(strongest[name]["fold"]) else 0)
    if not known(genes["fold"]) or not known(genes["low"]):
        return ""
    theirs, other = strongest[best], "the dependency graph" if best == "dependency" else "co-expression"
    if min(int(genes["edges"]), int(theirs["edges"])) < 10:
        return (f"Too few edges join two genes of sets to compare the graphs: {genes['edges']} of the {genes['n']} strongest ones of the embedding, "
                f"{theirs['edges']} of those of {other}.\n")
    own, of_other = (f"{float(r['fold']):.1f} times{{}} ({float(r['low']):.1f} to {float(r['high']):.1f}; {r['edges']} edges)" for r in (genes, theirs))
    conclusion = ("the network finds more of them." if float(genes["low"]) > float(theirs["high"]) else
                  "the correlation of genes, which needs no network, finds more of them." if float(genes["high"]) < float(theirs["low"]) else
                  "the intervals overlap, so we found no difference.")
    return (f"Of the {genes['n']} strongest edges, those of the embedding join genes of one set {own.format(' as often as chance')}, "
            f"those of {other} {of_other.format('')}: {conclusion}\n")


def main(folder, data, model, sets):
    scores = [r | {"name": r["graph"].rpartition("/")[2].removesuffix(".graph")} for r in rows(f"{folder}/scores.tsv")]
    modules = {row[0] for row in columns(f"{folder}/genes.graph", "module") if int(row[0]) >= 0}
    richest = list({row[0]: row for row in reversed(fields(f"{folder}/genes.modules.tsv")[1:])}.values())[::-1]
    strongest = {r["name"]: {"edges": r["edges"], "fold": r["fold"], "low": r["fold_low"], "high": r["fold_high"], "n": r["strongest"]} for r in scores if r["strongest"]}
    said = f"{sizes(f'{folder}/genes.emb')} genes in {len(modules)} modules; {len(richest)} of them are rich in a set (q below 0.05).\n" + compared(strongest)
    put(f"{folder}/findings.txt", said)
    print(f"corrmask map of genes: {data or SIMULATED}\nmodel: {model}; gene sets: {sets or 'the modules of the simulation'}\n{said}", end="")
    warnings(*Path(folder, "log").glob("*.report"))
    print()
    interval = lambda r, name: f"{num(r[name + '_low'], '%.3f')} to {num(r[name + '_high'], '%.3f')}" if r[name + "_low"] != "NA" else "-"
    as_table(f"{folder}/graphs.table", "Edges within gene sets; strongest: of each graph as many as the smallest has", [
        ["graph", "edges", "share within a set", "by chance", "times", "95 % interval", "AUROC", "95 % interval"],
        *([NAMES[r["name"]] + ", strongest" * bool(r["strongest"]), r["edges"], *(num(r[name], "%.3f") for name in ("share", "expected", "fold")), interval(r, "fold"),
           num(r["auroc"], "%.3f"), interval(r, "auroc")] for r in scores)])
    print()
    as_table(f"{folder}/modules.table", "The set that a module is richest in", [
        ["module", "its genes in sets", "set", "both", "times", "q"],
        *([row[0], row[1], row[2], row[4], f"{float(row[6]):.1f}", f"{float(row[8]):.2g}"] for row in richest[:MOST])])
    print()
    stage_times(f"{folder}/log")
