#!/usr/bin/env bats
# make genes-map, on simulated cells and on a file
load helper

setup_file() {
	need_tool scsim sctrain scembed ctaprobe scgenes depgraph
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# bats test_tags=slow
@test "make genes-map: modules with names, the graphs beside each other, a map; a file with its own model and sets" {
	run -0 pipelines genes-map SCALE=tiny CELLS=400 EPOCHS=6 RESULTS=r THREADS=2
	assert_line --regexp '^[0-9]+ genes in [0-9]+ modules; [0-9]+ of them are rich in a set \(q below 0.05\)\.$'
	assert_line --regexp '^Of the [0-9]+ strongest edges, those of the embedding join genes of one set [0-9.]+ times as often as chance'
	dir=r/genes-map/latest
	for f in genes.emb genes.map genes.graph scores.tsv graphs.table modules.table report.html; do assert_file_not_empty "$dir/$f"; done
	grep -qF 'Map of genes by module' $dir/report.html
	grep -qF 'Modules of the graph of nearest genes in the embedding' $dir/report.html
	# the scores are those of scgenes genesets, on graphs that are made by hand
	model=$PWD/r/pretrained/latest/random-1.model
	scembed -q -M "$model" --of genes $dir/cells.tok | scsample -q --where 'cells>=20' | scgenes network -q -k 10 -o by-hand.graph
	diff <(depgraph -q -O tsv by-hand.graph) <(depgraph -q -O tsv $dir/genes.graph)
	(cd $dir && scgenes genesets -q --sets sets.gmt genes.graph graphs/static.graph graphs/co-expression.graph graphs/dependency.graph) | cut -f 2- > want
	awk -F '\t' 'NR == 1 || $1 == ""' $dir/scores.tsv | cut -f 3- | diff want -
	# so few edges among the genes of sets that their share says nothing
	mkdir few
	for f in genes.graph genes.modules.tsv genes.emb log; do ln -s "$PWD/$dir/$f" few; done
	awk -F '\t' -v OFS='\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "edges") e = i } $1 != "" && /genes.graph/ { $e = 3 } 1' $dir/scores.tsv > few/scores.tsv
	assert_not_equal "$(<few/scores.tsv)" "$(<$dir/scores.tsv)"
	BIN=$BIN "$BATS_TEST_DIRNAME/../pipelines/page/table.py" genesmap/report few '' model '' > few.txt
	grep -E '^Too few edges join two genes of sets to compare the graphs: 3 of the [0-9]+ strongest ones of the embedding, [0-9]+ of those of ' few.txt
	# a file: half of the modules are sets
	scview -q -O h5ad -o cells.h5ad r/prepared/latest/cells.counts
	head -n 4 $dir/sets.gmt > half.gmt
	gzip half.gmt
	run -0 pipelines genes-map SCALE=tiny DATA=cells.h5ad MODEL="$model" GENESETS=half.gmt.gz MAP_GENE_CELLS=200 HIDDEN_LAYER=-1 RESULTS=r THREADS=2
	assert_line "model: $model; gene sets: half.gmt.gz"
	run -0 pipelines genes-map SCALE=tiny DATA=cells.h5ad MODEL="$model" GENESETS=half.gmt.gz MAP_GENE_CELLS=200 HIDDEN_LAYER=-1 RESULTS=r THREADS=2
	refute_line --regexp '^  scembed'
}

@test "make genes-map: what is missing is said before anything is made" {
	mkdir none
	cd none
	touch x.h5ad
	mkdir model
	touch model/model.safetensors
	told() {
		run -2 pipelines genes-map "${@:2}"
		assert_output --partial "$1"
	}
	told "DATA= without MODEL=: which model?" DATA=x.h5ad
	told "MODEL= without DATA=: which file has the cells?" MODEL=model
	told "GENESETS=FILE.gmt is needed with DATA=: the sets that name modules" DATA=x.h5ad MODEL=model
	told "GENESETS=no.gmt: no such file" DATA=x.h5ad MODEL=model GENESETS=no.gmt
	told "NEAREST=0: expected a whole number of 1 or more" NEAREST=0
	told "NEAREST=many: expected a whole number" NEAREST=many
	run find . -name '*.tok'
	assert_output ""
}
