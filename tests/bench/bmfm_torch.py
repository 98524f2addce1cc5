#!/usr/bin/env python3
"""The peer of bench_bmfm: the same network in torch, with its attention, AdamW and clipping, on the same shape and threads.

    bmfm_torch.py [bf16] 47m|tiny THREADS STEPS LENGTH BATCH      (needs torch; the median of STEPS after one warm-up)

The head decodes the first token alone, as bench_bmfm does. Activations are kept, not computed again.
"""
import math
import resource
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as e:
    sys.exit(f"bmfm_torch.py: {e}: no peer to compare with")

V, SPECIALS = 19321, 38
bf16 = sys.argv[1] == "bf16"
size, threads, steps, length, batch = sys.argv[1 + bf16], *map(int, sys.argv[2 + bf16:])
C, L, H, BASIS = (384, 12, 12, 48) if size == "47m" else (64, 2, 2, 16)
HIDDEN = math.ceil(C * 8 / 3 / 256) * 256


class Block(nn.Module):
    def __init__(self, first):
        super().__init__()
        self.norm1 = nn.Identity() if first else nn.RMSNorm(C, 1e-5)
        self.norm2 = nn.RMSNorm(C, 1e-5)
        self.qkv, self.proj = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)
        self.gate, self.down = nn.Linear(C, 2 * HIDDEN, bias=False), nn.Linear(HIDDEN, C, bias=False)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(B, T, 3, H, C // H).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, T, C))
        gate, up = self.gate(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gene, self.special = nn.Embedding(V, C), nn.Embedding(37, C)
        self.register_buffer("basis", 2 * math.pi * 0.01 * 2.0 ** torch.arange(BASIS))
        self.value, self.norm = nn.Linear(2 * BASIS, C, bias=False), nn.LayerNorm(C, 1e-12)
        self.blocks = nn.ModuleList(Block(i == 0) for i in range(L))
        self.transform = nn.Sequential(nn.Linear(C, C), nn.GELU(), nn.LayerNorm(C, 1e-12))
        self.decode = nn.Linear(C, 2 * V)

    def forward(self, ids, x):
        phase = x[..., None] * self.basis
        number = self.value(torch.cat([phase.sin(), phase.cos()], -1))
        e = torch.where((x > 0)[..., None], number, self.special(torch.where(x < 0, -x - 1, 36).long().clamp(0, 36)))
        h = self.norm(self.gene(ids) + e)
        for block in self.blocks:
            h = block(h)
        return self.decode(self.transform(h[:, 0])).view(len(ids), V, 2)


torch.set_num_threads(threads)
model = Model().train()
decayed = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
rest = [p for p in model.parameters() if all(p is not d for d in decayed)]
opt = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0}], lr=1e-4, betas=(0.9, 0.99))
took, cpu = [], []
for k in range(steps + 1):
    ids = torch.randint(SPECIALS, V, (batch, length))
    x = torch.rand(batch, length) * 5 + 0.001
    ids[:, 0], x[:, 0] = 3, -4
    y = torch.rand(batch, V) * 5 * (torch.rand(batch, V) < 0.1)
    known = torch.arange(V) >= SPECIALS
    t, u = time.time(), time.process_time()
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
        z = model(ids, x).float()
    there = (y != 0) & known
    loss = F.binary_cross_entropy_with_logits(z[:, known, 1], (y[:, known] == 0).float()) + ((z[..., 0] - y) ** 2)[there].mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    opt.step()
    t, u = time.time() - t, time.process_time() - u
    if k:
        took.append(t)
        cpu.append(u)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
print(f"torch {torch.__version__}{' autocast bf16' if bf16 else ''} bmfm-{size} length {length} batch {batch} threads {threads} "
      f"tokens_per_s {batch * length / sorted(took)[len(took) // 2]:.0f} (best {batch * length / min(took):.0f}) "
      f"peak_mb {peak:.0f} wall {min(took):.3f} cpu_s {min(cpu):.3f}", flush=True)
