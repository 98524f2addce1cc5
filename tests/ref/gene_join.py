"""Which genes of several files are one: a plain reading of genes(7) in h5tok.1, against h5tok, on random 10x folders in every order.

    gene_join.py FOLDER CASES [FIRST]     needs h5tok and scview in PATH; prints what it compared, and ends with 1 at the first difference
"""
import collections, itertools, os, random, re, shutil, subprocess, sys

ENSEMBL = re.compile(r"^(ENS[A-Z]*?GR?\d{6,})(?:\.\d+(?:_\d+)*)?(_PAR_Y)?$")


def key(name):
    m = ENSEMBL.match(name)
    return m.group(1) + (m.group(2) or "") if m else name


def is_id(k):
    return bool(ENSEMBL.match(k))


def reference(tables, mapping):
    """tables: lists of (id, symbol). Returns the gene of each (table, row) as the name of its id."""
    keys = []
    for t in tables:
        rows = []
        for name, symbol in t:
            k = key(name)
            m = mapping.get(k) or mapping.get(k.upper())
            rows.append((key(m) if m else k, symbol))
        keys.append(rows)
    bears, there = collections.defaultdict(set), [set(k for k, _ in rows) for rows in keys]  # name -> keys; the keys of each table
    unclear, other = set(), set()
    for rows in keys:
        here = collections.defaultdict(set)
        for k, symbol in rows:
            for name in ([symbol] if symbol else []) + ([] if is_id(k) else [k]):
                here[name].add(k)
                bears[name].add(k)
            if symbol and symbol != k:
                other.add(k)
        unclear |= {name for name, who in here.items() if len(who) > 1}
    unclear |= {name for name, who in bears.items() if sum(map(is_id, who)) > 1}
    near = collections.defaultdict(set)
    for name, who in bears.items():
        if name not in unclear:
            for a in who:
                near[a] |= who
    gene = {}
    for k in set().union(*there):
        if k in gene:
            continue
        tree, todo = {k}, [k]
        while todo:
            new = near[todo.pop()] - tree
            tree |= new
            todo += new
        ids = sum(map(is_id, tree))
        one = (ids == 1 or (ids == 0 and len(tree & other) <= 1)) and all(len(tree & t) <= 1 for t in there)
        best = min(tree, key=lambda x: (not is_id(x), x not in other, x.encode()))
        for x in tree:
            gene[x] = best if one else x
    return [[gene[k] for k, _ in rows] for rows in keys]


def universe(rng, n):
    genes = []
    for i in range(n):
        genes.append({"id": "ENSG%011d" % rng.randrange(10**6), "symbol": "S%d" % i, "old": "OLD%d" % i, "alias": "AL%d" % i, "acc": "FBgn%07d" % i})
    for g in genes:
        if rng.random() < .08:
            g["symbol"] = rng.choice(genes)["symbol"]  # two genes of one symbol
        if rng.random() < .15:
            g["old"] = rng.choice(genes)["symbol"]  # a symbol that moved
        if rng.random() < .05:
            g["id"] += "_PAR_Y"
    return genes


def table(rng, genes, kind, share):
    rows = []
    for g in genes:
        if rng.random() > share:
            continue
        of = rng.choice(["ens", "sym"]) if kind == "mixed" else kind
        named = g["old"] if rng.random() < .15 else g["alias"] if rng.random() < .06 else g["symbol"]
        version = rng.choice(["", ".%d" % rng.randrange(1, 20), ".%d_%d" % (rng.randrange(1, 20), rng.randrange(1, 5))])
        id = g["id"].replace("_PAR_Y", version + "_PAR_Y") if "_PAR_Y" in g["id"] else g["id"] + version
        rows.append({"ens": (id, named), "bare": (id, ""), "sym": (named, named), "name": (named, ""), "acc": (g["acc"], named)}[of])
        if rng.random() < .03:
            rows.append(rows[-1])  # a gene twice
        if rng.random() < .05:
            rows.append((rng.choice([g["symbol"], g["old"]]), ""))  # beside its id
    rng.shuffle(rows)
    return rows


def write(folder, rows, counts):
    os.makedirs(folder)
    with open(folder + "/features.tsv", "w") as f:
        f.writelines("%s\t%s\tGene Expression\n" % r for r in rows)
    with open(folder + "/barcodes.tsv", "w") as f:
        f.write(os.path.basename(folder) + "\n")
    with open(folder + "/matrix.mtx", "w") as f:
        f.write("%%%%MatrixMarket matrix coordinate integer general\n%d 1 %d\n" % (len(rows), len(rows)))
        f.writelines("%d 1 %d\n" % (i + 1, c) for i, c in enumerate(counts))


def joined(folders, options):
    """{file: {gene: count}}, or what the tool says"""
    p = subprocess.run(["h5tok", "-q", "-u"] + options + folders, capture_output=True)
    if p.returncode:
        return p.stderr.decode()
    q = subprocess.run(["scview", "--gene-names", "id", "-c", "barcode,gene,count"], input=p.stdout, capture_output=True, check=True)
    cells = {}
    for line in q.stdout.decode().splitlines()[1:]:
        name, genes, counts = line.split("\t")
        assert len(set(genes.split())) == len(genes.split())
        cells[name] = dict(zip(genes.split(), map(int, counts.split())))
    return cells


def case(folder, seed):
    rng = random.Random(seed)
    shutil.rmtree(folder, ignore_errors=True)
    n, genes = rng.choice([2, 2, 3, 3, 3, 4, 5]), universe(rng, rng.choice([8, 20, 40]))
    mapped = rng.random() < .3
    kinds = ["ens", "ens", "bare", "sym", "name", "mixed"] + ([] if mapped else ["acc"])
    tables = [table(rng, genes, rng.choice(kinds), rng.choice([1, .8, .5])) or [("S0", "")] for _ in range(n)]
    mapping = {}
    if mapped:
        for g in genes:
            for name in ("symbol", "alias"):
                mapping.setdefault(g[name], key(g["id"]))
        with open(folder + ".map", "w") as f:
            f.writelines("%s\t%s\n" % kv for kv in mapping.items())
        mapping.update({v: v for v in mapping.values()})
    counts = [[rng.randrange(1, 100) for _ in t] for t in tables]
    folders = ["%s/f%d" % (folder, i) for i in range(n)]
    for f, t, c in zip(folders, tables, counts):
        write(f, t, c)
    want = {"f%d" % i: collections.Counter() for i in range(n)}
    for i, names in enumerate(reference(tables, mapping)):
        for name, c in zip(names, counts[i]):
            want["f%d" % i][name] += c
    orders = list(itertools.permutations(folders))
    rng.shuffle(orders)
    found = [joined(list(o), ["--map", folder + ".map"] if mapped else []) for o in orders[:6]]
    refused = [isinstance(f, str) for f in found]
    if any(refused):
        if not all(refused) or not all("are not those of the other tables" in f or "expected at least 20 %" in f for f in found):
            sys.exit("case %d: %s" % (seed, found))
        return "refused", len(found)
    for o, f in zip(orders, found):
        if f != want:
            both = {k: (f.get(k, {}).items() ^ want[k].items()) for k in want}
            sys.exit("case %d, %s: %s" % (seed, " ".join(o), both))
    return "%d files" % n + (", map" if mapped else ""), len(found)


if __name__ == "__main__":
    total = collections.Counter()
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    for seed in range(first, first + int(sys.argv[2])):
        what, joins = case(sys.argv[1], seed)
        total[what] += 1
        total["joins"] += joins
    print(", ".join("%s: %d" % kv for kv in sorted(total.items())))
