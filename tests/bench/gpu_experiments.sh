#!/bin/bash
# make table6 on a machine with a GPU, in calls of limited time, each of which goes on from what those before it brought back.
# NOT YET RUN ON A GPU: tried on the CPU only (tests/table6.bats).
#
#     make table6-inputs DATA=lung.h5ad SCALE=paper                             here: prints results/table6-inputs/lung-1a2b3c4d
#     tests/bench/gpu_experiments.sh -p pack results/table6-inputs/lung-1a2b3c4d      and all of it that a bare machine needs -> pack.tar.gz
#     tar -xzf pack.tar.gz                                                      there, in any folder
#     pack/src/tests/bench/gpu_experiments.sh -o OUT pack/lung-1a2b3c4d
#     pack/src/tests/bench/gpu_experiments.sh -o OUT -b runs.tar.gz pack/lung-1a2b3c4d      again, with the OUT/runs.tar.gz of the last call
#
#     [-p PACK | [-s K/N] [-t SECONDS] [-j JOBS] [-o OUT] [-b RUNS.tar.gz]...] FOLDER [VAR=VALUE]...
# -s  part K (0 to N-1) of N of the runs            -t  stop cleanly by then, the build included (default 540)   -j  runs side by side (4)
# -b  runs of earlier calls or of other parts       VAR=VALUE  as for make table6, and those of table6-inputs again. Default: SCALE=paper
# -p  build maskgen, sctrain, scembed, scpredict, ctaprobe, armstat and corrmask_cuda.so (CUDA_ARCH=, default sm_90a) for another machine of at least this
#     glibc, with the libraries they need but CUDA's own (gpu_common.sh), and make
# BIN in the environment: tools that are built; in a pack, its own. Else they are built here, with CUDA and without MPI, which takes all
# libraries.
# OUT gets table.txt, points.tsv, table6.svg, and runs.tar.gz: scores, curves (train.tsv) and logs of all
# finished runs, no models. At home: tar -xzmf OUT/runs.tar.gz -C results/table6, then make table6 as table6-inputs.
set -u
here=$PWD
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/gpu_common.sh
# from PATH: a path as the caller means it
from() { case $1 in /*) echo "$1" ;; *) echo "$here/$1" ;; esac; }
share=0/1 limit=540 jobs=4 out=gpu_experiments pack='' before=() failed=0 since=$SECONDS
while getopts p:s:t:j:o:b: o; do
	case $o in
	p) pack=$(from "$OPTARG") ;; s) share=$OPTARG ;; t) limit=$OPTARG ;; j) jobs=$OPTARG ;; o) out=$OPTARG ;; b) before+=("$(from "$OPTARG")") ;;
	*) sed -n '/-p PACK |/p' "$0" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
out=$(from "$out")
if [ $# = 0 ] || [ ! -e "$(from "$1")/about" ]; then
	echo "gpu_experiments.sh: ${1:-no folder}: expected a folder that make table6-inputs made" >&2
	exit 2
fi
folder=$(from "$1")
shift
vars=(SCALE=paper "$@" INPUTS="$folder" RESULTS="$folder/results")
results=$folder/results/table6
case " $* " in *" DEVICE=cpu "*) cuda=0 ;; *) cuda=1 ;; esac
tools="maskgen sctrain scembed scpredict ctaprobe armstat$([ $cuda = 0 ] || echo ' corrmask_cuda.so')"
part() { echo "== $1: $((SECONDS - since)) s"; since=$SECONDS; }
cannot() { tail -n 30 "$out/build.log"; echo "gpu_experiments.sh: the build fails" >&2; exit 1; }

if [ -n "$pack" ]; then
	out=$pack
	mkdir -p "$pack/lib" || exit 1
	# shellcheck disable=SC2086
	gpu_pack "$pack" $tools > "$out/build.log" 2>&1 || cannot
	cp -r "$folder" "$pack" && cp "$(command -v make)" "$pack/bin/" || exit 1
	tar -czf "$pack.tar.gz" -C "$(dirname "$pack")" "$(basename "$pack")" || exit 1
	part packing
	ls -l "$pack.tar.gz"
	exit
fi

mkdir -p "$out" || exit 1
[ $cuda = 0 ] || nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 1
if [ -n "${BIN:-}" ]; then BIN=$(from "$BIN"); elif [ -e ../needs ]; then BIN=$(realpath ../bin); fi
if [ -z "${BIN:-}" ]; then
	BIN=bin
	arch=sm_$([ $cuda = 0 ] || nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
	# shellcheck disable=SC2086
	gpu_build bin build $tools -- CUDA_ARCH="${arch/%sm_90/sm_90a}" > "$out/build.log" 2>&1 || cannot
	part build
fi
[ $cuda = 0 ] || gpu_libraries "$BIN/corrmask_cuda.so"
# -m: newer than the inputs, as make wants it
mkdir -p "$results"
for b in "${before[@]}"; do tar -xzmf "$b" -C "$results" || exit 1; done
command -v make > /dev/null || PATH=$PATH:$(realpath "$BIN")
# This Makefile builds nothing
make=(make --no-print-directory -s -f pipelines/Makefile BIN="$(realpath "$BIN")" "${vars[@]}")
runs_all=$("${make[@]}" table6-list) || exit 1
mapfile -t mine < <(awk -v k="${share%/*}" -v n="${share#*/}" -v runs="$(wc -l <<< "$runs_all")" 'int((NR - 1) * n / runs) == k' <<< "$runs_all")
left=$((limit - SECONDS - 20))               # 20 s to pack
timeout --signal=TERM --kill-after=20 $((left > 1 ? left : 1)) "${make[@]}" -j"$jobs" -k "${mine[@]}"
case $? in
0) ;;
124 | 137) echo "gpu_experiments.sh: time is up" ;;
*) failed=1 ;;
esac
part training

run=${runs_all%%/runs/*}
run=$(basename "$run")
done=()
for f in $runs_all; do [ ! -e "$f" ] || done+=("$run/runs/$(basename "$(dirname "$f")")"); done
if [ ${#done[@]} -gt 0 ]; then
	tar -czf "$out/runs.tar.gz" -C "$results" --exclude=model --exclude=cells --exclude='*.emb' "$run/settings" "$run/log" "${done[@]}" || failed=1
	"${make[@]}" table6-now > "$out/table.txt" && cat "$out/table.txt" || failed=1
	for f in points.tsv table6.svg; do [ ! -e "$results/$run/$f" ] || cp "$results/$run/$f" "$out"; done
fi
part table
echo "gpu_experiments.sh: ${#done[@]} of $(wc -w <<< "$runs_all") runs done, ${#mine[@]} of them asked for now; $SECONDS s; all in $out$([ $failed = 0 ] || echo ' (SOME FAILED)')"
exit $failed
