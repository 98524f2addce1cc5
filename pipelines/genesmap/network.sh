#!/usr/bin/env bash
# The graph of nearest genes with its modules.
#     genesmap/network.sh GENES.emb OUT NEAREST RESOLUTION --seed SEED -@ THREADS
. "$(dirname "$0")/../common.sh"
[ $# = 8 ] || usage
genes=$1 out=$2 nearest=$3 resolution=$4 seed=$6 threads=$8
scgenes network -v -k "$nearest" -@ "$threads" "$genes" | depgraph -v --leiden "$resolution" --seed "$seed" -o "$out" -
