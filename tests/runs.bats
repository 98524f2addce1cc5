#!/usr/bin/env bats
# Folders of runs: other settings have another folder, odd names of files work, and what is wrong is told before anything is made
load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	export PATH=$BIN:$PATH
	scsim -q --cells 60 --genes 150 --depth 400 --seed 1 -o c.counts
	mkdir other
	scview -q -O h5ad -o "my heart's \$x.h5ad" c.counts
	scview -q -O h5ad -o plain.h5ad c.counts
	cp plain.h5ad other
	rankenc -q --fit c.counts -o v.tsv
	rankenc -q -m v.tsv -o c.tok c.counts
}

setup() { cd "$BATS_FILE_TMPDIR"; }

folder() { "$BATS_TEST_DIRNAME/../pipelines/run.sh" folder results/demo "$@"; }
latest() { readlink "results/$1/latest"; }

@test "common.sh: options are named, known and have values; without a required one the synopsis is shown" {
	cat > opt.sh <<-END
		#!/usr/bin/env bash
		# A script.
		#     opt.sh --one A [--two-words B]
		. '$BATS_TEST_DIRNAME/../pipelines/common.sh'
		one='' other='' two_words=b
		options 'one other' 'two-words' "\$@"
		printf '%s|' "\$one" "\$other" "\$two_words"
	END
	run -0 bash opt.sh --one 1 --other 2
	assert_output "1|2|b|"
	run -0 bash opt.sh --two-words 'x  $(touch y)' --other --one --one -3
	assert_output '-3|--one|x  $(touch y)|'
	assert_not_exist y
	local wrong
	for wrong in "" "--one 1" "--other 2" "--one 1 --other" "--one 1 --other 2 --two-words" "--one 1 --other 2 3" "--one 1 --other 2 --three 3" \
		"--one 1 --other 2 --two_words 3" "one 1 --other 2" "-one 1 --other 2" "--one 1 --other 2 --wo 3"; do
		# shellcheck disable=SC2086 # words
		run -2 bash opt.sh $wrong
		assert_output "opt.sh --one A [--two-words B]"
	done
	run -2 bash opt.sh --one 1 --other ""
}

@test "runs: one epoch is an epoch, twelve are epochs" {
	run -0 make -s -f "$BATS_TEST_DIRNAME/../pipelines/Makefile" --eval 'say: ; @echo "$(pretrained_how)"' SCALE=tiny EPOCHS=1 say
	assert_output --partial "tiny, 1 epoch of batches of"
	run -0 make -s -f "$BATS_TEST_DIRNAME/../pipelines/Makefile" --eval 'say: ; @echo "$(pretrained_how)"' SCALE=tiny EPOCHS=12 say
	assert_output --partial "tiny, 12 epochs of batches of"
}

@test "run.sh: other settings, another file of the same name, a file that has changed: another folder; the same settings: the same one" {
	cp plain.h5ad mine.h5ad
	was=$(folder DATA=mine.h5ad SEED=1)
	assert_regex "$was" '^results/demo/mine-[0-9a-f]{8}$'
	assert_equal "$(folder "DATA=$PWD/mine.h5ad" SEED=1)" "$was"
	for other in "DATA=mine.h5ad SEED=2" "DATA=other/plain.h5ad SEED=1" "DATA=other/plain.h5ad SEED=2"; do
		# shellcheck disable=SC2086
		folder $other
	done > folders
	touch -d 2020-01-01 mine.h5ad
	folder DATA=mine.h5ad SEED=1 >> folders
	# another content of the same size and time, as cp -p and rsync -t leave it
	tr 'a-z' 'b-za' < mine.h5ad > twin.h5ad
	touch -d 2020-01-01 twin.h5ad
	cp -p twin.h5ad mine.h5ad
	folder DATA=mine.h5ad SEED=1 >> folders
	touch -d '2020-01-01 00:00:00.5' mine.h5ad
	folder DATA=mine.h5ad SEED=1 >> folders
	echo "$was" >> folders
	assert_equal "$(sort -u folders | wc -l)" 7
	# names that make and the shell leave alone
	run -0 folder "DATA=my heart's \$x.h5ad" SEED=1
	assert_output --regexp '^results/demo/my_heart_s__x-[0-9a-f]{8}$'
	run -0 folder "DATA=mine.h5ad \"my heart's \$x.h5ad\""
	assert_output --regexp '^results/demo/mine\+1-'
	run -0 folder DATA=
	assert_output --regexp '^results/demo/sim-'
}

@test "run.sh: another file in the folder of a model, in the place of an old one, is another folder: shards, config, vocabulary, dictionaries beside it" {
	mkdir -p models/m models/geneformer
	for f in models/m/{model-00001-of-00002.safetensors,model-00002-of-00002.safetensors,model.safetensors.index.json,config.json,vocab.tsv} \
		models/geneformer/token_dictionary.pkl; do
		echo "$f" > "$f"
	done
	folder MODEL=models/m > folders.m
	assert_equal "$(folder MODEL=models/m)" "$(cat folders.m)"
	for f in models/m/* models/geneformer/*.pkl; do
		tr a-y b-z < "$f" > twin
		touch -r "$f" twin
		cp -p twin "$f"
		folder MODEL=models/m >> folders.m
	done
	assert_equal "$(sort -u folders.m | wc -l)" 7
	run -0 "$BATS_TEST_DIRNAME/../pipelines/run.sh" settings r/embed DATA=plain.h5ad MODEL=models/m
	run -0 cat r/embed/latest/settings
	assert_line --regexp "^MODEL = $PWD/models/m \([0-9]+ bytes, 6 files, [0-9a-f]{16}\)$"
	run -0 "$BATS_TEST_DIRNAME/../pipelines/run.sh" list r
	assert_output --partial "MODEL=$PWD/models/m"
	refute_output --partial "bytes"
}

# bats test_tags=slow
@test "runs: one experiment after another keeps what is there; list-runs lists them, clean-runs removes one" {
	run -0 pipelines table8 TOKENS=c.tok
	was=$(latest audit)
	cp results/audit/"$was"/table8.txt first
	run -0 pipelines table8 TOKENS=c.tok SEED=2
	assert_line "  depgraph"
	other=$(latest audit)
	[ "$other" != "$was" ]
	cmp first results/audit/"$was"/table8.txt
	run cat results/audit/"$other"/settings
	assert_line --regexp "^TOKENS = $PWD/c.tok \([0-9]+ bytes, 20"
	assert_line "SEED = 2"
	# back to the first
	run -0 pipelines table8 TOKENS=c.tok
	refute_line "  depgraph"
	assert_equal "$(latest audit)" "$was"
	run -0 pipelines list-runs
	assert_line --regexp "^audit/$was\*  20"
	assert_line --regexp "^audit/$other  20"
	assert_line --partial "/c.tok SEED=2 "
	mkdir -p results/demo/x-1 results/prepared/x-1
	echo "name = x" | tee results/demo/x-1/settings > results/prepared/x-1/settings
	run -0 pipelines list-runs
	assert_equal "$(printf '%s\n' "${lines[@]}" | grep 'not finished' | cut -d ' ' -f 1)" "demo/x-1"
	assert_line --regexp '^demo/x-1  20.* \(not finished\)$'
	rm -r results/demo/x-1 results/prepared/x-1
	for wrong in "" nothing ../other "audit/$was/log" audit/latest "audit/$other results"; do
		run -2 pipelines clean-runs RUN="$wrong"
		assert_output --partial "make list-runs lists the runs"
	done
	assert_exist results/audit/"$other"/table8.txt
	run -0 pipelines clean-runs RUN="audit/$other"
	assert_not_exist results/audit/"$other"
	run -0 pipelines clean-runs RUN="audit/$was"
	assert_equal "$(ls results/audit)" ""
}

# bats test_tags=slow
@test "runs: a file name with spaces, quotes and dollar signs, and several files" {
	run -0 pipelines demo DATA="my heart's \$x.h5ad" SCALE=tiny CELLS=0
	assert_line "corrmask demo: my heart's \$x.h5ad, label cell_type"
	names "copies partners edges"
	assert_line --partial "make pretrain DATA='my heart'\"'\"'s \$x.h5ad' HELD_OUT" # the next command as a shell takes it
	assert_line "No comparison: the graph has no edges, so CorrMask's masks were random masks. Raise MAXLEN or CELLS."
	refute_output --regexp '(Differs|Not shown to differ|no difference)'
	assert_equal "$(cat results/demo/latest/findings.txt)" "No comparison: the graph has no edges, so CorrMask's masks were random masks. Raise MAXLEN or CELLS."
	# what a warning says of several files is said once
	run -0 pipelines demo DATA="my heart's \$x.h5ad" SCALE=tiny CELLS=0 RESULTS=warned
	assert_equal "$(printf '%s\n' "${lines[@]}" | grep -c 'warning:.*has no edges: all masks are random')" 1
	assert_file_not_empty results/demo/latest/demo.svg
	run -2 pipelines reliance DATA="my heart's \$x.h5ad" SCALE=tiny CELLS=0
	names "reliance: partners MAXLEN CELLS"
	assert_not_exist results/reliance/latest/table.txt
	run -0 pipelines table8 DATA="other/plain.h5ad \"my heart's \$x.h5ad\""
	assert_line --partial "120 cells"
}

# bats test_tags=slow
@test "group.sh: auto finds columns of donors, of samples only if samples have cells enough and several classes; the report says how cells are split" {
	group() { "$BATS_TEST_DIRNAME/../pipelines/group.sh" auto cell_type "$1"; }
	scview -q -O h5ad -o g.h5ad c.counts
	named() { # named OUT PYTHON: the cells with other columns
		$PYTHON -W ignore -c "import anndata; a = anndata.read_h5ad('g.h5ad'); o = a.obs; d = o.pop('donor').astype(str); n = len(o); $2; a.write_h5ad('$1.h5ad')"
		h5tok -q -o "$1" "$1.h5ad"
	}
	assert_equal "$(group c.counts)" donor
	named upper "o['Donor_ID'] = d"
	assert_equal "$(group upper)" Donor_ID
	named both "o['sample'] = d; o['Patient'] = d"
	assert_equal "$(group both)" Patient
	named sample "o['sample'] = d"
	assert_equal "$(group sample)" sample
	named three "o['donor'] = ['abc'[i % 3] for i in range(n)]"
	assert_equal "$(group three)" ""
	named many "o['sample'] = [str(i % 6) for i in range(n)]" # 60 / 10 cells
	assert_equal "$(group many)" ""
	named sorted "o['sample'] = o['cell_type'].astype(str)" # a sample a class
	assert_equal "$(group sorted)" ""
	assert_equal "$("$BATS_TEST_DIRNAME/../pipelines/group.sh" auto '' sample)" sample
	run -0 pipelines demo DATA=sorted.h5ad SCALE=tiny RESULTS=bycell
	assert_line --regexp '^cells: 45 to train, 15 to test, split by cell'
	assert_line --regexp '^note: split by cell: no column such as donor.* GROUP=COLUMN names one \(such as: sample\); GROUP=none says that cells are right$'
	run -0 pipelines demo DATA=sorted.h5ad SCALE=tiny RESULTS=bycell GROUP=none
	assert_line --regexp '^cells: 45 to train, 15 to test, split by cell'
	refute_line --partial "note: split by cell"
}

# bats test_tags=slow
@test "runs: labels and groups that obs has not are named with those that it has, before the counts are read" {
	for wrong in "LABEL=celltype (did you mean cell_type?)" "GROUP=patient_id" "GROUP=donor_id (did you mean donor?)"; do
		name=${wrong%% *}
		run -2 pipelines demo DATA=plain.h5ad RESULTS=labels "$name"
		assert_line --index 0 "$name: no such column in obs${wrong#"$name"}; it has: cell_type, donor"
		refute_line --partial h5tok
	done
	$PYTHON -W ignore -c 'import anndata; a = anndata.read_h5ad("plain.h5ad"); a.obs["score"] = 0.5; a.write_h5ad("score.h5ad")'
	run -2 pipelines finetune DATA=score.h5ad RESULTS=labels LABEL=score
	names "LABEL=score: obs f64 classes"
	run -0 find labels -name '*.counts'
	assert_output ""
}

# bats test_tags=slow
@test "runs: files that are missing and unknown settings are named before anything is made" {
	mkdir empty
	cd empty
	told() {
		run -2 pipelines "${@:2}"
		assert_output --partial "$1"
		assert_equal "${#lines[@]}" 1
	}
	told "DATA=no thing.h5ad: no such file" demo DATA="no thing.h5ad"
	told "DATA=b.h5ad: no such file" demo DATA="../plain.h5ad b.h5ad"
	told "TOKENS=no.tok: no such file" table3 TOKENS=no.tok
	told "INIT=no.model: no such file" finetune INIT=no.model
	told "INIT=../other: no model.safetensors in it" table6 finetune INIT=../other
	told "GENE_LABELS=no.tsv: no such file" genes GENE_LABELS=no.tsv
	told "GENE_LABELS=FILE is needed" genes DATA=../plain.h5ad
	told "GENESETS=no.gmt: no such file" genesets GENESETS=no.gmt TOKENS=../c.tok
	for goal in demo finetune genes table6 fig3 fig4; do told "SCALE=huge: expected tiny, small or paper" $goal SCALE=huge; done
	told 'SEEDS=1,2: expected whole numbers with spaces between, such as SEEDS="1 2"' demo SEEDS=1,2
	told "SEEDS=1 2 01: 1 is given twice" demo SEEDS=" 1 2 01 "
	told "BMFM_ARMS=wced wced: wced is given twice" combine BMFM_ARMS="wced wced"
	told "SIZES=0.5 .50: 0.5 is given twice" table6 SIZES="0.5 .50"
	told "BMFM_ARMS: arm 'wced+hce+moved-hce': expected wced[+rate][+labels][+tuned]" combine BMFM_ARMS="wced wced+hce+moved-hce"
	told "KEEP_MODELS=yes: expected 1 or 0" ties KEEP_MODELS=yes
	told "MIN_EXPRESSED=abc: expected a whole number from 1" bmfm-learnability MIN_EXPRESSED=abc
	told "ONTOLOGY=no.obo: no such file" combine ONTOLOGY=no.obo
	told "PROGRAMS=no.tsv: no such file" bmfm-learnability PROGRAMS=no.tsv
	told "EPOCHS=many: expected a whole number" ties EPOCHS=many
	told "CELLS=1e4: expected a whole number" table6 CELLS=1e4
	assert_equal "$(ls)" ""
}

# bats test_tags=slow
@test "runs: a misspelled variable or a file as a target is refused with what was meant, before anything is made" {
	mkdir misspelled
	cd misspelled
	refused() { # refused TEXT GOAL VARIABLE...
		run -2 pipelines "${@:2}"
		assert_output --partial "$1"
		assert_equal "${#lines[@]}" 1
	}
	refused "demo has no variable DTA (did you mean DATA?)" demo DTA=foo
	refused "demo has no variable data (did you mean DATA?)" demo data=../plain.h5ad
	refused "demo has no variable lable (did you mean LABEL?)" demo SCALE=tiny lable=x
	refused "demo has no variable FT_LR (finetune has one)" demo FT_LR=1
	refused "fig3 has no variable nothing_like_it; corrmask fig3 --help" fig3 nothing_like_it="a b DATA=c"
	refused "../plain.h5ad is a file: expected DATA=../plain.h5ad" demo ../plain.h5ad
	refused "data/x.h5ad is a file: expected DATA=data/x.h5ad" demo data/x.h5ad
	assert_equal "$(ls)" ""
	run -0 pipelines demo -n DATA=../plain.h5ad LABEL=cell_type CC=gcc V=1
	run -0 pipelines demo finetune -n FT_LR=1
}

# bats test_tags=slow
@test "runs: an experiment knows every variable among its settings, and those of the documents' commands" {
	known() { awk -v of="$1" -v check="$2" -f "$BATS_TEST_DIRNAME/../pipelines/variables.awk" "$BATS_TEST_DIRNAME"/../pipelines/{*,*/*}.mk; }
	all=(DEMO=demo RELIANCE=reliance FT=finetune GC=genes AUDIT=table3 GENESETS=genesets T6=table6 T6_IN=table6 TIES=ties R2=r2mae-cells FIG3=fig3 FIG4=fig4
		ANNOTATE=annotate)
	checked=0
	for with in "" DATA=x "MEDIANS=x TOKEN_TABLE=y GENE_NAMES=z CORPUS=c MIN_CLASS=1 RANK_ARGS=-q PT_ARGS=-q GENES=5 CROSS=c"; do
		while read -r of names; do
			names=$(sed 's/T6_EPOCHS/EPOCHS/; s/FIG3_SEEDS/SEEDS/' <<< "$names")
			assert_regex "$names" "SCALE|SEED|CONFIG"
			assert_equal "$(known "$of" "$names")" ""
			checked=$((checked + 1))
		done < <(make -s -f "$BATS_TEST_DIRNAME/../pipelines/Makefile" --eval "ask: ; @\$(foreach o,${all[*]},echo \$(lastword \$(subst =, ,\$o)) \$(\$(firstword \$(subst =, ,\$o))_SETTINGS);)" ask $with)
	done
	assert_equal $checked 39
	run -0 --separate-stderr pipelines help OF=embed
	assert_equal "$stderr" "" # such as a file of variables that is not there
	assert_line "  only without MODEL, of the small network that is trained then:"
	experiments=$(pipelines help | sed -n '/^Experiments/,/^Variables/s/^  \([a-z0-9-]*\) .*/\1/p')
	cd "$BATS_TEST_DIRNAME/.."
	commands=0
	while read -r goal names; do
		grep -qx -- "$goal" <<< "$experiments" || continue
		assert_equal "$(known "$goal" "$names")" ""
		commands=$((commands + 1))
	done < <(cat README.md docs/{*,*/*}.md man/*.in pipelines/{*,*/*}.mk | grep -oP '(make|corrmask)( -j *\d+)? [a-z0-9-]+( [A-Z_]+=("[^"]*"|\S*))+' |
		sed -E 's/^(make|corrmask)( -j *[0-9]+)? //; s/="[^"]*"//g; s/=[^ ]*//g')
	[ $commands -gt 30 ]
}

@test "runs: SCALE=paper has the values of the paper" {
	ask() { make -s -f "$BATS_TEST_DIRNAME/../pipelines/Makefile" --eval 'ask: ; @echo "$(CONFIG) $(EPOCHS) $(BATCH) $(LR) $(PT_ARGS); $(FT_EPOCHS) $(FT_LR) $(FT_STOP); $(MIN_CLASS) $(MAXLEN)"' ask DATA=x.h5ad "$@"; }
	run -0 ask SCALE=paper
	assert_output "corrmask-paper 3 12 0.001 --warmup 10000; 5 5e-5 --best last; 0.05 2048"
	run -0 ask SCALE=paper PROTOCOL= PT_ARGS=
	assert_output "corrmask-paper 3 12 0.001 ; 5 5e-5 --patience 3;  2048"
	refute_regex "$(make -s -f "$BATS_TEST_DIRNAME/../pipelines/Makefile" --eval 'ask: ; @echo "$(PRETRAINED_SETTINGS)"' ask)" PT_ARGS # results that are there are found
	run -0 ask SCALE=small
	assert_output "tiny 6 12 0.003 ; 10 1e-3 --patience 3;  256"
}

# bats test_tags=slow
@test "runs: an experiment has the same cells and trainings whatever else is made with it" {
	plan() { pipelines -n RESULTS=plan "$@" | sed 's/-@ [0-9]*//'; }
	stages() { grep -E '(scsim -v|train.sh) ' | grep -E 'sim|epochs' | sort; }
	plan demo | stages > alone
	grep -q -e 'scsim .* --cells 3000 ' alone
	grep -q -e '--epochs 12 ' alone
	for other in genes-map perturb; do
		plan $other | stages > theirs
		run -0 comm -12 alone theirs
		assert_output "" # another experiment: its own cells
		plan $other demo | stages > both
		sort -u alone theirs | diff - both
	done
	# variants of an experiment, each with its own defaults, one after another
	variants() { plan "$@" | grep -oE -e '--arm [^ ]+ --size [^ ]+' | sort -u; }
	variants table2 > one
	variants fig7 > two
	variants table2 fig7 | diff <(sort -u one two) -
	assert_equal "$(grep -c -e '--size 1$' one)" 5
	run -0 variants fig7 STRATEGIES="random pmi" SIZES=0.5
	assert_output "$(printf -- '--arm %s\n' 'pmi --size 0.5' 'random --size 0.5' 'scratch --size 0')"
}

@test "runs: the variables of the experiments have the same defaults in the sources and installed" {
	variables() { env -u MAKEFLAGS make -s "$@" help OF=all | sed -n '/^Variables of the experiments/,/^Benchmarks/p' | sed -n 's|=.*pipelines/|=pipelines/|; /=/p'; }
	variables -f "$BATS_TEST_DIRNAME/../pipelines/Makefile" >installed
	variables -C "$BATS_TEST_DIRNAME/.." | diff - installed
	grep -q '^    CELLS=3000 ' installed
}

# bats test_tags=slow
@test "a stage longer than ten seconds shows its time and progress, on a terminal only" {
	need_pty
	cat > slow.sh <<-'EOF'
		#!/usr/bin/env bash
		. "$P/common.sh"
		logs=$PWD/log
		work() { printf 'step 3 of 4, 00:00:05 to go\n' > "$CORRMASK_PROGRESS"; sleep 13; }
		quick() { [ -z "$CORRMASK_PROGRESS" ]; }
		if [ -t 2 ]; then stage slow work; else stage quick quick; fi
		echo done
	EOF
	chmod 755 slow.sh
	export P=$BATS_TEST_DIRNAME/../pipelines
	$PYTHON -c 'import pty, sys; sys.exit(pty.spawn(["./slow.sh"]))' > shown < /dev/null
	grep -q 'slow: 0:1[0-9], step 3 of 4, 00:00:05 to go' shown
	grep -q "done" shown
	assert_not_exist log/slow.progress
	run -0 ./slow.sh 2> err < /dev/null
	assert_line "  quick"
	run ! grep -q $'\r' <(printf '%s' "$output")
	# what its tools measured, and the time of the stage
	awk -F '\t' '$1 == "seconds" && $2 > 12 && $2 < 30 { ok = 1 } END { exit !ok }' log/slow.report
}

# bats test_tags=slow
@test "runs: two makes in one folder of results: the second waits, says for whom, and finds the results of the first" {
	pipelines table8 TOKENS=c.tok RESULTS=single >/dev/null 2>&1
	for try in 1 2 3; do
		rm -rf both
		pipelines table8 TOKENS=c.tok RESULTS=both >one 2>&1 &
		one=$!
		sleep "0.$try"
		pipelines table8 TOKENS=c.tok RESULTS=both >two 2>&1 &
		two=$!
		wait "$one" || { cat one; return 1; }
		wait "$two" || { cat two; return 1; }
		run cat one two
		assert_line --regexp '^both: waiting for make [0-9]+, which works in this folder since 20'
		cmp single/audit/latest/table8.txt both/audit/latest/table8.txt
	done
	# the lock of a make that was killed is free
	sed -i 's/^[0-9]* \([^ ]*\) [0-9]*/1 \1 12345/' both/.lock
	run -0 pipelines table8 TOKENS=c.tok RESULTS=both
	refute_output --partial waiting
	# that of another machine is said, not waited for
	sed -i 's/^\([0-9]*\) [^ ]*/\1 elsewhere/' both/.lock
	run -0 pipelines table8 TOKENS=c.tok RESULTS=both
	assert_output --regexp "both: make [0-9]+ on elsewhere took this folder at 20"
}

@test "stage.sh: a stage that fails with an empty log says so, as on a full disk" {
	run -1 "$BATS_TEST_DIRNAME/../pipelines/stage.sh" logs quiet false
	assert_line --regexp '^quiet: failed, and its messages are not in logs/quiet.log: is the disk full \([0-9.]+[KMGTP]? free\)\?$'
	run -1 "$BATS_TEST_DIRNAME/../pipelines/stage.sh" logs loud bash -c 'echo why >&2; exit 3'
	assert_line why
	refute_output --partial "disk"
}
