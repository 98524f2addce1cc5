# Ends that come from outside: signals at random moments, power cuts, a full disk. What is left is whole, and trainings resume to the same model.
load helper

setup_file() {
	need_tool scsim rankenc maskgen scsample sctrain depgraph scview h5tok
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 200 --genes 80 --modules 4 --types 2 --module-share 0.8 --depth 400 --donors 4 --seed 5 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o all.tok sim.counts
	scsample -q --test-fraction 0.25 --part train -o train.tok all.tok
	maskgen -q -u train.tok | sctrain mlm -q --config tiny -o base
	maskgen -q --strategy none --keep cell_type --epochs 3 --batch 6 -o train.masked train.tok
	awk -F'\t' 'NR > 1 && $3 ~ /^m[1-4]/ { print $2 "\t" ($3 ~ /^m[12]/ ? "odd" : "even") }' vocab.tsv >labels.tsv
	"${CC:-cc}" -O1 -shared -fPIC -o shim.so "$BATS_TEST_DIRNAME/faults/shim.c" || true
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
	genes=(genes --gene-labels labels.tsv --init base --lr 0.003 --save-every 3)
}

# same_model A B: weights and curve (but for its times)
same_model() {
	cmp "$1/model.safetensors" "$2/model.safetensors"
	cmp "$1/config.json" "$2/config.json"
	cmp <(cut -f1-4 "$1/train.tsv") <(cut -f1-4 "$2/train.tsv")
	assert_equal "$(ls -d "$2"/*.tmp 2>/dev/null)" ""
}

# the tasks of kills.py that can run here
tasks() {
	case $(sctrain --version) in *"without MPI"*) MPI='' ;; *) MPI=$(command -v mpirun || true) ;; esac
	[ -z "$MPI" ] || echo mlm-mpi mlm-mpi-eval
	echo mlm mlm-eval cells cells-eval genes genes-eval value value-eval nb nb-eval nb-curriculum
}

# bats test_tags=slow
@test "kills: every task, 4 signals each; of two ranks, one or mpirun gets them" {
	read -ra all < <(tasks | xargs)
	"$BATS_TEST_DIRNAME/kills.py" -n 4 "${all[@]}"
}

# bats test_tags=slow
@test "power cut: after every prefix of its writes a tool leaves the old file or the whole new one, and a training its last checkpoint" {
	strace -qq -o /dev/null true || skip "strace cannot be used here"
	"$BATS_TEST_DIRNAME/faults/powercut.py" -n 8
}

# bats test_tags=slow
@test "kills: a disk that is full from some write on leaves the last good checkpoint, and --resume gives the same model" {
	[ -e shim.so ] || skip "no compiler for the shim"
	sctrain "${genes[@]}" -q -o full.whole train.masked
	FAULT_COUNT=$PWD/count LD_PRELOAD=$PWD/shim.so sctrain "${genes[@]}" -q -o full.counted train.masked
	writes=$(awk '$1 == "write" { print $2 }' count | tail -n 1)
	assert [ "$writes" -gt 60 ]
	for part in 0 0.15 0.3 0.47 0.62 0.81 0.97; do
		rm -rf full
		n=$(awk -v w="$writes" -v p=$part 'BEGIN { printf "%d", 1 + p * (w - 1) }')
		run env FAULT=write:$n:on:ENOSPC LD_PRELOAD="$PWD/shim.so" sctrain "${genes[@]}" -q -o full train.masked
		assert_failure 1
		assert_output --partial "No space left on device"
		assert_not_exist full/model.safetensors
		sctrain "${genes[@]}" -q --resume -o full train.masked
		same_model full.whole full
	done
}
