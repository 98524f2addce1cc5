#!/usr/bin/env bash
# Sample at most CELLS cells (0: all).
#     audit/sample.sh CELLS TOKENS OUT SEED
. "$(dirname "$0")/../common.sh"
[ $# = 4 ] || usage
all=$(rows "$2")
if [ "$1" = 0 ] || [ "$all" -le "$1" ]; then
	cp "$2" "$3"
else
	scsample -v -n "$1" --seed "$4" -o "$3" "$2"
fi
