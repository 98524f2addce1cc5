#!/usr/bin/env python3
"""Do the tools read the published Geneformer checkpoints? Needs torch, transformers and safetensors (run with 2.15.0, 5.23.0).

Usage: hf_geneformer.py BIN V1.tok V2.tok [SHAPE...]
BIN: the folder of the tools. V1.tok, V2.tok: a few cells, encoded with Geneformer's dictionaries gc30M and gc104M. SHAPE: v1-6, v1-12, v2-104,
v2-316 (default: all but the last, which needs 5 GB of memory).

No weights are downloaded: transformers makes folders of exactly the published shapes, names and config.json, with random weights. Compared with
transformers' own, on the same cells: embeddings (mean over genes and <cls>, layers 0 and -1), the loss at masked positions, the logits of
classifiers of cells and of genes; a folder in shards gives the same bytes. Exits 1 above 1e-5.
"""
import csv
import io
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertForTokenClassification

SHAPES = {  # vocabulary, width, layers, heads, inner width, positions, dropout, parameters
    "v1-6": (25426, 256, 6, 4, 512, 2048, 0.02, 10288722),
    "v1-12": (25426, 512, 12, 8, 1024, 2048, 0.02, None),
    "v2-104": (20275, 768, 12, 12, 3072, 4096, 0.1, 104386867),
    "v2-316": (20275, 1152, 18, 18, 4608, 4096, 0.1, 316354867),
}
BYTES = {"v1-6": 41167056, "v2-104": 417571156, "v2-316": 1265455076}  # of model.safetensors, position_ids apart
bin_dir, v1, v2, *names = sys.argv[1:]
torch.manual_seed(0)
torch.set_num_threads(2)
worst = 0


def tool(name, *args, **more):
    return subprocess.run([os.path.join(bin_dir, name), *args], check=True, stdout=subprocess.PIPE, **more).stdout


def column(stream, name, **more):
    text = tool("scview", "-c", name, stream, **more).decode()
    return [row[name] for row in csv.DictReader(io.StringIO(text), delimiter="\t")]


def compare(what, got, want):
    global worst
    apart = np.abs(got - want).max() / np.abs(want).max()
    worst = max(worst, apart)
    print(f"{what}: {apart:.1e}", flush=True)


def save(model, tmp, **more):
    with torch.no_grad():
        for p in model.parameters():  # also what starts as 0 or 1
            p.add_(0.02 * torch.randn_like(p))
    model.eval().save_pretrained(tmp, **more)
    return model


def check(name):
    V, C, L, NH, F, P, dropout, parameters = SHAPES[name]
    tokens, special = (v1, 0) if name[:2] == "v1" else (v2, 1)
    rows = [torch.tensor([[int(t) for t in row.split()]]) for row in column(tokens, "token")]
    config = dict(vocab_size=V, hidden_size=C, num_hidden_layers=L, num_attention_heads=NH, intermediate_size=F, max_position_embeddings=P,
                  hidden_act="relu", hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, pad_token_id=0)
    with tempfile.TemporaryDirectory() as tmp, torch.no_grad():
        model = save(BertForMaskedLM(BertConfig(**config)), tmp + "/m")
        n = sum(p.numel() for p in model.parameters())
        assert parameters in (None, n), n
        assert os.path.getsize(tmp + "/m/model.safetensors") in (BYTES.get(name), None) or name not in BYTES, os.path.getsize(tmp + "/m/model.safetensors")
        hidden = [model.bert(r, output_hidden_states=True).hidden_states for r in rows]
        for layer in 0, -1:
            for pool in ("mean", "cls") if special else ("mean",):
                tool("scembed", "-q", "-@", "2", "-M", tmp + "/m", "--emb-layer", str(layer), "--pool", pool, "-o", tmp + "/x.emb", tokens)
                got = np.load(io.BytesIO(tool("scview", "-O", "npy", tmp + "/x.emb")))
                h = [x[layer - 1][0] for x in hidden]
                want = np.array([(x[0] if pool == "cls" else x[special:len(x) - special].mean(0)).numpy() for x in h])
                compare(f"{name}, layer {layer}, {pool}", got, want)
        tool("maskgen", "-q", "-o", tmp + "/masked", tokens)
        text = tool("scview", "-c", "input,position,target", tmp + "/masked").decode()
        total = count = 0
        for r in csv.DictReader(io.StringIO(text), delimiter="\t"):
            at, target = ([int(t) for t in r[k].split()] for k in ("position", "target"))
            z = model(torch.tensor([[int(t) for t in r["input"].split()]])).logits[0, at]
            total += torch.nn.functional.cross_entropy(z.double(), torch.tensor(target), reduction="sum").item()
            count += len(at)
        said = dict(row.split("\t") for row in tool("sctrain", "eval", "-q", "-@", "2", "-M", tmp + "/m", tmp + "/masked").decode().split("\n")[1:-1])
        compare(f"{name}, loss of {count} masked genes", np.array([float(said["loss"])]), np.array([total / count]))
        model.save_pretrained(tmp + "/shards", max_shard_size="20MB" if name == "v1-6" else "80MB" if name == "v1-12" else "200MB")
        assert os.path.exists(tmp + "/shards/model.safetensors.index.json")
        one, two = (tool("scembed", "-q", "-@", "2", "-M", tmp + d, tokens) for d in ("/m", "/shards"))
        vectors = [tool("scview", "-O", "npy", input=x) for x in (one, two)]
        assert vectors[0] == vectors[1]
        print(f"{name}, in shards: the same bytes", flush=True)
        del model, hidden
    for kind in BertForSequenceClassification, BertForTokenClassification:
        if name == "v2-316":
            continue
        with tempfile.TemporaryDirectory() as tmp, torch.no_grad():
            model = save(kind(BertConfig(**config, num_labels=3)), tmp)
            genes = kind is BertForTokenClassification
            tool("scpredict", *(["genes"] if genes else ["cells"]), "-q", "-@", "2", "-M", tmp, "-o", tmp + "/x.pred", tokens)
            z = [model(r).logits[0].numpy() for r in rows]
            if genes:
                got = np.array([[float(v) for row in column(tmp + "/x.pred", f"logit.LABEL_{k}") for v in row.split()] for k in range(3)]).T
                want = np.concatenate([x[special:len(x) - special] for x in z])
            else:
                got = np.array([[float(v) for v in row.split()] for row in column(tmp + "/x.pred", "logit")])
                want = np.array(z)
            compare(f"{name}, logits of {'genes' if genes else 'cells'}", got, want)


for shape in names or ["v1-6", "v1-12", "v2-104"]:
    check(shape)
print(f"largest difference {worst:.1e}")
sys.exit(worst > 1e-5)
