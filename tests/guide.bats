#!/usr/bin/env bats
# The blocks of commands in docs/guide run as they stand: the lines of every ```sh block of a page, in order, by one bash with -e and
# pipefail in a folder of its own. (Outlines are ```text.) The numbers that the tutorial prints are those of its text.

load helper

blocks() { awk '/^```/ { if (on) { on = 0; next } on = $0 == "```sh"; next } on' "$1"; }

run_page() {
	mkdir -p "$BATS_TEST_TMPDIR/$1"
	cd "$BATS_TEST_TMPDIR/$1"
	{
		# a pipe into head or scview -n must not fail for what these do not read
		echo 'set -eo pipefail; for t in head scview; do eval "$t() { command $t \"\$@\" && cat > /dev/null; }"; done'
		echo "python3() { $PYTHON \"\$@\"; }"
		blocks "$BATS_TEST_DIRNAME/../docs/guide/$1.md"
	} > commands
	[ "$(wc -l < commands)" -gt 10 ]
	PATH=$BIN:$PATH bash commands < /dev/null
}

# bats test_tags=slow
@test "tutorial.md: every command runs, and the scores are those of the text" {
	out=$BATS_TEST_TMPDIR/out
	run_page tutorial > "$out"
	run awk -F '\t' '$1 == "macro_f1" { printf "%.3f\n", $2 }' "$out"
	said=$(grep -oE "(Macro F1 is|and) \.[0-9]{3}" "$BATS_TEST_DIRNAME/../docs/guide/tutorial.md" | grep -oE "\.[0-9]{3}")
	assert_equal "$(wc -l <<<"$said")" 4
	# the baselines are the same everywhere; the weights of the network depend on the kernels of the processor
	paste <(echo "$output") <(echo "$said") | awk '{ d = $1 - $2; if (d * d > (NR < 3 ? 1e-9 : 2.5e-3)) { print "got " $1 ", the text says " $2; bad = 1 } } END { exit bad || NR != 4 }'
	[ "$(wc -l < new.labels.tsv)" -eq "$(scview -c cell new.counts | tail -n +2 | wc -l)" ]
	h5tok --list-obs annotated.h5ad 2>/dev/null | grep -q '^corrmask_predicted'
}

@test "howto.md: every command runs" {
	run -0 run_page howto
	[[ $output == *corrmask* || $output == *token* ]]
}
