# Trainings of every task that are killed at random moments, or whose disk is full: what is left resumes to the same model.
load helper

setup_file() {
	need_tool scsim rankenc maskgen scsample sctrain
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 200 --genes 80 --modules 4 --types 2 --module-share 0.8 --depth 400 --donors 4 --seed 5 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o all.tok sim.counts
	scsample -q --test-fraction 0.25 --part train -o train.tok all.tok
	scsample -q --test-fraction 0.25 --part test -o test.tok all.tok
	maskgen -q -u train.tok | sctrain mlm -q --config tiny -o base
	maskgen -q --strategy none --keep cell_type --epochs 3 --batch 6 -o train.masked train.tok
	maskgen -q --strategy none --keep cell_type -o held.masked test.tok
	awk -F'\t' 'NR > 1 && $3 ~ /^m[1-4]/ { print $2 "\t" ($3 ~ /^m[12]/ ? "odd" : "even") }' vocab.tsv >labels.tsv
	"${CC:-cc}" -O1 -shared -fPIC -o shim.so "$BATS_TEST_DIRNAME/faults/shim.c" || true
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
	cells=(cells --label cell_type --init base --lr 0.003 --eval held.masked --best loss --eval-every 7 --save-every 3)
	genes=(genes --gene-labels labels.tsv --init base --lr 0.003 --save-every 3)
}

# same_model A B: weights and curve (but for its times)
same_model() {
	cmp "$1/model.safetensors" "$2/model.safetensors"
	cmp "$1/config.json" "$2/config.json"
	cmp <(cut -f1-4 "$1/train.tsv") <(cut -f1-4 "$2/train.tsv")
	assert_equal "$(ls -d "$2"/*.tmp 2>/dev/null)" ""
}

# sweep NAME KILLS OPTION...: kill a training KILLS times, at moments spread over the length of an uninterrupted one
sweep() {
	local name=$1 kills=$2 start took killed=0
	shift 2
	start=$(date +%s%N)
	sctrain "$@" -q -o "$name.whole" train.masked
	took=$((($(date +%s%N) - start) / 1000000))
	for k in $(seq "$kills"); do
		sctrain "$@" -q --resume -o "$name.killed" train.masked 3>&- &
		sleep "$(awk -v t=$took -v k="$k" 'BEGIN { srand(k); printf "%.3f", t * rand() / 1000 }')"
		kill -9 $! 2>/dev/null && killed=$((killed + 1))
		wait $! || true
		[ ! -e "$name.killed/model.safetensors" ] || { same_model "$name.whole" "$name.killed" && rm -r "$name.killed"; }
	done
	sctrain "$@" -q --resume -o "$name.killed" train.masked
	same_model "$name.whole" "$name.killed"
	assert [ $killed -ge $((kills / 3)) ]
}

# bats test_tags=slow
@test "kills: sctrain cells with --eval and --best, killed 40 times, gives the model of an uninterrupted run" {
	sweep cells 40 "${cells[@]}"
}

# bats test_tags=slow
@test "kills: sctrain genes, killed 40 times, gives the model of an uninterrupted run" {
	sweep genes 40 "${genes[@]}"
}

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
