#!/bin/bash
# Would the emulation find it? Breaks kernels and the host's side one way at a time, and runs the emulated test that should fail.
#
#     tests/cuda/mutants.sh [PART OF A NAME]
#
# The two that the emulation cannot see are listed last and must pass here: they lack a __syncwarp beside an operation of the warp, which is a
# barrier of its own in the emulation. compute-sanitizer's racecheck sees them on a GPU (tests/bench/gpu.sh sanitize).
# DEV=1 in the environment if the build to start from was made so.
# shellcheck disable=SC2016 # the expressions are Perl's
set -u
cd "$(dirname "$0")/../.." || exit 1
only=${1:-} work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
program=build/release/unit/test_cuda_emulated
build() { make -C "$work" --no-print-directory -j"$(nproc)" ${DEV:+DEV="$DEV"} $program > "$work/make.log" 2>&1; }
run() { (cd "$work" && OPENBLAS_NUM_THREADS=1 timeout 300 $program "$@" > log 2>&1); }

# A copy of the sources and of what was built of them: only what a mutant changes is compiled again
tar -c Makefile cuda lib src docs pipelines tests/*.mk tests/*.bats tests/cuda tests/unit | tar -x -C "$work"
[ ! -e build/release ] || { mkdir -p "$work/build" && cp -a build/release "$work/build/"; }
if ! build || { [ -z "$only" ] && ! run; }; then
	tail -n 5 "$work"/*.log "$work/log"
	echo "mutants.sh: without a mutant, the build or the tests fail"
	exit 1
fi

tried=0 wrong=0
# mutant caught|passes NAME FILE TEST PERL: the expression must change the file
mutant() {
	local want=$1 name=$2 file=$work/$3 test=$4 got object
	case $name in *"$only"*) ;; *) return ;; esac
	[ -z "$only" ] || run "$test" || { wrong=$((wrong + 1)); echo "$test fails without a mutant"; return; }
	case $3 in *.cu | *.cuh) object=$work/build/release/emu ;; *) object=$work/build/release/lib ;; esac
	cp -p "$file" "$work/kept" && mv "$object" "$work/objects" && cp -a "$work/objects" "$object" || exit 1
	perl -0pi -e "$5" "$file"
	if cmp -s "$file" "$work/kept"; then
		got='not in the sources'
	elif ! build; then
		got='not built'
		tail -n 5 "$work/make.log"
	elif run "$test"; then
		got=passes
	else
		got=caught
	fi
	echo "$got: $name ($test)"
	tried=$((tried + 1))
	[ "$got" = "$want" ] || { wrong=$((wrong + 1)); echo "  expected: $want"; }
	cp -p "$work/kept" "$file" && rm -rf "$object" && mv "$work/objects" "$object" || exit 1
}

mma=cuda/attention_mma.cu
mutant caught 'forward: no barrier before Q is read' $mma test_attention \
	's/copy_wait<0>\(\);\n\t__syncthreads\(\);\n(\tload_a<D>\(qa, stage \+ PAIR)/copy_wait<0>();\n$1/'
mutant caught 'forward: no barrier between tiles' $mma test_attention \
	's/(turn = PAIR - turn\) \{\n\t\tcopy_wait<0>\(\);\n)\t\t__syncthreads\(\);\n/$1/'
mutant caught 'forward: the next tile is copied before the barrier' $mma test_attention \
	's/(turn = PAIR - turn\) \{\n\t\tcopy_wait<0>\(\);\n)\t\t__syncthreads\(\);\n(\t\tif .*?\n\t\t\}\n)/$1$2\t\t__syncthreads();\n/s'
mutant caught 'forward: tiles are read before they have come' $mma test_attention \
	's/(turn = PAIR - turn\) \{\n)\t\tcopy_wait<0>\(\);\n/$1/'
mutant caught 'dq: Q and dY are overwritten without a barrier' $mma test_attention \
	's/(load_a<D>\(ga, stage \+ STAGE, w\.row0, w\.lane\);\n)\t__syncthreads\(\);\n/$1/'
mutant caught 'dk, dv: K and V are overwritten without a barrier' $mma test_attention \
	's/(load_a<D>\(va, stage \+ STAGE, w\.row0, w\.lane\);\n)\t__syncthreads\(\);\n/$1/'
mutant caught 'a fragment of the right factor of two other lanes' cuda/mma.cuh test_attention \
	's/lane \/ 16 \* 8 \+ lane % 8, lane \/ 8 % 2/lane \/ 8 % 2 * 8 + lane % 8, lane \/ 16/'
mutant caught 'sums of rows: read before all warps have stored theirs' cuda/rowsum.cuh test_embed \
	's/(= s\[i\];\n)\t__syncthreads\(\);\n/$1/'
mutant caught 'sums of columns: overwritten before they are read' cuda/norm.cuh test_norm \
	's/(g < G; g\+\+\) \{\n)\t\t__syncthreads\(\);\n/$1/'
mutant caught "a batch's pinned memory is filled again without a wait" lib/nn/model_batch.c test_accumulation \
	's/o->wait\(o, MARK_STAGE \+ m->turn, e\)/0/'
mutant caught 'plain attention: the query is read without a warp barrier' cuda/attention.cu test_attention \
	's/(lane, s\.D\);\n)\t__syncwarp\(\);\n/$1/'
mutant passes 'decisions of dropout: stored without a warp barrier before' $mma test_attention \
	's/(uint32_t lane\)\n\{\n)\t__syncwarp\(\);\n/$1/'
mutant passes 'decisions of dropout: read without a warp barrier' $mma test_attention \
	's/(w\[3\]\);\n\t\}\n)\t__syncwarp\(\);\n/$1/'
echo "mutants.sh: $tried tried, $wrong of them not as expected"
[ $wrong = 0 ] && [ $tried -gt 0 ]
