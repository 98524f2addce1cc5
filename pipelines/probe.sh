#!/usr/bin/env bash
# Probe embeddings of the training and the test cells for a column of labels, with intervals by a bootstrap of the groups of the test cells,
# or of single cells if there are fewer than five groups. The file GROUP holds what group.sh prints: an obs column, or nothing.
#     probe.sh GROUP LABEL TRAIN TEST OUT [OPTION-OF-CTAPROBE...]
. "$(dirname "$0")/common.sh"
[ $# -ge 5 ] || usage
group=$(cat "$1") label=$2 train=$3 test=$4 out=$5
shift 5
[ -z "$group" ] || [ "$(scview -q --columns "$group" "$test" | tail -n +2 | sort -u | wc -l)" -ge 5 ] || group=
ctaprobe cells -v --label "$label" ${group:+--group "$group"} --bootstrap 1000 --standardize --train "$train" --test "$test" -o "$out" "$@"
