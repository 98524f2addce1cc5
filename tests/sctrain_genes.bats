load helper

# 300 cells of about 45 tokens; the genes' labels are their modules
setup_file() {
	need_tool scsim rankenc maskgen scview scsample
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 300 --genes 80 --modules 4 --types 2 --module-share 0.8 --depth 600 --seed 5 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o all.tok sim.counts
	scsample -q --test-fraction 0.25 --part train -o train.tok all.tok
	scsample -q --test-fraction 0.25 --part test -o test.tok all.tok
	maskgen -q --epochs 2 -u train.tok | sctrain mlm -q --config tiny --lr 0.003 -o base
	maskgen -q --strategy none --epochs 4 -o train.masked train.tok
	maskgen -q --strategy none -o held.masked test.tok
	awk -F'\t' 'NR > 1 && $3 ~ /^m[1-4]/ { print $2 "\t" ($3 ~ /^m[12]/ ? "odd one" : "even") }' vocab.tsv >labels.tsv
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
}

ref() {
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" "$@"
}

# near GOT WANT: rows of numbers agree to 1e-5
near() {
	$PYTHON -c 'import sys; a, b = ([float(x) for x in t.split()] for t in sys.argv[1:]); print(a, b); assert len(a) == len(b) and all(abs(x - y) <= 1e-5 * abs(y) for x, y in zip(a, b))' "$1" "$2"
}

@test "sctrain genes: help and misuse" {
	run sctrain genes --help
	assert_success
	assert_output --partial "--gene-labels FILE"
	run sctrain genes -o x train.masked
	assert_failure 2
	assert_line --index 0 "sctrain genes: no genes: --gene-labels FILE"
	for f in 5/5 1/1 -1/5 1 a/b 1/5x "1/ 5" 1/; do
		run sctrain genes --gene-labels labels.tsv --fold "$f" -o x train.masked
		assert_failure 2
		assert_line --index 0 --partial "is not K/N"
	done
	assert_not_exist x
}

@test "sctrain genes: learns the labels of all genes; on other cells, by an independent reading of the model" {
	run sctrain genes --gene-labels labels.tsv --init base --lr 0.003 --eval held.masked -o all train.masked
	assert_success
	names "note: head genes new"
	scview -c token test.tok >test.tsv
	ref genes all test.tsv train >got
	cat got
	near "$(tail -1 all/train.tsv | cut -f7-9)" "$(cat got)"
	$PYTHON -c "assert $(cut -f2 got) > 0.95"         # chance is 0.5; measured 1.0
	assert_equal "$(cut -f4,5 all/genes.tsv | sort -u | tr '\n' ' ')" "$(printf 'NA\ttrain fold\tsplit ')"
	grep -q BertForTokenClassification all/config.json
	grep -q '"0":.*"even"' all/config.json
}

@test "sctrain genes --fold: held-out genes have no label in training, and are what --eval measures" {
	maskgen -q --strategy none --batch 300 -o batch.masked train.tok
	scview -c token train.tok >train.tsv
	scview -c token test.tok >test.tsv
	for k in 0 3; do
		rm -rf step
		# one step at rate 0: the weights after it are the initial ones
		run sctrain genes --gene-labels labels.tsv --fold $k/4 --init base --dropout 0 --lr 0 --eval held.masked -o step batch.masked
		assert_success
		assert_output --partial "fold $k/4: 48 genes to learn from, 16 held out"
		near "$(tail -1 step/train.tsv | cut -f2)" "$(ref genes step train.tsv train | cut -f1)"
		near "$(tail -1 step/train.tsv | cut -f7-9)" "$(ref genes step test.tsv test)"
		cp step/genes.tsv fold$k.tsv
	done
	# folds: every gene once, each label its share, the same folds whichever is held out and in any order of the table
	cmp <(cut -f1-4 fold0.tsv) <(cut -f1-4 fold3.tsv)
	$PYTHON - <<-'END'
		import collections
		rows = [l.split("\t") for l in open("fold3.tsv").read().split("\n")[:-1]]
		assert rows.pop(0) == ["gene_id", "symbol", "label", "fold", "split"]
		want = dict(l.split("\t") for l in open("labels.tsv").read().split("\n")[:-1])
		assert {r[0]: r[2] for r in rows} == want and len(rows) == len(want)
		n = collections.Counter((r[2], r[3]) for r in rows)
		assert n == {(y, f): 8 for y in ("odd one", "even") for f in "0123"}, n
		assert all((r[4] == "test") == (r[3] == "3") for r in rows)
	END
	(printf 'symbol\tx\tlabel\n'; sort -r labels.tsv | while IFS=$'\t' read -r gene label; do
		printf '%s\ty\t%s\n' "$(awk -F'\t' -v g="$gene" '$2 == g { print $3 }' vocab.tsv)" "$label"; done) | gzip >symbols.tsv.gz
	rm -rf step
	sctrain genes -q --gene-labels symbols.tsv.gz --fold 3/4 --init base --lr 0 -o step batch.masked
	cmp fold3.tsv step/genes.tsv
	# genes.tsv itself will do
	rm -rf step
	sctrain genes -q --gene-labels fold0.tsv --fold 3/4 --init base --lr 0 -o step batch.masked
	cmp fold3.tsv step/genes.tsv
}

@test "sctrain genes: cut and resumed, it gives the same weights; other genes are refused" {
	A=(--gene-labels labels.tsv --init base --lr 0.001 --save-every 10 --eval held.masked --best loss)
	F=(--fold 1/4)
	sctrain genes -q "${F[@]}" "${A[@]}" -o whole train.masked
	head -c $(($(stat -c %s train.masked) / 2)) train.masked >half
	run sctrain genes "${F[@]}" "${A[@]}" -o cut half
	assert_failure 1
	assert_exist cut/checkpoint-*/genes.tsv
	run sctrain genes "${A[@]}" --fold 2/4 --resume -o cut train.masked
	assert_failure 1
	names "--resume: cut genes:"
	sctrain genes -q "${F[@]}" "${A[@]}" --resume -o cut train.masked
	cmp whole/model.safetensors cut/model.safetensors
	cmp whole/genes.tsv cut/genes.tsv
	cmp <(cut -f1-4,7-9 whole/train.tsv) <(cut -f1-4,7-9 cut/train.tsv)
	# the default keeps the last weights: held-out genes that choose the weights are not held out
	sctrain genes -q --gene-labels labels.tsv --fold 1/4 --init base --lr 0.001 --eval held.masked -o last train.masked
	sctrain genes -q --gene-labels labels.tsv --fold 1/4 --init base --lr 0.001 -o plain train.masked
	cmp last/model.safetensors plain/model.safetensors
}

@test "sctrain genes: a table with a column for each class, as Geneformer's, gives the same genes; so do commas" {
	sctrain genes -q --gene-labels labels.tsv --fold 0/2 --init base -o long.model train.masked
	{
		printf 'odd one,even\r\n'
		paste -d, <(awk -F'\t' '$2 != "even" { print $1 }' labels.tsv) <(awk -F'\t' '$2 == "even" { print $1 }' labels.tsv) | sed 's/$/\r/'
	} >wide.csv
	tr , '\t' <wide.csv >wide.tsv
	tr '\t' , <labels.tsv >long.csv
	{ printf '"gene","label"\n' && sed 's/\(.*\)\t\(.*\)/"\1","\2"/' labels.tsv; } >quoted.csv
	for f in wide.csv wide.tsv long.csv quoted.csv; do
		rm -rf other.model
		sctrain genes -q --gene-labels $f --fold 0/2 --init base -o other.model train.masked
		cmp long.model/genes.tsv other.model/genes.tsv || fail $f
	done
	sed -i '3s/^/x,/' wide.csv
	run -1 sctrain genes --gene-labels wide.csv --init base -o bad train.masked
	assert_output --partial "wide.csv: line 3: 3 fields, but there are 2 classes"
}

# bats test_tags=data
@test "sctrain genes: Geneformer's dosage-sensitive and insensitive transcription factors, from its own file" {
	T=$SHARED/geneformer
	need geneformer/gene_classification/dosage_sens_tf_labels.csv scrna/pbmc3k_10x.h5ad
	h5tok -q "$SHARED/scrna/pbmc3k_10x.h5ad" | scsample -q -n 12 | rankenc -q -t "$T/token_dictionary_gc30M.tsv.gz" -m "$T/gene_median_gc30M.tsv.gz" |
		maskgen -q --strategy none --batch 12 -o tf.masked
	sctrain genes -q --gene-labels "$T/gene_classification/dosage_sens_tf_labels.csv" --fold 0/5 --config tiny -o tf.model tf.masked
	assert_equal "$(tail -n +2 tf.model/genes.tsv | cut -f3 | sort | uniq -c | xargs)" "368 dosage_insensitive 122 dosage_sensitive"
	assert_equal "$(tail -n +2 tf.model/genes.tsv | cut -f1,3 | sort)" \
		"$($PYTHON -c 'import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
print("\n".join(sorted("%s\t%s" % (g, c) for r in rows for c, g in r.items() if g)))' "$T/gene_classification/dosage_sens_tf_labels.csv")"
}

@test "sctrain genes: bad tables" {
	B=(--init base -o bad train.masked)
	bad() { # bad MESSAGE [OPTION...]: the table on standard input
		local want=$1
		shift
		cat >bad.tsv
		run sctrain genes --gene-labels bad.tsv "$@" "${B[@]}"
		assert_failure 1
		assert_output --partial "$want"
	}
	g=$(sed -n 1,4p labels.tsv | cut -f1)
	set -- $g
	printf '%s\tA\n%s\n' "$1" "$2" | bad "bad.tsv: line 2: expected a gene and its label, with a tab or comma between"
	printf '%s\tA\n%s\tB\n' "$1" "$1" | bad "bad.tsv: line 2: gene $1 has two labels"
	printf 'ENSG1\tA\nENSG2\tB\n' | bad "bad.tsv: none of its 2 genes is in the vocabulary"
	printf 'gene\tlabel\n' | bad "bad.tsv: no genes in it"
	printf 'name\tlabel\nx\ty\n' | bad "none named gene_id, gene or symbol"
	printf '%s\tA\n%s\tA\nENSG2\tB\n' "$1" "$2" | bad "have the label 'A': there is nothing to tell apart"
	printf '%s\tA\n%s\tA\n%s\tB\n' "$1" "$2" "$3" | bad "--fold 0/2: label 'B' has 1 genes in the vocabulary, fewer than the 2 folds" --fold 0/2
	run sctrain genes --gene-labels nowhere.tsv "${B[@]}"
	assert_failure 1
	assert_output --partial "--gene-labels: nowhere.tsv: No such file"
	assert_not_exist bad/model.safetensors
	printf '%s\tA\n%s\tB\nENSG2\tB\n%s\tA\n' "$1" "$2" "$1" >some.tsv
	run sctrain genes --gene-labels some.tsv --init base --lr 0 -o some held.masked
	assert_success
	names "warning: 1 3 some.tsv ENSG2"
	assert_equal "$(wc -l <some/genes.tsv)" 3
}

# bats test_tags=data
@test "sctrain genes: Geneformer's dosage-sensitive genes in its two vocabularies" {
	need geneformer/gene_classification/dosage_sens_tf_labels.csv geneformer/token_dictionary_gc30M.tsv.gz
	G=$SHARED/geneformer
	awk -F, 'NR > 1 { sub(/\r/, ""); if ($1 != "") print $1 "\tsensitive"; if ($2 != "") print $2 "\tinsensitive" }' \
		"$G/gene_classification/dosage_sens_tf_labels.csv" >dosage.tsv
	$PYTHON - "$G" <<-'END'
		import gzip, sys
		# a cell of the labelled genes themselves, as a 10x folder
		genes = [l.split("\t")[0] for l in open("dosage.tsv")]
		import os
		os.makedirs("tf", exist_ok=True)
		open("tf/genes.tsv", "w").write("".join(f"{g}\t{g}\n" for g in genes))
		open("tf/barcodes.tsv", "w").write("A\nB\n")
		open("tf/matrix.mtx", "w").write(f"%%MatrixMarket matrix coordinate integer general\n{len(genes)} 2 {2 * len(genes)}\n"
		    + "".join(f"{i + 1} {c + 1} {i % 7 + 1}\n" for c in range(2) for i in range(len(genes))))
	END
	h5tok -q tf -o tf.counts
	# facts on record: all 490 are in V1's vocabulary, V2's lacks 5 insensitive ones
	for v in "30M 392 98 24 74" "104M 388 97 24 73"; do
		read -r gc train test sensitive insensitive <<<"$v"
		rankenc -q -t "$G/token_dictionary_gc$gc.tsv.gz" -m "$G/gene_median_gc$gc.tsv.gz" --max-len 200 tf.counts | maskgen -q --strategy none -o tf.masked
		run sctrain genes --config tiny --gene-labels dosage.tsv --fold 0/5 --force -o tf.model tf.masked
		assert_success
		assert_output --partial "fold 0/5: $train genes to learn from, $test held out"
		assert_equal "$(cut -f3-5 tf.model/genes.tsv | grep -c "^sensitive.*test$")" "$sensitive"
		assert_equal "$(cut -f3-5 tf.model/genes.tsv | grep -c "^insensitive.*test$")" "$insensitive"
	done
	names "warning: 5 490 dosage.tsv"
}
