# scpredict cells and genes; attribution is in attribute.bats, expression in sctrain_nb.bats and wced.bats.
load helper

setup_file() {
	need_tool scsim rankenc maskgen scview sctrain scpredict
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 120 --genes 60 --modules 4 --types 3 --depth 60 --seed 3 -o sim.counts
	rankenc -q --fit -o vocab.tsv sim.counts
	# version 2: <cls> and <eos> after <pad> and <mask>
	awk -F'\t' -v OFS='\t' '$1 >= 2 && !done && NR > 1 { print 2, "<cls>", "", "NA"; print 3, "<eos>", "", "NA"; done = 1 }
		NR > 1 && $1 >= 2 { $1 += 2 } { print }' vocab.tsv >vocab2.tsv
	for v in '' 2; do
		rankenc -q -m vocab$v.tsv -o cells$v.tok sim.counts
		maskgen -q -u --epochs 4 cells$v.tok | sctrain mlm -q --config tiny -o model$v
		scview -c token cells$v.tok >tokens$v.tsv
		for task in cells genes; do
			$PYTHON "$BATS_TEST_DIRNAME/ref/head.py" make model$v $task$v.model $task "T cell, CD4" B NK seed=2
		done
	done
}

head_ref() {
	$PYTHON "$BATS_TEST_DIRNAME/ref/head.py" "$@"
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export OMP_WAIT_POLICY=passive
	export OPENBLAS_NUM_THREADS=1
}

@test "scpredict cells: logits, classes and probabilities of cells are those of a float64 reading" {
	for v in '' 2; do
		scpredict cells -q -M cells$v.model --probabilities cells$v.tok -o p.pred
		head_ref cells cells$v.model tokens$v.tsv p.pred
		scpredict cells -q -M cells$v.model cells$v.tok -o p.pred
	done
	# order and columns of the input
	scview -c cell,barcode,n_counts,cell_type,donor cells2.tok | cmp - <(scview -c cell,barcode,n_counts,cell_type,donor p.pred)
	run scview -n 1 p.pred
	assert_line -n 0 "cell	barcode	n_counts	cell_type	donor	logit	predicted	probability"
	scview -H p.pred | grep -q '"program":	"scpredict cells"'
}

@test "scpredict genes: tokens of held-out genes, or of all, with their classes and logits" {
	for v in '' 2; do
		scpredict genes -q -M genes$v.model cells$v.tok -o p.pred
		head_ref genes genes$v.model tokens$v.tsv p.pred
	done
	scview -c cell,barcode,n_counts,cell_type,donor cells2.tok | cmp - <(scview -c cell,barcode,n_counts,cell_type,donor p.pred)
	# one held-out gene: most cells have no token of it, and stay
	awk -F'\t' -v OFS='\t' 'NR > 1 && ++k != 40 { $5 = "train" } { print }' genes.model/genes.tsv >one.tsv
	cp -r genes.model one.model
	cp one.tsv one.model/genes.tsv
	run scpredict genes -v -M one.model cells.tok -o p.pred
	assert_success
	assert_line --regexp "120 cells, [0-9]+ tokens, [0-9]+ of them predicted, [1-9][0-9]* cells without any"
	head_ref genes one.model tokens.tsv p.pred
	# without a held-out gene, or a genes.tsv, all are predicted
	sed -i 's/\ttest$/\ttrain/' one.model/genes.tsv
	scpredict genes -q -M one.model cells.tok -o all.pred
	head_ref genes one.model tokens.tsv all.pred all
	rm one.model/genes.tsv
	run -0 --separate-stderr scpredict genes -M one.model cells.tok -o p.pred
	[[ $stderr = *"one.model/genes.tsv"* ]]
	run scview -n 0 p.pred
	assert_output "cell	barcode	n_counts	cell_type	donor	token	logit.T cell, CD4	logit.B	logit.NK"
}

@test "scpredict: the same bytes on 1, 2 and 3 threads, from file and pipe" {
	for task in cells genes; do
		scpredict $task -q -M $task.model -o one.pred cells.tok
		scpredict $task -q -M $task.model -@ 2 -o two.pred - <cells.tok
		cat cells.tok | scpredict $task -q -M $task.model -@ 3 >three.pred
		cmp one.pred two.pred
		cmp one.pred three.pred
	done
}

@test "scpredict: AnnData and numpy exports have classes, probabilities and logits" {
	scpredict cells -q -M cells.model --probabilities cells.tok -o p.pred
	scview -q -O h5ad p.pred -o p.h5ad
	scview -O npy p.pred >logit.npy
	scview -O npy -c predicted p.pred >predicted.npy
	scview -O npy -c probability p.pred >probability.npy
	$PYTHON - <<-'END'
		import warnings
		warnings.simplefilter("ignore")
		import anndata, numpy as np
		a = anndata.read_h5ad("p.h5ad")
		z, y, p = (np.load(n + ".npy") for n in ("logit", "predicted", "probability"))
		assert (a.X == z).all() and list(a.var_names) == ["T cell, CD4", "B", "NK"]
		assert list(a.obs["predicted"]) == [a.var_names[i] for i in y] and (z.argmax(1) == y).all()
		assert list(a.obs["predicted"].cat.categories) == list(a.var_names)
		assert a.obs["probability"].dtype == np.float32 and (a.obs["probability"] == p).all()
		assert np.abs(a.obsm["probabilities"].max(1) - p).max() < 1e-6 and "cell_type" in a.obs
	END
	scpredict genes -q -M genes.model cells.tok -o g.pred
	run scview -O h5ad g.pred -o g.h5ad
	assert_failure 1
	assert_output --partial "g.pred: predictions of genes: AnnData has no place for lists; use -O tsv"
	assert_not_exist g.h5ad
}

@test "scpredict: models and options that do not fit" {
	bad() {         # bad STATUS MESSAGE COMMAND ARGUMENT...
		run scpredict "$3" -o bad.pred "${@:4}" cells.tok
		assert_failure "$1"
		assert_line -n 0 "scpredict $3: $2"
		assert_not_exist bad.pred
	}
	cp -r genes.model odd.model
	sed 's/\tNK\t/\tNKT\t/' genes.model/genes.tsv >odd.model/genes.tsv
	line=$(grep -n -m 1 NKT odd.model/genes.tsv)
	bad 1 "odd.model/genes.tsv: line ${line%%:*}: label 'NKT' is not one of the model's 3 classes" genes -M odd.model
	cut -f 1-4 genes.model/genes.tsv >odd.model/genes.tsv
	bad 1 "odd.model/genes.tsv: line 1: no column split (expected gene_id, label and split)" genes -M odd.model
	sed '$p' genes.model/genes.tsv | sed '3p' >odd.model/genes.tsv
	bad 1 "odd.model/genes.tsv: line 4: gene $(sed -n 3p genes.model/genes.tsv | cut -f 1) occurs twice" genes -M odd.model
	sed '3s/\t.*//' genes.model/genes.tsv >odd.model/genes.tsv
	bad 1 "odd.model/genes.tsv: line 3: no field label" genes -M odd.model
	: >odd.model/genes.tsv
	bad 1 "odd.model/genes.tsv: empty: expected a table of genes" genes -M odd.model
	cp model/model.safetensors odd.model
	cp genes.model/genes.tsv odd.model
	bad 1 "odd.model/model.safetensors has no 'classifier.weight': the model is not fine-tuned" genes -M odd.model
	cp genes.model/model.safetensors odd.model
	sed 's/"0": "T cell, CD4"/"0": "B"/' genes.model/config.json >odd.model/config.json
	bad 1 "odd.model/config.json: id2label: two classes are named 'B'" genes -M odd.model
	# a second prediction would take the columns of the first
	$PYTHON - <<-END
		import sys
		sys.path.insert(0, "$BATS_TEST_DIRNAME/../python")
		import corrmask.stream as scstream
		s = scstream.read("cells.tok")
		h = dict(s.header)
		h["columns"] = [dict(c, name="predicted") if c["name"] == "donor" else c for c in h["columns"]]
		scstream.write("taken.tok", h, [dict({k: v for k, v in b.items() if k != "donor"}, predicted=b["donor"]) for b in s])
	END
	run scpredict cells -M cells.model taken.tok -o bad.pred
	assert_failure 1
	assert_output "scpredict cells: taken.tok: has a column 'predicted', which the prediction needs"
}
