"""Read and write scstreams, the streams of corrmask's tools, as numpy arrays. The format is in scstream(5).

    from corrmask import stream

    cells = stream.read("cells.tok")             # a path, "-" for standard input, or a binary file object
    print(cells.header["kind"], cells.header["vocab"]["id"][:5])
    for block in cells:                          # one block at a time; raises stream.Error unless the stream is whole
        block.rows                               # number of rows
        block["n_counts"]                        # scalar: array [rows]; fixed: array [rows, n]; str: list of str
        offsets, values = block["token"]         # ragged: row i is values[offsets[i]:offsets[i + 1]]
        codes, categories = block["cell_type"]   # categorical: codes [rows], -1 is missing

    stream.write("out.tok", cells.header, blocks)           # blocks: dicts of the same shapes
    maskgen ... | python3 train.py                          # stream.read("-") in train.py

    cells = stream.Dataset("cells.tok")                     # for torch.utils.data.DataLoader, with any number of workers
    row = next(iter(cells))                                 # the columns of one cell: tensors, numbers and texts
    stream.Dataset("train.masked", blocks=True)             # batches of maskgen, which stream.padded turns into tensors

The command scstream converts Hugging Face datasets and Geneformer's dictionaries: scstream --help.
Needs numpy, xxhash and zstandard; Dataset needs PyTorch, and datasets need pyarrow.
"""
from __future__ import annotations

import json
import os
import struct
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Tuple, Union

import numpy as np
import xxhash
import zstandard

from corrmask._tools import abandon, put_in_place, temporary

if TYPE_CHECKING:
    import anndata
    import scipy.sparse

__all__ = ["Block", "Categorical", "Error", "Ragged", "Reader", "VERSION", "Writer", "check_header", "padded", "read", "to_anndata", "to_scipy", "write"]

VERSION = "0.1.0"
KINDS = ("counts", "tokens", "masked", "masked-counts", "graph", "embedding", "prediction", "medians")
DTYPES = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "i8": "<i1", "i16": "<i2", "i32": "<i4", "i64": "<i8",
          "f32": "<f4", "f64": "<f8", "categorical": "<i4"}     # a missing code, 0xFFFFFFFF, is -1
ID_COLUMNS = ("gene", "token", "input", "target", "neighbour", "masked")
PAYLOAD_MAX = 256 << 20
SEEK_MAGIC, SEEK_FOOTER = 0x184D2A5E, 0x8F92EAB1

Array = Any         # a numpy array: its type parameters differ between versions of numpy
Header = Dict[str, Any]
Source = Union[str, "os.PathLike[str]", BinaryIO]
Buffer = Union[bytes, bytearray, memoryview]


class Ragged(NamedTuple):
    """Row i is values[offsets[i]:offsets[i + 1]]."""
    offsets: Array
    values: Array


class Categorical(NamedTuple):
    """codes [rows], -1 is missing, into the names."""
    codes: Array
    categories: List[str]


class Error(ValueError):
    """The stream is cut short, damaged, or not a stream; or a block does not fit its header."""


class Block(Dict[str, Any]):
    """Columns by name."""
    rows = 0


def groups_of(header: Mapping[str, Any]) -> list[str]:
    """Names of the ragged groups, in order of their first column."""
    return list(dict.fromkeys(c["group"] for c in header["columns"] if c["shape"] == "ragged"))


def _vocab_digests(vocab: Mapping[str, Any]) -> tuple[str, str]:
    ids = b"".join(i.encode("utf-8", "surrogateescape") + b"\0" for i in vocab["id"])
    medians = np.array([float("nan") if m is None else m for m in vocab["median"]], "<f8").tobytes()
    return xxhash.xxh3_128_hexdigest(ids), xxhash.xxh3_128_hexdigest(medians)


def _specials(ids: list[str]) -> int:
    n, bmfm = 0, ids[:1] == ["[UNK]"]
    while n < len(ids) and (ids[n][:1] + ids[n][-1:] == "<>" or (bmfm and ids[n][:1] + ids[n][-1:] == "[]")):
        n += 1
    return n


# ---- header ----

def check_header(h: Any) -> None:
    """Raise Error unless h is a header as scstream(5) describes it."""
    def need(ok: object, what: str) -> None:
        if not ok:
            raise Error("header: " + what)
    need(isinstance(h, dict) and h.get("kind") in KINDS, "unknown kind %r" % (h.get("kind") if isinstance(h, dict) else h))
    need(isinstance(h.get("columns"), list) and 1 <= len(h["columns"]) <= 4096, "expected 1 to 4096 columns")
    need(isinstance(h.get("provenance"), list), "no provenance")
    names: set[str] = set()
    for c in h["columns"]:
        name, kind, shape = (c.get(k) for k in ("name", "type", "shape"))
        need(isinstance(name, str) and name and not set(name) & set("\t\r\n") and name not in names, "column name %r" % (name,))
        names.add(name)
        need(kind in DTYPES or kind == "str", "column %r: unknown type %r" % (name, kind))
        need(shape in ("scalar", "fixed", "ragged"), "column %r: unknown shape %r" % (name, shape))
        need(shape == "scalar" or kind not in ("str", "categorical"), "column %r: %s must be scalar" % (name, kind))
        if shape == "fixed":
            need(isinstance(c.get("n"), int) and 1 <= c["n"] <= 1 << 20, "column %r: n" % name)
        if shape == "ragged":
            need(isinstance(c.get("group"), str) and c["group"], "column %r: no group" % name)
        if kind == "categorical":
            need(isinstance(c.get("categories"), list) and all(isinstance(x, str) for x in c["categories"]), "column %r: categories" % name)
    v = h.get("vocab")
    if v is not None:
        need(all(isinstance(v.get(k), list) for k in ("id", "symbol", "median")) and
             len(v["id"]) == len(v["symbol"]) == len(v["median"]) >= 1, "vocab needs id, symbol and median of one length")
        need(all(v["id"]) and len(set(v["id"])) == len(v["id"]), "vocab: empty or repeated ids")
        need(v.get("special") == _specials(v["id"]), "vocab: special is wrong")
        need((v.get("digest"), v.get("medians_digest")) == _vocab_digests(v), "vocab does not match its digests")


def _encode_header(header: Mapping[str, Any]) -> tuple[Header, bytes]:
    h = dict(header)
    if h.get("vocab"):
        v = dict(h["vocab"])
        v["id"], v["symbol"] = list(v["id"]), list(v["symbol"])
        v["median"] = [None if m is None or m != m else float(m) for m in v["median"]]
        v["special"] = _specials(v["id"])
        v["digest"], v["medians_digest"] = _vocab_digests(v)
        h["vocab"] = v
    else:
        h.pop("vocab", None)
    check_header(h)
    text = json.dumps(h, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "surrogateescape")
    return h, b"scstream" + struct.pack("<HHI", 1, 0, len(text)) + text


# ---- reading ----

class _Input:
    """A file for zstandard, which reads it once; .tail has its last 9 bytes."""

    def __init__(self, file: Any) -> None:
        self.file, self.tail = file, b""

    def read(self, n: int) -> bytes:
        piece: bytes = self.file.read(n)
        self.tail = (self.tail + piece[-9:])[-9:]
        return piece


class Reader:
    """A stream being read: .header, and the blocks by iteration. Memory is bounded by one block."""

    header: Header

    def __init__(self, source: Source, verify: bool = True) -> None:
        self.own = isinstance(source, (str, os.PathLike)) and source != "-"
        self.name = str(source) if self.own else "standard input" if source == "-" else getattr(source, "name", "stream")
        self.file: Any = open(source, "rb", 0) if self.own else open(0, "rb", 0, closefd=False) if source == "-" else source  # type: ignore[arg-type]
        self.hash = xxhash.xxh3_128() if verify else None
        self.input = _Input(self.file)
        self.zstd = zstandard.ZstdDecompressor().stream_reader(self.input, read_size=1 << 20, read_across_frames=True)  # type: ignore[arg-type]
        try:
            self._read_header()
        except BaseException:
            self.close()
            raise

    def _wrong(self, what: str) -> Error:
        return Error("%s: %s" % (self.name, what))

    def _take(self, n: int) -> bytearray:
        """n bytes of payload, or less at the end."""
        data = bytearray(n)
        view, got = memoryview(data), 0
        while got < n:
            try:
                k = self.zstd.readinto(view[got:])
            except zstandard.ZstdError as error:
                raise self._wrong("the stream is cut short or damaged (%s)" % error) from None
            if not k:
                break
            got += k
        return data if got == n else data[:got]

    def _need(self, n: int, hashed: bool = True) -> bytearray:
        data = self._take(n)
        if len(data) < n:
            raise self._wrong("the stream is cut short or damaged")
        if self.hash and hashed:
            self.hash.update(data)
        return data

    def _read_header(self) -> None:
        start = self._take(16)
        if len(start) < 16 or start[:8] != b"scstream":
            raise self._wrong("this is not an scstream")
        major, _, n = struct.unpack("<HHI", start[8:])
        if major != 1:
            raise self._wrong("stream version %d, this program reads version 1" % major)
        if n + 16 > PAYLOAD_MAX:
            raise self._wrong("the header is too large")
        if self.hash:
            self.hash.update(start)
        try:
            text = self._need(n)
            if text and min(text) < 0x20:
                raise Error("header: a control character")
            self.header = json.loads(text.decode("utf-8", "surrogateescape"))
            check_header(self.header)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise error if isinstance(error, Error) and self.name in str(error) else self._wrong(str(error))
        self.groups = groups_of(self.header)

    def _lengths(self, rows: int) -> Array:
        offsets = np.zeros(rows + 1, "<i8")
        np.cumsum(np.frombuffer(self._need(4 * rows), "<u4"), dtype="<i8", out=offsets[1:])
        self._fits(offsets[-1])
        return offsets

    def _fits(self, n: int) -> None:
        if n > PAYLOAD_MAX:
            raise self._wrong("damaged: a block above 256 MiB")

    def _read_block(self, rows: int) -> Block:
        block = Block()
        block.rows = rows
        self._fits(4 * rows)
        offsets = {g: self._lengths(rows) for g in self.groups}
        for c in self.header["columns"]:
            if c["type"] == "str":
                at = self._lengths(rows)
                text = bytes(self._need(int(at[-1])))
                block[c["name"]] = [text[a:b].decode("utf-8", "surrogateescape") for a, b in zip(at[:-1], at[1:])]
                continue
            dtype = np.dtype(DTYPES[c["type"]])
            n = int(offsets[c["group"]][-1]) if c["shape"] == "ragged" else rows * c.get("n", 1) if c["shape"] == "fixed" else rows
            self._fits(n * dtype.itemsize)
            values = np.frombuffer(self._need(n * dtype.itemsize), dtype)
            try:
                _check_values(self.header, c, values)
            except Error as error:
                raise self._wrong(str(error))
            if c["shape"] == "ragged":
                block[c["name"]] = Ragged(offsets[c["group"]], values)
            elif c["shape"] == "fixed":
                block[c["name"]] = values.reshape(rows, c["n"])
            else:
                block[c["name"]] = Categorical(values, c["categories"]) if c["type"] == "categorical" else values
        return block

    def __iter__(self) -> Iterator[Block]:
        rows: list[int] = []
        try:
            while True:
                magic = self._need(4, hashed=False)
                if magic == b"END1":
                    self._end(rows)
                    return
                if magic != b"BLK1":
                    raise self._wrong("damaged after %d rows: expected a block" % sum(rows))
                if self.hash:
                    self.hash.update(magic)
                rows.append(struct.unpack("<I", self._need(4))[0])
                yield self._read_block(rows[-1])
        finally:
            self.close()

    def _end(self, rows: list[int]) -> None:
        total, blocks, low, high = struct.unpack("<QQQQ", self._need(32, hashed=False))
        if blocks != len(rows) or total != sum(rows) or \
                np.frombuffer(self._need(4 * len(rows), hashed=False), "<u4").tolist() != rows:
            raise self._wrong("the stream is damaged: its trailer gives different numbers of rows or blocks")
        if self.hash and self.hash.intdigest() != high << 64 | low:
            raise self._wrong("the content does not match its digest: it is damaged")
        if self._take(1):
            raise self._wrong("bytes after the end of the stream")
        if self.input.tail != struct.pack("<IBI", blocks + 2, 0, SEEK_FOOTER):
            raise self._wrong("the stream is cut short: no seek table")

    def close(self) -> None:
        if self.own:
            self.file.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_values(header: Mapping[str, Any], column: Mapping[str, Any], values: Array) -> None:
    if not values.size:
        return
    if column["type"] == "categorical":
        if values.min() < -1 or values.max() >= len(column["categories"]):
            raise Error("column %r: a code outside the categories" % column["name"])
    elif column["name"] in ID_COLUMNS and column["type"] in ("u16", "u32") and header.get("vocab"):
        if values.max() >= len(header["vocab"]["id"]):
            raise Error("column %r: id %d, but the vocabulary has %d rows" %
                        (column["name"], values.max(), len(header["vocab"]["id"])))


def read(source: Source, verify: bool = True) -> Reader:
    """Open a stream (a path, "-" for standard input, or a binary file) and read its header: a Reader.
    verify=False skips the XXH3 digest; the checksums of the frames are always checked."""
    return Reader(source, verify)


def ends_with(path: Any) -> tuple[int, int]:
    """The numbers of rows and blocks, which the last frame of a file has, without reading the others."""
    try:
        with open(path, "rb") as f:
            f.seek(-9, os.SEEK_END)
            frames, _, footer = struct.unpack("<IBI", f.read(9))
            f.seek(-9 - 8 * frames, os.SEEK_END)
            table = f.read(8 * frames)
            f.seek(-9 - 8 * frames - 8 - struct.unpack("<II", table[-8:])[0], os.SEEK_END)
            end = zstandard.ZstdDecompressor().stream_reader(f).read(20)
        if footer != SEEK_FOOTER or end[:4] != b"END1":
            raise ValueError
        rows, blocks = struct.unpack("<QQ", end[4:])
    except (OSError, ValueError, struct.error, zstandard.ZstdError) as error:
        raise error if isinstance(error, OSError) and error.errno != 22 else Error("%s: the stream is cut short or damaged" % path) from None
    return rows, blocks


# ---- writing ----

class Writer:
    """A stream being written to a path or a binary file object. Use it in a with statement: the trailer is written when the
    body ends well; after an exception the stream stays unfinished and a path is left as it was."""

    def __init__(self, target: Source, header: Mapping[str, Any], level: int = 1) -> None:
        self.header, payload = _encode_header(header)
        self.groups = groups_of(self.header)
        self.zstd, self.hash = zstandard.ZstdCompressor(level, write_checksum=True), xxhash.xxh3_128()
        self.frames: list[tuple[int, int]] = []
        self.rows: list[int] = []
        self.file: Any
        name = target if isinstance(target, (str, os.PathLike)) and target not in ("-", "/dev/stdout") else None
        special = name is not None and os.path.exists(name) and not os.path.isfile(name)        # a pipe, or the shell's /dev/fd/63
        self.path = os.path.realpath(name) if name is not None and not special else None
        if name is not None and special:
            self.file = open(name, "wb", 0)
        elif self.path:
            self.file = temporary(self.path)
        else:
            self.file = sys.stdout.buffer if isinstance(target, str) else target
        self._frame(payload)

    def _frame(self, payload: bytes, hashed: bool = True) -> None:
        if len(payload) > PAYLOAD_MAX:
            raise Error("a payload of %d bytes, the limit is %d" % (len(payload), PAYLOAD_MAX))
        packed = self.zstd.compress(payload)
        self.file.write(packed)
        self.frames.append((len(packed), len(payload)))
        if hashed:
            self.hash.update(payload)

    def write(self, block: Mapping[str, Any]) -> None:
        """Write one block: a dict of the columns of the header."""
        lengths: dict[str, Array] = {}
        out: list[bytes] = []
        rows: int | None = None

        def same_rows(name: str, n: int) -> None:
            nonlocal rows
            rows = n if rows is None else rows
            if n != rows:
                raise Error("column %r has %d rows, others have %d" % (name, n, rows))

        for c in self.header["columns"]:
            name, value = c["name"], block[c["name"]]
            if c["type"] == "str":
                texts = [t.encode("utf-8", "surrogateescape") for t in value]
                same_rows(name, len(texts))
                out += [np.array([len(t) for t in texts], "<u4").tobytes(), b"".join(texts)]
                continue
            if c["shape"] == "ragged":
                offsets, value = np.asarray(value[0]), value[1]
                same_rows(name, len(offsets) - 1)
                each = np.diff(offsets)
                if offsets[0] != 0 or (each < 0).any() or offsets[-1] != len(value):
                    raise Error("column %r: offsets must run from 0 to the number of values" % name)
                if not np.array_equal(lengths.setdefault(c["group"], each), each):
                    raise Error("column %r: its lists differ in length from others of group %r" % (name, c["group"]))
            elif c["type"] == "categorical" and isinstance(value, tuple):
                value = value[0]
            value, dtype = np.asarray(value), np.dtype(DTYPES[c["type"]])
            with np.errstate(all="ignore"):
                values = np.ascontiguousarray(value.astype(dtype))
            if dtype.kind != "f" and not (values == value).all():
                raise Error("column %r: values do not fit %s" % (name, c["type"]))
            if c["shape"] == "fixed" and values.shape[1:] != (c["n"],):
                raise Error("column %r: shape %s, expected rows x %d" % (name, values.shape, c["n"]))
            if c["shape"] != "ragged":
                same_rows(name, len(values))
            _check_values(self.header, c, values)
            out.append(values.tobytes())
        head = [b"BLK1", struct.pack("<I", rows or 0)] + [lengths[g].astype("<u4").tobytes() for g in self.groups]
        self._frame(b"".join(head + out))
        self.rows.append(rows or 0)

    def commit(self) -> None:
        digest = self.hash.intdigest()
        self._frame(b"END1" + struct.pack("<QQQQ", sum(self.rows), len(self.rows), digest & (1 << 64) - 1, digest >> 64) +
                    np.array(self.rows, "<u4").tobytes(), hashed=False)
        n = len(self.frames)
        self.file.write(struct.pack("<II", SEEK_MAGIC, 8 * n + 9) + np.array(self.frames, "<u4").tobytes() +
                        struct.pack("<IBI", n, 0, SEEK_FOOTER))
        self.file.flush()
        if self.path:
            put_in_place(self.file, self.path)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            try:
                self.commit()
                return
            except BaseException:
                self._abandon()
                raise
        self._abandon()

    def _abandon(self) -> None:
        if self.path:
            abandon(self.file)


def write(target: Source, header: Mapping[str, Any], blocks: Iterable[Mapping[str, Any]], level: int = 1) -> None:
    """Write blocks (dicts) to a path, "-" for standard output, or a binary file. special and the digests of header["vocab"]
    are computed here, so id, symbol and median are enough."""
    with Writer(target, header, level) as w:
        for block in blocks:
            w.write(block)


# ---- scipy, AnnData ----

# The list column that holds the values of the genes in another one
VALUES = {"gene": ("count",), "token": ("value",), "neighbour": ("rho", "npmi", "score")}


def _rows_of(stream: Reader, name: str, value: str | None) -> tuple[list[Block], scipy.sparse.csr_matrix]:
    """All blocks, and the matrix of the lists `name` (columns) and `value` (values, or 1)."""
    import scipy.sparse
    blocks = list(stream)
    lengths = [np.diff(b[name].offsets) for b in blocks] + [np.zeros(0, "i8")]
    columns = np.concatenate([b[name].values for b in blocks] + [np.zeros(0, "i8")]).astype("i8")
    kind = next(c["type"] for c in stream.header["columns"] if c["name"] == value) if value else "u8"
    values = np.concatenate([b[value].values for b in blocks] + [np.zeros(0, DTYPES[kind])]) if value else np.ones(len(columns), "u1")
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    matrix = scipy.sparse.csr_matrix((values, columns, offsets), shape=(len(offsets) - 1, len(stream.header["vocab"]["id"])))
    matrix.sort_indices()
    return blocks, matrix


def _gene_lists(stream: Reader) -> tuple[str, str | None]:
    names = [c["name"] for c in stream.header["columns"] if c["shape"] == "ragged"]
    for name, values in VALUES.items():
        if name in names and stream.header.get("vocab"):
            return name, next((v for v in values if v in names), None)
    raise Error("%s: this %s stream has no list of genes for a row: expected counts, tokens or a graph" % (stream.name, stream.header["kind"]))


def to_scipy(source: Source | Reader) -> scipy.sparse.csr_matrix:
    """A matrix of the rows of a stream and the genes of its vocabulary (header["vocab"]["id"]): of counts the counts, of tokens the values, or 1
    if it has none, of a graph the weights. All of it is in memory. Needs scipy."""
    with source if isinstance(source, Reader) else Reader(source) as stream:
        return _rows_of(stream, *_gene_lists(stream))[1]


def to_anndata(source: Source | Reader) -> anndata.AnnData:
    """The cells of a stream as AnnData: scalar columns are obs (barcodes its index), vectors obsm (x of an embedding is X_corrmask), and counts X,
    with the vocabulary as var. scview -O h5ad makes a file of it, also of cells that do not fit in memory. Needs anndata."""
    import anndata
    import pandas
    with source if isinstance(source, Reader) else Reader(source) as stream:
        columns = stream.header["columns"]
        counts = any(c["name"] == "gene" for c in columns)
        blocks, matrix = _rows_of(stream, *_gene_lists(stream)) if counts else (list(stream), None)
    obs: dict[str, Any] = {}
    obsm: dict[str, Any] = {}
    for c in columns:
        if counts and c["name"] in ("cell", "n_counts"):        # of all counts: the number of the row, and its sum
            continue
        parts = [b[c["name"]] for b in blocks]
        if c["shape"] == "fixed":
            obsm["X_corrmask" if c["name"] == "x" else c["name"]] = np.concatenate(parts + [np.zeros((0, c["n"]), DTYPES[c["type"]])])
        elif c["shape"] == "scalar" and c["type"] == "categorical":
            codes = np.concatenate([p.codes for p in parts] + [np.zeros(0, "i4")])
            obs[c["name"]] = pandas.Categorical.from_codes(codes, c["categories"])
        elif c["shape"] == "scalar" and c["type"] == "str":
            obs[c["name"]] = [text for p in parts for text in p]
        elif c["shape"] == "scalar":
            obs[c["name"]] = np.concatenate(parts + [np.zeros(0, DTYPES[c["type"]])])
    index = obs.pop("barcode", None)
    rows = sum(b.rows for b in blocks)
    frame = pandas.DataFrame(obs, index=index if index is not None else [str(i) for i in range(rows)])
    if matrix is None:
        return anndata.AnnData(obs=frame, obsm=obsm)
    v = stream.header["vocab"]
    return anndata.AnnData(X=matrix, obs=frame, obsm=obsm, var=pandas.DataFrame({"symbol": v["symbol"]}, index=v["id"]))


# ---- PyTorch ----

def _dataset_class() -> Any:
    try:
        import torch
        import torch.utils.data
    except ImportError:
        raise ImportError("stream.Dataset needs PyTorch, which this Python lacks: install the Debian package python3-torch, or pip install torch") from None

    def tensor(values: Array) -> Any:
        return torch.from_numpy(values.astype("f4" if values.dtype.kind == "f" else "i8"))

    class Dataset(torch.utils.data.IterableDataset):  # type: ignore[misc]
        """The rows of a stream, each a dict of its columns: lists and vectors are tensors (int64 or float32), scalars are numbers and texts,
        categories their codes (-1 is missing; header["columns"] has the names). With blocks=True an item is a whole block, as Reader gives it:
        in a masked stream that is a batch (DataLoader(..., batch_size=None, collate_fn=stream.padded)). The first `start` items are left out.

        Every worker of a DataLoader reads the whole file and keeps each n-th item; a DataLoader without batches (batch_size=None) gives
        the items in the order of the stream. The ranks of a distributed run: shard=rank, shards=ranks, or `maskgen --shard`. All items are
        checked as Reader does, so a damaged stream raises stream.Error in the last item at the latest. len() is the number of items."""

        def __init__(self, source: Source, blocks: bool = False, shard: int = 0, shards: int = 1, start: int = 0) -> None:
            if not 0 <= shard < shards:
                raise ValueError("shard %d of %d" % (shard, shards))
            if start < 0:
                raise ValueError("start %d: expected 0 or more" % start)
            self.source, self.blocks, self.shard, self.shards, self.start = source, blocks, shard, shards, start
            self.reader: Reader | None = Reader(source)
            self.header = self.reader.header
            if self.reader.own and self.reader.file.seekable():         # opened anew by every iterator; a named pipe cannot be
                self.reader.close()
                self.reader = None

        def __len__(self) -> int:
            """The number of items of this shard, which the end of a file says. A pipe has no length: TypeError."""
            if self.reader:
                raise TypeError("%s: a pipe has no length" % self.reader.name)
            rows, blocks = ends_with(self.source)
            return len(range(self.shard, blocks if self.blocks else rows, self.shards)[self.start:])

        def __iter__(self) -> Iterator[Any]:
            worker = torch.utils.data.get_worker_info()
            number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
            if not self.reader:
                return self._items(Reader(self.source), number, workers)
            if workers > 1:
                raise Error("%s: a pipe can have one reader: num_workers=0 or 1" % self.reader.name)
            if self.reader.file is None:
                raise Error("%s: a pipe can be read once" % self.reader.name)
            return self._items(self.reader, 0, 1)

        def _items(self, reader: Reader, number: int, workers: int) -> Iterator[Any]:
            n = 0
            for block in reader:
                for row in range(1 if self.blocks else block.rows):
                    item = n // self.shards - self.start
                    if n % self.shards == self.shard and item >= 0 and item % workers == number:
                        yield block if self.blocks else self._row(block, row)
                    n += 1
            if self.reader:
                self.reader.file = None

        def _row(self, block: Block, row: int) -> dict[str, Any]:
            out: dict[str, Any] = {}
            for c in self.header["columns"]:
                value = block[c["name"]]
                if c["shape"] == "ragged":
                    out[c["name"]] = tensor(value.values[value.offsets[row]:value.offsets[row + 1]])
                elif c["shape"] == "fixed":
                    out[c["name"]] = tensor(value[row])
                else:
                    value = value.codes if isinstance(value, Categorical) else value
                    out[c["name"]] = value[row] if c["type"] == "str" else value[row].item()
            return out

    Dataset.__module__, Dataset.__qualname__ = "corrmask.stream", "Dataset"        # so that workers which do not fork can find it
    return Dataset


def padded(block: Block) -> dict[str, Any]:
    """A batch of maskgen as models of transformers take it, in tensors of int64: input_ids, attention_mask, and labels, which are -100 where
    nothing is masked; of tokens with ranks (rankenc --ties group) also position_ids. For Dataset(..., blocks=True). Needs PyTorch."""
    import torch
    if "position" not in block or {"value", "input_value"} & set(block):
        raise Error("expected masked tokens (maskgen --objective token), found the columns " + ", ".join(block))
    (offsets, _), (at, position) = block["input"], block["position"]
    lengths = offsets[1:] - offsets[:-1]
    shape = block.rows, int(lengths.max(initial=0))

    def rows_of(values: Array) -> Array:
        out = np.zeros(shape, "i8")
        for row, start, n in zip(out, offsets, lengths):
            row[:n] = values[start:start + n]
        return out

    labels = np.full(shape, -100, "i8")
    labels[np.repeat(np.arange(block.rows), at[1:] - at[:-1]), position] = block["target"].values
    batch = {"input_ids": rows_of(block["input"].values), "attention_mask": (np.arange(shape[1]) < lengths[:, None]).astype("i8"), "labels": labels}
    if "rank" in block:
        batch["position_ids"] = rows_of(block["rank"].values)
    return {name: torch.from_numpy(values) for name, values in batch.items()}


def __getattr__(name: str) -> Any:
    """Dataset is made when it is first used, because it takes seconds to import PyTorch."""
    if name != "Dataset":
        raise AttributeError("module 'corrmask.stream' has no attribute %r" % name)
    globals()["Dataset"] = _dataset_class()
    return globals()["Dataset"]
