#!/usr/bin/env bash
# fig3/recover.sh SEED [DIR]: one simulation of appendix B.1; lines of method<TAB>AUROC. With DIR, also its matrices as
# DIR/matrix-NAME.txt, sums over squares of 4 x 4 genes, for the heat maps.
. "$(dirname "$0")/../common.sh"
seed=$1 dir=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scsim --kind b1 --seed "$seed" -o "$work/cells.tok"
scview --vocab "$work/cells.tok" > "$work/vocab"
scview -c token "$work/cells.tok" > "$work/cells"
depgraph --pmi --tau -1 --min-count 1 "$work/cells.tok" -u | depgraph -O tsv -o "$work/npmi"
depgraph --min-overlap 20 "$work/cells.tok" -u | depgraph -O tsv -o "$work/graph"
depgraph --min-overlap 20 --candidates 999 "$work/cells.tok" -u | depgraph -O tsv -o "$work/all"
for what in A C; do "$here/fig3/pairs.sh" $what "$work/vocab" "$work/cells" "$dir"; done
for what in npmi graph all; do "$here/fig3/pairs.sh" $what "$work/vocab" "$work/$what"; done
