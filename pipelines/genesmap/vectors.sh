#!/usr/bin/env bash
# Vectors of the genes that LEAST cells have.
#     genesmap/vectors.sh LEAST OUT OPTION-OF-SCEMBED...
. "$(dirname "$0")/../common.sh"
[ $# -ge 3 ] || usage
least=$1 out=$2
shift 2
scembed -v -u "$@" | scsample -q --where "cells>=$least" -o "$out"
