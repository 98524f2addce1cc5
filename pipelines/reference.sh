#!/usr/bin/env bash
# Losses of two tables without a network, learnt on the cells of TRAIN, on the masked genes of each TEST; reference.awk says what they are.
# At most a million tokens of TRAIN are used, of cells in random order.
#     reference.sh TRAIN.tok SEED TEST.masked...
. "$(dirname "$0")/common.sh"
[ $# -ge 3 ] || usage
train=$1 seed=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scview --vocab "$train" > "$work/vocab"
maskgen -q --strategy none --seed "$seed" -u "$train" | scview -q -c input - > "$work/all"
awk '{ n += NF } n <= 1000000 || NR < 3' "$work/all" > "$work/train"
tests=()
for f; do
	scview -q -c input,position,target "$f" > "$work/${f##*/}"
	tests+=("NAME=$(basename "$f" .masked)" "$work/${f##*/}")
done
printf 'masks\tfrequency\tmedians\n'
awk -F '\t' -f "$(dirname "$0")/reference.awk" "$work/vocab" "$work/train" "$work/train" "${tests[@]}"
