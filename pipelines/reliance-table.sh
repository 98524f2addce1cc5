#!/usr/bin/env bash
# reliance-table.sh RELIANCE PREPARED "STRATEGY..." "SEED..." DATA HOW: the table of make reliance from the losses under RELIANCE. HOW is a line on
# the trainings. The figure draws RELIANCE/points.tsv and RELIANCE/reference.tsv.
. "$(dirname "$0")/common.sh"
[ $# = 6 ] || usage
dir=$1 prepared=$2 strategies=$3 seeds=$4 data=${5:-simulated cells (scsim)} how=$6
"$here/reliance-points.sh" "$dir" "$strategies" "$seeds" "$dir/points.tsv" "$dir/summary.tsv"
[ -s "$dir/points.tsv" ] || {
	echo "reliance: no gene of the held-out cells has partners in its cell: the graph has too few edges (more cells make more)" >&2
	exit 1
}
first=${strategies%% *}-${seeds%% *}

echo "corrmask partner reliance: $data"
echo "$how; seeds $seeds"
echo "$(awk -F '\t' '$3 > 0 && NR > 1 { n++; if (!seen[$1]++) cells++ } END { print n + 0 " genes of " cells + 0 }' "$dir/$first.hidden.cells") held-out cells are probed; $(
	depgraph -q --stats "$prepared/corpus.graph" | awk -F '\t' '{ v[$1] = $2 } END { printf "graph: %d genes with neighbours, %d edges", v["genes_with_neighbours"], v["edges"] }')"
echo
echo "Loss (natural logarithm) of one masked gene of a cell. visible: as many unrelated genes are masked as the gene has partners in the cell;"
echo "hidden: these partners are masked instead. R = hidden - visible: how much the network relies on partners; mean ± sd over seeds"
echo
stats=$(cat "$here/stats.awk")
awk -F '\t' "$stats"'FILENAME ~ /points/ { each[$1] = each[$1] sprintf(" %+.3f", near($5)); next }
	function name(s) { return s == "random" ? "random masks" : s == "corrmask" ? "CorrMask" : s == "shuffled" ? "CorrMask, shuffled graph" : s }
	FNR == 1 { printf "%-42s %9s %9s %9s %9s  %s\n", "masks in training", "visible", "hidden", "R", "± sd", "R of each seed" }
	{ printf "%-42s %9.3f %9.3f %+9.3f %9s %s\n", name($1), $3, $4, near($5), ($6 == "NA" ? "-" : sprintf("%.3f", $6)), each[$1] }' \
	"$dir/points.tsv" "$dir/summary.tsv"
awk -F '\t' "$stats"'NR > 1 { f[$1] = $2; m[$1] = $3 }
	function line(name, x) { printf "%-42s %9.3f %9.3f %+9.3f\n", name, x["visible"], x["hidden"], near(x["hidden"] - x["visible"]) }
	END { line("table of gene frequencies, no network", f); line("table of medians of neighbours, no network", m) }' "$dir/reference.tsv"
echo
echo "R of ${strategies%% *} masks minus R of the others, paired by seed (two-sided t test). 80 %: the difference that this many seeds find in 80 % of"
echo "experiments. error, cells: the standard error of the mean from the choice of the cells"
awk -F '\t' "$stats"'
	function text(x, f) { return x == "NA" ? "-" : sprintf(f, x) }
	NR == 1 { printf "%-26s %9s %9s %9s %9s %9s %12s\n", "", "mean", "± sd", "t", "p", "80 %", "error, cells" }
	NR > 1 { printf "%-26s %+9.3f %9s %9s %9s %9s %12s\n", $1 == "corrmask" ? "CorrMask" : "CorrMask, shuffled graph", near($7), text($8, "%.3f"), text($9, "%.1f"), $10 == "NA" ? "-" : $10, text($11, "%.3f"), text($12, "%.3f") }' "$dir/summary.tsv"
echo
awk -F '\t' '
	$1 == "random" { base = $5 }
	# shown: the t test says so and the error of the cells does not explain it
	NR > 1 {
		shown = $10 != "NA" && $10 + 0 < 0.05 && $12 != "NA" && ($7 > 2 * $12 || $7 < -2 * $12)
		what = $1 == "shuffled" ? "CorrMask with a shuffled graph" : "CorrMask"
		if (shown)
			printf "%s: the network relies on visible partners %s than with random masks (R %.3f, not %.3f).\n", what, ($7 > 0 ? "less" : "more"), $5, base
		else if ($11 == "NA")
			printf "%s: R is %.3f, with random masks %.3f. Two seeds or more are needed to compare.\n", what, $5, base
		else
			printf "%s: no difference in R to random masks is shown (%.3f and %.3f).\n", what, $5, base
	}' "$dir/summary.tsv"
