#!/usr/bin/env python3
"""Random AnnData objects, each written by anndata as .h5ad and as a zarr store: zarr_stores.py FOLDER N SEED

Matrices in rows, columns or dense, with layers and raw; every kind of column; zarr 2 and 3, sharded or not, with every compression that
zarr offers, chunks of any shape, byte orders, and chunks left out because they hold fill values. Needs anndata 0.12 and zarr 3.
"""
import sys
import warnings

import anndata as ad
import numcodecs
import numpy as np
import pandas as pd
import scipy.sparse as sp
import zarr
import zarr.codecs as zc

warnings.filterwarnings("ignore")
rng = np.random.default_rng()


def one(*of):
    return of[rng.integers(len(of))]


def matrix(n, m, fractions=False):
    x = rng.poisson(rng.choice([0.05, 0.5, 3]), (n, m)) * (rng.random((n, 1)) < 0.9)
    dtype = one("f4", "f8", "i4", "i8", "u2", "u4")
    x = x + 0.5 * (x > 0) if fractions else x.astype(dtype)
    if rng.random() < 0.1:  # scipy has no sparse float16
        return x.astype("f2")
    return one(sp.csr_matrix, sp.csc_matrix, np.asarray)(x)


def text():
    return one("", "a", "T cell", "naïve", "漢字", "x" * 300) + str(rng.integers(4))


def column(n):
    def missing(v):
        return [None if rng.random() < 0.2 else x for x in v]

    kind = rng.integers(10)
    if kind == 0:
        return np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)).astype(one("f2", "f4", "f8"))
    if kind == 1:
        return rng.integers(0, 100, n).astype(one("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"))
    if kind == 2:
        return rng.random(n) < 0.5
    if kind == 3:
        return [text() for _ in range(n)]
    if kind == 4:
        return np.array([""] * n, dtype=object)
    if kind == 5:
        return pd.Categorical(missing([text() for _ in range(n)]))
    if kind == 6:
        return pd.Categorical(rng.integers(0, 3, n), categories=[2, 1, 0], ordered=True)
    if kind == 7:
        return pd.array(missing(rng.integers(-5, 5, n).tolist()), dtype=one("Int64", "Int8", "Int32"))
    if kind == 8:
        return pd.array(missing((rng.random(n) < 0.5).tolist()), dtype="boolean")
    return np.zeros(n, dtype=one("i4", "f8", "bool"))


def frame(n, names):
    f = pd.DataFrame(index=names)
    for i in range(rng.integers(0, 6)):
        f[one("a", "b b", "ü", "count_") + str(i)] = column(n)
    return f


def random_object():
    n, m = int(one(1, 7, 40, 90)), int(one(1, 5, 30))
    ensembl = rng.random() < 0.7
    ids = [f"ENSG{i:011d}.{i % 3}" for i in range(m)]
    var = frame(m, ids if ensembl else [f"gene{i}" for i in range(m)])
    if not ensembl and rng.random() < 0.5:
        var["gene_ids"] = ids
    a = ad.AnnData(matrix(n, m), obs=frame(n, [f"cell-{i}" for i in range(n)]), var=var)
    if rng.random() < 0.3:
        a.raw = a.copy()
        a.X = matrix(n, m, fractions=True)
    if rng.random() < 0.3:
        a.layers["counts"] = matrix(n, m)
        a.X = matrix(n, m, fractions=True)
    if rng.random() < 0.3:
        a.uns["corrmask_provenance"] = '[{"program":"h5tok","version":"0","options":""}]'
    a.obsm["X_pca"] = rng.normal(size=(n, 2))
    return a


def compression(version):
    if version == 2:
        shuffle = int(rng.integers(3))
        return one(None, numcodecs.Zstd(), numcodecs.GZip(1), numcodecs.Zlib(1), numcodecs.LZ4(),
                   *(numcodecs.Blosc(cname, 5, shuffle) for cname in ("lz4", "lz4hc", "zstd", "zlib", "blosclz")))
    many = one([], [zc.ZstdCodec()], [zc.ZstdCodec(checksum=True)], [zc.GzipCodec(level=1)], [zc.Crc32cCodec()],
               [zc.ZstdCodec(), zc.Crc32cCodec()], [zc.Crc32cCodec(), zc.GzipCodec(level=1)],
               [zc.BloscCodec(cname=one("lz4", "zstd", "zlib", "blosclz", "lz4hc"))])
    return tuple(many) or None


def layout(version, shape):
    """Keywords for zarr: chunks, shards, compression."""
    how = {"chunks": tuple(int(one(1, 2, 3, 5, 16, 64)) for _ in shape)}
    if version == 2:
        how["compressor"] = compression(2)
        return how
    how["compressors"] = compression(3)
    if rng.random() < 0.5:
        how["shards"] = tuple(c * int(one(1, 2, 3)) for c in how["chunks"])
    return how


def write(a, path, version):
    plain = rng.random() < 0.15  # as anndata writes it if nothing is asked for
    ad.settings.auto_shard_zarr_v3 = bool(rng.random() < 0.5) if version == 3 else False
    group = zarr.open_group(path, mode="w", zarr_format=version)

    def each(func, store, key, elem, dataset_kwargs, iospec):
        array = iospec.encoding_type in ("array", "string-array") and np.ndim(elem) and min(np.shape(elem))
        sparse = sp.issparse(elem)
        how = layout(version, (1,) if sparse else np.shape(elem)) if (array or sparse) and not plain else {}
        if sparse:
            how.pop("shards", None)  # its parts have other lengths
        func(store, key, elem, dataset_kwargs=how)

    ad.experimental.write_dispatched(group, "/", a, each)


def main(folder, n, seed):
    global rng
    for i in range(n):
        rng = np.random.default_rng([seed, i])
        a = random_object()
        version = 2 + i % 2
        a.write_h5ad(f"{folder}/{i}.h5ad")
        write(a, f"{folder}/{i}.zarr", version)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
