#!/usr/bin/env python3
"""Make the seeds of fuzz_zarr: tiny stores of both versions. Needs anndata 0.12 and zarr 3.
    tests/fuzz/make_zarr_seeds.py [tests/fuzz/seeds/fuzz_zarr]"""
import os
import struct
import sys
import tempfile
import warnings

import anndata as ad
import numcodecs
import numpy as np
import pandas as pd
import scipy.sparse as sp
import zarr
import zarr.codecs as zc

warnings.filterwarnings("ignore")


def store(path, version, x, **how):
    a = ad.AnnData(x, obs=pd.DataFrame({"t": pd.Categorical(["a", "b", "a"]), "n": pd.array([1, None, 3], dtype="Int8")}, index=["x", "y", "z"]),
                   var=pd.DataFrame(index=["ENSG00000000001", "ENSG00000000002"]))

    def each(func, where, key, elem, dataset_kwargs, iospec):
        kwargs = dict(how, chunks=(2,) * max(np.ndim(elem), 1) if not sp.issparse(elem) else (2,))
        if not sp.issparse(elem) and not np.ndim(elem) or iospec.encoding_type not in ("array", "string-array", "csr_matrix", "csc_matrix"):
            kwargs = {}
        if "shards" in kwargs:
            kwargs["shards"] = (4,) * len(kwargs["chunks"])
        func(where, key, elem, dataset_kwargs=kwargs)
    group = zarr.open_group(path, mode="w", zarr_format=version)
    for key, value in (("X", a.X), ("obs", a.obs), ("var", a.var)):
        ad.experimental.write_dispatched(group, key, value, each)


def main(where):
    x = np.array([[1, 0], [0, 3], [2, 200]], dtype="f4")
    kinds = {"v2": (2, sp.csr_matrix(x), {"compressor": None}), "v2-blosc": (2, sp.csc_matrix(x.astype("i8")), {"compressor": numcodecs.Blosc()}),
             "v2-lz4": (2, x, {"compressor": numcodecs.LZ4()}), "v3": (3, sp.csc_matrix(x), {"compressors": None}),
             "v3-zstd": (3, x.astype("u2"), {"compressors": (zc.ZstdCodec(), zc.Crc32cCodec())}),
             "v3-sharded": (3, x, {"compressors": None, "shards": True}),
             "v3-sharded-gzip": (3, x.astype("f8"), {"compressors": (zc.GzipCodec(),), "shards": True})}
    os.makedirs(where, exist_ok=True)
    for name, (version, matrix, how) in kinds.items():
        with tempfile.TemporaryDirectory() as folder:
            store(folder, version, matrix, **how)
            out = b""
            for at, _, files in sorted(os.walk(folder)):
                for f in sorted(files):
                    path = os.path.relpath(os.path.join(at, f), folder).encode()
                    content = open(os.path.join(at, f), "rb").read()
                    if content.startswith(b"{"):
                        content = b"".join(content.split(b"\n")).replace(b"  ", b"")
                    out += bytes([len(path)]) + path + struct.pack("<H", len(content)) + content
        open(os.path.join(where, name), "wb").write(out)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "seeds", "fuzz_zarr"))
