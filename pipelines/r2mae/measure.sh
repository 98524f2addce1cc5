# shellcheck shell=bash disable=SC2034,SC2154 # arm.sh sources this file
# What make r2mae-cells measures: predictions of masked genes at five rates, probes of the embeddings, and their effective rank. Inputs are the folder
# that r2mae/cells.sh made.
# --hidden, --latent     of the network (128, 32)
hidden=128 latent=32 epochs=30 batch=200 lr=0.001 training=train optional='hidden latent'
made=(network.json) kept=(model {learn,test,valid}.emb)

set_up() {
	local group genes
	group=$(cat "$inputs/group")
	genes=$(scview --header-tsv "$inputs/valid-0.3.mcounts" | awk '$1 == "vocab.rows" { print $2 }')
	mkdir -p "$out"
	printf '{"model_type": "mlp_nb", "vocab_size": %s, "intermediate_size": %s, "hidden_size": %s}\n' "$genes" "$hidden" "$latent" > "$out/network.json"
	network=(--config "$out/network.json" --eval "$inputs/valid-0.3.mcounts" --best last)
	more_masks=(--strategy columns)
	[ -z "$group" ] || more_masks+=(--keep "$group") network+=(--batch-key "$group")
}
reconstruct() {
	local rate
	for rate in 0.1 0.2 0.3 0.5 0.7; do
		scpredict expression -q -M "$out/model" "${embed[@]}" -@ "$threads" -u "$inputs/valid-$rate.mcounts" |
			scmetric reconstruction -v -o "$out/valid-$rate.score.tsv" || return
	done
	sed -i '/^warning\t.*% masked$/d' "$CORRMASK_REPORT" # masks beyond those of the training are meant here
}
probe() { embed_cells %.counts learn test valid && "$here/r2mae/probe.sh" "$out" "$inputs" "$threads"; }
measure() {
	embed=(--recalibrate "$inputs/calibrate.counts") # the running averages are over all masks and fit none
	stage "reconstruct-$name" reconstruct
	stage "probe-$name" probe
}
scores() {
	local f part
	for f in "$out"/*.score.tsv; do
		part=${f##*/}
		sed "1d; s/^/${part%.score.tsv}\t/" "$f"
	done
}
