#!/usr/bin/env bash
# demo-report.sh DIR PREPARED DATA LABEL CELLS: print the demo's table from the metrics and logs under DIR and PREPARED.
. "$(dirname "$0")/common.sh"
dir=$1 prepared=$2 data=${3:-simulated cells (scsim)} label=$4 cells=$5
get() { awk -F '\t' -v k="$2" '$1 == k { printf "%.4f", $2; found = 1 } END { if (!found) printf "-" }' "$1"; }
row() { printf '%-44s %10s %10s\n' "$1" "$2" "$3"; }
both() { row "$1" "$(get "$dir/random.$2.tsv" "$3")" "$(get "$dir/corrmask.$2.tsv" "$3")"; }

echo "corrmask demo: $data, label $label"
# cells of one part: "scsample: 3000 cells in, 747 out, ..."
part() { sed -n 's/^scsample: [0-9]* cells in, \([0-9]*\) out.*/\1/p' "$prepared/log/scsample-$1.log"; }
by=$(sed -n 's/^./, split by &/p' "$prepared/group")
echo "cells: $(part train) to train, $(part test) held out$by$([ "$cells" = 0 ] || echo "; at most $cells, sampled with a seed (CELLS=0: all)")"
sed -n 's/^depgraph: \(.* edges\);.*/graph: \1/p' "$prepared/log/depgraph.log"
echo
row "masked tokens of held-out cells" random CorrMask
both "loss, random masks" loss-random loss
both "loss, CorrMask masks" loss-corrmask loss
both "accuracy, random masks" loss-random accuracy
both "accuracy, CorrMask masks" loss-corrmask accuracy
echo
# a linear probe of embeddings, with 95 % intervals of the macro F1
probe() {
	local f=$dir/$1.probe.tsv
	printf '%-44s %10s %10s %10s   %s - %s%s\n' "$2" "$(get "$f" accuracy)" "$(get "$f" f1_rare)" "$(get "$f" macro_f1)" \
		"$(get "$f" macro_f1_low)" "$(get "$f" macro_f1_high)" "$([ "$(get "$f" converged)" = 1.0000 ] || echo ' (did not converge)')"
}
printf '%-44s %10s %10s %10s   %s\n' "linear probe of cell types" accuracy "rarest F1" "macro F1" \
	"95 % interval, $(awk -F '\t' '{ v[$1] = $2 } END { n = v["bootstrap_units"]; print n, n < v["cells"] ? "groups" : "cells" }' "$dir/random.probe.tsv") drawn anew"
probe expression "log-normalised expression, no network"
probe pca "50 principal components, no network"
probe untrained "network, not trained"
probe random "network, random masks"
probe corrmask "network, CorrMask masks"
echo
echo "per class (F1 of the probe)"
awk -F '\t' '$1 ~ /^f1:/ { c = substr($1, 4); if (FNR == NR) a[c] = $2; else b[c] = $2 }
	$1 ~ /^n:/ { n[substr($1, 3)] = $2 }
	END { for (c in n) printf "%d\t%s\t%.4f\t%.4f\n", n[c], c, a[c], b[c] }' "$dir/random.probe.tsv" "$dir/corrmask.probe.tsv" |
	sort -k1,1nr | sed '1i cells\tclass\trandom\tCorrMask' | "$(dirname "$0")/names.sh" 2 |
	awk -F '\t' '{ printf "  %s %7s %10s %10s\n", $2, $1, $3, $4 }'
echo
printf '%-24s %10s %12s\n' stage seconds "peak memory"
find "$prepared/log" "$dir/log" -name '*.log' -printf '%T@ %p\n' | sort -n | cut -d ' ' -f 2- | while read -r log; do
	sed -n 's/.*; \([0-9.]*\) s, peak memory \([0-9]* MB\)$/\1\t\2/p' "$log" | tail -n 1 |
		awk -F '\t' -v s="$(basename "$log" .log)" '{ printf "%-24s %10s %12s\n", s, $1, $2 }'
done
