#!/usr/bin/env python3
"""Does transformers read what sctrain writes? Needs torch and transformers (made with torch 2.2.2, transformers 4.41.2).

Usage: hf_load.py MODEL LOGITS
Loads the model directory with BertForMaskedLM (no key missing or unexpected), saves it again (the safetensors file must be the
same bytes), and writes the logits of fixed inputs to LOGITS: a line "CELLS VOCAB", then for every cell a line of token
ids and, for each of its tokens, a line of logits. tests/unit/test_checkpoint.c holds the model to these numbers.

The golden model of tests/golden/v1/hf_mlm was made by
    scsim --cells 300 --genes 30 --modules 3 --types 3 --seed 5 | rankenc --fit -o vocab.tsv        (and rankenc -m vocab.tsv)
    maskgen --epochs 6 --seed 5 cells.tok | sctrain mlm --config CONFIG --lr 0.01 -o hf_mlm
with a CONFIG of hidden_size 24, intermediate_size 40, 2 layers, 3 heads, 32 positions, relu; then its vocab.tsv, config.json
and model.safetensors were kept.
"""
import sys
import tempfile
import numpy as np
import torch
from transformers import BertForMaskedLM

model, info = BertForMaskedLM.from_pretrained(sys.argv[1], output_loading_info=True, attn_implementation="eager")
assert not any(info.values()), info
model.eval()
with tempfile.TemporaryDirectory() as tmp:
    model.save_pretrained(tmp)
    same = open(tmp + "/model.safetensors", "rb").read() == open(sys.argv[1] + "/model.safetensors", "rb").read()
    print("saved again:", "the same bytes" if same else "different bytes")
    assert same
rng = np.random.default_rng(7)
V = model.config.vocab_size
with open(sys.argv[2], "w") as out, torch.no_grad():
    lengths = [1, 5, model.config.max_position_embeddings, 12]
    print(len(lengths), V, file=out)
    for n in lengths:
        ids = rng.integers(0, V, n)
        print(*ids, file=out)
        for row in model(torch.tensor(ids[None])).logits[0].double().numpy():
            print(*(f"{x:.9g}" for x in row), file=out)
