#!/usr/bin/env bash
# A copy of the file DATA with the predictions in it. What is no AnnData file (10x; simulated cells, DATA "") is written as one first.
#     into.sh DATA NEW.pred NEW.counts OUT.h5ad
. "$(dirname "$0")/../common.sh"
[ $# = 4 ] || usage
data=$1 predictions=$2 counts=$3 out=$4
case $data in
*.h5ad) scview -O h5ad --into "$data" --key transfer --replace -o "$out" "$predictions" ;;
*)
	plain=$out.plain
	trap 'rm -f "$plain"' EXIT
	scview -q -O h5ad -o "$plain" "$counts"
	scview -O h5ad --into "$plain" --key transfer --replace -o "$out" "$predictions"
	;;
esac
