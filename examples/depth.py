#!/usr/bin/env python3
"""Cell types of shallower cells: a classifier of cells as deep as they are, tested on new donors whose counts are thinned.

    depth.py CELLS.counts LABEL DONOR [SEED...]

A quarter of the donors are test cells (scsample --group), thinned by scsample --thin. Prints the macro F1 of logistic regression (penalty chosen on
the training cells) on expression, on 50 components and on the latent vector of sctrain nb, as it is and with scembed --recalibrate by training cells
of the same depth, and of multinomial naive Bayes. "thinned": the classifier, and components, learned from training cells of the same depth, too.
The tools must be on PATH; needs corrmask.
"""
import json
import os
import subprocess
import sys
import tempfile

import corrmask.stream as scstream

DEPTHS = "1", "0.1", "0.05", "0.02"


def tool(*words):
    return subprocess.run([str(w) for w in words], check=True, stdout=subprocess.PIPE, text=True).stdout


def train_network(cells):
    with scstream.read(cells) as stream, open("network.json", "w") as f:
        json.dump({"model_type": "mlp_nb", "vocab_size": len(stream.header["vocab"]["id"]), "intermediate_size": 128, "hidden_size": 32}, f)
    tool("maskgen", "-q", "--strategy", "columns", "--rate-uniform", "0.1:0.5", "--batch", 200, "--epochs", 60, "-o", "masked", cells)
    tool("sctrain", "nb", "-q", "--force", "-c", "network.json", "-o", "model", "masked")


def vectors(arm, cells, reference, fit, out):
    if arm == "nb":
        tool("scembed", "-q", "-M", "model", "-o", out, cells)
    elif arm == "nb recalibrated":
        tool("scembed", "-q", "-M", "model", "--recalibrate", fit, "-o", out, cells)
    else:
        tool("screduce", *(["pca", "-k", 50] if arm == "components" else ["expression"]), "--hvg", 0, "--train", reference, "-q", "-o", out, cells)


def macro_f1(label, train, test, *how):
    table = tool("ctaprobe", "cells", "-q", "-l", label, *how, "--train", train, "--test", test)
    return float(dict(line.split("\t")[:2] for line in table.splitlines())["macro_f1"])


def main(cells, label, donor, seeds):
    print("seed\tdepth\tarm\tmacro_f1")
    for seed in seeds:
        for part in "train", "test":
            tool("scsample", "-q", "--test-fraction", 0.25, "--group", donor, "--part", part, "--seed", seed, "-o", part + ".counts", cells)
        train_network("train.counts")
        for depth in DEPTHS:
            thin = {part: part + (".thin" if depth != "1" else ".counts") for part in ("train", "test")}
            for part in thin if depth != "1" else ():
                tool("scsample", "-q", "--thin", depth, "--seed", seed, "-o", "thin", part + ".counts")
                tool("scsample", "-q", "--min-genes", int(part == "test"), "-o", thin[part], "thin")  # the same cells for all arms
            references = ["train.counts", *([thin["train"]] if depth != "1" else [])]
            for reference in references:
                thinned = ", thinned" * (reference != "train.counts")
                score = {"naive Bayes": macro_f1(label, reference, thin["test"], "--naive-bayes")}
                for arm in "expression", "components", "nb", "nb recalibrated":
                    vectors(arm, reference, reference, thin["train"] if arm == "nb recalibrated" and thinned else "train.counts", "train.emb")
                    vectors(arm, thin["test"], reference, thin["train"], "test.emb")
                    score[arm] = macro_f1(label, "train.emb", "test.emb", "--search", 3)
                for arm, f1 in score.items():
                    print(seed, depth, arm + thinned, f"{f1:.4f}", sep="\t", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    cells = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            main(cells, *sys.argv[2:4], sys.argv[4:] or ["1"])
        except subprocess.CalledProcessError as e:  # the tool has said why
            sys.exit(f"depth.py: {e.cmd[0]} failed")
