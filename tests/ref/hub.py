#!/usr/bin/env python3
"""A folder like Geneformer's repository on the hub, of small models with random weights: hub.py TABLES FOLDER MODEL... (such as Geneformer-V2-104M).

TABLES: the folder with Geneformer's dictionaries as tables, or a vocabulary with symbols, which becomes that of V2, with OLDID and symbol as the other
names of each gene. In FOLDER are the four pickles of V2 in geneformer, those of V1 in geneformer/gene_dictionaries_30m, with numbers of the types that they
have there; and each MODEL as transformers saves a BertForMaskedLM: config.json and model.safetensors, of the published positions, but a width of 32 and
two layers."""
import gzip
import json
import os
import pickle
import struct
import sys

import numpy as np

tables, folder, *models = sys.argv[1:]


def of_vocabulary(stem):
    rows = [line.rstrip("\n").split("\t") for line in open(tables)][1:]
    genes = [(i, s) for _, i, s, _ in rows if i[0] != "<"]
    return {"token_dictionary": [(r[1], r[0]) for r in rows], "gene_median": [(r[1], r[3]) for r in rows if r[3] != "NA"],
            "gene_name_id": [(s, i) for i, s in genes], "ensembl_mapping": [(k, i) for i, s in genes for k in (i, "OLD" + i, s.upper())]}[stem]


def table(name):
    if os.path.isfile(tables):
        return of_vocabulary(name.rsplit("_", 1)[0])
    with gzip.open("%s/%s.tsv.gz" % (tables, name), "rt") as f:
        return [line.rstrip("\n").split("\t") for line in f][1:]


size = {}
for gc, place, number in (("gc30M", "geneformer/gene_dictionaries_30m", np.int16), ("gc104M", "geneformer", int))[os.path.isfile(tables):]:
    os.makedirs("%s/%s" % (folder, place), exist_ok=True)
    size[gc] = len(table("token_dictionary_" + gc))
    for stem, source, kind in (("token_dictionary", "token_dictionary", lambda x: number(x) if int(x) > 1 else int(x)),
                               ("gene_median_dictionary", "gene_median", np.float64), ("gene_name_id_dict", "gene_name_id", str),
                               ("ensembl_mapping_dict", "ensembl_mapping", str)):
        with open("%s/%s/%s_%s.pkl" % (folder, place, stem, gc), "wb") as f:
            pickle.dump({row[0]: kind(row[1]) for row in table("%s_%s" % (source, gc))}, f)


def shapes(c):
    h, i = c["hidden_size"], c["intermediate_size"]
    e = "bert.embeddings."
    yield from ((e + "word_embeddings.weight", [c["vocab_size"], h]), (e + "position_embeddings.weight", [c["max_position_embeddings"], h]),
                (e + "token_type_embeddings.weight", [2, h]), (e + "LayerNorm.weight", [h]), (e + "LayerNorm.bias", [h]))
    for n in range(c["num_hidden_layers"]):
        for name, shape in (("attention.self.query", [h, h]), ("attention.self.key", [h, h]), ("attention.self.value", [h, h]),
                            ("attention.output.dense", [h, h]), ("attention.output.LayerNorm", [h]), ("intermediate.dense", [i, h]),
                            ("output.dense", [h, i]), ("output.LayerNorm", [h])):
            yield from (("bert.encoder.layer.%d.%s.weight" % (n, name), shape), ("bert.encoder.layer.%d.%s.bias" % (n, name), shape[:1]))
    p = "cls.predictions."
    yield from ((p + "transform.dense.weight", [h, h]), (p + "transform.dense.bias", [h]), (p + "transform.LayerNorm.weight", [h]),
                (p + "transform.LayerNorm.bias", [h]), (p + "bias", [c["vocab_size"]]))


for model in models:
    v1 = "V1" in model
    c = {"architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": .02, "hidden_act": "relu", "hidden_dropout_prob": .02, "hidden_size": 32,
         "initializer_range": .02, "intermediate_size": 64, "layer_norm_eps": 1e-12, "max_position_embeddings": 2048 if v1 else 4096,
         "model_type": "bert", "num_attention_heads": 2, "num_hidden_layers": 2, "pad_token_id": 0, "position_embedding_type": "absolute",
         "torch_dtype": "float32", "transformers_version": "4.46.0", "type_vocab_size": 2, "use_cache": True, "vocab_size": size["gc30M" if v1 else "gc104M"]}
    os.makedirs("%s/%s" % (folder, model), exist_ok=True)
    with open("%s/%s/config.json" % (folder, model), "w") as f:
        json.dump(c, f, indent=2)
    rng, head, parts, at = np.random.default_rng(1), {"__metadata__": {"format": "pt"}}, [], 0
    for name, shape in shapes(c):
        x = np.ones(shape) if "LayerNorm.weight" in name else np.zeros(shape) if "bias" in name else rng.normal(0, .2, shape)
        parts.append(x.astype("<f4").tobytes())
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open("%s/%s/model.safetensors" % (folder, model), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
