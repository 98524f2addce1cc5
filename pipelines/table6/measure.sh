# shellcheck shell=bash disable=SC2034,SC2154 # arm.sh sources this file
# What make table6 measures: cell types by fine-tuning and by a linear probe. Inputs are the folder that make table6-inputs made.
# --size SIZE        the corpus: corpus-SIZE.tok and its graphs in the inputs (scratch: 0)
# --ft-epochs, --ft-batch, --ft-lr         of the fine-tuning (10, 12, 0.001)
# --ft-args 'OPTION...'                    more options of sctrain cells (--patience 3)
epochs=3 size='' ft_epochs=10 ft_batch=12 ft_lr=0.001 ft_args='--patience 3' training=pretrain
required=size optional='ft-epochs ft-batch ft-lr ft-args'
kept=(model cells {learn,test}.emb)

set_up() {
	name=$arm-$size-$seed SIZE=$size GRAPH=$inputs/corrmask-$size.graph PMI=$inputs/pmi-$size.graph SHUFFLED=$inputs/shuffled-$size.graph
	label=$(sed -n 's/^LABEL = //p' "$inputs/settings")
	read -ra ft_args <<< "$ft_args"
}
probe() {
	embed_cells %.tok learn test &&
		ctaprobe cells -v --label "$label" --train "$out/learn.emb" --test "$out/test.emb" -@ "$threads" -o "$out/probe.score.tsv"
}
score() {
	scpredict cells -q -M "$out/cells" "${compute[@]}" -u "$inputs/test.tok" |
		ctaprobe score -v --label "$label" --train "$inputs/train.tok" -o "$out/finetune.score.tsv"
}
measure() {
	mv "$out/train.tsv" "$out/pretrain.tsv"
	stage "probe-$name" probe
	stage "finetune-$name" "$here/train.sh" cells "$out/cells" "$inputs/train.tok" --strategy none --keep "$label" --batch "$ft_batch" \
		--epochs "$ft_epochs" --seed "$seed" -- --label "$label" --init "$out/model" --lr "$ft_lr" --eval "$inputs/valid.masked" \
		"${ft_args[@]}" --seed "$seed" "${compute[@]}"
	cp "$out/cells/train.tsv" "$out/finetune.tsv"
	stage "score-$name" score
}
scores() { for part in finetune probe; do sed "1d; s/^/$part\t/" "$out/$part.score.tsv"; done; }
