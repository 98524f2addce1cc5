# scmetric learnability: winners and losers among genes, and their groups.
load helper

setup() {
	need_tool scmetric
	cd "$BATS_TEST_TMPDIR"
}

ref() { # ref COMMAND ARGUMENT...
	$PYTHON "$BATS_TEST_DIRNAME/ref/learnability.py" "$@"
}

@test "scmetric learnability: isotonic regression, spreads, Fisher's test and rank sums are scikit-learn's and scipy's" {
	$PYTHON -c 'import sklearn' || skip "no scikit-learn"
	for kind in ties missing; do
		ref draw 600 "${#kind}" $kind table.tsv groups.tsv
		scmetric learnability --groups groups.tsv --gene-scores genes.tsv -o metrics.tsv table.tsv
		read -r _ winners losers <<<"$(ref check table.tsv groups.tsv '{}' metrics.tsv genes.tsv)"
		((winners > 3 && losers > 3))
	done
}

# bats test_tags=slow
@test "scmetric learnability: the same with other options, constant errors, and many genes" {
	$PYTHON -c 'import sklearn' || skip "no scikit-learn"
	ref draw 600 8 constant table.tsv groups.tsv
	scmetric learnability --groups groups.tsv --gene-scores genes.tsv -o metrics.tsv table.tsv
	ref check table.tsv groups.tsv '{}' metrics.tsv genes.tsv
	ref draw 900 7 missing table.tsv groups.tsv
	scmetric learnability --ungated --min-expressed 1 --groups groups.tsv \
		--gene-scores genes.tsv -o metrics.tsv table.tsv
	ref check table.tsv groups.tsv \
		'{"ungated": 1, "min_expressed": 1}' metrics.tsv genes.tsv
	cmp metrics.tsv <(scmetric learnability --ungated --min-expressed 1 \
		--groups groups.tsv <table.tsv)
	# of many genes, where a product of factorials has no double
	ref draw 4000 7 plain table.tsv groups.tsv
	scmetric learnability --groups groups.tsv --gene-scores genes.tsv -o metrics.tsv table.tsv
	ref check table.tsv groups.tsv '{}' metrics.tsv genes.tsv
}

@test "scmetric learnability: tables that are none, and too few genes" {
	refused() { # MESSAGE ARGUMENT...
		local message=$1
		shift
		run -1 scmetric learnability "$@" -o never
		assert_output --partial "$message"
		assert_equal "$(grep -c . <<<"$output")" 1
		assert_not_exist never
	}
	columns="gene expressed zero_fraction rescaled mae_expressed null_expressed"
	table() { # LINE...
		printf '%s\n' "$columns" "$@" | tr ' ' '\t' >t.tsv
	}
	table "A 200 0.5 0.2 1 2" "B 99 0.5 0.2 1 2"
	refused "t.tsv: 1 of 2 genes have an error above 0 and 100 expressed pairs, expected 2 or more" t.tsv
	table "A 200 0.5 0.2 1 2" "B 200 1.5 0.2 1 2"
	refused "t.tsv: line 3: zero_fraction is '1.5', expected a share from 0 to 1" t.tsv
	table "A 200 0.5 0.2 1 2" "B 200 x 0.2 1 2"
	refused "t.tsv: line 3: zero_fraction is 'x', expected a finite number, or NA" t.tsv
	table "A 200 0.5 0.2 1 2" "B 200 0.5 -0.2 1 2"
	refused "t.tsv: line 3: rescaled is '-0.2', expected 0 or more" t.tsv
	table "A 200 NA 0.2 1 2"
	refused "zero_fraction is 'NA'" t.tsv
	table "A 200 0.5 0.2 1 2" "B 200 0.5"
	refused "t.tsv: line 3: 3 fields, expected 6" t.tsv
	table "A 200 0.5 0.2 1 2" "A 300 0.5 0.2 1 2"
	refused "A" t.tsv
	refused "no column 'rescaled_ungated'" --ungated t.tsv
	table "A 200 0.5 0.2 1 2" "B 200 0.5 0.2 1 2"
	printf 'C\tx\n' >groups.tsv
	refused "groups.tsv" --groups groups.tsv t.tsv
	# a window takes all of them: said
	run -0 scmetric learnability t.tsv -o few.tsv
	assert_output --partial "2 of 2 genes have 100 expressed pairs, fewer than a window of 201"
	# one group of all genes has no others to compare with
	printf 'A\tx\nB\tx\n' >groups.tsv
	scmetric learnability --groups groups.tsv t.tsv -o m.tsv
	assert_equal "$(grep -E '^(p|odds_ratio|z_p):x' m.tsv | tr '\t\n' ' ;')" "odds_ratio:x nan;p:x 1;z_p:x nan;"
}
