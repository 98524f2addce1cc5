#!/usr/bin/env bash
# fig3/table.sh FILE...: mean and standard deviation over the simulations, one file each.
. "$(dirname "$0")/../tables.sh"
{
	printf 'arm\tauroc\tedges\twithin\n'
	awk -F '\t' -v OFS='\t' '{ print $1, $2, ($3 == "" ? "NA" : $3), ($4 == "" ? "NA" : $4) }' "$@"
} | means --metrics auroc,edges,within | awk -F '\t' "$by_name"'
	{ mean[$c["value"], $c["arm"]] = $c["mean"] }
	$c["value"] == "auroc" { sd[$c["arm"]] = $c["sd"]; n = $c["n"] }
	function row(k, name) {
		printf "%-56s %7.4f %8s", name, mean["auroc", k], (sd[k] == "NA" ? "-" : sprintf("%.4f", sd[k]))
		if (mean["edges", k] != "NA")
			printf " %9.0f %11.4f", mean["edges", k], mean["within", k]
		print ""
	}
	END {
		printf "Recovery of modules (CorrMask paper, figure 3, appendix B.1): 1,000 genes in 5 modules, 1,000 cells of 100 tokens\n"
		printf "AUROC of gene pairs within a module against pairs between modules, over %d simulation%s\n\n", n, (n == 1 ? "" : "s")
		printf "%-56s %7s %8s %9s %11s\n", "", "mean", "sd", "edges", "in a module"
		row("A", "adjacency A")
		row("C", "co-occurrence C")
		row("npmi", "NPMI of neighbours in rank (depgraph --pmi)")
		row("graph", "Algorithm 1, 50 neighbours (edge or none)")
		row("all", "Algorithm 1, any number of neighbours (edge or none)")
		print ""
		if (mean["edges", "all"] > 0)
			printf "With 50 neighbours, Algorithm 1 keeps %.0f %% of its edges. Pairs without an edge are ties.\n", 100 * mean["edges", "graph"] / mean["edges", "all"]
		print "The paper shows pictures and no numbers: A \"partially recovers structure\", C \"reconstructs modular signal strongly\"."
	}'
