#!/usr/bin/env python3
"""corrmask's functions for AnnData against the tools by hand and numpy. Run by tests/adata.bats and tests/wheel.sh, in a folder with
atlas.h5ad, new.h5ad (simulated cells: cell_type, donor), vocab.tsv and small.model; the tools are on PATH."""
import os
import subprocess
import sys
import tempfile
from unittest import mock

import anndata
import numpy as np
import pandas as pd
import scipy.sparse

import corrmask


def tools(line):
    return subprocess.run(["bash", "-eo", "pipefail", "-c", line], check=True, stdout=subprocess.PIPE).stdout.decode()


def table(line):
    rows = [r.split("\t") for r in tools(line).splitlines()]
    return pd.DataFrame(rows[1:], columns=rows[0])


def refused(word, call):
    try:
        call()
    except corrmask.Error as error:
        assert word in str(error) and "\n" not in str(error) and "/corrmask-" not in str(error), error
        return error
    raise AssertionError("not refused: " + word)


os.environ["TMPDIR"] = tempfile.tempdir = os.path.join(os.getcwd(), "tmp")
os.makedirs("tmp", exist_ok=True)
new, atlas = anndata.read_h5ad("new.h5ad"), anndata.read_h5ad("atlas.h5ad")
genes = new.var_names
quiet = dict(progress=False, threads=1)

# annotate: the columns of ctaprobe transfer, from files, from memory and from backed files; duplicate names of cells
tools("h5tok -q -o a.counts atlas.h5ad; h5tok -q -o n.counts new.h5ad; "
      "ctaprobe transfer -q --reference a.counts --label cell_type --group donor -o n.pred n.counts; "
      "scview -q -O h5ad --into new.h5ad --key transfer --replace -o into.h5ad n.pred")
want = anndata.read_h5ad("into.h5ad")
names = [c for c in want.obs if c.startswith("transfer_")]
assert len(names) == 7


def same_types(got):
    for c in names:
        a, b = got.obs[c], want.obs[c]
        assert np.array_equal(a, b) if a.dtype.kind == "f" else list(a.astype(str)) == list(b.astype(str)), c
        assert a.dtype.kind == b.dtype.kind or c == "transfer_label_set", (c, a.dtype, b.dtype)
    for c in ("transfer_logit", "transfer_in_set"):
        assert list(got.obsm[c].columns) == list(want.obsm[c].columns) == sorted(set(atlas.obs["cell_type"])), c
        assert np.array_equal(got.obsm[c], want.obsm[c]), c
    assert got.uns["corrmask"]["transfer"] == want.uns["corrmask"]["transfer"]


doubled = new.copy()
doubled.obs_names = ["cell"] * new.n_obs
for cells, reference in ((new.copy(), atlas), (doubled, "atlas.h5ad"), (anndata.read_h5ad("new.h5ad", backed="r"), anndata.read_h5ad("atlas.h5ad", backed="r"))):
    with mock.patch.object(anndata.AnnData, "X", property(lambda self: 1 / 0)) if cells.isbacked else mock.MagicMock():
        assert corrmask.annotate(cells, reference, label="cell_type", **quiet) is None
    same_types(cells)
    report = cells.uns["transfer"].set_index("name")["value"]
    assert report["program"] == "ctaprobe transfer" and int(report["cells"]) == new.n_obs
before = list(new.obs)
# sparse matrices of other formats than a file has, in all places of counts
for form in ("coo", "lil", "bsr"):
    other = new.copy()
    try:
        other.X = new.X.asformat(form)
        other.layers["counts"] = other.X
    except ValueError:      # newer versions of anndata have none
        continue
    assert corrmask.annotate(other, atlas, label="cell_type", **quiet) is None
    assert list(other.obs["transfer_predicted"]) == list(cells.obs["transfer_predicted"]), form
try:
    import dask.array
    late = new.copy()
    late.X = dask.array.from_array(new.X.toarray(), chunks=(9, new.n_vars)).map_blocks(scipy.sparse.csr_matrix)
    late.layers["counts"] = late.X
    assert corrmask.annotate(late, atlas, label="cell_type", **quiet) is None
    assert list(late.obs["transfer_predicted"]) == list(cells.obs["transfer_predicted"])
except ImportError:
    pass
copied = corrmask.annotate(new, atlas, label="cell_type", group=None, key_added="other", copy=True, **quiet)
assert list(new.obs) == before and not new.uns.get("other") and "other_assigned" in copied.obs
assert (copied.obs["other_predicted"].astype(str) == new.obs["cell_type"].astype(str)).mean() > .9
copied.write_h5ad("written.h5ad")      # what was added can be stored
assert list(anndata.read_h5ad("written.h5ad").obs["other_label_set"].astype(str)) == list(copied.obs["other_label_set"].astype(str))

# embed: the vectors of scembed; counts in a layer beside a normalised X, in raw; a cell without counts is nan, and the others stay in their places
emb = "h5tok -q --rank small.model/vocab.tsv new.h5ad | scembed -q -M small.model - "
x = np.array([[float(v) for v in line.split()] for line in table(emb + "| scview -c x -")["x"]], "f4")
normal = new.copy()
normal.layers["mine"] = new.X.copy()
normal.X = scipy.sparse.csr_matrix(new.X / np.asarray(new.X.sum(1))).astype("f4")
raw = normal.copy()
del raw.layers["mine"]
raw.raw = new
backed = anndata.read_h5ad("new.h5ad", backed="r")
for cells, layer in ((new, None), (normal, "mine"), (raw, None), (backed, None), (new[np.arange(new.n_obs)], None)):
    got = cells if cells is backed else cells.copy()
    assert corrmask.embed(got, "small.model", layer=layer, **quiet) is None
    assert np.allclose(got.obsm["X_corrmask"], x, atol=2e-6) and got.obsm["X_corrmask"].dtype == "f4"
empty = new.copy()
empty.X = scipy.sparse.csr_matrix(scipy.sparse.diags((np.arange(new.n_obs) != 7).astype("f4")) @ new.X)
got = corrmask.embed(empty, "small.model", key_added="X_e", copy=True, pool="first", hidden_layer=0, **quiet).obsm["X_e"]
assert np.isnan(got[7]).all() and np.isfinite(np.delete(got, 7, 0)).all() and not np.allclose(np.delete(got, 7, 0), np.delete(x, 7, 0))
refused("mine", lambda: corrmask.embed(new, "small.model", layer="mine", **quiet))
refused("it has: mine", lambda: corrmask.embed(normal, "small.model", layer="counts", **quiet))
assert refused("X", lambda: corrmask.embed(anndata.AnnData(X=np.asarray(normal.X.todense()), obs=new.obs, var=new.var), "small.model", **quiet)).tool == "h5tok"
refused("nowhere", lambda: corrmask.embed(new, "nowhere", **quiet))

# counts from log-normalised values, from fractions, from a layer of the reference; rows that are no genes; the matrix whose sums are in obs
logs = new.copy()
logs.X = scipy.sparse.csr_matrix(np.log1p(new.X.toarray() / np.asarray(new.X.sum(1)) * 1e4)).astype("f4")
refused("--unlog", lambda: corrmask.embed(logs, "small.model", **quiet))
near = new.copy()
near.X = near.X.astype("f4")
near.X.data[::50] += .25
refused("--round", lambda: corrmask.embed(near, "small.model", **quiet))
other = new.copy()
other.layers["counts"], other.obs["total_counts"] = new.X.copy(), np.asarray(new.X.sum(1)).ravel()
other.X = scipy.sparse.csr_matrix(new.X + (new.X > 0))
for cells, options in (logs, {"unlog": True}), (near, {"round": True}), (other, {}):
    assert np.allclose(corrmask.embed(cells, "small.model", copy=True, **options, **quiet).obsm["X_corrmask"], x, atol=2e-6), options
nothing = other.copy()
nothing.layers["mine"], nothing.X = nothing.layers.pop("counts"), scipy.sparse.csr_matrix(new.shape, dtype="f4")
refused("mine", lambda: corrmask.tokenize(nothing, "vocab.tsv", **quiet))
hidden = atlas.copy()
hidden.layers["mine"], hidden.X = atlas.X.copy(), scipy.sparse.csr_matrix(atlas.X / 2)
corrmask.annotate(logs, hidden, label="cell_type", reference_layer="mine", unlog=True, **quiet)
same_types(logs)
marked = new.copy()
marked.var["is_control"] = np.arange(new.n_vars) % 2 == 1
half = corrmask.tokenize(marked, "vocab.tsv", **quiet)
assert set(np.array(pd.read_csv("vocab.tsv", sep="\t").iloc[:, 1])[np.unique(half.values)]) <= set(new.var_names[::2])
assert np.array_equal(corrmask.tokenize(marked, "vocab.tsv", all_features=True, **quiet).values, corrmask.tokenize(new, "vocab.tsv", **quiet).values)

# tokenize: genes by count times 1 / median, highest first (Theodoris et al. 2023)
vocab = pd.read_csv("vocab.tsv", sep="\t")
number = {g: i for i, g in enumerate(vocab.iloc[:, 1])}
median = np.array([float(m) if m not in ("", "NA") else np.nan for m in vocab.iloc[:, -1].astype(str)])
tokens = corrmask.tokenize(new, "vocab.tsv", **quiet)
for i in range(new.n_obs):
    row = new.X[i].tocoo()
    at = np.array([number[genes[j]] for j in row.col])
    value = row.data / median[at]
    want_tokens = at[np.lexsort((at, -value))]
    have = tokens.values[tokens.offsets[i]:tokens.offsets[i + 1]]
    assert np.allclose(median[have] ** -1 * new.X[i].toarray()[0][genes.get_indexer(vocab.iloc[have, 1])], value[np.lexsort((at, -value))]), i
    assert sorted(have) == sorted(want_tokens)
assert corrmask.tokenize(new, "small.model", "n.tok", obs=["donor"], max_len=20, **quiet) is None
with corrmask.stream.read("n.tok") as cells:
    blocks = list(cells)
assert sum(b.rows for b in blocks) == new.n_obs and max(np.diff(blocks[0]["token"].offsets)) == 20 and "cell_type" not in blocks[0]
assert [blocks[0]["donor"].categories[c] for c in blocks[0]["donor"].codes[:5]] == list(new.obs["donor"][:5])
assert [name for b in blocks for name in b["barcode"]] == list(new.obs_names)      # so scview --into finds the cells of a file

assert corrmask.stream.ends_with("n.tok") == (new.n_obs, len(blocks))
with open("n.tok", "rb") as f, open("cut.tok", "wb") as g:
    g.write(f.read()[:-5])
try:
    corrmask.stream.ends_with("cut.tok")
    raise AssertionError("a cut stream has a length")
except corrmask.stream.Error as e:
    assert "cut.tok" in str(e)

# perturb, integration: the tables of the tools
chosen = ["%s" % g for g in vocab.iloc[3:6, 1]]
got = corrmask.perturb(new, "small.model", chosen, state="cell_type", source="type1", target="type2", **quiet)
shift = table("h5tok -q --rank vocab.tsv new.h5ad | scperturb apply -q --delete %s --where cell_type=type1 - | scembed -q -M small.model - | "
              "scperturb shift -q --state cell_type --from type1 --to type2 -" % ",".join(chosen))
assert list(got.index) == list(shift["perturbed"]) and len(got) == 3
assert np.allclose(got["mean"], shift["mean"].astype(float), atol=1e-6, equal_nan=True)
few = new[list(np.flatnonzero(new.obs["cell_type"] != "type1")) + list(np.flatnonzero(new.obs["cell_type"] == "type1")[:9])]
refused("'type1' in 9 cells, expected at least 10", lambda: corrmask.perturb(few, "small.model", chosen, state="cell_type", source="type1", target="type2", **quiet))
refused("donor9", lambda: corrmask.perturb(new, "small.model", chosen, state="donor", source="donor9", target="donor1", **quiet))
both = new.copy()
both.obsm["X_a"], both.obsm["X_b"] = x[:, :4], x
got = corrmask.integration(both, label="cell_type", batch="donor", embeddings=["X_a", "X_b"], centred=True, preset="scib", **quiet)
both.write_h5ad("both.h5ad")
wanted = table("scmetric integration -q --label cell_type --batch-key donor --embedding X_a,X_b --centred --preset scib both.h5ad").set_index("metric")
assert list(got.index) == list(wanted.index) and list(got.columns) == list(wanted.columns)
for of in ("X_b", "X_a_centred"):
    assert np.allclose(got[of], pd.to_numeric(wanted[of], errors="coerce"), equal_nan=True)
sys.path.append(os.path.dirname(os.path.abspath(__file__)))
try:
    from sklearn.metrics import silhouette_score
    plain = corrmask.integration(both, label="cell_type", embeddings=["X_b"], **quiet)
    assert abs(plain.loc["silhouette_label", "X_b"] - (silhouette_score(x, new.obs["cell_type"]) + 1) / 2) < 1e-4
except ImportError:
    pass

# what is wrong is one line, of the tool that failed
error = refused("nowhere.h5ad", lambda: corrmask.annotate(new, "nowhere.h5ad", label="cell_type", **quiet))
assert error.tool == "h5tok" and error.status == 1
refused("wrong", lambda: corrmask.annotate(new, atlas, label="wrong", **quiet))
refused("cell_type", lambda: corrmask.annotate(new, "atlas.h5ad", label="cell type", **quiet))
with mock.patch.object(corrmask, "_tool", lambda name: 1 / 0):       # before the counts are read
    refused("donor", lambda: corrmask.annotate(new, "atlas.h5ad", label="cell_type", group="donors", **quiet))
refused("X_none': it has X_a, X_b", lambda: corrmask.integration(both, label="cell_type", embeddings="X_none", **quiet))
refused("view", lambda: corrmask.embed(backed[:5], "small.model", **quiet))
backed.obs["donor"] = "changed"
refused("donor", lambda: corrmask.tokenize(backed, "vocab.tsv", obs=["donor"], **quiet))
for wrong in (dict(how="boil"), dict(state="donor")):
    try:
        corrmask.perturb(new, "small.model", chosen, **wrong)
        raise AssertionError(wrong)
    except ValueError:
        pass
assert os.listdir("tmp") == [], os.listdir("tmp")
print("anndata %s: %d cells, all as it should be" % (anndata.__version__, new.n_obs))
