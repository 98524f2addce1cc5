#!/usr/bin/env bash
# The training or the test part of the cells. GROUP holds what demo-group.sh prints: '--by donor_id', or nothing to split by cell.
#     split.sh train|test FRACTION-OF-TEST GROUP TOKENS OUT SEED
. "$(dirname "$0")/common.sh"
[ $# = 6 ] || usage
read -ra by < "$3" || :
scsample -v --test-fraction "$2" "${by[@]}" --part "$1" --seed "$6" -o "$5" "$4"
