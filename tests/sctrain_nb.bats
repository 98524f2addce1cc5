# sctrain nb, and scembed with its models.
load helper

# 300 cells of 4 types and 4 donors to learn from, in batches of 40 (the last of an epoch: 20), and 100 other cells.
setup_file() {
	need_tool scsim maskgen scview scsample scembed sctrain
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 400 --genes 200 --modules 10 --types 4 --rarest 0.15 --depth 800 --seed 3 -o all.counts
	scsample -q --test-fraction 0.25 --part train -o train.counts all.counts
	scsample -q --test-fraction 0.25 --part test -o test.counts all.counts
	masks -o train.mc train.counts
	maskgen -q --strategy columns --rate 0.3 --batch 50 --keep donor -o test.mc test.counts
	scview -c gene,count,masked,donor test.mc >test.tsv
	sctrain nb -q -@ 2 $NB --eval test.mc --best last --save-every 7 -o model train.mc
}

masks() {
	maskgen -q --strategy columns --rate-uniform 0.1:0.5 --epochs 12 --batch 40 --keep donor,cell_type "$@"
}

NB="-c mlp-nb-tiny --batch-key donor"

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
}

ref() { # ref COMMAND ARGUMENT...
	$PYTHON "$BATS_TEST_DIRNAME/ref/nb.py" "$@"
}

same_training() {
	cmp "$1/model.safetensors" "$2/model.safetensors"
	cmp <(cut -f1-4 "$1/train.tsv") <(cut -f1-4 "$2/train.tsv")
}

@test "sctrain nb: masks of one gene, which maskgen --rate 0 makes, are trained on" {
	maskgen -q --strategy columns --rate 0 --batch 100 -o single.mc train.counts
	sctrain nb -q -c mlp-nb-tiny -o single single.mc
	assert_file_exist single/model.safetensors
}

@test "sctrain nb: help and misuse" {
	run sctrain nb --help
	assert_success
	assert_output --partial "--batch-key COL"
	run sctrain nb train.mc
	assert_failure 2
	assert_line --index 0 "sctrain nb: no model directory: -o MODEL"
	run sctrain nb --best accuracy --eval test.mc -o x train.mc
	assert_failure 2
	names "--best accuracy loss last"
	run sctrain nb --dropout 0.1 -o x train.mc
	assert_failure 1
	assert_output --partial "--dropout: architecture mlp_nb has none"
	run sctrain nb -c tiny -o x train.mc
	assert_failure 1
	names "head nb bert"
	run sctrain mlm -c mlp-nb -o x train.mc
	assert_failure 1
	assert_output --partial "a masked-counts stream, expected masked"
	run sctrain nb -o x test.counts
	assert_failure 1
	assert_output --partial "a counts stream, expected masked-counts"
}

@test "sctrain nb: the loss of held-out cells is that of numpy on the saved model, and falls" {
	want=$(ref loss model test.tsv)
	got=$(tail -n 1 model/train.tsv | cut -f7)
	first=$(awk -F'\t' 'NR > 1 && $7 != "NA" { print $7; exit }' model/train.tsv)
	echo "held out: $got, numpy $want, after one epoch $first"
	$PYTHON -c "assert abs($got - $want) < 1e-5 * $want and $got < 0.95 * $first"   # measured 4e-8; 2.18 of 2.75
	$PYTHON - <<-'END'
		import json
		c = json.load(open("model/config.json"))
		assert c["architectures"] == ["MlpNbForMaskedCounts"] and c["model_type"] == "mlp_nb"
		assert c["hidden_size"] == 32 and c["intermediate_size"] == 64 and c["num_groups"] == 4 and c["vocab_size"] == 200
	END
	assert_equal "$(cat model/groups.tsv)" "$(printf '%s\n' donor donor1 donor2 donor3 donor4)"
}

@test "sctrain nb: any number of threads, and a resumed training, give the same bytes" {
	sctrain nb -q $NB --eval test.mc --best last --save-every 7 -o one train.mc
	same_training model one
	# the stream breaks off in the middle of an epoch: the finished steps are saved
	head -c $(($(stat -c %s train.mc) / 2)) train.mc >cut.mc
	run sctrain nb -q $NB --eval test.mc --best last --save-every 7 -o cut - <cut.mc
	assert_failure 1
	assert_not_exist cut/model.safetensors
	assert_exist cut/checkpoint-*/groups.tsv
	run sctrain nb -q -c mlp-nb --batch-key donor --eval test.mc --best last --resume -o cut train.mc
	assert_failure 1
	names "--resume: cut hidden_size: 32 512"
	run sctrain nb -q -c mlp-nb-tiny --batch-key cell_type --eval test.mc --best last --resume -o cut train.mc
	assert_failure 1
	masks --resume cut train.counts | sctrain nb -q $NB --eval test.mc --best last --save-every 7 --resume -o cut
	same_training model cut
}

@test "sctrain nb: parts of a batch have their own statistics, and resume too" {
	sctrain nb -q $NB --accum 2 -o parts train.mc
	run cmp model/model.safetensors parts/model.safetensors
	assert_failure 1
	run sctrain nb -q $NB --accum 20 -o x train.mc
	assert_failure 1
	names "batch single cell"
	assert_output --partial "or --accum"
}

@test "sctrain nb --curriculum: any number of threads, and a resumed training, give the same bytes; the model is used as any other" {
	C=(-c mlp-nb-tiny --batch-key donor --curriculum easy-to-hard --save-every 7)
	listed() { maskgen -q --strategy columns --rate-choice 0.1,0.3,0.5 --epochs 6 --batch 40 --keep donor "$@" train.counts; }
	listed -o listed.mc
	sctrain nb -q -@ 2 "${C[@]}" --eval test.mc --best last -o learned listed.mc
	sctrain nb -q "${C[@]}" --eval test.mc --best last -o learned1 listed.mc
	same_training learned learned1
	head -c $(($(stat -c %s listed.mc) / 2)) listed.mc >cut.mc
	run sctrain nb -q "${C[@]}" --eval test.mc --best last -o learned2 - <cut.mc
	assert_failure 1
	run sctrain nb -q "${C[@]/easy-to-hard/easy}" --eval test.mc --best last --resume -o learned2 listed.mc
	assert_failure 1
	names '--resume: learned2 curriculum: "easy-to-hard" "easy"'
	listed --resume learned2 | sctrain nb -q "${C[@]}" --eval test.mc --best last --resume -o learned2
	same_training learned learned2
	# validation has no weights: its loss is numpy's
	want=$(ref loss learned test.tsv)
	got=$(tail -n 1 learned/train.tsv | cut -f7)
	$PYTHON -c "assert abs($got - $want) < 1e-5 * $want"
	scembed -q -M learned -o test.emb test.counts
	scview -c x test.emb >emb.tsv
	scview -c gene,count,donor test.counts >plain.tsv
	ref latent learned plain.tsv emb.tsv
	# its weights start another training, with and without a curriculum
	sctrain nb -q --init learned --batch-key donor -o more train.mc
	sctrain nb -q --init learned --batch-key donor --curriculum easy -o more2 listed.mc
	run sctrain nb --init model --batch-key donor --curriculum easy -o more3 listed.mc
	assert_success
	assert_output --partial "has no 'curriculum.hidden1.weight'"
}

@test "sctrain nb --curriculum: easy weights lower the trained loss, hard ones raise it, and a ratio must be of a list" {
	maskgen -q --strategy columns --rate 0.3 --epochs 12 --batch 40 -o fixed.mc train.counts
	for c in easy easy-to-hard; do
		sctrain nb -q -c mlp-nb-tiny --curriculum $c -o "$c" fixed.mc
	done
	sctrain nb -q -c mlp-nb-tiny -o without fixed.mc
	$PYTHON - <<-'END'
		import csv
		loss = {d: [float(r["loss"]) for r in csv.DictReader(open(f"{d}/train.tsv"), delimiter="\t")] for d in ("easy", "easy-to-hard", "without")}
		mean = {d: sum(x[-32:]) / 32 for d, x in loss.items()}
		print(mean)
		assert mean["easy"] < 0.8 * mean["without"] < mean["easy-to-hard"], mean
		assert loss["easy"][:12] == loss["easy-to-hard"][:12] != loss["without"][:12]   # the slope is 1 in the first eighth of the steps
		assert loss["easy"][20] != loss["easy-to-hard"][20]
	END
	run -0 --separate-stderr sctrain nb -c mlp-nb-tiny --lr 5 -o risen fixed.mc
	assert_regex "$stderr" 'the loss rose'
	run -0 --separate-stderr sctrain nb -c mlp-nb-tiny --lr 5 --curriculum easy-to-hard -o harder fixed.mc
	refute_regex "$stderr" 'the loss rose' # its genes get harder, too
	run sctrain nb -c mlp-nb-tiny --curriculum easy -o bad train.mc
	assert_failure 1
	names "--curriculum: train.mc maskgen --rate --rate-choice"
	run sctrain nb -c mlp-nb-tiny --curriculum hard -o bad2 fixed.mc
	assert_failure 2
	assert_not_exist bad2
}

@test "sctrain eval: the loss of a model of counts is that of its validation and of numpy" {
	sctrain eval -M model test.mc >e1
	sctrain eval -M model -@ 3 -o e3 - <test.mc
	cmp e1 e3
	assert_equal "$(cut -f1 e1 | tr '\n' ' ')" "metric loss masked counts cells "
	loss=$(awk '$1 == "loss" { print $2 }' e1)
	want=$(ref loss model test.tsv)
	assert_equal "$(printf '%.9g' "$loss")" "$(tail -n 1 model/train.tsv | cut -f7)"
	$PYTHON - "$loss" "$want" <<-'END'
		import csv, sys
		loss, want = map(float, sys.argv[1:])
		assert abs(loss - want) < 1e-5 * want
		rows = list(csv.DictReader(open("test.tsv"), delimiter="\t"))
		got = dict(l.split("\t") for l in open("e1").read().splitlines())
		assert int(got["cells"]) == len(rows) and int(got["masked"]) == sum(len(r["masked"].split()) for r in rows)
		assert int(got["counts"]) == sum(len(r["gene"].split()) for r in rows)
	END
	# the groups of the cells matter, and the user learns when they are not there
	maskgen -q --strategy columns --rate 0.3 --batch 50 -o plain.mc test.counts
	run sctrain eval -M model plain.mc
	assert_success
	names "plain.mc: 100 'donor'"
	refute_line "loss	$loss"
	run sctrain eval -M model --cell-scores rows.tsv test.mc
	assert_failure 2
	names "--cell-scores tokens"
	assert_not_exist rows.tsv
	run sctrain eval -M model test.counts
	assert_failure 1
	assert_output --partial "a counts stream, expected masked"
	sctrain mlm -q --config tiny -o bert <(rankenc -q --fit train.counts -o v.tsv && rankenc -q -m v.tsv train.counts | maskgen -q)
	run sctrain eval -M bert test.mc
	assert_failure 1
	names "head nb bert"
	head -c 3000 test.mc >cut.mc
	run sctrain eval -M model -o bad.tsv cut.mc
	assert_failure 1
	assert_not_exist bad.tsv
}

@test "sctrain nb: two ranks give the same bytes twice, and one model" {
	case $(sctrain --version) in *"without MPI"*) skip "sctrain is built without MPI" ;; esac
	command -v mpirun >/dev/null || skip "no mpirun on this machine"
	for out in two again; do
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 5 120 mpirun --oversubscribe --bind-to none -n 2 bash -c \
			"set -o pipefail; maskgen -q --strategy columns --rate 0.3 --epochs 4 --batch 20 --shard auto --keep donor train.counts | sctrain nb -q --mpi $NB --save-every 5 -o $out"
	done
	same_training two again
	# one rank with the whole batch normalises by twice the cells: near, not equal; the buffers of the ranks are one mean
	maskgen -q --strategy columns --rate 0.3 --epochs 4 --batch 40 --keep donor train.counts | sctrain nb -q $NB -o alone
	$PYTHON - <<-'END'
		import csv
		a, b = ([float(r["loss"]) for r in csv.DictReader(open(f"{d}/train.tsv"), delimiter="\t")] for d in ("two", "alone"))
		assert len(a) == len(b) == 32 and 0 < max(abs(x - y) for x, y in zip(a, b)) < 0.25, (a, b)
	END
	# and with a curriculum, whose gradients are summed too
	for out in three four; do
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 5 120 mpirun --oversubscribe --bind-to none -n 2 bash -c \
			"set -o pipefail; maskgen -q --strategy columns --rate-choice 0.2,0.4 --epochs 4 --batch 20 --shard auto --keep donor train.counts | sctrain nb -q --mpi --curriculum easy $NB --save-every 5 -o $out"
	done
	same_training three four
}

@test "scembed: the latent of counts is that of numpy" {
	scembed -q -M model -o test.emb test.counts
	scview -c x test.emb >emb.tsv
	scview -c gene,count,donor test.counts >plain.tsv
	ref latent model plain.tsv emb.tsv
	scembed -q -M model --emb-layer 0 -o same.emb test.counts
	cmp same.emb test.emb # said or not, it is the same layer
	run scembed -M model --pool mean -o y test.counts
	assert_failure 1
	names "--pool: model tokens"
	run scembed -M model --emb-layer -1 -o y test.counts
	assert_failure 1
	assert_not_exist y
	# of masked counts: without the masked genes
	scembed -q -M model -o masked.emb test.mc
	scview -c x masked.emb >emb.tsv
	ref latent model test.tsv emb.tsv
}

@test "scembed: a cell of an unknown donor has no covariate" {
	scsim -q --cells 30 --genes 200 --modules 10 --donors 6 --depth 800 --seed 5 -o six.counts
	run scembed -M model -o six.emb six.counts
	assert_success
	names "30 'donor'"
	scview -c x six.emb >emb.tsv
	scview -c gene,count,donor six.counts >plain.tsv
	ref latent model plain.tsv emb.tsv
}

@test "scpredict expression: expected counts of masked genes are those of numpy" {
	scpredict expression -q -M model -o test.rec test.mc
	scview -c library,gene,count,expected test.rec >rec.tsv
	ref expected model test.tsv rec.tsv
	assert_equal "$(scview -H test.rec | grep -c '"prediction"')" 1
}

@test "--recalibrate: scembed, scpredict expression and sctrain eval normalise by the statistics that numpy has of the cells under each mask" {
	scview -c gene,count,donor train.counts >train.tsv
	scembed -q -M model --recalibrate train.counts -o fit.emb test.counts
	scview -c x fit.emb >emb.tsv
	scview -c gene,count,donor test.counts >plain.tsv
	ref latent model plain.tsv emb.tsv train.tsv
	run ref latent model plain.tsv emb.tsv
	assert_failure # the running averages are others
	scembed -q -@ 3 -M model --recalibrate train.counts test.counts | scview -c x | cmp - emb.tsv
	scembed -q -M model --recalibrate train.counts test.counts | scview -c x >emb.tsv
	ref latent model plain.tsv emb.tsv train.tsv
	# two masks
	assert_equal "$(cut -f3 test.tsv | sed 1d | sort -u | wc -l)" 2
	scpredict expression -q -M model --recalibrate train.counts -o fit.rec test.mc
	scview -c library,gene,count,expected fit.rec >rec.tsv
	ref expected model test.tsv rec.tsv train.tsv
	got=$(sctrain eval -q -M model --recalibrate train.counts test.mc | awk '$1 == "loss" { print $2 }')
	want=$(ref loss model test.tsv train.tsv)
	$PYTHON -c "assert abs($got - $want) < 1e-5 * $want"
	# the model itself stays as it was
	ref loss model test.tsv | diff - <(ref loss model test.tsv)
	scview -H fit.emb | grep -q -- --recalibrate
}

@test "--recalibrate: masks that hide more than usual cost less" {
	maskgen -q --strategy columns --rate 0.8 --batch 100 --keep donor -o most.mc test.counts
	loss() { sctrain eval -q -M model "$@" most.mc | awk '$1 == "loss" { print $2 }'; }
	running=$(loss)
	fit=$(loss --recalibrate train.counts)
	$PYTHON -c "assert $fit < $running"
}

@test "a cell without counts does not stop a file" {
	scsample -q --thin .001 --seed 4 -o thin.counts test.counts
	scview -c gene,count,donor thin.counts >thin.tsv
	awk -F '\t' 'NR > 1 && $1 == "" { n++ } END { exit !n }' thin.tsv
	run scembed -M model -o thin.emb thin.counts
	assert_success
	assert_output --partial "cells have no counts: their vectors are NaN"
	scview -c x thin.emb >emb.tsv
	ref latent model thin.tsv emb.tsv
	maskgen -q --strategy columns --rate 0.3 --keep donor -o thin.mc thin.counts
	scview -c gene,count,masked,donor thin.mc >thin.tsv
	scpredict expression -q -M model --recalibrate train.counts thin.mc | scview -c library,gene,count,expected >rec.tsv
	scview -c gene,count,donor train.counts >train.tsv
	ref expected model thin.tsv rec.tsv train.tsv
	sctrain eval -q -M model thin.mc | awk '$1 == "loss" && $2 > 0 { n++ } END { exit !n }'
	sctrain nb -q $NB -o thin thin.mc
	assert_exist thin/model.safetensors
}

@test "sctrain nb: bad input" {
	fails() { # fails MESSAGE OPTION...
		run sctrain nb -c mlp-nb-tiny -o bad "${@:2}"
		assert_failure 1
		assert_output --partial "$1"
		assert_not_exist bad/model.safetensors
		rm -rf bad
	}
	scsample -q --where donor=donor1 -o lone.counts train.counts
	maskgen -q --strategy columns --keep donor -o lone.mc lone.counts
	fails "all cells are of 'donor1': there is nothing to tell apart" --batch-key donor lone.mc
	fails "step 2: the loss is " --lr 1000 --weight-decay 1000 train.mc
	maskgen -q --strategy columns --rate 0.3 --batch 20 -o fixed.mc train.counts
	fails "step 2: the loss is " --curriculum easy --lr 1000 --weight-decay 1000 fixed.mc
	# what only another program can make
	$PYTHON -B - "$BATS_TEST_DIRNAME/../python" <<-'END'
		import copy, sys
		sys.path.insert(0, sys.argv[1])
		import numpy as np
		import corrmask.stream as scstream
		def change(name, edit):
		    s = scstream.read("test.mc")
		    header, blocks = copy.deepcopy(s.header), [dict(b) for b in s]
		    edit(header, blocks[1])
		    scstream.write(name, header, blocks)
		def part(b, column, to):
		    offsets, values = b[column]
		    values = values.copy()
		    values[offsets[3]:offsets[4]] = to(values[offsets[3]:offsets[4]])
		    b[column] = (offsets, values)
		change("order.mc", lambda h, b: part(b, "gene", lambda x: x[::-1]))
		change("twice.mc", lambda h, b: part(b, "masked", lambda x: x[:1].repeat(len(x))))
		s = scstream.read("test.mc")
		header, blocks = copy.deepcopy(s.header), [dict(b) for b in s]
		for c in header["columns"]:
		    if c["name"] == "count":
		        c["type"] = "f32"
		for b in blocks:
		    b["count"] = (b["count"][0], b["count"][1].astype("f4") + np.float32(0.5))
		scstream.write("half.mc", header, blocks)
		s = scstream.read("test.counts")
		header, blocks = copy.deepcopy(s.header), [dict(b) for b in s]
		header["columns"] = [c for c in header["columns"] if c["name"] != "donor"]
		for b in blocks:
		    del b["donor"]
		scstream.write("none.counts", header, blocks)
	END
	fails "expected increasing order" order.mc
	fails "out of order" twice.mc
	fails "column 'count' is ragged f32, expected ragged u32" half.mc
	run scembed -M model -o none.emb none.counts
	assert_success
	names "100 'donor'"
	cp -r model spoiled
	printf 'donor\ndonor1\ndonor1\n' >spoiled/groups.tsv
	run scembed -M spoiled -o x test.counts
	assert_failure 1
	assert_output --partial "spoiled/groups.tsv: line 3: group 'donor1' occurs twice"
}

@test "sctrain nb --init: weights by name, with the groups of that model" {
	sctrain nb -q --batch-key donor --init model --lr 0 --weight-decay 0 -o same train.mc
	$PYTHON - <<-'END'
		import json
		def read(d):
		    raw = open(f"{d}/model.safetensors", "rb").read()
		    n = int.from_bytes(raw[:8], "little")
		    return {k: raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in json.loads(raw[8:8 + n]).items() if k != "__metadata__"}
		a, b = read("model"), read("same")
		assert set(a) == set(b) and all(a[k] == b[k] for k in a if "running" not in k) and any(a[k] != b[k] for k in a)
	END
	run sctrain nb --init model -o bad train.mc
	assert_failure 1
	names "--init: model --batch-key COL"
	run sctrain nb --init model --batch-key cell_type -o bad train.mc
	assert_failure 1
	names "--init: model --batch-key donor cell_type"
}
