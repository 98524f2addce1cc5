#!/usr/bin/env bash
# Stop if no gene can have so many expressed pairs in the test cells. A gene has at most ten with a cell, which run.sh masks ten times at most.
#     bmfm/enough.sh MIN_EXPRESSED TEST.counts...
. "$(dirname "$0")/../common.sh"
least=$1
shift
for test; do
	cells=$(rows "$test")
	if [ "$least" -gt $((10 * cells)) ]; then
		echo "MIN_EXPRESSED=$least: no gene has so many expressed pairs in $cells test cells: at most ten with each" >&2
		exit 1
	fi
done
