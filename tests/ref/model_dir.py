#!/usr/bin/env python3
"""Hold scembed and sctrain eval to bert.py, a float64 reading of the same model directory.

model_dir.py embed MODEL TOKENS.tsv LAYER mean|cls|first EMBEDDING.npy [CLS EOS]
    TOKENS.tsv     scview --columns token of the tokens stream     EMBEDDING.npy    scview -O npy of scembed's output
    Prints the largest difference, relative to the largest value, and exits 1 above 1e-5. Missing vectors must be NaN in both.
model_dir.py mlm MODEL MASKED.tsv EVAL.tsv
    MASKED.tsv     scview --columns input,position,target of the masked stream      EVAL.tsv    what sctrain eval wrote
    The mean cross-entropy over all masked positions must agree to 1e-6, the accuracy exactly.
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


def embed(model, tokens, layer, pool, npy, cls=-1, eos=-1):
    cls, eos = int(cls), int(eos)
    c, w = bert.load(model)
    got = np.load(npy)
    rows = [r[0] for r in lists(tokens, 1)]
    assert got.shape == (len(rows), c["hidden_size"]), got.shape
    worst = top = 0
    for ids, x in zip(rows, got):
        h = bert.encode(c, w, ids)[int(layer) - 1] if ids else np.zeros((0, len(x)))
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


def mlm(model, masked, table):
    c, w = bert.load(model)
    got = dict(l.split("\t") for l in open(table).read().split("\n")[1:-1])
    loss = right = n = 0
    for ids, at, target in lists(masked, 3):
        if not at:
            continue
        z = bert.mlm_logits(c, w, bert.encode(c, w, ids)[-1][at])
        loss += bert.softmax_loss(z, target)[0]
        right += (z.argmax(-1) == target).sum()
        n += len(at)
    print(f"{n} masked, loss {loss / n:.8f}, sctrain {got['loss']}, accuracy {right / n:.6f}, sctrain {got['accuracy']}")
    return (n == int(got["masked"]) and abs(loss / n - float(got["loss"])) < 1e-6 * loss / n
            and abs(right / n - float(got["accuracy"])) < 0.5 / n)


sys.exit(not {"embed": embed, "mlm": mlm}[sys.argv[1]](*sys.argv[2:]))
