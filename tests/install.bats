#!/usr/bin/env bats
# What make install installs works from any folder, and make uninstall removes it.
load helper

# in_sources ARGUMENT...: make, with these tools as they are. Paths relative to the sources have no spaces of the folders above.
in_sources() {
	local bin
	bin=$(realpath --relative-to "$BATS_TEST_DIRNAME/.." "$BIN")
	make -s -C "$BATS_TEST_DIRNAME/.." -o all BIN="$bin" "$@"
}

# broken_links FOLDER: "FILE: LINK" for links in Markdown to files that are not there
broken_links() {
	local file link
	grep -roP '\]\(\K[^)#]+(?=[)#])' --include='*.md' "$1" | grep -v ':[a-z]*://' | while IFS=: read -r file link; do
		[ -e "$(dirname "$file")/$link" ] || echo "${file#"$1"/}: $link"
	done
}

# bats test_tags=slow
@test "make install and uninstall: tools, pages, pipelines and docs, under any PREFIX and DESTDIR" {
	cd "$BATS_TEST_TMPDIR"
	for prefix in "$PWD/a+b/ö" \~/plain; do
		HOME=$PWD in_sources install PREFIX="$prefix" DESTDIR=
		dir=${prefix/'~'/$PWD}
		# shellcheck disable=SC2046   # words
		for t in corrmask $(sed -n 's/^TOOL(\([a-z0-9]*\),.*/\1/p' "$BATS_TEST_DIRNAME/../src/tools.def"); do
			run -0 "$dir/bin/$t" --version
			assert_file_exist "$dir/share/man/man1/$t.1"
			grep -q "complete .* $t" "$dir/share/bash-completion/completions/$t" # bash looks for it by the tool's name
			grep -q "^#compdef .*$t" "$dir/share/zsh/site-functions/_corrmask"
		done
		run -0 "$dir/bin/corrmask" list
		assert_line --partial "  pretrain "
		assert_file_exist "$dir/share/man/man5/scstream.5"
		assert_file_exist "$dir/share/man/man7/corrmask.7"
		assert_file_exist "$dir/share/corrmask/pipelines/demo/demo.mk"
		assert_file_exist "$dir/share/corrmask/data/catalog.tsv"
		assert_file_exist "$dir/share/corrmask/data/pbmc3k_sample.h5ad"
		assert_file_exist "$dir/share/doc/corrmask/README.md"
		assert_equal "$(comm -23 <(broken_links "$dir/share/doc/corrmask" | sort) <(broken_links "$BATS_TEST_DIRNAME/.." | sort))" ""
		PYTHONPATH="$dir/lib/corrmask/python" PYTHONDONTWRITEBYTECODE=1 $PYTHON -c 'import corrmask.stream'
		PYTHONDONTWRITEBYTECODE=1 run -0 $PYTHON "$dir/bin/scstream" --version
		HOME=$PWD in_sources uninstall PREFIX="$prefix" DESTDIR=
		assert_equal "$(find "$dir" ! -type d)" ""
	done
	in_sources install PREFIX=/usr DESTDIR="$PWD/package" PYTHON=$PYTHON
	assert_file_exist package/usr/bin/sctrain
	# where this Python looks for modules of /usr
	cmp package/usr/lib/python3/dist-packages/corrmask/__init__.py "$BATS_TEST_DIRNAME/../python/corrmask/__init__.py"
	assert_exist package/usr/lib/python3/dist-packages/corrmask/py.typed
	in_sources uninstall PREFIX=/usr DESTDIR="$PWD/package" PYTHON=$PYTHON
	assert_equal "$(find package ! -type d)" ""
	run -0 in_sources install PREFIX="$PWD/other" PYTHON=$PYTHON
	assert_line "for import corrmask in Python: PYTHONPATH=$PWD/other/lib/corrmask/python"
}

@test "make install refuses a PREFIX with a space or a quote, where the experiments could not run" {
	cd "$BATS_TEST_TMPDIR"
	run -2 in_sources install PREFIX="$PWD/a b"
	assert_output --regexp "^Makefile:[0-9]+: \*\*\* install: PREFIX '$PWD/a b' has a space or a quote: the experiments are run by make, which reads no such names of folders.  Stop.$"
	for prefix in "$PWD/a'b" "$PWD/a\"b"; do
		run -2 in_sources install PREFIX="$prefix"
		assert_output --partial "PREFIX '$prefix' has a space or a quote"
		assert_not_exist "$prefix"
	done
	mkdir "h m"
	HOME="$PWD/h m" run -2 in_sources install PREFIX=\~/x
	assert_output --partial "PREFIX '$PWD/h m/x' has a space or a quote"
	assert_not_exist "a b"
	assert_not_exist "h m/x"
	in_sources install PREFIX=/usr DESTDIR="$PWD/h m"
	run -0 "h m/usr/bin/corrmask" --version
}

# bats test_tags=slow
@test "the installed pipelines: the demo runs, once, and goes on after an interruption; fine-tuning goes on from there" {
	in_sources install PREFIX="$BATS_TEST_TMPDIR/x"
	cd "$BATS_TEST_TMPDIR"
	demo="env -u BIN make -s -f x/share/corrmask/pipelines/Makefile demo CELLS=400 EPOCHS=1 THREADS=2"
	export SEEDS="1 2"
	run -0 $demo
	assert_line --regexp '^cells: [0-9]+ to train, [0-9]+ to test, split by donor'
	for what in "network, random masks" "network, CorrMask masks"; do assert_line --regexp "^$what +[0-9.]+ +[0-9.]+ +[-+][0-9.]+   [-+][0-9.]+ [-+][0-9.]+$"; done
	for what in "log-normalised expression, no network" "50 principal components, no network" "untrained network" "network, random masks" \
		"network, CorrMask masks"; do
		assert_line --regexp "^$what +[01]\.[0-9]+ +[01]\.[0-9]+ +[01]\.[0-9]+   [01]\.[0-9]+ - [01]\.[0-9]+$"
	done
	# one epoch: too little to compare
	assert_line --regexp '^No comparison: a network has learned less than the gene frequencies \(loss [0-9.]+, not below [0-9.]+\)\. Train longer: EPOCHS='
	assert_line --regexp '^sctrain +6 +[0-9.]+ +[0-9]+ MB'
	assert_file_not_empty results/demo/latest/demo.svg
	was=$(cat results/demo/latest/report.txt)
	run -0 $demo
	assert_output "$was"
	rm results/demo/latest/corrmask-1.probe.tsv
	run -0 $demo
	assert_line --index 0 "  ctaprobe-corrmask-1"
	refute_line --partial "  sctrain"
	# a third seed keeps the first two
	SEEDS="1 2 3" run -0 $demo
	assert_line "  sctrain-random-3"
	refute_line --regexp "^  sctrain-.*-[12]$"
	# other cells under the same names: finished models are trained anew
	touch results/prepared/latest/train.tok
	run -0 $demo
	for m in random-1 corrmask-2; do
		assert_line "  sctrain-$m"
		assert [ results/pretrained/latest/$m.model/model.safetensors -nt results/prepared/latest/train.tok ]
	done
	# fine-tuning goes on from there, and makes nothing of the demo again
	finetune="${demo/demo CELLS/finetune CELLS} FT_EPOCHS=1"
	run -0 $finetune
	refute_line "  scsim"
	refute_line "  rankenc-fit"
	refute_line "  sctrain-random-1"
	assert_line --regexp '^start +accuracy +balanced accuracy +macro F1'
	for start in scratch random corrmask; do assert_line --regexp "^$start +0\.[0-9]+ +0\.[0-9]+"; done
	for start in expression pca naive-bayes random; do assert_line --regexp "^$start( +[01]\.[0-9]+){4} .*   [01]\.[0-9]+ - [01]\.[0-9]+$"; done
	assert_line --regexp '^macro F1, corrmask - scratch: 95 % interval [-+][0-9.]+ to [-+][0-9.]+ over the same draws'
	was=$(cat results/finetune/latest/report.txt)
	run -0 $finetune
	assert_output "$was"
	run -0 $finetune INIT=results/pretrained/latest/corrmask-1.model
	assert_line --regexp '^init +0\.[0-9]+ +0\.[0-9]+'
	run -0 ${finetune/finetune/genes} INIT=results/pretrained/latest/corrmask-1.model FOLDS=2
	refute_line "  scsim"
	for start in scratch init; do assert_line --regexp "^$start +0\.[0-9]+ ± 0\.[0-9]+"; done
	# the same models on cells of another tissue, and models of other masks
	scsim -q --cells 80 --genes 300 --modules 30 --module-share 1 --depth 20000 --seed 9 | scview -q -O h5ad - -o "other tissue.h5ad"
	run ! ${finetune/finetune/table1} FOLDS=2 CROSS=none.h5ad
	assert_output --partial "CROSS=none.h5ad: no such file"
	run ! ${finetune/finetune/table1} STARTS=mpi
	assert_output --partial "genes: STARTS: unknown start 'mpi'"
	run -0 ${finetune/finetune/table1} FOLDS=2 STARTS="scratch pmi" CROSS="'other tissue.h5ad'"
	G=results/genes/latest
	h5tok -q "other tissue.h5ad" | rankenc -q -m results/prepared/latest/vocab.tsv --max-len 64 -o cross.tok
	for fold in 0 1; do scpredict genes -q -M $G/pmi-$fold.model cross.tok -o cross-$fold.pred; done
	ctaprobe genes -q cross-0.pred cross-1.pred | diff - $G/pmi.cross.score.tsv
	run -0 awk -F '\t' '$1 == "auc_fold_mean" { printf "%.4f", $2 }' $G/pmi.cross.score.tsv
	assert_equal "$(sed -n '/^Across tissues: cells/,$s/^pmi *\([0-9.]*\) .*/\1/p' $G/report.txt)" "$output"
}
