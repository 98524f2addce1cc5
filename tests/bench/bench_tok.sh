#!/bin/bash
# bench_tok.sh FILE.h5ad BENCH_INFLATE THREADS: check some cells of the output against plain Python, then time in turns, so that all see the
# same machine: the floor, h5tok --rank, and the pipe h5tok | rankenc.
set -eo pipefail
file=$1 floor=$2 threads=$3 repeats=${REPEATS:-5}
h5tok=$BIN/h5tok rankenc=$BIN/rankenc tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$h5tok" -q -u -@"$threads" "$file" | "$rankenc" -q -m "$file.vocab.tsv" -u -@"$threads" >"$tmp/tok"
"$h5tok" -q -u -@"$threads" --rank "$file.vocab.tsv" "$file" | cmp - "$tmp/tok"
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

# timed NAME COMMAND...: adds wall seconds, processor seconds and the largest peak memory of one process in MB to the file NAME
timed() {
	local name=$1 start end
	shift
	rm -f "$tmp"/used.*
	start=$(date +%s.%N)
	"$@" >/dev/null
	end=$(date +%s.%N)
	cat "$tmp"/used.* | awk -v wall="$(echo "$end - $start" | bc)" '
		{ cpu += $2 + $3; most = $1 > most ? $1 : most } END { printf "%.3f %.2f %.0f\n", wall, cpu, most / 1024 }' >>"$tmp/$name"
}
used() { /usr/bin/time -f '%M %U %S' -o "$tmp/used.$1" "${@:2}"; }
pipe() { used 1 "$h5tok" -q -u -@"$threads" "$file" | used 2 "$rankenc" -q -m "$file.vocab.tsv" -u -@"$threads"; }
rank() { used 1 "$h5tok" -q -u -@"$threads" --rank "$file.vocab.tsv" "$file"; }
for _ in $(seq "$repeats"); do
	"$floor" "$file" "$threads" 1 | awk '{ print $1, $5, 0 }' >>"$tmp/floor"
	timed rank rank
	timed pipe pipe
done

# row NAME TITLE: best and median wall seconds, cells a second, times the floor
column() { cut -d' ' -f"$2" "$tmp/$1" | sort -n; }
middle=$(((repeats + 1) / 2))
row() {
	local best median cpu memory
	best=$(column "$1" 1 | head -1) median=$(column "$1" 1 | sed -n "${middle}p") cpu=$(column "$1" 2 | head -1) memory=$(column "$1" 3 | tail -1)
	awk -v title="$2" -v b="$best" -v m="$median" -v c="$cpu" -v mb="$memory" -v fb="$(column floor 1 | head -1)" \
		-v fm="$(column floor 1 | sed -n "${middle}p")" -v fc="$(column floor 2 | head -1)" -v cells="$cells" '
		BEGIN { printf "%-20s %8.2f %8.2f %10.0f %10.0f %7.2f %7.2f %8.2f %7.2f %7s\n", title, b, m, cells / b, cells / m, b / fb, m / fm, c, c / fc, mb ? mb : "" }'
}
echo "$cells cells, $threads threads, $repeats runs; x: times libdeflate; processor seconds are for busy machines"
printf '%-20s %8s %8s %10s %10s %7s %7s %8s %7s %7s\n' '' 'best s' median 'cells/s' median x median 'cpu s' x MB
row floor 'libdeflate alone'
row rank 'h5tok -u --rank'
row pipe 'h5tok -u | rankenc'
