#!/bin/sh
# Training speed beside transformers' BertForMaskedLM:
#     sctrain.sh "BENCH_SCTRAIN [bf16] [v2]" THREADS STEPS ROUNDS PYTHON LENGTH:BATCH...
# Both run in turn, ROUNDS times, so that they meet the same machine. The table has the best step of all rounds, and the median of the
# rounds' medians; the ratio is that of the best. Shares of the floors (bench_sctrain.c) are the best by wall and the median by CPU
# seconds. PYTHON needs torch and transformers; without them its columns stay empty. So they do where torch, which keeps the
# length x length probabilities of every layer, would not fit into the free memory.
set -eu
bench=$1 threads=$2 steps=$3 rounds=$4 python=$5
shift 5
peer=$(dirname "$0")/sctrain_torch.py
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# fields NAME: the word after every NAME of the input, the smallest number first
fields() { awk -v f="$1" '{ for (i = 1; i < NF; i++) if ($i == f) print $(i + 1) + 0 }' | sort -g; }
largest() { fields "$1" | tail -n 1; }
median() { fields "$1" | awk '{ x[NR] = $1 } END { if (NR) print x[int(NR / 2) + 1] }'; }
have=1
why=$("$python" -c 'import torch, transformers' 2>&1) || { have=; echo "sctrain.sh: no peer to compare with: $python: $(printf '%s\n' "$why" | tail -n 1)"; }

# fits LENGTH BATCH: has torch the memory?
fits() {
	# 6 layers x 4 heads: scores, probabilities, dropped probabilities and their mask, gradients
	# shellcheck disable=SC2017   # batch * length^2 * 4 * 4 * 30 may be too large a number
	need=$(($2 * 4 * $1 * $1 / 1024 * 4 * 30 + 2000000))
	free=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
	[ "$need" -lt "$free" ] || { echo "torch left out: length $1 batch $2 wants about $((need / 1000)) MB, $((free / 1000)) MB are free"; return 1; }
}

for shape in "$@"; do
	length=${shape%:*} batch=${shape#*:} run=$have
	if [ "$run" ]; then fits "$length" "$batch" || run=; fi
	: > "$tmp/ours"
	: > "$tmp/torch"
	for _ in $(seq "$rounds"); do
		# shellcheck disable=SC2086   # a program and its first arguments
		$bench "$threads" "$steps" "$length" "$batch" > "$tmp/one"
		cat "$tmp/one"
		grep '^config' "$tmp/one" >> "$tmp/ours"
		[ "$run" ] || continue
		# shellcheck disable=SC2086
		if "$python" "$peer" ${bench#"${bench%% *}"} "$threads" "$steps" "$length" "$batch" > "$tmp/one"; then
			cat "$tmp/one"
			grep '^torch' "$tmp/one" >> "$tmp/torch"
		else
			echo "torch failed at length $length batch $batch"
			run=
		fi
	done
	ours=$(largest '(best' < "$tmp/ours") torch=$(largest '(best' < "$tmp/torch")
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$length" "$batch" "$ours" "$(median tokens_per_s < "$tmp/ours")" "${torch:--}" \
		"$(median tokens_per_s < "$tmp/torch" | grep . || echo -)" \
		"$(awk -v a="$ours" -v b="${torch:-0}" 'BEGIN { if (b > 0) printf "%.2f", a / b; else print "-" }')" \
		"$(largest fma_share < "$tmp/ours")" "$(largest roofline_share < "$tmp/ours")" \
		"$(median fma_share_cpu < "$tmp/ours")" "$(median roofline_share_cpu < "$tmp/ours")" "$(largest peak_mb < "$tmp/ours")" >> "$tmp/table"
done
printf '\nlength\tbatch\tours\tmedian\ttorch\tmedian\tratio\tfma\troofline\tfma_cpu\troofline_cpu\tpeak_mb\t(tokens/s, %s rounds of %s steps, %s threads)\n' "$rounds" "$steps" "$threads"
cat "$tmp/table"
