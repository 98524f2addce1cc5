#!/usr/bin/env python3
"""Folders and checkpoints with the names, shapes and configuration of the released models of BMFM-RNA and random weights, and what such a
model computes, in float64 from these files and not from what scstream from-bmfm makes of them. The weights of a released model were never seen here.

bmfm_released.py make DIR wced|mlm small|released GENES.txt     DIR/hub (config.json, model.safetensors, checkpoint_metadata.json, tokenizers) and
    DIR/lightning (NAME.ckpt, tokenizers), DIR/some.obo. GENES.txt: the first genes of the vocabulary; of `released`, 19,283 in all
bmfm_released.py states DIR wced|mlm TOKENS.tsv X.tsv POSITION,...     columns cell,token,value; cell,x of scembed
bmfm_released.py head DIR wced|mlm NAME TOKENS.tsv LOGITS.tsv     columns cell,logit of scpredict cells --head NAME
bmfm_released.py reconstruct DIR TOKENS.tsv PREDICTION.tsv     columns gene,value,expressed,gated of scpredict expression
bmfm_released.py masked DIR MASKED.tsv EVAL.tsv     columns input,input_value,position,value; what sctrain eval printed
"""
import io
import json
import os
import pickle
import sys
import types
import zipfile

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bert  # noqa: E402
import bmfm  # noqa: E402
from autograd import V  # noqa: E402

SIZES = {"small": {"hidden": 64, "layers": 2, "heads": 2, "basis": 16, "genes": 0},
         "released": {"hidden": 384, "layers": 12, "heads": 12, "basis": 48, "genes": 19283}}
SPECIAL = ["[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"] + ["[CLS_%d]" % i for i in range(31)] + ["[S]", "[T]"]
TERMS = ["CL:0000%03d" % i for i in (84, 232, 235, 236, 576)]
LABELS = {"cell_type_ontology_term_id": TERMS, "tissue": ["blood", "gut", "heart"], "tissue_general": ["blood", "organ"],
          "donor_id": ["d%d" % i for i in range(7)], "sex": ["female", "male"]}
FROM = {"cell_type_ontology_term_id": 1, "tissue": 2, "tissue_general": 2, "donor_id": 3, "sex": 4}
E = "core.encoder."
MLM = "cls.predictions.predictions."
OBO = "format-version: 1.2\n\n" + "".join("[Term]\nid: %s\nname: %s\n%s\n" % (t, n, "".join("is_a: %s\n" % p for p in up)) for t, n, up in [
    ("CL:0000000", "cell", []), ("CL:0000001", "blood cell", ["CL:0000000"]), (TERMS[0], "T cell", ["CL:0000001"]), (TERMS[1], "red cell", ["CL:0000001"]),
    (TERMS[2], "macrophage", ["CL:0000001"]), (TERMS[3], "B cell", ["CL:0000001"]), (TERMS[4], "monocyte", ["CL:0000001"])])


def columns(kind):
    return [n for n in LABELS if kind == "wced" or n != "sex"]


def shapes(kind, size, V_):
    s, C = SIZES[size], SIZES[size]["hidden"]
    wide = {64: 256, 384: 1024}[C]
    out = {E + "embeddings.genes_embeddings.weight": (V_, C), E + "embeddings.expressions_embeddings.special_token_embeddings.weight": (37, C),
           E + "embeddings.expressions_embeddings.basis": (s["basis"],), E + "embeddings.expressions_embeddings.dense.weight": (C, 2 * s["basis"]),
           E + "embeddings.LayerNorm.weight": (C,), E + "embeddings.LayerNorm.bias": (C,)}
    for i in range(s["layers"]):
        b = E + "blocks.%d." % i
        out.update({b + "rms_1.scale": (C,)} if i else {})
        out.update({b + "attn.c_attn.weight": (3 * C, C), b + "attn.proj.weight": (C, C), b + "rms_2.scale": (C,), b + "mlp.c_fc1.weight": (wide, C),
                    b + "mlp.c_fc2.weight": (wide, C), b + "mlp.c_proj.weight": (C, wide)})
    out.update({"core.pooler.dense.weight": (C, C), "core.pooler.dense.bias": (C,), MLM + "transform.dense.weight": (C, C), MLM + "transform.dense.bias": (C,),
                MLM + "transform.LayerNorm.weight": (C,), MLM + "transform.LayerNorm.bias": (C,)})
    for name, n in (("wced", 2 * V_),) if kind == "wced" else (("regression", 1), ("is_zero", 1)):
        out.update({MLM + "decoder.field_decoders.expressions_%s.weight" % name: (n, C), MLM + "decoder.field_decoders.expressions_%s.bias" % name: (n,)})
    for name in columns(kind):
        d = "cls.label_predictions.predictions.label_decoders.%s.decoder." % name + ("1." if kind == "mlm" and name == "donor_id" else "")
        out.update({d + "weight": (len(LABELS[name]), C), d + "bias": (len(LABELS[name]),)})
    return out


def weights(kind, size, V_):
    r, out = np.random.default_rng(7), {}
    for name, shape in shapes(kind, size, V_).items():
        if name.endswith("basis"):
            x = np.float32(2 * np.pi * 0.01) * 2.0 ** np.arange(shape[0])
        elif name.endswith("scale") or name.endswith("LayerNorm.weight"):
            x = r.uniform(0.8, 1.2, shape)
        else:
            x = r.standard_normal(shape, dtype="f4") * (1 if "embeddings.weight" in name else shape[-1] ** -0.5)
        out["model." + name] = x.astype("<f4")
    return out


def field(**more):
    """As FieldInfo.to_dict."""
    return {"field_name": None, "vocab_size": None, "pretrained_embedding": None, "vocab_update_strategy": "static", "is_masked": False, "is_input": True,
            "decode_modes": None, "tokenization_strategy": "tokenize", "num_special_tokens": 36, "encoder_kwargs": None, **more}


def config(kind, size, V_):
    s = SIZES[size]
    modes = {"wced": {"vocab_field": "genes", "logit_outputs": ["mse", "is_zero_bce"]}} if kind == "wced" else {"regression": {}, "is_zero": {}}
    label = [{"label_column_name": n, "task_group": None, "is_stratification_label": False, "is_regression_label": False, "is_multilabel": False,
              "classifier_depth": 1, "gradient_reversal_coefficient": 1.0 if kind == "mlm" and n == "donor_id" else None,
              "n_unique_values": len(LABELS[n]), "silent_label_values": None, "multilabel_str_sep": "|",
              "label_ontology": "celltypeont" if n == TERMS[0] or n == "cell_type_ontology_term_id" else None,
              "decode_from": FROM[n] if kind == "wced" else None} for n in columns(kind)]
    expressions = field(field_name="expressions", vocab_size=V_, is_masked=True, tokenization_strategy="continuous_value_encoder", decode_modes=modes,
                        encoder_kwargs={"kind": "scale_adapt", "n_sin_basis": s["basis"], "basis_scale": 0.01, "trainable": False, "zero_as_special_token": True})
    return {"attention": "flex", "checkpoint": None, "classifier_pooling": "cls", "fields": [field(field_name="genes", vocab_size=V_), expressions],
            "flex_attention": True, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": s["hidden"], "initializer_range": 0.02,
            "label_columns": label, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "scllama", "num_attention_heads": s["heads"],
            "num_hidden_layers": s["layers"], "num_memory_tokens": 0, "pad_token_id": 0, "position_embedding_type": None, "transformers_version": "4.52.4",
            "use_cache": True}


# ---- files ----

def write_tokenizer(path, tokens, kind):
    before = [{"SpecialToken": {"id": t, "type_id": 0}} for t in (["[CLS]"] + ["[CLS_%d]" % i for i in range(4 * (kind == "wced"))])]
    os.makedirs(path + "/tokenizers/genes")
    json.dump({"version": "1.0", "added_tokens": [{"id": i, "content": t, "special": True} for i, t in enumerate(SPECIAL)],
               "post_processor": {"type": "TemplateProcessing", "single": before + [{"Sequence": {"id": "A", "type_id": 0}},
                                                                                    {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]},
               "model": {"type": "WordLevel", "vocab": {t: i for i, t in enumerate(tokens)}, "unk_token": "[UNK]"}},
              open(path + "/tokenizers/genes/tokenizer.json", "w"), indent=2)


def write_safetensors(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for x in tensors.values():
            f.write(x.tobytes())


def module(name, **members):
    m = sys.modules[name] = types.ModuleType(name)
    for k, v in members.items():
        v.__module__, v.__qualname__ = name, v.__name__
        setattr(m, k, v)
    return m


class FloatStorage:
    pass


class FieldInfo:
    pass


class LabelColumnInfo:
    pass


class LlamaForMultiTaskConfig:
    pass


class AttributeDict(dict):
    pass


class AttentionKind(str):
    def __reduce__(self):
        return AttentionKind, (str(self),)


def _rebuild_tensor_v2():
    pass


def write_ckpt(path, tensors, c, labels):
    """As torch.save does: a zip of data.pkl, in which storages are persistent ids, and of their bytes."""
    module("torch", FloatStorage=FloatStorage)
    module("torch._utils", _rebuild_tensor_v2=_rebuild_tensor_v2)
    module("bmfm_targets.config.tokenization_config", FieldInfo=FieldInfo, LabelColumnInfo=LabelColumnInfo)
    module("bmfm_targets.models.predictive.llama.config", LlamaForMultiTaskConfig=LlamaForMultiTaskConfig)
    module("bmfm_targets.models.common.llama.constants", AttentionKind=AttentionKind)
    module("pytorch_lightning.utilities.parsing", AttributeDict=AttributeDict)
    sys.modules.update({n: sys.modules.get(n) or types.ModuleType(n) for n in (
        "bmfm_targets", "bmfm_targets.config", "bmfm_targets.models", "bmfm_targets.models.predictive", "bmfm_targets.models.predictive.llama",
        "bmfm_targets.models.common", "bmfm_targets.models.common.llama", "pytorch_lightning", "pytorch_lightning.utilities")})

    class Storage:
        def __init__(self, key, n):
            self.key, self.n = key, n

    class Tensor:
        def __init__(self, key, x):
            self.key, self.x = key, x

        def __reduce__(self):
            stride = [int(s) // 4 for s in self.x.strides]
            return _rebuild_tensor_v2, (Storage(self.key, self.x.size), 0, tuple(self.x.shape), tuple(stride), False, {})

    class Pickler(pickle.Pickler):
        def persistent_id(self, x):
            return ("storage", FloatStorage, x.key, "cpu", x.n) if isinstance(x, Storage) else None

    def made(kind, state):
        o = kind()
        o.__dict__.update(state)
        return o
    model_config = made(LlamaForMultiTaskConfig, dict(c, attention=AttentionKind("flex"), fields=[made(FieldInfo, f) for f in c["fields"]],
                                                      label_columns=[made(LabelColumnInfo, f) for f in c["label_columns"]], return_dict=True))
    out = io.BytesIO()
    Pickler(out, 2).dump({"epoch": 7, "state_dict": {n: Tensor(str(i), x) for i, (n, x) in enumerate(tensors.items())},
                          "hyper_parameters": AttributeDict(model_config=model_config, label_dict=labels, kwargs={})})
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("last/data.pkl", out.getvalue())
        z.writestr("last/byteorder", "little")
        for i, x in enumerate(tensors.values()):
            z.writestr("last/data/%d" % i, x.tobytes())
        z.writestr("last/version", "3\n")


def make(folder, kind, size, genes):
    tokens = SPECIAL + open(genes).read().split()
    tokens += ["FILL%05d" % i for i in range(SIZES[size]["genes"] - len(tokens) + len(SPECIAL))]
    c, w = config(kind, size, len(tokens)), weights(kind, size, len(tokens))
    labels = {n: {t: i for i, t in enumerate(LABELS[n])} for n in columns(kind)}
    for part in ("hub", "lightning"):
        write_tokenizer(folder + "/" + part, tokens, kind)
    write_safetensors(folder + "/hub/model.safetensors", w)
    json.dump(dict(c, architectures=["BiomedRnaForSequenceEmbedding"]), open(folder + "/hub/config.json", "w"), indent=2)
    json.dump({"hyper_parameters": {"model_config": c, "label_dict": labels}}, open(folder + "/hub/checkpoint_metadata.json", "w"), indent=2)
    write_ckpt(folder + "/lightning/biomed.rna.ckpt", w, c, labels)
    open(folder + "/some.obo", "w").write(OBO)
    print(sum(x.size for x in w.values()))


# ---- what such a model computes ----

def load(folder):
    c, arrays = bert.load(folder + "/hub")
    s = c["fields"][1]["encoder_kwargs"]
    own = {"num_attention_heads": c["num_attention_heads"], "num_hidden_layers": c["num_hidden_layers"], "layer_norm_eps": 1e-12, "hidden_act": "gelu",
           "pad_token_id": 0, "value_encoder": "periodic", "value_frequencies": s["n_sin_basis"]}
    return own, {n[len("model."):]: V(a) for n, a in arrays.items()}


def rows(path):
    for line in open(path).read().split("\n")[1:-1]:
        yield [f.split() for f in line.split("\t")]


def cells(c, p, table):
    """cell: its hidden states"""
    return {cell[0]: bmfm.encode(c, p, [int(t) for t in ids], [float(v) for v in values])[-1].x for cell, ids, values in rows(table)}


def near(got, want, tol=2e-5):
    got, want = np.array(got, float), np.array(want, float)
    assert got.shape == want.shape, (got.shape, want.shape)
    off = np.abs(got - want).max() / np.abs(want).max()
    assert off < tol, off
    return off


def linear(p, name, x):
    return x @ p[name + ".weight"].x.T + p[name + ".bias"].x


def states(folder, kind, tokens, table, positions):
    x = cells(*load(folder), tokens)
    print(max(near(got, np.concatenate([x[cell[0]][int(k)] for k in positions.split(",")])) for cell, got in rows(table)))


def pooler(folder, tokens, table):
    c, p = load(folder)
    x = cells(c, p, tokens)
    print(max(near(got, np.tanh(linear(p, "core.pooler.dense", x[cell[0]][0]))) for cell, got in rows(table)))


def head(folder, kind, name, tokens, table):
    c, p = load(folder)
    x = cells(c, p, tokens)
    d = "cls.label_predictions.predictions.label_decoders.%s.decoder" % name + (".1" if kind == "mlm" and name == "donor_id" else "")
    read = {k: s[FROM[name]] if kind == "wced" else np.tanh(linear(p, "core.pooler.dense", s[0])) for k, s in x.items()}
    print(max(near(got, linear(p, d, read[cell[0]])) for cell, got in rows(table)))


def decoded(c, p, x):
    t = bmfm.transform(c, p, V(x), MLM + "transform.").x
    return lambda name: linear(p, MLM + "decoder.field_decoders.expressions_" + name, t)


def reconstruct(folder, tokens, table):
    c, p = load(folder)
    for s, (gene, value, expressed, gated) in zip(cells(c, p, tokens).values(), rows(table)):
        m, a = decoded(c, p, s[:1])("wced").reshape(-1, 2)[[int(g) for g in gene]].T
        near(value, m)
        near(expressed, 1 / (1 + np.exp(a)))
        near(gated, np.where(a > 0, 0, m))


def masked(folder, table, printed):
    c, p = load(folder)
    zero, square = [], []
    for ids, values, position, target in rows(table):
        x = bmfm.encode(c, p, [int(t) for t in ids], [float(v) for v in values])[-1].x
        at = decoded(c, p, x[[int(k) for k in position]])
        m, a, y = at("regression")[:, 0], at("is_zero")[:, 0], np.array([float(v) for v in target])
        zero += list(np.logaddexp(0, a) - np.where(y == 0, a, 0))
        square += list(((m - y) ** 2)[y != 0])
    got = dict(line.split("\t") for line in open(printed).read().split("\n")[1:-1])
    near([got["is_zero"], got["mse"], got["masked"]], [np.mean(zero), np.mean(square), len(zero)], 1e-5)


if __name__ == "__main__":
    {"make": make, "states": states, "pooler": pooler, "head": head, "reconstruct": reconstruct, "masked": masked}[sys.argv[1]](*sys.argv[2:])
