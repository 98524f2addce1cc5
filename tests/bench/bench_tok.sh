#!/bin/bash
# bench_tok.sh FILE.h5ad BENCH_INFLATE THREADS: check some cells of the output against plain Python, then time, the floor and the
# pipe in turns so that both see the same machine.
set -eo pipefail
file=$1 floor=$2 threads=$3 repeats=${REPEATS:-5}
h5tok=$BIN/h5tok rankenc=$BIN/rankenc tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$h5tok" -q -u -@"$threads" "$file" | "$rankenc" -q -m "$file.vocab.tsv" -u -@"$threads" >"$tmp/tok"
/usr/bin/python3 - "$file" "$file.vocab.tsv" <("$BIN/scview" -n 300 -c cell,token "$tmp/tok") <<'P'
import sys
import h5py
import numpy as np
f, median = h5py.File(sys.argv[1]), [float(l.split("\t")[3]) if l.split("\t")[3] != "NA\n" else 1 for l in list(open(sys.argv[2]))[1:]]
median, p = np.array(median), f["X/indptr"][:301]
for line in list(open(sys.argv[3]))[1:]:
    cell, tokens = line.rstrip("\n").split("\t")
    s = slice(p[int(cell)], p[int(cell) + 1])
    t = f["X/indices"][s] + 2
    want = t[np.lexsort((t, -(f["X/data"][s].astype(float) / median[t])))][:2048]
    assert tokens == " ".join(map(str, want)), "cell %s" % cell
print("300 cells checked")
P
cells=$("$BIN/scview" -s "$tmp/tok" | awk -F'\t' '$2 == "rows" { print $3; exit }')
rm "$tmp/tok"
for _ in $(seq "$repeats"); do
	"$floor" "$file" "$threads" 1 | cut -d' ' -f1,5 >>"$tmp/floor"
	start=$(date +%s.%N)
	/usr/bin/time -f '%M %U %S' -o "$tmp/m1" "$h5tok" -q -u -@"$threads" "$file" |
		/usr/bin/time -f '%M %U %S' -o "$tmp/m2" "$rankenc" -q -m "$file.vocab.tsv" -u -@"$threads" >/dev/null
	end=$(date +%s.%N)
	echo "$end - $start" | bc >>"$tmp/pipe"
	cat "$tmp/m1" >>"$tmp/h5tok"
	cat "$tmp/m2" >>"$tmp/rankenc"
	cat "$tmp/m1" "$tmp/m2" | awk '{ cpu += $2 + $3 } END { print cpu }' >>"$tmp/cpu"
done
sort -n "$tmp/floor" | awk -v pipe="$(sort -n "$tmp/pipe" | tr '\n' ' ')" -v cells="$cells" -v threads="$threads" \
	-v floor="$(cut -d' ' -f2 "$tmp/floor" | sort -n | head -1)" -v cpu="$(sort -n "$tmp/cpu" | head -1)" \
	-v m1="$(sort -n "$tmp/h5tok" | tail -1)" -v m2="$(sort -n "$tmp/rankenc" | tail -1)" '
	{ f[NR] = $1 }
	END {
		split(pipe, p, " "); mid = int((NR + 1) / 2)
		printf "%d cells, %d threads, %d runs\n", cells, threads, NR
		printf "libdeflate alone      best %.2f s   median %.2f s\n", f[1], f[mid]
		printf "h5tok -u | rankenc    best %.2f s   median %.2f s   %.0f cells/s (best), %.0f (median)\n", p[1], p[mid], cells / p[1], cells / p[mid]
		printf "ratio                 best %.2f     median %.2f\n", p[1] / f[1], p[mid] / f[mid]
		printf "processor time        libdeflate %.2f s   pipe %.2f s   ratio %.2f (best of each; for busy machines)\n", floor, cpu, cpu / floor
		printf "peak memory           h5tok %.0f MB   rankenc %.0f MB\n", m1 / 1024, m2 / 1024
	}'
