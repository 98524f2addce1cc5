# screduce: vectors of cells without a model.
load helper

setup_file() {
	need_tool scsim rankenc scview scsample
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 120 --genes 60 --modules 4 --types 3 --depth 60 --seed 3 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o cells.tok sim.counts
}

setup() { cd "$BATS_FILE_TMPDIR"; }

baseline() {            # baseline FIT INPUT OPTIONS OPTIONS OF THE REFERENCE
	screduce $3 -q --train "$1" "$2" -o b.emb
	run $PYTHON "$BATS_TEST_DIRNAME/ref/evaluation.py" expression "$1" "$2" b.emb $4
	assert_success
}

@test "screduce: expression and pca are numpy's expression and scikit-learn's components" {
	scsample -q --test-fraction 0.4 --part train sim.counts -o fit.counts
	scsample -q --test-fraction 0.4 --part test sim.counts -o new.counts
	$PYTHON "$BATS_TEST_DIRNAME/ref/evaluation.py" other new.counts other.counts
	baseline fit.counts new.counts expression genes=2000
	baseline fit.counts other.counts "expression --hvg 20" genes=20
	baseline fit.counts new.counts "pca -k 10" "genes=2000 components=10"
	baseline fit.counts other.counts "pca -k 3 --hvg 30" "genes=30 components=3"
	baseline sim.counts sim.counts "pca --hvg 0" "genes=0 components=50"
	# without --train, the cells themselves; from a pipe; on more threads: the same
	screduce pca -q -k 50 --hvg 0 -@ 3 - <sim.counts >c.emb
	diff <(scview b.emb) <(scview c.emb)
	ctaprobe cells -q --label cell_type b.emb >/dev/null
	run --separate-stderr screduce expression --train fit.counts other.counts -o b.emb
	assert_equal "$stderr" "screduce expression: warning: other.counts: 3 of the 60 genes of --train are not in its table of genes: they count as 0"
}

@test "screduce expression of tokens with values: the expression of the genes that a network reads" {
	rankenc -q -m vocab.tsv --value --max-len 12 -o short.tok sim.counts
	scsample -q --test-fraction 0.4 --part train short.tok -o fit.tok
	scsample -q --test-fraction 0.4 --part test short.tok -o new.tok
	for genes in 0 7; do
		screduce expression -q --hvg $genes --train fit.tok new.tok | scview -O npy -c x - > x.npy
		scview --gene-names id -c token,value fit.tok > fit.tsv
		scview --gene-names id -c token,value new.tok > new.tsv
		$PYTHON - $genes <<-'END'
			import sys, numpy as np
			def dense(name):
			    rows = [[l.split() for l in line.rstrip("\n").split("\t")] for line in open(name)][1:]
			    names = sorted({g for r in rows for g in r[0]})
			    return rows, names
			fit, names = dense("fit.tsv")
			new, _ = dense("new.tsv")
			vocab = [l.split("\t")[1] for l in open("vocab.tsv")][1:]
			def matrix(rows):
			    x = np.zeros((len(rows), len(vocab)))
			    for i, (g, v) in enumerate(rows):
			        x[i, [vocab.index(k) for k in g]] = [float(f) for f in v]
			    return x
			a, b = matrix(fit), matrix(new)
			assert all(len(r[0]) <= 12 for r in fit) and len(new) > 10
			order = np.argsort(-a.var(0), kind="stable")[:int(sys.argv[1]) or None]
			best = np.sort(order[a[:, order].var(0) > 0])
			got = np.load("x.npy")
			assert got.shape == (len(new), len(best)), (got.shape, len(best))
			assert np.abs(got - b[:, best]).max() < 1e-5
		END
	done
	rankenc -q -m vocab.tsv --value --max-len 4000 -o long.tok sim.counts
	screduce pca -q -k 5 --hvg 0 long.tok | scview -O npy -c x - > tokens.npy
	screduce pca -q -k 5 --hvg 0 sim.counts | scview -O npy -c x - > counts.npy
	$PYTHON -c 'import numpy as np; a, b = np.load("tokens.npy"), np.load("counts.npy"); assert a.shape[1] == 5 and np.abs(a - b).max() < 1e-4 * np.abs(b).max()'
}

@test "screduce pca: more components than there are" {
	run --separate-stderr screduce pca -k 61 sim.counts -o all.emb
	assert_success
	assert_equal "$stderr" "screduce pca: warning: --components 61: 120 cells and 60 genes that vary have only 60"
	# one cell, or cells that do not differ, have one place
	scsample -q -n 1 sim.counts -o one.counts
	scsample -q -o same.counts one.counts one.counts
	for cells in one same; do screduce pca -q $cells.counts | scview -c x -; done > places
	assert_equal "$(tr -d - < places | paste -sd ,)" x,0,x,0,0
}
