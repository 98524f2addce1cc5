"""Two trainings that differ by rounding only: ranks.py INIT A B [rtol of the weights' way from INIT]. Losses and norms of train.tsv too."""
import json
import struct
import sys

import numpy as np


def weights(folder):
    raw = open(folder + "/model.safetensors", "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    return {k: np.frombuffer(raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]], "<f4").astype(float)
            for k, v in head.items() if k != "__metadata__"}


def rows(folder):
    lines = open(folder + "/train.tsv").read().split("\n")[1:-1]
    return np.array([[float(x) if x != "NA" else -1 for x in line.split("\t")[:4]] for line in lines])


init, a, b = (weights(x) for x in sys.argv[1:4])
rtol = float(sys.argv[4]) if len(sys.argv) > 4 else 1e-4
assert sorted(a) == sorted(b) == sorted(init)
off = np.sqrt(sum(((a[k] - b[k]) ** 2).sum() for k in a))
way = np.sqrt(sum(((a[k] - init[k]) ** 2).sum() for k in a))
ra, rb = rows(sys.argv[2]), rows(sys.argv[3])
assert ra.shape == rb.shape and (ra[:, [0, 2]] == rb[:, [0, 2]]).all(), "steps or rates differ"
loss, norm = np.abs(ra[:, 1] / rb[:, 1] - 1).max(), np.abs(ra[:, 3] / rb[:, 3] - 1).max()
print(f"weights {off / way:.2e} of the way trained, loss {loss:.2e}, gradient norm {norm:.2e}")
assert way > 0.1 and off < rtol * way and loss < 1e-6 and norm < 1e-5
