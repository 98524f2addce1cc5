"""Which model is it, and which vocabulary does it read? The one place that says so, for make, the tools' user and Python (`scstream model --help`).

A model is the folder of one that sctrain wrote, of a Geneformer as it lies on the hub (whose dictionaries stand in the folder, in the one above, or in
the folder geneformer of the repository), of one of transformers with a vocabulary of yours, or a released BMFM-RNA. It becomes a folder that the tools
read: config.json, weights and vocab.tsv. No module beside the standard library is needed, but for BMFM-RNA."""
from __future__ import annotations

import gzip
import json
import os
import pickle
import struct
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from corrmask._tools import Error, save

HUB = "a Geneformer is downloaded from huggingface.co/ctheodoris/Geneformer (git lfs clone), and %s is one of its folders, such as Geneformer/Geneformer-V2-104M"
TOKENS, MEDIANS, NAMES, MAPPING = "token_dictionary", "gene_median_dictionary", "gene_name_id_dict", "ensembl_mapping_dict"
ENDINGS = (".pkl", ".tsv", ".tsv.gz")       # of dictionaries that are looked for
PADDING = 512       # most rows that embeddings have more than tokens, for speed
COLUMNS = ["token", "gene_id", "symbol", "median", "aliases"]


class Names(NamedTuple):
    """What the caller calls the model, the vocabulary and Geneformer's tokens: options, or variables of make (MODEL=)."""
    model: str = ""
    vocab: str = "--vocab"
    tokens: str = "--tokens"


def _spell(name: str, value: str) -> str:
    return name + ("" if name[-1:] in ("", "=") else " ") + value


# ---- dictionaries ----

class _Dtype:
    """numpy.dtype, as far as the pickle of a number needs it."""
    CODES = {"i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "f4": "f", "f8": "d"}

    def __init__(self, code: str, *_: Any) -> None:
        self.code, self.order = self.CODES[code], "<"

    def __setstate__(self, state: Tuple[Any, ...]) -> None:
        self.order = ">" if state[1] == ">" else "<"


def _scalar(dtype: _Dtype, value: bytes) -> Any:
    return struct.unpack(dtype.order + dtype.code, value)[0]


class _Unpickler(pickle.Unpickler):
    """A pickle can call any function. One of names and numbers needs only these."""
    ALLOWED = {("numpy.core.multiarray", "scalar"): _scalar, ("numpy._core.multiarray", "scalar"): _scalar, ("numpy", "dtype"): _Dtype}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError("it calls %s.%s" % (module, name))
        return self.ALLOWED[module, name]


def _check_lfs(path: str, head: bytes) -> None:
    if head.startswith(b"version https://git-lfs"):
        raise Error("%s: a pointer of git-lfs in place of the file: git lfs pull brings it" % path)


def read_pickle(path: str) -> Dict[str, Any]:
    """A dictionary of names and numbers, or of names and names."""
    with open(path, "rb") as f:
        _check_lfs(path, f.read(32))
        f.seek(0)
        try:
            found = _Unpickler(f).load()
        except (pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, IndexError, KeyError, UnicodeDecodeError, OverflowError,
                struct.error) as error:
            raise Error("%s: not a pickle of names and numbers: %s" % (path, error)) from None
    if not isinstance(found, dict) or not found or not all(isinstance(k, str) for k in found):
        raise Error("%s: expected a pickled dictionary of names" % path)
    return found


def _text(path: str) -> str:
    with open(path, "rb") as f:
        data = f.read()
    _check_lfs(path, data[:32])
    try:
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise Error("%s: not a text: %s" % (path, error)) from None


def _is_pickle(path: str) -> bool:
    with open(path, "rb") as f:
        return f.read(1) == b"\x80"


def read_pairs(path: str) -> Dict[str, Any]:
    """Such a dictionary, pickled or as a table of two columns with their names."""
    if _is_pickle(path):
        return read_pickle(path)
    rows = [line.split("\t") for line in _text(path).splitlines()]
    if len(rows) < 2 or any(len(row) != 2 for row in rows):
        raise Error("%s: expected a pickled dictionary, or a table of two columns with their names in the first line" % path)
    return {key: value for key, value in rows[1:]}


def _number(path: str, kind: type, what: str, value: Any) -> Any:
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise Error("%s: %s: '%s', expected a number" % (path, what, value)) from None


def _word(path: str, text: str) -> str:
    if any(ord(c) < 32 or c == "\x7f" for c in text):
        raise Error("%s: the name %r has a control character" % (path, text))
    return text


def _aliases(path: str, token: Dict[str, int]) -> Dict[str, List[str]]:
    """For each gene the names that Geneformer's table of ids and symbols gives to it, but for its own. It looks names up in upper case."""
    aliases: Dict[str, List[str]] = {}
    known = 0
    for name, gene in read_pairs(path).items():
        if not isinstance(gene, str) or gene not in token:
            continue
        known += 1
        if name != gene and name and name == name.upper():
            if "|" in name:
                raise Error("%s: the name %r has a |, which stands between names in a vocabulary" % (path, name))
            aliases.setdefault(gene, []).append(_word(path, name))
    if not known:
        raise Error("%s: none of its ids is a token: it does not belong to this vocabulary" % path)
    return aliases


class Dictionaries(NamedTuple):
    """Geneformer's files: tokens, medians, and where they are there, names and the table of old ids and symbols."""
    tokens: str
    medians: str
    names: Optional[str]
    mapping: Optional[str]


def vocabulary(files: Dictionaries) -> Tuple[str, int, int]:
    """The table that rankenc -m reads, the number of its tokens, and that of its aliases."""
    token: Dict[str, int] = {name: _number(files.tokens, int, name, value) for name, value in read_pairs(files.tokens).items()}
    median = read_pairs(files.medians)
    symbol = {gene: name for name, gene in reversed(list(read_pairs(files.names).items()))} if files.names else {}
    aliases = _aliases(files.mapping, token) if files.mapping else {}
    order = sorted(token, key=token.__getitem__)
    if [token[name] for name in order] != list(range(len(order))):
        raise Error("%s: expected the numbers from 0 to %d, each once" % (files.tokens, len(order) - 1))
    lines = ["\t".join(COLUMNS if aliases else COLUMNS[:4])]
    for i, gene in enumerate(order):
        special = gene.startswith("<") and gene.endswith(">")
        if not special and gene not in median:
            raise Error("%s: no median for gene %s of %s: the two files do not belong together" % (files.medians, gene, files.tokens))
        m = None if special else _number(files.medians, float, gene, median[gene])
        if m is not None and not 0 < m < float("inf"):
            raise Error("%s: median %s of gene %s, expected a number above 0" % (files.medians, median[gene], gene))
        fields = [str(i), _word(files.tokens, gene), _word(files.names or "", str(symbol.get(gene, ""))), "NA" if m is None else "%.17g" % m]
        lines.append("\t".join(fields + ["|".join(aliases.get(gene, []))] * bool(aliases)))
    return "\n".join(lines) + "\n", len(order), sum(map(len, aliases.values()))


def read_vocab(path: str) -> Dict[str, List[Any]]:
    """The table of rankenc --fit (token, gene_id, symbol, median, and aliases if there are any), plain or gzip, as the vocab of a header."""
    vocab: Dict[str, List[Any]] = {"id": [], "symbol": [], "median": []}
    for i, line in enumerate(_text(path).splitlines()):
        field = line.split("\t")
        if i == 0 and field[:2] == COLUMNS[:2]:
            vocab.update({"aliases": []} if field[4:] == COLUMNS[4:] else {})
            continue
        if len(field) != 4 + ("aliases" in vocab) or field[0] != str(len(vocab["id"])):
            raise Error("%s: line %d: expected token %d, gene_id, symbol and median, with tabs between" % (path, i + 1, len(vocab["id"])))
        try:
            median = None if field[3] == "NA" else float(field[3])
        except ValueError:
            raise Error("%s: line %d: median '%s', expected a number or NA" % (path, i + 1, field[3])) from None
        for name, value in zip(vocab, (field[1], field[2], median, *field[4:])):
            vocab[name].append(value)
    if not vocab["id"]:
        raise Error("%s: no tokens in it" % path)
    return vocab


def from_geneformer(tokens: str, medians: str, names: Optional[str], mapping: Optional[str], output: str) -> None:
    """names, mapping: None: those beside tokens; "none": without."""
    names = beside(tokens, NAMES) if names is None else names
    mapping = beside(tokens, MAPPING) if mapping is None else mapping
    files = Dictionaries(tokens, medians, *(None if f == "none" else f for f in (names, mapping)))
    text, _, aliases = vocabulary(files)
    if files.mapping:
        print("scstream: note: %d old ids and symbols of %s are aliases of the genes" % (aliases, files.mapping), file=sys.stderr)
    if output == "-":
        sys.stdout.write(text)
    else:
        save(output, text.encode())


def to_geneformer(vocab: str, tokens: str, medians: str) -> None:
    v = read_vocab(vocab)
    save(tokens, pickle.dumps({gene: i for i, gene in enumerate(v["id"])}))
    save(medians, pickle.dumps({gene: m for gene, m in zip(v["id"], v["median"]) if m is not None}))


def _list(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _stem(name: str) -> Optional[str]:
    """The name of a dictionary without its ending; None: it has none of these."""
    return next((name[:-len(ending)] for ending in ENDINGS if name.endswith(ending)), None)


def beside(tokens: str, stem: str) -> Optional[str]:
    """The file of this stem that belongs to a token dictionary: of the same name but for that, or the only one in its folder."""
    folder, name = os.path.split(tokens)
    if TOKENS not in name:
        return None
    same = os.path.join(folder, name.replace(TOKENS, stem))
    there = _list(folder or ".")
    stems = [stem, "gene_median"] if stem == MEDIANS else [stem]
    alike = [f for f in there if _stem(f) in [(_stem(name) or "").replace(TOKENS, s) for s in stems]]
    rest = [f for f in there if f.startswith(stem) and _stem(f)]
    alone = len({_stem(f) for f in there if f.startswith(TOKENS) and _stem(f)}) == len({_stem(f) for f in rest}) == 1
    return same if os.path.exists(same) else os.path.join(folder, alike[0]) if alike else os.path.join(folder, rest[0]) if alone else None


def _places(model: str) -> Iterator[List[str]]:
    """Folders that can have the dictionaries of a model, the nearest first: its own, the one above, and those called geneformer in them and above them,
    as in the repository on the hub, where those of V1 are one folder deeper. A link is followed, and the folder in which it lies is looked at too."""
    seen = set()
    for start in (os.path.abspath(model), os.path.realpath(model)):
        above = os.path.dirname(start)
        for place in (start, os.path.join(start, "geneformer"), above, os.path.join(above, "geneformer"), os.path.join(above, "..", "geneformer")):
            place = os.path.realpath(place)
            if place not in seen and os.path.isdir(place):
                seen.add(place)
                deeper = [os.path.join(place, f) for f in _list(place) if os.path.basename(place) == "geneformer"]
                yield [os.path.relpath(p) if p.startswith(os.getcwd() + os.sep) else p for p in (place, *deeper) if os.path.isdir(p)]


def find_dictionaries(model: str, size: Optional[int], names: Names, name: str) -> Dictionaries:
    """Geneformer's files in the nearest place that has dictionaries of `size` tokens (or of any number). Two that fit and differ are an error."""
    others: Dict[str, int] = {}
    how = "%s and %s name Geneformer's two tables or pickles" % (names.vocab, names.tokens)
    for folders in _places(model):
        fit: Dict[str, Dictionaries] = {}
        for folder in folders:
            for tokens in (os.path.join(folder, f) for f in _list(folder) if f.startswith(TOKENS) and _stem(f)):
                medians = beside(tokens, MEDIANS)
                n = len(read_pairs(tokens))
                if size is not None and n != size:
                    others[tokens] = n
                    continue
                if medians is None:
                    raise Error("%s: no %s beside it" % (tokens, os.path.basename(tokens).replace(TOKENS, MEDIANS)))
                files = Dictionaries(tokens, medians, beside(tokens, NAMES), beside(tokens, MAPPING))
                fit.setdefault(vocabulary(files)[0], files)
            if fit and size is None:
                break       # not those in the folders below
        if len(fit) > 1:
            raise Error("%s: the vocabulary can be that of %s: %s" % (name, " or of ".join(files.tokens for files in fit.values()), how))
        if fit:
            return next(iter(fit.values()))
    if others:
        more = [n for n in others.values() if isinstance(size, int) and 0 < size - n < PADDING]
        raise Error("%s: the model has %s rows of embeddings (vocab_size), but the dictionaries near it have other numbers of tokens (%s): %s%s" % (
            name, size, ", ".join("%d in %s" % (n, f) for f, n in others.items()), how,
            "; rows that only fill up are taken away by resize_token_embeddings(%d) of transformers" % more[0] if more else ""))
    raise Error("%s: no vocab.tsv in it, and no dictionaries%s (%s*%s) in it, above it, or in a folder geneformer there: %s" % (
        name, "" if size is None else " of %s tokens" % size, TOKENS, ENDINGS[0], how))


# ---- models ----

class Found(NamedTuple):
    """What a model is. model, vocab: the folder and the table that the tools read; text: what was found, for people."""
    kind: str
    model: str
    vocab: str
    tokens: int
    aliases: int
    max_len: Optional[int]
    cls: Optional[int]
    text: str

    def table(self) -> str:
        return "".join("%s\t%s\n" % (name, "" if value is None else value) for name, value in self._asdict().items())


def _object(path: str) -> Dict[str, Any]:
    try:
        found = json.loads(_text(path))
    except ValueError as error:
        raise Error("%s: not JSON: %s" % (path, error)) from None
    if not isinstance(found, dict):
        raise Error("%s: expected an object of JSON" % path)
    return found


def _config(model: str, name: str) -> Dict[str, Any]:
    path = os.path.join(model, "config.json")
    if not os.path.exists(path):
        raise Error("%s: no config.json in it: expected the folder of a model" % name)
    return _object(path)


def _tensors(path: str) -> Dict[str, Any]:
    """The header of a file of safetensors that has all its bytes."""
    size = os.path.getsize(path)
    with open(path, "rb") as f:
        head = f.read(8)
        _check_lfs(path, head + f.read(24))
        f.seek(8)
        n = int.from_bytes(head, "little")
        try:
            tensors: Dict[str, Any] = json.loads(f.read(n)) if 8 <= n <= size - 8 else {}
            tensors.pop("__metadata__", None)
            end = 8 + n + max((t["data_offsets"][1] for t in tensors.values()), default=0)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            raise Error("%s: damaged: no header of safetensors" % path) from None
    if not tensors or end != size:
        raise Error("%s: cut short or damaged: %d bytes, expected %s" % (path, size, end if tensors else "those of a header and of tensors"))
    return tensors


def _check_weights(model: str, name: str, size: Any) -> None:
    there = _list(model)
    weights = [f for f in there if f.startswith("model") and f.endswith(".safetensors")]
    index = os.path.join(model, "model.safetensors.index.json")
    if os.path.exists(index) and "model.safetensors" not in there:
        weights = sorted({*weights, *map(str, _object(index).get("weight_map", {}).values())})
        for f in weights:
            if f not in there:
                raise Error("%s: no %s in it, which %s names" % (name, f, index))
    for f in weights:
        for tensor, about in _tensors(os.path.join(model, f)).items():
            rows = (about.get("shape") or [None])[0]
            if tensor.endswith(".word_embeddings.weight") and size is not None and rows != size:
                raise Error("%s: %s rows of embeddings in %s, but vocab_size is %s in config.json" % (name, rows, f, size))
    if not weights and "pytorch_model.bin" in there:
        raise Error("%s: pytorch_model.bin, pickled weights: load and save it once with transformers, which writes model.safetensors" % name)
    if not weights:
        raise Error("%s: no model.safetensors in it: expected the folder of a model" % name)


def _rows(path: str) -> Tuple[int, int]:
    """Tokens and aliases of a vocabulary."""
    rows = [line.split("\t") for line in _text(path).splitlines()]
    if not rows or rows[0] not in (COLUMNS, COLUMNS[:4]):
        raise Error("%s: expected a vocabulary, which begins with the column names token, gene_id, symbol, median" % path)
    return len(rows) - 1, sum(row[4].count("|") + 1 for row in rows[1:] if len(row) == 5 and row[4])


def _write(path: str, text: str) -> str:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    new = path + ".new"
    with open(new, "w") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.replace(new, path)
    return path


def _about(files: Dictionaries, n: int, aliases: int) -> str:
    more = "no old ids or symbols (no %s beside them)" % MAPPING
    if files.mapping:
        more = "{:,} old ids and symbols of {}".format(aliases, files.mapping)
    return "{:,} tokens of {}, medians of {}, {}".format(n, files.tokens, files.medians, more)


def _given(vocab: str, tokens: str, out: str, size: Optional[int], names: Names) -> Tuple[str, int, int, str]:
    """The vocabulary that a user names: a table, Geneformer's two, a folder of them (with `size` tokens, if that is known), or a model."""
    name = _spell(names.vocab, vocab)
    if os.path.isdir(vocab):
        own = os.path.join(vocab, "vocab.tsv")
        if os.path.exists(own):
            return (own, *_rows(own), "vocabulary %s" % own)
        config = os.path.join(vocab, "config.json")
        files = find_dictionaries(vocab, _config(vocab, name).get("vocab_size") if os.path.exists(config) else size, names, name)
    elif tokens or _is_pickle(vocab):
        if not tokens:
            raise Error("%s: a dictionary of Geneformer, which also needs %s" % (name, names.tokens))
        files = Dictionaries(tokens, vocab, beside(tokens, NAMES), beside(tokens, MAPPING))
    else:
        return (vocab, *_rows(vocab), "vocabulary %s" % vocab)
    text, n, aliases = vocabulary(files)
    return _write(os.path.join(out, "vocab.tsv"), text) if out else files.tokens, n, aliases, _about(files, n, aliases)


def _link(model: str, out: str) -> None:
    """out: a folder of links to the files of a model, but for its vocabulary."""
    os.makedirs(out, exist_ok=True)
    for f in _list(model):
        source, to = os.path.join(os.path.realpath(model), f), os.path.join(out, f)
        if f != "vocab.tsv" and os.path.isfile(source):
            if os.path.lexists(to):
                os.remove(to)
            os.symlink(source, to)


def _bmfm(model: str, out: str) -> str:
    """A released BMFM-RNA, converted to the folder out."""
    if not os.path.exists(os.path.join(out, "vocab.tsv")):
        try:
            from corrmask import bmfm, convert
        except ModuleNotFoundError as error:
            raise Error("%s: a released BMFM-RNA, for which this Python lacks %s" % (model, error.name)) from None
        with convert.new_folder(out) as temporary:
            bmfm.convert(model, temporary, None, None)
    return out


def open_model(model: str, out: str, vocab: str = "", tokens: str = "", names: Names = Names()) -> Found:
    """The model, or without one the vocabulary, as the tools read it. What has to be made for that goes into the folder out, if it is given: without,
    it is only looked whether it can be. vocab, tokens: the vocabulary of a user, in place of the model's."""
    name = _spell(names.model, model)
    for path, called in ((model, names.model), (vocab, names.vocab), (tokens, names.tokens)):
        if path and not os.path.exists(path):
            raise Error("%s: no such file or folder%s" % (_spell(called, path), "; " + HUB % (names.model or "MODEL") if path == model else ""))
    kind, folder, config = "corrmask", model, {}
    released = any(f.endswith(".ckpt") for f in _list(model)) or model.endswith(".ckpt")
    if model and not released:
        config = _config(model, name) if os.path.exists(os.path.join(model, "config.json")) else {}
        _check_weights(model, name, config.get("vocab_size"))
        config = config or _config(model, name)
        released = config.get("model_type") == "scllama"
    given = _given(vocab, tokens, out, config.get("vocab_size"), names) if vocab else None
    if not model:
        assert given, "a model or a vocabulary"
        return Found("vocabulary", "", *given[:3], None, None, given[3])
    if released:
        if not out:
            return Found("BMFM-RNA", model, "", 0, 0, None, None, "BMFM-RNA, to be converted")
        kind, folder = "BMFM-RNA", _bmfm(model, out)
        config = _config(folder, folder)
    own, size = os.path.join(folder, "vocab.tsv"), config.get("vocab_size")
    if given is None and os.path.exists(own):
        given = (own, *_rows(own), "vocabulary %s" % (own if kind == "corrmask" else "of its tokenizer"))
    elif given is None:
        kind, files = "Geneformer", find_dictionaries(model, size, names, name)
        text, n, aliases = vocabulary(files)
        given = (os.path.join(out, "vocab.tsv") if out else "", n, aliases, _about(files, n, aliases))
        if out:
            _link(model, out)
            _write(given[0], text)
            folder = out
    if size is not None and given[1] != size:
        raise Error("%s: %d tokens in the vocabulary %s, but the model has %s" % (name, given[1], given[0], size))
    if not os.path.exists(own) and out and folder != out:        # a model of transformers, with a vocabulary of the user
        kind = "transformers"
        _link(model, out)
        _write(os.path.join(out, "vocab.tsv"), _text(given[0]))
        folder = out
    cls = config.get("cls_tokens")
    return Found(kind, folder, *given[:3], None if cls else config.get("max_position_embeddings"), cls, "%s %s: %s" % (kind, model, given[3]))


def main(argv: List[str]) -> None:
    import argparse
    p = argparse.ArgumentParser(prog="scstream model", description="Say what a model is and which vocabulary it reads, and make a folder that the tools read "
                                "of one that has no vocab.tsv. The last line on standard output is the folder for scembed -M and sctrain --init.")
    p.add_argument("model", metavar="MODEL", help="folder of a model: sctrain's, transformers', a Geneformer of the hub, a released BMFM-RNA; '' for a vocabulary alone")
    p.add_argument("folder", metavar="DIR", help="folder to make, if MODEL has no vocab.tsv; '' only looks")
    p.add_argument("--vocab", default="", metavar="FILE", help="vocabulary in place of the model's: a table, Geneformer's medians (pickle or table), or a folder")
    p.add_argument("--tokens", default="", metavar="FILE", help="Geneformer's tokens (pickle or table), if --vocab are its medians")
    p.add_argument("--found", default="", metavar="FILE", help="also write what was found to this table: name, value")
    p.add_argument("--names", default=Names(), type=lambda text: Names(*text.split(",")), help=argparse.SUPPRESS)
    a = p.parse_args(argv)
    found = open_model(a.model, a.folder, a.vocab, a.tokens, a.names)
    if a.found:
        _write(a.found, found.table())
    print(found.text, file=sys.stderr)
    print(found.model or found.vocab)
