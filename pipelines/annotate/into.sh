#!/usr/bin/env bash
# A copy of the file DATA with the predictions and the map in it, and the file `map` next to it, which says what the map is called in obsm. What is no
# AnnData file (10x; simulated cells, DATA "") is written as one first.
#     into.sh DATA NEW.pred NEW.map NEW.counts OUT.h5ad
. "$(dirname "$0")/../common.sh"
[ $# = 5 ] || usage
data=$1 predictions=$2 map=$3 counts=$4 out=$5
plain=$out.plain both=$out.both
trap 'rm -f "$plain" "$both" "$both.messages"' EXIT
case $data in
*.h5ad) from=$data ;;
*)
	from=$plain
	scview -q -O h5ad -o "$plain" "$counts"
	;;
esac
scview -O h5ad --into "$from" --key transfer --replace -o "$both" "$predictions"
# scanpy looks for X_umap; one that the file has already stays. `map` is there before the file, which make takes for the end of this.
echo X_umap > "${out%/*}/map"
if scview -O h5ad --columns X_umap --into "$both" -o "$out" "$map" 2> "$both.messages"; then
	cat "$both.messages" >&2
else
	echo X_umap_transfer > "${out%/*}/map"
	scview -O h5ad --columns X_umap --into "$both" --key transfer --replace -o "$out" "$map"
fi
