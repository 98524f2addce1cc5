#!/usr/bin/env bats
# Files of the wrong kind: the message says what the file is, and which tool makes what is wanted
load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	make_small .
	$PYTHON - <<-'END'
		import h5py, os
		for name, group in ("m.h5mu", "mod/rna"), ("s.h5seurat", "assays/RNA"):
		    with h5py.File(name, "w") as f:
		        f.create_group(group)
		with h5py.File("l.loom", "w") as f:
		    f.create_group("row_attrs"), f.create_group("col_attrs")
		for folder, file in ("two.zarr", ".zgroup"), ("three.zarr", "zarr.json"):
		    os.mkdir(folder)
		    open(os.path.join(folder, file), "w").write("{}")
	END
	gzip < sim.vocab > some.gz
	mkdir unfinished nothing
	cp -r sim.model unfinished/checkpoint-7
	cp -r sim.model unfinished/checkpoint-12
	mkdir unfinished/checkpoint-30.tmp
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# says MESSAGE COMMAND...: it fails with this one line
says() {
	run "${@:2}"
	assert_failure 1
	assert_output "$2: $1"
}

@test "errors: a stream of another kind names the tool that makes what is wanted" {
	says "sim.counts: this is a counts stream, expected tokens: run rankenc first" depgraph sim.counts
	says "sim.tok: this is a tokens stream, expected counts, made by h5tok" rankenc -m sim.vocab sim.tok
	says "sim.tok: this is a tokens stream, expected graph: run depgraph first" maskgen --strategy corrmask -g sim.tok sim.tok
	run -1 ctaprobe cells -l cell_type sim.tok
	assert_output --partial "expected embedding: run scembed first"
	run -1 ctaprobe score -l cell_type sim.tok
	assert_output --partial "expected prediction: run scpredict cells first"
}

@test "errors: a file that is no stream is named for what it is" {
	says "sim.h5ad: this is an HDF5 file (h5tok reads AnnData and 10x), expected a stream" rankenc -m sim.vocab sim.h5ad
	says "sim.h5ad: this is an HDF5 file (h5tok reads AnnData and 10x), expected a stream" rankenc sim.h5ad
	says "sim.vocab: this is text, expected a stream" scview sim.vocab
	says "some.gz: this is a gzip file, expected a stream" scview some.gz
	says "sim.counts: this is a zstd file or stream, expected text" rankenc -m sim.counts sim.counts
	says "sim.h5ad: line 1: expected a vocabulary, which begins with the column names token, gene_id, symbol, median" \
		rankenc -m sim.h5ad sim.counts
}

@test "errors: a URL is no file" {
	for url in https://x.org/a.h5ad s3://x/a; do
		says "$url: the tools read files, not URLs: download it first" h5tok $url
		says "$url: the tools read files, not URLs: download it first" rankenc -m $url sim.counts
		says "$url: the tools read files, not URLs: download it first" maskgen sim.tok $url
	done
}

@test "errors: h5tok names files that it does not read" {
	anndata="expected .h5ad, 10x .h5 or a 10x matrix directory"
	for z in two.zarr three.zarr; do says "$z: a zarr store without obs, expected one that anndata wrote" h5tok $z; done
	run -1 h5tok m.h5mu
	assert_output --partial "m.h5mu: mod/rna: obs: missing"
	run -1 h5tok s.h5seurat
	assert_output --partial "a Seurat file"
	run -1 h5tok l.loom
	assert_output --partial "a loom file"
	run -1 h5tok sim.counts
	assert_output --partial "sim.counts: this is a zstd file or stream, expected .h5ad"
	run -1 h5tok some.gz
	assert_output --partial "some.gz: this is a gzip file, expected .h5ad, 10x .h5, a 10x matrix directory or its matrix.mtx; unpack it with gunzip"
	run -1 h5tok sim.vocab
	assert_output --partial "this is text, expected .h5ad"
	assert_output --partial "; read a table of counts with anndata, and write it as .h5ad"
	cp some.gz seurat.rds
	run -1 h5tok seurat.rds
	assert_output --partial "seurat.rds: a file of R, expected .h5ad, 10x .h5 or a 10x matrix directory; write its counts from R"
	says "standard input: HDF5 cannot be read from a pipe: name the file" h5tok - < sim.h5ad
}

@test "errors: a model that is not finished names its newest checkpoint" {
	why="unfinished: its training is not finished: sctrain --resume continues it; unfinished/checkpoint-12 is a model"
	says "$why" scembed -M unfinished sim.tok
	run -1 scpredict cells -M unfinished sim.tok
	assert_output "scpredict cells: $why"
	run -1 sctrain eval -M unfinished sim.masked
	assert_output "sctrain eval: $why"
	run -1 sctrain mlm --init unfinished -o new sim.masked
	assert_output "sctrain mlm: $why"
	says "nothing: no config.json in it: expected the folder of a model" scembed -M nothing sim.tok
	says "no.model: No such file or directory: expected the folder of a model" scembed -M no.model sim.tok
	scembed -q -M unfinished/checkpoint-12 -o x.emb sim.tok
}

@test "errors: bytes that a terminal would obey are not printed; letters of all languages are" {
	says "a??b???c: No such file or directory" scview $'a\e\xffb\n\xc2\x9bc'
	says "Größe-µ-細胞-🧬: No such file or directory" scview "Größe-µ-細胞-🧬"
}

@test "errors: genes that do not match are shown with a typical id of both sides" {
	awk -F '\t' 'BEGIN { OFS = FS } NR > 1 && $2 !~ /^</ { $2 = "Gene" NR } 1' sim.vocab > other.vocab
	run -1 rankenc -q -m other.vocab sim.counts -o x.tok
	assert_output --regexp "ids here are like 'SIM[^']*', there like 'Gene[0-9]+'; --map FILE translates ids$"
}
