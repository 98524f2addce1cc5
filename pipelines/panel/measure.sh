# shellcheck shell=bash disable=SC2034,SC2154 # arm.sh sources this file
# What make panel measures: predictions of the genes outside each panel. Inputs are a folder of panel/split.sh.
# --hidden, --latent     of the network (128, 32)
hidden=128 latent=32 epochs=30 batch=200 lr=0.001 training=train optional='hidden latent'
made=(network.json latent.emb decoder.pred panel.counts) kept=(model)

set_up() {
	local genes
	genes=$(scview --header-tsv "$inputs/pretrain.counts" | awk '$1 == "vocab.rows" { print $2 }')
	mkdir -p "$out"
	printf '{"model_type": "mlp_nb", "vocab_size": %s, "intermediate_size": %s, "hidden_size": %s}\n' "$genes" "$hidden" "$latent" > "$out/network.json"
	network=(--config "$out/network.json")
	case $arm in
	wced*) network=(--config bmfm-tiny) batch=32 lr=0.002 ;; # as in make bmfm
	corrmask*) ;;
	*) more_masks=(--strategy columns) ;;
	esac
	group=$(cat "$inputs/group")
	by=()
	[ -z "$group" ] || by=(--group "$group")
}
predict() { # predict NAME PANEL OPTION...
	ctaprobe panel -v --panel "$inputs/$2.tsv" --train "$inputs/pretrain.counts" "${by[@]}" --seed "$seed" -@ "$threads" --gene-scores "$out/$1.genes.tsv" \
		-o "$out/$1.score.tsv" "$inputs/test.counts" "${@:3}"
}
from_panel() {
	local p=$1 all
	if [ "$task" = wced ]; then
		scsample -q -u --keep-genes "$inputs/$p.tsv" "$inputs/cells.counts" | rankenc -q -u -m "$inputs/vocab" --cls 1 |
			scembed -v -M "$out/model" "${embed[@]}" "${compute[@]}" -o "$out/latent.emb" &&
			predict "$p=readout" "$p" --vectors "$out/latent.emb"
	elif [ -n "$task" ]; then
		scembed -v -M "$out/model" --recalibrate "$inputs/pretrain.counts" "${compute[@]}" -o "$out/latent.emb" "$inputs/$p.mcounts" &&
			predict "$p=readout" "$p" --vectors "$out/latent.emb" &&
			scpredict expression -v -M "$out/model" --recalibrate "$inputs/pretrain.counts" "${compute[@]}" -o "$out/decoder.pred" "$inputs/$p.mcounts" &&
			predict "$p=decoder" "$p" --vectors "$out/decoder.pred"
	elif [ "${embed[0]}" = pca ]; then
		all=$(tail -n +2 "$inputs/$p.tsv" | wc -l)
		scsample -q --keep-genes "$inputs/$p.tsv" -o "$out/panel.counts" "$inputs/pretrain.counts" &&
			scsample -q -u --keep-genes "$inputs/$p.tsv" "$inputs/cells.counts" |
			screduce pca -v -k $((all < 50 ? all : 50)) --hvg 0 --train "$out/panel.counts" -o "$out/latent.emb" &&
			predict "$p=fit" "$p" --vectors "$out/latent.emb"
	else
		predict "$p=fit" "$p" "${embed[@]}"
	fi
}
measure() {
	local p
	while read -r p; do stage "panel-$p-$name" from_panel "$p"; done < "$inputs/panels"
}
scores() {
	local f part
	for f in "$out"/*.score.tsv; do
		part=$(basename "${f%.score.tsv}")
		sed "1d; s/^/${part%=*}\t${part##*=}\t/" "$f"
	done
}
