#!/usr/bin/env bats
# maskrisk: against numpy (tests/ref/risk.py), which takes no short cuts; models, misuse, damaged tables

load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	export REF=$BATS_TEST_DIRNAME/ref/risk.py
	scsim -q --cells 400 --genes 60 --modules 5 --types 4 --rarest 0.15 --depth 600 -o c.counts
	rankenc -q --fit c.counts -o c.vocab
	rankenc -q -m c.vocab c.counts -o c.tok
	$PYTHON "$REF" matrix matrix.tsv 40
}

setup() { cd "$BATS_FILE_TMPDIR"; }

@test "the golden table is what numpy computes" {
	$PYTHON "$REF" golden | $PYTHON -c '
import sys
for a, b in zip(sys.stdin, open(sys.argv[1]), strict=True):
    for x, y in zip(a.rstrip("\n").split("\t"), b.rstrip("\n").split("\t"), strict=True):
        try:
            assert abs(float(x) - float(y)) <= 1e-9 * max(1, abs(float(y))), (a, b)
        except ValueError:
            assert x == y
' "$BATS_TEST_DIRNAME/ref/risk.tsv"
}

# bats test_tags=slow
@test "theory: features of unequal variance, few and many rows, ranges: as in numpy" {
	for n in 25 200; do
		maskrisk theory --model matrix.tsv --rows $n --noise 0.3 --rates 0.1:0.9:0.2 --ranges 0.3:0.6,0.5:0.9 -o t.tsv
		$PYTHON "$REF" theory matrix.tsv $n 0.3 t.tsv
	done
	maskrisk theory --model matrix.tsv --rows 30 --noise 1 --normalise --rates 0.5 --ranges 0.3:0.6 -@ 3 -o t.tsv
	$PYTHON "$REF" theory matrix.tsv 30 1 t.tsv normalise
}

@test "simulate: the same risks as simulations with numpy's pinv" {
	for n in 25 200; do
		maskrisk simulate --model matrix.tsv --rows $n --noise 0.3 --rates 0.2,0.5,0.7 --ranges 0.3:0.6 --runs 100 -@ 2 -o s.tsv
		$PYTHON "$REF" simulate matrix.tsv $n 0.3 s.tsv 100
	done
}

@test "simulate: the same bytes for any number of threads, other bytes for another seed" {
	how="--model beta --features 50 --rows 40 --runs 7 --rates 0.2,0.8 --ranges 0.3:0.6"
	maskrisk simulate $how > a
	maskrisk simulate $how -@ 3 > b
	cmp a b
	maskrisk simulate $how --seed 2 > c
	run ! cmp -s a c
	[ "$(cut -f 1,2 a | sed 1d | tr '\t\n' ' ,')" = "0.2 fixed,0.8 fixed,0.3:0.6 independent,0.3:0.6 coupled," ]
	# a range of one ratio is the fixed ratio, exactly; one run has no standard error
	maskrisk simulate --model beta --features 50 --rows 40 --runs 1 --retention random --rates 0.4 --ranges 0.4:0.4 > d
	[ "$(sed 1d d | sort -u | wc -l)" = 1 ]
	[ "$(tail -n 1 d | cut -f 4,6)" = "NA	NA" ]
	for same in masks rows; do
		maskrisk simulate $how --same $same > e
		run ! cmp -s a e
	done
}

@test "theory --minimum: the best ratio of the curve; 0 where masking does not pay" {
	maskrisk theory --model spiked --features 100 --rows 50 --rates 0.02:0.98:0.02 > curve
	maskrisk theory --model spiked --features 100 --rows 50 --minimum > least
	awk -F '\t' 'NR == FNR { v[$1] = $2; next } FNR > 1 && (low == "" || $5 < low) { low = $5; at = $1 }
		END { d = at - v["best_ratio"]; e = low / v["risk"]; exit !(d * d < 0.0004 && e >= 1 && e < 1.01 && v["pays"] == 1) }' least curve
	maskrisk theory --noise 2 --features 100 --rows 50 --minimum > least
	awk -F '\t' '{ v[$1] = $2 } END { exit !(v["best_ratio"] == 0 && v["pays"] == 0 && v["risk"] == v["null"] && v["signal"] < v["threshold"]) }' least
}

@test "theory: the closed form is the limit of many features" {
	for p in 50 400; do
		maskrisk theory --model spiked --features $p --rows $((p / 2)) --rates 0.3 | tail -n 1 | cut -f 5
		maskrisk theory --model spiked --features $p --rows $((p / 2)) --rates 0.3 --form closed | tail -n 1 | cut -f 5
	done | paste - - - - | awk '{ a = $1 / $2 - 1; b = $3 / $4 - 1; exit !($2 == $4 && a * a > 4 * b * b && b * b < 0.001) }'
	run -2 maskrisk theory --model beta --form closed
	assert_line --partial "--form closed goes with --model isotropic or spiked"
}

@test "data: every gene of counts and of tokens as in numpy, on one thread and three" {
	for f in c.counts c.tok; do
		for n in 25 4000; do
			maskrisk data -q --genes 20 --rows $n --rates 0.05:0.9:0.17 --gene-table genes.tsv -o sum.tsv $f
			$PYTHON "$REF" data $f $n sum.tsv genes.tsv
		done
		maskrisk data -q --genes 20 --rows $n --rates 0.05:0.9:0.17 -@ 3 < $f | cmp - sum.tsv
	done
}

# bats test_tags=slow
@test "data: theory is what masked regressions of the cells give, within 20 %" {
	scsim -q --cells 3000 --genes 60 --modules 5 --types 4 --rarest 0.15 --depth 2000 -o many.counts
	for how in '60 0.1,0.25' '600 0.25,0.5,0.75'; do
		maskrisk data -q --genes 40 --rows ${how% *} --rates ${how#* } -o sum.tsv many.counts
		$PYTHON "$REF" cells many.counts ${how% *} sum.tsv 8
	done
}

@test "data: says what it suggests, and what it leaves out" {
	run maskrisk data --genes 20 --rows 4000 -o said c.counts
	assert_success
	assert_line --regexp '^maskrisk data: note: 4000 rows, 20 genes: theory suggests a masking rate of 0\.[0-9]+; from 0\.[0-9]+ to 0\.[0-9]+, at least 95 % of the gain'
	assert_line --partial "a deep network can differ"
	run maskrisk data --genes 60 --rows 20 -o said c.counts
	assert_line --partial "no masking rate is better than predicting the mean"
	assert_line --partial "only 400 cells for"
}

@test "data: more genes than cells, no cells, no genes that differ" {
	scsample -q -n 15 c.counts -o few.counts
	run -1 maskrisk data -o x --genes 20 few.counts
	assert_output --partial "few.counts: 15 cells for 20 genes: their covariance is not positive definite"
	scsim -q --cells 0 -o none.counts
	run -1 maskrisk data -o x none.counts
	assert_output --partial "none.counts: no cells"
	scsample -q -n 1 c.counts -o one.counts
	run -1 maskrisk data -o x one.counts
	assert_output --partial "0 genes whose values differ"
	assert_not_exist x
}

@test "ratios outside (0, 1), options of other models, tables that are no covariance: one line, no output" {
	for rates in 0 1 0.5,1 -0.1 x 0.1: 0.5:0.1:0.1 0.1:0.5:0 0.1,,0.2 nan; do
		run -2 maskrisk theory -o x --rates=$rates
		assert_line -n 0 --regexp '^maskrisk theory: --rates: '
	done
	for ranges in 0.6:0.5 0:0.5 0.5:1 0.5 x:y "0.5:0.6,"; do
		run -2 maskrisk simulate -o x --ranges=$ranges
		assert_line -n 0 --regexp '^maskrisk simulate: --ranges: '
	done
	run -2 maskrisk theory -o x --spike 3
	assert_line -n 0 --partial "--spike does not go with --model isotropic"
	run -2 maskrisk theory -o x --model eigen
	run -2 maskrisk theory -o x --model beta --shape 1
	run -2 maskrisk theory -o x --model beta --top 3 --quantile 0.5
	run -2 maskrisk theory -o x --model block --blocks 700
	run -2 maskrisk data -o x --rates 2 c.counts
	run -2 maskrisk nothing
	assert_line -n 0 --partial "expected one of theory, simulate, data"
	bad() {
		printf "$2" > bad.tsv
		run -1 maskrisk theory $1 bad.tsv -o x
		assert_equal "${#lines[@]}" 1
		assert_output --partial "maskrisk theory: bad.tsv: $3"
	}
	bad --model '1\t2\n2\t1\n' "the covariance matrix is not positive definite"
	bad --model '1\t0.5\n0.4\t1\n' "not symmetric"
	bad --model '1\t0.5\n' "1 lines of 2 numbers"
	bad --model '1\t0\n0\n' "line 2: a line of 1 numbers"
	bad --model '1\t0\n0\t1\n0\t1\n' "line 3: a line of 2 numbers"
	bad --model '1\tx\n0\t1\n' "line 1: 'x' is not a number"
	bad --model '1\tnan\nnan\t1\n' "line 1: 'nan' is not a number"
	bad --model '1\n' "1 feature, expected at least 2"
	bad '--model eigen --eigenvalues' '1\t0.5\n' "line 1: 0.5 times"
	bad '--model eigen --eigenvalues' '0\n' "line 1: 0, expected an eigenvalue above 0"
	bad '--model eigen --eigenvalues' '' "no eigenvalues"
	run -1 maskrisk theory --model missing.tsv -o x
	assert_output "maskrisk theory: missing.tsv: No such file or directory"
	assert_not_exist x
}

@test "at the pole the risk is infinite in theory and finite in a simulation" {
	maskrisk theory --features 20 --rows 40 --rates 0.5 | tail -n 1 | cut -f 5 | grep -qx inf
	maskrisk simulate --features 20 --rows 40 --rates 0.5 --runs 5 | tail -n 1 | cut -f 3 | grep -qE '^[0-9.e+]+$'
	# nearly all entries masked: rows of zeros, features that are never seen
	maskrisk simulate --features 4 --rows 30 --rates 0.97 --runs 20 | tail -n 1 | cut -f 3 | grep -qE '^[0-9.e+]+$'
}
