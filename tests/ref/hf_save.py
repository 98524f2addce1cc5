#!/usr/bin/env python3
"""Does scembed read what transformers writes? Needs torch, transformers and safetensors (run with 2.2.2, 4.41.2, 0.8.0).

Usage: hf_save.py BIN TOKENS.tok        BIN: the folder of the tools; a tokens stream of cells of 1 to 64 tokens, a few dozen
Random models of every kind a user may hand us (three heads and none, float16 and bfloat16, gelu and relu, an old file with
position_ids and the decoder) are saved, and the mean of their hidden states is compared; for the two classifiers also what
scpredict cells says, with names of classes and without. Exits 1 above 1e-5. Measured: 2.4e-7, and 1.1e-6 for logits.
"""
import io
import os
import subprocess
import sys
import tempfile
import numpy as np
import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertForTokenClassification, BertModel

bin_dir, tokens = sys.argv[1:]
torch.manual_seed(0)
torch.set_num_threads(1)


def tool(name, *args):
    return subprocess.run([os.path.join(bin_dir, name), *args], check=True, stdout=subprocess.PIPE).stdout


rows = [list(map(int, line.split())) for line in tool("scview", "-c", "token", tokens).decode().split("\n")[1:-1]]
vocab = tool("scview", "--vocab", tokens).count(b"\n") - 1
gelu = BertConfig(vocab_size=vocab, hidden_size=64, num_hidden_layers=3, num_attention_heads=1, intermediate_size=128, max_position_embeddings=64)
relu = BertConfig(**{**gelu.to_dict(), "hidden_act": "relu"})
models = {
    "masked": BertForMaskedLM(gelu), "masked relu": BertForMaskedLM(relu), "float16": BertForMaskedLM(gelu).half(),
    "bfloat16": BertForMaskedLM(gelu).bfloat16(), "cells": BertForSequenceClassification(gelu), "genes": BertForTokenClassification(gelu),
    "bare": BertModel(gelu), "position_ids": BertForMaskedLM(gelu),
}
worst = 0
for name, model in models.items():
    for p in model.parameters():
        p.data += 0.05 * torch.randn_like(p.data)
    with tempfile.TemporaryDirectory() as tmp, tempfile.TemporaryDirectory() as out:
        model.save_pretrained(tmp)
        if name == "position_ids":
            state = {k: v.clone() for k, v in model.state_dict().items()}
            state["bert.embeddings.position_ids"] = torch.arange(64)[None]
            save_file(state, tmp + "/model.safetensors")
        model = model.float().eval()
        encoder = getattr(model, "bert", model)
        for layer in 0, -1, -3:
            tool("scembed", "-q", "-M", tmp, "--emb-layer", str(layer), "-o", out + "/x.emb", tokens)
            got = np.load(io.BytesIO(tool("scview", "-O", "npy", out + "/x.emb")))
            with torch.no_grad():
                want = np.array([encoder(torch.tensor([r]), output_hidden_states=True).hidden_states[layer - 1][0].mean(0).numpy() for r in rows])
            apart = np.abs(got - want).max() / np.abs(want).max()
            worst = max(worst, apart)
            print(f"{name}, layer {layer}: {apart:.1e}")
for name, model in models.items():
    if name not in ("cells", "genes"):
        continue
    for labels in None, ["naive B", "T", "NK"]:
        if labels:
            model = type(model)(BertConfig(**{**gelu.to_dict(), "id2label": dict(enumerate(labels)), "label2id": {n: i for i, n in enumerate(labels)}}))
            for p in model.parameters():
                p.data += 0.2 * torch.randn_like(p.data)
        model = model.float().eval()
        with tempfile.TemporaryDirectory() as tmp, tempfile.TemporaryDirectory() as out:
            model.save_pretrained(tmp)
            tool("scpredict", *(["cells"] if name == "cells" else ["genes"]), "-q", "-M", tmp, "-o", out + "/x.pred", tokens)
            with torch.no_grad():
                want = [model(torch.tensor([r])).logits[0].numpy() for r in rows]
            names = labels or ["LABEL_0", "LABEL_1"]
            if name == "cells":
                got = np.load(io.BytesIO(tool("scview", "-O", "npy", out + "/x.pred")))
                said = tool("scview", "-c", "predicted", out + "/x.pred").decode().split("\n")[1:-1]
                assert said == [names[w.argmax()] for w in want] and (not labels or len(set(said)) > 1), said
                want = np.array(want)
            else:
                lines = {n: tool("scview", "-c", "logit." + n, out + "/x.pred").decode().split("\n")[1:-1] for n in names}
                got = np.array([[float(x) for line in lines[n] for x in line.split()] for n in names]).T
                gene_ids = [line.split("\t")[1] for line in tool("scview", "--vocab", tokens).decode().split("\n")[1:-1]]
                want = np.concatenate([w[[not gene_ids[i].startswith("<") for i in r]] for w, r in zip(want, rows)])
            apart = np.abs(got - want).max() / np.abs(want).max()
            worst = max(worst, apart)
            print(f"{name}, {len(names)} classes, logits {got.shape}: {apart:.1e}")
sys.exit(not worst < 1e-5)
