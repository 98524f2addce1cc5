# shellcheck shell=bash
# simulate OUT DRUG CELLS SEED: cells whose types (cell_type) stand for mechanisms, each with three drugs of equal effect
simulate() {
	scsim -v --cells "$3" --genes 300 --modules 30 --types 5 --rarest 0.1 --depth 800 --seed "$4" -o "$1.sim"
	scview -q -c barcode,cell_type "$1.sim" | awk -F '\t' -v OFS='\t' -v drug="$2" 'NR == 1 { print $1, drug; next } { print $1, $2 "-" n[$2]++ % 3 + 1 }' > "$1.tsv"
	scview -q -O h5ad -o "$1.h5ad" "$1.sim"
	h5tok -q --obs-table "$1.tsv" -o "$1" "$1.h5ad"
	rm "$1".{sim,tsv,h5ad}
}
