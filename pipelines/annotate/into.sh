#!/usr/bin/env bash
# A copy of the file DATA with the predictions and the map in it. What is no AnnData file (10x; simulated cells, DATA "") is written as one first.
#     into.sh DATA NEW.pred NEW.map NEW.counts OUT.h5ad
. "$(dirname "$0")/../common.sh"
[ $# = 5 ] || usage
data=$1 predictions=$2 map=$3 counts=$4 out=$5
plain=$out.plain both=$out.both
trap 'rm -f "$plain" "$both"' EXIT
case $data in
*.h5ad) from=$data ;;
*)
	from=$plain
	scview -q -O h5ad -o "$plain" "$counts"
	;;
esac
scview -O h5ad --into "$from" --key transfer --replace -o "$both" "$predictions"
scview -O h5ad --into "$both" --key transfer --replace -o "$out" "$map"
