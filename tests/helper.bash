# Shared by all bats files: load helper. $BIN is the folder of the tools (make check-bats sets it).
bats_require_minimum_version 1.5.0
bats_load_library bats-support
bats_load_library bats-assert
bats_load_library bats-file

BIN=${BIN:-$BATS_TEST_DIRNAME/../bin}
PYTHON=/usr/bin/python3         # the one with Debian's numpy, scipy, h5py, anndata
SHARED=$BATS_TEST_DIRNAME/../../shared/data
PATH=$BIN:$PATH

# need FILE...: skip unless these shared data files are there
need() {
	local f
	for f; do
		[ -e "$SHARED/$f" ] || skip "no shared data: $f"
	done
}

# need_tool NAME...: skip unless the tools are built
need_tool() {
	local t
	for t; do
		[ -x "$BIN/$t" ] || skip "no $t in $BIN"
	done
}

# status_of COMMAND...: its exit status, with no output and no effect on the test
status_of() {
	"$@" >/dev/null 2>&1 && echo 0 || echo $?
}
