# sctrain cells with several columns: a head for each on one network.
load helper

# 500 cells of three types and four donors, whose size is a number to predict; a third have no type, half no donor, some no size
setup_file() {
	need_tool scsim rankenc maskgen scview scsample
	cd "$BATS_FILE_TMPDIR"
	export BATS_TEST_DIRNAME # for Python
	scsim -q --cells 500 --genes 60 --modules 4 --types 3 --rarest 0.2 --depth 500 --donors 4 --seed 3 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o full.tok sim.counts
	$PYTHON - <<-'END'
		import os, sys
		import numpy as np
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		stream, blocks = scstream.read("full.tok"), []
		for b in stream:
		    b["cell_type"].codes[::3] = -1
		    b["donor"].codes[b.rows // 2:] = -1
		    b["size"] = np.where(np.arange(b.rows) % 7 == 0, np.nan, b["n_counts"] / 100)
		    blocks.append(b)
		stream.header["columns"].append({"name": "size", "type": "f64", "shape": "scalar"})
		scstream.write("all.tok", stream.header, blocks)
	END
	scsample -q --test-fraction 0.25 --part train -o train.tok all.tok
	scsample -q --test-fraction 0.25 --part test -o test.tok all.tok
	maskgen -q --strategy none --keep cell_type,donor,size --epochs 12 -o train.masked train.tok
	maskgen -q --strategy none --keep cell_type,donor,size -o test.masked test.tok
	maskgen -q --strategy none --keep cell_type,donor,size -b 60 --epochs 2 -o step.masked train.tok
	scview -c token test.tok >test.tsv
	sctrain cells -q --config tiny --label cell_type --label donor --head size:mse --eval test.masked --lr 0.002 -o model train.masked
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export BATS_TEST_DIRNAME
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
	THREE=(--config tiny --label cell_type --label donor --head size:mse)
}

ref() { # ref COMMAND ARGUMENT...
	$PYTHON "$BATS_TEST_DIRNAME/ref/heads.py" "$@"
}

# column MODEL NAME: the last value of this column of train.tsv
column() {
	awk -F'\t' -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } END { print c ? $c : "no column" }' "$1/train.tsv"
}

# above X Y: is X a number, and larger?
above() {
	awk -v x="$1" -v y="$2" 'BEGIN { exit !(x + 0 == x && x > y) }' || fail "$1 is not above $2"
}

@test "sctrain cells: two labels and a number are learned together" {
	run head -1 model/train.tsv
	assert_output --partial "seconds	loss.cell_type	loss.donor	loss.size	eval_loss	eval_loss.cell_type	eval_accuracy.cell_type"
	above "$(column model eval_accuracy.cell_type)" 0.6
	above "$(column model eval_r2.size)" 0.4
	# the unit of the column: its standard deviation is near 2
	awk -v x="$(column model eval_rmse.size)" 'BEGIN { exit !(x > 0.3 && x < 2) }'
	awk -v a="$(column model eval_loss)" -v t="$(column model eval_loss.cell_type)" -v d="$(column model eval_loss.donor)" \
		-v s="$(column model eval_loss.size)" 'BEGIN { x = a - (t + d + s) / 3; exit !(x * x < 1e-12) }'
}

@test "sctrain cells: loss and gradient of several heads are those of float64, in parts too" {
	local parts
	for parts in 1 3; do
		sctrain cells -q "${THREE[@]}" --dropout 0 --lr 0 --clip 0 --save-every 1 --keep-checkpoints 99 --accum $parts -o step$parts step.masked
		run ref step step$parts step.masked
		assert_success
		assert_output --partial "gradients of 45 tensors"
	done
}

@test "sctrain cells: a batch without labels for one head leaves this head out" {
	$PYTHON - <<-'END'
		import os, sys
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		stream, blocks = scstream.read("step.masked"), []
		for i, b in enumerate(stream):
		    if i == 0:
		        b["donor"].codes[:] = -1
		    blocks.append(b)
		scstream.write("without.masked", stream.header, blocks)
	END
	sctrain cells -q "${THREE[@]}" --dropout 0 --lr 0 --clip 0 --save-every 1 --keep-checkpoints 99 -o without without.masked
	run ref step without without.masked
	assert_success
	run awk -F'\t' 'NR == 2 { print $8 }' without/train.tsv
	assert_output NA
	run awk -F'\t' 'NR > 2 && $8 == "NA"' without/train.tsv
	refute_output
}

@test "sctrain cells --head: the general form of --label" {
	local short=(--config tiny --dropout 0.1 --lr 0.001)
	sctrain cells -q "${short[@]}" --label cell_type --label donor --head size:mse -o short step.masked
	sctrain cells -q "${short[@]}" --head cell_type:ce --head donor:ce,weight=1 --head size:mse,from=0 -o long step.masked
	cmp short/model.safetensors long/model.safetensors
	cmp short/config.json long/config.json
	sctrain cells -q "${short[@]}" --label donor --head size:mse --head cell_type:ce -o mixed step.masked
	run cut -f7-9 mixed/train.tsv
	assert_line --index 0 "loss.donor	loss.size	loss.cell_type"
	sctrain cells -q "${short[@]}" --head cell_type:focal --class-weight balanced -o focal step.masked
	sctrain cells -q "${short[@]}" --head cell_type:focal,gamma=3 --class-weight balanced -o other step.masked
	run cmp focal/model.safetensors other/model.safetensors
	assert_failure 1
}

@test "sctrain cells --head: weights of heads, and a head that starts later, as float64 has them" {
	sctrain cells -q --config tiny --head cell_type:ce,weight=2.5 --head donor:ce,from=2 --head size:mse,weight=0.25 \
		--dropout 0 --lr 0 --clip 0 --save-every 1 --keep-checkpoints 99 -o weighted step.masked
	run ref step weighted step.masked
	assert_success
	assert_output --partial "gradients of 45 tensors"
	run awk -F'\t' 'NR > 1 { print $8 == "NA" }' weighted/train.tsv
	assert_line --index 0 1
	assert_line --index 1 1
	assert_line --index 2 0
	run cat weighted/config.json
	assert_output --partial '"weight":	2.5'
	assert_output --partial '"from":	2'
}

@test "sctrain cells --head: a training goes on with the same heads alone" {
	local a=(--config tiny --dropout 0.1 --lr 0.001 --save-every 2 --head "cell_type:ce,from=3")
	sctrain cells -q "${a[@]}" --head donor:focal,weight=2,gamma=1 -o all-of-it step.masked
	head -c $(($(stat -c %s step.masked) / 2)) step.masked >part.masked
	run sctrain cells -q "${a[@]}" --head donor:focal,weight=2,gamma=1 -o stopped part.masked
	assert_failure 1
	run sctrain cells -q "${a[@]}" --head donor:focal,weight=2,gamma=1.5 --resume -o stopped step.masked
	assert_failure 1
	names "--resume: stopped donor class-weight none focal 1 1.5"
	run sctrain cells -q "${a[@]}" --head donor:focal,gamma=1 --resume -o stopped step.masked
	assert_failure 1
	names "--resume: stopped configuration weight: 2 1"
	sctrain cells -q "${a[@]}" --head donor:focal,weight=2,gamma=1 --resume -o stopped step.masked
	cmp all-of-it/model.safetensors stopped/model.safetensors
}

@test "sctrain cells: --accum changes the weights by rounding alone" {
	local parts
	for parts in 1 4; do
		sctrain cells -q "${THREE[@]}" --dropout 0.1 --lr 0.001 --accum $parts -o accum$parts step.masked
	done
	run $PYTHON - <<-'END'
		import os, sys
		import numpy as np
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/ref")
		import bert
		a, b = (bert.load("accum%d" % n)[1] for n in (1, 4))
		worst = max(np.abs(a[n] - b[n]).max() for n in a if "key.bias" not in n)
		assert set(a) == set(b) and worst < 1e-4, worst
		assert max(np.abs(a[n]).max() for n in a) > 0.1
	END
	assert_success
}

@test "sctrain cells: several heads, stopped and resumed, give the same weights" {
	local a=("${THREE[@]}" --dropout 0.1 --lr 0.001 --save-every 2)
	sctrain cells -q "${a[@]}" -o whole step.masked
	head -c $(($(stat -c %s step.masked) / 2)) step.masked >half.masked
	run sctrain cells -q "${a[@]}" -o cut half.masked
	assert_failure 1
	assert_not_exists cut/model.safetensors
	run sctrain cells -q --config tiny --label cell_type --head size:mse --dropout 0.1 --lr 0.001 --save-every 2 --resume -o cut step.masked
	assert_failure 1
	names "--resume: cut configuration size donor"
	sctrain cells -q "${a[@]}" --resume -o cut step.masked
	cmp whole/model.safetensors cut/model.safetensors
	cmp <(cut -f1-4,7- whole/train.tsv) <(cut -f1-4,7- cut/train.tsv)
}

@test "scpredict cells --head: each head says what float64 reads" {
	local head
	for head in cell_type donor size; do
		scpredict cells -q -M model --head $head -o $head.pred test.tok
		run ref predict model $head test.tsv $head.pred
		assert_success
	done
	run scview -H donor.pred
	assert_output --partial '"options":	"--head donor'
	run ctaprobe score --label cell_type cell_type.pred
	assert_success
	above "$(awk '$1 == "accuracy" { print $2 }' <<<"$output")" 0.6
}

@test "ctaprobe score --target: predicted numbers, as numpy and scipy score them" {
	scpredict cells -q -M model --head size -o size.pred test.tok
	ctaprobe score --target size -o size.tsv size.pred
	run $PYTHON - <<-'END'
		import os, sys
		import numpy as np
		from scipy import stats
		sys.path[:0] = [os.environ["BATS_TEST_DIRNAME"] + d for d in ("/../python", "/ref")]
		import results, corrmask.stream as scstream
		blocks = list(scstream.read("size.pred"))
		y, x = (np.concatenate([b[c] for b in blocks]).astype(float) for c in ("size", "predicted"))
		known = ~np.isnan(y)
		got, x, y = results.load(open("size.tsv")), x[known], y[known]
		want = {"pearson": stats.pearsonr(x, y)[0], "spearman": stats.spearmanr(x, y)[0], "mse": ((x - y) ** 2).mean(),
		        "r2": 1 - ((x - y) ** 2).mean() / y.var(), "cells": known.sum(), "unlabelled": (~known).sum(), "unpredicted": 0}
		assert set(got) == set(want) and want["r2"] > 0.4
		assert all(abs(got[k] - want[k]) < 1e-9 * max(1, abs(want[k])) for k in want), (got, want)
	END
	assert_success
	run --separate-stderr ctaprobe score --target size size.pred
	assert_equal "$stderr" ""
	run --separate-stderr ctaprobe score --target n_counts size.pred
	assert_success
	assert_equal "$stderr" "ctaprobe score: warning: size.pred: predictions of column 'size' are compared with column 'n_counts'"
	run ctaprobe score --label donor size.pred
	assert_failure 1
	names "size.pred: --target COL --label"
	scpredict cells -q -M model --head donor -o donor.pred test.tok
	run ctaprobe score --target size donor.pred
	assert_failure 1
	names "donor.pred: --head COL:mse"
	run ctaprobe score --target size --label donor size.pred
	assert_failure 2
	run ctaprobe score --target size --curves curves size.pred
	assert_failure 2
}

@test "numbers that are too large or too close, a head without a name, an export of numbers: what to do is said" {
	$PYTHON - <<-'END'
		import os, sys
		import numpy as np
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		for name, f in ("huge", lambda x: x * 1e300), ("close", lambda x: 2.0 ** 62 + x):
		    stream = scstream.read("test.tok")
		    blocks = [dict(b, size=f(b["size"])) for b in stream]
		    scstream.write(name + ".tok", stream.header, blocks)
	END
	run maskgen -q --strategy none --keep size -o huge.masked huge.tok
	assert_failure 1
	names "maskgen: huge.tok: 'size'"
	[ ! -e huge.masked ]
	maskgen -q --strategy none --keep size -o close.masked close.tok
	run sctrain cells -q --config tiny --head size:mse -o x close.masked
	assert_failure 1
	assert_output --regexp "column 'size' are all 4.61169e\+18, or differ too little from it \(their standard deviation is 0\): there is nothing to predict$"
	sctrain cells -q --config tiny --label donor --lr 0 -o unnamed step.masked
	run scpredict cells -M unnamed --head donor -o x.pred test.tok
	assert_failure 1
	names "--head: unnamed"
	scpredict cells -q -M model --head size -o size.pred test.tok
	run scview -O h5ad -o x.h5ad size.pred
	assert_failure 1
	names "scview: size.pred: .h5ad --into FILE"
}

@test "sctrain cells --init: a head of numbers says the same after cells with another mean and spread" {
	$PYTHON - <<-'END'
		import os, sys
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		stream = scstream.read("test.tok")
		blocks = [dict(b, size=b["size"] * 40 + 1000) for b in stream]
		scstream.write("moved.tok", stream.header, blocks)
	END
	maskgen -q --strategy none --keep cell_type,size -o moved.masked moved.tok
	sctrain cells -q --label cell_type --head size:mse --init model --lr 0 -o moved moved.masked
	sctrain cells -q --head size:mse --init model --lr 0 -o single moved.masked
	scpredict cells -q -M model --head size -o size.pred test.tok
	scpredict cells -q -M moved --head size -o moved.pred test.tok
	scpredict cells -q -M single -o single.pred test.tok
	run $PYTHON - <<-'END'
		import json, os, sys
		import numpy as np
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		scale = [next(h for h in json.load(open(n + "/config.json"))["corrmask_heads"] if h["name"] == "size")["scale"] for n in ("model", "moved")]
		assert scale[1] > 10 * scale[0], scale
		was, moved, single = (np.concatenate([b["predicted"] for b in scstream.read(n + ".pred")]) for n in ("size", "moved", "single"))
		assert np.ptp(was) > 1 and abs(was - moved).max() < 1e-2 and abs(was - single).max() < 1e-2, (was[:3], moved[:3], single[:3])
	END
	assert_success
}

@test "scpredict cells: numbers far from 0 keep their digits; one that is not finite is an error" {
	scpredict cells -q -M model --head size -o size.pred test.tok
	cp -r model far
	cp -r model huge
	$PYTHON - <<-'END'
		import json
		for name in "far", "huge":
		    c = json.load(open(name + "/config.json"))
		    head = next(h for h in c["corrmask_heads"] if h["name"] == "size")
		    if name == "far":
		        head["mean"] += 1e9
		    else:
		        head["mean"], head["scale"] = -1e308, 1.7e308
		    json.dump(c, open(name + "/config.json", "w"))
	END
	scpredict cells -q -M far --head size -o far.pred test.tok
	run $PYTHON - <<-'END'
		import os, sys
		import numpy as np
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		near, far = (np.concatenate([b["predicted"] for b in scstream.read(n + ".pred")]) for n in ("size", "far"))
		assert near.dtype == far.dtype == np.float64 and np.ptp(near) > 0.1 and abs(far - 1e9 - near).max() < 1e-6
	END
	assert_success
	run scpredict cells -q -M huge --head size -o huge.pred test.tok
	assert_failure 1
	assert_output --regexp "^scpredict cells: a prediction of 'size' is -?inf, expected a finite number"
	[ ! -e huge.pred ]
	# streams of earlier versions have float32
	$PYTHON - <<-'END'
		import os, sys
		import numpy as np
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		stream = scstream.read("size.pred")
		blocks = [dict(b, predicted=b["predicted"].astype(np.float32)) for b in stream]
		next(c for c in stream.header["columns"] if c["name"] == "predicted")["type"] = "f32"
		scstream.write("old.pred", stream.header, blocks)
	END
	run ctaprobe score --target size old.pred
	assert_success
}

@test "sctrain cells: the first head is a classifier of transformers, and the others are found by --init" {
	run cat model/config.json
	assert_output --partial 'BertForSequenceClassification'
	# the first head alone
	cp -r model plain
	$PYTHON - <<-'END'
		import json
		c = json.load(open("plain/config.json"))
		del c["corrmask_heads"]
		json.dump(c, open("plain/config.json", "w"))
	END
	scpredict cells -q -M model --head cell_type -o first.pred test.tok
	scpredict cells -q -M plain -o plain.pred test.tok
	cmp <(scview -c cell,logit,predicted first.pred) <(scview -c cell,logit,predicted plain.pred)
	# donor was the second head, and is the first now
	sctrain cells -q --label donor --head size:mse --init model --lr 0 -o swapped step.masked
	scpredict cells -q -M swapped --head donor -o swapped.pred test.tok
	scpredict cells -q -M model --head donor -o donor.pred test.tok
	cmp <(scview -c cell,logit swapped.pred) <(scview -c cell,logit donor.pred)
	# one label alone is an unnamed head: it takes the weights of the head with its classes
	sctrain cells -q --label donor --init model --lr 0 -o donor step.masked
	scpredict cells -q -M donor -o alone.pred test.tok
	cmp <(scview -c cell,logit alone.pred) <(scview -c cell,logit donor.pred)
	run scview -H alone.pred
	refute_output --partial "corrmask_heads"
	# a head that the model does not have
	run sctrain cells -q --label cell_type --label donor --head n:mse --init model --lr 0 -o x step.masked
	assert_failure 1
	names "step.masked: 'n' maskgen --strategy none --keep n"
}

@test "sctrain cells: columns that cannot be learned" {
	refused() { # refused STATUS MESSAGE OPTION...
		local expected=$1 message=$2
		shift 2
		run --separate-stderr sctrain cells -q --config tiny -o x "$@" step.masked
		assert_failure "$expected"
		assert_equal "${stderr_lines[0]}" "sctrain cells: $message"
		assert_not_exists x/model.safetensors
	}
	refused 2 "column 'donor' is to be predicted twice" --label donor --label cell_type --label donor
	refused 2 "column 'size' is to be predicted twice" --label size --head size:mse
	refused 2 "'a\"b' cannot name a head: expected 1 to 40 bytes, without control characters, quotes and backslashes" --label donor --label 'a"b'
	refused 1 "step.masked: no column 'age': make the stream with maskgen --strategy none --keep age" --label donor --head age:mse
	refused 1 "step.masked: column 'donor' is categorical, expected numbers" --head donor:mse
	refused 2 "--class-weight needs classes: --label COL, or --head COL:ce or focal" --head size:mse --class-weight balanced
	refused 2 "--head donor: expected COL:LOSS, such as cell_type:ce" --head donor
	refused 2 "--head :ce: expected COL:LOSS, such as cell_type:ce" --head :ce
	refused 2 "--head size:mae: unknown loss 'mae': expected ce, focal, hce or mse" --head size:mae
	refused 2 "--head size:mse:: unknown loss '': expected ce, focal, hce or mse" --head size:mse:
	refused 2 "column 'donor' is to be predicted twice" --head donor:ce --head donor:focal
	refused 2 "column 'donor' is to be predicted twice" --label donor --head donor:mse
	local value
	for value in 0 -1 nan inf '' 1x 0x2; do
		refused 2 "--head size:mse,weight=$value: weight=$value: expected a number above 0, at most 4294967295" --head "size:mse,weight=$value"
	done
	refused 2 "--head size:mse,from=1.5: from=1.5: expected a whole number, at most 4294967295" --head size:mse,from=1.5
	refused 2 "--head size:mse,weight=1,weight=1: weight is given twice" --head size:mse,weight=1,weight=1
	refused 2 "--head size:mse,: '': expected position=K, weight=W, gamma=G, reverse=L, mean=all, mean=known or from=STEP" --head size:mse,
	refused 2 "--head size:mse,name=x: 'name=x': expected position=K, weight=W, gamma=G, reverse=L, mean=all, mean=known or from=STEP" --head size:mse,name=x
	refused 2 "--head donor:ce,gamma=2: gamma is for the loss focal" --head donor:ce,gamma=2
	refused 2 "--head: from: expected at least one column that is learned from the first step" --head donor:ce,from=2 --head size:mse,from=1
	refused 2 "--class-weight needs classes: --label COL, or --head COL:ce or focal" --head size:mse --class-weight balanced
	refused 1 "step.masked: 14 steps: column 'size' is to be learned from step 14 on" --head donor:ce --head size:mse,from=14
	refused 1 "step.masked: no column 'age': make the stream with maskgen --strategy none --keep age" --head donor:ce --head age:mse
	refused 1 "step.masked: column 'donor' is categorical, expected numbers" --head donor:mse
	# shellcheck disable=SC2046   # seventeen options
	refused 2 "more than 16 columns to predict" $(printf -- '--head c%d:mse ' {1..17})
	maskgen -q --strategy none --keep n_counts -o few.masked <(scsample -q -n 1 train.tok)
	run sctrain cells --config tiny --head n_counts:mse -o x few.masked
	assert_failure 1
	names "few.masked: 1 'n_counts'"
	$PYTHON - <<-'END'
		import os, sys
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		for name, value in (("same", 3), ("infinite", float("inf"))):
		    stream, blocks = scstream.read("train.tok"), []
		    for b in stream:
		        b["size"][:] = value
		        blocks.append(b)
		    scstream.write(name + ".tok", stream.header, blocks)
	END
	run maskgen -q --strategy none --keep size -o x.masked infinite.tok
	assert_failure 1
	assert_output "maskgen: infinite.tok: column 'size': an infinite number"
	maskgen -q --strategy none --keep size -o same.masked same.tok
	run sctrain cells --config tiny --head size:mse -o x same.masked
	assert_failure 1
	names "same.masked: 'size' 3"
}

@test "scpredict cells: the head must be chosen, and be one" {
	run scpredict cells -M model -o x test.tok
	assert_failure 1
	names "model --head: cell_type, donor, size"
	run scpredict cells -M model --head age -o x test.tok
	assert_failure 1
	names "--head: model 'age' cell_type, donor, size"
	run scpredict cells -M model --head size --probabilities -o x test.tok
	assert_failure 1
	assert_output "scpredict cells: --probabilities: the head 'size' predicts a number"
}
