#!/usr/bin/env bash
# One run of make ties: train a network, and measure it on the test cells. An interrupted run is continued.
#     ties/run.sh --split FOLDER --arm NAME --seed N --label COL --out FOLDER [OPTION...]
#     ties/run.sh --split results/ties/latest/split-1 --arm random-corrmask --seed 1 --label cell_type --out my_run --epochs 6
#
# --split FOLDER     the cells that make ties prepared for one seed
# --arm NAME         ENCODING-MASKS, see ties.mk; untrained: random weights; expression or pca: no network
# --seed N           seed of masks, order, initial weights and dropout
# --label COL        the column with the cell type
# --out FOLDER       for train.tsv and scores.tsv, which is written last
# --logs FOLDER      for the programs' messages (default: log in the folder of --out)
# --config, --epochs, --batch, --lr        of the training (tiny, 6, 12, 0.003)
# --pt-args 'OPTION...'                    more options of sctrain
# --few N            labels a class of the probe with few labels (5)
# --threads N        as of the tools
# --keep-models 1    keep model and embeddings
. "$(dirname "$0")/../common.sh"
split='' arm='' seed='' label='' out='' logs=''
config=tiny epochs=6 batch=12 lr=0.003 pt_args='' few=5 threads=1 keep_models=0
options 'split arm seed label out' 'logs config epochs batch lr pt-args few threads keep-models' "$@"
logs=${logs:-$out/log}
compute=(-@ "$threads")
read -ra pt_args <<< "$pt_args"
DRAWS=5 # of few labels: their mean depends less on which cells they are

encoding=${arm%-*} task=mlm objective=()
[ "$encoding" != value ] || task=value objective=(--objective value)
learn=$encoding
case $arm in
expression) embed=(--expression --fit "$split/train.counts") ;;
pca) embed=(--pca 50 --fit "$split/train.counts") ;;
*) embed=(-M "$out/model") ;;
esac
case $arm in
expression | pca) masks=() ;;
untrained) encoding=median learn=median masks=(--strategy random) epochs=1 lr=0 ;; # one epoch on few cells that changes nothing
*-random) masks=(--strategy random) ;;
*-corrmask) masks=(--strategy corrmask --lambda 0.5 -g "$split/graph") ;;
median-runs) masks=(--strategy runs) learn=random ;; # the ties are needed; their order stays
*)
	echo "ties/run.sh: unknown arm '$arm'" >&2
	exit 2
	;;
esac

# The functions of stage join with &&, as set -e does nothing in them.
few_cells() { scsample -v -n "$batch" --seed "$seed" -o "$out/few.tok" "$cells"; }
train() {
	"$here/train.sh" "$task" "$out/model" "$cells" "${masks[@]}" --rate 0.15 "${objective[@]}" --batch "$batch" --epochs "$epochs" --seed "$seed" -- \
		--config "$config" --lr "$lr" "${pt_args[@]}" --seed "$seed" "${compute[@]}"
}
embed() {
	local part form=$encoding.%.tok
	[ "${#masks[@]}" != 0 ] || form=%.counts
	for part in train test; do
		scembed -v "${embed[@]}" "${compute[@]}" -o "$out/$part.emb" "$split/${form/\%/$part}" || return
	done
}
probe() { # probe OUT TRAIN.emb OPTION...
	ctaprobe cells -v --label "$label" --train "$2" --test "$out/test.emb" "${compute[@]}" -o "$out/$1.tsv" "${@:3}"
}
probes() {
	local i
	probe all "$out/train.emb" && probe knn "$out/train.emb" --nearest 15 || return
	for ((i = 1; i <= DRAWS; i++)); do
		scsample -q --cap "$label:$few" --seed $i -o "$out/few.emb" "$out/train.emb" && probe few$i "$out/few.emb" || return
	done
}
# of METRIC FILE: its value
of() { awk -F '\t' -v m="$1" '$1 == m { v = $2 } END { print v == "" ? "NA" : v }' "$2"; }

mkdir -p "$out"
if [ ${#masks[@]} -gt 0 ]; then
	cells=$split/$learn.train.tok
	if [ "$arm" = untrained ]; then
		stage "scsample-$arm-$seed" few_cells
		cells=$out/few.tok
	fi
	[ -e "$out/model/model.safetensors" ] || stage "sctrain-$arm-$seed" train
	cp "$out/model/train.tsv" "$out/train.tsv"
	for p in test hidden visible; do
		stage "eval-$arm-$seed-$p" "$here/reliance/eval.sh" "$out/model" "$split/$encoding.$p.masked" "$out/$p.tsv" "${compute[@]}"
	done
fi
stage "scembed-$arm-$seed" embed
stage "ctaprobe-$arm-$seed" probes
{
	printf 'metric\tvalue\n'
	if [ ${#masks[@]} -gt 0 ]; then
		printf 'loss\t%s\n' "$(of loss "$out/test.tsv")"
		visible=$(of loss "$out/visible.tsv") hidden=$(of loss "$out/hidden.tsv")
		printf 'visible\t%s\nhidden\t%s\nR\t%s\n' "$visible" "$hidden" "$(awk -v v="$visible" -v h="$hidden" 'BEGIN { print v == "NA" || h == "NA" ? "NA" : h - v }')"
	fi
	for m in macro_f1 accuracy f1_rare converged; do printf '%s\t%s\n' $m "$(of $m "$out/all.tsv")"; done
	for m in macro_f1 accuracy; do printf 'knn_%s\t%s\n' $m "$(of $m "$out/knn.tsv")"; done
	for ((i = 1; i <= DRAWS; i++)); do of macro_f1 "$out/few$i.tsv"; done | awk '{ s += $1 } END { printf "few_macro_f1\t%.6g\n", s / NR }'
} > "$out/scores.tsv.new"
rm -f "$out"/{all,knn,few?}.tsv "$out"/{test,hidden,visible}.{tsv,cells} "$out"/few.{tok,emb}
[ "$keep_models" = 1 ] || rm -rf "$out/model" "$out"/{train,test}.emb
whole "$out/scores.tsv"
