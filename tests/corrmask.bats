#!/usr/bin/env bats
# corrmask, one name for tools and experiments; completion in the shells
load helper

setup() {
	cd "$BATS_TEST_TMPDIR"
	SOURCES=$(realpath "$BATS_TEST_DIRNAME/..")
}

@test "corrmask: list has every tool and every target of make help, each once" {
	run -0 --separate-stderr corrmask list
	assert_equal "$stderr" ""
	assert_equal "$(printf '%s\n' "${lines[@]}" | sed -n '/^Exp/{n;s/^ *\([a-z]*\).*/\1/p;n;s/^ *\([a-z]*\).*/\1/p}' | paste -sd ' ')" "pretrain annotate"
	refute_line --regexp '^  table6 '
	{ printf '%s\n' "${lines[@]}"; corrmask list papers; } | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p' | sort > listed
	{
		echo list
		find "$BIN" -type f -executable -printf '%f\n' | grep -v '\.so$' | grep -vx corrmask
		env -u MAKEFLAGS -u MAKELEVEL make -s -f "$SOURCES/pipelines/Makefile" help | sed -n '/^Experiments/,/^Variables/s/^  \([a-z0-9-]*\) .*/\1/p'
	} | sort > wanted
	assert [ "$(wc -l < wanted)" -gt 25 ]
	diff wanted listed
	run -0 corrmask --help
	assert_line --index 0 --partial "Usage: corrmask COMMAND"
	run -0 corrmask --version
	run -1 bash -c 'corrmask list > /dev/full || exit 1'
}

@test "corrmask: a tool gets its arguments as they are, and gives its status" {
	run -0 corrmask scsim -q --cells 5 --genes 50 --modules 2 -o "a file"
	scsim -q --cells 5 --genes 50 --modules 2 -o again
	cmp "a file" again
	run -1 corrmask scview nothing
}

@test "corrmask: an experiment runs in the current folder, with a name of data that make must not expand" {
	scsim -q --cells 60 --genes 150 --depth 400 | scview -q -O h5ad -o "my \$x.h5ad" -
	run -0 corrmask table8 DATA="my \$x.h5ad" THREADS=1
	assert_line --partial "60 cells"
	assert_exist results/audit/latest/table8.txt
	run -0 corrmask list-runs
	assert_line --partial "audit/my__x-"
	run -2 corrmask demo DATA=no.h5ad
	assert_output --partial "DATA=no.h5ad: no such file"
}

# bats test_tags=slow
@test "corrmask EXPERIMENT: an error is one line without make's own, which has one more" {
	scsim -q --cells 60 --genes 150 --depth 400 | scview -q -O h5ad -o plain.h5ad -
	head -c 9000 plain.h5ad > cut.h5ad
	told() { # told LINE GOAL VARIABLE...
		run -2 --separate-stderr corrmask "${@:2}" RESULTS=r
		assert_equal "$stderr" "$1"
		run -2 --separate-stderr pipelines "${@:2}" RESULTS=r
		# make has another line where other jobs ran
		assert_equal "$(grep -cv ' Waiting for unfinished jobs' <<< "$stderr")" "$(grep -q '^corrmask' <<< "$1" && echo 1 || echo 2)"
	}
	told "corrmask demo: DATA=none.h5ad: no such file or folder" demo DATA=none.h5ad
	told "corrmask genes: GENE_LABELS=FILE is needed: a table of genes and their labels" genes DATA=plain.h5ad
	told "LABEL=kind: no such column in obs; it has: cell_type, donor" demo DATA=plain.h5ad LABEL=kind
	told "$(h5tok cut.h5ad 2>&1 >/dev/null)" table8 DATA=cut.h5ad
	told "plot-train: MODEL=DIR is needed" plot-train
}

# bats test_tags=slow
@test "corrmask EXPERIMENT: make ends with it; what was killed without a message is named; a terminal has the times of the stages" {
	running() { # start corrmask, wait for a stage
		corrmask demo SCALE=tiny CELLS=30000 THREADS=1 RESULTS="$1" > "$1.out" 2> "$1.err" &
		pid=$!
		make=
		until [ -n "$make" ] && stage=$(pgrep -P "$make" -f stage.sh); do
			sleep 0.05
			make=$(pgrep -P $pid make) || true
		done
	}
	running one
	kill -TERM $pid
	wait $pid || true
	for ((i = 0; i < 100; i++)); do kill -0 "$make" 2> /dev/null || break; sleep 0.1; done
	run ! kill -0 "$make"
	running two
	kill -KILL "$stage"
	status=0
	wait $pid || status=$?
	assert_equal "$status" 2
	run -0 cat two.err
	assert_output --regexp '^make: \*\*\* .* Killed$'
	need_pty
	$PYTHON -c 'import pty, sys; sys.exit(pty.spawn(["corrmask", "table8", "SCALE=tiny", "RESULTS=three"]))' > shown < /dev/null
	grep -q $'\r\033' shown
	grep -q '  depgraph' shown
}

@test "corrmask EXPERIMENT --help: its variables with their defaults, those of no other experiment" {
	run -0 corrmask demo --help
	assert_line --index 0 --partial "demo: "
	assert_line --regexp '^    LABEL=cell_type  *obs column'
	assert_line --regexp '^    MAXLEN=64 '
	refute_output --partial FT_LR
	refute_output --partial GENESETS
	run -0 corrmask demo DATA=x SCALE=paper -h
	assert_line --regexp '^    MAXLEN=2048 '
	run -0 corrmask table2 --help
	assert_line --regexp '^    STRATEGIES=random pmi pmi-rand corrmask-100 corrmask$'
	run -0 corrmask fig3 --help
	assert_equal "$(printf '%s\n' "${lines[@]}" | grep -oE '^ +[A-Z]+=' | tr -d ' \n')" SEEDS=SCALE=SEED=THREADS=CLUSTER=MEMORY=RESULTS=LAYER=ROUND=UNLOG=
}

@test "corrmask EXPERIMENT FILE: the file is DATA, several files too, whatever their names" {
	scsim -q --cells 60 --genes 150 --depth 400 | scview -q -O h5ad -o x.h5ad -
	cp x.h5ad "my \$x's \"1\".h5ad"
	mkdir data
	mv x.h5ad data
	run -0 corrmask table8 "my \$x's \"1\".h5ad" THREADS=1 -j 2
	assert_line --partial "60 cells"
	run -0 corrmask table8 "my \$x's \"1\".h5ad" data/x.h5ad THREADS=1
	assert_line --partial "120 cells"
	for file in data/no.h5ad no.h5ad 'no such folder'; do
		run -2 corrmask demo "$file"
		assert_output --partial "DATA=$file: no such file"
	done
	run -2 corrmask fig3 data/x.h5ad
	assert_output --partial "fig3 has no variable DATA (reliance has one); corrmask fig3 --help lists those it has"
}

@test "corrmask: a misspelled name gets the closest one, anything else does not" {
	run -2 make -f "$BATS_TEST_DIRNAME/../pipelines/Makefile" dmeo
	assert_output --partial "no target 'dmeo' (did you mean demo?)"
	run -2 make -f "$BATS_TEST_DIRNAME/../pipelines/Makefile" help OF=dmeo
	assert_output --partial "no experiment 'dmeo' (did you mean demo?)"
	for tool in corrmask sctrain; do
		run -0 $tool help
		assert_output "$($tool --help)"
	done
	for name in demo sctrain; do
		run -0 corrmask help $name
		assert_output "$(corrmask $name --help)"
	done
	run -2 corrmask demo --max-len
	assert_line --index 0 --partial "make: unrecognized option '--max-len'"
	run -0 corrmask demo --dry-run --jobs 2
	for name in data/.h5ad everything; do
		run -2 corrmask $name
		assert_line --index 0 "corrmask: unknown command '$name'"
	done
}

@test "corrmask: the manual page names what it does, and without make it says what is missing" {
	run -0 grep -c '^\.It Nm corrmask' "$SOURCES/man/corrmask.1.in"
	mkdir empty
	run -1 env PATH="$PWD/empty" "$BIN/corrmask" demo
	assert_output "corrmask: make: No such file or directory: the experiments need it (Debian package make)"
}

@test "--completion has the options of --help" {
	all() { # COMMAND...: of each (sub)command, the options of --help and those of --completion
		"$@" --help | grep -oE '^ {2,6}(-., )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' > help
		"$@" --completion | cut -f 1 > words
		diff help words || fail "$*"
		"$@" --completion | awk -F '\t' 'NF != 3 || $3 == "" { exit 1 }' || fail "$*: not three fields"
	}
	for t in h5tok rankenc depgraph maskgen "scperturb apply" "scperturb screen" scembed "scpredict cells" "scpredict genes" "scpredict expression" "scpredict attribution" "screduce expression" "screduce pca" scsample scsim scview "sctrain mlm" "sctrain value" "sctrain wced" "sctrain cells" "sctrain genes" "sctrain nb" "sctrain eval" \
		"ctaprobe cells" "ctaprobe transfer" "scgenes network" "scgenes markers" "ctaprobe score" "ctaprobe genes" "scmetric effective-rank" "armstat leaderboard" "armstat compare" "scmetric reference" \
		"scmetric integration" "scmetric reconstruction" "scperturb shift"; do
		# shellcheck disable=SC2086
		all $t
	done
	run -0 sctrain --completion
	assert_line --regexp $'^mlm\t\t[A-Z]'
}

@test "completion in bash: subcommands, options, words of a choice, experiments and their variables" {
	# shellcheck source=/dev/null
	source <(sed "s/@TOOLS@/maskgen sctrain corrmask/" "$SOURCES/src/completion.bash")
	complete_words() {
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_corrmask 2>/dev/null
		echo "${COMPREPLY[*]}"
	}
	assert_equal "$(complete_words maskgen --rate-)" "--rate-uniform --rate-choice --rate-linear"
	assert_equal "$(complete_words maskgen --strategy pm)" "pmi pmi-rand"
	assert_equal "$(complete_words maskgen --graph p)" "" # a file
	assert_equal "$(complete_words sctrain "")" "mlm value wced cells genes nb eval"
	assert_equal "$(complete_words sctrain mlm --sched)" "--schedule"
	assert_equal "$(complete_words sctrain mlm --schedule "")" "linear cosine constant"
	assert_equal "$(complete_words corrmask sctrain ce)" "cells"
	assert_equal "$(complete_words corrmask dem)" "demo demo-bmfm"
	assert_equal "$(complete_words corrmask demo LAB)" "LABEL="
	assert_equal "$(complete_words corrmask table6 LAB)" "LABELLED= LABEL="
	assert_equal "$(complete_words corrmask demo DATA = x)" ""
}

@test "completion in zsh reads as zsh code" {
	command -v zsh > /dev/null || skip "no zsh"
	zsh -n "$SOURCES/src/completion.zsh"
}

@test "without a terminal, long work prints lines of progress; -q and --progress never print none" {
	export CORRMASK_LOG_SECONDS=0.000001
	run -0 --separate-stderr scsim --cells 9000 --genes 60 --modules 2 --depth 50 -o out
	assert_regex "${stderr_lines[0]}" '^scsim: [0-9]+ of 9000 cells, [0-9:]+ to go$'
	for quiet in "-q" "--progress never"; do
		# shellcheck disable=SC2086
		run -0 --separate-stderr scsim $quiet --cells 9000 --genes 60 --modules 2 --depth 50 -o out
		assert_equal "$stderr" ""
	done
	CORRMASK_LOG_SECONDS=30 run -0 --separate-stderr scsim --cells 9000 --genes 60 --modules 2 --depth 50 -o out
	assert_equal "$stderr" ""
}

@test "numbers print as they were written, and the stream keeps all their digits" {
	scsim -q --cells 20 --genes 60 --modules 2 | rankenc -q --fit --min-cells 1 -o v -
	scsim -q --cells 20 --genes 60 --modules 2 | rankenc -q -m v -o t -
	maskgen -q --rate 0.42 -o m t
	run -0 scview -H m
	assert_output --partial '"--rate 0.42 --seed 1"'
	run -0 bash -c 'zstd -dcq m | head -c 20000 | strings'
	assert_output --partial -- "--rate 0.41999999999999998"
	# a training goes on after a checkpoint that was written before, with the option in another form
	sctrain mlm -q --config tiny -o model m
	maskgen -q --rate .4200 --resume model -o m2 t
}

@test "one list of tools: what is built, what corrmask lists, and the pages" {
	for f in "$BIN"/*; do
		name=${f##*/}
		case $name in corrmask | *.so | sc*.py) ;; *) echo "$name" ;; esac
	done | sort > built
	sed -n 's/^TOOL(\([a-z0-9]*\),.*/\1/p' "$SOURCES/src/tools.def" > listed
	sort listed | diff built - || fail "src/tools.def"
	sed -n '/^\.Bl -tag/,/^\.El/s/^\.It Xr \([a-z0-9]*\) 1$/\1/p' "$SOURCES/man/corrmask.7.in" | diff listed - || fail "man/corrmask.7"
	corrmask list | sed -n '/^From/,/^Experiments/s/^  *\([a-z0-9]*\)  .*/\1/p' | diff listed - || fail "corrmask list"
	while read -r name; do [ -e "$SOURCES/man/$name.1.in" ] || fail "man/$name.1"; done < listed
}
