load helper

# 100 cells of about 50 tokens, 30 steps: a training takes half a second.
setup_file() {
	need_tool scsim rankenc maskgen scview
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 100 --genes 60 --modules 4 --types 3 --seed 3 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o cells.tok sim.counts
	maskgen -q --epochs 3 --batch 10 --seed 4 -o a.masked cells.tok
	maskgen -q --epochs 3 --batch 10 --seed 5 -o b.masked cells.tok
	sctrain mlm -q --config tiny --save-every 7 -o whole a.masked
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	A=(--config tiny --save-every 7)
	export OMP_WAIT_POLICY=passive          # more threads than cores must not spin
	export OPENBLAS_NUM_THREADS=1
}

# same_training A B: the same weights, and the same rows of train.tsv but for the times
same_training() {
	cmp "$1/model.safetensors" "$2/model.safetensors"
	cmp <(cut -f1-4 "$1/train.tsv") <(cut -f1-4 "$2/train.tsv")
}

# wait_for_step MODEL STEP: until train.tsv has this step
wait_for_step() {
	for _ in $(seq 200); do
		[ -e "$1/train.tsv" ] && [ "$(wc -l <"$1/train.tsv")" -gt "$2" ] && return
		sleep 0.02
	done
	fail "no step $2 in $1"
}

@test "sctrain: help, version and misuse" {
	run --separate-stderr sctrain --help
	assert_success
	assert_line --partial "eval"
	run --separate-stderr sctrain mlm --help
	assert_success
	assert_line --partial "--keep-checkpoints"
	run sctrain --version
	assert_success
	run sctrain
	assert_failure 2
	names "mlm value wced cells genes nb eval"
	run sctrain walk
	assert_failure 2
	assert_output --partial "unknown command 'walk'"
	run sctrain mlm a.masked
	assert_failure 2
	assert_output --partial "-o MODEL"
	run sctrain mlm -o x --resume --force a.masked
	assert_failure 2
	run sctrain mlm -o x a.masked b.masked
	assert_failure 2
	run sctrain mlm -o x --lr -1 a.masked
	assert_failure 2
	run sctrain eval a.masked
	assert_failure 2
	assert_output --partial "-M DIR"
	assert_not_exist x
}

@test "sctrain mlm: a model directory in Hugging Face's layout, a row of train.tsv for every step" {
	run ls whole
	assert_output "$(printf '%s\n' README.md checkpoint-21 checkpoint-28 config.json model.safetensors train.tsv trainer_state.json vocab.tsv)"
	run ls whole/checkpoint-28
	assert_output "$(printf '%s\n' config.json model.safetensors optimizer.safetensors trainer_state.json vocab.tsv)"
	assert_equal "$(head -1 whole/train.tsv)" "$(printf 'step\tloss\tlr\tgrad_norm\ttokens_per_s\tseconds')"
	assert_equal "$(wc -l <whole/train.tsv)" 31
	# linear schedule, a tenth of the 30 steps is warm-up: transformers' get_linear_schedule_with_warmup
	$PYTHON - <<-'END'
		rows = [l.split("\t") for l in open("whole/train.tsv").read().split("\n")[1:-1]]
		for k, r in enumerate(rows):
		    want = 1e-3 * (k / 3 if k < 3 else (30 - k) / 27)
		    assert int(r[0]) == k + 1 and abs(float(r[2]) - want) < 1e-9, r
		assert all(0 < float(r[1]) < 10 and 0 < float(r[3]) < 100 and float(r[4]) > 0 for r in rows)
		import json
		c, s = json.load(open("whole/config.json")), json.load(open("whole/checkpoint-28/trainer_state.json"))
		assert c["architectures"] == ["BertForMaskedLM"] and c["hidden_act"] == "relu" and c["vocab_size"] == len(open("vocab.tsv").readlines()) - 1
		assert s["kernels"].startswith("OpenBLAS ") and s["kernels"].endswith((", generic", ", avx2", ", avx512"))
		assert s["step"] == 28 and s["steps"] == 30 and abs(s["epoch"] - 2.8) < 1e-9 and len(s["masked_digest"]) == 32
	END
	cmp vocab.tsv whole/vocab.tsv
}

@test "sctrain mlm: the same weights on 1, 2 and 3 threads, from file, stdin and an uncompressed pipe" {
	sctrain mlm -q "${A[@]}" -@ 2 -o two <a.masked
	maskgen -q -u --epochs 3 --batch 10 --seed 4 cells.tok | sctrain mlm -q "${A[@]}" -@ 3 -o three -
	same_training whole two
	same_training whole three
	cmp whole/checkpoint-28/optimizer.safetensors three/checkpoint-28/optimizer.safetensors
	sctrain mlm -q "${A[@]}" --seed 2 -o seed a.masked
	run cmp -s whole/model.safetensors seed/model.safetensors
	assert_failure
}

@test "sctrain mlm: it learns" {
	maskgen -q -u --epochs 15 --batch 10 cells.tok | sctrain mlm -q --config tiny --lr 0.005 -o learns
	$PYTHON - <<-'END'
		loss = [float(l.split("\t")[1]) for l in open("learns/train.tsv").read().split("\n")[1:-1]]
		first, last = sum(loss[:10]) / 10, sum(loss[-10:]) / 10
		print(first, last)
		assert last < 0.97 * first
	END
}

@test "sctrain mlm: losses, rates, norms and weights of a float64 trainer after PyTorch's rules" {
	scview -c step,input,position,target a.masked >steps.tsv
	sctrain mlm -q --config tiny --dropout 0 --lr 0 -o init a.masked
	sctrain mlm -q --config tiny --dropout 0 --lr 0.003 --warmup 4 -o torch a.masked
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" train init torch steps.tsv torch linear 0.003 4
	sctrain mlm -q --config tiny --dropout 0 --lr 0.003 --warmup 4 --schedule cosine --accum 2 -o cosine a.masked
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" train init cosine steps.tsv torch cosine 0.003 4
}

@test "sctrain mlm: SIGKILL at many moments and --resume give the weights of an uninterrupted run" {
	for d in 0.03 0.06 0.09 0.12 0.16 0.2 0.25 0.1 0.15; do
		sctrain mlm -q --config tiny --save-every 2 --resume -o killed a.masked 3>&- &
		sleep $d
		kill -9 $! 2>/dev/null || true
		wait $! || true
	done
	sctrain mlm -q --config tiny --save-every 2 --resume -o killed a.masked
	same_training whole killed
	assert_equal "$(ls -d killed/*.tmp 2>/dev/null)" ""
	# and with cuts at known steps, in the middle between checkpoints
	size=$(stat -c %s a.masked)
	mkfifo pipe
	for part in 3 2; do
		sctrain mlm -q "${A[@]}" --resume -o cut pipe 3>&- &
		pid=$!
		exec 5>pipe
		head -c $((size / part)) a.masked >&5
		wait_for_step cut $((30 / part - 5))
		kill -9 $pid
		wait $pid || true
		exec 5>&-
	done
	rm pipe
	assert_not_exist cut/model.safetensors
	sctrain mlm -q "${A[@]}" --resume -o cut a.masked
	same_training whole cut
}

@test "sctrain mlm: SIGTERM and SIGINT save a checkpoint, end by the signal, and resume goes on from it" {
	maskgen -q -u --epochs 8 --batch 10 --seed 4 cells.tok >long.masked
	for sig in TERM INT; do
		rm -rf term
		(trap - INT; exec env --default-signal=INT "$BIN/sctrain" mlm --config tiny -o term long.masked) 2>err 3>&- &
		pid=$!
		wait_for_step term 5
		kill -$sig $pid
		wait $pid && status=0 || status=$?
		assert_equal $status $((128 + $(kill -l $sig)))
		grep -q "interrupted after step [0-9]* of 80: --resume continues from term/checkpoint-" err
		step=$(sed 's/.*after step \([0-9]*\) .*/\1/' err)
		assert_exist "term/checkpoint-$step/optimizer.safetensors"
		assert_not_exist term/model.safetensors
		assert_equal "$(tail -1 term/train.tsv | cut -f1)" "$step"
	done
	sctrain mlm -q --config tiny --resume -o term long.masked
	sctrain mlm -q --config tiny -o term2 long.masked
	same_training term term2
}

@test "sctrain mlm: a checkpoint whose optimizer has a tensor too many, or one too few, is refused" {
	run -1 bash -c 'head -c 20000 a.masked | sctrain mlm -q --config tiny --save-every 1 --keep-checkpoints 1 -o opt'
	latest=$(ls -d opt/checkpoint-* | sort -V | tail -1)
	cp "$latest/optimizer.safetensors" whole.opt
	for what in more fewer; do
		$PYTHON - $what "$latest/optimizer.safetensors" <<-'P'
			import json, struct, sys
			data = open("whole.opt", "rb").read()
			n = struct.unpack("<Q", data[:8])[0]
			head, body = json.loads(data[8:8 + n]), data[8 + n:]
			if sys.argv[1] == "more":
			    head["extra"] = {"dtype": "F32", "shape": [1], "data_offsets": [len(body), len(body) + 4]}
			    body += bytes(4)
			else:
			    last = max((k for k in head if k != "__metadata__"), key=lambda k: head[k]["data_offsets"][1])
			    body = body[:head.pop(last)["data_offsets"][0]]
			text = json.dumps(head).encode()
			open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + body)
		P
		undigest "$latest/optimizer.safetensors"
		run -1 sctrain mlm --config tiny --resume -o opt a.masked
		names "safetensors tensors moments"
		assert_not_exist opt/model.safetensors
	done
	cp whole.opt "$latest/optimizer.safetensors"
	sctrain mlm -q --config tiny --save-every 1 --resume -o opt a.masked
}

@test "sctrain mlm: --resume with other kernels warns and names them, or fails with --same-kernels; with the same ones it is silent" {
	grep -qw avx2 /proc/cpuinfo || skip "no processor with AVX2"
	maskgen -q -u --epochs 8 --batch 10 --seed 4 cells.tok >long.masked
	export CORRMASK_CPU=avx2 OPENBLAS_CORETYPE=Haswell
	run -1 bash -c 'head -c 60000 long.masked | sctrain mlm -q --config tiny --save-every 2 -o cut.was'
	assert_exist cut.was/checkpoint-*/trainer_state.json
	same="CORRMASK_CPU=avx2 OPENBLAS_CORETYPE=Haswell makes them equal, where the processor can"
	cp -r cut.was cut.k
	OPENBLAS_CORETYPE=Zen run -0 --separate-stderr sctrain mlm --config tiny --save-every 2 --resume -o cut.k long.masked
	assert_regex "$stderr" "warning: this process computes with 'OpenBLAS [0-9.]+ Zen, avx2', and the checkpoint was computed with 'OpenBLAS [0-9.]+ Haswell, avx2': weights will differ by rounding; $same"
	rm -r cut.k
	cp -r cut.was cut.k
	OPENBLAS_CORETYPE=Zen run -1 sctrain mlm --config tiny --save-every 2 --resume --same-kernels -o cut.k long.masked
	assert_output --partial "$same (--same-kernels)"
	# it can still go on with those of before, which has the bytes of a whole run
	run -0 --separate-stderr sctrain mlm --config tiny --save-every 2 --resume --same-kernels -o cut.k long.masked
	[[ $stderr != *computed* ]]
	sctrain mlm -q --config tiny --save-every 2 -o whole.k long.masked
	same_training whole.k cut.k
	# another version of OpenBLAS: no variable helps
	rm -r cut.k
	cp -r cut.was cut.k
	sed -i '/^\t"digest":/d; s/OpenBLAS [0-9.]*/OpenBLAS 0.3.1/' cut.k/checkpoint-*/trainer_state.json
	run -1 sctrain mlm --config tiny --save-every 2 --resume --same-kernels -o cut.k long.masked
	assert_output --partial "the same version of OpenBLAS makes them equal (--same-kernels)"
	# portable has the same kernels
	rm -r cut.k
	cp -r cut.was cut.k
	unset OPENBLAS_CORETYPE
	CORRMASK_CPU=portable sctrain mlm -q --config tiny --save-every 2 --resume --same-kernels -o cut.k long.masked
	same_training whole.k cut.k
}

@test "sctrain mlm: a producer that died is an error that keeps the finished steps" {
	head -c $(($(stat -c %s a.masked) / 2)) a.masked >half
	run sctrain mlm "${A[@]}" -o died half
	assert_failure 1
	assert_output --partial "half: "
	assert_output --partial "cut short"
	step=$(tail -1 died/train.tsv | cut -f1)
	assert [ "$step" -gt 5 ]
	assert_exist "died/checkpoint-$step"
	assert_not_exist died/model.safetensors
	assert_not_exist died/config.json
	run sctrain mlm "${A[@]}" -o died a.masked
	assert_failure 1
	assert_output --partial "--resume continues it"
	sctrain mlm -q "${A[@]}" --resume -o died a.masked
	same_training whole died
}

@test "sctrain mlm: maskgen --resume emits the rest only, and the weights are the same" {
	head -c $(($(stat -c %s a.masked) / 2)) a.masked >half
	run sctrain mlm "${A[@]}" -o rest half
	assert_failure 1
	maskgen -q --epochs 3 --batch 10 --seed 4 --resume rest -o rest.masked cells.tok
	assert [ "$(stat -c %s rest.masked)" -lt "$(stat -c %s a.masked)" ]
	run sctrain mlm "${A[@]}" -o late rest.masked
	assert_failure 1
	names "rest.masked step checkpoint"
	sctrain mlm -q "${A[@]}" --resume -o rest rest.masked
	same_training whole rest
}

@test "sctrain mlm: --resume refuses another stream and other options; a finished model is not overwritten" {
	head -c $(($(stat -c %s a.masked) / 2)) a.masked >half
	run sctrain mlm "${A[@]}" -o other half
	assert_failure 1
	run sctrain mlm "${A[@]}" --resume -o other b.masked
	assert_failure 1
	names "--resume: other seed: 4 5"
	for o in "--lr 0.01" "--seed 7" "--accum 2" "--warmup 5" "--clip 2" "--schedule cosine" "--weight-decay 0.5" "--freeze 1"; do
		run sctrain mlm "${A[@]}" --resume $o -o other a.masked
		assert_failure 1
		word=${o% *}
		names "--resume: other options ${word#--}:"
	done
	run sctrain mlm "${A[@]}" --resume --dropout 0.1 -o other a.masked
	assert_failure 1
	names "--resume: other configuration hidden_dropout_prob: 0.1"
	# a state that says to be beyond the last step
	cp -r other odd
	sed -i 's/"step":[ \t]*[0-9]*/"step": 31/' odd/checkpoint-*/trainer_state.json
	run -1 sctrain mlm "${A[@]}" --resume -o odd a.masked
	assert_output --regexp '^sctrain mlm: --resume: odd/checkpoint-[0-9]+/trainer_state.json: not the state of a trainer: .*--force'
	sctrain mlm -q "${A[@]}" --resume -o other a.masked
	same_training whole other

	run sctrain mlm "${A[@]}" -o other b.masked
	assert_failure 1
	assert_output --partial "other holds a finished model: --force replaces it"
	run sctrain mlm "${A[@]}" --resume -o other a.masked
	assert_success
	assert_output --partial "finished already"
	same_training whole other
	sctrain mlm -q --config tiny --force --save-every 20 -o other b.masked
	run cmp -s whole/model.safetensors other/model.safetensors
	assert_failure
	assert_equal "$(ls -d other/checkpoint-*)" other/checkpoint-20
}

@test "sctrain mlm: a finished model survives a --force run that never starts" {
	sctrain mlm -q "${A[@]}" -o kept a.masked
	run sctrain mlm "${A[@]}" --force -o kept cells.tok
	assert_failure 1
	run sctrain mlm --config nothing --force -o kept a.masked
	assert_failure 1
	same_training whole kept
	run sctrain mlm "${A[@]}" --force --init kept -o kept a.masked
	assert_failure 1
	names "--init -o"
	same_training whole kept
}

@test "sctrain mlm: --force replaces a model only when the new training has learned something" {
	mkdir replace && cd replace
	sctrain mlm -q --config tiny --save-every 7 -o kept ../a.masked
	cp -r kept copy
	maskgen -q --rate 0 ../cells.tok -o none.masked
	run -1 sctrain mlm --config tiny --force --eval none.masked -o kept ../a.masked
	names "--eval: none.masked"
	diff -r copy kept
	head -c 2000 ../a.masked >cut.masked # the header, and a part of the first block
	run -1 sctrain mlm --config tiny --force -o kept cut.masked
	assert_output --partial "the stream is cut short"
	diff -r copy kept
	sctrain mlm -q --config tiny --force --save-every 7 -o kept ../b.masked
	sctrain mlm -q --config tiny --save-every 7 -o fresh ../b.masked
	same_training fresh kept
	assert_equal "$(ls kept)" "$(ls fresh)"
}

@test "sctrain mlm: --init starts from a model; a mismatch is named with both shapes" {
	sctrain mlm -q "${A[@]}" --init whole --lr 0 -o same a.masked
	cmp whole/model.safetensors same/model.safetensors
	sed 's/"intermediate_size":\t128/"intermediate_size": 64/' whole/config.json >narrow.json
	run sctrain mlm --config narrow.json --init whole -o bad a.masked
	assert_failure 1
	assert_output --partial "whole/model.safetensors: tensor 'bert.encoder.layer.0.intermediate.dense.bias' has shape [128], the configuration asks for [64]"
	mkdir -p hf
	cp whole/config.json whole/model.safetensors hf
	run sctrain mlm --init hf -o fromhf a.masked
	assert_success
	assert_output --partial "hf has no vocab.tsv: only the size"
	head -c 1000 whole/model.safetensors >hf/model.safetensors
	run sctrain mlm --init hf -o bad a.masked
	assert_failure 1
	assert_output --partial "hf/model.safetensors"
	assert_not_exist bad/model.safetensors
}

@test "sctrain mlm: --accum gives the same training to rounding" {
	sctrain mlm -q "${A[@]}" --accum 3 -o accum a.masked
	$PYTHON - <<-'END'
		read = lambda d: [list(map(float, l.split("\t")[:4])) for l in open(d + "/train.tsv").read().split("\n")[1:-1]]
		for a, b in zip(read("whole"), read("accum")):
		    assert abs(a[1] - b[1]) < 1e-4 * a[1] and abs(a[3] - b[3]) < 1e-2 * a[3], (a, b)
	END
}

@test "sctrain mlm: bad input ends with one line and no model" {
	run sctrain mlm -o bad cells.tok
	assert_failure 1
	names "cells.tok: tokens masked maskgen"
	run sctrain mlm -o bad nothing
	assert_failure 1
	run sctrain mlm -o bad .
	assert_failure 1
	run sctrain mlm -o bad </dev/null
	assert_failure 1
	run sctrain mlm --device cuda:99 -o bad a.masked
	assert_failure 1
	assert_output --partial "--device cuda:99: "
	scsample -q --where n_counts=0 cells.tok | maskgen -q -o empty.masked
	run sctrain mlm -o bad empty.masked
	assert_failure 1
	assert_output --partial "no cells to train on"
	run sctrain mlm --device toaster -o bad a.masked
	assert_failure 1
	run sctrain mlm -o /nonexistent/bad a.masked
	assert_failure 1
	assert_output --partial "/nonexistent/bad: cannot make the folder"
	sed 's/"vocab_size":\t[0-9]*/"vocab_size": 999/' whole/config.json >wide.json
	run sctrain mlm --config wide.json -o bad a.masked
	assert_failure 1
	names "wide.json: vocab_size 999 a.masked"
	sed 's/"max_position_embeddings":\t[0-9]*/"max_position_embeddings": 20/' whole/config.json >short.json
	run sctrain mlm --config short.json -o bad a.masked
	assert_failure 1
	names "step 1: a.masked cell tokens 20 positions checkpoint"
	assert_not_exist bad/model.safetensors
	run ls bad
	refute_output --partial checkpoint
}

@test "sctrain mlm: a loss that is no number stops the training, names the step and leaves the checkpoints alone" {
	run sctrain mlm --config tiny --save-every 2 --lr 1e3 --weight-decay 1e3 --clip 0 --warmup 0 --schedule constant -o nan a.masked
	assert_failure 1
	assert_output --regexp "step [0-9]+: .*(nan|inf).*(the newest checkpoint is checkpoint-[0-9]+|there is no checkpoint yet)"
	assert_not_exist nan/model.safetensors
}

@test "sctrain mlm: a full disk is an error; no checkpoint is left that is not whole" {
	run bash -c "ulimit -f 500; exec sctrain mlm --config tiny --save-every 7 -o full a.masked"
	assert_failure 1
	assert_output --partial "cannot write"
	assert_equal "$(ls full)" train.tsv
	run sctrain eval -M whole -o /dev/full a.masked
	assert_failure 1
}

@test "sctrain mlm: two trainers do not write into one directory" {
	mkfifo pipe
	sctrain mlm -q --config tiny -o busy pipe 3>&- &
	exec 5>pipe
	head -c 3000 a.masked >&5
	# it has the folder before it has the lock, and a slow machine takes seconds for either
	for _ in $(seq 600); do [ -d busy ] && grep -q ":$(stat -c %i busy) " /proc/locks && break; sleep 0.05; done
	run sctrain mlm --config tiny -o busy a.masked
	exec 5>&-
	wait || true
	rm pipe
	assert_failure 1
	names "busy: trainer"
}

@test "sctrain mlm: batches without a masked position change nothing, but count as steps" {
	# a third of the cells have at least 57 tokens, and floor(57 * 0.0177) is 1
	maskgen -q --rate 0.0177 --epochs 1 --batch 1 -o few.masked cells.tok
	sctrain mlm -q --config tiny --init whole --lr 0.1 --schedule constant --warmup 0 --save-every 1 --keep-checkpoints 1000 -o few few.masked
	same=0 changed=0
	for step in $(seq 2 99); do
		if [ "$(awk -F '\t' -v s=$step '$1 == s { print $2 $4 }' few/train.tsv)" = NANA ]; then
			cmp few/checkpoint-{$((step - 1)),$step}/model.safetensors
			same=$((same + 1))
		else
			run ! cmp -s few/checkpoint-{$((step - 1)),$step}/model.safetensors
			changed=$((changed + 1))
		fi
	done
	[ $same -gt 5 ] && [ $changed -gt 5 ]
}

# an evaluation is what sctrain eval says of the weights of that step, and the model is the best of them
@test "sctrain mlm --eval: measures as sctrain eval does, keeps the best weights, and changes no training" {
	run sctrain mlm "${A[@]}" --eval b.masked --eval-every 7 -o held a.masked
	assert_success
	assert_equal "$(head -1 held/train.tsv)" "$(printf 'step\tloss\tlr\tgrad_norm\ttokens_per_s\tseconds\teval_loss\teval_accuracy\teval_perplexity')"
	cmp <(cut -f1-4 whole/train.tsv) <(cut -f1-4 held/train.tsv)
	assert_equal "$(awk -F'\t' 'NR > 1 && $7 != "NA" { printf "%s ", $1 }' held/train.tsv)" "7 14 21 28 30 "
	for step in 21 28; do
		sctrain eval -M held/checkpoint-$step -o e b.masked
		assert_equal "$(awk -F'\t' -v s=$step '$1 == s { print $7 "\n" $9 "\n" $8 }' held/train.tsv)" "$(sed -n 2,4p e | cut -f2)"
	done
	best=$(awk -F'\t' 'NR > 1 && $7 != "NA"' held/train.tsv | sort -t"$(printf '\t')" -g -k7,7 | head -1 | cut -f1)
	assert_output --regexp "best validation loss, [0-9.]+, after step $best of 30: these weights are kept"
	sctrain eval -M held -o e b.masked
	assert_equal "$(awk -F'\t' -v s="$best" '$1 == s { print $7 }' held/train.tsv)" "$(sed -n 2p e | cut -f2)"
	# once an epoch without --eval-every; a pipe will do
	sctrain mlm -q --config tiny --eval <(maskgen -q --batch 10 --seed 5 cells.tok) --best last -o held2 a.masked
	assert_equal "$(awk -F'\t' 'NR > 1 && $7 != "NA" { printf "%s ", $1 }' held2/train.tsv)" "10 20 30 "
	cmp whole/model.safetensors held2/model.safetensors
}

@test "sctrain mlm --eval: --patience stops a training that gets worse; resume is bit-exact with all of it" {
	# a rate far too high: the first measurements are the best
	B=(--config tiny --lr 0.1 --schedule constant --warmup 0 --eval b.masked --eval-every 2 --patience 3 --save-every 3)
	run bash -o pipefail -c 'maskgen -q -u --epochs 30 --batch 10 --seed 4 cells.tok | sctrain mlm "$@" -o early' - "${B[@]}"
	assert_success
	names "3 validations step 300"
	last=$(tail -1 early/train.tsv | cut -f1)
	best=$(awk -F'\t' 'NR > 1 && $7 != "NA"' early/train.tsv | sort -t"$(printf '\t')" -g -k7,7 | head -1 | cut -f1)
	assert_equal "$last" "$((best + 6))"
	maskgen -q -u --epochs 30 --batch 10 --seed 4 -o long.masked cells.tok
	rm -rf early2
	for step in 1 $((best + 1)) $((best + 4)); do
		head -c $(($(stat -c %s long.masked) * step / 300 + 3000)) long.masked >part
		run sctrain mlm "${B[@]}" --resume -o early2 part
		assert_failure 1
	done
	sctrain mlm -q "${B[@]}" --resume -o early2 long.masked
	cmp early/model.safetensors early2/model.safetensors
	cmp <(cut -f1-4,7-9 early/train.tsv) <(cut -f1-4,7-9 early2/train.tsv)
	# another stream to measure on is another training
	head -c $(($(stat -c %s a.masked) / 2)) a.masked >half
	run sctrain mlm "${A[@]}" --eval b.masked --eval-every 7 -o held3 half
	assert_failure 1
	for other in "--eval a.masked --eval-every 7" "--eval b.masked --eval-every 8" "--eval b.masked --eval-every 7 --patience 2" \
		"--eval b.masked --eval-every 7 --best accuracy" ""; do
		run sctrain mlm "${A[@]}" $other --resume -o held3 a.masked
		assert_failure 1
		names "--resume: held3 options"
	done
	sctrain mlm -q "${A[@]}" --eval b.masked --eval-every 7 --resume -o held3 a.masked
	cmp <(cut -f1-4 whole/train.tsv) <(cut -f1-4 held3/train.tsv)
}

@test "sctrain mlm --eval: what cannot be measured is an error" {
	maskgen -q --strategy none -o nomask.masked cells.tok
	run sctrain mlm "${A[@]}" --eval nomask.masked --eval-every 1 -o bad a.masked
	assert_failure 1
	names "--eval: nomask.masked"
	run sctrain mlm "${A[@]}" --eval cells.tok -o bad2 a.masked
	assert_failure 1
	names "--eval: cells.tok: tokens masked"
	scsim -q --cells 50 --genes 40 --modules 2 --types 2 --seed 9 -o other.counts
	rankenc -q --fit -o other.tsv other.counts
	rankenc -q -m other.tsv other.counts | maskgen -q -o other.masked
	run sctrain mlm "${A[@]}" --eval other.masked -o bad2 a.masked
	assert_failure 1
	assert_output --partial "--eval: other.masked: its vocabulary"
	head -c 2000 b.masked >cut.masked
	run sctrain mlm "${A[@]}" --eval cut.masked -o bad2 a.masked
	assert_failure 1
	assert_output --partial "--eval: cut.masked"
	for o in "--patience 2" "--eval-every 3" "--best loss" "--eval b.masked --best macro-f1" "--eval b.masked --best last --patience 2"; do
		run sctrain mlm "${A[@]}" $o -o bad2 a.masked
		assert_failure 2
	done
	assert_not_exist bad2/train.tsv
}

@test "sctrain eval: loss and accuracy of an independent reading of the model, whatever the threads" {
	sctrain eval -M whole a.masked >e1
	sctrain eval -M whole -@ 3 -o e3 <a.masked
	cmp e1 e3
	scview -c input,position,target a.masked >masked.tsv
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" mlm whole masked.tsv e1
	assert_equal "$(cut -f1 e1 | tr '\n' ' ')" "metric loss perplexity accuracy masked tokens cells "
	run sctrain eval -M nowhere a.masked
	assert_failure 1
	run sctrain eval -M whole half
	assert_failure 1
}
