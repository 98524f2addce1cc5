# shellcheck shell=bash disable=SC2154
# names TOKENS DATA: the result goes into a copy of DATA by the names of the cells, so these must differ. It is better to know before the network has run.
names() {
	twice=$(scview -q -c barcode "$1" | sed 1d | LC_ALL=C sort | uniq -d | sed -n 1p)
	[ -z "$twice" ] || {
		echo "DATA=$2: cell '$twice' occurs twice: the embedding goes into a copy of the file by the names of the cells;" \
			"make them differ, such as with obs_names_make_unique() of anndata" >&2
		exit 1
	}
}

# parts TOKENS OUT CELLS OPTION-OF-SCEMBED...: embed the cells in parts of CELLS cells. The parts that an interrupted run left are not made again.
parts() {
	tokens=$1 out=$2 cells=$3 parts=$2.parts list=()
	# cells are numbered as in the file, and those without a known gene are not there
	last=$(scview -q -s "$tokens" | awk -F '\t' '$1 == "cell" && $2 == "max" { print $3 }')
	[ "${last:-0}" -ge "$cells" ] || { scembed -v "${@:4}" -o "$out" "$tokens"; return; }
	[ ! "$tokens" -nt "$parts" ] || rm -rf "$parts"
	mkdir -p "$parts"
	for ((from = 0; from <= last; from += cells)); do
		list+=("$parts/$from")
		[ -e "$parts/$from" ] || scsample -q -u --where "cell>=$from" --where "cell<$((from + cells))" "$tokens" | scembed -v "${@:4}" -o "$parts/$from"
	done
	scsample -q -o "$out" "${list[@]}"
	rm -rf "$parts"
}

# map EMBEDDING OUT MOST SEED OPTION-OF-SCREDUCE...: of all cells, or of MOST of them
map() {
	how=(screduce map -v --seed "$4" -o "$2" "${@:5}")
	if [ "$(rows "$1")" -gt "$3" ]; then scsample -q -u -n "$3" --seed "$4" "$1" | "${how[@]}"; else "${how[@]}" "$1"; fi
}

# into DATA MAP EMBEDDING OUT.h5ad OPTION-OF-H5TOK...: a copy of the file DATA with the embedding and its map. What is no AnnData file (10x, before 0.7, a counts stream)
# is written as one first.
into() {
	data=$1 map=$2 embedding=$3 out=$4 first=$4.first
	trap 'rm -f "$first" "$first.map"' EXIT
	case $data in
	*.counts) scview -q -O h5ad -o "$first" "$data"; data=$first ;;
	*) takes_more "${out%/*}/log/h5tok.report" || { h5tok -q -u "${@:5}" "$data" | scview -q -O h5ad -o "$first" -; data=$first; } ;;
	esac
	if [ "$(rows "$map")" = "$(rows "$embedding")" ]; then
		scview -v -O h5ad --into "$data" --replace -o "$out" "$map"
	else
		# a map of some cells: they bring their vectors, which those of all cells replace; the first note says what of the file is replaced
		env -u CORRMASK_REPORT scview -O h5ad --into "$data" --replace -o "$first.map" "$map"
		scview -v -O h5ad --into "$first.map" --replace -o "$out" "$embedding"
	fi
}
