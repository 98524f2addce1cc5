#!/usr/bin/env bash
# The arms of experiments (arms.tsv): print what is wrong with these, if anything. A script that sources this file has the function `arm`.
#     arms.sh EXPERIMENT ARM...
#     arms.sh bmfm wced wced+r2mae+hce
[ -n "${here:-}" ] || . "$(dirname "$0")/common.sh"

# arm EXPERIMENT ARM: sets task and cells; options: masks and plain_masks (without the parts of the name) of maskgen, learn of sctrain, embed of scembed, or the command of screduce.
# GRAPH, PMI, SHUFFLED, SIZE and ONTOLOGY in the table are variables.
# shellcheck disable=SC2034 # the scripts'
arm() {
	local row
	row=$(awk -v of="$1" -v arms="$2" -f "$here/arms.awk" "$here/arms.tsv") || {
		echo "$(basename "$0"): $row" >&2
		exit 2
	}
	mapfile -t row <<< "$row"
	task=${row[0]} cells=${row[1]/SIZE/${SIZE:-}}
	words masks "${row[2]}"
	words plain_masks "${row[3]}"
	words learn "${row[4]}"
	words embed "${row[5]}"
}
# words ARRAY TEXT: its words; the names of variables become their values
words() {
	local -n array=$1
	local i
	read -ra array <<< "$2"
	for i in "${!array[@]}"; do case ${array[i]} in GRAPH | PMI | SHUFFLED | ONTOLOGY) array[i]=${!array[i]} ;; esac done
}

[ "${BASH_SOURCE[0]}" != "$0" ] || {
	[ $# -ge 1 ] || usage
	awk -v of="$1" -v check=1 -v arms="${*:2}" -f "$here/arms.awk" "$here/arms.tsv" || true
}
