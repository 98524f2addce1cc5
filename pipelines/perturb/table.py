"""table.py perturb/table FOLDER STATE FROM TO TRUTH DATA MODEL: the table of make perturb. TRUTH: a file of genes, or nothing. Writes FOLDER/points.tsv for
the figure: symbol, shift, -log10 q, whether the gene should be found."""
from math import log10, sqrt
from pathlib import Path

from table import SIMULATED, as_table, fields, known, lines, num, plain, put, rows, write

DRAWS = 19  # of random states
FIRST = 15  # genes of the first table
GENES = ("The first genes. shift: cos(cell without the gene, mean of {to}) - cos(cell, mean of {to}), mean over cells; auc: the chance that it is above that of any "
         "deletion; q: rank sum over cells as if they were independent, Benjamini-Hochberg; p_group: over donors, if there are any")
RANKED = ("How well are the {n} genes found that should be? AUROC: the chance that one is ranked above another gene, of genes in three cells or more; "
          "difference: to that of expression, of the same genes (DeLong et al. 1988)")


def scores(folder, to):
    """Method, gene, symbol, score, q of the genes in three cells or more."""
    for table in ("shift", "random"):
        towards = {}
        for r in (r for r in rows(f"{folder}/{table}.tsv") if int(r["cells"]) >= 3):
            method, gene = f"random-{r['draw']}" if "draw" in r else "shift", r["perturbed"]
            if r["state"] == to:
                towards[method, gene] = float(r["mean"])
                yield [method, gene, r["symbol"], r["mean"], r["q"]]
            elif (method, gene) in towards:
                yield [f"{method}-both", gene, r["symbol"], plain(towards[method, gene] - float(r["mean"])), "NA"]
    yield from (["expression", *row[:3], "NA"] for row in fields(f"{folder}/expression.tsv")[1:])


class Ranking:
    """How a method ranks the genes that should be found among the others. Genes of equal score are a tie."""
    def __init__(self, genes, truth, scored):
        of = [(float(score), gene, symbol) for _, gene, symbol, score, _ in scored]
        self.truth, self.size = truth, [sum(truth[g] == t for g in genes) for t in (0, 1)]
        self.scores = [[score for score, gene, _ in of if truth[gene] == t] for t in (0, 1)]
        place = {gene: sum((x > score) + (x == score) / 2 for x in self.scores[1 - truth[gene]]) for score, gene, _ in of}
        place = {g: place.get(g, 0) for g in genes}
        # the share of the others that a gene is ranked above, or of those that should be found that it is ranked below
        self.share = {g: 1 - place[g] / self.size[0] if truth[g] else place[g] / self.size[1] for g in genes}
        self.regulator = [n for n, (_, _, symbol) in enumerate(of, 1) if symbol.startswith("regulator.")][-1:]
        self.genes = len(of)
        self.gap = sum(self.scores[1]) / len(self.scores[1]) - sum(self.scores[0]) / len(self.scores[0]) if all(self.scores) else None

    def auroc(self, reference=None):
        """The AUROC, minus that of the reference if there is one: mean, and low and high. One gene has no spread: anything may be."""
        x = {g: s - (reference.share[g] if reference else 0) for g, s in self.share.items()}
        se, mean = 0, 0
        for t in (0, 1):
            own = [v for g, v in x.items() if self.truth[g] == t]
            mean = sum(own) / len(own)
            se += 1 if len(own) < 2 else (sum(v * v for v in own) - sum(own) ** 2 / len(own)) / (len(own) - 1) / len(own)
        se = 1.96 * sqrt(max(se, 0))
        return mean, max(mean - se, -1 if reference else 0), min(mean + se, 1)


def sentences(of, from_, to):
    """The answer, and the shifts that it is from."""
    both, draws = of["shift-both"], [of[m].gap for d in range(1, DRAWS + 1) if (m := f"random-{d}-both") in of and of[m].gap is not None]
    p = (sum(abs(x) >= abs(both.gap) for x in draws) + 1) / (len(draws) + 1)
    _, at_low, at_high = both.auroc()
    difference, low, high = both.auroc(of["expression"])
    values = f"(AUROC {both.auroc()[0]:.3f} and {of['expression'].auroc()[0]:.3f}; difference {difference:+.3f}, {low:+.3f} to {high:+.3f})."
    if len(draws) < DRAWS:
        yield f"No comparison with random states: {len(draws)} draws, and {DRAWS} are needed."
    elif p > .05:
        yield "We found no difference between these states and random ones in how the network moves the genes that should be found."
    elif at_high < .5:
        yield "The network ranks the genes that should be found lower than the others."
    elif at_low <= .5:
        yield "We found no difference between the genes that should be found and the others in the ranking of the network."
    elif low > 0:
        yield f"The network ranks the genes that should be found higher than the difference of expression does {values}"
    elif high < 0:
        yield f"The network finds the genes that it should, but the difference of expression, which needs no network, ranks them higher {values}"
    else:
        yield f"The network finds the genes that it should. We found no difference from the ranking by expression, which needs no network {values}"
    yield (f'Mean of "towards {to} - towards {from_}" of the genes that should be found, minus that of the others: {both.gap:+.5f}'
           + (f"; with random states, {len(draws)} draws: at most {max(map(abs, draws)):.5f} in size, p = {p:.2g}" if draws else "") + ".")


def ranked(folder, table, truth, from_, to):
    """The table of rankings, and the answer."""
    both = {row[1] for row in table if row[0] == "shift"} & {row[1] for row in table if row[0] == "expression"}
    table = sorted((row for row in table if row[1] in both), key=lambda row: (row[0], -float(row[3]), "\t".join(row)))
    is_truth = {gene: int(gene in truth or symbol in truth) for _, gene, symbol, *_ in table}
    genes = list(is_truth)
    if len(set(is_truth.values())) < 2:
        return [f"{'All genes that were' if any(is_truth.values()) else 'None of the genes that were'} deleted should be found: nothing can be measured."]
    of = {m: Ranking(genes, is_truth, [row for row in table if row[0] == m]) for m in dict.fromkeys(row[0] for row in table)}
    n = list(of.values())[-1].genes
    names = {"shift": f"deletion, network: towards {to}", "shift-both": f"deletion, network: towards {to} - towards {from_}", "expression": "expression, no network"}
    shown = [["ranked by", "AUROC", "95 % interval", "difference", *["rank of the regulator"] * any(r.regulator for r in of.values())]]
    for method, name in names.items():
        form = lambda sign, v: (f"{v[0]:{sign}.3f}", f"{v[1]:{sign}.3f} to {v[2]:{sign}.3f}")
        auroc, difference = form("", of[method].auroc()), form("+", of[method].auroc(of["expression"]))
        shown.append([name, *auroc, "" if method == "expression" else f"{difference[0]} ({difference[1]})", *(f"{rank} of {n}" for rank in of[method].regulator)])
    as_table(f"{folder}/2-truth.table", RANKED.format(n=len(lines(f"{folder}/truth.txt"))), shown, 120)
    return sentences(of, from_, to)


def main(folder, state, from_, to, truth, data, model):
    table = list(scores(folder, to))
    write(f"{folder}/scores.tsv", ["method", "gene", "symbol", "score", "q"], *table)
    if truth:
        genes = [row[0] for row in fields(truth)]
    else:
        genes = [] if data else sorted({gene for _, gene, symbol, *_ in table if symbol.startswith(("regulator.", "target."))})
    put(f"{folder}/truth.txt", "".join(g + "\n" for g in genes))
    write(f"{folder}/points.tsv", *([symbol or gene, score, plain(-log10(max(float(q), 1e-300)) if known(q) else 0), str(int(gene in genes or symbol in genes))]
                                    for method, gene, symbol, score, q in table if method == "shift"))

    shift = rows(f"{folder}/shift.tsv")
    print(f"corrmask in-silico deletion: {data or SIMULATED}\nmodel: {model}")
    print(f"{plain(len(shift) / 2)} gene{'s' * (len(shift) != 2)} deleted, each in at most {max(int(r['cells']) for r in shift)} cells of {state} = {from_}; shift towards {to}\n")
    for f in ("2-truth.table", "findings.txt"):
        Path(folder, f).unlink(missing_ok=True)
    as_table(f"{folder}/1-genes.table", GENES.format(to=to), [["gene", "cells", "shift", "auc", "95 % interval", "q", "p_group"], *(
        [r["symbol"] or r["perturbed"], r["cells"], f"{float(r['mean']):+.5f}", num(r["auc"], "%.3f"),
         f"{float(r['auc_low']):.3f} to {float(r['auc_high']):.3f}" if known(r["auc_low"]) else "-", num(r["q"], "%.2g"), num(r.get("p_group"), "%.2g")]
        for r in [r for r in shift if int(r["cells"]) >= 3 and r["state"] == to][:FIRST])], 80)
    print()
    if not genes:
        print("To see how well these genes are ranked, next to a ranking by expression, give TRUTH=FILE: genes that should be found, one per line.")
        return
    said = "".join(s + "\n" for s in ranked(folder, table, set(genes), from_, to))
    put(f"{folder}/findings.txt", said)
    print("\n" + said, end="")
