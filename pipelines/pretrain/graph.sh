#!/usr/bin/env bash
# The graph of the cells for training: PRETRAIN/dependency.graph or PRETRAIN/pmi.graph. An edge needs a twentieth of the cells that the graph is made of (10 to 200).
#     graph.sh PRETRAIN GRAPH OPTION-OF-DEPGRAPH...
. "$(dirname "$0")/../common.sh"
[ $# -ge 2 ] || usage
run=$1 graph=$2
shift 2
overlap=$(($(awk -F '\t' '$1 == "train" { print $2 }' "$run/plan.tsv") / 20))
how=(--min-overlap $((overlap < 10 ? 10 : overlap > 200 ? 200 : overlap)))
[[ $graph != */pmi.graph ]] || how=(--pmi)
depgraph -v "${how[@]}" "$@" -o "$graph" "@$run/train.txt"
