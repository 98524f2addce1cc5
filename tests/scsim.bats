#!/usr/bin/env bats
# scsim: cells with a known truth

load helper

setup() { cd "$BATS_TEST_TMPDIR"; }

@test "scsim: the same bytes for any number of threads, other bytes for another seed" {
	scsim -n 500 -u > a
	scsim -n 500 -u -@ 3 > b
	cmp a b
	scsim -n 500 -u --seed 2 > c
	run ! cmp -s a c
	scsim --kind b1 -n 100 -u > a
	scsim --kind b1 -n 100 -u -@ 2 > b
	cmp a b
}

@test "scsim: types fall to the rarest, donors and modules are all there, depth is as asked" {
	scsim -n 4000 -@ 2 -o s.counts
	run scview --check s.counts
	assert_success
	scview -c cell_type s.counts | tail -n +2 | sort | uniq -c | sort -n > types
	[ "$(wc -l < types)" = 8 ]
	awk 'NR == 1 { if ($1 < 15 || $1 > 80) exit 1 } END { if ($1 < 1000) exit 1 }' types
	[ "$(scview -c donor s.counts | tail -n +2 | sort -u | wc -l)" = 4 ]
	scview -c n_counts s.counts | tail -n +2 | sort -n | awk '{ v[NR] = $1 } END { m = v[int(NR / 2)]; if (m < 1600 || m > 2500) exit 1 }'
	[ "$(scview --vocab s.counts | cut -f 3 | sed -n 's/^m\([0-9]*\)\..*/\1/p' | sort -u | wc -l)" = 40 ]
}

@test "scsim: genes of one module correlate within a cell type, others do not" {
	scsim -n 1500 --genes 400 --modules 5 --types 1 --rarest 1 --donors 1 --depth 20000 -o s.counts
	scview --vocab s.counts | cut -f 3 > symbols
	scview -c gene,count,n_counts s.counts > cells.tsv
	$PYTHON - <<-'END'
		import numpy as np
		symbols = open("symbols").read().split()[1:]
		X = np.zeros((1500, len(symbols)))
		for i, line in enumerate(list(open("cells.tsv"))[1:]):
		    g, c, n = line.rstrip("\n").split("\t")
		    X[i, [int(x) for x in g.split()]] = [int(x) for x in c.split()]
		    assert X[i].sum() == int(n)
		signed = np.corrcoef(np.log1p(X).T)
		C = np.abs(signed)
		m = np.array([s.split(".")[0] for s in symbols])
		same = (m[:, None] == m) & (m != "bg")[:, None] & ~np.eye(len(m), dtype=bool)
		apart = (m[:, None] != m)
		# shares of a total couple all genes a little
		assert np.nanmedian(C[same]) > 0.4 and np.nanmedian(C[same]) > 2 * np.nanmedian(C[apart]), (np.nanmedian(C[same]), np.nanmedian(C[apart]))
		# one gene in five has a negative load: it falls when the others of its module rise
		falling = 0
		for k in set(m) - {"bg"}:
		    genes = np.flatnonzero(m == k)
		    genes = genes[X[:, genes].std(0) > 0]
		    sign = np.sign(np.linalg.eigh(signed[np.ix_(genes, genes)])[1][:, -1])
		    falling += min((sign > 0).sum(), (sign < 0).sum())
		share = falling / (m != "bg").sum()
		assert .13 < share < .27, share
	END
}

@test "scsim --kind b1: appendix B.1" {
	scsim --kind b1 -o b1.tok
	scview -c module,token b1.tok > b1.tsv
	$PYTHON - <<-'END'
		rows = [l.rstrip("\n").split("\t") for l in open("b1.tsv")][1:]
		assert len(rows) == 1000 and {m for m, _ in rows} == {f"module{k}" for k in range(1, 6)}
		hit = top = n = 0
		for m, t in rows:
		    t = [int(x) - 2 for x in t.split()]
		    assert len(t) == len(set(t)) == 100 and max(t) < 1000
		    k = int(m[6:]) - 1
		    hit += sum(g // 200 == k for g in t)
		    n += 100
		    top += sum(g // 200 == k for g in t[:50])
		# 200 genes at N(10, 2), half of them dropped, against 800 at Exp(1)
		assert top / n > 0.499, top / n
		assert 0.9 < hit / n < 0.98, hit / n
	END
}

@test "scsim --kind b2: appendix B.2" {
	for gamma in 0 0.5 1; do
		scsim --kind b2 --gamma $gamma -o b2.tok
		scview -c module,token b2.tok > b2.tsv
		[ "$(scview -c token_module b2.tok | sed 1d | uniq)" = "-1$(printf ' 0%.0s' {1..20})$(printf ' 1%.0s' {1..20})$(printf ' 2%.0s' {1..20})" ]
		$PYTHON - $gamma <<-'END'
			import sys
			import numpy as np
			rows = [l.rstrip("\n").split("\t") for l in open("b2.tsv")][1:]
			T = np.array([[int(x) for x in t.split()] for _, t in rows])
			assert T.shape == (1500, 61) and (T[:, 0] == 2).all()
			R = T[:, 1:] - 3
			assert (np.sort(R, 1) == np.arange(60)).all()
			y = np.array([int(m[6:]) - 1 for m, _ in rows])
			top = np.array([R[i, 20 * y[i]:20 * y[i] + 20].min() >= 40 for i in range(1500)]).mean()
			assert abs(top - float(sys.argv[1])) < 0.05, top
		END
	done
}

@test "scsim --kind b2 --random-genes class: each class has random genes of its own, the same in all samples that are not coherent" {
	for gamma in 0 0.5; do
		scsim --kind b2 --random-genes class --gamma $gamma -o b2.tok
		scview -c module,token b2.tok > b2.tsv
		$PYTHON - $gamma <<-'END'
			import sys
			from collections import Counter
			import numpy as np
			rows = [l.rstrip("\n").split("\t") for l in open("b2.tsv")][1:]
			R = np.array([[int(x) for x in t.split()] for _, t in rows])[:, 1:] - 3
			assert (np.sort(R, 1) == np.arange(60)).all()
			sets = {}
			for y in "module1", "module2", "module3":
			    top = Counter(tuple(np.nonzero(r >= 40)[0]) for r, (m, _) in zip(R, rows) if m == y)
			    module = tuple(range(20 * int(y[6:]) - 20, 20 * int(y[6:])))
			    n = sum(top.values())
			    assert abs(top.pop(module, 0) / n - float(sys.argv[1])) < 0.07
			    (sets[y], k), = top.items()                # one set and no other
			    assert 3 < len(set(sets[y]) & set(module)) < 11 and len(sets[y]) == 20
			assert len(set(sets.values())) == 3
		END
	done
	# the other values are those of --random-genes sample: the coherent samples are the same ones
	scsim --kind b2 | scview -c module,token > sample
	scsim --kind b2 --gamma 1 --random-genes class | scview -c module,token | cmp - sample
}

@test "scsim: no cells, one gene" {
	scsim -n 0 | scview --check
	scsim -n 3 --genes 1 --modules 1 --module-share 1 | scview --check
}

@test "scsim --targets: a regulator drives its targets in half of the cells; all else stays" {
	scsim -q --cells 600 --genes 120 --modules 5 --types 2 --rarest 0.4 --depth 2000 --seed 4 -o plain.counts
	scsim -q --cells 600 --genes 120 --modules 5 --types 2 --rarest 0.4 --depth 2000 --seed 4 --targets 8 -@ 2 -o driven.counts
	scsim -q --cells 600 --genes 120 --modules 5 --types 2 --rarest 0.4 --depth 2000 --seed 4 --targets 8 -o again
	cmp driven.counts again
	diff <(scview -c cell,cell_type,donor plain.counts) <(scview -c cell,cell_type,donor driven.counts)
	scview --vocab driven.counts >v.tsv
	scview -c state,n_counts,gene,count driven.counts >c.tsv
	$PYTHON - <<-'END'
		import csv
		import numpy as np
		symbol = [r["symbol"] for r in csv.DictReader(open("v.tsv"), delimiter="\t")]
		rows = list(csv.DictReader(open("c.tsv"), delimiter="\t"))
		x = np.zeros((len(rows), len(symbol)))
		for i, r in enumerate(rows):
		    x[i, [int(g) for g in r["gene"].split()]] = np.log1p(1e4 * np.array(r["count"].split(), float) / float(r["n_counts"]))
		on = np.array([r["state"] == "on" for r in rows])
		assert 250 < on.sum() < 350
		up = x[on].mean(0) - x[~on].mean(0)
		regulator = [i for i, s in enumerate(symbol) if s.startswith("regulator.")]
		targets = [i for i, s in enumerate(symbol) if s.startswith("target.")]
		assert len(regulator) == 1 and len(targets) == 8
		assert up[regulator[0]] > 1 and (up[targets] > 0.15).all(), (up[regulator], up[targets])
		others = np.delete(up, regulator + targets)   # they fall a little: depth is shared
		assert others.max() < up[targets].min(), (others.max(), up[targets])
	END
	run scsim -q --genes 100 --modules 5 --module-share 0.95 --targets 8
	assert_failure 2
	assert_line -n 0 "scsim: a regulator of 8 genes needs 9 genes without a module, and there are 5"
	run scsim --kind b1 --targets 8
	assert_failure 2
}
