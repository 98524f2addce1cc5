# scmetric effective-rank and reconstruction: numpy's and scipy's numbers, and what cannot be scored
load helper

ref() {
	$PYTHON "$BATS_TEST_DIRNAME/ref/probe.py" "$@"
}

donors() {              # donors COMMAND ARGUMENT...: embeddings of donors, and the answers of scipy for them
	$PYTHON "$BATS_TEST_DIRNAME/ref/evaluation.py" "$@"
}

setup_file() {
	need_tool scmetric
	cd "$BATS_FILE_TMPDIR"
	ref make tr.emb seed=1
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

@test "scmetric effective-rank: effective rank, also of dependent, wide and few vectors, is numpy's" {
	donors make dtr.emb seed=1
	ref make wide.emb cells=40 features=60
	ref make long.emb cells=1500 features=7 what=constant
	for f in dtr wide long tr; do
		scmetric effective-rank $f.emb >m.tsv
		run donors rank $f.emb m.tsv
		assert_success
	done
	assert_equal "$(scmetric effective-rank wide.emb | awk '$1 == "cells" { print $2 }')" 40
	ref predict p.s
	run scmetric effective-rank -o out.tsv p.s
	assert_output "scmetric effective-rank: p.s: this is a prediction stream, expected embedding, made by scembed"
	ref make none.emb cells=0
	run scmetric effective-rank -o out.tsv none.emb
	assert_output "scmetric effective-rank: none.emb: no cells"
	ref make nan.emb what=nan cells=50
	run scmetric effective-rank -o out.tsv nan.emb
	assert_output "scmetric effective-rank: nan.emb: row 25: x[3] is nan, expected a finite number"
	assert_failure 1
	assert_not_exist out.tsv
}

@test "scmetric reconstruction: Pearson and Spearman of log-normalised counts are scipy's" {
	donors counts c.pred
	scmetric reconstruction c.pred >m.tsv
	run donors reconstruction c.pred m.tsv
	assert_success
	for what in constant nan library; do donors counts $what.pred what=$what; done
	wrong() {       # wrong FILE MESSAGE
		run scmetric reconstruction -o out.tsv "$1"
		assert_failure 1
		assert_output "scmetric reconstruction: $1: $2"
		assert_not_exist out.tsv
	}
	wrong constant.pred "no cell to score among 230: true or expected counts of the masked genes are all the same"
	scmetric reconstruction library.pred >library.tsv # cells without counts are not scored
	run awk '$1 == "undefined" { n[FNR != NR] = $2; next } END { print (n[1] - n[0] > 9) }' m.tsv library.tsv
	assert_output 1
	run scmetric reconstruction nan.pred
	assert_failure 1
	assert_output --regexp "nan.pred: cell [0-9]+: expected count nan and count [0-9]+ of library [0-9]+$"
	ref predict p.s
	wrong p.s "not predictions of counts (no columns 'expected' and 'library')"
}

@test "scmetric effective-rank: cells without an embedding are left out and counted" {
	PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON - <<-'END'
		import numpy as np, corrmask.stream as scstream
		stream = scstream.read("tr.emb")
		some, blocks = [], list(stream)
		for b in blocks:
		    keep = np.arange(b.rows) % 10 != 3
		    b["x"][~keep] = np.nan
		    some.append({k: scstream.Categorical(v.codes[keep], v.categories) if hasattr(v, "codes") else np.array(v)[keep]
		                 for k, v in b.items()})
		scstream.write("tr.nan.emb", stream.header, blocks)
		scstream.write("tr.some.emb", stream.header, some)
	END
	run -0 --separate-stderr scmetric effective-rank tr.nan.emb
	assert_equal "$output" "$(scmetric effective-rank -q tr.some.emb)"
	assert_equal "${stderr_lines[0]}" "scmetric effective-rank: warning: tr.nan.emb: 40 cells have no embedding, as they have no token, and are left out"
}
