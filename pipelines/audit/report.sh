#!/usr/bin/env bash
# audit/report.sh table3|table8|genesets DIR DATA [GENESETS SKIP]: the table, from the files under DIR.
. "$(dirname "$0")/../common.sh"
what=$1 dir=$2 data=$3 sets=${4:-} skip=${5:-}
get() { awk -F '\t' -v k="$2" '$1 == k { printf "%s", $2; found = 1 } END { if (!found) printf "nan" }' "$dir/audit.$1.tsv"; }
percent() { awk -v x="$(get "$1" "$2")" 'BEGIN { if (x == "nan" || x == "-nan") printf "-"; else printf "%.2f %%", 100 * x }'; }
number() { awk -v x="$(get "$1" "$2")" 'BEGIN { if (x == "nan" || x == "-nan") printf "-"; else printf "%.2f", x }'; }
graph() {
	depgraph -q -O stats "$dir/${1:-corrmask}.graph" | awk -F '\t' '{ v[$1] = $2 } END { printf "%d genes with partners, %d edges", v["genes_with_neighbours"], v["edges"] }'
	scview --header-tsv "$dir/${1:-corrmask}.graph" | sed -n 's/.*\(--min-overlap [0-9]*\).*/ (\1)/p'
}

case $what in
table3)
	echo "Table 3, masking audit: $data"
	echo "$(get random cells) cells, masking rate $(percent random masking_rate), graph: $(graph)"
	echo
	printf '%-22s %9s %9s %9s %9s %9s %9s   %s\n' 'masks' 'pair span' 'mean span' 'hit rate' '(present)' 'linked' 'others' 'the paper: span, hit rate'
	while read -r name label paper; do
		printf '%-22s %9s %9s %9s %9s %9s %9s   %s\n' "$(echo "$label" | tr _ ' ')" "$(number "$name" pair_span)" "$(number "$name" mean_span)" \
			"$(percent "$name" hit_rate)" "$(percent "$name" hit_rate_present)" \
			"$(percent "$name" masking_rate_linked)" "$(percent "$name" masking_rate_others)" "$(echo "$paper" | tr _ ' ')"
	done <<-END
		random random 1.08___1.93_%
		bernoulli random,_Bernoulli
		pmi PMI 1.08___1.95_%
		pmi-rand PMI-Rand
		corrmask CorrMask 1.65___9.32_%
		corrmask-100 CorrMask-100
	END
	cat <<-END

		pair span   mean number of masked genes in a pair of partners, over the pairs in the cell with at least one masked gene.
		            It is 1/(1-h/2), where h is the hit rate over present partners. Independent masks at 15 % give 1.08, the published
		            value for random and PMI masks. The paper defines no span: this definition is a guess from that value,
		            and it does not give the published 1.65 (see maskgen(1), Audit).
		mean span   mean length of the runs of adjacent masked positions: 1/(1-0.15) = 1.18 for independent masks. The paper does not print 1.18.
		hit rate    share of a masked gene's partners that are masked too. Partners that are not in the cell count as not masked.
		(present)   the same over the partners in the cell: 15 % for independent masks. If the paper counts all partners, its 1.93 % is
		            15 % of the 12.9 % that are present.
		linked      masking rate of the genes with partners, and of all others: the paper's coverage bias (section 3). Where few genes have
		            partners, they share the graph's part of the budget and are masked most of the time.
		All values are measured with the graph of these cells. maskgen(1), Audit, has the definitions.

	END
	echo "The readings of Table 3 that are nearest to the paper; none of them gives all of its values"
	echo "graph with rho_min 0.35: $(graph corrmask-rho35)"
	echo
	printf '%-72s %9s %9s %9s\n' '' random PMI CorrMask
	reading() { # NAME METRIC number|percent SUFFIX-OF-THE-AUDITS PAPER...
		printf '%-72s %9s %9s %9s\n' "$1" "$("$3" "random$4" "$2")" "$("$3" "pmi$4" "$2")" "$("$3" "corrmask$4" "$2")" '  the paper' "${@:5}"
	}
	reading 'span: masked genes of a pair in the cell, rho_min 0.35' pair_span number -rho35 1.08 1.08 1.65
	reading 'hit rate: share of all tokens that are masked and have a masked partner' hit_tokens percent '' '1.93 %' '1.95 %' '9.32 %'
	awk -v r="$(get random-rho35 hit_rate_present)" -v p="$(get pmi-rho35 hit_rate_present)" -v c="$(get corrmask-rho35 hit_rate_present)" '
		function over(x) { return x + 0 != x || r + 0 != r || r + 0 == 0 ? "-" : sprintf("%.2f", x / r) }
		BEGIN { printf "%-72s %9s %9s %9s\n", "ratio to random: hit rate over partners in the cell, rho_min 0.35", over(r), over(p), over(c) }'
	printf '%-72s %9s %9s %9s\n' '  the paper' 1.00 1.01 4.83
	;;
table8)
	echo "Table 8, correlated partners within 5-grams: $data"
	echo "$(get random cells) cells, graph: $(graph)"
	echo
	printf '%-58s %9s\n' \
		'tokens with a partner among the 5 nearest on either side' "$(percent random neighbour_within_5)" \
		'  the same, over tokens with partners in the graph' "$(percent random neighbour_within_5_linked)" \
		'5-grams that contain a pair of partners' "$(percent random grams_5_with_pair)" \
		'pairs of partners in the cell at most 5 positions apart' "$(percent random pairs_within_5)"
	cat <<-END

		the paper: lung 9.34 %, kidney 18.16 %, heart 14.67 %, pan-cancer 23.01 %. Its text describes three of these measures: the first
		("a correlated gene exists inside the 5 closest tokens on either side of the targeted gene"), the third ("spans containing a pair"),
		and in section 3 the fourth.
	END
	;;
genesets)
	echo "Edges within known gene sets: $data"
	echo "sets: $sets${skip:+; without genes $skip}"
	echo "precision: share of the k strongest edges (|weight|) that join two genes of one set; only genes of some set count"
	echo "random: the same for random pairs of equally frequent genes"
	for g in corrmask corrmask-all pmi; do
		case $g in
		corrmask) echo; echo "CorrMask's graph (the 2,000 most expressed genes)" ;;
		corrmask-all) echo; echo "CorrMask's graph, all genes" ;;
		pmi) echo; echo "PMI graph, all genes" ;;
		esac
		printf '%8s %10s %10s %10s %8s %8s\n' k precision '+-' random ratio genes
		awk -F '\t' 'NR > 1 { printf "%8d %10.4f %10.4f %10.4f %8.2f %8d\n", $1, $2, 1.96 * $5, $3, $4, $6; n++ } END { if (!n) print "       (no edges)" }' "$dir/genesets.$g.tsv"
	done
	echo
	echo "+-: 1.96 standard errors, computed as if edges were independent, which they are not. genes: number of genes in the k edges."
	echo "The graphs have genes of different frequency: compare ratios, not precisions. GENE_SKIP='^RP[LS][0-9]' leaves out ribosomal"
	echo "proteins, if these make up most of the first edges and of their random pairs."
	;;
esac
