#!/usr/bin/env python3
"""The peer of bench_nb: the same model in torch with its fused Adam, on the same shape, with the same threads.

    nb_torch.py [THREADS [STEPS [GENES HIDDEN LATENT CELLS EXPRESSED]]]      (needs torch; after one step to warm up)

The counts lie in memory as a dense matrix, and the loss computes the masked columns only.
"""
import sys
import time

try:
    import torch
    from torch import nn
except ImportError as e:
    sys.exit(f"nb_torch.py: {e}: no peer to compare with")

usual = [2, 5, 5000, 1024, 512, 400, 500]
threads, steps, genes, hidden, latent, cells, expressed = [int(x) for x in sys.argv[1:]] + usual[len(sys.argv) - 1:]
torch.set_num_threads(threads)
torch.manual_seed(1)
body = nn.Sequential(
    nn.Linear(genes, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(),
    nn.Linear(hidden, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, latent, bias=False),
    nn.Linear(latent, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, genes))
log_theta = nn.Parameter(torch.randn(genes))
adam = torch.optim.Adam([*body.parameters(), log_theta], lr=1e-3, weight_decay=1e-4, fused=True)


def step(x, columns):
    adam.zero_grad()
    seen = torch.log1p(x)
    seen[:, columns] = 0
    log_mu = (torch.log_softmax(body(seen), 1) + x.sum(1, keepdim=True).log())[:, columns]
    y, t = x[:, columns], log_theta[columns]
    theta = t.exp()
    both = torch.log(theta + log_mu.exp())
    ll = torch.lgamma(y + theta) - torch.lgamma(theta) - torch.lgamma(y + 1) + theta * (t - both) + y * (log_mu - both)
    loss = -ll.mean()
    loss.backward()
    adam.step()
    return loss.item()


took, cpu = [], []
for k in range(steps + 1):
    x = torch.where(torch.rand(cells, genes) < expressed / genes, torch.randint(1, 4, (cells, genes)), 0).float()
    x[:, 0] += 1
    columns = torch.randperm(genes)[: genes // 4]
    begin, used = time.time(), time.process_time()
    step(x, columns)
    if k:
        took.append(time.time() - begin)
        cpu.append(time.process_time() - used)
took.sort()
print(f"torch {torch.__version__} genes {genes} hidden {hidden} latent {latent} cells {cells} threads {threads} "
      f"cells_per_s {cells / took[len(took) // 2]:.0f} (best {cells / took[0]:.0f}) step_s {took[0]:.3f} step_cpu_s {min(cpu):.3f}", flush=True)
