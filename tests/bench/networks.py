#!/usr/bin/env python3
"""Networks of genes by several programs, from the same cells and genes: what recurs in other donors?    make bench-networks

    networks.py run BIN DATA DIR OUT.tsv [SET...]    the table, or these sets' rows of it; DIR keeps all that is made, and it is not made twice

Each program orders pairs of the GENES most variable genes in CELLS cells, of which those count that share at least FLOOR cells. Ten times the
donors are split at random into halves; recurrence is the share of the first 300 pairs of a half that are among those of the other. Sets of genes:
times chance, among the first 300 pairs of all cells whose genes are both in sets. One thread. Everything with numpy runs in a process of its own,
as a process begins with the memory of the one that started it.
"""
import gzip
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import time

CELLS, GENES, FLOOR, FIRST, DRAWS, KEPT = 4000, 500, 20, 300, 10, 40000  # FLOOR: cells that the genes of a pair share
FEW = {"rustscenic": 3}                                                  # draws of a slow program
SETS = {"bone marrow": ("aml_bonemarrow_vangalen2019", "donor"), "lung": ("lung_luad_kim2020_2000genes", "sample"),
        "PBMC Kang": ("pbmc_kang2018_1287genes", "donor")}
GENESETS = {"reactome": "reactome_msigdb_v2025.gmt.gz", "complexes": "go_protein_complexes_ensembl.gmt.gz"}
RIBOSOME = re.compile("^RP[LS]P?[0-9]|^RPSA$")
GRAPH = 'rankenc -q -m "$V" -u "$I.counts" | depgraph -q --top-genes 0 --min-cells {floor} --min-overlap {floor} -u - | depgraph -q -O tsv -o "$O" -'
WITHIN = 'depgraph -q --within {how} --min-cells {floor} -O tsv -o "$O" "$I.counts"'
ARMS = {  # the command, or the name of a function below; the column that orders the edges
    "Algorithm-1": (GRAPH, "rho"), "pooled-rho": (GRAPH, "pooled"),
    "correlation": ("correlation", "score"),
    "within-types": (WITHIN.replace("{how}", "{donor},cell_type"), "score"),
    "within-clusters": (WITHIN.replace("{how}", "{donor} --clusters 15"), "score"),
    "PyWGCNA": ("wgcna", "score"), "rustscenic": ("boosting", "score")}


# ---- other programs: a score of each pair, [genes, genes], of x [cells, genes] ----

def correlation(x, genes):
    import numpy as np
    return np.corrcoef(x.T)


def wgcna(x, genes):
    """The defaults of PyWGCNA: a signed hybrid network, the first power that makes it scale free (R^2 .9), topological overlap."""
    import pandas as pd
    from PyWGCNA import WGCNA
    table = pd.DataFrame(x, columns=genes)
    power, _ = WGCNA.pickSoftThreshold(table, networkType="signed hybrid")
    print("power", power)
    return WGCNA.TOMsimilarity(WGCNA.adjacency(table, power=power, adjacencyType="signed hybrid"), TOMType="signed").to_numpy()


def boosting(x, genes):
    """GRNBoost2 with each gene as a regulator of all others: the sum of the importances in both directions."""
    import numpy as np
    import rustscenic.grn
    place = {g: i for i, g in enumerate(genes)}
    t = rustscenic.grn.infer((x.astype(np.float32), genes), genes, verbose=False)
    score = np.zeros((len(genes), len(genes)))
    score[t["TF"].map(place), t["target"].map(place)] = t["importance"]
    return score + score.T


def values(path, least=1):
    """The genes of this many cells that vary, as {id: symbol}, log(1 + 10^4 count / n_counts) of each cell, and whether it has the gene."""
    import numpy as np
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
    from corrmask import stream
    with stream.read(path + ".counts") as cells:
        vocab, counts, total = cells.header["vocab"], [], []
        for b in cells:
            offset, gene = b["gene"]
            counts.append(np.zeros((len(offset) - 1, len(vocab["id"])), np.float32))
            counts[-1][np.repeat(np.arange(len(offset) - 1), np.diff(offset)), gene] = b["count"][1]
            total.append(b["n_counts"])
    counts = np.concatenate(counts)
    vary = ((counts > 0).sum(0) >= least) & (counts.max(0) > counts.min(0))
    counts = counts[:, vary]
    return ({g: s for g, s, v in zip(vocab["id"], vocab["symbol"], vary) if v},
            np.log1p(1e4 * counts / np.concatenate(total)[:, None].astype(float)), (counts > 0).astype(np.float32))


def python_arm(name, *paths):
    import numpy as np
    {"correlation": lambda: 0, "wgcna": lambda: __import__("PyWGCNA"), "boosting": lambda: __import__("rustscenic.grn")}[name]()
    for path in paths:
        symbol, x, there = values(path)
        overlap = (there.T @ there).astype(int)
        genes, start = list(symbol), time.process_time()
        s = globals()[name](x, genes)
        used = time.process_time() - start
        u, v = np.triu_indices(len(genes), 1)
        score = np.where(overlap[u, v] >= FLOOR, s[u, v], -np.inf)
        order = np.argsort(-score, kind="stable")[:KEPT]
        with open(f"{path}.{name}.new", "w") as f:
            print("gene_a", "gene_b", "score", "overlap", sep="\t", file=f)
            for k in order[np.isfinite(score[order])]:
                print(genes[u[k]], genes[v[k]], f"{score[k]:.9g}", overlap[u[k], v[k]], sep="\t", file=f)
        os.rename(f"{path}.{name}.new", f"{path}.{name}.tsv")
    return used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ---- files ----

def sh(command, **names):
    return subprocess.run(["bash", "-ec", "set -o pipefail; " + command], check=True, stdout=subprocess.PIPE, text=True, env=os.environ | names).stdout


def child(*args):
    return sh(f'exec "$P" "$F" {" ".join(map(str, args))}', P=sys.executable, F=os.path.abspath(__file__)).splitlines()[-1]


def choose(path):
    """The genes of most variance that 50 cells have."""
    import numpy as np
    symbol, x, _ = values(path, 50)
    with open(path + ".genes", "w") as f:
        f.writelines(f"{list(symbol)[g]}\n" for g in np.argsort(-x.var(0), kind="stable")[:GENES])
    print(len(x), "cells")


def prepare(name, data, folder):
    """The cells, their halves, and the vocabulary; the column of donors."""
    os.makedirs(folder, exist_ok=True)
    file, donor = SETS[name]
    if not os.path.exists(f"{folder}/vocab.tsv"):
        sh(f'h5tok -q "$P" | scsample -q -n {CELLS} --seed 1 -o "$D/cells.counts" -', P=f"{data}/scrna/{file}.h5ad", D=folder)
        child("choose", f"{folder}/cells")
        sh('scsample -q --keep-genes "$D/cells.genes" -o "$D/all.counts" "$D/cells.counts"; rankenc -q --fit -o "$D/vocab.tsv" "$D/all.counts"', D=folder)
    names = sorted(set(sh('scview -q -c "$C" "$D/all.counts" | tail -n +2', C=donor, D=folder).splitlines()))
    for draw in range(DRAWS):
        random.Random(draw).shuffle(names)
        for k, part in enumerate((names[:len(names) // 2], names[len(names) // 2:])):
            if not os.path.exists(f"{folder}/{draw}-{k}.counts"):
                where = " ".join(f"--where '{donor}={n}'" for n in part)
                sh(f'scsample -q {where} -o "$D/{draw}-{k}.counts" "$D/all.counts"', D=folder)
    return donor


def tool_arm(name, donor, path):
    sh(ARMS[name][0].format(floor=FLOOR, donor=donor), I=path, V=os.path.dirname(path) + "/vocab.tsv", O=listed(name, path))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def is_tool(name):
    return " " in ARMS[name][0]


def listed(name, path):
    return f"{path}.{(f'graph-{FLOOR}' if ARMS[name][0] == GRAPH else name.replace(' ', '-')) if is_tool(name) else ARMS[name][0]}.tsv"


def make(name, donor, paths):
    """The lists that are not there yet; those of a Python program in one process, as they begin slowly."""
    paths = [p for p in paths if not os.path.exists(listed(name, p))]
    if is_tool(name):
        for p in paths:
            tool_arm(name, donor, p)
    elif paths:
        child("arm", f"'{name}'", donor, *paths)


def cost(name, donor, path):
    """CPU seconds and MB of one list, which is made alone."""
    kept = listed(name, path) + ".cost"
    if not os.path.exists(kept):
        said = child("arm", f"'{name}'", donor, path)
        with open(kept, "w") as f:
            f.write(said)
    with open(kept) as f:
        return json.load(f)


FIND = r"""awk -F '\t' -v column="$C" -v floor="$FLOOR" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["overlap"] >= floor { v = $at[column]; if (column != "score") sub(/^-/, "", v); a = $at["gene_a"]; b = $at["gene_b"]
        print v "\t" (a < b ? a "\t" b : b "\t" a) }' "$L" | LC_ALL=C sort -t "$(printf '\t')" -k 1,1gr -k 2,3 | awk -v n="$N" 'NR <= n' | cut -f 2,3"""


def edges(name, path, most=5000):
    """(gene, gene) of the pairs that share FLOOR cells, best first."""
    out = sh(FIND, C=ARMS[name][1], FLOOR=str(FLOOR), L=listed(name, path), N=str(most))
    return [tuple(line.split("\t")) for line in out.splitlines()]


# ---- sets of genes ----

def enriched(folder, data, lists):
    """For each list of edges and kind of sets: times chance among the first pairs whose genes are both in sets, with 95 % over resampled genes."""
    import numpy as np
    symbol, _, there = values(folder + "/all")
    overlap = (there.T @ there).astype(int)
    found = {}
    for kind, file in GENESETS.items():
        place = {g: i for i, (ensg, sym) in enumerate(symbol.items()) if not RIBOSOME.match(sym) for g in (ensg, sym)}
        together, known = np.zeros(overlap.shape, bool), np.zeros(len(symbol), bool)
        for line in gzip.open(f"{data}/genesets/{file}", "rt"):
            g = sorted({place[n] for n in line.rstrip("\n").split("\t")[2:] if n in place})
            if 3 <= len(g) <= 200:
                together[np.ix_(g, g)] = known[g] = True
        can = np.triu((overlap >= FLOOR) & known[:, None] & known, 1)
        number = {g: i for i, g in enumerate(symbol)}
        for name, pairs in json.load(open(lists)).items():
            e = np.array([(number[a], number[b]) for a, b in pairs if known[number[a]] and known[number[b]]][:FIRST])

            def times(w):
                of = w[e[:, 0]] * w[e[:, 1]]
                return (of * together[e[:, 0], e[:, 1]]).sum() / of.sum() / ((w @ (can & together) @ w) / (w @ can @ w))
            rng, n = np.random.default_rng(1), len(symbol)
            drawn = [times(rng.multinomial(n, np.full(n, 1 / n)).astype(float)) for _ in range(500)]
            found.setdefault(name, {})[kind] = [len(e), times(np.ones(n)), *np.percentile(drawn, (2.5, 97.5))] if len(e) else None
    print(json.dumps(found))


# ---- the table ----

COLUMNS = ["set", "network", "cells", "genes", "halves", "recurrence", "recurrence_sd", "no_ribosome", "no_ribosome_sd",
           *(f"{k}{c}" for k in GENESETS for c in ("_pairs", "", "_low", "_high")), "cpu", "mb"]


def recurring(halves, use):
    first = [[[e for e in half if use(e)][:FIRST] for half in pair] for pair in halves]
    shares = [len(set(a) & set(b)) / FIRST for a, b in first if len(a) == len(b) == FIRST]
    return ("NA", "NA") if len(shares) < len(halves) else (f"{statistics.mean(shares):.4f}", f"{statistics.stdev(shares):.4f}" if len(shares) > 1 else "NA")


def rows(name, data, folder):
    donor = prepare(name, data, folder)
    ribosome = {r[1] for r in (line.split("\t") for line in open(f"{folder}/vocab.tsv")) if len(r) > 2 and RIBOSOME.match(r[2])}
    whole, done = {}, []
    for arm in ARMS:
        used, draws = cost(arm, donor, f"{folder}/all"), [[f"{folder}/{draw}-{k}" for k in (0, 1)] for draw in range(FEW.get(arm, DRAWS))]
        make(arm, donor, sum(draws, []))
        whole[arm] = [e for e in edges(arm, f"{folder}/all", KEPT) if not ribosome & set(e)]
        halves = [[edges(arm, p) for p in pair] for pair in draws]
        done.append([arm, len(draws), *recurring(halves, lambda e: True), *recurring(halves, lambda e: not ribosome & set(e)), used])
        print(name, *done[-1], file=sys.stderr, flush=True)
    with open(f"{folder}/lists.json", "w") as f:
        json.dump(whole, f)
    sets = json.loads(child("enriched", folder, data, f"{folder}/lists.json"))
    cells = len(sh('scview -q -c n_counts "$D/all.counts"', D=folder).splitlines()) - 1
    for arm, n, *recurrence, used in done:
        times = [f for kind in GENESETS for s in [sets[arm][kind]] for f in ([s[0], *(f"{v:.3f}" for v in s[1:])] if s else ["NA"] * 4)]
        yield [name, arm, cells, GENES, n, *recurrence, *times, f"{used[0]:.2f}", f"{used[1]:.0f}"]


def table(bin, data, folder, out, *names):
    os.environ.update({v + "_NUM_THREADS": "1" for v in ("OMP", "OPENBLAS", "RAYON", "NUMBA")}, PATH=f"{os.path.abspath(bin)}:{os.environ['PATH']}")
    made = [line.rstrip("\n").split("\t") for line in list(open(out))[1:]] if os.path.exists(out) else []
    fresh = {name: list(rows(name, data, f"{folder}/{name.replace(' ', '-')}")) for name in [n.replace("-", " ") for n in names] or SETS}
    with open(out, "w") as f:
        for r in [COLUMNS, *(r for name in SETS for r in fresh.get(name) or [r for r in made if r[0] == name])]:
            print(*r, sep="\t", file=f)


if __name__ == "__main__":
    what, *args = sys.argv[1:]
    if what == "run":
        table(*args)
    elif what == "arm":
        print(json.dumps(tool_arm(*args) if is_tool(args[0]) else python_arm(ARMS[args[0]][0], *args[2:])))
    else:
        {"choose": choose, "enriched": enriched}[what](*args)
