#!/usr/bin/env bash
# The number of cells with each token, as token <TAB> cells.
#     audit/genesets-cells.sh TOKENS
. "$(dirname "$0")/../common.sh"
[ $# = 1 ] || usage
scview -c token "$1" | awk 'NR > 1 { for (i = 1; i <= NF; i++) cells[$i]++ } END { for (token in cells) print token "\t" cells[token] }'
