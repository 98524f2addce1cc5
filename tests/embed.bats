#!/usr/bin/env bats
# make embed: one command from a file and a model to a file with the embedding, a map and a page
load helper

setup_file() {
	need_tool h5tok scembed scview scsim sctrain screduce scsample
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 300 --genes 120 --modules 6 --types 3 --rarest .2 --donors 4 --depth 800 --seed 5 -o all.counts
	rankenc -q --fit all.counts -o vocab.tsv
	rankenc -q -m vocab.tsv all.counts -o all.tok
	maskgen -q --batch 20 all.tok | sctrain mlm -q --config tiny -o model
	scview -q -O h5ad all.counts -o all.h5ad
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# bats test_tags=slow
@test "make embed: the embedding is scembed's, in a copy of the file, with a map and a page; a run that failed goes on after the last part" {
	mkdir parts
	cd parts
	scembed -q -M ../model ../all.tok | scview -q -O npy - > want.npy
	# the tools, with a scembed that counts its calls and fails in the second one
	mkdir bin
	ln -s "$(realpath "$BIN")"/* bin
	rm bin/scembed
	cat > bin/scembed <<-END
		#!/bin/sh
		[ "\$1" = --version ] || echo >> "$PWD/calls"
		[ "\$(wc -l < "$PWD/calls")" != 2 ] || kill -9 \$\$
		exec "$(realpath "$BIN")/scembed" "\$@"
	END
	chmod +x bin/scembed
	BIN=$PWD/bin run ! pipelines embed DATA=../all.h5ad MODEL=../model EMBED_PART=100 THREADS=1
	assert_not_exist results/embed/latest/embedding.emb
	BIN=$PWD/bin run -0 pipelines embed DATA=../all.h5ad MODEL=../model EMBED_PART=100 THREADS=1
	assert_equal "$(wc -l < calls)" 4
	assert_line --regexp '^300 cells, 64 numbers each, in obsm/X_corrmask of embedded.h5ad; a map of them in obsm/X_umap.$'
	assert_line "100.0 % of the counts are of genes that the model knows; 0.0 % are lost."
	R=results/embed/latest
	assert_not_exist $R/embedding.emb.parts
	$PYTHON -W ignore - <<-'P'
		import anndata, numpy as np
		old, new = anndata.read_h5ad("../all.h5ad"), anndata.read_h5ad("results/embed/latest/embedded.h5ad")
		assert (old.X != new.X).nnz == 0 and old.obs.equals(new.obs)
		assert abs(new.obsm["X_corrmask"] - np.load("want.npy")).max() < 1e-5
		assert np.isfinite(new.obsm["X_umap"]).all() and new.obsm["X_umap"].shape == (300, 2)
	P
	grep -qF 'Maps of cells by cell_type' $R/report.html
	grep -qF 'Maps of cells by donor' $R/report.html
	before=$(stat -c %Y.%s.%i $R/embedding.emb $R/embedded.h5ad)
	BIN=$PWD/bin run -0 pipelines embed DATA=../all.h5ad MODEL=../model EMBED_PART=100 THREADS=1
	assert_equal "$(stat -c %Y.%s.%i $R/embedding.emb $R/embedded.h5ad)" "$before"
	# in one part, without labels, and a map of some of the cells
	$PYTHON -W ignore -c 'import anndata; a = anndata.read_h5ad("../all.h5ad"); del a.obs; a.obs_names = [f"c{i}" for i in range(a.n_obs)]; a.write_h5ad("plain.h5ad")'
	run -0 pipelines embed DATA=plain.h5ad MODEL=../model MAP_CELLS=50 POOL=first HIDDEN_LAYER=0 MAXLEN=20 THREADS=1
	assert_line "The cells have no column cell_type: the map has one colour. LABEL= names another column."
	refute_output --partial "values are missing"
	grep -qF 'Maps of cells (UMAP)' $R/report.html
	rankenc -q -m ../vocab.tsv --max-len 20 ../all.counts | scembed -q -M ../model --pool first --emb-layer 0 | scview -q -O npy - > want.npy
	$PYTHON -W ignore - <<-'P'
		import anndata, numpy as np
		new = anndata.read_h5ad("results/embed/latest/embedded.h5ad")
		assert abs(new.obsm["X_corrmask"] - np.load("want.npy")).max() < 1e-5
		assert np.isfinite(new.obsm["X_umap"]).all(1).sum() == 50
	P
}

# bats test_tags=slow
@test "make embed: a folder like Geneformer's repository has the vocabulary beside the model; blood cells and a network of their own without files" {
	mkdir -p repository/geneformer/gene_dictionaries_30m
	cp -r model repository/Geneformer-V1
	rm repository/Geneformer-V1/vocab.tsv
	told() { run -2 pipelines embed "${@:2}" THREADS=1; assert_output --partial "$1"; }
	told "MODEL=repository/Geneformer-V1: no vocab.tsv in it, and no dictionaries of 122 tokens" DATA=all.h5ad MODEL=repository/Geneformer-V1
	geneformer() { $PYTHON -B "$BATS_TEST_DIRNAME/../python/scstream" to-geneformer "$@"; }
	(head -n 3 vocab.tsv; tail -n +4 vocab.tsv | head -n 50) > short.tsv
	geneformer short.tsv repository/geneformer/token_dictionary_gc104M.pkl repository/geneformer/gene_median_dictionary_gc104M.pkl
	D=repository/geneformer/gene_dictionaries_30m
	geneformer vocab.tsv $D/token_dictionary_gc30M.pkl $D/gene_median_dictionary_gc30M.pkl
	run -0 pipelines embed DATA=all.h5ad MODEL=repository/Geneformer-V1 THREADS=1
	cmp <(scembed -q -M model all.tok | scview -c x -) <(scview -c x results/embed/latest/embedding.emb)
	run -0 pipelines embed DATA=all.h5ad MODEL=repository/Geneformer-V1 MEDIANS=$D/gene_median_dictionary_gc30M.pkl \
		TOKEN_TABLE=$D/token_dictionary_gc30M.pkl RESULTS=given THREADS=1
	cmp <(scview -c x given/embed/latest/embedding.emb) <(scview -c x results/embed/latest/embedding.emb)
	told "which also needs TOKEN_TABLE=" DATA=all.h5ad MODEL=repository/Geneformer-V1 MEDIANS=$D/gene_median_dictionary_gc30M.pkl
	run -0 pipelines embed SCALE=tiny THREADS=1 RESULTS=sim
	assert_line --regexp '^model: trained here: tiny, 1 epoch'
	assert_file_not_empty sim/embed/latest/report.html
	assert_file_not_empty sim/embed/latest/embedded.h5ad
}

@test "make embed: a file with a space in its name, and what it has of the same name; cells of one name are refused before the network" {
	mkdir "my files"
	cp -r model "my files/my model"
	$PYTHON -W ignore - <<-'P'
		import anndata, numpy as np
		a = anndata.read_h5ad("all.h5ad")[:30].copy()
		a.obsm["X_umap"] = np.ones((30, 2))
		a.write_h5ad("my files/has map.h5ad")
		a.obs_names = ["same"] * 2 + list(a.obs_names[2:])
		a.write_h5ad("my files/same.h5ad")
	P
	run -0 pipelines embed DATA="'my files/has map.h5ad'" MODEL="'my files/my model'" THREADS=1
	assert_line "Replaced in embedded.h5ad: obsm/X_umap of your file, which is itself unchanged."
	grep -qF 'obsm X_corrmask, X_umap (replaced)' results/embed/latest/log/scview-into.log
	# a kill after the parts were joined leaves them
	mkdir results/embed/latest/embedding.emb.parts
	rm results/embed/latest/embedding.map
	run -0 pipelines embed DATA="my files/has map.h5ad" MODEL="my files/my model" THREADS=1
	assert_not_exist results/embed/has_map-*/embedding.emb.parts
	# obs as anndata wrote it before 0.7 cannot be added to: a new file has counts and obs
	$PYTHON - <<-'P'
		import h5py, numpy as np, shutil
		shutil.copy("all.h5ad", "old.h5ad")
		with h5py.File("old.h5ad", "a") as f:
		    names = f["obs"][f["obs"].attrs["_index"]][:]
		    del f["obs"]
		    f["obs"] = np.array([(name, i) for i, name in enumerate(names)], dtype=[("index", "S20"), ("score", "f4")])
	P
	run -0 pipelines embed DATA=old.h5ad MODEL=model THREADS=1
	$PYTHON -W ignore -c 'import anndata; a = anndata.read_h5ad("results/embed/latest/embedded.h5ad"); assert a.obs["score"].tolist() == list(range(300)) and a.X.nnz and "X_umap" in a.obsm'
	run -2 pipelines embed DATA="my files/same.h5ad" MODEL=model THREADS=1
	assert_line --partial "DATA=my files/same.h5ad: cell 'same' occurs twice: the embedding goes into a copy of the file"
	refute_line "  scembed"
}

# bats test_tags=slow
@test "make embed: what is missing or does not fit is said, with the share of the counts that would be lost" {
	mkdir none
	cd none
	told() {
		run -2 pipelines embed "${@:2}"
		assert_output --partial "$1"
	}
	told "DATA= without MODEL=: which model?" DATA=../all.h5ad
	told "MODEL= without DATA=: which file has the cells?" MODEL=../model
	told "MODEL=../none: no model.safetensors in it: expected the folder of a model" DATA=../all.h5ad MODEL=../none
	mkdir pickled
	touch pickled/pytorch_model.bin
	told "MODEL=pickled: pytorch_model.bin, pickled weights: load and save it once with transformers" DATA=../all.h5ad MODEL=pickled
	told "DATA=no.h5ad: no such file" DATA=no.h5ad MODEL=../model
	for part in x 0 080 1.5 ''; do
		told "EMBED_PART=$part: expected a whole number of 1 or more" DATA=../all.h5ad MODEL=../model EMBED_PART=$part
	done
	told "MAP_CELLS=0: expected a whole number of 1 or more" DATA=../all.h5ad MODEL=../model MAP_CELLS=0
	cp ../all.h5ad "a b.h5ad"
	told "DATA=../all.h5ad 'a b.h5ad': expected one file" DATA="../all.h5ad 'a b.h5ad'" MODEL=../model
	told "LABEL=kind: no such column in obs" DATA=../all.h5ad MODEL=../model LABEL=kind
	$PYTHON -W ignore -c 'import anndata; anndata.read_h5ad("../all.h5ad")[:0].write_h5ad("empty.h5ad")'
	told "empty.h5ad: no cells" DATA=empty.h5ad MODEL=../model
	# mouse cells and a human vocabulary
	awk -F '\t' -v OFS='\t' 'NR > 3 { $2 = sprintf("ENSG%011d", NR) } 1' ../vocab.tsv > human.tsv
	$PYTHON -W ignore -c 'import anndata; a = anndata.read_h5ad("../all.h5ad"); a.var_names = [f"ENSMUSG{i + 4:011d}" for i in range(a.n_vars)]; a.write_h5ad("mouse.h5ad")'
	mkdir human
	cp ../model/* human 2> /dev/null || true
	cp human.tsv human/vocab.tsv
	told "none of the genes is in human/vocab.tsv, expected at least 20 % (--min-matched), and 100.0 % of the counts are lost" \
		DATA=mouse.h5ad MODEL=human
	assert_output --partial "two species: GENE_NAMES=FILE"
	# a table of orthologs of most genes
	$PYTHON -c 'print("mouse\tensembl_id"); [print(f"ENSMUSG{i + 4:011d}\tENSG{i + 4:011d}") for i in range(110)]' > orthologs.tsv
	run -0 pipelines embed DATA=mouse.h5ad MODEL=human GENE_NAMES=orthologs.tsv THREADS=1
	assert_line --regexp '^9[0-9]\.[0-9] % of the counts are of genes that the model knows; [1-9]\.[0-9] % are lost\.$'
}
