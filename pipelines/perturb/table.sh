#!/usr/bin/env bash
# perturb/table.sh FOLDER STATE FROM TO TRUTH DATA MODEL: the table of make perturb. TRUTH: a file of genes, or nothing. Writes FOLDER/points.tsv for
# the figure: symbol, shift, -log10 q, whether the gene should be found.
. "$(dirname "$0")/../common.sh"
[ $# = 7 ] || usage
dir=$1 state=$2 from=$3 to=$4 truth=$5 data=${6:-simulated cells (scsim)} model=$7
{
	echo "method	gene	symbol	score	q"
	for f in shift random; do
		awk -F '\t' -v OFS='\t' -v to="$to" "$by_name"'
			$c["cells"] < 3 { next }
			{ m = "draw" in c ? "random-" $c["draw"] : "shift"; g = $c["perturbed"] }
			$c["state"] == to { print m, g, $c["symbol"], $c["mean"], $c["q"]; towards[m, g] = $c["mean"]; next }
			(m, g) in towards { print m "-both", g, $c["symbol"], towards[m, g] - $c["mean"], "NA" }' "$dir/$f.tsv"
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
echo "$(awk -F '\t' "$by_name"'$c["cells"] > n { n = $c["cells"] } END { print (NR - 1) / 2 " genes deleted, each in at most " n " cells" }' "$dir/shift.tsv") of $state = $from; shift towards $to"
echo
echo "shift: cos(cell without the gene, mean of $to) - cos(cell, mean of $to), mean over cells. auc: the chance that it is above that of any deletion,"
echo "with its 95 % interval; q: rank sum, Benjamini-Hochberg. It treats cells as independent: p_group is over donors, if there are any"
echo
awk -F '\t' -v to="$to" "$by_name"'
	function g(x, f) { return x == "NA" || x == "" ? "-" : sprintf(f, x) }
	FNR == 2 { printf "%-22s %6s %11s %7s %16s %9s %9s\n", "gene", "cells", "shift", "auc", "", "q", "p_group" }
	shown < 15 && $c["cells"] >= 3 && $c["state"] == to { shown++; printf "%-22s %6d %+11.5f %7s %16s %9s %9s\n", $c["symbol"] == "" ? $c["perturbed"] : $c["symbol"], $c["cells"], $c["mean"], \
		g($c["auc"], "%.3f"), $c["auc_low"] == "NA" ? "-" : sprintf("%.3f to %.3f", $c["auc_low"], $c["auc_high"]), g($c["q"], "%.2g"), "p_group" in c ? g($c["p_group"], "%.2g") : "-" }' "$dir/shift.tsv"
[ -s "$dir/truth.txt" ] || {
	echo
	echo "TRUTH=FILE, a list of genes that should be found, would say how well this ranking does beside one by expression."
	exit 0
}
echo
echo "How well is the truth found? $(wc -l < "$dir/truth.txt") genes. AUROC: the chance that one of them is ranked above another gene, with the interval of"
echo "Hanley and McNeil; genes in three cells or more"
echo
sort -t $'\t' -k 1,1 -k 4,4gr "$dir/scores.tsv" | awk -F '\t' -v from="$from" -v to="$to" '
	FILENAME == ARGV[1] { is[$1] = 1; next }
	FILENAME == ARGV[2] { known[$2] += $1 == "shift"; next }
	!known[$2] { next }
	{
		n[$1]++
		found = ($2 in is || $3 in is)
		if (!found) { above[$1] += pos[$1]; neg[$1]++; other[$1] += $4 } else { pos[$1]++; mean[$1] += $4 }
		if ($3 ~ /^regulator\./) rank[$1] = n[$1]
	}
	function name(m) { return m ~ /^expr/ ? "expression, no network" : "deletion, network: towards " to (m ~ /both/ ? " - towards " from : "") }
	function abs(x) { return x < 0 ? -x : x }
	function size(m) { return mean[m] / pos[m] - other[m] / neg[m] }
	END {
		printf "%-60s %8s %18s%s\n", "ranked by", "AUROC", "95 % interval", length(rank) ? "   rank of the regulator" : ""
		k = split("shift shift-both expression", order, " ")
		for (i = 1; i <= k; i++) {
			m = order[i]
			if (!pos[m] || !neg[m]) { printf "%-60s %8s\n", name(m), "-"; continue }
			a = above[m] / (pos[m] * neg[m])
			se = sqrt((a * (1 - a) + (pos[m] - 1) * (a / (2 - a) - a * a) + (neg[m] - 1) * (2 * a * a / (1 + a) - a * a)) / (pos[m] * neg[m]))
			low = a - 1.96 * se; high = a + 1.96 * se
			printf "%-60s %8.3f %18s%s\n", name(m), a, sprintf("%.3f to %.3f", low < 0 ? 0 : low, high > 1 ? 1 : high), m in rank ? "   " rank[m] " of " n[m] : ""
			auc[m] = a; lo[m] = low; hi[m] = high
		}
		if (!pos["shift-both"] || !neg["shift-both"]) exit
		for (d = 1; d <= 19; d++) {
			m = "random-" d "-both"
			if (!pos[m] || !neg[m]) continue
			draws++
			most = abs(size(m)) > most ? abs(size(m)) : most
			larger += abs(size(m)) >= abs(size("shift-both"))
		}
		D = size("shift-both")
		printf "\nMean of \"towards %s - towards %s\" of these genes, minus that of the others: %+.5f", to, from, D
		if (draws) printf "; with random states, %d draws: at most %.5f in size, p = %.2g", draws, most, (larger + 1) / (draws + 1)
		print ".\n"
		if (!draws || (larger + 1) / (draws + 1) > 0.05)
			print "The network does not tell these genes more than it would with random states."
		else if (lo["shift-both"] <= 0.5)
			print "The network does not find these genes."
		else if (lo["shift-both"] > auc["expression"])
			print "The network finds them better than the difference of expression does."
		else if (hi["shift-both"] < auc["expression"])
			print "The network finds them, but the difference of expression, which needs no network, finds them better."
		else
			print "The network finds them, no better and no worse than the difference of expression, which needs no network."
	}' "$dir/truth.txt" "$dir/scores.tsv" - | tee "$dir/findings.txt"
