#!/usr/bin/env bash
# Score the embeddings FOLDER/learn.emb, test.emb and valid.emb: a probe of the label and, if there is a target, of this column of numbers, each
# with its penalty chosen within the learning cells, by whole groups if there are any; and the effective rank.
#     r2mae-probe.sh FOLDER INPUTS THREADS
. "$(dirname "$0")/common.sh"
[ $# = 3 ] || usage
dir=$1 inputs=$2 threads=$3
label=$(cat "$inputs/label") target=$(cat "$inputs/target") group=$(cat "$inputs/group") folds=$(cat "$inputs/folds")
how=(--standardize --train "$dir/learn.emb" --test "$dir/test.emb" -@ "$threads")
[ -z "$group" ] || how+=(--group "$group")
ctaprobe cells -v --label "$label" --search "$folds" "${how[@]}" -o "$dir/label.score.tsv"
[ -z "$target" ] || ctaprobe cells -v --target "$target" --search "$folds" "${how[@]}" -o "$dir/target.score.tsv"
ctaprobe rank -v -o "$dir/rank.score.tsv" "$dir/valid.emb"
