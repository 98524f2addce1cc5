#!/usr/bin/env python3
"""From a file to PyTorch, beside the newest loaders, in turns:    make bench-loaders [LOADER_CELLS=49152] [ROUNDS=3]

    loaders.py run BIN CELLS.h5ad DIR ROUNDS [NAME...]     the table, on standard output (CELLS.h5ad.vocab.tsv has the medians); its
                                                 first columns are docs/loaders.tsv, which make docs-figures draws
    loaders.py NAME make|WORK CELLS.h5ad DIR     one loader writes its format, or reads it: prints its cells, seconds and memory

Every loader gets the same cells in batches of 64 and two threads, or two processes, in the fastest setting that its documentation gives. The time
begins after the imports and ends with the last cell, or after 10 seconds. The works:

    raw      counts of all cells, sparse, in memory
    tokens   Geneformer's: genes by count / sum of the cell / median of the gene, the first 2,048
    masked   padded batches of PyTorch: input_ids, attention_mask, labels; 15 % of the tokens are hidden, of these 80 % as <mask>, 10 % another

Where a loader gives counts only, NumPy makes tokens and masks of a batch.
"""
import importlib
import importlib.metadata
import os
import resource
import shutil
import subprocess
import sys
import time
import warnings

BATCH, SECONDS, MAX_LEN, SHARE, THREADS = 64, 10, 2048, 0.15, 2
WORKS = "raw", "tokens", "masked"
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here + "/../../python")
warnings.filterwarnings("ignore")


# ---- ranks and masks of raw counts ----

class Encoder:
    """CSR batches of counts to tokens and to masked tensors."""

    def __init__(self, table):
        import numpy as np
        rows = [line.rstrip("\n").split("\t") for line in open(table)][1:]
        self.special = sum(r[1].startswith("<") for r in rows)
        self.median = np.array([float(r[3]) for r in rows[self.special:]])
        self.random = np.random.default_rng(1)

    def tokens(self, x):
        import numpy as np
        value = x.data / np.repeat(np.asarray(x.sum(axis=1)).ravel(), np.diff(x.indptr)) * 1e4 / self.median[x.indices]
        return [x.indices[a:b][np.argsort(-value[a:b])][:MAX_LEN] + self.special for a, b in zip(x.indptr, x.indptr[1:])]

    def masked(self, cells):
        import numpy as np
        import torch
        length = np.array([len(c) for c in cells])
        there = np.arange(length.max()) < length[:, None]
        ids, labels = np.zeros(there.shape, "i8"), np.full(there.shape, -100)
        for row, c in zip(ids, cells):
            row[:len(c)] = c
        draw = self.random.random(there.shape, "f4")
        hide = there & (draw < SHARE)
        labels[hide] = ids[hide]
        ids[hide & (draw < .8 * SHARE)] = 1
        other = hide & (draw > .9 * SHARE)
        ids[other] = self.random.integers(self.special, self.special + len(self.median), other.sum())
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(there.astype("i8")), "labels": torch.from_numpy(labels)}


# ---- loaders: make(CELLS, DIR) writes their format, read(CELLS, DIR, WORK) gives (cells, batch) ----

def shell(command, **more):
    return subprocess.Popen(["bash", "-o", "pipefail", "-c", command], **more)


class Ours:
    file = "cells.tok"
    warm = 0
    needs = ["corrmask.stream"]

    def __init__(self, suffix="h5ad"):
        self.suffix = suffix
        self.works = WORKS if suffix == "h5ad" else WORKS[:2]           # masks are made of tokens

    def make(self, cells, folder):
        assert not shell(f"h5tok -q -@{THREADS} --rank {cells}.vocab.tsv {self.input(cells, folder)} -o {folder}/cells.tok").wait()

    def input(self, cells, folder):
        return cells if self.suffix == "h5ad" else f"{folder}/cells.zarr"

    def read(self, cells, folder, work):
        from corrmask import stream
        file = self.input(cells, folder)
        with shell({"raw": f"exec h5tok -q -u -@{THREADS} {file}", "tokens": f"exec h5tok -q -u -@{THREADS} --rank {cells}.vocab.tsv {file}",
                    "masked": f"exec maskgen -q -u -@{THREADS} -b {BATCH} {folder}/cells.tok"}[work], stdout=subprocess.PIPE) as tool:
            if work == "masked":
                from torch.utils.data import DataLoader
                for b in DataLoader(stream.Dataset(tool.stdout, blocks=True), batch_size=None, collate_fn=stream.padded):
                    yield len(b["labels"]), b
            else:
                for b in stream.read(tool.stdout):
                    yield b.rows, b


class Peer:
    """One that gives counts: batches(CELLS, DIR) of CSR."""
    warm, works = 0, WORKS

    def make(self, cells, folder):
        pass

    def read(self, cells, folder, work):
        encoder = Encoder(cells + ".vocab.tsv")
        for x in self.batches(cells, folder):
            yield x.shape[0], x if work == "raw" else encoder.tokens(x) if work == "tokens" else encoder.masked(encoder.tokens(x))


class Anndata(Peer):
    file = "cells.zarr"
    needs = ["anndata", "zarr"]

    def make(self, cells, folder):
        import anndata
        anndata.read_h5ad(cells).write_zarr(f"{folder}/cells.zarr")

    def batches(self, cells, folder):
        import anndata
        import numpy as np
        import zarr
        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
        x = anndata.io.sparse_dataset(zarr.open(f"{folder}/cells.zarr", mode="r")["X"])
        order = np.random.default_rng(1).permutation(x.shape[0])
        for i in range(0, len(order), BATCH):
            yield x[np.sort(order[i:i + BATCH])]


class Annbatch(Peer):
    file = "cells.annbatch"
    needs = ["annbatch", "anndata", "zarr"]

    def make(self, cells, folder):
        import annbatch
        import zarr
        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
        annbatch.DatasetCollection(zarr.open(f"{folder}/{self.file}", mode="w")).add_adatas(adata_paths=[cells], shuffle=True)

    def batches(self, cells, folder):
        import anndata
        import annbatch
        import zarr
        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "threading.max_workers": THREADS})
        collection = annbatch.DatasetCollection(zarr.open(f"{folder}/{self.file}", mode="r"))
        loader = annbatch.Loader(batch_size=BATCH, chunk_size=64, preload_nchunks=64, preload_to_gpu=False)
        for b in loader.use_collection(collection, load_adata=lambda g: anndata.AnnData(X=anndata.io.sparse_dataset(g["X"]))):
            yield b["X"]


class ScDataset(Peer):
    file = None
    needs = ["scdataset", "anndata"]

    def batches(self, cells, folder):
        import anndata
        import scdataset
        a = anndata.read_h5ad(cells, backed="r")
        yield from scdataset.scDataset(a, scdataset.BlockShuffling(block_size=64), batch_size=BATCH, fetch_factor=64,
                                       fetch_transform=lambda b: b.to_memory().X, batch_transform=lambda b: getattr(b, "X", b))


class Scdl(Peer):
    file = "cells.scdl"
    needs = ["bionemo.scdl.io.single_cell_memmap_dataset", "torch", "scipy.sparse"]

    def make(self, cells, folder):
        from bionemo.scdl.io.single_cell_memmap_dataset import SingleCellMemMapDataset
        SingleCellMemMapDataset(f"{folder}/{self.file}", cells, use_X_not_raw=True).save()

    def batches(self, cells, folder):
        import scipy.sparse
        from bionemo.scdl.io.single_cell_memmap_dataset import SingleCellMemMapDataset
        from bionemo.scdl.util.torch_dataloader_utils import collate_sparse_matrix_batch
        from torch.utils.data import DataLoader
        data = SingleCellMemMapDataset(f"{folder}/{self.file}")
        for x in DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=0, collate_fn=collate_sparse_matrix_batch):
            yield scipy.sparse.csr_matrix((x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy()), shape=tuple(x.shape))


class Slaf(Peer):
    file = "cells.slaf"
    warm = 10                   # seconds, as in SLAF's own benchmark: it fills its queue first
    needs = ["slaf.data", "slaf.ml.dataloaders", "torch"]

    def make(self, cells, folder):
        from slaf.data import SLAFConverter
        SLAFConverter().convert(cells, f"{folder}/{self.file}")

    def read(self, cells, folder, work):
        from slaf import SLAFArray
        from slaf.ml.dataloaders import SLAFDataLoader
        array = SLAFArray(f"{folder}/{self.file}")
        how = dict(raw_mode=True) if work == "raw" else dict(tokenizer_type="geneformer", max_genes=MAX_LEN)
        encoder = Encoder(cells + ".vocab.tsv")
        for b in SLAFDataLoader(array, batch_size=BATCH, verbose=False, n_epochs=1000, **how):
            yield len(b["cell_ids"]), encoder.masked([i[m] for i, m in zip(b["input_ids"].numpy(), b["attention_mask"].numpy())]) if work == "masked" else b


LOADERS = {"corrmask, .h5ad": Ours(), "corrmask, zarr": Ours("zarr"), "annbatch": Annbatch(), "SLAF": Slaf(), "SCDL": Scdl(),
           "scDataset": ScDataset(), "anndata": Anndata()}


# ---- one process ----

def spent():
    a, b = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), a.ru_utime + a.ru_stime + b.ru_utime + b.ru_stime, (a.ru_maxrss + b.ru_maxrss) / 1024


def one(name, work, cells, folder):
    """Writes the format of a loader (make), or reads cells: prints the cells, seconds and the peak memory with the libraries."""
    loader, n = LOADERS[name], 0
    for module in loader.needs + ["torch"] * (work == "masked"):
        importlib.import_module(module)
    start = spent()
    if work == "make":
        loader.make(cells, folder)
    else:
        batches, warm = loader.read(cells, folder, work), loader.warm
        for k, _ in batches:
            n += k
            if warm and time.perf_counter() - start[0] > warm:
                start, n, warm = spent(), 0, 0
            elif time.perf_counter() - start[0] > (warm or SECONDS):
                break
        if not loader.warm:
            batches.close()
    wall, cpu, mb = spent()
    print(f"cells {n} wall {wall - start[0]:.3f} cpu {cpu - start[1]:.3f} mb {mb:.0f}", flush=True)
    os._exit(0)                 # SLAF's threads do not end


# ---- turns ----

def process(python, *args):
    """What one() of a process prints: {cells, wall, cpu, mb}; None if it failed, which it then says."""
    env = dict(os.environ, **{v: str(THREADS) for v in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS",
                                                         "LANCE_CPU_THREADS")})
    try:
        done = subprocess.run([python, os.path.abspath(__file__), *args], env=env, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        print(f"# {' '.join(args[:2])}: no end in 120 seconds", flush=True)
        return None
    words = (done.stdout.strip().splitlines() or [""])[-1].split()
    if done.returncode or words[:1] != ["cells"]:
        print(f"# {' '.join(args[:2])} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}", flush=True)
        return None
    return {k: float(v) for k, v in zip(words[::2], words[1::2])}


def size(path):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(path) for f in files) if os.path.isdir(path) else os.path.getsize(path)


def table(bin, cells, folder, rounds, *names):
    os.environ["PATH"] = os.path.abspath(bin) + ":" + os.environ["PATH"]
    slaf = os.path.join(os.path.dirname(os.path.dirname(sys.executable)) + "-slaf", "bin", "python")
    python = lambda name: slaf if name == "SLAF" else sys.executable
    there = {n: l for n, l in LOADERS.items() if (n in names or not names) and not (n == "SLAF" and not os.path.exists(slaf))}
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    print(f"# {cpu}, {THREADS} threads; " + ", ".join(f"{p} {importlib.metadata.version(p)}" for p in (
        "anndata", "annbatch", "bionemo-scdl", "scdataset", "torch", "numpy", "zarr", "zarrs")))
    made = {}
    for name, loader in there.items():
        if loader.file and loader.file not in made:
            path = f"{folder}/{loader.file}"
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.path.exists(path) and os.unlink(path)
            made[loader.file] = process(python(name), name, "make", cells, folder), size(path)
    seen, failed = {}, set()
    for _ in range(rounds):
        for work in WORKS:
            for name in there:
                if work in there[name].works and (name, work) not in failed:
                    r = process(python(name), name, work, cells, folder)
                    seen.setdefault((name, work), []).append(r) if r and r["cells"] else failed.add((name, work))
    print("loader\twork\tcells/s\tcells a CPU second\tmemory, MB\tdisk, MB\tmade in CPU s")
    for name, loader in there.items():
        once, disk = made.get(loader.file, (None, size(cells)))
        for work in WORKS:
            if (name, work) in seen:
                runs = seen[name, work]
                print(name, work, f"{max(r['cells'] / r['wall'] for r in runs):.0f}", f"{max(r['cells'] / r['cpu'] for r in runs):.0f}",
                      f"{max(r['mb'] for r in runs):.0f}", f"{disk / 1e6:.0f}", f"{once['cpu']:.0f}" if once else "", sep="\t", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        table(*sys.argv[2:5], int(sys.argv[5]), *sys.argv[6:])
    else:
        one(*sys.argv[1:])
