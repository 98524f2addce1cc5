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
	names "$1"
	assert_equal "${#lines[@]}" 1
}

@test "errors: a stream of another kind names the tool that makes what is wanted" {
	says "sim.counts tokens rankenc" depgraph sim.counts
	says "sim.tok counts h5tok" rankenc -m sim.vocab sim.tok
	says "sim.tok graph depgraph" maskgen --strategy corrmask -g sim.tok sim.tok
	run -1 ctaprobe cells -l cell_type sim.tok
	assert_output --partial "expected embedding: run scembed first"
	run -1 ctaprobe score -l cell_type sim.tok
	names "prediction scpredict"
}

@test "errors: a file that is no stream is named for what it is" {
	says "sim.h5ad HDF5 h5tok AnnData 10x" rankenc -m sim.vocab sim.h5ad
	says "sim.h5ad HDF5 h5tok AnnData 10x" rankenc sim.h5ad
	says "sim.vocab text stream" scview sim.vocab
	says "some.gz gzip stream" scview some.gz
	says "sim.counts zstd text" rankenc -m sim.counts sim.counts
	says "sim.h5ad 1 gene_id" \
		rankenc -m sim.h5ad sim.counts
}

@test "errors: a URL is no file" {
	for url in https://x.org/a.h5ad s3://x/a; do
		says "$url URLs" h5tok $url
		says "$url URLs" rankenc -m $url sim.counts
		says "$url URLs" maskgen sim.tok $url
	done
}

@test "errors: h5tok names files that it does not read" {
	anndata="expected .h5ad, 10x .h5 or a 10x matrix directory"
	for z in two.zarr three.zarr; do says "$z obs AnnData" h5tok $z; done
	run -1 h5tok m.h5mu
	assert_output --partial "m.h5mu: mod/rna: obs: missing"
	run -1 h5tok s.h5seurat
	assert_output --partial "a Seurat file"
	run -1 h5tok l.loom
	names "l.loom matrix"
	run -1 h5tok sim.counts
	names "sim.counts zstd .h5ad"
	run -1 h5tok some.gz
	names "some.gz .h5ad .h5 10x matrix.mtx"
	run -1 h5tok sim.vocab
	assert_output --partial "this is text, expected .h5ad"
	names "counts anndata .h5ad"
	cp some.gz seurat.rds
	run -1 h5tok seurat.rds
	names "seurat.rds R .h5ad .h5 10x"
	says "standard input HDF5" h5tok - < sim.h5ad
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
	says "nothing config.json folder" scembed -M nothing sim.tok
	says "no.model folder" scembed -M no.model sim.tok
	scembed -q -M unfinished/checkpoint-12 -o x.emb sim.tok
}

@test "errors: bytes that a terminal would obey are not printed; letters of all languages are" {
	says "a??b???c: No" scview $'a\e\xffb\n\xc2\x9bc'
	says "Größe-µ-細胞-🧬: No" scview "Größe-µ-細胞-🧬"
}

@test "errors: genes that do not match are shown with a typical id of both sides" {
	awk -F '\t' 'BEGIN { OFS = FS } NR > 1 && $2 !~ /^</ { $2 = "Gene" NR } 1' sim.vocab > other.vocab
	run -1 rankenc -q -m other.vocab sim.counts -o x.tok
	assert_output --regexp "ids here are like 'SIM[^']*', there like 'Gene[0-9]+'; --map FILE translates ids$"
}
