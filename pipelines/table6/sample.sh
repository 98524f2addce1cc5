#!/usr/bin/env bash
# A part of the training cells, by number or share (0 and 1: all of them), and its number of cells as OUT with .cells for .tok.
#     table6/sample.sh WANTED TOKENS OUT.tok SEED
. "$(dirname "$0")/../common.sh"
[ $# = 4 ] || usage
wanted=$1 tokens=$2 out=$3 seed=$4
case $wanted in
0 | 1) ln -sf "$(basename "$tokens")" "$out" ;;
0.* | .*) scsample -v -f "$wanted" --seed "$seed" -o "$out" "$tokens" ;;
*)
	all=$(rows "$tokens")
	if [ "$wanted" -gt "$all" ]; then
		echo "table6: $wanted cells requested, but there are only $all training cells" >&2
		exit 1
	fi
	scsample -v -n "$wanted" --seed "$seed" -o "$out" "$tokens"
	;;
esac
rows "$out" > "${out%.tok}.cells"
