# shellcheck shell=bash disable=SC2034,SC2154 # arm.sh sources this file
# What the experiments on objectives measure (objectives.mk): cell types by a probe or by fine-tuning, integration, the terms that heads predict, genes.
# --label COL        the column with the cell type
# --ontology FILE, --programs FILE         terms; groups of genes for scmetric learnability
# --left-out COL     the test cells are a set that was left out (zeroshot.mk), and COL has coarse types: predictions of a probe and of both decodings
#                    are scored by the ontology, the integration of sets over all cells, and the separation of the terms over the test
#                    cells alone, by the embedding and by the logits of a probe and of a head
# --stage NAME       the end of the names of stages (default: ARM-N)
# --min-expressed N  genes that scmetric learnability leaves out (100)
config=bmfm-tiny lr=0.002 ontology='' programs='' left_out='' stage='' min_expressed=100
required=label optional='ontology programs left-out stage min-expressed'
made=(few.tok {cells,tuned,{,left.,{head,probe,leafprobe}.left.}integration,head,probe,leafprobe,greedy}.tsv {tuned,head,probe,leafprobe,greedy}.pred {all,leaf}.emb)
kept=(model tuned {train,test}.emb)

set_up() { name=${stage:-$name} ONTOLOGY=$ontology; }
# The arms without genes for scmetric integration: a wide input has no silhouettes worth their time
wide() { [[ ${embed[0]} = @(expression|naive-bayes) ]]; }

tune() {
	"$here/train.sh" cells "$out/tuned" "$inputs/train.tok" --objective cell --strategy none --keep "$label" --count-kept --batch "$batch" --epochs "$epochs" --seed "$seed" -- \
		--init "$out/model" --label "$label" --lr "$lr" --seed "$seed" "${compute[@]}"
}
integration() { # LABEL BATCH FILE [PREFIX]
	scmetric integration -v --preset bmfm --label "$1" ${2:+--batch-key "$2"} --seed "$seed" "${compute[@]}" -o "$out/${4:-}integration.tsv" "$out/$3"
}
probe() { # TRAIN OPTION...
	ctaprobe cells -v --label "$label" --train "$out/$1.emb" --test "$out/test.emb" "${bayes[@]}" "${@:2}" "${compute[@]}" -o "$out/cells.tsv"
}
score() { probe train && { wide || integration "$label" "$batch_by" test.emb; }; }
# by_terms LABEL NAME: the scores of NAME.pred by the ontology; greedy ones have the logits of the others
by_terms() {
	ctaprobe score -v --label "$1" --ontology "$ontology" -o "$out/$2.tsv" "$out/$2.pred" || return
	[[ -z $left_out || $2 = greedy ]] || integration "$1" '' "$2.pred" "$2.left."
}
# A probe has no ontology: a term and a finer one are rivals for it, so one more learns from the cells whose terms are leaves
score_left_out() {
	local how leaves
	mapfile -t leaves < <(sed "s/^/$label=/" "$inputs/leaves")
	scsample -q "${leaves[@]/#/--where=}" -o "$out/leaf.emb" "$out/train.emb" || return
	for how in probe:train leafprobe:leaf; do
		probe "${how#*:}" --predictions "$out/${how%:*}.pred" && by_terms "$label" "${how%:*}" || return
	done
	wide || { scsample -q -o "$out/all.emb" "$out/train.emb" "$out/test.emb" && integration "$left_out" "$batch_by" all.emb && integration "$label" '' test.emb left.; }
}
predict() { # OUT OPTION...
	scpredict cells -v -M "$out/model" --head "$column" "${@:2}" "${compute[@]}" -o "$out/$1.pred" "$inputs/test.tok" && by_terms term "$1"
}
predictions() { predict head && { [ -z "$left_out" ] || predict greedy --decode greedy; }; }
# Draws are of groups, since cells of one are alike; if the test has fewer than three, of cells
predict_tuned() {
	local unit=()
	scpredict cells -v -M "$out/tuned" "${compute[@]}" -o "$out/tuned.pred" "$inputs/test.tok" || return
	[ -z "$batch_by" ] || [ "$(scview -q -c "$batch_by" "$out/tuned.pred" | sort -u | wc -l)" -lt 4 ] || unit=(--group "$batch_by")
	ctaprobe score -v --label "$label" --train "$inputs/train.tok" --bootstrap 1000 "${unit[@]}" --seed "$seed" -o "$out/tuned.tsv" "$out/tuned.pred"
}
# All arms of an objective are measured at its usual rate. Masked values are few, so the cells are masked ten times
by_gene() {
	local how gate times=1
	[ "$task" != value ] || times=10
	maskgen -q "${plain_masks[@]}" --epochs $times --seed "$((seed + 1000))" -u "$inputs/test.tok" | sctrain eval -v -M "$out/model" --gene-scores "$out/genes.tsv" "${compute[@]}" -o "$out/eval.tsv" || return
	awk -F '\t' -v least="$min_expressed" 'NR > 1 && $4 >= least { n++ } END { exit !(n > 1) }' "$out/genes.tsv" || return 0 # too few cells for this
	for how in gated ungated; do
		gate=()
		[ $how = gated ] || gate=(--ungated)
		scmetric learnability -v "${gate[@]}" --min-expressed "$min_expressed" --gene-scores "$out/$how.genes.tsv" ${programs:+--groups "$programs"} \
			-o "$out/$how.learned.tsv" "$out/genes.tsv" || return
	done
}
measure() {
	batch_by=$(cat "$inputs/group") # whole groups are in one part, so a batch is one of them
	column=${learn[1]:-} column=${column%%:*} # of --head COLUMN:LOSS
	[[ -z $column || $arm = *-reverse* ]] || stage "scpredict-$name-head" predictions
	[[ $task = mlm || -z $task || $arm = untrained* || -n $left_out ]] || stage "eval-$name" by_gene
	if [[ $arm = *+tuned ]]; then
		stage "sctrain-$name-tuned" tune
		stage "scpredict-$name-tuned" predict_tuned
	else
		stage "embed-$name" embed_cells %.tok train test
		stage "ctaprobe-$name" "score${left_out:+_left_out}"
	fi
}
scores() {
	local how
	printf 'metric\tvalue\n'
	[ -n "$left_out" ] || take "$out/cells.tsv" '' macro_f1 accuracy f1_rare
	take "$out/tuned.tsv" '' macro_f1 accuracy f1_rare macro_f1_low macro_f1_high accuracy_low accuracy_high
	take "$out/integration.tsv" '' avg_bio_swept avg_batch
	take "$out/left.integration.tsv" left_ avg_bio_swept
	for how in probe leafprobe head greedy; do
		take "$out/$how.tsv" "${how}_" exact finer coarser wrong hierarchical_f1 macro_f1 accuracy
		take "$out/$how.left.integration.tsv" "${how}_left_" avg_bio_swept
	done
	for how in gated ungated; do
		take "$out/$how.learned.tsv" "${how}_" spearman explained rescaled_median better_than_mean winners winners_sparse losers genes
	done
}
