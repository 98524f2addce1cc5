#!/usr/bin/env bash
# The modules of the genes that scsim simulates, from their symbols, as gene sets (.gmt).
#     genesmap/sets.sh TOKENS
. "$(dirname "$0")/../common.sh"
[ $# = 1 ] || usage
scview -q --vocab "$1" | awk -F '\t' '$3 ~ /^m[0-9]+\./ { m = $3; sub(/\..*/, "", m); set[m] = set[m] "\t" $2 }
	END { for (m in set) print m "\tmodule of the simulation" set[m] }' | sort
