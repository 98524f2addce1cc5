"""Golden files, by scstream, which reads streams independently of the C code. Run by make_v1.sh and tests/golden.bats.

    golden.py types            a stream of every column type, to standard output
    golden.py obs A.h5ad       an AnnData file with a column of obs of every type
    golden.py dump A           header and values of a stream, as text
    golden.py same A B         both streams hold the same columns and values, whatever their blocks and provenance
    golden.py close A B TOL    as same, but real numbers may differ by TOL
    golden.py losses A B TOL   step, loss, lr and grad_norm of two training tables, for the steps of B: relative difference up to TOL
"""
import csv
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import corrmask.stream as scstream  # noqa: E402

NUMBERS = [t for t in scstream.DTYPES if t != "categorical"]
TEXTS = ["", "a", "tab\there", "line\nbreak", "grüße", "\udcff no UTF-8"]


def column(name, kind, **more):
    shape = "ragged" if "group" in more else "fixed" if "n" in more else "scalar"
    return dict(name=name, type=kind, shape=shape, **more)


def values(kind, n, at):
    """n values from the extremes of the type inwards; floats with NaN, infinities and numbers that no decimal says exactly"""
    if kind[0] == "f":
        info = np.finfo(scstream.DTYPES[kind])
        few = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1 / 3, info.max, info.tiny, 5e-324 if kind == "f64" else info.eps, -2.5]
    else:
        info = np.iinfo(scstream.DTYPES[kind])
        few = [info.min, info.max, 0, 1, info.max // 3]
    return np.array([few[(at + i) % len(few)] for i in range(n)], scstream.DTYPES[kind])


def types():
    """Two blocks and an empty one between; the ragged group `reads`, and two header keys, that no tool knows"""
    columns = [column("cell", "u64"), column("barcode", "str"), column("n_counts", "u64"), column("gene", "u16", group="gene"),
               column("count", "u32", group="gene"), column("cell_type", "categorical", categories=["B cell", "T\tcell", "µ", ""]),
               column("never", "categorical", categories=[]), column("note", "str"), column("note.missing", "u8"), column("age", "i64"),
               column("age.missing", "u8"), column("alive", "u8"), column("alive.missing", "u8")]
    columns += [column("s_" + t, t) for t in NUMBERS] + [column("f_" + t, t, n=3) for t in NUMBERS]
    columns += [column("r_" + t, t, group="reads") for t in NUMBERS]
    header = {"kind": "counts", "columns": columns, "provenance": [{"program": "golden.py", "version": "1", "options": "", "more": [1]}],
              "of_tomorrow": {"nested": [1, None, True, "µ"], "number": 0.1}, "Zeta": None,
              "vocab": {"id": ["<pad>", "<mask>", "ENSG1", "ENSG2", "ENSG3"], "symbol": ["", "", "A", "µ \"q\"", ""],
                        "median": [None, None, 1 / 3, 5e-324, None]}}
    blocks = []
    for first, rows in (0, 7), (7, 0), (7, 5):
        at = range(first, first + rows)
        lengths = {"gene": [i % 4 for i in at], "reads": [(i * 3) % 5 for i in at]}
        offsets = {g: np.cumsum([0] + n) for g, n in lengths.items()}
        b = {"cell": np.array([10 * i for i in at], "<u8"), "barcode": ["cell-%d" % i for i in at], "n_counts": np.array(at, "<u8"),
             "gene": (offsets["gene"], np.array([2 + k for n in lengths["gene"] for k in range(n)], "<u2")),
             "count": (offsets["gene"], np.arange(1, 1 + offsets["gene"][-1])),
             "cell_type": np.array([i % 5 - 1 for i in at]), "never": np.array([-1 for _ in at]),
             "note": ["" if i % 6 == 0 else TEXTS[i % 6] for i in at], "note.missing": np.array([i % 12 == 0 for i in at], "<u1"),
             "age": np.array([0 if i % 3 == 0 else -i for i in at]), "age.missing": np.array([i % 3 == 0 for i in at], "<u1"),
             "alive": np.array([i % 2 and i % 5 != 0 for i in at], "<u1"), "alive.missing": np.array([i % 5 == 0 for i in at], "<u1")}
        for t in NUMBERS:
            b["s_" + t] = values(t, rows, first)
            b["f_" + t] = values(t, rows * 3, first).reshape(rows, 3)
            b["r_" + t] = (offsets["reads"], values(t, int(offsets["reads"][-1]), first))
        blocks.append(b)
    scstream.write("-", header, blocks)


def obs(path):
    """Integers and floats of every width, booleans, categories (also of numbers), and what of these may be missing"""
    import h5py
    n = 6
    with h5py.File(path, "w") as f:
        def group(at, kind, version, **arrays):
            g = f.create_group(at)
            g.attrs["encoding-type"], g.attrs["encoding-version"] = kind, version
            for name, x in arrays.items():
                g.create_dataset(name, data=x)
            return g
        x = group("X", "csr_matrix", "0.1.0", data=np.arange(1, n + 1, dtype="<f4"), indices=np.arange(n) % 3, indptr=np.arange(n + 1))
        x.attrs["shape"] = [n, 3]
        group("var", "dataframe", "0.2.0", _index=np.array([b"ENSG%011d" % i for i in range(3)])).attrs.update(_index="_index", **{"column-order": []})
        columns = {t: np.array([np.iinfo(t).min, np.iinfo(t).max, 0, 1, 2, 3], t) for t in
                   ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")}
        columns.update({t: np.array([np.nan, np.inf, 0, -0.5, 1 / 3, 3], t) for t in ("float32", "float64")})
        columns["bool"] = np.array([True, False] * 3)
        group("obs", "dataframe", "0.2.0", _index=np.array([b"cell%d" % i for i in range(n)]), **columns)
        mask = np.array([True, False] * 3)
        codes = np.array([-1, 0, 1, 2, 1, 0], "i1")
        group("obs/category", "categorical", "0.2.0", codes=codes, categories=np.array([b"B", b"T", b"NK"])).attrs["ordered"] = True
        group("obs/category_int", "categorical", "0.2.0", codes=codes, categories=np.array([3, 10, 200])).attrs["ordered"] = False
        group("obs/category_float", "categorical", "0.2.0", codes=codes, categories=np.array([0.5, 1 / 3, 2])).attrs["ordered"] = False
        group("obs/nullable_int", "nullable-integer", "0.1.0", values=np.arange(n, dtype="<i4"), mask=mask)
        group("obs/nullable_bool", "nullable-boolean", "0.1.0", values=~mask, mask=mask)
        group("obs/nullable_text", "nullable-string-array", "0.1.0", values=np.array([b"", b"a", b"b", b"", b"c", b"d"]), mask=mask)
        f["obs"].attrs.update(_index="_index", **{"column-order": [k for k in f["obs"] if k != "_index"]})


def rows_of(column, value):
    """The values of a column as one Python list or value a row"""
    if column["shape"] == "ragged":
        return [value.values[a:b].tolist() for a, b in zip(value.offsets[:-1], value.offsets[1:])]
    if column["type"] == "categorical":
        return value.codes.tolist()
    return list(value) if column["type"] == "str" else value.tolist()


def dump(path):
    with scstream.read(path) as s:
        for key, value in s.header.items():
            if key == "columns":
                for c in value:
                    print("column", json.dumps(c))
            elif key == "vocab":
                for i, row in enumerate(zip(value["id"], value["symbol"], value["median"])):
                    print("vocab", i, json.dumps(row))
                print("vocab", json.dumps({k: v for k, v in value.items() if not isinstance(v, list)}))
            else:
                print(key, json.dumps(value))
        for k, b in enumerate(s):
            print("block %d: %d rows" % (k, b.rows))
            for c in s.header["columns"]:
                print(c["name"], json.dumps(rows_of(c, b[c["name"]])))


def table(path):
    with scstream.read(path) as s:
        header = {k: v for k, v in s.header.items() if k != "provenance"}
        if len(header.get("loader", {}).get("files", [])) == 1:  # newer versions say which file it was
            del header["loader"]["files"]
        columns = {c["name"]: [] for c in header["columns"]}
        for b in s:
            for c in header["columns"]:
                columns[c["name"]] += rows_of(c, b[c["name"]])
    return header, columns


def same(a, b, tolerance=None):
    (ha, a), (hb, b) = table(a), table(b)
    # predictions of newer versions have the decided class beside the logits
    a, b = ({k: v for k, v in x.items() if k != "predicted" or "predicted" in y} for x, y in ((a, b), (b, a)))
    assert tolerance is not None or ha == hb, "headers differ:\n%s\n%s" % (ha, hb)
    assert list(a) == list(b), "columns differ:\n%s\n%s" % (list(a), list(b))
    of = {c["name"]: c for c in hb["columns"]}
    for name in b:
        if tolerance is None or of[name]["type"][0] != "f":
            assert repr(a[name]) == repr(b[name]), "column %s:\n%s\n%s" % (name, a[name], b[name])
            continue
        assert len(a[name]) == len(b[name]), name
        for x, y in zip(a[name], b[name]):
            x, y = np.array(x), np.array(y)
            assert x.shape == y.shape and (np.isnan(x) == np.isnan(y)).all(), (name, x, y)
            assert not (abs(x - y) > tolerance).any(), (name, abs(x - y).max())


def losses(a, b, tolerance):
    a, b = ({int(r["step"]): r for r in csv.DictReader(open(f), delimiter="\t")} for f in (a, b))
    assert b
    for step, row in b.items():
        for k in "loss", "lr", "grad_norm":
            x, y = float(a[step][k]), float(row[k])
            assert abs(x - y) <= tolerance * max(abs(y), 1e-30), (step, k, x, y)


if __name__ == "__main__":
    what, files = sys.argv[1], sys.argv[2:]
    if what in ("close", "losses"):
        {"close": same, "losses": losses}[what](files[0], files[1], float(files[2]))
    else:
        {"types": types, "obs": obs, "dump": dump, "same": same}[what](*files)
