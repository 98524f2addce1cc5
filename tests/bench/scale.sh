#!/usr/bin/env bash
# Rates and memory by the number of cells:   scale.sh BIN FOLDER "MILLIONS..." "SHARDS..."
# Simulated cells of about 35 of 300 genes, 300,000 of them repeated. Three tables: measured; what the two largest sizes give for 100 million
# cells, computed; what one of N shards decodes. The files in FOLDER are deleted at the end.
set -euo pipefail
bin=$(realpath "$1") folder=$2 sizes=$3 shards=$4
mkdir -p "$folder"
work=$(mktemp -d "$folder/scale.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
PATH=$bin:$PATH
part=300000

# measured MILLIONS WHAT COMMAND...: a row of measured.tsv; COMMAND takes --report itself
measured() {
	local millions=$1 what=$2
	shift 2
	"$@" --report report > /dev/null
	awk -F '\t' -v OFS='\t' -v millions="$millions" -v what="$what" '{ v[$1] = $2 }
		END { cpu = v["cpu_seconds"]
			printf "%s\t%s\t%.1f\t%.1f\t%.0f\t%d\n", what, millions, v["seconds"], cpu, 1e6 * millions / cpu, v["peak_memory_mb"] }' report | tee -a measured.tsv
}

scsim -q --cells $part --genes 300 --depth 60 --types 5 --donors 20 -o part.counts
rankenc -q --fit part.counts -o vocab.tsv
printf 'tool\tmillion cells\tseconds\tCPU seconds\tcells per CPU second\tpeak MB\n'
for millions in $sizes; do
	parts=()
	for ((i = 0; i < $(awk -v m="$millions" -v n=$part 'BEGIN { printf "%.0f", m * 1e6 / n }'); i++)); do parts+=(part.counts); done
	rm -f cells.*
	measured "$millions" "scsample, join of files of 0.3 million" scsample -q -o cells.counts "${parts[@]}"
	scview -q -O h5ad cells.counts -o cells.h5ad
	measured "$millions" h5tok h5tok -q -o cells.again cells.h5ad
	stat -c '%s %n' cells.h5ad cells.again | awk -v OFS='\t' -v cells="$millions" '{ print $2, cells, $1 / cells / 1e6 }' >> bytes.tsv
	rm cells.h5ad cells.again
	measured "$millions" "rankenc --fit" rankenc -q --fit -o fitted.tsv cells.counts
	measured "$millions" rankenc rankenc -q -m vocab.tsv -o cells.tok cells.counts
	rm cells.counts
	stat -c '%s %n' cells.tok | awk -v OFS='\t' -v cells="$millions" '{ print $2, cells, $1 / cells / 1e6 }' >> bytes.tsv
	measured "$millions" depgraph depgraph -q -o graph cells.tok
	measured "$millions" "maskgen, random" maskgen -q -u cells.tok
	measured "$millions" "maskgen, CorrMask" maskgen -q -g graph --strategy corrmask --lambda 0.5 -u cells.tok
	measured "$millions" "scsample -n --stratify" scsample -q -u -n 100000 --stratify cell_type cells.tok
	measured "$millions" "scsample --balance" scsample -q -u --balance cell_type cells.tok
	measured "$millions" "scsample --test-fraction --group" scsample -q -u --test-fraction 0.1 --group donor --part train cells.tok
done
echo
echo 'bytes a cell on disk'
awk -F '\t' '{ name = $1; sub(/cells.again/, "counts", name); sub(/cells\./, "", name); printf "%s\t%s\t%.0f\n", name, $2, $3 }' bytes.tsv

echo
echo 'computed, not measured: 100 million cells. Memory: a line through the two largest sizes. Minutes: the rate of the largest, on one core'
awk -F '\t' '{ if (!($1 in n)) order[++k] = $1; n[$1]++; was[$1] = now[$1]; wasat[$1] = at[$1]; now[$1] = $6; at[$1] = $2; rate[$1] = $5 }
	END { print "tool\tMB\tminutes"; for (i = 1; i <= k; i++) { t = order[i]; if (n[t] > 1) {
		slope = (now[t] - was[t]) / (at[t] - wasat[t]); if (slope < 0) slope = 0
		printf "%s\t%.0f\t%.0f\n", t, now[t] + slope * (100 - at[t]), 1e8 / rate[t] / 60 } } }' measured.tsv

echo
echo 'one of N shards (the last), one epoch: blocks and CPU seconds of one lane, and of as many lanes as shards'
printf 'shards\tcells\tblocks, 1 lane\tblocks, N lanes\tCPU s, 1 lane\tCPU s, N lanes\n'
for n in $shards; do
	maskgen -q -u --shard $((n - 1))/"$n" --report one cells.tok > /dev/null
	maskgen -q -u --shard $((n - 1))/"$n" --lanes "$n" --report many cells.tok > /dev/null
	awk -F '\t' -v n="$n" 'FILENAME == "one" { a[$1] = $2; next } { b[$1] = $2 }
		END { printf "%d\t%d\t%d\t%d\t%.2f\t%.2f\n", n, b["cells"], a["blocks_read"], b["blocks_read"], a["cpu_seconds"], b["cpu_seconds"] }' one many
done
