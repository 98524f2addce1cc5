#!/usr/bin/env bash
# audit/genesets.sh EDGES DIR NAMES SET_MAX "K..." SKIP OUT GMT...: precision of the strongest edges against gene sets, see audit/genesets.awk.
. "$(dirname "$0")/../common.sh"
export LC_ALL=C
edges=$1 dir=$2 names=$3 most=$4 k=$5 skip=$6 out=$7
shift 7
{
	[ -z "$names" ] || zcat -f "$names" | awk -F '\t' 'NR > 1 && $1 != "" && $2 != "" { print "name\t" $1 "\t" $2 }'
	awk -F '\t' 'NR > 1 { print "gene\t" $1 "\t" $2 "\t" $3 }' "$dir/genes.tsv"
	awk -F '\t' 'NR > 1 && $3 != "" { print "symbol\t" $2 "\t" $3 }' "$dir/names.tsv"
	zcat -f "$@" | sed 's/^/set\t/'
	sort -t "$(printf '\t')" -k2,2n -k1,1n "$dir/cells.tsv" | sed 's/^/cells\t/'
	awk -F '\t' 'NR > 1 { print ($7 < 0 ? -$7 : $7) "\t" $1 "\t" $2 "\t" $4 "\t" $5 }' "$edges" |
		sort -t "$(printf '\t')" -k1,1gr -k2,2n -k4,4n | cut -f 2- | sed 's/^/edge\t/'
} | awk -v most="$most" -v ks="$k" -v skip="$skip" -f "$here/audit/genesets.awk" > "$out"
