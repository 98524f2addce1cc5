#!/usr/bin/env python3
"""Read and write scstreams, the streams of corrmask's tools, as numpy arrays. The format is in scstream(5).

    import scstream

    stream = scstream.read("cells.tok")          # a path, "-" for standard input, or a binary file object
    print(stream.header["kind"], stream.header["vocab"]["id"][:5])
    for block in stream:                         # one block at a time; raises scstream.Error unless the stream is whole
        block.rows                               # number of rows
        block["n_counts"]                        # scalar: array [rows]; fixed: array [rows, n]; str: list of str
        offsets, values = block["token"]         # ragged: row i is values[offsets[i]:offsets[i + 1]]
        codes, categories = block["cell_type"]   # categorical: codes [rows], -1 is missing

    scstream.write("out.tok", stream.header, blocks)        # blocks: dicts of the same shapes
    maskgen ... | python3 train.py                          # scstream.read("-") in train.py

    cells = scstream.Dataset("cells.tok")                   # for torch.utils.data.DataLoader, with any number of workers
    row = next(iter(cells))                                 # the columns of one cell: tensors, numbers and texts

As a command it converts Hugging Face datasets and Geneformer's dictionaries: scstream.py --help.
Needs numpy and the zstd command; Dataset needs PyTorch, and datasets need pyarrow.
"""
import collections
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading


def _spare_addresses():
    """OpenBLAS, which numpy loads, waits for ever where a limit (ulimit -v) leaves no addresses for its threads: have one."""
    try:
        import resource
    except ImportError:
        return
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"


if __name__ == "__main__":
    _spare_addresses()

try:
    import numpy as np
except ModuleNotFoundError:
    if __name__ != "__main__":
        raise
    sys.exit("scstream.py: this Python has no numpy: install the Debian package python3-numpy, or pip install numpy")

VERSION = "0.1.0"
KINDS = ("counts", "tokens", "masked", "masked-counts", "graph", "embedding", "prediction")
DTYPES = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "i8": "<i1", "i16": "<i2", "i32": "<i4", "i64": "<i8",
          "f32": "<f4", "f64": "<f8", "categorical": "<i4"}     # a missing code, 0xFFFFFFFF, is -1
ID_COLUMNS = ("gene", "token", "input", "target", "neighbour", "masked")
PAYLOAD_MAX = 256 << 20
SEEK_MAGIC, SEEK_FOOTER = 0x184D2A5E, 0x8F92EAB1

Ragged = collections.namedtuple("Ragged", "offsets values")
Categorical = collections.namedtuple("Categorical", "codes categories")


NO_ZSTD = "the command zstd is needed, and it is not on PATH (Debian package zstd)"


class Error(ValueError):
    """The stream is cut short, damaged, or not a stream; or a block does not fit its header."""


class Block(dict):
    """Columns by name."""
    rows = 0


def groups_of(header):
    """Names of the ragged groups, in order of their first column."""
    return list(dict.fromkeys(c["group"] for c in header["columns"] if c["shape"] == "ragged"))


# ---- XXH3-128, seed 0 [https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md] ----

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P64_4, _P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_M64 = (1 << 64) - 1


def _u32(b, at):
    return int.from_bytes(b[at:at + 4], "little")


def _u64(b, at):
    return int.from_bytes(b[at:at + 8], "little")


def _fold(a, b):
    p = a * b
    return (p & _M64) ^ (p >> 64)


def _avalanche(h):
    h ^= h >> 37
    h = h * 0x165667919E3779F9 & _M64
    return h ^ h >> 32


def _avalanche64(h):
    h = (h ^ h >> 33) * _P64_2 & _M64
    h = (h ^ h >> 29) * _P64_3 & _M64
    return h ^ h >> 32


def _short(d):
    """Inputs of up to 16 bytes: (low, high)."""
    n, s = len(d), _SECRET
    if n > 8:
        lo, hi = _u64(d, 0), _u64(d, n - 8)
        m = (lo ^ hi ^ _u64(s, 32) ^ _u64(s, 40)) * _P64_1
        low, high = m + (n - 1 << 54) & _M64, m >> 64
        hi ^= _u64(s, 48) ^ _u64(s, 56)
        high = high + hi + (hi & 0xFFFFFFFF) * (_P32_2 - 1) & _M64
        low ^= int.from_bytes(high.to_bytes(8, "little"), "big")
        m = low * _P64_2
        return _avalanche(m & _M64), _avalanche((m >> 64) + high * _P64_2 & _M64)
    if n >= 4:
        m = (_u32(d, 0) + (_u32(d, n - 4) << 32) ^ _u64(s, 16) ^ _u64(s, 24)) * (_P64_1 + (n << 2))
        low, high = m & _M64, m >> 64
        high = high + (low << 1) & _M64
        low ^= high >> 3
        low = (low ^ low >> 35) * 0x9FB21C651E98DF25 & _M64
        return low ^ low >> 28, _avalanche(high)
    if n:
        a = d[0] << 16 | d[n >> 1] << 24 | d[n - 1] | n << 8
        b = int.from_bytes(a.to_bytes(4, "little"), "big")
        b = (b << 13 | b >> 19) & 0xFFFFFFFF
        return _avalanche64(a ^ _u32(s, 0) ^ _u32(s, 4)), _avalanche64(b ^ _u32(s, 8) ^ _u32(s, 12))
    return _avalanche64(_u64(s, 64) ^ _u64(s, 72)), _avalanche64(_u64(s, 80) ^ _u64(s, 88))


def _medium(d):
    """Inputs of 17 to 240 bytes."""
    n, s = len(d), _SECRET
    low, high = n * _P64_1 & _M64, 0

    def mix(one, two, at):
        nonlocal low, high
        low = low + _fold(_u64(d, one) ^ _u64(s, at), _u64(d, one + 8) ^ _u64(s, at + 8)) & _M64
        low ^= _u64(d, two) + _u64(d, two + 8) & _M64
        high = high + _fold(_u64(d, two) ^ _u64(s, at + 16), _u64(d, two + 8) ^ _u64(s, at + 24)) & _M64
        high ^= _u64(d, one) + _u64(d, one + 8) & _M64

    if n <= 128:
        for i in reversed(range((n - 1) // 32 + 1)):
            mix(16 * i, n - 16 * (i + 1), 32 * i)
    else:
        for i in range(4):
            mix(32 * i, 32 * i + 16, 32 * i)
        low, high = _avalanche(low), _avalanche(high)
        for i in range(4, n // 32):
            mix(32 * i, 32 * i + 16, 3 + 32 * (i - 4))
        mix(n - 16, n - 32, 103)
    return (_avalanche(low + high & _M64),
            -_avalanche(low * _P64_1 + high * _P64_4 + n * _P64_2 & _M64) & _M64)


def _words(at, n):
    return np.frombuffer(_SECRET[at:at + 8 * n], "<u8")


class XXH3:
    """XXH3-128 of bytes given in pieces. Blocks of 1,024 bytes are summed with numpy; only their end is sequential."""
    STRIPES = np.stack([_words(8 * i, 8) for i in range(16)])
    SCRAMBLE, LAST = _words(128, 8), _words(121, 8)
    STEP = 256 << 10

    def __init__(self):
        self.acc = np.array([_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1], "<u8")
        self.rest = b""         # not yet summed: at least a byte once there was one, and after that at most 1,024
        self.before = b""       # the 64 bytes before rest
        self.n = 0

    @staticmethod
    def _sum(data, secret):
        """data [.., stripes, 8]: what each run of stripes adds to the accumulators."""
        key = data ^ secret
        key = (key & np.uint64(0xFFFFFFFF)) * (key >> np.uint64(32))
        key += data.reshape(data.shape[:-1] + (4, 2))[..., ::-1].reshape(data.shape)
        return key.sum(axis=-2, dtype="<u8")

    def _blocks(self, data):
        """Take in whole blocks of 1,024 bytes."""
        acc, tmp, k47, prime = self.acc, np.empty(8, "<u8"), np.uint64(47), np.uint64(_P32_1)
        for at in range(0, len(data), self.STEP):
            part = np.frombuffer(data[at:at + self.STEP], "<u8").reshape(-1, 16, 8)
            for add in self._sum(part, self.STRIPES):
                acc += add
                np.right_shift(acc, k47, tmp)
                acc ^= tmp
                acc ^= self.SCRAMBLE
                acc *= prime
        self.before = bytes(data[-64:])

    def update(self, data):
        data = memoryview(data).cast("B")
        self.n += len(data)
        if len(self.rest) + len(data) <= 1024:
            self.rest += data
            return
        if self.rest:
            head = 1024 - len(self.rest)
            self._blocks(memoryview(self.rest + data[:head]))
            data = data[head:]
        whole = (len(data) - 1) // 1024 * 1024 if len(data) else 0
        if whole:
            self._blocks(data[:whole])
        self.rest = bytes(data[whole:])

    def digest(self):
        """(lower 64 bits, upper 64 bits)"""
        if self.n <= 16:
            return _short(self.rest)
        if self.n <= 240:
            return _medium(self.rest)
        stripes = (len(self.rest) - 1) // 64
        acc = self.acc.copy()
        if stripes:
            part = np.frombuffer(self.rest[:64 * stripes], "<u8").reshape(-1, 8)
            acc += self._sum(part, self.STRIPES[:stripes])
        acc += self._sum(np.frombuffer((self.before + self.rest)[-64:], "<u8").reshape(1, 8), self.LAST)
        acc = [int(a) for a in acc]

        def merge(at, start):
            return _avalanche(start + sum(_fold(acc[2 * i] ^ _u64(_SECRET, at + 16 * i), acc[2 * i + 1] ^ _u64(_SECRET, at + 16 * i + 8))
                                          for i in range(4)) & _M64)
        return merge(11, self.n * _P64_1 & _M64), merge(117, ~(self.n * _P64_2) & _M64)

    def hex(self):
        return "%016x%016x" % self.digest()[::-1]


def _vocab_digests(vocab):
    ids, medians = XXH3(), XXH3()
    ids.update(b"".join(i.encode("utf-8", "surrogateescape") + b"\0" for i in vocab["id"]))
    medians.update(np.array([float("nan") if m is None else m for m in vocab["median"]], "<f8").tobytes())
    return ids.hex(), medians.hex()


def _specials(ids):
    n = 0
    while n < len(ids) and ids[n].startswith("<") and ids[n].endswith(">"):
        n += 1
    return n


# ---- header ----

def check_header(h):
    """Raise Error unless h is a header as scstream(5) describes it."""
    def need(ok, what):
        if not ok:
            raise Error("header: " + what)
    need(isinstance(h, dict) and h.get("kind") in KINDS, "unknown kind %r" % (h.get("kind") if isinstance(h, dict) else h))
    need(isinstance(h.get("columns"), list) and 1 <= len(h["columns"]) <= 4096, "expected 1 to 4096 columns")
    need(isinstance(h.get("provenance"), list), "no provenance")
    names = set()
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


def _encode_header(header):
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

class Reader:
    """A stream being read: .header, and the blocks by iteration. Memory is bounded by one block."""

    def __init__(self, source, verify=True):
        self.own = isinstance(source, (str, os.PathLike)) and source != "-"
        self.name = str(source) if self.own else "standard input" if source == "-" else getattr(source, "name", "stream")
        # unbuffered: a thread left waiting in a buffered standard input would hold its lock when Python ends
        self.file = open(source, "rb", 0) if self.own else open(0, "rb", 0, closefd=False) if source == "-" else source
        self.hash = XXH3() if verify else None
        self.tail, self.failed = b"", None
        try:
            self.zstd = subprocess.Popen(["zstd", "-dcq"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except FileNotFoundError:
            raise Error(NO_ZSTD) from None
        self.pump = threading.Thread(target=self._pump, daemon=True)
        self.pump.start()
        try:
            self._read_header()
        except BaseException:
            self.close()
            raise

    def _pump(self):
        try:
            while True:
                piece = self.file.read(1 << 20)
                if not piece:
                    break
                self.tail = (self.tail + piece[-9:])[-9:]
                self.zstd.stdin.write(piece)
            self.zstd.stdin.close()
        except (OSError, ValueError) as error:  # zstd has stopped: it says why
            self.failed = error

    def _wrong(self, what):
        return Error("%s: %s" % (self.name, what))

    def _take(self, n):
        """n bytes of payload, or less at the end."""
        data = bytearray(n)
        view, got = memoryview(data), 0
        while got < n:
            k = self.zstd.stdout.readinto(view[got:])
            if not k:
                break
            got += k
        return data if got == n else data[:got]

    def _need(self, n, hashed=True):
        data = self._take(n)
        if len(data) < n:
            self.zstd.wait()
            why = self.zstd.stderr.read().decode(errors="replace").strip().splitlines()
            raise self._wrong("the stream is cut short or damaged" + (" (%s)" % why[-1] if why else ""))
        if self.hash and hashed:
            self.hash.update(data)
        return data

    def _read_header(self):
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

    def _lengths(self, rows):
        offsets = np.zeros(rows + 1, "<i8")
        np.cumsum(np.frombuffer(self._need(4 * rows), "<u4"), dtype="<i8", out=offsets[1:])
        self._fits(offsets[-1])
        return offsets

    def _fits(self, n):
        if n > PAYLOAD_MAX:
            raise self._wrong("damaged: a block above 256 MiB")

    def _read_block(self, rows):
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

    def __iter__(self):
        rows = []
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

    def _end(self, rows):
        total, blocks, low, high = struct.unpack("<QQQQ", self._need(32, hashed=False))
        if blocks != len(rows) or total != sum(rows) or \
                np.frombuffer(self._need(4 * len(rows), hashed=False), "<u4").tolist() != rows:
            raise self._wrong("the stream is damaged: its trailer gives different numbers of rows or blocks")
        if self.hash and self.hash.digest() != (low, high):
            raise self._wrong("the content does not match its digest: it is damaged")
        if self._take(1) or self.zstd.wait() or self.failed:
            raise self._wrong("bytes after the end of the stream, or a damaged seek table")
        self.pump.join()
        if self.tail != struct.pack("<IBI", blocks + 2, 0, SEEK_FOOTER):
            raise self._wrong("the stream is cut short: no seek table")

    def close(self):
        self.zstd.stdout.close()
        if self.zstd.poll() is None:
            self.zstd.kill()
        self.zstd.wait()
        self.zstd.stderr.close()
        if self.own:
            self.pump.join()
            self.file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _check_values(header, column, values):
    if not values.size:
        return
    if column["type"] == "categorical":
        if values.min() < -1 or values.max() >= len(column["categories"]):
            raise Error("column %r: a code outside the categories" % column["name"])
    elif column["name"] in ID_COLUMNS and column["type"] in ("u16", "u32") and header.get("vocab"):
        if values.max() >= len(header["vocab"]["id"]):
            raise Error("column %r: id %d, but the vocabulary has %d rows" %
                        (column["name"], values.max(), len(header["vocab"]["id"])))


def read(source, verify=True):
    """Open a stream (a path, "-" for standard input, or a binary file) and read its header: a Reader.
    verify=False skips the XXH3 digest; the checksums of the frames are always checked."""
    return Reader(source, verify)


# ---- writing ----

def temporary(path):
    """A file beside `path`, for its owner alone, which put_in_place or abandon ends. path has no symbolic links (os.path.realpath)."""
    try:
        os.lstat(path)
    except FileNotFoundError:       # a name that is too long is refused now, not after the work
        pass
    folder, name = (os.fsencode(x) for x in os.path.split(path))
    room = max(0, min(255, 4094 - len(folder)) - len(".tmp.") - 8)
    return tempfile.NamedTemporaryFile(dir=os.path.dirname(path), prefix=os.fsdecode(name[:room]) + ".tmp.", delete=False)


def put_in_place(file, path):
    """The complete file takes the place of path, with the permissions of what it replaces, or those of a new file."""
    file.flush()
    try:
        mode = os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    os.chmod(file.name, mode)
    os.fsync(file.fileno())
    file.close()
    os.replace(file.name, path)
    sync_folder(os.path.dirname(path))


def sync_folder(path):
    """The names in a folder are on disk only when the folder is."""
    folder = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError:
        pass  # some file systems cannot do that
    finally:
        os.close(folder)


def abandon(file):
    if os.path.exists(file.name):
        file.close()
        os.unlink(file.name)


class Writer:
    """A stream being written to a path or a binary file object. Use it in a with statement: the trailer is written when the
    body ends well; after an exception the stream stays unfinished and a path is left as it was."""

    def __init__(self, target, header, level=1):
        self.header, payload = _encode_header(header)
        self.groups = groups_of(self.header)
        self.level, self.hash, self.frames, self.rows = level, XXH3(), [], []
        named = isinstance(target, (str, os.PathLike)) and target not in ("-", "/dev/stdout")
        special = named and os.path.exists(target) and not os.path.isfile(target)       # a pipe, or the shell's /dev/fd/63
        self.path = os.path.realpath(target) if named and not special else None
        if special:
            self.file = open(target, "wb", 0)
        elif self.path:
            self.file = temporary(self.path)
        else:
            self.file = sys.stdout.buffer if isinstance(target, str) else target
        self._frame(payload)

    def _frame(self, payload, hashed=True):
        if len(payload) > PAYLOAD_MAX:
            raise Error("a payload of %d bytes, the limit is %d" % (len(payload), PAYLOAD_MAX))
        try:
            packed = subprocess.run(["zstd", "-qc", "-%d" % self.level, "--check", "--stream-size=%d" % len(payload)],
                                    input=payload, stdout=subprocess.PIPE, check=True).stdout
        except FileNotFoundError:
            raise Error(NO_ZSTD) from None
        self.file.write(packed)
        self.frames.append((len(packed), len(payload)))
        if hashed:
            self.hash.update(payload)

    def write(self, block):
        """Write one block: a dict of the columns of the header."""
        lengths, out, rows = {}, [], None

        def same_rows(name, n):
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
        head = [b"BLK1", struct.pack("<I", rows)] + [lengths[g].astype("<u4").tobytes() for g in self.groups]
        self._frame(b"".join(head + out))
        self.rows.append(rows)

    def commit(self):
        low, high = self.hash.digest()
        self._frame(b"END1" + struct.pack("<QQQQ", sum(self.rows), len(self.rows), low, high) +
                    np.array(self.rows, "<u4").tobytes(), hashed=False)
        n = len(self.frames)
        self.file.write(struct.pack("<II", SEEK_MAGIC, 8 * n + 9) + np.array(self.frames, "<u4").tobytes() +
                        struct.pack("<IBI", n, 0, SEEK_FOOTER))
        self.file.flush()
        if self.path:
            put_in_place(self.file, self.path)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            try:
                self.commit()
                return
            except BaseException:
                self._abandon()
                raise
        self._abandon()

    def _abandon(self):
        if self.path:
            abandon(self.file)


def write(target, header, blocks, level=1):
    """Write blocks (dicts) to a path, "-" for standard output, or a binary file. special and the digests of header["vocab"]
    are computed here, so id, symbol and median are enough."""
    with Writer(target, header, level) as w:
        for block in blocks:
            w.write(block)


# ---- PyTorch ----

def _dataset_class():
    try:
        import torch
        import torch.utils.data
    except ImportError:
        raise ImportError("scstream.Dataset needs PyTorch, which this Python does not have: install the Debian package python3-torch, or pip install torch") from None

    def tensor(values):
        return torch.from_numpy(values.astype("f4" if values.dtype.kind == "f" else "i8"))

    class Dataset(torch.utils.data.IterableDataset):
        """The rows of a stream, each a dict of its columns: lists and vectors are tensors (int64 or float32), scalars are numbers and texts,
        categories their codes (-1 is missing; header["columns"] has the names). With blocks=True an item is a whole block, as Reader gives it:
        in a masked stream that is a batch (DataLoader(..., batch_size=None)).

        Every worker of a DataLoader reads the whole file and keeps each n-th item; a DataLoader without batches (batch_size=None) gives
        the items in the order of the stream. The ranks of a distributed run: shard=rank, shards=ranks, or `maskgen --shard`. All items are
        checked as Reader does, so a damaged stream raises scstream.Error in the last item at the latest."""

        def __init__(self, source, blocks=False, shard=0, shards=1):
            if not 0 <= shard < shards:
                raise ValueError("shard %d of %d" % (shard, shards))
            self.source, self.blocks, self.shard, self.shards = source, blocks, shard, shards
            self.reader = Reader(source)
            self.header = self.reader.header
            if self.reader.own:             # opened anew by every iterator
                self.reader.close()
                self.reader = None

        def __iter__(self):
            worker = torch.utils.data.get_worker_info()
            number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
            if not self.reader:
                return self._items(Reader(self.source), number, workers)
            if workers > 1:
                raise Error("%s: a pipe can have one reader: num_workers=0 or 1" % self.reader.name)
            if self.reader.file is None:
                raise Error("%s: a pipe can be read once" % self.reader.name)
            return self._items(self.reader, 0, 1)

        def _items(self, reader, number, workers):
            n = 0
            for block in reader:
                for row in (None,) if self.blocks else range(block.rows):
                    if n % self.shards == self.shard and n // self.shards % workers == number:
                        yield block if self.blocks else self._row(block, row)
                    n += 1
            if self.reader:
                self.reader.file = None

        def _row(self, block, row):
            out = {}
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

    Dataset.__module__, Dataset.__qualname__ = "scstream", "Dataset"        # so that workers which do not fork can find it
    return Dataset


def __getattr__(name):
    """Dataset is made when it is first used, because it takes seconds to import PyTorch."""
    if name != "Dataset":
        raise AttributeError("module 'scstream' has no attribute %r" % name)
    globals()["Dataset"] = _dataset_class()
    return globals()["Dataset"]


USAGE = """Usage: scstream.py FILE                   print the header of a stream (- is standard input); of the vocabulary only its size
       scstream.py COMMAND [OPTION...]    (scstream.py COMMAND --help says more)

  from-dataset     a Hugging Face dataset of tokens to a tokens stream
  to-dataset       a tokens stream to a Hugging Face dataset
  from-geneformer  Geneformer's dictionaries to a vocabulary for rankenc -m
  to-geneformer    a vocabulary to Geneformer's dictionaries"""
COMMANDS = ("from-dataset", "to-dataset", "from-geneformer", "to-geneformer")


def print_header(path):
    with read(path) as stream:
        h = dict(stream.header)
        if h.get("vocab"):
            h["vocab"] = {k: v if not isinstance(v, list) else "%d rows" % len(v) for k, v in h["vocab"].items()}
        print(json.dumps(h, indent=1, ensure_ascii=False))


def main(argv=None):
    argv = sys.argv if argv is None else argv
    if len(argv) == 2 and argv[1] in ("-V", "--version"):
        print("scstream.py %s (scstream 1.0)" % VERSION)
        return 0
    if argv[1:] in (["-h"], ["--help"]) or (len(argv) != 2 and argv[1:2] not in [[c] for c in COMMANDS]):
        asked = argv[1:] in (["-h"], ["--help"])
        print(USAGE, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    try:
        if argv[1] in COMMANDS:
            import scstream_convert
            scstream_convert.main(argv[1:])
        else:
            print_header(argv[1])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except MemoryError:
        print("scstream.py: out of memory", file=sys.stderr)
        return 1
    except (Error, OSError, RuntimeError) as error:     # RuntimeError: no thread can be started
        print("scstream.py: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    import scstream         # the same module that the conversions import
    sys.exit(scstream.main())
