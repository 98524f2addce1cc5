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
	assert_output --partial "$message"
	assert_equal "$(grep -vcE ': warning:| cells x | genes have the same id | genes .* are in ' <<<"$output")" 1
	assert_file_not_exist never.counts
}

@test "h5tok: every layout gives the cells, genes, counts and annotation it was made from, on one thread and three" {
	for e in *.expected; do
		f=${e%.expected}
		case $f in layer*) o="--layer counts" ;; tenx2*) o="--genome GRCh38" ;; *) o= ;; esac
		h5tok -q $o "$f" -o a.counts
		h5tok -q $o "$f" -@3 -u >b.counts
		scview --genes id -c "$(head -1 "$e" | tr '\t' ,)" a.counts >a.tsv
		scview --genes id -c "$(head -1 "$e" | tr '\t' ,)" b.counts >b.tsv
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

@test "h5tok: help, version, misuse, and the options that man and help share" {
	run h5tok --help
	assert_success
	assert_line --index 0 "Usage: h5tok [OPTION...] FILE..."
	for o in $(h5tok --help | grep -o '^  [ -][a-zA-Z@]*,* *--[a-z-]*' | grep -o -- '--[a-z-]*'); do
		grep -qE -- "^.It Fl (. , )?-${o#--}( |$)" "$BATS_TEST_DIRNAME/../man/h5tok.1" || { echo "not in the manual: $o"; return 1; }
	done
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
	fails "csr_gzip.h5ad: no obs column 'tissue' in the file (it has: " h5tok --obs tissue csr_gzip.h5ad
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
	scview --genes id -c cell,cell_type,age,donor,gene several.counts >t
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
	# the same name twice: the path
	mkdir -p copy
	cp tenx3.h5 copy
	h5tok -q --sample-column sample tenx3.h5 copy/tenx3.h5 | scview -c sample | tail -n +2 | uniq >t
	assert_equal "$(paste -sd ' ' t)" "tenx3 copy/tenx3.h5"
	fails "tenx3.h5: the file is named twice" h5tok --sample-column sample tenx3.h5 tenx3.h5
	fails "'cell' is a column of every stream" h5tok --sample-column cell tenx3.h5
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
	assert_line --regexp "warning: ENSMUSG.h5ad: shares no gene with the files before it: other species, or other ids\? Ids here are like 'ENSMUSG[0-9]+', there like 'ENSG[0-9]+'"
	run -0 h5tok ENSG.h5ad ENSG.h5ad -o both.counts
	refute_output --partial warning
}

@test "h5tok: gene ids through a mapping table, with the share that matched" {
	printf 'key\tgene_id\n' >map.tsv
	for g in $(seq 0 39); do printf 'GENE%d\tENSG%011d\n' $g $((100 + 7 * (g / 2))); done >>map.tsv
	run h5tok --gene-column symbol --map map.tsv csr_gzip.h5ad -o mapped.counts
	assert_success
	assert_output --partial "40 of 40 genes (100.0 %) are in map.tsv"
	assert_output --partial "20 genes have the same id as another gene"
	assert_equal "$(scview --vocab mapped.counts | wc -l)" 21
	# sums of pairs: n_counts stay
	assert_equal "$(scview -c n_counts mapped.counts)" "$(cut -f3 csr_gzip.h5ad.expected)"
	gzip -kf map.tsv
	h5tok -q --gene-column symbol --map map.tsv.gz csr_gzip.h5ad | scview >a
	scview mapped.counts | cmp - a
	head -6 map.tsv >few.tsv
	fails "only 12.5 % of the genes are in few.tsv, expected at least 20 %" h5tok --gene-column symbol --map few.tsv csr_gzip.h5ad
	fails "(--min-counts-mapped)" h5tok --min-genes-mapped 0 --min-counts-mapped 100 --gene-column symbol --map few.tsv csr_gzip.h5ad
	printf 'a\tb\tc\n' >bad.tsv
	fails "bad.tsv: line 1: expected two columns" h5tok --map bad.tsv csr_gzip.h5ad
}

@test "h5tok: no raw counts is an error that says what was looked at" {
	fails "looked at raw/X: not there; X: holds 5.7" h5tok normalised.h5ad
	fails "layers that --layer can name: counts, more" h5tok normalised.h5ad
	fails "layers/spliced: not there" h5tok --layer spliced normalised.h5ad
	h5tok -q --layer X csr_gzip.h5ad -o x.counts
	fails "no column 'nothing' to take gene ids from (it has: index, symbol, ensembl_id)" h5tok --gene-column nothing csr_gzip.h5ad
	fails "2 genomes (GRCh38, mm10); choose one" h5tok tenx2.h5
	fails "no genome hg19; there are: GRCh38, mm10" h5tok --genome hg19 tenx2.h5
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
	fails "late.h5ad: X: cell 1000 holds 0.5 (not a whole number" h5tok late.h5ad
}

@test "h5tok: indices, row starts and shapes that cannot be are errors" {
	spoil i1.h5ad "X['indices'][5] = 40"
	fails "cell 0 has an entry for gene 40, expected a number below 40" h5tok i1.h5ad
	spoil i2.h5ad "X['indices'][5] = -1"
	fails "has an entry for gene -1" h5tok i2.h5ad
	spoil p1.h5ad "p = X['indptr'][:]; p[3] = 0; X['indptr'][:] = p"
	fails "X/indptr: element 3 is 0 after" h5tok p1.h5ad
	spoil p2.h5ad "p = X['indptr'][:]; p[3] = 10**6; X['indptr'][:] = p"
	fails "X/indptr: element 3 is 1000000" h5tok p2.h5ad
	spoil p3.h5ad "put('X/indptr', X['indptr'][:-1])"
	fails "X/indptr: 23 elements, expected 24 (one more than the cells)" h5tok p3.h5ad
	spoil p4.h5ad "p = X['indptr'][:]; p[-1] -= 1; X['indptr'][:] = p"
	fails "expected from 0 to" h5tok p4.h5ad
	spoil d1.h5ad "put('X/data', X['data'][:-1])"
	fails "X/data:" h5tok d1.h5ad
	spoil s1.h5ad "X.attrs['shape'] = np.array([23, 41])"
	fails "41 genes, but var has 40" h5tok s1.h5ad
	spoil s2.h5ad "X.attrs['shape'] = np.array([2**40, 40])"
	fails "X/indptr: 24 elements" h5tok s2.h5ad
	spoil s3.h5ad "del X.attrs['shape']"
	fails "no attribute shape" h5tok s3.h5ad
	spoil e1.h5ad "X.attrs['encoding-type'] = 'awkward-array'"
	fails "encoding 'awkward-array', expected csr_matrix or csc_matrix" h5tok e1.h5ad
	spoil c1.h5ad "f['obs/cell_type/codes'][2] = 9"
	fails "obs/cell_type: row 2 has code 9, expected -1 (missing) or one of 3 categories" h5tok c1.h5ad
	spoil o1.h5ad "put('obs/age', f['obs/age'][:-1])"
	fails "obs/age: 22 rows, expected 23" h5tok o1.h5ad
	spoil m1.h5ad "del f['obs/_index']"
	fails "obs/_index: missing" h5tok m1.h5ad
	spoil t1.h5ad "put('X/indices', X['indices'][:].astype(float))"
	fails "X/indices: holds floating point" h5tok t1.h5ad
	spoil u1.h5ad "n = len(X['data']); put('X/data', np.array(['a'] * n, dtype='S'))"
	fails "X/data: holds no numbers" h5tok u1.h5ad
}

@test "h5tok: damaged, truncated, empty and foreign files" {
	head -c 20000 csr_gzip.h5ad >cut.h5ad
	fails "cut.h5ad: opening failed: damaged or truncated HDF5" h5tok cut.h5ad
	: >empty.h5ad
	fails "empty.h5ad: the file is empty" h5tok empty.h5ad
	seq 1000 >text.h5ad
	fails "text.h5ad: this is text, expected .h5ad" h5tok text.h5ad
	fails "No such file or directory" h5tok nowhere.h5ad
	mkdir -p folder
	fails "folder: no matrix.mtx" h5tok folder
	fails "/dev/null: HDF5 needs a regular file" h5tok /dev/null
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
		fails "$f: the chunk that starts at 7 has 2 stored bytes and a checksum; damaged file" h5tok short.h5ad
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
	fails "X/data: 0 of 160842843834661 chunks are there; damaged file" timeout 20 h5tok long.h5ad
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
	HDF5_PLUGIN_PATH=$PWD fails "compressed with filter 32001" h5tok blosc.h5ad
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

@test "h5tok: full disk, closed downstream" {
	[ -e /dev/full ] || skip "no /dev/full"
	run h5tok -q csr_gzip.h5ad -o /dev/full
	assert_failure 1
	assert_output --partial "No space left"
	run bash -o pipefail -c 'h5tok -q -u csr_gzip.h5ad | true'
	refute_output --partial "rror"
}

@test "h5tok: real files: layouts, barcodes, counts and annotation as anndata reads them" {
	need scrna/pbmc_kang2018_9015genes_labelled.h5ad original tenx
	for f in scrna/pbmc_kang2018_9015genes_labelled.h5ad scrna/lung_luad_kim2020_2000genes.h5ad original/placenta_cellxgene_220cells_anndata0.8.h5ad \
		original/pbmc5k_protein_200cells_anndata0.7.h5ad tenx/hg19_chr21_cellranger1.2.h5 tenx/visium_mouse_filtered_feature_bc_matrix.h5; do
		h5tok -q "$SHARED/$f" -o real.counts
		scview --genes id real.counts | $PYTHON -W ignore "$BATS_TEST_DIRNAME/ref/counts.py" "$SHARED/$f"
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
		"$BATS_TEST_DIRNAME/../man/h5tok.1")"
}
