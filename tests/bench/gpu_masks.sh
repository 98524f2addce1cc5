#!/bin/bash
# Random masks against CorrMask in hundreds of small networks on a GPU: what is left of half an hour with a card.
# NOT YET RUN ON A GPU: rehearsed on a CPU (tests/gpu.bats).
#
#     tests/bench/gpu_masks.sh -p PACK NAME=FILE.h5ad...     here: cells, graphs, probes and programs into PACK and PACK.tar.gz
#     tar -xzf PACK.tar.gz                                   there, in any folder
#     PACK/src/tests/bench/gpu_masks.sh -o OUT               appends a line to OUT/runs.tsv whenever a training ends
#     tests/bench/gpu_masks.sh -a RUNS.tsv...                at home: the comparison, of whatever came back
#
# -t  seconds in all (380)     -j  trainings side by side (14)     -b  RUNS.tsv of an earlier call, whose runs are not made again
# The networks have 128 channels, 2 layers and 2 heads of 64 (the tensor cores' size), and 2,500 steps of 12 cells. For each seed, all data
# sets and encodings have random masks and CorrMask's: a pair. With 140 pairs, a difference of .24 standard deviations is found at 5 % in 80 % of
# cases. Encodings (pipelines/ties/ties.mk): median, random and group; the last two tell nothing by the order of genes of equal count.
# What is compared was fixed before any run: the loss under random masks on held-out cells, and partner reliance (the loss of a masked gene
# with its partners masked too, minus that with them visible), CorrMask minus random in each data set and encoding; p by Holm.
# To try it: DEVICE=cpu, and smaller CELLS, STEPS, MAXLEN. Losses are computed on the CPU, whose cores are idle, since a process that
# opens the card costs as much as the computation.
set -u
here=$PWD
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/gpu_common.sh
usage() { sed -n '/^#     [tP]/p' "$0" >&2; exit 2; }
from_here() { case $1 in /*) echo "$1" ;; *) echo "$here/$1" ;; esac; }
pack='' out=gpu_masks total=380 jobs=14 before='' analyse=0
while getopts p:o:t:j:b:a o; do
	case $o in
	p) pack=$OPTARG ;; o) out=$OPTARG ;; t) total=$OPTARG ;; j) jobs=$OPTARG ;; b) before=$(from_here "$OPTARG") ;; a) analyse=1 ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
device=${DEVICE:-cuda}
cuda=$([ "${device%%[:,]*}" = cpu ] && echo 0 || echo 1)
columns=$'data\tencoding\tmasks\tseed\tloss\thidden\tvisible\treliance\ttrain_loss\tsteps\tseconds'
encodings="median random group"

# ---- at home, before: everything that needs HDF5 or a graph ----
count() { "$tools/scview" -q --columns cell "$1" | tail -n +2 | wc -l; }
# prepare NAME FILE FOLDER
prepare() {
	local name=$1 file=$2 d=$3/$1 cells=${CELLS:-3000} steps=${STEPS:-2500} length=${MAXLEN:-400} e ties part have
	mkdir -p "$d/made" && "$tools/h5tok" -q "$file" -o "$d/made/all.counts" || return
	for part in train test; do
		"$tools/scsample" -q --test-fraction 0.2 --part $part --seed 1 -o "$d/made/$part.all" "$d/made/all.counts" || return
	done
	have=$(count "$d/made/train.all")
	cells=$((have < cells ? have : cells))
	"$tools/scsample" -q -n "$cells" --seed 1 -o "$d/made/train.counts" "$d/made/train.all" &&
		"$tools/scsample" -q -n $((cells / 15)) --seed 1 -o "$d/made/test.counts" "$d/made/test.all" || return
	# genes of at least a twentieth of the cells: the loss is then not that of thousands of genes that hardly occur
	"$tools/rankenc" -q --fit --min-cells $((cells / 20)) -o "$d/made/vocab" "$d/made/train.counts" || return
	for e in $encodings; do
		ties=()
		[ "$e" = median ] || ties=(--ties "$e")
		for part in train test; do
			"$tools/rankenc" -q -m "$d/made/vocab" --min-matched 1 --max-len "$length" "${ties[@]}" -o "$d/made/$e.$part" "$d/made/$part.counts" || return
		done
		mv "$d/made/$e.train" "$d/$e.tok" || return
		[ "$e" != median ] || "$tools/depgraph" -q --min-overlap $((cells / 15)) -o "$d/graph" "$d/$e.tok" || return
		"$tools/maskgen" -q --strategy random --seed 1 -o "$d/$e.loss.masked" "$d/made/$e.test" &&
			"$tools/maskgen" -q --strategy probe --partners hidden --seed 1 -g "$d/graph" -o "$d/$e.hidden.masked" "$d/made/$e.test" &&
			"$tools/maskgen" -q --strategy probe --partners visible --seed 1 -g "$d/graph" -o "$d/$e.visible.masked" "$d/made/$e.test" || return
	done
	[ "$("$tools/scview" -q -c target "$d/median.hidden.masked" | awk 'NR > 1 && NF { n++ } END { print n + 0 }')" -gt 0 ] ||
		{ echo "gpu_masks.sh: $file: no held-out cell has two neighbours of the graph" >&2; return 1; }
	awk -v steps="$steps" -v n="$cells" 'BEGIN { e = int(steps * 12 / n + .5); print (e < 1 ? 1 : e) }' > "$d/epochs"
	sed -e "s/VOCABULARY/$("$tools/scview" -q --vocab "$d/median.tok" | awk 'NR > 1 && $1 + 1 > v { v = $1 + 1 } END { print v }')/" -e "s/LENGTH/$length/" \
		> "$d/config.json" <<-'END'
			{"model_type": "bert", "vocab_size": VOCABULARY, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256,
			"max_position_embeddings": LENGTH, "hidden_act": "relu", "hidden_dropout_prob": 0.02, "attention_probs_dropout_prob": 0.02}
		END
	rm -r "$d/made"
}
if [ -n "$pack" ]; then
	pack=$(from_here "$pack")
	programs="maskgen sctrain"
	[ "$cuda" = 0 ] || programs+=" corrmask_cuda.so"
	tools=${BIN:-bin}
	[ $# -gt 0 ] || usage
	for x; do
		prepare "${x%%=*}" "$(from_here "${x#*=}")" "$pack/data" || { echo "gpu_masks.sh: ${x#*=} could not be prepared" >&2; exit 1; }
	done
	# shellcheck disable=SC2086
	gpu_pack "$pack" $programs || exit
	tar -czf "$pack.tar.gz" -C "$(dirname "$pack")" "$(basename "$pack")" && ls -l "$pack.tar.gz"
	exit
fi

# ---- at home, after ----
# whole FILE...: the lines that are whole, once each. A call that was stopped may leave a part of a line, and runs without their pair
whole() {
	awk -F'\t' -v n="$(awk -F'\t' '{ print NF }' <<< "$columns")" 'NF == n && $1 != "data" && $NF ~ /^[0-9]+$/ { print }' "$@" | sort -u -t $'\t' -k 1,4
}
if [ $analyse = 1 ]; then
	[ $# -gt 0 ] || usage
	files=()
	for f; do files+=("$(from_here "$f")"); done
	tools=${BIN:-bin}
	table=$(mktemp) || exit 1
	trap 'rm -f "$table"' EXIT
	{ echo "$columns"; whole "${files[@]}" | awk -F'\t' '{ k = $1 FS $2 FS $4; line[NR] = $0; key[NR] = k; n[k]++ }
		END { for (i = 1; i <= NR; i++) if (n[key[i]] == 2) print line[i] }'; } > "$table"
	pairs=$((($(wc -l < "$table") - 1) / 2))
	echo "$(whole "${files[@]}" | wc -l) runs, $pairs pairs"
	[ $pairs -gt 1 ] || { echo "gpu_masks.sh: too few pairs to compare" >&2; exit 1; }
	echo
	echo "CorrMask minus random, in each data set and encoding:"
	"$tools/armstat" compare --metrics loss,reliance --arm masks --compare corrmask:random --within data,encoding --pair seed "$table" || exit
	[ "$(cut -f 2 "$table" | sort -u | wc -l)" -gt 2 ] || exit 0
	echo
	echo "Encodings without the sort order minus median, in each data set and strategy:"
	mapfile -t pairs < <(cut -f 2 "$table" | sed 1d | sort -u | sed -n '/^median$/!s/.*/--compare=&:median/p')
	"$tools/armstat" compare --metrics loss,reliance --arm encoding "${pairs[@]}" --within data,masks --pair seed "$table"
	exit
fi

# ---- on the machine with the card ----
bin=$(realpath ../bin) && data=$(realpath ../data) || exit 1
mkdir -p "$(from_here "$out")" && out=$(realpath "$(from_here "$out")") || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
[ -s "$out/runs.tsv" ] || echo "$columns" > "$out/runs.tsv"
[ -z "$before" ] || whole "$before" >> "$out/runs.tsv"
if [ "$cuda" = 1 ]; then
	nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 1
	gpu_libraries "$bin/corrmask_cuda.so"
fi
# one DATA ENCODING MASKS SEED
one() {
	local d=$data/$1 name=$1.$2.$3.$4 from=$SECONDS masks=(--strategy random) m
	local loss hidden visible
	[ "$3" = random ] || masks=(--strategy corrmask --lambda 0.5 -g "$d/graph")
	"$bin/maskgen" -q -b 12 --epochs "$(cat "$d/epochs")" "${masks[@]}" --seed "$4" -u "$d/$2.tok" | "$bin/sctrain" mlm -q -c "$d/config.json" --lr 0.003 --seed "$4" \
		--device "$device" --save-every 1000000 -o "$work/$name" - 2> "$work/$name.log" || { tail -n 1 "$work/$name.log" >> "$out/failed.log"; return; }
	for m in loss hidden visible; do
		read -r "${m?}" < <("$bin/sctrain" eval -q --device cpu -M "$work/$name" "$d/$2.$m.masked" 2>> "$out/failed.log" | awk -F'\t' '$1 == "loss" { print $2 }')
	done
	if [ -z "$loss" ] || [ -z "$hidden" ] || [ -z "$visible" ]; then return; fi
	tail -n 1 "$work/$name/train.tsv" | awk -F'\t' -v OFS='\t' -v key="$1	$2	$3	$4	$loss	$hidden	$visible" -v h="$hidden" -v v="$visible" -v s=$((SECONDS - from)) \
		'{ printf "%s\t%.6f\t%s\t%d\t%d\n", key, h - v, $2, $1, s }' >> "$out/runs.tsv"
	rm -rf "${work:?}/$name"
}
export -f one
export bin data out work device
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
for seed in $(seq 1 "${SEEDS:-200}"); do
	for d in "$data"/*; do
		for e in $encodings; do
			for m in random corrmask; do
				grep -q "^${d##*/}	$e	$m	$seed	" "$out/runs.tsv" || echo "${d##*/} $e $m $seed"
			done
		done
	done
done > "$work/list"
timeout --kill-after=5 $((total > SECONDS + 12 ? total - SECONDS - 10 : 2)) xargs -P "$jobs" -L 1 bash -c 'one "$@"' one < "$work/list"
done=$(($(wc -l < "$out/runs.tsv") - 1))
[ ! -s "$out/failed.log" ] || { echo "gpu_masks.sh: messages, the last of them:"; tail -n 3 "$out/failed.log"; }
echo "gpu_masks.sh: $done runs in $out/runs.tsv, $SECONDS s"
[ $done -gt 0 ]
