#!/usr/bin/env bash
# Score the cell types of the test cells without a network: logistic regression on log-normalised expression, or on its first 50 principal
# components, with intervals (bootstrap.sh).
#     table6-baseline.sh expression|pca TRAIN.counts TEST.counts GROUP LABEL THREADS OUT.tsv
. "$(dirname "$0")/common.sh"
[ $# = 7 ] || usage
what=$1 train=$2 test=$3 group=$4 label=$5 threads=$6 out=$7
case $what in
expression) embed=(--expression) ;;
pca) embed=(--pca 50) ;;
*) usage ;;
esac
made=${out%.tsv}
trap 'rm -f "$made".{train,test}.emb "$made".replicates' EXIT
scembed -v "${embed[@]}" --fit "$train" -@ "$threads" -o "$made.train.emb" "$train"
scembed -v "${embed[@]}" --fit "$train" -@ "$threads" -o "$made.test.emb" "$test"
"$(dirname "$0")/bootstrap.sh" cells "$group" "$label" "$made.train.emb" "$made.test.emb" "$out" -@ "$threads"
