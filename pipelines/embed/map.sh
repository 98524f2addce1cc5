#!/usr/bin/env bash
# A map of the cells of an embedding, or of MOST of them
#     map.sh EMBEDDING OUT MOST SEED OPTION-OF-CTAPROBE...
. "$(dirname "$0")/../common.sh"
[ $# -ge 4 ] || usage
embedding=$1 out=$2 most=$3 seed=$4
shift 4
if [ "$(rows "$embedding")" -gt "$most" ]; then
	scsample -q -u -n "$most" --seed "$seed" "$embedding" | screduce map -v --seed "$seed" -o "$out" "$@"
else
	screduce map -v --seed "$seed" -o "$out" "$@" "$embedding"
fi
