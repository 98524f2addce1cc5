#!/usr/bin/env python3
"""data/zarr.tar.zst: one small AnnData object as .h5ad, as zarr stores of several kinds, and MuData. Needs anndata 0.12, zarr 3 and mudata:

    data/make_zarr.py FOLDER && tar -C FOLDER --sort=name --owner=0 --group=0 --mtime=@0 -c . | zstd -19 -o data/zarr.tar.zst
"""
import os
import sys
import warnings

import anndata as ad
import mudata
import numcodecs
import numpy as np
import pandas as pd
import scipy.sparse as sp
import zarr
import zarr.codecs as zc

warnings.filterwarnings("ignore")
rng = np.random.default_rng(1)
CELLS, GENES = 40, 25

a = ad.AnnData(sp.csr_matrix(rng.poisson(0.5, (CELLS, GENES)).astype("f4")),
               obs=pd.DataFrame({"type": pd.Categorical(rng.choice(["a", "ü", "c"], CELLS)), "n": np.arange(CELLS), "batch": [f"b{i}" for i in range(CELLS)],
                                 "ok": rng.random(CELLS) < 0.5, "maybe": pd.array([1, None] * (CELLS // 2), dtype="Int32"), "none": [""] * CELLS},
                                index=[f"cell-{i}é" for i in range(CELLS)]),
               var=pd.DataFrame(index=[f"ENSG{i:011d}" for i in range(GENES)]))
a.layers["columns"] = a.X.tocsc()
a.layers["dense"] = a.X.toarray()


def write(path, version, **how):
    """Every array in chunks of 16 (x 7); with shards, of two chunks each."""
    def each(func, store, key, elem, dataset_kwargs, iospec):
        kwargs = {}
        if sp.issparse(elem) or (iospec.encoding_type in ("array", "string-array") and np.ndim(elem)):
            kwargs = {**how, "chunks": (16, 7) if np.ndim(elem) == 2 and not sp.issparse(elem) else (16,)}
            if sp.issparse(elem) or min(np.shape(elem)) < 16:
                kwargs.pop("shards", None)
            elif "shards" in kwargs:
                kwargs["shards"] = tuple(2 * c for c in kwargs["chunks"])
        func(store, key, elem, dataset_kwargs=kwargs)
    ad.experimental.write_dispatched(zarr.open_group(path, mode="w", zarr_format=version), "/", a, each)


os.makedirs(sys.argv[1], exist_ok=True)
os.chdir(sys.argv[1])
a.write_h5ad("same.h5ad")
for name, compressor in {"blosc": numcodecs.Blosc("lz4"), "zlib": numcodecs.Zlib(1), "lz4": numcodecs.LZ4(), "plain": None}.items():
    write(f"v2_{name}.zarr", 2, compressor=compressor)
for name, codecs in {"zstd": (zc.ZstdCodec(),), "gzip_crc": (zc.GzipCodec(), zc.Crc32cCodec()), "blosc": (zc.BloscCodec(cname="zstd"),)}.items():
    write(f"v3_{name}.zarr", 3, compressors=codecs)
    write(f"v3_{name}_sharded.zarr", 3, compressors=codecs, shards=True)
write("v3_lzma.zarr", 3, compressors=(zarr.codecs.numcodecs.LZMA(),) if hasattr(zarr.codecs, "numcodecs") else (zc.ZstdCodec(),))
del a.layers["columns"], a.layers["dense"]
a.write_h5ad("rna.h5ad")
protein = ad.AnnData(rng.poisson(9, (CELLS, 3)).astype("f4"), obs=pd.DataFrame(index=a.obs_names), var=pd.DataFrame(index=["CD3", "CD4", "CD8"]))
m = mudata.MuData({"rna": a, "prot": protein})
m.write("both.h5mu")
mudata.MuData({"prot": protein, "atac": protein.copy()}).write("no_rna.h5mu")
zarr.config.set({"default_zarr_format": 3})
m.write_zarr("both.zarr")
