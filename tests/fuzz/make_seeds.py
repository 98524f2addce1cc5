#!/usr/bin/env python3
"""Make the seeds of fuzz_stream: tiny streams of every kind and type, as files ('F') and as payloads ('P').
    tests/fuzz/make_seeds.py [tests/fuzz/seeds/fuzz_stream]"""
import os
import struct
import subprocess
import sys

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "ref"))
import scstream_cases as cases  # noqa: E402
from corrmask.stream import write  # noqa: E402


def payloads(path):
    """Header and blocks of a stream, split at their frames by the seek table."""
    data = open(path, "rb").read()
    n = struct.unpack_from("<I", data, len(data) - 9)[0]
    table, at, out = len(data) - 9 - 8 * n, 0, []
    for k in range(n - 1):
        packed, content = struct.unpack_from("<II", data, table + 8 * k)
        payload = subprocess.run(["zstd", "-dcq"], input=data[at:at + packed], stdout=subprocess.PIPE, check=True).stdout
        assert len(payload) == content
        out.append(struct.pack("<I", content) + payload)
        at += packed
    return b"".join(out)


def main(where):
    rng = np.random.default_rng(7)
    for name, columns in list(cases.COLUMNS.items()) + [("types", cases.TYPES[3:] + [cases.column("x", "f32", n=2)])]:
        h = cases.header("embedding" if name == "types" else name, columns)
        h["vocab"] = {"id": ["<pad>", "G1", "G2"], "symbol": ["", "A", "B"], "median": [None, 0.5, 2]}
        if name == "graph":
            h.pop("vocab")
        path = os.path.join(where, name)
        write(path, h, [cases.block(rng, h, n) for n in (2, 0)])
        data, parts = open(path, "rb").read(), payloads(path)
        open(path, "wb").write(b"P" + parts)
        if name in ("counts", "masked"):
            open(path + "-file", "wb").write(b"F" + data)
        if name == "counts":
            open(path + "-pipe", "wb").write(b"F" + cases.piped(data, 2))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "seeds", "fuzz_stream"))
