load helper

# --precision: matrix products of bfloat16 numbers on a CPU. What a processor without AVX512-BF16 cannot do is skipped; that it refuses is tested.
setup_file() {
	need_tool scsim rankenc maskgen sctrain scembed scview
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 100 --genes 60 --modules 4 --types 3 --seed 3 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o cells.tok sim.counts
	maskgen -q --epochs 3 --batch 10 --seed 4 -o a.masked cells.tok
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	A=(--config tiny --save-every 7)
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
	unset CORRMASK_CPU
}

need_bf16() {
	[[ $(sctrain --version) == *', bf16)' ]] || skip "this processor has no AVX512-BF16"
}

same_training() {
	cmp "$1/model.safetensors" "$2/model.safetensors"
	cmp <(cut -f1-4 "$1/train.tsv") <(cut -f1-4 "$2/train.tsv")
}

@test "precision: a processor without AVX512-BF16 refuses it in one line, and writes nothing; a wrong word is misuse" {
	grep -qw avx2 /proc/cpuinfo || skip "no processor with AVX2"
	export CORRMASK_CPU=avx2
	run -1 sctrain mlm -q "${A[@]}" --precision bf16 -o none a.masked
	assert_output "sctrain mlm: --precision bf16: CORRMASK_CPU=avx2 excludes it; unset the variable, or use --precision float32"
	assert_not_exist none
	sctrain mlm -q "${A[@]}" --precision float32 -o avx2 a.masked
	sctrain mlm -q "${A[@]}" -o default a.masked
	same_training avx2 default
	run -1 scembed -q -M avx2 --precision bf16 -o none cells.tok
	assert_output --partial "CORRMASK_CPU=avx2 excludes it"
	assert_not_exist none
	run sctrain --version
	refute_output --partial bf16
	run -2 sctrain mlm "${A[@]}" --precision half -o none a.masked
	assert_output --partial "precision"
}

@test "precision: bf16 gives the same weights on 1, 2 and 3 threads, others than float32, and is named" {
	need_bf16
	run sctrain mlm -v "${A[@]}" --precision bf16 -o one a.masked
	assert_success
	assert_line --regexp '^sctrain mlm: note: device: cpu, 1 thread, avx512_bf16'
	sctrain mlm -q "${A[@]}" --precision bf16 -@ 2 -o two a.masked
	sctrain mlm -q "${A[@]}" --precision bf16 -@ 3 --accum 1 -o three - <a.masked
	same_training one two
	same_training one three
	cmp one/checkpoint-28/optimizer.safetensors three/checkpoint-28/optimizer.safetensors
	sctrain mlm -q "${A[@]}" -o float a.masked
	run ! cmp -s one/model.safetensors float/model.safetensors
	$PYTHON - <<-'END'
		import json
		s = json.load(open("one/checkpoint-28/trainer_state.json"))
		assert s["kernels"] == "avx512_bf16" and s["settings"]["precision"] == "bf16", s
		assert "precision" not in json.load(open("float/checkpoint-28/trainer_state.json"))["settings"]
		rows = lambda d: [float(l.split("\t")[1]) for l in open(d + "/train.tsv").read().split("\n")[1:-1]]
		a, b = rows("one"), rows("float")
		worst = max(abs(x / y - 1) for x, y in zip(a, b))
		print(worst)
		assert 0 < worst < 2e-3
	END
}

@test "precision: resume gives the bytes of a whole run, and refuses another precision" {
	need_bf16
	sctrain mlm -q "${A[@]}" --precision bf16 -o whole a.masked
	head -c $(($(stat -c %s a.masked) / 2)) a.masked >half
	run ! sctrain mlm -q "${A[@]}" --precision bf16 -o part half
	cp -r part odd
	run -1 sctrain mlm "${A[@]}" --resume -o odd a.masked
	names '--resume: odd precision: "bf16" none'
	sctrain mlm -q "${A[@]}" --precision bf16 --resume -@ 2 -o part a.masked
	same_training whole part
	run ! sctrain mlm -q "${A[@]}" -o plain half
	run -1 sctrain mlm "${A[@]}" --precision bf16 --resume -o plain a.masked
	names '--resume: plain precision: none "bf16"'
}

@test "precision: cells, counts and values train too; embeddings point where those of float32 do" {
	need_bf16
	maskgen -q --strategy none --keep cell_type --epochs 2 --batch 10 --seed 4 -o label.masked cells.tok
	maskgen -q --strategy columns --epochs 4 --batch 20 --seed 4 -o nb.masked sim.counts
	for n in 1 3; do
		sctrain mlm -q "${A[@]}" --precision bf16 -@ $n -o "init$n" a.masked
		sctrain cells -q --init init1 --label cell_type --precision bf16 -@ $n -o "cells$n" label.masked
		sctrain nb -q --config mlp-nb-tiny --precision bf16 -@ $n -o "nb$n" nb.masked
		scembed -q -M init1 --precision bf16 -@ $n -o "emb$n" cells.tok
	done
	for m in init cells nb; do same_training ${m}1 ${m}3; done
	cmp emb1 emb3
	scembed -q -M init1 -o emb.float cells.tok
	scview emb1 >emb1.tsv
	scview emb.float >float.tsv
	$PYTHON - <<-'END'
		import numpy as np
		read = lambda f: np.array([l.split("\t")[-1].split(" ") for l in open(f).read().split("\n")[1:-1]], dtype=float)
		a, b = read("emb1.tsv"), read("float.tsv")
		cos = (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))
		print(cos.min())
		assert (a != b).any() and cos.min() > 0.9999
	END
	scview -H emb1 | grep -q -- '--precision bf16'
}

@test "precision: ranks of MPI give the same bytes twice, and the ranks' weights are one" {
	need_bf16
	sctrain --version | grep -q 'Open MPI' || skip "sctrain without MPI"
	command -v mpirun >/dev/null || skip "no mpirun"
	for i in 1 2; do
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --oversubscribe --bind-to none -n 2 bash -c \
			"maskgen -q -u --shard auto --epochs 2 --batch 6 --seed 4 cells.tok | sctrain mlm -q --mpi --config tiny --precision bf16 -@ $i -o mpi$i"
	done
	same_training mpi1 mpi2
	run ! env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --oversubscribe --bind-to none -n 2 bash -c \
		'p=$([ "$OMPI_COMM_WORLD_RANK" = 0 ] && echo bf16 || echo float32); maskgen -q -u --shard auto --epochs 2 --batch 6 --seed 4 cells.tok |
		sctrain mlm -q --mpi --config tiny --precision $p -o mixed'
	assert_output --partial "options"
}
