#!/bin/sh
# Training speed beside transformers' BertForMaskedLM, length by length in one run, so that both meet the same machine:
#     sctrain.sh BENCH_SCTRAIN THREADS STEPS PYTHON LENGTH:BATCH...
# PYTHON needs torch and transformers; without them its column stays empty. So it does where torch, which keeps the
# length x length probabilities of every layer, would not fit into the free memory.
set -eu
bench=$1 threads=$2 steps=$3 python=$4
shift 4
peer=$(dirname "$0")/sctrain_torch.py
table=$(mktemp)
trap 'rm -f "$table"' EXIT
field() { printf '%s\n' "$1" | awk -v f="$2" '{ for (i = 1; i < NF; i++) if ($i == f) { print $(i + 1); exit } }'; }
have=1
why=$("$python" -c 'import torch, transformers' 2>&1) || { have=; echo "sctrain.sh: no peer to compare with: $python: $(printf '%s\n' "$why" | tail -n 1)"; }
for shape in "$@"; do
	length=${shape%:*} batch=${shape#*:} torch=- ratio=-
	ours=$("$bench" "$threads" "$steps" "$length" "$batch")
	printf '%s\n' "$ours"
	if [ "$have" ]; then
		# 6 layers x 4 heads: scores, probabilities, dropped probabilities and their mask, gradients
		need=$((batch * 4 * length * length / 1024 * 4 * 30 + 2000000))
		free=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
		if [ "$need" -lt "$free" ]; then
			if line=$("$python" "$peer" "$threads" "$steps" "$length" "$batch"); then
				printf '%s\n' "$line"
				torch=$(field "$line" tokens_per_s)
				ratio=$(awk -v a="$(field "$ours" tokens_per_s)" -v b="$torch" 'BEGIN { printf "%.2f", a / b }')
			else
				echo "torch failed at length $length batch $batch (status $?)"
			fi
		else
			echo "torch left out: length $length batch $batch wants about $((need / 1000)) MB, $((free / 1000)) MB are free"
		fi
	fi
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$length" "$batch" "$(field "$ours" tokens_per_s)" "$torch" "$ratio" \
		"$(field "$ours" roofline_share)" "$(field "$ours" peak_mb)" >> "$table"
done
printf '\nlength\tbatch\tours\ttorch\tratio\troofline_share\tpeak_mb\t(tokens/s, median of %s steps, %s threads)\n' "$steps" "$threads"
cat "$table"
