"""Streams of every kind and type by scstream.py, and what the tools should make of them. Run by tests/scstream.bats.

    scstream_cases.py make DIR      KIND.scs of every kind, written in Python, and types.scs with every column type
    scstream_cases.py same A B      the two streams hold the same rows (headers' provenance aside)
    scstream_cases.py copy A B      read A, write B
    scstream_cases.py hash          XXH3-128 against the library, all lengths to 1,100 and some longer
    scstream_cases.py prefixes A    every proper prefix of A, and A and a byte, is refused
    scstream_cases.py table A...    scview prints what is in A
"""
import ctypes
import ctypes.util
import io
import os
import random
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src"))
import scstream  # noqa: E402

NUMBERS = [t for t in scstream.DTYPES if t != "categorical"]


def column(name, kind, **more):
    shape = "ragged" if "group" in more else "fixed" if "n" in more else "scalar"
    return dict(name=name, type=kind, shape=shape, **more)


CELL = [column("cell", "u64"), column("barcode", "str"), column("n_counts", "u64")]
COLUMNS = {
    "counts": CELL + [column("cell_type", "categorical", categories=["B", "T\tcell", "µ"]), column("gene", "u16", group="gene"),
                      column("count", "u32", group="gene")],
    "tokens": CELL + [column("token", "u16", group="token"), column("value", "f32", group="token")],
    "masked": [column("cell", "u64"), column("epoch", "u32"), column("step", "u32"), column("input", "u16", group="input"),
               column("position", "u16", group="masked"), column("target", "u16", group="masked")],
    "graph": [column("token", "u32"), column("neighbour", "u16", group="neighbour"), column("rho", "f32", group="neighbour"),
              column("overlap", "u32", group="neighbour")],
    "embedding": CELL + [column("x", "f32", n=5)],
    "prediction": CELL + [column("logit", "f32", n=3)],
}
TYPES = (CELL + [column("s_" + t, t) for t in NUMBERS] + [column("f_" + t, t, n=3) for t in NUMBERS] +
         [column("r_" + t, t, group="one" if i % 2 else "two") for i, t in enumerate(NUMBERS)] +
         [column("c", "categorical", categories=["a/b", "a b", ""]), column("note", "str"), column("note.missing", "u8"),
          column("age", "i64"), column("age.missing", "u8"), column("flag", "u8"), column("flag.missing", "u8"), column("ok/no", "u8")])


def header(kind, columns, vocab=True):
    h = {"kind": kind, "columns": columns, "provenance": [{"program": "test", "version": "0", "options": ""}], "note": {"kept": [1, None]}}
    if kind == "prediction":
        h["labels"] = ["B", "T", "other"]
    if vocab:
        h["vocab"] = {"id": ["<pad>", "<mask>"] + ["ENSG%d" % i for i in range(38)], "symbol": ["", ""] + ["G%d" % i for i in range(38)],
                      "median": [None, None] + [0.1 * (i + 1) for i in range(38)]}
    return h


def values(rng, c, n, vocab):
    kind = c["type"]
    if c["name"] in scstream.ID_COLUMNS:
        return rng.integers(0, vocab, n)
    if c["name"] in ("s_u8", "flag", "ok/no") or c["name"].endswith(".missing"):
        return rng.integers(0, 2, n)
    if kind == "categorical":
        return rng.integers(-1, len(c["categories"]), n)
    if kind[0] == "f":
        v = rng.normal(size=n) * 10.0 ** rng.integers(-20, 20, n)
        v[rng.random(n) < .1] = np.nan
        return v.astype(scstream.DTYPES[kind])
    info = np.iinfo(scstream.DTYPES[kind])
    return rng.integers(info.min, info.max, n, dtype=scstream.DTYPES[kind], endpoint=True)


def block(rng, h, rows):
    b, lengths = {}, {g: np.concatenate([[0], np.cumsum(rng.integers(0, 6, rows))]) for g in scstream.groups_of(h)}
    vocab = len(h["vocab"]["id"]) if "vocab" in h else 1
    for c in h["columns"]:
        if c["type"] == "str":
            words = ["", "a", "tab\tline\n\\", "grüße", "x" * 300]
            b[c["name"]] = ["%s%d-%d" % (words[rng.integers(5)], i, rows) if c["name"] == "barcode" else words[rng.integers(5)] for i in range(rows)]
        elif c["shape"] == "ragged":
            b[c["name"]] = (lengths[c["group"]], values(rng, c, int(lengths[c["group"]][-1]), vocab))
        elif c["shape"] == "fixed":
            b[c["name"]] = values(rng, c, rows * c["n"], vocab).reshape(rows, c["n"])
        else:
            b[c["name"]] = values(rng, c, rows, vocab)
    return b


def make(where):
    rng = np.random.default_rng(1)
    for name, columns in list(COLUMNS.items()) + [("types", TYPES)]:
        h = header("embedding" if name == "types" else name, columns if name != "types" else columns + [column("x", "f64", n=2)])
        sizes = [40] if name == "graph" else [7, 0, 300]
        blocks = [block(rng, h, n) for n in sizes]
        if name == "graph":
            blocks[0]["token"] = np.arange(40)
        scstream.write(os.path.join(where, name + ".scs"), h, blocks)
    scstream.write(os.path.join(where, "empty.scs"), header("counts", COLUMNS["counts"]), [])


def parts(v):
    if isinstance(v, scstream.Ragged):
        return [v.offsets, v.values]
    return [v.codes] if isinstance(v, scstream.Categorical) else [np.asarray(v)]


def same(a, b):
    a, b = scstream.read(a), scstream.read(b)
    ha, hb = dict(a.header), dict(b.header)
    ha.pop("provenance"), hb.pop("provenance")
    assert ha == hb, (ha, hb)
    a, b = list(a), list(b)
    assert [x.rows for x in a] == [x.rows for x in b]
    for x, y in zip(a, b):
        assert x.keys() == y.keys()
        for k in x:
            for p, q in zip(parts(x[k]), parts(y[k])):
                assert p.dtype == q.dtype and p.tobytes() == q.tobytes(), k
    print(sum(x.rows for x in a))


def copy(a, b):
    with scstream.read(a) as s:
        scstream.write(b, s.header, s)


def hash_test():
    lib = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")

    class Hash(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]
    lib.XXH3_128bits.restype, lib.XXH3_128bits.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t]
    rng = random.Random(1)
    for n in list(range(1100)) + [2047, 2048, 2049, 5000, 262144, 262145, 300001]:
        data, at, h = rng.randbytes(n), 0, scstream.XXH3()
        while at < n:
            k = rng.choice([1, 3, 64, 100, 1024, 1025, 5000, 300000])
            h.update(data[at:at + k])
            at += k
        want = lib.XXH3_128bits(data, n)
        assert h.digest() == (want.low, want.high), n


def refused(data):
    try:
        for _ in scstream.read(io.BytesIO(data)):
            pass
    except scstream.Error:
        return True
    return False


def prefixes(a):
    data = open(a, "rb").read()
    cuts = set(range(0, len(data), max(1, len(data) // 60))) | set(range(len(data) - 60, len(data)))
    for k in sorted(cuts - {len(data)}):
        assert refused(data[:k]), k
    assert refused(data + b"\0") and refused(data + data) and not refused(data)
    assert not os.path.exists("never")
    try:
        with scstream.Writer("never", header("counts", COLUMNS["counts"])) as w:
            w.write({})
    except KeyError:
        pass
    assert not os.path.exists("never") and not [f for f in os.listdir(".") if f.startswith("never")]


def text(c, v):
    if c["type"] == "str":
        return v.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    if c["type"] == "categorical":
        return "NA" if v < 0 else text({"type": "str"}, c["categories"][v])
    return "NA" if v != v else str(v)


def lines_of(stream):
    names = [c["name"] for c in stream.header["columns"]]
    shown = [c for c in stream.header["columns"] if not (c["name"].endswith(".missing") and c["name"][:-8] in names)]
    yield [c["name"] for c in shown]
    for b in stream:
        for r in range(b.rows):
            row = []
            for c in shown:
                v = b[c["name"]]
                if c["name"] + ".missing" in names and b[c["name"] + ".missing"][r]:
                    row.append("NA")
                    continue
                if c["shape"] == "ragged":
                    v = v.values[v.offsets[r]:v.offsets[r + 1]]
                elif c["shape"] == "fixed":
                    v = v[r]
                else:
                    v = [(v.codes if c["type"] == "categorical" else v)[r]]
                row.append(" ".join(text(c, x) for x in v))
            yield row


def equal(a, b):
    """The same text, or the same numbers (Python writes 1e+20 in other ways)."""
    if a == b:
        return True
    a, b = a.split(" "), b.split(" ")
    return len(a) == len(b) and all(x == y or float(x) == float(y) for x, y in zip(a, b))


def table(*paths):
    for path in paths:
        shown = subprocess.run(["scview", path], stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")
        assert shown.pop() == ""
        want = list(lines_of(scstream.read(path)))
        assert len(want) == len(shown)
        for a, b in zip(want, shown):
            b = b.split("\t")
            assert len(a) == len(b) and all(map(equal, a, b)), (a, b)


if __name__ == "__main__":
    {"make": make, "same": same, "copy": copy, "hash": hash_test, "prefixes": prefixes, "table": table}[sys.argv[1]](*sys.argv[2:])
