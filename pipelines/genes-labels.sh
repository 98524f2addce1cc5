#!/usr/bin/env bash
# Labels of the genes that scsim simulates, from their symbols: module or background.
#     genes-labels.sh TOKENS
. "$(dirname "$0")/common.sh"
[ $# = 1 ] || usage
scview --vocab "$1" | awk -F '\t' '$3 ~ /^(m|bg)[0-9.]+$/ { print $2 "\t" ($3 ~ /^bg/ ? "background" : "module") }'
