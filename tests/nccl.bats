# sctrain --mpi on several GPUs: gradients are summed on the devices by NCCL. The devices are emulated (tests/cuda/emu.h), and so is NCCL
# (tests/cuda/fake_nccl.c), which writes its calls to calls.RANK, and stops the program at calls that NCCL does not allow.
load helper

EMULATED=${EMULATED:-$BATS_TEST_DIRNAME/../build/release/emu}

why_not() {
	case $(sctrain --version) in
	*"without MPI"*) echo "sctrain is built without MPI" ;;
	*) command -v mpirun >/dev/null || echo "no mpirun on this machine" ;;
	esac
	[ -e "$EMULATED/nccl/libnccl.so.2" ] || echo "no libnccl.so.2 in $EMULATED/nccl"
}

setup_file() {
	[ -z "$(why_not)" ] || return 0 # setup skips
	cd "$BATS_FILE_TMPDIR"
	cat >small.json <<-END
	{"vocab_size": 32, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 1, "intermediate_size": 128, "max_position_embeddings": 64,
	 "hidden_act": "relu", "type_vocab_size": 2, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
	END
	scsim -q --cells 26 --genes 30 --modules 3 --types 3 --seed 3 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o cells.tok sim.counts
	mkdir on off
	cp "$BIN/sctrain" "$EMULATED/corrmask_cuda.so" on
	touch off/libnccl.so.2 # on a machine that has NCCL too
	maskgen -q --epochs 2 --batch 12 --seed 4 -o one.masked cells.tok # 6 steps; the last of an epoch has 2 cells
	gpu sctrain mlm -q "${A[@]}" -o one one.masked
	gpu sctrain mlm -q "${A[@]}" --lr 0 -o init one.masked
	NCCL=$PWD/off ranks 2 "$(loader 6) | on/sctrain mlm --mpi ${A[*]} -o host" 2>host.err
	ranks 2 "$(loader 6) | on/sctrain mlm --mpi -v ${A[*]} -o two" 2>two.err
	for i in 0 1; do mv calls.$i two.calls.$i; done
}

setup() {
	WHY=$(why_not)
	[ -z "$WHY" ] || skip "$WHY"
	cd "$BATS_FILE_TMPDIR"
	MLM="on/sctrain mlm --mpi ${A[*]}"
}

A=(--config small.json --device "cuda,float" --save-every 4)
export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1

gpu() {
	LD_LIBRARY_PATH=$EMULATED "$BATS_FILE_TMPDIR/on/$1" "${@:2}"
}

# ranks N SCRIPT: run it on N ranks, with $R the rank; $NCCL is the folder of libnccl.so.2
ranks() {
	rm -f calls.*
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LD_LIBRARY_PATH=${NCCL:-$EMULATED/nccl}:$EMULATED FAKE_NCCL_LOG=$PWD/calls \
		timeout -k 5 100 mpirun --oversubscribe --bind-to none -n "$1" bash -c "set -o pipefail; R=\$OMPI_COMM_WORLD_RANK; $2"
}

# loader BATCH: the command that feeds each of N ranks
loader() {
	echo "maskgen -q -u --shard auto --epochs 2 --batch $1 --seed 4 cells.tok"
}

same_training() {
	cmp "$1/model.safetensors" "$2/model.safetensors"
	cmp <(cut -f1-4 "$1/train.tsv") <(cut -f1-4 "$2/train.tsv")
}

@test "nccl: two ranks sum on the devices, once a step, and give the bytes of the way through the host" {
	same_training two host
	$PYTHON "$BATS_TEST_DIRNAME/ref/ranks.py" init one host
	grep -q "sctrain mlm\[0\]: note: gradients are summed on the GPUs, by NCCL 2.27.3" two.err
	for rank in 0 1; do
		head -1 two.calls.$rank | grep -qx "init $rank of 2, Ring Simple"
		assert_equal "$(sed '1d;$d' two.calls.$rank | uniq -c | awk '{print $1, $2}')" "6 sum"
		assert_equal "$(tail -1 two.calls.$rank)" destroy
		# every learned number, and no more than the gaps between tensors beside them
		parameters=$(sed -n 's/.* \([0-9]*\) parameters.*/\1/p' two.err | head -1)
		sed -n 's/^sum //p' two.calls.$rank | awk -v p="$parameters" '$1 < p || $1 > p * 1.05 { exit 1 }'
	done
	assert_equal "$(ls nccl.* 2>/dev/null)" ""
}

# bats test_tags=slow
@test "nccl: three ranks, one of them without cells, train as one GPU with the whole batch does" {
	ranks 3 "$(loader 4) | $MLM -q -o three"
	$PYTHON "$BATS_TEST_DIRNAME/ref/ranks.py" init one three
	ranks 3 "$(loader 4) | $MLM -q --accum 2 -o accum"
	$PYTHON "$BATS_TEST_DIRNAME/ref/ranks.py" init one accum
	assert_equal "$(grep -c sum calls.2)" 6
}

@test "nccl: equal runs give equal bytes, in bfloat16, with and without recorded work" {
	for o in a b; do
		[ $o = a ] || export CORRMASK_CUDA_GRAPHS=0
		ranks 2 "$(loader 6) | ${MLM/cuda,float/cuda} -q -o bf16.$o"
	done
	same_training bf16.a bf16.b
}

@test "nccl: a checkpoint holds all steps before it, and --resume gives the bytes of a whole run" {
	maskgen -q --shard 0/2 --epochs 2 --batch 6 --seed 4 -o 0.masked cells.tok
	maskgen -q --shard 1/2 --epochs 2 --batch 6 --seed 4 -o all.masked cells.tok
	head -c $(($(stat -c %s all.masked) * 3 / 4)) all.masked >1.masked
	run ranks 2 "$MLM -o broken \$R.masked"
	assert_failure 1
	assert_output --partial "sctrain mlm[1]: 1.masked: "
	assert_output --partial "sctrain mlm[0]: rank 1 has stopped; the newest checkpoint is checkpoint-"
	step=$(tail -1 broken/train.tsv | cut -f1)
	assert [ "$step" -gt 1 ]
	assert_exist "broken/checkpoint-$step"
	cmp <(cut -f1-4 broken/train.tsv) <(head -n $((step + 1)) two/train.tsv | cut -f1-4)
	mv all.masked 1.masked
	ranks 2 "$MLM -q --resume -o broken \$R.masked"
	same_training two broken
}

@test "nccl: a loss that is not a number ends all ranks, and names the step" {
	$PYTHON - <<-'END'
	import json, numpy as np, os, shutil
	os.mkdir("huge")
	for f in "config.json", "vocab.tsv":
	    shutil.copy("one/" + f, "huge")
	raw = bytearray(open("one/model.safetensors", "rb").read())
	n = int.from_bytes(raw[:8], "little")
	for name, t in json.loads(raw[8:8 + n]).items():
	    if name.endswith("word_embeddings.weight"):
	        a, b = (8 + n + x for x in t["data_offsets"])
	        raw[a:b] = np.full((b - a) // 4, 1e37, "<f4").tobytes()
	open("huge/model.safetensors", "wb").write(raw)
	END
	undigest huge/model.safetensors
	run ranks 2 "$(loader 6) | on/sctrain mlm --mpi -q --device cuda,float --init huge -o nan"
	assert_failure 1
	assert_output --regexp "sctrain mlm\[0\]: step 1: .*(the loss is|the gradient's norm is) -?(nan|inf)"
	refute_output --partial "sctrain mlm[1]: step"
	assert_not_exist nan/model.safetensors
}

# bats test_tags=slow
@test "nccl: several heads, and a model with buffers, train as through the host" {
	local keep="--strategy none --keep cell_type,n_counts" train="--mpi -q --label cell_type --head n_counts:mse --config small.json --device cuda,float"
	for way in on off; do
		[ $way = on ] || NCCL=$PWD/off
		ranks 2 "$(loader 6) $keep | on/sctrain cells $train -o heads.$way"
		ranks 2 "maskgen -q -u --strategy columns --shard auto --epochs 3 --batch 13 --seed 4 sim.counts | on/sctrain nb --mpi -q --device cuda,float -c mlp-nb-tiny -o nb.$way"
	done
	same_training heads.on heads.off
	same_training nb.on nb.off
}

# bats test_tags=slow
@test "nccl: without the library, or with one GPU for two ranks, gradients pass through the host, and a note says so" {
	grep -q "sctrain mlm\[0\]: note: gradients pass through the memory of the host: .*/off/libnccl.so.2: file too short" host.err
	assert_equal "$(grep -c "gradients" host.err)" 1
	run -0 ranks 2 "$(loader 6) | ${MLM/cuda/cuda:0} -o shared"
	assert_output --partial "sctrain mlm[0]: note: gradients pass through the memory of the host: ranks 0 and 1 share a GPU"
	same_training shared two
	mkdir -p old
	echo 'int ncclGetVersion(int *v) { return 0; }' | "${CC:-gcc}" -shared -fPIC -o old/libnccl.so.2 -x c -
	NCCL=$PWD/old run -0 ranks 2 "$(loader 6) | $MLM -o old.model"
	assert_output --regexp "gradients pass through the memory of the host: .*libnccl.so.2: undefined symbol: nccl"
}

@test "nccl: an algorithm that the user chose is kept" {
	NCCL_ALGO=Tree ranks 2 "$(loader 6) | $MLM -q -o tree"
	grep -qx "init 1 of 2, Tree Simple" calls.1
}

# bats test_tags=slow
@test "nccl: what the library cannot do is one line, ends all ranks, and leaves no model" {
	local at
	for at in "id:[0]:ncclGetUniqueId: unhandled system error" "init:1:[1]:ncclCommInitRank: unhandled system error" \
		"sum:1:3:[1]:ncclAllReduce: invalid argument" "lost:1:3:[01]:the sum over all ranks: remote process exited or there was a network error"; do
		rm -rf fails
		FAKE_NCCL=${at%%:[*} run ranks 2 "$(loader 6) | $MLM -o fails"
		assert_failure
		refute [ "$status" = 124 ]
		rest=${at#*:[}
		assert_output --regexp "sctrain mlm\[[${rest%%]*}]\]: .*NCCL: ${rest#*]:}"
		assert_not_exist fails/model.safetensors
	done
	# a model with buffers, which pass through the host
	FAKE_NCCL=sum:1:2 run ranks 2 "maskgen -q -u --strategy columns --shard auto --epochs 3 --batch 13 sim.counts | on/sctrain nb --mpi -q --device cuda,float -c mlp-nb-tiny -o nb.fails"
	assert_failure
	refute [ "$status" = 124 ]
	assert_output --regexp "sctrain nb\\[1\\]: step [12]: cuda: NCCL: ncclAllReduce: invalid argument"
}
