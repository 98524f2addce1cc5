#!/usr/bin/env bash
# Train as all pipelines do: maskgen | sctrain. An interrupted training resumes from its last checkpoint; a finished model is replaced.
# EXPERIMENT/ARM instead of a task has its task and options from arms.tsv; $GRAPH or $PMI is its graph.
#     train.sh TASK MODEL TOKENS [OPTION-OF-MASKGEN...] -- [OPTION-OF-SCTRAIN...]
#     train.sh mlm my.model cells.tok --strategy random --rate 0.15 --epochs 3 -- --config tiny --lr 0.003
. "$(dirname "$0")/common.sh"
[ $# -ge 3 ] || usage
task=$1 model=$2 tokens=$3
shift 3
masks=() learn=()
[[ $task != */* ]] || arm "${task%/*}" "${task#*/}"
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	masks+=("$1")
	shift
done
[ $# -gt 0 ] || usage
shift
again=--resume
[ ! -e "$model/model.safetensors" ] || again=--force
maskgen "${masks[@]}" -u "$tokens" | sctrain "$task" -v "${learn[@]}" "$@" --save-every 200 $again -o "$model"
