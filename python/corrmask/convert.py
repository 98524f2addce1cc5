# mypy: ignore-errors
"""Streams of tokens from and to Hugging Face datasets: `scstream from-dataset` and `to-dataset`.

A dataset is a folder as datasets' save_to_disk writes it, such as Genecorpus-30M or what Geneformer's tokenizer makes:
    state.json            names of the data files, in order
    dataset_info.json     features: what the columns mean
    data-*.arrow          record batches in Arrow's streaming format
It is read and written with pyarrow, without the library datasets. Memory is bounded by a record batch and by the distinct texts of a column."""
import contextlib
import json
import os
import pickle
import shutil
import sys
import tempfile
from typing import Optional

import numpy as np

import corrmask.stream as scstream
from corrmask import RESERVED
from corrmask._tools import save, sync_folder
from corrmask.model import read_vocab
from corrmask.stream import Error

ROWS = 1000                     # of a record batch, as datasets writes them
SHARD_BYTES = 500 << 20         # of tokens in a data file, about
CATEGORIES_MAX = 65536
TAKEN = tuple(name for name in RESERVED if name not in ("barcode", "n_counts"))    # a dataset's are those of the stream


def need_pyarrow():
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.ipc
    except ImportError:
        raise Error("datasets are read and written with pyarrow, which this Python lacks: pip install pyarrow") from None
    return pyarrow


# ---- datasets to streams ----

class Dataset:
    """The folder of a dataset: .features, and the record batches by iteration."""

    def __init__(self, folder):
        self.pa, self.folder = need_pyarrow(), folder
        if os.path.exists(os.path.join(folder, "dataset_dict.json")):
            with open(os.path.join(folder, "dataset_dict.json")) as f:
                raise Error("%s: several datasets: name one of %s" % (folder, ", ".join(os.path.join(folder, s) for s in json.load(f)["splits"])))
        state, info = self._json("state.json"), self._json("dataset_info.json")
        try:
            self.files = [os.path.join(folder, f["filename"]) for f in state["_data_files"]]
            self.features = info.get("features") or {}
        except (KeyError, TypeError, AttributeError):
            raise Error("%s: state.json does not name the data files: is this a dataset that save_to_disk wrote?" % folder) from None
        if os.path.exists(os.path.join(folder, "indices.arrow")) or state.get("_indices_data_files"):
            raise Error("%s: the rows are in another order, which its indices give: call flatten_indices() and save it again" % folder)
        if not self.files:
            raise Error("%s: no data files" % folder)
        with self._open(self.files[0]) as reader:
            self.schema = reader.schema

    def _json(self, name):
        path = os.path.join(self.folder, name)
        try:
            with open(path) as f:
                return json.load(f)
        except FileNotFoundError:
            raise Error("%s: no %s in it: expected a folder that datasets' save_to_disk wrote" % (self.folder, name)) from None
        except ValueError as error:
            raise Error("%s: not JSON: %s" % (path, error)) from None

    @contextlib.contextmanager
    def _open(self, path):
        try:
            with self.pa.memory_map(path) as data:
                if bytes(data.read_buffer()[-4:]) != b"\0\0\0\0":
                    raise Error("%s: cut short: it has no end mark of an Arrow stream" % path)
                data.seek(0)
                yield self.pa.ipc.open_stream(data)
        except (self.pa.ArrowInvalid, OSError) as error:
            raise Error("%s: damaged, or not an Arrow stream: %s" % (path, error)) from None

    def __iter__(self):
        for path in self.files:
            with self._open(path) as reader:
                if reader.schema.names != self.schema.names or reader.schema.types != self.schema.types:
                    raise Error("%s: its columns are not those of %s" % (path, self.files[0]))
                yield from reader


def _text_values(pa, column):
    """The column with its dictionary, if it has one, looked up."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


class _Column:
    """A column of a dataset that becomes a scalar column of the stream."""

    def __init__(self, pa, field, feature):
        t = field.type
        self.pa, self.source, self.names = pa, field.name, None
        self.name = ("obs_" if field.name in TAKEN else "") + field.name
        kind = pa.types
        value = t.value_type if kind.is_dictionary(t) else t
        self.seen, self.twice, self.missing = {}, False, False
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and feature.get("names"):
            self.kind, self.names = "categorical", [str(n) for n in feature["names"]]
        elif kind.is_boolean(t):
            self.kind, self.names = "boolean", ["False", "True"]
        elif kind.is_integer(t):
            self.kind = "u64" if t == pa.uint64() else "i64"
        elif kind.is_floating(t):
            self.kind = "f64"
        elif kind.is_string(value) or kind.is_large_string(value):
            self.kind = "text"
        else:
            self.kind = None

    def look(self, column):
        """First pass: the distinct texts, in order of their first row, and whether values are missing."""
        self.missing |= column.null_count > 0
        if self.kind == "text" and len(self.seen) <= CATEGORIES_MAX:
            before, texts = len(self.seen), _text_values(self.pa, column).drop_null()
            for text in texts.unique().to_pylist():
                self.seen.setdefault(text, len(self.seen))
            self.twice |= len(self.seen) - before < len(texts)

    def columns(self):
        if self.kind == "text":
            self.kind = "categorical" if self.twice and len(self.seen) <= CATEGORIES_MAX else "str"
            self.names = list(self.seen)
        if self.kind in ("categorical", "boolean"):
            c = {"name": self.name, "type": "categorical", "shape": "scalar", "categories": self.names}
            return [dict(c, dtype="boolean" if self.missing else "bool") if self.kind == "boolean" else c]
        c = [{"name": self.name, "type": self.kind, "shape": "scalar"}]
        return c + [{"name": self.name + ".missing", "type": "u8", "shape": "scalar"}] if self.missing and self.kind != "f64" else c

    def fill(self, block, column):
        gone = np.asarray(column.is_null())
        if self.kind == "str":
            block[self.name] = [t or "" for t in _text_values(self.pa, column).to_pylist()]
        elif self.kind == "f64":
            block[self.name] = column.cast("float64").to_numpy(zero_copy_only=False)
        elif self.kind == "categorical" and self.seen:
            block[self.name] = np.array([-1 if t is None else self.seen[t] for t in _text_values(self.pa, column).to_pylist()], "<i4")
        elif self.kind in ("categorical", "boolean"):
            codes = column.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
            if len(codes) and (codes.max() >= len(self.names) or codes.min() < -1):
                raise Error("column %r: class %d, but there are %d names" % (self.source, codes.max(), len(self.names)))
            block[self.name] = codes
        else:
            block[self.name] = column.fill_null(0).to_numpy(zero_copy_only=False)
        if self.missing and self.kind in ("i64", "u64", "str"):
            block[self.name + ".missing"] = gone.astype("u1")


def _tokens(pa, column, name):
    """Offsets and values of a list column."""
    if column.null_count:
        raise Error("column %r: a cell without a list" % name)
    column = column.cast(pa.large_list(pa.int64()))
    offsets = np.asarray(column.offsets)
    values = np.asarray(column.values)[offsets[0]:offsets[-1]]
    if (values < 0).any():
        raise Error("column %r: token %d, expected 0 or above" % (name, values.min()))
    return offsets - offsets[0], values


class _Ends:
    """The first and last token of the cells: do they say that the tokens are of another vocabulary?"""

    def __init__(self, vocab, name):
        self.id, self.name, self.cells, self.marked, self.first, self.last = vocab["id"], name, 0, 0, set(), set()
        self.marks = [self.id.index(x) if x in self.id else None for x in ("<cls>", "<eos>")]

    def look(self, offsets, values):
        full = offsets[1:] > offsets[:-1]
        first, last = values[offsets[:-1][full]], values[offsets[1:][full] - 1]
        self.cells += len(first)
        self.marked += int(((first == self.marks[0]) & (last == self.marks[1])).sum()) if None not in self.marks else len(first)
        for tokens, seen in ((first, self.first), (last, self.last)):
            if len(seen) < 2:
                seen.update(tokens.tolist())

    def check(self, folder):
        ends, another = [*self.first, *self.last], "so they are tokens of another vocabulary; if they are its own all the same: --no-special-tokens"
        if self.cells > 1 and len(self.first) == len(self.last) == 1 and ends[0] != ends[1] and all(t < len(self.id) and self.id[t][0] not in "<[" for t in ends):
            raise Error("%s: every cell begins with token %d and ends with token %d, like <cls> and <eos>, but in %s these are the genes %s and %s, %s" % (
                folder, *ends, self.name, *(self.id[t] for t in ends), another))
        if self.marked < self.cells:
            raise Error("%s: %d of %d cells do not begin with <cls> and end with <eos>, which %s has, %s" % (
                folder, self.cells - self.marked, self.cells, self.name, another))


def from_dataset(folder: str, vocab: str, output: str, no_special: bool = False) -> None:
    """A tokens stream: input_ids becomes token; length is left out; the other columns of numbers and texts are kept. no_special: the cells need no
    <cls> and <eos> where the vocabulary has them."""
    data, v = Dataset(folder), read_vocab(vocab)
    pa, schema = data.pa, data.schema
    if "input_ids" not in schema.names:
        raise Error("%s: no column input_ids (it has: %s)" % (folder, ", ".join(schema.names)))
    t = schema.field("input_ids").type
    if not (pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t)) or not pa.types.is_integer(t.value_type):
        raise Error("%s: input_ids is %s, expected lists of integers" % (folder, t))
    columns, left = [], []
    for field in schema:
        if field.name in ("input_ids", "length"):
            continue
        c = _Column(pa, field, data.features.get(field.name))
        usable = c.kind and not set(field.name) & set("\t\r\n") and (field.name != "n_counts" or c.kind in ("i64", "u64", "f64"))
        (columns if usable else left).append(c if usable else field.name)
    ends = _Ends(v, vocab)
    for batch in data:
        for c in columns:
            c.look(batch.column(c.source))
        ends.look(*_tokens(pa, batch.column("input_ids"), "input_ids"))
    if not no_special:
        ends.check(folder)
    barcode = next((c for c in columns if c.source == "barcode" and c.kind == "text" and not c.missing), None)
    total = next((c for c in columns if c.source == "n_counts" and not c.missing), None)
    rest = [c for c in columns if c not in (barcode, total)]
    specs = [{"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "barcode", "type": "str", "shape": "scalar"}]
    specs += [{"name": "n_counts", "type": "u64", "shape": "scalar"}] if total else []
    specs += [s for c in rest for s in c.columns()]
    specs.append({"name": "token", "type": "u16" if len(v["id"]) < 65536 else "u32", "shape": "ragged", "group": "token"})
    header = {"kind": "tokens", "columns": specs, "vocab": v,
              "provenance": [{"program": "scstream", "version": scstream.VERSION, "options": "from-dataset"}]}
    for name in left:
        print("scstream: note: column %s of %s is neither numbers nor texts and is left out" % (name, folder), file=sys.stderr)

    def blocks():
        cell = 0
        for batch in data:
            block, n = {}, batch.num_rows
            if not n:
                continue
            block["cell"] = np.arange(cell, cell + n, dtype="<u8")
            block["barcode"] = _text_values(pa, batch.column("barcode")).to_pylist() if barcode else [str(cell + i) for i in range(n)]
            if total:
                sums = batch.column("n_counts").cast("float64").to_numpy(zero_copy_only=False)
                if (sums != np.floor(sums)).any() or (sums < 0).any():
                    raise Error("column 'n_counts': expected whole numbers")
                block["n_counts"] = sums.astype("<u8")
            for c in rest:
                c.fill(block, batch.column(c.source))
            block["token"] = _tokens(pa, batch.column("input_ids"), "input_ids")
            if len(block["token"][1]) and block["token"][1].max() >= len(v["id"]):
                raise Error("%s: row %d or one after it has token %d, but %s has %d tokens: it is not the vocabulary of this dataset" %
                            (folder, cell, block["token"][1].max(), vocab, len(v["id"])))
            cell += n
            yield block
    scstream.write(output, header, blocks())


# ---- streams to datasets ----

@contextlib.contextmanager
def new_folder(folder):
    """A folder to fill, which gets this name when the body has ended well."""
    if os.path.exists(folder):
        raise Error("%s: exists already" % folder)
    parent, name = os.path.split(os.path.abspath(folder))
    temporary = tempfile.mkdtemp(prefix=name + ".tmp.", dir=parent)
    try:
        yield temporary
        for name in os.listdir(temporary):
            with open(os.path.join(temporary, name), "rb") as f:
                os.fsync(f.fileno())
        sync_folder(temporary)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o777 & ~mask)
        os.rename(temporary, folder)
        sync_folder(parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def to_dataset(source: str, folder: str, lengths: Optional[str]) -> None:
    pa = need_pyarrow()
    with new_folder(folder) as temporary, scstream.read(source) as stream:
        n = _write_dataset(pa, stream, temporary)
        if lengths:
            save(lengths, pickle.dumps(n))


def _write_dataset(pa, stream, folder):
    """Write all files of the dataset. Returns the number of tokens of every cell."""
    h = stream.header
    if h["kind"] != "tokens":
        raise Error("%s: this is a %s stream, expected tokens, made by rankenc" % (stream.name, h["kind"]))
    specs = {c["name"]: c for c in h["columns"]}
    kept = [c for c in h["columns"] if c["shape"] == "scalar" and c["name"] != "cell" and not (c["name"].endswith(".missing") and c["name"][:-8] in specs)]
    ranked = "rank" in specs and specs["rank"]["shape"] == "ragged"
    for c in h["columns"]:
        if c["shape"] != "scalar" and c["name"] != "token" and not (ranked and c["name"] == "rank"):
            print("scstream: note: column %s is a list and is left out" % c["name"], file=sys.stderr)
    lists = ["input_ids", "position_ids"][:1 + ranked]
    fields = [pa.field(name, pa.list_(pa.int32())) for name in lists] + [pa.field("length", pa.int64())]
    for c in kept:
        boolean = c["type"] == "u8" or c.get("dtype") in ("bool", "boolean", "bool-categories")
        kind = pa.bool_() if boolean else pa.string() if c["type"] in ("str", "categorical") else \
            pa.from_numpy_dtype(np.dtype(scstream.DTYPES[c["type"]]).newbyteorder("="))
        fields.append(pa.field(c["name"][4:] if c["name"][:4] == "obs_" and c["name"][4:] in TAKEN and c["name"][4:] not in specs else c["name"], kind))
    if len({f.name for f in fields}) < len(fields):
        raise Error("%s: a column is called %s or length already" % (stream.name, ", ".join(lists)))
    dtypes = {"double": "float64", "float": "float32"}
    features = {f.name: {"dtype": dtypes.get(str(f.type), str(f.type)), "_type": "Value"} for f in fields[len(lists):]}
    features = {**{name: {"feature": {"dtype": "int32", "_type": "Value"}, "_type": "Sequence"} for name in lists}, **features}
    schema = pa.schema(fields, {"huggingface": json.dumps({"info": {"features": features}})})
    lengths, files, size, writer, sink = [], 0, 0, None, None
    try:
        for block in stream:
            for at in range(0, block.rows, ROWS):
                batch = _record_batch(pa, block, specs, kept, schema, at, min(at + ROWS, block.rows))
                if writer is None or size > SHARD_BYTES:
                    if writer:
                        writer.close()
                        sink.close()
                    sink = pa.OSFile(os.path.join(folder, "data-%05d.arrow" % files), "wb")
                    writer = pa.ipc.new_stream(sink, schema)
                    files, size = files + 1, 0
                writer.write_batch(batch)
                size += batch.nbytes
                lengths += batch.column("length").to_pylist()
        if writer is None:
            raise Error("%s: no cells in it" % stream.name)
    finally:
        if writer:
            writer.close()
            sink.close()
    names = ["data-%05d-of-%05d.arrow" % (i, files) for i in range(files)]
    for i, name in enumerate(names):
        os.rename(os.path.join(folder, "data-%05d.arrow" % i), os.path.join(folder, name))
    with open(os.path.join(folder, "dataset_info.json"), "w") as f:
        json.dump({"citation": "", "description": "", "features": features, "homepage": "", "license": ""}, f, indent=2)
    with open(os.path.join(folder, "state.json"), "w") as f:
        json.dump({"_data_files": [{"filename": n} for n in names], "_fingerprint": "%016x" % (hash(tuple(lengths)) & (1 << 64) - 1), "_format_columns": None,
                   "_format_kwargs": {}, "_format_type": None, "_output_all_columns": False, "_split": None}, f, indent=2)
    return lengths


def _record_batch(pa, block, specs, kept, schema, at, end):
    arrays = []
    for name in ["token", "rank"][:list(schema.names).index("length")]:
        offsets, values = block[name]
        part = offsets[at:end + 1]
        arrays.append(pa.ListArray.from_arrays(pa.array((part - part[0]).astype("i4")), pa.array(values[part[0]:part[-1]].astype("i4"))))
    arrays.append(pa.array(np.diff(part).astype("i8")))
    for c, field in zip(kept, list(schema)[len(arrays):]):
        gone = block[c["name"] + ".missing"][at:end] != 0 if c["name"] + ".missing" in specs else None
        value = block[c["name"]]
        if c["type"] == "categorical":
            codes, names = value.codes[at:end], value.categories
            if pa.types.is_boolean(field.type):
                arrays.append(pa.array([None if k < 0 else names[k] == "True" for k in codes], field.type))
            else:
                arrays.append(pa.array([None if k < 0 else names[k] for k in codes], field.type))
        elif c["type"] == "str":
            texts = value[at:end]
            arrays.append(pa.array([None if gone is not None and gone[i] else t for i, t in enumerate(texts)], field.type))
        else:
            part = value[at:end]
            arrays.append(pa.array(part != 0 if pa.types.is_boolean(field.type) else part.astype(part.dtype.newbyteorder("=")), field.type,
                                   mask=gone))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
