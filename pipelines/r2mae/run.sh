#!/usr/bin/env bash
# One run of make r2mae-cells: train a model of counts with one schedule of the masking rate, then predict masked genes at five ratios, probe the
# embeddings, and measure their effective rank. An interrupted run is continued.
#     r2mae/run.sh --inputs FOLDER --method NAME --seed N --out FOLDER [OPTION...]
#     r2mae/run.sh --inputs results/r2mae-cells-inputs/latest --method r2mae --seed 1 --out my_run --hidden 64 --latent 16
#
# --inputs FOLDER    the folder that r2mae/cells.sh made
# --method NAME      fixed-P, mdlm, dynamic, r2mae, r2mae-dynamic; cl, r2mae-cl: with a curriculum of genes (sctrain nb --curriculum), which with -easy
#                    stays with easy genes; or untrained: random weights
# --seed N           seed of masks, order and initial weights
# --out FOLDER       for train.tsv and scores.tsv, which is written last
# --logs FOLDER      for the programs' messages (default: log in the folder of --out)
# --hidden, --latent, --epochs, --batch, --lr     of the network and its training (128, 32, 30, 200, 0.001)
# --threads N        as of the tools
# --keep-models 1    keep model and embeddings
. "$(dirname "$0")/../common.sh"
inputs='' method='' seed='' out='' logs=''
hidden=128 latent=32 epochs=30 batch=200 lr=0.001 threads=1 keep_models=0
options 'inputs method seed out' 'logs hidden latent epochs batch lr threads keep-models' "$@"
logs=${logs:-$out/log}
name=$method-$seed
group=$(cat "$inputs/group")

learn=()
case $method in
untrained) # the normalisation's means and variances are those of the cells
	masks=(--rate 0.25)
	epochs=1 lr=0
	;;
fixed-*) masks=(--rate "${method#fixed-}") ;;
mdlm) masks=(--rate-uniform 0:1) ;;
dynamic) masks=(--rate-linear 0.5:0.1) ;;
r2mae) masks=(--rate-uniform 0.1:0.5) ;;
r2mae-dynamic) masks=(--rate-uniform 0.1:0.5:0.1) ;;
cl | cl-easy) masks=(--rate 0.25) ;;
r2mae-cl | r2mae-cl-easy) masks=(--rate-choice '0.1,0.1444,0.1889,0.2333,0.2778,0.3222,0.3667,0.4111,0.4556,0.5') ;;
*)
	echo "r2mae/run.sh: unknown method '$method'" >&2
	exit 2
	;;
esac
case $method in
cl | r2mae-cl) learn=(--curriculum easy-to-hard) ;;
cl-easy | r2mae-cl-easy) learn=(--curriculum easy) ;;
esac
keep=() key=()
[ -z "$group" ] || keep=(--keep "$group") key=(--batch-key "$group")

reconstruct() {
	local rate
	for rate in 0.1 0.2 0.3 0.5 0.7; do
		scembed --reconstruct -q -M "$out/model" -@ "$threads" -u "$inputs/valid-$rate.mcounts" |
			ctaprobe reconstruction -v -o "$out/valid-$rate.score.tsv"
	done
}
probe() {
	local part
	for part in learn test valid; do
		scembed -q -M "$out/model" -@ "$threads" -o "$out/$part.emb" "$inputs/$part.counts"
	done
	"$here/r2mae/probe.sh" "$out" "$inputs" "$threads"
}

mkdir -p "$out"
[ -e "$out/model/model.safetensors" ] ||
	stage "train-$name" "$here/train.sh" nb "$out/model" "$inputs/pretrain.counts" --strategy columns "${masks[@]}" "${keep[@]}" \
		--batch "$batch" --epochs "$epochs" --seed "$seed" -- "${key[@]}" "${learn[@]}" --hidden "$hidden" --latent "$latent" --lr "$lr" \
		--eval "$inputs/valid-0.3.mcounts" --best last --seed "$seed" -@ "$threads"
cp "$out/model/train.tsv" "$out/train.tsv"
stage "reconstruct-$name" reconstruct
stage "probe-$name" probe
for f in "$out"/*.score.tsv; do
	part=${f##*/}
	sed "1d; s/^/${part%.score.tsv}\t/" "$f"
done > "$out/scores.tsv.new"
whole "$out/scores.tsv"
[ "$keep_models" = 1 ] || rm -r "$out/model" "$out"/{learn,test,valid}.emb
