"""table.py pretrain/report PRETRAIN DATA LABEL STRATEGY: what came of make pretrain, from the files under PRETRAIN."""
import os
import re

from table import BASELINES, as_table, lines, put, rows, setting, stage_times, values

LOSS = ("Masked genes of held-out cells, random masks: the loss is the mean negative logarithm of the probability given to the right gene (lower is better); "
        "accuracy is the share of right first guesses")


def findings(run, loss, frequency, medians):
    plan, batch, train = values(f"{run}/plan.tsv"), int(setting(run, "BATCH")), rows(f"{run}/model/train.tsv")
    steps, planned = len(train), (int(plan["train"]) + batch - 1) // batch * int(plan["epochs"])
    best = min((r for r in train if r["eval_loss"] != "NA"), key=lambda r: float(r["eval_loss"]), default={"step": ""})["step"]
    early = steps != planned
    if loss < frequency:
        yield f"The network predicts masked genes of held-out cells better than the gene frequencies do: loss {loss:.3f}, not {frequency:.3f}."
    else:
        how = "on more cells, or with another rate (LR=) or more patience (PATIENCE=)" if early else "longer (EPOCHS=), or on more cells"
        yield f"The network has learned less than the gene frequencies (loss {loss:.3f}, not below {frequency:.3f}): train {how}."
    yield (f"It trained for {steps} of {planned} steps{', as the validation loss no longer fell' * early}, in {float(list(train[-1].values())[5]):.1f} s; the weights "
           f"are those after step {best}, with the smallest validation loss. Held-out cells chose them, so their loss is slightly optimistic.")
    if medians < loss:
        yield (f"A table of the medians of the two neighbours is better still (loss {medians:.3f}): the order of the genes gives masked ones away "
               "(RANK_ARGS='--ties random' changes that).")
    if best == str(steps) and not early:
        yield "The validation loss was lowest at the last step: a longer training (EPOCHS=) may be better."


def interval(v):
    return f"{float(v['macro_f1_low']):.4f} - {float(v['macro_f1_high']):.4f}" if v.get("macro_f1_low") else "-"


def main(run, data, label, strategy):
    tables = rows(f"{run}/losses.tsv")[-1]
    frequency, medians = float(tables["frequency"]), float(tables["medians"])
    scores = {name: values(f"{run}/{file}.loss.tsv") for file, name in (("model", "network"), ("untrained", "network before the training"))}
    said = "".join(s + "\n" for s in findings(run, float(scores["network"]["loss"]), frequency, medians))
    put(f"{run}/findings.txt", said)
    print(f"corrmask pretrain: {data or 'simulated cells'}, masks {strategy}")
    print("".join(line + "\n" for line in lines(f"{run}/plan.txt") if not re.match("progress|again", line)))
    print(said)
    as_table(f"{run}/1-loss.table", LOSS, [["", "loss", "accuracy"], *([name, *(f"{float(v[of]):.3f}" for of in ("loss", "accuracy"))] for name, v in scores.items()),
                                           ["table of gene frequencies, no network", f"{frequency:.3f}", "-"],
                                           ["table of medians of neighbours, no network", f"{medians:.3f}", "-"]])
    if label:
        print()
        probes = {m: values(f"{run}/{m}.probe.tsv") for m in ("expression", "pca", "untrained", "model")}
        as_table(f"{run}/2-types.table", f"Linear probe of {label}, trained on cells for training, scored on held-out cells", [
            ["", "macro F1", "accuracy", "95 % interval of macro F1"],
            *([BASELINES.get(m, "network"), *(f"{float(v[of]):.4f}" for of in ("macro_f1", "accuracy")), interval(v)] for m, v in probes.items())])
    command = os.environ.get("CORRMASK_BY", "make")
    print(f"\nmodel: {run}/model      use it: {command} embed DATA=new.h5ad MODEL={run}/model\n")
    stage_times(f"{run}/log")
