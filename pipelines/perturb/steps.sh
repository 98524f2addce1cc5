# shellcheck shell=bash
# shifts FOLDER MODEL STATE FROM TO GENES MAXLEN GROUP [OPTION-OF-SCEMBED...]: delete genes of FOLDER/cells.tok and measure the shifts: FOLDER/shift.tsv, and
# FOLDER/random.tsv with 19 draws of random states (column draw). The file GROUP holds the column of donors, or nothing.
shifts() {
	dir=$1 state=$3 from=$4 to=$5 group=$(cat "$8") cut=(--max-len "$7") network=(-M "$2" "${@:9}")
	# tokens of a model that reads values are whole cells (tokens.sh), which scembed cuts
	[ ! -e "$dir/model.tsv" ] || [ -z "$(reported "$dir/model.tsv" cls)" ] || { network+=("${cut[@]}"); cut=(); }
	scembed -q "${network[@]}" -o "$dir/states.emb" "$dir/cells.tok"
	scperturb apply -u --delete "$6" --where "$state=$from" "${cut[@]}" "$dir/cells.tok" | scembed -v -u "${network[@]}" -o "$dir/perturbed.emb"
	# towards the start too: a gene whose deletion brings cells nearer to the middle of all cells moves them towards both states
	how=(scperturb shift -v --state "$state" --from "$from" --to "$to" --other "$from" ${group:+--group "$group"})
	"${how[@]}" --states "$dir/states.emb" -o "$dir/shift.tsv.new" "$dir/perturbed.emb" # first, as it refuses states of too few cells
	for draw in {1..19}; do
		"${how[@]}" -q --shuffle --seed "$draw" "$dir/perturbed.emb" | awk -F '\t' -v OFS='\t' -v draw="$draw" 'NR == 1 { if (draw == 1) print "draw", $0; next } { print draw, $0 }'
	done > "$dir/random.tsv"
	whole "$dir/shift.tsv"
	rm "$dir/perturbed.emb" # the largest file, by far
}

# expression COUNTS STATE FROM TO: gene, symbol, and Welch's t of log(1 + 10^4 count / n_counts) in the cells of FROM minus those of TO
expression() {
	scview -q --vocab "$1" | awk -F '\t' -v from="$3" -v to="$4" '
		NR == FNR { if (FNR > 1) { id[$1] = $2; symbol[$1] = $3 } next }
		FNR == 1 { next }
		{
			s = $1 == from ? 1 : $1 == to ? 2 : 0
			if (!s) next
			cells[s]++
			n = split($3, gene, " ")
			split($4, count, " ")
			for (i = 1; i <= n; i++) {
				v = log(1 + 1e4 * count[i] / $2)
				sum[s, gene[i]] += v
				square[s, gene[i]] += v * v
			}
		}
		function variance(s, g) { return (square[s, g] - sum[s, g] ^ 2 / cells[s]) / (cells[s] - 1) }
		END {
			print "gene\tsymbol\tt"
			for (g in id) {
				se = variance(1, g) / cells[1] + variance(2, g) / cells[2]
				if (se > 0) printf "%s\t%s\t%.6g\n", id[g], symbol[g], (sum[1, g] / cells[1] - sum[2, g] / cells[2]) / sqrt(se)
			}
		}' - <(scview -q --columns "$2,n_counts,gene,count" "$1") | { IFS= read -r names && echo "$names" && sort -t $'\t' -k 3,3gr; }
}
