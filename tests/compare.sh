#!/usr/bin/env bash
# Do two builds write the same bytes?   tests/compare.sh OLD_BIN NEW_BIN [FILE.h5ad]
#
# Runs one fixed pipeline with the tools of each folder: simulation, counts, tokens, graphs, masks of every strategy, training of every
# task, embeddings, predictions and metrics. Prints one line for each output whose digest differs, and ends with status 1 if there is
# one. FILE.h5ad (raw counts) is a second input to h5tok. For a change that must not change behaviour.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 OLD_BIN NEW_BIN [FILE.h5ad]" >&2; exit 2; }
# shellcheck disable=SC2034   # read as ${!side}
old=$(realpath "$1") new=$(realpath "$2") real=${3:+$(realpath "$3")}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

masks() { # NAME OPTION...: a masked stream of tok
	local name=$1
	shift
	maskgen -q "$@" tok -o "$name.masked"
}

pipeline() {
	scsim -q --cells 600 --genes 200 --types 4 --rarest 0.1 --depth 700 --donors 4 --seed 3 -o sim.counts
	scsim -q --kind b1 --cells 100 --seed 2 -o b1.tok
	scsim -q --kind b2 --cells 100 --seed 2 -o b2.tok
	scview -q -O h5ad sim.counts -o sim.h5ad
	h5tok -q "${real:-sim.h5ad}" -o counts
	h5tok -q sim.h5ad sim.h5ad -o twice.counts 2> /dev/null
	rankenc -q --fit counts -o fit.vocab
	rankenc -q --value -m fit.vocab counts -o value.tok
	rankenc -q --fit sim.counts -o vocab
	rankenc -q -m vocab sim.counts -o tok
	rankenc -q -m vocab --vocab-style v2 --max-len 50 sim.counts -o v2.tok 2> /dev/null || :
	scsample -q --test-fraction 0.3 --part test --group donor tok -o test.tok
	scsample -q -n 300 --stratify cell_type tok -o sample.tok
	scsample -q tok test.tok -o both.tok
	depgraph -q --leiden 1,2 tok -o graph
	depgraph -q value.tok -o value.graph
	depgraph -q --pmi --tau 0.1 tok -o pmi.graph
	depgraph -q -O stats graph -o graph.stats
	depgraph -q -O tsv graph -o graph.tsv
	depgraph -q -O graphml graph -o graph.graphml
	masks random --epochs 2 --keep cell_type
	masks uniform --rate-uniform 0.1:0.5 --shard 1/2
	masks linear --rate-linear 0.1:0.5 --balance-lengths
	masks bernoulli --bernoulli
	masks corr -g graph --strategy corrmask --epochs 2
	masks weighted -g graph --strategy corrmask --partners weighted --seed-share 0.5 --lambda 0:1
	masks modules -g graph --strategy corrmask --module module_1
	masks pmi -g pmi.graph --strategy pmi
	masks pmirand -g pmi.graph --strategy pmi-rand
	masks none --strategy none --keep cell_type,donor --epochs 2
	maskgen -q -g graph --strategy corrmask --audit graph tok -o audit.tsv
	maskgen -q --strategy none --keep cell_type test.tok -o test.none
	maskgen -q test.tok -o test.masked
	sctrain mlm -q -@ 2 --config tiny --dropout 0.1 --save-every 50 --keep-checkpoints 9 --eval test.masked --eval-every 40 corr.masked -o mlm.model
	sctrain mlm -q --config tiny --accum 3 --schedule cosine random.masked -o cosine.model
	sctrain cells -q --label cell_type --init mlm.model --lr 1e-3 --class-weight balanced --eval test.none --best macro-f1 none.masked -o cells.model
	sctrain cells -q --head cell_type:focal --init mlm.model --lr 1e-3 --freeze 1 none.masked -o focal.model
	awk -F'\t' 'BEGIN { print "gene\tlabel" } NR > 1 && $2 !~ /^</ { print $2 "\t" (++n % 2 ? "odd" : "even") }' vocab > genes.tsv
	sctrain genes -q --gene-labels genes.tsv --fold 0/3 --init mlm.model --lr 1e-3 none.masked -o genes.model
	sctrain eval -q -M mlm.model test.masked -o eval.tsv
	scembed -q -M mlm.model tok -o emb
	scsample -q -n 20 tok -o few.tok
	scperturb apply -q --delete all --controls 1 few.tok -o perturbed.tok
	scembed -q -M mlm.model --emb-layer 0 --pool first tok -o first.emb
	scpredict cells -q -M cells.model --probabilities test.tok -o cells.pred
	scpredict genes -q -M genes.model test.tok -o genes.pred
	ctaprobe cells -q --label cell_type --folds 4 --group donor emb -o probe.tsv
	ctaprobe score -q --label cell_type cells.pred -o score.tsv
	ctaprobe genes -q genes.pred -o genes.auc
	scview -q -O npy emb -o emb.npy
	scview -q tok -o tok.tsv
	scview -q -H corr.masked -o header.json
}

# Left out: times (columns tokens_per_s and seconds of train.tsv, "seconds" of trainer_state.json), its digest, and the note on the kernels.
digests() {
	find . -type f | sort | while read -r f; do
		case $f in
		*/train.tsv) cut -f1-4,7- "$f" ;;
		*/trainer_state.json) sed 's/"seconds":[[:space:]]*[0-9.e+-]*//; /"kernels":/d; /\t"digest":/d' "$f" ;;
		*.h5ad) ;; # HDF5 stamps its objects with the time
		*) cat "$f" ;;
		esac | sha256sum | sed "s|-|$f|"
	done
}

for side in old new; do
	mkdir "$work/$side"
	(
		cd "$work/$side"
		PATH=${!side}:$PATH
		pipeline
		digests > "../$side.sums"
	)
done
n=$(wc -l < "$work/old.sums")
if diff "$work/old.sums" "$work/new.sums" > "$work/diff"; then
	echo "the same bytes: $n outputs"
else
	awk '/^[<>]/ { side[$3] = side[$3] ($1 == "<" ? "old" : "new") } END { for (f in side) print "differs: " f " (" side[f] ")" }' "$work/diff" | sort
	exit 1
fi
