#!/usr/bin/env bash
# Cells that are made ready before the training: few.tok for its first steps, known.tok and test.tok to embed, of training and held out, and valid.masked.
#     sample.sh PRETRAIN OUT VALID-CELLS PROBE-CELLS BATCH SEED
. "$(dirname "$0")/../common.sh"
[ $# = 6 ] || usage
run=$1 out=$2 valid=$3 probe=$4 batch=$5 seed=$6
plan() { awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$run/plan.tsv"; }
# draw N OUT FILE...: at most N cells; fewer are no reason for a warning
draw() { CORRMASK_REPORT='' scsample -q -n "$1" --seed "$seed" -o "$2" "${@:3}"; }
case $out in
*/few.tok) # of the first, the middle and the last file: the others are not read
	mapfile -t files < <(sed '/^#/d' "$run/train.txt" | awk '{ f[NR] = $0 } END { for (k = 0; k < 3; k++) { i = 1 + int(k * (NR - 1) / 2); if (!seen[i]++) print f[i] } }')
	draw $((60 * batch)) "$out" "${files[@]}"
	;;
*/known.tok) draw "$probe" "$out" "@$run/sample.train.txt" ;;
*/test.tok) if [ -e "$run/sample.held.txt" ]; then draw "$probe" "$out" "@$run/sample.held.txt"; else draw "$probe" "$out" "@$run/held-out.txt"; fi ;;
*/valid.masked) # ten validations cost at most a tenth of the training
	most=$(awk -v train="$(plan train)" -v epochs="$(plan epochs)" -v most="$valid" 'BEGIN { n = int(0.03 * train * epochs); if (n < 200) n = 200; print n < most ? n : most }')
	draw "$most" "$run/valid.tok" "@$run/held-out.txt"
	maskgen -v --batch "$batch" --seed "$seed" -o "$out" "$run/valid.tok"
	rm "$run/valid.tok"
	;;
*) usage ;;
esac
