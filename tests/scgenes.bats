#!/usr/bin/env bats
# scgenes genesets: edges and modules of graphs of genes against gene sets, next to scikit-learn and exact fractions; markers: next to numpy
load helper

ref() {
	$PYTHON -B "$BATS_TEST_DIRNAME/ref/genesets.py" "$@"
}

setup_file() {
	need_tool scgenes depgraph scembed sctrain scsim
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 400 --genes 90 --modules 6 --types 3 --rarest .2 --depth 3000 --seed 3 -o counts
	rankenc -q --fit counts -o vocab
	rankenc -q -m vocab counts -o tok
	maskgen -q --batch 20 tok | sctrain mlm -q --config tiny -o model
	scembed -q -M model --of genes tok | scgenes network -q -k 5 -o net.graph
	depgraph -q --min-overlap 5 --min-cells 5 --leiden 1,2 tok -o dep.graph
	for g in net dep; do depgraph -q -O tsv $g.graph -o $g.tsv; done
	# the modules, two of them together, one by symbols and twice; a set without a known gene, a pair
	scview --vocab tok | awk -F '\t' 'NR > 1 && $3 != "" { m = $3; sub(/\..*/, "", m); if (m != "bg") { set[m] = set[m] "\t" $2; symbol[m] = symbol[m] "\t" $3 } }
		END { for (m in set) print m "\t-" set[m]; print "odd\t-" set["m1"] set["m3"]; print "again\tof\t" substr(set["m1"] set["m1"], 2) "\tnone"
			print "x\t-\tnone"; split(set["m2"], g, "\t"); print "pair\t-\t" g[2] "\t" g[3]; print "symbols\t" symbol["m4"] > "symbols" }' > sets.gmt
}

setup() { cd "$BATS_FILE_TMPDIR"; }

@test "scgenes genesets: shares and AUROC of the edges are exact, p that of permuted genes, and intervals those of a bootstrap over genes" {
	scgenes genesets -q --sets sets.gmt net.graph dep.graph -o edges.tsv
	ref edges sets.gmt edges.tsv net.tsv dep.tsv replicates=1000 draws=200
	scgenes genesets -q --sets sets.gmt --strongest 60 dep.graph net.graph -o few.tsv
	ref edges sets.gmt few.tsv dep.tsv net.tsv strongest=60 replicates=1000
	# a dense graph has edges of negative weight, below the pairs without one
	scembed -q -M model --of genes tok | scgenes network -q -k 80 -o dense.graph
	depgraph -q -O tsv dense.graph -o dense.tsv
	scgenes genesets -q --sets sets.gmt dense.graph -o dense
	ref edges sets.gmt dense dense.tsv replicates=1000
	# the same sets compressed, from a pipe
	gzip -c sets.gmt > sets.gz
	cat dep.graph | scgenes genesets -q --sets sets.gz | tail -n 1 | cut -f 2- > piped
	scgenes genesets -q --sets sets.gmt dep.graph | tail -n 1 | cut -f 2- | cmp - piped
}

# bats test_tags=slow
@test "scgenes genesets: of 500 graphs with hubs of random genes, a twentieth has p below .05" {
	$PYTHON "$BATS_TEST_DIRNAME/ref/small_samples.py" genesets "$BIN/scgenes"
}

@test "scgenes genesets --module: p and q of every module and set; genes by symbol" {
	awk -F '\t' 'NR == FNR { id[FNR - 2] = $2; next } FNR > 1 && $1 >= 0 { print id[FNR - 2] "\t" $1 }' <(scview --vocab dep.graph) <(scview -c module_2 dep.graph) > modules
	scgenes genesets -q --sets sets.gmt --module module_2 dep.graph -o modules.tsv
	ref modules sets.gmt modules.tsv dep.tsv modules
	cat sets.gmt symbols > more.gmt
	run -0 scgenes genesets --sets more.gmt --module module_1 dep.graph
	assert_output --partial "2 of "
	[ "$(grep -c "$(printf '\tsymbols\t')" <<< "$output")" = "$(grep -c "$(printf '\tm4\t')" <<< "$output")" ]
	assert_line --partial "$(printf '\tsymbols\t')"
}

@test "scgenes genesets: what is wrong is one line, and leaves no output" {
	wrong() { # wrong MESSAGE OPTION...
		rm -f out
		run -1 scgenes genesets -q "${@:2}" -o out
		assert_output --partial "$1"
		assert_equal "${#lines[@]}" 1
		assert_not_exist out
	}
	printf 'a\t-\tSIMG000001\tSIMG000002\n\nb\t-\n' > short.gmt
	wrong "short.gmt: line 3: expected the name of a set, a description and genes, with tabs between" --sets short.gmt dep.graph
	printf 'a\t-\t\t\n' > empty.gmt
	wrong "empty.gmt: line 1: no gene in the set a" --sets empty.gmt dep.graph
	awk 'NF > 3' sets.gmt | cut -f 1,3- > bare.gmt
	run -0 --separate-stderr scgenes genesets --sets bare.gmt dep.graph -o bare.tsv
	assert_equal "$(grep -c 'sets have a gene where their description belongs, which is not read: expected name, description, genes' <<< "$stderr")" 1
	run -0 --separate-stderr scgenes genesets --sets sets.gmt dep.graph -o all.tsv
	[[ $stderr != *"where their description"* ]]
	printf 'a\t-\tx\na\t-\tSIMG000001\n' > twice.gmt
	wrong "twice.gmt: line 2: a second set is called a" --sets twice.gmt dep.graph
	printf 'a\t-\tx\ty\nb\t-\tz\n' > other.gmt
	wrong "other.gmt: none of the 3 genes of its sets is in the vocabulary" --sets other.gmt dep.graph
	: > no.gmt
	wrong "no.gmt: no sets of genes in it" --sets no.gmt dep.graph
	printf 'a\t-\tSIMG000001\tSIMG000002\n' > pair.gmt
	wrong "pair.gmt: no set has 3 to 200 genes that have an edge" --sets pair.gmt dep.graph
	wrong "dep.graph: no column 'module' of modules: depgraph --leiden makes one" --sets sets.gmt --module module dep.graph
	wrong "tok: this is a tokens stream, expected graph" --sets sets.gmt tok
	rankenc -q --fit --min-cells 300 counts -o other.vocab
	rankenc -q -m other.vocab counts | depgraph -q --min-overlap 5 --min-cells 5 - -o other.graph
	wrong "other.graph: its genes are not those of dep.graph: expected graphs of one vocabulary" --sets sets.gmt dep.graph other.graph
	run -2 scgenes genesets dep.graph
	assert_line --partial "--sets FILE is required"
	run -2 scgenes genesets --sets sets.gmt --strongest 5 --module module dep.graph
	names "--module --strongest"
	run -2 scgenes genesets --sets sets.gmt --module module_1 dep.graph net.graph
}

@test "scgenes markers: the genes and numbers are those of numpy; next to new cells, of shared genes" {
	need_tool ctaprobe scsample
	scsample -q --test-fraction .3 --part train counts -o known.counts
	scsample -q --test-fraction .3 --part test counts | scsample -q --keep-genes <(scview --vocab counts | awk 'NR > 11 { print $2 }') - -o new.counts
	ctaprobe transfer -q --reference known.counts -l cell_type new.counts -o new.pred
	scgenes markers -q -l cell_type -k 4 --new new.counts --assigned new.pred known.counts -o markers.tsv
	scgenes markers -q -l cell_type -k 4 known.counts -o alone.tsv
	for f in known new; do scview -q -c gene,count "$f.counts" | sed 1d > $f.txt; scview -q --vocab $f.counts | sed 1d | cut -f 2 > $f.ids; done
	scview -q -c cell_type known.counts | sed 1d > known.y
	scview -q -c assigned new.pred | sed 1d > new.y
	$PYTHON - <<-'P'
		import csv, numpy as np
		def read(name, genes):
		    ids = open(name + ".ids").read().split("\n")[:-1]
		    x = []
		    for line in open(name + ".txt"):
		        g, n = (list(map(int, v.split())) for v in line.rstrip("\n").split("\t"))
		        row = dict(zip((ids[i] for i in g), n))
		        x.append([row.get(i, 0) for i in genes])
		    x = np.array(x, float)
		    return np.log1p(1e4 * x / x.sum(1, keepdims=True)), np.array(open(name + ".y").read().split("\n")[:-1])
		everything = open("known.ids").read().split("\n")[:-1]
		shared = [g for g in everything if g in set(open("new.ids").read().split("\n"))]
		assert 0 < len(shared) < len(everything)
		for file, genes in (("markers.tsv", shared), ("alone.tsv", everything)):
		    x, y = read("known", genes)
		    rows = list(csv.DictReader(open(file), delimiter="\t"))
		    assert ("new_mean" in rows[0]) == (file == "markers.tsv")
		    classes = sorted(set(y))
		    owner = np.argmax([x[y == c].mean(0) for c in classes], 0)
		    for c in classes:
		        a, b = x[y == c], x[y != c]
		        with np.errstate(all="ignore"):
		            t = np.nan_to_num((a.mean(0) - b.mean(0)) / np.sqrt(a.var(0, ddof=1) / len(a) + b.var(0, ddof=1) / len(b)))
		        of = [r for r in rows if r["marker_of"] == c and r["class"] == c]
		        common = (b > 0).mean(0) > .5
		        best = [i for i in np.lexsort((-t, common)) if classes[owner[i]] == c and t[i] > 0][:4]
		        assert [r["gene"] for r in of] == [genes[i] for i in best]
		        assert np.allclose([float(r["t"]) for r in of], t[best], rtol=1e-4)
		    parts = [("", x, y)] + ([("new_", *read("new", shared))] if file == "markers.tsv" else [])
		    for r in rows:
		        for p, x, y in parts:
		            v = x[y == r["class"]][:, genes.index(r["gene"])]
		            assert int(r[p + "cells"]) == len(v)
		            assert len(v) == 0 and r[p + "mean"] == "NA" or np.allclose([float(r[p + "mean"]), float(r[p + "share"])], [v.mean(), (v > 0).mean()], rtol=1e-4)
	P
	run -1 scgenes markers -q -l cell_type --new known.counts --assigned new.pred known.counts
	assert_output --partial "known.counts: its cells are not those of new.pred in the same order"
}
