"""The figure of make perturb: a volcano plot of the genes' deletions."""
from plot import Series, plot


def perturb(t):
    points = t("points.tsv", "gene shift q truth")
    series = [Series(words, [(*r.numbers("shift q"), None, None, r["gene"]) for r in points if r["truth"] == truth], look, "dots")
              for truth, words, look in (("0", "genes", "c6"), ("1", "genes that should be found", "c0"))]
    largest = sorted(points, key=lambda r: -r.number("shift"))[:8]
    return "Shift of each deleted gene", [
        plot("Shift of each deleted gene", [s for s in series if s.points], "shift towards the goal when the gene is deleted", "-log10 q",
             down=[(0, "", "faint", 0)], tall=300, named=[(*r.numbers("shift q"), r["gene"]) for r in largest],
             note="The eight genes of the largest shift have names. q: rank sum test over the cells, Benjamini-Hochberg.")]
