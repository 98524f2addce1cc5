#!/usr/bin/env bats
# What goes wrong in one call: a line of tests/errors.tsv each, STATUS <TAB> COMMAND <TAB> WORDS that its message names (file, place, what was wrong, what was expected).
# A command has up to one group of alternatives, [A | B], each of which is a call; @ among the words is its first word.
load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	make_small .
	depgraph -q --pmi sim.tok -o pmi.graph
	scsim -q --cells 50 --genes 90 --modules 9 --seed 3 -o other.counts
	scsim -q -n 0 --genes 150 -o zero.counts
	rankenc -q --fit other.counts -o other.vocab
	rankenc -q --fit --vocab-style bmfm sim.counts -o bmfm.vocab
	rankenc -q -m other.vocab other.counts -o other.tok
	rankenc -q -m sim.vocab --ties group sim.counts -o group.tok
	rankenc -q -m sim.vocab --value sim.counts -o values.tok
	for n in 1 2; do rankenc -q -m bmfm.vocab --cls $n sim.counts -o bmfm$n.tok; done
	depgraph -q --min-overlap 5 other.tok -o other.graph
	maskgen -q --strategy none --keep cell_type,donor,n_counts --batch 40 sim.tok -o none.masked
	maskgen -q --keep n_counts,cell_type -o bare.masked sim.tok
	maskgen -q --rate 0 -o rate0.masked sim.tok
	maskgen -q --rate 0.001 --batch 10 -o short.masked sim.tok
	maskgen -q group.tok -o group.masked
	for o in cell value; do maskgen -q --objective $o bmfm2.tok -o $o.masked; done
	maskgen -q --strategy columns sim.counts -o sim.mc
	maskgen -q --strategy columns --batch 21 -o odd.mc sim.counts
	sctrain cells -q --config tiny --label cell_type -o cells.model none.masked
	sctrain mlm -q --config tiny group.masked -o group.model
	sctrain wced -q --config bmfm-tiny cell.masked -o cell.model
	sctrain nb -q -c mlp-nb-tiny sim.mc -o nb.model
	scpredict cells -q -M cells.model sim.tok -o sim.pred
	screduce pca -q -k 4 sim.counts -o pca.emb
	scsample -q -n 20 sim.tok -o few.tok
	scsample -q -n 9 --seed 1 sim.emb -o nine.emb
	scsample -q -n 1 sim.counts -o one.counts
	scsample -q --min-genes 9999 sim.counts | scview -q -O h5ad -o nocell.h5ad -
	for kind in counts emb; do scsample -q --where donor=donor1 sim.$kind -o donor1.$kind; done
	for kind in counts emb; do scsample -q --where cell_type=type1 sim.$kind -o type1.$kind; done
	ctaprobe transfer -q --reference sim.counts -l cell_type --save sim.ref
	head -c 9000 sim.ref >cut.ref
	scembed -q -M sim.model few.tok -o few.emb
	scembed -q -M sim.model --of genes few.tok -o genes.emb
	scembed -q -M sim.model --of genes --by cell_type few.tok -o by.emb
	scperturb apply -q --delete SIMG000010 few.tok -o perturbed.tok
	scembed -q -M sim.model perturbed.tok -o perturbed.emb
	scembed -q -M sim.model --similarity mean perturbed.tok -o perturbed.similarity
	for kind in emb tok; do scsample -q --where perturbation=delete perturbed.$kind -o broken.$kind; done
	for kind in counts tok masked emb pred; do head -c $(($(stat -c %s sim.$kind) - 40)) sim.$kind >cut.$kind; done
	# tables and lists
	: >empty
	scview -q --vocab sim.counts >every.tsv
	awk -F '\t' 'NR > 3 { print $2 "\tclass" NR % 2 }' sim.vocab >two.tsv
	sed 's/class1/class0/' two.tsv >same.tsv
	sed '5s/[^\t]*$/-1/' sim.vocab >minus.vocab
	sed '5s/[^\t]*$/NA/' sim.vocab >na.vocab
	sed 6d sim.vocab >gap.vocab
	head -8 sim.vocab >few.vocab
	while read -r name text; do printf '%b' "$text" >"$name"; done <<-'END'
		none.tsv nogene\ta\n
		absent.txt NOSUCH\n
		short.gmt A\tB\n
		two.txt SIMG000010\tSIMG000020\n
		nosuch.txt SIMG000010\nNOSUCH\n
		list.txt few.tok\n
		counts.txt sim.counts\n
		lack.txt few.tok\nnone.tok\n
		url.txt s3://x/a.tok\n
		twice.txt few.tok\nsim.tok\nfew.tok\n
		comments.txt #\n\n
		nul.txt sim.tok\0000\n
		lfs.h5ad version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n
		table.h5ad PAR1\0025\0004
	END
	cp sim.tok copy.tok
	ln -s sim.counts link
	ln -s never dangling
	# files of others
	$PYTHON - <<-'END'
		import h5py, json, os, shutil, struct
		import numpy as np
		for name, group in ("m.h5mu", "mod/rna"), ("s.h5seurat", "assays/RNA"):
		    with h5py.File(name, "w") as f:
		        f.create_group(group)
		with h5py.File("l.loom", "w") as f:
		    f.create_group("row_attrs"), f.create_group("col_attrs")
		for folder, file in ("two.zarr", ".zgroup"), ("three.zarr", "zarr.json"):
		    os.mkdir(folder)
		    open(os.path.join(folder, file), "w").write("{}")
		for folder in ("spatial.zarr", "spatial.zarr/tables", "spatial.zarr/tables/table"):
		    os.mkdir(folder)
		    open(folder + "/zarr.json", "w").write('{"zarr_format": 3, "node_type": "group"}')
		def put(f, path, value):
		    if path in f:
		        del f[path]
		    f[path] = value
		n, genes = (len(h5py.File("sim.h5ad")[x]) for x in ("obs/_index", "var/_index"))
		for name, path, value in (("one", "obsm/one", np.zeros(n)), ("fields", "obsm", np.zeros(n, [("a", "f4", 3)])), ("ids", "obs/ids", np.arange(n) / 2),
		                          ("more", "raw/X", np.random.default_rng(1).poisson(2, (n + 5, genes))), ("leads", "X", h5py.SoftLink("/nowhere"))):
		    shutil.copy("sim.h5ad", name + ".h5ad")
		    with h5py.File(name + ".h5ad", "a") as f:
		        put(f, path, value)
		        if name == "more":
		            f.copy("var", "raw/var")
		            put(f, "X/data", np.log1p(f["X/data"][:]))
		        if name == "ids":
		            f["obs"].attrs["column-order"] = [*f["obs"].attrs["column-order"], "ids"]
		raw = open("sim.model/model.safetensors", "rb").read()
		size = struct.unpack("<Q", raw[:8])[0]
		for name, old, new in (("wrapped", "bert.", "module.bert."), ("compiled", "bert.", "_orig_mod.bert."), ("gamma", "LayerNorm.weight", "LayerNorm.gamma"),
		                       ("decoder", "bert.embeddings.word_embeddings", "cls.predictions.decoder"), ("pointer", None, None)):
		    shutil.copytree("sim.model", name)
		    head = json.dumps({k.replace(old, new): v for k, v in json.loads(raw[8:8 + size]).items()}).encode() if old else b""
		    with open(name + "/model.safetensors", "wb") as f:
		        f.write(struct.pack("<Q", len(head)) + head + raw[8 + size:] if old else open("lfs.h5ad", "rb").read())
	END
	cp sim.h5ad mouse.h5ad
	$PYTHON -c 'import h5py
with h5py.File("mouse.h5ad", "a") as f:
    for x in f["var"].values():
        if isinstance(x, h5py.Dataset):
            x[...] = [b"Mus" + name for name in x[...]]'
	h5tok -q mouse.h5ad -o mouse.counts
	gzip < sim.vocab > some.gz
	cp some.gz seurat.rds
	head -c 300 some.gz > cut.gz
	mkdir unfinished nothing
	cp -r sim.model unfinished/checkpoint-7
	cp -r sim.model unfinished/checkpoint-12
	mkdir unfinished/checkpoint-30.tmp
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# one STATUS COMMAND WORDS: what is wrong with this call, if anything. Beside warnings it says one line (of misuse also how to get help), which has all these words,
# and leaves no output (never).
one() {
	local status=0 output lines stderr='' made
	output=$(eval "$2" 2>&1 </dev/null) || status=$?
	mapfile -t lines < <(grep -v ': warning: ' <<<"$output")
	[ "$status" = "$1" ] || echo "status $status"
	[ ${#lines[@]} = "$1" ] || echo "${#lines[@]} lines"
	[ "$1" = 1 ] || [[ ${lines[1]-} = "Try '"*" --help'." ]] || echo "no way to help"
	output=${lines[0]-}
	(names "$3") 2>&1
	for made in never never/model.safetensors; do [ ! -f "$made" ] || echo "an output"; done
	rm -rf never
}

@test "errors: every line of errors.tsv" {
	local n=0 status command words before alternatives after a said failed=''
	cp sim.counts before.counts
	while IFS=$'\t' read -r status command words; do
		n=$((n + 1)) before=$command alternatives='' after=''
		[[ ! $command =~ ^(.*)\[(.*\ \|\ .*)\](.*)$ ]] || before=${BASH_REMATCH[1]} alternatives=${BASH_REMATCH[2]} after=${BASH_REMATCH[3]}
		while IFS= read -r a; do
			said=$(one "$status" "$before$a$after" "${words//@/${a%% *}}")
			[ -z "$said" ] || failed+="errors.tsv: line $n: $before$a$after"$'\n'"$said"$'\n'
		done <<<"${alternatives// | /$'\n'}"
	done <"$BATS_TEST_DIRNAME/errors.tsv"
	[ -z "$failed" ] || fail "$failed"
	[ "$n" -gt 300 ]
	cmp sim.counts before.counts
	assert_equal "$(cat list.txt counts.txt)" "few.tok"$'\n'sim.counts
}

@test "errors: a model that is not finished has checkpoints, which are models" {
	scembed -q -M unfinished/checkpoint-12 -o x.emb sim.tok
}

@test "errors: genes that do not match are shown with a typical id of both sides" {
	awk -F '\t' 'BEGIN { OFS = FS } NR > 1 && $2 !~ /^</ { $2 = "Gene" NR } 1' sim.vocab > alien.vocab
	run -1 rankenc -q -m alien.vocab sim.counts -o x.tok
	assert_output --regexp "ids here are like 'SIM[^']*', there like 'Gene[0-9]+'; --map FILE translates ids$"
}
