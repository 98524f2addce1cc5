"""Figure 3: the truth, adjacency and co-occurrence of 1,000 genes."""
from statistics import fmean, pstdev

from plot import matrices

PANELS = {"truth": "Truth: two genes are in one module", "A": "Adjacency A: how often two genes are adjacent",
          "C": "Co-occurrence C: how often two genes are in one cell"}


def fig3(t):
    panels = []
    for name, words in PANELS.items():
        matrix = t.matrix(f"matrix-{name}.txt")
        values = [v for row in matrix for v in row]
        panels.append((words, matrix, 1 if name == "truth" else fmean(values) + 3 * pstdev(values)))  # few squares exceed the colour scale
    return "Are modules seen in ranked cells?", [
        matrices("Adjacency A shows modules in part, C in full", panels, ("gene 1", f"{4 * len(panels[0][1]):,}"),
                 "Rows and columns are genes, sorted by module; a point is a square of 4 × 4 genes. The darkest red of A and C is the mean plus three "
                 "standard deviations.")]
