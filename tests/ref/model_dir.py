#!/usr/bin/env python3
"""Hold scembed and sctrain eval to bert.py, a float64 reading of the same model directory.

model_dir.py embed MODEL TOKENS.tsv LAYER mean|cls|first EMBEDDING.npy [CLS EOS]
    TOKENS.tsv     scview --columns token[,rank] of the tokens stream     EMBEDDING.npy    scview -O npy of scembed's output
    Prints the largest difference, relative to the largest value, and exits 1 above 1e-5. Missing vectors must be NaN in both.
model_dir.py mlm MODEL MASKED.tsv EVAL.tsv
    MASKED.tsv     scview --columns input,position,target[,rank] of the masked stream      EVAL.tsv    what sctrain eval wrote
    The mean cross-entropy over all masked positions must agree to 1e-6, the accuracy exactly.
model_dir.py train INIT MODEL MASKED.tsv torch|hf46 linear|cosine LR WARMUP
    INIT holds the initial weights (a training with --lr 0), MASKED.tsv    scview --columns step,input,position,target[,rank]
    Trains here, without dropout, as PyTorch and transformers do (AdamW, clipping to 1, weight decay 0.001, schedule), and
    holds MODEL's train.tsv (loss, lr, grad_norm) and weights to it.
model_dir.py cells MODEL CELLS.tsv
    CELLS.tsv      scview --columns cell_type,token    Prints mean loss, accuracy, macro-F1 (scikit-learn's) of the cells with a class.
model_dir.py cells-step MODEL CELLS.tsv balanced|none GAMMA LOSS
    The weighted focal loss of the cells (a batch of training) must be LOSS to 1e-5.
model_dir.py genes MODEL CELLS.tsv train|test
    CELLS.tsv      scview --columns token      Mean loss, accuracy, macro-F1 over the tokens whose gene is in this split of MODEL/genes.tsv.
"""
import os
import sys
import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bert  # noqa: E402


def lists(path, columns):
    """Lists of whole numbers of a table of scview: for every row, one list a column."""
    for line in open(path).read().split("\n")[1:-1]:
        yield [list(map(int, f.split())) for f in (line.split("\t") + [""] * columns)[:columns]]


def table(path, columns):
    """The same with the list of ranks, None where the table has none."""
    ranked = open(path).readline().split()[-1] == "rank"
    for row in lists(path, columns + ranked):
        yield row if ranked else [*row, None]


def embed(model, tokens, layer, pool, npy, cls=-1, eos=-1):
    cls, eos = int(cls), int(eos)
    c, w = bert.load(model)
    got = np.load(npy)
    rows = list(table(tokens, 1))
    assert got.shape == (len(rows), c["hidden_size"]), got.shape
    worst = top = 0
    for (ids, rank), x in zip(rows, got):
        h = bert.encode(c, w, ids, rank=rank)[int(layer) - 1] if ids else np.zeros((0, len(x)))
        if pool == "mean":
            h = h[1:] if ids[:1] == [cls] else h
            h = h[:-1] if ids[-1:] == [eos] else h
        else:
            h = h[:1]
        if not len(h):
            assert np.isnan(x).all()
            continue
        want = h.mean(0)
        top = max(top, abs(want).max())
        worst = max(worst, abs(want - x).max())
    print(f"{len(rows)} cells, largest difference {worst / top:.1e}")
    return worst < 1e-5 * top


def mlm(model, masked, result):
    c, w = bert.load(model)
    got = dict(l.split("\t") for l in open(result).read().split("\n")[1:-1])
    loss = right = n = 0
    for ids, at, target, rank in table(masked, 3):
        if not at:
            continue
        z = bert.mlm_logits(c, w, bert.encode(c, w, ids, rank=rank)[-1][at])
        loss += bert.softmax_loss(z, target)[0]
        right += (z.argmax(-1) == target).sum()
        n += len(at)
    print(f"{n} masked, loss {loss / n:.8f}, sctrain {got['loss']}, accuracy {right / n:.6f}, sctrain {got['accuracy']}")
    return (n == int(got["masked"]) and abs(loss / n - float(got["loss"])) < 1e-6 * loss / n
            and abs(right / n - float(got["accuracy"])) < 0.5 / n)


def train(init, model, masked, adam, schedule, peak, warmup):
    peak, warmup = float(peak), int(warmup)
    c, w = bert.load(init)
    batches = {}
    for (step,), ids, at, target, rank in table(masked, 4):
        batches.setdefault(step, []).append((ids, at, target, rank))
    log = [l.split("\t") for l in open(model + "/train.tsv").read().split("\n")[1:-1]]
    total, worst = len(batches), 0
    assert sorted(batches) == list(range(total)) and len(log) == total
    m, v = ({n: np.zeros_like(x) for n, x in w.items()} for _ in range(2))
    for k in range(total):
        loss, grad = bert.mlm_loss_and_gradients(c, w, batches[k])
        norm = np.sqrt(sum((g * g).sum() for g in grad.values()))
        after = (k - warmup) / max(1, total - warmup)
        factor = k / warmup if k < warmup else 1 - after if schedule == "linear" else 0.5 * (1 + np.cos(np.pi * after))
        lr = peak * factor
        for got, want, tol in zip(log[k][1:4], (loss, lr, norm), (1e-4, 1e-8, 1e-3)):
            worst = max(worst, abs(float(got) - want) / (tol * max(abs(want), 1e-12)))
        for n, g in grad.items():
            g = g * min(1, 1 / (norm + 1e-6))
            decay = 0 if "LayerNorm" in n or n.endswith("bias") else 0.001
            m[n] = 0.9 * m[n] + 0.1 * g
            v[n] = 0.999 * v[n] + 0.001 * g * g
            b1, b2 = 1 - 0.9 ** (k + 1), 1 - 0.999 ** (k + 1)
            if adam == "torch":
                w[n] = w[n] * (1 - lr * decay) - lr / b1 * m[n] / (np.sqrt(v[n]) / np.sqrt(b2) + 1e-8)
            else:
                w[n] = w[n] - lr * np.sqrt(b2) / b1 * m[n] / (np.sqrt(v[n]) + 1e-8)
                w[n] = w[n] - lr * decay * w[n]
    apart = 0
    for n, x in bert.load(model)[1].items():
        if "key.bias" not in n:         # its gradient is 0 but for rounding, and Adam enlarges that
            apart = max(apart, np.abs(x - w[n]).max() / np.abs(w[n]).max())
    print(f"{total} steps: loss, lr, norm within {worst:.2g} of their tolerances, weights within {apart:.1e}")
    return worst < 1 and apart < 1e-3


def classified(model, table):
    """Class numbers and probabilities of the cells that have a class."""
    c, w = bert.load(model)
    y, p = [], []
    for name, ids in (line.split("\t") for line in open(table).read().split("\n")[1:-1]):
        if name not in c["label2id"] or not ids:
            continue
        z = bert.classify(c, w, bert.encode(c, w, list(map(int, ids.split())))[-1])[0].ravel()
        y.append(c["label2id"][name])
        p.append(np.exp(z - z.max()) / np.exp(z - z.max()).sum())
    return np.array(y), np.array(p)


def cells(model, table):
    from sklearn.metrics import accuracy_score, f1_score
    y, p = classified(model, table)
    guess = p.argmax(1)
    print(f"{-np.log(p[np.arange(len(y)), y]).mean():.9g}\t{accuracy_score(y, guess):.9g}\t{f1_score(y, guess, average='macro'):.9g}")
    return True


def cells_step(model, table, weight, gamma, loss):
    y, p = classified(model, table)
    n = np.bincount(y)
    w = (len(y) / (len(n) * n) if weight == "balanced" else np.ones(len(n)))[y]
    q = p[np.arange(len(y)), y]
    want = -(w * (1 - q) ** float(gamma) * np.log(q)).sum() / w.sum()
    print(f"loss {want:.9g}, sctrain {loss}")
    return abs(want - float(loss)) < 1e-5 * want


def genes(model, table, split):
    from sklearn.metrics import accuracy_score, f1_score
    c, w = bert.load(model)
    row = {}
    ids = [line.split("\t")[1] for line in open(model + "/vocab.tsv").read().split("\n")[1:-1]]
    for line in open(model + "/genes.tsv").read().split("\n")[1:-1]:
        gene, _, label, _, part = line.split("\t")
        if part == split:
            row[ids.index(gene)] = c["label2id"][label]
    y, p = [], []
    for (tokens,) in lists(table, 1):
        at = [i for i, t in enumerate(tokens) if t in row]
        if at:
            z = bert.classify(c, w, bert.encode(c, w, tokens)[-1])[at]
            y += [row[tokens[i]] for i in at]
            p.append(np.exp(z - z.max(1, keepdims=True)) / np.exp(z - z.max(1, keepdims=True)).sum(1, keepdims=True))
    y, p = np.array(y), np.concatenate(p)
    guess = p.argmax(1)
    print(f"{-np.log(p[np.arange(len(y)), y]).mean():.9g}\t{accuracy_score(y, guess):.9g}\t{f1_score(y, guess, average='macro'):.9g}")
    return True


sys.exit(not {"genes": genes, "embed": embed, "mlm": mlm, "train": train, "cells": cells, "cells-step": cells_step}[sys.argv[1]](*sys.argv[2:]))
