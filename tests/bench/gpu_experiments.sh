#!/bin/bash
# make table6 on a machine with a GPU, in calls of limited time, each of which goes on from what the one before it brought back.
# NOT YET RUN ON A GPU: tried with DEVICE=cpu only (tests/table6.bats).
#
#     make table6-inputs DATA=lung.h5ad SCALE=paper                         here: h5ad -> results/table6/lung (take it along)
#     tests/bench/gpu_experiments.sh -t 540 -o OUT results/table6/lung      there, in the root of the sources
#     tests/bench/gpu_experiments.sh -t 540 -o OUT -b runs.tar.gz results/table6/lung      again, with the OUT/runs.tar.gz of the last call
#
#     [-s K/N] [-t SECONDS] [-j JOBS] [-o OUT] [-b RUNS.tar.gz]... FOLDER [VAR=VALUE]...
# -s  part K (0 to N-1) of N of the runs   -t  stop cleanly by then, the build included (default 540)   -j  runs side by side (4)
# -b  runs of earlier calls or of other shares      VAR=VALUE  as for make table6; the same as for table6-inputs. Default: SCALE=paper
# BIN=FOLDER in the environment: tools that are built already, with corrmask_cuda.so among them; otherwise they are built here, which takes
# nvcc and all libraries but HDF5's and MPI's.
# OUT gets table.txt, points.tsv, table6.svg and .png (where there is gnuplot), and runs.tar.gz: scores, curves (train.tsv) and logs of all
# finished runs, no models. At home: tar -xzmf OUT/runs.tar.gz -C results/table6/lung, then make table6 as table6-inputs.
set -u
cd "$(dirname "$0")/../.." || exit 1
start=$SECONDS share=0/1 limit=540 jobs=4 out=gpu_experiments before=()
while getopts s:t:j:o:b: o; do
	case $o in
	s) share=$OPTARG ;; t) limit=$OPTARG ;; j) jobs=$OPTARG ;; o) out=$OPTARG ;; b) before+=("$OPTARG") ;;
	*) sed -n '/-s K\/N/p' "$0" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] && [ -e "$1/inputs/ready" ] || { echo "gpu_experiments.sh: ${1:-no folder}: expected a folder with inputs/ of make table6-inputs" >&2; exit 2; }
folder=$1
shift
vars=(SCALE=paper "$@" INPUTS="$folder")
mkdir -p "$out"
part() { echo "== $1: $((SECONDS - since)) s"; since=$SECONDS; }
since=$SECONDS
failed=0

case " $* " in *" DEVICE=cpu "*) cuda=0 ;; *) cuda=1; nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 1 ;; esac
if [ -z "${BIN:-}" ]; then
	BIN=$PWD/bin
	make=(make -j"$(nproc)" MPI=0 CUDA=$cuda)
	if [ $cuda = 1 ]; then
		arch=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
		make+=(CUDA_ARCH="${arch/%sm_90/sm_90a}" bin/corrmask_cuda.so)
	fi
	timeout "$limit" "${make[@]}" bin/maskgen bin/sctrain bin/scembed bin/ctaprobe > "$out/build.log" 2>&1 ||
		{ tail -n 30 "$out/build.log"; echo "gpu_experiments.sh: the build fails" >&2; exit 1; }
	part build
fi

# -m: newer than the inputs, as make wants it
for b in "${before[@]}"; do tar -xzmf "$b" -C "$folder" || exit 1; done
# This Makefile builds nothing
make=(make --no-print-directory -s -f pipelines/Makefile BIN="$BIN" "${vars[@]}")
all=$("${make[@]}" table6-list) || exit 1
mapfile -t mine < <(awk -v k="${share%/*}" -v n="${share#*/}" -v runs="$(wc -l <<< "$all")" 'int((NR - 1) * n / runs) == k' <<< "$all")
left=$((limit - (SECONDS - start) - 20))               # 20 s to pack
timeout --signal=TERM --kill-after=20 $((left > 1 ? left : 1)) "${make[@]}" -j"$jobs" -k "${mine[@]}"
case $? in
0) ;;
124) echo "gpu_experiments.sh: time is up" ;;
*) failed=1 ;;
esac
part training

done=()
for f in $all; do [ ! -e "$f" ] || done+=("runs/$(basename "$(dirname "$f")")"); done
if [ ${#done[@]} -gt 0 ]; then
	tar -czf "$out/runs.tar.gz" -C "$folder" --exclude=model --exclude=cells --exclude='*.emb' settings log "${done[@]}" || failed=1
	"${make[@]}" table6-now > "$out/table.txt" && cat "$out/table.txt" || failed=1
	for f in points.tsv table6.svg table6.png; do [ ! -e "$folder/$f" ] || cp "$folder/$f" "$out"; done
fi
part table
echo "gpu_experiments.sh: ${#done[@]} of $(wc -w <<< "$all") runs done, ${#mine[@]} of them asked for now; $((SECONDS - start)) s; all in $out$([ $failed = 0 ] || echo ' (SOME FAILED)')"
exit $failed
