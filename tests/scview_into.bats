#!/usr/bin/env bats
# scview -O h5ad --into: embeddings, maps and predictions go into an AnnData file, which anndata opens afterwards
load helper

# The file into.h5ad: cells with every kind of element, and streams of its cells; into.emb in another order, few.pred of some of them
make_into() {
	need_tool scsim sctrain scembed
	mkdir -p "$BATS_TEST_TMPDIR/into"
	cd "$BATS_TEST_TMPDIR/into"
	if [ -e "$BATS_FILE_TMPDIR/into" ]; then
		cp "$BATS_FILE_TMPDIR"/into/* .
		return
	fi
	scsim -q --cells 90 --genes 150 --types 3 --donors 2 --rarest .2 --seed 4 -o into.counts
	rankenc -q --fit into.counts -o into.vocab
	rankenc -q -m into.vocab into.counts -o into.tok
	scview -q -O h5ad into.counts -o plain.h5ad
	$PYTHON -W ignore - <<-'END'
	import anndata, numpy as np, pandas as pd, scipy.sparse as sp
	a = anndata.read_h5ad("plain.h5ad")
	rng = np.random.default_rng(1)
	a = a[rng.permutation(a.n_obs)].copy()
	a.layers["counts"] = a.X.copy()
	a.layers["dense"] = np.log1p(a.X.toarray())
	a.obsm["X_pca"] = rng.normal(size=(a.n_obs, 3))
	a.obsp["near"] = sp.random(a.n_obs, a.n_obs, .1, format="csr")
	a.varm["loadings"] = rng.normal(size=(a.n_vars, 2))
	a.obs["flag"] = rng.random(a.n_obs) < .5
	a.obs["text"] = ["cell %d" % i for i in range(a.n_obs)]
	a.uns["neighbors"] = {"params": {"n": 15, "name": "umap"}, "colors": np.array(["#ff0000", "#00ff00"])}
	a.raw = a
	a.write_h5ad("into.h5ad", compression="gzip")
	END
	maskgen -q --batch 30 into.tok | sctrain mlm -q --config tiny -o into.model
	maskgen -q --strategy none --keep cell_type --batch 30 into.tok | sctrain cells -q --label cell_type --init into.model -o into.types
	scembed -q -M into.model into.tok -o into.emb
	scpredict cells -q -M into.types --probabilities into.tok -o into.pred
	scsample -q -n 40 into.pred -o few.pred
	mkdir "$BATS_FILE_TMPDIR/into"
	cp into.h5ad into.counts into.emb into.pred few.pred "$BATS_FILE_TMPDIR/into"
}

# The rest of the file is as it was: X, layers, obs, var, uns and all others, in a Python with anndata; then the lines on standard input run.
# old, new: the files; read(FILE): the columns of a stream
check_into() { # check_into OLD NEW
	{
		cat <<-'END'
		import anndata, collections.abc, numpy as np, pandas as pd, scipy.sparse as sp, sys
		sys.path.insert(0, sys.argv[3])
		import corrmask.stream as scstream
		old, new = (anndata.read_h5ad(f) for f in sys.argv[1:3])
		def same(a, b):
		    if sp.issparse(a):
		        assert (a != b).nnz == 0 and a.dtype == b.dtype and a.format == b.format
		    elif isinstance(a, collections.abc.Mapping):
		        assert a.keys() == b.keys()
		        for k in a: same(a[k], b[k])
		    elif isinstance(a, np.ndarray):
		        assert np.array_equal(a, b) and a.dtype == b.dtype
		    else:
		        assert a == b
		same(old.X, new.X)
		same(dict(old.layers), dict(new.layers))
		same(dict(old.obsp), dict(new.obsp))
		same(dict(old.varm), dict(new.varm))
		same(dict(old.uns), dict(new.uns))
		same(old.raw.X, new.raw.X)
		pd.testing.assert_frame_equal(old.obs, new.obs[old.obs.columns])
		pd.testing.assert_frame_equal(old.var, new.var)
		assert list(new.obs.columns[:len(old.obs.columns)]) == list(old.obs.columns)
		for k in old.obsm: same(old.obsm[k], new.obsm[k])
		def read(file):
		    blocks = list(scstream.read(file))
		    join = lambda n: np.concatenate([np.asarray(b[n][0] if isinstance(b[n], tuple) else b[n], object if n == "barcode" else None) for b in blocks])
		    return {n: join(n) for n in blocks[0]}, blocks[0]
		END
		cat
	} >check.py
	$PYTHON -W ignore check.py "$1" "$2" "$BATS_TEST_DIRNAME/../python"
}

@test "scview --into: an embedding to obsm and predictions to obs of a file in another order; all else is as it was" {
	make_into
	cp into.h5ad whole.h5ad
	scview -O h5ad --into into.h5ad -o new.h5ad into.emb
	cmp whole.h5ad into.h5ad
	check_into into.h5ad new.h5ad <<-'END'
	s, _ = read("into.emb")
	x = pd.DataFrame(s["x"], index=s["barcode"]).loc[new.obs_names].to_numpy()
	same(x, new.obsm["X_corrmask"])
	assert set(new.obsm) == set(old.obsm) | {"X_corrmask"} and len(new.obs.columns) == len(old.obs.columns)
	END
	# in place, with its permissions, through a link; a second one of another name beside it
	chmod 640 into.h5ad
	ln -sf into.h5ad link.h5ad
	scview -O h5ad --into link.h5ad --key gf into.emb
	scview -O h5ad --into into.h5ad --key type into.pred
	assert_equal "$(stat -c %a into.h5ad)" 640
	assert [ -L link.h5ad ]
	assert_equal "$(echo *.tmp.*)" '*.tmp.*'
	check_into whole.h5ad into.h5ad <<-'END'
	s, first = read("into.pred")
	same(pd.DataFrame(s["logit"], index=s["barcode"]).loc[new.obs_names].to_numpy(), new.obsm["type_logit"].to_numpy())
	same(pd.DataFrame(s["probabilities"], index=s["barcode"]).loc[new.obs_names].to_numpy(), new.obsm["type_probabilities"].to_numpy())
	p = pd.Series(pd.Categorical.from_codes(s["predicted"], first["predicted"].categories), index=s["barcode"]).loc[new.obs_names]
	assert p.tolist() == new.obs["type_predicted"].tolist() and new.obs["type_predicted"].cat.categories.tolist() == list(first["predicted"].categories)
	q = pd.Series(s["probability"], index=s["barcode"]).loc[new.obs_names].to_numpy()
	same(q, new.obs["type_probability"].to_numpy())
	assert set(new.obsm) == set(old.obsm) | {"X_gf", "type_logit", "type_probabilities"}
	assert list(new.obs.columns) == list(old.obs.columns) + ["type_predicted", "type_probability"]
	END
	# and h5tok reads it as before
	cmp <(h5tok -q --obs cell_type into.h5ad | scview) <(h5tok -q --obs cell_type whole.h5ad | scview)
}

@test "scview --into: cells that the stream lacks have missing values; columns are chosen with -c; a pipe works" {
	make_into
	scview -O h5ad --into into.h5ad -c predicted,cell_type,n_counts,barcode,probability few.pred -o - 2>warning | cat >few.h5ad
	assert_equal "$(cat warning)" "scview: warning: 50 cells of into.h5ad are not in few.pred: their values are missing
scview: note: standard output: obsm corrmask_logit, corrmask_probabilities; obs corrmask_barcode, corrmask_n_counts, corrmask_cell_type, corrmask_predicted, corrmask_probability"
	check_into into.h5ad few.h5ad <<-'END'
	s, first = read("few.pred")
	here = new.obs_names.isin(s["barcode"])
	assert here.sum() == 40 and np.isnan(new.obsm["corrmask_logit"].to_numpy()[~here]).all() and not np.isnan(new.obsm["corrmask_logit"].to_numpy()[here]).any()
	assert new.obs["corrmask_predicted"].isna().tolist() == (~here).tolist() and new.obs["corrmask_probability"].isna().tolist() == (~here).tolist()
	n = new.obs["corrmask_n_counts"]
	assert str(n.dtype) == "UInt64" and n.isna().tolist() == (~here).tolist()
	assert n[here].tolist() == pd.Series(s["n_counts"], index=s["barcode"]).loc[new.obs_names[here]].tolist()
	assert [b if isinstance(b, str) else "missing" for b in new.obs["corrmask_barcode"]] == [b if h else "missing" for b, h in zip(new.obs_names, here)]
	assert new.obs["corrmask_cell_type"][here].tolist() == new.obs["cell_type"][here].tolist()
	END
}

@test "scview --into: the same again, a second later, is the same bytes" {
	make_into
	for i in 1 2; do
		scview -q -O h5ad into.emb --into into.h5ad -o one.h5ad
		scview -q -O h5ad into.pred --into one.h5ad -o at$i.h5ad
		sleep 1.1
		rm one.h5ad
	done
	cmp at1.h5ad at2.h5ad
}

@test "scview --into: -c with the name of an array writes this one alone" {
	make_into
	run -0 scview -O h5ad --into into.h5ad -c logit,probability few.pred -o one.h5ad
	assert_line "scview: note: one.h5ad: obsm corrmask_logit; obs corrmask_probability"
}

@test "scview --into: what does not fit is refused, and the file stays as it was" {
	make_into
	cp into.h5ad was.h5ad
	no() { # no MESSAGE STREAM [OPTION...]
		local want=$1 stream=$2
		shift 2
		run -1 scview -O h5ad --into into.h5ad "$@" "$stream"
		assert_output --partial "$want"
		assert_equal "${#lines[@]}" 1
		cmp into.h5ad was.h5ad
		assert_equal "$(echo *.tmp.*)" '*.tmp.*'
		assert_file_not_exist no.h5ad
	}
	no "into.counts: this is a counts stream: an embedding or predictions of cells" into.counts
	no "into.h5ad: obsm has 'X_pca' already, of another shape or type: --replace overwrites it; or choose another name with --key" into.emb --key pca
	$PYTHON - "$BATS_TEST_DIRNAME/../python" <<-'END'
	import sys
	sys.path.insert(0, sys.argv[1])
	import corrmask.stream as scstream
	for name, change in ("stranger", lambda b: ["someone"] + b[1:]), ("twice", lambda b: [b[1]] + b[1:]):
	    s = scstream.read("into.emb")
	    scstream.write(name + ".emb", s.header, [{**b, "barcode": change(b["barcode"])} for b in s])
	END
	no "stranger.emb: cell 'someone' (row 0) is not in into.h5ad: its cells must be those of the file" stranger.emb -o no.h5ad
	no "' occurs twice" twice.emb
	no "--key: 'a/b' is not a name" into.emb --key a/b
	head -c $(($(stat -c %s into.emb) - 30)) into.emb >cut.emb
	no "cut.emb" cut.emb
}

@test "scview --into: where names of cells repeat, cells are matched by number, and must have the name" {
	need_tool screduce
	make_into
	$PYTHON -W ignore -c "
import h5py
with h5py.File('into.h5ad', 'r+') as f:
    names = f['obs/_index/values' if 'obs/_index/values' in f else 'obs/_index'] # nullable, from anndata 0.13
    names[5:20:2] = names[5]"
	h5tok -q into.h5ad -o repeated.counts
	screduce pca -q -k 5 repeated.counts -o repeated.emb
	scsample -q -n 40 --seed 1 repeated.emb -o part.emb
	cp into.h5ad whole.h5ad
	scview -O h5ad --into into.h5ad -q --key part part.emb
	scview -O h5ad --into into.h5ad -q repeated.emb
	check_into whole.h5ad into.h5ad <<-'END'
	s, _ = read("repeated.emb")
	same(s["x"], new.obsm["X_corrmask"])
	some = np.isin(s["cell"], read("part.emb")[0]["cell"])
	assert 0 < some[5:20:2].sum() < 8
	same(s["x"][some], new.obsm["X_part"][some])
	assert np.isnan(new.obsm["X_part"][~some]).all()
	END
	$PYTHON - "$BATS_TEST_DIRNAME/../python" <<-'END'
	import sys
	sys.path.insert(0, sys.argv[1])
	import corrmask.stream as scstream
	s = scstream.read("repeated.emb")
	scstream.write("turned.emb", s.header, [{**b, "cell": b["cell"][::-1]} for b in s])
	END
	run -1 scview -O h5ad --into into.h5ad --key other turned.emb
	assert_output --regexp "turned.emb: cell '.*' is not cell 89 of into.h5ad, where names of cells repeat: .*obs_names_make_unique"
}

# map.emb: into.emb with a map; again.emb, again.map: of another training
make_maps() {
	make_into
	screduce map -q -o map.emb into.emb
	$PYTHON - "$BATS_TEST_DIRNAME/../python" <<-'END'
	import sys
	sys.path.insert(0, sys.argv[1])
	import corrmask.stream as scstream
	s = scstream.read("into.emb")
	scstream.write("again.emb", s.header, [{**b, "x": -2 * b["x"]} for b in s])
	END
	screduce map -q --seed 2 -o again.map again.emb
}

@test "scview --into: an embedding, then its map: x is there already and is left; the same again changes nothing" {
	make_maps
	cp into.h5ad whole.h5ad
	scview -O h5ad --into into.h5ad into.emb
	run -0 scview -O h5ad --into into.h5ad map.emb
	assert_output "scview: note: into.h5ad: obsm X_umap"
	run -0 scview -O h5ad --into into.h5ad map.emb
	assert_output "scview: note: into.h5ad: nothing new"
	check_into whole.h5ad into.h5ad <<-'END'
	s, _ = read("map.emb")
	assert set(new.obsm) == set(old.obsm) | {"X_corrmask", "X_umap"}
	for key, column in ("X_corrmask", "x"), ("X_umap", "X_umap"):
	    same(pd.DataFrame(s[column], index=s["barcode"]).loc[new.obs_names].to_numpy(), new.obsm[key])
	END
	# also after anndata has written the file anew, compressed; and the cells of a part
	$PYTHON -W ignore -c "
import anndata
anndata.read_h5ad('into.h5ad').write_h5ad('into.h5ad', compression='gzip')"
	scsample -q -n 30 map.emb -o part.emb
	run -0 scview -q -O h5ad --into into.h5ad part.emb -o part.h5ad
	check_into into.h5ad part.h5ad <<-'END'
	END
}

@test "scview --into: a file with X_umap of its own is refused, and the way out works: --key names the map too" {
	make_maps
	$PYTHON -W ignore -c "
import anndata
a = anndata.read_h5ad('into.h5ad')
a.obsm['X_umap'] = a.obsm['X_pca'][:, :2].astype('float32')
a.write_h5ad('into.h5ad')"
	cp into.h5ad was.h5ad
	run -1 scview -O h5ad --into into.h5ad map.emb
	assert_output "scview: into.h5ad: obsm has 'X_umap' already, with other values: --replace overwrites it; or choose another name with --key, which makes the map X_umap_NAME"
	cmp was.h5ad into.h5ad
	run -0 scview -O h5ad --into into.h5ad --key v2 map.emb
	assert_output "scview: note: into.h5ad: obsm X_v2, X_umap_v2"
	check_into was.h5ad into.h5ad <<-'END'
	s, _ = read("map.emb")
	assert set(new.obsm) == set(old.obsm) | {"X_v2", "X_umap_v2"}
	same(pd.DataFrame(s["X_umap"], index=s["barcode"]).loc[new.obs_names].to_numpy(), new.obsm["X_umap_v2"])
	END
}

@test "scview --into: x does not take the name of a map" {
	make_maps
	$PYTHON -W ignore -c "
import anndata
a = anndata.read_h5ad('into.h5ad')
del a.obsm
a.write_h5ad('into.h5ad')"
	cp into.h5ad was.h5ad
	run -1 scview -O h5ad --into into.h5ad --key umap map.emb
	assert_output "scview: map.emb: with --key umap x and the map want the same name, X_umap: choose another one"
	for key in umap tsne draw_graph_fa; do
		run -1 scview -O h5ad --into into.h5ad --key $key into.emb
		assert_output --regexp "^scview: into.emb: X_$key is the name of a map, and x has [0-9]+ dimensions: choose another --key, or make a map with screduce map\$"
	done
	cmp was.h5ad into.h5ad
}

@test "scview --into --replace: what an earlier one wrote is overwritten, all else is as it was; a failure leaves the file" {
	make_maps
	cp into.h5ad whole.h5ad
	scview -q -O h5ad --into into.h5ad map.emb
	scview -q -O h5ad --into into.h5ad few.pred
	scview -q -O h5ad --into into.h5ad --key later few.pred
	cp into.h5ad was.h5ad
	run -1 scview -O h5ad --into into.h5ad again.map
	assert_output --partial "into.h5ad: obsm has 'X_corrmask' already, with other values: --replace overwrites it"
	run -1 scview -O h5ad --into into.h5ad into.pred
	assert_output --partial "into.h5ad: obs has 'corrmask_predicted' already: --replace overwrites it"
	head -c $(($(stat -c %s again.map) - 30)) again.map >cut.emb
	run -1 scview -O h5ad --into into.h5ad --replace cut.emb
	cmp was.h5ad into.h5ad
	assert_equal "$(echo *.tmp.*)" '*.tmp.*'
	run -0 scview -O h5ad --into into.h5ad --replace again.map
	assert_output "scview: note: into.h5ad: obsm X_corrmask (replaced), X_umap (replaced)"
	scview -q -O h5ad --into into.h5ad --replace into.pred
	check_into whole.h5ad into.h5ad <<-'END'
	s, _ = read("again.map")
	for key, column in ("X_corrmask", "x"), ("X_umap", "X_umap"):
	    same(pd.DataFrame(s[column], index=s["barcode"]).loc[new.obs_names].to_numpy(), new.obsm[key])
	s, first = read("into.pred")
	p = pd.Series(pd.Categorical.from_codes(s["predicted"], first["predicted"].categories), index=s["barcode"]).loc[new.obs_names]
	assert p.tolist() == new.obs["corrmask_predicted"].tolist()
	assert not np.isnan(new.obsm["corrmask_logit"].to_numpy()).any() and new.obs["later_predicted"].isna().sum() == 50
	names = [k + "_" + c for k in ("corrmask", "later") for c in ("predicted", "probability")]
	assert list(new.obs.columns) == list(old.obs.columns) + names, list(new.obs.columns)
	END
	# the name of the index is no column to replace
	$PYTHON -W ignore -c "
import anndata
a = anndata.read_h5ad('whole.h5ad')
a.obs.index.name = 'corrmask_predicted'
a.write_h5ad('index.h5ad')"
	run -1 scview -O h5ad --into index.h5ad --replace into.pred
	assert_output --partial "index.h5ad: the names of the cells in obs are called 'corrmask_predicted': choose another name with --key"
}
