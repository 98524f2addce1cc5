# shellcheck shell=bash disable=SC2034,SC2154 # arm.sh sources this file
# What make ties measures: losses, partner reliance, and cell types by three probes.
# --label COL    the column with the cell type
# --few N        labels a class of the probe with few labels (5)
few=5 required=label optional=few
DRAWS=5 # of few labels: their mean depends less on which cells they are
made=({all,knn,few?}.tsv {test,hidden,visible}.{tsv,cells} few.{tok,emb}) kept=(model {train,test}.emb)

# the encoding of the test cells: the first word of the arm
set_up() {
	encoding=${arm%-*}
	[ "$arm" != untrained ] || encoding=median
}
probe() { # probe OUT TRAIN.emb OPTION...
	ctaprobe cells -v --label "$label" --train "$2" --test "$out/test.emb" "${compute[@]}" "${bayes[@]}" -o "$out/$1.tsv" "${@:3}"
}
probes() {
	local i
	probe all "$out/train.emb" || return
	[ ${#bayes[@]} != 0 ] || probe knn "$out/train.emb" --nearest 15 || return
	for ((i = 1; i <= DRAWS; i++)); do
		scsample -q --cap "$label:$few" --seed $i -o "$out/few.emb" "$out/train.emb" && probe few$i "$out/few.emb" || return
	done
}
measure() {
	local p
	[ -z "$task" ] || for p in test hidden visible; do
		stage "eval-$name-$p" "$here/step.sh" reliance/losses "$out/model" "$inputs/$encoding.$p.masked" "$out/$p.tsv" "${compute[@]}"
	done
	stage "embed-$name" embed_cells "$encoding.%.tok" train test
	stage "ctaprobe-$name" probes
}
# of METRIC FILE: its value
of() { awk -F '\t' -v m="$1" '$1 == m { v = $2 } END { print v == "" ? "NA" : v }' "$2"; }
scores() {
	local visible hidden i m
	printf 'metric\tvalue\n'
	if [ -n "$task" ]; then
		printf 'loss\t%s\n' "$(of loss "$out/test.tsv")"
		visible=$(of loss "$out/visible.tsv") hidden=$(of loss "$out/hidden.tsv")
		printf 'visible\t%s\nhidden\t%s\nR\t%s\n' "$visible" "$hidden" "$(awk -v v="$visible" -v h="$hidden" 'BEGIN { print v == "NA" || h == "NA" ? "NA" : h - v }')"
	fi
	for m in macro_f1 accuracy f1_rare converged; do printf '%s\t%s\n' $m "$(of $m "$out/all.tsv")"; done
	[ ! -e "$out/knn.tsv" ] || for m in macro_f1 accuracy; do printf 'knn_%s\t%s\n' $m "$(of $m "$out/knn.tsv")"; done
	for ((i = 1; i <= DRAWS; i++)); do of macro_f1 "$out/few$i.tsv"; done | awk '{ s += $1 } END { printf "few_macro_f1\t%.6g\n", s / NR }'
}
