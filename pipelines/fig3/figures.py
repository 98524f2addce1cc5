"""Figure 3: the truth, adjacency and co-occurrence of 1,000 genes."""
from statistics import fmean, pstdev

from plot import matrices


def fig3(t):
    panels = []
    for name, words in (("truth", "Truth: two genes are in one module"), ("A", "Adjacency A: how often two genes are adjacent"),
                        ("C", "Co-occurrence C: how often two genes are in one cell")):
        matrix = t.matrix(f"matrix-{name}.txt")
        values = [v for row in matrix for v in row]
        # few squares exceed the colour scale
        panels.append((words, matrix, max(values) if name == "truth" else fmean(values) + 3 * pstdev(values)))
    n = 4 * len(panels[0][1])
    return "Are modules seen in ranked cells?", [
        matrices("Pairs of genes: in one module, adjacent, in one cell", panels, ("gene 1", f"{n:,}"), "Rows and columns are genes, sorted by module; a point is a square of 4 × 4 "
                 "genes. The darkest red of A and C is the mean plus three standard deviations.")]
