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
awk -F '\t' -v OFS='\t' 'FILENAME == ARGV[1] { is[$1] = 1; next } $1 == "shift" { q = $5 == "NA" ? 1 : $5 < 1e-300 ? 1e-300 : $5
	print $3 == "" ? $2 : $3, $4, -log(q) / log(10), ($2 in is || $3 in is) + 0 }' "$dir/truth.txt" "$dir/scores.tsv" > "$dir/points.tsv"

echo "corrmask in-silico deletion: $data"
echo "model: $model"
echo "$(awk -F '\t' "$by_name"'$c["cells"] > n { n = $c["cells"] } END { print (NR - 1) / 2 " gene" (NR == 3 ? "" : "s") " deleted, each in at most " n " cells" }' "$dir/shift.tsv") of $state = $from; shift towards $to"
echo
rm -f "$dir/2-truth.table" "$dir/findings.txt"
awk -F '\t' -v to="$to" "$by_name"'
	function g(x, f) { return x == "NA" || x == "" ? "-" : sprintf(f, x) }
	FNR == 2 { print "gene\tcells\tshift\tauc\t95 % interval\tq\tp_group" }
	shown < 15 && $c["cells"] >= 3 && $c["state"] == to { shown++; printf "%s\t%d\t%+.5f\t%s\t%s\t%s\t%s\n", $c["symbol"] == "" ? $c["perturbed"] : $c["symbol"], $c["cells"], $c["mean"], \
		g($c["auc"], "%.3f"), $c["auc_low"] == "NA" ? "-" : sprintf("%.3f to %.3f", $c["auc_low"], $c["auc_high"]), g($c["q"], "%.2g"), "p_group" in c ? g($c["p_group"], "%.2g") : "-" }' "$dir/shift.tsv" |
	as_table "$dir/1-genes.table" "The first genes. shift: cos(cell without the gene, mean of $to) - cos(cell, mean of $to), mean over cells; auc: the chance that it is above that of any deletion; q: rank sum over cells as if they were independent, Benjamini-Hochberg; p_group: over donors, if there are any" 80
[ -s "$dir/truth.txt" ] || {
	echo
	echo "To see how well these genes are ranked, next to a ranking by expression, give TRUTH=FILE: genes that should be found, one per line."
	exit 0
}
echo
sort -t $'\t' -k 1,1 -k 4,4gr "$dir/scores.tsv" | awk -F '\t' -v from="$from" -v to="$to" -v findings="$dir/findings.txt" '
	BEGIN { printf "" > findings }
	function find(sentence) { print sentence > findings }
	FILENAME == ARGV[1] { is[$1] = 1; next }
	FILENAME == ARGV[2] { if ($1 == "shift" || $1 == "expression") known[$2]++; next }
	known[$2] < 2 { next }
	# genes of equal score are a tie
	$1 != method || $4 != score { tie(); if ($1 != method) n = above[0] = above[1] = 0; method = $1; score = $4 }
	{
		gene[++k] = $2
		t = truth[$2] = ($2 in is || $3 in is) + 0
		sum[$1, t] += $4
		genes[$1, t]++
		n++
		if ($3 ~ /^regulator\./) rank[$1] = n
	}
	# place[METHOD, GENE]: the share of the other class that the gene is ranked above (of genes that should not be found: below)
	function tie(    i, same) {
		for (i = 1; i <= k; i++) same[truth[gene[i]]]++
		for (i = 1; i <= k; i++) place[method, gene[i]] = above[1 - truth[gene[i]]] + same[1 - truth[gene[i]]] / 2
		for (i = 0; i < 2; i++) above[i] += same[i]
		k = 0
	}
	function share(m, g) { return truth[g] ? 1 - place[m, g] / size[0] : place[m, g] / size[1] }
	# the AUROC of a method, minus that of the reference if there is one: mean, and low and high. One gene has no spread: anything may be.
	function auroc(m, reference,    least, g, x, s, square, se, t) {
		least = reference == "" ? 0 : -1
		for (g in truth) {
			x = share(m, g) - (reference == "" ? 0 : share(reference, g))
			s[truth[g]] += x
			square[truth[g]] += x * x
		}
		for (t = 0; t < 2; t++) se += size[t] < 2 ? 1 : (square[t] - s[t] * s[t] / size[t]) / (size[t] - 1) / size[t]
		mean = s[1] / size[1]
		se = sqrt(se > 0 ? se : 0)
		low = mean - 1.96 * se < least ? least : mean - 1.96 * se
		high = mean + 1.96 * se > 1 ? 1 : mean + 1.96 * se
	}
	function name(m) { return m ~ /^expr/ ? "expression, no network" : "deletion, network: towards " to (m ~ /both/ ? " - towards " from : "") }
	function gap(m) { return sum[m, 1] / genes[m, 1] - sum[m, 0] / genes[m, 0] }
	function abs(x) { return x < 0 ? -x : x }
	END {
		tie()
		for (g in truth) size[truth[g]]++
		if (!size[0] || !size[1]) { find((size[1] ? "All genes that were deleted" : "None of the genes that were deleted") " should be found: nothing can be measured."); exit }
		print "ranked by\tAUROC\t95 % interval\tdifference" (length(rank) ? "\trank of the regulator" : "")
		methods = split("shift shift-both expression", order, " ")
		for (i = 1; i <= methods; i++) {
			m = order[i]
			auroc(m)
			line = sprintf("%s\t%.3f\t%.3f to %.3f", name(m), mean, low, high)
			if (m == "shift-both") { at_chance = low <= 0.5; below = high < 0.5 }
			auc[m] = mean
			auroc(m, "expression")
			print line "\t" (m == "expression" ? "" : sprintf("%+.3f (%+.3f to %+.3f)", mean, low, high)) (m in rank ? "\t" rank[m] " of " n : "")
		}
		for (d = 1; d <= 19; d++) {
			m = "random-" d "-both"
			if (!((m, 1) in sum) || !((m, 0) in sum)) continue
			draws++
			most = abs(gap(m)) > most ? abs(gap(m)) : most
			larger += abs(gap(m)) >= abs(gap("shift-both"))
		}
		p = (larger + 1) / (draws + 1)
		shifts = sprintf("Mean of \"towards %s - towards %s\" of the genes that should be found, minus that of the others: %+.5f%s.", to, from, gap("shift-both"), \
			draws ? sprintf("; with random states, %d draws: at most %.5f in size, p = %.2g", draws, most, p) : "")
		auroc("shift-both", "expression")
		both = sprintf("(AUROC %.3f and %.3f; difference %+.3f, %+.3f to %+.3f).", auc["shift-both"], auc["expression"], mean, low, high)
		if (draws < 19) find(sprintf("No comparison with random states: %d draws, and 19 are needed.", draws))
		else if (p > 0.05) find("We found no difference between these states and random ones in how the network moves the genes that should be found.")
		else if (below) find("The network ranks the genes that should be found lower than the others.")
		else if (at_chance) find("We found no difference between the genes that should be found and the others in the ranking of the network.")
		else if (low > 0) find("The network ranks the genes that should be found higher than the difference of expression does " both)
		else if (high < 0) find("The network finds the genes that it should, but the difference of expression, which needs no network, ranks them higher " both)
		else find("The network finds the genes that it should. We found no difference from the ranking by expression, which needs no network " both)
		find(shifts)
	}' "$dir/truth.txt" "$dir/scores.tsv" - > "$dir/ranked"
[ ! -s "$dir/ranked" ] ||
	as_table "$dir/2-truth.table" "How well are the $(wc -l < "$dir/truth.txt") genes found that should be? AUROC: the chance that one is ranked above another gene, of genes in three cells or more; difference: to that of expression, of the same genes (DeLong et al. 1988)" 120 < "$dir/ranked"
rm "$dir/ranked"
echo
cat "$dir/findings.txt"
