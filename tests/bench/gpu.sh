#!/bin/bash
# All about the CUDA backend on a machine with a GPU, in calls of limited time: check, measure, compare.
# Rehearsed on a CPU, with stubs for nvidia-smi, ncu and compute-sanitizer (tests/gpu.bats). Call A, `bench`, `ncu` and a part of `torch` have run on an H200;
# `tiles`, `curve` and `end` have not yet.
#
#     tests/bench/gpu.sh -p PACK                     here: all that a bare machine needs into PACK and PACK.tar.gz (about 22 MB)
#     tar -xzf PACK.tar.gz                           there, in any folder
#     PACK/src/tests/bench/gpu.sh -o OUT_A A         then B, then C
#     tests/bench/gpu.sh [-o OUT] [PART...]          on a machine that has the libraries: builds first
#     tests/bench/gpu.sh -s OUT...                   the summary of what these folders have, wherever they are
#
# CALL  A          260 s: check triage shape sanitize. Stop here if anything FAILED, see below
#       B          460 s: bench tiles ncu
#       C          460 s: curve end torch
#       all        A, B and C (default; 1200 s)
# PART  check      the ops and whole steps against the CPU's (tests/cuda/test_cuda.c, test_cuda_steps.c)
#       triage     the tests that failed or hung, again: one type alone, without graphs, launches waited for, under memcheck
#       shape      bench_cuda, one shape
#       sanitize   compute-sanitizer over small tests: memcheck, racecheck, synccheck, initcheck
#       bench      bench_cuda: ops, steps, embedding, by shape
#       tiles      the same shape with other tiles of the loss
#       ncu        every kernel of one step, for its time; sections of each kind of kernel
#       curve      500 steps on the CPU (in the pack), on the GPU in float and in bf16: the losses must agree
#       end        maskgen | sctrain and scembed, with the programs' own reports
#       torch      the peers on the same shapes (gpu_torch.py; python3, or PYTHON=)
# If A FAILED, see test_instructions in check.log first: it runs each PTX instruction of the kernels on its own. Then, what fails:
#       one op, in float and bf16: wrong indices or a wrong launch. memcheck's first error names the kernel
#       bf16 alone: the tensor core kernels or the packing of bf16. check.log names the tensor: forward, dq or dk/dv
#       only with graphs: work that a recorded graph does not repeat, or an address that moved. CORRMASK_CUDA_GRAPHS=0 is a way on
#       not when launches are waited for, or not at small sizes: a race, or a buffer that is used too early. See sanitize.log
#       errors a little above twice the roundings, in all tensors behind one: no fault but another order of sums
#       Send changed sources into PACK/src/cuda and add -n. One test: gpu.sh -o A check triage, or
#       PACK/bin/test_cuda -r PACK/roundings.tsv 'test_attention*'
# -t  seconds in all: each part has its own limit, and no more than what is left. It ends by then: let the caller's limit be 40 s more
# -n  build corrmask_cuda.so there by nvcc, from the pack's src: for kernels that changed after packing
# OUT   check.log sanitize.log bench.log tiles.log ncu.txt curves.tsv end.log torch.log, rest.log (the card, each part's time, failures, messages),
#       smi.csv; they grow as results come. summary.md is made of them (also printed last: fit for docs/cuda.md)
# DEVICE=cpu tries the script itself; CELLS=, GENES= and EPOCHS= are those of `end` (12000, 25424, 4). Nothing of the card's settings is touched.
set -u
here=$PWD
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/gpu_common.sh
begun=$SECONDS total='' out=gpu_out make_pack='' rebuild=0 only_summary=0
usage() { sed -n '/^#     tests/p' "$0" >&2; exit 2; }
while getopts p:o:t:ns o; do
	case $o in
	p) make_pack=$OPTARG ;; o) out=$OPTARG ;; t) total=$OPTARG ;; n) rebuild=1 ;; s) only_summary=1 ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
from_here() { case $1 in /*) echo "$1" ;; *) echo "$here/$1" ;; esac; }
out=$(from_here "$out")
if [ $only_summary = 1 ]; then
	[ $# -gt 0 ] || usage
	folders=()
	for f; do folders+=("$(from_here "$f")"); done
	gpu_summary "${folders[@]}"
	exit
fi
calls=0 parts=' '
for p in "${@:-all}"; do
	case $p in A | B | C | all) calls=1 ;; esac
	case $p in
	A) parts+='check triage shape sanitize '; total=${total:-260} ;;
	B) parts+='bench tiles ncu ' ;;
	C) parts+='curve end torch ' ;;
	all) parts+='check triage sanitize bench tiles ncu curve end torch '; total=${total:-1200} ;;
	check | triage | shape | sanitize | bench | tiles | ncu | curve | end | torch) parts+="$p " ;;
	*) echo "gpu.sh: no part $p" >&2; exit 2 ;;
	esac
done
total=${total:-460}
device=${DEVICE:-cuda}
cuda=$([ "$device" = cpu ] && echo 0 || echo 1)
python=${PYTHON:-python3}
programs="maskgen sctrain scembed scsim rankenc"
[ "$cuda" = 0 ] || programs+=" corrmask_cuda.so test_cuda bench_cuda test_cuda_emulated"

# curve_inputs FOLDER: cells, and a configuration whose heads of size 64 go the tensor cores' way
curve_inputs() {
	mkdir -p "$1" && cat > "$1/config.json" <<-'END' && "$bin/scsim" -q --kind b1 -n "${CURVE_CELLS:-6000}" -o "$1/b1.tok"
		{"model_type": "bert", "vocab_size": 1002, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256,
		"max_position_embeddings": 2048, "hidden_act": "relu", "hidden_dropout_prob": 0.02, "attention_probs_dropout_prob": 0.02}
	END
}
# curve FOLDER DEVICE OUTPUT [LIMIT...]
curve() {
	local folder=$1 on=$2 to=$3
	shift 3
	"$bin/maskgen" -q -b 12 -u "$folder/b1.tok" |
		"$@" "$bin/sctrain" mlm -v -c "$folder/config.json" --device "$on" -@ $((($(nproc) + 1) / 2)) -o "$to" > "$to.log" 2>&1
}

if [ -n "$make_pack" ]; then
	make_pack=$(from_here "$make_pack")
	# shellcheck disable=SC2086
	gpu_pack "$make_pack" $programs || exit
	bin=$make_pack/bin
	if ! curve_inputs "$make_pack/curve" || ! curve "$make_pack/curve" cpu "$make_pack/curve/cpu"; then
		tail -n 3 "$make_pack/curve/cpu.log"
		exit 1
	fi
	find "$make_pack/curve/cpu" -type f ! -name train.tsv -delete
	if [ "$cuda" = 1 ]; then # what bf16's roundings cost: tests/cuda/both.h
		OPENBLAS_NUM_THREADS=1 TEST_CUDA=bf16 "$bin/test_cuda_emulated" -w "$make_pack/roundings.tsv" > "$make_pack/roundings.log" ||
			{ tail -n 5 "$make_pack/roundings.log"; exit 1; }
		rm "$make_pack/bin/test_cuda_emulated" "$make_pack/roundings.log"
	fi
	tar -czf "$make_pack.tar.gz" -C "$(dirname "$make_pack")" "$(basename "$make_pack")" && ls -l "$make_pack.tar.gz"
	exit
fi

mkdir -p "$out" || exit 1
out=$(realpath "$out")
work=$(mktemp -d) || exit 1
background=()
# Stops what this script started, by number
finish() {
	[ ${#background[@]} = 0 ] || kill "${background[@]}" 2> /dev/null
	rm -rf "$work"
}
trap finish EXIT
jobs=$(nproc)
left() { echo $((total - (SECONDS - begun))); }
wanted() { case $parts in *" $1 "*) return 0 ;; esac; return 1; }
note() { echo "gpu.sh: $*" | tee -a "$out/rest.log" >&2; }
bad() { note "FAILED: $*"; }
# limit SECONDS: that, or what is left but for 10 s; of parts that were asked for by name, what is left
limit() { local rest; rest=$(($(left) - 10)); echo $((calls && $1 < rest ? $1 : rest)); }
# limited SECONDS COMMAND...
limited() {
	local rest
	rest=$(limit "$1")
	shift
	[ "$rest" -gt 5 ] || { echo "gpu.sh: no time left for $*"; return 124; }
	timeout --kill-after=5 "$rest" "$@"
}
# keep FILE NAME...: the end of these files, for home
keep() { local f; for f; do [ ! -e "$f" ] || { echo "==== ${f##*/}"; tail -n 60 "$f"; } >> "$out/rest.log"; done; }
rm -f "$out"/{check,check_mma,sanitize,bench,tiles,end,torch}.log "$out"/{curves.tsv,ncu.txt} # of another run
: > "$out/rest.log"

# ---- the card, the programs ----
if [ "$cuda" = 1 ]; then
	card=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -n 1) && [ -n "$card" ] || exit 1
	arch=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
	arch=${arch/%sm_90/sm_90a}
else
	card="no GPU: $(nproc) cores"
	arch=
fi
pack=$(realpath ..)
echo "card $card, $(date -u +%Y-%m-%d), commit $(cat "$pack/commit" 2> /dev/null || git describe --always --dirty 2> /dev/null || echo unknown)" | tee -a "$out/rest.log"
if [ -e "$pack/needs" ]; then # these are the sources in a pack
	bin=$pack/bin
	if [ $rebuild = 1 ]; then
		gpu_backend "$work/corrmask_cuda.so" "$arch" "$pack/include" > "$work/build.log" 2>&1 ||
			{ tail -n 30 "$work/build.log"; echo "gpu.sh: the build fails"; exit 1; }
		cp "$work/corrmask_cuda.so" "$bin/" || exit 1
	fi
else
	bin=$work/bin
	# shellcheck disable=SC2086
	gpu_build "$bin" build $programs -- ${arch:+CUDA_ARCH="$arch"} > "$work/build.log" 2>&1 ||
		{ tail -n 30 "$work/build.log"; echo "gpu.sh: the build fails"; exit 1; }
fi
[ "$cuda" = 0 ] || gpu_libraries "$bin/corrmask_cuda.so" 2>> "$out/rest.log"
for p in maskgen sctrain scembed scsim rankenc; do
	"$bin/$p" --version >> "$out/rest.log" 2>&1 || { "$bin/$p" --version; echo "gpu.sh: $bin/$p does not run here"; exit 1; }
done
export OPENBLAS_NUM_THREADS=1
note "ready after $((SECONDS - begun)) s"
: > "$out/smi.csv"
if [ "$cuda" = 1 ]; then
	{
		echo "machine $(uname -sr), $jobs cores, ncu $(ncu --version 2> /dev/null | tail -n 1), compute-sanitizer $(compute-sanitizer --version 2> /dev/null | tail -n 1)"
		timeout 60 "$python" -c 'import torch; print("machine torch", torch.__version__, "cudnn", torch.backends.cudnn.version(), "nccl", torch.cuda.nccl.version())' 2>&1 | tail -n 1
	} >> "$out/rest.log" &
	nvidia-smi --query-gpu=timestamp,memory.used,utilization.gpu,clocks.sm,power.draw --format=csv,noheader,nounits -lms 500 >> "$out/smi.csv" 2> /dev/null &
	background+=($!)
fi
# part NAME: notes of the part before its seconds, and the most memory that nvidia-smi saw
smi_from=1 part_name='' part_begun=$SECONDS
part() {
	local to
	to=$(wc -l < "$out/smi.csv")
	if [ -n "$part_name" ] && wanted "$part_name"; then
		sed -n "$smi_from,${to}p" "$out/smi.csv" | awk -F', *' -v n="$part_name" -v s=$((SECONDS - part_begun)) '
			$2 + 0 > m { m = $2 + 0 } END { printf "part %s %d s %d MiB\n", n, s, m }' >> "$out/rest.log"
	fi
	smi_from=$((to + 1)) part_name=$1 part_begun=$SECONDS
}

# ---- loss curves: the CPU's run is in the pack, or beside the checks, where nothing is timed ----
cpu_curve=
if wanted curve; then
	if [ -e "$pack/curve/cpu/train.tsv" ]; then
		cp -r "$pack/curve" "$work/curve" || exit 1
	elif curve_inputs "$work/curve"; then
		curve "$work/curve" cpu "$work/curve/cpu" limited 100 &
		cpu_curve=$!
	else
		bad "curve: no cells"
	fi
fi

# ---- check ----
part check
check_status=0
roundings=()
if wanted check && [ "$cuda" = 1 ]; then
	[ -e "$pack/roundings.tsv" ] || OPENBLAS_NUM_THREADS=1 TEST_CUDA=bf16 limited 60 "$bin/test_cuda_emulated" -w "$work/roundings.tsv" > "$work/roundings.log" 2>&1
	for f in "$pack/roundings.tsv" "$work/roundings.tsv"; do [ ! -e "$f" ] || roundings=(-r "$f"); done
	limited 120 "$bin/test_cuda" "${roundings[@]}" > "$out/check.log" 2>&1
	check_status=$?
	# heads of 64 as other cards compute them
	CORRMASK_CUDA_WGMMA=0 limited 20 "$bin/test_cuda" "${roundings[@]}" test_attention > "$out/check_mma.log" 2>&1 || bad "check: attention without wgmma"
	[ $check_status = 0 ] || bad "check: status $check_status"
	! grep -q 'skipped' "$out/check.log" || bad "check: skipped"
fi

part triage
# suspects: the tests that failed, and the one that was running when the time was up
suspects() {
	{
		sed -n 's/^\[  FAILED  \] \(test_[a-z_]*\)$/\1/p' "$out/check.log"
		awk '/^\[ RUN / { t = $NF } /^\[ .*(OK|FAILED).*\] test_/ { t = "" } END { if (t != "") print t }' "$out/check.log"
	} | sort -u
}
# again TEST WHAT COMMAND...: one line of what it came to
again() {
	local test=$1 what=$2 how
	shift 2
	limited 20 "$@" "$bin/test_cuda" "${roundings[@]}" "$test" > "$work/again.log" 2>&1
	case $? in
	0) how=passes ;;
	124 | 137) how='out of time' ;;
	*) how="fails: $(grep -m 1 -E '^ *FAILED:|Invalid|Error|ERROR' "$work/again.log")" ;;
	esac
	note "triage: $test, $what: $how"
}
if wanted triage && [ $check_status != 0 ]; then
	for t in $(suspects | head -n 4); do
		again "$t" "as before" env
		again "$t" "float alone" env TEST_CUDA=float
		again "$t" "small, without graphs" env TEST_CUDA=small CORRMASK_CUDA_GRAPHS=0
		again "$t" "small, each launch waited for" env TEST_CUDA=small CUDA_LAUNCH_BLOCKING=1
		command -v compute-sanitizer > /dev/null && again "$t" "small, memcheck" env TEST_CUDA=small compute-sanitizer --error-exitcode 9
	done
fi

[ -z "$cpu_curve" ] || wait "$cpu_curve" || bad "curve on the CPU: $(tail -n 1 "$work/curve/cpu.log")"

part shape
if wanted shape && [ "$cuda" = 1 ]; then
	limited 45 "$bin/bench_cuda" "$device" 6 corrmask-paper 2048 12 > "$out/bench.log" 2>&1 || bad "shape: status $?"
fi

# ---- compute-sanitizer ----
part sanitize
if wanted sanitize && [ "$cuda" = 1 ]; then
	if command -v compute-sanitizer > /dev/null; then
		for tool in memcheck racecheck synccheck initcheck; do
			echo "==== $tool" >> "$out/sanitize.log"
			# initcheck takes what cuBLASLt wrote for unwritten (seen on an H200, where the values were right): no products for it
			tests="test_attention test_norm test_embed$([ $tool = initcheck ] || echo ' test_mlm_loss test_cell_ops')"
			# shellcheck disable=SC2086
			TEST_CUDA=small limited 30 compute-sanitizer --tool $tool --error-exitcode 9 "$bin/test_cuda" "${roundings[@]}" $tests \
				>> "$out/sanitize.log" 2>&1
			case $? in
			0) note "sanitize: $tool: clean" ;;
			9) bad "$tool: $(sed -n "/^==== $tool/,\$ s/^========= //p" "$out/sanitize.log" | grep -m 1 -vE '^COMPUTE-SANITIZER|^$|SUMMARY')" ;;
			124 | 137) note "sanitize: $tool: out of time, nothing found before" ;;
			*) bad "$tool: the tests fail under it" ;;
			esac
		done
	else
		note "sanitize: no compute-sanitizer"
	fi
fi

# ---- speed ----
part bench
shapes=() real_shapes=()
for length in 512 2048 4096; do for batch in 12 48 144; do shapes+=(corrmask-paper "$length" "$batch"); done; done
shapes+=(v2-104m 512 48 v2-104m 2048 12 v2-104m 2048 48 v2-104m 4096 12 embed:geneformer-v1-10m 2048 48 embed:v2-104m 2048 48)
for batch in 12 48 144; do real_shapes+=(corrmask-paper real "$batch"); done
real_shapes+=(v2-104m real 12 embed:geneformer-v1-10m real 48)
if wanted bench && [ "$cuda" = 1 ]; then
	# the most wanted first: time may run out
	limited 90 "$bin/bench_cuda" "$device" 16 "${real_shapes[@]}" >> "$out/bench.log" 2>&1 || bad "bench, real lengths: status $?"
	limited 170 "$bin/bench_cuda" "$device" 6 "${shapes[@]}" >> "$out/bench.log" 2>&1 || bad "bench: status $?"
fi

part tiles
if wanted tiles && [ "$cuda" = 1 ]; then
	for tile in 2048x2048 4096x2048 4096x4096 4096x8192; do
		echo "tile $tile" >> "$out/tiles.log"
		CORRMASK_CUDA_LOSS_TILE=$tile limited 20 "$bin/bench_cuda" "$device" 6 corrmask-paper 2048 12 >> "$out/tiles.log" 2>&1 || note "tile $tile: status $?"
	done
fi

part ncu
if wanted ncu && [ "$cuda" = 1 ]; then
	if command -v ncu > /dev/null; then
		# as sctrain runs it, but queued kernel by kernel; a small bench makes 14 steps, of about 300 launches each
		export CORRMASK_CUDA_GRAPHS=0
		shape=("$bin/bench_cuda" "$device" 1 corrmask-paper 2048 12) same=(--clock-control none --cache-control none)
		limited 60 ncu "${same[@]}" --metrics gpu__time_duration.sum --print-units base --csv --launch-skip 500 --launch-count 1500 --kill yes \
			"${shape[@]}" > "$work/ncu.csv" 2> "$work/ncu.log" || note "ncu: status $?"
		"$python" tests/bench/gpu_ncu.py "$work/ncu.csv" > "$out/ncu.txt" 2>> "$work/ncu.log" || bad "ncu: $(tail -n 1 "$work/ncu.log")"
		# one kind at a time, so that what ends early costs no more than itself; of each size of a launch the third
		for kind in key_mma query_mma attend_mma norm_back columns mlm norm_kernel embed adamw 'gemm|xmma|cutlass|nvjet|sm90|sm80'; do
			printf '\n==== %s\n' "$kind" >> "$out/ncu.txt"
			limited 20 ncu "${same[@]}" --filter-mode per-launch-config --launch-skip 2 --launch-count 1 -k "regex:$kind" --section SpeedOfLight \
				--section MemoryWorkloadAnalysis --section Occupancy --section WarpStateStats --section LaunchStats "${shape[@]}" \
				>> "$out/ncu.txt" 2>&1 || note "ncu, $kind: status $?"
		done
		unset CORRMASK_CUDA_GRAPHS
	else
		note "ncu: not on this machine"
	fi
fi

part curve
if wanted curve && [ "$cuda" = 1 ] && [ -e "$work/curve/cpu/train.tsv" ]; then
	for d in "float $device,float" "bf16 $device"; do
		curve "$work/curve" "${d#* }" "$work/curve/${d% *}" limited 40 || bad "curve in ${d% *}: $(tail -n 1 "$work/curve/${d% *}.log")"
	done
	# means over 50 steps: single ones part, as rounding errors grow
	paste "$work"/curve/{cpu,float,bf16}/train.tsv 2> /dev/null | awk -F'\t' '
		NR == 1 { n = NF / 3; for (i = 1; i <= n; i++) if ($i == "loss") c = i; print "steps\tcpu\tfloat\tbf16"; next }
		{ for (k = 0; k < 3; k++) s[k] += $(c + k * n) }
		(NR - 1) % 50 == 0 { printf "%d\t%.5f\t%.5f\t%.5f\n", NR - 1, s[0] / 50, s[1] / 50, s[2] / 50; s[0] = s[1] = s[2] = 0 }' > "$out/curves.tsv"
	awk -v rows=$((($(wc -l < "$work/curve/cpu/train.tsv") - 1) / 50)) 'NR > 1 { n++; if (($2 - $3)^2 > (.003 * $2)^2 || ($2 - $4)^2 > (.01 * $2)^2) b = 1 }
		END { exit !n || n < rows || b }' "$out/curves.tsv" || bad "curve: the losses part by more than 0.3 % (float) or 1 % (bf16), or end early"
fi

# ---- end to end ----
part end
now() { date +%s.%N; }
# train NAME BATCH EPOCHS [VAR=VALUE]
train() {
	local from name=$1 batch=$2 epochs=$3 line
	shift 3
	from=$(now)
	"$bin/maskgen" -q -b "$batch" --epochs "$epochs" -@ 4 -u "$work/corpus.tok" | limited 60 env "$@" "$bin/sctrain" mlm -v -c "$config" --device "$device" \
		-@ 4 -o "$work/model.$name" > "$work/train.$name.log" 2>&1 || { bad "end: sctrain, $name: $(tail -n 1 "$work/train.$name.log")"; return; }
	line=$(grep ' steps\?, ' "$work/train.$name.log" | tail -n 1)
	printf 'train\t%s\t%.1f\t%s\n' "$name" "$(echo "$from $(now)" | awk '{ print $2 - $1 }')" "${line#*: }" >> "$out/end.log"
}
# embed NAME TOKENS-STREAM [OPTION...]: seconds
embed() {
	local from name=$1 tokens=$2
	shift 2
	from=$(now)
	limited 60 "$bin/scembed" -v -M "$work/model.$main" --device "$device" -@ 4 "$@" -o "$work/$name.emb" "$tokens" > "$work/embed.$name.log" 2>&1 ||
		{ bad "end: scembed, $name: $(tail -n 1 "$work/embed.$name.log")"; return 1; }
	echo "$from $(now)" | awk '{ printf "%.2f", $2 - $1 }'
}
if wanted end; then
	cells=${CELLS:-12000} epochs=${EPOCHS:-4} genes=${GENES:-25424} config=corrmask-paper
	few=$((cells / 12 + 20))
	[ "$cuda" = 1 ] || config=tiny
	simulate() { limited 60 "$bin/scsim" -q -@ "$jobs" --genes "$genes" --depth 2000 -n "$1" -u --seed "$2"; }
	if simulate "$few" 1 > "$work/few.counts" && "$bin/rankenc" -q --fit "$work/few.counts" > "$work/vocab.tsv" &&
		"$bin/rankenc" -q -@ 4 -m "$work/vocab.tsv" "$work/few.counts" -o "$work/few.tok" &&
		simulate "$cells" 2 | "$bin/rankenc" -v -@ 4 -m "$work/vocab.tsv" -o "$work/corpus.tok" - 2> "$work/corpus.log"; then
		main=48
		train 48 48 "$epochs" GPU=1
		train 48-no-graphs 48 "$epochs" CORRMASK_CUDA_GRAPHS=0
		train 12 12 $(((epochs + 1) / 2)) GPU=1
		if a=$(embed few "$work/few.tok" --max-len 2048) && b=$(embed all "$work/corpus.tok" --max-len 2048); then
			n=$(grep -ho '[0-9][0-9]* tokens' "$work/embed.few.log" "$work/embed.all.log" | awk '{ x[NR] = $1 } END { print x[1], x[2] }')
			{
				echo "$n $a $b" | awk '{ printf "scembed\t%.0f tokens in %.2f s, %.0f in %.2f s: %.0f tokens/s, start left out", $2, $4, $1, $3, ($2 - $1) / ($4 - $3 > 1e-9 ? $4 - $3 : 1e-9) }'
				echo " $(grep -ho 'GPU idle.*' "$work/embed.all.log")"
			} >> "$out/end.log"
		fi
	else
		bad "end: no cells: $(tail -n 1 "$work/corpus.log")"
	fi
	keep "$work"/train.*.log "$work"/embed.*.log
fi

# ---- peers ----
part torch
if wanted torch && [ "$cuda" = 1 ]; then
	# the most wanted first: the fair ones, whose decoder reads masked rows only, by each kernel of attention, plain and compiled
	peers=()
	for how in flash cudnn flash-tuned packed packed-tuned; do peers+=("$how":corrmask-paper:2048:12); done
	for how in packed plain flash; do peers+=("$how":corrmask-paper:2048:48); done
	for how in packed plain grouped sdpa; do peers+=("$how":corrmask-paper:real:48); done
	peers+=(sdpa:corrmask-paper:2048:12 eager:corrmask-paper:2048:12 compiled:corrmask-paper:2048:12 flash:v2-104m:2048:12 cudnn:v2-104m:2048:12
		packed:v2-104m:real:12 sdpa:v2-104m:2048:12 flash-p0:corrmask-paper:2048:12 cudnn-p0:corrmask-paper:2048:12 packed:corrmask-paper:real:12
		plain-tuned:corrmask-paper:2048:48 flash-tuned:v2-104m:2048:12 plain-tuned:corrmask-paper:real:48 packed:corrmask-paper:real:144 plain:corrmask-paper:512:48
		plain:corrmask-paper:4096:12 plain:corrmask-paper:2048:144 sdpa:corrmask-paper:2048:48 eager:corrmask-paper:real:48 grouped:v2-104m:real:12)
	seconds=$(limit 330)
	PYTHONUNBUFFERED=1 TORCHINDUCTOR_CACHE_DIR=$work/inductor limited "$seconds" "$python" tests/bench/gpu_torch.py --seconds $((seconds - 5)) "${peers[@]}" \
		> "$out/torch.log" 2>&1 || note "torch: status $?: $(tail -n 1 "$out/torch.log")"
fi

part ''
keep "$work"/*.log "$work"/curve/*.log
gpu_summary "$out" > "$out/summary.md"
[ ! -e "$out/check.log" ] || grep -E 'skipped|FAILED' "$out/check.log" | head -n 24
grep -hE 'FAILED|^remarks' "$out/bench.log" "$out/torch.log" 2> /dev/null
cat "$out/summary.md"
failed=$(grep -c '^gpu.sh: FAILED:' "$out/rest.log")
echo "gpu.sh: $((SECONDS - begun)) s; $([ "$failed" = 0 ] && echo 'all passed' || echo "$failed FAILED"); logs in $out"
[ "$failed" = 0 ]
