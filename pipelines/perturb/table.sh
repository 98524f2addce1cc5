#!/usr/bin/env bash
# perturb/table.sh FOLDER STATE FROM TO TRUTH DATA MODEL: the table of make perturb. TRUTH: a file of genes, or nothing. Writes FOLDER/points.tsv for
# the figure: symbol, shift, -log10 q, whether the gene should be found.
. "$(dirname "$0")/../common.sh"
[ $# = 7 ] || usage
dir=$1 state=$2 from=$3 to=$4 truth=$5 data=${6:-simulated cells (scsim)} model=$7
{
	echo "method	gene	symbol	score	q"
	for m in shift shuffled; do
		awk -F '\t' -v OFS='\t' -v m="$m" "$by_name"'$c["cells"] >= 3 { print m, $c["perturbed"], $c["symbol"], $c["mean"], $c["q"] }' "$dir/$m.tsv"
	done
	awk -F '\t' -v OFS='\t' 'NR > 1 { print "expression", $1, $2, $3, "NA" }' "$dir/expression.tsv"
} > "$dir/scores.tsv"
# the genes that should be found
truth_genes() {
	if [ -n "$truth" ]; then
		cut -f 1 "$truth"
	elif [ "$data" = "simulated cells (scsim)" ]; then
		awk -F '\t' '$3 ~ /^(regulator|target)\./ { print $2 }' "$dir/scores.tsv" | sort -u
	fi
}
truth_genes > "$dir/truth.txt"
awk -F '\t' -v OFS='\t' 'NR == FNR { is[$1] = 1; next } $1 == "shift" { q = $5 == "NA" ? 1 : $5 < 1e-300 ? 1e-300 : $5
	print $3 == "" ? $2 : $3, $4, -log(q) / log(10), ($2 in is || $3 in is) + 0 }' "$dir/truth.txt" "$dir/scores.tsv" > "$dir/points.tsv"

echo "corrmask in-silico deletion: $data"
echo "model: $model"
echo "$(awk -F '\t' "$by_name"'$c["cells"] > n { n = $c["cells"] } END { print NR - 1 " genes deleted, each in at most " n " cells" }' "$dir/shift.tsv") of $state = $from; shift towards $to"
echo
echo "shift: cos(cell without the gene, mean of $to) - cos(cell, mean of $to), mean over cells. auc: the chance that it is above that of any deletion,"
echo "with its 95 % interval; q: rank sum, Benjamini-Hochberg. It treats cells as independent: p_group is over donors, if there are any"
echo
awk -F '\t' "$by_name"'
	function g(x, f) { return x == "NA" || x == "" ? "-" : sprintf(f, x) }
	FNR == 2 { printf "%-22s %6s %11s %7s %16s %9s %9s\n", "gene", "cells", "shift", "auc", "", "q", "p_group" }
	shown < 15 && $c["cells"] >= 3 { shown++; printf "%-22s %6d %+11.5f %7s %16s %9s %9s\n", $c["symbol"] == "" ? $c["perturbed"] : $c["symbol"], $c["cells"], $c["mean"], \
		g($c["auc"], "%.3f"), $c["auc_low"] == "NA" ? "-" : sprintf("%.3f to %.3f", $c["auc_low"], $c["auc_high"]), g($c["q"], "%.2g"), "p_group" in c ? g($c["p_group"], "%.2g") : "-" }' "$dir/shift.tsv"
[ -s "$dir/truth.txt" ] || {
	echo
	echo "TRUTH=FILE, a list of genes that should be found, would say how well this ranking does beside one by expression."
	exit 0
}
echo
echo "How well is the truth found? $(wc -l < "$dir/truth.txt") genes. AUROC: the chance that one of them is ranked above another gene, with the interval of"
echo "Hanley and McNeil; genes in three cells or more, the same ones for all methods"
echo
sort -t $'\t' -k 1,1 -k 4,4gr "$dir/scores.tsv" | awk -F '\t' '
	FILENAME == ARGV[1] { is[$1] = 1; next }
	FILENAME == ARGV[2] { known[$2] += $1 == "shift" || $1 == "shuffled"; next }
	known[$2] < 2 { next }
	{
		n[$1]++
		found = ($2 in is || $3 in is)
		if (!found) { above[$1] += pos[$1]; neg[$1]++ } else pos[$1]++
		if ($3 ~ /^regulator\./) rank[$1] = n[$1]
	}
	function name(m) { return m == "shift" ? "deletion, network" : m == "shuffled" ? "deletion, random states" : "expression, no network" }
	END {
		printf "%-26s %8s %18s%s\n", "ranked by", "AUROC", "95 % interval", length(rank) ? "   rank of the regulator" : ""
		k = split("shift expression shuffled", order, " ")
		for (i = 1; i <= k; i++) {
			m = order[i]
			if (!pos[m] || !neg[m]) { printf "%-26s %8s\n", name(m), "-"; continue }
			a = above[m] / (pos[m] * neg[m])
			se = sqrt((a * (1 - a) + (pos[m] - 1) * (a / (2 - a) - a * a) + (neg[m] - 1) * (2 * a * a / (1 + a) - a * a)) / (pos[m] * neg[m]))
			low = a - 1.96 * se; high = a + 1.96 * se
			printf "%-26s %8.3f %18s%s\n", name(m), a, sprintf("%.3f to %.3f", low < 0 ? 0 : low, high > 1 ? 1 : high), m in rank ? "   " rank[m] " of " n[m] : ""
			auc[m] = a; lo[m] = low; hi[m] = high
		}
		print ""
		if (lo["shuffled"] > 0.5 || hi["shuffled"] < 0.5)
			print "Random states are not at 0.5: genes that move any cell are ranked high, so the network says less of these states than its AUROC shows."
		if (lo["shift"] <= 0.5)
			print "The network does not find these genes."
		else if (lo["shift"] > auc["expression"])
			print "The network finds them better than the difference of expression does."
		else if (hi["shift"] < auc["expression"])
			print "The network finds them, but the difference of expression, which needs no network, finds them better."
		else
			print "The network finds them, no better and no worse than the difference of expression, which needs no network."
	}' "$dir/truth.txt" "$dir/scores.tsv" - | tee "$dir/findings.txt"
