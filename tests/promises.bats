#!/usr/bin/env bats
# Does ctaprobe transfer hold what the report of make annotate promises? Simulated references and new donors, independent of scsim (tests/promises)
load helper

setup_file() {
	need_tool ctaprobe
	export OPENBLAS_NUM_THREADS=1
}

# wrong HOW: a ctaprobe that ignores donors, or takes the quantile of another share, and promises all the same
wrong() {
	mkdir "$BATS_TEST_TMPDIR/$1"
	cat >"$BATS_TEST_TMPDIR/$1/ctaprobe" <<-END
		#!/bin/bash
		for a; do
			case \$before:$1 in
			--group:donors) unset 'args[-1]' ;;
			--coverage:quantile) args+=(.7) ;;
			*) args+=("\$a") ;;
			esac
			[ "\$before" != --report ] || report=\$a
			before=\$a
		done
		$(realpath "$BIN")/ctaprobe "\${args[@]}" && sed -i 's/^\(promise:[a-z]*\)\t0/\1\t1/' "\$report"
	END
	chmod +x "$BATS_TEST_TMPDIR/$1/ctaprobe"
	PATH=$BATS_TEST_TMPDIR/$1:$PATH run -1 "$PYTHON" -B "$BATS_TEST_DIRNAME/promises/transfer.py" 6 "donors differ much"
	assert_line --regexp '^false: donors differ much: '
}

# bats test_tags=slow
@test "promises: new donors get the coverage, the unknown cells and the accuracy that the report promises" {
	run "$PYTHON" -B "$BATS_TEST_DIRNAME/promises/transfer.py" 8
	assert_success
}

# bats test_tags=slow
@test "promises: with labels of unequal detail the terms and sets hold the true type as often as promised" {
	run "$PYTHON" -B "$BATS_TEST_DIRNAME/promises/terms.py" 6
	assert_success
}

# bats test_tags=slow
@test "promises: a ctaprobe that ignores donors, or takes a wrong quantile, breaks them" {
	wrong donors
	wrong quantile
}
