#!/usr/bin/env bash
# One training of make r2mae-other: scores of the test part, as metric and value.
#     other/run.sh digits-16|digits-256|text|dna RATE|r2mae SEED INPUTS OUT EPOCHS THREADS
# RATE is fixed; with r2mae each batch has one between .1 and .9 (digits) or .1 and .5 (text, dna). OUT is a folder for the model, which is removed.
. "$(dirname "$0")/../common.sh"
[ $# = 7 ] || usage
kind=$1 arm=$2 seed=$3 inputs=$4 out=$5 epochs=$6 threads=$7
range=0.1:0.5 compute=(-@ "$threads") learn=(--seed "$seed" --save-every 1000000)
mkdir -p "$out"
[[ $kind != digits* ]] || range=0.1:0.9
rate=(--rate "$arm")
[ "$arm" != r2mae ] || rate=(--rate-uniform "$range")

# Of images: a linear probe of the digit, on the latent vectors of the test part
digits() {
	printf '{"model_type": "mlp_nb", "vocab_size": 64, "intermediate_size": %s, "hidden_size": 16}\n' "${kind#digits-}" > "$out/network.json"
	maskgen -q --strategy columns "${rate[@]}" --batch 50 --epochs "$epochs" --seed "$seed" -u "$inputs/train.counts" |
		sctrain nb -q --config "$out/network.json" "${learn[@]}" --force "${compute[@]}" -o "$out/model" -
	for part in train test; do scembed -q -M "$out/model" "${compute[@]}" -o "$out/$part.emb" "$inputs/$part.counts"; done
	ctaprobe cells -q --label digit --train "$out/train.emb" --test "$out/test.emb" "${compute[@]}" | awk -F '\t' '$1 == "accuracy" { print "error\t" 1 - $2 }'
}
# Of tokens: the loss of masked ones at three rates
tokens() {
	local r
	maskgen -q "${rate[@]}" --batch 12 --epochs "$epochs" --seed "$seed" -u "$inputs/train.tok" |
		sctrain mlm -q --config tiny --lr 0.003 "${learn[@]}" --force "${compute[@]}" -o "$out/model" -
	for r in 0.15 0.3 0.5; do
		maskgen -q --rate $r --epochs 4 --seed 1000 -u "$inputs/test.tok" | sctrain eval -q -M "$out/model" "${compute[@]}" -o "$out/eval.tsv" -
		awk -F '\t' -v r=$r '$1 == "loss" { print "loss-" r "\t" $2 }' "$out/eval.tsv"
	done
}
if [[ $kind = digits* ]]; then digits; else tokens; fi
rm -rf "$out"
