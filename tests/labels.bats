#!/usr/bin/env bats
# Columns of labels and groups, in every command: one list of words that are no label, one way to say it, one option.
load helper

@test "labels: words that are no label, numbers, ids and reserved names are the same to every option that names a column" {
	BIN=$BIN $PYTHON -B "$BATS_TEST_DIRNAME/labels.py" "$BATS_TEST_TMPDIR/every"
}

@test "labels: corrmask.annotate and corrmask.integration take the words, numbers and names as the tools do" {
	cd "$BATS_TEST_TMPDIR"
	$PYTHON -c 'import anndata' 2> /dev/null || skip "no anndata"
	scsim -q --cells 240 --genes 100 --types 3 --rarest .2 --depth 800 --donors 6 -o sim.counts
	scview -q -O h5ad sim.counts -o sim.h5ad
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$BATS_TEST_DIRNAME/../python run -0 --separate-stderr "$PYTHON" -W ignore - <<-'END'
		import anndata, numpy as np, corrmask
		a = anndata.read_h5ad("sim.h5ad")
		n = np.arange(a.n_obs)
		types = a.obs["cell_type"].astype(str).to_numpy().astype(object)
		a.obs["known"], a.obs["n_counts"], a.obs["token"], a.obs["n_umi"], a.obs["bc"] = types.copy(), types, types, n // 2, [f"c{i}" for i in n]
		a.obs["state"] = np.where(n % 2, "none", "sick")
		a.obsm["X_some"] = np.random.default_rng(0).normal(size=(a.n_obs, 5)).astype("f4")
		words = a.obs["known"].to_numpy().astype(object)
		words[:20], words[20:24] = "Not assigned", None
		a.obs["known"] = words
		new = a[120:].copy()
		def aside(adata): return {k: v for k, v in zip(adata.uns["transfer"]["name"], adata.uns["transfer"]["value"]) if k.startswith("set_aside:")}
		corrmask.annotate(new, a, label="known", group=None, progress=False)
		assert set(new.obs["transfer_assigned"]) <= set(types) | {"unknown"}, set(new.obs["transfer_assigned"])
		assert aside(new) == {"set_aside:no_label": "4", "set_aside:unknown_label": "20", "set_aside:unknown_label:Not assigned": "20"}, aside(new)
		a.write("a.h5ad")
		again = a[120:].copy()
		corrmask.annotate(again, "a.h5ad", label="known", group=None, progress=False)
		assert (again.obs["transfer_assigned"] == new.obs["transfer_assigned"]).all() and aside(again) == aside(new)
		corrmask.annotate(new, a, label="state", group=None, keep_unknown_labels=True, progress=False)
		assert "none" in set(new.obs["transfer_predicted"])
		def refused(call, *names):
		    try: call()
		    except corrmask.Error as error:
		        assert all(name in str(error) for name in names) and "\n" not in str(error), error
		    else: raise AssertionError(names)
		for reference in a, "a.h5ad":
		    for name in "n_counts", "token":
		        refused(lambda: corrmask.annotate(new, reference, label=name, group=None, progress=False), "'%s'" % name, "obs_" + name)
		    refused(lambda: corrmask.annotate(new, reference, label="n_umi", group=None, progress=False), "'n_umi'", "120")
		    refused(lambda: corrmask.annotate(new, reference, label="bc", group=None, progress=False), "'bc'", "240")
		    refused(lambda: corrmask.annotate(new, reference, label="state", group=None, progress=False), "'state'", "two classes")
		    corrmask.annotate(new, reference, label="obs_token", group=None, progress=False)
		    assert set(new.obs["transfer_predicted"]) <= set(types)
		table = corrmask.integration(a, label="known", embeddings=["X_some"], progress=False)
		of = corrmask.integration(a[24:].copy(), label="cell_type", embeddings=["X_some"], progress=False)
		assert np.allclose(table["X_some"], of["X_some"], equal_nan=True)
		a.obs["transfer_assigned"] = 0
		empty = a.copy()
		empty.X = empty.X.tolil(); empty.X[5] = 0; empty.X = empty.X.tocsr()
		corrmask.annotate(empty, "a.h5ad", label="cell_type", progress=False)
		assert empty.obs.iloc[5][["transfer_assigned", "transfer_predicted", "transfer_probability", "transfer_label_set", "transfer_likeness"]].isna().all()
		empty.write("empty.h5ad")
	END
	# the same in the file of scview --into
	h5tok -q sim.h5ad -o r.counts
	h5tok -q empty.h5ad | ctaprobe transfer -q --reference r.counts -l cell_type -o e.pred -
	$PYTHON -W ignore -c 'import anndata; a = anndata.read_h5ad("empty.h5ad"); a.obs = a.obs[["cell_type"]]; a.uns = {}; a.obsm = {}; a.write("plain.h5ad")'
	scview -q -O h5ad --into plain.h5ad --key transfer -o out.h5ad e.pred
	$PYTHON -W ignore - <<-'END'
		import anndata
		obs = anndata.read_h5ad("out.h5ad").obs.filter(like="transfer_")
		assert obs.shape[1] == 7 and obs.iloc[5].drop(["transfer_is_unlike", "transfer_promised"]).isna().all() and not obs.drop(obs.index[5]).isna().any().any(), obs.iloc[4:7]
	END
}
