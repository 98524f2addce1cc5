# shellcheck shell=bash disable=SC2154
# within WITHIN LABEL COUNTS: the columns of the strata: those of WITHIN, auto: the donors that group.sh finds, or else the files; and LABEL
within() {
	columns=$1
	[ "$1" != auto ] || columns=$("$here/group.sh" auto "$2" "$3")
	columns=${columns:-input_file}
	[[ -z $2 || ,$columns, = *,"$2",* ]] || columns+=,$2
	echo "$columns"
}

# strata COUNTS LEAST WITHIN CLUSTERS OPTION-OF-DEPGRAPH...: depgraph of genes in LEAST cells, within the strata that the file WITHIN names; a column alone is of
# donors, and the clusters of cells are strata too
strata() {
	columns=$(cat "$3")
	clusters=(--clusters "$4")
	[[ $columns != *,* ]] || clusters=()
	depgraph -v --within "$columns" "${clusters[@]}" --min-cells "$2" "${@:5}" "$1"
}

# donors COUNTS WITHIN: a line for each
donors() { scview -q -c "$(cut -d , -f 1 "$2")" "$1" | awk 'NR > 1 && $0 != "" && $0 != "NA"' | LC_ALL=C sort -u; }

# graph COUNTS OUT LEAST WITHIN CLUSTERS OPTION-OF-DEPGRAPH...
graph() { strata "$1" "${@:3}" -o "$2"; }

# recurrence COUNTS OUT HALVES LEAST WITHIN CLUSTERS OPTION-OF-DEPGRAPH...: how far halves of the donors repeat edges; few donors have few halves
recurrence() {
	few=(0 0 1 3 3) donors=$(donors "$1" "$5" | wc -l)
	most=${few[donors]:-$3}
	if [ "$most" = 0 ]; then
		printf 'edges\thalves\trecurrence\tsd\tr\tr_other\n' > "$2"
	else
		strata "$1" "${@:4}" --halves $((most < $3 ? most : $3)) -o "$2"
	fi
}

# halves COUNTS DONE HALVES SEED MODULES LEAST WITHIN CLUSTERS OPTION-OF-DEPGRAPH...: networks of halves of the donors, N.train.graph and N.test.graph beside
# the file DONE, where a gene needs half as many cells. MODULES: the options that make the network. Few donors have few halves: each is there once.
halves() {
	folder=${2%/*} column=$(cut -d , -f 1 "$7")
	read -ra modules <<< "$5"
	rm -f "$folder"/*.graph
	trap 'rm -f "$folder"/*.counts' EXIT
	declare -A seen=()
	[ "$(donors "$1" "$7" | wc -l)" -gt 1 ] || { touch "$2"; return; }
	for ((i = 1; i <= 10 * $3 && ${#seen[@]} < 2 * $3; i++)); do
		for part in train test; do
			scsample -q --test-fraction 0.5 --group "$column" --part $part --seed $(($4 + i)) -o "$folder/$part.counts" "$1"
			who=$(donors "$folder/$part.counts" "$7")
			[ -z "${seen[$who]:-}" ] || continue 2
			seen[$who]=1
			strata "$folder/$part.counts" $((($6 + 1) / 2)) "${@:7}" -u | depgraph -q "${modules[@]}" -o "$folder/$i.$part.graph" -
		done
	done
	touch "$2"
}

# sets GRAPH OUT GENESETS PROGRAMS: the sets that the modules are rich in; a network may have no modules, and genes of other organisms are in no program
sets() {
	none=': no gene has '
	[ -n "$3" ] || none+='\|: no set has \|: none of the '
	if scgenes genesets -v --sets "${3:-$4}" --module module -o "$2" "$1" 2> "$2.messages"; then
		[ -z "$3" ] || cat "$2.messages" >&2
	else
		grep -q "$none" "$2.messages" || { cat "$2.messages" >&2; exit 1; }
		printf 'module\tgenes\tset\tset_genes\tboth\texpected\tfold\tp\tq\n' > "$2"
	fi
	rm -f "$2.messages"
}
