load helper

setup_file() {
	need_tool h5tok rankenc scview scsim
	cd "$BATS_FILE_TMPDIR"
	$PYTHON -W ignore "$BATS_TEST_DIRNAME/../data/make_layouts.py" lay
	"$BIN/h5tok" -q lay/csr_gzip.h5ad -o a.counts
	"$BIN/scsim" -q --cells 700 --genes 300 --seed 5 -o sim.counts
	"$BIN/rankenc" -q --fit a.counts -o vocab.tsv
	"$BIN/rankenc" -q --fit sim.counts -o sim.tsv
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

# fails MESSAGE COMMAND...: exit status 1, the message, and no output file
fails() {
	local message=$1
	shift
	rm -f never.tok
	run "$@" -o never.tok
	assert_failure 1
	names "$message"
	assert_file_not_exist never.tok
}

@test "rankenc: help, version, misuse" {
	run rankenc --help
	assert_success
	run rankenc --version
	assert_success
	run rankenc a.counts -o /dev/null
	assert_failure 2
	assert_output --partial "a vocabulary is needed"
	run rankenc -m vocab.tsv a.counts a.counts -o /dev/null
	assert_failure 2
	run rankenc --fit -m vocab.tsv a.counts -o /dev/null
	assert_failure 2
	run rankenc -m vocab.tsv --max-len 2 a.counts -o /dev/null
	assert_failure 2
}

@test "rankenc: a file takes the vocabulary that was learnt from it, though most of its genes are in no cell; both shares count expressed genes" {
	$PYTHON -W ignore - <<-'P'
		import anndata as ad, numpy as np, scipy.sparse as sp, pandas as pd
		x = np.zeros((50, 2000), np.float32)
		x[:, :300] = np.random.default_rng(0).integers(0, 4, (50, 300))
		x[:, 0] = 1
		ad.AnnData(sp.csr_matrix(x), var=pd.DataFrame(index=[f"gene{i}" for i in range(2000)])).write_h5ad("few.h5ad")
	P
	h5tok -q few.h5ad -o few.counts
	run -0 rankenc --fit few.counts -o few.vocab
	names "note: 300 50"
	rankenc -q -m few.vocab few.counts -@ 3 -o few.tok
	rankenc -q -m few.vocab --min-matched 100 few.counts -o few.tok
	h5tok -q --rank few.vocab --min-matched 100 few.h5ad -o again.tok
	cmp again.tok few.tok
	# 59 of 300 expressed genes are too few, 60 are enough
	(head -n 3 few.vocab; tail -n +4 few.vocab | head -n 59) >59.vocab
	(head -n 3 few.vocab; tail -n +4 few.vocab | head -n 60) >60.vocab
	fails "few.counts 19.7 59.vocab 20 --min-matched" \
		rankenc -m 59.vocab few.counts
	fails "59 --min-matched 0" \
		h5tok --rank 59.vocab few.h5ad
	fails "--min-matched 0" rankenc -m 60.vocab few.counts
	rankenc -q -m 60.vocab --min-matched 19 few.counts -o few.tok
	(head -n 3 few.vocab; printf '2\tother\t\t1\n') >other.vocab
	fails "few.counts other.vocab 20 --min-matched 100.0" \
		rankenc -m other.vocab few.counts
}

@test "rankenc --fit, h5tok: a gene name with a tab, a line break or another control character is refused where it enters" {
	for c in '\t' '\n' '\r' '\x1b' '\x7f'; do
		$PYTHON -W ignore - "$c" <<-'P'
			import sys, anndata as ad, numpy as np, pandas as pd
			c = sys.argv[1].encode().decode("unicode_escape")
			x = np.ones((4, 3), np.float32)
			x[0, 0] = 2
			ad.AnnData(x, var=pd.DataFrame(index=["a", "b", f"c{c}1"])).write_h5ad("id.h5ad")
			ad.AnnData(x, var=pd.DataFrame({"feature_name": ["a", "b", f"c{c}1"]},
			           index=["ENSG00000000001", "ENSG00000000002", "ENSG00000000003"])).write_h5ad("symbol.h5ad")
		P
		for f in id symbol; do
			fails "2 character 0x" h5tok $f.h5ad
		done
		# a stream of another program
		PYTHONPATH=$BATS_TEST_DIRNAME/../src:$BATS_TEST_DIRNAME/../python $PYTHON - "$c" <<-'P'
			import sys, numpy as np, corrmask.stream as scstream
			c = sys.argv[1].encode().decode("unicode_escape")
			columns = [{"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "n_counts", "type": "u64", "shape": "scalar"},
			           {"name": "gene", "type": "u32", "shape": "ragged", "group": "gene"},
			           {"name": "count", "type": "u32", "shape": "ragged", "group": "gene"}]
			vocab = {"id": ["a", f"c{c}1"], "symbol": ["", ""], "median": [None, None]}
			scstream.write("odd.counts", {"kind": "counts", "columns": columns, "provenance": [], "vocab": vocab},
			               [{"cell": np.arange(1, dtype=np.uint64), "n_counts": np.array([2], np.uint64),
			                 "gene": (np.array([0, 2], np.uint64), np.array([0, 1], np.uint32)),
			                 "count": (np.array([0, 2], np.uint64), np.array([1, 1], np.uint32))}])
		P
		fails "odd.counts 1 0x" rankenc --fit odd.counts
	done
}

@test "rankenc: order, ties, values, truncation and special tokens against plain Python" {
	rankenc -q --fit --vocab-style v2 a.counts -o v2.tsv
	for o in "--vocab-style v1 --value" "--vocab-style v2 --value" "--vocab-style v1 --max-len 5 --value" "--vocab-style v2 --max-len 7 --value"; do
		scview --gene-names id a.counts >counts.tsv
		rankenc -q -m v2.tsv $o a.counts | scview >tok.tsv
		$PYTHON "$BATS_TEST_DIRNAME/ref/encode.py" v2.tsv counts.tsv tok.tsv $o
		scview --gene-names id sim.counts >counts.tsv
		rankenc -q -m sim.tsv ${o/v2/v1} sim.counts | scview >tok.tsv
		$PYTHON "$BATS_TEST_DIRNAME/ref/encode.py" sim.tsv counts.tsv tok.tsv ${o/v2/v1}
	done
	# ties: all medians alike, so genes of one count stand in the order of the vocabulary
	awk -F'\t' -v OFS='\t' 'NR > 1 && $4 != "NA" { $4 = 1.5 } 1' sim.tsv >flat.tsv
	rankenc -q -m flat.tsv --value sim.counts | scview >tok.tsv
	scview --gene-names id sim.counts >counts.tsv
	$PYTHON "$BATS_TEST_DIRNAME/ref/encode.py" flat.tsv counts.tsv tok.tsv --vocab-style v1 --value
}

@test "rankenc: the same bytes on one, two and three threads, from file, stdin and -" {
	for t in 1 2 3; do rankenc -q -@$t -m sim.tsv --value sim.counts -o $t.tok; done
	cmp 1.tok 2.tok
	cmp 1.tok 3.tok
	rankenc -q -m sim.tsv --value <sim.counts -o again
	cmp again 1.tok
	rankenc -q -m sim.tsv --value - <sim.counts -o again
	cmp again 1.tok
	for t in 1 2 3; do rankenc -q --fit -@$t sim.counts -o $t.tsv; done
	cmp 1.tsv 2.tsv
	cmp 1.tsv 3.tsv
	rankenc -q --fit <sim.counts | cmp - 1.tsv
}

@test "rankenc: other columns pass, in the order of the cells; cells without a gene are dropped" {
	run rankenc -m vocab.tsv a.counts -o a.tok
	assert_success
	names "1 23 vocabulary"
	scview -c cell,barcode,n_counts,cell_type,score,age,flag,donor a.tok >t
	scview -c cell,barcode,n_counts,cell_type,score,age,flag,donor a.counts | sed 7d | cmp - t
}

@test "rankenc: medians are those of numpy, exactly" {
	scview --gene-names id a.counts >counts.tsv
	$PYTHON "$BATS_TEST_DIRNAME/ref/medians.py" vocab.tsv counts.tsv 0
	scview --gene-names id sim.counts >counts.tsv
	$PYTHON "$BATS_TEST_DIRNAME/ref/medians.py" sim.tsv counts.tsv 0
	# several inputs are one corpus
	rankenc -q --fit a.counts sim.counts -o both.tsv
	assert_equal "$(sed 1,3d both.tsv | cut -f2 | sort -c && echo sorted)" sorted
	assert_equal "$(sed 1,3d both.tsv | wc -l)" "$(sed 1,3d vocab.tsv sim.tsv | cut -f2 | grep -v -e '^gene_id' -e '^<' | sort -u | wc -l)"
	rankenc -q --fit --min-cells 8 a.counts -o min.tsv
	scview --gene-names id a.counts | $PYTHON -c "
import sys, collections
next(sys.stdin)
n = collections.Counter(g for l in sys.stdin for g in l.rstrip('\n').split('\t')[-2].split())
want = sorted(g for g in n if n[g] >= 8)
assert [l.split('\t')[1] for l in open('min.tsv')][3:] == want"
	fails "no gene 24" rankenc --fit --min-cells 24 a.counts
}

# bats test_tags=slow,data
@test "rankenc: medians of real cells, in order and sorted against the method, within 0.1 % of the middle" {
	need scrna/pbmc_kang2018_1287genes.h5ad
	h5tok -q "$SHARED/scrna/pbmc_kang2018_1287genes.h5ad" -o k.counts
	rankenc -q --fit k.counts -o k.tsv
	scview --gene-names id k.counts >counts.tsv
	$PYTHON "$BATS_TEST_DIRNAME/ref/medians.py" k.tsv counts.tsv 0.001
}

# bats test_tags=slow,data
@test "rankenc: Geneformer's own tables, V1 and V2, on real files: an independent reading of the rules" {
	need scrna geneformer
	G=$SHARED/geneformer
	for f in pbmc3k_10x pbmc_hao2021_1000cells_unlabelled lung_luad_kim2020_2000genes; do
		h5tok -q "$SHARED/scrna/$f.h5ad" -o real.counts
		for v in "v1 gc30M" "v2 gc104M"; do
			set -- $v
			map=
			[ "$1" = v1 ] || map=$G/ensembl_mapping_$2.tsv.gz
			rankenc -q -@2 --vocab-style "$1" -t "$G/token_dictionary_$2.tsv.gz" -m "$G/gene_median_$2.tsv.gz" ${map:+--map "$map"} real.counts -o real.tok
			scview -c cell,token real.tok | $PYTHON -W ignore "$BATS_TEST_DIRNAME/ref/tokens.py" "$SHARED/scrna/$f.h5ad" \
				"$G/token_dictionary_$2.tsv.gz" "$G/gene_median_$2.tsv.gz" $map "$1" >said
			echo "# $f $1: $(cat said)" >&3
		done
	done
}

@test "rankenc: genes found through a mapping, versions ignored, and two genes of one id added" {
	awk -F'\t' -v OFS='\t' 'NR > 3 { $2 = "NEW" int(++n / 2) } 1' vocab.tsv | awk -F'\t' -v OFS='\t' '!($2 in s) { s[$2]; if (NR > 1) $1 = k++; print }' >new.tsv
	paste <(sed 1,3d vocab.tsv | cut -f2) <(sed 1,3d vocab.tsv | awk '{ print "NEW" int(++n / 2) }') >map.tsv
	rankenc -q -m new.tsv --map map.tsv a.counts -o mapped.tok
	scview -c token mapped.tok | sed 1d | awk '{ delete s; for (i = 1; i <= NF; i++) { if ($i in s) exit 1; s[$i] } }'
	awk -F'\t' -v OFS='\t' 'NR > 1 { $3 = "" } 1' new.tsv >unnamed.tsv # else genes are found by symbol
	fails "none of the genes is in unnamed.tsv" rankenc -m unnamed.tsv a.counts
	# a gene that stands twice in a cell, with parts of its count
	PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON - <<-'END'
		import numpy as np, corrmask.stream as scstream
		s, blocks = scstream.read("a.counts"), []
		for b in s:
		    (at, gene), x = b["gene"], np.asarray(b["count"][1])
		    twice = 1 + (x > 1)
		    end, part = np.cumsum(twice), np.repeat(x, twice)
		    part[end[x > 1] - 1] = 1
		    part[end[x > 1] - 2] -= 1
		    at = np.concatenate([[0], end])[np.asarray(at)]
		    blocks.append(dict(b, gene=(at, np.repeat(gene, twice)), count=(at, part)))
		scstream.write("twice.counts", s.header, blocks)
	END
	run ! cmp -s a.counts twice.counts
	diff <(rankenc -q -m vocab.tsv --value a.counts | scview -c token,value) <(rankenc -q -m vocab.tsv --value twice.counts | scview -c token,value)
}

@test "rankenc, h5tok --rank: symbols are matched by the symbols of the vocabulary; those of several genes are left out" {
	$PYTHON -W ignore -c '
import anndata, numpy as np, scipy.sparse as sp
x = np.random.default_rng(1).poisson(1.5, (30, 40)).astype("f4")
for name, ids in ("ensembl", ["ENSG%011d" % i for i in range(40)]), ("symbols", ["SYM%d" % i for i in range(40)]):
    a = anndata.AnnData(sp.csr_matrix(x))
    a.var_names = ids
    a.write_h5ad(name + ".h5ad")'
	h5tok -q ensembl.h5ad -o ensembl.counts
	h5tok -q symbols.h5ad -o symbols.counts
	rankenc -q --fit --min-cells 1 ensembl.counts | awk -F '\t' -v OFS='\t' '$2 ~ /^ENSG/ { $3 = "SYM" substr($2, 5) + 0 } 1' > with.tsv
	rankenc -q -m with.tsv ensembl.counts | scview > ensembl.txt
	run -0 --separate-stderr rankenc -m with.tsv symbols.counts -o s.tok
	assert_equal "${#stderr_lines[@]}" 2
	assert_equal "${stderr_lines[0]}" "rankenc: note: 40 genes are matched by symbol, as their ids are not Ensembl ids; 0 left out, as several genes of with.tsv have their symbol"
	assert_equal "${stderr_lines[1]}" "rankenc: note: 40 of 40 genes, with 100.0 % of the counts, are in the vocabulary"
	scview s.tok | diff - ensembl.txt
	h5tok -q --rank with.tsv symbols.h5ad -o direct.tok
	scview direct.tok | diff - ensembl.txt
	# SYM3 and SYM4 become one symbol of two genes, SYM5 is no longer there: as if these three genes were not in the input
	sed 's/\tSYM4\t/\tSYM3\t/; s/\tSYM5\t/\t\t/' with.tsv > twice.tsv
	run -0 --separate-stderr rankenc -m twice.tsv symbols.counts -o s.tok
	assert_equal "${stderr_lines[0]}" "rankenc: note: 37 genes are matched by symbol, as their ids are not Ensembl ids; 1 left out, as several genes of twice.tsv have its symbol"
	refute [ "$(scview --gene-names id s.tok | grep -cE 'ENSG0000000000[345]([^0-9]|$)')" != 0 ]
	grep -vE 'ENSG0000000000[345]' with.tsv | awk -F '\t' -v OFS='\t' 'NR > 1 { $1 = NR - 2 } 1' > fewer.tsv
	rankenc -q -m fewer.tsv ensembl.counts | scview --gene-names id - | diff - <(scview --gene-names id s.tok)
	# a vocabulary without symbols says what is wrong, as before
	awk -F '\t' -v OFS='\t' 'NR > 1 { $3 = "" } 1' with.tsv > without.tsv
	fails "none of the genes is in without.tsv" rankenc -m without.tsv symbols.counts
	# of Ensembl ids, a gene without one is not looked up by its name
	sed 's/^2\t[^\t]*/2\tENSG99/; s/^3\t[^\t]*\t[^\t]*/3\tENSG98\tENSG00000000001/' with.tsv > other.tsv
	run -0 --separate-stderr rankenc -m other.tsv ensembl.counts -o s.tok
	assert_equal "${#stderr_lines[@]}" 1
	assert_regex "${stderr_lines[0]}" '^rankenc: note: 38 of 40 genes, with 9[0-9]\.[0-9] % of the counts, are in the vocabulary$'
}

@test "rankenc: no cells and cells without counts are told, and have no share of the counts" {
	scsample -q --min-genes 9999 -o none.counts sim.counts
	run -0 rankenc -m sim.tsv none.counts -o none.tok
	assert_line "rankenc: warning: none.counts: no cells"
	assert_line --regexp '^rankenc: note: [0-9]+ of 300 genes are in the vocabulary$'
	$PYTHON -W ignore -c '
import anndata, numpy as np
a = anndata.AnnData(np.zeros((3, 4), "f4"))
a.var_names = ["ENSG%011d" % i for i in range(4)]
a.write_h5ad("zeros.h5ad")'
	h5tok -q zeros.h5ad -o zeros.counts
	run -0 rankenc -m vocab.tsv --min-matched 0 zeros.counts -o zeros.tok
	names "warning: zeros.counts 0"
	refute_output --partial "100.0 %"
}

# bats test_tags=data
@test "rankenc: genes by symbol through Geneformer's name table" {
	need original/placenta_cellxgene_220cells_anndata0.8.h5ad geneformer
	G=$SHARED/geneformer
	run bash -o pipefail -c "h5tok -q '$SHARED/original/placenta_cellxgene_220cells_anndata0.8.h5ad' | rankenc --map '$G/gene_name_id_gc30M.tsv.gz' \
		-t '$G/token_dictionary_gc30M.tsv.gz' -m '$G/gene_median_gc30M.tsv.gz' -o p.tok"
	assert_success
	assert_output --regexp "note: [0-9]+ of [0-9]+ genes, with [0-9.]+ % of the counts, are in the vocabulary"
	assert_equal "$(scview -c cell_type p.tok | wc -l)" 221
	# mouse genes are not these
	need tenx/heart_1k_v2_mouse_filtered_gene_bc_matrices.h5
	h5tok -q "$SHARED/tenx/heart_1k_v2_mouse_filtered_gene_bc_matrices.h5" -o mouse.counts
	fails "none of the genes is in" rankenc -t "$G/token_dictionary_gc30M.tsv.gz" -m "$G/gene_median_gc30M.tsv.gz" mouse.counts
}

@test "rankenc: one note on what the vocabulary has; --medians is --vocab" {
	head -8 vocab.tsv >few.tsv
	run -0 rankenc --medians few.tsv --min-matched 0 a.counts -o few.tok
	assert_line --regexp "^rankenc: note: [0-9]+ of [0-9]+ genes, with [0-9.]+ % of the counts, are in the vocabulary$"
	assert_equal "$(grep -c note: <<<"$output")" 1
	rankenc -q --vocab few.tsv --min-matched 0 a.counts -o again
	cmp again few.tok
}

@test "rankenc: too few genes or counts in the vocabulary" {
	head -8 vocab.tsv >few.tsv
	fails "14.7 few.tsv 20" rankenc -m few.tsv a.counts
	rankenc -q -m few.tsv --min-matched 0 a.counts -o few.tok
	scview --check few.tok
}

@test "rankenc: bad vocabularies and tables" {
	cut -f2,1 vocab.tsv | awk -F'\t' -v OFS='\t' 'NR == 1 { print "token", "id"; next } { print $2, $1 }' >t.tsv
	sed 1,3d vocab.tsv | awk -F'\t' -v OFS='\t' 'BEGIN { print "ensembl_id", "nonzero_median" } { print $2, $4 }' >m.tsv
	rankenc -q -m m.tsv -t t.tsv a.counts | scview -c token >a
	rankenc -q -m vocab.tsv a.counts | scview -c token | cmp - a
	sed 4d m.tsv >v
	fails "no median for gene" rankenc -m v -t t.tsv a.counts
	sed 4d t.tsv >v
	fails "no token has number 2" rankenc -m m.tsv -t v a.counts
	sed '4s/\t.*/\tx/' t.tsv >v
	fails "v: line 4:" rankenc -m m.tsv -t v a.counts
	sed 1d m.tsv >v
	fails "v 1 data" rankenc -m v -t t.tsv a.counts
}

@test "rankenc: the wrong stream, cut streams, empty pipe, killed upstream" {
	for n in 0 10 200 1000; do
		head -c $n a.counts >cut.counts
		fails "cut.counts" rankenc -m vocab.tsv cut.counts
		fails "cut.counts" rankenc --fit cut.counts
	done
	head -c -1 a.counts >cut.counts
	fails "cut.counts" rankenc -m vocab.tsv cut.counts
	run bash -c "rankenc -m vocab.tsv -o never.tok </dev/null"
	assert_failure 1
	assert_file_not_exist never.tok
	# h5tok fails half way: what it wrote is no whole stream
	run bash -c "h5tok -q --layer none lay/normalised.h5ad | rankenc -q -m vocab.tsv -o never.tok"
	assert_failure 1
	assert_file_not_exist never.tok
}

@test "rankenc: the examples of the manual run" {
	need_tool h5tok rankenc scview
	mkdir -p examples && cd examples
	cp ../lay/csr_gzip.h5ad cells.h5ad
	# without pipefail: scview -n 2 does not read on, and what writes to it may end by SIGPIPE
	bash -e <<<"$(awk '/^\.Sh EXAMPLES/ { on = 1 } /^\.Sh DIAG/ { on = 0 } on && /^\.Ed/ { p = 0 } p; on && /^\.Bd/ { p = 1 }' \
		"$BATS_TEST_DIRNAME/../man/rankenc.1.in")"
	assert_file_exist sums   # of the last example
}

@test "rankenc --fit --sums: parts of a corpus, pass by pass, give the vocabulary of all cells at once" {
	mkdir -p parts
	cd parts
	for i in 1 2 3 4; do
		scsim -q --cells ${i}00 --genes $((60 + 20 * i)) --depth $((200 * i)) --seed $i -o $i.counts
	done
	scsample -q -n 0 4.counts -o 4.none && mv 4.none 4.counts
	for style in v1 v2; do
		rankenc -q --fit --vocab-style $style --min-cells 3 ./*.counts -o whole.tsv
		after=
		for n in 1 2 3 4 5; do
			# shellcheck disable=SC2086
			for i in 1 2 3 4; do rankenc -q --fit --sums $after -o $i.$n $i.counts; done
			# added in two steps
			rankenc -q --fit --sums [12].$n -o some.$n
			rankenc -q --fit --sums some.$n [34].$n -o all.$n --report report
			left=$(awk '$1 == "genes_left" { print $2 }' report)
			[ "$left" != 0 ] || break
			run -1 rankenc --fit all.$n
			names "all.$n $n $left rankenc --fit --sums --after"
			after="--after all.$n"
		done
		assert [ "$n" -gt 1 ]
		rankenc -q --fit --vocab-style $style --min-cells 3 all.$n | cmp - whole.tsv
	done
	# without all parts of the previous pass, twice the same part, other passes, other genes
	run -1 rankenc -q --fit some.2
	assert_output --partial "some.2: gene "
	names "missing twice"
	cp 1.2 again.2
	rankenc -q --fit --sums [1234].2 again.2 -o twice
	run -1 rankenc -q --fit twice
	names "missing twice"
	run -1 rankenc -q --fit --sums 1.1 2.2
	names "2.2 2 1.1 1"
	scsim -q --cells 10 --genes 300 -o other.counts
	run -1 rankenc -q --fit --sums --after all.1 other.counts -o x
	assert_output --partial "which has the sums of the previous pass"
	run -1 rankenc -q --fit --sums --after all.$n 1.counts -o x
	names "all.$n rankenc --fit"
	head -c 2000 all.1 >cut
	run -1 rankenc -q --fit cut -o x
	names "cut stream short"
	assert_not_exist x
	cp 1.counts copy
	run -1 rankenc -q --fit 1.counts 2.counts copy -o x
	assert_output --regexp "^rankenc: copy: it has the same cells as 1.counts [(]digest [0-9a-f]{16}...[)]$"
	run -1 rankenc -q --fit --sums 1.1 2.1 1.1 -o x
	names "1.1 twice"
}
