#!/usr/bin/env bash
# A copy of the file DATA with the embedding and its map. What is no AnnData file (10x, a counts stream) is written as one first.
#     into.sh DATA MAP EMBEDDING OUT.h5ad OPTION-OF-H5TOK...
. "$(dirname "$0")/../common.sh"
[ $# -ge 4 ] || usage
data=$1 map=$2 embedding=$3 out=$4 first=$4.first
shift 4
trap 'rm -f "$first" "$first.map"' EXIT
case $data in
*.h5ad) ;;
*.counts)
	scview -q -O h5ad -o "$first" "$data"
	data=$first
	;;
*)
	h5tok -q -u "$@" "$data" | scview -q -O h5ad -o "$first" -
	data=$first
	;;
esac
if [ "$(rows "$map")" = "$(rows "$embedding")" ]; then
	scview -v -O h5ad --into "$data" --replace -o "$out" "$map"
else
	# a map of some cells: they bring their vectors, which those of all cells replace; the first note says what of the file is replaced
	env -u CORRMASK_REPORT scview -O h5ad --into "$data" --replace -o "$first.map" "$map"
	scview -v -O h5ad --into "$first.map" --replace -o "$out" "$embedding"
fi
