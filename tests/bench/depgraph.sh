# depgraph.sh BIN CORPUS THREADS: phases and total, decoding included, and numpy's corrcoef on a slice.
set -e
bin=$1 corpus=$2 threads=$3
out=$(mktemp) log=$(mktemp)
trap 'rm -f "$out" "$log"' EXIT
start=$(date +%s.%N)
"$bin/depgraph" -v --top-genes 0 -@ "$threads" -o "$out" "$corpus" 2> "$log"
end=$(date +%s.%N)
cat "$log"
echo "$start $end" | awk '{ printf "total_s\t%.2f\n", $2 - $1 }'
/usr/bin/python3 - <<'END'
# dense ranks of 10,000 cells x 2,000 genes: the correlation alone, without ranking, candidates or local weights
import time
import numpy as np
X = np.random.default_rng(0).random((10000, 2000), dtype=np.float32)
best = min((lambda t: (np.corrcoef(X.T), time.time() - t)[1])(time.time()) for _ in range(3))
print(f"numpy_corrcoef_s_per_1e9_pair_cells\t{best / (2000 * 2000 / 2 * 10000 / 1e9):.4f}")
END
sed -n 's/.* \([0-9]*\) of [0-9]* cells, \([0-9]*\) genes.*/\1 \2/p; s/.*all pairs \([0-9.]*\) s.*/\1/p' "$log" | tr '\n' ' ' |
	awk '{ printf "depgraph_screen_s_per_1e9_pair_cells\t%.4f\n", $1 / ($3 * $3 / 2 * $2 / 1e9) }'
