#!/usr/bin/env bash
# r2mae-linear-table.sh table5|table9 DIR SAME: the table from DIR/SPECTRUM-SEED.simulate.tsv and .theory.tsv, beside the paper's values.
. "$(dirname "$0")/common.sh"
table=$1 dir=$2 same=$3
stats=$(cat "$here/stats.awk")
centre=0.55
[ "$table" = table5 ] || centre=0.45

# spectrum, seed, simulate or theory, ratio, retention, risk
for f in "$dir"/*.tsv; do
	name=${f##*/} name=${name%.tsv} kind=${name##*.} name=${name%.*}
	awk -F '\t' -v OFS='\t' -v spectrum="${name%-*}" -v seed="${name##*-}" -v kind="$kind" '
		FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
		{ print spectrum, seed, kind, $1, $2, $column["risk"] }' "$f"
done | awk -F '\t' -v table="$table" -v centre="$centre" -v same="$same" "$stats"'
	FNR == NR { if ($1 == table) { paper[$2, $3] = $4 "\t" $5 "\t" $6 "\t" $7; list[$2] = list[$2] " " $3 } ; next }
	$5 == "fixed" && (!(($1, $2, $3) in low) || $6 < low[$1, $2, $3]) { low[$1, $2, $3] = $6; at[$1, $2, $3] = $4 }
	{ risk[$1, $2, $3, $5 == "fixed" ? $4 + 0 : $5] = $6; if ($5 != "fixed") range = $4 }
	function line(name, seed, v, p) {
		printf "%-8s %4s  %7s %8s %7s %11s %8s   %7s %8s %7s %7s\n", name, seed, v[1], v[2], v[3], v[4], v[5], p[1], p[2], p[3], p[4]
	}
	function difference(spectrum, what, from, label,   i, n, sum, square, below, d, t) {
		for (i = 1; i <= seeds; i++) {
			d = risk[spectrum, seed[i], "simulate", what] - (from == "low" ? low[spectrum, seed[i], "simulate"] : risk[spectrum, seed[i], "simulate", centre])
			n++; sum += d; square += d * d; below += d < 0
			t += risk[spectrum, seed[i], "theory", what] - (from == "low" ? low[spectrum, seed[i], "theory"] : risk[spectrum, seed[i], "theory", centre])
		}
		printf "%-8s %-34s %+.4f (%.4f) %7d of %d %12s\n", spectrum, label, sum / n, sd(n, sum, square), below, n, sprintf("%+.4f", t / n)
	}
	function paper_difference(spectrum, from,   i, n, sum, square, below, d, v) {
		for (i = 1; i <= seeds; i++) {
			split(paper[spectrum, seed[i]], v, "\t")
			d = v[4] - v[from == "low" ? 2 : 3]
			n++; sum += d; square += d * d; below += d < 0
		}
		printf "%-8s %-34s %+.4f (%.4f) %7d of %d\n", spectrum, "paper: R2MAE - " (from == "low" ? "lowest fixed" : "fixed " centre), sum / n, sd(n, sum, square), below, n
	}
	END {
		printf "R2MAE paper, %s: linear model, eigenvalues from 1 to 10 (beta: Beta(1, 10); latent: I + W W'"'"')\n", table == "table5" ? "table 5" : "table 9"
		printf "Risks are shares of the risk of predicting 0. Ratios by row: %s. The simulations of a seed share: %s.\n\n", range, same
		split("best lowest fixed independent coupled", h, " ")
		split("best lowest fixed R2MAE", k, " ")
		printf "%-14s %44s   %30s\n", "", "here", "paper"
		h[3] = k[3] = "at " centre
		line("spectrum", "seed", h, k)
		for (s = 1; s <= 2; s++) {
			spectrum = s == 1 ? "beta" : "latent"
			seeds = split(list[spectrum], seed, " ")
			split("0 0 0 0 0", mean, " ")
			split("0 0 0 0", theirs, " ")
			for (i = 1; i <= seeds; i++) {
				key = spectrum SUBSEP seed[i] SUBSEP "simulate"
				v[1] = at[key]; v[2] = low[key]; v[3] = risk[key, centre]; v[4] = risk[key, "independent"]; v[5] = risk[key, "coupled"]
				split(paper[spectrum, seed[i]], p, "\t")
				for (j = 1; j <= 5; j++) { mean[j] += v[j] / seeds; v[j] = sprintf(j == 1 ? "%.2f" : "%.3f", v[j]) }
				for (j = 1; j <= 4; j++) theirs[j] += p[j] / seeds
				line(spectrum, seed[i], v, p)
			}
			for (j = 1; j <= 5; j++) mean[j] = sprintf("%.3f", mean[j])
			for (j = 1; j <= 4; j++) theirs[j] = sprintf("%.3f", theirs[j])
			line(spectrum, "mean", mean, theirs)
		}
		printf "\n%-8s %-34s %16s %12s %12s\n", "", "difference over seeds", "mean (sd)", "below 0", "theory"
		for (s = 1; s <= 2; s++) {
			spectrum = s == 1 ? "beta" : "latent"
			seeds = split(list[spectrum], seed, " ")
			difference(spectrum, "independent", "centre", "independent - fixed " centre)
			difference(spectrum, "coupled", "centre", "coupled - fixed " centre)
			paper_difference(spectrum, "centre")
			difference(spectrum, "independent", "low", "independent - lowest fixed")
			difference(spectrum, "coupled", "low", "coupled - lowest fixed")
			paper_difference(spectrum, "low")
		}
		print ""
		print "independent: a draw of its own decides whether a row is kept. coupled: the draw of its ratio decides, so kept rows have lower ratios."
		print "The lowest fixed risk is the lowest of 41 simulated ones, so it is lower than the risk of a ratio chosen beforehand."
	}' "$here/r2mae-linear-paper.tsv" -
