#!/usr/bin/env bash
# The loss on the masked genes of held-out cells: of the trained network, of the untrained one, and of two tables without a network.
#     losses.sh PRETRAIN OUT SEED OPTION-OF-SCTRAIN...
. "$(dirname "$0")/../common.sh"
[ $# -ge 3 ] || usage
run=$1 out=$2 seed=$3
shift 3
for network in model untrained; do
	sctrain eval -v -M "$run/$network" -o "$run/$network.loss.tsv" "$@" "$run/valid.masked"
done
CORRMASK_REPORT='' scsample -q -n 20000 --seed "$seed" -o "$run/reference.tok" "@$run/train.txt"
"$here/reference.sh" "$run/reference.tok" "$seed" "$run/valid.masked" > "$out.new"
rm "$run/reference.tok"
mv "$out.new" "$out"
