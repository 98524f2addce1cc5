#!/usr/bin/env bats
# make pretrain: from files to a model, its scores and a report; whole donors are held out; killed and run again; what it reads; what is wrong before the work
load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	mkdir in
	scsim -q --cells 450 --genes 120 --modules 6 --types 3 --rarest .2 --donors 9 --depth 800 --seed 1 -o all.counts
	for i in 1 2 3; do
		scsample -q -u --where donor=donor$((3 * i - 2)) --where donor=donor$((3 * i - 1)) --where donor=donor$((3 * i)) all.counts | scview -q -O h5ad -o in/$i.h5ad -
	done
	# the third one has no labels
	h5tok -q --obs donor in/3.h5ad | scview -q -O h5ad -o in/3.new -
	mv in/3.new in/3.h5ad
}

setup() { cd "$BATS_FILE_TMPDIR"; }

pretrain() { pipelines THREADS=2 pretrain SCALE=tiny "$@"; }

# counting FOLDER: tools whose h5tok writes a line to FOLDER/reads for each file whose counts are read
counting() {
	mkdir -p "$1"
	ln -sf "$(realpath "$BIN")"/* "$1"
	rm "$1/h5tok"
	# shellcheck disable=SC2016 # the tool's
	printf '#!/bin/sh\ncase "$*" in *--list-obs*) ;; *) for f; do case $f in *.h5ad) echo "$f" >> %s/reads ;; esac; done ;; esac\nexec %s/h5tok "$@"\n' "$(realpath "$1")" "$(realpath "$BIN")" > "$1/h5tok"
	chmod +x "$1/h5tok"
	touch "$1/reads"
}

@test "make pretrain: whole donors are held out; medians, graph and weights are of the others; the report has losses and probes" {
	counting count
	BIN=$PWD/count run -0 --separate-stderr pretrain DATA=in HELD_OUT=donor LABEL=cell_type EPOCHS=2
	[ "$stderr" = "" ] || fail "$stderr"
	R=results/pretrain/latest
	C=$(realpath results/corpus/latest)
	# how often each file was read: its numbers, two passes of medians, its tokens
	assert_equal "$(sort count/reads | uniq -c | awk '{ print $1 }' | sort -u)" 4
	held=$(awk -F '\t' '$3 == "held out" { print $1 }' $C/held-out.tsv)
	[ -n "$held" ]
	diff <(scview -q -c donor @$R/held-out.txt | sed 1d | sort -u) <(sort <<< "$held")
	run -0 comm -12 <(scview -q -c donor @$R/train.txt | sed 1d | sort -u) <(sort <<< "$held")
	assert_output ""
	assert_equal "$(cat <(scview -q -c cell @$R/train.txt | sed 1d) <(scview -q -c cell @$R/held-out.txt | sed 1d) | wc -l)" 450
	# by hand
	where=()
	while read -r donor; do where+=(--where "donor!=$donor"); done <<< "$held"
	h5tok -q --obs donor in/1.h5ad in/2.h5ad in/3.h5ad | scsample -q "${where[@]}" -o hand.counts 2> /dev/null
	rankenc -q --fit hand.counts | cut -f 1,2,4 | diff - <(cut -f 1,2,4 $C/vocab.tsv)
	rankenc -q -m $C/vocab.tsv --max-len 64 hand.counts -o hand.tok
	diff <(scview -q -c barcode,token hand.tok | sort) <(scview -q -c barcode,token @$R/train.txt | sort)
	n=$(scview -q -c cell hand.tok | sed 1d | wc -l)
	diff <(depgraph -q --min-overlap $((n / 20)) -O tsv hand.tok) <(depgraph -q -O tsv $R/dependency.graph)
	maskgen -q -g $R/dependency.graph --strategy corrmask --rate 0.15 --epochs 2 -u @$R/train.txt |
		sctrain mlm -q --config tiny --lr 0.003 --eval $R/valid.masked --eval-every 20 --patience 3 -o hand.model
	cmp hand.model/model.safetensors $R/model/model.safetensors
	# validation is on random masks of held-out cells
	diff <(scview -q -c cell $R/valid.masked | sed 1d | sort) <(scview -q -c cell @$R/held-out.txt | sed 1d | sort)
	sctrain eval -q -M hand.model $R/valid.masked | diff - $R/model.loss.tsv
	sctrain eval -q -M $R/untrained $R/valid.masked | diff - $R/untrained.loss.tsv
	for m in expression pca untrained model; do assert_file_not_empty $R/$m.probe.tsv; done
	assert_file_not_empty $R/report.html
	grep -q macro $R/report.txt
	# labels of two files only; of each cell the tokens that the training would have
	assert_equal "$(scview -q -c cell_type $R/known.tok | sed 1d | sort -u | paste -sd ' ')" "type1 type2 type3"
	scembed -q -M hand.model --max-len 64 $R/test.tok | scview -q -c x | cmp - <(scview -q -c x $R/model.test.emb)
	# again: nothing is read or trained
	before=$(stat -c %Y.%i $R/model/model.safetensors)
	: > count/reads
	BIN=$PWD/count run -0 pretrain DATA=in HELD_OUT=donor LABEL=cell_type EPOCHS=2
	names "pretrain/in- finished"
	assert_equal "$(stat -c %Y.%i $R/model/model.safetensors)$(cat count/reads)" "$before"
	# weights that are damaged are not taken for done
	cp $R/model/model.safetensors whole
	truncate -s -9 $R/model/model.safetensors
	run -2 pretrain DATA=in HELD_OUT=donor LABEL=cell_type EPOCHS=2
	names "$(realpath --relative-to . $R)/model/model.safetensors remove"
	refute_line --partial "sctrain"
	rm $R/model/model.safetensors
	run -0 pretrain DATA=in HELD_OUT=donor LABEL=cell_type EPOCHS=2
	cmp whole $R/model/model.safetensors
	# a new file and a vocabulary: only what is new is read, and the run is another one
	cp -r in more
	mv more/3.h5ad new.h5ad
	BIN=$PWD/count run -0 pretrain DATA=more HELD_OUT=donor VOCAB=$C/vocab.tsv
	first=$(readlink results/pretrain/latest)
	: > count/reads
	mv new.h5ad more
	BIN=$PWD/count run -0 pretrain DATA=more HELD_OUT=donor VOCAB=$C/vocab.tsv
	assert_equal "$(grep -c . count/reads) $(sort -u count/reads | xargs basename)" "2 new.h5ad"
	[ "$(readlink results/pretrain/latest)" != "$first" ]
}

@test "make pretrain: what is wrong is one line before the work" {
	wrong() { # WORDS SETTING...
		run -2 --separate-stderr corrmask pretrain SCALE=tiny RESULTS=bad "${@:2}"
		[ "${#stderr_lines[@]}" = 1 ] || fail "$stderr"
		names "$1"
		[ ! -e bad/pretrain/latest/model ] || fail "a model"
	}
	printf 'x\n' > note.txt
	wrong "DATA=none.h5ad no such file" DATA=none.h5ad
	wrong "DATA=@none.txt none.txt" DATA=@none.txt
	mkdir -p nothing
	wrong "DATA=nothing .h5ad" DATA=nothing
	wrong "HELD_OUT=doner no such column donor" DATA=in HELD_OUT=doner
	wrong "LABEL=kind no such column" DATA=in HELD_OUT=donor LABEL=kind
	wrong "HELD_OUT_SHARE=2 share" DATA=in HELD_OUT=donor HELD_OUT_SHARE=2
	wrong "STRATEGY=mask corrmask random" DATA=in STRATEGY=mask
	wrong "RATE=15 0.15" DATA=in RATE=15
	wrong "LR=fast" DATA=in LR=fast
	wrong "PRECISION=fp16 bf16" DATA=in PRECISION=fp16
	wrong "CONFIG=huge" DATA=in CONFIG=huge
	wrong "CONFIG=no/config.json no such file" DATA=in CONFIG=no/config.json
	wrong "BATCH=12 RANKS=5" DATA=in RANKS=5
	wrong "RANKS=0" DATA=in RANKS=0
	wrong "EPOCHS=x" DATA=in EPOCHS=x
	wrong "PATIENCE=no" DATA=in PATIENCE=no
	wrong "INIT=in model.safetensors" DATA=in INIT=in
	wrong "VOCAB=none.tsv no such file" DATA=in VOCAB=none.tsv
	wrong "TOKEN_TABLE= VOCAB=" DATA=in TOKEN_TABLE=table
	wrong "pretrain has no variable HELDOUT HELD_OUT" DATA=in HELDOUT=donor
	# what only the cells tell, before vocabulary, graph and training
	wrong_cells() {
		run -2 --separate-stderr corrmask pretrain SCALE=tiny RESULTS=bad "${@:2}"
		[ "${#stderr_lines[@]}" = 1 ] || fail "$stderr"
		names "$1"
		refute_line --regexp "medians|tokens:|sctrain"
	}
	scsample -q --min-genes 9999 all.counts | scview -q -O h5ad -o empty.h5ad -
	wrong_cells 'empty.h5ad no cells' DATA=empty.h5ad HELD_OUT=donor
	wrong_cells 'HELD_OUT=donor donor1' DATA=in/1.h5ad HELD_OUT=donor WHERE='donor=donor1'
	wrong_cells 'LABEL=cell_type 1 2' DATA=in/1.h5ad HELD_OUT=donor LABEL=cell_type WHERE='cell_type=type1'
	scsample -q -n 90 <(h5tok -q in/1.h5ad) | scview -q -O h5ad -o small.h5ad -
	wrong_cells '90 100 training' DATA=small.h5ad HELD_OUT_SHARE=0.001
	# donors are numbers in one file and words in another
	mkdir mixed
	$PYTHON -W ignore -c 'import anndata
for i in 1, 2:
    a = anndata.read_h5ad(f"in/{i}.h5ad")
    donor = a.obs["donor"].astype(str).str.extract("([0-9]+)")[0]
    a.obs["donor"] = donor.astype(int).to_numpy() if i == 1 else donor.astype("category")
    a.write_h5ad(f"mixed/{i}.h5ad")'
	run -0 corrmask pretrain SCALE=tiny RESULTS=mixed DATA=mixed HELD_OUT=donor
	run -0 corrmask pretrain --help
	for v in DATA HELD_OUT LABEL VOCAB INIT STRATEGY=corrmask CONFIG EPOCHS RANKS=1 PATIENCE=3 PRECISION; do assert_line --regexp "^    $v"; done
	run -0 corrmask list
	assert_equal "$(printf '%s\n' "${lines[@]}" | sed -n '/^Exp/{n;s/^ *\([a-z]*\).*/\1/p}')" pretrain
}

# bats test_tags=slow
@test "make pretrain: killed five times at random moments, the same bytes as undisturbed" {
	mkdir killed
	cd killed
	settings=(DATA=../in HELD_OUT=donor LABEL=cell_type EPOCHS=30 PATIENCE=0)
	pretrain "${settings[@]}" RESULTS=whole > /dev/null
	begin=$EPOCHREALTIME
	pretrain "${settings[@]}" RESULTS=timed > /dev/null
	took=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
	RANDOM=$$
	for k in 1 2 3 4 5; do
		setsid "$BASH" -c "$(declare -f pipelines pretrain); BIN='$BIN' BATS_TEST_DIRNAME='$BATS_TEST_DIRNAME' BATS_FILE_TMPDIR='$BATS_FILE_TMPDIR' pretrain $(printf '%q ' "${settings[@]}") RESULTS=killed" > /dev/null 2>&1 3>&- &
		pid=$!
		sleep "$(awk -v r=$RANDOM -v took="$took" 'BEGIN { print 0.2 + r / 32768 * took / 2 }')"
		kill -9 -- -$pid || true
		wait $pid || true
	done
	pretrain "${settings[@]}" RESULTS=killed > /dev/null
	for f in model/model.safetensors model/config.json model/vocab.tsv train.graph dependency.graph valid.masked model.test.emb model.probe.tsv model.loss.tsv; do
		[ ! -e whole/pretrain/latest/$f ] || cmp {whole,killed}/pretrain/latest/$f
	done
	diff <(cut -f 1-4,7- whole/pretrain/latest/model/train.tsv) <(cut -f 1-4,7- killed/pretrain/latest/model/train.tsv)
	cmp whole/corpus/latest/vocab.tsv killed/corpus/latest/vocab.tsv
}

# bats test_tags=slow
@test "make pretrain: single cells held out, random and PMI masks, rates, from a model, from tokens, with two ranks" {
	mkdir ways
	cd ways
	R=results/pretrain/latest
	run -0 pretrain DATA="../in/1.h5ad ../in/2.h5ad" STRATEGY=random RATE=0.1:0.5 LABEL=cell_type HELD_OUT=none
	assert_line --regexp '^cells  .* each by itself'
	n=$(h5tok -q ../in/1.h5ad ../in/2.h5ad | scview -q -c cell - | sed 1d | wc -l)
	assert_equal "$(scview -q -c barcode @$R/train.txt @$R/held-out.txt | sed 1d | sort -u | wc -l)" "$n"
	held=$(scview -q -c cell @$R/held-out.txt | sed 1d | wc -l)
	((held * 10 >= n - 10 && held * 10 <= n + 10)) # a tenth of each file, rounded
	assert_not_exist $R/dependency.graph
	cp -r $R/model first.model
	run -0 pretrain DATA="../in/1.h5ad ../in/2.h5ad" STRATEGY=pmi HELD_OUT=donor
	assert_file_not_empty $R/pmi.graph
	# go on from a model, with its vocabulary and network; its loss before the first step is that of the model
	run -0 pretrain DATA=../in/3.h5ad INIT=first.model HELD_OUT=donor
	cmp $R/model/vocab.tsv first.model/vocab.tsv
	diff <(sctrain eval -q -M first.model $R/valid.masked) $R/untrained.loss.tsv
	# the tokens of a corpus
	run -0 pipelines THREADS=2 corpus DIR=../in OBS=donor
	list=$(realpath results/corpus/latest/corpus.txt)
	run -0 pretrain DATA="$list" HELD_OUT=donor RESULTS=tokens
	assert_equal "$(scview -q -c barcode @tokens/pretrain/latest/train.txt @tokens/pretrain/latest/held-out.txt | sed 1d | wc -l)" 450
	if sctrain --version | grep -q 'Open MPI' && command -v mpirun > /dev/null; then
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 run -0 pretrain DATA=../in HELD_OUT=donor RANKS=2 RESULTS=ranks
		pretrain DATA=../in HELD_OUT=donor > /dev/null
		near <(cut -f 1,2,7 $R/model/train.tsv) <(cut -f 1,2,7 ranks/pretrain/latest/model/train.tsv)
	fi
}

# scored RUN: the donors of the cells that the probe scores are those that are held out, and no cell of them is one for training
scored() {
	diff <(scview -q -c donor "$1/test.tok" | sed 1d | sort -u) <(scview -q -c donor "@$1/held-out.txt" | sed 1d | sort -u) &&
		[ -z "$(comm -12 <(scview -q -c barcode "$1/test.tok" | sed 1d | sort) <(scview -q -c barcode "@$1/train.txt" | sed 1d | sort))" ]
}

# bats test_tags=slow
@test "make pretrain: files that come and go change the held-out donors, and the probe scores these; BIN can be relative; a file in a setting that changes is another run" {
	mkdir atlas
	R=grow/pretrain/latest
	cp in/1.h5ad in/2.h5ad atlas
	ln -sfn "$BATS_TEST_DIRNAME/../pipelines" pipelines
	ln -sfn "$(realpath "$BIN")" bin
	ask() { PATH=/usr/bin:/bin make -s -f pipelines/Makefile BIN=bin THREADS=2 RESULTS=grow pretrain SCALE=tiny DATA=atlas HELD_OUT=donor LABEL=cell_type "$@"; }
	run -0 ask
	scored $R
	# killed before the losses, and another run of the same corpus in between
	one=$(realpath $R)
	cp "$one/losses.tsv" losses.first
	rm "$one/losses.tsv" "$one"/report.*
	run -0 ask MAXLEN=20
	run -0 ask
	cmp "$one/losses.tsv" losses.first
	cp $R/model/vocab.tsv fixed.tsv
	cp $R/model/config.json fixed.json
	run -0 ask VOCAB=fixed.tsv
	scored $R
	scview -q -c donor "@$R/held-out.txt" | sed 1d | sort -u > before
	# a donor that comes before those in the order in which they are chosen (held_out.sh)
	first=$(for d in $(cat before) $(seq 200); do echo "$(sha256sum <<< "1 $d") $d"; done | sort | awk '{ print $3; exit }')
	scsim -q --cells 60 --genes 120 --modules 6 --types 3 --rarest .2 --donors 1 --depth 800 --seed 4 | scview -q -O h5ad -o atlas/4.h5ad -
	$PYTHON -W ignore -c 'import anndata, sys; a = anndata.read_h5ad("atlas/4.h5ad"); a.obs["donor"] = sys.argv[1]; a.obs_names = "d" + sys.argv[1] + a.obs_names; a.write_h5ad("atlas/4.h5ad")' "$first"
	run -0 ask VOCAB=fixed.tsv
	scored $R
	scview -q -c donor "@$R/held-out.txt" | sed 1d | sort -u > after
	run -1 cmp before after
	rm atlas/2.h5ad
	run -0 ask VOCAB=fixed.tsv
	scored $R
	run -0 ask
	scored $R
	sed 's/"intermediate_size":[^0-9]*[0-9]*/"intermediate_size": 32/' fixed.json > net.json
	run -0 ask CONFIG=net.json
	one=$(realpath $R)
	sed -i 's/"intermediate_size": 32/"intermediate_size": 64/' net.json
	run -0 ask CONFIG=net.json
	assert_not_equal "$(realpath $R)" "$one"
	grep -q '"intermediate_size":[^0-9]*64' $R/model/config.json
}

@test "make pretrain: what is wrong with values and files is said before the work, with the name of the file" {
	run -2 pretrain DATA=in RESULTS=no LR=0
	names "LR=0 rate"
	for bad in EPOCHS=0 EPOCHS=99999999999 MAXLEN=1 DEVICE=foo LR=x; do
		run -2 pretrain DATA=in RESULTS=no $bad
		names "$bad expected"
	done
	run -2 pretrain DATA= RESULTS=no
	names "DATA= empty"
	run -2 pretrain DATA=in HELD_OUT=patient RESULTS=no
	names "HELD_OUT=patient: in/1.h5ad has no such column donor"
	run -2 pretrain DATA=in HELD_OUT=donor WHERE=donor=nobody RESULTS=no
	names "no cells are left donor nobody"
	assert_not_exist no/pretrain/latest/model
}
