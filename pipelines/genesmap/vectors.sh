#!/usr/bin/env bash
# Vectors of the genes that LEAST cells have.
#     genesmap/vectors.sh LEAST OUT OPTION-OF-SCEMBED...
. "$(dirname "$0")/../common.sh"
[ $# -ge 3 ] || usage
least=$1 out=$2
shift 2
scembed -v -u "$@" | scsample -q --where "cells>=$least" -o "$out"
genes=$(rows "$out")
[ "$genes" -ge 2 ] || {
	rm -f "$out"
	echo "LEAST_CELLS=$least: ${genes/#0/no} gene is in so many of the cells (MAP_GENE_CELLS): expected two or more" >&2
	exit 1
}
