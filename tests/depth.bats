# examples/depth.py
load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 200 --genes 80 --modules 8 --types 3 --depth 600 -o cells.counts
}
setup() {
	cd "$BATS_FILE_TMPDIR"
	export PYTHONPATH=$BATS_TEST_DIRNAME/../python OMP_NUM_THREADS=1
}

@test "examples/depth.py: a row for each depth and arm" {
	/usr/bin/python3 "$BATS_TEST_DIRNAME/../examples/depth.py" cells.counts cell_type donor 1 >depth.tsv
	assert_equal "$(awk -F '\t' 'NR > 1 && $4 > 0 && $4 <= 1 { n++ } END { print n }' depth.tsv)" 35
	run -1 /usr/bin/python3 "$BATS_TEST_DIRNAME/../examples/depth.py" cells.counts
	run -1 /usr/bin/python3 "$BATS_TEST_DIRNAME/../examples/depth.py" nothing.counts cell_type donor
	assert_line --partial "nothing.counts"
	assert_line "depth.py: scsample failed"
}
