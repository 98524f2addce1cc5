#!/usr/bin/env bash
# r2mae/linear-table.sh table5|table9 DIR SAME: the table from DIR/SPECTRUM-SEED.simulate.tsv and .theory.tsv, beside the paper's values.
. "$(dirname "$0")/../tables.sh"
table=$1 dir=$2 same=$3
centre=0.55
[ "$table" = table5 ] || centre=0.45

# spectrum, seed, simulate or theory, ratio, retention, risk
for f in "$dir"/*.{simulate,theory}.tsv; do
	name=${f##*/} name=${name%.tsv} kind=${name##*.} name=${name%.*}
	awk -F '\t' -v OFS='\t' -v spectrum="${name%-*}" -v seed="${name##*-}" -v kind="$kind" '
		FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
		{ print spectrum, seed, kind, $1, $2, $column["risk"] }' "$f"
done > "$dir/risks.in"
# The differences: ways to draw the ratio, and a fixed ratio, of each spectrum; simulated, in theory, and the paper's
{
	printf 'spectrum\tkind\tarm\tseed\trisk\n'
	awk -F '\t' -v OFS='\t' -v table="$table" -v centre="$centre" '
		FNR == NR { if ($1 == table) { print $2, "paper", "lowest fixed", $3, $5; print $2, "paper", "fixed " centre, $3, $6; print $2, "paper", "R2MAE", $3, $7 } next }
		$5 != "fixed" { print $1, $3, $5, $2, $6; next }
		$4 + 0 == centre + 0 { print $1, $3, "fixed " centre, $2, $6 }
		{ k = $1 SUBSEP $3 SUBSEP $2 }
		!(k in low) || $6 < low[k] { low[k] = $6 }
		END { for (k in low) { split(k, part, SUBSEP); print part[1], part[2], "lowest fixed", part[3], low[k] } }' "$here/r2mae/linear-paper.tsv" "$dir/risks.in"
} > "$dir/risks.tsv"
there='independent coupled R2MAE'
for fixed in "fixed $centre" "lowest fixed"; do for way in $there; do pairs+=(--compare "$way:$fixed"); done; done
differences --within spectrum,kind --pair seed --metrics risk "$dir/risks.tsv" > "$dir/differences.tsv"

awk -F '\t' -v table="$table" -v centre="$centre" -v same="$same" '
	FNR == NR { if ($1 == table) { paper[$2, $3] = $4 "\t" $5 "\t" $6 "\t" $7; list[$2] = list[$2] " " $3 } ; next }
	$5 == "fixed" && (!(($1, $2, $3) in low) || $6 < low[$1, $2, $3]) { low[$1, $2, $3] = $6; at[$1, $2, $3] = $4 }
	{ risk[$1, $2, $3, $5 == "fixed" ? $4 + 0 : $5] = $6; if ($5 != "fixed") range = $4 }
	function line(name, seed, v, p) {
		printf "%-8s %4s  %7s %8s %7s %11s %8s   %7s %8s %7s %7s\n", name, seed, v[1], v[2], v[3], v[4], v[5], p[1], p[2], p[3], p[4]
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
	}' "$here/r2mae/linear-paper.tsv" "$dir/risks.in"
awk -F '\t' -v centre="$centre" "$by_name"'
	FILENAME ~ /risks\.tsv$/ { if ($c["kind"] != "theory") risk[$c["spectrum"], $c["arm"], $c["seed"]] = $c["risk"]; seed[$c["seed"]]; next }
	{ at = $c["spectrum"] SUBSEP $c["arm"] SUBSEP $c["reference"] }
	$c["kind"] == "theory" { theory[at] = sprintf("%12s", sprintf("%+.4f", $c["difference"])); next }
	{
		below = 0
		for (k in seed)
			below += ($c["spectrum"], $c["arm"], k) in risk && risk[$c["spectrum"], $c["arm"], k] < risk[$c["spectrum"], $c["reference"], k]
		text[at] = sprintf("%+.4f (%s) %7d of %d", $c["difference"], $c["sd"] == "NA" ? "-" : sprintf("%.4f", $c["sd"]), below, $c["n"])
	}
	END {
		printf "\n%-8s %-34s %16s %12s %12s\n", "", "difference over seeds", "mean (sd)", "below 0", "theory"
		spectra = split("beta latent", spectrum, " ")
		ways = split("independent coupled R2MAE", way, " ")
		for (s = 1; s <= spectra; s++)
			for (f = 1; f <= 2; f++)
				for (w = 1; w <= ways; w++) {
					fixed = f == 1 ? "fixed " centre : "lowest fixed"
					at = spectrum[s] SUBSEP way[w] SUBSEP fixed
					printf "%-8s %-34s %s%s\n", spectrum[s], (w == 3 ? "paper: " : "") way[w] " - " fixed, text[at], theory[at]
				}
		print ""
		print "independent: a draw of its own decides whether a row is kept. coupled: the draw of its ratio decides, so kept rows have lower ratios."
		print "The lowest fixed risk is the lowest of 41 simulated ones, so it is lower than the risk of a ratio chosen beforehand."
	}' "$dir/risks.tsv" "$dir/differences.tsv"
rm "$dir/risks.in"
