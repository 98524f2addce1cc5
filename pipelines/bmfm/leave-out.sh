#!/usr/bin/env bash
# Leave set number N out of the cells of sets.sh: FOLDER/OUT/{train,test}.{counts,tok}, vocab.tsv, shared-{train,test}.counts, leaves (terms of
# training cells without finer ones among them) and group, which is written last. Genes are chosen by the training cells. Of each set SET-CELLS cells are drawn (0: all).
#     bmfm/leave-out.sh FOLDER N SEED SET-CELLS GENES OUT [OPTION-OF-RANKENC...]
. "$(dirname "$0")/../common.sh"
[ $# -ge 6 ] || usage
dir=$1 n=$2 seed=$3 cells=$4 genes=$5 out=$6
shift 6
set=$(scview -q -c set "$dir/cells.counts" | awk -v n="$n" 'NR > 1 && !seen[$0]++ && ++sets == n { set = $0 } END { print set }')
[ -n "$set" ] || { echo "there is no set number $n to leave out" >&2; exit 1; }
mkdir -p "$out"
of_set=()
[ "$cells" = 0 ] || of_set=(--cap "set:$cells")
chosen=()
[ "$genes" = 0 ] || chosen=(--hvg "$genes" --batch-key set)
part() { # OUT IN CONDITION [OPTION...]
	scsample -v --where "$3" --where 'term!=NA' --seed "$seed" "${of_set[@]}" "${@:4}" -o "$1" "$2"
}
for kind in '' shared-; do
	all=$dir/cells.counts
	[ -z $kind ] || all=$dir/shared.counts
	part "$out/${kind}train.counts" "$all" "set!=$set" "${chosen[@]}"
	scview -q --vocab "$out/${kind}train.counts" > "$out/genes.tsv"
	part "$out/${kind}test.counts" "$all" "set=$set" --keep-genes "$out/genes.tsv"
done
rm "$out/genes.tsv"
rankenc -v --fit --vocab-style bmfm "$@" -o "$out/vocab.tsv" "$out/train.counts"
for one in train test; do
	rankenc -v -m "$out/vocab.tsv" --cls 2 "$@" -o "$out/$one.tok" "$out/$one.counts"
done
scview -q -c term "$out/train.counts" | sed 1d | awk -f "$here/bmfm/leaves.awk" "$dir/ontology.obo" - > "$out/leaves"
echo set > "$out/group.new"
whole "$out/group"
