#!/usr/bin/env bats
# Partner reliance: the probes of maskgen, the losses of sctrain eval --cell-scores, the tables without a network, and make reliance

load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	export PATH=$BIN:$PATH
	scsim -q --cells 300 --genes 120 --modules 12 --module-share 0.8 --depth 3000 --activity 1.2 --types 4 --rarest 0.15 --seed 1 -o s.counts
	rankenc -q --fit s.counts -o vocab.tsv
	rankenc -q -m vocab.tsv --max-len 50 s.counts -o s.tok
	depgraph -q --min-overlap 30 s.tok -o s.graph
	for p in hidden visible; do maskgen -q --strategy probe --partners $p -g s.graph --epochs 3 -b 16 s.tok -o $p.masked; done
	maskgen -q --epochs 2 s.tok | sctrain mlm -q --config tiny --lr 0.003 -o s.model
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	P=$BATS_TEST_DIRNAME/../pipelines
}

@test "maskgen --strategy probe: one target; all its partners, or as many unrelated tokens; the same targets in both streams" {
	scview -c cell,token s.tok > tok.tsv
	depgraph -q -O tsv s.graph -o edges.tsv
	for p in hidden visible; do scview -c cell,epoch,input,position,target $p.masked > $p.tsv; done
	run -0 $PYTHON - <<-'END'
		from collections import Counter
		rows = lambda f: [l.rstrip("\n").split("\t") for l in open(f)][1:]
		ints = lambda s: [int(x) for x in s.split()]
		cell = {int(c): ints(t) for c, t in rows("tok.tsv")}
		edges = set()
		for r in rows("edges.tsv"):
		    edges |= {(int(r[0]), int(r[3])), (int(r[3]), int(r[0]))}
		hidden, visible = rows("hidden.tsv"), rows("visible.tsv")
		assert [r[:2] + r[3:] for r in hidden] == [r[:2] + r[3:] for r in visible]
		assert len(hidden) == 3 * len(cell) and Counter(r[1] for r in hidden) == {"0": 300, "1": 300, "2": 300}
		partners = targets = none = chance = overlap = 0
		where = Counter()
		for h, v in zip(hidden, visible):
		    tokens = cell[int(h[0])]
		    masked = []
		    for r in (h, v):
		        i = ints(r[2])
		        masked.append({t for t, x in zip(tokens, i) if x != t})
		        assert len(i) == len(tokens) and all(x in (t, 1) for t, x in zip(tokens, i))
		    if not h[3]:
		        assert masked == [set(), set()]
		        able = [t for t in tokens if 0 < sum((t, u) in edges for u in tokens) <= sum((t, u) not in edges and t != u for u in tokens)]
		        assert not able, (h[0], able)
		        none += 1
		        continue
		    t = int(h[4])
		    assert tokens[int(h[3])] == t and h[3:] == v[3:]
		    near = {u for u in tokens if (t, u) in edges}
		    assert near and masked[0] == near | {t}, (t, near, masked[0])
		    assert t in masked[1] and not masked[1] & near and len(masked[1]) == len(masked[0])
		    partners += len(near)
		    targets += 1
		    where[t] += 1
		assert targets > 800 and partners > 1.5 * targets and len(where) > 60, (targets, partners, none, len(where))
		epochs = {}
		for h in hidden:
		    epochs.setdefault(h[0], []).append(h[4])
		assert sum(len(set(x)) > 1 for x in epochs.values()) > 250
	END
	assert_output ""
	for t in 2 3; do
		maskgen -q --strategy probe --partners visible -g s.graph --epochs 3 -b 16 -@ $t < s.tok | cmp - visible.masked
	done
	# other batches change nothing but the order
	diff <(sort hidden.tsv) <(maskgen --strategy probe --partners hidden -g s.graph --epochs 3 -b 7 s.tok | scview -c cell,epoch,input,position,target | sort)
	run ! cmp -s hidden.masked <(maskgen -q --strategy probe --partners hidden -g s.graph --epochs 3 -b 16 --seed 2 s.tok)
	# for the audit, the masked partners count
	[ "$(maskgen --strategy probe --partners visible -g s.graph --audit s.graph s.tok | awk '$1 == "masked" { print $2 }')" -gt 600 ]
}

@test "maskgen --strategy probe: a gene with more partners in its cell than unrelated tokens is never the target" {
	PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON - <<-'END'
		import numpy as np, corrmask.stream as scstream
		vocab = {"id": ["<pad>", "<mask>", "HUB", "A", "B", "C", "ALONE"], "symbol": [""] * 7, "median": [None, None] + [1] * 5}
		column = lambda name, kind, group=None: dict(name=name, type=kind, shape="ragged", group=group) if group else dict(name=name, type=kind, shape="scalar")
		ragged = lambda lists, kind: (np.cumsum([0] + [len(x) for x in lists]), np.array([t for x in lists for t in x], kind))
		near = [[], [], [3, 4, 5], [2], [2], [2], []]                # three partners of HUB, and one token that is none
		ones = [[1] * len(x) for x in near]
		scstream.write("hub.graph", {"kind": "graph", "provenance": [], "vocab": vocab, "columns": [column("token", "u32"),
		    column("neighbour", "u32", "n"), column("rho", "f32", "n"), column("overlap", "u32", "n")]},
		    [{"token": np.arange(7), "neighbour": ragged(near, "u4"), "rho": ragged(ones, "f4"), "overlap": ragged(ones, "u4")}])
		scstream.write("hub.tok", {"kind": "tokens", "provenance": [], "vocab": vocab, "columns": [column("cell", "u64"), column("token", "u16", "t")]},
		    [{"cell": np.arange(200), "token": ragged([[2, 3, 4, 5, 6]] * 200, "u2")}])
	END
	maskgen -q --strategy probe --partners hidden -g hub.graph hub.tok | scview -c target | tail -n +2 | sort | uniq -c > hubs
	run awk '{ print $2, ($1 > 40) }' hubs
	assert_output "$(printf '%s 1\n' 3 4 5)"
}

@test "maskgen --strategy probe: of a graph without edges" {
	depgraph -q --min-overlap 300 s.tok -o none.graph 2> /dev/null
	maskgen -q --strategy probe --partners hidden -g none.graph s.tok -o none.masked 2> told
	run cat told
	run -1 sctrain eval -M s.model none.masked
	assert_output --partial "no masked position"
}

@test "sctrain eval --cell-scores: losses of rows sum to the loss; standard errors over cells equal numpy's; the same for any threads and parts" {
	maskgen -q --epochs 2 --seed 4 s.tok -o r.masked
	sctrain eval -M s.model r.masked -o plain
	sctrain eval -M s.model --cell-scores rows r.masked -o with
	sctrain eval -M s.model --cell-scores rows2 -@ 3 -o with2 < r.masked
	cut -f 1-3,5 rows | cmp - <(cut -f 1-3,5 rows2)
	scview -c cell,epoch,position r.masked > stream.tsv
	run -0 $PYTHON - <<-'END'
		import numpy as np
		metrics = lambda f: {k: float(v) for k, v in (l.split() for l in list(open(f))[1:])}
		plain, got, again = metrics("plain"), metrics("with"), metrics("with2")
		for k in plain:
		    assert abs(got[k] - plain[k]) < 2e-6 * abs(plain[k]), (k, got[k], plain[k])
		for k in got:
		    assert abs(got[k] - again[k]) < 2e-6 * abs(got[k]), (k, got[k], again[k])
		rows = np.loadtxt("rows", skiprows=1)
		want = [l.rstrip("\n").split("\t") for l in open("stream.tsv")][1:]
		assert [(int(a), int(b), len(p.split())) for a, b, p in want] == [(int(r[0]), int(r[1]), int(r[2])) for r in rows]
		assert abs(rows[:, 3].sum() / rows[:, 2].sum() - got["loss"]) < 1e-6 and rows[:, 4].sum() / rows[:, 2].sum() - got["accuracy"] < 1e-8
		cells = np.unique(rows[:, 0])
		assert len(cells) == 300 and len(rows) == 600
		per = np.array([rows[rows[:, 0] == c, 2:].sum(0) for c in cells])
		for column, name in ((1, "loss"), (2, "accuracy")):
		    m = per[:, column].sum() / per[:, 0].sum()
		    e = per[:, column] - m * per[:, 0]
		    se = (len(e) / (len(e) - 1) * (e ** 2).sum()) ** .5 / per[:, 0].sum()
		    assert abs(got[name + "_se"] / se - 1) < 1e-6, (name, got, se)
		    # the bootstrap of cells agrees
		    r = np.random.default_rng(1)
		    boot = [x[:, column].sum() / x[:, 0].sum() for x in (per[r.integers(0, 300, 300)] for _ in range(2000))]
		    assert 0.9 < np.std(boot) / se < 1.1, (name, np.std(boot), se)
	END
	assert_output ""
	run -1 sctrain eval -M s.model --cell-scores /no/such/folder r.masked
	run -1 sctrain eval -M s.model --cell-scores /dev/full r.masked
	head -c 3000 r.masked > cut.masked
	run -1 sctrain eval -M s.model --cell-scores cut.rows -o cut.tsv cut.masked
	assert_not_exist cut.rows
	assert_not_exist cut.tsv
}

@test "depgraph --shuffle: the same graph but for the names of the genes; another seed, another graph" {
	depgraph -q --shuffle s.graph -o a.graph
	depgraph -q --shuffle -@ 2 s.graph -o b.graph
	depgraph -q --shuffle --seed 2 s.graph -o c.graph
	cmp a.graph b.graph
	run ! cmp -s a.graph c.graph
	# after building it, too
	cmp <(depgraph -q --min-overlap 30 --shuffle s.tok | depgraph -O tsv -) <(depgraph -O tsv a.graph)
	for g in s a; do depgraph -O tsv $g.graph > $g.edges; done
	run -0 $PYTHON - <<-'END'
		from collections import Counter
		import numpy as np
		read = lambda f: [(int(a), int(b), float(w), int(o)) for a, _, _, b, _, _, w, o, _ in (l.split("\t") for l in list(open(f))[1:])]
		s, a = read("s.edges"), read("a.edges")
		assert sorted((w, o) for *_, w, o in s) == sorted((w, o) for *_, w, o in a)
		def degrees(e):
		    return Counter(x for r in e for x in r[:2])
		assert set(degrees(s)) == set(degrees(a)) and sorted(degrees(s).values()) == sorted(degrees(a).values())
		n = max(degrees(s)) + 1
		def spectrum(e):
		    M = np.zeros((n, n))
		    for u, v, w, _ in e:
		        M[u, v] = M[v, u] = w
		    return np.linalg.eigvalsh(M)
		assert np.abs(spectrum(s) - spectrum(a)).max() < 1e-9
		same = {r[:2] for r in s} & {r[:2] for r in a}
		assert len(same) < 0.2 * len(s), (len(same), len(s))
	END
	assert_output ""
}

# make_losses DIR: tables of random losses for 2 strategies, 3 seeds and 40 cells
make_losses() {
	$PYTHON - "$1" <<-'END'
		import os, random, sys
		random.seed(31)
		os.makedirs(sys.argv[1], exist_ok=True)
		for s, shift in ("random", 0.4), ("corrmask", 0.1), ("shuffled", 0.41):
		    for k in 1, 2, 7:
		        own = random.gauss(0, 0.02)
		        tables = {p: open(f"{sys.argv[1]}/{s}-{k}.{p}.cells", "w") for p in ("hidden", "visible")}
		        for f in tables.values():
		            f.write("cell\tepoch\tmasked\tloss\tcorrect\n")
		        for e in 0, 1:
		            for c in range(40):
		                masked = int((c + e) % 9 > 0)
		                for p, f in tables.items():
		                    f.write(f"{c}\t{e}\t{masked}\t{masked * (5 + random.random() + (shift + own) * (p == 'hidden')):.9g}\t0\n")
	END
}

@test "reliance/points.py: R, its errors and paired gaps equal scipy's" {
	make_losses losses
	export BIN
	$P/page/table.py reliance/points losses "random corrmask shuffled" "1 2 7" .
	run -0 $PYTHON - <<-'END'
		import numpy as np
		from scipy.stats import t, ttest_rel
		S, K = ("random", "corrmask", "shuffled"), (1, 2, 7)
		table = lambda s, k, p: np.loadtxt(f"losses/{s}-{k}.{p}.cells", skiprows=1)
		def influence(s, k):               # of every cell on R; the standard error is that of CR2
		    global share
		    h, v = table(s, k, "hidden"), table(s, k, "visible")
		    use = h[:, 2] > 0
		    share = np.unique(h[use, 0], return_counts=True)[1] / use.sum()  # the same in all tables
		    d = (h - v)[use, 3]
		    return np.array([(d - d.mean())[h[use, 0] == c].sum() for c in np.unique(h[use, 0])]) / len(d), d.mean(), h[use, 3].mean(), v[use, 3].mean()
		error = lambda x: (x ** 2 / (1 - share)).sum() ** .5
		def rows(name):
		    lines = [l.rstrip("\n").split("\t") for l in open(name)]
		    return [dict(zip(lines[0], l)) for l in lines[1:]]
		close = lambda r, keys, want: all(abs(float(r[k]) - w) < 1e-9 for k, w in zip(keys, want)) or (r, want)
		R = {}
		for r in rows("points.tsv"):
		    s, k = r["strategy"], int(r["seed"])
		    x, R[s, k], h, v = influence(s, k)
		    q = share ** 2 / (1 - share)
		    half = t.ppf(.975, 1 / ((share ** 2).sum() + q.sum() ** 2 - (q ** 2).sum())) * error(x)
		    assert close(r, ("visible", "hidden", "R", "low", "high"), (v, h, R[s, k], R[s, k] - half, R[s, k] + half)) is True, r
		assert list(R) == [(s, k) for s in S for k in K]
		means = [r for r in rows("summary.tsv") if r["value"] == "R"]
		assert [r["arm"] for r in means] == list(S)
		base = np.array([R["random", k] for k in K])
		both = rows("differences.tsv"), rows("cells.tsv")
		assert [r["arm"] for r in both[0]] == [r["arm"] for r in both[1]] == ["corrmask", "shuffled"]
		for r in means:
		    mine = np.array([R[r["arm"], k] for k in K])
		    assert close(r, ("n", "mean", "sd"), (3, mine.mean(), mine.std(ddof=1))) is True
		for r, cells in zip(*both):
		    mine = np.array([R[r["arm"], k] for k in K])
		    d = mine - base
		    want, p = ttest_rel(mine, base)
		    assert close(r, ("difference", "sd", "t", "p"), (d.mean(), d.std(ddof=1), want, p)) is True and 2 < float(r["detectable"]) / d.std(ddof=1) < 5
		    x = sum(influence(r["arm"], k)[0] - influence("random", k)[0] for k in K) / 3
		    assert close(cells, ("difference", "se"), (d.mean(), error(x))) is True, cells
	END
	assert_output ""
	# what the table says of them
	mkdir prep
	ln -s ../s.graph prep/corpus.graph
	printf 'masks\tfrequency\tmedians\nhidden\t6.5\t5.25\nvisible\t6.5\t5\n' > losses/reference.tsv
	R=$(awk '$1 == "R" { printf " %.3f", $5 }' summary.tsv)
	read -r random corrmask shuffled <<< "$R"
	run -0 $P/page/table.py reliance/table losses prep "random corrmask shuffled" "1 2 7" "" how
	assert_line --regexp '^71 genes of 40 test cells are probed'
	assert_line --regexp '^table of medians of neighbours, no network +5.000 +5.250 +\+0.250$'
	assert_line "CorrMask: the network relies on visible partners less than with random masks (R $corrmask, not $random)."
	assert_line "CorrMask with a shuffled graph: we found no difference in R from random masks ($shuffled and $random)."
	run -0 $P/page/table.py reliance/table losses prep "random corrmask" 1 "" how
	assert_line --regexp '^CorrMask: R is 0.*. Two seeds or more are needed to compare.$'
	# the seeds agree, but cells differ by more: R is .4 and .3, of single cells 1 more or less
	mkdir cells
	cp losses/reference.tsv cells
	for k in 1 2; do
		for s in random corrmask; do
			for p in visible hidden; do
				awk -v k=$k -v s=$s -v h=$p 'BEGIN { OFS = "\t"; print "cell", "epoch", "masked", "loss", "correct"
					r = s == "random" ? 0.4 : 0.3 + k / 1000
					for (c = 1; c <= 20; c++) print c, 0, 1, 5 + (h == "hidden") * (r + (c % 2 == (s == "random") ? 1 : -1)), 0 }' > cells/$s-$k.$p.cells
			done
		done
	done
	run -0 $P/page/table.py reliance/table cells prep "random corrmask" "1 2" "" how
	assert_line "CorrMask: we found no difference in R from random masks (0.301 and 0.400)."
	# no target at all
	mkdir none
	for p in hidden visible; do sed '2,$s/.*/1\t0\t0\t0\t0/' losses/random-1.$p.cells > none/random-1.$p.cells; done
	run -0 $P/page/table.py reliance/points none random 1 .
	assert_output ""
	for f in points summary differences cells; do [ -e $f.tsv ] && [ ! -s $f.tsv ]; done
	run -1 $P/page/table.py reliance/table none prep random 1 "" how
	assert_output "reliance: no gene of the test cells has partners in its cell: the graph has too few edges: raise MAXLEN or CELLS"
	# one cell has no spread
	mkdir one
	cp losses/reference.tsv one
	printf 'cell\tepoch\tmasked\tloss\tcorrect\n1\t0\t2\t6\t0\n' | tee one/{random,corrmask}-{1,2}.visible.cells | sed s/6/6.2/ |
		tee one/corrmask-{1,2}.hidden.cells | sed s/6.2/6.4/ | tee one/random-1.hidden.cells | sed s/6.4/6.41/ > one/random-2.hidden.cells
	run -0 $P/page/table.py reliance/table one prep "random corrmask" "1 2" "" how
	assert_line --regexp '^CorrMask .* -$'
	assert_line "CorrMask: we found no difference in R from random masks (0.200 and 0.405)."
	assert_equal "$(cut -f 6,7 one/points.tsv | tail -n +2 | uniq)" $'NA\tNA'
	# rows that do not belong together
	for field in 1 2 3; do
		awk -F '\t' -v OFS='\t' -v f=$field 'NR == 5 { $f = 99 } 1' losses/random-2.visible.cells > other
		cp losses/random-2.visible.cells as-it-was
		cp other losses/random-2.visible.cells
		run -1 $P/page/table.py reliance/points losses "random corrmask" "1 2" .
		assert_output --partial "random-2: rows of hidden and visible partners differ"
		cp as-it-was losses/random-2.visible.cells
	done
}

reliance() { pipelines THREADS=2 reliance SCALE=tiny "$@"; }

# bats test_tags=slow
@test "make reliance: a table, a figure, a run by hand; a second run makes nothing, a seed more is added, other settings have their own folder" {
	run -0 reliance
	assert_line "  sctrain-shuffled-2"
	assert_line --regexp '^114 genes of 57 test cells are probed; graph: [0-9]+ genes with partners'
	for name in "random masks" "CorrMask" "CorrMask, shuffled graph"; do
		assert_line --regexp "^$name +[0-9.]+ +[0-9.]+ +[-+][0-9.]+ +[0-9.]+  [-+][0-9.]+ [-+][0-9.]+$"
	done
	assert_line --regexp '^table of gene frequencies, no network +[0-9.]+ +[0-9.]+ +[-+][0-9.]+$'
	R=results/reliance/$(readlink results/reliance/latest)
	assert_file_not_empty $R/reliance.svg
	M=results/pretrained/latest G=results/prepared/latest
	maskgen -q --strategy probe --partners hidden -g $G/corpus.graph --epochs 2 $G/test.tok | sctrain eval -M $M/corrmask-2.model | diff - <(head -7 $R/corrmask-2.hidden.tsv) |
		awk '/^[<>] (loss|perplexity)/ { v[$2, $1] = $3; n++; next } /^[<>]/ { bad = 1 } END { exit bad || n && (v["loss", "<"] - v["loss", ">"]) ^ 2 > 1e-10 }'
	was=$(cat $R/table.txt)
	run -0 reliance
	assert_output "$was"
	run -0 reliance SEEDS="1 2 3"
	assert_line "  sctrain-random-3"
	refute_line --regexp '^  sctrain-.*-[12]$'
	assert_line --regexp '^random masks .*  [-+][0-9.]+ [-+][0-9.]+ [-+][0-9.]+$'
	run -0 reliance SEED=2
	assert_line "  scsim"
	[ "$(readlink results/reliance/latest)" != "${R##*/}" ]
	run -0 pipelines list-runs
	assert_line --regexp "^reliance/${R##*/}  20"
	run -2 pipelines reliance DATA=no.h5ad
	assert_output --partial "DATA=no.h5ad: no such file"
}

@test "RANK_ARGS: cells are encoded with these options, in a folder of their own, and the models take the ranks" {
	run -0 reliance SEEDS=1 RANK_ARGS="--ties group"
	G=results/prepared/latest
	grep -qx 'RANK_ARGS = --ties group' $G/settings
	for part in train test; do scview -H $G/$part.tok | grep -q '"rank"'; done
	grep -q shared_positions results/pretrained/latest/corrmask-1.model/config.json
}
