#!/usr/bin/env bash
# One run of make table6: pre-training on one corpus with one masking strategy, a linear probe of that model, fine-tuning, and the scores
# of both on the test cells. An interrupted run is continued.
#     table6/run.sh --inputs FOLDER --strategy NAME --size SIZE --seed N --out FOLDER [OPTION...]
#     table6/run.sh --inputs results/table6-inputs/latest --strategy corrmask --size 0.3 --seed 1 --out my_run --config tiny --lr 0.003
#
# --inputs FOLDER    the folder that make table6-inputs made
# --strategy NAME    random, bernoulli, pmi, pmi-rand, corrmask, corrmask-N, or scratch: random weights, no pre-training. NAME+25 masks 25 %
#                    of the tokens instead of 15 %; corrmask-25: lambda is 0.25; NAME+r2mae, NAME+mdlm and NAME+dyn are schedules (r2mae_mlm.mk)
# --size SIZE        the corpus: corpus-SIZE.tok and its graphs in the inputs (scratch: 0)
# --seed N           seed of masks, order, initial weights and dropout, in both trainings
# --out FOLDER       for pretrain.tsv, finetune.tsv and scores.tsv, which is written last
# --logs FOLDER      for the programs' messages (default: log in the folder of --out)
# --config, --epochs, --batch, --lr        of the pre-training (tiny, 3, 12, 0.003)
# --pt-args 'OPTION...'                    more options of sctrain mlm
# --ft-epochs, --ft-batch, --ft-lr         of the fine-tuning (10, 12, 0.001)
# --ft-args 'OPTION...'                    more options of sctrain cells (--patience 3)
# --threads N, --device DEVICE             as of the tools
# --keep-models 1    keep models and embeddings
. "$(dirname "$0")/../common.sh"
inputs='' strategy='' size='' seed='' out='' logs=''
config=tiny epochs=3 batch=12 lr=0.003 ft_epochs=10 ft_batch=12 ft_lr=0.001 pt_args='' ft_args='--patience 3' threads=1 device='' keep_models=0
options 'inputs strategy size seed out' 'logs config epochs batch lr pt-args ft-epochs ft-batch ft-lr ft-args threads device keep-models' "$@"
logs=${logs:-$out/log}
name=$strategy-$size-$seed
label=$(sed -n 's/^LABEL = //p' "$inputs/settings")
compute=(-@ "$threads")
[ -z "$device" ] || compute+=(--device "$device")
read -ra pt_args <<< "$pt_args"
read -ra ft_args <<< "$ft_args"

case $strategy in
*+r2mae) rates=(--rate-uniform 0.1:0.5) ;;
*+mdlm) rates=(--rate-uniform 0:1) ;;
*+dyn) rates=(--rate-linear 0.5:0.1) ;;
*+[0-9][0-9]) rates=(--rate "0.${strategy#*+}") ;;
*) rates=(--rate 0.15) ;;
esac
case ${strategy%+*} in
scratch) masks=() epochs=1 lr=0 ;; # one epoch on few cells that changes nothing
random) masks=(--strategy random) ;;
bernoulli) masks=(--strategy random --bernoulli) ;;
pmi | pmi-rand) masks=(--strategy "${strategy%+*}" -g "$inputs/pmi-$size.graph") ;;
corrmask) masks=(--strategy corrmask --lambda 0.5 -g "$inputs/corrmask-$size.graph") ;;
corrmask-[0-9]*)
	percent=${strategy%+*} percent=${percent#corrmask-}
	masks=(--strategy corrmask --lambda "$(awk -v p="$percent" 'BEGIN { print p / 100 }')" -g "$inputs/corrmask-$size.graph")
	;;
*)
	echo "table6/run.sh: unknown strategy '$strategy'" >&2
	exit 2
	;;
esac

probe() {
	scembed -q -M "$out/model" "${compute[@]}" -o "$out/learn.emb" "$inputs/learn.tok" &&
		scembed -q -M "$out/model" "${compute[@]}" -o "$out/test.emb" "$inputs/test.tok" &&
		ctaprobe cells -v --label "$label" --train "$out/learn.emb" --test "$out/test.emb" -@ "$threads" -o "$out/probe.score.tsv"
}
score() {
	scembed --predict -q -M "$out/cells" "${compute[@]}" -u "$inputs/test.tok" |
		ctaprobe score -v --label "$label" --train "$inputs/train.tok" -o "$out/finetune.score.tsv"
}

mkdir -p "$out"
[ -e "$out/model/model.safetensors" ] ||
	stage "pretrain-$name" "$here/train.sh" mlm "$out/model" "$inputs/corpus-$size.tok" "${masks[@]}" "${rates[@]}" --batch "$batch" \
		--epochs "$epochs" --seed "$seed" -- --config "$config" --lr "$lr" "${pt_args[@]}" --seed "$seed" "${compute[@]}"
cp "$out/model/train.tsv" "$out/pretrain.tsv"
stage "probe-$name" probe
stage "finetune-$name" "$here/train.sh" cells "$out/cells" "$inputs/train.tok" --strategy none --keep "$label" --batch "$ft_batch" \
	--epochs "$ft_epochs" --seed "$seed" -- --label "$label" --init "$out/model" --lr "$ft_lr" --eval "$inputs/valid.masked" \
	"${ft_args[@]}" --seed "$seed" "${compute[@]}"
cp "$out/cells/train.tsv" "$out/finetune.tsv"
stage "score-$name" score
for part in finetune probe; do sed "1d; s/^/$part\t/" "$out/$part.score.tsv"; done > "$out/scores.tsv.new"
whole "$out/scores.tsv"
[ "$keep_models" = 1 ] || rm -r "$out/model" "$out/cells" "$out"/{learn,test}.emb
