#!/usr/bin/env bash
# The cells as the trained network, or an untrained one, sees them; their genes are cut to those that the training had.
#     embed.sh PRETRAIN NETWORK TOKENS OUT OPTION-OF-SCEMBED...
. "$(dirname "$0")/../common.sh"
[ $# -ge 4 ] || usage
run=$1 network=$2 tokens=$3 out=$4
shift 4
most=$(awk -F '\t' '$1 == "max_len" { print $2 }' "$run/plan.tsv")
[ -n "$most" ] || most=$(sed -n 's/.*"max_position_embeddings"[^0-9]*\([0-9]*\).*/\1/p' "$run/$network/config.json")
scembed -v -M "$run/$network" ${most:+--max-len "$most"} "$@" -o "$out" "$tokens"
