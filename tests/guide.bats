#!/usr/bin/env bats
# The blocks of commands in docs/guide run as they stand, but that trainings outside the tutorial have one epoch: the lines of every
# ```sh block of a page, in order, by one bash with -e and pipefail in a folder of its own. (Outlines are ```text.) The numbers that the tutorial prints are those of its text.

load helper

# blocks PAGE [LANGUAGE]: but for the section that has a test of its own
blocks() { awk -v own='## With a Geneformer model' -v start="\`\`\`${2:-sh}" '/^## / { out = $0 == own } /^```/ { if (on) { on = 0; next } on = $0 == start && !out; next } on' "$1"; }

run_page() {
	mkdir -p "$BATS_TEST_TMPDIR/$1"
	cd "$BATS_TEST_TMPDIR/$1"
	{
		# a pipe into head or scview -n must not fail for what these do not read
		echo 'set -eo pipefail; for t in head scview; do eval "$t() { command $t \"\$@\" && cat > /dev/null; }"; done'
		echo "python3() { $PYTHON \"\$@\"; }"
		blocks "$BATS_TEST_DIRNAME/../docs/guide/$1.md" | if [ "$1" = tutorial ]; then cat; else sed 's/--epochs [0-9]*/--epochs 1/'; fi
	} > commands
	[ "$(wc -l < commands)" -gt 10 ]
	PATH=$BIN:$PATH PYTHONPATH=$BATS_TEST_DIRNAME/../python PYTHONDONTWRITEBYTECODE=1 bash commands < /dev/null
}

# bats test_tags=slow
@test "tutorial.md: every command runs, and the scores are those of the text" {
	out=$BATS_TEST_TMPDIR/out
	run_page tutorial > "$out" 2>&1
	run awk -F '\t' '$1 == "macro_f1" { printf "%.3f\n", $2 }' "$out"
	said=$(grep -oE "(Macro F1 is|and) \.[0-9]{3}" "$BATS_TEST_DIRNAME/../docs/guide/tutorial.md" | grep -oE "\.[0-9]{3}")
	assert_equal "$(wc -l <<<"$said")" 4
	# the baselines are the same everywhere; the weights of the network depend on the kernels of the processor
	paste <(echo "$output") <(echo "$said") | awk '{ d = $1 - $2; if (d * d > (NR < 3 ? 1e-9 : 2.5e-3)) { print "got " $1 ", the text says " $2; bad = 1 } } END { exit bad || NR != 4 }'
	for column in transfer_assigned corrmask_predicted; do h5tok --list-obs annotated.h5ad 2>/dev/null | grep -q "^$column"; done
	# what the page says of the file: how many cells have no prediction, and that scanpy finds a map of all
	grep -F "$(grep -oE 'warning: [0-9]+ cells of annotated.h5ad are not in new.pred' "$BATS_TEST_DIRNAME/../docs/guide/tutorial.md")" "$out"
	run -0 $PYTHON -W ignore -c 'if 1:
		import anndata, numpy as np
		a = anndata.read_h5ad("annotated.h5ad")
		assert a.obsm["X_umap"].shape == (3000, 2) and np.isfinite(a.obsm["X_umap"]).all(), a.obsm
		assert a.obs["corrmask_predicted"].isna().sum() == 1881'
}

@test "annotate.md: every command runs, and the columns are those of the text" {
	run -0 run_page annotate
	cd "$BATS_TEST_TMPDIR/annotate"
	for column in $(grep -oE 'transfer_[a-z_]+' "$BATS_TEST_DIRNAME/../docs/guide/annotate.md" | sort -u | grep -v umap); do
		case $column in
		*_in_set | *_logit) assert_line --regexp "obsm.* ${column}[,;]" ;;
		*) assert_line --regexp "^$column" ;;
		esac
	done
}

# bats test_tags=slow
@test "howto.md, With a Geneformer model: at most eight commands, and the same in Python, on a small model in a folder as on the hub" {
	cd "$BATS_TEST_TMPDIR"
	scsim -q --cells 400 --genes 120 --modules 6 --types 3 --rarest .25 --targets 6 --donors 8 --depth 1500 --seed 2 -o sim.counts
	rankenc -q --fit --vocab-style v2 sim.counts | awk -F '\t' -v OFS='\t' '$1 == 9 { $3 = "LYZ" } $1 == 30 { $3 = "NKG7" } 1' > v2.tsv
	$PYTHON "$BATS_TEST_DIRNAME/ref/hub.py" v2.tsv Geneformer Geneformer-V2-104M
	scview -q -O h5ad sim.counts -o sim.h5ad
	$PYTHON -W ignore -c 'if 1:
		import anndata
		a = anndata.read_h5ad("sim.h5ad")
		a.obs["disease"] = a.obs["state"].map({"on": "sick", "off": "healthy"}).astype(str)
		a.var_names = ["OLD" + g for g in a.var_names]
		a[:360].copy().write_h5ad("lung.h5ad")
		a[360:].copy().write_h5ad("new.h5ad")'
	page() { sed -n '/^## With a Geneformer model/,/^## Embeddings/p' "$BATS_TEST_DIRNAME/../docs/guide/howto.md"; }
	page | awk '/^```/ { on = $0 == "```sh"; next } on' > commands
	[ "$(wc -l < commands)" -le 8 ]
	mkdir own
	printf '#!/bin/sh\nexec %s -B %s "$@"\n' "$PYTHON" "$(realpath "$BATS_TEST_DIRNAME/../python/scstream")" > own/scstream
	chmod +x own/scstream
	PATH=$PWD/own:$PATH
	export PYTHONPATH=$BATS_TEST_DIRNAME/../python PYTHONDONTWRITEBYTECODE=1
	run -0 bash -eo pipefail commands
	assert_equal "$(grep -c '240 old ids and symbols of Geneformer/geneformer/ensembl_mapping_dict_gc104M.pkl' <<< "$output")" 4
	assert_equal "$(grep ': warning: ' <<< "$output" | grep -vc '3000 cells were requested')" 0
	for table in perturb/latest/table.txt finetune/latest/report.txt embed/latest/embedded.h5ad; do assert_file_not_empty results/$table; done
	grep -q '^init ' results/finetune/latest/report.txt
	cmp <(scview -c x lung.emb) <(scview -c x results/embed/latest/embedding.emb)
	assert_equal "$(scview -s new.pred | awk '$2 == "rows" { print $3 }')" 40
	page | awk '/^```/ { on = $0 == "```python"; next } on' > block.py
	cat >> block.py <<-'P'
		import numpy as np
		want = anndata.read_h5ad("results/embed/latest/embedded.h5ad")
		assert abs(adata.obsm["X_corrmask"] - want.obsm["X_corrmask"]).max() < 1e-5
		assert len(table) >= 2, table
	P
	run -0 $PYTHON -W ignore block.py
}

# bats test_tags=slow
@test "howto.md: every command runs" {
	run -0 run_page howto
	assert_line $'step\tloss\teval_loss'
	assert_line --regexp $'^[0-9]+\t[0-9.]+\t[0-9.]+$'
	refute_line --regexp "^scview: .*(already|nothing)"
	# the graph of the table is the one that the table is from; the map went beside the embedding
	cd "$BATS_TEST_TMPDIR/howto"
	cmp <(scview own.graph) <(scview -c token,neighbour,rho,overlap my.graph)
	[ "$(depgraph -O tsv own.graph | wc -l)" -gt 100 ]
	run -0 $PYTHON -W ignore -c 'if 1:
		import anndata, numpy as np
		a = anndata.read_h5ad("embedded.h5ad")
		assert sorted(a.obsm) == ["X_corrmask", "X_umap"] and a.obsm["X_umap"].shape[1] == 2
		assert (np.isnan(a.obsm["X_umap"]) == np.isnan(a.obsm["X_corrmask"][:, :2])).all() and np.isfinite(a.obsm["X_umap"]).any()'
}

# bats test_tags=slow
@test "pretrain.md: every command runs; a model on the other donors, one after a new file, one by a job" {
	sctrain --version | grep -q 'Open MPI' && command -v mpirun > /dev/null || skip "no MPI"
	# Slurm on this machine: the job at once, with one rank
	mkdir -p "$BATS_TEST_TMPDIR/slurm" "$BATS_TEST_TMPDIR/pretrain"
	cp "$BATS_TEST_DIRNAME/../examples/slurm-train.sh" "$BATS_TEST_TMPDIR/pretrain"
	# shellcheck disable=SC2016 # the scripts'
	printf '#!/bin/sh\nexec bash "$@"\n' > "$BATS_TEST_TMPDIR/slurm/sbatch"
	# shellcheck disable=SC2016
	printf '#!/bin/sh\nwhile [ "$1" != bash ]; do shift; done\nexport OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\nexec mpirun -n 1 --bind-to none "$@"\n' > "$BATS_TEST_TMPDIR/slurm/srun"
	chmod +x "$BATS_TEST_TMPDIR"/slurm/*
	PATH=$BATS_TEST_TMPDIR/slurm:$PATH run -0 run_page pretrain
	cd "$BATS_TEST_TMPDIR/pretrain"
	assert_line --regexp '^cells  .* 1 of 6 donors'
	assert_line --regexp '^  tokens: 2 files to read' # the new one, and one whose held-out donors are others now
	assert_equal "$(find results/pretrain/atlas-*/model/model.safetensors atlas.model/model.safetensors | wc -l)" 3
	[ "$(scview -q -c cell held-out.emb | sed 1d | wc -l)" -gt 20 ]
	# the text says what is printed before the training
	for word in $(sed -n '/^```text/,/^```/p' "$BATS_TEST_DIRNAME/../docs/guide/pretrain.md" | sed -n 's/^\([a-z]\{3,\}\)  .*/\1/p'); do assert_line --regexp "^$word  "; done
}
