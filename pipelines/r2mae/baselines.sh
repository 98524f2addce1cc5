#!/usr/bin/env bash
# Probes without a network: log-normalised expression of all genes of the inputs, its first 50 principal components, and naive Bayes of the counts.
# baselines.tsv in the folder gets lines of name, stage, metric, value.
#     r2mae/baselines.sh INPUTS THREADS
. "$(dirname "$0")/../common.sh"
[ $# = 2 ] || usage
inputs=$1 threads=$2
logs=$inputs/log
# Thousands of genes: a hundred iterations, as scikit-learn's default
embed() {
	local name=$1 iterations=$2 part
	shift 2
	mkdir -p "$inputs/$name"
	for part in learn test valid; do
		screduce "$@" -q --hvg 0 --train "$inputs/learn.counts" -o "$inputs/$name/$part.emb" "$inputs/$part.counts"
	done
	"$here/r2mae/probe.sh" "$inputs/$name" "$inputs" "$threads" "$iterations"
}
few=$(scview --vocab "$inputs/genes.counts" | tail -n +2 | wc -l)
stage expression embed expression 100 expression
stage pca embed pca 500 pca -k $((few < 50 ? few : 50))
bayes() {
	local label stage=label n=1 by=()
	[ ! -s "$inputs/group" ] || by=(--group "$(cat "$inputs/group")")
	mkdir -p "$inputs/naive-bayes"
	while IFS= read -r label; do
		ctaprobe cells -v --naive-bayes --label "$label" --train "$inputs/learn.counts" --test "$inputs/test.counts" "${by[@]}" --bootstrap 1000 \
			--replicates "$inputs/naive-bayes/$stage.replicates.tsv" -o "$inputs/naive-bayes/$stage.score.tsv" || return
		stage=label-$((++n))
	done < "$inputs/label"
}
stage naive-bayes bayes
for name in expression pca naive-bayes; do
	for f in "$inputs/$name"/*.score.tsv; do
		part=${f##*/}
		sed "1d; s/^/$name\t${part%.score.tsv}\t/" "$f"
	done
	rm -f "${inputs:?}/$name"/*.emb
done > "$inputs/baselines.tsv.new"
whole "$inputs/baselines.tsv"
