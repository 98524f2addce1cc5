#!/usr/bin/env bash
# Simulated sets of cells that measured different genes: FOLDER/set1.h5ad has all genes, set2 to set4 have no every fourth one, each another fourth.
#     bmfm/sim-sets.sh FOLDER CELLS-OF-A-SET SEED [OPTION-OF-SCSIM...]
. "$(dirname "$0")/../common.sh"
[ $# -ge 3 ] || usage
dir=$1 cells=$2 seed=$3
shift 3
scsim -v "$@" --cells $((4 * cells)) --donors 4 --seed "$seed" -o "$dir/sim.counts"
for k in 1 2 3 4; do
	scview -q --vocab "$dir/sim.counts" | awk -v k=$k 'NR == 1 || k == 1 || NR % 4 != k - 2' > "$dir/genes.tsv"
	scsample -q --where "donor=donor$k" --keep-genes "$dir/genes.tsv" -o "$dir/one.counts" "$dir/sim.counts"
	scview -q -O h5ad -o "$dir/set$k.h5ad" "$dir/one.counts"
done
rm "$dir"/{sim,one}.counts "$dir/genes.tsv"
