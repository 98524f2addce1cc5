#!/bin/sh
# fig3-recover.sh BIN SEED [DIR]: one simulation of appendix B.1; lines of method<TAB>AUROC. With DIR, also its matrices as
# DIR/matrix-NAME.txt, sums over squares of 4 x 4 genes, for the heat maps.
set -e
bin=$1 seed=$2 dir=$3 here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bin/scsim" --model b1 --seed "$seed" -o "$work/cells.tok"
"$bin/scview" --vocab "$work/cells.tok" > "$work/vocab"
"$bin/scview" -c token "$work/cells.tok" > "$work/cells"
"$bin/depgraph" --pmi --tau -1 --min-count 1 "$work/cells.tok" -u | "$bin/depgraph" --tsv -o "$work/npmi"
"$bin/depgraph" --min-overlap 20 "$work/cells.tok" -u | "$bin/depgraph" --tsv -o "$work/graph"
"$bin/depgraph" --min-overlap 20 --neighbours 999 "$work/cells.tok" -u | "$bin/depgraph" --tsv -o "$work/all"
for what in A C; do
	awk -F '\t' -v what=$what -v dir="$dir" -f "$here/fig3-pairs.awk" "$work/vocab" "$work/cells"
done
for what in npmi graph all; do
	awk -F '\t' -v what=$what -f "$here/fig3-pairs.awk" "$work/vocab" "$work/$what"
done
