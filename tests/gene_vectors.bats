#!/usr/bin/env bats
# scembed --of genes and static, scgenes network: vectors of genes by numpy, and the graph of the nearest ones as depgraph reads it
load helper

ref() {
	$PYTHON -B "$BATS_TEST_DIRNAME/ref/gene_vectors.py" "$@"
}

setup_file() {
	need_tool scembed ctaprobe scgenes sctrain depgraph scsim
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 60 --genes 90 --types 3 --rarest .2 --donors 3 --depth 300 --seed 3 -o counts
	rankenc -q --fit counts -o vocab
	rankenc -q -m vocab counts -o tok
	maskgen -q --batch 20 tok | sctrain mlm -q --config tiny -o model
	scembed -q -M model --of genes tok -o genes.emb
}

setup() { cd "$BATS_FILE_TMPDIR"; }

@test "scembed --of genes: means, cells and spread of the states are numpy's, of two layers, by class too; static is the model's table" {
	ref genes model tok genes.emb
	scembed -q -M model --of genes --emb-layer 0 --by cell_type tok -o by.emb
	ref genes model tok by.emb layer=0 by=cell_type
	scembed -q -M model --of static tok -o static.emb
	ref static model static.emb
	# the same bytes on any number of threads, and from a pipe
	cat tok | scembed -q -M model --of genes -@ 3 | cmp - genes.emb
	cat tok | scembed -q -M model --of genes --emb-layer 0 --by cell_type -@ 2 | cmp - by.emb
	# cells without a class are left out
	$PYTHON -B -c 'import sys; sys.path.insert(0, sys.argv[1]); import corrmask.stream as scstream
r = scstream.read("tok"); blocks = []
for b in r:
    b["cell_type"] = ([-1 if i % 2 else c for i, c in enumerate(b["cell_type"][0])], b["cell_type"][1]); blocks.append(b)
scstream.write("half.tok", r.header, blocks)' "$BATS_TEST_DIRNAME/../python" || skip "scstream cannot write categories back"
	run -0 scembed -M model --of genes --by cell_type half.tok -o half.emb
	assert_output --regexp "30 of [0-9]+ cells have no label in column 'cell_type' and are left out"
}

@test "scgenes network: the nearest genes by cosine are numpy's, and depgraph, map and scview read what comes out" {
	scgenes network -q -k 5 genes.emb -o g.graph
	depgraph -q -O tsv g.graph -o edges.tsv
	ref network genes.emb edges.tsv k=5
	scgenes network -q -k 9 -@ 2 genes.emb -o few.graph
	depgraph -q -O tsv few.graph -o edges.tsv
	ref network genes.emb edges.tsv k=9
	run -0 depgraph -O stats g.graph
	assert_line --regexp '^edges'
	depgraph -q --leiden 1 tok -o d.graph
	depgraph -q -O layout g.graph -o layout
	maskgen -q -g g.graph --strategy corrmask tok -o masked
	scview --check masked
	screduce map -q genes.emb -o map.emb
	assert_equal "$(scview -c X_umap map.emb | sed 1d | grep -vc nan)" "$(scview -c cell genes.emb | sed 1d | wc -l)"
	scview -q -O h5ad genes.emb -o genes.h5ad
	# vectors on one line: rounding loses no edge at the ends of the range
	$PYTHON -B -c 'import sys; sys.path.insert(0, sys.argv[1]); import corrmask.stream as scstream, numpy as np
r = scstream.read("genes.emb"); blocks = list(r); d = np.asarray(blocks[0]["x"]).shape[1]; v = np.random.default_rng(1).normal(size=d)
for b in blocks:
    n = len(b["x"]); b["x"] = (np.resize([1, -1, 2, .3], n)[:, None] * v).astype("f4")
scstream.write("line.emb", r.header, blocks)' "$BATS_TEST_DIRNAME/../python"
	n=$(scview -c cell line.emb | sed 1d | wc -l)
	assert_equal "$(scgenes network -q -k $((n - 1)) line.emb | depgraph -O tsv - | sed 1d | wc -l)" $((n * (n - 1) / 2))
	scembed -q -M model --of static tok | scgenes network -q -k 3 | depgraph -O tsv - | sed 1d | grep -q .
}

# labels TOKENS [MODULES]: genes and their label, by module
labels() {
	scview --vocab "$1" | awk -F '\t' -v n="${2:-2}" '$3 ~ /^m[0-9]/ { split(substr($3, 2), m, "."); print $2 "\tclass" m[1] % n }'
}

@test "ctaprobe genes --gene-labels: a probe of the vectors in the folds of sctrain genes; probabilities and scores are scikit-learn's" {
	labels tok >two.tsv
	ctaprobe genes -q --gene-labels two.tsv --gene-scores two.genes genes.emb -o two.scores
	ref probe genes.emb two.tsv two.scores two.genes
	ctaprobe genes -q --gene-labels two.tsv --gene-scores three.genes -@ 3 genes.emb | cmp - two.scores
	cmp three.genes two.genes
	labels tok 3 >three.tsv
	cat genes.emb | ctaprobe genes -q --gene-labels three.tsv --folds 3 -C 0.1 --gene-scores three.genes -o three.scores
	ref probe genes.emb three.tsv three.scores three.genes C=0.1
	# the folds of the fine-tuning
	maskgen -q --strategy none --batch 20 tok | sctrain genes -q --config tiny --gene-labels two.tsv --fold 2/5 -o tuned
	assert_equal "$(awk -F '\t' 'NR > 1 && $5 == "test" { print $1 }' tuned/genes.tsv | sort)" "$(awk -F '\t' '$1 == 3 { print $2 }' two.genes | sort)"
	ctaprobe genes -q --gene-labels two.tsv --roc roc -o two.again genes.emb
	[ "$(head -n 1 roc)" = "$(printf 'fpr\tmean\tfold1\tfold2\tfold3\tfold4\tfold5')" ]
}
