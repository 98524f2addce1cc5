#!/usr/bin/env python3
"""Ontologies in plain Python, without lib/label: OBO files, leaves, decoding, hierarchical scores.

ontology.py decode OBO PREDICTION greedy|leaf NODE...   the columns of scpredict cells of a head with an ontology
ontology.py score OBO PREDICTION LABEL SCORES.tsv      ctaprobe score --ontology
ontology.py pruned OBO MODEL HEAD                       the classes in config.json, and the terms of MODEL/ontology.obo
"""
import collections
import gzip
import json
import os
import sys
import numpy as np

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), d) for d in (".", "../../python")]
import results  # noqa: E402
import corrmask.stream as scstream  # noqa: E402


class Ontology:
    def __init__(self, path):
        self.name, self.parents, self.alias, gone, term = {}, {}, {}, {}, None
        for line in (gzip.open if path.endswith(".gz") else open)(path, "rt"):
            line = line.rstrip("\n")
            if line.startswith("["):
                term = collections.defaultdict(list) if line == "[Term]" else None
            elif term is not None and ": " in line:
                tag, value = line.split(": ", 1)
                term[tag].append(value)
                if tag == "id":
                    gone[value] = term
        live = {i: t for i, t in gone.items() if t["is_obsolete"] != ["true"]}
        for i, t in live.items():
            self.name[i] = t["name"][0] if t["name"] else i
            self.parents[i] = sorted({p.split()[0] for p in t["is_a"]})
            for a in t["alt_id"]:
                self.alias.setdefault(a, i)
        for i, t in gone.items():
            at, seen = i, set()
            while at not in live and at not in self.alias and at in gone and at not in seen and gone[at]["replaced_by"]:
                seen.add(at)
                at = gone[at]["replaced_by"][0].split()[0]
            if i not in live and (at in live or at in self.alias):
                self.alias.setdefault(i, self.alias.get(at, at))
        self.text = collections.defaultdict(set)
        for i, t in live.items():
            self.text[self.name[i].lower()].add(i)
        for i, t in live.items():
            for s in t["synonym"]:
                if '" EXACT' in s and s[1:s.index('" EXACT')].lower() not in {n.lower() for n in self.name.values()}:
                    self.text[s[1:s.index('" EXACT')].lower()].add(i)
        self.children = collections.defaultdict(list)
        for i in sorted(self.parents):
            for p in self.parents[i]:
                self.children[p].append(i)

    def find(self, label):
        if label in self.parents:
            return label
        if label in self.alias:
            return self.alias[label]
        found = self.text.get(label.lower(), ())
        return next(iter(found)) if len(found) == 1 else None

    def above(self, i):
        """Steps to each term above, 0 to itself."""
        steps, todo = {i: 0}, [i]
        for at in todo:
            for p in self.parents[at]:
                if p not in steps:
                    steps[p] = steps[at] + 1
                    todo.append(p)
        return steps

    def prune(self, observed):
        """The kept terms, the leaves, and the numbers of the leaves under each kept term."""
        kept = set().union(*(self.above(i) for i in observed))
        leaves = sorted(i for i in kept if not any(c in kept for c in self.children[i]))
        under = {i: [k for k, leaf in enumerate(leaves) if i in self.above(leaf)] for i in kept}
        return kept, leaves, under


def near(what, a, b, tolerance):
    assert abs(a - b) <= tolerance or (np.isnan(a) and np.isnan(b)), (what, a, b)


def decode(obo, prediction, how, *nodes):
    stream = scstream.read(prediction)
    blocks = list(stream)
    labels = stream.header["labels"]
    o = Ontology(obo)
    kept, leaves, under = o.prune(labels)
    assert leaves == labels, (leaves, labels)
    cells = 0
    for b in blocks:
        for i, z in enumerate(b["logit"].astype(float)):
            p = np.exp(z - z.max())
            p /= p.sum()
            total = {v: p[under[v]].sum() for v in kept}
            best, way = leaves[int(np.argmax(z))], []
            todo = sorted(v for v in kept if not o.parents[v])
            while todo:
                todo = [v for v in todo if how == "greedy" or leaves.index(best) in under[v]]
                way.append(max(todo, key=lambda v: (total[v], [-ord(c) for c in v])))
                todo = [c for c in o.children[way[-1]] if c in kept]
            code = b["predicted"].codes[i]
            assert b["predicted"].categories[code] == way[-1], (way, b["predicted"].categories[code])
            assert b["predicted_name"].categories[b["predicted_name"].codes[i]] == o.name[way[-1]], way
            near("probability", b["probability"][i], p[leaves.index(way[-1])], 1e-6)
            said = [step.rsplit(" (", 1) for step in b["lineage"][i].split(" > ")]
            assert [s[0] for s in said] == [o.name[v] for v in way], (said, way)
            for s, v in zip(said, way):
                near(v, float(s[1][:-1]), total[v], 5.001e-4)
            for v in nodes:
                near(v, b["node." + v][i], total[v], 1e-6)
            cells += 1
    print(f"{cells} cells")


def score(obo, prediction, label, scores):
    o, got, pairs = Ontology(obo), results.load(open(scores)), []
    for b in scstream.read(prediction):
        for t, p in zip(b[label].codes, b["predicted"].codes):
            if t >= 0 and p >= 0 and o.find(b[label].categories[t]):
                pairs.append((o.find(b[label].categories[t]), o.find(b["predicted"].categories[p])))
    up = {v: o.above(v) for v in set(sum(map(list, pairs), []))}
    inner = {v: {a for a in up[v] if o.parents[a]} for v in up}
    shared = sum(len(inner[t] & inner[p]) for t, p in pairs)
    of_p, of_t = sum(len(inner[p]) for _, p in pairs), sum(len(inner[t]) for t, _ in pairs)
    n = len(pairs)
    want = {
        "exact": sum(t == p for t, p in pairs) / n,
        "finer": sum(t != p and t in up[p] for t, p in pairs) / n,
        "coarser": sum(t != p and p in up[t] for t, p in pairs) / n,
        "wrong": sum(t not in up[p] and p not in up[t] for t, p in pairs) / n,
        "hierarchical_precision": shared / of_p, "hierarchical_recall": shared / of_t,
        "hierarchical_f1": 2 / (of_p / shared + of_t / shared), "cells": n}
    steps = [min((up[t][a] + up[p][a] for a in up[t] if a in up[p]), default=None) for t, p in pairs]
    want["apart"] = steps.count(None)
    want["distance"] = np.mean([s for s in steps if s is not None])
    settled = [(t, t if t in up[p] else p) for t, p in pairs]
    classes = sorted(set(sum(map(list, settled), [])))
    f1 = [2 * sum(t == p == c for t, p in settled) / (sum(t == c for t, _ in settled) + sum(p == c for _, p in settled)) for c in classes]
    want["macro_f1"], want["accuracy"] = np.mean(f1), np.mean([t == p for t, p in settled])
    for k, v in want.items():
        near(k, got[k], v, 1e-12)
    assert got["classes"] == classes and np.allclose(got["f1"], f1, 0, 1e-12)
    print(f"{n} cells, exact {want['exact']:.3f}, finer {want['finer']:.3f}, wrong {want['wrong']:.3f}")


def pruned(obo, model, head):
    o, small = Ontology(obo), Ontology(model + "/ontology.obo")
    h = next(h for h in json.load(open(model + "/config.json"))["corrmask_heads"] if h["name"] == head)
    labels = [h["id2label"][str(i)] for i in range(len(h["id2label"]))]
    kept, leaves, _ = o.prune(labels)
    assert leaves == labels and set(small.parents) == kept
    for i in kept:
        assert small.name[i] == o.name[i] and small.parents[i] == [p for p in o.parents[i] if p in kept]
    print(f"{len(leaves)} leaves, {len(kept)} terms")


if __name__ == "__main__":
    {"decode": decode, "score": score, "pruned": pruned}[sys.argv[1]](*sys.argv[2:])
