#!/usr/bin/env bats
# h5tok: what is said of a file belongs to its format, and what is odd about a file is said.
load helper

setup_file() {
	need_tool h5tok scview scmetric
	cd "$BATS_FILE_TMPDIR"
	$PYTHON -W ignore "$BATS_TEST_DIRNAME/../data/make_layouts.py" .
	zstd -qdc "$BATS_TEST_DIRNAME/../data/zarr.tar.zst" | tar x
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

# edit FROM TO STATEMENTS: TO is FROM after these statements of Python, which know it as f
edit() {
	cp "$1" "$2"
	$PYTHON -W ignore -c "
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'r+') as f:
$(sed 's/^/    /' <<<"$3")" "$2"
}

# fails WORDS COMMAND...: exit status 1, one line that has these words, no output file
fails() {
	run "${@:2}" -q -o never.counts
	assert_failure 1
	names "$1"
	assert_equal "${#lines[@]}" 1
	assert_file_not_exist never.counts
}

@test "HDF5 of a version that the library does not know is called newer, with the library's version; other damage is not" {
	$PYTHON - <<-'END'
		b = bytearray(open("csr_gzip.h5ad", "rb").read())
		b[8] = 9 # version of the superblock
		open("newer.h5ad", "wb").write(b)
		open("cut.h5ad", "wb").write(b[:8] + b"\0" + b[9:5000])
	END
	fails "newer.h5ad newer HDF5 libver" h5tok newer.h5ad
	assert_output --regexp ' [0-9]+\.[0-9]+\.[0-9]+ '
	fails "cut.h5ad truncated" h5tok cut.h5ad
	refute_output --partial newer
}

@test "a raw that is an empty dataset, as anndata's write_elem makes it, is none" {
	edit csr_gzip.h5ad empty_raw.h5ad 'f["raw"] = h5py.Empty("f4")'
	run -0 h5tok -q empty_raw.h5ad -o a.counts
	h5tok -q csr_gzip.h5ad -o again
	cmp again a.counts
}

@test "a column of obs or var that lacks a part is left out with a warning; asked for by name it is an error" {
	h5tok -q csr_gzip.h5ad -o whole.counts
	while IFS='|' read -r what words; do
		edit csr_gzip.h5ad odd.h5ad "n = f['obs/donor/codes'].shape[0]
$what"
		run -0 h5tok odd.h5ad -o a.counts
		names "warning left out $words"
		run -0 h5tok -q --list-obs odd.h5ad -o list.tsv
		run -0 h5tok -q --obs cell_type odd.h5ad -o a.counts
		refute_output
		assert_equal "$(scview -c cell_type,gene,count a.counts)" "$(scview -c cell_type,gene,count whole.counts)"
		[[ $what == *var* ]] || fails "obs/donor $words" h5tok --obs donor odd.h5ad
	done <<-'END'
		del f["obs/donor"]|missing finished
		c = f["obs/donor/codes"][1:]; del f["obs/donor/codes"]; f["obs/donor/codes"] = c|rows expected
		c = f["obs/donor/codes"][:] + .5; del f["obs/donor/codes"]; f["obs/donor/codes"] = c|codes integers
		del f["obs/donor/categories"]|categories missing
		del f["obs/donor"]; g = f.create_group("obs/donor"); g["values"] = np.zeros(n, int); g["mask"] = np.zeros(n - 1, bool)|mask boolean row
		f["var/odd"] = np.zeros(3); f["var"].attrs["column-order"] = ["odd"]|var/odd 3 rows
	END
}

@test "nullable booleans that are 32 bits wide, as R writes them" {
	edit csr_gzip.h5ad wide.h5ad 'n = f["obs/donor/codes"].shape[0]
del f["obs/donor"]
g = f.create_group("obs/donor")
g.attrs["encoding-type"] = "nullable-boolean"
g["values"], g["mask"] = np.array([0, 1, -2**31] + [1] * (n - 3), "i4"), np.array([0, 0, 1] + [0] * (n - 3), "i4")'
	run -0 h5tok wide.h5ad -o a.counts
	refute_output --partial warning
	assert_equal "$(scview -c donor a.counts | sed -n 2,5p | paste -sd ' ')" "False True NA True"
}

@test "genes whose counts alevin-fry has split are noted" {
	edit csr_gzip.h5ad split.h5ad 'g = f["var/" + f["var"].attrs["_index"]]
names = g[:]
g[:] = [names[i // 3] + [b"", b"-U", b"-A"][i % 3] for i in range(len(names))]'
	run -0 h5tok --gene-column index split.h5ad -o a.counts
	names "warning split.h5ad 13 genes unspliced alevin-fry"
}

@test "a cell with more entries than genes: duplicates are added up" {
	edit csr_gzip.h5ad twice.h5ad 'for name in "data", "indices", "indptr":
    x = f["X/" + name][:]
    del f["X/" + name]
    f["X/" + name] = 5 * x if name == "indptr" else np.repeat(x, 5)'
	run -0 h5tok twice.h5ad -o a.counts
	names "note twice.h5ad entries added"
	h5tok -q csr_gzip.h5ad -o b.counts
	assert_equal "$(scview -c n_counts a.counts | tail -n +2)" "$(scview -c n_counts b.counts | awk "NR > 1 { print 5 * \$1 }")"
}

@test "obsm as a data frame or as a sparse matrix: the message says what it is" {
	edit csr_gzip.h5ad obsm.h5ad '
n = f["obs/donor/codes"].shape[0]
for name, kind in ("frame", "dataframe"), ("rows", "csr_matrix"), ("columns", "csc_matrix"), ("odd", "awkward-array"):
    f.create_group("obsm/" + name).attrs["encoding-type"] = kind'
	for k in "frame data frame array to_numpy" "rows sparse array toarray" "columns sparse array toarray" "odd group array"; do
		read -ra word <<<"$k"
		run -1 scmetric integration -q --label cell_type --embedding "${word[0]}" obsm.h5ad
		names "obsm.h5ad obsm/$k"
	done
}

@test "obsm: a number that float32 cannot hold is named" {
	edit csr_gzip.h5ad obsm.h5ad 'x = np.ones((f["obs/donor/codes"].shape[0], 3)); x[13, 2] = -1e200; f["obsm/big"] = x'
	run -1 scmetric integration -q --label cell_type --embedding big obsm.h5ad
	names "obsm/big cell 13 -1e+200 float32"
}

@test "MuData: columns that only the obs of all modalities has are named, with the way to copy them" {
	edit both.h5mu global.h5mu 'n = len(f["mod/rna/obs/_index"])
f["obs/global_type"] = np.repeat([b"a", b"b"], [3, n - 3])
f["obs"].attrs["column-order"] = ["global_type"]'
	fails "global_type push_obs" h5tok --obs global_type global.h5mu
	fails "nowhere" h5tok --obs nowhere global.h5mu
	refute_output --partial push_obs
	run -0 h5tok global.h5mu -o a.counts
	names "warning global.h5mu mod/rna global_type push_obs"
	run -0 h5tok both.h5mu -o a.counts
	refute_output --partial push_obs
	run -1 scmetric integration -q --label global_type --embedding X global.h5mu
	names "global_type push_obs"
}

@test "whole numbers beside categories to which nothing refers: a warning" {
	edit csr_gzip.h5ad lost.h5ad '
codes, names = f["obs/donor/codes"][:], f["obs/donor/categories"][:]
del f["obs/donor"]
f["obs/donor"], f["obs/__categories/donor"] = codes, names'
	run -0 h5tok lost.h5ad -o a.counts
	names "warning lost.h5ad obs/donor __categories/donor"
	run -0 h5tok --list-obs lost.h5ad
	names "warning obs/donor"
	run -0 h5tok csr_gzip.h5ad -o a.counts
	refute_output --partial warning
	edit lost.h5ad found.h5ad 'f["obs/donor"].attrs["categories"] = f["obs/__categories/donor"].ref'
	run -0 h5tok found.h5ad -o b.counts
	refute_output --partial warning
	assert_equal "$(scview -c donor b.counts)" "$(scview -c donor a.counts)"
}

@test "--list-obs needs no counts and no genes; cells without genes are refused" {
	h5tok -q --list-obs csr_gzip.h5ad >want.tsv
	edit csr_gzip.h5ad bare.h5ad 'del f["X"], f["var"]'
	h5tok -q --list-obs bare.h5ad | cmp - want.tsv
	edit csr_gzip.h5ad logs.h5ad 'f["X/data"][:] = np.log1p(f["X/data"][:])'
	h5tok -q --list-obs logs.h5ad | cmp - want.tsv
	fails "bare.h5ad X" h5tok bare.h5ad
	$PYTHON -W ignore -c 'import anndata, numpy as np
anndata.AnnData(np.zeros((6, 0), "f4")).write_h5ad("genes0.h5ad")'
	fails "genes0.h5ad 6 0 genes" h5tok genes0.h5ad
}

@test "zarr: chunks of dense counts and of labels that are not there are noted" {
	for path in layers/dense/c/0/0 obs/type/codes/c/1; do
		rm -rf few.zarr
		cp -r v3_zstd.zarr few.zarr
		rm few.zarr/$path
		run -0 h5tok --layer dense few.zarr -o a.counts
		names "note ${path%/c/*} chunks"
	done
	run -0 h5tok --layer dense v3_zstd.zarr -o a.counts
	refute_output --partial chunks
	# the fill value is another number than 0
	rm few.zarr/layers/dense/c/0/0
	sed -i 's/"fill_value": *[0-9.]*/"fill_value": 37/' few.zarr/layers/dense/zarr.json
	run -0 h5tok --layer dense few.zarr -o a.counts
	names "warning layers/dense missing 37"
}

# text_files: plain and others, 10x folders of the same cells
text_files() {
	$PYTHON - <<-'END'
		import os, random
		random.seed(1)
		entries = sorted({(random.randrange(1, 13), random.randrange(1, 31)) for _ in range(90)}, key=lambda e: e[::-1])
		def write(folder, gap="", features="{}\t{}\tGene Expression\n", barcodes="{}\n", head=("", ""), tail="", shape=(12, 30), banner="matrix coordinate integer"):
		    os.makedirs(folder, exist_ok=True)
		    with open(folder + "/matrix.mtx", "w", newline="") as f:
		        f.write("%%%%MatrixMarket %s general\n%%\n%s%d %d %d\n" % (banner, gap, *shape, len(entries)))
		        for k, (g, c) in enumerate(entries):
		            f.write("%d %d %d\n" % (*((g, c) if shape[0] == 12 else (c, g)), k % 5 + 1))
		    open(folder + "/features.tsv", "w", newline="").write(head[0] + "".join(features.format("ENSG%011d" % i, "G%d" % i) for i in range(12)) + tail)
		    open(folder + "/barcodes.tsv", "w", newline="").write(head[1] + "".join(barcodes.format("B%d-1" % i) for i in range(30)) + tail)
		write("plain")
		write("quoted", features='"{}"\t"{}"\t"Gene Expression"\n', barcodes='"{}"\n')
		write("headed", head=("id\tname\ttype\n", "barcode\n"))
		write("commas", features='"{}","{}","Gene Expression"\n')
		write("empty", gap=" \n", tail="\n\n", banner="MATRIX Coordinate Integer")
		write("crlf", features="{}\t{}\tGene Expression\r\n", barcodes="{}\r\n", tail="\r\n")
		write("turned", shape=(30, 12))
	END
}

@test "10x text files as R and editors leave them: quotes, names of columns, commas, empty lines; cells x genes is refused" {
	text_files
	h5tok -q plain -o want.counts
	for d in quoted headed commas empty crlf; do
		run -0 h5tok $d -o a.counts
		cmp a.counts want.counts || fail "$d"
		if [ $d = headed ]; then names "warning headed/features.tsv 'id'"; names "warning headed/barcodes.tsv 'barcode'"; else refute_output --partial warning; fi
	done
	fails "turned/matrix.mtx 30 12 transpose" h5tok turned
	for v in 0x1 0b1 nan inf NaN Infinity 1,5 1_0; do
		rm -rf bad
		cp -r plain bad
		sed -i "5s/ [0-9]*$/ $v/" bad/matrix.mtx
		fails "bad/matrix.mtx line 5 $v count" h5tok bad
	done
	for v in 1 +1 1.0 1e0 1E+00 01; do
		cp plain/matrix.mtx bad/matrix.mtx
		sed -i "4s/ [^ ]*$/ $v/" bad/matrix.mtx
		h5tok -q bad | scview | cmp - <(h5tok -q plain | scview) || fail "$v"
	done
	# an entry that is there twice is added, and that is said
	sed -i -e "3s/[0-9]*$/$(($(sed -n '3s/.* //p' bad/matrix.mtx) + 2))/" -e '$p' bad/matrix.mtx
	sed -i '$p' bad/matrix.mtx
	run -0 h5tok bad -o a.counts
	names "note: bad: 2 entries added"
	printf '\nB\n' >>plain/barcodes.tsv
	fails "plain/barcodes.tsv 32 empty" h5tok plain
}

# loom NAME...: NAME.h5ad and NAME.loom, the same cells; spliced.h5ad has those of the layer spliced
looms() {
	$PYTHON -W ignore - <<-'END'
		import anndata, h5py, numpy as np, pandas as pd
		rng = np.random.default_rng(5)
		n, G = 150, 90
		x = rng.poisson(rng.gamma(.4, 2, G), (n, G))
		x[7] = 0
		spliced = rng.binomial(x, .6)
		ids, symbols = ["ENSG%011d" % i for i in range(G)], ["G%d" % i for i in range(G)]
		obs = pd.DataFrame({"type": rng.choice(["a", "bé", "c"], n), "age": rng.integers(0, 90, n), "share": rng.random(n)}, index=["c%d" % i for i in range(n)])
		def h5ad(name, x):
		    anndata.AnnData(x.astype("f4"), obs=obs.copy(), var=pd.DataFrame({"gene_name": symbols}, index=ids)).write_h5ad(name + ".h5ad")
		h5ad("cells", x)
		h5ad("spliced", spliced)
		fixed = lambda t: np.char.encode(np.array(t, "U"), "utf-8")
		variable = lambda t: np.array(t, object)
		def loom(name, matrix=x, layers=(), dtype="f4", text=variable, genes=("Gene", "Accession"), cells="CellID", embedding=True, **how):
		    with h5py.File(name + ".loom", "w") as f:
		        f.create_dataset("matrix", data=matrix.T.astype(dtype), **how)
		        for k, m in dict(layers, spliced=spliced).items():
		            f.create_dataset("layers/" + k, data=m.T.astype(dtype), **how)
		        for k, v in zip(genes, (symbols, ids)):
		            f["row_attrs/" + k] = text(v)
		        if cells:
		            f["col_attrs/" + cells] = text(list(obs.index))
		        f["col_attrs/type"], f["col_attrs/age"], f["col_attrs/share"] = text(list(obs["type"])), obs["age"].values, obs["share"].values
		        if embedding:
		            f["col_attrs/X_two"] = rng.normal(size=(n, 2))
		        f.create_group("row_graphs"), f.create_group("col_graphs")
		zip_ = dict(compression="gzip", shuffle=True)
		loom("loompy", chunks=(64, 64), compression="gzip", compression_opts=2)
		loom("velocyto", dtype="u2", text=fixed, chunks=(64, 64), **zip_)
		loom("contiguous", dtype="i8")
		loom("genes", dtype="i4", chunks=(1, n), **zip_)
		loom("cells_", dtype="f8", chunks=(G, 1), fletcher32=True)
		loom("wide", dtype="u1", chunks=(7, 400), maxshape=(None, None), compression="lzf")
		loom("scanpy", genes=("gene_name", "var_names"), cells="obs_names", chunks=(40, 70), **zip_)
		loom("logged", matrix=np.log1p(x / np.maximum(x.sum(1, keepdims=True), 1) * 1e4), layers={"counts": x}, chunks=(32, 32))
		loom("unnamed", cells=None)
		loom("odd", cells="my cells", genes=("Gene", "my ids"))
	END
}

@test "loom: counts, names and annotation of the same cells as .h5ad, for every storage, on one thread and three" {
	looms
	h5tok -q cells.h5ad | scview --gene-names id -c barcode,n_counts,type,age,share,gene,count >want.tsv
	h5tok -q cells.h5ad | scview --vocab | cut -f2,3 >genes.tsv
	for f in loompy velocyto contiguous genes cells_ wide scanpy logged odd; do
		h5tok -q $f.loom -o a.counts
		h5tok -q -@3 $f.loom -o again
		cmp again a.counts
		scview --gene-names id -c barcode,n_counts,type,age,share,gene,count a.counts | diff -q - want.tsv || fail "$f"
		scview --vocab a.counts | cut -f2,3 | diff -q - genes.tsv || fail "$f"
	done
	run -0 h5tok logged.loom -o a.counts
	names "logged.loom layers/counts"
	h5tok -q spliced.h5ad | scview --gene-names id -c barcode,n_counts,gene,count >want.tsv
	for f in loompy genes contiguous; do h5tok -q --layer spliced $f.loom | scview --gene-names id -c barcode,n_counts,gene,count | cmp - want.tsv; done
	fails "logged.loom matrix" h5tok --layer matrix logged.loom
	h5tok -q --layer matrix loompy.loom -o a.counts
	h5tok -q loompy.loom | scview | cmp - <(scview a.counts)
	assert_equal "$(h5tok -q --gene-column Gene loompy.loom | scview --vocab | sed -n 3p | cut -f2)" G1
	assert_equal "$(h5tok -q unnamed.loom | scview -c barcode | sed -n 4p)" 2
	assert_equal "$(h5tok -q --sample-column s loompy.loom | scview -c s | sed -n 2p)" loompy
	run -0 h5tok --list-obs loompy.loom
	names "age i64"
	names "warning X_two"
}

@test "loom: options and embeddings; what is wrong is one line with the place" {
	[ -e loompy.loom ] || looms
	fails "loompy.loom --modality loom" h5tok --modality rna loompy.loom
	fails "loompy.loom other matrix spliced" h5tok --layer other loompy.loom
	fails "loompy.loom other Accession" h5tok --gene-column other loompy.loom
	edit loompy.loom bad.loom 'del f["matrix"]'
	fails "bad.loom matrix missing" h5tok bad.loom
	edit loompy.loom bad.loom 'del f["row_attrs"]; f["row_attrs/Gene"] = np.array([b"a"] * 89)'
	fails "bad.loom row_attrs/Gene 89 90" h5tok bad.loom
	edit loompy.loom bad.loom 'del f["col_attrs/age"]; f["col_attrs/age"] = np.arange(149)'
	fails "bad.loom col_attrs/age 149 150" h5tok --obs age bad.loom
	edit loompy.loom bad.loom 'm = f["matrix"][:]; m[11, 140] = -1; f["matrix"][:] = m'
	fails "bad.loom matrix -1" h5tok bad.loom
	run -0 scmetric integration -q --label type --embedding X_two loompy.loom
	run -1 scmetric integration -q --label type --embedding X_three loompy.loom
	names "col_attrs X_three X_two"
}

# explained PROPERTY [FILE]: the values in explain.tsv
explained() {
	awk -F'\t' -v p="$1" -v f="$2" '$2 == p && (f == "" || $1 == f) { print $3 }' explain.tsv
}

@test "--explain: a row for each property of each file, an error for a file without counts, and then status 1" {
	[ -e loompy.loom ] || looms
	edit csr_gzip.h5ad logs.h5ad 'f["X/data"][:] = np.log1p(f["X/data"][:])'
	run -1 --separate-stderr h5tok --explain csr_gzip.h5ad tenx3.h5 v3_zstd.zarr both.h5mu logged.loom logs.h5ad
	echo "$output" >explain.tsv
	assert_equal "$(head -1 explain.tsv)" $'file\tproperty\tvalue'
	assert_equal "$(awk -F'\t' 'NF != 3' explain.tsv)" ""
	assert_equal "$(explained cells csr_gzip.h5ad) $(explained genes csr_gzip.h5ad) $(explained matrix csr_gzip.h5ad)" "23 40 X"
	assert_equal "$(explained format v3_zstd.zarr),$(explained format both.h5mu),$(explained format logged.loom)" "AnnData in zarr,MuData in HDF5,loom"
	assert_equal "$(explained modality)" mod/rna
	assert_equal "$(explained matrix logged.loom)" layers/counts
	assert_equal "$(explained cells logs.h5ad) $(explained error logs.h5ad | grep -c .)" "23 1"
	assert_equal "$(explained error | grep -c .)" 1
	# what decides changes what it says
	h5tok --explain --gene-column symbol csr_gzip.h5ad >explain.tsv
	assert_equal "$(explained gene_ids) $(explained ensembl_ids)" "var/symbol 0 of 40"
	h5tok --explain --modality prot both.h5mu >explain.tsv
	assert_equal "$(explained modality) $(explained genes)" "mod/prot 3"
	h5tok --explain --layer spliced loompy.loom >explain.tsv
	assert_equal "$(explained matrix)" layers/spliced
	edit csr_gzip.h5ad odd.h5ad 'f["obs"].attrs["column-order"] = np.append(f["obs"].attrs["column-order"], "kind"); f["obs/kind"] = np.array([b"T", b"B", b"Unassigned", b"", b"nan"] * 4 + [b"T"] * 3); f["obs/kind"].attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})'
	h5tok --explain odd.h5ad >explain.tsv
	assert_equal "$(explained no_label | grep ^kind:)" "kind: Unassigned 4, nan 4, no value 4"
	printf 'barcode\tstate\n' >state.tsv # a category and missing values
	h5tok -q odd.h5ad | scview -c barcode - | awk 'NR > 1 { print $1 "\t" (NR % 3 ? NR % 3 == 1 ? "Unknown" : "T" : "") }' >>state.tsv
	h5tok --explain --obs-table state.tsv odd.h5ad >explain.tsv
	assert_equal "$(explained no_label | grep ^state:)" "state: Unknown 7, no value 8"
	h5tok --explain --obs none odd.h5ad >explain.tsv
	assert_equal "$(explained no_label)" ""
	fails "odd.h5ad no obs column nothing" h5tok --list-obs --label nothing odd.h5ad
	run -1 h5tok --explain --obs nothing csr_gzip.h5ad
	names "error nothing"
	run -2 h5tok --explain --list-obs csr_gzip.h5ad
	run -2 h5tok --explain --rank v.tsv csr_gzip.h5ad
	run -1 h5tok --explain nowhere.h5ad
	names "nowhere.h5ad error"
}

@test "--explain: the rows are in --report and in the header, where the format does not matter" {
	h5tok --explain both.h5mu rna.h5ad >explain.tsv
	h5tok -q --report report.tsv both.h5mu rna.h5ad -o a.counts
	for p in format modality cells matrix genes gene_ids shared_genes; do
		assert_equal "$(sed -n "s/^input:1:$p\t//p" report.tsv)" "$(explained $p both.h5mu)"
	done
	assert_equal "$(sed -n "s/^input:2:format\t//p" report.tsv)" "AnnData in HDF5"
	scview -H a.counts | $PYTHON -c '
import json, sys
line = json.load(sys.stdin)["provenance"][-1]
assert line["program"] == "h5tok" and len(line["files"]) == 2 and line["files"][0] == line["files"][1]
assert line["files"][0]["matrix"] == "X" and "format" not in line["files"][0]'
	h5tok -q both.h5mu -o a.counts
	h5tok -q rna.h5ad -o again
	cmp again a.counts
	text_files
	mkdir -p zipped
	for f in plain/*; do gzip -nc $f >zipped/${f##*/}.gz; done
	h5tok -q plain | cmp - <(h5tok -q zipped)
}

@test "--explain: the page of a run shows what was read" {
	mkdir -p results/annotate/run/log
	printf 'DATA\tboth.h5mu\n' >results/annotate/run/settings
	h5tok -q --report results/annotate/run/log/h5tok-new.report both.h5mu -o a.counts
	"$BATS_TEST_DIRNAME/../pipelines/page/page.py" results/annotate/run
	$PYTHON -c '
import re
page = open("results/annotate/run/report.html").read()
rows = re.sub("<[^>]*>", " ", page[page.index("What was read"):])
assert re.search(r"both\.h5mu\s+modality\s+mod/rna\s", rows) and re.search(r"both\.h5mu\s+matrix\s+X\s", rows), rows[:500]'
}
