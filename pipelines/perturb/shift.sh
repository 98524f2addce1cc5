#!/usr/bin/env bash
# perturb/shift.sh FOLDER MODEL STATE FROM TO GENES MAXLEN GROUP [OPTION-OF-SCEMBED...]: delete genes of FOLDER/cells.tok and measure the shifts:
# FOLDER/shift.tsv, and FOLDER/random.tsv with 19 draws of random states (column draw). The file GROUP holds the column of donors, or nothing.
. "$(dirname "$0")/../common.sh"
[ $# -ge 8 ] || usage
dir=$1 model=$2 state=$3 from=$4 to=$5 genes=$6 most=$7 group=$(cat "$8")
shift 8
cut=(--max-len "$most")
# tokens of a model that reads values are whole cells (tokens.sh), which scembed cuts
[ ! -e "$dir/model.tsv" ] || [ -z "$(reported "$dir/model.tsv" cls)" ] || { cut=(); set -- --max-len "$most" "$@"; }
scembed -q -M "$model" "$@" -o "$dir/states.emb" "$dir/cells.tok"
scperturb apply -u --delete "$genes" --where "$state=$from" "${cut[@]}" "$dir/cells.tok" | scembed -v -u -M "$model" "$@" -o "$dir/perturbed.emb"
# towards the start too: a gene whose deletion brings cells nearer to the middle of all cells moves them towards both states
measure() { scperturb shift -v --state "$state" --from "$from" --to "$to" --other "$from" ${group:+--group "$group"} "$@" "$dir/perturbed.emb"; }
measure --states "$dir/states.emb" -o "$dir/shift.tsv.new" # first, as it refuses states of too few cells
for draw in {1..19}; do
	measure -q --shuffle --seed "$draw" | awk -F '\t' -v OFS='\t' -v draw="$draw" 'NR == 1 { if (draw == 1) print "draw", $0; next } { print draw, $0 }'
done > "$dir/random.tsv"
whole "$dir/shift.tsv"
rm "$dir/perturbed.emb" # the largest file, by far
