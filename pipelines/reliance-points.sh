#!/usr/bin/env bash
# Partner reliance from the losses of make reliance.
#     reliance-points.sh RELIANCE "STRATEGY..." "SEED..." POINTS SUMMARY
# POINTS: one line a network: strategy, seed, loss with visible and with hidden partners, R, standard error of R over the cells.
# SUMMARY: one line a strategy: name, seeds, mean loss visible, hidden, mean and sd of R; then, for the first strategy's R minus this one's, paired by
# seed: mean, sd, t, p, the difference that this many seeds find in 80 % of experiments, and the standard error of the mean over the cells.
# Both are empty if there was no target.
. "$(dirname "$0")/common.sh"
[ $# = 5 ] || usage
dir=$1 strategies=$2 seeds=$3 points=$4 summary=$5
stats=$(cat "$here/stats.awk")
for s in $strategies; do
	for k in $seeds; do
		# the rows of both streams are the same cells and targets in the same order
		paste "$dir/$s-$k.hidden.cells" "$dir/$s-$k.visible.cells" | sed "1d; s/^/$s\t$k\t/"
	done
done | awk -F '\t' -v strategies="$strategies" -v seeds="$seeds" -v points="$points" "$stats"'
	BEGIN {
		OFS = "\t"
		strategy_n = split(strategies, strategy, " ")
		seed_n = split(seeds, seed, " ")
	}
	$3 != $8 || $4 != $9 || $5 != $10 { print "reliance: " $1 "-" $2 ": rows of hidden and visible partners differ" > "/dev/stderr"; exit bad = 1 }
	$5 {
		k = $1 SUBSEP $2
		n[k]++
		hidden[k] += $6
		visible[k] += $11
		if (!($3 in number)) cell[number[$3] = ++cells] = $3
		probed[k, $3]++
		r[k, $3] += $6 - $11
	}
	# Standard error over the cells of a sum of R over the networks in list, each with its sign; NA with one cell
	function error(list, sign, m,  i, c, k, x, mean, square, known) {
		for (c = 1; c <= cells; c++) {
			x = 0
			for (i = 1; i <= m; i++) {
				k = list[i]
				x += sign[i] * (r[k, cell[c]] - (hidden[k] - visible[k]) / n[k] * probed[k, cell[c]]) / n[k]
			}
			square += x * x
		}
		return cells > 1 ? sqrt(square * cells / (cells - 1)) : "NA"
	}
	END {
		if (bad)
			exit 1
		printf "" > points
		if (!cells)
			exit 0
		base = strategy[1]
		for (i = 1; i <= strategy_n; i++) {
			s = strategy[i]
			sum = square = loss_h = loss_v = gap = gaps = m = 0
			for (j = 1; j <= seed_n; j++) {
				k = s SUBSEP seed[j]
				R[k] = (hidden[k] - visible[k]) / n[k]
				one[1] = k
				whole[1] = 1
				print s, seed[j], visible[k] / n[k], hidden[k] / n[k], R[k], error(one, whole, 1) > points
				loss_v += visible[k] / n[k]
				loss_h += hidden[k] / n[k]
				sum += R[k]
				square += R[k] ^ 2
				g = R[base, seed[j]] - R[k]
				gap += g
				gaps += g * g
				pair[++m] = base SUBSEP seed[j]
				sign[m] = 1 / seed_n
				pair[++m] = k
				sign[m] = -1 / seed_n
			}
			t = paired_t(seed_n, gap, gaps)
			d = sd(seed_n, gap, gaps)
			line = s OFS seed_n OFS loss_v / seed_n OFS loss_h / seed_n OFS sum / seed_n OFS (seed_n > 1 ? sd(seed_n, sum, square) : "NA")
			if (s != base)
				line = line OFS gap / seed_n OFS (seed_n > 1 ? d : "NA") OFS t OFS paired_p(t, seed_n) OFS detectable(seed_n, d) OFS error(pair, sign, m)
			print line
		}
	}' > "$summary"
