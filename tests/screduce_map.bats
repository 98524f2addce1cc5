#!/usr/bin/env bats
# screduce map: the map keeps neighbours, as scikit-learn measures it
load helper

setup_file() {
	need_tool screduce scview scsim
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 500 --genes 300 --types 5 --depth 1500 --seed 2 -o c.counts
	screduce pca -q -k 10 --train c.counts -o c.emb c.counts
	screduce map -q --seed 3 -o map.emb c.emb
}

setup() { cd "$BATS_FILE_TMPDIR"; }

@test "screduce map: trustworthiness and continuity by scikit-learn are high; every other column stays as it was" {
	scview -q -O npy -o x.npy c.emb
	scview -q -O npy --columns X_umap -o umap.npy map.emb
	run -0 $PYTHON -c 'if 1:
		import numpy as np
		from sklearn.manifold import trustworthiness
		x = np.load("x.npy")
		scores = {}
		for name in ["umap"]:
		    y = np.load(name + ".npy")
		    assert y.shape == (500, 2), y.shape
		    scores[name] = trustworthiness(x, y, n_neighbors=15), trustworthiness(y, x, n_neighbors=15)
		print(scores)
		assert min(scores["umap"]) > 0.91, scores      # .928 and .939; shuffled rows have .5
	'
	diff <(scview -q c.emb) <(scview -q map.emb | awk -F '\t' -v OFS='\t' '{ NF--; print }')
	run -0 scview -H map.emb
	assert_line --partial 'screduce map'
}

@test "screduce map: the same bytes on any number of threads and from a pipe; another seed, another map; a map is made anew" {
	for threads in 2 5; do
		screduce map -q --seed 3 -@ $threads -o other.emb c.emb
		cmp map.emb other.emb
	done
	screduce map -q --seed 3 < c.emb -o again
	cmp again map.emb
	screduce map -q --seed 4 -o other.emb c.emb
	run ! cmp -s map.emb other.emb
	# the column is replaced, not repeated
	screduce map -q --seed 3 -o again.emb other.emb
	diff <(scview -q map.emb) <(scview -q again.emb)
	screduce map -q --seed 3 -k 5 -o other.emb c.emb
	run ! cmp -s map.emb other.emb
}

@test "screduce map: one cell, two cells, equal cells, no cells" {
	for n in 1 2; do
		scsample -q -n $n c.emb | screduce map -q -o few.emb -
		assert_equal "$(scview -q --columns X_umap few.emb | tail -n +2 | grep -cE '^-?[0-9.e-]+ -?[0-9.e-]+$')" $n
	done
	scsample -q -n 1 -o one.emb c.emb
	mapfile -t same < <(yes one.emb | head -n 40)
	scsample -q "${same[@]}" | screduce map -q -o equal.emb -
	assert_equal "$(scview -q --columns X_umap equal.emb | tail -n +2 | grep -cE '^-?[0-9.e-]+ -?[0-9.e-]+$')" 40
	scsample -q --min-genes 100000 c.counts -o none.counts
	screduce pca -q -k 10 --train c.counts none.counts | screduce map -q -o none.emb -
	assert_equal "$(scview -q none.emb | wc -l)" 1
}

@test "screduce map: values near the largest and the smallest float32 have a map like those of ordinary size" {
	for scale in 1e36 1e-36; do
		PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - $scale <<-'END'
			import sys
			import numpy as np, corrmask.stream as scstream
			with scstream.read("c.emb") as s:
			    blocks = [dict(b) for b in s]
			    header = s.header
			for b in blocks:
			    b["x"] = (np.asarray(b["x"], np.float64) * float(sys.argv[1])).astype(np.float32)
			scstream.write("scaled.emb", header, blocks)
		END
		screduce map -q --seed 3 -o scaled.map scaled.emb
		scview -q -O npy --columns X_umap -o y.npy scaled.map
		scview -q -O npy -o x.npy c.emb
		run -0 $PYTHON -c 'import numpy as np; from sklearn.manifold import trustworthiness as t
y = np.load("y.npy"); assert np.isfinite(y).all() and t(np.load("x.npy"), y, n_neighbors=15) > 0.88'
	done
}

@test "screduce map: constant values, however large, change nothing" {
	scview -q -O npy -o x.npy c.emb
	export BATS_TEST_DIRNAME
	run $PYTHON - <<-'END'
		import os, sys
		import numpy as np
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		for name, size, n in ("one", 1e18, 1), ("many", 1e24, 30):
		    stream = scstream.read("c.emb")
		    blocks = [dict(b, x=np.concatenate([b["x"], np.tile(size * (1 + 0.37 * np.arange(n)), (len(b["x"]), 1))], 1).astype(np.float32))
		              for b in stream]
		    next(c for c in stream.header["columns"] if c["name"] == "x")["n"] += n
		    scstream.write(name + ".emb", stream.header, blocks)
	END
	assert_success
	for name in one many; do
		screduce map -q --seed 3 -o $name.map $name.emb
		scview -q -O npy --columns X_umap -o $name.npy $name.map
	done
	run -0 $PYTHON -c 'if 1:
		import numpy as np
		from sklearn.manifold import trustworthiness
		for name in "one", "many":
		    x, y = np.load("x.npy"), np.load(name + ".npy")
		    t = trustworthiness(x, y, n_neighbors=15)
		    assert np.ptp(y, axis=0).min() > 1 and t > 0.91, (name, np.ptp(y, axis=0), t)
	'
}

@test "screduce map: scanpy and anndata find it in obsm" {
	scview -q -O h5ad -o map.h5ad map.emb
	scview -q -O npy --columns X_umap -o y.npy map.emb
	run -0 $PYTHON -W ignore -c 'if 1:
		import anndata, numpy as np
		a = anndata.read_h5ad("map.h5ad")
		assert np.array_equal(a.obsm["X_umap"], np.load("y.npy"))
	'
}

@test "screduce map: scview --into puts the map of an .h5ad where scanpy looks" {
	scview -q -O h5ad -o cells.h5ad c.counts
	scview -q -O h5ad --into cells.h5ad -o both.h5ad map.emb
	scview -q -O npy --columns X_umap -o y.npy map.emb
	run -0 $PYTHON -W ignore -c 'if 1:
		import anndata, numpy as np
		a = anndata.read_h5ad("both.h5ad")
		assert np.array_equal(a.obsm["X_umap"], np.load("y.npy")), list(a.obsm)
		assert a.obsm["X_corrmask"].shape == (500, 10)
	'
}

@test "screduce map: a cell without an embedding has no position, and the others are as without it" {
	PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON - <<-'END'
		import numpy as np, corrmask.stream as scstream
		stream = scstream.read("c.emb")
		blocks = list(stream)
		blocks[0]["x"][[3, 7]] = np.nan
		scstream.write("nan.emb", stream.header, blocks)
	END
	scsample -q --where "cell!=3" --where "cell!=7" -o some.emb c.emb
	screduce map -q --seed 3 -o some.map some.emb
	run -0 screduce map --seed 3 -o nan.map nan.emb
	assert_line "screduce map: warning: nan.emb: 2 cells have no embedding, as they have no token, and are left out"
	scview -c cell,X_umap nan.map | awk -F '\t' '$1 != 3 && $1 != 7' | diff - <(scview -c cell,X_umap some.map)
	assert_equal "$(scview -c cell,X_umap nan.map | awk -F '\t' '$2 ~ /nan|NA/ { print $1 }' | paste -s -d ,)" 3,7
}
