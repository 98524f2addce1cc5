#!/usr/bin/env bats
# make network: a network of genes with modules, their names, and what halves of the donors repeat
load helper

setup_file() {
	need_tool depgraph scgenes scsim scsample scview h5tok rankenc maskgen
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 600 --genes 120 --modules 8 --types 3 --donors 6 --depth 1500 --module-share 1 --seed 3 -o cells.counts
	scview -q -O h5ad -o cells.h5ad cells.counts
	scview -q --vocab cells.counts | awk -F '\t' '$3 ~ /^m[0-9]+\./ { m = $3; sub(/\..*/, "", m); set[m] = set[m] "\t" $2 }
		END { for (m in set) print m "\tsimulated" set[m] }' | sort > sets.gmt
}

setup() { cd "$BATS_FILE_TMPDIR"; }

network() { pipelines network SCALE=tiny THREADS=1 "$@"; }

@test "make network: its edges, modules, names and stability are those of the tools and of a computation by pairs; files for others, figures" {
	run -0 network DATA=cells.h5ad LABEL=cell_type EDGES=200 LEAST_CELLS=30 GENESETS=sets.gmt RESULTS=r
	assert_line --partial "6 donors; within donor x cell_type"
	assert_line --regexp '^The 200 strongest edges join [0-9]+ genes; [0-9]+ modules have three or more\. Of those with 5 or more, halves of the donors repeat best: .*m[0-9]'
	assert_line --regexp '^Of the first 100 edges of one half of the donors, [0-9]+ % are among those of the other half \(2 halvings, sd '
	assert_line --regexp '^[0-9]+ of the 200 edges have q below \.05'
	run -0 network DATA=cells.h5ad LABEL=cell_type EDGES=200 LEAST_CELLS=30 GENESETS=sets.gmt RESULTS=r
	refute_line --partial '  depgraph'
	dir=$(realpath r/network/latest)
	depgraph -q --within donor,cell_type --min-cells 30 cells.counts | depgraph -q --strongest 200 --leiden 1 -o want.graph
	diff <(depgraph -q -O tsv want.graph | cut -f 2,5,7- | tail -n +2 | sort) <(tail -n +2 "$dir/edges.tsv" | cut -f 1,3,5-11 | sort)
	depgraph -q --within donor,cell_type --min-cells 30 --halves 2 cells.counts | diff - "$dir/halves.tsv"
	# a half has the cells of its donors, and needs half as many of them
	scsample -q --test-fraction 0.5 --group donor --part train --seed 2 cells.counts | depgraph -q --within donor,cell_type --min-cells 15 |
		depgraph -q --strongest 200 -O tsv | diff - <(depgraph -q -O tsv "$dir/halves/1.train.graph")
	[ "$(find "$dir/halves" -name "*.graph" | wc -l)" = 4 ]
	for f in "$dir"/network.graph "$dir"/halves/*.graph; do scview -q -c module "$f" | tail -n +2 > "$(basename "$f").module"; done
	cell=$(awk 'NR == 2 { print $1 }' "$dir/cell.tsv")
	scsample -q --where "cell=$cell" "$dir/cells.tok" > one.tok
	maskgen -q --strategy corrmask -g "$dir/graphs/masks.graph" -u one.tok | scview -q -c target | tail -n +2 > masked
	scview -q --vocab one.tok > one.vocab
	run -1 maskgen -g "$dir/network.graph" --strategy corrmask one.tok -o x
	assert_output --partial "network.graph: it has no weights rho: expected a graph of depgraph without --pmi and --within"
	export dir
	PYTHONPATH=$BATS_TEST_DIRNAME/../pipelines/page $PYTHON -W ignore -B - <<-'END'
		import csv, glob, itertools, os, re, sys
		import xml.etree.ElementTree as ET
		import anndata, numpy as np, pandas
		dir = os.environ["dir"]
		read = lambda name: list(csv.DictReader(open(f"{dir}/{name}.tsv"), delimiter="\t"))
		genes, modules, edges, cell = map(read, ("genes", "modules", "edges", "cell"))
		module = lambda f: np.array(open(f).read().split(), int)
		full, halves = module("network.graph.module"), [module(f) for f in sorted(glob.glob("*.t*.graph.module"))]
		# the share of the pairs of genes of a module that are together in both halves of the donors, pair by pair
		def share(rows):
		    pairs = [(a, b) for a, b in itertools.combinations(rows, 2)]
		    return np.mean([all(h[a] == h[b] >= 0 for h in halves[i:i + 2]) for i in (0, 2) for a, b in pairs])
		assert len(halves) == 4 and len({g["gene"] for g in genes}) == len(genes) == (full >= 0).sum()
		for m in modules:
		    rows = np.flatnonzero(full == int(m["module"]))
		    own = [g for g in genes if g["module"] == m["module"]]
		    assert len(rows) == len(own) == int(m["genes"]) and {g["module_name"] for g in own} == {m["module_name"]}, m
		    assert abs(share(rows) - float(m["stability"])) < 1e-4 and {g["stability"] for g in own} == {m["stability"]}, m
		    if int(m["genes"]) > 4:          # modules of the simulation by their names
		        names = [g["symbol"].split(".")[0] for g in own]
		        assert m["set"] in names and names.count(m["set"]) >= .2 * len(names) and m["module_name"].startswith(m["set"]), (m, names)
		        assert names.count(m["set"]) == int(m["in_set"])
		assert len({m["module_name"] for m in modules}) == len(modules) and 0 < share(np.flatnonzero(full >= 0)) < max(float(m["stability"]) for m in modules)
		assert abs(share(np.flatnonzero(full >= 0)) - float(read("chance")[0]["pairs_together"])) < 1e-4
		assert [float(e["score"]) for e in edges] == sorted((float(e["score"]) for e in edges), reverse=True)
		# GraphML, and var of scanpy
		ns = {"g": "http://graphml.graphdrawing.org/xmlns"}
		graph = ET.parse(f"{dir}/network.graphml")
		keys = {k.get("id") for k in graph.findall(".//g:key", ns)}
		nodes = [{d.get("key"): d.text for d in n} for n in graph.findall(".//g:node", ns)]
		assert all(set(n) <= keys for n in nodes) and len(graph.findall(".//g:edge", ns)) == 200
		assert {(n["gene"], n["module_name"], n["stability"]) for n in nodes} == {(g["gene"], g["module_name"], g["stability"]) for g in genes}
		a = anndata.read_h5ad("cells.h5ad")
		a.var = a.var.join(pandas.read_csv(f"{dir}/genes.tsv", sep="\t", index_col="gene")[["module", "module_name", "stability"]])
		assert a.n_vars == 120 and a.var["module_name"].notna().sum() == len(genes), a.var
		# the masks of the cell are those of maskgen
		ids = [l.split("\t")[1] for l in open("one.vocab").read().splitlines()[1:]]
		masked = {ids[int(t)] for t in open("masked").read().split()}
		assert {c["gene"] for c in cell if c["state"] == "masked"} == masked & {g["gene"] for g in genes} and len(cell) == len(genes)
		# names are inside the figure and do not overlap; every gene of a module of three or more has one place
		svg = ET.parse(f"{dir}/network.svg").getroot()
		svg = [e for e in svg if e.tag.endswith("svg")]
		assert len(svg) == 4
		from plot import WIDE, long
		texts = [(float(t.get("x")), float(t.get("y")), .8 * long(t.text, bold=True)) for t in svg[0].iter() if t.get("class") == "place middle"]
		assert len(texts) >= sum(int(m["genes"]) > 2 for m in modules) and all(w / 2 <= x <= WIDE - w / 2 for x, y, w in texts), texts
		assert not [(a, b) for a, b in itertools.combinations(texts, 2) if abs(a[1] - b[1]) < 12 and abs(a[0] - b[0]) < (a[2] + b[2]) / 2]
		dots = [q for e in svg[0].iter() if "disc" in (e.get("class") or "") for q in re.findall(r"M([\d.]+) ([\d.]+)h0", e.get("d"))]
		assert len(dots) == len(set(dots)) == sum(int(m["genes"]) for m in modules if int(m["genes"]) > 2)
	END
	grep -qF 'Stability of modules' "$dir/report.html"
	run -1 grep -F 'Modules of the dependency graph of network' "$dir/report.html"
}

@test "make network: one donor has no stability, and the report says so; genes that no program has name their modules" {
	scsample -q --where donor=donor1 cells.counts | scview -q -O h5ad -o one.h5ad -
	run -0 network DATA=one.h5ad EDGES=60 RESULTS=r
	assert_line --partial "1 donor; within input_file x 15 clusters"
	assert_line --partial "All cells count as one donor, so whether other donors have these modules is not known (WITHIN= names a column of donors)."
	assert_line "No edge has a q: donors are its replicates, and 6 are needed."
	assert_line "A module with - for its set is rich in none: its name is its strongest genes."
	refute_line --partial "repeat best"
	dir=r/network/latest
	awk -F '\t' 'NR > 1 && $5 != "NA" { exit 1 }' $dir/genes.tsv
	assert_equal "$(wc -l < $dir/halves.tsv)" 1
	awk -F '\t' 'NR > 1 && $3 > 2 { split($9, hub, " "); if (index($2, hub[1]) != 1) exit 1; n++ } END { exit !n }' $dir/modules.tsv
	run -1 grep -F 'Stability of modules' $dir/report.html
	run -0 network DATA=one.h5ad LEAST_CELLS=1000 GENESETS=sets.gmt RESULTS=r
	assert_line "No genes vary together within donors. LEAST_CELLS= takes rarer genes."
	# files are donors, and two have one halving
	scsample -q --where donor=donor2 cells.counts | scview -q -O h5ad -o two.h5ad -
	run -0 network DATA='one.h5ad two.h5ad' EDGES=60 HALVES=3 RESULTS=r
	assert_line --partial "2 donors; within input_file x 15 clusters"
	assert_equal "$(sed -n '2s/\t.*//p' r/network/latest/halves.tsv)" 100
	awk -F '\t' 'NR > 1 && ($2 != 1 || $4 != "NA") { exit 1 }' r/network/latest/halves.tsv
	[ "$(find r/network/latest/halves/ -name '*.graph' | wc -l)" = 2 ]
}

@test "make network: cells whose genes do not vary together have no stable module, no certain edge and none that other donors repeat" {
	$PYTHON -W ignore - <<-'END'
		import anndata, numpy as np
		a, rng = anndata.read_h5ad("cells.h5ad"), np.random.default_rng(1)
		x, strata = a.X.toarray(), (a.obs["donor"].astype(str) + " " + a.obs["cell_type"].astype(str)).to_numpy()
		for s in np.unique(strata):
		    x[strata == s] = rng.permuted(x[strata == s], axis=0)
		a.X = x
		a.write_h5ad("permuted.h5ad")
	END
	run -0 network DATA=permuted.h5ad LABEL=cell_type EDGES=60 LEAST_CELLS=30 RESULTS=r
	assert_line --regexp 'modules? ha(ve|s) three or more\. Halves of the donors repeat none of them: no stability is above 0\.0[0-9]\.$'
	assert_line "0 of the 60 edges have q below .05, with donors as replicates."
	dir=r/network/latest
	# an edge between modules says so
	between=$(awk -F '\t' 'NR > 1 && NR < 17 && $NF == "NA"' $dir/edges.tsv | wc -l)
	[ "$between" -gt 0 ]
	grep -c ' two modules$' <<< "$output" | grep -x "$between"
	awk 'NR == 2 && $3 > .05 { exit 1 }' $dir/halves.tsv
	awk -F '\t' 'NR > 1 { pairs = $3 * ($3 - 1) / 2; sum += $5 * pairs; all += pairs } END { if (sum / all > .05) { print sum / all; exit 1 } }' $dir/modules.tsv
}

@test "make network: what is wrong with the cells or the columns is one line" {
	$PYTHON -W ignore - <<-'END'
		import anndata, numpy as np
		a = anndata.read_h5ad("cells.h5ad")
		a.obs["many"] = [f"t{i // 2}" for i in range(a.n_obs)]
		a.obs["alone"] = [f"t{i}" for i in range(a.n_obs)]
		a.write_h5ad("columns.h5ad")
		a.obs["donor"] = np.where(np.arange(a.n_obs) < 100, None, a.obs["donor"])
		a.write_h5ad("some.h5ad")
		a.X = a.X.astype(np.float32).multiply(1.37).tocsr()
		a.X.data = np.log1p(a.X.data)
		a.write_h5ad("logged.h5ad")
	END
	told() {
		run -2 network RESULTS=bad "${@:2}"
		assert_output --partial "$1"
		assert_equal "$(grep -cv -e '^make' -e '^  [a-z0-9-]*$' -e '^h5tok: note' <<< "$output")" 1
	}
	told "WITHIN=donors: no such column in obs (did you mean donor?)" DATA=cells.h5ad WITHIN=donors
	told "WITHIN=type: no such column in obs (did you mean cell_type?)" DATA=cells.h5ad WITHIN=donor,type
	told "LABEL=type: no such column in obs (did you mean cell_type?)" DATA=cells.h5ad LABEL=type
	told "strata of 600 cells: expected at least two cells a stratum in the mean" DATA=columns.h5ad LABEL=many
	told "600 values in 600 cells" DATA=columns.h5ad LABEL=alone
	told "logged.h5ad: " DATA=logged.h5ad
	for setting in EDGES=0 HALVES=0 LEAST_CELLS=x RESOLUTION=0; do told "$setting: expected a" DATA=cells.h5ad $setting; done
	run find bad -name '*.graph'
	assert_output ""
	run -0 network DATA=some.h5ad LABEL=cell_type EDGES=60 RESULTS=r
	assert_line --partial "500 of 600 cells (the others lack a donor, a type or counts), 6 donors"
}
