#!/usr/bin/env bash
# Losses of a network on probes of partner reliance: OUT as of sctrain eval, and the losses of rows in OUT with .cells for .tsv. Without any
# target, as with a graph without edges, both have their first line only.
#     reliance/eval.sh MODEL PROBES.masked OUT.tsv [OPTION-OF-SCTRAIN...]
. "$(dirname "$0")/../common.sh"
[ $# -ge 3 ] || usage
model=$1 probes=$2 out=$3
shift 3
if scview -q -c target "$probes" | awk 'NR > 1 && NF { found = 1 } END { exit !found }'; then
	sctrain eval -v -M "$model" --cell-scores "${out%.tsv}.cells" -o "$out" "$@" "$probes"
else
	printf 'cell\tepoch\tmasked\tloss\tcorrect\n' > "${out%.tsv}.cells"
	printf 'metric\tvalue\n' > "$out"
fi
