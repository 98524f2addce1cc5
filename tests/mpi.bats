# sctrain --mpi: several ranks on this machine.
load helper

# why there is nothing to test, if so
why_not() {
	case $(sctrain --version) in
	*"without MPI"*) echo "sctrain is built without MPI" ;;
	*) command -v mpirun >/dev/null || echo "no mpirun on this machine" ;;
	esac
}

setup_file() {
	[ -z "$(why_not)" ] || return 0 # setup skips
	cd "$BATS_FILE_TMPDIR"
	# cells of 1 to 59 tokens; 170 of them, so the last batch of an epoch is short: 2 cells
	scsim -q --cells 100 --genes 60 --modules 4 --types 3 --seed 3 -o a.counts
	scsim -q --cells 40 --genes 60 --modules 4 --types 3 --depth 20 --seed 5 -o b.counts
	scsim -q --cells 30 --genes 60 --modules 4 --types 3 --depth 5 --seed 6 -o c.counts
	scsample -q a.counts b.counts c.counts -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o cells.tok sim.counts
	maskgen -q --epochs 3 --batch 12 --seed 4 -o one.masked cells.tok
	sctrain mlm -q --config tiny --dropout 0.1 -o one one.masked
	sctrain mlm -q --config tiny --lr 0 -o init one.masked
	ranks 2 "maskgen -q -u --shard auto --epochs 3 --batch 6 --seed 4 cells.tok | sctrain mlm -q --mpi --config tiny --dropout 0.1 --save-every 7 -o two"
}

setup() {
	WHY=$(why_not)
	[ -z "$WHY" ] || skip "$WHY"
	cd "$BATS_FILE_TMPDIR"
	MLM="sctrain mlm --mpi --config tiny --dropout 0.1 --save-every 7"
}

# ranks N SCRIPT: run it on N ranks, with $R the rank
ranks() {
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1 \
		timeout -k 5 120 bash -c 'echo $$ >pid.mpirun; exec mpirun "$@"' mpirun --oversubscribe --bind-to none -n "$1" bash -c "set -o pipefail; R=\$OMPI_COMM_WORLD_RANK; $2"
}

# loader N BATCH: the command that feeds each of N ranks
loader() {
	echo "maskgen -q -u --shard auto --epochs ${2:-3} --batch $1 --seed 4 cells.tok"
}

# from step 30 or so the stream trickles for nine seconds: what a test does to a rank is done before the training ends
TRICKLE='(head -c 25000; for i in {1..22}; do head -c 500 || break; sleep 0.4; done)'

wait_for_step() {
	for _ in $(seq 500); do
		[ -e "$1/train.tsv" ] && [ "$(wc -l <"$1/train.tsv")" -gt "$2" ] && return
		sleep 0.02
	done
	fail "no step $2 in $1"
}

same_training() {
	cmp "$1/model.safetensors" "$2/model.safetensors"
	cmp <(cut -f1-4 "$1/train.tsv") <(cut -f1-4 "$2/train.tsv")
}

@test "mpi: two and three ranks train as one with the whole batch does, dropout included" {
	$PYTHON "$BATS_TEST_DIRNAME/ref/ranks.py" init one two
	# three ranks: the epoch's last batch of two cells leaves the third without any
	ranks 3 "$(loader 4) | $MLM -q -o three"
	$PYTHON "$BATS_TEST_DIRNAME/ref/ranks.py" init one three
	ranks 3 "$(loader 4) | $MLM -q --accum 2 -o accum"
	$PYTHON "$BATS_TEST_DIRNAME/ref/ranks.py" init one accum
	assert_equal "$(ls three)" "$(printf '%s\n' README.md checkpoint-35 checkpoint-42 config.json model.safetensors train.tsv trainer_state.json vocab.tsv)"
}

@test "mpi: several heads: the loss counts the targets of all ranks" {
	# the last batch of an epoch has two cells: a rank has one, or none with three ranks
	local keep="--strategy none --keep cell_type,n_counts" train="--label cell_type --head n_counts:mse --config tiny --dropout 0.1 --lr 0.001 -q"
	maskgen -q $keep --epochs 3 --batch 12 --seed 4 -o two.masked cells.tok
	sctrain cells $train -o heads.one two.masked
	sctrain cells ${train/--lr 0.001/--lr 0} -o heads.init two.masked
	ranks 3 "$(loader 4) $keep | sctrain cells --mpi $train --accum 2 -o heads.three"
	$PYTHON "$BATS_TEST_DIRNAME/ref/ranks.py" heads.init heads.one heads.three
	cmp <(cut -f7- heads.one/train.tsv | head -1) <(cut -f7- heads.three/train.tsv | head -1)
}

@test "mpi: cells dealt out by length train the same model" {
	ranks 3 "$(loader 4) --balance-lengths | $MLM -q --accum 2 -o balanced"
	$PYTHON "$BATS_TEST_DIRNAME/ref/ranks.py" init one balanced
}

@test "mpi: held-out cells are measured once, and the best weights kept; resume gives the bytes of a whole run" {
	maskgen -q --seed 9 -o held.masked cells.tok
	EVAL="$MLM --eval held.masked --eval-every 5"
	sctrain mlm -q --config tiny --dropout 0.1 --save-every 7 --eval held.masked --eval-every 5 -o held.one one.masked
	ranks 2 "$(loader 6) | $EVAL -q -o held.two"
	$PYTHON "$BATS_TEST_DIRNAME/ref/ranks.py" init held.one held.two
	ranks 2 "$(loader 6) | $TRICKLE | bash -c 'echo \$\$ >pid.'\$R'; exec $EVAL -o held.cut'" >cut.out 2>&1 3>&- &
	job=$!
	wait_for_step held.cut 10
	kill -TERM "$(cat pid.0)"
	wait $job || true
	assert_not_exist held.cut/model.safetensors
	ranks 2 "$(loader 6) | $EVAL -q --resume -o held.cut"
	cmp held.two/model.safetensors held.cut/model.safetensors
	cmp <(cut -f1-4,7- held.two/train.tsv) <(cut -f1-4,7- held.cut/train.tsv)
}

@test "mpi: the same ranks give the same bytes, with any number of threads; one rank gives those of no ranks" {
	ranks 2 "$(loader 6) | $MLM -q -@ 2 -o again"
	same_training two again
	ranks 1 "$(loader 12) | $MLM -q -o alone"
	same_training one alone
}

@test "mpi: a rank with other kernels than rank 0 warns, or fails with --same-kernels" {
	grep -qw avx2 /proc/cpuinfo || skip "no processor with AVX2"
	other='export CORRMASK_CPU=avx2 OPENBLAS_CORETYPE=Haswell; [ $R = 0 ] || export OPENBLAS_CORETYPE=Zen'
	run -0 ranks 2 "$other; $(loader 6 1) | $MLM -o unlike"
	assert_output --regexp "warning: rank 1 computes with 'OpenBLAS [0-9.]+ Zen, avx2', and rank 0 with 'OpenBLAS [0-9.]+ Haswell, avx2': weights will differ by rounding; CORRMASK_CPU=avx2 OPENBLAS_CORETYPE=Haswell makes them equal"
	run ranks 2 "$other; $(loader 6 1) | $MLM --same-kernels -o unlike2"
	assert_failure
	assert_output --partial "(--same-kernels)"
	assert_not_exist unlike2/model.safetensors
	run -0 ranks 2 "export CORRMASK_CPU=portable; $(loader 6 1) | $MLM --same-kernels -o like"
	refute_output --partial "computes with"
}

# bats test_tags=slow
@test "mpi: a signal to one rank ends all after the same step; resume gives the bytes of a whole run" {
	for sig in TERM:143 INT:130; do
		rm -rf cut
		ranks 2 "$(loader 6) | $TRICKLE | bash -c 'echo \$\$ >pid.'\$R'; exec $MLM -o cut'" >cut.out 2>&1 3>&- &
		job=$!
		wait_for_step cut 10
		kill -"${sig%:*}" "$(cat pid.1)"
		status=0
		wait $job || status=$?
		assert_equal $status "${sig#*:}"
		step=$(tail -1 cut/train.tsv | cut -f1)
		assert [ "$step" -lt 45 ]
		assert_exist "cut/checkpoint-$step/model.safetensors"
		assert_not_exist cut/model.safetensors
		grep -q "interrupted after step $step of 45" cut.out
		ranks 2 "maskgen -q -u --resume cut --shard auto --epochs 3 --batch 6 --seed 4 cells.tok | $MLM -q --resume -o cut"
		same_training two cut
	done
	run ranks 2 "$(loader 6) | $MLM --resume -o cut"
	assert_success
	assert_output --partial "finished already"
}

# bats test_tags=slow
@test "mpi: SIGTERM to mpirun leaves a checkpoint, where the shell and the loader ignore it" {
	# mpirun passes the signal on after five seconds, and kills after five more
	OMPI_MCA_odls_base_sigkill_timeout=5 ranks 2 "trap '' TERM; $(loader 6) | $TRICKLE | $MLM -o term" >term.out 2>&1 3>&- &
	job=$!
	wait_for_step term 10
	kill -TERM "$(cat pid.mpirun)"
	wait $job && fail "mpirun exits 0"
	for _ in $(seq 100); do grep -q interrupted term.out && break; sleep 0.1; done
	step=$(tail -1 term/train.tsv | cut -f1)
	assert_exist "term/checkpoint-$step/model.safetensors"
	ranks 2 "$(loader 6) | $MLM -q --resume -o term"
	same_training two term
}

# bats test_tags=slow
@test "mpi: a long wait says which rank is missing; a signal in it ends the job with the last checkpoint" {
	export CORRMASK_STALL_SECONDS=2
	ranks 2 "$(loader 6) | $TRICKLE | bash -c 'echo \$\$ >pid.'\$R'; exec $MLM -o stall'" >stall.out 2>&1 3>&- &
	job=$!
	wait_for_step stall 10
	kill -STOP "$(cat pid.1)"
	for _ in $(seq 60); do grep -q "waiting for" stall.out && break; sleep 0.1; done
	grep "sctrain mlm\[0\]: warning: waiting for rank 1 for [2-4] s: are they alive" stall.out
	kill -CONT "$(cat pid.1)"
	wait $job
	same_training two stall
	ranks 2 "$(loader 6) | $TRICKLE | bash -c 'echo \$\$ >pid.'\$R'; exec $MLM -o stalled 2>stalled.'\$R" >stall.out 2>&1 3>&- & # mpirun can lose last words
	job=$!
	wait_for_step stalled 10
	kill -STOP "$(cat pid.1)"
	sleep 1
	kill -TERM "$(cat pid.0)"
	for _ in $(seq 60); do kill -0 "$(cat pid.0)" 2>/dev/null || break; sleep 0.1; done
	run kill -0 "$(cat pid.0)"
	assert_failure
	grep "sctrain mlm\[0\]: signal 15, and gave up waiting for the other ranks; the newest checkpoint is checkpoint-" stalled.0
	kill -KILL "$(cat pid.1)" 2>/dev/null || true
	wait $job && fail "mpirun exits 0"
	ranks 2 "$(loader 6) | $MLM -q --resume -o stalled"
	same_training two stalled
}

# bats test_tags=slow
@test "mpi: a killed rank stops all, with no model; resume from the last checkpoint gives the bytes of a whole run" {
	for victim in 0 1; do
		rm -rf killed
		ranks 2 "$(loader 6) | $TRICKLE | bash -c 'echo \$\$ >pid.'\$R'; exec $MLM --keep-checkpoints 9 -o killed'" >killed.out 2>&1 3>&- &
		job=$!
		wait_for_step killed 10
		kill -KILL "$(cat pid.$victim)"
		status=0
		wait $job || status=$?
		assert_equal $status 137
		grep -q "exited with non-zero status" killed.out
		assert_exist killed/checkpoint-7
		assert_not_exist killed/model.safetensors
		ranks 2 "$(loader 6) | $MLM -q --resume -o killed"
		same_training two killed
	done
}

# bats test_tags=slow
@test "mpi: a stream that breaks off at one rank stops all, and keeps the finished steps" {
	maskgen -q --shard 0/2 --epochs 3 --batch 6 --seed 4 -o 0.masked cells.tok
	maskgen -q --shard 1/2 --epochs 3 --batch 6 --seed 4 -o all.masked cells.tok
	head -c $(($(stat -c %s all.masked) / 2)) all.masked >1.masked
	run ranks 2 "$MLM -o broken \$R.masked"
	assert_failure 1
	assert_output --partial "sctrain mlm[1]: 1.masked: "
	names "mlm[0]: rank 1 checkpoint-"
	step=$(tail -1 broken/train.tsv | cut -f1)
	assert [ "$step" -gt 5 ]
	assert_exist "broken/checkpoint-$step"
	assert_not_exist broken/model.safetensors
	mv all.masked 1.masked
	ranks 2 "$MLM -q --resume -o broken \$R.masked"
	same_training two broken
	# only the end is missing, after the last step
	truncate -s -1 1.masked
	run ranks 2 "$MLM -o end \$R.masked"
	assert_failure 1
	assert_output --partial "sctrain mlm[1]: 1.masked: "
	assert_exist end/checkpoint-45
	assert_not_exist end/model.safetensors
}

@test "mpi: what one rank cannot compute stops all" {
	# few positions: whichever rank has the first cell of 58 tokens stumbles
	$PYTHON -c 'import json; print(json.dumps({**json.load(open("one/config.json")), "max_position_embeddings": 57}))' >short.json
	run ranks 2 "$(loader 6) | ${MLM/tiny/short.json} -o short"
	assert_failure 1
	assert_output --regexp "sctrain mlm\[[01]\]: step [0-9]+: .*cell [0-9]+ has 5[89] tokens, but the model has 57 positions"
	assert_not_exist short/model.safetensors
	run ranks 2 "$(loader 6) | $MLM --lr 1e3 --weight-decay 1e3 --clip 0 --warmup 0 --schedule constant -o nan"
	assert_failure 1
	assert_output --regexp "sctrain mlm\[[01]\]: step [0-9]+: .*(nan|inf).*(the newest checkpoint is checkpoint-[0-9]+|there is no checkpoint yet)"
	assert_not_exist nan/model.safetensors
}

# bats test_tags=slow
@test "mpi: streams and options that do not belong together are refused" {
	maskgen -q --shard 0/2 --batch 6 --seed 4 -o s0 cells.tok
	maskgen -q --shard 1/2 --batch 6 --seed 4 -o s1 cells.tok
	run sctrain mlm --config tiny -o bad s1
	assert_failure 1
	names "s1: shard 1 of 2 --mpi"
	run ranks 1 "$MLM -o bad s0"
	assert_failure 1
	names "s0: shard 0 of 2 MPI"
	run ranks 2 "$MLM -o bad s0"
	assert_failure 1
	assert_output --partial "sctrain mlm[1]: s0: shard 0 of 2, but this is rank 1 of 2"
	run ranks 2 "$MLM -o bad one.masked"
	assert_failure 1
	assert_output --partial "one.masked: shard 0 of 1, but this is rank"
	run ranks 2 "$MLM --lr 0.00\$((R + 1)) -o bad s\$R"
	assert_failure 1
	assert_output --partial "the ranks differ in options: lr: 0.001 on rank 0, 0.002 on rank 1"
	maskgen -q --shard 0/2 --batch 6 --seed 4 --strategy none --keep cell_type,n_counts -o k0 cells.tok
	maskgen -q --shard 1/2 --batch 6 --seed 4 --strategy none --keep cell_type,n_counts -o k1 cells.tok
	run ranks 2 "sctrain cells --mpi --config tiny --label cell_type --head n_counts:mse,weight=\$((R + 2)) -o bad k\$R"
	assert_failure 1
	assert_output --partial "the ranks differ in configuration: corrmask_heads 1 weight: 2 on rank 0, 3 on rank 1"
	run ranks 2 "sctrain cells --mpi --config tiny --label cell_type --head n_counts:mse\$([ \$R = 0 ] || echo ,position=0) -o bad k\$R"
	assert_failure 1
	assert_output --regexp "the ranks differ in configuration: corrmask_heads 1 [a-z]+: none on rank 0, "
	maskgen -q --shard 1/2 --batch 6 --seed 5 -o s1 cells.tok
	run ranks 2 "$MLM -o bad s\$R"
	assert_failure 1
	names "--mpi: ranks masked stream"
	run ranks 2 "$MLM -o two s\$R"
	assert_failure 1
	assert_output --partial "two holds a finished model"
	assert_not_exist bad/model.safetensors
	assert_not_exist bad/checkpoint-0
}

@test "mpi: another number of ranks is another masked stream, which resume refuses" {
	mkdir -p other
	cp -r two/checkpoint-42 two/train.tsv other
	run ranks 3 "$(loader 4) | $MLM --resume -o other"
	assert_failure 1
	names "--resume: other shards: 2 3"
}

@test "mpi: fine-tuning on two ranks is fine-tuning on one" {
	sctrain cells --help >/dev/null 2>&1 || skip "no sctrain cells"
	CELLS="sctrain cells -q --label cell_type --class-weight balanced --init two --lr 0.001 --freeze 1"
	maskgen -q --strategy none --keep cell_type --epochs 2 --batch 12 cells.tok | $CELLS -o cells.one
	maskgen -q --strategy none --keep cell_type --epochs 2 --batch 12 cells.tok | ${CELLS/--lr 0.001/--lr 0} -o cells.init
	ranks 2 "maskgen -q --shard auto --strategy none --keep cell_type --epochs 2 --batch 6 cells.tok | $CELLS --mpi -o cells.two"
	$PYTHON "$BATS_TEST_DIRNAME/ref/ranks.py" cells.init cells.one cells.two
}

@test "mpi: a start that never ends, or ends the program, is one line" {
	command -v "${CC:-gcc}" >/dev/null || skip "no compiler"
	cat >start.c <<-'E'
		#include <stdlib.h>
		#include <unistd.h>
		int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
		{
			char *how = getenv("START");
			if (*how == 'e')
				exit(7);
			if (*how == 'a')
				abort();
			for (;;)
				pause();
		}
	E
	"${CC:-gcc}" -w -shared -fPIC -o start.so start.c
	for how in exit abort; do
		run -1 env START=$how LD_PRELOAD="$PWD/start.so" sctrain mlm --mpi --config tiny -o never one.masked
		names "sctrain mlm: --mpi: MPI start"
	done
	run -1 env START=wait CORRMASK_MPI_SECONDS=1 LD_PRELOAD="$PWD/start.so" timeout -k 1 20 sctrain mlm --mpi --config tiny -o never one.masked
	assert_output "sctrain mlm: --mpi: MPI did not start within 1 seconds (CORRMASK_MPI_SECONDS)"
	assert_not_exist never
}
