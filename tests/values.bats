#!/usr/bin/env bats
# h5tok: which rows are genes, which matrix holds counts, what its values are, and counts from normalised values (--unlog).
load helper

setup_file() {
	need_tool h5tok scview
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	export REF=$BATS_TEST_DIRNAME/ref
}

# make CODE: run with the helpers below; x, cells x genes, are counts of 60 cells and 40 genes
make_files() {
	$PYTHON -W ignore - "$@" <<-END
		import subprocess, sys, os
		import anndata as ad, h5py, numpy as np, pandas as pd, scipy.io, scipy.sparse as sp
		r = np.random.default_rng(7)
		x = r.poisson(r.gamma(.6, 2, 40) * r.gamma(6, 1 / 6, (60, 1))).astype("f4")
		ids = ["ENSG%011d" % i for i in range(40)]
		def adata(x, names=None, **var):
		    a = ad.AnnData(shape=x.shape)
		    a.X, a.var_names = x, names or ids[:x.shape[1]]
		    for k, v in var.items():
		        a.var[k] = v
		    return a
		def everywhere(name, x, types=None):
		    """as rows, columns and dense, as a zarr store, MuData, 10x HDF5 and a 10x directory"""
		    n, m = x.shape
		    names, types = (ids * 3)[:m] if m <= 40 else ids + ["F%d" % i for i in range(m - 40)], types or ["Gene Expression"] * m
		    for end, layout in ("", sp.csr_matrix), ("_csc", sp.csc_matrix), ("_dense", np.asarray):
		        adata(layout(x), names, feature_types=pd.Categorical(types)).write_h5ad(name + end + ".h5ad")
		    subprocess.run([sys.executable, os.environ["REF"] + "/as_zarr.py", name + ".h5ad", name + ".zarr"], check=True)
		    with h5py.File(name + ".h5ad") as a, h5py.File(name + ".h5mu", "w") as b:
		        b.attrs["encoding-type"] = "MuData"
		        b.create_group("mod")
		        a.copy(a["/"], b["mod"], "rna")
		    t = sp.csr_matrix(x)
		    with h5py.File(name + ".h5", "w") as f:
		        g = f.create_group("matrix")
		        g["data"], g["indices"], g["indptr"], g["shape"] = t.data, t.indices, t.indptr, np.array([m, n])
		        g["barcodes"] = np.array([str(i) for i in range(n)], "S")
		        for k, v in ("id", names), ("name", names), ("feature_type", types):
		            g["features/" + k] = np.array(v, "S")
		    with h5py.File(name + ".loom", "w") as f:
		        f["matrix"], f["col_attrs/CellID"] = np.asarray(x).T, np.array([str(i) for i in range(n)], "S")
		        f["row_attrs/Accession"], f["row_attrs/feature_types"] = np.array(names, "S"), np.array(types, "S")
		        f.create_group("layers")
		    os.makedirs(name + "_mtx")
		    scipy.io.mmwrite(name + "_mtx/matrix.mtx", sp.coo_matrix(x.T))
		    open(name + "_mtx/features.tsv", "w").writelines("%s\t%s\t%s\n" % v for v in zip(names, names, types))
		    open(name + "_mtx/barcodes.tsv", "w").writelines("%d\n" % i for i in range(n))
		$1
		adata(sp.csr_matrix(x)).write_h5ad("counts.h5ad")
	END
}

# everywhere NAME: the files that make_files' everywhere has made
everywhere() {
	echo $1.h5ad $1_csc.h5ad $1_dense.h5ad $1.zarr $1.h5mu $1.loom $1.h5 $1_mtx
}

# same FILE OPTION...: its counts are those of counts.h5ad
same() {
	scview -c n_counts,gene,count --gene-names id <(h5tok -q "${@:2}" "$1") >a.tsv
	scview -c n_counts,gene,count --gene-names id <(h5tok -q counts.h5ad) | cmp - a.tsv || fail "$*"
}

# refused WORDS COMMAND...: exit status 1, one line that has the words, no output
refused() {
	run -1 "${@:2}" -q -o never.counts
	names "$1"
	assert_equal "${#lines[@]}" 1
	assert_file_not_exist never.counts
}

@test "values: rows that are no genes are left out of every format, with their number and kinds; --all-features keeps them" {
	make_files 'everywhere("cite", np.hstack([x, r.poisson(300, (60, 7))]).astype("f4"), ["Gene Expression"] * 40 + ["Antibody Capture"] * 5 + ["CRISPR Guide Capture"] * 2)'
	for f in $(everywhere cite); do
		same "$f"
		run -0 h5tok "$f" -o a.counts
		names "7 5 Antibody Capture 2 CRISPR Guide --all-features"
		run -0 h5tok --all-features "$f" -o a.counts
		refute_output --partial "left out"
		assert_equal "$(scview --vocab a.counts | wc -l)" 48
		assert_equal "$(h5tok --explain "$f" | awk -F'\t' '$2 == "left_out" { print $3 }' | grep -c "5 Antibody Capture, 2 CRISPR Guide Capture")" 1
	done
	run -0 scview -H a.counts
	assert_output --regexp '"options":[[:space:]]*"--all-features"'
}

@test "values: what says that a row is no gene: types in any spelling, columns of controls, names of probes; biotypes and rows without a type are kept" {
	make_files '
def extra(n, names=None):
    return np.hstack([x, r.poisson(9, (60, n))]).astype("f4"), ids + (names or ["other%d" % i for i in range(n)])
def types(name, words, column="feature_types", names=None):
    y, names = extra(len(words) - 40, names)
    adata(y, names, **{column: words}).write_h5ad(name + ".h5ad")
for i, (gene, other) in enumerate([("gene expression", "antibody_capture"), ("GEX", "ATAC"), ("Gene_Expression", "Negative Control Probe"), ("rna", "anything"),
                                   ("protein_coding", "Antibody Capture"), ("gene", "blank"), ("nan", "Multiplexing Capture")]):
    types("t%d" % i, [gene] * 40 + [other] * 3, ["feature_types", "feature_type"][i % 2])
types("t7", ["Gene Expression"] * 39 + [""] + ["Unassigned Codeword"] * 2)
y, names = extra(3)
adata(y, names, is_control=[False] * 40 + [True] * 3).write_h5ad("t8.h5ad")
adata(y, names, control=[0] * 40 + [1] * 3).write_h5ad("t9.h5ad")
y, names = extra(4, ["NegControlProbe_00042", "BLANK_0006", "SystemControl12", "NegPrb3"])
adata(y, names).write_h5ad("t10.h5ad")
# a panel with more controls than genes: its ids are still found
adata(np.hstack([x, x, x]), ["G%d" % i for i in range(120)], gene_ids=ids + ["C%d" % i for i in range(80)],
      feature_types=["Gene Expression"] * 40 + ["Negative Control Codeword"] * 80).write_h5ad("t11.h5ad")
y, names = extra(3, ["Negative-like", "BLANKET1", "NEGR1"])
adata(y, names, feature_type=["protein_coding"] * 41 + ["lncRNA"] * 2).write_h5ad("kept.h5ad")
adata(x, feature_types=["Antibody Capture"] * 40).write_h5ad("none.h5ad")'
	for i in {0..11}; do same t$i.h5ad; done
	run -0 h5tok t10.h5ad -o a.counts
	names "4 control name --all-features"
	run -0 h5tok kept.h5ad -o a.counts
	names "1 left out control"
	names "kept: 41 protein_coding 2 lncRNA" || names "kept: 40 protein_coding 2 lncRNA"
	assert_equal "$(scview --vocab a.counts | wc -l)" 43
	run -0 h5tok t7.h5ad -o a.counts
	names "1 without type"
	refused "none.h5ad 40 Antibody --all-features" h5tok none.h5ad
	same none.h5ad --all-features
}

@test "values: noise is rounded and said; fractions in some entries need --round, whatever the largest value; one message for all formats" {
	make_files '
small = np.minimum(x, 30)
everywhere("noise", (small * (1 + 1e-6 * r.standard_normal(x.shape)) + 3e-5 * (small > 0)).astype("f4"))
for i, share in enumerate([.001, .01, .1, .3]):
    y = small.astype("f8")
    k = (y > 1) & (r.random(y.shape) < share)
    k[0, np.argmax(y[0])] = True
    y[k] -= r.random(k.sum()) * .4
    everywhere("soupx%d" % i, y.astype("f4"))
y = small + .5 * ((small > 0) & (r.random(x.shape) < .02))
everywhere("halves", y)
y = small + 5e-4 * (small > 0)
adata(y).write_h5ad("near.h5ad")
x = small'
	for f in $(everywhere noise) near.h5ad; do
		case $f in near*) o=--round ;; *) o= ;; esac
		same "$f" $o
		run -0 h5tok $o "$f" -o a.counts
		refute_output --partial warning
		[ "$o" ] || names "$f noise e-05"
	done
	for f in $(everywhere halves) $(for i in 0 1 2 3; do everywhere soupx$i; done) near.h5ad; do
		refused "$f fractions need --round" h5tok "$f"
		run -0 h5tok --round "$f" -o a.counts
		refute_output --partial warning
	done
	for f in $(for i in 0 1 2 3; do everywhere soupx$i; done); do same "$f" --round; done
	# a fraction that no look at the values finds
	make_files '
y = np.tile(sp.csr_matrix(x).toarray(), (6000, 1))
y[150000, 3] = 2.375
for end, layout in ("", sp.csr_matrix), ("_csc", sp.csc_matrix):
    adata(layout(y)).write_h5ad("late" + end + ".h5ad")'
	for f in late late_csc; do refused "$f.h5ad 2.375 need --round" h5tok $f.h5ad; done
}

@test "values: the options do not change which matrix is taken; of whole numbers it is the one whose sums are in obs" {
	make_files '
def layers(name, X, counts, **obs):
    a = adata(X)
    a.layers["counts"] = counts
    for k, v in obs.items():
        a.obs[k] = v
    a.write_h5ad(name + ".h5ad")
    return a
fractions, logs = x * r.uniform(.7, 1, x.shape).astype("f4"), np.log1p(x / x.sum(1, keepdims=True) * 1e4)
bins = np.where(x > 0, np.digitize(x, [1, 2, 3, 4, 6, 9]), 0).astype("f4")
layers("fractions", fractions, x)
layers("logs", logs, x)
other = x + (x > 0)
layers("total", other, x, total_counts=x.sum(1))
layers("n_counts", other, x, n_counts=x.sum(1).astype(int))
layers("first", x, other, nCount_RNA=x.sum(1))
layers("binned", bins, x, total_counts=x.sum(1))
layers("ranks", np.where(x > 0, np.argsort(np.argsort(x, 1), 1), 0), x)
# raw has more genes, and obs the sums of some of them: raw stays
a = layers("raw", x[:, :20], np.minimum(x, 2)[:, :20], total_counts=x[:, :20].sum(1))
a.raw = adata(x)
a.write_h5ad("raw.h5ad")
a = adata(fractions)
a.raw = adata(logs)
a.write_h5ad("both.h5ad")'
	for f in fractions logs total n_counts first binned ranks raw; do
		for o in "" --round --unlog "--round --unlog"; do same $f.h5ad $o; done
	done
	run -0 h5tok total.h5ad -o a.counts
	names "layers/counts obs/total_counts"
	run -0 h5tok --explain total.h5ad
	assert_line --regexp $'\twhy\t.*obs/total_counts$'
	assert_line $'total.h5ad\tvalues\twhole numbers'
	# without counts the same too: the option that is named decides only whether it is taken
	for o in "" --round "--round --unlog"; do
		run h5tok $o both.h5ad -o a.counts
		names "raw/X log-transformed"
	done
	same both.h5ad --unlog
	refused "X need --round" h5tok --layer X --unlog both.h5ad
	run -0 h5tok --layer X --round both.h5ad -o a.counts
}

@test "values: whole numbers that are no counts are named; --layer takes them, with a warning; counts of few or equal molecules are none of them" {
	make_files '
share = x / x.sum(1, keepdims=True)
everywhere("cp10k", np.round(share * 1e4))
rate = x / r.uniform(.3, 4, 40)
everywhere("tpm", np.round(rate / rate.sum(1, keepdims=True) * 1e6))
everywhere("logs", np.round(np.log1p(share * 1e4)))
big = r.poisson(r.gamma(.6, .5, 4000), (30, 4000))
adata(np.round(big / big.sum(1, keepdims=True) * 1e4)[:, np.argsort(-big.sum(0))[:300]], ["G%d" % i for i in range(300)]).write_h5ad("part.h5ad")
bins = np.where(x > 0, np.clip(np.argsort(np.argsort(x, 1), 1), 1, 50), 0).astype("f4")
adata(bins).write_h5ad("bins.h5ad")
for name, y in ("poisson", r.poisson(5, (60, 40))), ("uniform", r.integers(0, 100, (60, 40))), ("equal", np.array([np.bincount(r.choice(40, 500), minlength=40) for _ in range(60)])), \
               ("antibodies", r.poisson(300, (60, 30)) + 20), ("dense", r.poisson(5, (20, 9000))):
    adata(y.astype("f4"), ["G%d" % i for i in range(y.shape[1])]).write_h5ad(name + ".h5ad")'
	for what in cp10k:normalised tpm:normalised logs:log-transformed; do
		for f in $(everywhere ${what%:*}); do
			case $f in
			*_mtx | *.h5)
				run -0 h5tok "$f" -o a.counts
				names "warning: $f ${what#*:} rounded"
				;;
			*)
				case $f in *.loom) x=matrix ;; *) x=X ;; esac
				for o in "" --round --unlog; do refused "$f $x ${what#*:} rounded --layer" h5tok $o "$f"; done
				run -0 h5tok --layer $x "$f" -o a.counts
				names "warning: $f $x ${what#*:} rounded"
				;;
			esac
		done
	done
	refused "part.h5ad normalised multiples" h5tok part.h5ad
	run -0 h5tok bins.h5ad -o a.counts
	names "warning: bins.h5ad X largest bins"
	for f in poisson uniform equal antibodies dense; do
		run -0 h5tok $f.h5ad -o a.counts
		refute_output --partial warning
	done
}

@test "values --unlog: counts come back from normalised values of every format, exactly, with the same bytes on any number of threads" {
	make_files '
x[:, 0] += 1 # no cell is empty
x[5, :20] *= 2
x[5, 20:] = 0
size = x.sum(1, keepdims=True) / 1e4
for name, y in ("ln", np.log1p(x / size)), ("log2", np.log2(1 + x / size)), ("log10", np.log10(1 + x / size)), ("cp10k", x / size), ("logcounts", np.log1p(x)):
    everywhere(name, y.astype("f4"))
adata(np.log1p(x / size).astype("f2").astype("f4")).write_h5ad("half.h5ad")
adata(np.round(np.log1p(x / size), 3).astype("f4")).write_h5ad("decimals.h5ad")
y = np.log1p(x / size).astype("f4")
y[57, np.argmax(y[57])] *= 1.0001
adata(sp.csr_matrix(np.vstack([y[[0] * 200], y]))).write_h5ad("one.h5ad")
a = adata(sp.csr_matrix(np.log1p(x / size).astype("f4")))
a.obs["total_counts"] = x.sum(1)
a.write_h5ad("sums.h5ad")
x[5] /= np.gcd.reduce(x[5].astype(int))'
	for how in ln log2 log10 cp10k logcounts; do
		for f in $(everywhere $how); do
			same "$f" --unlog
			refused "$f --unlog" h5tok "$f"
			refused "$f --unlog" h5tok --round "$f"
		done
	done
	run -0 h5tok --unlog ln.h5ad -o a.counts
	names "ln.h5ad all 60 cells whole factor"
	for t in 1 2 3; do h5tok -q --unlog -@$t ln_csc.h5ad -o again; cmp again a.counts; done
	run -0 h5tok -q --unlog ln.h5ad --report r.tsv -o a.counts
	assert_equal "$(awk '$1 == "unlogged_cells" { print $2 }' r.tsv)" 60
	run -0 scview -H a.counts
	assert_output --regexp '"options":[[:space:]]*"--unlog"'
	# float16, few decimals: not exact; and a cell that no look at the first ones finds
	for f in half decimals; do refused "$f.h5ad log-transformed raw" h5tok --unlog $f.h5ad; done
	refused "one.h5ad cell 257 --unlog" h5tok --unlog one.h5ad
	# a divided cell is no damage
	run -0 h5tok --unlog sums.h5ad -o a.counts
	refute_output --partial warning
	same counts.h5ad --unlog
}

# bats test_tags=data
@test "values --unlog: counts of real files, by scanpy's, Seurat's and scran's ways, in float32 and float64" {
	for f in pbmc3k_10x lung_luad_kim2020_2000genes pbmc_hao2021_1000cells_unlabelled; do
		need scrna/$f.h5ad
		$PYTHON "$REF/unlog.py" "$SHARED/scrna/$f.h5ad" 100 1e4 median 1e6
	done
}

@test "values: a file that has genes for cells is refused, in every format; obs may name a gene for each cell" {
	make_files '
codes = ["".join("ACGT"[i >> 2 * k & 3] for k in range(16)) + "-1" for i in range(60)]
def turned(name, obs, **columns):
    a = ad.AnnData(x.T.copy(), obs=pd.DataFrame(columns, index=obs), var=pd.DataFrame(index=codes))
    a.write_h5ad(name + ".h5ad")
    subprocess.run([sys.executable, os.environ["REF"] + "/as_zarr.py", name + ".h5ad", name + ".zarr"], check=True)
    with h5py.File(name + ".loom", "w") as f:
        f["matrix"], f["row_attrs/CellID"], f["col_attrs/Gene"] = x, np.array(codes, "S"), np.array(obs, "S")
        for k, v in columns.items():
            f["col_attrs/" + k] = np.array(v, "S")
        f.create_group("layers")
symbols = ["G%d" % i for i in range(40)]
turned("by_id", ids)
b = ad.AnnData(x.T.copy(), obs=pd.DataFrame(index=ids), var=pd.DataFrame(index=["cell%d" % i for i in range(60)]))
b.write_h5ad("by_number.h5ad")
adt = adata(x, ["CD%d-%s" % (i, c[:12]) for i, c in enumerate(codes[:40])])
adt.obs_names = codes
adt.write_h5ad("adt.h5ad")
turned("by_column", symbols, gene_ids=ids)
turned("by_barcode", symbols)
a = adata(x, symbols)
a.obs["target"] = pd.Categorical([ids[i % 25] for i in range(60)])
a.obs["text"] = [ids[i % 25] for i in range(60)]
a.write_h5ad("screen.h5ad")
a.obs["own"] = ["ENSG%011d" % i for i in range(60)]
a.write_h5ad("own.h5ad")'
	for f in by_{id,column,barcode}.{h5ad,zarr,loom}; do refused "$f transpose adata.T" h5tok "$f"; done
	run -1 h5tok --explain by_id.h5ad
	assert_line --partial $'by_id.h5ad\terror\t'
	run -0 h5tok screen.h5ad -o a.counts
	# pseudobulks of knockouts have ids, too; barcodes of antibodies stand beside those of cells
	for f in own by_number; do
		run -0 h5tok $f.h5ad -o a.counts
		names "warning $f.h5ad transpose"
	done
	run -0 h5tok --gene-column index own.h5ad -o a.counts
	refute_output --partial transpose
	run -0 h5tok adt.h5ad -o a.counts
	refute_output --partial transpose
}

@test "values: values that are logged twice are refused with --round too; small counts with fractions are not" {
	make_files '
y = np.log1p(np.log1p(x / x.sum(1, keepdims=True) * 1e4))
everywhere("twice", y.astype("f4"))
z = np.minimum(x, 8).astype("f8")
z[:, ::10] *= r.uniform(.7, 1, z[:, ::10].shape)
everywhere("small", z.astype("f4"))'
	for f in $(everywhere twice); do
		for o in "" --round --unlog; do
			refused "$f normalised .raw" h5tok $o "$f"
			refute_output --partial "need --round"
		done
	done
	run -0 h5tok --layer X --round twice.h5ad -o a.counts # the user's word
	for f in $(everywhere small); do run -0 h5tok --round "$f" -o a.counts; done
}

@test "values: an id and a symbol in one name are split, whichever comes first" {
	make_files '
for i, name in enumerate(["%s_%s", "%s|%s", "%s.3:%s"]):
    adata(x, [name % (g, "S%d" % k) for k, g in enumerate(ids)]).write_h5ad("id%d.h5ad" % i)
    adata(x, [name.replace(".3", "") % ("S%d" % k, g) for k, g in enumerate(ids)]).write_h5ad("symbol%d.h5ad" % i)'
	for f in {id,symbol}{0,1,2}.h5ad; do
		h5tok -q $f -o a.counts
		assert_equal "$(scview --vocab a.counts | sed -n '2p;41p' | cut -f 2,3 | paste -sd,)" $'ENSG00000000000\tS0,ENSG00000000039\tS39'
		same $f
	done
}

@test "values: cells that a column of obs says not to take are a note and a row, with the condition of scsample" {
	make_files '
yes = np.arange(60) % 4 > 0
for i, (name, v) in enumerate([("is_primary_data", yes), ("is_primary_data", pd.Categorical(np.where(yes, "True", "False"))), ("filter_pass", yes.astype(int)),
                               ("filter_pass", yes.astype(float)), ("is_primary_data", [True] * 60), ("is_primary", yes)]):
    a = adata(x)
    a.obs[name] = v
    a.write_h5ad("t%d.h5ad" % i)'
	for f in t{0..3}.h5ad; do
		run -0 h5tok $f -o a.counts
		names "note: $f 15 of 60 scsample --where"
		refute_output --partial warning
		condition=$(h5tok --explain $f | awk -F'\t' '$2 == "refused_cells"' | grep -o "'.*'" | tr -d "'")
		assert_equal "$(scsample --where "$condition" a.counts | scview -c barcode | tail -n +2 | wc -l)" 45
	done
	for f in t{4,5}.h5ad; do
		h5tok --explain $f >explained
		run -1 grep refused_cells explained
	done
}

@test "values: nan and inf are named with cell and gene in every format, and genes without a name with their number" {
	make_files '
for name, v in ("nan", np.nan), ("inf", np.inf), ("minus", -2):
    y = x.copy()
    y[12, 7] = v
    everywhere(name, y)
big = np.zeros((150000, 40), "f4")
big[:, [0, 9, 10]] = 1 + np.arange(150000)[:, None] % 30
big[30000, 5] = .5 # where nobody looks first
for name, layout in ("rows", sp.csr_matrix), ("dense", np.asarray):
    adata(layout(big)).write_h5ad("late_%s.h5ad" % name)
a = adata(sp.csr_matrix(big))
a.X.data[a.X.data == .5] = np.nan
a.write_h5ad("late_nan.h5ad")
with h5py.File("late_across.loom", "w") as f:
    f.create_dataset("matrix", data=big.T, chunks=(40, 64))
    f["col_attrs/CellID"], f["row_attrs/Gene"] = np.arange(150000), np.array(ids, "S")
symbols = ["S%d" % i for i in range(40)]
adata(x, [""] * 40, symbol=symbols).write_h5ad("empty.h5ad")
adata(x, ids[:30] + ["nan"] * 10, symbol=symbols).write_h5ad("part.h5ad")
adata(x, ["nan"] * 40).write_h5ad("none.h5ad")
adata(x, symbols).write_h5ad("symbols.h5ad")'
	for what in nan inf minus; do
		for f in $(everywhere $what | sed 's/ [^ ]*_mtx//'); do refused "$f cell 12 gene 7" h5tok $f; done
	done
	for f in late_{rows,dense}.h5ad late_across.loom; do refused "$f cell 30000 gene 5 0.5" h5tok $f; done
	refused "late_nan.h5ad cell 30000 gene 5 nan leave" h5tok late_nan.h5ad
	refused "none.h5ad 40 of 40 --gene-column" h5tok none.h5ad
	for f in empty:40 part:10; do
		run -0 h5tok ${f%:*}.h5ad -o a.counts
		names "note: ${f%:*}.h5ad ${f#*:} of 40 var/symbol"
		h5tok --explain ${f%:*}.h5ad | grep -P "\tnamed_by_symbol\t${f#*:} of 40.*var/symbol"
	done
	h5tok --explain symbols.h5ad | grep -P '\tsymbols\t.*symbols'
}
