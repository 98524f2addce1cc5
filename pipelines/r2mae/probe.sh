#!/usr/bin/env bash
# Score the embeddings FOLDER/learn.emb, test.emb and valid.emb: a probe of each label (label, label-2, ...), one of the target (a column of numbers) if
# there is one, and the effective rank. The penalty of a probe is chosen within the learning cells, by whole groups if there are any. LABEL.replicates.tsv
# gets the scores of a label in 1,000 draws of the tested groups, or cells.
#     r2mae/probe.sh FOLDER INPUTS THREADS [ITERATIONS]
# A fit of the search with a weak penalty can need thousands of iterations, so they are limited (default 500).
. "$(dirname "$0")/../common.sh"
[ $# -ge 3 ] || usage
dir=$1 inputs=$2 threads=$3 iterations=${4:-500}
target=$(cat "$inputs/target") group=$(cat "$inputs/group") folds=$(cat "$inputs/folds")
how=(--train "$dir/learn.emb" --test "$dir/test.emb" -@ "$threads")
[ -z "$group" ] || how+=(--group "$group")
stage=label n=1
while IFS= read -r label; do
	ctaprobe cells -v --label "$label" --max-iter "$iterations" --search "$folds" "${how[@]}" --bootstrap 1000 \
		--replicates "$dir/$stage.replicates.tsv" -o "$dir/$stage.score.tsv"
	stage=label-$((++n))
done < "$inputs/label"
[ -z "$target" ] || ctaprobe cells -v --target "$target" --search "$folds" "${how[@]}" -o "$dir/target.score.tsv"
scmetric effective-rank -v -o "$dir/rank.score.tsv" "$dir/valid.emb"
