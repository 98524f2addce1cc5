#!/usr/bin/env bash
# The tables of zeroshot.mk from the scores under FOLDER/runs; runs without scores are left out. FOLDER/points.tsv has the values, with a method
# (an arm, and how it predicts), means.tsv those over seeds, summary.tsv the means of these over the sets, differences.tsv the differences, whose unit
# is the set that was left out.
#     bmfm/zeroshot-table.sh FOLDER "ARM..." "BASELINE..." "SET-SEED..." DATA HOW
. "$(dirname "$0")/../tables.sh"
[ $# = 6 ] || usage
dir=$1 arms=$2 without=$3 splits=$4 data=$5 how=$6
rm -f "$dir"/*.table

{
	printf 'method\tset\tseed\tmetric\tvalue\n'
	for k in $splits; do
		set=$(scview -q -c set "$dir/without-$k/test.counts" | sed -n 2p)
		collect "$dir/runs" "$(tr ' ' '\n' <<< "$without $arms" | awk '!seen[$0]++')" "$k" | awk -F '\t' -v OFS='\t' -v set="$set" -v seed="${k#*-}" '
			BEGIN { how["head"] = "likeliest leaf"; how["leafprobe"] = "probe of leaves"; how["greedy"] = "from the top down"; how["probe"] = "probe" }
			$3 !~ /^avg_/ { i = index($3, "_"); $1 = $1 ", " how[substr($3, 1, i - 1)]; $3 = substr($3, i + 1) }
			{ print $1, set, seed, $3, $4 }'
	done
} > "$dir/points.tsv"
# The cells of a left-out set are nearly the same for every seed, so seeds are averaged first
awk -F '\t' -v OFS='\t' 'NR == 1 { print "method", "set", "metric", "value"; next }
	{ k = $1 OFS $2 OFS $4; if (!(k in n)) order[++rows] = k; n[k]++; if ($5 == "NA") missing[k] = 1; sum[k] += $5 }
	END { for (i = 1; i <= rows; i++) { k = order[i]; print k, (k in missing ? "NA" : sprintf("%.9g", sum[k] / n[k])) } }' "$dir/points.tsv" > "$dir/means.tsv"
means --arm method --within metric "$dir/means.tsv" > "$dir/summary.tsv"

# Measured sets against zeros, one way to decode against the other, and networks against probes of expression and components
there=$(awk -F '\t' 'NR > 1 && !seen[$1]++ { gsub(/ /, "_", $1); print $1 }' "$dir/means.tsv" | tr '\n' ' ')
for arm in $arms; do
	for way in '' ,_probe ,_probe_of_leaves ,_likeliest_leaf ,_from_the_top_down; do
		pair "$arm$way" "${arm/wced/wced-zeros}$way"
		for other in expression pca; do pair "$arm$way" "$other${way:+,_probe_of_leaves}"; done
	done
	pair "$arm,_from_the_top_down" "$arm,_likeliest_leaf"
done
pair pca-shared,_probe_of_leaves pca,_probe_of_leaves
pair pca-shared pca
pairs=("${pairs[@]//_/ }")
awk -F '\t' '$3 ~ /^(metric|accuracy|macro_f1|hierarchical_f1|avg_bio_swept|avg_batch)$/' "$dir/means.tsv" > "$dir/compared.tsv"
differences --arm method --pair set --within metric "$dir/compared.tsv" > "$dir/differences.tsv"
rm "$dir/compared.tsv"

echo "corrmask bmfm-zeroshot: ${data:-simulated cells (scsim)}"
echo "$how; left-out set and seed: $splits"
sed -n '/^warning: [0-9]* cells have no term/p' "$dir/log/h5tok.log" 2> /dev/null || true
echo "Networks and probes learned from the other sets. Values of a set are means over seeds; the last column is the mean over sets and its 95 % interval."
n=0
matrix() { # METRIC CAPTION
	n=$((n + 1))
	echo
	awk -F '\t' -v metric="$1" "$tables$by_name"'
		FILENAME == ARGV[1] { if ($c["metric"] == metric) mean[$c["arm"]] = sprintf("%.3f [%s]", $c["mean"], $c["low"] == "NA" ? "NA" : sprintf("%.3f, %.3f", $c["low"], $c["high"])); next }
		$c["metric"] == metric { put($c["method"], $c["set"], $c["value"] == "NA" ? "NA" : sprintf("%.3f", $c["value"])) }
		END {
			for (i = 1; i <= rows; i++) put(row[i], "mean", mean[row[i]])
			table("method")
		}' "$dir/summary.tsv" "$dir/means.tsv" | as_table "$dir/$n-$1.table" "$2"
}
matrix accuracy "Cells whose predicted term is that of their label or a finer one, by the set that is left out"
matrix coarser "Cells whose predicted term is above that of their label"
matrix macro_f1 "Macro F1 of the terms; a finer one counts as the label"
matrix hierarchical_f1 "F1 of the terms at or above prediction and label"
matrix avg_batch "AvgBatch of the sets, all cells"
matrix avg_bio_swept "AvgBio of the lineages, all cells; arms with +hce have seen the types of all cells but those of the left-out set"

echo
awk -F '\t' "$tables$by_name"'
	function told() { return sprintf("  %s - %s, %s: %+.3f (%s), p %s\n", $c["arm"], $c["reference"], $c["metric"], $c["difference"], $c["low"] == "NA" ? "NA" : sprintf("%.3f to %.3f", $c["low"], $c["high"]), $c["p_corrected"] == "NA" ? "NA" : sprintf("%.2g", $c["p_corrected"])) }
	{ count_p() }
	shown() { list = list told() }
	$c["arm"] ~ /^wced[^-]/ && $c["reference"] ~ /^wced-zeros/ && $c["metric"] ~ /^(accuracy|avg_batch)$/ { zeros = zeros told() }
	$c["detectable"] != "NA" && $c["metric"] == "accuracy" { d[++k] = $c["detectable"] + 0 }
	END {
		if (zeros != "") printf "Measured sets minus zeros (p after Holm):\n%s", zeros
		if (!tests) { print "One set was left out: nothing can be said about others."; exit }
		printf "%s\n%s", counted(" (differences.tsv)"), after_holm(list)
		printf "What this cannot tell: with so few sets a difference in accuracy is found in 80 %% of cases only from %.3f on (median); other sets may differ more.\n", median(d, k)
	}' "$dir/differences.tsv" | tee "$dir/findings.txt"
echo
stage_times_text "$dir/log"
