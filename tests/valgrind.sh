#!/bin/bash
# A small pipeline under valgrind memcheck: no byte that was never set may reach a decision or an output, and none outside the memory may be
# read. BIN is the folder of the tools. valgrind has no AVX-512, so the environment asks for AVX2, and h5tok reads without its sandbox.
set -eu
bin=$(realpath "${BIN:-bin}")
command -v valgrind > /dev/null || { echo 'valgrind.sh: no valgrind (apt-get install valgrind libc6-dbg)' >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export CORRMASK_CPU=avx2 OPENBLAS_CORETYPE=Haswell OPENBLAS_NUM_THREADS=1 CORRMASK_SANDBOX=no
run() {
	local tool=$1
	shift
	valgrind -q --error-exitcode=99 --track-origins=no --num-callers=20 "$bin/$tool" "$@" -q || { echo "valgrind.sh: $tool $*: status $?" >&2; exit 1; }
	echo "clean: $tool $*"
}
run scsim --cells 40 --genes 120 --types 2 --rarest 0.3 --depth 60 --seed 3 -o counts
run scview -O h5ad counts -o cells.h5ad
run h5tok cells.h5ad -o back
run rankenc --fit back -o vocab
run rankenc -m vocab back -o tok
run depgraph --min-cells 5 --min-overlap 5 tok -o graph
run maskgen -g graph --strategy corrmask --batch 20 tok -o masked
run scsample -n 20 tok -o some
run scview -O tsv some -o table
run scview -s masked -o statistics
run sctrain mlm --config tiny masked -o model
run scembed -M model tok -o embeddings
run ctaprobe cells --label cell_type --folds 2 embeddings -o scores
run scmetric integration --label cell_type --batch-key donor embeddings -o integration
