#!/usr/bin/env bash
# WHAT and the AUROC of the pairs that fig3/pairs.awk scores, ties counting half; of graphs also the number of edges and the share of them within modules.
#     fig3/pairs.sh WHAT VOCAB FILE [DIR]
. "$(dirname "$0")/../common.sh"
[ $# -ge 3 ] || usage
awk -F '\t' -v what="$1" -v dir="${4:-}" -f "$here/fig3/pairs.awk" "$2" "$3" | LC_ALL=C sort -k1,1g | awk -v what="$1" '
	$1 == "edges" { edges = $2; within = $3; next }
	$1 != last { tie(); last = $1 }
	{ s += $2; b += $3 }
	function tie() { area += s * (below + b / 2); above += s; below += b; s = b = 0 }
	END { tie(); printf "%s\t%.6f%s\n", what, area / above / below, edges ? sprintf("\t%d\t%.6f", edges, within / edges) : "" }'
