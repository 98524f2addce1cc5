#!/usr/bin/env bash
# One run of an experiment: train the network of an arm (arms.tsv), and measure it on the test cells (EXPERIMENT/measure.sh). An interrupted run is
# continued.
#     arm.sh EXPERIMENT --inputs FOLDER --arm ARM --seed N --out FOLDER [OPTION...]
#     arm.sh ties --inputs results/ties/latest/split-1 --arm random-corrmask --seed 1 --label cell_type --out my_run --epochs 6
#
# --inputs FOLDER    the cells that make prepared; of ties and bmfm those of one seed
# --seed N           seed of masks, order, initial weights and dropout
# --out FOLDER       for train.tsv and scores.tsv, which is written last
# --logs FOLDER      for the programs' messages (default: log in the folder of --out)
# --epochs, --batch, --lr     of the training
# --config, --pt-args 'OPTION...'    its network, and more options of sctrain; not of r2mae
# --threads N, --device DEVICE       as of the tools
# --keep-models 1    keep models and embeddings
# More options, and other defaults, are those of measure.sh.
. "$(dirname "$0")/common.sh"
experiment=${1:-}
[[ -n $experiment && -e $here/$experiment/measure.sh ]] || usage
# shellcheck disable=SC2034 # also of measure.sh and arms.py
inputs='' arm='' seed='' out='' logs='' label='' pt_args='' threads=1 device='' keep_models=0
config=tiny epochs=6 batch=12 lr=0.003 training=sctrain required='' optional='' masks=() more_masks=() learn=() embed=() graph_options=()
bayes=() # for ctaprobe cells
made=() kept=(model) # files under --out that are removed, and those that --keep-models 1 keeps
# shellcheck source=/dev/null
. "$here/$experiment/measure.sh"
options "inputs arm seed out $required" "logs config epochs batch lr pt-args threads device keep-models $optional" "${@:2}"
# shellcheck disable=SC2034 # of arms.py
GRAPH=$inputs/graph
logs=${logs:-$out/log} name=$arm-$seed compute=(-@ "$threads") network=(--config "$config")
[ -z "$device" ] || compute+=(--device "$device")
read -ra pt_args <<< "$pt_args"
set_up
arm "$experiment" "$arm"
if [ ${#graph_options[@]} != 0 ]; then
	made+=(graph)
	# shellcheck disable=SC2034 # of arms.py: the masks are by this graph
	GRAPH=$out/graph
	arm "$experiment" "$arm"
fi
# shellcheck disable=SC2034 # of measure.sh
[ "${embed[0]:-}" != naive-bayes ] || bayes=(--naive-bayes)

# The functions of stage join with &&, as set -e does nothing in them.
few_cells() { scsample -v -n "$batch" --seed "$seed" -o "$out/few.tok" "$inputs/$cells"; }
# train TOKENS EPOCHS RATE
train() {
	"$here/train.sh" "$task" "$out/model" "$1" "${masks[@]}" "${more_masks[@]}" --batch "$batch" --epochs "$2" --seed "$seed" -- \
		"${network[@]}" "${learn[@]}" --lr "$3" "${pt_args[@]}" --seed "$seed" "${compute[@]}"
}
# embed_cells FORM PART...: the cells of each PART, in the file FORM with it for %; without a network, those of PART.counts, which naive Bayes takes as they are
embed_cells() {
	local part form=$1 how=(scembed "${embed[@]}" -M "$out/model")
	[ -n "$task" ] || form=${cells/train/%} how=(screduce "${embed[@]}" --train "$inputs/$cells")
	for part in "${@:2}"; do
		if [ ${#bayes[@]} = 0 ]; then
			"${how[@]}" -v "${compute[@]}" -o "$out/$part.emb" "$inputs/${form/\%/$part}" || return
		else
			ln -sfr "$inputs/${form/\%/$part}" "$out/$part.emb"
		fi
	done
}
# take FILE PREFIX METRIC...: these metrics of FILE, if it is there
take() {
	local metric
	[ -e "$1" ] || return 0
	for metric in "${@:3}"; do
		awk -F '\t' -v m="$metric" -v p="$2" '$1 == m { v = $2 } END { if (v != "") print p m "\t" (v == "nan" ? "NA" : v) }' "$1"
	done
}

mkdir -p "$out"
[ ${#graph_options[@]} = 0 ] || stage "depgraph-$name" "$here/graph.sh" "$inputs/$cells" "$out/graph" "${graph_options[@]}" "${compute[@]}"
if [ -n "$task" ]; then
	tokens=$inputs/$cells
	case $cells in few:*)
		cells=${cells#few:} tokens=$out/few.tok
		stage "scsample-$name" few_cells
		;;
	esac
	if [ ! -e "$out/model/model.safetensors" ]; then
		# an untrained network: one epoch, mostly on few cells, that changes nothing
		case $arm in
		untrained* | scratch) stage "$training-$name" train "$tokens" 1 0 ;;
		*) stage "$training-$name" train "$tokens" "$epochs" "$lr" ;;
		esac
	fi
	cp "$out/model/train.tsv" "$out/train.tsv"
fi
measure
scores > "$out/scores.tsv.new"
(cd "$out" && rm -f "${made[@]}" && { [ "$keep_models" = 1 ] || rm -rf "${kept[@]}"; })
whole "$out/scores.tsv"
