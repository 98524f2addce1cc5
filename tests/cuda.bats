load helper

# The tools on the CUDA backend, whose kernels run on the host here (tests/cuda/emu.h): what a device that runs behind the
# program, batches that are filled up, and recorded work mean for training and embedding. $EMULATED is where the library is.
EMULATED=${EMULATED:-$BATS_TEST_DIRNAME/../build/release/emu}

setup_file() {
	need_tool scsim rankenc maskgen sctrain scembed scview
	cd "$BATS_FILE_TMPDIR"
	[ -e "$EMULATED/corrmask_cuda.so" ] || return 0
	# few positions: a gradient of 2,048 of them is a million fibers a step
	cat >small.json <<-END
	{"vocab_size": 42, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 1, "intermediate_size": 128, "max_position_embeddings": 64,
	 "hidden_act": "relu", "type_vocab_size": 2, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
	END
	scsim -q --cells 24 --genes 40 --modules 4 --types 3 --seed 3 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o cells.tok sim.counts
	maskgen -q --epochs 2 --batch 6 --seed 4 -o a.masked cells.tok          # 8 steps
	mkdir on
	cp "$BIN/sctrain" "$BIN/scembed" "$BIN/scpredict" "$EMULATED/corrmask_cuda.so" on
	gpu sctrain mlm "${A[@]}" --device cuda,float -v -o gpu a.masked 2>report
	sctrain mlm -q "${A[@]}" --device cpu -o cpu a.masked
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	[ -e "$EMULATED/corrmask_cuda.so" ] || skip "no corrmask_cuda.so in $EMULATED"
}

A=(--config small.json --save-every 3)
export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1

# gpu TOOL ARGUMENT...: the tool, with the backend beside it
gpu() {
	local tool=$1
	shift
	LD_LIBRARY_PATH=$EMULATED "$BATS_FILE_TMPDIR/on/$tool" "$@"
}

# near TOLERANCE A B: columns loss and grad_norm of two train.tsv, row by row
near() {
	paste "$2" "$3" | awk -v tol="$1" 'NR == 1 { for (i = 1; i <= NF / 2; i++) at[$i] = i; half = NF / 2; next }
		{ for (c in want) delete want[c]; want["loss"]; want["grad_norm"]; want["step"]
		for (c in want) { a = $(at[c]); b = $(at[c] + half); d = a > b ? a - b : b - a; if (d > tol * b) { print "row", NR, c, a, b; bad = 1 } } rows++ }
		END { if (!rows) print "no rows"; exit bad || !rows }'
}

@test "cuda: sctrain's losses and norms are the CPU's, a row a step, and the report tells of idling and padding" {
	near 1e-3 gpu/train.tsv cpu/train.tsv
	assert_equal "$(cut -f1 gpu/train.tsv | tail -n +2 | paste -sd' ')" "$(seq 8 | paste -sd' ')"
	grep -q "device: emulated device 0, float" report
	grep -Eq "GPU idle [0-9.]+ %, padding [0-9.]+ %" report
}

@test "cuda: tokens that share positions" {
	rankenc -q -m vocab.tsv --max-len 64 --ties group -o group.tok sim.counts
	maskgen -q --epochs 1 --batch 6 --seed 4 -o group.masked group.tok
	gpu sctrain mlm -q "${A[@]}" --device cuda,float -o gpu.group group.masked
	sctrain mlm -q "${A[@]}" --device cpu -o cpu.group group.masked
	near 1e-3 gpu.group/train.tsv cpu.group/train.tsv
	gpu scembed -q -M gpu.group --device cuda,float --emb-layer 0 -o gpu.emb group.tok
	scembed -q -M gpu.group --emb-layer 0 -o cpu.emb group.tok
	scview -O npy gpu.emb >gpu.npy
	scview -O npy cpu.emb >cpu.npy
	$PYTHON -c 'import numpy; a, b = numpy.load("gpu.npy"), numpy.load("cpu.npy"); assert abs(a - b).max() < 1e-4 * abs(b).max()'
}

# bats test_tags=slow
@test "cuda: bf16 learns like float; equal runs, with and without recorded work, are equal" {
	gpu sctrain mlm -q "${A[@]}" --device cuda -o bf16 a.masked
	near 0.05 bf16/train.tsv cpu/train.tsv
	CORRMASK_CUDA_GRAPHS=0 gpu sctrain mlm -q "${A[@]}" --device cuda,float -o plain a.masked
	cmp plain/model.safetensors gpu/model.safetensors
	cmp <(cut -f1-4 plain/train.tsv) <(cut -f1-4 gpu/train.tsv)
}

@test "cuda: a training goes on on another device, both ways" {
	head -c $(($(stat -c %s a.masked) * 3 / 4)) a.masked >part
	for d in gpu cpu; do
		if [ $d = gpu ]; then
			! gpu sctrain mlm -q "${A[@]}" --device cuda,float -o "from.$d" part
			sctrain mlm -q "${A[@]}" --device cpu --resume -o "from.$d" a.masked
		else
			! sctrain mlm -q "${A[@]}" --device cpu -o "from.$d" part
			gpu sctrain mlm -q "${A[@]}" --device cuda,float --resume -o "from.$d" a.masked
		fi
		near 1e-3 "from.$d/train.tsv" cpu/train.tsv
	done
}

@test "cuda: an ending that breaks in saves every finished step" {
	head -c $(($(stat -c %s a.masked) * 3 / 4)) a.masked >part
	run ! gpu sctrain mlm -q "${A[@]}" --device cuda,float -o broken part
	step=$(tail -1 broken/train.tsv | cut -f1)
	assert_dir_exists "broken/checkpoint-$step"
	cmp <(cut -f1-4 broken/train.tsv) <(head -n $((step + 1)) gpu/train.tsv | cut -f1-4)
}

@test "cuda: SIGTERM saves the step it names, and --resume goes on to the same weights" {
	LD_LIBRARY_PATH=$EMULATED on/sctrain mlm --config small.json --device cuda,float -o term a.masked 2>err 3>&- &
	for _ in $(seq 1000); do
		[ -e term/train.tsv ] && [ "$(wc -l <term/train.tsv)" -gt 2 ] && break
		sleep 0.01
	done
	kill -TERM $!
	wait $! && fail "it ended well"
	step=$(sed -n 's/.*interrupted after step \([0-9]*\) of 8.*/\1/p' err)
	assert_dir_exists "term/checkpoint-$step"
	assert_equal "$(tail -1 term/train.tsv | cut -f1)" "$step"
	gpu sctrain mlm -q "${A[@]}" --device cuda,float --resume -o term a.masked
	cmp term/model.safetensors gpu/model.safetensors
	cmp <(cut -f1-4 term/train.tsv) <(cut -f1-4 gpu/train.tsv)
}

@test "cuda: a step that is not finite ends the training, and names the step" {
	$PYTHON - <<-'END'
	import json, numpy as np, os, shutil
	os.mkdir("huge")
	for f in "config.json", "vocab.tsv":
	    shutil.copy("cpu/" + f, "huge")
	raw = bytearray(open("cpu/model.safetensors", "rb").read())
	n = int.from_bytes(raw[:8], "little")
	for name, t in json.loads(raw[8:8 + n]).items():
	    if name.endswith("word_embeddings.weight"):
	        a, b = (8 + n + x for x in t["data_offsets"])
	        raw[a:b] = np.full((b - a) // 4, 1e37, "<f4").tobytes()
	open("huge/model.safetensors", "wb").write(raw)
	END
	undigest huge/model.safetensors
	run gpu sctrain mlm -q --init huge --device cuda,float -o nan a.masked
	assert_failure 1
	assert_output --regexp "step [0-9]+: .*(the loss is|the gradient's norm is) -?(nan|inf)"
	assert_file_not_exists nan/model.safetensors
}

@test "cuda: --precision is for the CPU" {
	run gpu sctrain mlm -q "${A[@]}" --device cuda --precision float32 -o none a.masked
	assert_failure 1
	assert_output "sctrain mlm: --precision is for the CPU (--device cpu): a GPU computes in bfloat16, or in float with --device cuda,float"
	assert_not_exist none
}

# bats test_tags=slow
@test "cuda: --eval measures the weights of its own step" {
	for d in cpu cuda,float; do
		gpu sctrain mlm -q "${A[@]}" --device $d --eval a.masked --eval-every 3 --best last -o "eval.$d" a.masked
	done
	paste <(cut -f7 eval.cpu/train.tsv) <(cut -f7 eval.cuda,float/train.tsv) | awk 'NR > 1 && $1 != "NA" { n++; d = $1 - $2; if (d < 0) d = -d
		if (d > 1e-3 * $1) bad = 1 } NR > 1 && ($1 == "NA") != ($2 == "NA") { bad = 1 } END { exit bad || n != 3 }'
}

@test "cuda: cells are classified and genes too" {
	maskgen -q --strategy none --epochs 2 --batch 8 --keep cell_type -o label.masked cells.tok
	for d in cpu cuda,float; do
		gpu sctrain cells -q --config small.json --label cell_type --device $d -o "cells.$d" label.masked
	done
	near 1e-3 cells.cuda,float/train.tsv cells.cpu/train.tsv
	gpu scpredict cells -q -M cells.cpu --device cpu -o cpu.pred cells.tok
	gpu scpredict cells -q -M cells.cpu --device cuda,float -o gpu.pred cells.tok
	cmp <(scview --columns cell,predicted cpu.pred) <(scview --columns cell,predicted gpu.pred)
}

@test "cuda: scembed's vectors are the CPU's, for all layers and pools, in order" {
	for o in "--pool mean" "--pool first" "--emb-layer 0" "--emb-layer -2"; do
		gpu scembed -q -M cpu $o --device cpu -o cpu.emb cells.tok
		gpu scembed -q -M cpu $o --device cuda,float -o gpu.emb cells.tok
		run paste <(scview --columns cell,x cpu.emb) <(scview --columns cell,x gpu.emb)
		awk -F'\t' 'NR > 1 { if ($1 != $3) bad = 1; n = split($2, a, " "); split($4, b, " ")
			for (i = 1; i <= n; i++) { d = a[i] - b[i]; if (d < -1e-4 || d > 1e-4) bad = 1 } rows++ } END { exit bad || rows != 24 }' <<<"$output"
	done
	gpu scembed -M cpu --device cuda -v -o gpu.emb cells.tok 2>report
	grep -Eq "24 cells, .*GPU idle [0-9.]+ %" report
}

@test "cuda: what trains, embeds and scores needs neither HDF5 nor igraph; nothing links CUDA" {
	for t in sctrain scembed maskgen ctaprobe; do
		run ldd "$BIN/$t"
		refute_output --partial hdf5
		refute_output --partial igraph
	done
	for t in "$BIN"/*; do
		[[ $t == *.so ]] || run ldd "$t"
		refute_output --partial cublas
		refute_output --partial libcuda
	done
}

@test "the backend is looked for beside the program only, not where LD_LIBRARY_PATH or the current folder has one" {
	mkdir -p off
	cp "$BIN/sctrain" off
	ln -sf "$EMULATED/corrmask_cuda.so" .
	for path in "$EMULATED" ":$EMULATED" .; do
		run env LD_LIBRARY_PATH="$path:$EMULATED" off/sctrain mlm "${A[@]}" --device cuda,float -o none a.masked
		assert_failure 1
		assert_output --partial "corrmask_cuda.so is not installed"
	done
}
