#!/usr/bin/env bash
# One split of make panel: cells of other donors to test, and the panels, chosen by the training cells.
#     panel/split.sh PREPARED FOLDER "PANEL..." HVG SEED
# PREPARED has cells.counts and group. FOLDER gets cells.counts with the HVG most variable genes and those of panels that are files; pretrain.counts and
# pretrain.tok (training cells), vocab, test.counts, the dependency graph of the training cells, and of each panel NAME.tsv, its genes, and
# NAME.mcounts, all cells with the other genes masked; then the list panels and, last, about.
. "$(dirname "$0")/../common.sh"
[ $# = 5 ] || usage
prepared=$1 dir=$2 hvg=$4 seed=$5
mkdir -p "$dir"
# Words, or one file whose name may have spaces
panels=("$3")
[ -e "$3" ] || read -ra panels <<< "$3"
for panel in "${panels[@]}"; do
	if [[ $panel =~ ^(graph-)?[1-9][0-9]*$ ]]; then
		[ "${panel#graph-}" -lt "$hvg" ] || { echo "PANEL: '$panel': expected fewer genes than HVG, $hvg" >&2; exit 1; }
	elif [ ! -e "$panel" ]; then
		echo "PANEL: '$panel' is not a number K, graph-K or a file" >&2
		exit 1
	fi
done

# genes OPTION... CELLS: a table of the genes that scsample keeps
genes() {
	scsample "$@" -o "$dir/some.counts"
	scview --vocab "$dir/some.counts"
	rm "$dir/some.counts"
}
genes --hvg "$hvg" "$prepared/cells.counts" > "$dir/genes"
: > "$dir/panels"
for panel in "${panels[@]}"; do
	name=$panel
	[ ! -e "$panel" ] || {
		name=$(basename "${panel%.*}" | tr -c 'A-Za-z0-9_.\n-' _)
		[[ ! $name =~ ^(graph-)?[0-9]+$ ]] || name+=_
		genes --keep-genes "$panel" "$prepared/cells.counts" > "$dir/$name.tsv"
		tail -n +2 "$dir/$name.tsv" >> "$dir/genes"
	}
	echo "$name" >> "$dir/panels"
done
scsample -q --keep-genes "$dir/genes" -o "$dir/cells.counts" "$prepared/cells.counts"
"$here/split.sh" train 0.25 "$prepared/group" "$dir/cells.counts" "$dir/pretrain.counts" "$seed"
"$here/split.sh" test 0.25 "$prepared/group" "$dir/cells.counts" "$dir/test.counts" "$seed"

rankenc -q --fit --vocab-style bmfm -o "$dir/vocab" "$dir/pretrain.counts"
rankenc -q -m "$dir/vocab" --cls 1 -o "$dir/pretrain.tok" "$dir/pretrain.counts"
"$here/graph.sh" "$dir/pretrain.tok" "$dir/graph"

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

while read -r panel; do
	if [[ $panel =~ ^[0-9]+$ ]]; then
		genes -q --hvg "$panel" "$dir/pretrain.counts" > "$dir/$panel.tsv"
	elif [[ $panel =~ ^graph-[0-9]+$ ]]; then
		covering "${panel#graph-}" > "$dir/$panel.tsv"
	fi
	maskgen -q --strategy columns --panel "$dir/$panel.tsv" --batch 1000 -o "$dir/$panel.mcounts" "$dir/cells.counts"
done < "$dir/panels"
cp "$prepared/group" "$dir/group"
echo "$(rows "$dir/pretrain.counts") cells to learn, $(rows "$dir/test.counts") to test, $(scview --vocab "$dir/test.counts" | tail -n +2 | wc -l) genes" > "$dir/about.new"
whole "$dir/about"
