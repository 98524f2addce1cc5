#!/usr/bin/env bats
# The pipelines of the linear model of the R2MAE paper: figure 1, tables 5 and 9

load helper

P=$BATS_TEST_DIRNAME/../pipelines
setup() { cd "$BATS_TEST_TMPDIR"; }

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
	# the paper's means: facts of its tables
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
	$P/r2mae/accuracy.sh a.tsv > f.tsv
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
		run -1 $P/r2mae/accuracy.sh bad.tsv
		assert_output --regexp '^r2mae-accuracy: bad.tsv: '
		assert_equal "${#lines[@]}" 1
	done
	run ! pipelines -n r2mae-fig1 SCALE=tiny ACCURACY=none.tsv
	assert_output --partial "ACCURACY=none.tsv: no such file"
}

# bats test_tags=slow
@test "figure 1, tiny: all panels are drawn, without a message of gnuplot" {
	pipelines r2mae-fig1 SCALE=tiny
	[ "$(head -c 4 results/r2mae-fig1/latest/fig1.png | tail -c 3)" = PNG ]
	for panel in 'A  isotropic' 'B  spiked' 'C  spiked' 'D  magnitude' 'E  uniform' 'E  Beta' 'E  latent' 'G  latent'; do
		grep -q "$panel" results/r2mae-fig1/latest/fig1.svg || fail "no panel $panel"
	done
	[ "$(wc -c < results/r2mae-fig1/latest/log/gnuplot-svg.log)" = 0 ]
	printf '%s\t%s\t%s\n' 'a model' .2 .9 'a model' .4 .88 'a model' .8 .8 > a.tsv
	pipelines r2mae-fig1 SCALE=tiny ACCURACY=a.tsv
	grep -q 'F  trained models' results/r2mae-fig1/latest/fig1.svg
	grep -q 'a model' results/r2mae-fig1/latest/fig1.svg
	[ "$(wc -c < results/r2mae-fig1/latest/log/gnuplot-svg.log)" = 0 ]
	run -1 $P/r2mae/linear.sh over.theory huge
	assert_output --partial "SCALE=huge"
	run -1 $P/r2mae/linear.sh bogus.theory tiny
	assert_output --partial "no curve or row 'bogus'"
}
