#!/usr/bin/env python3
"""Write the model of a directory again in the shapes that other programs give such files, from the safetensors specification.

Usage: variants.py MODEL OUT        MODEL: a BertForMaskedLM of ours. Makes OUT/NAME/config.json, vocab.tsv, model.safetensors:
    old         position_ids, decoder.weight and decoder.bias besides, as Geneformer V1's pytorch_model.bin had them; header padded
    bare        a BertModel's file: no "bert.", no head
    nometadata  no __metadata__, tensors in reverse order of their names
    f16 bf16 mixed      half precision, bfloat16, and all three in turn
    wide short int      to be refused: one row too many, a tensor missing, weights that are whole numbers
"""
import json
import os
import shutil
import sys
import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bert  # noqa: E402

base, out = sys.argv[1:]
config, params = bert.load(base)
params = {n: x.astype("<f4") for n, x in params.items()}


def bf16(x):
    u = x.view("<u4").astype("u8")
    return ((u + 0x7FFF + (u >> 16 & 1)) >> 16).astype("<u2")      # round to nearest, ties to even


def write(name, tensors, metadata=True, pad=0):
    """tensors: list of (name, dtype, array)."""
    os.makedirs(f"{out}/{name}", exist_ok=True)
    header, data = {"__metadata__": {"format": "pt"}} if metadata else {}, b""
    for n, dtype, x in tensors:
        raw = np.ascontiguousarray(x).tobytes()
        header[n] = {"dtype": dtype, "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8 + pad)
    with open(f"{out}/{name}/model.safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)
    for n in "config.json", "vocab.tsv":
        shutil.copy(f"{base}/{n}", f"{out}/{name}/{n}")


def cast(n, x, dtype):
    return n, dtype, {"F32": x, "F16": x.astype("<f2"), "BF16": bf16(x) if dtype == "BF16" else x}[dtype]


word, P = params["bert.embeddings.word_embeddings.weight"], config["max_position_embeddings"]
full = [cast(n, x, "F32") for n, x in sorted(params.items())]
write("old", [("bert.embeddings.position_ids", "I64", np.arange(P, dtype="<i8")[None])] + full + [
    ("cls.predictions.decoder.weight", "F32", word), ("cls.predictions.decoder.bias", "F32", params["cls.predictions.bias"])], pad=80)
write("bare", [(n[5:], d, x) for n, d, x in full if n.startswith("bert.")])
write("nometadata", full[::-1], metadata=False)
for dtype in "F16", "BF16":
    write(dtype.lower(), [cast(n, x, dtype) for n, x in sorted(params.items())])
write("mixed", [cast(n, x, ["F32", "F16", "BF16"][i % 3]) for i, (n, x) in enumerate(sorted(params.items()))])
write("wide", [(n, d, np.concatenate([x, x[:1]]) if x is word else x) for n, d, x in full])
write("short", [t for t in full if t[0] != "bert.encoder.layer.1.output.dense.weight"])
write("int", [(n, "I32", x.astype("<i4")) for n, d, x in full])
