# shellcheck shell=bash
# sets TOKENS: the modules of the genes that scsim simulates, from their symbols, as gene sets (.gmt)
sets() {
	scview -q --vocab "$1" | awk -F '\t' '$3 ~ /^m[0-9]+\./ { m = $3; sub(/\..*/, "", m); set[m] = set[m] "\t" $2 }
		END { for (m in set) print m "\tmodule of the simulation" set[m] }' | sort
}

# vectors LEAST OUT OPTION-OF-SCEMBED...: of the genes that LEAST cells have
vectors() {
	scembed -v -u "${@:3}" | scsample -q --where "cells>=$1" -o "$2"
	genes=$(rows "$2")
	[ "$genes" -ge 2 ] || {
		rm -f "$2"
		echo "LEAST_CELLS=$1: ${genes/#0/no} gene is in so many of the cells (MAP_GENE_CELLS): expected two or more" >&2
		exit 1
	}
}

# network GENES.emb OUT NEAREST RESOLUTION SEED THREADS: the graph of nearest genes with its modules
network() { scgenes network -v -k "$3" -@ "$6" "$1" | depgraph -v --leiden "$4" --seed "$5" -o "$2" -; }

# static TOKENS GENES.emb OUT NEAREST MODEL OPTION-OF-SCGENES...: the graph of nearest genes in the model's table of tokens, of those genes that GENES.emb has
static() {
	mapfile -t where < <(scview -q -c token "$2" | awk 'NR > 1 { print "--where"; print "token=" $1 }')
	scembed -q -u -M "$5" --of static "$1" | scsample -q -u "${where[@]}" - | scgenes network -v -k "$4" -o "$3" "${@:6}"
}

# scores SETS OUT SEED GRAPH...: the graphs against the sets: all edges, and as many of the strongest ones as the smallest graph has (column strongest; empty: all)
scores() {
	fewest=$(for g in "${@:4}"; do depgraph -q -O stats "$g" | awk -F '\t' '$1 == "edges" { print $2 }'; done | awk '$1 > 0 && (n == "" || $1 < n) { n = $1 } END { print n }')
	how=(scgenes genesets --sets "$1" --seed "$3")
	{
		"${how[@]}" -v "${@:4}" | awk '{ print (NR == 1 ? "strongest" : "") "\t" $0 }'
		"${how[@]}" -q --strongest "${fewest:-1}" "${@:4}" | awk -v n="$fewest" 'NR > 1 { print n "\t" $0 }'
	} > "$2.new"
	whole "$2"
}
