#!/bin/bash
# Build corrmask with conda-forge's libraries; SRC_DIR has the folders corrmask, random123 and cjson (meta.yaml).
set -euo pipefail

# cJSON into each tool that calls it
own=$SRC_DIR/own
mkdir -p "$own/include/cjson"
cp "$SRC_DIR/cjson/cJSON.h" "$own/include/cjson"
# shellcheck disable=SC2086 # words
"$CC" ${CFLAGS:-} -c "$SRC_DIR/cjson/cJSON.c" -o "$own/cJSON.o"
"${AR:-ar}" rcs "$own/libcjson.a" "$own/cJSON.o"

# Not every library of conda-forge has a file for pkg-config, so all are named. OpenBLAS holds LAPACKE.
export CPPFLAGS="${CPPFLAGS:-} -I$own/include -I$SRC_DIR/random123/include -I$PREFIX/include -DWITH_BLOSC -DWITH_LZ4"
export LDFLAGS="${LDFLAGS:-} -L$own -L$PREFIX/lib"
export LDLIBS='-lhdf5 -ldeflate -llzf -lzstd -lxxhash -lcjson -lopenblas -llbfgs -ligraph -lseccomp -lz -lblosc -llz4'
# MARCH is empty: wider vectors are chosen when the tools run
cd "$SRC_DIR/corrmask"
make -j"${CPU_COUNT:-1}" install PREFIX="$PREFIX" MARCH= CUDA=0 MPI=1 PKGS= PYTHON=false
