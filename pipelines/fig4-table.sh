#!/usr/bin/env bash
# fig4-table.sh DIR FILE...: means over trials with a paired t test; DIR/points.tsv gets the points of the figure.
# shellcheck disable=SC2059,SC2034   # formats in variables; columns that are not shown
. "$(dirname "$0")/common.sh"
dir=$1
shift
# exp, gamma, trials, epochs, mean and sd of random, CorrMask and their gap, t (all in points of accuracy), losses, p, untrained, nearest mean
cat "$@" | awk -F '\t' "$(cat "$here/stats.awk")"'
	{
		k = $2 "\t" $3
		if (!(k in n))
			key[++keys] = k
		d = $8 - $6
		n[k]++; epochs[k] = $5
		r[k] += $6; rr[k] += $6 * $6; c[k] += $8; cc[k] += $8 * $8; g[k] += d; gg[k] += d * d; lr[k] += $7; lc[k] += $9
		u[k] += $10; m[k] += $11
	}
	END {
		for (i = 1; i <= keys; i++) {
			k = key[i]; N = n[k]; t = paired_t(N, g[k], gg[k])
			printf "%s\t%d\t%d\t%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t%s\t%.4f\t%.4f\t%s\t%.4f\t%.4f\n", k, N, epochs[k], 100 * r[k] / N, \
				100 * sd(N, r[k], rr[k]), 100 * c[k] / N, 100 * sd(N, c[k], cc[k]), 100 * g[k] / N, 100 * sd(N, g[k], gg[k]), t, lr[k] / N, \
				lc[k] / N, paired_p(t, N), 100 * u[k] / N, 100 * m[k] / N
		}
	}' | sort -t "$(printf '\t')" -k1,1r -k2,2n > "$dir/points.tsv"
echo "Modularity sweep (CorrMask paper, figure 4, appendix B.2): 60 genes in 3 modules, $(cut -f 4 "$dir/points.tsv" | sort -u) epochs"
echo "Test accuracy of logistic regression on frozen [CLS], in percent, mean (sd); the gap is paired by trial, p two-sided"
echo
row() { printf '%-6s %5s %6s %8s %9s  %-14s %-14s %-15s %7s %8s   %-8s %s\n' "$@"; }
row Exp gamma trials nearest untrained random CorrMask gap t p "paper's gap" 'loss: random CorrMask'
while IFS="$(printf '\t')" read -r exp gamma n _ r rs c cs g gs t lr lc p u m; do
	spread() { [ "$n" -gt 1 ] && printf '(%.1f)' "$1" || printf '(-)'; } # one trial tells no spread
	claim=$(awk -v g="$gamma" 'BEGIN { print g < 0.25 ? "level" : g == 1 ? "about 10" : "-" }')
	row "$exp" "$gamma" "$n" "$(printf '%.1f' "$m")" "$(printf '%.1f' "$u")" \
		"$(printf '%.1f' "$r") $(spread "$rs")" "$(printf '%.1f' "$c") $(spread "$cs")" "$(printf '%+.1f' "$g") $(spread "$gs")" \
		"$([ "$t" = NA ] && echo NA || printf '%.2f' "$t")" "$p" "$claim" "$(printf '     %.3f %.3f' "$lr" "$lc")"
done < "$dir/points.tsv"
echo
echo "nearest: the class whose mean rank vector is nearest; no network. untrained: the network with its initial weights. Chance is 33.3."
case $(head -qn 1 "$@" | cut -f 1 | sort -u) in
class) echo "Samples that are not coherent have their signal in random genes, which are drawn once for each class (scsim --random-genes class)." ;;
sample) echo "Samples that are not coherent have their signal in random genes of their own, which tell nothing about the class: at most gamma + (1 - gamma) / 3." ;;
esac
