#!/usr/bin/env bash
# reliance/table.sh RELIANCE PREPARED "STRATEGY..." "SEED..." DATA HOW: the table of make reliance from the losses under RELIANCE. HOW is a line on
# the trainings. The figure draws RELIANCE/points.tsv and RELIANCE/reference.tsv (reliance/points.sh).
. "$(dirname "$0")/../tables.sh"
[ $# = 6 ] || usage
dir=$1 prepared=$2 strategies=$3 seeds=$4 data=${5:-simulated cells (scsim)} how=$6
"$here/reliance/points.sh" "$dir" "$strategies" "$seeds" "$dir"
[ -s "$dir/points.tsv" ] || {
	echo "reliance: no gene of the test cells has partners in its cell: the graph has too few edges: raise MAXLEN or CELLS" >&2
	exit 1
}
strategy_names='name["random"] = "random masks"; name["corrmask"] = "CorrMask"; name["shuffled"] = "CorrMask, shuffled graph"'
first=${strategies%% *}-${seeds%% *}

echo "corrmask partner reliance: $data"
echo "$how; seeds $seeds"
echo "$(awk -F '\t' '$3 > 0 && NR > 1 { n++; if (!seen[$1]++) cells++ } END { print n + 0 " genes of " cells + 0 }' "$dir/$first.hidden.cells") test cells are probed; $(
	depgraph -q -O stats "$prepared/corpus.graph" | awk -F '\t' '{ v[$1] = $2 } END { printf "graph: %d genes with partners, %d edges", v["genes_with_neighbours"], v["edges"] }')"
[ ! -e "$prepared/group" ] || echo "cells: $(split_by "$prepared")"
split_note "$prepared" "$prepared/test.tok"
echo
echo "Loss (natural logarithm) of one masked gene of a cell. visible: as many unrelated genes are masked as the gene has partners in the cell;"
echo "hidden: these partners are masked instead. R = hidden - visible: how much the network relies on partners; mean over seeds, sd: standard deviation"
echo
awk -F '\t' "$tables$by_name"'
	BEGIN { '"$strategy_names"' }
	FILENAME ~ /points\.tsv$/ { each[$c["strategy"]] = each[$c["strategy"]] " " num($c["R"], "%+.3f"); next }
	{ mean[$c["value"], $c["arm"]] = $c["mean"] }
	$c["value"] == "R" { order[++n] = $c["arm"]; sd[n] = $c["sd"] }
	END {
		printf "%-42s %9s %9s %9s %9s  %s\n", "masks in training", "visible", "hidden", "R", "sd", "R of each seed"
		for (i = 1; i <= n; i++)
			printf "%-42s %9.3f %9.3f %9s %9s %s\n", name[order[i]], mean["visible", order[i]], mean["hidden", order[i]], num(mean["R", order[i]], "%+.3f"), \
				num(sd[i], "%.3f"), each[order[i]]
	}' "$dir/points.tsv" "$dir/summary.tsv"
awk -F '\t' 'NR > 1 { f[$1] = $2; m[$1] = $3 }
	function line(name, x) { printf "%-42s %9.3f %9.3f %+9.3f\n", name, x["visible"], x["hidden"], x["hidden"] - x["visible"] }
	END { line("table of gene frequencies, no network", f); line("table of medians of neighbours, no network", m) }' "$dir/reference.tsv"
echo
echo "R minus R of ${strategies%% *} masks, paired by seed: mean, 95 % interval, two-sided t test, p after Holm's correction. 80 %: the true difference that"
echo "this many seeds find in 80 % of experiments. cells: the 95 % interval that comes from the choice of the cells"
awk -F '\t' "$tables$by_name"'
	BEGIN { '"$strategy_names"'; form = "%9s %20s %9s %9s %9s %9s %20s\n" }
	FILENAME ~ /cells\.tsv$/ { cells[$c["arm"]] = span("%+.3f"); next }
	!any++ { printf "%-26s " form, "", "mean", "95 % interval", "t", "p", "p, Holm", "80 %", "cells" }
	{ printf "%-26s " form, name[$c["arm"]], num($c["difference"], "%+.3f"), span("%+.3f"), num($c["t"], "%.1f"), num($c["p"], "%.2g"), \
		num($c["p_corrected"], "%.2g"), num($c["detectable"], "%.3f"), cells[$c["arm"]] }' "$dir/cells.tsv" "$dir/differences.tsv"
echo
# why STRATEGY...
why() {
	read -r loss table <<< "$(highest_visible "$dir/points.tsv" "$dir/reference.tsv" "$@")"
	not_learned "$loss" "$table"
}
unlearned=
for s in $strategies; do [ -z "$(why "$s")" ] || unlearned+=" $s "; done
{
[[ $unlearned != *" ${strategies%% *} "* ]] || { why "${strategies%% *}"; exit; } # of this part only
awk -F '\t' -v unlearned="$unlearned" "$by_name"'
	FILENAME ~ /cells\.tsv$/ { by_chance[$c["arm"]] = $c["low"] == "NA" || $c["low"] <= 0 && $c["high"] >= 0; next }
	# a difference: the t test says so, and the choice of the cells does not explain it
	{
		what = $c["arm"] == "shuffled" ? "CorrMask with a shuffled graph" : "CorrMask"
		if (index(unlearned, " " $c["arm"] " "))
			printf "%s: No comparison: the network has learned less than the gene frequencies. Train longer: EPOCHS=.\n", what
		else if ($c["n"] < 2)
			printf "%s: R is %.3f, with random masks %.3f. Two seeds or more are needed to compare.\n", what, $c["mean"], $c["reference_mean"]
		else if ($c["p_corrected"] != "NA" && $c["p_corrected"] < 0.05 && !by_chance[$c["arm"]])
			printf "%s: the network relies on visible partners %s than with random masks (R %.3f, not %.3f).\n", what, ($c["difference"] < 0 ? "less" : "more"), \
				$c["mean"], $c["reference_mean"]
		else
			printf "%s: we found no difference in R from random masks (%.3f and %.3f).\n", what, $c["mean"], $c["reference_mean"]
	}' "$dir/cells.tsv" "$dir/differences.tsv"
} | tee "$dir/findings.txt"
