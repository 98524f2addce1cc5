"""Million tokens a CPU second through Hugging Face's DataCollatorForLanguageModeling, on the cells of a text file, in batches of 12.

    maskgen_torch.py CELLS.txt MASKGEN          MASKGEN: maskgen's own rate for the same masks (--bernoulli), for the ratio
"""
import sys
import time

import torch
from transformers import BertTokenizer, DataCollatorForLanguageModeling

torch.set_num_threads(1)
cells = [[int(t) for t in line.split()] for line in open(sys.argv[1])]
vocab = sys.argv[1] + ".vocab"
with open(vocab, "w") as f:
    f.write("[PAD]\n[MASK]\n[UNK]\n[CLS]\n[SEP]\n" + "".join(f"g{i}\n" for i in range(25421)))
collate = DataCollatorForLanguageModeling(tokenizer=BertTokenizer(vocab), mlm_probability=0.15)
batches = [cells[i:i + 12] for i in range(0, len(cells), 12)]
tokens = sum(len(c) for c in cells)


def rate(prepare, work):
    """The best of three passes over all batches."""
    ready = [prepare(b) for b in batches]
    best = 1e9
    for _ in range(3):
        start = time.process_time()
        for b in ready:
            work(b)
        best = min(best, time.process_time() - start)
    return tokens / best / 1e6


def rows(b):
    """As a data set gives them. The mask of special tokens is there already: to look every token up costs far more."""
    return [{"input_ids": c, "attention_mask": [1] * len(c), "special_tokens_mask": [int(t < 2) for t in c]} for c in b]


def padded(b):
    x = torch.nn.utils.rnn.pad_sequence([torch.tensor(c) for c in b], batch_first=True)
    return x, (x < 2).long()


whole = rate(rows, lambda b: collate([dict(r) for r in b]))
masks = rate(padded, lambda b: collate.torch_mask_tokens(b[0].clone(), b[1]))
print(f"hf_collator_mtokens_per_s\t{whole:.3f}\nhf_masks_alone_mtokens_per_s\t{masks:.3f}")
print(f"ratio_to_hf_collator\t{float(sys.argv[2]) / whole:.1f}\nratio_to_hf_masks_alone\t{float(sys.argv[2]) / masks:.1f}")
