#!/usr/bin/env bats
# The pipelines of the linear model of the R2MAE paper: figure 1, tables 5 and 9

load helper

P=$BATS_TEST_DIRNAME/../pipelines
risk() { $PYTHON "$P/r2mae/risk.py" "$@"; }
ref() { $PYTHON "$BATS_TEST_DIRNAME/ref/risk.py" "$@"; }
setup() { cd "$BATS_TEST_TMPDIR"; }

@test "the golden table is what numpy computes from the definitions, and what risk.py computes" {
	ref golden > golden
	$PYTHON - "$BATS_TEST_DIRNAME/ref/risk.tsv" "$P/r2mae" <<-'END'
		import sys
		import numpy as np
		sys.dont_write_bytecode = True
		sys.path.insert(0, sys.argv[2])
		import risk
		def near(x, y):
		    return abs(x - y) <= 1e-9 * max(1, abs(y))
		for a, b in zip(open("golden"), open(sys.argv[1]), strict=True):
		    assert a.split("\t")[0] == b.split("\t")[0] and (a[0] == "#" or all(near(float(x), float(y)) for x, y in zip(a.split()[1:], b.split()[1:], strict=True)))
		    what, *v = b.split()
		    if what == "ar1":
		        p, rho, n, r, s2, null, kappa, *want = map(float, v)
		        t = risk.Theory(rho ** np.abs(np.subtract.outer(np.arange(p), np.arange(p))), np.ones(int(p)) / p ** .5, s2 ** .5)
		        bias, variance, all_of_it, magnitude = t.fixed(n, r)
		        assert all(map(near, (t.null, all_of_it, bias, variance, magnitude), (null, *want))), (b, t.fixed(n, r))
		    if what == "rowwise":
		        p, rho, n, want = map(float, v)
		        scale, ratio = 1 + np.arange(p) % 5, np.array([.3, .5, .7])
		        t = risk.Theory(rho ** np.abs(np.subtract.outer(np.arange(p), np.arange(p))) * np.outer(scale, scale), np.ones(int(p)) / p ** .5, .5)
		        assert near(t.rowwise(ratio, n * ratio / 3)[0], want)
		    if what == "limit":
		        gamma, c, along, b2, s2, r, all_of_it, bias, variance = map(float, v)
		        if b2 == 1:
		            t = risk.Theory(np.eye(int(100 * gamma)), np.ones(int(100 * gamma)), s2 ** .5)
		            assert all(map(near, t.spiked(100, r, c, along)[:3], (bias, variance, all_of_it))), (b, t.spiked(100, r, c, along))
	END
}

# bats test_tags=slow
@test "theory and simulation: features of unequal variance, few and many rows, ranges: as in numpy" {
	ref matrix matrix.tsv 40
	for n in 25 200; do
		risk theory --model matrix.tsv --rows $n --noise 0.3 --rates 0.1:0.9:0.2 --ranges 0.3:0.6 > t.tsv
		ref theory matrix.tsv $n 0.3 t.tsv
		risk simulate --model matrix.tsv --rows $n --noise 0.3 --rates 0.2,0.5,0.7 --ranges 0.3:0.6 --runs 100 > s.tsv
		ref simulate matrix.tsv $n 0.3 s.tsv 100
	done
	risk theory --model matrix.tsv --rows 30 --noise 1 --normalise --rates 0.5 --ranges 0.3:0.6 > t.tsv
	ref theory matrix.tsv 30 1 t.tsv normalise
	# a range of one rate is the fixed rate, exactly; nearly all entries masked: rows of zeros, features that are never seen
	risk simulate --model beta --features 50 --rows 40 --runs 2 --retention random --rates 0.4 --ranges 0.4:0.4 > d
	[ "$(sed 1d d | cut -f 3- | sort -u | wc -l)" = 1 ]
	risk simulate --features 4 --rows 30 --rates 0.97 --runs 20 | tail -n 1 | cut -f 3 | grep -qE '^[0-9.e+]+$'
	risk theory --features 20 --rows 40 --rates 0.5 | tail -n 1 | cut -f 5 | grep -qx inf
}

# bats test_tags=slow
@test "tables 5 and 9, tiny: minima, means and differences are those of the simulations" {
	pipelines r2mae-table5 r2mae-table9 SCALE=tiny > out
	$PYTHON - <<-'END'
		import numpy as np
		for table, centre in (("table5", .55), ("table9", .45)):
		    lines = [l.split() for l in open(f"results/r2mae-{table}/latest/table.txt")]
		    for spectrum in ("beta", "latent"):
		        mean, gap = [], []
		        for seed in (2, 12, 22, 32, 42):
		            rows = [l.split("\t") for l in open(f"results/r2mae-{table}/latest/{spectrum}-{seed}.simulate.tsv")][1:]
		            fixed = {float(r[0]): float(r[2]) for r in rows if r[1] == "fixed"}
		            other = {r[1]: float(r[2]) for r in rows if r[1] != "fixed"}
		            assert len(fixed) == 41 and set(other) == {"independent", "coupled"}
		            best = min(fixed, key=fixed.get)
		            want = [best, fixed[best], fixed[centre], other["independent"], other["coupled"]]
		            got = next(l for l in lines if l[:2] == [spectrum, str(seed)])
		            assert len(got) == 11 and np.abs(np.array(got[2:7], float) - want).max() < 6e-4, (got, want)
		            mean.append(want)
		            gap.append([want[3] - want[2], want[4] - want[2], want[3] - want[1], want[4] - want[1]])
		        got = next(l for l in lines if l[:2] == [spectrum, "mean"])
		        assert np.abs(np.array(got[2:7], float) - np.mean(mean, 0)).max() < 6e-4
		        for j, (what, which) in enumerate((("independent", "fixed"), ("coupled", "fixed"), ("independent", "lowest"), ("coupled", "lowest"))):
		            got = next(l for l in lines if l[:4] == [spectrum, what, "-", which])
		            d = np.array(gap)[:, j]
		            assert abs(float(got[5]) - d.mean()) < 6e-5 and abs(float(got[6].strip("()")) - d.std(ddof=1)) < 6e-5, (got, d)
		            assert int(got[7]) == (d < 0).sum()
	END
	# the paper's seeds and means: facts of its tables
	assert_equal "$(grep -c 'paper: R2MAE - fixed 0.[45]5 .* 5 of 5$' results/r2mae-table5/latest/table.txt)" 2
	assert_equal "$(grep -c 'paper: R2MAE - lowest fixed .* [34] of 5$' results/r2mae-table9/latest/table.txt)" 2
	grep -q '^beta     mean .* 0.540    0.589   0.597   0.582$' results/r2mae-table5/latest/table.txt
	grep -q '^latent   mean .* 0.400    0.834   0.839   0.832$' results/r2mae-table9/latest/table.txt
}

# Of the conclusions only this is tested: independent retention agrees with theory, and coupled retention has a lower risk than the fixed centre.
# bats test_tags=slow
@test "tables 5 and 9: independent retention as in theory, coupled retention below the fixed centre" {
	for row in table5-beta table5-latent table9-beta table9-latent; do
		$P/r2mae/linear.sh $row-2.simulate small > s.tsv
		$P/r2mae/linear.sh $row-2.theory small > t.tsv
		centre=0.55
		[ $row = "${row#table9}" ] || centre=0.45
		awk -F '\t' -v centre=$centre '
			NR == FNR { theory[$2] = $5; next }
			{ risk[$2 == "fixed" ? $1 : $2] = $3; se[$2] = $4 }
			END {
				d = risk["independent"] - theory["independent"]
				exit !(risk["coupled"] < risk[centre] && (d < 0 ? -d : d) < 3 * se["independent"] + 0.02 * theory["independent"])
			}' t.tsv s.tsv || fail "$row"
	done
}

@test "figure 1, panel F: errors start at 0 and rise alike from 0.4 to 0.8" {
	printf '%s\t%s\t%s\n' m .15 .85 m .30 .86 m .40 .86 m .60 .84 m .80 .80 'a task' .8 .5 'a task' .2 .7 'a task' .4 .68 'a task' .6 .66 > a.tsv
	$P/page/table.py r2mae/accuracy a.tsv > f.tsv
	$PYTHON - <<-'END'
		import numpy as np
		x = {}
		for line in open("a.tsv"):
		    c, r, a = line.rstrip("\n").split("\t")
		    x.setdefault(c, []).append((float(r), 1 - float(a)))
		got = {b.split("\n")[0]: np.array([l.split("\t") for l in b.strip().split("\n")[1:]], float) for b in open("f.tsv").read().strip().split("\n\n\n")}
		assert set(got) == set(x)
		for c, v in x.items():
		    r, e = np.array(sorted(v)).T
		    line = np.polyfit(r[:2], e[:2], 1)
		    want = (e - line[1]) / ((np.interp(.8, r, e) - np.interp(.4, r, e)) / .4)
		    assert np.allclose(got[c], np.c_[r, want], atol=1e-7), c
	END
	for bad in 'm\t0.5' 'm\t1.5\t0.5' 'm\t0.5\t85' 'm\t.2\t.9\nm\t.2\t.8' 'm\t.2\t.9\nm\t.4\t.8' 'm\t.2\t.7\nm\t.4\t.8\nm\t.8\t.9' ''; do
		printf "$bad${bad:+\\n}" > bad.tsv
		run -1 $P/page/table.py r2mae/accuracy bad.tsv
		assert_output --regexp '^r2mae-accuracy: bad.tsv: '
		assert_equal "${#lines[@]}" 1
	done
	run ! pipelines -n r2mae-fig1 SCALE=tiny ACCURACY=none.tsv
	assert_output --partial "ACCURACY=none.tsv: no such file"
}

# bats test_tags=slow
@test "figure 1, tiny: all panels are drawn" {
	pipelines r2mae-fig1 SCALE=tiny
	for panel in 'A isotropic' 'B spiked' 'C spiked' 'D magnitude' 'E uniform' 'E Beta' 'E latent' 'F trained models' 'digits, 16 hidden' 'G latent'; do
		grep -q "$panel" results/r2mae-fig1/latest/fig1.svg || fail "no panel $panel"
	done
	printf '%s\t%s\t%s\n' 'a model' .2 .9 'a model' .4 .88 'a model' .8 .8 > a.tsv
	pipelines r2mae-fig1 SCALE=tiny ACCURACY=a.tsv
	grep -q 'a model' results/r2mae-fig1/latest/fig1.svg
	run -1 $P/r2mae/linear.sh over.theory huge
	assert_output --partial "SCALE=huge"
	run -1 $P/r2mae/linear.sh bogus.theory tiny
	assert_output --partial "no curve or row 'bogus'"
}
