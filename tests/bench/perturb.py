#!/usr/bin/env python3
"""In-silico deletion of every gene beside transformers, in turns:    make bench-perturb

    perturb.py BIN CELLS.h5ad CELLS LENGTH THREADS ROUNDS v1|v1-12|v2 ...     the table
    perturb.py peer MODEL TOKENS.txt float32|bf16 THREADS OUT.npy             the peer: prints "wall SECONDS cpu SECONDS peak MB"
    perturb.py memory BIN CELLS.h5ad LENGTH v1|v2 ... -- CELLS...             peak memory by number of cells

For each cell, each gene is deleted; the value is the mean cosine of the other genes' states before and after, one layer before the last. Models are those
of embed.py, of the shapes of the published Geneformer models with random weights. The CELLS longest of 200 cells are cut to LENGTH tokens. Ours is
`scperturb apply --delete all | scembed --similarity mean`, timed from start to exit. The peer is Geneformer's way: batches of perturbed cells of one cell, which are
equally long, so nothing is padded; of as many tokens as scembed's; timed without imports and reading. Unlike Geneformer it reduces each batch at
once and keeps no states, which is to its advantage. In bf16, where the processor has it, it runs under autocast, and differences are those to its
float32.
"""
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from embed import BATCH_TOKENS, add_cls_and_eos, load_peer, make_model, pipe  # noqa: E402


def peer(model, path, precision, threads, out):
    import numpy as np
    import torch
    torch.set_num_threads(int(threads))
    net = load_peer(model)
    cells = [[int(t) for t in line.split()] for line in list(open(path))[1:]]
    ends = "v2" in os.path.basename(model)
    start = time.perf_counter(), time.process_time()
    got = []
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        for cell in cells:
            cell = torch.tensor(cell)
            genes = torch.arange(1, len(cell) - 1) if ends else torch.arange(len(cell))
            whole = net(cell[None]).last_hidden_state[0]
            most = max(1, BATCH_TOKENS // len(cell))
            for some in genes.split(most):
                keep = torch.stack([torch.cat([torch.arange(int(i)), torch.arange(int(i) + 1, len(cell))]) for i in some])
                state = net(cell[keep]).last_hidden_state
                cosine = torch.nn.functional.cosine_similarity(state.float(), whole[keep].float(), dim=2)
                got += (cosine[:, 1:-1] if ends else cosine).mean(1).tolist()
    print(f"wall {time.perf_counter() - start[0]:.3f} cpu {time.process_time() - start[1]:.3f} "
          f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
    np.save(out, np.array(got))


def prepare(bin, tmp, data, cells, length, name):
    style, vocab = name[:2], f"{tmp}/vocab" + (".v2" if name.startswith("v2") else "")
    if not os.path.exists(f"{tmp}/vocab"):
        pipe(f"'{bin}/h5tok' -q '{data}' -o {tmp}/all.counts; '{bin}/rankenc' -q --fit {tmp}/all.counts -o {tmp}/vocab; "
             f"'{bin}/scsample' -q -n 200 --seed 1 {tmp}/all.counts -o {tmp}/some.counts")
        add_cls_and_eos(f"{tmp}/vocab")
    if not os.path.exists(f"{tmp}/{name}"):
        make_model(f"{tmp}/{name}", name, vocab)
    pipe(f"'{bin}/scsample' -q --min-genes {length} {tmp}/some.counts | '{bin}/scsample' -q -n {cells} --seed 1 | "
         f"'{bin}/rankenc' -q -m {vocab} --vocab-style {style} --max-len {length} -o {tmp}/tok; '{bin}/scview' -c token {tmp}/tok > {tmp}/tok.txt")


def ours(bin, model, tokens, precision, length, threads, out):
    """Both programs of the pipe: wall and CPU seconds, the peak memory of each."""
    for f in (out + ".a", out + ".b"):
        if os.path.exists(f):
            os.unlink(f)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    pipe(f"'{bin}/scperturb' apply -q -u --delete all --max-len {length} --report {out}.a {tokens} | "
         f"'{bin}/scembed' -q --precision {precision} --similarity mean -@ {threads} --report {out}.b -M {model} -o {out}")
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = [float(re.search(r"^peak_memory_mb\t([\d.]+)", open(out + end).read(), re.M)[1]) for end in (".a", ".b")]
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, sum(peak)


def similarities(bin, path):
    import numpy as np
    text = subprocess.run([f"{bin}/scview", "-c", "similarity", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return np.array([float(v) for v in text.splitlines()[1:] if v.lower() not in ("nan", "na")])


def table(bin, data, cells, length, threads, rounds, *names):
    import importlib.metadata as m
    import numpy as np
    flags = [line for line in open("/proc/cpuinfo") if line.startswith("flags")]
    precisions = ["float32"] + (["bf16"] if flags and "avx512_bf16" in flags[0] else [])
    print(f"# {threads} threads; torch {m.version('torch')}, transformers {m.version('transformers')}; best of {rounds} rounds")
    print("model\tprecision\tperturbed cells\tours /s\tpeer /s\tratio\tours CPU s\tpeer CPU s\tratio\tours MB\tpeer MB\tlargest difference\tof the peer", flush=True)
    with tempfile.TemporaryDirectory() as tmp:
        for name in names:
            prepare(bin, tmp, data, cells, length, name)
            model, exact = f"{tmp}/{name}", None
            for precision in precisions:
                us, them = [], []
                for _ in range(int(rounds)):
                    us.append(ours(bin, model, f"{tmp}/tok", precision, length, threads, f"{tmp}/out"))
                    told = subprocess.run([sys.executable, os.path.abspath(__file__), "peer", model, f"{tmp}/tok.txt", precision, threads, f"{tmp}/peer.npy"],
                                          check=True, stdout=subprocess.PIPE, text=True).stdout
                    them.append(tuple(float(re.search(rf"{k} ([\d.]+)", told)[1]) for k in ("wall", "cpu", "peak")))
                want, got = np.load(f"{tmp}/peer.npy"), similarities(bin, f"{tmp}/out")
                exact = want if exact is None else exact
                assert len(want) == len(got) == len(exact), (len(want), len(got), len(exact))
                a, b = [[min(x) for x in zip(*side)] for side in (us, them)]
                print(name, precision, len(got), f"{len(got) / a[0]:.1f}", f"{len(got) / b[0]:.1f}", f"{b[0] / a[0]:.1f}", f"{a[1]:.2f}", f"{b[1]:.2f}",
                      f"{b[1] / a[1]:.1f}", f"{a[2]:.0f}", f"{b[2]:.0f}", f"{abs(exact - got).max():.1e}", f"{abs(exact - want).max():.1e}", sep="\t", flush=True)


def memory(bin, data, length, *rest):
    names, cells = rest[:rest.index("--")], rest[rest.index("--") + 1:]
    print("model\tcells\tperturbed cells\tMB, both programs\tseconds", flush=True)
    with tempfile.TemporaryDirectory() as tmp:
        for name in names:
            for n in cells:
                prepare(bin, tmp, data, n, length, name)
                wall, _, peak = ours(bin, f"{tmp}/{name}", f"{tmp}/tok", "float32", length, "1", f"{tmp}/out")
                print(name, n, len(similarities(bin, f"{tmp}/out")), f"{peak:.0f}", f"{wall:.0f}", sep="\t", flush=True)


{"peer": peer, "memory": memory}.get(sys.argv[1], lambda *a: table(sys.argv[1], *a))(*sys.argv[2:])
