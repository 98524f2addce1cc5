#!/bin/bash
# All about the CUDA backend on a machine with a GPU, in calls of limited time: check, measure, compare.
# NOT YET RUN ON A GPU: its parts were tried on a CPU (DEVICE=cpu), ncu and compute-sanitizer not at all.
#
#     tests/bench/gpu.sh -p PACK                     here: all that a bare machine needs into PACK and PACK.tar.gz (about 21 MB)
#     tar -xzf PACK.tar.gz                           there, in any folder
#     PACK/src/tests/bench/gpu.sh -o OUT_A A         then B, then C
#     tests/bench/gpu.sh [-o OUT] [PART...]          on a machine that has the libraries: builds first
#
# CALL  A          200 s: check sanitize shape. Stop here if anything FAILED
#       B          bench ncu
#       C          torch curve end
#       all        A, B and C (default)
# PART  check      the ops and whole steps against the CPU's (tests/cuda/test_cuda.c, test_cuda_steps.c)
#       sanitize   compute-sanitizer over attention's test, which calls no cuBLASLt: memcheck, racecheck
#       shape      bench_cuda, one shape
#       bench      bench_cuda: ops, steps, embedding, by shape
#       ncu        every kernel of one step, for its time; all sections for the kernels that take the most
#       torch      the peers on the same shapes (gpu_torch.py; python3, or PYTHON=)
#       curve      500 steps on the CPU (in the pack), on the GPU in float and in bf16: the losses must agree
#       end        maskgen | sctrain and scembed, with the programs' own reports
# -t  seconds in all (default 560): each part has its own limit, and no more than what is left
# -n  build corrmask_cuda.so there by nvcc, from the pack's src: for kernels that changed after packing
# Parts in several calls: awk -f tests/bench/gpu_table.awk torch.log bench.log (of two OUTs) makes the one table.
# OUT   summary.md (also printed last: fit for docs/cuda.md), bench.log, torch.log, check.log, curves.tsv, ncu.txt, smi.csv, rest.log
# DEVICE=cpu tries the script itself; CELLS= are those of `end` (12000). Nothing of the card's settings is touched.
set -u
here=$PWD
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/gpu_common.sh
begun=$SECONDS total='' out=gpu_out make_pack='' rebuild=0 failed=()
while getopts p:o:t:n o; do
	case $o in
	p) make_pack=$OPTARG ;; o) out=$OPTARG ;; t) total=$OPTARG ;; n) rebuild=1 ;;
	*) sed -n '/^#     tests/p' "$0" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
calls=0 parts=' '
for p in "${@:-all}"; do
	case $p in A | B | C | all) calls=1 ;; esac
	case $p in
	A) parts+='check sanitize shape '; total=${total:-200} ;;
	B) parts+='bench ncu ' ;;
	C) parts+='torch curve end ' ;;
	all) parts+='check sanitize bench ncu torch curve end ' ;;
	check | sanitize | shape | bench | ncu | torch | curve | end) parts+="$p " ;;
	*) echo "gpu.sh: no part $p" >&2; exit 2 ;;
	esac
done
total=${total:-560}
case $out in /*) ;; *) out=$here/$out ;; esac
case $make_pack in '' | /*) ;; *) make_pack=$here/$make_pack ;; esac
device=${DEVICE:-cuda}
cuda=$([ "$device" = cpu ] && echo 0 || echo 1)
python=${PYTHON:-python3}
programs="maskgen sctrain scembed scsim rankenc ctaprobe"
[ "$cuda" = 0 ] || programs+=" corrmask_cuda.so test_cuda bench_cuda"

# curve_inputs FOLDER: cells, and a configuration whose heads of size 64 go the tensor cores' way
curve_inputs() {
	mkdir -p "$1" && cat > "$1/config.json" <<-'END' && "$bin/scsim" -q --model b1 -n 6000 -o "$1/b1.tok"
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
	# shellcheck disable=SC2086
	gpu_pack "$make_pack" $programs || exit
	bin=$make_pack/bin
	if ! curve_inputs "$make_pack/curve" || ! curve "$make_pack/curve" cpu "$make_pack/curve/cpu"; then
		tail -n 3 "$make_pack/curve/cpu.log"
		exit 1
	fi
	find "$make_pack/curve/cpu" -type f ! -name train.tsv -delete
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
note() { echo "gpu.sh: $*" | tee -a "$out/rest.log"; }
bad() { failed+=("$*"); note "FAILED: $*"; }
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
field() { awk -v f="$1" '{ for (i = 1; i < NF; i++) if ($i == f) { print $(i + 1); exit } }'; }
rm -f "$out"/{check,bench,torch}.log "$out"/{curves.tsv,ncu.txt} # of another run
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
echo "$card"
pack=$(realpath ..)
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
	nvidia-smi --query-gpu=timestamp,memory.used,utilization.gpu,clocks.sm,power.draw --format=csv,noheader,nounits -lms 500 >> "$out/smi.csv" 2> /dev/null &
	background+=($!)
fi
# part NAME: the most memory that the part before had, by nvidia-smi; seconds
smi_from=1 part_name='' part_begun=$SECONDS
part() {
	local to
	to=$(wc -l < "$out/smi.csv")
	if [ -n "$part_name" ]; then
		sed -n "$smi_from,${to}p" "$out/smi.csv" | awk -F', *' -v n="$part_name" -v s=$((SECONDS - part_begun)) '
			$2 + 0 > m { m = $2 + 0 } END { printf "%s\t%d\t%d\n", n, s, m }' >> "$work/parts.tsv"
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

part check
if wanted check && [ "$cuda" = 1 ]; then
	limited 120 "$bin/test_cuda" > "$out/check.log" 2>&1 || bad "check: status $?"
	grep -q 'skipped' "$out/check.log" && bad "check: skipped"
fi

part sanitize
if wanted sanitize && [ "$cuda" = 1 ]; then
	if command -v compute-sanitizer > /dev/null; then
		for tool in memcheck racecheck; do
			TEST_CUDA_SMALL=1 limited 35 compute-sanitizer --tool $tool --error-exitcode 9 "$bin/test_cuda" test_attention > "$work/$tool.log" 2>&1
			case $? in
			0) ;;
			124 | 137) note "$tool: out of time" ;;
			*) bad "$tool: $(grep -m 1 '=========' "$work/$tool.log")" ;;
			esac
			grep 'SUMMARY' "$work/$tool.log" | sed "s/^/$tool: /" >> "$work/sanitize.txt"
		done
	else
		note "sanitize: no compute-sanitizer"
	fi
fi

[ -z "$cpu_curve" ] || wait "$cpu_curve" || bad "curve on the CPU: $(tail -n 1 "$work/curve/cpu.log")"

part shape
if wanted shape && [ "$cuda" = 1 ]; then
	limited 45 "$bin/bench_cuda" "$device" 6 corrmask-paper 2048 12 > "$out/bench.log" 2>&1 || bad "shape: status $?"
fi

part bench
shapes=() real_shapes=()
for length in 512 2048 4096; do for batch in 12 48 144; do shapes+=(corrmask-paper "$length" "$batch"); done; done
shapes+=(v2-104m 512 48 v2-104m 2048 12 v2-104m 2048 48 v2-104m 4096 12 embed:geneformer-v1-10m 2048 48 embed:v2-104m 2048 48)
for batch in 12 48 144; do real_shapes+=(corrmask-paper real "$batch"); done
real_shapes+=(v2-104m real 12 embed:geneformer-v1-10m real 48)
if wanted bench && [ "$cuda" = 1 ]; then
	# the most wanted first: time may run out
	limited 90 "$bin/bench_cuda" "$device" 16 "${real_shapes[@]}" >> "$out/bench.log" 2>&1 || bad "bench, real lengths: status $?"
	limited 200 "$bin/bench_cuda" "$device" 6 "${shapes[@]}" >> "$out/bench.log" 2>&1 || bad "bench: status $?"
fi

part ncu
if wanted ncu && [ "$cuda" = 1 ]; then
	if command -v ncu > /dev/null; then
		# as sctrain runs it, but queued kernel by kernel; a small bench makes 14 steps
		shape=("$bin/bench_cuda" "$device" 1 corrmask-paper 2048 12)
		CORRMASK_CUDA_GRAPHS=0 limited 100 ncu --clock-control none --cache-control none --metrics gpu__time_duration.sum --print-units base --csv \
			"${shape[@]}" > "$work/ncu.csv" 2> "$work/ncu.log" || note "ncu: status $?"
		"$python" tests/bench/gpu_ncu.py "$work/ncu.csv" > "$out/ncu.txt" 2>> "$work/ncu.log" || bad "ncu: $(tail -n 1 "$work/ncu.log")"
		CORRMASK_CUDA_GRAPHS=0 limited 100 ncu --clock-control none --set full -k 'regex:_mma_kernel|columns|norm_back|mlm_' --launch-skip 100 \
			--launch-count 40 --kill yes "${shape[@]}" > "$work/ncu_full.txt" 2>&1
		cat "$work/ncu_full.txt" >> "$out/ncu.txt"
	else
		note "ncu: not on this machine"
	fi
fi

part curve
if wanted curve && [ "$cuda" = 1 ] && [ -e "$work/curve/cpu/train.tsv" ]; then
	for d in "float $device,float" "bf16 $device"; do
		curve "$work/curve" "${d#* }" "$work/curve/${d% *}" limited 100 || bad "curve in ${d% *}: $(tail -n 1 "$work/curve/${d% *}.log")"
	done
	# means over 50 steps: single ones part, as rounding errors grow
	paste "$work"/curve/{cpu,float,bf16}/train.tsv 2> /dev/null | awk -F'\t' '
		NR == 1 { n = NF / 3; for (i = 1; i <= n; i++) if ($i == "loss") c = i; print "steps\tcpu\tfloat\tbf16"; next }
		{ for (k = 0; k < 3; k++) s[k] += $(c + k * n) }
		(NR - 1) % 50 == 0 { printf "%d\t%.5f\t%.5f\t%.5f\n", NR - 1, s[0] / 50, s[1] / 50, s[2] / 50; s[0] = s[1] = s[2] = 0 }' > "$out/curves.tsv"
	awk 'NR > 1 { n++; if (($2 - $3)^2 > (.003 * $2)^2 || ($2 - $4)^2 > (.01 * $2)^2) b = 1 } END { exit n < 10 || b }' "$out/curves.tsv" ||
		bad "curve: the losses part by more than 0.3 % (float) or 1 % (bf16)"
fi

part end
now() { date +%s.%N; }
# train NAME BATCH EPOCHS [VAR=VALUE]
train() {
	local from name=$1 batch=$2 epochs=$3 line
	shift 3
	from=$(now)
	"$bin/maskgen" -q -b "$batch" --epochs "$epochs" -@ 4 -u "$work/corpus.tok" | limited 60 env "$@" "$bin/sctrain" mlm -v -c "$config" --device "$device" \
		-@ 4 -o "$work/model.$name" > "$work/train.$name.log" 2>&1 || { bad "end: sctrain, $name: $(tail -n 1 "$work/train.$name.log")"; return; }
	line=$(grep ' steps, ' "$work/train.$name.log" | tail -n 1)
	printf '%s\t%.1f\t%s\n' "$name" "$(echo "$from $(now)" | awk '{ print $2 - $1 }')" "${line#*: }" >> "$work/end.tsv"
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
	cells=${CELLS:-12000} few=1000 genes=25424 config=corrmask-paper threads=$jobs
	[ "$cuda" = 1 ] || { cells=60 few=30 genes=2000 config=tiny; }
	simulate() { limited 60 "$bin/scsim" -q -@ "$threads" --genes $genes --depth 2000 -n "$1" -u --seed "$2"; }
	if simulate $few 1 > "$work/few.counts" && "$bin/rankenc" -q --fit "$work/few.counts" > "$work/vocab.tsv" &&
		"$bin/rankenc" -q -@ 4 -m "$work/vocab.tsv" "$work/few.counts" -o "$work/few.tok" &&
		simulate "$cells" 2 | "$bin/rankenc" -v -@ 4 -m "$work/vocab.tsv" -o "$work/corpus.tok" - 2> "$work/corpus.log"; then
		main=48
		rate=$(grep "^config corrmask-paper length real batch 48 " "$out/bench.log" 2> /dev/null | field tokens_per_s)
		epochs=$(awk -v r="${rate:-0}" -v n="$cells" 'BEGIN { e = int(10 * r / (1280 * n)); print (e < 1 ? 1 : e > 20 ? 20 : e) }')
		train 48 48 "$epochs" GPU=1
		train 48-no-graphs 48 "$epochs" CORRMASK_CUDA_GRAPHS=0
		train 12 12 $(((epochs + 1) / 2)) GPU=1
		if a=$(embed few "$work/few.tok" --truncate) && b=$(embed all "$work/corpus.tok" --truncate); then
			n=$(grep -ho '[0-9][0-9]* tokens' "$work/embed.few.log" "$work/embed.all.log" | awk '{ x[NR] = $1 } END { print x[1], x[2] }')
			echo "$n $a $b" | awk '{ printf "%.0f tokens in %.2f s, %.0f in %.2f s: %.0f tokens/s, start left out\n", $2, $4, $1, $3, ($2 - $1) / ($4 - $3 > 1e-9 ? $4 - $3 : 1e-9) }' \
				> "$work/embed.txt"
			grep -ho 'GPU idle.*' "$work/embed.all.log" | sed 's/^/  /' >> "$work/embed.txt"
		fi
	else
		bad "end: no cells: $(tail -n 1 "$work/corpus.log")"
	fi
fi

part torch
if wanted torch && [ "$cuda" = 1 ]; then
	# the most wanted first
	peers=(packed:corrmask-paper:real:48 flash:corrmask-paper:2048:48 flash-p0:corrmask-paper:2048:48 cudnn-p0:corrmask-paper:2048:48
		packed:corrmask-paper:real:12 packed:corrmask-paper:2048:12 sdpa:corrmask-paper:2048:48 sdpa:corrmask-paper:real:48 eager:corrmask-paper:real:48 plain:corrmask-paper:2048:48
		compiled:corrmask-paper:2048:48 compiled:corrmask-paper:real:48 grouped:corrmask-paper:real:48 eager:corrmask-paper:2048:48
		sdpa:corrmask-paper:2048:12 sdpa:corrmask-paper:real:12 sdpa:v2-104m:2048:12 eager:v2-104m:2048:12 sdpa:corrmask-paper:512:48
		sdpa:corrmask-paper:4096:12 sdpa:corrmask-paper:2048:144 sdpa:corrmask-paper:real:144 sdpa:corrmask-paper:512:144
		sdpa:corrmask-paper:4096:48 sdpa:v2-104m:512:48 sdpa:v2-104m:2048:48 sdpa:v2-104m:4096:12 sdpa:v2-104m:real:12
		sdpa:corrmask-paper:512:12 grouped:corrmask-paper:real:12 eager:corrmask-paper:512:48 eager:corrmask-paper:4096:12
		grouped:v2-104m:real:12 plain-compiled:corrmask-paper:2048:48 compiled:v2-104m:2048:12 compiled:corrmask-paper:2048:12
		compiled:corrmask-paper:512:48 compiled:corrmask-paper:4096:12 compiled:v2-104m:512:48)
	seconds=$(limit 230)
	PYTHONUNBUFFERED=1 TORCHINDUCTOR_CACHE_DIR=$work/inductor limited "$seconds" "$python" tests/bench/gpu_torch.py --seconds $((seconds - 5)) "${peers[@]}" \
		> "$out/torch.log" 2>&1 || note "torch: status $?: $(tail -n 1 "$out/torch.log")"
fi

part ''
for f in "$work"/*.log "$work"/curve/*.log; do [ ! -e "$f" ] || { echo "==== ${f##*/}"; tail -n 60 "$f"; }; done >> "$out/rest.log"

# ---- the summary ----
{
	echo "### $card, $(date -u +%Y-%m-%d), commit $(cat "$pack/commit" 2> /dev/null || git describe --always --dirty 2> /dev/null || echo unknown)"
	echo
	[ ! -e "$out/bench.log" ] || sed -n 's/^gemm_tflops \([^ ]*\) copy_gb_s \([^ ]*\)/Ceilings measured: product \1 TFLOP\/s, copy \2 GB\/s./p' "$out/bench.log" | head -n 1
	[ ! -e "$out/torch.log" ] || sed -n 's/^torch \([0-9][^ ]*\) transformers \([^ ]*\) .*/PyTorch \1, transformers \2./p' "$out/torch.log"
	if [ -e "$out/bench.log" ]; then
		echo
		echo "Training, thousands of real tokens a second; \`geneformer-v1-10m\` is of the shape of \`corrmask-paper\`; \`grouped\` batches cells of like length:"
		echo
		touch "$out/torch.log"
		awk -f tests/bench/gpu_table.awk "$out/torch.log" "$out/bench.log"
		echo
		echo "Time by op, ms (share of the floor), largest first:"
		echo
		awk -f tests/bench/gpu_ops.awk "$out/bench.log"
	fi
	if [ -e "$work/end.tsv" ]; then
		echo
		echo "End to end, \`maskgen -u | sctrain\`, $config, real lengths (batch, wall s, sctrain's report):"
		echo
		awk -F'\t' '{ rate = $3; sub(/.*\(/, "", rate); sub(/ tokens.*/, "", rate)
			printf "- %s: %s s; %s; a million cells of 2,048 tokens, 3 epochs: %.1f min\n", $1, $2, $3, 3e6 * 2048 / rate / 60 }' "$work/end.tsv"
		[ ! -e "$work/embed.txt" ] || echo "- scembed: $(tr '\n' ' ' < "$work/embed.txt")"
	fi
	if [ -s "$out/ncu.txt" ]; then
		echo
		echo "Kernels of one step of corrmask-paper, 12 x 2,048, by ncu:"
		echo
		sed '/^$/,$d' "$out/ncu.txt"
	fi
	if [ -s "$out/curves.tsv" ]; then
		echo
		echo "Loss, means over 50 steps:"
		echo
		awk '{ gsub("\t", " | "); print "| " $0 " |" } NR == 1 { print "|---|---|---|---|" }' "$out/curves.tsv"
	fi
	echo
	[ ! -e "$out/check.log" ] || grep -E 'PASSED|FAILED' "$out/check.log" | tail -n 12 | sed 's/^/- /'
	[ ! -e "$work/sanitize.txt" ] || sed 's/^/- /' "$work/sanitize.txt"
	awk -F'\t' '{ printf "%s%s %d s%s", (NR > 1 ? ", " : "Parts: "), $1, $2, ($3 ? sprintf(" (%.1f GB at most)", $3 * 1.048576 / 1000) : "") } END { print "." }' "$work/parts.tsv"
	for f in "${failed[@]+"${failed[@]}"}"; do echo "- FAILED: $f"; done
} > "$out/summary.md"
[ ! -e "$out/check.log" ] || grep -E 'closest|skipped' "$out/check.log" | tail -n 24
grep -hE 'FAILED|^remarks' "$out/bench.log" "$out/torch.log" 2> /dev/null
cat "$out/summary.md"
echo "gpu.sh: $((SECONDS - begun)) s; $([ ${#failed[@]} = 0 ] && echo 'all passed' || echo "${#failed[@]} FAILED"); logs in $out"
[ ${#failed[@]} = 0 ]
