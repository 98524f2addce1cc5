"""corrmask for AnnData: the tools, run as pipes, with what they find in obs and obsm.

    import anndata, corrmask

    adata = anndata.read_h5ad("new.h5ad")                           # raw counts in X, raw or layers["counts"]
    corrmask.annotate(adata, "atlas.h5ad", label="cell_type")       # obs: transfer_assigned, transfer_probability, ...
    corrmask.embed(adata, "lung.model")                             # obsm["X_corrmask"]
    corrmask.integration(adata, label="cell_type", batch="donor", embeddings=["X_pca", "X_corrmask"])   # a table
    corrmask.perturb(adata, "lung.model", ["TP53", "MYC"])          # a table
    corrmask.tokenize(adata, "lung.model", "cells.tok")             # a stream: corrmask.stream.read("cells.tok")

A function that adds columns changes adata and returns None, or returns a changed copy with copy=True. One that measures returns a
pandas.DataFrame. An error of a tool is corrmask.Error, with the tool's own line. Cells are told by their place, so names may repeat.

A backed AnnData (read_h5ad(..., backed="r")) is not loaded: the tools read its file. So the counts, and the columns that a function is given,
must be in that file as they are in memory, which is checked for the columns of obs.
"""
from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Union

from corrmask._tools import Error, folder_of_tools, run, script, talk, workspace
from corrmask.model import Found
from corrmask.model import open_model as resolve

if TYPE_CHECKING:
    import anndata
    import pandas

    from corrmask import stream

__all__ = ["Error", "annotate", "embed", "integration", "perturb", "stream", "tokenize"]

Path = Union[str, "os.PathLike[str]"]
Cells = Union["anndata.AnnData", Path]
RAW = ("counts", "raw_counts", "raw")       # layers in which h5tok looks for counts
# columns that streams have of their own: one of obs with this name is obs_NAME (scstream(5))
RESERVED = ("cell", "barcode", "n_counts", "gene", "count", "token", "value", "input", "position", "target", "epoch", "step", "neighbour", "rho", "overlap",
            "x", "logit")
TERM_ID = "cell_type_ontology_term_id"      # CELLxGENE's column
SUMS = ("n_counts", "total_counts", "nCount_RNA", "raw_sum")     # columns of obs by which it tells counts from other whole numbers
NAMES = ["object", "string", "category", "bool", "integer"]       # types of columns of var that say what a row is


def __getattr__(name: str) -> Any:
    """The module stream needs numpy, xxhash and zstandard: it is loaded when it is first used."""
    if name != "stream":
        raise AttributeError("module 'corrmask' has no attribute %r" % name)
    import importlib
    try:
        return importlib.import_module("corrmask.stream")
    except ModuleNotFoundError as error:
        raise ImportError("corrmask needs the Python package %s: pip install numpy xxhash zstandard anndata" % error.name, name=error.name) from None


# ---- AnnData as a file that the tools read ----

def _in_memory(adata: anndata.AnnData, copy: bool = False) -> anndata.AnnData:
    if isinstance(adata, (str, os.PathLike)):
        raise Error("corrmask: %s is the name of a file, expected an AnnData: give anndata.read_h5ad(%r)" % (adata, os.fspath(adata)))
    return adata.copy() if copy else adata


def _columns(adata: anndata.AnnData, names: Sequence[Optional[str]], of: str = "", in_stream: bool = False) -> List[str]:
    """These columns of obs. in_stream: they will be looked for in a stream, where some have another name."""
    there = [name[4:] if name not in adata.obs and name[:4] == "obs_" and name[4:] in RESERVED else name for name in names if name is not None]
    for name in there:
        if name not in adata.obs:
            raise Error("corrmask: obs%s has no column %r; it has: %s" % (of, name, ", ".join(map(str, adata.obs)) or "none"))
        if in_stream and name in RESERVED and name in names:
            raise Error("corrmask: a column '%s' of obs%s is called 'obs_%s', as streams have a column '%s' of their own" % (name, of, name, name))
    return there


def _check_backed(adata: anndata.AnnData, columns: List[str]) -> str:
    """The file of a backed AnnData, unless it says something else than obs does."""
    import anndata
    path = str(adata.filename)
    if adata.is_view:
        raise Error("corrmask: %s: a view of a backed AnnData; use .to_memory(), or .copy(filename=)" % path)
    stored = anndata.read_h5ad(path, backed="r")
    try:
        if not stored.obs_names.equals(adata.obs_names):
            raise Error("corrmask: %s: holds other cells than the AnnData in memory" % path)
        for name in columns:
            if name not in stored.obs or list(stored.obs[name].astype(str)) != list(adata.obs[name].astype(str)):
                raise Error("corrmask: %s: obs %r is not as in memory; write it to the file first" % (path, name))
    finally:
        stored.file.close()
    return path


def _matrix(x: Any) -> Any:
    """What a file can have: sparse matrices of other formats than CSR and CSC become CSR; dask's are computed."""
    x = x.compute() if hasattr(x, "compute") else x
    return x.tocsr() if hasattr(x, "tocsr") and getattr(x, "format", "csr") not in ("csr", "csc") else x


def _file(cells: Cells, folder: str, name: str, columns: List[str], layer: Optional[str] = None, counts: bool = True,
          obsm: Sequence[str] = (), named: bool = False) -> str:
    """A file that the tools read: the one that cells is or has, or one in folder, with what is needed. Its barcodes are the numbers of the rows, or
    the names of the cells, which may repeat (named)."""
    if isinstance(cells, (str, os.PathLike)):
        return os.fspath(cells)
    if cells.isbacked:
        return _check_backed(cells, columns)
    import anndata
    layer = None if layer == "X" and "X" not in cells.layers else layer
    if layer is not None and layer not in cells.layers:
        raise Error("corrmask: no layer %r; it has: %s" % (layer, ", ".join(name for name in cells.layers if name) or "none"))    # anndata 0.13: None is X
    obs = cells.obs[columns].copy()
    if not named:
        obs.index = [str(i) for i in range(cells.n_obs)]
    small = anndata.AnnData(obs=obs, obsm={key: _matrix(cells.obsm[key]) for key in obsm})
    if counts:
        obs = obs.assign(**{c: cells.obs[c].to_numpy() for c in SUMS if c in cells.obs and c not in obs})
        var = cells.var.select_dtypes(NAMES).copy()
        x = _matrix(cells.X) if layer is None else None
        empty = x is not None and not (x != 0).sum()       # then h5tok says which layers hold values
        small = anndata.AnnData(X=x, obs=obs, var=var,
                                layers={k: _matrix(cells.layers[k]) for k in ([layer] if layer else cells.layers if empty else RAW) if k in cells.layers})
        if cells.raw is not None and layer is None:
            small.raw = anndata.AnnData(X=_matrix(cells.raw.X), obs=obs, var=cells.raw.var.select_dtypes(NAMES).copy())
    path = os.path.join(folder, name + ".h5ad")
    try:
        small.write_h5ad(path)
    except (TypeError, NotImplementedError) as error:
        raise Error("corrmask: a matrix or column cannot be written to a file: %s" % " ".join(str(error).split())) from None
    return path


def _place(adata: anndata.AnnData, names: List[str]) -> Any:
    """For each cell of adata the number of its row in a result with the barcodes `names`, or -1."""
    import numpy
    import pandas
    wanted = adata.obs_names.astype(str) if adata.isbacked else pandas.Index([str(i) for i in range(adata.n_obs)])
    if list(wanted) == names:
        return numpy.arange(len(names))
    if wanted.has_duplicates:
        raise Error("corrmask: names of cells repeat, and not all cells have a result; use adata.obs_names_make_unique()")
    return pandas.Index(names).get_indexer(wanted)


def _tool(name: str) -> str:
    return os.path.join(folder_of_tools(), name)


def _threads(threads: Optional[int]) -> List[str]:
    return ["-@", str(threads or len(os.sched_getaffinity(0)))]


def _reading(layer: Optional[str], round: bool, unlog: bool, all_features: bool) -> List[str]:
    flags = {"--round": round, "--unlog": unlog, "--all-features": all_features}
    return [*(["--layer", layer] if layer else []), *(flag for flag, given in flags.items() if given)]


def _table(text: bytes) -> pandas.DataFrame:
    import pandas
    return pandas.read_csv(io.BytesIO(text), sep="\t", index_col=0, na_values=["NA"], keep_default_na=True)


# ---- what users call ----

def annotate(adata: anndata.AnnData, reference: Cells, *, label: Optional[str] = None, group: Optional[str] = "auto", coverage: float = 0.9, unknown: Optional[float] = None,
             min_cells: int = 2, keep_unknown_labels: bool = False, layer: Optional[str] = None, reference_layer: Optional[str] = None,
             round: bool = False, unlog: bool = False, all_features: bool = False, key_added: str = "transfer", copy: bool = False, seed: int = 1,
             threads: Optional[int] = None, progress: bool = True) -> Optional[anndata.AnnData]:
    """Give the cells types, from a reference whose types are known (corrmask annotate; ctaprobe-transfer(1)).

    reference   AnnData, or a file that h5tok reads (.h5ad, .zarr, 10x), with raw counts; or a .ref file of ctaprobe transfer --save, to which label, group,
                coverage, min_cells and seed belong
    label       its column of obs with the types
    group       its column of donors, which are held out to calibrate; "auto" looks for one, None holds out cells
    coverage    share of the cells whose label set has the true type
    unknown     call cells unknown that are less like the reference than all but this share of its own; None: .05, where that can be promised
    min_cells   types of the reference with fewer cells are left out
    keep_unknown_labels   take words such as "none" for types; by default "unknown", "nan", "unassigned" and the like are no type (corrmask(7))
    layer       layer of adata with the raw counts; by default it is found, as in raw or layers["counts"]; reference_layer: that of the reference
    round, unlog, all_features   of both: fractions are rounded; counts are taken back from normalised values; rows that are no genes are read

    Adds to obs KEY_assigned (type, or "unknown" where unknown is given or promised), KEY_predicted, KEY_probability, KEY_label_set, KEY_likeness,
    KEY_is_unlike, KEY_promised (is what the row says promised?) and KEY_unlike (place of the cell's cluster in the list uns[KEY_unlike] of clusters, the most unlike the reference first), to obsm
    tables of the types, KEY_logit and KEY_in_set, to uns["corrmask"][KEY] the method and what is promised, and to uns[KEY] a table of what was measured on the
    reference: promise:coverage is 1 if the coverage can be promised for new donors, else why:coverage says why not."""
    import numpy
    import pandas

    from corrmask import stream
    adata = _in_memory(adata, copy)
    saved = isinstance(reference, (str, os.PathLike)) and os.fspath(reference).endswith(".ref")
    if saved == (label is not None):
        raise Error("label=%r: a saved reference has its own" % label if saved else "label= is needed: which column of the reference has its types?")
    columns, keep = [label or ""] + ([group] if group and group != "auto" else []), ["--keep-unknown-labels"] if keep_unknown_labels else []
    if not isinstance(reference, (str, os.PathLike)):
        columns = _columns(reference, columns, " of the reference", True) + ([] if group != "auto" else [
            c for c in reference.obs if str(c).lower() in ("donor_id", "donor", "patient_id", "patient", "individual", "subject", "sample_id", "sample")
            and c != label]) + [c for c in (TERM_ID,) if c in reference.obs and c != label]
    with workspace() as folder:
        known, counts, new = (os.path.join(folder, name) for name in ("known.counts", "new.counts", "new.pred"))
        learning: List[str] = []
        if not saved:
            path = _file(reference, folder, "reference", columns, reference_layer)
            run([script("columns.sh"), label or "", group or "none", path], progress=progress)       # now, not after the counts are read
            run([_tool("h5tok"), "-u", *_reading(reference_layer, round, unlog, all_features), *_threads(threads), *talk(progress), path],
                [_tool("scsample"), "--min-class", "%s:%d" % (label, min_cells), *keep, *(["--progress", "never"] if progress else ["-q"]), "--report", known + ".report",
                 "-o", known], progress=progress)
        run([_tool("h5tok"), "--obs", "none", *_reading(layer, round, unlog, all_features), *_threads(threads), *talk(progress), "-o", counts,
             _file(adata, folder, "new", [], layer)], progress=progress)
        if not saved:
            donors = run([script("group.sh"), group or "none", label or "", known], progress=progress).decode().strip()
            learning = ["--label", label or "", *(["--group", donors] if donors else []), *keep, "--coverage", str(coverage), "--seed", str(seed)]
        run([_tool("ctaprobe"), "transfer", "--reference", os.fspath(reference) if saved else known, *learning,
             *([] if unknown is None else ["--unknown", str(unknown)]), *_threads(threads), *talk(progress), "--report", new + ".report",
             "--unlike", new + ".unlike", "-o", new, counts], progress=progress)
        made = stream.to_anndata(new)
        with stream.read(new) as predictions:
            classes, said = predictions.header["labels"], predictions.header["said"]
        found = made.obs
        found.loc[found["label_set"] == "", "label_set"] = None       # as the others: missing, of a cell without counts
        rows, sampled = (pandas.read_csv(path + ".report", sep="\t", names=["name", "value"], skiprows=1, dtype=str, keep_default_na=False, quoting=3)
                         for path in (new, new if saved else known))
        no_label = [frame["name"].str.startswith(("set_aside:no_label", "set_aside:unknown_label")) for frame in (rows, sampled)]
        report = pandas.concat([rows[~no_label[0]], sampled[no_label[1]]], ignore_index=True)       # scsample has left them out
        clusters = pandas.read_csv(new + ".unlike", sep="\t", keep_default_na=False, quoting=3)
    rows = _place(adata, [str(name) for name in found.index])
    flags = ("is_unlike", "promised")
    found = found.astype(dict.fromkeys(flags, bool))
    for name in ("assigned", "predicted", "probability", "label_set", "likeness", *flags, "unlike", *(c for c in (TERM_ID,) if c in found)):
        column = found[name].array.take(rows, allow_fill=True, **({"fill_value": False} if name in flags else {}))
        plain = name == TERM_ID and name not in adata.obs
        adata.obs[name if plain else "%s_%s" % (key_added, name)] = pandas.Series(column, index=adata.obs.index)
    for name in ("logit", "in_set"):
        values = made.obsm[name][rows]
        values[rows < 0] = numpy.nan if name == "logit" else 0
        adata.obsm["%s_%s" % (key_added, name)] = pandas.DataFrame(values, adata.obs_names, classes)
    adata.uns[key_added] = report
    adata.uns[key_added + "_unlike"] = clusters
    adata.uns["corrmask"] = {**adata.uns.get("corrmask", {}), key_added: said}
    return adata if copy else None


def _tokens(adata: anndata.AnnData, model: Path, folder: str, path: str, columns: List[str], layer: Optional[str], reading: List[str],
            max_len: Optional[int], threads: Optional[int], progress: bool) -> Found:
    """The cells as tokens of a model, a folder, or of a vocabulary, a file, in the stream path. Returns what the model is."""
    model, own = os.fspath(model), os.path.join(folder, "cells.tok")
    cells = _file(adata, folder, "cells", columns, layer, named=path != own)
    options = ["--obs", ",".join(columns) or "none", *reading, *_threads(threads), *talk(progress)]
    made = os.path.join(folder, "model")
    found = resolve("", made, model) if os.path.isfile(model) else resolve(model, made)
    if found.text and progress:
        sys.stderr.write(found.text + "\n")
    with open(os.path.join(folder, "model.tsv"), "w") as f:
        f.write(found.table())
    run([script("tokens.sh"), f.name, str(max_len or ""), cells, own, *options], progress=progress)
    if path != own:
        run([_tool("scsample"), "-q", "-o", path, own])
    return found


def tokenize(adata: anndata.AnnData, model: Path, path: Optional[Path] = None, *, obs: Sequence[str] = (), layer: Optional[str] = None,
             round: bool = False, unlog: bool = False, all_features: bool = False, max_len: Optional[int] = None,
             threads: Optional[int] = None, progress: bool = True) -> Optional[stream.Ragged]:
    """Rank value encoding of the cells, with the vocabulary of a model (a folder) or of a table (vocab.tsv; rankenc(1)).

    With path, a tokens stream is written there, with the columns obs: stream.read, stream.Dataset and the tools read it. Without path the tokens
    are returned: cell i has values[offsets[i]:offsets[i + 1]]."""
    import numpy

    from corrmask import stream
    with workspace() as folder:
        out = os.path.join(folder, "cells.tok") if path is None else os.fspath(path)
        _tokens(adata, model, folder, out, _columns(_in_memory(adata), obs), layer, _reading(layer, round, unlog, all_features), max_len, threads,
                progress)
        if path is not None:
            return None
        with stream.read(out) as cells:
            blocks = list(cells)
    rows = _place(adata, [name for b in blocks for name in b["barcode"]])
    lists = [b["token"].values[b["token"].offsets[i]:b["token"].offsets[i + 1]] for b in blocks for i in range(b.rows)] + [numpy.zeros(0, "u2")]
    lists = [lists[i] for i in rows]        # -1: a cell without tokens
    return stream.Ragged(numpy.cumsum([0] + [len(x) for x in lists]), numpy.concatenate(lists) if lists else numpy.zeros(0, "u2"))


def embed(adata: anndata.AnnData, model: Path, *, pool: Optional[str] = None, hidden_layer: Optional[int] = None, layer: Optional[str] = None,
          round: bool = False, unlog: bool = False, all_features: bool = False,
          max_len: Optional[int] = None, key_added: str = "X_corrmask", copy: bool = False, threads: Optional[int] = None,
          progress: bool = True) -> Optional[anndata.AnnData]:
    """Embed the cells by a trained model: the folder of one of sctrain, of a Geneformer or of a released BMFM-RNA (scembed(1)).

    pool, hidden_layer   which hidden states are kept: scembed --pool, --emb-layer; by default the model's
    layer                layer of adata with the raw counts; by default it is found
    max_len              cut cells to so many tokens

    Adds obsm[key_added]. A cell without any gene of the vocabulary gets nan."""
    import numpy

    from corrmask import stream
    adata = _in_memory(adata, copy)
    with workspace() as folder:
        tokens, made = os.path.join(folder, "cells.tok"), os.path.join(folder, "cells.emb")
        found = _tokens(adata, model, folder, tokens, [], layer, _reading(layer, round, unlog, all_features), max_len, threads,
                progress)
        run([_tool("scembed"), "-M", found.model, *(["--pool", pool] if pool else []),
             *(["--emb-layer", str(hidden_layer)] if hidden_layer is not None else []), *(["--max-len", str(max_len)] if max_len else []), *_threads(threads),
             *talk(progress), "-o", made, tokens], progress=progress)
        with stream.read(made) as cells:
            width = next(c["n"] for c in cells.header["columns"] if c["name"] == "x")
            blocks = [(b["barcode"], b["x"]) for b in cells]
    rows = _place(adata, [name for names, _ in blocks for name in names])
    x = numpy.concatenate([x for _, x in blocks] + [numpy.full((1, width), numpy.nan, "f4")])
    adata.obsm[key_added] = x[rows]
    return adata if copy else None


def perturb(adata: anndata.AnnData, model: Path, genes: Union[str, Sequence[str]] = "all", *, how: str = "delete", state: Optional[str] = None,
            source: Optional[str] = None, target: Optional[str] = None, group: Optional[str] = None, controls: int = 0, layer: Optional[str] = None,
            round: bool = False, unlog: bool = False, all_features: bool = False, max_len: Optional[int] = None,
            threads: Optional[int] = None, progress: bool = True) -> pandas.DataFrame:
    """Perturb genes of cells in silico, and measure what that does to their embeddings (scperturb(1)).

    genes            ids of the vocabulary, "A+B" for two together, or "all": each gene of each cell
    how              "delete", "overexpress", "activate" or "inhibit"
    state            column of obs with states: cells of `source` are perturbed, and shifts towards `target` measured; without it, similarities
    group            column of obs, such as donors, over which intervals and tests are made
    controls         random genes next to each perturbation

    Returns the table of scperturb shift: a row for each perturbation."""
    if how not in ("delete", "overexpress", "activate", "inhibit"):
        raise ValueError("how=%r: expected delete, overexpress, activate or inhibit" % how)
    if (state is None) != (source is None) or (state is None) != (target is None):
        raise ValueError("state, source and target belong together")
    columns = _columns(_in_memory(adata), [state, group], in_stream=True)
    for word in (source, target) if state is not None else ():
        cells = adata.obs[columns[0]].astype(str).value_counts()
        if cells.get(str(word), 0) < 10:
            raise Error("corrmask: obs[%r] is %r in %d cells, expected at least 10 of each state; it has: %s" % (
                state, word, cells.get(str(word), 0), ", ".join("%s (%d)" % row for row in cells.head(12).items())))
    with workspace() as folder:
        tokens, made = os.path.join(folder, "cells.tok"), os.path.join(folder, "perturbed.emb")
        found = _tokens(adata, model, folder, tokens, columns, layer, _reading(layer, round, unlog, all_features), max_len, threads,
                progress)
        cut = ["--max-len", str(max_len)] if max_len else []
        run([_tool("scperturb"), "apply", "-u", *talk(False), "--" + how, genes if isinstance(genes, str) else ",".join(genes),
             *(["--controls", str(controls)] if controls else []), *(["--where", "%s=%s" % (state, source)] if state else []),
             *([] if found.cls else cut), tokens],
            [_tool("scembed"), "-M", found.model, *(cut if found.cls else []), *_threads(threads), *talk(progress), "-o", made], progress=progress)
        return _table(run([_tool("scperturb"), "shift", *(["--state", state, "--from", str(source), "--to", str(target)] if state else []),
                           *(["--group", group] if group else []), *talk(progress), made], progress=progress))


def integration(adata: anndata.AnnData, *, label: str, batch: Optional[str] = None, embeddings: Sequence[str] = ("X_pca",), centred: bool = False,
                preset: str = "scib-metrics", keep_unknown_labels: bool = False, seed: int = 1, threads: Optional[int] = None,
                progress: bool = True) -> pandas.DataFrame:
    """How well embeddings keep cell types apart and batches together: the metrics of scib-metrics, scIB or BMFM-RNA (scmetric(1)).

    label, batch   columns of obs
    embeddings     keys of obsm; the first is that before integration
    centred        also score each embedding minus the mean of its batch, as KEY_centred
    preset         "scib-metrics", "scib" or "bmfm": metrics and their means
    keep_unknown_labels   take words such as "none" for types; by default cells called "unknown", "nan" and the like are left out (corrmask(7))

    Returns a table with a row for each metric and a column for each embedding."""
    columns = _columns(_in_memory(adata), [label, batch])
    embeddings = [embeddings] if isinstance(embeddings, str) else embeddings
    for key in embeddings:
        if key not in adata.obsm:
            raise Error("corrmask: obsm has no %r: it has %s" % (key, ", ".join(adata.obsm)))
    with workspace() as folder:
        path = _file(adata, folder, "cells", columns, counts=False, obsm=embeddings)
        return _table(run([_tool("scmetric"), "integration", "--label", label, *(["--batch-key", batch] if batch else []), "--embedding", ",".join(embeddings),
                           *(["--centred"] if centred else []), *(["--keep-unknown-labels"] if keep_unknown_labels else []),
                           "--preset", preset, "--seed", str(seed), *_threads(threads), *talk(progress), path],
                          progress=progress))
