#!/usr/bin/env python3
"""Does transformers read what sctrain writes? Needs torch and transformers (made with torch 2.2.2, transformers 4.41.2).

Usage: hf_load.py MODEL LOGITS
Loads the model directory with the class its config.json names (no key missing or unexpected), saves it again (the safetensors file
must be the same bytes, but for our digests, which are left away), and writes the logits of fixed inputs to LOGITS: a line "CELLS COLUMNS", then for every cell a line of
token ids and, for each of its tokens (BertForSequenceClassification: once), a line of logits. tests/unit/test_checkpoint.c holds
the model to these numbers.

The golden model of tests/golden/v1/hf_mlm was made by
    scsim --cells 300 --genes 30 --modules 3 --types 3 --seed 5 | rankenc --fit -o vocab.tsv        (and rankenc -m vocab.tsv)
    maskgen --epochs 6 --seed 5 cells.tok | sctrain mlm --config CONFIG --lr 0.01 -o hf_mlm
with a CONFIG of hidden_size 24, intermediate_size 40, 2 layers, 3 heads, 32 positions, relu; then its vocab.tsv, config.json
and model.safetensors were kept. hf_cells and hf_genes came from it on the same cells:
    maskgen --strategy none --keep cell_type --epochs 6 --seed 5 cells.tok | sctrain cells --label cell_type --init hf_mlm --lr 0.003 -o hf_cells
    awk -F'\\t' 'NR > 1 && $3 ~ /^m[1-3]/ { print $2 "\\t" substr($3, 1, 2) }' vocab.tsv >labels.tsv
    maskgen --strategy none --epochs 6 --seed 5 cells.tok | sctrain genes --gene-labels labels.tsv --fold 0/3 --init hf_mlm --lr 0.003 -o hf_genes
    rankenc -m vocab.tsv --ties group --value cells.counts | maskgen --objective value --epochs 6 --seed 5 |
      sctrain value --init hf_mlm --lr 0.01 -o hf_value
"""
import json
import sys
import tempfile
import numpy as np
import torch
import transformers


def parts(folder):
    raw = open(folder + "/model.safetensors", "rb").read()
    n = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8:8 + n]), raw[8 + n:]


config = json.load(open(sys.argv[1] + "/config.json"))
model, info = getattr(transformers, config["architectures"][0]).from_pretrained(sys.argv[1], output_loading_info=True, attn_implementation="eager")
assert not any(info.values()), info
model.eval()
with tempfile.TemporaryDirectory() as tmp:
    model.save_pretrained(tmp)
    (again, data), (ours, our_data) = map(parts, (tmp, sys.argv[1]))
    assert again.pop("__metadata__") == {"format": "pt"} and ours.pop("__metadata__")["format"] == "pt"
    print("saved again:", "the same tensors" if (again, data) == (ours, our_data) else "other tensors")
    assert (again, data) == (ours, our_data)
rng = np.random.default_rng(7)
V = model.config.vocab_size
cells = config["architectures"] == ["BertForSequenceClassification"]
with open(sys.argv[2], "w") as out, torch.no_grad():
    lengths = [1, 5, model.config.max_position_embeddings, 12]
    print(len(lengths), model.num_labels if "id2label" in config else V, file=out)
    for n in lengths:
        ids = rng.integers(0, V, n)
        print(*ids, file=out)
        z = model(torch.tensor(ids[None])).logits
        for row in (z if cells else z[0]).double().numpy():
            print(*(f"{x:.9g}" for x in row), file=out)
