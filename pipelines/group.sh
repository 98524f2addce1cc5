#!/usr/bin/env bash
# group.sh GROUP COUNTS: the obs column to split by, or nothing to split by cell. auto: a column of donors, if there is one
. "$(dirname "$0")/common.sh"
group=$1 counts=$2
[ "$group" = none ] && exit 0
if [ "$group" != auto ]; then
	echo "$group"
	exit 0
fi
for column in donor_id donor patient individual; do
	n=$(scview -s "$counts" | awk -F '\t' -v c="$column" '$1 == c && $2 ~ /^=/' | wc -l)
	if [ "$n" -ge 4 ]; then
		echo "$column"
		exit 0
	fi
done
