#!/usr/bin/env bash
# Simulated cells whose types (cell_type) stand for mechanisms, each with three drugs of equal effect.
#     moa/simulate.sh OUT DRUG CELLS SEED
. "$(dirname "$0")/../common.sh"
[ $# = 4 ] || usage
out=$1 drug=$2 cells=$3 seed=$4
scsim -v --cells "$cells" --genes 300 --modules 30 --types 5 --rarest 0.1 --depth 800 --seed "$seed" -o "$out.sim"
scview -q -c barcode,cell_type "$out.sim" | awk -F '\t' -v OFS='\t' -v drug="$drug" '
	NR == 1 { print $1, drug; next }
	{ print $1, $2 "-" n[$2]++ % 3 + 1 }' > "$out.tsv"
scview -q -O h5ad -o "$out.h5ad" "$out.sim"
h5tok -q --obs-table "$out.tsv" -o "$out" "$out.h5ad"
rm "$out".{sim,tsv,h5ad}
