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
	assert_output --partial "no command: expected mlm or cells or eval"
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
	assert_output "$(printf '%s\n' checkpoint-21 checkpoint-28 config.json model.safetensors train.tsv vocab.tsv)"
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

@test "sctrain mlm: losses, rates, norms and weights of a float64 trainer after PyTorch's and transformers' rules" {
	scview -c step,input,position,target a.masked >steps.tsv
	sctrain mlm -q --config tiny --dropout 0 --lr 0 -o init a.masked
	sctrain mlm -q --config tiny --dropout 0 --lr 0.003 --warmup 4 -o torch a.masked
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" train init torch steps.tsv torch linear 0.003 4
	sctrain mlm -q --config tiny --dropout 0 --lr 0.003 --warmup 4 --schedule cosine --adam hf46 --accum 2 -o hf46 a.masked
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" train init hf46 steps.tsv hf46 cosine 0.003 4
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
		grep -q "interrupted after step [0-9]* of 80: --resume goes on from term/checkpoint-" err
		step=$(sed 's/.*after step \([0-9]*\) .*/\1/' err)
		assert_exist "term/checkpoint-$step/optimizer.safetensors"
		assert_not_exist term/model.safetensors
		assert_equal "$(tail -1 term/train.tsv | cut -f1)" "$step"
	done
	sctrain mlm -q --config tiny --resume -o term long.masked
	sctrain mlm -q --config tiny -o term2 long.masked
	same_training term term2
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
	assert_output --partial "--resume goes on with it"
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
	assert_output --regexp "rest.masked starts at step [0-9]+, and there is no checkpoint"
	sctrain mlm -q "${A[@]}" --resume -o rest rest.masked
	same_training whole rest
}

@test "sctrain mlm: --resume refuses another stream and other options; a finished model is not overwritten" {
	head -c $(($(stat -c %s a.masked) / 2)) a.masked >half
	run sctrain mlm "${A[@]}" -o other half
	assert_failure 1
	run sctrain mlm "${A[@]}" --resume -o other b.masked
	assert_failure 1
	assert_output --partial "b.masked is not the masked stream that other was trained on"
	for o in "--lr 0.01" "--seed 7" "--accum 2" "--warmup 5" "--adam hf46"; do
		run sctrain mlm "${A[@]}" --resume $o -o other a.masked
		assert_failure 1
		assert_output --partial "give the same options again"
	done
	run sctrain mlm "${A[@]}" --resume --dropout 0.1 -o other a.masked
	assert_failure 1
	assert_output --partial "not the configuration asked for now"
	sctrain mlm -q "${A[@]}" --resume -o other a.masked
	same_training whole other

	run sctrain mlm "${A[@]}" -o other b.masked
	assert_failure 1
	assert_output --partial "other holds a finished model: --force replaces it"
	run sctrain mlm "${A[@]}" --resume -o other a.masked
	assert_success
	assert_output --partial "finished already"
	same_training whole other
	sctrain mlm -q "${A[@]}" --force --save-every 20 -o other b.masked
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
	assert_output --partial "is the model to be written"
	same_training whole kept
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
	assert_output "sctrain mlm: cells.tok: this is a tokens stream, expected masked"
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
	assert_output --regexp "^sctrain mlm: wide.json: vocab_size is 999, but the vocabulary of a.masked has [0-9]+ tokens$"
	sed 's/"max_position_embeddings":\t[0-9]*/"max_position_embeddings": 20/' whole/config.json >short.json
	run sctrain mlm --config short.json -o bad a.masked
	assert_failure 1
	assert_output --regexp "^sctrain mlm: step 1: a.masked: cell [0-9]+ has [0-9]+ tokens, but the model has 20 positions; there is no checkpoint yet$"
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
	run bash -c "trap '' XFSZ; ulimit -f 500; exec sctrain mlm --config tiny --save-every 7 -o full a.masked"
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
	for _ in $(seq 100); do [ -d busy ] && break; sleep 0.02; done
	run sctrain mlm --config tiny -o busy a.masked
	exec 5>&-
	wait || true
	rm pipe
	assert_failure 1
	assert_output --partial "busy: another trainer is writing here"
}

@test "sctrain mlm: batches without a masked position change nothing, but count as steps" {
	maskgen -q --strategy none --epochs 1 --batch 10 -o none.masked cells.tok
	sctrain mlm -q --config tiny --init whole --lr 0.1 -o none none.masked
	cmp whole/model.safetensors none/model.safetensors
	assert_equal "$(tail -1 none/train.tsv | cut -f1,2,4)" "$(printf '10\tNA\tNA')"
	run sctrain eval -M whole none.masked
	assert_failure 1
	assert_output --partial "no masked position"
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

@test "sctrain: every option is in the manual page" {
	for o in $(for c in mlm cells eval; do sctrain $c --help; done | grep -o -- '--[a-z-]*' | sort -u); do
		grep -q -- "Fl -${o#--}\|, -${o#--}" "$BATS_TEST_DIRNAME/../man/sctrain.1" || fail "no $o in the manual page"
	done
}

@test "sctrain: the examples of the manual page run" {
	mkdir -p man
	cp cells.tok man
	awk '/^\.Bd -literal/ { p = 1; next } /^\.Ed/ { p = 0 } p' "$BATS_TEST_DIRNAME/../man/sctrain.1" >examples
	(cd man && bash -euo pipefail ../examples)
	assert_exist man/more.model/model.safetensors
}
