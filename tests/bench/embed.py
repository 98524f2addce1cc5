#!/usr/bin/env python3
"""Embedding cells beside transformers, in turns:    make bench-embed

    embed.py BIN CELLS.h5ad CELLS THREADS ROUNDS v1|v1-12|v2 ...     the table
    embed.py peer MODEL TOKENS.txt float32|bf16 THREADS OUT.npy      the peer: prints "wall SECONDS cpu SECONDS peak MB"

The models have the shapes of the published Geneformer models and random weights. CELLS cells are drawn from CELLS.h5ad, so lengths are real.
An embedding is the mean of the tokens' states one layer before the last. scembed is timed from start to exit, with files read and written. The peer
is timed without its imports and without reading: cells sorted by length, batches of as many padded tokens as scembed's.
"""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1", TQDM_DISABLE="1")

SHAPES = {
    "v1": dict(hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=512, max_position_embeddings=2048, hidden_act="relu"),
    "v1-12": dict(hidden_size=512, num_hidden_layers=12, num_attention_heads=8, intermediate_size=1024, max_position_embeddings=2048, hidden_act="relu"),
    "v2": dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, max_position_embeddings=4096, hidden_act="relu"),
}
BATCH_TOKENS = 16384


def load_peer(model):
    """transformers' network without its last layer: scembed computes no layer that it does not read."""
    from transformers import BertModel
    net = BertModel.from_pretrained(model, add_pooling_layer=False).eval()
    net.encoder.layer = net.encoder.layer[:-1]
    return net


def peer(model, path, precision, threads, out):
    import numpy as np
    import torch
    torch.set_num_threads(int(threads))
    net = load_peer(model)
    cells = [[int(t) for t in line.split()] for line in list(open(path))[1:]]
    order = sorted(range(len(cells)), key=lambda i: len(cells[i]))
    special = {t for t in (2, 3) if "v2" in os.path.basename(model)}
    start = time.perf_counter(), time.process_time()
    got = np.zeros((len(cells), net.config.hidden_size), np.float32)
    at = 0
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        while at < len(order):
            n = 1
            while at + n < len(order) and (n + 1) * len(cells[order[at + n]]) <= BATCH_TOKENS:
                n += 1
            some = order[at:at + n]
            longest = max(len(cells[i]) for i in some)
            ids = torch.zeros((n, longest), dtype=torch.long)
            mask = torch.zeros((n, longest), dtype=torch.long)
            gene = torch.zeros((n, longest))
            for k, i in enumerate(some):
                ids[k, :len(cells[i])] = torch.tensor(cells[i])
                mask[k, :len(cells[i])] = 1
                gene[k, :len(cells[i])] = torch.tensor([t not in special for t in cells[i]])
            state = net(ids, attention_mask=mask).last_hidden_state.float()
            got[some] = ((state * gene[..., None]).sum(1) / gene.sum(1, keepdim=True)).numpy()
            at += n
    print(f"wall {time.perf_counter() - start[0]:.3f} cpu {time.process_time() - start[1]:.3f} "
          f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
    np.save(out, got)


def pipe(command):
    subprocess.run(["sh", "-ec", command], check=True)


def add_cls_and_eos(path):
    """A vocabulary of Geneformer's second version: <cls> and <eos> are tokens 2 and 3."""
    rows = [line.split("\t") for line in open(path)]
    with open(path + ".v2", "w") as f:
        f.writelines("\t".join(r) for r in rows[:3])
        f.write("2\t<cls>\t\tNA\n3\t<eos>\t\tNA\n")
        f.writelines("\t".join([str(int(r[0]) + 2), *r[1:]]) for r in rows[3:])


def make_model(folder, name, vocab):
    import torch
    from transformers import BertConfig, BertForMaskedLM
    torch.manual_seed(1)
    size = sum(1 for line in open(vocab) if line[0] != "#") - 1
    net = BertForMaskedLM(BertConfig(vocab_size=size, hidden_dropout_prob=.02, attention_probs_dropout_prob=.02, type_vocab_size=2,
                                     pad_token_id=0, **SHAPES[name]))
    net.save_pretrained(folder)
    pipe(f"cp '{vocab}' '{folder}/vocab.tsv'")


def ours(bin, model, tokens, precision, threads, out):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([f"{bin}/scembed", "-q", "--precision", precision, "-@", threads, "--report", out + ".report", "-M", model, tokens, "-o", out], check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = float(re.search(r"^peak_memory_mb\t([\d.]+)", open(out + ".report").read(), re.M)[1])
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak


def embedding(bin, path):
    import numpy as np
    text = subprocess.run([f"{bin}/scview", "-c", "x", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return np.array([[float(v) for v in line.split()] for line in text.splitlines()[1:]])


def cosine(a, b):
    import numpy as np
    return float(((a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))).min())


def table(bin, data, cells, threads, rounds, *names):
    import importlib.metadata as m
    import numpy as np
    flags = re.search(r"^flags.*", open("/proc/cpuinfo").read(), re.M)
    precisions = ["float32"] + (["bf16"] if flags and "avx512_bf16" in flags[0] else [])
    print(f"# {threads} threads; torch {m.version('torch')}, transformers {m.version('transformers')}; best of {rounds} rounds")
    print("model\tprecision\ttokens\tours cells/s\tpeer cells/s\tratio\tours CPU s\tpeer CPU s\tratio\tours MB\tpeer MB\tsmallest cosine to the peer's float32", flush=True)
    with tempfile.TemporaryDirectory() as tmp:
        pipe(f"'{bin}/h5tok' -q '{data}' -o {tmp}/all.counts; '{bin}/scsample' -q -n {cells} --seed 1 {tmp}/all.counts -o {tmp}/counts; "
             f"'{bin}/rankenc' -q --fit {tmp}/all.counts -o {tmp}/vocab")
        add_cls_and_eos(f"{tmp}/vocab")
        for name in names:
            style, model = name[:2], f"{tmp}/{name}"
            vocab = f"{tmp}/vocab.v2" if style == "v2" else f"{tmp}/vocab"
            pipe(f"'{bin}/rankenc' -q -m {vocab} --vocab-style {style} {tmp}/counts -o {tmp}/tok; '{bin}/scview' -c token {tmp}/tok > {tmp}/tok.txt")
            make_model(model, name, vocab)
            tokens = sum(len(line.split()) for line in list(open(f"{tmp}/tok.txt"))[1:])
            exact = None
            for precision in precisions:
                us, them = [], []
                for _ in range(int(rounds)):
                    us.append(ours(bin, model, f"{tmp}/tok", precision, threads, f"{tmp}/emb"))
                    told = subprocess.run([sys.executable, os.path.abspath(__file__), "peer", model, f"{tmp}/tok.txt", precision, threads, f"{tmp}/peer.npy"],
                                          check=True, stdout=subprocess.PIPE, text=True).stdout
                    them.append(tuple(float(re.search(rf"{k} ([\d.]+)", told)[1]) for k in ("wall", "cpu", "peak")))
                exact = np.load(f"{tmp}/peer.npy") if exact is None else exact
                a, b = [[min(x) for x in zip(*side)] for side in (us, them)]
                n = len(exact)
                print(name, precision, tokens, f"{n / a[0]:.1f}", f"{n / b[0]:.1f}", f"{b[0] / a[0]:.1f}", f"{a[1]:.2f}", f"{b[1]:.2f}", f"{b[1] / a[1]:.1f}",
                      f"{a[2]:.0f}", f"{b[2]:.0f}", f"{cosine(embedding(bin, f'{tmp}/emb'), exact):.6f}", sep="\t", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "peer":
        peer(*sys.argv[2:])
    else:
        table(*sys.argv[1:])
