# shellcheck shell=bash disable=SC2154
# streams KIND FOLDER FILE...: the options of streams.py, with a python3 that has what it needs
streams() {
	needs=(numpy xxhash zstandard)
	[ "$1" != digits ] || needs+=(sklearn)
	find_python "${needs[@]}"
	"$python" -B "$here/other/streams.py" "$@"
}

# train digits-16|digits-256|text|dna RATE|r2mae SEED INPUTS OUT EPOCHS THREADS: one training: scores of the test part, as metric and value. RATE is fixed; with r2mae
# each batch has one between .1 and .9 (digits) or .1 and .5 (text, dna). OUT is a folder for the model, which is removed.
train() {
	kind=$1 seed=$3 inputs=$4 out=$5 range=0.1:0.5 rate=(--rate "$2") masks=(--epochs "$6" --seed "$3") compute=(-@ "$7")
	learn=(--seed "$seed" --save-every 1000000 --force "${compute[@]}" -o "$out/model" -)
	mkdir -p "$out"
	[[ $kind != digits* ]] || range=0.1:0.9
	[ "$2" != r2mae ] || rate=(--rate-uniform "$range")
	if [[ $kind = digits* ]]; then digits; else tokens; fi
	rm -rf "$out"
}
# Of images: a linear probe of the digit, on the latent vectors of the test part
digits() {
	printf '{"model_type": "mlp_nb", "vocab_size": 64, "intermediate_size": %s, "hidden_size": 16}\n' "${kind#digits-}" > "$out/network.json"
	maskgen -q --strategy columns "${rate[@]}" --batch 50 "${masks[@]}" -u "$inputs/train.counts" | sctrain nb -q --config "$out/network.json" "${learn[@]}"
	for part in train test; do scembed -q -M "$out/model" "${compute[@]}" -o "$out/$part.emb" "$inputs/$part.counts"; done
	ctaprobe cells -q --label digit --train "$out/train.emb" --test "$out/test.emb" "${compute[@]}" | awk -F '\t' '$1 == "accuracy" { print "error\t" 1 - $2 }'
}
# Of tokens: the loss of masked ones at three rates
tokens() {
	maskgen -q "${rate[@]}" --batch 12 "${masks[@]}" -u "$inputs/train.tok" | sctrain mlm -q --config tiny --lr 0.003 "${learn[@]}"
	for r in 0.15 0.3 0.5; do
		maskgen -q --rate $r --epochs 4 --seed 1000 -u "$inputs/test.tok" | sctrain eval -q -M "$out/model" "${compute[@]}" -o "$out/eval.tsv" -
		awk -F '\t' -v r=$r '$1 == "loss" { print "loss-" r "\t" $2 }' "$out/eval.tsv"
	done
}
