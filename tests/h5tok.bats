load helper

setup_file() {
	need_tool h5tok scview
	cd "$BATS_FILE_TMPDIR"
	$PYTHON -W ignore "$BATS_TEST_DIRNAME/../data/make_layouts.py" .
	"$BIN/h5tok" -q csr_gzip.h5ad -o ok.counts
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

# fails MESSAGE COMMAND...: exit status 1, the message, and no output file
fails() {
	local message=$1
	shift
	rm -f never.counts
	run "$@" -o never.counts
	assert_failure 1
	names "$message"
	assert_equal "$(grep -vcE ': warning:| cells x | genes have the same id | genes .* are in | left out: ' <<<"$output")" 1
	assert_file_not_exist never.counts
}

@test "h5tok: every layout gives the cells, genes, counts and annotation it was made from, on one thread and three" {
	for e in *.expected; do
		f=${e%.expected}
		case $f in layer*) o="--layer counts" ;; tenx2*) o="--modality GRCh38" ;; *) o= ;; esac
		h5tok -q $o "$f" -o a.counts
		h5tok -q $o "$f" -@3 -u >b.counts
		scview --gene-names id -c "$(head -1 "$e" | tr '\t' ,)" a.counts >a.tsv
		scview --gene-names id -c "$(head -1 "$e" | tr '\t' ,)" b.counts >b.tsv
		cmp "$e" a.tsv || { echo "$f differs"; diff "$e" a.tsv | head -4; return 1; }
		cmp a.tsv b.tsv
	done
	assert [ "$(ls ./*.expected | wc -l)" -ge 28 ]
}

@test "h5tok: the same bytes on one, two and three threads" {
	for f in csr_gzip csc_gzip dense_gzip; do
		for t in 1 2 3; do h5tok -q -@$t $f.h5ad -o $t.counts; done
		cmp 1.counts 2.counts
		cmp 1.counts 3.counts
	done
}

@test "h5tok: help, version, misuse" {
	run h5tok --help
	assert_success
	assert_line --index 0 "Usage: h5tok [OPTION...] FILE..."
	run h5tok --version
	assert_output --partial "HDF5"
	run h5tok </dev/null
	assert_failure 2
	assert_output --partial "name a file"
	run h5tok --nonsense csr_gzip.h5ad
	assert_failure 2
}

@test "h5tok: obs columns are chosen by name; a missing one is an error" {
	h5tok -q --obs donor,age csr_gzip.h5ad | scview -n1 >t
	assert_equal "$(head -1 t)" "$(printf 'cell\tbarcode\tn_counts\tage\tdonor\tgene\tcount')"
	h5tok -q --obs none csr_gzip.h5ad | scview -n1 >t
	assert_equal "$(head -1 t)" "$(printf 'cell\tbarcode\tn_counts\tgene\tcount')"
	fails "csr_gzip.h5ad tissue" h5tok --obs tissue csr_gzip.h5ad
	assert_output --partial "age"
	run -0 h5tok -q --list-obs csr_gzip.h5ad
	assert_line -n 0 $'column\ttype\tcategories'
	assert_line $'age\ti64\t'
	assert_line --regexp $'^donor\tcategorical\t[0-9]+$'
	refute_output --partial "barcode"
}

@test "h5tok: several files share one table of genes and all columns" {
	h5tok -q csr_gzip.h5ad tenx3.h5 versions.h5ad -o several.counts
	scview --check several.counts
	scview --gene-names id -c cell,cell_type,age,donor,gene several.counts >t
	assert_equal "$(wc -l <t)" 70
	assert_equal "$(awk -F'\t' 'NR > 1 && $1 != NR - 2' t | wc -l)" 0
	# the 10x file has no annotation: missing, in every type
	assert_equal "$(sed -n 26p t | cut -f2-4)" "$(printf 'NA\tNA\tNA')"
	assert_equal "$(sed -n 2p t | cut -f2-5)" "$(sed -n 2p csr_gzip.h5ad.expected | cut -f4,6,8,9)"
	assert_equal "$(scview --vocab several.counts | wc -l)" 41
	# the genes of a cell are the same whichever file it came from
	assert_equal "$(sed -n 3p t | cut -f5)" "$(sed -n 26p t | cut -f5)"
}

@test "h5tok --sample-column: a column and barcodes that tell the files apart, also those that Cell Ranger names alike" {
	for s in s1 s2; do
		mkdir -p $s/outs
		cp tenx3.h5 $s/outs/filtered_feature_bc_matrix.h5
	done
	h5tok -q --sample-column sample s1/outs/filtered_feature_bc_matrix.h5 s2/outs/filtered_feature_bc_matrix.h5 csr_gzip.h5ad -o samples.counts
	scview -c barcode,sample samples.counts | tail -n +2 >t
	assert_equal "$(cut -f2 t | uniq | paste -sd ' ')" "s1 s2 csr_gzip"
	assert_equal "$(cut -f1 t | sort | uniq -d)" ""
	assert_equal "$(sed -n 1p t)" "$(h5tok -q tenx3.h5 | scview -c barcode -n1 | tail -1)-s1	s1"
	# from inside: the names of the folders
	assert_equal "$(cd s1 && h5tok -q --sample-column sample outs/filtered_feature_bc_matrix.h5 | scview -c sample | sed -n 2p)" s1
	# the same name twice: the path
	mkdir -p copy
	cp tenx3.h5 copy
	h5tok -q --sample-column sample tenx3.h5 copy/tenx3.h5 | scview -c sample | tail -n +2 | uniq >t
	assert_equal "$(paste -sd ' ' t)" "tenx3 copy/tenx3.h5"
	fails "tenx3.h5 twice" h5tok --sample-column sample tenx3.h5 tenx3.h5
	fails "'cell' every" h5tok --sample-column cell tenx3.h5
	fails "clashes with another column" h5tok --sample-column donor csr_gzip.h5ad
}

@test "h5tok: files that share no gene get a warning with ids of both" {
	for ids in ENSG ENSMUSG; do
		scsim -q --cells 20 --genes 100 --seed 1 -o ids.counts
		scview -O h5ad -o $ids.h5ad ids.counts
		$PYTHON -W ignore -c 'import anndata, sys
a = anndata.read_h5ad(sys.argv[1] + ".h5ad")
a.var_names = [sys.argv[1] + "%011d" % i for i in range(a.n_vars)]
a.write_h5ad(sys.argv[1] + ".h5ad")' $ids
	done
	run -0 h5tok ENSG.h5ad ENSMUSG.h5ad -o both.counts
	assert_line --regexp "warning: ENSMUSG.h5ad: shares no gene with the files before it: another species, or other ids\? Ids here are like 'ENSMUSG[0-9]+', there like 'ENSG[0-9]+'"
	cp ENSG.h5ad same.h5ad
	run -0 h5tok ENSG.h5ad same.h5ad -o both.counts
	refute_output --partial species
}

@test "h5tok: a gene that one file names by symbol and another by Ensembl id is one gene, whichever file comes first" {
	scsim -q --cells 10 --genes 200 --depth 3000 --seed 1 | scview -q -O h5ad -o sim.h5ad
	$PYTHON -W ignore - <<-'P'
		import anndata
		a, symbols = anndata.read_h5ad("sim.h5ad")[:, :20].copy(), ["S%d" % i for i in range(20)]
		a.var, a.var_names = a.var[[]], ["ENSG%011d" % i for i in range(20)]
		a.write_h5ad("ids.h5ad")
		a.var["feature_name"] = symbols[:18] + ["S17", "S0"]
		a.write_h5ad("named.h5ad")
		a.var, a.var_names = a.var[[]], symbols
		a[:, 1:19].write_h5ad("symbols.h5ad")
	P
	for files in "symbols named" "named symbols" "ids named symbols"; do
		read -ra of <<<"$files"
		run -0 h5tok "${of[@]/%/.h5ad}" -o joined.counts
		assert_line --regexp "symbol: 16$"
		refute_output --partial species
		scview -q -O h5ad -o joined.h5ad joined.counts
		$PYTHON -W ignore - "${of[@]}" <<-'P'
			import anndata, sys
			joined, same = anndata.read_h5ad("joined.h5ad"), ["ENSG%011d" % i for i in range(1, 17)]
			assert sorted(joined.var_names) == ["ENSG%011d" % i for i in range(20)] + ["S17", "S18"]
			for n, name in enumerate(sys.argv[1:]):
			    a, part = anndata.read_h5ad(name + ".h5ad"), joined[10 * n:10 * n + 10]
			    assert (part[:, same].X.toarray() == a.X[:, 1 - (name == "symbols"):].toarray()[:, :16]).all()
			    assert (part.X.sum(1) == a.X.sum(1)).all()
		P
	done
}

@test "h5tok: gene ids through a mapping table, with the share that matched" {
	printf 'key\tgene_id\n' >map.tsv
	for g in $(seq 0 39); do printf 'GENE%d\tENSG%011d\n' $g $((100 + 7 * (g / 2))); done >>map.tsv
	run h5tok --gene-column symbol --map map.tsv csr_gzip.h5ad -o mapped.counts
	assert_success
	names "40 100.0 map.tsv"
	names "20 genes id"
	assert_equal "$(scview --vocab mapped.counts | wc -l)" 21
	# sums of pairs: n_counts stay
	assert_equal "$(scview -c n_counts mapped.counts)" "$(cut -f3 csr_gzip.h5ad.expected)"
	gzip -kf map.tsv
	h5tok -q --gene-column symbol --map map.tsv.gz csr_gzip.h5ad | scview >a
	scview mapped.counts | cmp - a
	head -6 map.tsv >few.tsv
	fails "12.5 few.tsv 20" h5tok --gene-column symbol --map few.tsv csr_gzip.h5ad
	printf 'a\tb\tc\n' >bad.tsv
	fails "bad.tsv 1 two columns" h5tok --map bad.tsv csr_gzip.h5ad
}

@test "h5tok: a matrix without values, or of ones alone, gives way to one with counts" {
	$PYTHON -c "
import h5py, shutil
for name, value in ('zeros', 0), ('ones', 1), ('all_zeros', 0), ('all_ones', 1):
    shutil.copy('normalised.h5ad', name + '.h5ad')
    with h5py.File(name + '.h5ad', 'r+') as f:
        f['X'][:] = value
        if name.startswith('all'):
            del f['layers']"
	h5tok -q normalised.h5ad | scview >a
	for f in zeros ones; do
		run -0 h5tok $f.h5ad -o b.counts
		assert_output --regexp 'counts from layers/counts, gene ids from var index$'
		scview b.counts | cmp a -
	done
	run -0 h5tok all_zeros.h5ad -o b.counts
	names "warning: all_zeros.h5ad X 0"
	run -0 h5tok all_ones.h5ad -o b.counts
	names "warning: all_ones.h5ad X 1"
	h5tok -q --layer X ones.h5ad | scview -s >s
	grep -x 'count	max	1' s
	# layers that are not looked at may hold counts; an empty X is taken only by its name, and X is not empty if one value is far away
	$PYTHON -c "
import h5py, numpy as np, shutil
shutil.copy('zeros.h5ad', 'mature.h5ad')
with h5py.File('mature.h5ad', 'r+') as f:
    f.move('layers/counts', 'layers/mature')
with h5py.File('far.h5ad', 'w') as f:
    for k, m in (('obs', 5000), ('var', 100)):
        f[k + '/index'] = np.array(['%s%d' % (k, i) for i in range(m)], dtype='S')
        f[k].attrs['_index'] = 'index'
    x = np.zeros((5000, 100), 'f4')
    x[1500, 7] = 30
    for k in 'X', 'layers/other':
        f.create_dataset(k, data=x, chunks=(5000, 10) if k == 'X' else None)"
	fails "X --layer mature" h5tok mature.h5ad
	run -1 h5tok --explain mature.h5ad
	assert_line $'mature.h5ad\tlayers\tmature, more'
	$PYTHON -c "
import h5py, shutil
shutil.copy('mature.h5ad', 'nothing.h5ad')
shutil.copy('mature.h5ad', 'small.h5ad')
with h5py.File('nothing.h5ad', 'r+') as f, h5py.File('small.h5ad', 'r+') as g:
    for m in f['layers'].values():
        (m if isinstance(m, h5py.Dataset) else m['data'])[:] = 0
    x = g['layers/mature'] if isinstance(g['layers/mature'], h5py.Dataset) else g['layers/mature/data']
    x[:] = x[:] / 1e7
    del g['X']
    g.move('layers/mature', 'X')"
	run -0 h5tok nothing.h5ad -o b.counts
	names "warning: nothing.h5ad X 0"
	# small numbers are not empty
	run h5tok --unlog small.h5ad -o b.counts
	refute_output --partial empty
	run -0 h5tok --layer X mature.h5ad -o b.counts
	names "warning: mature.h5ad X 0"
	h5tok -q --layer mature mature.h5ad | scview | cmp a -
	for o in "" "--layer other"; do
		run -0 h5tok $o far.h5ad -o b.counts
		refute_output --partial warning
	done
}

@test "h5tok: a file that another program writes is refused, and not called damaged" {
	cp csr_gzip.h5ad written.h5ad
	run -0 $PYTHON -c "
import h5py, subprocess
with h5py.File('written.h5ad', 'r+'):
    print(subprocess.run(['h5tok', 'written.h5ad', '-o', 'never.counts'], capture_output=True, text=True).stderr)"
	names "written.h5ad writing close"
	refute_output --partial damaged
}

@test "h5tok: options that the kind of file has no use for are refused" {
	fails "tenx3.h5 --layer 10x" h5tok --layer counts tenx3.h5
	fails "tenx3.h5 --gene-column 10x" h5tok --gene-column symbol tenx3.h5
	for f in tenx3.h5 csr_gzip.h5ad; do fails "$f --modality meaning" h5tok --modality GRCh38 $f; done
}

@test "h5tok: no raw counts is an error that says what was looked at" {
	$PYTHON -c "
import h5py, shutil
shutil.copy('normalised.h5ad', 'none.h5ad')
with h5py.File('none.h5ad', 'r+') as f:
    f.move('layers/counts', 'layers/other')"
	fails "raw/X X log-transformed" h5tok none.h5ad
	fails "--layer more other --unlog" h5tok none.h5ad
	fails "normalised.h5ad spliced X" h5tok --layer spliced normalised.h5ad
	$PYTHON -c "
import h5py, shutil
shutil.copy('normalised.h5ad', 'only.h5ad')
with h5py.File('only.h5ad', 'r+') as f:
    del f['layers']"
	for name in counts raw/X; do fails "only.h5ad $name X" h5tok --layer $name only.h5ad; done
	h5tok -q --layer X csr_gzip.h5ad -o x.counts
	fails "nothing symbol ensembl_id" h5tok --gene-column nothing csr_gzip.h5ad
	fails "2 GRCh38 mm10" h5tok tenx2.h5
	fails "hg19 GRCh38 mm10" h5tok --modality hg19 tenx2.h5
}

@test "h5tok: a layer called counts is found where X is normalised" {
	run -0 h5tok normalised.h5ad -o found.counts
	assert_output --partial "counts from layers/counts"
	h5tok -q --layer counts normalised.h5ad -o named.counts
	cmp <(scview found.counts) <(scview named.counts)
	# but not before an X that holds counts
	$PYTHON -c "
import h5py, shutil
shutil.copy('normalised.h5ad', 'both.h5ad')
with h5py.File('both.h5ad', 'r+') as f:
    f.move('X', 'layers/normalised')
    f.copy('layers/counts', 'X')"
	run -0 h5tok both.h5ad -o found.counts
	assert_output --partial "counts from X"
}

# fractions FILE: csr, csc, dense, 10x and text files of the same counts with fractions, and fractions.tsv, what rounding makes of them
fractions() {
	$PYTHON -W ignore - <<-'END'
	import anndata, gzip, h5py, numpy as np, os, scipy.io, scipy.sparse as sp
	rng = np.random.default_rng(3)
	x = rng.poisson(3, (30, 12)) * rng.choice([1, .5, .25, .9], (30, 12)).astype(np.float32)
	x[0, 0], x[1, 1], x[2, 2] = 2.5, 3.5, 250.2
	ids = ["ENSG%011d" % i for i in range(12)]
	for name, m in ("csr", sp.csr_matrix(x)), ("csc", sp.csc_matrix(x)), ("dense", x.astype(np.float64)):
	    a = anndata.AnnData(shape=m.shape)
	    a.X = m
	    a.var_names = ids
	    a.write_h5ad("fractions_%s.h5ad" % name)
	t = sp.csr_matrix(x)
	with h5py.File("fractions_10x.h5", "w") as f:
	    g = f.create_group("matrix")
	    g["data"], g["indices"], g["indptr"], g["shape"] = t.data, t.indices, t.indptr, np.array([12, 30])
	    g["barcodes"] = np.array([str(i) for i in range(30)], "S")
	    for k in "id", "name":
	        g["features/" + k] = np.array(ids, "S")
	os.makedirs("fractions_mtx", exist_ok=True)
	scipy.io.mmwrite("fractions_mtx/matrix.mtx", sp.coo_matrix(x.T))
	open("fractions_mtx/features.tsv", "w").write("".join("%s\t%s\tGene Expression\n" % (i, i) for i in ids))
	open("fractions_mtx/barcodes.tsv", "w").write("".join("%d\n" % i for i in range(30)))
	with open("fractions.tsv", "w") as f:
	    f.write("barcode\tn_counts\tgene\tcount\n")
	    for i, row in enumerate(np.rint(x).astype(int)):
	        j = np.flatnonzero(row)
	        f.write("%d\t%d\t%s\t%s\n" % (i, row.sum(), " ".join(ids[k] for k in j), " ".join(map(str, row[j]))))
	END
}

@test "h5tok --round: fractional counts of every layout are rounded as numpy rounds them, and the provenance says so" {
	fractions
	for f in fractions_csr.h5ad fractions_csc.h5ad fractions_dense.h5ad fractions_10x.h5 fractions_mtx; do
		fails "" h5tok $f
		h5tok -q --round $f -o rounded.counts
		scview -c barcode,n_counts,gene,count --gene-names id rounded.counts | diff - fractions.tsv || fail "$f"
	done
	run -0 scview -H rounded.counts
	assert_output --regexp '"options":[[:space:]]*"--round"'
	# whole counts stay
	h5tok -q --round csr_gzip.h5ad | scview >a
	h5tok -q csr_gzip.h5ad | scview | cmp - a
	$PYTHON -c "
import h5py
with h5py.File('fractions_csr.h5ad', 'r+') as f:
    f['X/data'][:] = f['X/data'][:].clip(0, 75) / 5"
	run -0 h5tok --round fractions_csr.h5ad -o rounded.counts
	names "warning: fractions_csr.h5ad X 20"
	$PYTHON -c "
import h5py
with h5py.File('fractions_csr.h5ad', 'r+') as f:
    f['X/data'][3] = -.5"
	fails "a negative value" h5tok --round fractions_csr.h5ad
}

# scaled NAME: NAME.h5ad (rows), NAME_csc.h5ad, NAME_dense.h5ad, NAME.h5 and NAME_mtx with one set of values
scaled() {
	$PYTHON -W ignore - "$@" <<-'END'
	import anndata, h5py, numpy as np, os, scipy.io, scipy.sparse as sp, sys
	how = sys.argv[1]
	rng = np.random.default_rng(4)
	x = rng.negative_binomial(.5, .1, (40, 60)).astype(float) # mean 4.5, half of them 0
	total = x.sum(1, keepdims=True)
	cp10k = x / total * 1e4
	rate = x / rng.uniform(.5, 2, 60)
	base, _, kind = how.partition("-")
	x = {"cp10k": cp10k, "median": x / total * np.median(total), "log1p": np.log1p(cp10k), "log2": np.log2(1 + cp10k), "log10": np.log10(1 + cp10k),
	     "logcounts": np.log1p(x), "tpm": rate / rate.sum(1, keepdims=True) * 1e6,
	     "factors": x / rng.uniform(.3, 3, (40, 1)), "soupx": np.maximum(x - rng.uniform(0, .3, x.shape), 0), "decontx": x * rng.uniform(.6, 1, x.shape),
	     "ambient": np.maximum(x - .2 * (rng.random(x.shape) < .3) * total / 60, 0), "half": np.floor(x) + .5 * (rng.random(x.shape) < .3)}[base]
	x = x.astype(np.float32)
	ids = ["ENSG%011d" % i for i in range(60)]
	for name, m in ("", sp.csr_matrix(x)), ("_csc", sp.csc_matrix(x)), ("_dense", x):
	    a = anndata.AnnData(shape=m.shape)
	    a.X = m
	    a.var_names = ids
	    a.write_h5ad("%s%s.h5ad" % (how, name))
	t = sp.csr_matrix(x)
	with h5py.File(how + ".h5", "w") as f:
	    g = f.create_group("matrix")
	    g["data"], g["indices"], g["indptr"], g["shape"] = t.data, t.indices, t.indptr, np.array([60, 40])
	    g["barcodes"] = np.array([str(i) for i in range(40)], "S")
	    for k in "id", "name":
	        g["features/" + k] = np.array(ids, "S")
	os.makedirs(how + "_mtx", exist_ok=True)
	scipy.io.mmwrite(how + "_mtx/matrix.mtx", sp.coo_matrix(x.T))
	open(how + "_mtx/features.tsv", "w").write("".join("%s\t%s\tGene Expression\n" % (i, i) for i in ids))
	open(how + "_mtx/barcodes.tsv", "w").write("".join("%d\n" % i for i in range(40)))
	END
}

# bats test_tags=slow
@test "h5tok --round: normalised and logged values of every layout are refused, and told where raw counts belong; counts with fractions are not" {
	for how in cp10k median tpm factors log1p log2 log10 logcounts; do
		scaled $how
		case $how in log*) what='log-transformed' ;; *) what=normalised ;; esac
		# of tpm, the counts cannot be had
		case $how in tpm) todo=".raw layers['counts']" ;; *) todo=--unlog ;; esac
		for f in $how.h5ad ${how}_csc.h5ad ${how}_dense.h5ad $how.h5 ${how}_mtx; do
			for o in "" --round; do
				fails "$what ( $todo" h5tok $o $f
				refute_output --partial "need --round"
			done
		done
	done
	fails "X log-transformed 10000" h5tok --round log1p.h5ad
	fails "X normalised multiples" h5tok --round factors.h5ad
	for how in soupx decontx ambient half; do
		scaled $how
		for f in $how.h5ad ${how}_csc.h5ad ${how}_dense.h5ad $how.h5 ${how}_mtx; do
			run -0 h5tok --round $f -o rounded.counts
			refute_output --partial warning
			fails "need --round" h5tok $f
		done
	done
	# where X is normalised, the layer is taken
	run -0 h5tok --round normalised.h5ad -o rounded.counts
	assert_output --partial "counts from layers/counts"
}

@test "h5tok: matrix directories with the prefixes of GEO, one sample or several" {
	mkdir -p geo several
	for f in mtx_gz/*; do cp "$f" "geo/GSM123_s1_${f##*/}"; done
	h5tok -q geo | scview >a
	h5tok -q mtx_gz | scview | cmp - a
	for s in s1 s2; do
		for f in mtx/*; do cp "$f" "several/GSM1_${s}_${f##*/}"; done
	done
	fails "several 2 GSM1_s" h5tok several
	mkdir many
	for i in {10..40}; do cp mtx/matrix.mtx many/GSM_${i}_matrix.mtx; done
	fails "many 31 GSM_" h5tok many
	assert_output --partial "...)"
	h5tok -q --sample-column sample several/GSM1_s1_matrix.mtx several/GSM1_s2_matrix.mtx -o two.counts
	assert_equal "$(scview -c sample two.counts | tail -n +2 | uniq | paste -sd ' ')" "GSM1_s1 GSM1_s2"
	h5tok -q --sample-column sample mtx/matrix.mtx -o one.counts
	assert_equal "$(scview -c sample one.counts | tail -n +2 | uniq)" mtx
	h5tok -q mtx/matrix.mtx | scview | cmp - <(h5tok -q mtx | scview)
	(cd mtx && h5tok -q matrix.mtx | scview) | cmp - <(h5tok -q mtx | scview)
	rm several/GSM1_s1_barcodes.tsv
	fails "several/GSM1_s1_matrix.mtx: no GSM1_s1_barcodes.tsv" h5tok several/GSM1_s1_matrix.mtx
}

@test "h5tok --obs-table: annotation joined by barcode, with types, missing values and every form of table" {
	h5tok -q tenx3.h5 -o plain.counts
	scview -c barcode plain.counts | tail -n +2 | $PYTHON -c "
import sys
for i, b in reversed(list(enumerate(sys.stdin.read().split()))):
    print(b, 'T cell' if i % 3 else 'B, cell', i - 5, i / 4, ['TRUE', 'FALSE', 'NA'][i % 3], 'note %d' % i, '' if i == 2 else i, sep='\t')
print('NOBODY-1', 'x', 0, 0, 'TRUE', 'y', 0, sep='\t')" >body.tsv
	{ printf 'barcode	cell_type	age	score	flag	note	gap
' && cat body.tsv; } >obs.tsv
	{ printf 'cell_type	age	score	flag	note	gap
' && cat body.tsv; } >r.tsv
	$PYTHON -c "
import csv
csv.writer(open('obs.csv', 'w'), quoting=csv.QUOTE_NONNUMERIC).writerows(csv.reader(open('obs.tsv'), delimiter='\t'))"
	gzip -kf obs.csv
	h5tok -q --obs-table obs.tsv tenx3.h5 -o annotated.counts
	run -0 h5tok -q --list-obs --obs-table obs.tsv tenx3.h5
	assert_output - <<-'END'
	column	type	categories
	cell_type	categorical	3
	age	i64	
	score	f64	
	flag	categorical	2
	note	str	
	gap	i64	
	END
	scview -c barcode,cell_type,age,score,flag,note,gap annotated.counts >t
	$PYTHON -c "
n = 0
for i, line in enumerate(open('t').read().splitlines()[1:]):
    assert line.split('\t')[1:] == ['T cell' if i % 3 else 'B, cell', str(i - 5), '%g' % (i / 4), ['True', 'False', 'NA'][i % 3], 'note %d' % i,
                                     'NA' if i == 2 else str(i)], line
    n += 1
assert n > 20"
	for f in r.tsv obs.csv obs.csv.gz; do
		h5tok -q --obs-table $f tenx3.h5 | scview | cmp - <(scview annotated.counts) || fail $f
	done
	# the counts are the same
	cmp <(scview -c cell,barcode,n_counts,gene,count annotated.counts) <(scview plain.counts)
	# only some columns; an .h5ad, whose own columns stay; a table that lacks some cells
	h5tok -q --obs age --obs-table obs.tsv tenx3.h5 | scview -n1 >t
	assert_equal "$(head -1 t)" "$(printf 'cell	barcode	n_counts	age	gene	count')"
	fails "obs.tsv cell_type" h5tok --obs-table obs.tsv csr_gzip.h5ad
	head -4 obs.tsv | cut -f1,6 >few.tsv
	run -0 h5tok --obs-table few.tsv csr_gzip.h5ad tenx3.h5 -o few.counts
	assert_line --regexp "warning: tenx3.h5: 2[0-9] of 2[0-9] barcodes are not in few.tsv: their annotation is missing"
	assert_equal "$(scview -c note few.counts | grep -c '^note [0-9]')" 6
	# two samples with the same barcodes
	awk -F'	' -v OFS='	' 'NR == 1 { print $1, "sex"; next } { print $1 "-s1", "f"; print $1 "-s2", "m" }' obs.tsv >samples.tsv
	mkdir -p s1 s2
	cp tenx3.h5 s1/filtered_feature_bc_matrix.h5
	cp tenx3.h5 s2/filtered_feature_bc_matrix.h5
	h5tok -q --sample-column sample --obs-table samples.tsv s1/filtered_feature_bc_matrix.h5 s2/filtered_feature_bc_matrix.h5 | scview -c sample,sex |
		tail -n +2 | uniq >t
	assert_equal "$(paste -sd ' ' t)" "$(printf 's1	f s2	m')"
}

@test "h5tok --obs-table: tables with faults" {
	printf 'barcode	a
CELLX-1	1
' >t.tsv
	fails "csr_gzip.h5ad t.tsv CELL00-1 CELLX-1" h5tok --obs-table t.tsv csr_gzip.h5ad
	printf 'barcode	a
CELL00-1	1
CELL00-1	1
' >t.tsv
	fails "t.tsv 3 CELL00-1 twice" h5tok --obs-table t.tsv csr_gzip.h5ad
	printf 'barcode	a
CELL00-1	1
CELL01-1	1	2
' >t.tsv
	fails "t.tsv 3 fields 2" h5tok --obs-table t.tsv csr_gzip.h5ad
	printf 'barcode
CELL00-1
' >t.tsv
	fails "t.tsv barcode column" h5tok --obs-table t.tsv csr_gzip.h5ad
	printf 'barcode,a
CELL00-1,"1
' >t.tsv
	fails "t.tsv 2 closed" h5tok --obs-table t.tsv csr_gzip.h5ad
	printf 'barcode	a	a
CELL00-1	1	1
' >t.tsv
	fails "t.tsv 1 'a'" h5tok --obs-table t.tsv csr_gzip.h5ad
	: >t.tsv
	fails "t.tsv: the table is empty" h5tok --obs-table t.tsv csr_gzip.h5ad
	printf 'barcode	a\n\n' >t.tsv
	fails "t.tsv no cells" h5tok --obs-table t.tsv csr_gzip.h5ad
	fails "nowhere.tsv: No such file" h5tok --obs-table nowhere.tsv csr_gzip.h5ad
}

@test "h5tok: blosc compression, where HDF5 has the plugin" {
	$PYTHON -c 'import h5py, sys; sys.exit(not h5py.h5z.filter_avail(32001))' || skip "no blosc plugin (Debian package hdf5-filter-plugin-blosc-serial)"
	cp csr_plain.h5ad with_blosc.h5ad
	$PYTHON -c "
import h5py
with h5py.File('with_blosc.h5ad', 'r+') as f:
    for a in 'X/data', 'X/indices':
        v = f[a][:]
        del f[a]
        f.create_dataset(a, data=v, chunks=(64,), compression=32001, compression_opts=(0, 0, 0, 0, 5, 1, 0))"
	h5tok -q with_blosc.h5ad | scview >a
	h5tok -q csr_plain.h5ad | scview | cmp - a
}

@test "h5tok: Zstandard compression, of numbers and of names" {
	command -v zstd >/dev/null || skip "no zstd command"
	$PYTHON - <<-'END'
	import h5py, numpy as np, shutil, subprocess
	def replace(f, name, filters, pack, chunk):
	    old = f[name]
	    names = old["values"] if isinstance(old, h5py.Group) else old # nullable, from anndata 0.13
	    values, attrs = names.asstr()[:].astype("S40") if names.dtype.kind == "O" else old[:], dict(names.attrs)
	    del f[name]
	    chunk = min(chunk, len(values))
	    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
	    p.set_chunk((chunk,))
	    for code, options in filters:
	        p.set_filter(code, h5py.h5z.FLAG_OPTIONAL, options)
	    d = h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(values.dtype, logical=True),
	                                     h5py.h5s.create_simple(values.shape), p))
	    for at in range(0, len(values), chunk):
	        part = np.zeros(chunk, values.dtype)
	        part[:len(values[at:at + chunk])] = values[at:at + chunk]
	        d.id.write_direct_chunk((at,), pack(part))
	    d.attrs.update(attrs)
	def zstd(part):
	    return subprocess.run(["zstd", "-c", "-3", "--stream-size=%d" % part.nbytes], input=part.tobytes(), stdout=subprocess.PIPE).stdout
	def shuffled(part):
	    return zstd(np.ascontiguousarray(part.view("u1").reshape(-1, part.itemsize).T))
	for name, filters, pack in ("zstd", [(32015, (3,))], zstd), ("zstd_shuffle", [(2, (4,)), (32015, (3,))], shuffled):
	    shutil.copy("csr_plain.h5ad", name + ".h5ad")
	    with h5py.File(name + ".h5ad", "r+") as f:
	        for a in "X/data", "X/indices":
	            replace(f, a, filters, pack, 50)
	        replace(f, "obs/_index", [(32015, (3,))], zstd, 50)
	        replace(f, "obs/age", [(32015, (3,))], zstd, 7)
	END
	for f in zstd zstd_shuffle; do
		h5tok -q $f.h5ad | scview >a
		h5tok -q csr_plain.h5ad | scview | cmp - a || fail $f
	done
	# one byte of a chunk turned
	$PYTHON -c "
import h5py
with h5py.File('zstd.h5ad') as f:
    at = f['X/indices'].id.get_chunk_info(0)
b = bytearray(open('zstd.h5ad', 'rb').read())
for i in range(at.byte_offset + 12, at.byte_offset + 20):
    b[i] ^= 0x55
open('turned.h5ad', 'wb').write(b)"
	fails "X/indices" h5tok turned.h5ad
}

# spoil NAME PYTHON: a copy of csr_plain.h5ad with something wrong
spoil() {
	cp csr_plain.h5ad "$1"
	$PYTHON -c "
import h5py, numpy as np
f = h5py.File('$1', 'r+')
X = f['X']
def put(name, v):
    del f[name]
    f[name] = v
$2"
}

@test "h5tok: values that are no counts are named, wherever they hide" {
	spoil frac.h5ad "X['data'][100] = 2.5"
	fails "not a whole number" h5tok frac.h5ad
	spoil neg.h5ad "X['data'][3] = -1"
	fails "a negative value" h5tok neg.h5ad
	spoil nan.h5ad "X['data'][0] = np.nan"
	fails "a missing value" h5tok nan.h5ad
	spoil large.h5ad "put('X/data', np.full(len(X['data']), 3e9))"
	fails "too large" h5tok large.h5ad
	# beyond the places that are looked at first
	$PYTHON -c "
import h5py, numpy as np
with h5py.File('late.h5ad', 'w') as f:
    n = 3000
    for k, m in (('obs', n), ('var', 100)):
        g = f.create_group(k)
        g.attrs['_index'] = 'index'
        g['index'] = np.array(['%s%d' % (k, i) for i in range(m)], dtype='S')
    x = np.ones((n, 100), np.float32)
    x[1000, 7] = 0.5
    f['X'] = x"
	fails "late.h5ad X 1000 0.5" h5tok late.h5ad
}

@test "h5tok: indices, row starts and shapes that cannot be are errors" {
	spoil i1.h5ad "X['indices'][5] = 40"
	fails "0 gene 40" h5tok i1.h5ad
	spoil i2.h5ad "X['indices'][5] = -1"
	fails "entry -1" h5tok i2.h5ad
	spoil p1.h5ad "p = X['indptr'][:]; p[3] = 0; X['indptr'][:] = p"
	fails "X/indptr 3 0" h5tok p1.h5ad
	spoil p2.h5ad "p = X['indptr'][:]; p[3] = 10**6; X['indptr'][:] = p"
	fails "X/indptr: element 3 is 1000000" h5tok p2.h5ad
	spoil p3.h5ad "put('X/indptr', X['indptr'][:-1])"
	fails "X/indptr 23 24" h5tok p3.h5ad
	spoil p4.h5ad "p = X['indptr'][:]; p[-1] -= 1; X['indptr'][:] = p"
	fails "expected from 0 to" h5tok p4.h5ad
	spoil d1.h5ad "put('X/data', X['data'][:-1])"
	fails "X/data:" h5tok d1.h5ad
	spoil s1.h5ad "X.attrs['shape'] = np.array([23, 41])"
	fails "41 40" h5tok s1.h5ad
	spoil s2.h5ad "X.attrs['shape'] = np.array([2**40, 40])"
	fails "X/indptr: 24 elements" h5tok s2.h5ad
	spoil s3.h5ad "del X.attrs['shape']"
	fails "no attribute shape" h5tok s3.h5ad
	spoil e1.h5ad "X.attrs['encoding-type'] = 'awkward-array'"
	fails "awkward-array csr_matrix csc_matrix" h5tok e1.h5ad
	spoil c1.h5ad "f['obs/cell_type/codes'][2] = 9"
	fails "obs/cell_type 2 9 -1 3" h5tok c1.h5ad
	spoil o1.h5ad "put('obs/age', f['obs/age'][:-1])"
	fails "obs/age: 22 rows, expected 23" h5tok --obs age o1.h5ad
	spoil m1.h5ad "del f['obs/_index']"
	fails "obs/_index: missing" h5tok m1.h5ad
	spoil t1.h5ad "put('X/indices', X['indices'][:].astype(float))"
	fails "X/indices: holds floating point" h5tok t1.h5ad
	spoil u1.h5ad "n = len(X['data']); put('X/data', np.array(['a'] * n, dtype='S'))"
	fails "X/data: holds no numbers" h5tok u1.h5ad
}

@test "h5tok: damaged, truncated, empty and foreign files" {
	head -c 20000 csr_gzip.h5ad >cut.h5ad
	fails "cut.h5ad truncated HDF5" h5tok cut.h5ad
	: >empty.h5ad
	fails "empty.h5ad: the file is empty" h5tok empty.h5ad
	seq 1000 >text.h5ad
	fails "text.h5ad expected .h5ad" h5tok text.h5ad
	fails "nowhere.h5ad: expected 10x" h5tok nowhere.h5ad
	mkdir -p folder
	fails "folder: no matrix.mtx" h5tok folder
	fails "/dev/null HDF5 regular" h5tok /dev/null
	# bytes of a chunk overwritten: found when it is inflated
	$PYTHON -c "
import h5py
f = h5py.File('csr_gzip.h5ad')
d = f['X/indices'].id
i = d.get_chunk_info(0)
b = bytearray(open('csr_gzip.h5ad', 'rb').read())
for k in range(i.byte_offset + 20, i.byte_offset + 40):
    b[k] ^= 0x5a
open('rot.h5ad', 'wb').write(b)"
	fails "X/indices" h5tok rot.h5ad
	assert_output --partial "damaged"
	# a heap of strings with a length that cannot be, on which HDF5 1.10 crashes
	$PYTHON -c "
b = bytearray(open('csr_plain.h5ad', 'rb').read())
at = b.find(b'GCOL')
while at >= 0:
    b[at + 24:at + 32] = (2**31).to_bytes(8, 'little')
    at = b.find(b'GCOL', at + 1)
open('heap.h5ad', 'wb').write(b)"
	fails "heap.h5ad: " h5tok heap.h5ad
	# checksums: of a chunk with one byte turned, and a chunk too short for one, on which HDF5 1.10 crashes
	for f in X/data X/indices obs/_index; do
		$PYTHON -c "
import h5py, shutil, sys
shutil.copy('csr_checksum.h5ad', 'turned.h5ad')
shutil.copy('csr_checksum.h5ad', 'short.h5ad')
with h5py.File('turned.h5ad') as f:
    at = f[sys.argv[1]].id.get_chunk_info(1).byte_offset
with h5py.File('short.h5ad', 'r+') as f:
    f[sys.argv[1]].id.write_direct_chunk((7,), b'ab')
b = bytearray(open('turned.h5ad', 'rb').read())
b[at + 2] ^= 1
open('turned.h5ad', 'wb').write(b)" "$f"
		fails "$f" h5tok turned.h5ad
		assert_output --partial "damaged"
		fails "$f 7 2 checksum" h5tok short.h5ad
	done
	# and a length that nothing is stored for
	$PYTHON -c "
import h5py, shutil
shutil.copy('csr_checksum.h5ad', 'long.h5ad')
with h5py.File('long.h5ad', 'r+') as f:
    for n in ('data', 'indices'):
        t = f['X'][n].dtype
        del f['X'][n]
        f['X'].create_dataset(n, (2**50,), t, chunks=(7,), fletcher32=True, maxshape=(None,))"
	fails "X/data 0 160842843834661" timeout 20 h5tok long.h5ad
	# a filter that is not there
	$PYTHON -c "
import h5py, numpy as np, shutil
shutil.copy('csr_plain.h5ad', 'blosc.h5ad')
f = h5py.File('blosc.h5ad', 'r+')
p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
p.set_chunk((64,))
p.set_filter(32001, h5py.h5z.FLAG_OPTIONAL, (1, 2))
n = len(f['X/data'])
del f['X/data']
h5py.h5d.create(f['X'].id, b'data', h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((n,)), p)"
	fails "compressed with filter 32001" env HDF5_PLUGIN_PATH=/nonexistent h5tok blosc.h5ad
	names "hdf5-filter-plugin-blosc-serial"
}

@test "h5tok: matrix directories with faults" {
	for fault in 's/^7 /99 /' 's/ \([0-9]*\)$/ \1.5/' '$d' '$a 1 1 1' '3s/23/24/' '1s/coordinate/array/' '5s/.*/x y z/'; do
		rm -rf bad
		cp -r mtx bad
		sed -i "$fault" bad/matrix.mtx
		fails "bad/matrix.mtx" h5tok bad
	done
	rm bad/barcodes.tsv
	fails "bad: no barcodes.tsv" h5tok bad
	cp mtx_gz/matrix.mtx.gz mtx/barcodes.tsv bad/
	rm bad/matrix.mtx
	truncate -s -20 bad/matrix.mtx.gz
	fails "bad/matrix.mtx.gz" h5tok bad
}

# same_tokens VOCAB "OPTION..." "OPTION..." FILE...: h5tok --rank writes the bytes of the pipe, with the options of h5tok and of rankenc
same_tokens() {
	local vocab=$1 reads=$2 ranks=$3
	shift 3
	h5tok -q $reads "$@" | rankenc -q -m "$vocab" $ranks -o pipe.tok
	for t in 1 2 3; do
		h5tok -q -@$t $reads --rank "$vocab" $ranks "$@" -o one.tok
		cmp pipe.tok one.tok || { echo "$* $reads $ranks -@$t differs"; return 1; }
	done
	h5tok -q -u $reads "$@" | rankenc -q -u -m "$vocab" $ranks -o pipe.tok
	h5tok -q -u $reads --rank "$vocab" $ranks "$@" -o again
	cmp again pipe.tok
}

@test "h5tok --rank: the bytes of h5tok | rankenc, for every layout" {
	for e in *.expected; do
		f=${e%.expected}
		case $f in layer*) o="--layer counts" ;; tenx2*) o="--modality GRCh38" ;; *) o= ;; esac
		h5tok -q $o "$f" | rankenc -q --fit --vocab-style v2 -o v2.tsv
		same_tokens v2.tsv "$o" "--min-matched 0" "$f"
	done
	assert [ "$(ls ./*.expected | wc -l)" -ge 28 ]
}

@test "h5tok --rank: the bytes of h5tok | rankenc with every option, several files and many blocks" {
	rankenc -q --fit --vocab-style v2 ok.counts -o v2.tsv
	for o in "--max-len 5" "--vocab-style v1 --value --max-len 4" "--vocab-style v2 --value" "--min-matched 0"; do
		same_tokens v2.tsv "--obs donor,age" "$o" csr_gzip.h5ad
	done
	same_tokens v2.tsv "--sample-column sample" "" csr_gzip.h5ad tenx3.h5 versions.h5ad
	cut -f2,1 v2.tsv | awk -F'\t' -v OFS='\t' 'NR == 1 { print "token", "id"; next } { print $2, $1 }' >t.tsv
	sed 1,5d v2.tsv | awk -F'\t' -v OFS='\t' 'BEGIN { print "ensembl_id", "nonzero_median" } { print $2, $4 }' >m.tsv
	same_tokens m.tsv "" "-t t.tsv" csr_gzip.h5ad
	# ids through a table, two genes with one id
	awk -F'\t' 'NR > 5 { print $2 "\tNEW" int(++n / 2) }' v2.tsv >map.tsv
	h5tok -q --map map.tsv csr_gzip.h5ad | rankenc -q --fit -o new.tsv
	same_tokens new.tsv "--map map.tsv" "" csr_gzip.h5ad
	# several blocks of counts in one of tokens, and cells that are dropped
	scsim -q --cells 6000 --genes 800 --seed 5 -o many.counts
	rankenc -q --fit --min-cells 1500 many.counts -o many.tsv
	scview -O h5ad -o many.h5ad many.counts
	for o in "" "--value --max-len 64"; do
		same_tokens many.tsv "" "--min-matched 0 $o" many.h5ad
	done
	# the provenance has both programs, each with its own options
	h5tok -q --obs donor --rank v2.tsv --max-len 7 csr_gzip.h5ad -o a.tok
	run scview --header a.tok
	assert_equal "$(grep -E '"(program|options)":' <<<"$output" | grep -oE '"[^"]*",?$' | tr -d , | paste -sd' ')" \
		'"h5tok" "--obs donor" "rankenc" "--max-len 7"'
}

@test "h5tok --rank: bad vocabularies, genes that are not there, misuse; no output" {
	rankenc -q --fit ok.counts -o vocab.tsv
	sed '5s/[^\t]*$/-1/' vocab.tsv >bad.tsv
	fails "bad.tsv: line 5: median '-1'" h5tok --rank bad.tsv csr_gzip.h5ad
	sed '5s/[^\t]*$/NA/' vocab.tsv >bad.tsv
	fails "has no median" h5tok --rank bad.tsv csr_gzip.h5ad
	fails "nothing.tsv: No such file" h5tok --rank nothing.tsv csr_gzip.h5ad
	fails "vocab.tsv: no token <cls>" h5tok --rank vocab.tsv --vocab-style v2 csr_gzip.h5ad
	fails "missing.h5ad: " h5tok --rank vocab.tsv missing.h5ad
	fails "no layer 'spliced'" h5tok --layer spliced --rank vocab.tsv normalised.h5ad
	head -8 vocab.tsv >few.tsv
	run -1 h5tok --rank few.tsv csr_gzip.h5ad -o never.tok
	names "csr_gzip.h5ad 14.7 few.tsv 20"
	run -1 h5tok --rank few.tsv csr_gzip.h5ad tenx3.h5 -o never.tok
	names "csr_gzip.h5ad 1 14.7 few.tsv"
	run -0 h5tok --rank few.tsv --min-matched 14 csr_gzip.h5ad -o few.tok # 99 % of the counts
	awk 'BEGIN { OFS = FS = "\t" } NR <= 3 || NR > 8 { if (NR > 1) $1 = n++; print }' vocab.tsv >others.tsv
	run -1 h5tok --rank others.tsv csr_gzip.h5ad -o never.tok
	names "counts others.tsv 50"
	run -1 bash -c "h5tok --rank others.tsv --min-matched 14 csr_gzip.h5ad >cut.tok"
	names "least 14 --min-matched"
	run -1 scview --check cut.tok
	# a value that is not looked at first
	spoil frac.h5ad "X['data'][len(X['data']) // 3] = 2.5"
	run -1 h5tok --rank vocab.tsv frac.h5ad -o never.tok
	assert_line --partial "need --round"
	assert_file_not_exist never.tok
	for o in "--max-len 100" "--value" "-t vocab.tsv"; do
		run -2 h5tok $o csr_gzip.h5ad -o never.tok
		assert_output --partial "needs --rank"
	done
	run -2 h5tok -q --list-obs --rank vocab.tsv csr_gzip.h5ad
}

@test "h5tok --rank: killed, it leaves no file, and what it wrote to a pipe is refused" {
	command -v timeout >/dev/null || skip "no timeout command"
	scsim -q --cells 8000 --genes 1500 --depth 1500 --seed 2 -o k.counts
	rankenc -q --fit k.counts -o k.tsv
	scview -q -O h5ad -o k.h5ad k.counts
	mkdir kill
	for sig in TERM KILL; do
		# it cannot end before the pipe is read: 8,000 cells are more than the pipe holds
		mkfifo kill/pipe.$sig
		run bash -c "set -m; h5tok -q -u -@2 --rank k.tsv k.h5ad >kill/pipe.$sig & exec 3<kill/pipe.$sig; head -c 100000 <&3 >cut.tok
			kill -$sig \$!; cat <&3 >>cut.tok; wait \$!"
		assert_equal "$status" $((128 + $(kill -l $sig)))
		run -1 scview --check cut.tok
		assert_output --partial "cut short"
	done
	# eight files, so that it is still at work after .3 s
	f=$(yes k.h5ad | head -8)
	run bash -c "set -m; h5tok -q --rank k.tsv ${f//$'\n'/ } -o kill/out & sleep .3; kill \$!; wait \$!"
	assert_equal "$status" 143
	assert_equal "$(ls kill)" "$(printf 'pipe.KILL\npipe.TERM')"
}

@test "h5tok: full disk, closed downstream" {
	[ -e /dev/full ] || skip "no /dev/full"
	run h5tok -q csr_gzip.h5ad -o /dev/full
	assert_failure 1
	assert_output --partial "No space left"
	run bash -o pipefail -c 'h5tok -q -u csr_gzip.h5ad | true'
	refute_output --partial "rror"
}

# bats test_tags=data
@test "h5tok: real files: layouts, barcodes, counts and annotation as anndata reads them" {
	need scrna/pbmc_kang2018_9015genes_labelled.h5ad original tenx
	for f in scrna/pbmc_kang2018_9015genes_labelled.h5ad scrna/lung_luad_kim2020_2000genes.h5ad original/placenta_cellxgene_220cells_anndata0.8.h5ad \
		original/pbmc5k_protein_200cells_anndata0.7.h5ad tenx/hg19_chr21_cellranger1.2.h5 tenx/visium_mouse_filtered_feature_bc_matrix.h5; do
		h5tok -q "$SHARED/$f" -o real.counts
		scview --gene-names id real.counts | $PYTHON -W ignore "$BATS_TEST_DIRNAME/ref/counts.py" "$SHARED/$f"
	done
	h5tok -q "$SHARED/tenx/pbmc_1k_v3_chr21_cellranger3/filtered_feature_bc_matrix.h5" | scview >a
	h5tok -q "$SHARED/tenx/pbmc_1k_v3_chr21_cellranger3/filtered_feature_bc_matrix" | scview >b
	cmp a b
	for f in kang_valid_scgen_anndata0.6 pbmc68k_reduced_anndata0.5; do
		fails "no raw counts" h5tok "$SHARED/original/$f.h5ad"
	done
}

@test "h5tok: the examples of the manual run" {
	need_tool h5tok rankenc scview
	cp csr_gzip.h5ad cells.h5ad
	bash -e -o pipefail <<<"$(awk '/^\.Sh EXAMPLES/ { on = 1 } /^\.Sh DIAG/ { on = 0 } on && /^\.Ed/ { p = 0 } p; on && /^\.Bd/ { p = 1 }' \
		"$BATS_TEST_DIRNAME/../man/h5tok.1.in")"
}

@test "h5tok --no-counts: the cells and their columns, of one file or several, without counts; scsample chooses the same ones" {
	scsim -q --cells 120 --genes 30 --modules 3 --types 3 --rarest .2 --donors 5 --depth 60 --seed 9 | scview -q -O h5ad -o first.h5ad -
	scsim -q --cells 80 --genes 40 --modules 3 --types 3 --rarest .2 --donors 5 --depth 60 --seed 8 | scview -q -O h5ad -o second.h5ad -
	for files in first.h5ad "first.h5ad second.h5ad"; do
		# shellcheck disable=SC2086 # words
		h5tok -q --no-counts --sample-column file $files -o bare.counts
		# shellcheck disable=SC2086
		h5tok -q --sample-column file $files -o all.counts
		cmp <(scview -c cell,barcode,file,cell_type,donor bare.counts) <(scview -c cell,barcode,file,cell_type,donor all.counts)
		assert_equal "$(scview -c n_counts,gene,count bare.counts | sed 1d | sort -u)" $'0\t\t'
		chosen() { scsample -q -n 70 --seed 4 "$1" | scsample -q --test-fraction .25 --group donor --part test | scview -c cell -; }
		cmp <(chosen bare.counts) <(chosen all.counts)
	done
	scview --check bare.counts
	$PYTHON -W ignore -c 'import anndata, pandas; anndata.AnnData(obs=pandas.DataFrame({"kind": ["a", "b"]}, index=["x", "y"])).write_h5ad("obs.h5ad")'
	run -0 scview -c barcode,kind <(h5tok -q --no-counts obs.h5ad)
	assert_line $'y\tb'
	run -2 h5tok --no-counts --layer X first.h5ad -o no.counts
}

@test "h5tok: text that is not UTF-8 is refused wherever it stands, so that no file is made that others cannot read" {
	scsim -q --cells 20 --genes 30 --modules 2 --types 2 --seed 1 | scview -q -O h5ad -o text.h5ad -
	$PYTHON -W ignore - <<-'P'
		import h5py, numpy as np, shutil
		places = {"types": "obs/cell_type/categories", "cells": "obs/_index", "genes": "var/_index"}
		for name, path in places.items():
		    shutil.copy("text.h5ad", name + ".h5ad")
		    with h5py.File(name + ".h5ad", "r+") as f:
		        text, attributes = list(f[path][:]), dict(f[path].attrs)
		        text[1] = b"na\xefve B"
		        del f[path]
		        f[path] = np.array(text, dtype=h5py.string_dtype("ascii"))
		        f[path].attrs.update(attributes)
		with h5py.File("text.h5ad", "r+") as f:
		    f["obs"][b"caf\xe9"] = np.arange(20)
		    f["obs"].attrs["column-order"] = np.array(["cell_type", b"caf\xe9"], dtype=h5py.string_dtype("ascii"))
	P
	fails "types.h5ad: obs/cell_type: a category is not UTF-8 (Latin-1?), so it cannot be carried along" h5tok --obs cell_type types.h5ad
	run -0 h5tok types.h5ad -o types.counts
	assert_output --partial "column left out: types.h5ad: obs/cell_type: a category is not UTF-8"
	fails "cells.h5ad: obs/_index: text 1 (na?ve B) is not UTF-8" h5tok cells.h5ad
	fails "genes.h5ad: var/_index: text 1 (na?ve B) is not UTF-8" h5tok genes.h5ad
	run -1 h5tok --explain genes.h5ad
	assert_line --partial $'error\tvar/_index: text 1 (na?ve B) is not UTF-8'
	run -0 --separate-stderr h5tok text.h5ad -o names.counts
	assert_equal "$(scview -H names.counts | grep -c caf)" 0
	printf 'cell\tlab\n0\tna\xefve\n' >latin.tsv
	fails "latin.tsv: line 2: text that is not UTF-8 (Latin-1?): save the table as UTF-8" h5tok --obs-table latin.tsv ok.counts
}
