#!/usr/bin/env bash
# fig4-table.sh DIR FILE...: means over trials with a paired t test; DIR/points.tsv gets the points of the figure.
# shellcheck disable=SC2059,SC2034   # formats in variables; columns that are not shown
. "$(dirname "$0")/common.sh"
dir=$1
shift
# exp, gamma, trials, epochs, mean and sd of random, CorrMask and their gap, t (all in points of accuracy), losses, p
cat "$@" | awk -F '\t' "$(cat "$(dirname "$0")/stats.awk")"'
	{
		k = $1 "\t" $2
		if (!(k in n))
			key[++keys] = k
		d = $7 - $5
		n[k]++; epochs[k] = $4
		r[k] += $5; rr[k] += $5 * $5; c[k] += $7; cc[k] += $7 * $7; g[k] += d; gg[k] += d * d; lr[k] += $6; lc[k] += $8
	}
	END {
		for (i = 1; i <= keys; i++) {
			k = key[i]; m = n[k]; t = paired_t(m, g[k], gg[k])
			printf "%s\t%d\t%d\t%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t%s\t%.4f\t%.4f\t%s\n", k, m, epochs[k], 100 * r[k] / m, 100 * sd(m, r[k], rr[k]),
				100 * c[k] / m, 100 * sd(m, c[k], cc[k]), 100 * g[k] / m, 100 * sd(m, g[k], gg[k]), t, lr[k] / m, lc[k] / m, paired_p(t, m)
		}
	}' | sort -t "$(printf '\t')" -k1,1r -k2,2n > "$dir/points.tsv"
echo "Modularity sweep (CorrMask paper, figure 4, appendix B.2): 60 genes in 3 modules, $(cut -f 4 "$dir/points.tsv" | sort -u) epochs"
echo "Test accuracy of logistic regression on frozen [CLS], in percent, mean (sd); the gap is paired by trial, p two-sided"
echo
row() { printf '%-6s %5s %6s %7s  %-14s %-14s %-15s %7s %8s   %-8s %s\n' "$@"; }
row Exp gamma trials at-most random CorrMask gap t p "paper's gap" 'loss: random CorrMask'
while IFS="$(printf '\t')" read -r exp gamma n _ r rs c cs g gs t lr lc p; do
	spread() { [ "$n" -gt 1 ] && printf '(%.1f)' "$1" || printf '(-)'; } # one trial tells no spread
	claim=$(awk -v g="$gamma" 'BEGIN { print g < 0.25 ? "level" : g == 1 ? "about 10" : "-" }')
	row "$exp" "$gamma" "$n" "$(awk -v g="$gamma" 'BEGIN { printf "%.1f", 100 * (g + (1 - g) / 3) }')" \
		"$(printf '%.1f' "$r") $(spread "$rs")" "$(printf '%.1f' "$c") $(spread "$cs")" "$(printf '%+.1f' "$g") $(spread "$gs")" \
		"$([ "$t" = NA ] && echo NA || printf '%.2f' "$t")" "$p" "$claim" "$(printf '     %.3f %.3f' "$lr" "$lc")"
done < "$dir/points.tsv"
echo
echo "at-most: the highest possible accuracy, gamma + (1 - gamma) / 3, because an incoherent sample carries no information about its label."
