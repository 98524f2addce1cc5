# h5tok's rules of thumb (which matrix, which column, when to warn): one file on each side of every threshold.
load helper

setup_file() {
	need_tool h5tok scview
	cd "$BATS_FILE_TMPDIR"
	cat >make.py <<-'P'
		"""PATH CODE: write a file of $CELLS (60) cells and 8 genes, after CODE has changed the AnnData a"""
		import os, sys, warnings
		warnings.simplefilter("ignore")
		import anndata as ad, numpy as np, pandas as pd
		n = int(os.environ.get("CELLS", 60))
		x = np.random.default_rng(0).integers(1, 30, (n, 8))
		a = ad.AnnData(x.astype(np.float32), obs=pd.DataFrame(index=[f"cell{i}" for i in range(n)]),
		               var=pd.DataFrame(index=[f"gene{i}" for i in range(8)]))
		total = x.sum(1)
		exec(sys.argv[2])
		a.write_h5ad(sys.argv[1])
	P
}

setup() { cd "$BATS_FILE_TMPDIR"; }

make_file() { $PYTHON make.py "$@"; }

# warns TEXT FILE, silent TEXT FILE: has h5tok a warning with this text?
warns() {
	run -0 h5tok "$2" -o out.counts
	assert_line --partial "warning: $2: $1"
}
silent() {
	run -0 h5tok "$2" -o out.counts
	refute_output --partial "$1"
}

@test "thresholds: a column is the sum of the counts if it is in nine of ten cells" {
	for case in 60:6 65:6 69:6; do
		CELLS=${case%:*} make_file a.h5ad "a.obs['n_counts'] = total + (np.arange(n) < ${case#*:})"
		warns "obs/n_counts is the sum of the counts, but not in ${case#*:} of ${case%:*} cells" a.h5ad
	done
	for case in 60:7 65:7 69:7; do
		CELLS=${case%:*} make_file a.h5ad "a.obs['n_counts'] = total + (np.arange(n) < ${case#*:})"
		silent "sum of the counts" a.h5ad
	done
}

@test "thresholds: a sum may be off by a millionth of the counts, as float32 is, and by no more" {
	million='a.X[3] = [1000000, 0, 0, 0, 0, 0, 0, 0]; total[3] = 1000000; a.obs["total_counts"] = total'
	make_file a.h5ad "$million + (np.arange(n) == 3)"
	silent "sum of the counts" a.h5ad
	make_file a.h5ad "$million + 2 * (np.arange(n) == 3)"
	warns "obs/total_counts is the sum of the counts, but not in 1 of 60 cells: in cell 3 ('cell3') it is 1000002, and the counts sum to 1000000" a.h5ad
	make_file a.h5ad "$million - 2 * (np.arange(n) == 3)"
	warns "obs/total_counts is the sum of the counts, but not in 1 of 60 cells" a.h5ad
	# one count of two thousand
	make_file a.h5ad 'a.X[3] = [1993, 1, 1, 1, 1, 1, 1, 1]; total[3] = 2000; a.obs["raw_sum"] = total + (np.arange(n) == 3)'
	warns "obs/raw_sum is the sum of the counts, but not in 1 of 60 cells" a.h5ad
	# the sum of large counts as float32
	make_file a.h5ad 'a.X[3] = [16777216, 1, 0, 0, 0, 0, 0, 0]; total[3] = 16777217; a.obs["nCount_RNA"] = total.astype(np.float32)'
	silent "sum of the counts" a.h5ad
}

# bats test_tags=slow
@test "thresholds: a repeated name is found wherever its hash is among those of all cells" {
	for i in $(seq 0 9); do
		CELLS=11 make_file a.h5ad "a.obs_names = [f'cell{i}' for i in range(10)] + ['cell$i']"
		warns "1 cell has the name of another cell, such as cells $i and 10 ('cell$i')" a.h5ad
	done
	CELLS=11 make_file a.h5ad ""
	silent "name of another cell" a.h5ad
}

@test "thresholds: a column of var has the ids if half of its names are Ensembl ids" {
	ids() { echo "[f'ENSG0000000000{i}' if i < $1 else f'name{i}' for i in range(8)]"; }
	source_of() { h5tok "$1" -o out.counts 2>&1 | sed -n 's/.*gene ids from //p'; }
	make_file a.h5ad "a.var['gene_ids'] = $(ids 4)"
	assert_equal "$(source_of a.h5ad)" "var/gene_ids"
	assert_equal "$(scview --vocab out.counts | awk 'NR == 9 { print $2, $3 }')" "name7 gene7"
	make_file a.h5ad "a.var['gene_ids'] = $(ids 3)"
	assert_equal "$(source_of a.h5ad)" "var index (not Ensembl ids)"
	make_file a.h5ad "a.var_names = $(ids 4); a.var['gene_ids'] = $(ids 8)"
	assert_equal "$(source_of a.h5ad)" "var index"
	make_file a.h5ad "a.var_names = $(ids 3); a.var['gene_ids'] = $(ids 8)"
	assert_equal "$(source_of a.h5ad)" "var/gene_ids"
	# a likely name comes before another column
	make_file a.h5ad "a.var['anything'] = $(ids 8); a.var['feature_id'] = $(ids 4)"
	assert_equal "$(source_of a.h5ad)" "var/feature_id"
	make_file a.h5ad "a.var['anything'] = $(ids 8); a.var['feature_id'] = $(ids 3)"
	assert_equal "$(source_of a.h5ad)" "var/anything"
}

# bats test_tags=slow
@test "thresholds: a matrix of ones gives way to the first with a larger value, and to no other" {
	matrix() { h5tok "$1" -o out.counts 2>&1 | sed -n 's/.*counts from \(.*\), gene ids.*/\1/p'; }
	most() { echo "np.minimum(a.X, $1)"; }
	make_file a.h5ad "a.layers['counts'] = $(most 1); a.layers['raw_counts'] = $(most 1); a.X = $(most 1)"
	assert_equal "$(matrix a.h5ad)" "X"
	make_file a.h5ad "a.layers['counts'] = $(most 2); a.X = $(most 1)"
	assert_equal "$(matrix a.h5ad)" "layers/counts"
	make_file a.h5ad "a.layers['counts'] = a.X.copy(); a.X = $(most 2)"
	assert_equal "$(matrix a.h5ad)" "X"
	make_file a.h5ad "a.layers['counts'] = $(most 1); a.layers['raw_counts'] = $(most 2); a.layers['raw'] = a.X.copy(); a.X = $(most 0)"
	assert_equal "$(matrix a.h5ad)" "layers/raw_counts"
	make_file a.h5ad "a.layers['counts'] = $(most 1); a.X = $(most 0)"
	assert_equal "$(matrix a.h5ad)" "layers/counts"
	make_file a.h5ad "a.X = $(most 1)"
	warns "X: no value above 1 among those looked at" a.h5ad
	make_file a.h5ad "a.X = $(most 2)"
	silent "among those looked at" a.h5ad
}

@test "thresholds: rows of any length, at the borders of the runs that are read at once, have their counts and their sum" {
	$PYTHON - <<-'P'
		import anndata as ad, numpy as np, scipy.sparse as sp, warnings
		warnings.simplefilter("ignore")
		r = np.random.default_rng(0)
		lengths = [0, 1, 255, 256, 257, 258, 511, 512, 513, 514, 1023, 1024, 1025, 1100]
		x = np.zeros((len(lengths), 1100), np.float32)
		for row, n in zip(x, lengths):
		    row[r.permutation(1100)[:n]] = r.integers(1, 1000, n)
		for name, layout in ("csr", sp.csr_matrix), ("csc", sp.csc_matrix), ("dense", np.asarray):
		    a = ad.AnnData(layout(x))
		    a.var_names = [f"g{i}" for i in range(1100)]
		    a.write_h5ad(f"long_{name}.h5ad")
		np.savetxt("sums", x.sum(1), "%d")
		np.savetxt("lengths", lengths, "%d")
	P
	for layout in csr csc dense; do
		h5tok -q long_$layout.h5ad -o long.counts
		scview -c n_counts long.counts | tail -n +2 | cmp - sums
		scview -c gene long.counts | tail -n +2 | awk '{ print NF }' | cmp - lengths
		scview -c count long.counts | tail -n +2 | awk '{ s = 0; for (i = 1; i <= NF; i++) s += $i; print s }' | cmp - sums
	done
}

@test "thresholds: --round warns below a largest value of 20, if most values are fractions" {
	round_it() { run -0 h5tok --round a.h5ad -o out.counts; }
	fraction='a.X = np.where(a.X > 0, np.maximum(a.X - r.uniform(.01, .3, a.X.shape), 0), 0)'
	make_file a.h5ad "r = np.random.default_rng(2); a.X = np.minimum(a.X, 18); $fraction; a.X[0, 0] = 19.25"
	round_it
	assert_output --regexp "warning: .* none is above 20"
	make_file a.h5ad "r = np.random.default_rng(2); a.X = np.minimum(a.X, 18); $fraction; a.X[0, 0] = 20.25"
	round_it
	refute_output --partial warning
	make_file a.h5ad "a.X = np.minimum(a.X, 19); a.X[0, 0] = 1.25; a.X[1, 1] = 2.375"
	round_it
	refute_output --partial warning
	make_file a.h5ad "a.X = np.zeros_like(a.X)"
	round_it
	assert_output --partial "no value above 0 among those looked at: is it empty?"
}
