#!/usr/bin/env python3
"""The jobs of README's picture and of the first table of docs/benchmarks.md, in one run:    make bench-all [WORKS="tokens graph"]

    speed.py run BIN BENCH_FOLDER CELLS.h5ad DIR OUT.tsv TRANSFER_PYTHON [WORK...]     all works, or these; OUT.tsv keeps the rows of the others
    speed.py page OUT.tsv PAGE.md                                           PAGE with the table below its line <!-- speed -->
    speed.py tokens CELLS.h5ad | spearman TOKENS.txt                        one peer: prints "cpu SECONDS" of its work

CPU seconds of one thread, the best of ROUNDS in turns (integration, transfer: one run). Ours is timed from start to exit, with files read and written; of
training, a step is. A peer is timed without its imports and, but for tokens, without reading. The limit is what the processor's multiplications (FMA),
or inflating alone, would take. Masks: the peer's rate is that of 2,000 of the cells. Whether results agree is what make agreement says.
"""
import datetime
import os
import re
import resource
import subprocess
import sys
import time

from agreement import put_table

here = os.path.dirname(os.path.abspath(__file__))
COLUMNS = "work job corrmask limit other version other_seconds note processor date".split()
ROUNDS = 2


def tell(start):
    print(f"cpu {time.process_time() - start:.4f}")


# ---- peers ----

def tokens(path):
    """Geneformer's rank value encoding as its tokenizer computes it: anndata, chunks of 512 cells, one sort a cell."""
    import anndata
    import numpy as np
    medians = np.array([float(x) if x != "NA" else 1 for x in
                        (line.rstrip("\n").split("\t")[3] for line in list(open(path + ".vocab.tsv"))[3:])], dtype=float)
    start = time.process_time()
    a = anndata.read_h5ad(path, backed="r")
    out = []
    for i in range(0, a.n_obs, 512):
        x = a[i:i + 512].to_memory().X
        total = np.asarray(x.sum(axis=1)).ravel()
        x = (x.multiply(1e4 / total[:, None]).multiply(1 / medians[:x.shape[1]])).tocsr()
        for k in range(x.shape[0]):
            s = slice(x.indptr[k], x.indptr[k + 1])
            out.append(x.indices[s][np.argsort(-x.data[s])][:2048])
    tell(start)


def spearman(path):
    """Spearman's rho of all pairs of the 2,000 commonest genes, from a dense matrix of ranks within cells; no candidates, no local weights."""
    import numpy as np
    import pandas as pd
    cells = [np.array(line.split(), dtype=int) for line in list(open(path))[1:]]
    count = np.bincount(np.concatenate(cells))
    top = np.argsort(-count)[:2000]
    column = np.full(len(count), -1)
    column[top] = np.arange(len(top))
    x = np.zeros((len(cells), len(top)))
    for i, c in enumerate(cells):
        j = column[c]
        x[i, j[j >= 0]] = (2048 - np.arange(len(c)))[j >= 0]
    start = time.process_time()
    np.corrcoef(pd.DataFrame(x).rank().to_numpy().T)
    tell(start)


# ---- turns ----

class Bench:
    """Where the programs and files are."""

    def __init__(self, bin, bench, cells, folder, transfer_python):
        self.bin, self.bench, self.cells, self.folder = map(os.path.abspath, (bin, bench, cells, folder))
        self.transfer_python = transfer_python
        os.makedirs(folder, exist_ok=True)

    def tool(self, name):
        return os.path.join(self.bin, name)

    def at(self, name):
        return os.path.join(self.folder, name)


def run(command, **more):
    """CPU seconds of a command and of those that it ran, and what it printed."""
    a = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True, **more).stdout
    b = resource.getrusage(resource.RUSAGE_CHILDREN)
    return b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime, out


def told(out, name="cpu"):
    return float(re.search(rf"\b{name} ([\d.]+)", out)[1])


def script(name, *args):
    return run([sys.executable, f"{here}/{name}", *args])[1]


def turns(*works):
    """The least CPU seconds of each, of ROUNDS in which they run one after another."""
    seen = [[w() for w in works] for _ in range(ROUNDS)]
    return [min(s) for s in zip(*seen)]


# ---- works: (seconds, limit or None, the other's seconds, note) ----

def training(b, length, batch, *how):
    limits = []

    def ours():
        out = run([b.bench + "/bench_sctrain", 1, 2, length, batch])[1]
        step = told(out, "step_cpu_s")
        limits.append(step * told(out, "fma_share_cpu"))
        return step
    a, other = turns(ours, lambda: told(script("sctrain_torch.py", *how, 1, 2, length, batch)))
    return a, min(limits), other, ""


def make_tokens(b):
    return run([b.tool("h5tok"), "-q", "-u", "-@1", "--rank", b.cells + ".vocab.tsv", "-o", b.at("speed.tok"), b.cells])[0]


def tokenise(b):
    a, other, limit = turns(lambda: make_tokens(b), lambda: told(script("speed.py", "tokens", b.cells)),
                            lambda: float(run([b.bench + "/bench_inflate", b.cells, 1, 1])[1].split()[4]))
    return a, limit, other, ""


def tokens_of(b):
    make_tokens(b)
    with open(b.at("speed.txt"), "w") as f:
        f.write(run([b.tool("scview"), "-c", "token", b.at("speed.tok")])[1])
    return b.at("speed.tok"), b.at("speed.txt")


def masks(b):
    tok, text = tokens_of(b)
    lines = open(text).readlines()[1:]
    open(b.at("few.txt"), "w").writelines(lines[:2000])
    millions = sum(len(line.split()) for line in lines) / 1e6
    ours = lambda: run([b.tool("maskgen"), "-q", "-u", "-@", 1, "--bernoulli", "-o", b.at("speed.masked"), tok])[0]
    other = lambda: millions / float(re.search(r"hf_masks_alone_mtokens_per_s\t([\d.]+)", script("maskgen_torch.py", b.at("few.txt"), 0))[1])
    a, theirs = turns(ours, other)
    return a, None, theirs, "padded tensors"


def graph(b):
    tok, text = tokens_of(b)
    a, other = turns(lambda: run([b.tool("depgraph"), "-q", "-@", 1, "-o", b.at("speed.graph"), tok])[0], lambda: told(script("speed.py", "spearman", text)))
    return a, None, other, ""


def deletion(b):
    lines = script("perturb.py", b.bin, b.cells, 1, 256, 1, ROUNDS, "v1").splitlines()
    row = dict(zip(lines[1].split("\t"), lines[2].split("\t")))
    return float(row["ours CPU s"]), None, float(row["peer CPU s"]), ""


def embedding(b):
    lines = script("embed.py", b.bin, b.cells, 32, 1, ROUNDS, "v1").splitlines()
    row = dict(zip(lines[1].split("\t"), lines[2].split("\t")))
    assert float(row["smallest cosine to the peer's float32"]) > .99999, row
    return float(row["ours CPU s"]), None, float(row["peer CPU s"]), ""


def integration(b):
    lines = script("integration.py", "run", b.tool("scmetric"), 20000, b.folder, 1, 1).splitlines()[-2:]
    ours, other = (float(line.split("\t")[4]) for line in lines)
    return ours, None, other, "JAX compiles"


def transfer(b):
    rows = [line.split("\t") for line in run([b.transfer_python, f"{here}/transfer_size.py", "recommended", b.bin, b.at("transfer"), 50000],
                                             env=dict(os.environ, PYTHONPATH=f"{here}/../../python"))[1].splitlines()[1:]]
    f1 = [row[4].lstrip("0") for row in rows]
    return float(rows[0][2]), None, float(rows[1][2]), f"F1 {f1[0]}, theirs {f1[1]}"


WORKS = {  # name: job, work, the other program, its package
    "training": ("Training, 12 × 256 tokens", lambda b: training(b, 256, 12), "BertForMaskedLM", "transformers"),
    "masked-rows": ("The same, masked tokens only", lambda b: training(b, 256, 12, "masked"), "PyTorch", "torch"),
    "long": ("Training, 2 × 2,048 tokens", lambda b: training(b, 2048, 2), "BertForMaskedLM", "transformers"),
    "tokens": ("Tokens from .h5ad, 8,192 cells", tokenise, "numpy, anndata", "anndata"),
    "masks": ("Masks, 8,192 cells", masks, "DataCollator", "transformers"),
    "graph": ("Dependency graph, 2,000 genes", graph, "pandas, numpy", "numpy"),
    "embedding": ("Embeddings of 32 cells", embedding, "transformers", "transformers"),
    "deletion": ("Deletion of each of 256 genes", deletion, "transformers", "transformers"),
    "integration": ("Integration metrics, 20,000 cells", integration, "scib-metrics", "scib-metrics"),
    "transfer": ("Label transfer, 50,000 cells", transfer, "SGD, CellTypist", "celltypist"),
}


def processor():
    """As vendors write it, and its widest vectors: virtual machines hide the model."""
    text = open("/proc/cpuinfo").read()
    name, flags = (re.search(rf"^{k}\s*: (.*)", text, re.M)[1] for k in ("model name", "flags"))
    return f"{name.strip()}, " + next((word for flag, word in (("avx512_bf16", "AVX512-BF16"), ("avx512f", "AVX-512")) if flag in flags.split()), "AVX2")


def digits(v):
    return "NA" if v is None else f"{v:.2f}" if v < 10 else f"{v:.1f}"


def rows_of(table):
    if not os.path.exists(table):
        return {}
    head, *rows = (line.rstrip("\n").split("\t") for line in open(table))
    if head != COLUMNS:
        sys.exit(f"speed: {table}: its columns are others: delete it")
    return {r[0]: dict(zip(COLUMNS, r)) for r in rows}


def run_all(bin, bench, cells, folder, table, transfer_python, *names):
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"), PYTHONWARNINGS="ignore",
                      XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    unknown = set(names) - set(WORKS)
    if unknown:
        sys.exit(f"speed: no work {', '.join(sorted(unknown))}: they are {', '.join(WORKS)}")
    b, rows = Bench(bin, bench, cells, folder, transfer_python), rows_of(table)
    for name, (job, work, other, package) in WORKS.items():
        if names and name not in names:
            continue
        ours, limit, theirs, note = work(b)
        python = transfer_python if package == "celltypist" else sys.executable
        version = run([python, "-c", f"import importlib.metadata as m; print(m.version('{package}'))"])[1].strip()
        rows[name] = dict(zip(COLUMNS, (name, job, digits(ours), digits(limit), other, version, digits(theirs), note or "NA", processor(),
                                        datetime.date.today().isoformat())))
        print(*rows[name].values(), sep="\t", file=sys.stderr, flush=True)
        with open(table, "w") as f:
            f.write("\n".join("\t".join(r) for r in [COLUMNS] + [list(rows[w].values()) for w in WORKS if w in rows]) + "\n")


def page(table, path):
    body = ["| job | corrmask | limit | other program | its time | ratio |", "|---|---|---|---|---|---|"]
    rows = list(rows_of(table).values())
    if len({r["processor"] for r in rows}) > 1:
        sys.exit(f"speed: {table}: rows of several processors: run all works")
    for r in rows:
        ratio = float(r["other_seconds"]) / float(r["corrmask"])
        limit = "" if r["limit"] == "NA" else r["limit"]
        note = "" if r["note"] == "NA" else f" ({r['note']})"
        body.append(f"| {r['job']}{note} | {r['corrmask']} | {limit} | {r['other']} {r['version']} | {r['other_seconds']} | {ratio:.{ratio < 9.95:d}f} |")
    put_table(path, "speed", body)


if __name__ == "__main__":
    verbs = {"run": run_all, "page": page, "tokens": tokens, "spearman": spearman}
    if len(sys.argv) < 3 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    verbs[sys.argv[1]](*sys.argv[2:])
