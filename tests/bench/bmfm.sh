#!/bin/sh
# Training speed on whole cells beside torch:
#     bmfm.sh BENCH_BMFM bf16|"" THREADS STEPS ROUNDS PYTHON MODEL:LENGTH:BATCH...
# Both run in turn, ROUNDS times, so that they meet the same machine. The table has the medians of the rounds; the ratio is of CPU seconds, the
# best of each, which other programs disturb least. PYTHON needs torch; without it its columns stay empty.
set -eu
bench=$1 precision=$2 threads=$3 steps=$4 rounds=$5 python=$6
shift 6
peer=$(dirname "$0")/bmfm_torch.py
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# fields NAME: the word after every NAME of the input, the smallest number first
fields() { awk -v f="$1" '{ for (i = 1; i < NF; i++) if ($i == f) print $(i + 1) + 0 }' | sort -g; }
median() { fields "$1" | awk '{ x[NR] = $1 } END { print NR ? x[int(NR / 2) + 1] : "-" }'; }
least() { fields "$1" | awk 'NR == 1 { print; n = 1 } END { if (!n) print "-" }'; }
have=1
why=$("$python" -c 'import torch' 2>&1) || { have=; echo "bmfm.sh: no peer to compare with: $python: $(printf '%s\n' "$why" | tail -n 1)"; }
for shape in "$@"; do
	model=${shape%%:*} rest=${shape#*:}
	length=${rest%:*} batch=${rest#*:}
	: > "$tmp/ours"
	: > "$tmp/torch"
	for _ in $(seq "$rounds"); do
		# shellcheck disable=SC2086   # an empty precision is no argument
		"$bench" $precision "$model" "$threads" "$steps" "$length" "$batch" > "$tmp/one"
		cat "$tmp/one"
		cat "$tmp/one" >> "$tmp/ours"
		[ "$have" ] || continue
		# shellcheck disable=SC2086
		"$python" "$peer" $precision "$model" "$threads" "$steps" "$length" "$batch" | tee -a "$tmp/torch"
	done
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$model" "$length" "$batch" "$(median tokens_per_s < "$tmp/ours")" \
		"$(median tokens_per_s < "$tmp/torch")" \
		"$(awk -v a="$(least cpu_s < "$tmp/torch")" -v b="$(least step_cpu_s < "$tmp/ours")" 'BEGIN { if (a > 0) printf "%.2f", a / b; else print "-" }')" \
		"$(median roofline_share < "$tmp/ours")" "$(median roofline_share_cpu < "$tmp/ours")" "$(median peak_mb < "$tmp/ours")" \
		"$(median peak_mb < "$tmp/torch")" >> "$tmp/table"
done
printf '\nmodel\tlength\tbatch\tours\ttorch\tratio_cpu\troofline\troofline_cpu\tpeak_mb\ttorch_mb\t(tokens/s, %s rounds of %s steps, %s threads)\n' "$rounds" "$steps" "$threads"
cat "$tmp/table"
