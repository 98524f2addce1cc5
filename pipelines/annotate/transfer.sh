#!/usr/bin/env bash
# The file GROUP holds what group.sh prints: an obs column, or nothing to hold out cells.
#     transfer.sh REFERENCE.counts NEW.counts GROUP HELD-OUT.pred NEW.pred OPTION-OF-CTAPROBE...
. "$(dirname "$0")/../common.sh"
[ $# -ge 5 ] || usage
reference=$1 new=$2 group=$(cat "$3") held_out=$4 out=$5
shift 5
ctaprobe transfer -v --reference "$reference" ${group:+--group "$group"} --held-out "$held_out" -o "$out" "$@" "$new"
