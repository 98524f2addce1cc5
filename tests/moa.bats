#!/usr/bin/env bats
# make moa: the probe of mechanisms over whole drugs, with and without a model; figure 3 of BMFM-RNA, which make demo-bmfm draws
load helper

setup() { cd "$BATS_FILE_TMPDIR"; }

@test "make moa: no drug is in training and test, every mechanism is tested, and the table has the scores of the tools" {
	run -0 pipelines moa SCALE=tiny THREADS=1
	R=$(realpath results/moa/latest)
	assert_equal "$(scview -c cell_type,drug "$R/cells.counts" | sed 1d | sort -u | wc -l)" 15
	ctaprobe cells -q --label cell_type --group drug --every-class --folds 2 --repeats 2 --seed 1 "$R/pca.emb" > by_hand
	diff by_hand "$R/pca.score.tsv"
	score() { awk -F '\t' -v k="$1" '$1 == k { printf "%.4f", $2 }' by_hand; }
	assert_line --regexp "^pca +$(score auroc) +$(score balanced_accuracy) +$(score macro_f1) +$(score macro_f1_repeat_sd) +0[.]"
	assert_line --partial "200 cells, 5 mechanisms, 15 drugs"
}

@test "make moa: a file and a model of the user; what is wrong is named" {
	R=$(realpath results/moa/latest)
	scview -q -O h5ad -o plate.h5ad "$R/cells.counts"
	rankenc -q --fit "$R/cells.counts" -o vocab.tsv
	rankenc -q -m vocab.tsv "$R/cells.counts" | maskgen -q -u - | sctrain mlm -q --config tiny --lr 1e-9 -o net -
	moa() { pipelines moa SCALE=tiny THREADS=1 DATA=plate.h5ad RESULTS=own RANK_ARGS='--min-matched 0' "$@"; }
	run -0 moa MODEL=net
	rankenc -q -m vocab.tsv "$R/cells.counts" | scembed -q -M net -o net.emb
	diff <(scview -c barcode,x net.emb) <(scview -c barcode,x own/moa/latest/model.emb)
	assert_line --regexp '^model +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+'
	run ! moa DRUG=compound
	assert_line --partial "GROUP=compound: no such column in obs"
	run ! moa LABEL=donor
	assert_line --partial "--every-class"
	run ! pipelines moa MODEL=net
	assert_output --partial "MODEL= without DATA="
}

# bats test_tags=slow
@test "make demo-bmfm: its figure has the shares of exact and finer terms, and the probabilities of scpredict --node" {
	pipelines demo-bmfm SCALE=tiny THREADS=1
	R=$(realpath results/bmfm/latest)
	assert_file_not_empty "$R/lineages.svg"
	of=$(tail -n 1 "$R/lineages.tsv" | cut -f 2)
	id=$(awk -v of="$of" '/^id: / { id = $2 } /^name: / && substr($0, 7) == of { print id }' "$BATS_TEST_DIRNAME/../data/blood-cells.obo")
	scpredict cells -q -M "$R/bmfm.model" --head term --node "$id" "$R/test.tok" | scview -c "term,node.$id" - > node.tsv
	$PYTHON - "$R" "$id" <<-'END'
		import sys
		import numpy as np
		rows = [l.rstrip("\n").split("\t") for l in list(open(sys.argv[1] + "/lineages.tsv"))[1:]]
		scores = dict(l.rstrip("\n").split("\t") for l in open(sys.argv[1] + "/greedy.score.tsv"))
		cells = {k: sum(float(r[3]) for r in rows if r[0] == k) for k in ("exact", "finer", "coarser", "wrong")}
		for kind, n in cells.items():
		    assert abs(n / sum(cells.values()) - float(scores[kind])) < 1e-6, kind
		p = [float(l.split("\t")[1]) for l in list(open("node.tsv"))[1:] if l.split("\t")[0] == sys.argv[2]]
		got = [float(r[3]) for r in rows if r[0] == "lineage" and r[1].endswith("(the label)")]
		assert len(got) == 1 and abs(got[0] - np.mean(p)) < 1e-3, (got, np.mean(p))
	END
}
