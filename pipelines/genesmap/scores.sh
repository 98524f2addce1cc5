#!/usr/bin/env bash
# The graphs against the sets: all edges, and as many of the strongest ones as the smallest graph has (column strongest; empty: all).
#     genesmap/scores.sh SETS OUT SEED GRAPH...
. "$(dirname "$0")/../common.sh"
[ $# -ge 4 ] || usage
sets=$1 out=$2 seed=$3
shift 3
fewest=$(for g; do depgraph -q -O stats "$g" | awk -F '\t' '$1 == "edges" { print $2 }'; done | awk '$1 > 0 && (n == "" || $1 < n) { n = $1 } END { print n }')
{
	scgenes genesets -v --sets "$sets" --seed "$seed" "$@" | awk '{ print (NR == 1 ? "strongest" : "") "\t" $0 }'
	scgenes genesets -q --sets "$sets" --seed "$seed" --strongest "${fewest:-1}" "$@" | awk -v n="$fewest" 'NR > 1 { print n "\t" $0 }'
} > "$out.new"
whole "$out"
