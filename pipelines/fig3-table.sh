#!/usr/bin/env bash
# fig3-table.sh FILE...: mean and standard deviation over the simulations, one file each.
. "$(dirname "$0")/common.sh"
awk -F '\t' '
	{ n[$1]++; s[$1] += $2; q[$1] += $2 * $2 }
	NF > 2 { edges[$1] += $3; within[$1] += $4 }
	function row(k, name,   mean, var) {
		mean = s[k] / n[k]
		var = n[k] > 1 ? (q[k] - n[k] * mean * mean) / (n[k] - 1) : 0
		printf "%-56s %7.4f %8.4f", name, mean, (var > 0 ? sqrt(var) : 0)
		if (k in edges)
			printf " %9.0f %11.4f", edges[k] / n[k], within[k] / n[k]
		print ""
	}
	END {
		printf "Recovery of modules (CorrMask paper, figure 3, appendix B.1): 1,000 genes in 5 modules, 1,000 cells of 100 tokens\n"
		printf "AUROC of gene pairs within a module against pairs between modules, over %d simulations\n\n", n["A"]
		printf "%-56s %7s %8s %9s %11s\n", "", "mean", "sd", "edges", "in a module"
		row("A", "adjacency A")
		row("C", "co-occurrence C")
		row("npmi", "NPMI of neighbours in rank (depgraph --pmi)")
		row("graph", "Algorithm 1, 50 neighbours (edge or none)")
		row("all", "Algorithm 1, any number of neighbours (edge or none)")
		print ""
		print "With 50 neighbours, Algorithm 1 keeps a third of the partners of a gene, which limits its AUROC."
		print "The paper shows pictures and no numbers: A \"partially recovers structure\", C \"reconstructs modular signal strongly\"."
	}' "$@"
