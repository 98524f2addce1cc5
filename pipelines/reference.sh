#!/usr/bin/env bash
# Losses of two tables without a network, learnt on the cells of TRAIN, on the masked genes of each TEST; reference.awk says what they are.
# At most a million tokens of TRAIN are used, of cells in random order. If TEST has values to predict (maskgen --objective value), the two are
# squared errors: of the mean of all values, and of the mean of the gene's values (as if one more were the mean of all).
#     reference.sh TRAIN.tok SEED TEST.masked...
. "$(dirname "$0")/common.sh"
[ $# -ge 3 ] || usage
train=$1 seed=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
has() { scview -q --header-tsv "$1" | grep -qx $'column\t'"$2"; }
if has "$1" value; then
	scview -q -c token,value "$train" > "$work/train"
	printf 'masks\tmean\tgene_mean\n'
	for f; do
		scview -q -c target,value "$f" | awk -F '\t' -v name="$(basename "$f" .masked)" '
			FNR == 1 { next }
			{ n = split($1, gene, " "); split($2, value, " ") }
			FILENAME != "-" { for (i = 1; i <= n; i++) { sum[gene[i]] += value[i]; of[gene[i]]++; total += value[i]; all++ } next }
			{
				for (i = 1; i <= n; i++) {
					k++
					a += (value[i] - total / all) ^ 2
					b += (value[i] - (sum[gene[i]] + total / all) / (of[gene[i]] + 1)) ^ 2
				}
			}
			END { if (k) print name "\t" a / k "\t" b / k }' "$work/train" -
	done
	exit
fi
scview --vocab "$train" > "$work/vocab"
rank=
! has "$1" rank || rank=,rank
maskgen -q --strategy none --seed "$seed" -u "$train" | scview -q -c input$rank - > "$work/all"
awk '{ n += NF } n <= 1000000 || NR < 3' "$work/all" > "$work/train"
tests=()
for f; do
	scview -q -c input,position,target$rank "$f" > "$work/${f##*/}"
	tests+=("NAME=$(basename "$f" .masked)" "$work/${f##*/}")
done
printf 'masks\tfrequency\tmedians\n'
awk -F '\t' -f "$here/reference.awk" "$work/vocab" "$work/train" "$work/train" "${tests[@]}"
