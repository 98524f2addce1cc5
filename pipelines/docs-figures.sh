#!/usr/bin/env bash
# docs-figures.sh: draw the figures of docs from the tables next to them. `make docs-figures` calls it.
# shellcheck disable=SC2016   # programs of awk
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8
tables=docs/experiments/tables
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A program for rows finds the columns of a table by name.
read_table='NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } '
rows() { # FILE PROGRAM: run awk on the lines of a table; c["name"] is a column's number
	awk -F '\t' -v OFS='\t' "$read_table$2" "$tables/$1.tsv"
}
draw() { # NAME VALUES OTHERS [INCLUDE] < panel, row, value, low, high, other
	cat > "$work/$1.tsv"
	gnuplot -e "table = '$work/$1.tsv'; out = 'docs/experiments/$1.svg'; values = '$2'; others = '$3'; include = '${4:-}'" pipelines/forest.gp
	pipelines/dark.sh "docs/experiments/$1.svg"
}

# the best method without a network minus random masks: data, metric, difference
rows ties-summary '$c["training"] == "long" && $c["method"] ~ /^(expression|50 components|naive Bayes|median order, random masks)$/ {
	for (m = 1; m <= split("few_macro_f1 macro_f1", name, " "); m++) {
		k = $c["data"] OFS name[m]
		x = $c[name[m]] + 0
		if ($c["method"] ~ /masks/) base[k] = x; else if (x > best[k]) best[k] = x } }
	END { for (k in base) print k, best[k] - base[k] }' > "$work/best"
rows ties-differences '$c["training"] == "long" && $c["method"] == "median order, CorrMask" && $c["metric"] !~ /knn/ {
	print $c["metric"], $c["data"], $c["mean"], $c["split_low"], $c["split_high"] }' |
	awk -F '\t' -v OFS='\t' 'NR == FNR { best[$1, $2] = $3; next }
		BEGIN { title["R"] = "Partner reliance R (nats)"; title["few_macro_f1"] = "Macro F1, five labels a class"; title["macro_f1"] = "Macro F1, all labels" }
		{ print title[$1], $2, $3, $4, $5, (($2, $1) in best ? best[$2, $1] : "NA") }' "$work/best" - |
	draw forest "CorrMask minus random masks, 95 % interval, / not corrected for the number of comparisons" "best method without a network minus random masks"

rows reliance-differences '$c["reference"] == "random masks" { print ($c["experiment"] == "demo" ? "simulated, 3 seeds" : "bone marrow, 8 seeds"), $c["arm"], $c["difference"], $c["low"], $c["high"], "NA" }' |
	draw reliance "partner reliance R minus that of random masks (nats), / 95 % interval" ""

rows table6-differences '$c["method"] == "CorrMask" { print ($c["metric"] ~ /^fine/ ? "fine-tuned" : "linear probe"),
	($c["metric"] ~ /macro/ ? "macro F1" : $c["metric"] ~ /rare/ ? "F1 of the rarest third" : "accuracy"), $c["mean"], $c["low"], $c["high"], "NA" }' |
	draw table6 "CorrMask minus random masks, 95 % interval over five seeds" ""

rows fig4 '$c["run"] == "table" { print "Exp(0.1) with " $c["exp"], "gamma " $c["gamma"], $c["gap"], $c["gap_low"], $c["gap_high"], "NA" }' |
	draw fig4 "masks by module minus random masks, points of accuracy, / 95 % interval" ""

rows genesets 'function edges(k) { return (k >= 1000 ? int(k / 1000) sprintf(",%03d", k % 1000) : k) " edges" } { print "Reactome", $c["graph"] ", " edges($c["k"]), $c["reactome_ratio"], "NA", "NA", "NA"
	print "protein complexes", $c["graph"] ", " edges($c["k"]), $c["complexes_ratio"], "NA", "NA", "NA" }' |
	draw genesets "pairs of one gene set among the edges, times random pairs; / line at 1" "" 1

rows genes-map '$c["which"] == "all" { print $c["sets"], $c["graph"], $c["fold"], $c["fold_low"], $c["fold_high"], "NA" }' |
	draw genes-map "pairs of one gene set among the edges, times chance, / 95 % interval over genes; line at 1" "" "0 1"

rows r2mae-cells-genes '$c["low"] != "NA" && $c["masked"] == ".3" { print $c["data"], $c["method"], $c["gap"], $c["low"], $c["high"], "NA" }' |
	draw r2mae-cells "Pearson correlation of masked genes minus that of a fixed rate / of 0.25 (30 % masked, recalibrated), 95 % interval over the seeds" ""

rows panel '$c["data"] ~ /^mean of/ && $c["gap"] != "NA" && $c["method"] !~ /^(mean|untrained)|-decoder$/ { print $c["k"] " genes", $c["method"], $c["gap"], $c["low"], $c["high"], "NA" }' |
	draw panel "Pearson correlation of a gene minus that of Poisson regression / on the panel, mean of six sets, 95 % interval over the sets" ""

rows bmfm-ontology 'BEGIN { name["wced+moved-hce"] = "moved-hce: half of the labels a term too high"; name["wced+moved-ce"] = "moved-ce: the same, cross-entropy"
		name["wced+dropped-ce"] = "dropped-ce: half of the labels dropped"; name["wced+term-ce"] = "term-ce: all labels, cross-entropy"; name["wced+hce"] = "hce: all labels, ontology" }
	$c["arm"] in name { print "macro F1 of terms", name[$c["arm"]], $c["head_macro_f1"], $c["head_macro_f1_low"], $c["head_macro_f1_high"], "NA"
	print "exact term", name[$c["arm"]], $c["head_exact"], $c["head_exact_low"], $c["head_exact_high"], $c["head_exact"] + $c["head_finer"] }' |
	draw bmfm-ontology "share of test cells, or F1; 95 % interval of the mean" "exact or finer term (no interval)"

awk -f pipelines/bars.awk docs/speed.tsv > docs/speed.svg

sed '1s/masking_rate/arm/; s/R2MAE/r2mae/' $tables/r2mae-other.tsv > "$work/summary.tsv"
pipelines/plot.sh other/other "$work" svg > docs/experiments/r2mae-other.svg
pipelines/dark.sh docs/experiments/r2mae-other.svg
