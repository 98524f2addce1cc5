#!/usr/bin/env bash
# One run of the experiments on objectives (objectives.mk): train a network, and measure it on the test cells. An interrupted run is continued.
#     bmfm/run.sh --split FOLDER --arm ARM --seed N --label COL --out FOLDER [OPTION...]
#     bmfm/run.sh --split results/bmfm-inputs/latest/split-1 --arm wced+hce --seed 1 --label cell_type --out my_run --epochs 6
#
# --split FOLDER     the cells that were prepared for one seed
# --arm ARM          bmfm/arms.sh says which there are
# --seed N           seed of masks, order, initial weights and dropout
# --label COL        the column with the cell type
# --out FOLDER       for train.tsv and scores.tsv, which is written last
# --logs FOLDER      for the programs' messages (default: log in the folder of --out)
# --ontology FILE, --programs FILE         terms; groups of genes for ctaprobe learnability
# --left-out COL     the test cells are a set that was left out (zeroshot.mk), and COL has coarse types: predictions of a probe and of both decodings
#                    are scored by the ontology, and the integration of sets over all cells
# --stage NAME       the end of the names of stages (default: ARM-N)
# --config, --epochs, --batch, --lr        of the training (bmfm-tiny, 6, 12, 0.002)
# --min-expressed N  genes that ctaprobe learnability leaves out (100)
# --threads N        as of the tools
# --keep-models 1    keep model and embeddings
. "$(dirname "$0")/../common.sh"
split='' arm='' seed='' label='' out='' logs='' ontology='' programs=''
left_out='' stage=''
config=bmfm-tiny epochs=6 batch=12 lr=0.002 min_expressed=100 threads=1 keep_models=0
options 'split arm seed label out' 'logs ontology programs left-out stage config epochs batch lr min-expressed threads keep-models' "$@"
wrong=$("$here/bmfm/arms.sh" "$arm")
if [ -n "$wrong" ]; then
	echo "bmfm/run.sh: $wrong" >&2
	exit 2
fi
logs=${logs:-$out/log}
stage=${stage:-$arm-$seed}
batch_by=$(cat "$split/group") # whole groups are in one part, so a batch is one of them
compute=(-@ "$threads")

# ---- the arm: OBJECTIVE[+r2mae][+COLUMN-LOSS][+tuned] ----
objective=${arm%%+*} masks=() heads=() pool=mean task='' column='' tuned='' first_epochs=$epochs first_lr=$lr
case $objective in
expression | pca | expression-shared | pca-shared) ;;
untrained) task=wced masks=(--objective cell) first_epochs=1 first_lr=0 ;; # one epoch on few cells that changes nothing
mlm-random) task=mlm masks=(--objective value --field gene) ;;
mlm-corrmask) task=mlm masks=(--objective value --field gene --strategy corrmask --lambda 0.5 -g "$split/graph") ;;
value) task=value masks=(--objective value) ;;
wced) task=wced pool=token:0 masks=(--objective cell) ;;
wced-zeros) task=wced pool=token:0 masks=(--objective cell --unmeasured zero) ;;
esac
measured=("${masks[@]}") # all arms of an objective are measured at its usual rate
for part in $(tr + ' ' <<< "${arm#"$objective"}"); do
	case $part in
	r2mae) masks+=(--rate-uniform 0.1:0.5) ;;
	tuned) tuned=1 ;;
	hce) column=term heads=(--head "term:hce,position=1" --ontology "$ontology") ;;
	*-hce) column=${part%-*} heads=(--head "$column:hce,position=1" --ontology "$ontology") ;;
	*-ce) column=${part%-*} heads=(--head "$column:ce,position=1") ;;
	esac
done
[ -z "$column" ] || pool=token:1 masks+=(--keep "$column" --count-kept)

# ---- its stages, which join with &&, as set -e does nothing in them ----
few_cells() { scsample -v -n "$batch" --seed "$seed" -o "$out/few.tok" "$cells"; }
train() {
	"$here/train.sh" "$task" "$out/model" "$cells" "${masks[@]}" --batch "$batch" --epochs "$first_epochs" --seed "$seed" -- \
		--config "$config" --lr "$first_lr" "${heads[@]}" --seed "$seed" "${compute[@]}"
}
tune() {
	"$here/train.sh" cells "$out/tuned" "$split/train.tok" --objective cell --strategy none --keep "$label" --count-kept --batch "$batch" --epochs "$epochs" --seed "$seed" -- \
		--init "$out/model" --label "$label" --lr "$lr" --seed "$seed" "${compute[@]}"
}
embed() {
	local part shared=''
	[[ $objective != *-shared ]] || shared=shared-
	for part in train test; do
		case $objective in
		expression*) scembed -v --expression --fit "$split/${shared}train.counts" "${compute[@]}" -o "$out/$part.emb" "$split/$shared$part.counts" ;;
		pca*) scembed -v --pca 50 --fit "$split/${shared}train.counts" "${compute[@]}" -o "$out/$part.emb" "$split/$shared$part.counts" ;;
		*) scembed -v -M "$out/model" --pool "$pool" "${compute[@]}" -o "$out/$part.emb" "$split/$part.tok" ;;
		esac || return
	done
}
score() { # a wide input has no silhouettes worth their time
	ctaprobe cells -v --label "$label" --train "$out/train.emb" --test "$out/test.emb" "${compute[@]}" -o "$out/cells.tsv" || return
	[ "$objective" = expression ] || ctaprobe integration -v --label "$label" ${batch_by:+--batch "$batch_by"} --seed "$seed" "${compute[@]}" \
		-o "$out/integration.tsv" "$out/test.emb"
}
# A probe has no ontology: a term and a finer one are rivals for it, so one more learns from the cells whose terms are leaves
score_left_out() {
	local how leaves
	mapfile -t leaves < <(sed "s/^/$label=/" "$split/leaves")
	scsample -q "${leaves[@]/#/--where=}" -o "$out/leaf.emb" "$out/train.emb" || return
	for how in probe:train leafprobe:leaf; do
		ctaprobe cells -v --label "$label" --train "$out/${how#*:}.emb" --test "$out/test.emb" --predictions "$out/${how%:*}.pred" "${compute[@]}" \
			-o "$out/cells.tsv" &&
			ctaprobe score -v --label "$label" --ontology "$ontology" -o "$out/${how%:*}.tsv" "$out/${how%:*}.pred" || return
	done
	[[ $objective = expression* ]] || {
		scsample -q -o "$out/all.emb" "$out/train.emb" "$out/test.emb" &&
			ctaprobe integration -v --label "$left_out" --batch "$batch_by" --seed "$seed" "${compute[@]}" -o "$out/integration.tsv" "$out/all.emb"
	}
}
predict() {
	scembed -v -M "$out/model" --predict --head "$column" "${compute[@]}" -o "$out/head.pred" "$split/test.tok" &&
		ctaprobe score -v --label term --ontology "$ontology" -o "$out/head.tsv" "$out/head.pred" || return
	[ -z "$left_out" ] || {
		scembed -v -M "$out/model" --predict --head "$column" --decode greedy "${compute[@]}" -o "$out/greedy.pred" "$split/test.tok" &&
			ctaprobe score -v --label term --ontology "$ontology" -o "$out/greedy.tsv" "$out/greedy.pred"
	}
}
# Draws are of groups, since cells of one are alike; if the test has fewer than three, of cells
predict_tuned() {
	local unit=()
	scembed -v -M "$out/tuned" --predict "${compute[@]}" -o "$out/tuned.pred" "$split/test.tok" || return
	[ -z "$batch_by" ] || [ "$(scview -q -c "$batch_by" "$out/tuned.pred" | sort -u | wc -l)" -lt 4 ] || unit=(--group "$batch_by")
	ctaprobe score -v --label "$label" --train "$split/train.tok" --bootstrap 1000 "${unit[@]}" --seed "$seed" -o "$out/tuned.tsv" "$out/tuned.pred"
}
# Masked values are few, so the cells are masked ten times
by_gene() {
	local how gate times=1
	[ "$task" != value ] || times=10
	maskgen -q "${measured[@]}" --epochs $times --seed "$((seed + 1000))" -u "$split/test.tok" | sctrain eval -v -M "$out/model" --genes "$out/genes.tsv" "${compute[@]}" -o "$out/eval.tsv" || return
	awk -F '\t' -v least="$min_expressed" 'NR > 1 && $4 >= least { n++ } END { exit !(n > 1) }' "$out/genes.tsv" || return 0 # too few cells for this
	for how in gated ungated; do
		gate=()
		[ $how = gated ] || gate=(--ungated)
		ctaprobe learnability -v "${gate[@]}" --min-expressed "$min_expressed" --genes "$out/$how.genes.tsv" ${programs:+--groups "$programs"} \
			-o "$out/$how.learned.tsv" "$out/genes.tsv" || return
	done
}
# take FILE PREFIX METRIC...: these metrics of FILE, if it is there
take() {
	local file=$1 prefix=$2 metric
	shift 2
	[ -e "$file" ] || return 0
	for metric; do
		awk -F '\t' -v m="$metric" -v p="$prefix" '$1 == m { v = $2 } END { if (v != "") print p m "\t" (v == "nan" ? "NA" : v) }' "$file"
	done
}

mkdir -p "$out"
if [ -n "$task" ]; then
	cells=$split/train.tok
	if [ "$objective" = untrained ]; then
		stage "scsample-$stage" few_cells
		cells=$out/few.tok
	fi
	[ -e "$out/model/model.safetensors" ] || stage "sctrain-$stage" train
	cp "$out/model/train.tsv" "$out/train.tsv"
	[ -z "$column" ] || stage "scembed-$stage-head" predict
	[[ $task = mlm || $objective = untrained || -n $left_out ]] || stage "eval-$stage" by_gene
fi
if [ -n "$tuned" ]; then
	stage "sctrain-$stage-tuned" tune
	stage "scembed-$stage-tuned" predict_tuned
else
	stage "scembed-$stage" embed
	stage "ctaprobe-$stage" "score${left_out:+_left_out}"
fi
{
	printf 'metric\tvalue\n'
	[ -n "$left_out" ] || take "$out/cells.tsv" '' macro_f1 accuracy f1_rare
	take "$out/tuned.tsv" '' macro_f1 accuracy f1_rare macro_f1_low macro_f1_high accuracy_low accuracy_high
	take "$out/integration.tsv" '' avg_bio_swept avg_batch
	for how in probe leafprobe head greedy; do
		take "$out/$how.tsv" "${how}_" exact finer coarser wrong hierarchical_f1 macro_f1 accuracy
	done
	for how in gated ungated; do
		take "$out/$how.learned.tsv" "${how}_" spearman explained rescaled_median better_than_mean winners winners_sparse losers genes
	done
} > "$out/scores.tsv.new"
rm -f "$out"/few.tok "$out"/{cells,tuned,integration,head,probe,leafprobe,greedy}.tsv "$out"/*.pred "$out"/{all,leaf}.emb
[ "$keep_models" = 1 ] || rm -rf "$out/model" "$out/tuned" "$out"/{train,test}.emb
whole "$out/scores.tsv"
