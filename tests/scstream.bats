# The format: scstream was written from scstream(5) alone, so what it and the tools agree on is on that page.
load helper

CASES=$BATS_TEST_DIRNAME/ref/scstream_cases.py

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	$PYTHON "$CASES" make .
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

@test "scstream: the digest that Python writes is that of libxxhash" {
	$PYTHON "$CASES" hash ./*.scs
}

@test "scstream: the tools accept every kind and type written in Python" {
	run scview --check counts.scs tokens.scs masked.scs graph.scs embedding.scs prediction.scs masked-counts.scs types.scs empty.scs
	assert_success
	assert_line "types.scs: complete, embedding, 307 rows in 3 blocks"
	assert_line "empty.scs: complete, counts, 0 rows in 0 blocks"
	for f in *.scs; do
		zstd -tq "$f"
	done
}

@test "scstream: scview prints what was written, every type, list and missing value" {
	$PYTHON "$CASES" table counts.scs tokens.scs masked.scs graph.scs embedding.scs prediction.scs masked-counts.scs types.scs empty.scs
}

@test "scstream: what a tool writes, Python reads, and what Python writes back, the tools read the same" {
	need_tool scsim
	scsim -q --cells 200 --genes 100 -o sim.counts
	scsim -q --cells 200 --genes 100 -u >sim.u
	for f in sim.u types.scs empty.scs; do
		$PYTHON "$CASES" copy $f back
		$PYTHON "$CASES" same $f back
		cmp <(scview $f) <(scview back)
		cmp <(scview -H $f) <(scview -H back)
		cmp <(scview --vocab $f) <(scview --vocab back)
	done
	# the digest does not depend on the compression: both end in the same trailer
	cmp <(zstd -dc sim.counts | tail -c 40) <(zstd -dc sim.u | tail -c 40)
}

@test "scstream: a filter in C keeps a Python stream, unknown columns and header keys" {
	need_tool scsample
	scsample -q --seed 1 types.scs -o out || skip "scsample does not take these options"
	scview -H types.scs | $PYTHON -c 'import json, sys; print(json.load(sys.stdin)["note"])' >a
	scview -H out | $PYTHON -c 'import json, sys; print(json.load(sys.stdin)["note"])' >b
	cmp a b
}

@test "scstream: every prefix is refused in Python too, and so are more bytes; a failed writer leaves nothing" {
	$PYTHON "$CASES" prefixes tokens.scs
}

@test "scstream: Python and the tools refuse the same damaged payloads" {
	$PYTHON "$CASES" agree "$BATS_TEST_DIRNAME/fuzz/seeds/fuzz_stream" 120
}

@test "scstream: what the tools write keeps the conventions of its kind" {
	mkdir small
	make_small small
	cd small
	ctaprobe cells -q --label cell_type sim.emb --predictions sim.prediction >/dev/null
	maskgen -q --strategy columns --batch 50 sim.counts -o sim.masked-counts
	$PYTHON "$CASES" kinds sim.counts sim.tok sim.graph sim.masked sim.masked-counts sim.emb sim.prediction
}

@test "scstream: prints a header; a damaged stream is one line and exit 1" {
	run $PYTHON "$BATS_TEST_DIRNAME/../python/scstream" tokens.scs
	assert_success
	assert_output --partial '"kind": "tokens"'
	head -c 100 tokens.scs >cut
	run $PYTHON "$BATS_TEST_DIRNAME/../python/scstream" cut
	assert_failure 1
	assert_equal "${#lines[@]}" 1
}

@test "scstream: a pipe is read block by block, in bounded memory, and a trainer may stop early" {
	need_tool scsim
	cat >train.py <<-END
	import resource, sys
	sys.path.insert(0, "$BATS_TEST_DIRNAME/../python")
	import corrmask.stream as scstream
	before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
	rows = largest = total = 0
	for block in scstream.read("-"):
	    rows += block.rows
	    size = sum(v.nbytes for v in block["gene"]) + sum(v.nbytes for v in block["count"])
	    largest, total = max(largest, size), total + size
	    if len(sys.argv) > 1: break
	grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
	print(rows, total, largest, grown)
	assert len(sys.argv) > 1 or total > 12 << 20, total
	assert grown < 8 << 20, grown
	END
	run bash -c "scsim -q --cells 5000 --genes 2000 -u | $PYTHON train.py"
	assert_success
	assert_output --regexp "^5000 "
	run bash -c "scsim -q --cells 1000 -u | timeout 20 $PYTHON train.py stop"
	assert_success
}

@test "scstream: a pipe says how many rows will come at most; saved, it is the same stream" {
	need_tool scsim
	for raw in "" -u; do
		# shellcheck disable=SC2086
		{
			scsim -q --cells 5000 --genes 100 $raw -o file.counts
			scsim -q --cells 5000 --genes 100 $raw | cat > pipe.counts
			rankenc -q --fit pipe.counts -o rows.vocab
			rankenc -q -m rows.vocab $raw file.counts | scsample -q $raw -o file.tok
			rankenc -q -m rows.vocab $raw pipe.counts | scsample -q $raw | cat > pipe.tok
		}
		for f in counts tok; do
			p=pipe.$f
			[ "$(stat -c %s $p)" = $(($(stat -c %s file.$f) + 24)) ]
			cmp <(zstd -dcq file.$f) <(zstd -dcq $p) # content and digest
			cmp <(scview file.$f) <(scview $p)
			$PYTHON "$CASES" same file.$f $p
			run -0 scview --check $p
			assert_line --partial "complete"
			run -0 scview --check < $p
		done
	done
	# in any order; as one of several; from a pipe once more; and Python reads a pipe
	cmp <(maskgen -q --strategy random --epochs 2 file.tok) <(maskgen -q --strategy random --epochs 2 pipe.tok)
	cmp <(scview -n 3 file.tok) <(scview -n 3 pipe.tok)
	scsample -q -n 1000 pipe.counts -o some
	scsample -q -n 1000 file.counts | cmp <(scview some) <(scview -)
	cmp <(maskgen -q --strategy random file.tok) <(cat pipe.tok | maskgen -q --strategy random -)
	run -0 bash -c "scsim -q --cells 10 | $PYTHON $BATS_TEST_DIRNAME/../python/scstream -"
	assert_output --partial '"counts"'
	run -1 rankenc -q -m pipe.counts pipe.counts -o no # not text, as a stream of a file is not
	assert_output --partial "stream of corrmask"
	# a file says it at its end, and an unfinished one is refused as before
	run -1 scview --check <(head -c 3000 pipe.counts)
	assert_output --partial "cut short"
}

@test "scstream: the number of rows is refused where it is damaged, of another length, twice, or not first" {
	$PYTHON "$CASES" pipe tokens.scs piped.scs
}

# the last line of progress of a tool
last_of() { grep "^$1: [0-9]" err | tail -n 1; }

@test "progress: in a pipe of tools, each says how many cells will come, and the time to go" {
	need_tool scsim
	export CORRMASK_LOG_SECONDS=0.000001
	scsim -q --cells 9000 --genes 100 -o p.counts
	rankenc -q --fit p.counts -o p.vocab
	rankenc -q -m p.vocab p.counts -o p.tok
	{ scsim --cells 9000 --genes 100 -u | rankenc -m p.vocab -o p1; } 2> err
	assert_regex "$(last_of rankenc)" "^rankenc: 9000 of 9000 cells, 00:00:00 to go$"
	{ rankenc -m p.vocab -u < p.counts | scsample -u | depgraph -o p.graph; } 2> err
	assert_regex "$(last_of rankenc)" "^rankenc: 9000 of 9000 cells, 00:00:00 to go$"
	assert_regex "$(last_of scsample)" "^scsample: [0-9]+ of 9000 cells, [0-9:]+ to go; "
	assert_regex "$(last_of depgraph)" "^depgraph: 9000 of 9000 cells, 00:00:00 to go$"
	# what is left after a choice; several files as one, and one whose number is not known; a pipe that does not know
	{ scsample -n 700 p.tok | depgraph -o p.graph; } 2> err
	assert_regex "$(last_of depgraph)" "^depgraph: 700 of 700 cells, "
	scsample -q -n 700 p.tok -o few.tok
	scsample -q --where cell_type!=type1 p.tok -o 1.tok
	scsample -q --where cell_type=type1 p.tok -o 2.tok
	depgraph 1.tok 2.tok -o p.graph 2> err
	assert_regex "$(last_of depgraph)" "^depgraph: 9000 of 9000 cells, "
	depgraph 1.tok <(cat 2.tok) -o p.graph 2> err
	assert_regex "$(last_of depgraph)" "^depgraph: 9000 cells$"
	screduce pca -k 2 p.counts -o p.emb 2> err
	assert_regex "$(last_of "screduce pca")" "^screduce pca: 9000 of 9000 cells, "
	$PYTHON -c 'if 1:
		import sys; sys.path.insert(0, sys.argv[1])
		import corrmask.stream as s
		r = s.read("p.tok"); s.write("-", r.header, r)' "$BATS_TEST_DIRNAME/../python" | depgraph -o p.graph 2> err
	assert_regex "$(last_of depgraph)" "^depgraph: 9000 cells$"
	# perturbed cells, where their number is known: the bound
	genes=$(sed -n '5p;6p' p.vocab | cut -f 2 | paste -sd ,)
	{ scperturb apply --delete "$genes" p.tok | scsample -q -o p2; } 2> err
	assert_regex "$(last_of "scperturb apply")" "^scperturb apply: 9000 of 9000 cells, "
	scperturb apply -q --delete "$genes" few.tok | head -c 24 > frame
	assert_equal "$(od -An -tu8 -j 12 -N 8 frame | tr -d ' ')" 2100
	scperturb apply -q --delete all few.tok | head -c 4 > frame || true
	assert_equal "$(od -An -tx4 frame | tr -d ' ')" fd2fb528
}

@test "scview -O h5ad: every type as anndata reads it, missing values and odd names too" {
	scview -O h5ad -o types.h5ad types.scs
	scview -O h5ad -o prediction.h5ad prediction.scs
	scview -O npy types.scs >x.npy
	scview -O npy -c f_i16 -o f.npy types.scs
	# anndata 0.13 looks at an option that pandas 3 calls deprecated
	$PYTHON -W error -W "ignore:The 'future.infer_string' option" - "$BATS_TEST_DIRNAME/../python" <<-'END'
	import sys, anndata, numpy, pandas
	sys.path.insert(0, sys.argv[1])
	import corrmask.stream as scstream
	stream = scstream.read("types.scs")
	columns = {c["name"]: c for c in stream.header["columns"]}
	blocks = list(stream)
	def whole(n):
	    v = [b[n].codes if isinstance(b[n], tuple) else b[n] for b in blocks]
	    return numpy.concatenate([numpy.asarray(x, dtype=object) for x in v]) if columns[n]["type"] == "str" else numpy.concatenate(v)
	a = anndata.read_h5ad("types.h5ad")
	assert a.obs_names.tolist() == whole("barcode").tolist()
	assert numpy.array_equal(a.X, whole("x"), equal_nan=True) and numpy.array_equal(numpy.load("x.npy"), whole("x"), equal_nan=True)
	assert numpy.array_equal(numpy.load("f.npy"), whole("f_i16"))
	for n, c in columns.items():
	    v = whole(n) if c["shape"] != "ragged" else None
	    if c["shape"] == "fixed" and n != "x":
	        assert numpy.array_equal(a.obsm[n], v, equal_nan=c["type"][0] == "f") and a.obsm[n].dtype == v.dtype, n
	    if c["shape"] != "scalar" or n == "barcode" or n.endswith(".missing"):
	        assert n not in a.obs
	        continue
	    o = a.obs[n.replace("/", "_")]
	    gone = whole(n + ".missing").astype(bool) if n + ".missing" in columns else numpy.zeros(len(v), bool)
	    if c["type"] == "categorical":
	        assert o.cat.codes.tolist() == v.tolist() and o.cat.categories.tolist() == c["categories"]
	    elif c["type"] == "str":
	        assert ["" if m else t for t, m in zip(v, gone)] == o.tolist(), n
	    elif c["type"] == "u8":
	        assert (o.isna() == gone).all() and o[~gone].astype(bool).tolist() == v[~gone].astype(bool).tolist(), n
	        assert o.dtype == ("boolean" if gone.any() else bool)
	    else:
	        assert (o.isna() == (gone | (v != v))).all() and (o[~o.isna()].to_numpy() == v[~o.isna()]).all(), n
	p = anndata.read_h5ad("prediction.h5ad")
	assert p.var_names.tolist() == ["B", "T", "other"]
	END
	for kind in tokens masked masked-counts graph; do
		run scview -O h5ad -o no.h5ad $kind.scs
		assert_failure 1
		assert_output --partial "a $kind stream has no matrix"
		assert_not_exist no.h5ad
	done
}

@test "scstream: to_anndata is what scview -O h5ad writes, to_scipy its matrix, of counts, tokens and graphs" {
	make_small "$PWD"
	rankenc -q -m sim.vocab --value sim.counts -o valued.tok
	for f in sim.counts sim.emb; do scview -q -O h5ad -o $f.h5ad $f; done
	depgraph -q -O tsv sim.graph -o edges.tsv
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON -W ignore - <<-'END'
		import io, anndata, numpy as np, pandas as pd, corrmask.stream as scstream
		for f in "sim.counts", "sim.emb":
		    got, want = scstream.to_anndata(f), anndata.read_h5ad(f + ".h5ad")
		    assert list(got.obs_names) == list(want.obs_names) and got.n_obs == 400
		    assert list(got.obs.columns) == list(want.obs.columns), (got.obs.columns, want.obs.columns)
		    for c in got.obs.columns:
		        assert list(got.obs[c]) == list(want.obs[c]), c
		    assert list(got.obs["cell_type"].cat.categories) == list(want.obs["cell_type"].cat.categories)
		    if f == "sim.counts":
		        assert list(got.var_names) == list(want.var_names) and list(got.var["symbol"]) == list(want.var["symbol"])
		        assert (got.X != want.X).nnz == 0 and (got.X != scstream.to_scipy(f)).nnz == 0 and got.X.nnz > 1000
		    else:
		        x = want.obsm["X_corrmask"] if "X_corrmask" in want.obsm else want.X
		        assert np.array_equal(got.obsm["X_corrmask"], np.asarray(x)) and got.X is None
		with open("sim.counts", "rb") as file, scstream.read(file) as stream:
		    assert scstream.to_scipy(stream).shape == (400, 150)
		with scstream.read("valued.tok") as stream:
		    v, (block, *rest) = stream.header["vocab"]["id"], list(stream)
		m, ones = scstream.to_scipy("valued.tok"), scstream.to_scipy("sim.tok")
		assert m.shape == ones.shape == (400, len(v)) and m.nnz == ones.nnz == ones.sum()
		a, b = block["token"].offsets[:2]
		assert np.array_equal(m[0].toarray()[0][block["token"].values[a:b]], block["value"].values[a:b])
		g, edges = scstream.to_scipy("sim.graph").tocoo(), pd.read_csv("edges.tsv", sep="\t")
		assert g.nnz == 2 * len(edges) > 20
		want = {(r.token_a, r.token_b): r.rho for r in edges.itertuples()}
		assert all(abs(want[min(i, j), max(i, j)] - w) < 1e-6 for i, j, w in zip(g.row, g.col, g.data))
		try:
		    scstream.to_scipy("sim.emb")
		    assert False
		except scstream.Error as error:
		    assert str(error) == "sim.emb: this embedding stream has no list of genes for a row: expected counts, tokens or a graph", error
	END
}

@test "scstream: what __all__ names is there, the package has types, and mypy finds no fault in them" {
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON -c '
from corrmask.stream import *
import corrmask.stream as scstream
assert all(hasattr(scstream, name) for name in scstream.__all__) and read is scstream.read and to_anndata is scstream.to_anndata'
	assert_exist "$BATS_TEST_DIRNAME/../python/corrmask/py.typed"
	mypy=${MYPY:-mypy}
	command -v "$mypy" > /dev/null || skip "no mypy (MYPY=)"
	printf '[mypy]\nstrict = True\nignore_missing_imports = True\n' > mypy.ini
	run -0 "$mypy" --config-file mypy.ini "$BATS_TEST_DIRNAME/../python/corrmask"
}

@test "scstream: without numpy, xxhash, zstandard or a module of the example, one line names what to install" {
	# Debian's Python, which has no other to give way to; -S: without its modules
	python=/usr/bin/python3
	$python -c "import numpy, xxhash, zstandard" 2> /dev/null || python=$PYTHON
	run -1 $python -S "$BATS_TEST_DIRNAME/../python/scstream" types.scs
	assert_output "scstream: this Python has no numpy: install the Debian package python3-numpy, or pip install numpy"
	for m in xxhash zstandard; do
		run -1 $python -c "import runpy, sys; sys.modules['$m'] = None; sys.argv[1:] = ['types.scs']
runpy.run_path('$BATS_TEST_DIRNAME/../python/scstream', run_name='__main__')"
		assert_output "scstream: this Python has no $m: install the Debian package python3-$m, or pip install $m"
	done
	run -1 $PYTHON -S "$BATS_TEST_DIRNAME/../examples/hf_trainer.py" in.masked out.model
	names hf_trainer.py: accelerate pip install corrmask
	PYTHONPATH=$BATS_TEST_DIRNAME/../python run -1 $PYTHON -S -c "import corrmask.stream as scstream"
	assert_line --partial "No module named 'numpy'"
}

@test "scstream: help and dictionaries need no other package; a Python without them gives way to that of PYTHON or Debian's" {
	/usr/bin/python3 -m venv --without-pip bare
	rankenc -q --fit -o vocab.tsv <(scsim -q --cells 60 --genes 40 --modules 4)
	scstream() { "${by[@]}" "$BATS_TEST_DIRNAME/../python/scstream" "$@"; }
	by=(/usr/bin/python3 -S -B)
	for c in "" model from-dataset to-dataset from-geneformer to-geneformer from-bmfm; do
		run -0 scstream $c --help
	done
	scstream to-geneformer vocab.tsv t.pkl m.pkl
	scstream from-geneformer t.pkl m.pkl -o same.tsv
	cmp <(cut -f 1,2,4 vocab.tsv) <(cut -f 1,2,4 same.tsv)
	run -1 bare/bin/python3 -B -c "import sys; sys.path.insert(0, '$BATS_TEST_DIRNAME/../python'); from corrmask import command; sys.exit(command.main(['scstream', 'types.scs']))"
	assert_equal "$output" "scstream: this Python has no numpy: install the Debian package python3-numpy, or pip install numpy"
	/usr/bin/python3 -c "import numpy, xxhash, zstandard" || skip "Debian's Python has no packages"
	by=(env PATH="$PWD/bare/bin:$PATH")
	run -0 scstream types.scs
	ln -s "$(realpath /usr/bin/python3)" other
	PYTHON=$PWD/other run -0 scstream types.scs
}

@test "examples/read_stream.c: a C program over stream.h counts the tokens of each cell, and a cut stream ends it with status 1" {
	cd "$BATS_TEST_DIRNAME/.."
	command=$(sed -n '/ cc -Ilib/,/-o read_stream/{s/^ \*//;p;}' examples/read_stream.c)
	bash -c "cd . && ${command//'make && '/} " && mv read_stream "$BATS_TEST_TMPDIR"
	cd "$BATS_TEST_TMPDIR"
	scsim -q --cells 50 --genes 100 -o c.scs
	rankenc -q --fit c.scs -o v.tsv
	rankenc -q -m v.tsv c.scs -o c.tok
	./read_stream c.tok | diff - <(scview -c barcode,token c.tok | awk -F '\t' -v OFS='\t' 'NR > 1 { print $1, split($2, x, " ") }')
	run -1 bash -c 'head -c 1000 c.tok | ./read_stream'
	run -1 ./read_stream c.scs
	assert_output --partial "no tokens"
}
