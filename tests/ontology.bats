# Labels that are terms of an ontology: sctrain --head COL:hce, scpredict cells --decode and --node, ctaprobe score --ontology.
load helper

# 500 cells of four types, whose labels are ids, names and exact synonyms of data/blood-cells.obo, some of them terms above these, some no terms
setup_file() {
	need_tool scsim rankenc maskgen scview scsample sctrain scembed
	cd "$BATS_FILE_TMPDIR"
	export BATS_TEST_DIRNAME # for Python
	cp "$BATS_TEST_DIRNAME/../data/blood-cells.obo" cl.obo
	scsim -q --cells 500 --genes 60 --modules 4 --types 4 --rarest 0.2 --depth 500 --donors 4 --seed 3 -o sim.counts
	$PYTHON - <<-'END'
		import os, sys
		import numpy as np
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		stream, blocks = scstream.read("sim.counts"), []
		col = next(c for c in stream.header["columns"] if c["name"] == "cell_type")
		old = list(col["categories"])
		for b in stream:
		    i = b["cell"].astype(int)
		    t = np.array([int(old[c][4:]) - 1 for c in b["cell_type"].codes])
		    t = np.where((t < 2) & (i % 4 == 1), 4, t)
		    for k, (every, at) in enumerate(((10, 2), (20, 3), (40, 4))):
		        t = np.where(i % every == at, 5 + k, t)
		    b["cell_type"].codes[:] = np.where(i % 50 == 7, -1, t)
		    blocks.append(b)
		col["categories"] = ["CL:0000624", "CD8-positive, alpha-beta T cell", "b LYMPHOCYTE", "CL:0000860", "T cell", "leukocyte", "unknown", "nonsense"]
		scstream.write("all.counts", stream.header, blocks)
	END
	rankenc -q --fit -o vocab.tsv all.counts
	rankenc -q -m vocab.tsv -o all.tok all.counts
	scsample -q --test-fraction 0.25 --part train -o train.tok all.tok
	scsample -q --test-fraction 0.25 --part test -o test.tok all.tok
	maskgen -q --strategy none --keep cell_type,donor --epochs 10 -o train.masked train.tok
	maskgen -q --strategy none --keep cell_type,donor -o test.masked test.tok
	maskgen -q --strategy none --keep cell_type,donor,n_counts -b 60 -o step.masked train.tok
	sctrain cells -q --config tiny --head cell_type:hce --ontology cl.obo --eval test.masked --lr 0.003 -o model train.masked
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export BATS_TEST_DIRNAME
	export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
	HCE=(--config tiny --head cell_type:hce --ontology cl.obo)
}

ref() { # ref COMMAND ARGUMENT...
	$PYTHON "$BATS_TEST_DIRNAME/ref/ontology.py" "$@"
}

@test "sctrain --head COL:hce: it learns leaves, also from labels above them; what is no term is listed" {
	run ref pruned cl.obo model cell_type
	assert_success
	assert_output "4 leaves, 29 terms"
	run awk -F'\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "eval_accuracy") c = i; next } c && $c + 0 == $c && $c > best { best = $c } END { print (best > 0.7) }' model/train.tsv
	assert_output 1 # of four types; the most frequent label is 24 % of the cells
	run sctrain cells "${HCE[@]}" --lr 0 -o listed step.masked
	assert_success
	names "warning: step.masked cell_type 1 7 9 352 cl.obo nonsense"
	names "note: step.masked cell_type 23 375 unknown 15"
	names "step.masked cell_type 'T cell' leukocyte"
}

@test "sctrain --head: hce, position and reverse are those of float64: loss, gradient of every tensor" {
	local mean own other
	while read -r mean own other; do
		rm -rf st
		sctrain cells -q --config tiny --head "cell_type:hce$own" --head "donor:ce,weight=0.3$other" --ontology cl.obo \
			--dropout 0 --lr 0 --clip 0 --save-every 1 --keep-checkpoints 9 --accum 3 -o st step.masked
		run $PYTHON "$BATS_TEST_DIRNAME/ref/heads.py" step st step.masked cl.obo "$mean"
		assert_success
		assert_output --partial "gradients of 43 tensors"
	done <<-'END'
		all
		known ,mean=known,position=0 ,reverse=0.5
		all ,mean=all,reverse=2 ,position=0,reverse=0.25
	END
}

@test "scpredict cells --decode, --node: leaves, the way down, probabilities of any term, as plain Python has them" {
	local how
	for how in leaf greedy; do
		scpredict cells -q -M model --head cell_type --decode $how --node "T cell,CL:0000738" --node "CD8-positive, alpha-beta T cell" -o $how.pred test.tok
		run ref decode cl.obo $how.pred $how CL:0000084 CL:0000738 CL:0000625
		assert_success
		assert_output "125 cells"
	done
	# ids and names of the predicted terms reach obs
	scpredict cells -q -M model -o greedy.pred test.tok
	scembed -q -M model test.tok | scview -q -O h5ad - -o named.h5ad
	scview -q -O h5ad --into named.h5ad --key t greedy.pred
	run $PYTHON -c 'import anndata, sys; o = anndata.read_h5ad("named.h5ad").obs; print(*sorted(set(zip(o["t_predicted"], o["t_predicted_name"]))), sep="\n")'
	assert_success
	assert_line "('CL:0000236', 'B cell')"
	scpredict cells -q -M model -o one.pred test.tok
	cmp <(scview -c cell,predicted,lineage one.pred) <(scview -c cell,predicted,lineage leaf.pred)
}

@test "scpredict cells --decode greedy: it differs from the likeliest leaf where the children of a term share its probability" {
	# 4 leaves: two T cells with 30 % each, and a B cell with 40 %
	$PYTHON - <<-'END'
		import os, sys
		import numpy as np
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/ref")
		import bert, json, struct, shutil
		shutil.copytree("model", "split", dirs_exist_ok=True)
		raw = bytearray(open("split/model.safetensors", "rb").read())
		n = struct.unpack_from("<Q", raw)[0]
		table = json.loads(raw[8:8 + n])
		for name, value in (("classifier.weight", np.zeros((4, 64))), ("classifier.bias", np.log([.4, .3, .29, .01]))):
		    a, b = table[name]["data_offsets"]
		    raw[8 + n + a:8 + n + b] = value.astype("<f4").tobytes()
		open("split/model.safetensors", "wb").write(raw)
	END
	undigest split/model.safetensors
	scpredict cells -q -M split --decode leaf -o leaf.pred test.tok
	scpredict cells -q -M split --decode greedy -o greedy.pred test.tok
	run scview -c predicted leaf.pred
	assert_line --index 1 CL:0000236
	run scview -c predicted,lineage greedy.pred
	assert_line --index 1 --regexp '^CL:0000624	cell \(1.000\) > .* > lymphocyte \(0.990\) > T cell \(0.590\) > .* > CD4-positive, alpha-beta T cell \(0.300\)$'
	ref decode cl.obo greedy.pred greedy
	ref decode cl.obo leaf.pred leaf
}

@test "sctrain eval: heads of columns have the losses and measures of --eval" {
	sctrain cells -q --config tiny --head cell_type:hce,mean=known --head donor:ce --head n_counts:mse,from=2 --ontology cl.obo --eval step.masked -o three step.masked
	tail -n 1 three/train.tsv | tr '\t' '\n' | paste <(head -n 1 three/train.tsv | tr '\t' '\n') - | sed -n 's/^eval_\([a-z0-9_]*[.]\)/\1/p' >trained.tsv
	assert_equal "$(wc -l <trained.tsv)" 8
	run -0 --separate-stderr sctrain eval -M three step.masked
	assert_equal "$stderr" ""
	assert_equal "$(grep '[.]' <<<"$output" | grep -v '^cells[.]')" "$(cat trained.tsv)"
	assert_line "cells.donor	$(awk '$1 == "cells" { print $2 }' <<<"$output")"
	# of the cells without a label that is a term there is no loss
	assert [ "$(awk '$1 == "cells.cell_type" { print $2 }' <<<"$output")" -lt "$(awk '$1 == "cells" { print $2 }' <<<"$output")" ]
	mv three/ontology.obo pruned.obo
	run -0 sctrain eval -M three step.masked
	assert_line --partial "note: head cell_type is not evaluated here"
	sed 's/^id: CL:0000624/id: CL:9000624/' pruned.obo >three/ontology.obo
	run -1 sctrain eval -M three step.masked
	assert_output "sctrain eval: three/ontology.obo: it has no term 'CL:0000624', which is a class of the head 'cell_type'"
}

@test "ctaprobe score: predictions that are terms, and labels that are names: --ontology is named" {
	scpredict cells -q -M model -o names.pred test.tok
	run ctaprobe score --label cell_type names.pred
	assert_success
	names "names.pred --ontology MODEL/ontology.obo"
	run ctaprobe score --label cell_type --ontology model/ontology.obo names.pred
	assert_success
	refute_output --partial "give --ontology"
}

@test "ctaprobe score --ontology: as plain Python scores them" {
	scpredict cells -q -M model -o one.pred test.tok
	ctaprobe score -q --label cell_type --ontology cl.obo -o one.tsv one.pred
	run ref score cl.obo one.pred cell_type one.tsv
	assert_success
	assert_output --regexp "^109 cells, exact 0\.[4-9][0-9]*, finer 0\.[12][0-9]*, wrong 0\.[0-3]"
	# predictions that are coarser than the labels, and some of another branch
	$PYTHON - <<-'END'
		import os, sys
		sys.path.insert(0, os.environ["BATS_TEST_DIRNAME"] + "/../python")
		import corrmask.stream as scstream
		stream = scstream.read("one.pred")
		swap = {"CL:0000624": "CL:0000084", "CL:0000860": "CL:0000037", "CL:0000236": "CL:0000000"}
		stream.header["labels"] = [swap.get(x, x) for x in stream.header["labels"]]
		blocks = list(stream)
		for c in stream.header["columns"]:
		    if c["name"] == "predicted":
		        c["categories"] = [swap.get(x, x) for x in c["categories"]]
		scstream.write("coarse.pred", stream.header, blocks)
	END
	run ctaprobe score --label cell_type --ontology cl.obo coarse.pred
	assert_failure 1
	names "coarse.pred CL:0000037 cl.obo"
	printf '\n[Term]\nid: CL:0000037\nname: elsewhere\n' | cat cl.obo - >more.obo
	ctaprobe score -q --label cell_type --ontology more.obo -o coarse.tsv coarse.pred
	run ref score more.obo coarse.pred cell_type coarse.tsv
	assert_success
	awk '{ v[$1] = $2 } END { exit !(v["coarser"] > .1 && v["apart"] > 5 && v["cells"] == 109) }' coarse.tsv
	run ctaprobe score --label cell_type --ontology cl.obo --bootstrap 5 one.pred
	assert_failure 2
	names "--ontology --bootstrap"
}

@test "sctrain --head: with masked tokens and with masked values; stopped and resumed the weights are the same" {
	local task in
	maskgen -q --keep cell_type,donor,n_counts --count-kept -b 60 --epochs 3 -o token.masked train.tok
	rankenc -q -m vocab.tsv --ties group --value all.counts | scsample -q --test-fraction 0.25 --part train -o ties.tok -
	maskgen -q --objective value --keep cell_type,donor,n_counts --count-kept -b 60 --epochs 3 -o value.masked ties.tok
	for task in mlm value; do
		[ $task = mlm ] && in=token.masked || in=value.masked
		a=("${HCE[@]}" --head "donor:focal,reverse=0.1,weight=0.2" --head "n_counts:mse,position=0,from=4" --save-every 5)
		sctrain $task -q "${a[@]}" -o whole.$task $in
		run head -1 whole.$task/train.tsv
		assert_output --partial "	loss.$task	loss.cell_type	loss.donor	loss.n_counts"
		head -c $(($(stat -c %s $in) * 2 / 3)) $in >half.masked
		run sctrain $task -q "${a[@]}" -o cut.$task half.masked
		assert_failure 1
		run sctrain $task -q "${a[@]/cell_type:hce/cell_type:hce,mean=known}" --resume -o cut.$task $in
		assert_failure 1
		names "--resume: cut.$task loss of cell_type all, known,"
		# the ontology decides which leaves a label has
		sed '/^id: CL:0000625/,/^$/s/^is_a: .*/is_a: CL:0000738/' cl.obo >moved.obo
		run sctrain $task -q "${a[@]/cl.obo/moved.obo}" --resume -o cut.$task $in
		assert_failure 1
		names "--resume: cut.$task loss of cell_type all, ontology"
		sctrain $task -q "${a[@]}" --resume -o cut.$task $in
		cmp whole.$task/model.safetensors cut.$task/model.safetensors
		cmp whole.$task/ontology.obo cut.$task/ontology.obo
	done
	scpredict cells -q -M whole.mlm --head cell_type -o x.pred test.tok
	run ref decode cl.obo x.pred leaf
	assert_success
}

@test "sctrain --head: a batch in parts has the same loss, although parts have no label" {
	local parts
	for parts in 1 12; do
		sctrain cells -q "${HCE[@]}" --dropout 0 --lr 0.001 --accum $parts -o accum$parts step.masked
	done
	run $PYTHON - <<-'END'
		rows = [[line.split("\t") for line in open("accum%d/train.tsv" % n)][1:] for n in (1, 12)]
		assert len(rows[0]) == 7 and all(abs(float(a[k]) - float(b[k])) < 2e-5 * float(a[k]) for a, b in zip(*rows) for k in (1, 3)), rows
	END
	assert_success
}

@test "sctrain --eval: the loss of hce is the mean that is trained, over all cells or those with a label" {
	local mean f
	maskgen -q --strategy none --keep cell_type,donor -b 375 -o whole.masked train.tok # one batch, which is also what is validated
	for mean in all known; do
		sctrain cells -q --config tiny --head cell_type:hce,mean=$mean --head donor:ce,weight=0.5 --ontology cl.obo --dropout 0 --lr 0 \
			--eval whole.masked -o mean.$mean whole.masked
		run $PYTHON - mean.$mean <<-'END'
			import sys
			name, row = [line.rstrip("\n").split("\t") for line in open(sys.argv[1] + "/train.tsv")]
			x = dict(zip(name, map(float, row)))
			for a, b in (("loss", "eval_loss"), ("loss.cell_type", "eval_loss.cell_type"), ("loss.donor", "eval_loss.donor")):
			    assert abs(x[a] - x[b]) < 1e-5, (a, x)
		END
		assert_success
	done
	run cmp <(cut -f2,7,9,10 mean.all/train.tsv) <(cut -f2,7,9,10 mean.known/train.tsv)
	assert_failure 1
	diff <(cut -f8,11- mean.all/train.tsv) <(cut -f8,11- mean.known/train.tsv)
}

@test "sctrain --head, --ontology: what cannot be" {
	refused() { # refused STATUS MESSAGE OPTION...
		local expected=$1 message=$2
		shift 2
		run --separate-stderr sctrain cells -q --config tiny -o x "$@" step.masked
		assert_failure "$expected"
		names "$message"
		assert_not_exists x/model.safetensors
	}
	refused 2 "--head cell_type:hce --ontology FILE.obo" --head cell_type:hce
	refused 2 "--ontology needs --head COL:hce" --head donor:ce --ontology cl.obo
	refused 2 "--head donor:ce,mean=known hce" --head donor:ce,mean=known
	refused 2 "--head mean=all twice" --head cell_type:hce,mean=known,mean=all --ontology cl.obo
	refused 2 "--head donor:ce,reverse=0 reverse=0 0 1000" --head donor:ce,reverse=0
	refused 2 "--head donor:ce,position=-1 position=-1 65535" --head donor:ce,position=-1
	refused 1 "step.masked donor position 1 CLS 0" --head donor:ce,position=1
	refused 1 "--ontology none.obo" --head cell_type:hce --ontology none.obo
	refused 1 "--ontology vocab.tsv 1 TAG VALUE OBO" --head cell_type:hce --ontology vocab.tsv
	refused 1 "step.masked type maskgen --strategy --keep" --head type:hce --ontology cl.obo
	sed 's/^id: CL:0000542/&\nis_a: CL:0000624/' cl.obo >cycle.obo
	refused 1 "--ontology cycle.obo CL:0000084 is_a" --head cell_type:hce --ontology cycle.obo
	sed 's/^id: CL:0000542/&\nis_a: CL:9/' cl.obo >missing.obo
	run sctrain cells -q "${HCE[@]/cl.obo/missing.obo}" -o x step.masked
	assert_failure 1
	assert_output --regexp "^sctrain cells: --ontology: missing.obo: line [0-9]+: CL:0000542 is_a CL:9, which the file does not have$"
	refused 1 "step.masked donor 4 375 cl.obo donor1 donor2 donor3 donor4" \
		--head donor:hce --ontology cl.obo
	scsample -q --where 'cell_type=CL:0000860' -o mono.tok train.tok
	maskgen -q --strategy none --keep cell_type -o mono.masked mono.tok
	run sctrain cells -q "${HCE[@]}" -o x mono.masked
	assert_failure 1
	names "mono.masked cell_type CL:0000860"
	run scpredict cells -M model --node "T cell,CL:0000990" -o x.pred test.tok
	assert_failure 1
	names "--node CL:0000990 model/ontology.obo"
	cp -r model bare
	rm bare/ontology.obo
	run -1 scpredict cells -M bare --decode leaf -o refused.pred test.tok
	names "bare/ontology.obo No directory"
	sed '/^id: CL:0000624/,/^$/d' model/ontology.obo >bare/ontology.obo
	run scpredict cells -M bare -o refused.pred test.tok
	assert_failure 1
	assert_not_exists refused.pred
}

# bats test_tags=data
@test "the Cell Ontology, and cells with its ids: leaves, decoding and scores as plain Python has them" {
	need ontology/cl-basic.obo.gz original/placenta_cellxgene_220cells_anndata0.8.h5ad
	local cl=$SHARED/ontology/cl-basic.obo.gz
	h5tok -q -o p.counts "$SHARED/original/placenta_cellxgene_220cells_anndata0.8.h5ad"
	rankenc -q --fit -o p.vocab p.counts
	rankenc -q -m p.vocab --max-len 64 -o p.tok p.counts
	maskgen -q --strategy none --keep cell_type_ontology_term_id,cell_type -o p.masked p.tok
	sctrain cells -q --config tiny --head cell_type_ontology_term_id:hce --head cell_type:hce,mean=known --ontology "$cl" -o p p.masked
	run ref pruned "$cl" p cell_type_ontology_term_id
	assert_success
	$PYTHON - <<-'END'
		import json
		a, b = json.load(open("p/config.json"))["corrmask_heads"]
		assert a["id2label"] == b["id2label"] and len(a["id2label"]) > 15    # ids and names are the same terms
	END
	scpredict cells -q -M p --head cell_type --decode greedy --node CL:0000542 -o p.pred p.tok
	run ref decode "$cl" p.pred greedy CL:0000542
	assert_success
	ctaprobe score -q --label cell_type --ontology "$cl" -o p.tsv p.pred
	run ref score "$cl" p.pred cell_type p.tsv
	assert_success
}
