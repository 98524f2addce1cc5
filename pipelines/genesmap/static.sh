#!/usr/bin/env bash
# The graph of nearest genes in the model's table of tokens, of those genes that GENES.emb has.
#     genesmap/static.sh TOKENS GENES.emb OUT NEAREST MODEL OPTION-OF-CTAPROBE...
. "$(dirname "$0")/../common.sh"
[ $# -ge 5 ] || usage
tokens=$1 genes=$2 out=$3 nearest=$4 model=$5
shift 5
mapfile -t where < <(scview -q -c token "$genes" | awk 'NR > 1 { print "--where"; print "token=" $1 }')
scembed -q -u -M "$model" --of static "$tokens" | scsample -q -u "${where[@]}" - | scgenes network -v -k "$nearest" -o "$out" "$@"
