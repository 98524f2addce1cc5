# mypy: ignore-errors
"""A released model of BMFM-RNA to a model of these tools: `scstream from-bmfm`. No code of the checkpoint runs, and PyTorch is not needed.

What is read [biomed-multi-omic; its checkpoints, and what its script for vLLM makes of them]:
    NAME.ckpt                   PyTorch Lightning: state_dict, whose names begin with `model.`, and hyper_parameters: model_config, label_dict
    or config.json, model.safetensors and checkpoint_metadata.json (which has label_dict)
    tokenizers/genes/tokenizer.json   the vocabulary, and the tokens before the genes"""
import io
import json
import math
import os
import pickle
import sys
import zipfile
from typing import Optional

from corrmask.stream import Error

CLS_MAX, LAYERS_MAX, VALUES_MAX = 32, 1000, 1000000
RMS_NORM_EPS = 1e-5             # in the code of the released model, not in its config
EMBEDDINGS = "core.encoder.embeddings."
VALUES = EMBEDDINGS + "expressions_embeddings."
MLM = "cls.predictions.predictions."
FIELD_DECODERS = MLM + "decoder.field_decoders.expressions_"
LABEL_DECODERS = "cls.label_predictions.predictions.label_decoders."
STORAGES = {"FloatStorage": ("F32", 4), "HalfStorage": ("F16", 2), "BFloat16Storage": ("BF16", 2), "LongStorage": ("I64", 8), "IntStorage": ("I32", 4)}

# Keys of config.json that say nothing about the network, beside those that are read here.
WITHOUT_MEANING = {"architectures", "attention", "attention_kwargs", "checkpoint", "classifier_dropout", "dtype", "flex_attention", "hidden_dropout_prob",
                   "initializer_range", "intermediate_size", "max_position_embeddings", "tie_word_embeddings", "torch_dtype", "transformers_version",
                   "use_cache", "vocab_size"}


# ---- a checkpoint ----

class _Inert:
    """Stands for an object of any class: keeps what was pickled, and does nothing."""

    def __new__(cls, *args, **_):
        o = object.__new__(cls)
        o.args, o.state, o.items = args, None, {}
        return o

    def __init__(self, *_, **__):
        pass

    def __setstate__(self, state):
        self.state = state

    def __setitem__(self, key, value):
        self.items[key] = value

    def append(self, value):
        self.items[len(self.items)] = value

    def extend(self, values):
        for v in values:
            self.append(v)

    def __hash__(self):
        return id(self)


def plain(x, left=None):
    """Dictionaries, lists, texts and numbers for what was pickled. left: how many there may be, as lists that share others have no end."""
    left = left or [VALUES_MAX]
    left[0] -= 1
    if left[0] < 1:
        raise Error("more than %d values beside the tensors: lists that contain each other?" % VALUES_MAX)
    if isinstance(x, _Inert):
        found = x.state if isinstance(x.state, dict) else x.items or (x.args[0] if len(x.args) == 1 else {})
        return plain(found, left)
    if isinstance(x, dict):
        return {k: plain(v, left) for k, v in x.items()}
    return [plain(v, left) for v in x] if isinstance(x, (list, tuple)) else x


class _Tensor:
    def __init__(self, dtype, shape, read):
        self.dtype, self.shape, self.read = dtype, list(shape), read


def _rebuild_tensor(storage, offset, shape, stride, *_):
    (dtype, size), read = storage
    n, step = math.prod(shape), 1
    for length, s in zip(reversed(shape), reversed(stride)):
        if length != 1 and s != step:
            raise Error("a tensor of shape %s is not contiguous" % list(shape))
        step *= length
    return _Tensor(dtype, shape, lambda: read()[offset * size:(offset + n) * size])


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, archive, folder):
        super().__init__(file)
        self.archive, self.folder = archive, folder

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *_: tensor
        return type(name, (_Inert,), {})

    def persistent_load(self, pid):
        kind, key = pid[1].__name__, pid[2]
        if kind not in STORAGES:
            raise Error("a tensor of type %s" % kind)
        return STORAGES[kind], lambda: read_entry(self.archive, "%s/data/%s" % (self.folder, key))


def read_entry(archive, name):
    """PyTorch does not compress. What is larger than the file could fill the memory."""
    if archive.getinfo(name).file_size > os.path.getsize(archive.filename):
        raise Error("%s: %s is compressed: expected a checkpoint as torch.save writes it" % (archive.filename, name))
    return archive.read(name)


def read_ckpt(path):
    """(tensors by name, config, label_dict) of a Lightning checkpoint, which is a zip of a pickle and of the data of each tensor."""
    try:
        archive = zipfile.ZipFile(path)
        entry = next((n for n in archive.namelist() if n.endswith("/data.pkl") and n.count("/") == 1), None)
        if not entry:
            raise Error("%s: no data.pkl in it: expected a PyTorch checkpoint" % path)
        found = _Unpickler(io.BytesIO(read_entry(archive, entry)), archive, entry.split("/")[0]).load()
        found = plain(found) if isinstance(found, dict) else {}
        hyper, state = (x if isinstance(x, dict) else {} for x in (found.get("hyper_parameters"), found.get("state_dict")))
        tensors = {k: v for k, v in state.items() if isinstance(v, _Tensor)}
    except Error as error:
        raise Error("%s: %s" % (path, error) if path not in str(error) else str(error)) from None
    except (zipfile.BadZipFile, pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, IndexError, KeyError,
            RecursionError) as error:
        raise Error("%s: not a PyTorch checkpoint: %s" % (path, error)) from None
    if not tensors or not hyper.get("model_config"):
        raise Error("%s: no %s in it: expected a PyTorch Lightning checkpoint" % (path, "hyper_parameters with model_config" if tensors else "state_dict"))
    return tensors, hyper["model_config"], hyper.get("label_dict") or {}


# ---- a folder ----

def read_json(path):
    try:
        with open(path, encoding="utf-8") as f:
            found = json.load(f)
    except (ValueError, RecursionError) as error:
        raise Error("%s: not JSON: %s" % (path, error)) from None
    if not isinstance(found, dict):
        raise Error("%s: expected a JSON object" % path)
    return found


def read_safetensors(path):
    twice = []

    def once(pairs):
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [k for k, _ in pairs]
            twice.extend(k for k, after in zip(sorted(names), sorted(names)[1:]) if k == after)
        return found

    def data(begin, end):
        with open(path, "rb") as f:
            f.seek(start + begin)
            return f.read(end - begin)
    with open(path, "rb") as f:
        n = int.from_bytes(f.read(8), "little")
        try:
            start = 8 + n
            header = json.loads(f.read(min(n, 100 << 20)), object_pairs_hook=once)
            found = {k: _Tensor(t["dtype"], t["shape"], lambda t=t: data(*t["data_offsets"])) for k, t in header.items() if k != "__metadata__"}
            size = os.path.getsize(path) - start
            outside = [k for k in found if not 0 <= header[k]["data_offsets"][0] <= header[k]["data_offsets"][1] <= size]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Error("%s: not a safetensors file: %s" % (path, error)) from None
    if twice:
        raise Error("%s: '%s' occurs twice" % (path, twice[0]))
    if outside:
        raise Error("%s: the bytes of tensor '%s' are not in the file: it is cut or damaged" % (path, outside[0]))
    return found


def read_source(source):
    """(tensors, config, label_dict, folder, name of what has the tensors, name of what has the config)"""
    if not os.path.isdir(source):
        return (*read_ckpt(source), os.path.dirname(source) or ".", source, source)
    inside = sorted(n for n in os.listdir(source) if n.endswith(".ckpt"))
    weights, config = (os.path.join(source, n) for n in ("model.safetensors", "config.json"))
    if os.path.exists(weights):
        metadata = os.path.join(source, "checkpoint_metadata.json")
        more = read_json(metadata) if os.path.exists(metadata) else {}
        labels = more.get("label_dict") or (more.get("hyper_parameters") or {}).get("label_dict") or {}
        return read_safetensors(weights), read_json(config), labels, source, weights, config
    if len(inside) != 1:
        raise Error("%s: %s: expected one .ckpt, or config.json and model.safetensors" % (source, "several .ckpt" if inside else "no model in it"))
    path = os.path.join(source, inside[0])
    return (*read_ckpt(path), source, path, path)


# ---- the vocabulary ----

def read_tokenizer(path):
    """(tokens in the order of their numbers, how many stand before the genes of a cell)"""
    found = read_json(path)
    try:
        number = dict(found["model"]["vocab"])
        number.update({t["content"]: t["id"] for t in found.get("added_tokens") or []})
        template = ((found.get("post_processor") or {}).get("single")) or []
    except (KeyError, TypeError, AttributeError, ValueError):
        raise Error("%s: no vocabulary in it: expected a tokenizer.json of genes" % path) from None
    tokens = sorted(number, key=number.get)
    if [number[t] for t in tokens] != list(range(len(tokens))):
        raise Error("%s: expected the numbers from 0 to %d, each once" % (path, len(tokens) - 1))
    if tokens[:1] != ["[UNK]"] or any("\t" in t or "\n" in t or not t for t in tokens):
        raise Error("%s: not a vocabulary of genes of BMFM-RNA: it begins with '%.40s', expected [UNK]" % (path, tokens[0] if tokens else ""))
    names = [next(iter(part.items())) for part in template if isinstance(part, dict) and part]
    cls = next((i for i, (kind, _) in enumerate(names) if kind == "Sequence"), 0)
    want = ["[CLS]"] + ["[CLS_%d]" % i for i in range(CLS_MAX - 1)]
    got = [part.get("id") for _, part in names[:cls]]
    if got != want[:cls]:
        raise Error("%s: a cell begins with %s: expected %s" % (path, " ".join(map(str, got)), " ".join(want[:cls])))
    return tokens, cls


def find_tokenizer(folder):
    for name in ("tokenizers/genes/tokenizer.json", "genes/tokenizer.json", "tokenizer.json"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    raise Error("%s: no tokenizers/genes/tokenizer.json in it: name it with --tokenizer" % folder)


# ---- the configuration ----

class _Config:
    """A dictionary of which every key must be read. where: for messages."""

    def __init__(self, found, where, extra=()):
        if not isinstance(found, dict):
            raise Error("%s: expected an object" % where)
        self.found, self.where, self.known = found, where, set(extra)

    def get(self, key, otherwise=None):
        self.known.add(key)
        value = self.found.get(key)
        return otherwise if value is None else value

    def must(self, key, *allowed):
        """allowed: the first is that of a config without the key."""
        value = self.get(key, allowed[0])
        if value not in allowed:
            raise Error("%s: %s is %s: only %s is supported" % (self.where, key, json.dumps(value), " or ".join(json.dumps(a) for a in allowed)))
        return value

    def whole(self, key, otherwise=None):
        value = self.get(key, otherwise)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise Error("%s: %s is %s: expected a whole number from 0" % (self.where, key, json.dumps(value)))
        return value

    def unknown(self):
        return sorted(set(self.found) - self.known)

    def done(self):
        for key in self.unknown():
            raise Error("%s: unknown key '%s': the version differs" % (self.where, key))


def value_encoder(field, hidden, shapes):
    """Keys of the value encoder, and the shapes of its tensors."""
    specials = field.whole("num_special_tokens", 0)
    e = _Config(field.get("encoder_kwargs", {}), field.where + ": encoder_kwargs")
    kind = e.must("kind", "mlp_with_special_token_embedding", "mlp", "scale_adapt")
    out = {"value_encoder": {"mlp": "mlp", "scale_adapt": "periodic"}.get(kind, "mlp_special"), "value_specials": specials}
    if kind != "mlp":
        zero = e.must("zero_as_special_token", True, False)
        out.update({} if zero else {"value_zero_is_number": True})
        shapes[VALUES + "special_token_embeddings.weight"] = [specials + zero, hidden if kind == "scale_adapt" else 128]
    if kind == "scale_adapt":
        n, learned = e.whole("n_sin_basis", 48), e.must("trainable", True, False)
        centers, orientations = e.get("sigmoid_centers", []), e.get("sigmoid_orientations", [])
        out.update(value_frequencies=n, value_scale=e.get("basis_scale", 1.5), **({"value_learned_frequencies": True} if learned else {}))
        out.update({"value_shift": e.get("shift")} if e.get("shift") else {})
        out.update({"value_sigmoid_centers": centers, "value_sigmoid_orientations": orientations} if centers else {})
        shapes.update({VALUES + "basis": [n]} if n else {})
        shapes.update({VALUES + "sigmoid_" + part: [len(centers)] for part in ("centers", "orientations") if centers})
        shapes[VALUES + "dense.weight"] = [hidden, 2 * n + len(centers)]
    else:
        shapes.update({VALUES + "dense_1.weight": [128, 1], VALUES + "dense_1.bias": [128], VALUES + "dense_2.weight": [hidden, 128],
                       VALUES + "dense_2.bias": [hidden]})
    e.done()
    return out


def body(c, shapes):
    """Keys of the encoder, and the shapes of its tensors but those of the fields."""
    c.must("model_type", "scllama")
    c.must("num_memory_tokens", 0)
    c.must("classifier_pooling", "cls")
    c.must("hidden_act", "gelu", "relu")
    if c.get("position_embedding_type") is not None:
        raise Error("%s: position_embedding_type is %s: only null is supported" % (c.where, json.dumps(c.get("position_embedding_type"))))
    hidden, layers = c.whole("hidden_size", 768), c.whole("num_hidden_layers", 12)
    if layers > LAYERS_MAX:
        raise Error("%s: num_hidden_layers is %d: expected at most %d" % (c.where, layers, LAYERS_MAX))
    wide = -(-(8 * hidden // 3) // 256) * 256
    shapes.update({EMBEDDINGS + "LayerNorm." + part: [hidden] for part in ("weight", "bias")})
    for i in range(layers):
        b = "core.encoder.blocks.%d." % i
        shapes.update({b + "rms_1.scale": [hidden]} if i else {})
        shapes.update({b + "attn.c_attn.weight": [3 * hidden, hidden], b + "attn.proj.weight": [hidden, hidden], b + "rms_2.scale": [hidden],
                       b + "mlp.c_fc1.weight": [wide, hidden], b + "mlp.c_fc2.weight": [wide, hidden], b + "mlp.c_proj.weight": [hidden, wide]})
    shapes.update({"core.pooler.dense.weight": [hidden, hidden], "core.pooler.dense.bias": [hidden]})
    return {"architectures": ["BmfmLlamaModel"], "hidden_act": c.get("hidden_act", "gelu"), "hidden_dropout_prob": c.get("hidden_dropout_prob", 0),
            "hidden_size": hidden, "layer_norm_eps": c.get("layer_norm_eps", 1e-12), "model_type": "bmfm_llama",
            "num_attention_heads": c.whole("num_attention_heads", 12), "num_hidden_layers": layers, "pad_token_id": c.whole("pad_token_id", 0),
            "rms_norm_eps": RMS_NORM_EPS, "torch_dtype": "float32"}


def fields(c, config, shapes, known_all):
    """The fields genes and expressions: config gets their keys. Returns the head that decodes expression, or None."""
    found, hidden = {}, config["hidden_size"]
    for i, f in enumerate(c.get("fields", [])):
        f = _Config(f, "%s: field %d" % (c.where, i), ("is_masked", "vocab_update_strategy"))
        f.where = "%s: field %s" % (c.where, f.get("field_name"))
        if f.get("field_name") in found:
            raise Error("%s occurs twice" % f.where)
        found[f.get("field_name")] = f
        if f.get("pretrained_embedding") is not None or not f.get("is_input", True):
            raise Error("%s: only input fields without a pretrained embedding are supported" % f.where)
    if list(found) != ["genes", "expressions"]:
        raise Error("%s: fields are %s: expected genes, expressions" % (c.where, ", ".join(map(str, found)) or "missing"))
    genes, expressions = found.values()
    genes.must("tokenization_strategy", "tokenize")
    expressions.must("tokenization_strategy", "tokenize", "continuous_value_encoder")
    if genes.get("decode_modes") or expressions.get("tokenization_strategy", "tokenize") == "tokenize":
        raise Error("%s: only genes as tokens and expressions as numbers, which alone are decoded, are supported" % c.where)
    config["vocab_size"] = genes.whole("vocab_size")
    shapes[EMBEDDINGS + "genes_embeddings.weight"] = [config["vocab_size"], hidden]
    config.update(value_encoder(expressions, hidden, shapes))
    modes = expressions.get("decode_modes", {})
    modes = {m: {} for m in modes} if isinstance(modes, list) else modes
    expressions.get("vocab_size")
    for f, key in ((genes, "num_special_tokens"), (genes, "encoder_kwargs")):
        f.get(key)
    for f in known_all * [genes, expressions]:
        f.done()
    if not modes:
        return None
    shapes.update({MLM + "transform.dense.weight": [hidden, hidden], MLM + "transform.dense.bias": [hidden], MLM + "transform.LayerNorm.weight": [hidden],
                   MLM + "transform.LayerNorm.bias": [hidden]})
    if set(modes) == {"regression", "is_zero"}:
        size, kind = 1, "expression"
    elif modes == {"wced": {"vocab_field": "genes", "logit_outputs": ["mse", "is_zero_bce"]}}:
        size, kind = 2 * config["vocab_size"], "wced"
    else:
        raise Error("%s: decode_modes %s: expected regression and is_zero, or wced of genes with mse and is_zero_bce" % (expressions.where, json.dumps(modes)))
    for m in modes:
        shapes.update({FIELD_DECODERS + m + ".weight": [size, hidden], FIELD_DECODERS + m + ".bias": [size]})
    return {"kind": kind, "name": kind, "weight": 1}


def class_names(column, n, labels, where):
    """The classes in the order of their numbers; without label_dict LABEL_0, LABEL_1 ..."""
    number = labels.get(column)
    if number is None:
        print("scstream: note: no label_dict for %s: its classes are called LABEL_0 to LABEL_%d" % (column, n - 1), file=sys.stderr)
        return ["LABEL_%d" % i for i in range(n)]
    names = sorted(number, key=number.get) if isinstance(number, dict) else []
    if [number[k] for k in names] != list(range(n)):
        raise Error("%s: %s has %d classes, but label_dict does not have the numbers from 0 to %d, each once" % (where, column, n, n - 1))
    return [str(k) for k in names]


def label_heads(c, labels, config, shapes, renamed, known_all):
    heads = []
    for i, column in enumerate(c.get("label_columns", [])):
        f = _Config(column, "%s: label column %d" % (c.where, i), ("is_stratification_label", "classifier_depth", "silent_label_values", "task_group", "multilabel_str_sep"))
        name = str(f.get("label_column_name"))
        f.where = "%s: label column %s" % (c.where, name)
        if name in [h["name"] for h in heads]:
            raise Error("%s occurs twice" % f.where)
        f.must("is_multilabel", False)
        number, reverse, position = f.must("is_regression_label", False, True), f.get("gradient_reversal_coefficient"), f.get("decode_from")
        n = 1 if number else f.whole("n_unique_values", f.get("output_size"))
        head = {"kind": "number" if number else "hce" if f.get("label_ontology") else "cells", "name": name, "prefix": "heads.%s." % name,
                "column": name, "weight": 1}
        head.update({} if reverse is None else {"reverse": reverse})
        head.update({} if position is None else {"position": f.whole("decode_from"), "pooler": False})
        if not number:
            head["id2label"] = {str(k): v for k, v in enumerate(class_names(name, n, labels, f.where))}
        for part, shape in (("weight", [n, config["hidden_size"]]), ("bias", [n])):
            there = LABEL_DECODERS + name + (".decoder." if reverse is None else ".decoder.1.") + part
            shapes[there], renamed[there] = shape, "heads.%s.classifier.%s" % (name, part)
        if known_all:
            f.done()
        heads.append(head)
    return heads


# ---- from one to the other ----

def match(tensors, shapes, path):
    """Every tensor of the model once, and no other: {name: tensor}. Lightning writes `model.` before the names."""
    found = {}
    for given, t in tensors.items():
        name = given[len("model."):] if given.startswith("model.") else given
        if name in found:
            raise Error("%s: tensor '%s' occurs twice, with and without 'model.'" % (path, name))
        if name not in shapes:
            raise Error("%s: tensor '%s' has no place in a model of this configuration" % (path, given))
        if t.shape != shapes[name] or t.dtype not in ("F32", "F16", "BF16"):
            raise Error("%s: tensor '%s' is %s %s, the configuration asks for numbers %s" % (path, given, t.dtype, t.shape, shapes[name]))
        found[name] = t
    for name in shapes:
        if name not in found:
            raise Error("%s: no tensor '%s' (expected shape %s)" % (path, name, shapes[name]))
    return found


def write_safetensors(path, tensors, source):
    """source: what has them, for messages"""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(tensors):
        t, size = tensors[name], 4 if tensors[name].dtype == "F32" else 2
        header[name] = {"dtype": t.dtype, "shape": t.shape, "data_offsets": [at, at + math.prod(t.shape) * size]}
        at = header[name]["data_offsets"][1]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for name in sorted(tensors):
            data = tensors[name].read()
            a, b = header[name]["data_offsets"]
            if len(data) != b - a:
                raise Error("%s: tensor '%s' has %d bytes, expected %d" % (source, name, len(data), b - a))
            f.write(data)


def convert(source: str, folder: str, tokenizer: Optional[str] = None, ontology: Optional[str] = None) -> None:
    """Fill the folder with config.json, vocab.tsv and model.safetensors."""
    tensors, found, labels, beside, weights, where = read_source(source)
    in_json = where.endswith("config.json")     # a pickled config has every attribute of transformers' class
    c, shapes, renamed = _Config(found, where, WITHOUT_MEANING), {}, {}
    config = body(c, shapes)
    first = fields(c, config, shapes, in_json)
    config["corrmask_heads"] = ([first] if first else []) + label_heads(c, labels, config, shapes, renamed, in_json)
    for key in c.unknown() if in_json else ():
        print("scstream: note: %s: key %s is unknown and is left out" % (where, key), file=sys.stderr)
    path = tokenizer or find_tokenizer(beside)
    tokens, cls = read_tokenizer(path)
    if len(tokens) != config["vocab_size"]:
        raise Error("%s: %d tokens, but %s says vocab_size %d: the vocabulary is another one" % (path, len(tokens), where, config["vocab_size"]))
    config["cls_tokens"] = max([cls, 1] + [h["position"] + 1 for h in config["corrmask_heads"] if "position" in h])
    if not config["corrmask_heads"]:
        del config["corrmask_heads"]
    kept = match(tensors, shapes, weights)
    write_safetensors(os.path.join(folder, "model.safetensors"), {renamed.get(n, n): t for n, t in kept.items()}, weights)
    with open(os.path.join(folder, "config.json"), "w") as f:
        f.write(json.dumps(config, indent=2, sort_keys=True) + "\n")
    with open(os.path.join(folder, "vocab.tsv"), "w") as f:
        f.write("token\tgene_id\tsymbol\tmedian\n" + "".join("%d\t%s\t\tNA\n" % (i, t) for i, t in enumerate(tokens)))
    if ontology:
        with open(ontology, "rb") as a, open(os.path.join(folder, "ontology.obo"), "wb") as b:
            b.write(a.read())
