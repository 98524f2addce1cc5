#!/usr/bin/env bash
# demo/report.sh DEMO PREPARED PRETRAINED RELIANCE "SEED..." DATA LABEL CELLS MAXLEN HOW: print the demo's tables from the losses, probes and logs under
# these folders. HOW is a line on the trainings. The figure draws DEMO/points.tsv and DEMO/macro_f1.tsv.
. "$(dirname "$0")/../tables.sh"
[ $# = 10 ] || usage
dir=$1 prepared=$2 pretrained=$3 reliance=$4 seeds=$5 data=${6:-simulated cells (scsim)} label=$7 cells=$8 maxlen=$9 how=${10}

echo "corrmask demo: $data, label $label"
part() { reported "$prepared/log/scsample-$1.report" cells_out; }
echo "cells: $(part train) to train, $(part test) to test, $(split_by "$prepared")$([ "$cells" = 0 ] || echo "; at most $cells, sampled with a seed (CELLS=0: all)")"
split_note "$prepared" "$prepared/test.tok"
graph=$prepared/log/depgraph.report
edges=$(reported "$graph" edges)
echo "graph: $(reported "$graph" genes_with_neighbours) genes with partners, $edges edges"
# what the cut to MAXLEN genes takes away
encoded=$prepared/log/rankenc-train.report
of=$(reported "$encoded" cells_out) cut=$(reported "$encoded" cells_of_full_length) all_edges=$(reported "$dir/log/depgraph-all-genes.report" edges)
echo "genes: networks read at most $maxlen of each cell, those of highest rank (MAXLEN), and $cut of $of training cells have as many or more"
[ $((2 * edges)) -ge "$all_edges" ] ||
	echo "note: with all genes of the cells the graph has $all_edges edges. CorrMask masks partners by the $edges that are left; a larger MAXLEN keeps more"
echo "networks: $how; seeds $seeds"

# ---- partners ----
"$here/reliance/points.sh" "$reliance" "random corrmask" "$seeds" "$dir"
cp "$reliance/reference.tsv" "$dir/reference.tsv"
echo
[ -s "$dir/points.tsv" ] || echo "How much a network copies from partners cannot be measured here: the graph has too few edges (more cells make more)."
[ ! -s "$dir/points.tsv" ] || {
	scview -q -c target "$reliance/hidden.masked" | awk 'NR > 1 && NF { cells++; for (i = 1; i <= NF; i++) seen[$i]++ || n++ } END { print n + 0 "\t" cells + 0 }' > "$dir/scored.tsv"
	echo "R is over the genes that have partners in their cell: $(cut -f 1 "$dir/scored.tsv") of the $(awk 'NR > 1 && $2 !~ /^</' "$prepared/vocab.tsv" 2> /dev/null | wc -l) genes of the vocabulary"
}
rm -f "$dir/1-partners.table"
[ ! -s "$dir/points.tsv" ] || awk -F '\t' "$tables$by_name"'
	function line(name, v, h, more) { printf "%s\t%.3f\t%.3f\t%s\t%s\n", name, v, h, num(h - v, "%+.3f"), more }
	FILENAME ~ /points\.tsv$/ { each[$c["strategy"]] = each[$c["strategy"]] (each[$c["strategy"]] == "" ? "" : " ") num($c["R"], "%+.3f"); next }
	FILENAME ~ /reference\.tsv$/ { f[$c["masks"]] = $c["frequency"]; m[$c["masks"]] = $c["medians"]; next }
	{ mean[$c["value"], $c["arm"]] = $c["mean"] }
	END {
		print "\tvisible\thidden\tR\tR of each seed"
		line("network, random masks", mean["visible", "random"], mean["hidden", "random"], each["random"])
		line("network, CorrMask masks", mean["visible", "corrmask"], mean["hidden", "corrmask"], each["corrmask"])
		line("table of gene frequencies, no network", f["visible"], f["hidden"])
		line("table of medians of neighbours, no network", m["visible"], m["hidden"])
	}' "$dir/points.tsv" "$dir/reference.tsv" "$dir/summary.tsv" |
	as_table "$dir/1-partners.table" "How much does the network copy a masked gene from its partners? Loss with the partners visible, and hidden; R is the difference"

# ---- cell types ----
{
	printf 'arm\tseed\tmacro_f1\tmacro_f1_low\tmacro_f1_high\tf1_rare\taccuracy\tconverged\n'
	for p in expression pca read $(for s in untrained random corrmask; do for k in $seeds; do echo "$s-$k"; done; done); do
		awk -F '\t' -v OFS='\t' -v p="$p" '{ v[$1] = $2 } END { print (p ~ /-/ ? substr(p, 1, index(p, "-") - 1) : p), (p ~ /-/ ? substr(p, index(p, "-") + 1) : 0), \
			v["macro_f1"], v["macro_f1_low"], v["macro_f1_high"], v["f1_rare"], v["accuracy"], v["converged"] }' "$dir/$p.probe.tsv"
	done
} > "$dir/probes.tsv"
# arm, then means over the seeds: macro F1, its interval, rarest, accuracy, converged
means --metrics macro_f1,macro_f1_low,macro_f1_high,f1_rare,accuracy,converged "$dir/probes.tsv" | awk -F '\t' "$by_name"'
	!($c["arm"] in line) { order[++n] = $c["arm"] }
	{ line[$c["arm"]] = line[$c["arm"]] "\t" $c["mean"] }
	END { for (i = 1; i <= n; i++) print order[i] line[order[i]] }' > "$dir/macro_f1.tsv"
drawn=$(awk -F '\t' '{ v[$1] = $2 } END { n = v["bootstrap_units"]; print n, n < v["cells"] ? "groups" : "cells" }' "$dir/pca.probe.tsv")
echo
awk -F '\t' '
	BEGIN {
		'"$baselines"'
		name["expression"] = name["expression"] ", no network"
		name["pca"] = name["pca"] ", no network"
		name["read"] = "expression, of the genes that networks read"
		name["random"] = "network, random masks"
		name["corrmask"] = "network, CorrMask masks"
		print "\tmacro F1\trarest F1\taccuracy\t95 % interval"
	}
	{ printf "%s\t%.4f\t%.4f\t%.4f\t%s%s\n", name[$1], $2, $5, $6, $3 == "NA" ? "-" : sprintf("%.4f - %.4f", $3, $4), $7 < 1 ? " (did not converge)" : "" }' "$dir/macro_f1.tsv" |
	as_table "$dir/2-types.table" "Linear probe of cell types, test cells. Networks: means over the seeds. First two rows: all genes (the 2,000 that vary most). Interval of macro F1: bootstrap of $drawn"

# ---- in short ----
# There is a difference if a t test over the seeds says so, and if the interval over the test cells (for F1: over the draws of the bootstrap)
# does not include 0. The better baseline is paired with each seed.
best=$(awk -F '\t' '{ f1[$1] = $2 } END { print (f1["expression"] > f1["pca"] ? "expression" : "pca") }' "$dir/macro_f1.tsv")
pairs=(--compare corrmask:random --compare "$best:random" --compare "$best:corrmask")
awk -F '\t' -v OFS='\t' -v best="$best" -v seeds="$seeds" "NR == 1 { print }$by_name"'
	$c["arm"] == best { n = split(seeds, seed, " "); for (i = 1; i <= n; i++) { $c["seed"] = seed[i]; print } }
	$c["arm"] ~ /^(random|corrmask)$/' "$dir/probes.tsv" > "$dir/draws.in"
differences --pair seed --metrics macro_f1 "$dir/draws.in" > "$dir/f1.tsv"
{
	printf 'arm\tseed\tdraw\taccuracy\tbalanced_accuracy\tmacro_f1\n'
	for k in $seeds; do
		for s in random corrmask; do sed "1d; s/^/$s\t$k\t/" "$dir/$s-$k.probe.replicates"; done
		sed "1d; s/^/$best\t$k\t/" "$prepared/$best.score.replicates"
	done
} > "$dir/draws.in"
differences --pair seed --draws draw --metrics macro_f1 "$dir/draws.in" > "$dir/f1_cells.tsv"
rm "$dir/draws.in"
echo
# tell QUANTITY ARM REFERENCE TRAININGS CELLS NAME REFERENCE_NAME: whether the arm differs from the reference, both values, and the difference with its
# intervals
tell() {
	awk -F '\t' -v quantity="$1" -v arm="$2" -v reference="$3" -v a="$6" -v b="$7" "$tables$by_name"'
		function interval() { return $c["low"] == "NA" ? "no interval" : span("%+.3f") == "+0.000 to +0.000" ? "within 0.001 of 0" : span("%+.3f") }
		$c["arm"] != arm || $c["reference"] != reference { next }
		FILENAME == ARGV[1] { n = $c["n"]; d = $c["difference"]; both = num($c["mean"], "%.3f") " and " num($c["reference_mean"], "%.3f"); p = $c["p"]; seeds = interval(); next }
		{ chance = $c["low"] == "NA" || $c["low"] <= 0 && $c["high"] >= 0; cells = interval() }
		END {
			size = num(d, "%+.3f")
			if (p == "NA" || cells == "no interval") say = a " and " b ", " quantity ", not tested"
			else if (p < 0.05 && !chance) say = a (a ~ /s$/ ? " have a " : " has a ") (d < 0 ? "lower " : "higher ") quantity " than " b
			else say = "We found no difference in " quantity " between " a " and " b
			print toupper(substr(say, 1, 1)) substr(say, 2) ":"
			printf "  %s, difference %s (95 %% interval over %d training%s %s%s; over test cells %s).\n", both, (size + 0 == 0 ? "smaller than 0.001" : size), n, \
				(n == 1 ? "" : "s"), seeds, (p == "NA" ? "" : p < 0.0001 ? ", p < 0.0001" : sprintf(", p = %.2g", p)), cells
		}' "$4" "$5"
}
{
read -r loss table <<< "$([ ! -s "$dir/points.tsv" ] || highest_visible "$dir/points.tsv" "$reliance/reference.tsv" random corrmask)" || true
why=$(no_edges "$edges"; not_learned "$loss" "$table")
[ -z "$why" ] || { echo "$why"; exit; } # of this part only
[ ! -s "$dir/differences.tsv" ] ||
	tell "partner reliance R" corrmask random "$dir/differences.tsv" "$dir/cells.tsv" CorrMask "random masks"
tell "macro F1" corrmask random "$dir/f1.tsv" "$dir/f1_cells.tsv" CorrMask "random masks"
called="50 principal components"
[ "$best" = pca ] || called="log-normalised expression"
tell "macro F1" "$best" random "$dir/f1.tsv" "$dir/f1_cells.tsv" "$called" "random masks"
tell "macro F1" "$best" corrmask "$dir/f1.tsv" "$dir/f1_cells.tsv" "$called" CorrMask
awk -F '\t' '$1 == "read" { printf "Expression of the genes that the networks read has a macro F1 of %.3f.\n", $2 }' "$dir/macro_f1.tsv"
[ "$(wc -w <<< "$seeds")" != 1 ] || echo "One seed: nothing can be said about other trainings (SEEDS=\"1 2\")."
} | tee "$dir/findings.txt"

echo
echo "per class: F1 of the probe, means over the seeds"
for s in random corrmask; do
	for k in $seeds; do awk -F '\t' -v s="$s" '$1 ~ /^(f1|n):/ { i = index($1, ":"); print s "\t" substr($1, 1, i - 1) "\t" substr($1, i + 1) "\t" $2 }' "$dir/$s-$k.probe.tsv"; done
done | awk -F '\t' '$2 == "f1" { x[$1, $3] += $4; m[$1, $3]++ }
	$2 == "n" { n[$3] = $4 }
	END { for (c in n) printf "%d\t%s\t%.4f\t%.4f\n", n[c], c, x["random", c] / m["random", c], x["corrmask", c] / m["corrmask", c] }' |
	sort -k1,1nr | sed '1i cells\tclass\trandom\tCorrMask' | "$here/names.sh" 2 |
	awk -F '\t' '{ printf "  %s %7s %10s %10s\n", $2, $1, $3, $4 }'
echo
stage_times_text "$prepared/log" "$pretrained/log" "$reliance/log" "$dir/log"
