#!/usr/bin/env bash
# One split of make panel: cells of other donors to test, and the panels, chosen by the training cells.
#     panel/split.sh PREPARED FOLDER "PANEL..." SEED
# PREPARED has cells.counts and group. FOLDER gets pretrain.counts (training cells), test.counts, the dependency graph of the training cells, and of each panel NAME.tsv, its genes, and NAME.mcounts,
# all cells with the other genes masked; then the list panels and, last, about.
. "$(dirname "$0")/../common.sh"
[ $# = 4 ] || usage
prepared=$1 dir=$2 seed=$4
mkdir -p "$dir"
"$here/split.sh" train 0.25 "$prepared/group" "$prepared/cells.counts" "$dir/pretrain.counts" "$seed"
"$here/split.sh" test 0.25 "$prepared/group" "$prepared/cells.counts" "$dir/test.counts" "$seed"

rankenc -q --fit -o "$dir/vocab.tsv" "$dir/pretrain.counts"
rankenc -q -m "$dir/vocab.tsv" -o "$dir/pretrain.tok" "$dir/pretrain.counts"
"$here/graph.sh" "$dir/pretrain.tok" "$dir/graph"
rm "$dir"/{vocab.tsv,pretrain.tok}

# The K genes that add the most to what is covered: of every gene, its largest |rho| to a gene of the panel
covering() {
	{
		scview --vocab "$dir/graph" | awk -F '\t' -v OFS='\t' 'NR > 1 { print "gene", $1, $2 }'
		scview -c token,neighbour,rho "$dir/graph" | tail -n +2
	} | awk -F '\t' -v k="$1" '
		$1 == "gene" { id[$2] = $3; next }
		{ n = split($2, to, " "); split($3, rho, " "); for (i = 1; i <= n; i++) { degree[$1]++; near[$1, degree[$1]] = to[i]; size[$1, degree[$1]] = rho[i] < 0 ? -rho[i] : rho[i] } }
		END {
			print "gene_id"
			for (step = 1; step <= k; step++) {
				best = -1
				for (g in degree) {
					if (g in taken) continue
					gain = 1 - cover[g]
					for (i = 1; i <= degree[g]; i++) if (size[g, i] > cover[near[g, i]]) gain += size[g, i] - cover[near[g, i]]
					if (gain > best || gain == best && g + 0 < of + 0) { best = gain; of = g }
				}
				if (best < 0) exit
				taken[of]
				print id[of]
				cover[of] = 1
				for (i = 1; i <= degree[of]; i++) if (size[of, i] > cover[near[of, i]]) cover[near[of, i]] = size[of, i]
			}
		}'
}

# Words, or one file whose name may have spaces
panels=("$3")
[ -e "$3" ] || read -ra panels <<< "$3"
: > "$dir/panels"
for panel in "${panels[@]}"; do
	name=$panel
	if [[ $panel =~ ^[0-9]+$ ]]; then
		scsample -q --hvg "$panel" -o "$dir/variable.counts" "$dir/pretrain.counts"
		scview --vocab "$dir/variable.counts" > "$dir/$name.tsv"
		rm "$dir/variable.counts"
	elif [[ $panel =~ ^graph-[0-9]+$ ]]; then
		covering "${panel#graph-}" > "$dir/$name.tsv"
	elif [ -e "$panel" ]; then
		name=$(basename "${panel%.*}" | tr -c 'A-Za-z0-9_.\n-' _)
		cp "$panel" "$dir/$name.tsv"
	else
		echo "PANEL: '$panel' is no number K, graph-K or file" >&2
		exit 1
	fi
	maskgen -q --strategy columns --panel "$dir/$name.tsv" --batch 1000 -o "$dir/$name.mcounts" "$prepared/cells.counts"
	echo "$name" >> "$dir/panels"
done
cp "$prepared/group" "$dir/group"
ln -sf "$(realpath "$prepared/cells.counts")" "$dir/cells.counts"
echo "$(rows "$dir/pretrain.counts") cells to learn, $(rows "$dir/test.counts") to test, $(scview --vocab "$dir/test.counts" | tail -n +2 | wc -l) genes" > "$dir/about.new"
whole "$dir/about"
