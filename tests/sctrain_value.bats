# maskgen --objective value, sctrain value, and its models in the other tools.
load helper

# 300 cells of up to 40 tokens to learn from, in 90 steps, and 100 other cells.
setup_file() {
	need_tool scsim rankenc maskgen scview scsample scembed sctrain depgraph
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 400 --genes 80 --modules 5 --types 4 --rarest 0.15 --depth 500 --seed 3 -o all.counts
	rankenc -q --fit -o vocab.tsv all.counts
	rankenc -q -m vocab.tsv --max-len 40 --ties group --value -o all.tok all.counts
	scsample -q --test-fraction 0.25 --part train -o train.tok all.tok
	scsample -q --test-fraction 0.25 --part test -o test.tok all.tok
	depgraph -q -o all.graph all.tok
	maskgen -q --objective value --epochs 6 --batch 20 --seed 4 -o train.masked train.tok
	maskgen -q --objective value --epochs 2 --batch 30 --seed 5 -o test.masked test.tok
	maskgen -q --epochs 2 --batch 20 --seed 4 -o tokens.masked train.tok
	sctrain value -q -@ 2 $TINY --eval test.masked --save-every 13 -o model train.masked
	sctrain mlm -q $TINY -o mlm tokens.masked
}

TINY="--config tiny --lr 0.003"

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
}

ref() { # ref COMMAND ARGUMENT...
	$PYTHON "$BATS_TEST_DIRNAME/ref/value.py" "$@"
}

same_training() {
	cmp "$1/model.safetensors" "$2/model.safetensors"
	cmp <(cut -f1-4 "$1/train.tsv") <(cut -f1-4 "$2/train.tsv")
}

# edited IN OUT CODE: the stream with CODE run on every block b (python/scstream)
edited() {
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - "$1" "$2" "$3" <<-'END'
		import sys, numpy, corrmask.stream as scstream
		stream = scstream.read(sys.argv[1])
		with scstream.Writer(sys.argv[2], stream.header) as out:
		    for b in stream:
		        exec(sys.argv[3])
		        out.write(b)
	END
}

@test "maskgen --objective value: masks of --objective token, visible tokens, hidden ranks, values of the targets" {
	scview -c cell,token,rank,value all.tok >tokens.tsv
	both() { # OPTION...
		maskgen -q "$@" --epochs 2 --seed 7 all.tok | scview -c cell,epoch,input,rank,position,target >token.tsv
		maskgen -q --objective value "$@" --epochs 2 --seed 7 all.tok | scview -c cell,epoch,input,rank,position,target,value >value.tsv
		ref masks 1 tokens.tsv token.tsv value.tsv
	}
	both --strategy random --rate 0.3
	both --strategy random --bernoulli --rate-uniform 0.1:0.9
	both --strategy corrmask -g all.graph
	run both --strategy probe --partners hidden -g all.graph
	assert_success
	# the partners of a target are hidden, but not predicted
	[ "${output% *}" -gt "${output#* }" ]
	both --strategy probe --partners visible -g all.graph
	# the number of threads changes nothing; --objective token is the default, and its header does not name it
	maskgen -q --objective value -@ 3 --epochs 6 --batch 20 --seed 4 -o other.masked train.tok
	cmp other.masked train.masked
	maskgen -q --objective token --epochs 2 --batch 20 --seed 4 train.tok | scview >token.tsv
	cmp token.tsv <(scview tokens.masked)
	scview -H train.masked | grep -q '"objective":[[:space:]]*"value"'
	run -1 grep objective <(scview -H tokens.masked)
}

@test "sctrain value: help and misuse" {
	run -0 sctrain value --help
	assert_output --partial "Pre-train a model to predict the expression of masked genes."
	run -1 sctrain eval -M model tokens.masked
	names "model of sctrain mlm"
	run -1 sctrain eval -M mlm test.masked
	names "model of sctrain value"
	assert_file_not_exist x
}

@test "sctrain value: loss, rmse, r2 and standard error of other cells are those of numpy on the saved model, and it learns" {
	scview -c cell,epoch,input,rank,position,value test.masked >test.tsv
	sctrain eval -q -M model --cell-scores rows.tsv -o eval.tsv test.masked
	ref eval model test.tsv eval.tsv rows.tsv
	# without --cell-scores the loss is that of the forward pass
	sctrain eval -q -M model -o plain.tsv test.masked
	$PYTHON - <<-'END'
		import csv, json
		def table(name):
		    return {k: float(v) for k, v in csv.reader(open(name), delimiter="\t") if k != "metric"}
		a, b = table("eval.tsv"), table("plain.tsv")
		assert all(abs(a[k] - b[k]) < 1e-5 * abs(a[k]) for k in ("loss", "rmse", "r2")) and a["masked"] == b["masked"], (a, b)
		log = [r for r in csv.DictReader(open("model/train.tsv"), delimiter="\t") if r["eval_loss"] != "NA"]
		assert len(log) == 6 and float(log[-1]["eval_r2"]) > 0.3 > float(log[0]["eval_r2"]), log
		assert min(float(r["eval_loss"]) for r in log) - a["loss"] < 1e-5
		c = json.load(open("model/config.json"))
		assert c["architectures"] == ["BertForTokenClassification"] and c["problem_type"] == "regression" and c["id2label"] == {"0": "LABEL_0"}
	END
}

@test "sctrain value: any number of threads, and a resumed training, give the same bytes" {
	A=(--config tiny --lr 0.003 --eval test.masked --save-every 13)
	sctrain value -q "${A[@]}" -o one train.masked
	same_training model one
	head -c $(($(stat -c %s train.masked) / 2)) train.masked >cut.masked
	run -1 sctrain value -q "${A[@]}" -o cut - <cut.masked
	assert_exist cut/checkpoint-*/model.safetensors
	run -1 sctrain mlm "${A[@]}" --resume -o cut tokens.masked
	maskgen -q --objective value --epochs 6 --batch 20 --seed 4 --resume cut train.tok | sctrain value -q "${A[@]}" --resume -o cut
	same_training model cut
	# parts of a batch add up
	sctrain value -q $TINY --dropout 0 --accum 3 -o parts train.masked
	sctrain value -q $TINY --dropout 0 -o whole train.masked
	$PYTHON - <<-'END'
		import csv
		a, b = ([float(r["loss"]) for r in csv.DictReader(open(f"{d}/train.tsv"), delimiter="\t")] for d in ("parts", "whole"))
		assert len(a) == 90 and max(abs(x - y) / y for x, y in zip(a, b)) < 1e-3, max(abs(x - y) / y for x, y in zip(a, b))
	END
}

@test "sctrain value: two ranks are one with their batches" {
	case $(sctrain --version) in *"without MPI"*) skip "sctrain is built without MPI" ;; esac
	command -v mpirun >/dev/null || skip "no mpirun on this machine"
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 5 120 mpirun --oversubscribe --bind-to none -n 2 bash -c \
		"set -o pipefail; maskgen -q --objective value --batch 10 --seed 4 --shard auto train.tok | sctrain value -q --mpi $TINY -o two"
	maskgen -q --objective value --batch 20 --seed 4 train.tok | sctrain value -q $TINY -o alone
	$PYTHON - <<-'END'
		import csv
		a, b = ([float(r["loss"]) for r in csv.DictReader(open(f"{d}/train.tsv"), delimiter="\t")] for d in ("two", "alone"))
		assert len(a) == 15 and max(abs(x - y) / y for x, y in zip(a, b)) < 1e-3, (a, b)
	END
}

@test "sctrain --init: a model of tokens gives its encoder to one of values, and the other way" {
	same_encoder() { # MODEL MODEL
		PYTHONPATH=$BATS_TEST_DIRNAME/ref $PYTHON -B - "$@" <<-'END'
			import sys, bert
			a, b = ({n: x for n, x in bert.load(d)[1].items() if n.startswith(("bert.embeddings", "bert.encoder"))} for d in sys.argv[1:])
			assert len(a) > 30 and a.keys() == b.keys() and all((a[n] == b[n]).all() for n in a)
		END
	}
	run -0 sctrain value --lr 0 --init mlm -o from_tokens train.masked
	names "note: head value new"
	same_encoder mlm from_tokens
	run -1 same_encoder mlm model
	run -0 sctrain value --lr 0 --init model -o from_values train.masked
	refute_output --partial "random"
	cmp model/model.safetensors from_values/model.safetensors
	run -0 sctrain mlm --lr 0 --init model -o back tokens.masked
	assert_output --partial "has no 'cls.predictions.bias'"
	same_encoder model back
	# a classifier of classes is another head, although its tensors have the same names
	maskgen -q --strategy none --keep cell_type -o types.masked train.tok
	run -0 sctrain cells --label cell_type --init model -o types types.masked
	names "note: head cell_type new"
	run -0 sctrain value --init types -o again train.masked
	assert_output --partial "is new: it starts from random weights"
}

@test "scembed: vectors of a model of values are those of a float64 trainer; it has no classes to predict" {
	scview -c token,rank test.tok >tokens.tsv
	scembed -q -M model --emb-layer 0 -o x.emb test.tok
	scview -O npy x.emb >x.npy
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" embed model tokens.tsv 0 mean x.npy
	run -1 scpredict cells -M model -o never test.tok
	names "model predict"
	assert_file_not_exist never
}

@test "sctrain value: a value that is missing is not predicted, an infinite one is refused" {
	edited test.masked holes.masked 'b["value"] = (b["value"][0], numpy.where(numpy.arange(len(b["value"][1])) % 3 == 0, numpy.nan, b["value"][1]).astype("f4"))'
	scview -c cell,epoch,input,rank,position,value holes.masked >holes.tsv
	sctrain eval -q -M model --cell-scores rows.tsv -o eval.tsv holes.masked
	ref eval model holes.tsv eval.tsv rows.tsv
	sctrain eval -q -M model -o plain.tsv holes.masked
	cmp <(grep masked eval.tsv) <(grep masked plain.tsv)
	run cmp <(grep masked eval.tsv) <(sctrain eval -q -M model test.masked | grep masked)
	assert_failure
	edited test.masked far.masked 'b["value"][1][-1] = numpy.inf'
	run -1 sctrain eval -M model far.masked
	assert_output --regexp "far.masked: cell [0-9]*, position [0-9]*: the value is infinite"
}

@test "sctrain: a training that made the loss worse ends with a warning, another one does not" {
	run -0 --separate-stderr sctrain value --config tiny --lr 30 -o diverged train.masked
	assert_regex "$stderr" '^sctrain value: warning: the loss rose from [0-9.]+ to [0-9.]+(e\+[0-9]+)?: the training diverged; lower --lr$'
	run -0 --separate-stderr sctrain value $TINY -o converged train.masked
	assert_equal "$stderr" ""
}
