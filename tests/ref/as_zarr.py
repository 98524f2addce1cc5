#!/usr/bin/env python3
"""An HDF5 file of AnnData or MuData as a zarr store, version 2, without zarr: as_zarr.py IN.h5ad OUT.zarr"""
import json
import os
import struct
import sys

import h5py
import numpy as np


def plain(v):
    v = v.tolist() if isinstance(v, (np.ndarray, np.generic)) else v
    return v.decode() if isinstance(v, bytes) else v


def put(folder, name, data):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else json.dumps(data).encode())


def write(h, folder):
    os.makedirs(folder)
    put(folder, ".zattrs", {k: plain(v) for k, v in h.attrs.items()})
    if isinstance(h, h5py.Group):
        put(folder, ".zgroup", {"zarr_format": 2})
        for k in h:
            write(h[k], os.path.join(folder, k))
        return
    x = np.asarray(h.asstr()[()] if h5py.check_string_dtype(h.dtype) else h[()])
    text = x.dtype == object
    put(folder, ".zarray", {"zarr_format": 2, "shape": x.shape, "chunks": [max(n, 1) for n in x.shape], "dtype": "|O" if text else x.dtype.str, "order": "C",
                            "compressor": None, "fill_value": None, "filters": [{"id": "vlen-utf8"}] if text else None})
    if x.size:
        texts = [t.encode() for t in x.ravel()] if text else []
        put(folder, ".".join("0" * x.ndim) or "0", struct.pack("<I", len(texts)) + b"".join(struct.pack("<I", len(t)) + t for t in texts) if text else x.tobytes())


with h5py.File(sys.argv[1]) as f:
    write(f, sys.argv[2])
