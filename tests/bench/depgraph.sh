#!/bin/bash
# depgraph.sh BIN THREADS CORPUS...: every corpus with the default 2,000 genes and with all: wall and CPU seconds, memory, phases; then numpy's corrcoef on a slice.
set -eo pipefail
bin=$1 threads=$2
shift 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
printf 'cells\ttokens\tgenes\tpairs\ttotal_s\tcpu_s\tpeak_mb\tread_%%\tcolumns_%%\tall_pairs_%%\texact_%%\tcpu_us_per_cell\n'
for corpus; do
	# genes in 50 of 100,000 cells, and as rarely in fewer
	cells=$("$bin/scview" -s "$corpus" | awk -F '\t' '$2 == "rows" { print $3; exit }')
	tokens=$("$bin/scview" -s "$corpus" | awk -F '\t' '$1 == "token[]" && $2 == "items" { print $3 }')
	for top in 2000 0; do
		/usr/bin/time -f '%e %U %S %M' -o "$tmp/time" \
			"$bin/depgraph" -v --top-genes "$top" --min-cells $(((cells + 1999) / 2000)) -@ "$threads" -o "$tmp/graph" "$corpus" 2>"$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
		awk -v cells="$cells" -v tokens="$tokens" '
			NR == FNR { wall = $1; cpu = $2 + $3; peak = $4 / 1024; next }
			/all pairs/ { for (i = 1; i <= NF; i++) { if ($i == "columns") columns = $(i + 1); if ($i == "all") screen = $(i + 2); if ($i == "exactly") exact = $(i + 1); if ($i == "candidate") pairs = $(i - 1) } }
			/: read/ { for (i = 1; i <= NF; i++) { if ($i == "read") read = $(i + 1); if ($i == "genes") genes = $(i - 1) } }
			END { printf "%d\t%d\t%d\t%d\t%.2f\t%.2f\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\n", cells, tokens, genes, pairs, wall, cpu, peak,
				100 * read / wall, 100 * columns / wall, 100 * screen / wall, 100 * exact / wall, 1e6 * cpu / cells
				printf "%.6f %.0f %.0f\n", screen, cells, genes > "'"$tmp/last"'" }' "$tmp/time" "$tmp/log"
	done
done
echo
# What numpy takes for the correlations alone, without ranks, candidates and local weights, when given the ranks as a dense matrix.
OPENBLAS_NUM_THREADS=$threads /usr/bin/python3 - "$tmp/last" <<'P'
import sys, time
import numpy as np
screen, cells, genes = map(float, open(sys.argv[1]).read().split())
n, g = 10000, 2000
X = np.random.default_rng(0).random((n, g), dtype=np.float32)
def once():
    t = time.time()
    np.corrcoef(X.T)
    return time.time() - t
numpy = min(once() for _ in range(3)) / (g * (g - 1) / 2 * n)
ours = screen / (genes * (genes - 1) / 2 * cells)
print("numpy corrcoef\t%.4f ns a pair and cell (10,000 dense cells x 2,000 genes)" % (1e9 * numpy))
print("depgraph, all pairs\t%.4f ns a pair and cell" % (1e9 * ours))
print("ratio\t%.1f" % (numpy / ours))
print("numpy at this size\t%.0f s and %.0f GB for the matrix alone" % (numpy * genes * (genes - 1) / 2 * cells, genes * cells * 8 / 1e9))
P
