#!/usr/bin/env bats
# The scripts for a machine with a GPU, rehearsed without one: stubs stand for nvidia-smi, ncu and compute-sanitizer and for the
# programs that need a card, and sctrain and scembed compute on the CPU whatever device they are told.

load helper

EMULATED=${EMULATED:-$BATS_TEST_DIRNAME/../build/release/emu}
B=$BATS_TEST_DIRNAME/bench

setup_file() {
	need_tool maskgen sctrain scembed scsim rankenc
	cd "$BATS_FILE_TMPDIR"
	mkdir -p pack/bin pack/src/tests stubs
	cp -r "$B" pack/src/tests/
	for t in maskgen scsim rankenc; do ln -s "$(realpath "$BIN/$t")" pack/bin/; done
	for t in sctrain scembed; do
		stub "pack/bin/$t" <<-END
			for a; do case \$a in cuda*) a=cpu ;; corrmask-paper) a=tiny ;; esac; set -- "\$@" "\$a"; shift; done
			exec $(realpath "$BIN/$t") "\$@"
		END
	done
	touch pack/needs pack/bin/corrmask_cuda.so pack/roundings.tsv
	echo v1 >pack/commit
	bin=$PWD/pack/bin
	stub stubs/nvidia-smi <<-'END'
		case $* in
		*compute_cap*) echo 9.0 ;;
		*-lms*) while :; do echo "now, 2000, 90, 1980, 600"; sleep 0.2; done ;;
		*) echo "Stub H1, 580.1, 80000 MiB" ;;
		esac
	END
	stub stubs/ncu <<-'END'
		case $* in
		*--version*) echo 2025.3 ;;
		*gpu__time_duration.sum*)
			echo '"ID","Kernel Name","Metric Value"'
			for step in 1 2 3; do
				echo '"1","void key_mma_kernel<(bool)1>(bf16 *, float)","41,000"'
				echo '"2","adamw_kernel(float *)","9000"'
			done ;;
		*'regex:columns'*) sleep 60 ;;
		*) echo "sections of $*" ;;
		esac
	END
	stub stubs/compute-sanitizer <<-'END'
		case $* in
		*racecheck*) printf '========= COMPUTE-SANITIZER\n========= Error: Race reported between Write access\n========= ERROR SUMMARY: 1 error\n'; exit 9 ;;
		*) echo '========= ERROR SUMMARY: 0 errors' ;;
		esac
	END
	stub stubs/python3 <<-'END'
		case $* in
		*gpu_ncu.py*) exec /usr/bin/python3 "$@" ;;
		*gpu_torch.py*) shift; echo "torch 2.11 transformers 5.17 Stub"
			echo "torch flash config corrmask-paper length 2048 batch 12 tokens_per_s 1500000 step_ms 16 padding 0 peak_mb 1 steps 20 seconds 3"
			echo "$@" >"${0%/*}/peers" ;;
		*) echo "machine torch 2.11" ;;
		esac
	END
	# test_attention fails in bf16 on this card
	stub pack/bin/test_cuda <<-'END'
		echo "test_cuda: Stub H1"
		[ -z "${HANG:-}" ] || { echo "[ RUN      ] test_steps"; sleep 600; }
		case " $* " in *test_norm*) exit 0 ;; esac
		echo "[ RUN      ] test_norm"; echo "[       OK ] test_norm"
		[ "${TEST_CUDA:-}" != float ] || exit 0
		[ -z "${BROKEN:-}" ] || { printf '[ RUN      ] test_attention\n  FAILED: attention bf16: dqkv (comparison 3): error 0.5, limit 0.02\n[  FAILED  ] test_attention\n'; exit 1; }
	END
	stub pack/bin/bench_cuda <<-'END'
		steps=$2; shift 2
		printf 'device Stub H1\ngemm_tflops 790.00 copy_gb_s 4300\n'
		while [ $# -gt 0 ]; do
			case $1 in embed:*) printf 'embed_config %s' "${1#*:}" ;; *) printf 'config %s' "$1" ;; esac
			echo " length $2 batch $3 tokens_per_s 3000000 step_ms 8.192 mfu 0.240 idle 0.010 padding 0.020 million_cells_3_epochs_min 34.1 model_mb 900 no_replay_tokens_per_s 2500000"
			printf '  op               calls        ms      %%  floor_ms  share\n  attention_back       6     3.100   40.0     1.370   0.44 !\n  all                        8.000  100.0     3.900   0.49 of the measured step 0.48\n'
			shift 3
		done
	END
	CURVE_CELLS=600 curve
}

# stub FILE: a program of what stdin says
stub() {
	{ echo '#!/bin/bash'; cat; } >"$1"
	chmod +x "$1"
}

# What gpu.sh -p does for its part `curve`, on few cells
curve() {
	mkdir pack/curve
	cat >pack/curve/config.json <<-'END'
		{"model_type": "bert", "vocab_size": 1002, "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 64,
		"max_position_embeddings": 2048, "hidden_act": "relu", "hidden_dropout_prob": 0.02, "attention_probs_dropout_prob": 0.02}
	END
	scsim -q --kind b1 -n $CURVE_CELLS -o pack/curve/b1.tok
	maskgen -q -b 12 -u pack/curve/b1.tok | sctrain mlm -q -c pack/curve/config.json -o pack/curve/cpu
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	mkdir -p empty
	cd empty # nothing of a checkout
}

# G ARGUMENT...: gpu.sh of the pack
G() { PATH=$BATS_FILE_TMPDIR/stubs:$PATH "$BATS_FILE_TMPDIR/pack/src/tests/bench/gpu.sh" "$@"; }

@test "gpu.sh A: check, one shape, four sanitizers; what racecheck found is told and fails" {
	run -1 G -o A A
	assert_line "card Stub H1, 580.1, 80000 MiB, $(date -u +%Y-%m-%d), commit v1"
	assert_line "gpu.sh: sanitize: memcheck: clean"
	assert_line "gpu.sh: FAILED: racecheck: Error: Race reported between Write access"
	assert_line --partial "| corrmask-paper | 2048 | 12 | 3000 | 0.240 |"
	assert_line --partial "| attention_back | 3.10 (0.44) |"
	refute_output --partial "triage:"
	assert_line --regexp "^gpu.sh: [0-9]+ s; 1 FAILED; logs in .*/A$"
	for f in check.log bench.log sanitize.log rest.log summary.md smi.csv; do assert_file_not_empty A/$f; done
	[ "$(ls A | wc -l)" -le 8 ]
	# the same from what came back, beside the script at home
	diff A/summary.md <("$B/gpu.sh" -s A)
}

@test "gpu.sh A: a test that fails is run again in four ways and under memcheck" {
	BROKEN=1 run -1 G -o broken A
	assert_line "gpu.sh: FAILED: check: status 1"
	assert_line "gpu.sh: triage: test_attention, as before: fails:   FAILED: attention bf16: dqkv (comparison 3): error 0.5, limit 0.02"
	assert_line "gpu.sh: triage: test_attention, float alone: passes"
	assert_line --partial "triage: test_attention, small, without graphs: fails"
	assert_line --partial "triage: test_attention, small, each launch waited for: fails"
	assert_line "gpu.sh: triage: test_attention, small, memcheck: passes"
	refute_output --partial "triage: test_norm"
}

# bats test_tags=slow
@test "gpu.sh A: a test that hangs is named, and the script ends before its limit" {
	since=$SECONDS
	HANG=1 run -1 G -t 30 -o hang A
	[ $((SECONDS - since)) -le 32 ]
	assert_line "gpu.sh: FAILED: check: status 124"
	assert_line --regexp "triage: test_steps, as before: "
	assert_file_not_empty hang/summary.md
}

# bats test_tags=slow
@test "gpu.sh B: speed of all shapes, other tiles, kernels; a profiler that hangs costs its own time only" {
	since=$SECONDS
	run -0 G -t 60 -o B B
	[ $((SECONDS - since)) -le 62 ]
	assert_line --partial "| v2-104m | 2048 | 48 | 3000 |"
	assert_line --partial "| embed geneformer-v1-10m | 2048 | 48 | 3000 |"
	assert_line --regexp '^- 4096x8192: config corrmask-paper'
	assert_line "| key_mma_kernel<1> | 1 | 41.0 | 82.0 | 41.0 | 41.0 |"
	assert_line "gpu.sh: ncu, columns: status 124"
	run -0 grep "^sections of" B/ncu.txt
	assert_line --regexp "filter-mode per-launch-config --launch-skip 2 --launch-count 1 -k regex:key_mma"
	assert_line --regexp "regex:adamw"
}

@test "gpu.sh C: loss curves on the CPU and the device, end to end, peers; the three calls make one summary" {
	CELLS=100 GENES=500 EPOCHS=1 run -0 G -t 120 -o C C
	assert_line --regexp '^\| 50 \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \|$'
	assert_line --regexp '^- 48: [0-9.]+ s; .*a million cells of 2,048 tokens, 3 epochs: [0-9.]+ min'
	assert_line --regexp '^- 48-no-graphs: '
	assert_line --regexp '^- scembed: [0-9]+ tokens in '
	grep -q "flash:corrmask-paper:2048:12 cudnn:corrmask-paper:2048:12 flash-tuned:" ../stubs/peers
	run -0 "$B/gpu.sh" -s A B C
	assert_line "PyTorch 2.11, transformers 5.17."
	# corrmask's 3,000 over flash's 1,500
	assert_line --regexp '^\| corrmask-paper \| 2048 \| 12 \| 3000 .*\| 1500 .*\| 2\.00 \|$'
	assert_line --partial "Parts: check "
	run -1 "$B/gpu.sh" -s nowhere
	assert_output --partial "no results in"
}

@test "test_cuda -r: errors of twice the roundings pass, larger ones fail and are named" {
	T=$EMULATED/../unit/test_cuda_emulated
	[ -x "$T" ] || skip "no $T"
	run -0 "$T" -w errors.tsv test_moves
	run -0 "$T" -r errors.tsv test_moves
	assert_output --regexp "moves bf16: pool dx: 12 compared, error at most [0-9.]+, [0-9.]+ of its limit, 1.00 to 1.00 of the roundings' \(12\)"
	awk -F'\t' -v OFS='\t' '{ $4 /= 3; print }' errors.tsv >third.tsv
	run ! "$T" -r third.tsv test_moves
	assert_output --regexp "FAILED: moves bf16: drop per cell \(comparison [0-9]+\): error"
	assert_output --partial "[  FAILED  ] test_moves"
	run ! "$T" -r /dev/null test_moves
	assert_output --partial "expected the errors that test_cuda -w writes"
	run -2 "$T" test_nothing
}

# bats test_tags=slow
@test "mutants of the kernels: the emulation finds one (without an argument mutants.sh has all thirteen, of which it finds eleven)" {
	need_tool sctrain
	run -0 "$BATS_TEST_DIRNAME/cuda/mutants.sh" 'forward: no barrier between tiles'
	assert_line --regexp '^mutants.sh: 1 tried, 0 of them not as expected$'
}

@test "gpu_masks.sh -a: pairs of whatever came back; a cut line and a run without its pair are left out" {
	need_tool ctaprobe
	printf 'data\tencoding\tmasks\tseed\tloss\thidden\tvisible\treliance\ttrain_loss\tsteps\tseconds\n' >runs.tsv
	for s in 1 2 3 4 5; do
		printf "marrow\tmedian\trandom\t$s\t5.$s\t5.0\t4.9\t0.1$s\t5.1\t2500\t20\n"
		[ $s = 5 ] || printf "marrow\tmedian\tcorrmask\t$s\t4.9$s\t5.0\t4.9\t0.0$s\t5.1\t2500\t20\n"
	done >>runs.tsv
	cp runs.tsv twice.tsv
	printf 'marrow\tmedian\tcorrmask\t5\t4.9\t5.0\t4.' >>runs.tsv
	BIN=$(realpath "$BIN") run -0 "$B/gpu_masks.sh" -a runs.tsv twice.tsv
	assert_line "9 runs, 4 pairs"
	# seeds 1 to 4: losses 5.1 .. 5.4 and 4.91 .. 4.94
	assert_line --regexp $'^marrow\tmedian\tloss\tcorrmask\trandom\t4\t4\t0\t4\\.925\t5\\.25\t-0\\.32'
	head -n 2 runs.tsv >one.tsv
	run -1 "$B/gpu_masks.sh" -a one.tsv
	assert_output --partial "too few pairs to compare"
}

# alone PACK COMMAND...: in an empty folder with the pack alone, without what this machine has beside the C library and /usr/bin
alone() {
	rm -rf alone
	mkdir alone
	tar -xzf "$1.tar.gz" -C alone
	mv "$1" away
	shift
	(cd alone && env -i PATH=/usr/bin:/bin HOME="$PWD" DEVICE=cpu CELLS=30 GENES=500 EPOCHS=1 SEEDS=1 OMP_WAIT_POLICY=passive "$@")
	rm -r away
}

# bats test_tags=slow
@test "all packs are made without CUDA, and do their parts for the CPU from an empty folder" {
	need_tool ctaprobe
	cd "$BATS_FILE_TMPDIR"
	export DEVICE=cpu
	CURVE_CELLS=600 run -0 "$B/gpu.sh" -p "$PWD/first"
	run -0 alone first first/src/tests/bench/gpu.sh -t 100 -o C end
	assert_line --regexp '^- scembed: '
	assert_line --regexp 'all passed; logs in'

	scsim -q --cells 300 --genes 150 --modules 6 --types 3 --depth 800 --seed 3 | scview -q -O h5ad - -o cells.h5ad
	BIN=$(realpath "$BIN") CELLS=150 STEPS=30 MAXLEN=64 run -0 "$B/gpu_masks.sh" -p "$PWD/masks" sim=cells.h5ad
	run -0 alone masks masks/src/tests/bench/gpu_masks.sh -j 2 -t 200 -o D
	assert_line --regexp 'gpu_masks.sh: 6 runs in '

	run -0 pipelines THREADS=2 table6-inputs SCALE=tiny SIZES=1 DEVICE=cpu
	inputs=results/table6-inputs/$(readlink results/table6-inputs/latest)
	run -0 "$B/gpu_experiments.sh" -p "$PWD/table" "$inputs" DEVICE=cpu
	run -0 alone table table/src/tests/bench/gpu_experiments.sh -o E "table/$(basename "$inputs")" SCALE=tiny DEVICE=cpu STRATEGIES=random SIZES=1 SEEDS=1
	assert_line --partial "2 of 2 runs done"
}
