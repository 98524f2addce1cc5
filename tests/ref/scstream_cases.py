"""Streams of every kind and type by scstream, and what the tools should make of them. Run by tests/scstream.bats.

    scstream_cases.py make DIR      KIND.scs of every kind, written in Python, and types.scs with every column type
    scstream_cases.py same A B      the two streams hold the same rows (headers' provenance aside)
    scstream_cases.py copy A B      read A, write B
    scstream_cases.py hash A...     the trailer of A has the digest that libxxhash finds
    scstream_cases.py prefixes A    every proper prefix of A, and A and a byte, is refused
    scstream_cases.py table A...    scview prints what is in A
    scstream_cases.py kinds A...    A keeps the conventions of its kind
    scstream_cases.py agree DIR N   N streams with damaged payloads in sound frames: Python and scview --check refuse the same ones
                                    (DIR: tests/fuzz/seeds/fuzz_stream)
    scstream_cases.py pipe A B      B is A as it comes from a pipe; scview --check refuses it with a damaged number of rows, or one elsewhere
"""
import ctypes
import ctypes.util
import io
import os
import random
import struct
import subprocess
import sys

import numpy as np
import xxhash

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import corrmask.stream as scstream  # noqa: E402

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
    "masked-counts": [column("cell", "u64"), column("epoch", "u32"), column("step", "u32"), column("gene", "u16", group="gene"),
                      column("count", "u32", group="gene"), column("masked", "u16", group="masked")],
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


def hash_test(*paths):
    """The trailer has the digest of libxxhash, of what the command zstd makes of the stream."""
    lib = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")

    class Hash(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]
    lib.XXH3_128bits.restype, lib.XXH3_128bits.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t]
    for path in paths:
        data = subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE, check=True).stdout
        at = data.rindex(b"END1")
        want = lib.XXH3_128bits(data[:at], at)
        assert struct.unpack_from("<QQ", data, at + 20) == (want.low, want.high), path


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
        shown = subprocess.run(["scview", path], stdout=subprocess.PIPE, check=True).stdout.decode(errors="surrogateescape").split("\n")
        assert shown.pop() == ""
        want = list(lines_of(scstream.read(path)))
        assert len(want) == len(shown)
        for a, b in zip(want, shown):
            b = b.split("\t")
            assert len(a) == len(b) and all(map(equal, a, b)), (a, b)


def kinds(*paths):
    """The section KINDS of scstream(5)."""
    ragged, cells = lambda t, g: (t, "ragged", g), {"cell": ("u64", "scalar", None), "barcode": ("str", "scalar", None), "n_counts": ("u64", "scalar", None)}
    want = {
        "counts": dict(cells, gene=ragged("id", "gene"), count=ragged("u32", "gene")),
        "tokens": dict(cells, token=ragged("id", "token")),
        "masked": {"cell": ("u64", "scalar", None), "epoch": ("u32", "scalar", None), "step": ("u32", "scalar", None),
                   "input": ragged("id", "input"), "position": ragged("u16", "masked"), "target": ragged("id", "masked")},
        "graph": {"token": ("u32", "scalar", None), "neighbour": ragged("id", "neighbour"), "rho": ragged("f32", "neighbour"),
                  "overlap": ragged("u32", "neighbour")},
        "embedding": dict(cells, x=("f32", "fixed", None)),
        "prediction": dict(cells, logit=("f32", "fixed", None)),
        "masked-counts": {"cell": ("u64", "scalar", None), "epoch": ("u32", "scalar", None), "step": ("u32", "scalar", None),
                          "gene": ragged("id", "gene"), "count": ragged("u32", "gene"), "masked": ragged("id", "masked")},
    }
    for path in paths:
        s = scstream.read(path)
        h, size = s.header, len(s.header["vocab"]["id"])
        columns = {c["name"]: c for c in h["columns"]}
        for name, (kind, shape, group) in want[h["kind"]].items():
            c = columns[name]
            kind = ("u16" if size < 65536 else "u32") if kind == "id" else kind
            assert (c["type"], c["shape"], c.get("group")) == (kind, shape, group), (path, c)
        blocks = list(s)
        if h["kind"] in ("masked", "masked-counts"):
            assert {"rows", "epochs", "batch", "shards", "shard", "steps", "first_step", "seed"} <= h["loader"].keys()
            assert len(blocks) == h["loader"]["steps"] - h["loader"]["first_step"]
            assert all(b.rows <= h["loader"]["batch"] for b in blocks)
        if h["kind"] == "prediction":
            assert len(h["labels"]) == columns["logit"]["n"]
        if h["kind"] == "graph":
            assert np.concatenate([b["token"] for b in blocks]).tolist() == list(range(size))
        for b in blocks:
            def lists(name):
                o, v = b[name]
                return [v[i:j] for i, j in zip(o[:-1], o[1:])]
            if h["kind"] == "masked":
                assert len(set(b["step"])) <= 1
                for x, p, t in zip(lists("input"), lists("position"), lists("target")):
                    assert not p.size or (p.max() < x.size and (np.diff(p.astype(int)) > 0).all())
            if h["kind"] == "masked-counts":
                assert len(set(b["step"])) <= 1
                for g, c, m in zip(lists("gene"), lists("count"), lists("masked")):
                    assert (np.diff(g.astype(int)) > 0).all() and (c > 0).all() and (np.diff(m.astype(int)) > 0).all()
            if h["kind"] == "counts":
                for g, c, n in zip(lists("gene"), lists("count"), b["n_counts"]):
                    assert (np.diff(g.astype(int)) > 0).all() and (c > 0).all() and c.sum() <= n
            if h["kind"] == "graph":
                assert all((np.diff(n.astype(int)) > 0).all() for n in lists("neighbour"))


def frames(payloads):
    """A whole stream around any payloads."""
    out, table, rows, digest = [], [], [], xxhash.xxh3_128()

    def add(payload):
        out.append(subprocess.run(["zstd", "-qc", "-1", "--stream-size=%d" % len(payload)], input=payload, stdout=subprocess.PIPE, check=True).stdout)
        table.append(struct.pack("<II", len(out[-1]), len(payload)))

    for i, p in enumerate(payloads):
        add(p)
        digest.update(p)
        if i:
            rows.append(struct.unpack_from("<I", p, 4)[0] if len(p) >= 8 else 0)
    add(b"END1" + struct.pack("<QQQQ", sum(rows), len(rows), digest.intdigest() & (1 << 64) - 1, digest.intdigest() >> 64) + b"".join(struct.pack("<I", r) for r in rows))
    n = len(table)
    return b"".join(out) + struct.pack("<II", scstream.SEEK_MAGIC, 8 * n + 9) + b"".join(table) + struct.pack("<IBI", n, 0, scstream.SEEK_FOOTER)


def piped(data, rows):
    """The stream as it comes from a pipe whose writer knows its number of rows."""
    body = b"ROWS" + struct.pack("<Q", rows)
    first = struct.pack("<II", 0x184D2A5D, 16) + body + struct.pack("<I", xxhash.xxh64_intdigest(body) & 0xFFFFFFFF)
    at = len(data) - 9 - 8 * struct.unpack_from("<I", data, len(data) - 9)[0]
    return first + data[:at] + struct.pack("<I", struct.unpack_from("<I", data, at)[0] + len(first)) + data[at + 4:]


def pipe(a, b):
    data = open(a, "rb").read()
    rows = scstream.ends_with(a)[0]
    whole = piped(data, rows)

    def check(what, stream, good):
        open(b, "wb").write(stream)
        for how in ([b], ["-"]):
            got = subprocess.run(["scview", "--check"] + how, input=stream, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert (got.returncode == 0) == good and got.returncode < 2 and (good or len(got.stderr.splitlines()) == 1), (what, how, got)
    check("whole", whole, True)
    check("loose bound", piped(data, rows + 7), True)
    for i in range(24):
        check(i, whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1:], False)
    first, header = whole[:24], struct.unpack_from("<I", data, len(data) - 9 - 8 * struct.unpack_from("<I", data, len(data) - 9)[0])[0]
    check("longer", whole[:4] + struct.pack("<I", 17) + whole[8:24] + b"x" + whole[24:], False)
    check("twice", first + whole, False)
    check("after the header", data[:header] + whole[:24] + data[header:], False)
    check("not in the seek table", first + data, False)


def damage(rng, p):
    at, how = rng.randrange(len(p)), rng.randrange(6)
    if how < 2:
        p[at] = rng.choice([0, 1, 255, 0x22, 0x30, rng.randrange(256)])
    elif how == 2:
        del p[at:at + rng.choice([1, 2, 4])]
    elif how == 3:
        p[at:at] = rng.choice([b"\0", b"\0\0\0\0", b'"', b"1", b"-", b",", b" "])
    elif how == 4:
        p[at] ^= 1 << rng.randrange(8)
    else:
        p[at:at + 4] = struct.pack("<I", rng.choice([0, 1, 2, 3, 0x7FFFFFFF, 0xFFFFFFFF]))


def agree(seeds, n):
    rng, ours = random.Random(1), []
    names = sorted(f for f in os.listdir(seeds) if not f.endswith("-file"))
    for i in range(int(n)):
        data, payloads = open(os.path.join(seeds, rng.choice(names)), "rb").read()[1:], []
        while data:
            size = struct.unpack_from("<I", data)[0]
            payloads.append(bytearray(data[4:4 + size]))
            data = data[4 + size:]
        for _ in range(rng.choice([1, 1, 1, 2])):
            damage(rng, rng.choice(payloads[:2]))
        if rng.random() < .8:
            payloads[0][12:16] = struct.pack("<I", len(payloads[0]) - 16)
        whole = frames([bytes(p) for p in payloads])
        open("agree%d" % i, "wb").write(whole)
        ours.append(not refused(whole))
    theirs = subprocess.run(["scview", "--check"] + ["agree%d" % i for i in range(int(n))], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    accepted = {line.split(b":")[0].decode() for line in theirs.stdout.splitlines()}
    for i, ok in enumerate(ours):
        assert ok == ("agree%d" % i in accepted), i
    assert 0 < sum(ours) < int(n)
    print("%d of %s accepted by both" % (sum(ours), n))


if __name__ == "__main__":
    {"make": make, "same": same, "copy": copy, "hash": hash_test, "prefixes": prefixes, "table": table,
     "kinds": kinds, "agree": agree, "pipe": pipe}[sys.argv[1]](*sys.argv[2:])
