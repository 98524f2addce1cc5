#!/usr/bin/env bats
# ctaprobe cells: given folds, folds with a whole group of every class, repeats, the protocol of cz-benchmarks
load helper

setup_file() {
	need_tool ctaprobe scview
	cd "$BATS_FILE_TMPDIR"
	ref make a.emb cells=300 types=6 features=8
	ref make drugs.emb what=drugs cells=400 types=3 batches=9 features=6
}

setup() { cd "$BATS_FILE_TMPDIR"; }

ref() { PYTHONDONTWRITEBYTECODE=1 $PYTHON -W ignore "$BATS_TEST_DIRNAME/ref/integration.py" "$@"; }

value() { awk -F '\t' -v m="$2" '$1 == m { print $2 }' "$1"; }

@test "ctaprobe cells --protocol cz: the scores of every fold are scikit-learn's, of many classes, of two, of neighbours" {
	ref make two.emb cells=150 types=2 features=5
	for file in a two; do
		ctaprobe cells -q --protocol cz --fold-column batch -l cell_type $file.emb -o $file.tsv
		ref cz $file.emb $file.tsv
		ctaprobe cells -q --protocol cz --fold-column batch --nearest 5 -l cell_type $file.emb -o $file.tsv
		ref cz $file.emb $file.tsv nearest=5
	done
	# the means are told, and which classes were left out
	ref make rare.emb cells=120 types=8
	run -0 --separate-stderr ctaprobe cells --protocol cz -l cell_type rare.emb
	[[ $stderr == *"classes have fewer than 10 cells in column 'cell_type': "*" cells are left out (--protocol cz)" ]]
	assert_line --regexp '^cz_f1_fold_mean	0\.'
	assert_line "folds	5"
}

@test "ctaprobe cells --protocol cz --fold: a cell without a fold is refused only if its class is scored" {
	scsim -q --cells 120 --genes 100 --types 2 --rarest 0.3 -o some.counts
	scview -q -O h5ad -o some.h5ad some.counts
	# five cells are a class of their own and have no fold
	scview -q -c barcode,cell_type some.counts | awk -F '\t' -v OFS='\t' 'NR == 1 { print $1, "fold", "class"; next } { print $1, NR < 7 ? "NA" : NR % 3, NR < 7 ? "rare" : $2 }' > fold.tsv
	folds() {
		h5tok -q --obs-table "$1" some.h5ad -o fold.counts
		screduce pca -q -k 5 --train fold.counts -o fold.emb fold.counts
		run "$2" --separate-stderr ctaprobe cells -q --protocol cz --label class --fold-column fold fold.emb
	}
	folds fold.tsv -0
	assert_line "cells	115"
	assert_line "folds	3"
	awk -F '\t' -v OFS='\t' 'NR == 9 { $2 = "NA" } 1' fold.tsv > gap.tsv
	folds gap.tsv -1
	[[ $stderr == *"cell 7 has no value in column 'fold'"* ]]
}

@test "ctaprobe cells --fold: the folds of a column, in the order of their names, and each is predicted by the others" {
	ctaprobe cells -q --fold-column batch -l cell_type --predictions a.pred a.emb -o a.tsv
	assert_equal "$(value a.tsv folds)" 3
	run -0 bash -c "scview -q -c batch,fold a.pred | tail -n +2 | sort -u | tr '\t' ' ' | paste -sd,"
	assert_output "b0 1,b1 2,b2 3"
	# one fold, held out by hand
	scsample -q --where batch=b1 a.emb -o test.emb
	scsample -q --where batch!=b1 a.emb -o train.emb
	ctaprobe cells -q -l cell_type --train train.emb --test test.emb -o b.tsv
	assert_equal "$(value a.tsv accuracy_fold:2)" "$(value b.tsv accuracy)"
	# a class that one fold alone has: said, and the score is a number
	scsample -q --where cell_type=type5 --where batch=b0 a.emb -o only.emb
	scsample -q --where cell_type!=type5 a.emb -o rest.emb
	scsample -q rest.emb only.emb -o odd.emb
	run -0 --separate-stderr ctaprobe cells --fold-column batch -l cell_type odd.emb
	[[ $stderr == *"warning: odd.emb: class 'type5' ("*" is not in the training cells and is never predicted"* ]]
	run ! grep -q nan <(echo "$output" | grep fold)
}

@test "ctaprobe cells --every-class: each fold has a whole group of every class, and repeats have other folds" {
	for seed in 1 2; do
		ctaprobe cells -q --every-class --group batch --folds 3 --seed $seed -l cell_type --predictions $seed.pred drugs.emb -o $seed.tsv
		scview -q -c cell_type,batch,fold $seed.pred | tail -n +2 | sort -u > $seed.rows
		assert_equal "$(wc -l < $seed.rows)" 9                               # no group is in two folds
		assert_equal "$(cut -f 1,3 $seed.rows | sort -u | wc -l)" 9          # each type is in each fold
	done
	run ! cmp -s 1.rows 2.rows
	run -1 ctaprobe cells -q --every-class --group batch --folds 4 -l cell_type drugs.emb
	names "drugs.emb type0 3 batch 4 --every-class"
	run -1 ctaprobe cells -q --every-class --group batch --folds 2 -l cell_type a.emb
	names "cell_type --every-class groups"
}

@test "ctaprobe cells --repeats: means over the seeds, all folds, each repeat; labels and numbers" {
	ctaprobe cells -q --repeats 3 --seed 5 --folds 4 -l cell_type a.emb -o all.tsv
	for i in 5 6; do ctaprobe cells -q --seed $i --folds 4 -l cell_type a.emb -o $i.tsv; done
	ctaprobe cells -q --repeats 2 --seed 5 --folds 4 -l cell_type a.emb -o two.tsv
	# the first repeat is that of the seed alone, and a repeat is never that of another seed
	assert_equal "$(value all.tsv macro_f1_repeat:1)" "$(value 5.tsv macro_f1)"
	assert_equal "$(value all.tsv macro_f1_fold:3)" "$(value 5.tsv macro_f1_fold:3)"
	for fold in 1 2 3 4; do value all.tsv macro_f1_fold:$((fold + 4)); done > second
	for fold in 1 2 3 4; do value 6.tsv macro_f1_fold:$fold; done > other
	run ! cmp -s second other
	assert_equal "$(value all.tsv macro_f1_fold:13)" ""
	assert_equal "$(value all.tsv macro_f1_repeat:2)" "$(value two.tsv macro_f1_repeat:2)"
	run -0 awk -v a="$(value all.tsv macro_f1)" -v b="$(value all.tsv macro_f1_repeat:1)" -v c="$(value all.tsv macro_f1_repeat:2)" \
		-v d="$(value all.tsv macro_f1_repeat:3)" 'BEGIN { exit !((a - (b + c + d) / 3) ^ 2 < 1e-24) }'
	assert_equal "$(value all.tsv repeats)" 3
	assert_equal "$(value all.tsv cells)" 300
	ctaprobe cells -q --repeats 2 --target cluster a.emb -o numbers.tsv
	ctaprobe cells -q --target cluster a.emb -o one.tsv
	assert_equal "$(value numbers.tsv spearman_repeat:1)" "$(value one.tsv spearman)"
	# one repeat changes nothing
	ctaprobe cells -q --repeats 1 --seed 6 --folds 4 -l cell_type a.emb | cmp - 6.tsv
	ctaprobe cells -q --repeats 3 --seed 5 --folds 4 -l cell_type -@ 3 a.emb | cmp - all.tsv
}

@test "ctaprobe cells: folds, repeats and protocol that cannot be" {
	ref make nobatch.emb what=nobatch
	run -1 ctaprobe cells -q --fold-column batch -l cell_type nobatch.emb
	names "nobatch.emb batch 200 scsample --where batch!=NA"
}
