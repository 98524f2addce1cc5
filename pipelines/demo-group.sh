#!/usr/bin/env bash
# demo-group.sh GROUP COUNTS: the scsample options for the split: by donor if there is such a column, else by cell.
. "$(dirname "$0")/common.sh"
group=$1 counts=$2
[ "$group" = none ] && exit 0
if [ "$group" != auto ]; then
	echo "--by $group"
	exit 0
fi
for column in donor_id donor patient individual; do
	n=$(scview -s "$counts" | awk -F '\t' -v c="$column" '$1 == c && $2 ~ /^=/' | wc -l)
	if [ "$n" -ge 4 ]; then
		echo "--by $column"
		exit 0
	fi
done
