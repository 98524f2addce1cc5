# shellcheck shell=bash disable=SC2154
# Of the folder RUN of a run: plan.tsv has the settings that depend on how many cells there are.
plan() { reported "$run/plan.tsv" "$1"; }

# files_of DATA: how many files DATA names, and what tells them from others
files_of() {
	list=$(mktemp)
	trap 'rm -f "$list"' EXIT
	"$here/corpus/corpus.sh" "$list" --threads 1 --paths "$1" --until files 2> /dev/null
}

# graph RUN GRAPH OPTION-OF-DEPGRAPH...: of the cells for training: RUN/dependency.graph or RUN/pmi.graph. An edge needs a twentieth of the cells (10 to 200).
graph() {
	run=$1
	overlap=$(($(plan train) / 20))
	how=(--min-overlap $((overlap < 10 ? 10 : overlap > 200 ? 200 : overlap)))
	[[ $2 != */pmi.graph ]] || how=(--pmi)
	depgraph -v "${how[@]}" "${@:3}" -o "$2" "@$run/train.txt"
}

# sample RUN OUT VALID-CELLS PROBE-CELLS BATCH SEED: cells that are made ready before the training: few.tok for its first steps, known.tok and test.tok to embed, of
# training and held out, and valid.masked
sample() {
	run=$1 out=$2 seed=$6
	case $out in
	*/few.tok) # of the first, the middle and the last file: the others are not read
		mapfile -t files < <(sed '/^#/d' "$run/train.txt" | awk '{ f[NR] = $0 } END { for (k = 0; k < 3; k++) { i = 1 + int(k * (NR - 1) / 2); if (!seen[i]++) print f[i] } }')
		draw $((60 * $5)) "$out" "${files[@]}"
		;;
	*/known.tok) draw "$4" "$out" "@$run/sample.train.txt" ;;
	*/test.tok) if [ -e "$run/sample.held.txt" ]; then draw "$4" "$out" "@$run/sample.held.txt"; else draw "$4" "$out" "@$run/held-out.txt"; fi ;;
	*/valid.masked) # ten validations cost at most a tenth of the training
		most=$(awk -v train="$(plan train)" -v epochs="$(plan epochs)" -v most="$3" 'BEGIN { n = int(0.03 * train * epochs); if (n < 200) n = 200; print n < most ? n : most }')
		draw "$most" "$run/valid.tok" "@$run/held-out.txt"
		maskgen -v --batch "$5" --seed "$seed" -o "$out" "$run/valid.tok"
		rm "$run/valid.tok"
		;;
	esac
}
# draw N OUT FILE...: at most N cells; fewer are no reason for a warning
draw() { CORRMASK_REPORT='' scsample -q -n "$1" --seed "$seed" -o "$2" "${@:3}"; }

# losses RUN OUT SEED OPTION-OF-SCTRAIN...: the loss on the masked genes of held-out cells: of the trained network, of the untrained one, and of two tables without a
# network
losses() {
	run=$1 seed=$3
	for network in model untrained; do sctrain eval -v -M "$run/$network" -o "$run/$network.loss.tsv" "${@:4}" "$run/valid.masked"; done
	draw 20000 "$run/reference.tok" "@$run/train.txt"
	"$here/reference.sh" "$run/reference.tok" "$seed" "$run/valid.masked" > "$2.new"
	rm "$run/reference.tok"
	mv "$2.new" "$2"
}

# embed RUN NETWORK TOKENS OUT OPTION-OF-SCEMBED...: the cells as the trained network, or an untrained one, sees them; their genes are cut to those that the training had
embed() {
	run=$1
	most=$(plan max_len)
	[ -n "$most" ] || most=$(sed -n 's/.*"max_position_embeddings"[^0-9]*\([0-9]*\).*/\1/p' "$run/$2/config.json")
	scembed -v -M "$run/$2" ${most:+--max-len "$most"} "${@:5}" -o "$4" "$3"
}
