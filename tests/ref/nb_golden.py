#!/usr/bin/env python3
"""Make tests/golden/v1/nb.bin, and with --curriculum nb_curriculum.bin: R2MAE's single-cell model in PyTorch, in float64, with small fixed inputs.

Needs torch (made with 2.15, CPU). Usage: nb_golden.py [--curriculum] OUT

The file is a sequence of arrays: a line "NAME f8|u4 COUNT\n", then COUNT little-endian values.
    config                     u4: genes latent hidden groups steps
    param.TENSOR               initial weights and buffers, encoder.genes and *.groups stored by input
    bK.offset id count group   batch K: the cells' genes and counts (not masked), and covariates
    bK.masked                  u4 [cells, genes] 0 or 1
    loss                       of every update: batch k % 4, Adam with L2 decay
    grad.TENSOR                of the mean loss of update 0
    final.TENSOR               after the updates
    latent, logit              of batch 0 after the updates, nothing masked, batch norm in eval mode
With --curriculum, the names start with "c.". Batch k has masking ratio k % 3 of three, and the network of the weights starts with 1 update of
50. Its tensors are not stored: element i of one with n inputs is sin(1 + i) / sqrt(n), of a bias 0.1 sin(1 + i). Of their gradients
(grad8: of update 8, with the slope) and final values, every 61st element is stored.
"""
import sys
import numpy as np
import torch
from torch import nn

GENES, LATENT, HIDDEN, GROUPS, STEPS = 61, 7, 23, 3, 50
LR, DECAY = 1e-3, 1e-4
CURRICULUM = "--curriculum" in sys.argv
RATIOS, WIDTHS, ITERATIONS, EVERY = 3, [128, 256], 10, 61
torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
torch.manual_seed(11)
rng = np.random.default_rng(11)
out = open(sys.argv[-1], "wb")


def put(name, x):
    x = np.ascontiguousarray(x)
    kind = {"f": "f8", "i": "u4", "u": "u4"}[x.dtype.kind]
    out.write(f"{'c.' if CURRICULUM else ''}{name} {kind} {x.size}\n".encode())
    out.write(x.astype("<" + kind).tobytes())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(GENES + GROUPS, HIDDEN, bias=False)
        self.norm1 = nn.BatchNorm1d(HIDDEN)
        self.hidden = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.norm2 = nn.BatchNorm1d(HIDDEN)
        self.latent = nn.Linear(HIDDEN, LATENT, bias=False)
        self.back = nn.Linear(LATENT + GROUPS, HIDDEN, bias=False)
        self.norm3 = nn.BatchNorm1d(HIDDEN)
        self.output = nn.Linear(HIDDEN, GENES)
        self.log_theta = nn.Parameter(torch.randn(GENES))

    def encode(self, x, masked, group):
        x = torch.log1p(torch.where(masked, 0.0, x))
        y = torch.relu(self.norm1(self.first(torch.cat([x, group], 1))))
        return self.latent(torch.relu(self.norm2(self.hidden(y))))

    def decode(self, z, group):
        return self.output(torch.relu(self.norm3(self.back(torch.cat([z, group], 1)))))

    def loss(self, x, masked, group, weight=None):
        share = torch.softmax(self.decode(self.encode(x, masked, group), group), 1)
        mean = x.sum(1, keepdim=True) * share
        nb = torch.distributions.NegativeBinomial(total_count=self.log_theta.exp().expand_as(x),
                                                  logits=mean.log() - self.log_theta)
        return -(nb.log_prob(x) * (1 if weight is None else weight))[masked].mean()

    def named(self, get):
        first, back = get(self.first.weight), get(self.back.weight)
        yield "encoder.genes.weight", first[:, :GENES].T
        yield "encoder.groups.weight", first[:, GENES:].T
        yield "encoder.hidden.weight", get(self.hidden.weight)
        yield "encoder.latent.weight", get(self.latent.weight)
        yield "decoder.hidden.weight", back[:, :LATENT]
        yield "decoder.groups.weight", back[:, LATENT:].T
        yield "decoder.output.weight", get(self.output.weight)
        yield "decoder.output.bias", get(self.output.bias)
        yield "decoder.log_theta", get(self.log_theta)
        for name, norm in [("encoder.norm1", self.norm1), ("encoder.norm2", self.norm2), ("decoder.norm", self.norm3)]:
            yield f"{name}.weight", get(norm.weight)
            yield f"{name}.bias", get(norm.bias)

    def buffers_of(self):
        for name, norm in [("encoder.norm1", self.norm1), ("encoder.norm2", self.norm2), ("decoder.norm", self.norm3)]:
            yield f"{name}.running_mean", norm.running_mean
            yield f"{name}.running_var", norm.running_var


class Weights(nn.Module):
    """Of the genes in the loss: sigmoid of a multilayer perceptron of the mean of log(1 + count), scaled by Sinkhorn's iterations."""
    def __init__(self):
        super().__init__()
        self.layer = nn.ModuleList([nn.Linear(a, b) for a, b in zip([GENES] + WIDTHS, WIDTHS + [GENES * RATIOS])])
        for layer in self.layer:
            n = layer.weight.numel()
            layer.weight.data = (torch.sin(1 + torch.arange(n)) / layer.in_features**0.5).reshape(layer.weight.shape)
            layer.bias.data = 0.1 * torch.sin(1 + torch.arange(layer.out_features))

    def forward(self, x):
        y = torch.log1p(x).mean(0)
        for layer in self.layer[:2]:
            y = torch.relu(layer(y))
        w = torch.sigmoid(self.layer[2](y)).reshape(GENES, RATIOS) + 1e-9
        for _ in range(ITERATIONS):
            w = w * RATIOS / w.sum(1, keepdim=True)
            w = w * GENES / w.sum(0, keepdim=True)
        return w

    def named(self, get):
        for name, layer in zip(["hidden1", "hidden2", "output"], self.layer):
            yield f"curriculum.{name}.weight", get(layer.weight)
            yield f"curriculum.{name}.bias", get(layer.bias)

    def slope(self, step):
        return float(np.clip(1 - 2 * (step - STEPS / 8) / (STEPS / 2 - STEPS / 8), -1, 1))


def batch(k):
    n = [16, 12, 19, 2][k]
    x = rng.poisson(rng.gamma(0.3, 6, (n, GENES)))
    x[:, 5] = rng.integers(500, 3000, n)  # counts beyond a table of small ones
    group = rng.integers(0, GROUPS + 1, n)  # GROUPS: none
    masked = np.zeros((n, GENES), bool)
    if k == 1:  # every cell its own genes, one cell none
        masked[:] = rng.random((n, GENES)) < 0.3
        masked[4] = False
    else:
        masked[:, rng.permutation(GENES)[: 15 + 10 * k]] = True
    put(f"b{k}.offset", np.cumsum(np.r_[0, (x > 0).sum(1)]))
    put(f"b{k}.id", np.nonzero(x)[1])
    put(f"b{k}.count", x[x > 0])
    put(f"b{k}.group", np.where(group == GROUPS, 0xFFFFFFFF, group).astype("u4"))
    put(f"b{k}.masked", masked.astype("u4"))
    one_hot = np.eye(GROUPS + 1)[group][:, :GROUPS]
    return torch.tensor(x, dtype=torch.float64), torch.tensor(masked), torch.tensor(one_hot)


net = Net()
with torch.no_grad():  # so that no layer starts at 1 or 0
    for norm in [net.norm1, net.norm2, net.norm3]:
        norm.weight.add_(torch.randn(HIDDEN) * 0.1)
        norm.bias.add_(torch.randn(HIDDEN) * 0.1)
put("config", np.array([GENES, LATENT, HIDDEN, GROUPS, STEPS]))
for name, x in list(net.named(lambda p: p.detach())) + list(net.buffers_of()):
    put(f"param.{name}", x.numpy())
batches = [batch(k) for k in range(4)]
adam = torch.optim.Adam(net.parameters(), lr=LR, weight_decay=DECAY)
if CURRICULUM:
    weights = Weights()
    adam_weights = torch.optim.Adam(weights.parameters(), lr=LR, weight_decay=DECAY)
losses = []
for step in range(STEPS):
    adam.zero_grad()
    if CURRICULUM:
        adam_weights.zero_grad()
        loss = net.loss(*batches[step % 4], weights(batches[step % 4][0])[:, step % 4 % RATIOS])
    else:
        loss = net.loss(*batches[step % 4])
    loss.backward()
    if step == 0:
        for name, x in net.named(lambda p: p.grad):
            put(f"grad.{name}", x.numpy())
    adam.step()
    if CURRICULUM and step >= STEPS // 50:
        for p in weights.parameters():
            p.grad *= weights.slope(step)
        adam_weights.step()
    losses.append(loss.item())
    if CURRICULUM and step == 8:
        for name, x in weights.named(lambda p: p.grad):
            put(f"grad8.{name}", x.numpy().ravel()[::EVERY])
if CURRICULUM:
    for name, x in weights.named(lambda p: p.detach()):
        put(f"final.{name}", x.numpy().ravel()[::EVERY])
put("loss", np.array(losses))
for name, x in list(net.named(lambda p: p.detach())) + list(net.buffers_of()):
    put(f"final.{name}", x.numpy())
net.eval()
with torch.no_grad():
    x, masked, group = batches[0]
    z = net.encode(x, torch.zeros_like(masked), group)
    put("latent", z.numpy())
    put("logit", net.decode(z, group).numpy())
