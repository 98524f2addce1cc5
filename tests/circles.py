#!/usr/bin/env python3
"""Circles among files: circles.py FOLDER_OF_OBJECTS

Reads with nm which object file calls which, and prints every circle (files that all reach one another), with the names that tie them. An edge of
ALLOWED is passed over: a table that lists kinds, each of which calls what all kinds share, is no circle of ideas. An edge that is not there any more
is an error, too. A tool's objects call those of the same tool, of src/cli* and of lib. Status 1 if there is a circle.
"""
import collections
import fnmatch
import glob
import os
import subprocess
import sys

# from, to (patterns), reason
ALLOWED = [
    ("lib/nn/arch", "lib/nn/*", "the table of architectures"),
    ("lib/nn/head", "lib/nn/head_*", "the table of heads"),
    ("lib/anndata/reader", "lib/anndata/*", "the table of readers"),
    ("src/sctrain/sctrain", "src/sctrain/*", "the tables of tasks and of objectives"),
    ("src/scpredict/scpredict", "src/scpredict/*", "the table of commands"),
    ("src/ctaprobe/cells", "src/ctaprobe/*", "it chooses the probe of --label, --target, --nearest"),
    ("lib/stream/stream*", "lib/stream/stream_joined", "several streams as one: each call of stream.h passes it on"),
]
SETTINGS = ("*_cli", "*_set")  # data: what the command line of a command says, which its parts read


def read(folder):
    """{object: {called object: [names]}}"""
    objects = sorted(glob.glob(f"{folder}/lib/**/*.o", recursive=True) + glob.glob(f"{folder}/src/**/*.o", recursive=True))
    names = {o: os.path.relpath(o, folder)[:-2] for o in objects}
    defined, wanted = collections.defaultdict(list), collections.defaultdict(set)
    for line in subprocess.run(["nm", "-A", "-P", *objects], capture_output=True, text=True, check=True).stdout.splitlines():
        path, rest = line.split(": ", 1)
        symbol, kind = rest.split()[:2]
        if kind in "Uw":
            wanted[names[path]].add(symbol)
        elif kind.isupper() and symbol != "main" and not (kind in "BD" and any(fnmatch.fnmatchcase(symbol, s) for s in SETTINGS)):
            defined[symbol].append(names[path])
    calls = {o: collections.defaultdict(list) for o in names.values()}
    for caller, symbols in wanted.items():
        for symbol in sorted(symbols):
            for o in defined.get(symbol, []):
                if o.startswith(("lib/", "src/cli")) or tool(o) == tool(caller):
                    calls[caller][o].append(symbol)
    return calls


def tool(name):
    """src/sctrain/train, src/maskgen_shard: sctrain, maskgen"""
    return name.split("/")[1].split("_")[0] if name.startswith("src/") else None


def circles(calls):
    """Tarjan's strongly connected components of more than one object"""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in calls[v]:
            if w not in index:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == index[v]:
            at = stack.index(v)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for v in calls:
        if v not in index:
            visit(v)
    return [c for c in found if len(c) > 1]


def main():
    sys.setrecursionlimit(10000)
    calls = read(sys.argv[1])
    bad = 0
    for caller, called, reason in ALLOWED:
        some = [(a, b) for a in calls for b in calls[a] if fnmatch.fnmatchcase(a, caller) and fnmatch.fnmatchcase(b, called)]
        for a, b in some:
            del calls[a][b]
        if not some:
            print(f"circles: {caller} calls no {called} ({reason}): take it out of ALLOWED")
            bad = 1
    for circle in circles(calls):
        bad = 1
        print(f"circle of {len(circle)} files:")
        for a in circle:
            for b in circle:
                if b in calls[a]:
                    print(f"  {a} -> {b}: {' '.join(calls[a][b])}")
    return bad


sys.exit(main())
