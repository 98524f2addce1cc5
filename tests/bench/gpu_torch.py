"""The peers of bench_cuda.c on the same shapes: BertForMaskedLM of transformers, and the same model in plain PyTorch.

    gpu_torch.py [--device cuda|cpu] [--seconds N] [--steps N] [HOW:CONFIG:LENGTH:BATCH]...

HOW     transformers: eager, sdpa, compiled (sdpa and torch.compile), grouped (sdpa, batches of cells of like length, as the Trainer's
        group_by_length makes them; for real lengths). Their decoder makes logits of all positions
        the same network by hand, whose decoder reads the masked rows alone, as corrmask's does:
            plain: SDPA, without a mask where all cells are of one length
            flash, cudnn: plain with that kernel of SDPA alone, for one length; flash-p0, cudnn-p0: the same without dropout of attention
            packed: no padding, cells end to end: flash_attn's varlen kernel, or SDPA over nested tensors where there is no flash_attn
            -tuned behind these: by torch.compile(mode="max-autotune")
CONFIG  corrmask-paper, geneformer-v1-10m, v2-104m, tiny
LENGTH  tokens of every cell, or real: the lengths bench_cuda draws, each batch padded to its longest cell (compiled, tuned: to 2,048)

bf16 autocast, fused AdamW, clipping. A step is not waited for; tokens a second are
of real tokens, over --steps steps (default: as many as fit in two seconds, 3 to 20; grouped: 20). --seconds: begin nothing after that long, and
nothing that will hardly end by then. What runs out of memory is told as FAILED. peak_mb is PyTorch's own.
"""
import argparse
import contextlib
import math
import os
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as e:
    sys.exit(f"gpu_torch.py: skipped: {e}")
# What cannot be imported takes only its own peers with it.
try:
    import transformers
    from transformers import BertConfig, BertForMaskedLM
except ImportError as e:
    transformers = None
    print(f"torch: no transformers: {e}")
try:
    from flash_attn import flash_attn_varlen_qkvpacked_func
except ImportError as e:
    flash_attn_varlen_qkvpacked_func = None
    print(f"torch: no flash_attn: {e}")

START = time.monotonic()
CAP, MASKED = 2048, 15
SHAPES = {  # vocabulary, hidden, layers, heads, feed-forward
    "corrmask-paper": (25426, 256, 6, 4, 512),
    "geneformer-v1-10m": (25426, 256, 6, 4, 512),
    "v2-104m": (20275, 768, 12, 12, 3072),
    "tiny": (1000, 64, 2, 2, 128),
}
DROPOUT = 0.02
KERNELS = {
    "flash": [SDPBackend.FLASH_ATTENTION],
    "cudnn": [SDPBackend.CUDNN_ATTENTION],
}


def real_lengths():
    """bench_cuda.c: real_length()."""
    x = 1
    while True:
        z = -6.0
        for _ in range(12):
            x = (x * 1664525 + 1013904223) & 0xffffffff
            z += x / 4294967296.0
        yield int(min(math.floor(1300 * math.exp(0.31 * z)), CAP))


def length_grouped(cells, batch):
    """The Trainer's group_by_length: in megabatches of 50 batches of a random order the longest come first; so does the longest of all."""
    order = torch.randperm(len(cells), generator=torch.Generator().manual_seed(1)).tolist()
    size = 50 * batch
    mega = [sorted(order[i:i + size], key=lambda k: -cells[k]) for i in range(0, len(cells), size)]
    longest = max(range(len(mega)), key=lambda m: cells[mega[m][0]])
    mega[0][0], mega[longest][0] = mega[longest][0], mega[0][0]
    return [k for m in mega for k in m]


def packed_attention(qkv, offset, longest, dropout):
    """qkv [T, 3, heads, D] of cells end to end, cell b at offset[b] .. offset[b + 1]."""
    if flash_attn_varlen_qkvpacked_func is not None:
        return flash_attn_varlen_qkvpacked_func(qkv, offset.int(), longest, dropout_p=dropout)
    nested = [torch.nested.nested_tensor_from_jagged(x.contiguous(), offset, max_seqlen=longest).transpose(1, 2) for x in qkv.unbind(1)]
    return F.scaled_dot_product_attention(*nested, dropout_p=dropout).transpose(1, 2).values()


class Plain(nn.Module):
    """The same network by hand: fused qkv, no dropout bookkeeping, no mask where none is needed."""

    class Layer(nn.Module):
        def __init__(self, c, heads, f, attention):
            super().__init__()
            self.heads, self.attention = heads, attention
            self.qkv, self.out = nn.Linear(c, 3 * c), nn.Linear(c, c)
            self.up, self.down = nn.Linear(c, f), nn.Linear(f, c)
            self.norm1, self.norm2 = nn.LayerNorm(c, eps=1e-12), nn.LayerNorm(c, eps=1e-12)

        def forward(self, x, mask, cells):
            b, t, c = x.shape
            dropout = 0.0 if self.attention.endswith("-p0") or not self.training else DROPOUT
            qkv = self.qkv(x).view(b, t, 3, self.heads, c // self.heads)
            if cells:
                a = packed_attention(qkv[0], *cells, dropout).reshape(b, t, c)
            else:
                q, k, v = qkv.permute(2, 0, 3, 1, 4)
                kernel = KERNELS.get(self.attention.removesuffix("-p0"))
                with sdpa_kernel(kernel) if kernel else contextlib.nullcontext():
                    a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
                a = a.transpose(1, 2).reshape(b, t, c)
            x = self.norm1(x + F.dropout(self.out(a), DROPOUT, self.training))
            return self.norm2(x + F.dropout(self.down(F.relu(self.up(x))), DROPOUT, self.training))

    def __init__(self, v, c, layers, heads, f, positions, attention="plain"):
        super().__init__()
        self.word, self.position = nn.Embedding(v, c, padding_idx=0), nn.Embedding(positions, c)
        self.norm = nn.LayerNorm(c, eps=1e-12)
        self.layers = nn.ModuleList(self.Layer(c, heads, f, attention) for _ in range(layers))
        self.dense, self.head_norm = nn.Linear(c, c), nn.LayerNorm(c, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(v))
        for p in self.modules():
            if isinstance(p, (nn.Linear, nn.Embedding)):
                nn.init.normal_(p.weight, std=0.02)
            if isinstance(p, nn.Linear):
                nn.init.zeros_(p.bias)

    def forward(self, input_ids, attention_mask, labels, row, cells=None, position=None):
        """row [n]: the masked positions of the batch, end to end; labels [n]: their tokens, or -100 (row fills up a fixed n)."""
        mask = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        x = self.word(input_ids) + (self.position.weight[:input_ids.shape[1]] if position is None else self.position(position))
        x = F.dropout(self.norm(x), DROPOUT, self.training)
        for layer in self.layers:
            x = layer(x, mask, cells)
        x = x.view(-1, x.shape[-1])[row]
        logits = F.linear(self.head_norm(F.relu(self.dense(x))), self.word.weight, self.bias)
        return F.cross_entropy(logits, labels, ignore_index=-100)


def by_hand(how):
    return how.removesuffix("-tuned").removesuffix("-p0") in ("plain", "packed", *KERNELS)


def make_model(how, shape, positions):
    v, c, n, h, f = shape
    if by_hand(how):
        return Plain(v, c, n, h, f, positions, how.removesuffix("-tuned"))
    if transformers is None:
        raise RuntimeError("no transformers")
    config = BertConfig(vocab_size=v, hidden_size=c, num_hidden_layers=n, num_attention_heads=h, intermediate_size=f, hidden_act="relu",
                        hidden_dropout_prob=DROPOUT, attention_probs_dropout_prob=DROPOUT, max_position_embeddings=positions,
                        layer_norm_eps=1e-12, pad_token_id=0)
    config._attn_implementation = "eager" if how == "eager" else "sdpa"
    model = BertForMaskedLM(config)
    if model.config._attn_implementation != config._attn_implementation:
        raise RuntimeError(f"asked for attention {config._attn_implementation}, got {model.config._attn_implementation}")
    return model


def make_batches(how, length, batch, v, count, device):
    """[(input_ids, attention_mask or None, labels, tokens, more arguments)]"""
    draw = real_lengths()
    if length != "real":
        cells = [int(length)] * (batch * count)
    elif how == "grouped":
        cells = [next(draw) for _ in range(batch * 50)]
        cells = [cells[i] for i in length_grouped(cells, batch)]
        # evenly from the long to the short
        cells = [x for k in range(count) for x in cells[k * 50 // count * batch:(k * 50 // count + 1) * batch]]
    else:
        cells = [next(draw) for _ in range(batch * count)]
    g = torch.Generator().manual_seed(1)
    out = []
    for k in range(count):
        n = torch.tensor(cells[k * batch:(k + 1) * batch])
        # what is compiled, is compiled once, not once a width; multiples of 8 suit the tensor cores
        fixed = how.endswith(("compiled", "tuned"))
        width = int(n.max()) if length != "real" else CAP if fixed else (int(n.max()) + 7) // 8 * 8
        real = torch.arange(width)[None, :] < n[:, None]
        ids = torch.where(real, torch.randint(2, v, (batch, width), generator=g), 0)
        masked = (torch.rand(ids.shape, generator=g) < MASKED / 100) & real
        labels = torch.where(masked, ids, -100)
        ids = torch.where(masked, 1, ids)
        mask = real.long().to(device) if length == "real" else None
        more = {}
        if how.startswith("packed"):
            position = torch.arange(width).expand(batch, width)[real][None]
            offset = F.pad(n.cumsum(0), (1, 0)).to(device)
            ids, labels, mask = ids[real][None], labels[real][None], None
            more = {"cells": (offset, CAP if fixed else int(n.max())), "position": position.to(device)}
        if by_hand(how):
            row = (labels.view(-1) != -100).nonzero()[:, 0]
            target = labels.view(-1)[row]
            if fixed:                                   # one shape for all batches
                most = batch * int(length if length != "real" else CAP) * (MASKED + 2) // 100
                row, target = F.pad(row, (0, most - len(row)))[:most], F.pad(target, (0, most - len(target)), value=-100)[:most]
            more["row"], labels = row.to(device), target
        out.append((ids.to(device), mask, labels.to(device), int(n.sum()), more))
    return out


def measure(how, name, length, batch, a):
    shape, device = SHAPES[name], a.device
    cuda = device == "cuda"
    wait = torch.cuda.synchronize if cuda else lambda: None
    positions = max(CAP, 0 if length == "real" else int(length))
    torch.manual_seed(1)
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    model = make_model(how, shape, positions).to(device).train()
    if how.endswith(("compiled", "tuned")):
        torch._dynamo.reset()
        step_model = torch.compile(model, dynamic=False, **({"mode": "max-autotune"} if how.endswith("tuned") else {}))
    else:
        step_model = model
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.001, **({"fused": True} if cuda else {}))
    batches = make_batches(how, length, batch, shape[0], a.steps or 20, device)

    def step(k):
        ids, mask, labels, tokens, more = batches[k % len(batches)]
        with torch.autocast(device, dtype=torch.bfloat16):
            out = step_model(input_ids=ids, attention_mask=mask, labels=labels, **more)
        loss = out if torch.is_tensor(out) else out.loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        optim.zero_grad()
        return loss, tokens, ids.numel()

    first = step(0)[0].item()
    if not abs(first / math.log(shape[0]) - 1) < 0.05:
        raise RuntimeError(f"an untrained model has loss {first:g}, expected about {math.log(shape[0]):.2f}")
    for k in range(2):
        step(1 + k)
    wait()
    t = time.perf_counter()
    step(3)
    wait()
    one = time.perf_counter() - t
    steps = len(batches) if how == "grouped" else a.steps or min(20, max(3, int(2 / one)))     # grouped: from the long to the short
    t = time.perf_counter()
    done = [step(k)[1:] for k in range(steps)]
    wait()
    t = time.perf_counter() - t
    tokens, padded = (sum(x) for x in zip(*done))
    peak = torch.cuda.max_memory_allocated() / 1e6 if cuda else 0
    return f"tokens_per_s {tokens / t:.0f} step_ms {1e3 * t / steps:.2f} padding {1 - tokens / padded:.3f} peak_mb {peak:.0f} steps {steps}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    p.add_argument("--seconds", type=float, default=1e9)
    p.add_argument("--steps", type=int, default=0)
    p.add_argument("shapes", nargs="*", metavar="HOW:CONFIG:LENGTH:BATCH")
    a = p.parse_args()
    if a.device == "cuda" and not torch.cuda.is_available():
        sys.exit("gpu_torch.py: skipped: no CUDA device")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    torch.set_float32_matmul_precision("high")
    print(f"torch {torch.__version__} transformers {transformers.__version__ if transformers else '-'} "
          f"{torch.cuda.get_device_name() if a.device == 'cuda' else 'cpu'}", flush=True)
    for x in a.shapes:
        how, name, length, batch = x.split(":")
        what = f"torch {how} config {name} length {length} batch {batch}"
        expected = 110 if how.endswith("tuned") else 60 if how.endswith("compiled") else 8
        if time.monotonic() - START + expected > a.seconds:
            print(f"{what} left out: no time", flush=True)
            continue
        begun = time.monotonic()
        try:
            result = measure(how, name, length, int(batch), a)
        except Exception as e:                          # a shape that fails does not end the others
            text = str(e).strip().splitlines() or [type(e).__name__]
            result = f"FAILED: {'out of memory' if 'out of memory' in str(e) else text[0][:200]}"
        print(f"{what} {result} seconds {time.monotonic() - begun:.1f}", flush=True)
        if a.device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
