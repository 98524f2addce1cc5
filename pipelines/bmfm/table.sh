#!/usr/bin/env bash
# The tables of the experiments on objectives (objectives.mk) from the scores under INPUTS/runs; runs without scores are left out. FOLDER/points.tsv has
# the values, summary.tsv their means, differences.tsv the paired differences, effects.tsv those of a masking rate and of labels over all objectives.
#     bmfm/table.sh FOLDER INPUTS NAME "ARM..." "SEED..." DATA LABEL "METRIC=CAPTION,..." HOW
. "$(dirname "$0")/../tables.sh"
[ $# = 9 ] || usage
dir=$1 inputs=$2 name=$3 arms=$4 seeds=$5 data=$6 label=$7 how=$9
IFS=, read -ra metrics <<< "$8"
base=${arms%% *}
rm -f "$dir"/*.table

{
	printf 'arm\tseed\tmetric\tvalue\n'
	collect "$inputs/runs" "$(tr ' ' '\n' <<< "expression pca naive-bayes untrained $arms" | awk '!seen[$0]++')" "$seeds"
} > "$dir/points.tsv"
if [ "$name" = bmfm-learnability ] && ! cut -f 3 "$dir/points.tsv" | grep -x gated_genes > /dev/null; then
	least=$(sed -n 's/^MIN_EXPRESSED = //p' "$inputs/settings")
	echo "$name: no network has two genes with ${least:-100} expressed pairs in the test cells: expected a lower MIN_EXPRESSED" >&2
	exit 1
fi
means --within metric "$dir/points.tsv" > "$dir/summary.tsv"

# Each arm is compared with the first one, with the same arm without one of its parts, and with what has learned nothing from an objective. The ends of
# intervals (_low, _high) are not compared. With DATA, the splits of the cells overlap.
splits=()
[ -z "$data" ] || splits=(--splits 3:1)
awk -F '\t' -v metrics="$(printf '%s,' "${metrics[@]%%=*}")" 'NR == 1 || ($3 !~ /_(low|high)$/ && index("," metrics, "," $3 ","))' "$dir/points.tsv" > "$dir/compared.tsv"
those_in "$dir/compared.tsv"
for arm in $arms; do
	for other in "$base" expression pca naive-bayes untrained; do pair "$arm" "$other"; done
	for part in $(tr + ' ' <<< "${arm#"${arm%%+*}"}"); do
		less=${arm/+$part/}
		[[ " $base untrained " = *" $less "* ]] || pair "$arm" "$less"
	done
	parts=${arm#"${arm%%+*}"}
	[ -z "$parts" ] || pair "$arm" "untrained$parts"
done
differences --pair seed --within metric "${splits[@]}" "$dir/compared.tsv" > "$dir/differences.tsv"

# A part over all arms that are there with it and without it. Pairs of one seed have the same cells.
{
	printf 'part\tarm\trest\tseed\tmetric\tvalue\n'
	for part in r2mae hce; do
		awk -F '\t' -v OFS='\t' -v part="$part" 'NR > 1 { with = ("+" $1 "+") ~ ("[+]" part "[+]"); rest = $1; sub("[+]" part, "", rest); print part, (with ? "with" : "without"), rest, $2, $3, $4 }' "$dir/compared.tsv"
	done
} > "$dir/parts.tsv"
rm -f "$dir/effects.tsv"
! cut -f 2 "$dir/parts.tsv" | grep -x with > /dev/null ||
	armstat compare -q --compare with:without --within part,metric --pair rest,seed --cluster seed "$dir/parts.tsv" > "$dir/effects.tsv"
rm "$dir/parts.tsv" "$dir/compared.tsv"

echo "corrmask $name: ${data:-simulated cells (scsim)}, label $label"
echo "$how; seeds $seeds"
first=$inputs/split-${seeds%% *}
[ ! -e "$first/group" ] || echo "cells: $(split_by "$first"), a quarter for the test"
sed -n '/^warning: [0-9]* cells have no term/p' "$inputs/log/terms-split-${seeds%% *}.log" 2> /dev/null || true
echo "Means over seeds, with 95 % intervals of the mean (t distribution; NA: one seed)."
[ -z "$data" ] || echo "The splits overlap, so these intervals are too narrow; those of the differences are wider for it (Nadeau and Bengio 2003)."
n=0

# matrix METRIC CAPTION [BASELINE]: objectives below each other, what is added to them side by side. With BASELINE, differences from it.
matrix() {
	n=$((n + 1))
	echo
	awk -F '\t' -v metric="$1" -v arms="$arms" -v from="${3:-}" "$tables$by_name"'
		BEGIN { '"$baselines"' }
		$c["metric"] == metric && (from == "" || $c["reference"] == from) {
			x = $c[from == "" ? "mean" : "difference"]
			text[$c["arm"]] = x == "NA" ? x : num(x, from == "" ? "%.3f" : "%+.3f") " [" ($c["low"] == "NA" ? "NA" : num($c["low"], "%.3f") ", " num($c["high"], "%.3f")) "]"
		}
		END {
			k = split("expression pca naive-bayes untrained " arms, arm, " ")
			for (i = 1; i <= k; i++) if (arm[i] in text) {
				at = index(arm[i] "+", "+")
				put(substr(arm[i], 1, at - 1), at > length(arm[i]) ? "alone" : substr(arm[i], at), text[arm[i]])
			}
			table("objective")
		}' "$dir/$([ -z "${3:-}" ] && echo summary || echo differences).tsv" | as_table "$dir/$n-$1.table" "$2"
}
for m in "${metrics[@]}"; do
	matrix "${m%%=*}" "${m#*=}"
	[[ $m != *f1=* && $m != avg_bio* ]] || for other in expression pca naive-bayes; do
		! awk -F '\t' -v m="${m%%=*}" -v o=$other "$by_name"'$c["metric"] == m && $c["reference"] == o && $c["n"] > 0 { n++ } END { exit !n }' \
			"$dir/differences.tsv" || matrix "${m%%=*}" "${m#*=} minus that of $(awk "BEGIN { $baselines; print name[\"$other\"] }")" $other
	done
done

# the column metric of a table gets the captions
captions='BEGIN { k = split(all, one, ","); for (i = 1; i <= k; i++) { split(one[i], m, "="); caption[m[1]] = m[2] } }'
if [ -e "$dir/effects.tsv" ] && awk -F '\t' "$by_name"' $c["n"] > 0 { n++ } END { exit !n }' "$dir/effects.tsv"; then
	echo
	awk -F '\t' -v all="$8" "$tables$captions$by_name"'
		BEGIN { print "part\tmetric\tpairs\tdifference\tfrom\tto\tp (Holm)" }
		function known(x, f) { return x == "NA" ? x : num(x, f) }
		$c["n"] > 0 { print "+" $c["part"] "\t" caption[$c["metric"]] "\t" $c["n"] "\t" num($c["difference"], "%+.3f") "\t" known($c["low"], "%+.3f") "\t" \
			known($c["high"], "%+.3f") "\t" known($c["p_corrected"], "%.2g") }' \
		"$dir/effects.tsv" | as_table "$dir/$((++n))-effects.table" "A part, over all arms that are there with it and without it; the seed is the unit"
fi

# Winners of one objective among those of another, each seed for itself
if [ "$name" = bmfm-learnability ]; then
	echo
	{
		printf 'gate\twinners of\twinners of the other\tseed\tfirst\tsecond\tboth\todds ratio\tp\n'
		for gate in gated ungated; do
			for one in $arms; do
				for two in $arms; do
					for k in $seeds; do
						a=$inputs/runs/$one-$k b=$inputs/runs/$two-$k
						[[ $one < $two && -e $a/$gate.genes.tsv && -e $b/$gate.genes.tsv ]] || continue
						awk -F '\t' -v OFS='\t' 'BEGIN { print "gene", "label" } $7 == "winner" { print $1, "winner" }' "$b/$gate.genes.tsv" > "$dir/winners"
						[ "$(wc -l < "$dir/winners")" -gt 1 ] || continue
						least=$(sed -n 's/^MIN_EXPRESSED = //p' "$inputs/settings")
						gate_option=()
						[ $gate = gated ] || gate_option=(--ungated)
						scmetric learnability -q "${gate_option[@]}" --min-expressed "${least:-100}" --groups "$dir/winners" "$a/genes.tsv" 2> /dev/null |
							awk -F '\t' -v OFS='\t' -v gate=$gate -v one="$one" -v two="$two" -v k="$k" '{ v[$1] = $2 }
								END { if ("p:winner" in v) print gate, one, two, k, v["winners"], v["group_genes:winner"], v["group_winners:winner"],
									v["odds_ratio:winner"] == "nan" ? "NA" : sprintf("%.3g", v["odds_ratio:winner"]), sprintf("%.2g", v["p:winner"]) }'
					done
				done
			done
		done
	} | as_table "$dir/$((++n))-overlap.table" "Genes that win in both of two arms (Fisher's exact test; first, second: winners of each)"
	rm -f "$dir/winners"
	echo
	{
		printf 'gate\tarm\tseed\tgroup\tgenes\twinners\todds ratio\tp (Benjamini and Hochberg)\n'
		for gate in gated ungated; do
			for arm in $arms; do
				for k in $seeds; do
					learned=$inputs/runs/$arm-$k/$gate.learned.tsv
					[ ! -e "$learned" ] || awk -F '\t' -v OFS='\t' -v gate=$gate -v arm="$arm" -v k="$k" '{ v[$1] = $2 }
						sub(/^p_bh:/, "", $1) && $2 < .05 { g = $1; print gate, arm, k, g, v["group_genes:" g], v["group_winners:" g],
							v["odds_ratio:" g] == "nan" ? "NA" : sprintf("%.3g", v["odds_ratio:" g]), sprintf("%.2g", $2) }' "$learned"
				done
			done
		done
	} | as_table "$dir/$((++n))-groups.table" "Groups of genes with more or fewer winners than the others, each training for itself; only those with p below .05"
fi

echo
awk -F '\t' -v all="$8" -v seeds="$(wc -w <<< "$seeds")" -v data="$data" "$tables$captions$by_name"'
	{ count_p() }
	shown() { list = list sprintf("  %s - %s, %s: %+.3f (%.3f to %.3f), p %.2g\n", $c["arm"], $c["reference"], caption[$c["metric"]], $c["difference"], $c["low"], $c["high"], $c["p_corrected"]) }
	$c["detectable"] != "NA" { n[$c["metric"]]++; detectable[$c["metric"], n[$c["metric"]]] = $c["detectable"] + 0 }
	function usual(m,    i, d) {
		for (i = 1; i <= n[m]; i++) d[i] = detectable[m, i]
		return median(d, n[m])
	}
	END {
		if (seeds < 2) { print "One seed: nothing can be said about other trainings."; exit }
		printf "%s\n%s", counted(" (differences.tsv)"), after_holm(list)
		k = split(all, one, ",")
		for (i = 1; i <= k; i++) { split(one[i], m, "="); if (m[1] in n && m[1] !~ /_genes$/) what = what (what == "" ? "" : ", ") sprintf("%s %.3f", m[2], usual(m[1])) }
		if (what != "") printf "What this cannot tell: with %d seeds a difference of one arm is found in 80 %% of cases only from this size on: %s (median); and one small network on %s cannot tell what a larger one on more cells would gain.\n", seeds, what, (data == "" ? "simulated cells" : "these cells")
	}' "$dir/differences.tsv" | tee "$dir/findings.txt"
echo
stage_times_text "$inputs/log"
