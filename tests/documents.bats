# The blocks of code in README.md and docs/python.md run as they stand, in order, in a folder of their own, but that trainings of commands have one
# epoch. Blocks without a language are drawings.
# PEER_PYTHON is a Python with torch, transformers and accelerate (make peers); without one, what needs them is skipped.
load helper

PEER_PYTHON=${PEER_PYTHON:-$BATS_TEST_DIRNAME/../build/peers/bin/python}

setup() {
	cd "$BATS_TEST_TMPDIR"
	SOURCES=$(realpath "$BATS_TEST_DIRNAME/..")
	export PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 HF_HOME=$PWD/cache
}

# block FILE LANGUAGE N: the N-th block of this language
block() {
	awk -v language="$2" -v n="$3" '/^```/ { if (inside) inside = 0; else { inside = 1; mine = substr($0, 4) == language; k += mine; next } }
		inside && mine && k == n' "$1"
}

# run_block FILE N: a block of commands, where a pipe into head must not fail for what head does not read
run_block() {
	{
		echo 'set -eo pipefail; head() { command head "$@" && cat > /dev/null; }; set -v'
		block "$1" sh "$2" | sed 's/--epochs [0-9]*/--epochs 1/'
	} > commands
	[ "$(wc -l < commands)" -gt 1 ]
	bash commands < /dev/null
}

# donor cells of the size that makes a test short
make_lung() {
	scsim -q --cells 400 --genes 150 --types 4 --rarest 0.15 --depth 600 --donors 4 --seed 1 | scview -q -O h5ad -o lung.h5ad -
}

@test "every block of README.md and docs/python.md is run by a test of this file" {
	fences() { grep -oP '^```\K.*' "$SOURCES/$1" | awk 'NR % 2 { print }' | paste -sd ' '; }
	# README.md: Start, The pipe, Python. docs/python.md: functions, streams, Dataset, two embeddings, Hugging Face
	assert_equal "$(sed -n 's/^```\(..*\)/\1/p' "$SOURCES/README.md" | paste -sd ' ')" "sh sh python"
	assert_equal "$(sed -n 's/^```\(..*\)/\1/p' "$SOURCES/docs/python.md" | paste -sd ' ')" "python python python python sh"
	assert_equal "$(grep -c '^```' "$SOURCES/README.md") $(grep -c '^```' "$SOURCES/docs/python.md")" "6 10"
}

@test "README.md, Start: make knows the targets (tests/fresh.sh runs them on a new system)" {
	block "$SOURCES/README.md" sh 1 > commands
	assert_equal "$(grep -c '^make ' commands)" "$(wc -l < commands)"
	while read -r line; do
		# shellcheck disable=SC2086 # words
		run -0 env -u MAKEFLAGS -u MAKELEVEL make -C "$SOURCES" -n ${line%%#*}
	done < <(sed 's/^make //' commands)
}

@test "README.md, The pipe: from a file to the scores of a model" {
	make_lung
	run -0 run_block "$SOURCES/README.md" 2
	assert_line --regexp $'^macro_f1\t0\\.[0-9]+$'
	assert_line --regexp $'^donor\t'
	refute_output --partial warning
	# the medians are of the training cells alone
	rankenc -q --fit train.counts | cmp - vocab.tsv
	run -1 cmp <(rankenc -q --fit lung.counts) vocab.tsv
	assert_equal "$(comm -12 <(scview -c donor train.tok | tail -n +2 | sort -u) <(scview -c donor test.tok | tail -n +2 | sort -u))" ""
}

# bats test_tags=slow
@test "README.md, The pipe: with the file that it makes if there is none" {
	grep -oP 'No file\? `\K[^`]+' "$SOURCES/README.md" > make_one
	assert_equal "$(wc -l < make_one)" 1
	bash -eo pipefail make_one
	run -0 run_block "$SOURCES/README.md" 2
	assert_line --regexp $'^macro_f1\t0\\.[0-9]+$'
}

# modules NAME...: skip unless PEER_PYTHON has them
modules() {
	local m
	for m; do
		"$PEER_PYTHON" -c "import $m" 2> /dev/null || skip "no $m in PEER_PYTHON=$PEER_PYTHON (make peers)"
	done
}

tokens() {
	make_lung
	h5tok -q lung.h5ad | rankenc -q --fit -o vocab.tsv -
	h5tok -q --rank vocab.tsv lung.h5ad -o train.tok
	depgraph -q train.tok -o lung.graph
}

@test "docs/python.md, README.md: the functions run on files of these names" {
	$PYTHON -c 'import anndata' 2> /dev/null || skip "no anndata"
	scsim -q --cells 240 --genes 100 --types 3 --rarest 0.2 --depth 600 --donors 8 -o a.counts
	scview -q -O h5ad -o atlas.h5ad a.counts
	rankenc -q --fit a.counts -o vocab.tsv
	rankenc -q -u -m vocab.tsv a.counts | maskgen -q -u - | sctrain mlm -q --config tiny -o lung.model -
	$PYTHON -W ignore -c 'import anndata, numpy
a = anndata.read_h5ad("atlas.h5ad")[:90].copy()
a.obs["disease"] = ["healthy", "sick"] * 45
a.obsm["X_pca"] = numpy.random.default_rng(1).normal(size=(90, 5))
a.write_h5ad("new.h5ad")'
	{
		block "$SOURCES/docs/python.md" python 1
		echo 'assert {"transfer_assigned", "transfer_probability", "transfer_label_set"} < set(adata.obs) and "transfer" in adata.uns'
		echo 'assert adata.obsm["X_corrmask"].shape == (90, 64) and len(table) > 10'
	} > block.py
	PYTHONPATH=$SOURCES/python run -0 $PYTHON -W ignore block.py
	run -0 scview -n 1 -c cell_type cells.tok
	{
		block "$SOURCES/README.md" python 1
		echo 'assert {"transfer_assigned", "transfer_probability"} < set(adata.obs)'
	} > block.py
	PYTHONPATH=$SOURCES/python run -0 $PYTHON -W ignore block.py
}

@test "docs/python.md: the blocks on streams and Dataset run" {
	tokens
	h5tok -q lung.h5ad -o train.counts
	{
		block "$SOURCES/docs/python.md" python 2
		echo 'assert len(tokens) == offsets[-1] and names[codes[0]].startswith("type")'
	} > block.py
	[ "$(wc -l < block.py)" -gt 5 ]
	PYTHONPATH=$SOURCES/python run -0 $PYTHON block.py
	modules torch transformers accelerate
	# the command of the text before the block
	eval "$(grep -oP '`\Kmaskgen train.tok -o train.masked(?=`)' "$SOURCES/docs/python.md")"
	{
		echo 'from corrmask import stream'
		block "$SOURCES/docs/python.md" python 3
		echo 'assert batch["input_ids"].shape[0] == 12 and (batch["labels"] >= 0).any() and len(loader) == len(batches) > 9'
	} > block.py
	PYTHONPATH=$SOURCES/python run -0 "$PEER_PYTHON" block.py
}

@test "docs/python.md: two embeddings of the same cells become one, by barcode" {
	tokens
	for m in wced mlm; do
		maskgen -q --batch 50 train.tok | sctrain mlm -q --config tiny --seed ${#m} --lr 0 -o $m.model -
		scembed -q -M $m.model -o $m.emb train.tok
	done
	for part in test train; do scsample -q --test-fraction 0.5 --part $part mlm.emb -o $part.emb; done
	scsample -q test.emb train.emb -o mlm.emb
	block "$SOURCES/docs/python.md" python 4 > block.py
	PYTHONPATH=$SOURCES/python run -0 "$PYTHON" block.py
	x() { scview -c barcode,x "$1" | sed 1d | sort; }
	run -1 cmp <(scview -c barcode wced.emb) <(scview -c barcode mlm.emb)
	diff -q <(join <(x wced.emb) <(x mlm.emb)) <(x both.emb | tr '\t' ' ')
	run -0 ctaprobe cells -q --label cell_type both.emb
}

@test "docs/python.md: Hugging Face's Trainer learns, and the tools read its model" {
	modules torch transformers accelerate
	tokens
	mkdir examples
	cp "$SOURCES/examples/hf_trainer.py" examples
	mkdir bin
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$(realpath -s "$PEER_PYTHON")" > bin/python3
	chmod +x bin/python3
	OMP_NUM_THREADS=1 PATH=$PWD/bin:$PATH PYTHONPATH=$SOURCES/python run -0 run_block "$SOURCES/docs/python.md" 1
	assert_line --regexp $'^macro_f1\t0\\.[0-9]+$'
}

# bats test_tags=slow
@test "the skill for agents: names of its folder, at most 80 lines, and every command runs" {
	skill=$SOURCES/examples/skill/corrmask/SKILL.md
	assert_equal "$(awk '/^---$/ { n++; next } n == 1 && $1 == "name:" { print $2 }' "$skill")" "$(basename "$(dirname "$skill")")"
	[ "$(wc -l < "$skill")" -le 80 ]
	scsim -q --cells 200 --genes 40 --modules 4 --types 3 --rarest .25 --targets 4 --donors 6 --depth 500 --seed 2 | scview -q -O h5ad -o sim.h5ad -
	$PYTHON -W ignore -c 'import anndata, numpy
a = anndata.read_h5ad("sim.h5ad")
a.obsm["X_pca"] = numpy.random.default_rng(1).normal(size=(200, 5))
a.write_h5ad("cells.h5ad")
a[:150].copy().write_h5ad("atlas.h5ad")
a[150:].copy().write_h5ad("new.h5ad")'
	awk '/^```/ { on = $0 == "```sh"; next } on' "$skill" > commands
	assert_equal "$(grep -c '^# [0-9]*\. ' commands)" 11
	run -0 bash -eo pipefail commands
	assert_line --regexp $'^macro_f1\t0\\.[0-9]+$'
	for f in annotate/latest/annotated.h5ad pretrain/latest/model/model.safetensors embed/latest/embedded.h5ad finetune/latest/report.txt \
		perturb/latest/table.txt network/latest/network.graphml; do assert_file_not_empty results/$f; done
	# the folders and columns that it names are there
	h5tok -q --list-obs results/annotate/latest/annotated.h5ad | grep -q '^transfer_unlike'
}

# nextflow MODULE NAME=VALUE...: the script of a module of examples/nf-core, with its variables filled in as Nextflow does
nextflow() {
	$PYTHON - "$SOURCES/examples/nf-core/modules/nf-core/corrmask/$1/main.nf" "${@:2}" <<-'P'
		import re, sys
		value = dict(v.split("=", 1) for v in sys.argv[2:])
		script = open(sys.argv[1]).read().split("script:")[1].split('"""')[1]
		print(re.sub(r"\\(.)|\$\{(.*?)\}|\$([\w.]+)", lambda m: m[1] or value[m[2] or m[3]], script, flags=re.S))
	P
}

@test "examples/nf-core: the scripts of the modules run, and make sections of MultiQC" {
	scsim -q --cells 200 --genes 60 --modules 6 --types 3 --rarest .25 --donors 6 --depth 500 --seed 2 | scview -q -O h5ad -o new.h5ad -
	$PYTHON -W ignore -c 'import anndata, numpy
a = anndata.read_h5ad("new.h5ad")
for k in "ab":
    a.obsm["X_" + k] = numpy.random.default_rng(ord(k)).normal(size=(200, 5))
a.write_h5ad("cells.h5ad")'
	nextflow integration args= task.cpus=1 batch=donor label=cell_type "embeddings.join(',')=X_a,X_b" prefix=s1 h5ad=cells.h5ad > integration.sh
	run -0 bash -euo pipefail integration.sh
	assert_equal "$(sed -n 4p s1.integration_mqc.tsv | cut -f 1-3)" $'Sample\tisolated_labels\tkmeans_nmi'
	paste <(sed 1d s1.integration.tsv | cut -f 1-3) <(tail -n 3 s1.integration_mqc.tsv | $PYTHON -c 'import sys
for row in zip(*(line.rstrip("\n").split("\t") for line in sys.stdin)): print(*row, sep="\t")' | sed 1d) | awk -F '\t' '$1 != $4 || $2 != $5 || $3 != $6 { exit 1 }'
	assert_equal "$(tail -n 2 s1.integration_mqc.tsv | cut -f 1 | paste -sd ' ')" "s1:X_a s1:X_b"
	assert_file_not_empty s1.report.tsv
	nextflow annotate args='SCALE=tiny' task.cpus=1 label=cell_type prefix=s1 h5ad=new.h5ad reference=cells.h5ad > annotate.sh
	run -0 bash -euo pipefail annotate.sh
	for f in s1.annotated.h5ad s1.annotate.html s1.annotate.txt; do assert_file_not_empty $f; done
	assert_equal "$(sed -n 4p s1.types_mqc.tsv | tr '\t' '\n' | sort | paste -sd ' ')" "Sample type1 type2 type3"
	assert_equal "$(tail -n 1 s1.types_mqc.tsv | awk '{ for (i = 2; i <= NF; i++) n += $i; print $1, n }')" "s1 200"
	assert_not_exist results
}
