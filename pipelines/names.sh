#!/usr/bin/env bash
# Pad column N of a tab-separated table to the width of its longest name, in characters as a terminal counts them.
#     names.sh N
. "$(dirname "$0")/common.sh"
[ $# = 1 ] || usage
n=$1
mapfile -t lines
mapfile -t names < <(printf '%s\n' "${lines[@]}" | cut -f "$n")
widest=$(printf '%s\n' "${names[@]}" | LC_ALL=C.UTF-8 wc -L)
export LC_ALL=C.UTF-8 # bash counts characters
for ((i = 0; i < ${#lines[@]}; i++)); do printf '%s\t%*s\n' "${lines[i]}" $((widest - ${#names[i]})) ''; done |
	awk -F '\t' -v OFS='\t' -v n="$n" '{ $n = $n $NF; NF--; print }'
