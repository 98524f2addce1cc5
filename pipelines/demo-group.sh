#!/bin/sh
# demo-group.sh SCVIEW GROUP COUNTS: the scsample options that say how to split: by donor where there is one, else by cell.
scview=$1 group=$2 counts=$3
[ "$group" = none ] && exit 0
if [ "$group" != auto ]; then
	echo "--by $group"
	exit 0
fi
for column in donor_id donor patient individual; do
	n=$("$scview" -s "$counts" | awk -F '\t' -v c="$column" '$1 == c && $2 ~ /^=/' | wc -l)
	if [ "$n" -ge 4 ]; then
		echo "--by $column"
		exit 0
	fi
done
