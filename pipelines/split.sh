#!/usr/bin/env bash
# The training or the test part of the cells. The file GROUP holds what group.sh prints: an obs column, or nothing to split by cell.
#     split.sh train|test FRACTION-OF-TEST GROUP TOKENS OUT SEED
. "$(dirname "$0")/common.sh"
[ $# = 6 ] || usage
group=$(cat "$3")
scsample -v --test-fraction "$2" ${group:+--group "$group"} --part "$1" --seed "$6" -o "$5" "$4"
