#!/usr/bin/env bats
# Which gene is it: one rule for every tool that reads genes from files, streams and lists (lib/genes).
load helper

setup_file() {
	need_tool h5tok rankenc scview scsample scperturb scgenes ctaprobe screduce
	cd "$BATS_FILE_TMPDIR"
	cat >make.py <<-'P'
		"""FILE CODE: write FILE with $CELLS (30) cells of 40 genes, after CODE has changed the AnnData a; ids, symbols: their names"""
		import os, sys, warnings
		warnings.simplefilter("ignore")
		import anndata as ad, numpy as np, pandas as pd, scipy.sparse as sp
		n = int(os.environ.get("CELLS", 30))
		x = np.random.default_rng(int(os.environ.get("SEED", 1))).poisson(np.linspace(.5, 4, 40), (n, 40)).astype("f4")
		x[:, 0] += 1
		numbers, ids, symbols = [str(i) for i in range(40)], ["ENSG%011d" % (i + 1) for i in range(40)], ["S%d" % i for i in range(40)]
		a = ad.AnnData(sp.csr_matrix(x), obs=pd.DataFrame({"type": pd.Categorical(["A", "B"] * (n // 2))}, index=["c%d" % i for i in range(n)]))
		a.var = pd.DataFrame({"symbol": symbols}, index=ids)
		exec(sys.argv[2])
		a.write_h5ad(sys.argv[1])
	P
	make_file ids.h5ad ""
	make_file symbols.h5ad "a.var = pd.DataFrame(index=symbols)"
	make_file numbers.h5ad "a.var = pd.DataFrame({'n_cells': 3, 'feature_name': pd.Categorical(symbols)}, index=numbers)"
}

setup() { cd "$BATS_FILE_TMPDIR"; }

make_file() { $PYTHON make.py "$@"; }

# tenx FOLDER: a 10x folder of one cell with 7 counts of each feature of standard input (id, symbol)
tenx() {
	mkdir -p "$1"
	awk -F '\t' -v OFS='\t' '{ print $1, $2, "Gene Expression" }' >"$1/features.tsv"
	echo "$(basename "$1")" >"$1/barcodes.tsv"
	awk 'END { print "%%MatrixMarket matrix coordinate integer general\n" NR, 1, NR; for (i = 1; i <= NR; i++) print i, 1, 7 }' "$1/features.tsv" >"$1/matrix.mtx"
}

# genes FILE...: the ids of the joined table, sorted
genes() { h5tok -q -u "$@" | scview --vocab | sed 1d | cut -f 2 | sort; }

# refused WORDS COMMAND...: status 1, a message with these words, no output
refused() {
	run -1 "${@:2}" -o never
	names "$1"
	assert_file_not_exist never
}

@test "which gene: 2 to 5 random files in every order have the genes and sums of a plain reading of the rule" {
	run -0 $PYTHON "$BATS_TEST_DIRNAME/ref/gene_join.py" joins "${JOINS:-16}" "${FIRST:-0}"
	echo "# $output" >&3
}

@test "which gene: an index of whole numbers is no name: the column of symbols or ids is taken, or the option is named" {
	for index in "np.arange(40)" "np.arange(40.)" "np.array(numbers, dtype=object)"; do
		cp numbers.h5ad index.h5ad
		$PYTHON -c "
import h5py, numpy as np
numbers = [str(i) for i in range(40)]
with h5py.File('index.h5ad', 'r+') as f:
    name = f['var'].attrs['_index']
    del f['var'][name]
    v = $index
    f['var'].create_dataset(name, data=v, dtype=h5py.string_dtype() if v.dtype == object else v.dtype)"
		run -0 h5tok index.h5ad -o n.counts
		assert_output --partial "gene ids from var/feature_name"
		assert_equal "$(scview --vocab n.counts | sed -n 5p | cut -f 2)" S3
	done
	# as a store
	$PYTHON - <<-'P'
		import json, os, struct, numpy as np
		def write(path, text):
		    os.makedirs(os.path.dirname("n.zarr/" + path) or ".", exist_ok=True)
		    open("n.zarr/" + path, "wb").write(text if isinstance(text, bytes) else json.dumps(text).encode())
		def group(path, **attrs):
		    write(path + ".zgroup", {"zarr_format": 2})
		    write(path + ".zattrs", attrs)
		def array(path, x, type, data, filters=None, **attrs):
		    write(path + "/.zarray", {"zarr_format": 2, "shape": x, "chunks": x, "dtype": type, "compressor": None, "fill_value": 0, "order": "C", "filters": filters})
		    write(path + "/.zattrs", attrs)
		    write(path + "/" + ".".join("0" for _ in x), data)
		group("", **{"encoding-type": "anndata", "encoding-version": "0.1.0"})
		array("X", [3, 40], "<f4", np.arange(120, dtype="<f4").tobytes(), **{"encoding-type": "array", "encoding-version": "0.2.0"})
		for name, n in ("obs", 3), ("var", 40):
		    group(name + "/", **{"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index", "column-order": ["gene_name"] * (n == 40)})
		    array(name + "/_index", [n], "<i8", np.arange(n).tobytes(), **{"encoding-type": "array", "encoding-version": "0.2.0"})
		texts = [b"S%d" % i for i in range(40)]
		array("var/gene_name", [40], "|O", struct.pack("<I", 40) + b"".join(struct.pack("<I", len(t)) + t for t in texts), [{"id": "vlen-utf8"}],
		      **{"encoding-type": "string-array", "encoding-version": "0.2.0"})
	P
	assert_equal "$(h5tok -q n.zarr | scview --vocab | sed -n 5p | cut -f 2)" S3
	# in another order of genes, and joined with names and with ids: the same genes
	make_file turned.h5ad "a.var = pd.DataFrame({'GeneSymbol': symbols}, index=numbers); a = a[:, ::-1].copy(); a.var_names = numbers"
	diff <(genes numbers.h5ad turned.h5ad) <(genes symbols.h5ad)
	diff <(genes ids.h5ad turned.h5ad numbers.h5ad) <(genes ids.h5ad)
	make_file gene_ids.h5ad "a.var = pd.DataFrame({'gene_ids': ['FBgn%07d' % i for i in range(40)]}, index=numbers)"
	genes gene_ids.h5ad | grep -x FBgn0000007
	# a column of one name names nothing
	make_file one.h5ad "a.var = pd.DataFrame({'feature': 'gene', 'other': symbols}, index=numbers)"
	refused "one.h5ad 0 --gene-column feature other" h5tok one.h5ad
	h5tok -q --gene-column other one.h5ad | scview --vocab - | grep -qw S39
	make_file entrez.h5ad "a.var = pd.DataFrame({'entrez': np.arange(1000, 1040)}, index=numbers)"
	refused "entrez.h5ad --gene-column entrez" h5tok entrez.h5ad
	assert_equal "$(genes entrez.h5ad 2>/dev/null | wc -l)" 0
	h5tok -q --gene-column entrez entrez.h5ad | scview --vocab - | grep -qw 1007
	seq 0 9 | awk '{ print $1 "\tS" $1 }' | tenx numbered
	genes numbered | grep -qx S7
	seq 0 9 | awk '{ print $1 "\t" $1 + 1 }' | tenx numbered
	refused "gene 0 '0'" h5tok numbered
	# make corpus has the gene's median, not that of a row
	mkdir -p in
	SEED=5 make_file in/turned.h5ad "a.var = pd.DataFrame({'symbol': symbols}, index=numbers); a = a[:, ::-1].copy(); a.var_names = numbers"
	cp numbers.h5ad in
	run -0 pipelines corpus DIR=in THREADS=1
	SEED=5 make_file right.h5ad "a.var = pd.DataFrame(index=symbols)"
	h5tok -q symbols.h5ad right.h5ad | rankenc -q --fit - | cut -f 2,4 | diff - <(cut -f 2,4 results/corpus/latest/vocab.tsv)
}

@test "which gene: two tables that give an id to other genes are refused; a few new symbols are not" {
	make_file turned.h5ad "a.var['symbol'] = symbols[::-1]"
	make_file some.h5ad "a.var['symbol'] = symbols[:30] + symbols[31:] + symbols[30:31]"
	make_file renamed.h5ad "a.var['symbol'] = ['NEW%d' % i if i < 30 else s for i, s in enumerate(symbols)]; a.obs['type'] = a.obs['type'].to_numpy()[::-1]"
	for f in turned some; do
		refused "ids.h5ad $f.h5ad ENSG S" h5tok ids.h5ad $f.h5ad
		refused "ids.h5ad $f.h5ad ENSG S" h5tok $f.h5ad ids.h5ad
	done
	run -0 h5tok ids.h5ad renamed.h5ad -o joined.counts
	assert_equal "$(scview --vocab joined.counts | wc -l)" 41
	for f in ids turned renamed; do h5tok -q $f.h5ad -o $f.counts; done
	refused "ids.counts turned.counts" ctaprobe transfer --reference ids.counts -l type turned.counts
	refused "ids.counts turned.counts" screduce expression --train ids.counts turned.counts
	rankenc -q --fit --min-cells 1 -o v.tsv ids.counts
	refused "v.tsv turned.counts" rankenc -m v.tsv turned.counts
	refused "ids.counts turned.counts" rankenc --fit ids.counts turned.counts
	rankenc -q -m v.tsv renamed.counts -o r.tok
}

@test "which gene: a genome before the names is left out; of two genomes each is told, and --modality reads one" {
	for i in $(seq 20); do printf 'GRCh38_ENSG%011d\tGRCh38_S%d\n' "$i" "$((i - 1))"; done | tenx human
	run -0 h5tok human -o h.counts
	assert_output --partial GRCh38
	assert_equal "$(scview --vocab h.counts | sed -n 3p | cut -f 2,3)" "ENSG00000000002	S1"
	for i in $(seq 12); do printf 'mm10___ENSMUSG%011d\tmm10___S%d\n' "$i" "$((i - 1))"; done | cat <(cut -f 1,2 human/features.tsv) - | tenx both
	run -0 h5tok both -o b.counts
	names "both GRCh38 20"
	names "both mm10 12"
	assert_equal "$(scview --vocab b.counts | sed 1d | cut -f 2 | cut -d _ -f 1 | sort | uniq -c | awk '{ print $1 $2 }' | paste -sd ' ')" "20GRCh38 12mm10"
	assert_equal "$(h5tok -q --modality mm10 both | scview --vocab - | sed 1d | cut -f 2,3 | sed -n '$p')" "ENSMUSG00000000012	S11"
	diff <(h5tok -q --modality GRCh38 both | scview -c gene,count -) <(scview -c gene,count h.counts)
	refused "both GRCh37 GRCh38 mm10" h5tok --modality GRCh37 both
	refused "symbols.h5ad --modality" h5tok --modality GRCh38 symbols.h5ad
	# a symbol before the id, as CELLxGENE writes it, is no genome
	printf '%s\n' S1 S2_ENSG00000000003 S2_ENSG00000000004 S3_ENSG00000000005 S4 | tenx named
	assert_equal "$(h5tok -q named | scview --vocab | sed 1d | cut -f 2,3 | paste -sd ' ')" "S1	 ENSG00000000003	S2 ENSG00000000004	S2 ENSG00000000005	S3 S4	"
}

@test "which gene: a symbol of two genes is refused where a user names it, and left out of files of sets, with a note" {
	make_file twice.h5ad "a.var['symbol'] = symbols[:5] + symbols[4:39]"
	h5tok -q twice.h5ad -o t.counts
	rankenc -q --fit --min-cells 1 -o t.tsv t.counts
	rankenc -q -m t.tsv t.counts -o t.tok
	refused "--delete S4 ENSG00000000005 ENSG00000000006" scperturb apply --delete S4 t.tok
	refused "--delete s4 ENSG00000000005 ENSG00000000006" scperturb apply --delete S3+s4 t.tok
	echo S4 >list.txt
	refused "list.txt S4 ENSG00000000005 ENSG00000000006" scperturb apply --delete list.txt t.tok
	refused "--keep-genes list.txt S4 ENSG00000000005 ENSG00000000006" scsample --keep-genes list.txt t.counts
	printf 'ENSG00000000006.3\nS3\n' >list.txt
	assert_equal "$(scsample -q --keep-genes list.txt t.counts | scview --vocab - | sed 1d | cut -f 2 | paste -sd ' ')" "ENSG00000000004 ENSG00000000006"
	printf 'set\tabout\tS3\tS4\tS6\nother\tabout\tS4\tS1\tNOSUCH\n' >sets.gmt
	run -0 --separate-stderr scperturb apply --delete sets.gmt t.tok -o p.tok
	assert_regex "$stderr" "sets.gmt: .*several genes: 2"
	assert_equal "$(scview -c perturbed p.tok | sed 1d | sort -u | paste -sd ' ')" " other set"
	rm list.txt p.tok
}

@test "which gene: tables that share few genes are told or refused by every tool" {
	make_file mouse.h5ad "a.var = pd.DataFrame(index=['ENSMUSG%011d' % i for i in range(39)] + [ids[0]])"
	make_file few.h5ad "a.var = pd.DataFrame(index=['x%d' % i for i in range(34)] + ids[:6])"
	make_file one.h5ad "a.var = pd.DataFrame(index=['S0'] * 40)"
	for f in mouse few one ids; do h5tok -q $f.h5ad -o $f.counts; done
	for f in mouse few; do
		for order in "$f.h5ad ids.h5ad" "ids.h5ad $f.h5ad"; do
			# shellcheck disable=SC2086 # two files
			run -0 h5tok $order -o j.counts
			assert_output --partial warning
		done
	done
	run -0 h5tok one.h5ad -o j.counts
	names "warning one.h5ad 40 1"
	for tool in "screduce pca --train ids.counts" "ctaprobe transfer --reference ids.counts -l type" "screduce expression --shared-with ids.counts"; do
		refused "ids.counts mouse.counts" $tool mouse.counts
	done
	# shellcheck disable=SC2043
	for tool in "screduce pca -k 2 --train ids.counts" "ctaprobe transfer --reference ids.counts -l type"; do
		for f in few one; do
			run $tool $f.counts -o out
			assert_line --regexp "(warning: |: )$f.counts: "
		done
	done
	rankenc -q --fit --min-cells 1 -o v.tsv ids.counts
	run -0 rankenc -m v.tsv --min-matched 0 few.counts -o few.tok
	names "warning few.counts 6 40 v.tsv"
	for p in "ids.h5ad ids.h5ad" "ids.h5ad ./ids.h5ad"; do
		# shellcheck disable=SC2086 # two files
		run -0 h5tok $p -o j.counts
		names "warning ids.h5ad"
	done
	cp ids.h5ad copy.h5ad
	run -0 h5tok ids.h5ad copy.h5ad -o j.counts
	names "warning ids.h5ad copy.h5ad"
	SEED=2 make_file other.h5ad ""
	run -0 h5tok ids.h5ad other.h5ad -o j.counts
	names "warning ids.h5ad other.h5ad --sample-column"
	run -0 h5tok --sample-column s ids.h5ad other.h5ad -o j.counts
	refute_output --partial warning
	rm -f few.tok j.counts out
}

@test "which gene: rankenc --fit of streams with ids and with symbols, in passes or not, is that of the joined files" {
	CELLS=400 SEED=3 make_file a.h5ad "a.obs_names = 'a' + a.obs_names"
	CELLS=300 SEED=4 make_file b.h5ad "a.var = pd.DataFrame(index=symbols); a = a[:, ::-1].copy()"
	for f in a b; do h5tok -q $f.h5ad -o $f.counts; done
	h5tok -q a.h5ad b.h5ad | rankenc -q --fit -o all.tsv -
	for order in "a b" "b a"; do
		read -ra of <<<"$order"
		rankenc -q --fit "${of[@]/%/.counts}" | cmp - all.tsv
		for f in a b; do rankenc -q --fit --sums $f.counts -o $f.1; done
		rankenc -q --fit --sums "${of[@]/%/.1}" -o all.1
		for f in a b; do rankenc -q --fit --sums --after all.1 $f.counts -o $f.2; done
		rankenc -q --fit --sums "${of[@]/%/.2}" -o all.2
		for f in a b; do rankenc -q --fit --sums --after all.2 $f.counts -o $f.3 || cp $f.2 $f.3; done
		rankenc -q --fit "${of[@]/%/.3}" | cmp - all.tsv
	done
	diff <(rankenc -q -m all.tsv b.counts | scview -c token) <(h5tok -q --rank all.tsv b.h5ad | scview -c token)
}
