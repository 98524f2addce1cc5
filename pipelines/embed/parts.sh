#!/usr/bin/env bash
# Embed the cells of a tokens stream in parts of CELLS cells. The parts that an interrupted run left are not made again.
#     parts.sh TOKENS OUT CELLS OPTION-OF-SCEMBED...
. "$(dirname "$0")/../common.sh"
[ $# -ge 3 ] || usage
tokens=$1 out=$2 cells=$3 parts=$2.parts
shift 3
[[ $cells =~ ^[1-9][0-9]{0,14}$ ]] || { echo "parts.sh: $cells cells in a part: expected a whole number of 1 or more" >&2; exit 2; }
# cells are numbered as in the file, and those without a known gene are not there
last=$(scview -q -s "$tokens" | awk -F '\t' '$1 == "cell" && $2 == "max" { print $3 }')
if [ "${last:-0}" -lt "$cells" ]; then
	scembed -v "$@" -o "$out" "$tokens"
	exit 0
fi
[ ! "$tokens" -nt "$parts" ] || rm -rf "$parts"
mkdir -p "$parts"
list=()
for ((from = 0; from <= last; from += cells)); do
	part=$parts/$from
	list+=("$part")
	[ ! -e "$part" ] || continue
	scsample -q -u --where "cell>=$from" --where "cell<$((from + cells))" "$tokens" | scembed -v "$@" -o "$part"
done
scsample -q -o "$out" "${list[@]}"
rm -rf "$parts"
