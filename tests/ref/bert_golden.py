#!/usr/bin/env python3
"""Make tests/golden/v1/bert.bin and value.bin: what transformers' BERT and torch's optimisers do with small fixed inputs.

Needs torch and transformers (made with torch 2.2.2, transformers 4.41.2, eager attention, float32 weights; forward and
losses in float32 as a user would run it). Usage: bert_golden.py OUT [value]
With `value` the only case is a number at each masked position, and tokens share positions.

The file is a sequence of arrays: a line "NAME f4|i4|u4 COUNT\n", then COUNT little-endian values.
    CASE.config            i4: vocab hidden layers heads intermediate positions labels act (1 relu, 2 gelu)
    CASE.param.TENSOR      initial weights                   CASE.grad.TENSOR   gradient of the mean loss on batch 0
    CASE.bK.offset/id/mask/target/label                      batches; of value: rank (position_ids), and value, NaN: none
    CASE.hiddenI           hidden states of batch 0 (packed), I = 0 embeddings .. layers
    CASE.logits            of batch 0: masked positions, cells or tokens
    CASE.OPT.loss/norm     of 200 or, of value, 100 updates (batch k % 4), CASE.OPT.final.TENSOR weights after them
"""
import sys
import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertForTokenClassification
from transformers import get_linear_schedule_with_warmup, get_cosine_schedule_with_warmup
from transformers.optimization import AdamW as HfAdamW

STEPS, WARMUP, TOTAL, LR, DECAY = 200, 20, 220, 2e-3, 0.05
LENGTHS = [[1, 13, 30, 7], [24, 2, 19], [30], [5, 5, 11, 17, 3]]
torch.set_num_threads(1)
out = open(sys.argv[1], "wb")


def put(name, x):
    x = np.ascontiguousarray(x)
    kind = {"f": "f4", "i": "i4", "u": "u4"}[x.dtype.kind]
    out.write(f"{name} {kind} {x.size}\n".encode())
    out.write(x.astype("<" + kind).tobytes())


def batches(rng, vocab, labels):
    for lengths in LENGTHS:
        b = {"offset": np.cumsum([0] + lengths).astype("u4")}
        T = int(b["offset"][-1])
        ids = rng.integers(2, vocab, T)
        mask = np.flatnonzero(rng.random(T) < 0.3)
        if not len(mask):
            mask = np.array([T - 1])
        b["target"] = ids[mask].astype("u4")
        ids[mask[::2]] = 1
        b["id"], b["mask"] = ids.astype("u4"), mask.astype("u4")
        b["cells"] = rng.integers(0, labels, len(lengths)).astype("i4")
        b["genes"] = np.where(rng.random(T) < 0.4, rng.integers(0, labels, T), -1).astype("i4")
        yield b


def add_values(b, rng):
    T = int(b["offset"][-1])
    b["rank"] = rng.integers(0, 12, T).astype("u4")
    b["rank"][b["mask"]] = 0
    b["value"] = rng.normal(3, 1.5, len(b["mask"])).astype("f4")
    b["value"][rng.random(len(b["mask"])) < 0.2] = np.nan


def pad(b, x, fill):
    """Packed values to a padded [cells, longest] tensor."""
    n = np.diff(b["offset"].astype(int))
    p = np.full((len(n), n.max()), fill, dtype="i8")
    for i in range(len(n)):
        p[i, : n[i]] = x[b["offset"][i]: b["offset"][i + 1]]
    return torch.tensor(p)


def run(case, task, act, seed, opts, steps=STEPS):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    config = BertConfig(vocab_size=41, hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=36,
                        max_position_embeddings=32, hidden_act=act, hidden_dropout_prob=0, attention_probs_dropout_prob=0,
                        layer_norm_eps=1e-12, pad_token_id=0, num_labels=1 if task == "value" else 3, initializer_range=0.1)
    cls = {"mlm": BertForMaskedLM, "cells": BertForSequenceClassification, "genes": BertForTokenClassification,
           "value": BertForTokenClassification}[task]
    model = cls(config).float()
    with torch.no_grad():
        for n, p in model.named_parameters():
            if "LayerNorm" in n or n.endswith("bias"):
                p.add_(torch.tensor(rng.normal(0, 0.1, p.shape), dtype=p.dtype))
    start = {n: p.detach().clone() for n, p in model.named_parameters()}
    put(f"{case}.config", np.array([41, 24, 2, 2, 36, 32, {"mlm": 0, "value": 1}.get(task, 3), {"relu": 1, "gelu": 2}[act]], "i4"))
    for n, p in start.items():
        put(f"{case}.param.{n}", p.numpy())
    bs = list(batches(rng, 41, 3))
    for k, b in enumerate(bs):
        for f in ["offset", "id", "mask", "target"]:
            put(f"{case}.b{k}.{f}", b[f])
        if task == "value":
            add_values(b, rng)
            put(f"{case}.b{k}.rank", b["rank"])
            put(f"{case}.b{k}.value", b["value"])
        elif task != "mlm":
            put(f"{case}.b{k}.label", b[task])

    def forward(b, **kw):
        n = np.diff(b["offset"].astype(int))
        att = pad(b, np.ones(b["offset"][-1]), 0)
        if task == "value":  # the class has no loss of numbers
            r = model(input_ids=pad(b, b["id"], 0), attention_mask=att, position_ids=pad(b, b["rank"], 0), **kw)
            y = torch.cat([r.logits[i, : n[i], 0] for i in range(len(n))])[b["mask"].astype("i8")]
            there = torch.tensor(~np.isnan(b["value"]))
            r.loss = torch.nn.functional.mse_loss(y[there], torch.tensor(b["value"])[there])
            return r, n
        if task == "mlm":
            lab = np.full(b["offset"][-1], -100)
            lab[b["mask"]] = b["target"]
            lab = pad(b, lab, -100)
        elif task == "cells":
            lab = torch.tensor(b["cells"].astype("i8"))
        else:
            lab = pad(b, np.where(b["genes"] < 0, -100, b["genes"]), -100)
        return model(input_ids=pad(b, b["id"], 0), attention_mask=att, labels=lab, **kw), n

    model.train()
    r, n = forward(bs[0], output_hidden_states=True)
    pack = lambda x: np.concatenate([x[i, : n[i]].detach().numpy() for i in range(len(n))])
    for i, h in enumerate(r.hidden_states):
        put(f"{case}.hidden{i}", pack(h))
    z = r.logits.detach().numpy() if task == "cells" else pack(r.logits)
    put(f"{case}.logits", z[bs[0]["mask"]] if task in ("mlm", "value") else z)
    put(f"{case}.loss", np.array([r.loss.item()], "f4"))
    r.loss.backward()
    for name, p in model.named_parameters():
        put(f"{case}.grad.{name}", p.grad.numpy())
    for opt in opts:
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(start[name])
        decay = [p for name, p in model.named_parameters() if "LayerNorm" not in name and "bias" not in name]
        other = [p for name, p in model.named_parameters() if "LayerNorm" in name or "bias" in name]
        groups = [{"params": decay, "weight_decay": DECAY}, {"params": other, "weight_decay": 0.0}]
        o = torch.optim.AdamW(groups, lr=LR) if opt == "torch" else HfAdamW(groups, lr=LR, eps=1e-8, no_deprecation_warning=True)
        sched = (get_linear_schedule_with_warmup if opt == "torch" else get_cosine_schedule_with_warmup)(o, WARMUP, TOTAL)
        loss, norm = [], []
        for k in range(steps):
            r, _ = forward(bs[k % 4])
            model.zero_grad()
            r.loss.backward()
            norm.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
            o.step()
            sched.step()
            loss.append(r.loss.item())
        put(f"{case}.{opt}.loss", np.array(loss, "f4"))
        put(f"{case}.{opt}.norm", np.array(norm, "f4"))
        for name, p in model.named_parameters():
            put(f"{case}.{opt}.final.{name}", p.detach().numpy())
        print(case, opt, loss[0], loss[-1])


if sys.argv[2:] == ["value"]:
    run("value", "value", "gelu", 5, ["torch"], 100)  # later, losses near their minimum make rounding large
else:
    run("mlm", "mlm", "relu", 1, ["torch", "hf46"])
    run("gelu", "mlm", "gelu", 2, ["torch"])
    run("cells", "cells", "relu", 3, ["torch"])
    run("genes", "genes", "relu", 4, [])
out.close()
