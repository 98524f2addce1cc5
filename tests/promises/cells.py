"""Cells by a model of its own, independent of scsim: what a promise of ctaprobe transfer is tested on.

    log rate of gene g in a cell of type t of donor d = base_g + type_tg + donor_dg + both_dtg + study_dg
    count = Poisson(depth * rate / sum of rates * Gamma(8, 1/8))      depth: lognormal over donors and cells
Types 0 and 1, 2 and 3 are pairs that share most of their profile, so they are told apart in part only. The shares of the types of a donor are
Dirichlet about those of the world.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../python"))
import corrmask.stream as scstream                                                         # noqa: E402

GENES = 150
SHARES = np.array([.34, .26, .18, .14, .08])


class World:
    """Types and genes, of which exchangeable donors are drawn."""

    def __init__(self, rng, apart=.22, donor=.3, shares=SHARES):
        pair = rng.normal(0, .8, (len(shares) + 1, GENES))
        self.base = rng.normal(0, 1.2, GENES)
        self.type = pair[np.arange(len(shares)) // 2] + rng.normal(0, apart, (len(shares), GENES))
        self.donor, self.shares, self.donors = donor, shares, 0

    def cells(self, rng, sizes, depth=150, shares=None, only={}, platform=0, study=None, ambient=0):
        """Counts [cells, GENES], types and donors. only: of a type, the donors that have it; platform: sd of factors of genes, as logarithms; study: the same
        for each study of three donors, whose number then stands for the donor's; ambient: share of the molecules that are of the mean profile of all cells."""
        factor = rng.normal(0, platform, GENES) if platform else 0
        counts, types, donors = [], [], []
        for i, n in enumerate(sizes):
            if study and i % 3 == 0:
                factor = rng.normal(0, study, GENES)
            p = rng.dirichlet(12 * np.asarray(self.shares if shares is None else shares))
            p *= [t not in only or i in only[t] for t in range(len(p))]
            t = rng.choice(len(p), n, p=p / p.sum())
            effect = rng.normal(0, self.donor, GENES) + rng.normal(0, .7 * self.donor, (len(p), GENES))
            rate = np.exp(self.base + (self.type + effect)[t] + factor)
            rate *= (depth * np.exp(rng.normal(0, .3) + rng.normal(0, .3, n)) / rate.sum(1))[:, None]
            counts.append(rng.poisson(rate * rng.gamma(8, 1 / 8, rate.shape)))
            types.append(t)
            donors += ["d%d" % ((self.donors + i) // (3 if study else 1))] * n
        self.donors += len(sizes)
        if ambient:
            profile = np.concatenate(counts).sum(0)
            counts = [rng.binomial(x, 1 - ambient) + rng.poisson(ambient * x.sum(1, keepdims=True) * profile / profile.sum()) for x in counts]
        return np.concatenate(counts), np.concatenate(types), np.array(donors)


def write(path, counts, types, donors):
    """A stream of counts."""
    genes, names = ["G%03d" % g for g in range(GENES)], ["type%d" % i for i in range(types.max() + 1)]
    donor, code = np.unique(donors, return_inverse=True)
    header = {"kind": "counts", "provenance": [], "vocab": {"id": genes, "symbol": genes, "median": [1.0] * GENES},
              "columns": [{"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "n_counts", "type": "u32", "shape": "scalar"},
                          {"name": "cell_type", "type": "categorical", "shape": "scalar", "categories": names},
                          {"name": "donor", "type": "categorical", "shape": "scalar", "categories": donor.tolist()},
                          {"name": "gene", "type": "u16", "shape": "ragged", "group": "gene"},
                          {"name": "count", "type": "u32", "shape": "ragged", "group": "gene"}]}
    row, gene = np.nonzero(counts)
    offset = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(counts)))])
    scstream.write(path, header, [{"cell": np.arange(len(counts)), "n_counts": counts.sum(1), "cell_type": types, "donor": code,
                                   "gene": (offset, gene), "count": (offset, counts[row, gene])}])
