#!/usr/bin/env bash
# demo-plot.sh DIR: loss curves and per-class F1 as DIR/demo.svg and DIR/demo.png.
. "$(dirname "$0")/common.sh"
dir=$1
awk -F '\t' '$1 ~ /^f1:/ { c = substr($1, 4); if (FNR == NR) a[c] = $2; else b[c] = $2 }
	$1 ~ /^n:/ { n[substr($1, 3)] = $2 }
	END { for (c in n) printf "%d\t%s\t%s\t%s\n", n[c], c, a[c] + 0, b[c] + 0 }' "$dir/random.probe.tsv" "$dir/corrmask.probe.tsv" |
	sort -k1,1nr | awk -F '\t' '{ printf "%s (%d)\t%s\t%s\n", $2, $1, $3, $4 }' > "$dir/f1.tsv"
for terminal in svg png; do "$(dirname "$0")/plot.sh" demo "$dir" $terminal; done
