#!/usr/bin/env bash
# perturb/expression.sh COUNTS STATE FROM TO: gene, symbol, and Welch's t of log(1 + 10^4 count / n_counts) in the cells of FROM minus those of TO.
. "$(dirname "$0")/../common.sh"
[ $# = 4 ] || usage
scview -q --vocab "$1" | awk -F '\t' -v from="$3" -v to="$4" '
	NR == FNR { if (FNR > 1) { id[$1] = $2; symbol[$1] = $3 } next }
	FNR == 1 { next }
	{
		s = $1 == from ? 1 : $1 == to ? 2 : 0
		if (!s)
			next
		cells[s]++
		n = split($3, gene, " ")
		split($4, count, " ")
		for (i = 1; i <= n; i++) {
			v = log(1 + 1e4 * count[i] / $2)
			sum[s, gene[i]] += v
			square[s, gene[i]] += v * v
		}
	}
	function variance(s, g) { return (square[s, g] - sum[s, g] ^ 2 / cells[s]) / (cells[s] - 1) }
	END {
		print "gene\tsymbol\tt"
		for (g in id) {
			se = variance(1, g) / cells[1] + variance(2, g) / cells[2]
			if (se > 0)
				printf "%s\t%s\t%.6g\n", id[g], symbol[g], (sum[1, g] / cells[1] - sum[2, g] / cells[2]) / sqrt(se)
		}
	}' - <(scview -q --columns "$2,n_counts,gene,count" "$1") | { IFS= read -r names && echo "$names" && sort -t $'\t' -k 3,3gr; }
