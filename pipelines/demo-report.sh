#!/usr/bin/env bash
# demo-report.sh DEMO PREPARED PRETRAINED RELIANCE "SEED..." DATA LABEL CELLS MAXLEN HOW: print the demo's tables from the losses, probes and logs under
# these folders. HOW is a line on the trainings. The figure draws DEMO/points.tsv and DEMO/macro_f1.tsv.
. "$(dirname "$0")/common.sh"
[ $# = 10 ] || usage
dir=$1 prepared=$2 pretrained=$3 reliance=$4 seeds=$5 data=${6:-simulated cells (scsim)} label=$7 cells=$8 maxlen=$9 how=${10}
stats=$(cat "$here/stats.awk")

echo "corrmask demo: $data, label $label"
part() { reported "$prepared/log/scsample-$1.report" cells_out; }
by=$(sed -n 's/^./, split by &/p' "$prepared/group")
echo "cells: $(part train) to train, $(part test) held out$by$([ "$cells" = 0 ] || echo "; at most $cells, sampled with a seed (CELLS=0: all)")"
graph=$prepared/log/depgraph.report
edges=$(reported "$graph" edges)
echo "graph: $(reported "$graph" genes_with_neighbours) genes with neighbours, $edges edges"
# what the cut to MAXLEN genes takes away
encoded=$prepared/log/rankenc-train.report
of=$(reported "$encoded" cells_out) cut=$(reported "$encoded" cells_of_full_length) all_edges=$(reported "$dir/log/depgraph-all-genes.report" edges)
echo "genes: networks read at most $maxlen of each cell, those of highest rank (MAXLEN), and $cut of $of training cells have as many or more"
[ $((2 * edges)) -ge "$all_edges" ] ||
	echo "note: with all genes of the cells the graph has $all_edges edges. CorrMask masks partners by the $edges that are left; a larger MAXLEN keeps more"
echo "networks: $how; seeds $seeds"

# ---- partners ----
"$here/reliance-points.sh" "$reliance" "random corrmask" "$seeds" "$dir/points.tsv" "$dir/summary.tsv"
cp "$reliance/reference.tsv" "$dir/reference.tsv"
echo
[ -s "$dir/points.tsv" ] || echo "How much a network copies from partners cannot be measured here: the graph has too few edges (more cells make more)."
[ ! -s "$dir/points.tsv" ] || {
	scview -q -c target "$reliance/hidden.masked" | awk 'NR > 1 && NF { cells++; for (i = 1; i <= NF; i++) seen[$i]++ || n++ } END { print n + 0 "\t" cells + 0 }' > "$dir/scored.tsv"
	echo "R is over the genes that have partners in their cell: $(cut -f 1 "$dir/scored.tsv") of the $(awk 'NR > 1 && $2 !~ /^</' "$prepared/vocab.tsv" 2> /dev/null | wc -l) genes of the vocabulary"
}
rm -f "$dir/1-partners.table"
[ ! -s "$dir/points.tsv" ] || awk -F '\t' "$stats"'
	function line(name, v, h, more) { printf "%s\t%.3f\t%.3f\t%+.3f\t%s\n", name, v, h, near(h - v), more }
	FILENAME ~ /points/ { each[$1] = each[$1] (each[$1] == "" ? "" : " ") sprintf("%+.3f", near($5)); next }
	FILENAME ~ /reference/ { if (FNR > 1) { f[$1] = $2; m[$1] = $3 } next }
	FNR == 1 { print "\tvisible\thidden\tR\tR of each seed" }
	{ line($1 == "random" ? "network, random masks" : "network, CorrMask masks", $3, $4, each[$1]) }
	END {
		line("table of gene frequencies, no network", f["visible"], f["hidden"])
		line("table of medians of neighbours, no network", m["visible"], m["hidden"])
	}' "$dir/points.tsv" "$dir/reference.tsv" "$dir/summary.tsv" |
	as_table "$dir/1-partners.table" "How much does the network copy a masked gene from its partners? Loss with them visible and masked too; R is the difference"

# ---- cell types ----
# name, seed, macro F1, its interval, F1 of the rarest third, accuracy, converged
for p in expression pca read $(for s in untrained random corrmask; do for k in $seeds; do echo "$s-$k"; done; done); do
	awk -F '\t' -v p="$p" '{ v[$1] = $2 } END {
		i = index(p, "-")
		print (i ? substr(p, 1, i - 1) : p) "\t" (i ? substr(p, i + 1) : "") "\t" v["macro_f1"] "\t" v["macro_f1_low"] "\t" v["macro_f1_high"] "\t" \
			v["f1_rare"] "\t" v["accuracy"] "\t" v["converged"] }' "$dir/$p.probe.tsv"
done > "$dir/probes.tsv"
# name, macro F1, interval, rarest, accuracy, not converged: means over the seeds
awk -F '\t' '{ if (!($1 in n)) name[++k] = $1; n[$1]++; for (i = 3; i <= 7; i++) x[$1, i] += $i; no[$1] += $8 != 1 }
	END { for (j = 1; j <= k; j++) { s = name[j]; print s "\t" x[s, 3] / n[s] "\t" x[s, 4] / n[s] "\t" x[s, 5] / n[s] "\t" x[s, 6] / n[s] "\t" x[s, 7] / n[s] "\t" no[s] + 0 } }' \
	"$dir/probes.tsv" > "$dir/macro_f1.tsv"
drawn=$(awk -F '\t' '{ v[$1] = $2 } END { n = v["bootstrap_units"]; print n, n < v["cells"] ? "groups" : "cells" }' "$dir/pca.probe.tsv")
echo
awk -F '\t' -v interval="95 % interval of macro F1, $drawn drawn anew" '
	BEGIN {
		'"$baselines"'
		name["expression"] = name["expression"] ", no network"
		name["pca"] = name["pca"] ", no network"
		name["read"] = "expression, of the genes that networks read"
		name["random"] = "network, random masks"
		name["corrmask"] = "network, CorrMask masks"
		print "\tmacro F1\trarest F1\taccuracy\t" interval
	}
	{ printf "%s\t%.4f\t%.4f\t%.4f\t%.4f - %.4f%s\n", name[$1], $2, $5, $6, $3, $4, $7 ? " (did not converge)" : "" }' "$dir/macro_f1.tsv" |
	as_table "$dir/2-types.table" "Linear probe of cell types, test cells; networks: means over the seeds; the first two rows are of all genes (the 2,000 that vary most)"

# ---- in short ----
# A difference is called shown if it has the same sign in every seed and is more than twice its standard error. The error has the spread of the
# seeds and that over the held-out cells; for F1, the latter is the spread of the difference over the draws of the bootstrap.
for k in $seeds; do
	paste "$dir/random-$k.probe.replicates" "$dir/corrmask-$k.probe.replicates" | awk -F '\t' 'NR > 1 { print $1 "\t" $8 - $4 }'
done | awk -F '\t' "$stats"'$2 == $2 + 0 { x[$1] += $2; n[$1]++ }
	END { for (r in x) { d = x[r] / n[r]; m++; s += d; q += d * d } print sd(m, s, q) }' > "$dir/error"
echo
{
awk -F '\t' "$stats"'
	FILENAME ~ /summary/ { if ($1 == "random") base = $5; else { r = $5; gap = $7; gap_sd = $8; cells = $12 } next }
	FILENAME ~ /points/ { R[$1, $2] = $5; next }
	FILENAME ~ /error/ { draws = $1; next }
	{ f1[$1, $2] = $3; sum[$1] += $3; count[$1]++; if (!($2 in seen)) { seen[$2] = 1; seed[++n] = $2 } }
	function shown(mean, error, same) { return same && seeds > 1 && error != "NA" && (mean > 2 * error || mean < -2 * error) }
	function text(error) { return error == "NA" ? error : sprintf("%.3f", error) }
	END {
		for (i = 1; i <= n; i++) {
			k = seed[i]
			if (k == "") continue
			d = R["random", k] - R["corrmask", k]
			up += d > 0; down += d < 0
			d = f1["corrmask", k] - f1["random", k]
			total += d; square += d * d
			better += d > 0; worse += d < 0
		}
		seeds = n - 1 # one more name, without a seed, is that of the baselines
		error = cells == "NA" ? cells : sqrt((seeds > 1 ? gap_sd ^ 2 / seeds : 0) + cells ^ 2)
		if (r == "")
			;
		else if (shown(gap, error, up == seeds || down == seeds))
			printf "Differs: with CorrMask the network relies %s on visible partners. R is %.3f, with random masks %.3f (difference %+.3f ± %s).\n", \
				(gap > 0 ? "less" : "more"), near(r), near(base), near(-gap), text(error)
		else
			printf "Not shown to differ: the reliance on visible partners. R is %.3f, with random masks %.3f (difference %+.3f ± %s).\n", near(r), near(base), near(-gap), text(error)
		mean = total / seeds
		error = sqrt((seeds > 1 ? sd(seeds, total, square) ^ 2 / seeds : 0) + draws ^ 2)
		if (shown(mean, error, better == seeds || worse == seeds))
			printf "Differs: the macro F1 of cell types is %s with CorrMask (%+.3f ± %.3f).\n", (mean > 0 ? "higher" : "lower"), near(mean), error
		else
			printf "Not shown to differ: the macro F1 of cell types, CorrMask - random %+.3f ± %.3f.\n", near(mean), error
		best = sum["expression"] > sum["pca"] ? "expression" : "pca"
		net = sum["random"] > sum["corrmask"] ? "random" : "corrmask"
		printf "%s the cell types apart %s than the best of these networks (%.3f; untrained %.3f).\n", \
			(best == "pca" ? sprintf("50 principal components (%.3f) tell", sum[best]) : sprintf("Log-normalised expression (%.3f) tells", sum[best])), \
			(sum[best] > sum[net] / count[net] ? "better" : "less well"), sum[net] / count[net], sum["untrained"] / count["untrained"]
		printf "On the genes that the networks read, log-normalised expression has %.3f.\n", sum["read"]
		if (seeds < 2) print "One seed: nothing can be said about other trainings (SEEDS=\"1 2\")."
	}' "$dir/summary.tsv" "$dir/points.tsv" "$dir/error" "$dir/probes.tsv"
echo "± is a standard error, over seeds and held-out cells"
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
