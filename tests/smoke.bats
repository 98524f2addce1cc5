#!/usr/bin/env bats
# make smoke itself: cases are files, a failure is told and does not stop the others
load helper

setup() { cd "$BATS_TEST_DIRNAME/.."; }

# smoke CASE...: with an own folder; nothing is built here
smoke() { env -u MAKEFLAGS -u MAKELEVEL make -s MPI=0 SMOKE="$BATS_TEST_TMPDIR/s" BIN="$BIN" TOOLS= "$@"; }

@test "make smoke: a case is made once; a case that fails is named with its last messages, and the others run" {
	run -0 smoke smoke SMOKE_CASES="catalog download"
	assert_line --regexp '^  catalog +[0-9]+\.[0-9] s, [0-9.]+ of processor time$'
	assert_line --regexp '^  download +[0-9]+\.[0-9] s, [0-9.]+ of processor time$'
	assert_line --regexp '^smoke: 2 of 2 experiments ran, [0-9]+ s, [0-9]+ of processor time$'
	cmp "$BATS_TEST_TMPDIR"/s/corpus.h5ad "$BATS_TEST_TMPDIR"/s/data/small.h5ad
	run -2 smoke smoke SMOKE_CASES="genesets catalog list-runs" smoke_genesets=
	refute_line --regexp '^  catalog'
	assert_line --regexp '^  list-runs +[0-9]+\.[0-9] s, [0-9.]+ of processor time$'
	assert_line --regexp '^  genesets +FAILED: .*/s/genesets.log ends with$'
	assert_line --partial "GENESETS=FILE.gmt is needed"
	assert_line --regexp '^smoke: 2 of 3 experiments ran, [0-9]+ s, [0-9]+ of processor time; failed: genesets$'
}

@test "make smoke has every experiment of make help" {
	env -u MAKEFLAGS -u MAKELEVEL make -s help OF=all | sed -n '/^Experiments/,/^Variables/s/^  \([a-z0-9-]*\) .*/\1/p' | grep -vx clean-runs | sort > "$BATS_TEST_TMPDIR/all"
	[ "$(wc -l < "$BATS_TEST_TMPDIR/all")" -gt 20 ]
	smoke smoke-list | sort > "$BATS_TEST_TMPDIR/cases"
	run -0 comm -23 "$BATS_TEST_TMPDIR/all" "$BATS_TEST_TMPDIR/cases"
	assert_output ""
}
