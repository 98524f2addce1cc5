#!/usr/bin/env bash
# Draw MODEL/train.svg and MODEL/train.png from MODEL/train.tsv.
#     plot-train.sh MODEL
. "$(dirname "$0")/common.sh"
[ $# = 1 ] || usage
for terminal in svg png; do
	figure=$1/train.$terminal
	# cat fails if the disk is full; gnuplot does not
	gnuplot -e "file='$1/train.tsv'; terminal='$terminal'" "$here/train.gp" | cat > "$figure.new" || { rm -f "$figure.new"; exit 1; }
	whole "$figure"
	echo "$figure"
done
