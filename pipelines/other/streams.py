#!/usr/bin/env python3
"""What is no cell as a stream of the tools, in a training and a test part (make r2mae-other).

    streams.py digits FOLDER          images: each pixel is a gene, its darkness the count (needs scikit-learn)
    streams.py text FOLDER FILE...    texts: windows of 64 characters
    streams.py dna FOLDER FILE        a genome (FASTA, gzip accepted): windows of 64 bases

FOLDER gets train.counts and test.counts, or train.tok and test.tok, and frequency: the loss of a table of frequencies on the test part (nats).
"""
import gzip
import os
import sys

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(here, "../../python"), os.path.join(here, "../../../../lib/corrmask/python")]     # in the sources, installed
import corrmask.stream as scstream  # noqa: E402

WINDOW, STRETCH = 64, 4096     # every fourth stretch is for the test, so that windows of both parts are seldom neighbours
BASES_MAX = 200_000


def column(name, kind, shape="scalar", **more):
    return dict(name=name, type=kind, shape=shape, **more)


def write(path, kind, ids, columns, block):
    block = dict(block, barcode=["row%d" % i for i in block["cell"]])
    header = {"kind": kind, "columns": [column("cell", "u64"), column("barcode", "str"), column("n_counts", "u64")] + columns, "provenance": [],
              "vocab": {"id": ids, "symbol": [""] * len(ids), "median": [None] * len(ids)}}
    scstream.write(path, header, [block])


def digits(folder):
    from sklearn.datasets import load_digits
    x, y = load_digits(return_X_y=True)
    test = np.arange(len(x)) % 2 == 1
    for part, rows in (("train", ~test), ("test", test)):
        image = x[rows].astype("<u4")
        at, pixel = np.nonzero(image)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=len(image)))])
        write("%s/%s.counts" % (folder, part), "counts", ["pixel%d" % i for i in range(x.shape[1])],
              [column("digit", "categorical", categories=list("0123456789")), column("gene", "u16", "ragged", group="gene"),
               column("count", "u32", "ragged", group="gene")],
              {"cell": np.flatnonzero(rows), "n_counts": image.sum(1), "digit": y[rows],
               "gene": scstream.Ragged(offsets, pixel), "count": scstream.Ragged(offsets, image[at, pixel])})
    return "NA"


def tokens(folder, text):
    if len(text) < 4 * STRETCH:
        sys.exit("streams.py: %d characters: expected at least %d" % (len(text), 4 * STRETCH))
    ids = ["<pad>", "<mask>"] + ["U+%04X" % ord(c) for c in sorted(set(text))]
    number = {int(i[2:], 16): k for k, i in enumerate(ids[2:], 2)}
    token = np.array([number[ord(c)] for c in text])
    windows = token[:len(token) // WINDOW * WINDOW].reshape(-1, WINDOW)
    test = np.arange(len(windows)) * WINDOW // STRETCH % 4 == 3
    count = np.bincount(windows[~test].ravel(), minlength=len(ids)) + 1
    for part, rows in (("train", ~test), ("test", test)):
        n = int(rows.sum())
        write("%s/%s.tok" % (folder, part), "tokens", ids, [column("token", "u16", "ragged", group="token")],
              {"cell": np.flatnonzero(rows), "n_counts": np.full(n, WINDOW),
               "token": scstream.Ragged(np.arange(n + 1) * WINDOW, windows[rows].ravel())})
    return -np.log(count / count.sum())[windows[test]].mean()


def text(folder, *paths):
    seen = {}          # licences share paragraphs: each once, or the test part would have been read
    for path in paths:
        for paragraph in open(path, encoding="utf-8", errors="replace").read().split("\n\n"):
            seen[" ".join(paragraph.split())] = None
    return tokens(folder, "\n".join(p for p in seen if p))


def dna(folder, path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        bases = "".join(line.strip().upper() for line in f if not line.startswith(">"))
    return tokens(folder, "".join(b for b in bases[:BASES_MAX] if b in "ACGT"))


if __name__ == "__main__":
    kind, folder, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(folder, exist_ok=True)
    loss = {"digits": digits, "text": text, "dna": dna}[kind](folder, *files)
    with open(folder + "/frequency", "w") as f:
        f.write("%s\n" % loss)
