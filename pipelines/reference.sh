#!/usr/bin/env bash
# Losses of two tables without a network on the masked genes of each TEST (scmetric reference), learned from cells of TRAIN in random order.
#     reference.sh TRAIN.tok SEED TEST.masked...
. "$(dirname "$0")/common.sh"
[ $# -ge 3 ] || usage
train=$1 seed=$2
shift 2
if scview -q --header-tsv "$train" | grep -x $'column\tvalue' > /dev/null; then # values of genes have no order
	scmetric reference -q --train "$train" "$@"
else
	maskgen -q --strategy none --seed "$seed" -u "$train" | scmetric reference -q --train - "$@"
fi
