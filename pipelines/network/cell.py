"""table.py network/cell DIR SEED: which genes of DIR/genes.tsv a cell has, that of 500 cells that has most of them, and which CorrMask masks."""
from pathlib import Path

from table import columns, rows, tool, tsv

CELLS = 500


def main(folder, seed):
    some, one, masked = made = [Path(folder, name) for name in ("some.tok", "one.tok", "one.masked")]
    network = rows(f"{folder}/genes.tsv")
    tool("scsample", "-q", "-n", CELLS, "--seed", seed, "-o", some, f"{folder}/cells.tok", may_fail=True)
    gene = {row[0]: row[1] for row in (line.split("\t") for line in tool("scview", "-q", "--vocab", some).splitlines())}
    wanted = {r["gene"] for r in network}
    cells = [(cell, {gene[t] for t in tokens.split()} & wanted) for cell, tokens in columns(some, "cell", "token")]
    cell, present = max(cells, key=lambda c: (len(c[1]), -int(c[0])))
    tool("scsample", "-q", "--where", f"cell={cell}", "-o", one, some)
    tool("maskgen", "-q", "--strategy", "corrmask", "-g", f"{folder}/graphs/masks.graph", "--seed", seed, "-o", masked, one)
    hidden = {gene[t] for t in columns(masked, "target")[0][0].split()}
    for f in made:
        f.unlink()
    print(tsv([["cell", "gene", "symbol", "state"], *(
        [cell, r["gene"], r["symbol"], "masked" if r["gene"] in hidden else "present" if r["gene"] in present else "absent"] for r in network)]), end="")
