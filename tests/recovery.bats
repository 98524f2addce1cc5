# examples/recovery.py and examples/depth.py
load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 200 --genes 80 --modules 8 --types 3 --depth 600 -o cells.counts
}
setup() {
	cd "$BATS_FILE_TMPDIR"
	export PYTHONPATH=$BATS_TEST_DIRNAME/../python OMP_NUM_THREADS=1
}

@test "examples/recovery.py: the deviance of gene means is scikit-learn's, and neighbours and a network are below it" {
	/usr/bin/python3 "$BATS_TEST_DIRNAME/../examples/recovery.py" cells.counts 1 2 >recovery.tsv
	scsample -q --thin 0.5 -o a.counts cells.counts
	scsample -q --thin 0.5 --complement -o b.counts cells.counts
	/usr/bin/python3 - "$BATS_TEST_DIRNAME/../examples" <<-'END'
		import csv, sys
		sys.path.insert(0, sys.argv[1])
		import numpy as np
		from recovery import counts
		from sklearn.metrics import mean_poisson_deviance
		a, b = counts("a.counts"), counts("b.counts")
		assert (a + b == counts("cells.counts")).all()
		mu = a.sum(1, keepdims=True) * a.sum(0) / a.sum()
		rows = list(csv.DictReader(open("recovery.tsv"), delimiter="\t"))
		got = {(r["seed"], r["method"]): float(r["deviance"]) for r in rows}
		want = mean_poisson_deviance(b.ravel(), np.maximum(mu, 1e-6).ravel())
		assert abs(got["1", "mean"] - want) < 1e-5 * want, (got, want)
		assert len(got) == 10 and all(got[s, m] < got[s, "mean"] for s in "12" for m in ("diffusion", "nb recalibrated")), got
		assert all(got[s, "nb recalibrated"] < got[s, "nb"] for s in "12"), got
	END
}

@test "examples/depth.py: a row for each depth and arm" {
	/usr/bin/python3 "$BATS_TEST_DIRNAME/../examples/depth.py" cells.counts cell_type donor 1 >depth.tsv
	assert_equal "$(awk -F '\t' 'NR > 1 && $4 > 0 && $4 <= 1 { n++ } END { print n }' depth.tsv)" 35
	run -1 /usr/bin/python3 "$BATS_TEST_DIRNAME/../examples/depth.py" cells.counts
	for run in "depth.py nothing.counts cell_type donor" "recovery.py nothing.counts"; do
		run -1 /usr/bin/python3 "$BATS_TEST_DIRNAME"/../examples/$run
		assert_line --partial "nothing.counts"
		assert_line "${run%% *}: scsample failed"
	done
}
