load helper

# 300 cells of 4 types to learn from, 100 to be measured on, of about 45 tokens; a pre-trained model to start from.
setup_file() {
	need_tool scsim rankenc maskgen scview scsample
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 400 --genes 60 --modules 4 --types 4 --rarest 0.15 --depth 500 --seed 3 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	rankenc -q -m vocab.tsv -o all.tok sim.counts
	scsample -q --test-fraction 0.25 --part train -o train.tok all.tok
	scsample -q --test-fraction 0.25 --part test -o test.tok all.tok
	maskgen -q --epochs 2 -u train.tok | sctrain mlm -q --config tiny --lr 0.003 -o base
	maskgen -q --strategy none --keep cell_type,donor --epochs 8 -o train.masked train.tok
	maskgen -q --strategy none --keep cell_type -o one.masked train.tok
	scview -c cell_type,token test.tok >test.tsv
	sctrain cells -q --label cell_type --init base --lr 0.003 -o model train.masked
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
}

ref() { # ref COMMAND ARGUMENT...
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" "$@"
}

same_training() {
	cmp "$1/model.safetensors" "$2/model.safetensors"
	cmp <(cut -f1-4 "$1/train.tsv") <(cut -f1-4 "$2/train.tsv")
}

@test "sctrain cells: help and misuse" {
	run sctrain cells --help
	assert_success
	assert_output --partial "--class-weight none|balanced"
	run sctrain cells -o x one.masked
	assert_failure 2
	assert_line --index 0 "sctrain cells: no column to predict: --label COL, or --head COL:LOSS"
	run sctrain cells --label cell_type one.masked
	assert_failure 2
	run sctrain mlm --label cell_type -o x one.masked
	assert_failure 2
	assert_not_exist x
}

@test "sctrain cells: learns cell types, by an independent reading of the model" {
	ref cells model test.tsv >got
	read -r loss accuracy f1 <got
	echo "held out: loss $loss, accuracy $accuracy, macro-F1 $f1"
	$PYTHON -c "assert $accuracy > 0.6 and $f1 > 0.6"        # the most frequent of the 4 is 32 %; measured 0.75 and 0.77
	$PYTHON - <<-'END'
		import json
		c = json.load(open("model/config.json"))
		assert c["architectures"] == ["BertForSequenceClassification"] and c["problem_type"] == "single_label_classification"
		assert c["id2label"] == {str(i): f"type{i + 1}" for i in range(4)} and c["label2id"] == {f"type{i + 1}": i for i in range(4)}
	END
	run ls model
	assert_output "$(printf '%s\n' README.md config.json model.safetensors train.tsv trainer_state.json vocab.tsv)"
}

@test "sctrain cells: class weights, focal loss and a missing head, against numpy on the first batch" {
	maskgen -q --strategy none --keep cell_type --batch 300 -o batch.masked train.tok
	scview -c cell_type,token train.tok >train.tsv
	# one step at rate 0: the weights after it are the initial ones
	for how in "none 0 ce" "balanced 0 ce" "none 2 focal" "balanced 0.5 focal,gamma=0.5"; do
		read -r weight gamma loss <<<"$how"
		rm -rf step
		run sctrain cells --head "cell_type:$loss" --init base --dropout 0 --class-weight "$weight" --lr 0 -o step batch.masked
		assert_success
		names "note: head cell_type new"
		run ref cells-step step train.tsv "$weight" "$gamma" "$(tail -1 step/train.tsv | cut -f2)"
		echo "$output"
		assert_success
	done
}

@test "sctrain cells: the rates of Geneformer's protocol" {
	sctrain cells -q --label cell_type --init base -o rates train.masked
	$PYTHON - <<-'END'
		rows = [l.split("\t") for l in open("rates/train.tsv").read().split("\n")[1:-1]]
		T, W = 200, 120         # 500 steps of warm-up, at most 60 %
		assert len(rows) == T
		for k, r in enumerate(rows):
		    assert abs(float(r[2]) - 1e-3 * (k / W if k < W else (T - k) / (T - W))) < 1e-12, r
	END
}

@test "sctrain cells: killed and resumed, it gives the same weights; other labels are refused" {
	head -c $(($(stat -c %s train.masked) / 2)) train.masked >half
	A=(--label cell_type --init base --lr 0.003 --save-every 20)
	run sctrain cells "${A[@]}" -o cut half
	assert_failure 1
	$PYTHON -c "import json, glob; assert all('type1' in open(f).read() for f in glob.glob('cut/*/config.json'))"
	run sctrain cells "${A[@]}" --resume --label donor -o cut train.masked
	assert_failure 1
	names "--resume: cut corrmask_heads:"
	run sctrain cells "${A[@]}" --resume --class-weight balanced -o cut train.masked
	assert_failure 1
	names "--resume: cut class-weight: none balanced"
	run sctrain cells "${A[@]}" --resume --freeze 1 -o cut train.masked
	assert_failure 1
	sctrain cells -q "${A[@]}" --resume -o cut train.masked
	same_training model cut
	sctrain cells -q "${A[@]}" -@ 3 -o three <train.masked
	same_training model three
}

@test "sctrain cells: goes on from a classifier of the same classes, not from one of others" {
	run sctrain cells --label cell_type --init model --lr 0 -o again one.masked
	assert_success
	refute_output --partial "random weights"
	cmp model/model.safetensors again/model.safetensors
	run sctrain cells --label donor --init model --lr 0 -o donor train.masked
	assert_success
	names "note: head donor new"
}

@test "sctrain cells: frozen layers and embeddings stay, the rest learns" {
	sctrain cells -q --label cell_type --init base --lr 0.003 --freeze 1 -o frozen one.masked
	PYTHONPATH="$BATS_TEST_DIRNAME/ref" $PYTHON -B - <<-'END'
		import bert
		a, b = bert.load("base")[1], bert.load("frozen")[1]
		for n in a.keys() & b.keys():
		    same = (a[n] == b[n]).all()
		    assert same == ("layer.0." in n or "embeddings" in n) or n.endswith("key.bias"), n
	END
	sctrain cells -q --label cell_type --init base --lr 0.003 --freeze 2 -o head one.masked
	PYTHONPATH="$BATS_TEST_DIRNAME/ref" $PYTHON -B -c '
import bert
a, b = bert.load("base")[1], bert.load("head")[1]
shared = a.keys() & b.keys()
assert len(shared) > 30 and all((a[n] == b[n]).all() for n in shared if "pooler" not in n)'
	run sctrain cells --label cell_type --init base --freeze 3 -o bad one.masked
	assert_failure 1
	assert_output --partial "--freeze 3: the model has 2 layers"
}

@test "sctrain cells: cells without a label are left out, and counted" {
	scview -O h5ad sim.counts -o sim.h5ad
	$PYTHON - <<-'END'
		import anndata, numpy as np
		a = anndata.read_h5ad("sim.h5ad")
		t = a.obs["cell_type"].astype(object).to_numpy().copy()
		t[::4] = np.nan
		a.obs["cell_type"] = t
		a.obs["cell_type"] = a.obs["cell_type"].astype("category")
		a.obs["one"] = np.where(np.arange(a.n_obs) % 2, "A", "nan")
		a.obs["one"] = a.obs["one"].replace("nan", np.nan).astype("category")
		a.write_h5ad("gaps.h5ad")
	END
	h5tok -q gaps.h5ad | rankenc -q -m vocab.tsv -o gaps.tok
	maskgen -q --strategy none --keep cell_type,one,barcode,n_counts -o gaps.masked gaps.tok
	run sctrain cells -v --label cell_type --init base -o gaps gaps.masked
	assert_success
	names "note: 100 400 'cell_type'"
	assert_output --partial "300 labels"
	scsample -q --where 'cell_type!=NA' gaps.tok | scview -c cell_type,token >gaps.tsv
	assert_equal "$(wc -l <gaps.tsv)" 301
	run sctrain cells --label one --init base -o bad gaps.masked
	assert_failure 1
	names "'one' 'A'"
	run sctrain cells --label barcode --init base -o bad gaps.masked
	assert_failure 1
	names "column 'barcode' 400"
	run sctrain cells --label donor --init base -o bad gaps.masked
	assert_failure 1
	names "'donor' maskgen --strategy none --keep donor"
	scsample -q --where cell_type=NA gaps.tok | maskgen -q --strategy none --keep cell_type -o nolabel.masked
	run sctrain cells --label cell_type --init base -o bad nolabel.masked
	assert_failure 1
	names "'cell_type'"
	assert_not_exist bad/model.safetensors
}

@test "sctrain cells: a stream without counts of its classes is refused: its categories can be those of other cells" {
	maskgen -q --keep cell_type -o masks.masked train.tok          # masked for mlm, with a categorical column
	run sctrain cells --label cell_type --init base -o nocount masks.masked
	assert_failure 1
	names "'cell_type' maskgen --count-kept --keep cell_type"
	maskgen -q --keep cell_type --count-kept -o masks.masked train.tok
	sctrain cells -q --label cell_type --init base -o nocount masks.masked
	assert_equal "$(grep -c '"type[1-4]":' nocount/config.json)" 4
	# a name with a tab is shown
	scview -q -O h5ad sim.counts -o tab.h5ad
	$PYTHON -W ignore -c 'import anndata; a = anndata.read_h5ad("tab.h5ad"); a.obs["cell_type"] = a.obs["cell_type"].cat.rename_categories({"type2": "a\tb"}); a.write_h5ad("tab.h5ad")'
	h5tok -q --rank vocab.tsv tab.h5ad | maskgen -q --strategy none --keep cell_type -o tab.masked -
	run -1 sctrain cells --label cell_type --init base -o never tab.masked
	names "'cell_type' 'a\tb' tab"
}

@test "sctrain cells --eval: loss, accuracy and macro-F1 of an independent reading and scikit-learn; the best weights are kept" {
	maskgen -q --strategy none --keep cell_type --seed 3 -o held.masked test.tok
	run sctrain cells --head cell_type:focal,gamma=1 --init base --lr 0.003 --eval held.masked --best macro-f1 --class-weight balanced -o best train.masked
	assert_success
	best=$(awk -F'\t' 'NR > 1 && $9 != "NA"' best/train.tsv | sort -t"$(printf '\t')" -k9,9gr -k1,1n | head -1 | cut -f1)
	assert_output --regexp "best validation macro-f1, [0-9.]+, after step $best of 200: these weights are kept"
	ref cells best test.tsv >got
	$PYTHON - "$(awk -F'\t' -v s="$best" '$1 == s { print $7, $8, $9 }' best/train.tsv)" <<-'END'
		import sys
		for a, b in zip(map(float, sys.argv[1].split()), map(float, open("got").read().split())):
		    assert abs(a - b) < 1e-5 * b, (a, b)
	END
	# classes the training does not know are left out
	scsample -q --where cell_type!=type4 train.tok | maskgen -q --strategy none --keep cell_type -o three.masked
	sctrain cells -q --label cell_type --init base --lr 0.003 --eval held.masked -o three3 three.masked
	ref cells three3 test.tsv >got
	$PYTHON - "$(tail -1 three3/train.tsv | cut -f7-9)" <<-'END'
		import sys
		for a, b in zip(map(float, sys.argv[1].split()), map(float, open("got").read().split())):
		    assert abs(a - b) < 1e-5 * b, (a, b)
	END
	maskgen -q --strategy none -o nolabel.masked test.tok
	run sctrain cells --label cell_type --init base --eval nolabel.masked -o bad train.masked
	assert_failure 1
	assert_output --partial "--eval: nolabel.masked: no column 'cell_type'"
}

@test "make plot-train draws train.tsv, with and without held-out columns" {
	cd "$BATS_TEST_DIRNAME/.."
	for m in base model; do
		run env -u MAKEFLAGS -u MAKELEVEL make -s plot-train "MODEL=$BATS_FILE_TMPDIR/$m"
		assert_success
		assert_output "$BATS_FILE_TMPDIR/$m/train.svg"
		grep -q "learning rate" "$BATS_FILE_TMPDIR/$m/train.svg"
	done
	# each curve has the colour of its entry in the legend, and one entry
	for m in plain f1; do
		mkdir "$BATS_FILE_TMPDIR/$m"
		awk -v OFS='\t' -v f1=$m 'BEGIN { print "step", "loss", "lr", "grad_norm", "eval_loss", "eval_accuracy" (f1 == "f1" ? "\teval_macro_f1" : "")
			for (i = 1; i < 9; i++) print i, 9 - i, 0.1 / i, 1, 10 - i, i / 10 (f1 == "f1" ? "\t" i / 20 : "") }' > "$BATS_FILE_TMPDIR/$m/train.tsv"
		make -s plot-train "MODEL=$BATS_FILE_TMPDIR/$m"
		$PYTHON - "$BATS_FILE_TMPDIR/$m/train.svg" $m <<-'END'
			import re, sys
			panels = re.split("<svg[^>]*role=.img", open(sys.argv[1]).read())[2:]
			names = [re.findall(r"class=.line m-(\w+) dash.[^>]*/>(?:<circle[^>]*/>)?<text[^>]*>([^<]*)", p) for p in panels]
			accuracy, f1 = ("corrmask", "validation accuracy"), ("expression", "validation macro F1")
			assert names == [[("random", "training, running mean"), ("corrmask", "validation")], [accuracy] + [f1] * (sys.argv[2] == "f1"), []], names
			for p, some in zip(panels, names):
			    inside = p[p.index("<svg"):]
			    assert all(f"line m-{look} dash0" in inside for look, _ in some) and inside.count("line m-") == max(len(some), 1), p
		END
	done
	run env -u MAKEFLAGS -u MAKELEVEL make -s plot-train MODEL=/nonexistent
	assert_failure
}

@test "sctrain --init: files in the shapes that Geneformer's and transformers' come in give the same training" {
	$PYTHON "$BATS_TEST_DIRNAME/ref/variants.py" base .
	sctrain cells -q --label cell_type --init base --lr 0 -o same one.masked
	for v in old bare nometadata; do
		run sctrain cells --label cell_type --init "$v" --lr 0 -o "from-$v" one.masked
		assert_success
		cmp same/model.safetensors "from-$v/model.safetensors"
	done
	for v in f16 bf16 mixed; do     # rounded in the file, and exactly that
		sctrain cells -q --label cell_type --init "$v" --lr 0 -o "from-$v" one.masked
		PYTHONPATH="$BATS_TEST_DIRNAME/ref" $PYTHON -B - "$v" <<-'END'
			import sys, bert
			a, b = bert.load(sys.argv[1])[1], bert.load("from-" + sys.argv[1])[1]
			same = [n for n in a if n.startswith("bert.")]
			assert len(same) == 5 + 2 * 16 and all((a[n] == b[n]).all() for n in same)
		END
	done
	# the head is kept where the task has it: mlm from the old file gives the same loss as from ours
	maskgen -q --seed 9 -o m.masked train.tok
	sctrain mlm -q --init base --lr 0 -o mlm1 m.masked
	sctrain mlm -q --init old --lr 0 -o mlm2 m.masked
	cmp mlm1/model.safetensors mlm2/model.safetensors
	run sctrain cells --label cell_type --init wide --lr 0 -o bad one.masked
	assert_failure 1
	assert_output --regexp "wide/model.safetensors: tensor 'bert.embeddings.word_embeddings.weight' has shape \[[0-9]+, 64\], the configuration asks for \[[0-9]+, 64\]"
	run sctrain cells --label cell_type --init short --lr 0 -o bad one.masked
	assert_failure 1
	assert_output --partial "short/model.safetensors: no tensor 'bert.encoder.layer.1.output.dense.weight' (expected shape [64, 128])"
	run sctrain cells --label cell_type --init int --lr 0 -o bad one.masked
	assert_failure 1
	assert_output --partial "int/model.safetensors"
	mkdir pickled
	cp base/config.json pickled
	echo >pickled/pytorch_model.bin
	run sctrain cells --label cell_type --init pickled --lr 0 -o bad one.masked
	assert_failure 1
	names "pickled/pytorch_model.bin pickled/model.safetensors: transformers"
	assert_not_exist bad/model.safetensors
}

@test "sctrain eval: a model of --label alone, by the column that it was trained with; its measures are those of --eval" {
	sctrain cells -q --label cell_type --config tiny --lr 0.003 --save-every 20 --eval train.masked --best last -o labelled train.masked
	sctrain eval -q -M labelled -o scores train.masked
	$PYTHON - <<-'END'
		import csv
		last = list(csv.DictReader(open("labelled/train.tsv"), delimiter="\t"))[-1]
		got = dict(line.rstrip("\n").split("\t") for line in open("scores"))
		for name in ("loss", "accuracy", "macro_f1"):
		    assert abs(float(got[name + ".cell_type"]) - float(last["eval_" + name])) < 1e-6, (name, got, last)
	END
	sctrain eval -q -M "$(ls -d labelled/checkpoint-* | head -n 1)" -o other train.masked
	grep -q '^accuracy.cell_type' other
	maskgen -q --strategy none --keep donor -o donors.masked "$(ls *.tok | head -n 1)"
	run -1 sctrain eval -M labelled donors.masked
	names "labelled cell_type --keep"
	run -1 sctrain eval -M labelled --cell-scores x.tsv train.masked
	names "--cell-scores labelled"
	assert_not_exist x.tsv
	rm labelled/trainer_state.json
	run -1 sctrain eval -M labelled train.masked
	names "labelled trainer_state.json scpredict"
}
