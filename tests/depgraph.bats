#!/usr/bin/env bats
# depgraph: against numpy and scipy, and its behaviour

load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	export PATH=$BIN:$PATH
	scsim -n 1200 --genes 300 --modules 12 --depth 700 -o s.counts
	rankenc -q --fit s.counts -o vocab.tsv
	rankenc -q -m vocab.tsv s.counts -o s.tok
	scview -c token s.tok | tail -n +2 > s.txt
	scsim --kind b1 -n 900 -o b1.tok
	scview -c token b1.tok | tail -n +2 > b1.txt
}

setup() { cd "$BATS_FILE_TMPDIR" && rm -f x; }

# edges GRAPH: u v rho overlap for u < v
edges() {
	scview -c token,neighbour,rho,overlap "$1" | tail -n +2 | awk -F '\t' '{ n = split($2, v, " "); split($3, r, " "); split($4, o, " ")
		for (i = 1; i <= n; i++) print $1, v[i], r[i], o[i] }'
}

@test "depgraph: a line says how many edges there are" {
	run -0 --separate-stderr depgraph s.tok -o said.graph
	# of the genes that were looked at, some have no partner
	value() { depgraph -O stats said.graph | awk -v name=$1 '$1 == name { print $2 }'; }
	assert_equal "$stderr" "depgraph: note: $(value edges) edges in 1200 cells; $(value genes_with_neighbours) of 292 genes have partners"
	assert [ "$(value genes_with_neighbours)" -lt 292 ]
	run -0 depgraph -q s.tok -o said.graph
	assert_output ""
}

# same_as_reference NAME DEPGRAPH-OPTIONS -- REFERENCE-OPTIONS: edges equal, weights to 1e-5, both directions
same_as_reference() {
	local tok=$1 d=()
	shift
	while [ "$1" != -- ]; do d+=("$1"); shift; done
	shift
	depgraph "${d[@]}" "$tok.tok" -o got.graph
	edges got.graph > got.txt
	depgraph -O tsv got.graph > got.tsv
	$PYTHON "$BATS_TEST_DIRNAME/ref/graph.py" "$tok.txt" 2 "$@" > ref.txt
	$PYTHON - <<-'END'
		ref = {}
		for line in open("ref.txt"):
		    u, v, rho, n, pooled = line.split()
		    ref[int(u), int(v)] = ref[int(v), int(u)] = float(rho), int(n), float(pooled)
		got = {}
		for line in open("got.txt"):
		    u, v, rho, n = line.split()
		    assert (int(u), int(v)) not in got
		    got[int(u), int(v)] = float(rho), int(n)
		assert len(got) > 100 and got.keys() == ref.keys(), (len(got), len(ref))
		worst = max(abs(got[k][0] - ref[k][0]) for k in ref)
		for u, _, _, v, _, _, rho, n, pooled in [line.rstrip("\n").split("\t") for line in open("got.tsv")][1:]:
		    assert abs(float(pooled) - ref[int(u), int(v)][2]) < 1e-5, (u, v, pooled)
		assert worst < 1e-5 and all(got[k][1] == ref[k][1] for k in ref), worst
		print(f"{len(got) // 2} edges, largest difference {worst:.1e}")
	END
}

@test "depgraph equals numpy and scipy: defaults but for the overlap" {
	same_as_reference s --min-overlap 100 -- min_overlap=100
}

@test "depgraph equals numpy and scipy: all genes, few neighbours, low floor, short cells" {
	same_as_reference s --top-genes 0 --candidates 5 --rho-min 0.01 --min-overlap 20 --min-cells 10 --max-len 60 -- \
		top_genes=0 neighbours=5 rho_min=0.01 min_overlap=20 min_cells=10 max_len=60
}

@test "depgraph equals numpy and scipy: top genes" {
	same_as_reference s --top-genes 80 --candidates 12 --rho-min 0.1 --min-overlap 10 -- top_genes=80 neighbours=12 rho_min=0.1 min_overlap=10
}

@test "depgraph equals numpy and scipy: no floor at all, so that each gene's 50th neighbour counts" {
	same_as_reference s --top-genes 0 --rho-min 0 --min-overlap 1 -- top_genes=0 rho_min=0 min_overlap=1
}

@test "depgraph equals numpy and scipy: modules of the paper's generator" {
	same_as_reference b1 --min-overlap 30 -- min_overlap=30
}

# bats test_tags=slow,data
@test "depgraph equals numpy and scipy edge for edge on 12,811 real cells in Geneformer's vocabulary" {
	local gf=$SHARED/geneformer
	need scrna/aml_bonemarrow_vangalen2019.h5ad geneformer/gene_median_gc30M.tsv.gz
	h5tok -q -u "$SHARED/scrna/aml_bonemarrow_vangalen2019.h5ad" |
		rankenc -q -m "$gf/gene_median_gc30M.tsv.gz" -t "$gf/token_dictionary_gc30M.tsv.gz" -o aml.tok
	scview -c token aml.tok | tail -n +2 > aml.txt
	same_as_reference aml --
	[ "$(wc -l < ref.txt)" = 11791 ]
	# a quarter of the edges is negative over all cells, few are among the cells that have both genes
	awk '$5 < 0 { g++ } $3 < 0 { l++ } END { printf "%.2f %.2f\n", g / NR, l / NR }' ref.txt | grep -x "0.26 0.08"
	depgraph -O stats got.graph | grep -Px "genes_with_neighbours\t833|degree_max\t436" | wc -l | grep -x 2
	rm aml.tok aml.txt
}

@test "depgraph: same bytes for any number of threads, from a file and a pipe, compressed or not" {
	depgraph s.tok --min-overlap 50 > a
	depgraph -@ 2 s.tok --min-overlap 50 > b
	depgraph -@ 3 --min-overlap 50 < s.tok > c
	cmp a b
	cmp a c
	depgraph -u s.tok --min-overlap 50 | scview | cmp - <(scview a)
}

@test "depgraph: the sample is the same whatever the order of the cells" {
	depgraph -n 300 --min-overlap 20 s.tok -o a
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - <<-'END'
		import numpy as np
		import corrmask.stream as scstream
		s = scstream.read("s.tok")
		blocks = list(s)
		order = np.random.default_rng(0).permutation(sum(b.rows for b in blocks))
		cell = np.concatenate([b["cell"] for b in blocks])[order]
		rows = [v[o[i]:o[i + 1]] for b in blocks for o, v in [b["token"]] for i in range(b.rows)]
		rows = [rows[i] for i in order]
		h = dict(s.header, columns=[c for c in s.header["columns"] if c["name"] in ("cell", "token")])
		scstream.write("shuffled.tok", h, [{"cell": cell, "token": (np.cumsum([0] + [len(r) for r in rows]), np.concatenate(rows))}])
	END
	scview -c cell shuffled.tok | tail -n +2 | { ! cmp -s - <(scview -c cell s.tok | tail -n +2); }
	depgraph -n 300 --min-overlap 20 shuffled.tok | scview | cmp - <(scview a)
	[ "$(edges a | wc -l)" -gt 100 ]
	run depgraph -n 300 --min-overlap 20 --seed 2 s.tok -o b
	assert_success
	run ! cmp -s a b
	run depgraph -v -n 300 s.tok -o c
	assert_output --partial "300 of 1200 cells"
}

@test "depgraph: rows are the vocabulary, edges stand in both directions, --positive drops negative ones" {
	depgraph s.tok --min-overlap 50 -o a
	scview -c token a | tail -n +2 | cmp - <(seq 0 301)
	edges a | sort > forth
	edges a | awk '{ print $2, $1, $3, $4 }' | sort | cmp - forth
	awk '$3 < 0 { n++ } END { exit !n }' forth
	depgraph --positive s.tok --min-overlap 50 -o b
	edges b | sort | cmp - <(awk '$3 >= 0' forth)
}

@test "depgraph finds the simulated modules" {
	scsim -n 1500 --genes 800 -u | tee m.counts | rankenc -q --fit > m.tsv
	rankenc -q -m m.tsv m.counts -u | depgraph --min-overlap 100 -o m.graph
	edges m.graph > m.txt
	scview --vocab m.graph | cut -f 3 | sed 's/\..*//' | tail -n +2 > module
	awk 'NR == FNR { m[NR - 1] = $1; next } { n++; if (m[$1] == m[$2] && m[$1] != "bg") same++ } END { exit !(n > 300 && same / n > 0.3) }' module m.txt
}

@test "depgraph --pmi equals counts by hand, for any number of threads" {
	depgraph --pmi --tau 0.1 --min-count 4 s.tok -o got.graph
	depgraph --pmi --tau 0.1 --min-count 4 -@ 3 < s.tok | cmp - got.graph
	scview -c token,neighbour,npmi,count got.graph > got.tsv
	$PYTHON - <<-'END'
		from collections import Counter
		from math import log
		cells = [[int(x) for x in line.split()] for line in open("s.txt")]
		single = Counter(t for c in cells for t in c)
		pair = Counter((min(a), max(a)) for c in cells for a in zip(c, c[1:]))
		n, m = sum(single.values()), sum(pair.values())
		ref = {}
		for (u, v), k in pair.items():
		    x = log(k / m / (single[u] / n) / (single[v] / n)) / -log(k / m)
		    if k >= 4 and x >= 0.1:
		        ref[u, v] = ref[v, u] = x, k
		got = {}
		for line in list(open("got.tsv"))[1:]:
		    u, v, x, k = (s.split() for s in line.rstrip("\n").split("\t"))
		    got.update({(int(u[0]), int(b)): (float(c), int(d)) for b, c, d in zip(v, x, k)})
		assert len(got) > 100 and got.keys() == ref.keys(), (len(got), len(ref))
		assert all(abs(got[e][0] - ref[e][0]) < 1e-6 and got[e][1] == ref[e][1] for e in ref)
	END
	run -2 depgraph --pmi --rho-min 0.3 s.tok
	run -2 depgraph --tau 0.3 s.tok
}

@test "depgraph --within equals numpy and scipy, for any number of threads" {
	export PYTHONPATH=$BATS_TEST_DIRNAME/../python
	scsim -q --cells 900 --genes 250 --modules 8 --types 3 --depth 400 --donors 8 -o w.counts
	run -0 depgraph --within donor,cell_type --min-cells 100 --candidates 10 w.counts -o w.graph
	assert_line --regexp "note: w.counts: 5 of 23 strata have one cell"
	depgraph --within donor,cell_type --min-cells 100 --candidates 10 -@ 3 -q w.counts | cmp - w.graph
	depgraph -O tsv w.graph -o w.tsv
	$PYTHON "$BATS_TEST_DIRNAME/ref/within.py" w.counts donor,cell_type w.tsv min_cells=100 neighbours=10
	depgraph --within donor -q w.counts -O tsv -o w.tsv
	$PYTHON "$BATS_TEST_DIRNAME/ref/within.py" w.counts donor w.tsv
	# a graph that is read has the same numbers, and its first edges are those of the highest score
	depgraph --within donor -q w.counts | depgraph -O tsv | cmp - w.tsv
	depgraph --within donor -q w.counts | depgraph --strongest 20 -O tsv | tail -n +2 | sort > first
	tail -n +2 w.tsv | LC_ALL=C sort -k 7,7gr | head -n 20 | sort | cmp - first
	depgraph --within donor -q w.counts | depgraph --leiden 1 -O graphml | grep -cE 'attr.name="(q" attr.type="double|(donors|agree)" attr.type="int)"' | grep -x 3
	# a count of 0 is no count
	$PYTHON - <<-'END'
		import numpy as np, corrmask.stream as scstream
		stream = scstream.read("w.counts")
		blocks = list(stream)
		last = len(stream.header["vocab"]["id"]) - 1
		for b in blocks:
		    offset, gene = b["gene"]
		    lacking = np.array([e == s or gene[e - 1] < last for s, e in zip(offset[:-1], offset[1:])])
		    at = offset[1:][lacking].astype(np.int64)
		    b["gene"] = np.concatenate([[0], offset[1:] + np.cumsum(lacking)]).astype(offset.dtype), np.insert(gene, at, last)
		    b["count"] = b["gene"][0], np.insert(b["count"][1], at, 0)
		scstream.write("zeros.counts", stream.header, blocks)
	END
	run -1 cmp -s w.counts zeros.counts
	depgraph --within donor -q zeros.counts -O tsv | cmp - w.tsv
	# and a cell without counts is no cell
	$PYTHON - <<-'END'
		import numpy as np, corrmask.stream as scstream
		stream = scstream.read("w.counts")
		blocks = list(stream)
		for b in blocks:
		    offset, gene = b["gene"]
		    full = np.arange(len(offset) - 1) % 5 > 0
		    keep, size = np.repeat(full, np.diff(offset)), np.where(full, np.diff(offset), 0)
		    b["gene"] = np.concatenate([[0], np.cumsum(size)]).astype(offset.dtype), gene[keep]
		    b["count"], b["n_counts"] = (b["gene"][0], b["count"][1][keep]), np.where(full, b["n_counts"], 0).astype(np.uint64)
		scstream.write("empty.counts", stream.header, blocks)
	END
	run -0 depgraph --within donor --min-cells 30 empty.counts -O tsv -o e.tsv
	names empty.counts 180
	scsample -q --min-genes 1 empty.counts | depgraph --within donor --min-cells 30 -q -O tsv | cmp - e.tsv
}

@test "depgraph --within: a gene with one count in each stratum has no partners, however deep the cells are" {
	export PYTHONPATH=$BATS_TEST_DIRNAME/../python
	scsim -q --cells 400 --genes 60 --modules 5 --types 2 --depth 300 --donors 4 -o w.counts
	$PYTHON - <<-'END'
		import numpy as np, corrmask.stream as scstream
		stream = scstream.read("w.counts")
		blocks, genes = list(stream), len(stream.header["vocab"]["id"])
		for b in blocks:
		    offset, gene = b["gene"]
		    x = np.zeros((len(offset) - 1, genes), np.uint32)
		    x[np.repeat(np.arange(len(x)), np.diff(offset)), gene] = b["count"][1]
		    donor, kind = (np.asarray(b[c][0]) for c in ("donor", "cell_type"))
		    x[:, :3], x[:, 3], x[:, 4] = [1, 1, 7], 1 + 2 * donor + kind, 1 + (kind == 0)
		    x[:, 5], x[:, 6] = x[:, 2], x[:, 2]                  # in some cells another count, or none: these vary
		    x[::9, 5], x[::7, 6] = 6, 0
		    offset = np.concatenate([[0], np.cumsum((x > 0).sum(1))]).astype(offset.dtype)
		    b["gene"], b["count"] = (offset, np.nonzero(x)[1].astype(gene.dtype)), (offset, x[x > 0])
		    b["n_counts"] = x.sum(1).astype(np.uint64)
		stream.header["vocab"]["symbol"][5] = "a<&>b"
		scstream.write("depth.counts", stream.header, blocks)
	END
	run -0 depgraph --within donor,cell_type -O tsv -o depth.tsv depth.counts
	awk -F '\t' 'NR > 1 { edges[$1]++; edges[$4]++ } END { for (g = 0; g < 7; g++) if ((edges[g] > 0) != (g > 4)) exit 1 }' depth.tsv
	names depth.counts 5 genes constant
	depgraph -q --within donor,cell_type -O graphml depth.counts | grep -F '<data key="name">a&lt;&amp;&gt;b</data>'
}

@test "depgraph --within: clusters and halves of donors are a function of the seed; few donors have no q" {
	scsim -q --cells 900 --genes 250 --modules 8 --types 3 --depth 400 --donors 8 -o w.counts
	depgraph -q --within donor --clusters 3 w.counts -o a
	depgraph -q --within donor --clusters 3 -@ 3 w.counts | cmp - a
	depgraph -q --within donor w.counts | { ! cmp -s - a; }
	depgraph -q --within donor,cell_type --halves 3 -@ 2 w.counts -o halves.tsv
	depgraph -q --within donor,cell_type --halves 3 w.counts | cmp - halves.tsv
	# strong edges recur, weak ones less, and lose more in the other half
	awk 'NR == 1 { exit $0 != "edges\thalves\trecurrence\tsd\tr\tr_other" }' halves.tsv
	awk 'NR > 1 { if ($2 != 3 || $3 < .2 || (NR > 2 && $3 >= last) || $6 > $5) exit 1; last = $3; n++ } END { exit n != 4 }' halves.tsv
	scsim -q --cells 300 --genes 60 --modules 5 --types 2 --depth 300 --donors 1 -o one.counts
	run -0 depgraph --within donor one.counts -O tsv -o one.tsv
	assert_line "depgraph: note: one.counts: no q: 1 donor, expected at least 6"
	awk 'NR > 1 && ($12 != "NA" || $13 != "NA") { exit 1 }' one.tsv
	run -1 depgraph --within donor --halves 2 one.counts -o x
	assert_output "depgraph: one.counts: --halves: one donor, expected at least two"
	run -1 depgraph --within donor,barcode one.counts -o x
	assert_output --partial "column 'barcode' has 300 values in 300 cells"
	run -1 depgraph --within cell one.counts -o x
	assert_output "depgraph: one.counts: --within cell: 300 strata of 300 cells: expected at least two cells a stratum in the mean"
	run -1 depgraph --within donor,type one.counts -o x
	assert_output --partial "no column 'type'"
	run -1 depgraph --within donor s.tok -o x
	assert_output --partial "a tokens stream, expected counts"
	run -2 depgraph --clusters 3 one.counts -o x
	assert_not_exist x
}

@test "depgraph --states equals numpy with every way to deal the states; nothing differs by chance" {
	export PYTHONPATH=$BATS_TEST_DIRNAME/../python
	scsim -q --cells 1500 --genes 120 --modules 8 --types 3 --depth 600 --donors 12 -o w.counts
	# in donors 7 to 12, the healthy ones, each gene of module 1 has the counts of another cell of the donor and type
	$PYTHON - <<-'END'
		import numpy as np, corrmask.stream as scstream
		stream, random = scstream.read("w.counts"), np.random.default_rng(1)
		blocks, symbol = list(stream), stream.header["vocab"]["symbol"]
		for b in blocks:
		    offset, gene = b["gene"]
		    x = np.zeros((len(offset) - 1, len(symbol)), np.uint32)
		    x[np.repeat(np.arange(len(x)), np.diff(offset)), gene] = b["count"][1]
		    donor, kind = (np.array(b[c][1])[b[c][0]] for c in ("donor", "cell_type"))
		    healthy = np.array([int(d[5:]) > 6 for d in donor])
		    for d, k in sorted({*zip(donor[healthy], kind[healthy])}):
		        rows = np.flatnonzero((donor == d) & (kind == k))
		        for g in (g for g, s in enumerate(symbol) if s.startswith("m1.")):
		            x[rows, g] = x[random.permutation(rows), g]
		    offset = np.concatenate([[0], np.cumsum((x > 0).sum(1))]).astype(offset.dtype)
		    b["gene"], b["count"] = (offset, np.nonzero(x)[1].astype(gene.dtype)), (offset, x[x > 0])
		    b["n_counts"], b["state"] = x.sum(1).astype(np.uint64), (healthy.astype(np.uint32), ["sick", "healthy"])
		    b["odd"] = np.array([int(d[5:]) % 2 for d in donor], np.uint32), ["no", "yes"]
		for name, values in ("state", ["sick", "healthy"]), ("odd", ["no", "yes"]):
		    stream.header["columns"].append({"name": name, "type": "categorical", "shape": "scalar", "categories": values})
		scstream.write("state.counts", stream.header, blocks)
	END
	depgraph -q --within donor,cell_type --states state --min-cells 100 --candidates 10 state.counts -o states.tsv
	depgraph -q --within donor,cell_type --states state --min-cells 100 --candidates 10 -@ 3 state.counts | cmp - states.tsv
	head -n 1 states.tsv | grep -q r_healthy.r_sick.donors_healthy.donors_sick.difference.se.q
	$PYTHON "$BATS_TEST_DIRNAME/ref/within.py" state.counts donor,cell_type states.tsv states=state min_cells=100 neighbours=10
	# what differs is module 1
	awk -F '\t' '$NF != "NA" && $NF < .05 { n++; m += $2 ~ /^m1\./ && $4 ~ /^m1\./ && $11 < 0 } END { print n, m; exit n < 5 || m <= n / 2 }' states.tsv
	depgraph -q --within donor,cell_type --states odd --min-cells 100 --candidates 10 state.counts | awk -F '\t' '$NF < .05 { exit 1 }'
	depgraph -q --within donor,cell_type --states state --strongest 30 state.counts | wc -l | grep -x 31
	run -1 depgraph --within donor --states cell_type state.counts -o x
	assert_output --partial "--states cell_type: 3 values, expected two"
	scsample -q --where cell_type!=type3 state.counts -o two.counts
	run -1 depgraph --within donor --states cell_type two.counts -o x
	assert_output --partial " has cells of 'type1' and 'type2', expected one state a donor"
	scsample -q --where donor!=donor9 --where donor!=donor10 --where donor!=donor11 --where donor!=donor12 state.counts -o few.counts
	run -1 depgraph --within donor,cell_type --states state few.counts -o x
	assert_output --partial "--states state: 2 donors of 'healthy', expected at least 3"
	run -2 depgraph --states state state.counts -o x
	assert_not_exist x
}

# bats test_tags=slow,data
@test "depgraph --within equals numpy and scipy on real cells" {
	export PYTHONPATH=$BATS_TEST_DIRNAME/../python
	need scrna/lung_luad_kim2020_2000genes.h5ad scrna/pbmc_kang2018_1287genes.h5ad
	while read -r file columns least; do
		h5tok -q "$SHARED/scrna/$file.h5ad" -o real.counts
		depgraph -q --within "$columns" --min-cells "$least" -O tsv real.counts -o real.tsv
		$PYTHON "$BATS_TEST_DIRNAME/ref/within.py" real.counts "$columns" real.tsv min_cells="$least"
	done <<-'END'
		lung_luad_kim2020_2000genes sample,cell_type 50
		pbmc_kang2018_1287genes donor,cell_type 50
	END
}

@test "depgraph --compare: shared edges, in all, by module and by equal numbers; genes by their ids" {
	depgraph -q -n 600 --min-overlap 40 s.tok | depgraph --leiden 1 -o a.graph
	depgraph -q -n 600 --min-overlap 30 --seed 2 s.tok -o b.graph
	run -0 --separate-stderr depgraph --compare b.graph a.graph
	echo "$output" > compare.tsv
	depgraph -O tsv a.graph -o a.tsv
	depgraph -O tsv b.graph -o b.tsv
	scview -c token,module a.graph > module.tsv
	$PYTHON - <<-'END'
		import numpy as np
		read = lambda p: [l.rstrip("\n").split("\t") for l in open(p)][1:]
		a, b = ({(int(r[0]), int(r[3])): float(r[6]) for r in read(p)} for p in ("a.tsv", "b.tsv"))
		module = {int(r[0]): int(r[1]) for r in read("module.tsv")}
		rows = read("compare.tsv")
		first = lambda e: dict(sorted(e.items(), key=lambda x: (-abs(x[1]), x[0]))[:min(len(a), len(b))])
		assert rows[0][0] == "all" and rows[-1][0] == "strongest" and len(rows) == 2 + 1 + max(module.values()), rows
		for of, genes, edges, other, shared, alone, other_alone, expected, r in rows:
		    x, y = (first(a), first(b)) if of == "strongest" else (a, b)
		    if of.startswith("module"):
		        x, y = ({e: w for e, w in z.items() if module[e[0]] == module[e[1]] == int(of[7:])} for z in (x, y))
		        n = sum(m == int(of[7:]) for m in module.values())
		    else:
		        n = len({u for e in [*x, *y] for u in e})
		    same = sorted(x.keys() & y.keys())
		    assert [int(v) for v in (genes, edges, other, shared, alone, other_alone)] == [n, len(x), len(y), len(same), len(x) - len(same), len(y) - len(same)], of
		    assert abs(float(expected) - len(x) * len(y) / (n * (n - 1) / 2)) < 1e-3 * float(expected) + 1e-9, of
		    assert len(same) < 3 or abs(float(r) - np.corrcoef([x[e] for e in same], [y[e] for e in same])[0, 1]) < 1e-4, (of, r)
		assert 50 < int(rows[0][4]) < len(a)
	END
	run -2 depgraph --compare b.graph -O tsv a.graph
	run -1 depgraph --compare s.tok a.graph -o x
	assert_output --partial "s.tok: this is a tokens stream, expected graph"
	run -1 depgraph --compare a.graph s.tok -o x
	assert_output --partial "s.tok: this is a tokens stream, expected graph"
	assert_not_exist x
}

@test "depgraph reads a graph: -O stats, tsv, graphml and --leiden against scipy" {
	depgraph --min-overlap 50 s.tok -o a.graph
	depgraph -O stats a.graph > stats.tsv
	depgraph --min-overlap 50 -O stats s.tok | cmp - stats.tsv
	depgraph -O tsv a.graph -o a.tsv
	depgraph --leiden 1,3 a.graph -o mod.graph
	depgraph --leiden 1,3 a.graph | cmp - mod.graph
	cmp <(scview -c token,neighbour,rho,overlap,pooled a.graph) <(scview -c token,neighbour,rho,overlap,pooled mod.graph)
	cmp <(depgraph --shuffle -O tsv a.graph | cut -f 7- | sort) <(cut -f 7- a.tsv | sort)
	depgraph --leiden 3 -O graphml a.graph -o a.graphml
	edges a.graph > e.txt
	scview -c token,module_1,module_3 mod.graph > mod.tsv
	$PYTHON - <<-'END'
		import re
		import xml.etree.ElementTree as ET
		import numpy as np
		from scipy.sparse import coo_matrix
		from scipy.sparse.csgraph import connected_components
		E = np.array([[float(x) for x in l.split()] for l in open("e.txt")])
		u, v = E[:, 0].astype(int), E[:, 1].astype(int)
		stats = dict(l.rstrip("\n").split("\t") for l in open("stats.tsv"))
		d = np.bincount(u)
		linked = np.flatnonzero(d)
		W = coo_matrix((np.abs(E[:, 2]), (u, v))).tocsr()
		n, label = connected_components(W[linked][:, linked])
		want = dict(genes_with_neighbours=len(linked), edges=len(E) // 2, negative_share=(E[:, 2] < 0).mean(), degree_max=d.max(),
		            degree_median=np.sort(d[linked])[(len(linked) - 1) // 2], degree_mean=d[linked].mean(), components=n,
		            largest_component=np.bincount(label).max())
		for k, x in want.items():
		    assert abs(float(stats[k]) - x) < 1e-3, (k, stats[k], x)
		rows = [l.rstrip("\n").split("\t") for l in open("a.tsv")]
		assert rows[0] == "token_a gene_a symbol_a token_b gene_b symbol_b rho overlap pooled".split()
		got = {(int(r[0]), int(r[3])): (float(r[6]), int(r[7]), float(r[8])) for r in rows[1:]}
		assert len(got) == len(E) // 2 and all(abs(got[a, b][0] - r) < 1e-5 and got[a, b][1] == k for a, b, r, k in E if a < b)
		# modules: numbered by size, none without neighbours, no worse than one module for all
		M = np.array([[int(x) for x in l.split()] for l in list(open("mod.tsv"))[1:]])
		k = W.sum(1).A1
		for c in 1, 2:
		    m = M[:, c]
		    assert (m[linked] >= 0).all() and (m[np.setdiff1d(M[:, 0], linked)] == -1).all()
		    size = np.bincount(m[linked])
		    assert (np.diff(size) <= 0).all() and len(size) > 1
		    same = m[:W.shape[0], None] == m[None, :W.shape[0]]
		    r = (1, 3)[c - 1]
		    Q = ((W.toarray() - r * np.outer(k, k) / k.sum()) * same).sum() / k.sum()
		    one = 1 - r
		    assert Q > max(one, 0) + 0.05, Q
		ns = {"g": "http://graphml.graphdrawing.org/xmlns"}
		g = ET.parse("a.graphml").getroot()
		values = lambda x: {d.get("key"): d.text or "" for d in x.findall("g:data", ns)}
		node = {x.get("id"): values(x) for x in g.findall(".//g:node", ns)}
		vocab = [l.rstrip("\n").split("\t") for l in open("vocab.tsv")][1:]
		kind = {k.get("id"): k.get("attr.type") for k in g.findall("g:key", ns)}
		assert kind == dict(token="int", gene="string", symbol="string", name="string", module="int", rho="double", overlap="int", pooled="double"), kind
		assert sorted(int(x["token"]) for x in node.values()) == list(linked)
		for x in node.values():
		    t = int(x["token"])
		    assert x["gene"] == vocab[t][1] and x["symbol"] == vocab[t][2] and x["name"] == (vocab[t][2] or vocab[t][1]) and int(x["module"]) == M[t, 2], (x, vocab[t])
		seen = {}
		for x in g.findall(".//g:edge", ns):
		    a, b = sorted(int(node[x.get(k)]["token"]) for k in ("source", "target"))
		    assert (a, b) not in seen
		    seen[a, b] = tuple(float(values(x)[k]) for k in ("rho", "overlap", "pooled"))
		assert seen.keys() == got.keys() and all(abs(x - y) < 1e-6 for k in got for x, y in zip(seen[k], got[k]))
		import pandas as pd             # and a.tsv as a user would open it
		T = pd.read_csv("a.tsv", sep="\t")
		assert len(T) == len(got) and abs((T.rho < 0).mean() - float(stats["negative_share"])) < 1e-6 and T.overlap.dtype == np.int64
	END
	run -2 depgraph --rho-min 0.3 a.graph
	assert_output --partial "is a graph already"
	run -2 depgraph -O stats --leiden 1 a.graph
	run -2 depgraph --leiden 0 a.graph -o x
	run -2 depgraph --leiden 1,2,1 a.graph -o x
	assert_line "depgraph: --leiden: 1 is given twice"
}

@test "depgraph: bad input and misuse" {
	run -1 depgraph s.counts -o x
	assert_output --partial "a counts stream, expected tokens"
	head -c 5000 s.tok > cut
	run -1 depgraph cut -o x
	assert_output --partial "cut: the stream is cut short"
	run -1 sh -c 'depgraph < /dev/null -o x'
	assert_output "depgraph: standard input: empty, expected a stream"
	run -1 depgraph "$BATS_FILE_TMPDIR" -o "$BATS_TEST_TMPDIR/x"
	assert_output --partial "this is a folder, expected a stream"
	mkdir model && touch model/config.json
	run -1 depgraph model -o "$BATS_TEST_TMPDIR/x"
	assert_output --partial "this is the folder of a model (its option takes one), expected a stream"
	run -1 depgraph none.tok -o x
	assert_output "depgraph: none.tok: No such file or directory: expected a stream"
	run -1 depgraph s.tok s.tok -o x
	assert_output "depgraph: s.tok: this file is given twice (as s.tok)"
	run -2 depgraph --rho-min 2 s.tok -o x
	assert_line --partial "--rho-min: '2' is not a number from 0 to 1"
	scsim --kind b1 -n 0 -o empty.tok
	run -1 depgraph empty.tok -o x
	assert_output --partial "no cells"
	run -1 sh -c 'depgraph s.tok > /dev/full'
	assert_output --partial "No space left"
	assert_not_exist x
}

@test "depgraph refuses a graph whose correlations over all cells are not finite, or differ between both rows of an edge" {
	depgraph --min-overlap 50 s.tok -o a.graph
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - <<-'P'
		from corrmask import stream
		for name, value in ("same", None), ("nan", float("nan")), ("other", 2):
		    graph = stream.read("a.graph")
		    blocks = list(graph)
		    if value is not None:
		        blocks[0]["pooled"][1].setflags(write=True)
		        blocks[0]["pooled"][1][0] = value
		    stream.write(name + ".graph", graph.header, blocks)
	P
	depgraph -O stats same.graph
	for f in nan other; do
		run -1 depgraph -O stats $f.graph
		assert_output --partial "$f.graph: "
	done
}

@test "depgraph: a gene that is constant in the sample has no neighbours and changes none, though --rho-min is 0" {
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - <<-'P'
		import numpy as np, corrmask.stream as scstream
		r = np.random.default_rng(1)
		cells = [2 + 1 + r.permutation(30)[:r.integers(8, 20)] for _ in range(120)]
		vocab = {"id": ["<pad>", "<mask>"] + [f"g{i:02}" for i in range(31)], "symbol": [""] * 33, "median": [None] * 33}
		for name, first in ("with", [2]), ("without", []):
		    rows = [np.concatenate([np.array(first, int), c]) for c in cells]
		    columns = [{"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "barcode", "type": "str", "shape": "scalar"},
		               {"name": "token", "type": "u16", "shape": "ragged", "group": "token"}]
		    block = {"cell": np.arange(120, dtype=np.uint64), "barcode": [f"c{i}" for i in range(120)],
		             "token": (np.cumsum([0] + [len(x) for x in rows]).astype(np.uint64), np.concatenate(rows).astype(np.uint16))}
		    scstream.write(name + ".tok", {"kind": "tokens", "columns": columns, "provenance": [], "vocab": vocab}, [block])
	P
	for neighbours in 1 5 50; do
		for f in with without; do
			depgraph -q --rho-min 0 --min-cells 5 --min-overlap 5 --candidates $neighbours $f.tok -o $f.graph
			depgraph -q -O tsv $f.graph -o $f.tsv
		done
		cmp with.tsv without.tsv
		assert [ "$(wc -l <with.tsv)" -gt 20 ]
	done
}

@test "depgraph: a graph of few edges comes with the --min-overlap that fits the number of cells" {
	scsim -q --cells 800 --genes 300 --types 4 --rarest .1 --depth 250 -o hint.counts
	rankenc -q --fit hint.counts -o hint.vocab
	rankenc -q -m hint.vocab hint.counts -o hint.tok
	few=$(for n in 700 600 500 400 300 250 200 150 100; do
		depgraph -q --min-overlap $n hint.tok -o hint.graph
		k=$(depgraph -q -O tsv hint.graph | tail -n +2 | wc -l)
		[ "$k" -gt 0 ] && echo "$n $k" && break
	done)
	read -r overlap edges <<<"$few"
	run -0 depgraph --min-overlap "$overlap" hint.tok -o hint.graph
	assert_output --regexp "^depgraph: note: few edges \($edges; [0-9]+ of [0-9]+ genes have partners\); with 800 cells try --min-overlap 40\$"
	# followed, it says so no more; nor does it at a value that is no higher than the one it would name
	run -0 depgraph --min-overlap 40 hint.tok -o hint.graph
	assert_output --regexp "^depgraph: note: [0-9]+ edges in 800 cells; [0-9]+ of [0-9]+ genes have partners\$"
	run -0 depgraph --min-overlap 40 --rho-min .9 hint.tok -o hint.graph
	refute_output --partial "try"
}

@test "depgraph: cells without tokens and too few cells give a graph without edges" {
	scsim --kind b1 -n 20 -o few.tok
	run -0 depgraph few.tok -o x
	assert_output --partial "no edges among 0 genes of 20 cells; lower --min-overlap, such as --min-overlap 10, --min-cells or --rho-min"
	run -0 sh -c 'maskgen --strategy corrmask -g x -u few.tok | scview --check'
	assert_line --partial "x has no edges: all masks are random"
	[ "$(edges x | wc -l)" = 0 ]
	[ "$(scview x | wc -l)" = 1003 ]
}

# bats test_tags=slow
@test "depgraph -O layout: the genes with partners and a position for each; joined genes are nearer than others" {
	scsim -q --kind b1 -n 1500 --seed 1 -o layout.tok
	depgraph -q --min-overlap 10 -o layout.graph layout.tok
	depgraph -O layout --leiden 1 -q -o layout.tsv layout.graph
	depgraph -O tsv -q -o layout.edges layout.graph
	assert_equal "$(wc -l < layout.tsv)" $(($(depgraph -q -O stats layout.graph | awk '$1 == "genes_with_neighbours" { print $2 }') + 1))
	run -0 awk -F '\t' '
		NR == FNR && FNR == 1 { if ($0 != "token\tgene\tsymbol\tdegree\tmodule\tx\ty") exit 2; next }
		NR == FNR { if ($6 !~ /^-?[0-9]/ || $7 !~ /^-?[0-9]/) exit 3; x[$1] = $6; y[$1] = $7; degree[$1] = $4; token[++n] = $1; next }
		FNR > 1 { joined += sqrt((x[$1] - x[$4]) ^ 2 + (y[$1] - y[$4]) ^ 2); m++; degree[$1]--; degree[$4]-- }
		END {
			for (t in degree) if (degree[t]) exit 4
			for (i = 1; i <= n; i++) { j = (i + int(n / 2)) % n + 1; any += sqrt((x[token[i]] - x[token[j]]) ^ 2 + (y[token[i]] - y[token[j]]) ^ 2) }
			print joined / m / (any / n)
		}' layout.tsv layout.edges
	awk -v r="$output" 'BEGIN { exit !(r > 0 && r < 0.3) }'
	depgraph -O layout --leiden 1 -q layout.graph | cmp - layout.tsv
	run ! cmp -s <(depgraph -O layout --leiden 1 --seed 2 -q layout.graph) layout.tsv
	run -2 depgraph -O layout -u layout.graph
}
