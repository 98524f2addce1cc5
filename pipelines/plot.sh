#!/usr/bin/env bash
# Draw a figure to standard output with FIGURE.gp, which reads tables under FOLDER. VARIABLES sets more variables: 'name=value; ...'.
#     plot.sh FIGURE FOLDER svg|png [VARIABLES]
. "$(dirname "$0")/common.sh"
[ $# -ge 3 ] || usage
figure=$1 dir=$2 terminal=$3
mkdir -p "$dir/log"
# cat fails if the disk is full; gnuplot does not
gnuplot -e "axes='$here/axes.gp'; dir='$dir'; terminal='$terminal'; ${4:-}" "$here/$figure.gp" 2> "$dir/log/gnuplot-$terminal.log" | cat || {
	cat "$dir/log/gnuplot-$terminal.log" >&2
	exit 1
}
