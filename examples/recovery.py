#!/usr/bin/env python3
"""Molecular cross-validation: predict one half of the molecules of each cell from the other half [Batson et al. 2019].

    recovery.py CELLS.counts [SEED...]

scsample --thin 0.5 and --complement make the halves. Prints, for gene means, components, diffusion over neighbours and sctrain nb, as it is and
recalibrated (each at the best of a few settings by the first seed): Poisson's deviance of the other half, mean over cells and genes, and the mean
squared error of log(1 + counts for a total of 10,000). The tools must be on PATH; needs numpy, scikit-learn and corrmask.
"""
import functools
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import corrmask.stream as scstream
from sklearn.decomposition import TruncatedSVD
from sklearn.neighbors import NearestNeighbors


def counts(path):
    with scstream.read(path) as stream:
        genes, rows = len(stream.header["vocab"]["id"]), []
        for block in stream:
            (offsets, gene), (_, count) = block["gene"], block["count"]
            x = np.zeros((len(offsets) - 1, genes))
            for i in range(len(x)):
                x[i, gene[offsets[i]:offsets[i + 1]]] = count[offsets[i]:offsets[i + 1]]
            rows.append(x)
    return np.concatenate(rows)


def deviance(seen, expected):  # the counts that were seen come first: swapped, it is another loss
    expected = np.maximum(expected, 1e-6)
    return 2 * (np.where(seen > 0, seen * np.log(np.maximum(seen, 1) / expected), 0) - seen + expected).mean()


def log_normal(x):
    return np.log1p(1e4 * x / np.maximum(x.sum(1, keepdims=True), 1e-9))


def shares(x):
    return x / x.sum(1, keepdims=True)


def components(a, k):
    z = log_normal(a)
    mean = z.mean(0)
    pca = TruncatedSVD(k, algorithm="arpack", random_state=0).fit(z - mean)
    latent = pca.transform(z - mean)
    return latent, shares(np.maximum(np.expm1(latent @ pca.components_ + mean), 1e-3))


def diffusion(a, k):  # the mean of the shares of the k nearest cells, itself included
    near = NearestNeighbors(n_neighbors=k).fit(components(a, 20)[0]).kneighbors(return_distance=False)
    own = np.concatenate([np.arange(len(a))[:, None], near[:, :k - 1]], 1)
    return shares(a[own].sum(1) + a.mean(0) / a.sum(1).mean())


def weights(path):
    with open(path, "rb") as f:
        bytes_ = f.read()
    start = 8 + int.from_bytes(bytes_[:8], "little")
    table = {k: t for k, t in json.loads(bytes_[8:start]).items() if k != "__metadata__"}
    return {k: np.frombuffer(bytes_[start + t["data_offsets"][0]:start + t["data_offsets"][1]], "<f4").reshape(t["shape"]) for k, t in table.items() if t["dtype"] == "F32"}


def trained(path, genes, epochs):
    masks = ["maskgen", "-q", "--strategy", "columns", "--rate-uniform", "0.1:0.5", "--batch", "200", "--epochs", str(epochs), path]
    with open(path + ".json", "w") as f:
        f.write('{"model_type": "mlp_nb", "vocab_size": %d, "intermediate_size": 128, "hidden_size": 32}' % genes)
    with subprocess.Popen(masks, stdout=subprocess.PIPE) as made:
        subprocess.run(["sctrain", "nb", "-q", "--force", "-c", path + ".json", "-o", path + ".model"], stdin=made.stdout, check=True)
    return weights(path + ".model/model.safetensors")


def network(a, w, recalibrate):  # the forward pass of sctrain nb, normalised by its running averages or by these cells (scembed --recalibrate)
    def norm(z, name):
        mean, var = (z.mean(0), z.var(0)) if recalibrate else (w[name + ".running_mean"], w[name + ".running_var"])
        return np.maximum((z - mean) / np.sqrt(var + 1e-5) * w[name + ".weight"] + w[name + ".bias"], 0)
    z = norm(np.log1p(a) @ w["encoder.genes.weight"], "encoder.norm1")
    z = norm(z @ w["encoder.hidden.weight"].T, "encoder.norm2") @ w["encoder.latent.weight"].T
    z = norm(z @ w["decoder.hidden.weight"].T, "decoder.norm") @ w["decoder.output.weight"].T + w["decoder.output.bias"]
    return shares(np.exp(z - z.max(1, keepdims=True)))


def main(cells, seeds):
    choice = {"components": (5, 10, 20, 40), "diffusion": (10, 30, 100), "nb": (20, 60, 120), "nb recalibrated": (20, 60, 120)}
    print("seed\tmethod\tsetting\tdeviance\tmse")
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            half = [os.path.join(folder, name) for name in ("a.counts", "b.counts")]
            for path, more in zip(half, ([], ["--complement"])):
                subprocess.run(["scsample", "-q", "--thin", "0.5", "--seed", seed, *more, "-o", path, cells], check=True)
            a, b = map(counts, half)
            use = (a.sum(1) > 0) & (b.sum(1) > 0)
            a, b = a[use], b[use]
            train = functools.cache(functools.partial(trained, half[0], a.shape[1]))
            made = {"components": lambda k: components(a, k)[1], "diffusion": lambda k: diffusion(a, k),
                    "nb": lambda k: network(a, train(k), False), "nb recalibrated": lambda k: network(a, train(k), True)}
            tried = [("mean", 0, np.broadcast_to(shares(a.sum(0)[None]), a.shape))]
            tried += [(m, k, made[m](k)) for m in made for k in choice[m]]
            best = {}
            for method, setting, share in tried:
                row = deviance(b, a.sum(1, keepdims=True) * share), ((log_normal(share) - log_normal(b)) ** 2).mean(), setting
                best[method] = min(best.get(method, row), row)
            for method, (d, mse, setting) in best.items():
                print(seed, method, setting, f"{d:.5f}", f"{mse:.5f}", sep="\t", flush=True)
                if method in choice:
                    choice[method] = (setting,)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1], sys.argv[2:] or ["1"])
    except subprocess.CalledProcessError as e:  # the tool has said why
        sys.exit(f"recovery.py: {e.cmd[0]} failed")
