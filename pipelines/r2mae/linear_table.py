"""table.py r2mae/linear_table table5|table9 DIR SAME: the table from DIR/SPECTRUM-SEED.simulate.tsv and .theory.tsv, beside the paper's values."""
from pathlib import Path

from table import HERE, differences, fields, num, rows, write

WAYS = ["independent", "coupled", "R2MAE"]
PAPER = ["best", "lowest", "fixed", "R2MAE"]


def number(x):
    return f"{x:.3f}"


class Risks:
    """Of one spectrum, kind (simulate, theory) and seed: of the fixed ratios, their lowest, and the ways to draw a ratio."""
    def __init__(self, path):
        table = rows(path)
        self.fixed = {float(r["ratio"]): r["risk"] for r in table if r["retention"] == "fixed"}
        self.ways = {r["retention"]: r["risk"] for r in table if r["retention"] != "fixed"}
        self.range = [r["ratio"] for r in table if r["retention"] != "fixed"][-1:]
        self.best = min(self.fixed, key=lambda ratio: float(self.fixed[ratio]))


def print_risks(paper, risks, centre):
    form = lambda name, seed, here, there: print(f"{name:8} {seed:>4}  " + " ".join(f"{x:>{w}}" for x, w in zip(here, (7, 8, 7, 11, 8))) + "   "
                                                 + " ".join(f"{x:>{w}}" for x, w in zip(there, (7, 8, 7, 7))))
    print(f"{'':14} {'here':>44}   {'paper':>30}")
    form("spectrum", "seed", ["best", "lowest", f"at {centre}", "independent", "coupled"], ["best", "lowest", f"at {centre}", "R2MAE"])
    for spectrum, seeds in paper.items():
        here = []
        for seed, theirs in seeds.items():
            r = risks["simulate", spectrum, seed]
            here.append([r.best, *map(float, (r.fixed[r.best], r.fixed[float(centre)], r.ways["independent"], r.ways["coupled"]))])
            form(spectrum, seed, [f"{r.best:.2f}", *map(number, here[-1][1:])], theirs)
        form(spectrum, "mean", *([number(sum(map(float, column)) / len(column)) for column in zip(*table)] for table in (here, seeds.values())))


def print_differences(table, found, spectra, fixed):
    print(f"\n{'':8} {'difference over seeds':34} {'mean (sd)':>16} {'below 0':>12} {'theory':>12}")
    risk = {(spectrum, kind, arm, seed): float(value) for spectrum, kind, arm, seed, value in table[1:]}
    at = {(r["spectrum"], r["kind"] == "theory", r["arm"], r["reference"]): r for r in found}
    for spectrum in spectra:
        for reference in fixed:
            for way in WAYS:
                r, theory = (at.get((spectrum, of_theory, way, reference)) for of_theory in (False, True))
                below = sum(value < risk[spectrum, r["kind"], reference, seed] for (s, kind, arm, seed), value in risk.items() if (s, kind, arm) == (spectrum, r["kind"], way))
                print(f"{spectrum:8} {'paper: ' * (way == 'R2MAE') + way + ' - ' + reference:34} {float(r['difference']):+.4f} "
                      f"({num(r['sd'], '%.4f')}) {below:7} of {r['n']}" + (f"{float(theory['difference']):+12.4f}" if theory else ""))


def main(name, folder, same):
    centre = "0.55" if name == "table5" else "0.45"
    fixed = [f"fixed {centre}", "lowest fixed"]
    paper, risks = {}, {}
    table = [["spectrum", "kind", "arm", "seed", "risk"]]
    for of, spectrum, seed, *theirs in fields(HERE / "r2mae/linear-paper.tsv"):
        if of == name:
            paper.setdefault(spectrum, {})[seed] = theirs
            table += [[spectrum, "paper", arm, seed, risk] for arm, risk in zip(("lowest fixed", fixed[0], "R2MAE"), theirs[1:])]
    for kind in ("simulate", "theory"):
        for f in sorted(Path(folder).glob(f"*.{kind}.tsv")):
            spectrum, seed = f.name.split(".")[0].rsplit("-", 1)
            r = risks[kind, spectrum, seed] = Risks(f)
            table += [[spectrum, kind, arm, seed, risk] for arm, risk in [(fixed[0], r.fixed[float(centre)]), *r.ways.items(), ("lowest fixed", r.fixed[r.best])]]
    write(f"{folder}/risks.tsv", *table)
    found = differences(f"{folder}/differences.tsv", table, [(way, of) for of in fixed for way in WAYS], "--within", "spectrum,kind", "--pair", "seed", "--metrics", "risk")

    print(f"R2MAE paper, {name.replace('e', 'e ', 1)}: linear model, eigenvalues from 1 to 10 (beta: Beta(1, 10); latent: I + W W')")
    print(f"Risks are shares of the risk of predicting 0. Ratios by row: {next(r.range[0] for r in risks.values() if r.range)}. The simulations of a seed share: {same}.\n")
    print_risks(paper, risks, centre)
    print_differences(table, found, paper, fixed)
    print("\nindependent: a draw of its own decides whether a row is kept. coupled: the draw of its ratio decides, so kept rows have lower ratios.")
    print("The lowest fixed risk is the lowest of 41 simulated ones, so it is lower than the risk of a ratio chosen beforehand.")
