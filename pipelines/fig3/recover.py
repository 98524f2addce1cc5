"""table.py fig3/recover SEED [DIR]: one simulation of appendix B.1; lines of method, AUROC of gene pairs within a module against pairs between modules, and of
graphs the number of edges and the share of them within modules. With DIR, also the matrices A and C as DIR/matrix-NAME.txt, sums over squares of 4 x 4
genes, for the heat maps."""
import tempfile
from itertools import groupby

from table import put, tool

GRAPHS = {"npmi": "--pmi --tau -1 --min-count 1", "graph": "--min-overlap 20", "all": "--min-overlap 20 --candidates 999"}


class Pairs:
    """Scores of pairs of genes of a stream. Special tokens go before the genes; the symbol m2.345 means module 2."""
    def __init__(self, stream):
        vocab = [row for row in (line.split("\t") for line in tool("scview", "--vocab", stream).splitlines()[1:]) if "." in row[2]]
        self.first, self.module = int(vocab[0][0]), [row[2].split(".")[0] for row in vocab]
        self.cells = [[int(t) - self.first for t in line.split()] for line in tool("scview", "-c", "token", stream).splitlines()[1:]]

    def met(self, adjacent):
        """How often two genes are in a cell, or are neighbours there."""
        score, n = {}, len(self.module)
        for cell in self.cells:
            for i, a in enumerate(cell):
                for b in cell[i + 1:i + 2] if adjacent else cell[i + 1:]:
                    pair = a * n + b if a < b else b * n + a
                    score[pair] = score.get(pair, 0) + 1
        return {divmod(pair, n): x for pair, x in score.items()}

    def edges(self, table):
        """Pair and weight of the edges of depgraph -O tsv."""
        rows = [line.split("\t") for line in table.splitlines()[1:]]
        return {tuple(sorted((int(r[0]) - self.first, int(r[3]) - self.first))): float(r[6]) for r in rows}

    def within(self, pair):
        return self.module[pair[0]] == self.module[pair[1]]

    def auroc(self, score):
        """A pair without a score is below all others; ties count half."""
        n, sizes = len(self.module), [self.module.count(m) for m in set(self.module)]
        within = sum(size * (size - 1) // 2 for size in sizes)
        known = sum(map(self.within, score))
        below = n * (n - 1) // 2 - within - (len(score) - known)
        area = (within - known) * (below / 2)
        for _, tie in groupby(sorted((x, self.within(pair)) for pair, x in score.items()), key=lambda s: s[0]):
            tie = [same for _, same in tie]
            same, other = sum(tie), len(tie) - sum(tie)
            area += same * (below + other / 2)
            below += other
        return area / within / below

    def matrix(self, score):
        side = (len(self.module) + 3) // 4
        sums = [[0] * side for _ in range(side)]
        for (a, b), x in score.items():
            sums[a // 4][b // 4] += x
            sums[b // 4][a // 4] += x
        return sums


def words(matrix):
    return "".join(" ".join(map(str, row)) + "\n" for row in matrix)


def main(seed, folder=""):
    with tempfile.TemporaryDirectory() as work:
        cells, graph = f"{work}/cells.tok", f"{work}/graph"
        tool("scsim", "--kind", "b1", "--seed", seed, "-o", cells)
        pairs = Pairs(cells)
        for name in "A", "C":
            score = pairs.met(name == "A")
            print(f"{name}\t{pairs.auroc(score):.6f}")
            if folder:
                put(f"{folder}/matrix-{name}.txt", words(pairs.matrix(score)))
        if folder:
            put(f"{folder}/matrix-truth.txt", words([int(a == b) for b in pairs.module[::4]] for a in pairs.module[::4]))
        for name, options in GRAPHS.items():
            tool("depgraph", *options.split(), "-o", graph, cells)
            edges = pairs.edges(tool("depgraph", "-O", "tsv", graph))
            # an edge of the others is one, whatever its weight
            auroc = pairs.auroc(edges if name == "npmi" else dict.fromkeys(edges, 1))
            print(f"{name}\t{auroc:.6f}" + (f"\t{len(edges)}\t{sum(map(pairs.within, edges)) / len(edges):.6f}" if edges else ""))
