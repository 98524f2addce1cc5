#!/usr/bin/env bash
# genesmap/report.sh DIR DATA MODEL SETS: the report of make genes-map from the tables under DIR
. "$(dirname "$0")/../common.sh"
[ $# = 4 ] || usage
dir=$1 data=${2:-simulated cells (scsim)} model=$3 sets=${4:-the modules of the simulation}
modules=$(scview -q -c module "$dir/genes.graph" | awk 'NR > 1 && $1 >= 0 && !seen[$1]++ { n++ } END { print n + 0 }')
named=$(awk -F '\t' 'NR > 1 && !seen[$1]++ { n++ } END { print n + 0 }' "$dir/genes.modules.tsv")
{
	echo "$(rows "$dir/genes.emb") genes in $modules modules; $named of them are rich in a set (q below 0.05)."
	awk -F '\t' "$by_name"'
		$c["strongest"] != "" {
			name = $c["graph"]; sub(/.*\//, "", name); sub(/\.graph$/, "", name)
			edges[name] = $c["edges"]
			fold[name] = $c["fold"]; low[name] = $c["fold_low"]; high[name] = $c["fold_high"]; n = $c["strongest"]
		}
		END {
			best = fold["dependency"] + 0 > fold["co-expression"] + 0 ? "dependency" : "co-expression"
			if (fold["genes"] == "NA" || fold["genes"] == "" || low["genes"] == "NA") exit
			other = best == "dependency" ? "the dependency graph" : "co-expression"
			if (edges["genes"] < 10 || edges[best] < 10) {
				printf "Too few edges join two genes of sets to compare the graphs: %d of the %d strongest ones of the embedding, %d of those of %s.\n",
					edges["genes"], n, edges[best], other
				exit
			}
			printf "Of the %d strongest edges, those of the embedding join genes of one set %.1f times as often as chance (%.1f to %.1f; %d edges), those of %s %.1f times (%.1f to %.1f; %d edges): ",
				n, fold["genes"], low["genes"], high["genes"], edges["genes"], other, fold[best], low[best], high[best], edges[best]
			print ((low["genes"] + 0 > high[best] + 0) ? "the network finds more of them." : (high["genes"] + 0 < low[best] + 0) ? \
				"the correlation of genes, which needs no network, finds more of them." : "the intervals overlap, so we found no difference.")
		}' "$dir/scores.tsv"
} > "$dir/findings.txt.new"
whole "$dir/findings.txt"
echo "corrmask map of genes: $data"
echo "model: $model; gene sets: $sets"
cat "$dir/findings.txt"
awk -F '\t' '$1 == "warning" { print "warning: " $2 }' "$dir"/log/*.report | sort -u
echo
awk -F '\t' "$by_name"'
	function f(x) { return x == "NA" || x == "" ? "-" : sprintf("%.3f", x) }
	function around(low, high) { return low == "NA" ? "-" : f(low) " to " f(high) }
	BEGIN { OFS = "\t"; label["genes"] = "embedding, mean over cells"; label["static"] = "embedding, table of tokens"
		label["dependency"] = "dependency graph"; label["co-expression"] = "co-expression"
		print "graph", "edges", "share within a set", "by chance", "times", "95 % interval", "AUROC", "95 % interval" }
	{
		name = $c["graph"]; sub(/.*\//, "", name); sub(/\.graph$/, "", name)
		print label[name] ($c["strongest"] == "" ? "" : ", strongest"), $c["edges"], f($c["share"]), f($c["expected"]), f($c["fold"]),
			around($c["fold_low"], $c["fold_high"]), f($c["auroc"]), around($c["auroc_low"], $c["auroc_high"])
	}' "$dir/scores.tsv" | as_table "$dir/graphs.table" "Edges within gene sets; strongest: of each graph as many as the smallest has"
echo
awk -F '\t' '
	BEGIN { OFS = "\t"; print "module", "its genes in sets", "set", "both", "times", "q" }
	NR > 1 && !seen[$1]++ && shown++ < 40 { print $1, $2, $3, $5, sprintf("%.1f", $7), sprintf("%.2g", $9) }' "$dir/genes.modules.tsv" |
	as_table "$dir/modules.table" "The set that a module is richest in"
echo
stage_times_text "$dir/log"
