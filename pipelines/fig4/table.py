"""table.py fig4/table DIR FILE...: means over the trials in these files (fig4/steps.sh). The figure draws DIR/points.tsv (accuracies of each trial, in percent),
DIR/summary.tsv (their means) and DIR/differences.tsv (CorrMask - random, paired by trial)."""
from table import differences, fields, known, means, plain, text, write

# arm, and the columns of its accuracy and loss in the file of a trial
ARMS = {"random": (5, 6), "corrmask": (7, 8), "untrained": (9, None), "nearest": (10, None)}
COHERENT = {"class": "Samples that are not coherent have their signal in random genes, which are drawn once for each class (scsim --random-genes class).",
            "sample": "Samples that are not coherent have their signal in random genes of their own, which tell nothing about the class: at most gamma + "
                      "(1 - gamma) / 3."}
FORM = "{:6} {:>5} {:>6} {:>8} {:>9}  {:16} {:16} {:22} {:>7} {:>8} {:>8}   {:11} {}"


def main(folder, first, *others):
    trials = sorted((row for f in (first, *others) for row in fields(f)), key=lambda row: (float(row[2]), int(row[3])))
    trials.sort(key=lambda row: row[1], reverse=True)
    points = [["exp", "gamma", "trial", "arm", "accuracy", "loss"]]
    points += [[*row[1:4], arm, plain(100 * float(row[accuracy])), row[loss] if loss else "NA"] for row in trials for arm, (accuracy, loss) in ARMS.items()]
    write(f"{folder}/points.tsv", *points)
    within = ["--within", "exp,gamma", "--metrics"]
    of = {(r["value"], r["exp"], r["gamma"], r["arm"]): r for r in means(f"{folder}/summary.tsv", points, *within, "accuracy,loss")}
    found = differences(f"{folder}/differences.tsv", points, [("corrmask", "random")], "--pair", "trial", *within, "accuracy")

    print(f"Modularity sweep (CorrMask paper, figure 4, appendix B.2): 60 genes in 3 modules, {' '.join(sorted({row[4] for row in trials}))} epochs")
    print("Test accuracy of logistic regression on frozen [CLS], in percent, mean (sd: standard deviation); the gap, CorrMask - random, is paired by trial, with its")
    print("95 % interval, the two-sided p of a t test, and p after Holm's correction over the rows of this table\n")
    print(FORM.format("Exp", "gamma", "trials", "nearest", "untrained", "random", "CorrMask", "gap", "t", "p", "p, Holm", "paper's gap", "loss: random CorrMask"))
    for r in found:
        at = r["exp"], r["gamma"]
        mean = lambda value, arm: float(of[value, *at, arm]["mean"])
        both = [f"{mean('accuracy', arm):.1f} (sd {text(of['accuracy', *at, arm]['sd'], '%.1f').replace('NA', '-')})" for arm in ("random", "corrmask")]
        gap = f"{float(r['difference']):+.1f}" + (f" ({float(r['low']):+.1f} to {float(r['high']):+.1f})" if known(r["low"]) else "")
        gamma = float(r["gamma"])
        paper = "level" if gamma < .25 else "about 10" if gamma == 1 else "-"
        print(FORM.format(*at, r["n"], f"{mean('accuracy', 'nearest'):.1f}", f"{mean('accuracy', 'untrained'):.1f}", *both, gap, text(r["t"], "%.2f"),
                          text(r["p"], "%.2g"), text(r["p_corrected"], "%.2g"), paper, f"     {mean('loss', 'random'):.3f} {mean('loss', 'corrmask'):.3f}"))
    print("\nnearest: the class whose mean rank vector is nearest; no network. untrained: the network with its initial weights. Chance is 33.3.")
    kinds = {row[0] for row in trials}
    if len(kinds) == 1 and kinds <= set(COHERENT):
        print(COHERENT[kinds.pop()])
