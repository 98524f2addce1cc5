# shellcheck shell=bash disable=SC2154
# transfer REFERENCE.counts NEW.counts GROUP HELD-OUT.pred NEW.pred OPTION-OF-CTAPROBE...: the file GROUP holds what group.sh prints: an obs column, or
# nothing to hold out cells
transfer() {
	group=$(cat "$3")
	ctaprobe transfer -v --reference "$1" ${group:+--group "$group"} --held-out "$4" -o "$5" "${@:6}" "$2"
}

# learn REFERENCE.counts GROUP OUT.ref OPTION-OF-CTAPROBE...
learn() {
	group=$(cat "$2")
	ctaprobe transfer -v --reference "$1" ${group:+--group "$group"} --save "$3" "${@:4}"
}

# into DATA NEW.pred NEW.map NEW.counts OUT.h5ad: a copy of the file DATA with the predictions and the map in it, and the file `map` next to it, which says what
# the map is called in obsm. What is no AnnData file (10x; simulated cells, DATA "") is written as one first.
into() {
	from=$1 map=$3 out=$5 plain=$5.plain both=$5.both
	trap 'rm -f "$plain" "$both" "$both.messages"' EXIT
	[[ $from = *.h5ad ]] || { from=$plain; scview -q -O h5ad -o "$plain" "$4"; }
	scview -O h5ad --into "$from" --key transfer --replace -o "$both" "$2"
	# scanpy looks for X_umap; one that the file has already stays. `map` is there before the file, which make takes for the end of this.
	echo X_umap > "${out%/*}/map"
	if scview -O h5ad --columns X_umap --into "$both" -o "$out" "$map" 2> "$both.messages"; then
		cat "$both.messages" >&2
	else
		echo X_umap_transfer > "${out%/*}/map"
		scview -O h5ad --columns X_umap --into "$both" --key transfer --replace -o "$out" "$map"
	fi
}
