#!/bin/bash
# A small pipeline under ThreadSanitizer, each tool with three threads. BIN is the folder of tools built with VARIANT=tsan.
# tests/tsan/gomp.c tells ThreadSanitizer what OpenMP orders. h5tok reads without its sandbox: the filter forbids the sanitizer's calls.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=$(realpath "${BIN:-build/tsan/bin}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${CC:-cc}" -O1 -Wall -Wextra -shared -fPIC -o gomp.so "$here/gomp.c"
export OPENBLAS_NUM_THREADS=1 CORRMASK_SANDBOX=no OMP_WAIT_POLICY=passive
export TSAN_OPTIONS="exitcode=99 halt_on_error=1 history_size=4 ${TSAN_OPTIONS:-}"
run() {
	local tool=$1
	shift
	LD_PRELOAD=$work/gomp.so "$bin/$tool" "$@" -q -@ 3 || { echo "tsan.sh: $tool $*: status $?" >&2; exit 1; }
	echo "clean: $tool $*"
}
run scsim --cells 6000 --genes 300 --types 3 --rarest 0.2 --depth 400 --seed 3 -o counts
"$bin/scview" -q -O h5ad counts -o cells.h5ad
run h5tok cells.h5ad -o back
run rankenc --fit back -o vocab
run rankenc -m vocab back -o tok
run h5tok --rank vocab cells.h5ad -o ranked
run depgraph tok -o graph
run depgraph --pmi --tau 0.1 tok -o pmi.graph
run depgraph -O layout graph -o layout
run maskgen -g graph --strategy corrmask tok -o masked
run screduce pca -k 5 counts -o pca
run ctaprobe cells --label cell_type --folds 2 pca -o scores
# training is slow: fewer cells
"$bin/scsample" -q -n 200 tok -o few
"$bin/scsample" -q -n 200 counts -o few.counts
run maskgen -g graph --strategy corrmask few -o few.masked
run sctrain mlm --config tiny --eval few.masked few.masked -o model
run maskgen --strategy none --keep cell_type few -o none
run sctrain cells --label cell_type --init model none -o cells.model
run maskgen --strategy columns --batch 20 few.counts -o few.columns
run sctrain nb --config mlp-nb-tiny few.columns -o nb.model
run scembed -M model few -o embeddings
run screduce map embeddings -o map
run scmetric integration -l cell_type -b donor embeddings -o integration
