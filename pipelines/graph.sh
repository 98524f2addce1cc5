#!/usr/bin/env bash
# The graph of a small corpus. In the paper an edge needs 200 cells with both genes, of 100,000. Here it needs a twentieth of the cells,
# at least 10 and at most 200, unless an option says it.
#     graph.sh TOKENS GRAPH [OPTION-OF-DEPGRAPH...]
. "$(dirname "$0")/common.sh"
[ $# -ge 2 ] || usage
tokens=$1 graph=$2
shift 2
cells=$(rows "$tokens")
overlap=$((cells / 20))
overlap=$((overlap < 10 ? 10 : overlap > 200 ? 200 : overlap))
[[ " $* " == *' --min-overlap '* ]] || set -- --min-overlap $overlap "$@"
depgraph -v "$@" -o "$graph" "$tokens"
