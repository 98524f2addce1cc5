"""The figure of make perturb: a volcano plot of the genes' deletions."""
from plot import Series, plot


def perturb(t):
    points = t("points.tsv", "gene shift q truth")
    some = {k: [(r.number("shift"), r.number("q"), None, None, r["gene"]) for r in points if r["truth"] == k] for k in "01"}
    largest = sorted(points, key=lambda r: -r.number("shift"))[:8]
    return "Shift of each deleted gene", [
        plot("Shift of each deleted gene", [Series("genes", some["0"], "c6", "dots")] + ([Series("genes that should be found", some["1"], "c0", "dots")] if some["1"] else []),
             "shift towards the goal when the gene is deleted", "-log10 q", down=[(0, "", "faint", 0)], tall=300,
             named=[(r.number("shift"), r.number("q"), r["gene"]) for r in largest], note="The eight genes of the largest shift have names. q: rank sum test over the cells, Benjamini-Hochberg.")]
