# What all tools have in common: help, misuse, terminals, input that is no input, full disks, pipes that break.
load helper

# TOOL: the arguments of a run that works, without its input and output; its input; "records" if it writes a stream.
tools() {
	cat <<-END
	h5tok|h5tok|sim.h5ad|records
	h5tok|h5tok --rank sim.vocab|sim.h5ad|records
	rankenc|rankenc -m sim.vocab|sim.counts|records
	depgraph|depgraph|sim.tok|records
	maskgen|maskgen|sim.tok|records
	sctrain|sctrain mlm --config tiny|sim.masked|model
	scperturb|scperturb apply --delete all|sim.tok|records
	scembed|scembed -M sim.model|sim.tok|records
	scpredict|scpredict cells -M sim.types|sim.tok|records
	screduce|screduce pca -k 5|sim.counts|records
	ctaprobe|ctaprobe cells --label cell_type|sim.emb|text
	scmetric|scmetric integration --label cell_type|sim.emb|text
	scgenes|scgenes network|sim.genes|records
	armstat|armstat leaderboard -m macro_f1 sim.score||text
	scsample|scsample -n 50|sim.counts|records
	scview|scview|sim.counts|text
	scsim|scsim --cells 50||records
	END
}

# each FUNCTION: run it with (tool, command, input, kind) for every tool that is built
each() {
	local tool command input kind
	while IFS='|' read -r tool command input kind; do
		[ -x "$BIN/$tool" ] || continue
		echo "-- $tool"               # bats shows it when the test fails; no ||, which would turn off set -e inside
		"$1" "$tool" "$command -q" "$input" "$kind" </dev/null
	done < <(tools)
}

# one_line COMMAND...: it fails with exit status 1 and one line that begins with its name
one_line() {
	run "$@" </dev/null
	assert_equal "$status" 1
	assert_equal "${#lines[@]}" 1
	assert_output --regexp "^$1( [a-z]+)?: "
}

# Nothing named out that looks whole, nor a temporary. (A model directory may be there, without a model.)
no_output() {
	[ ! -d out ] || {
		assert_not_exist out/model.safetensors
		rm -r out
	}
	run bash -c 'ls -d out*'
	assert_failure
}

# Names of the subcommands in --help, under "Commands"
subcommands() {
	"$1" --help | sed -n '/Commands/,/^$/s/^  \([a-z][a-z-]*\)  .*/\1/p'
}

setup_file() {
	export SMALL=$BATS_FILE_TMPDIR/small
	mkdir "$SMALL"
	make_small "$SMALL"
	cd "$SMALL"
	maskgen -q --strategy none --keep cell_type sim.tok | sctrain cells -q --label cell_type --init sim.model -o sim.types
	scembed -q -M sim.model --of genes sim.tok -o sim.genes
	ctaprobe cells -q --label cell_type sim.emb -o sim.score
}

setup() {
	cd "$SMALL"
}

@test "every tool is in the list of this file" {
	for t in "$BIN"/*; do
		case $t in *.so | */corrmask) continue ;; esac   # the CUDA backend; corrmask.bats
		[ ! -f "$t" ] || [ ! -x "$t" ] || tools | grep -q "^${t##*/}|" || fail "${t##*/} is not"
	done
}

@test "--help goes to standard output, exit 0; so does --version" {
	check() {
		run --separate-stderr "$1" --help
		assert_success
		[ -z "$stderr" ]
		assert_line -n 0 --regexp "^Usage: $1 "
		for sub in $(subcommands "$1"); do
			run --separate-stderr "$1" "$sub" -h
			assert_success
			[ -z "$stderr" ]
			assert_line -n 0 --regexp "^Usage: $1 $sub "
		done
		run --separate-stderr "$1" -V
		assert_success
		assert_output --regexp "^$1 [0-9.]+ \(scstream 1\.0"
	}
	each check
}

@test "a full disk fails --help" {
	check() {
		run bash -c "$1 --help >/dev/full"
		assert_failure 1
	}
	each check
}

@test "a file beside the main output appears with it, and not if that fails" {
	mkdir beside
	cd beside
	ln -s ../sim.* .
	awk -F '\t' 'NR > 3 { print $2 "\t" (NR % 2 ? "odd" : "even") }' sim.vocab >labels
	scembed -q -M sim.model --of static sim.tok -o genes.emb
	ctaprobe cells -q -l cell_type sim.emb --predictions cells.pred -o cells.tsv
	while read -r options; do
		# shellcheck disable=SC2086
		run $options -q -o /dev/full </dev/null
		assert_failure 1
		assert_not_exist side
		assert_not_exist side2
		# shellcheck disable=SC2086
		$options -q -o main </dev/null
		[ -s main ] && [ -s side ]
		mv main side ..
		rm -f side2
		run bash -c 'ls -a | grep tmp'
		assert_output ""
	done <<-END
		ctaprobe cells -l cell_type sim.emb --predictions side --bootstrap 5 --replicates side2
		ctaprobe score -l cell_type cells.pred --roc side
		ctaprobe transfer --reference sim.emb -l cell_type sim.emb --held-out side
		ctaprobe genes --gene-labels labels --gene-scores side genes.emb
		sctrain eval -M sim.model sim.masked --cell-scores side
	END
}

@test "a second value of an option is refused, in any spelling; a flag may be repeated" {
	check() {
		run $2 --report a --report=b
		assert_failure 2
		assert_line -n 0 --regexp "^$1( [a-z]+)?: --report is given twice: expected one value \(FILE\)$"
		$1 -h -h -q -q >help
	}
	each check
}

@test "numbers are decimal numbers alone, and no value is empty" {
	for bad in 0x10 ' 5' nan inf 1e400 5% ''; do
		run rankenc -m sim.vocab --min-matched "$bad" sim.counts
		assert_failure 2
		case $bad in ?*) assert_line -n 0 "rankenc: --min-matched: '$bad' is not a number from 0 to 100" ;; esac
	done
	assert_line -n 0 "rankenc: --min-matched: the value is empty, expected PERCENT"
	for bad in 0x10 ' 5' 1e2; do
		run rankenc -m sim.vocab --max-len "$bad" sim.counts
		assert_failure 2
	done
	run maskgen --rate-uniform 0x0:0x1 sim.tok
	assert_failure 2
	run depgraph --leiden 0x1 sim.tok
	assert_failure 2
	for t in "h5tok --layer" "rankenc -m" "maskgen --resume" "depgraph --leiden" "scview -c" "sctrain mlm -o"; do
		run $t '' sim.tok
		assert_failure 2
		assert_line -n 0 --partial ": the value is empty, expected "
	done
}

@test "an unknown option or a bad number is one line and a pointer, exit 2" {
	check() {
		command=${2% -q}
		for bad in --bogus -~ --progress=often; do
			run $command "$bad"
			assert_failure 2
			assert_equal "${#lines[@]}" 2
			assert_line -n 1 --regexp "^Try '$1.* --help'\.$"
		done
	}
	each check
}

@test "options that do not go together are refused, each by its name, before anything is read" {
	refused() { # refused 'COMMAND' 'OPTION VALUE'...
		local command=$1 option
		shift
		for option; do
			# shellcheck disable=SC2086 # words
			run -2 $command $option /nonexistent
			assert_line -n 0 --regexp "^${command%% -*}: .*${option%% *}( |:|$)"
		done
	}
	refused "rankenc --fit" "--map f" "--vocab f" "--tokens f" "--cls 2" "--max-len 9" "--ties group" --value "--min-matched 1" --uncompressed
	refused "rankenc --fit --sums" "--map f" "--min-cells 9"
	refused "rankenc -m v" "--min-cells 9" "--after f"
	for way in --stats --header --header-tsv --vocab --check; do
		refused "scview $way" "--rows 3" "--columns c" "--gene-names id"
	done
	refused "scview -O h5ad" "--gene-names id" "--key k" --replace
	refused "h5tok --list-obs" "--layer l" "--round" "--map f" "--ties group"
	refused "h5tok" "--ties group"
	refused "depgraph -O tsv" "--leiden 1" --uncompressed
	refused "depgraph --pmi" "--top-genes 9" "--min-cells 9" "--candidates 9" "--rho-min .3" "--min-overlap 9" --positive
	refused "depgraph" "--tau .3" "--min-count 9"
	refused "ctaprobe cells --label a --test t" "--folds 3" "--fold-column c" "--repeats 2" \
		--every-class "--protocol cz"
	refused "ctaprobe cells --label a --fold-column c" "--folds 3" "--repeats 2"
	refused "ctaprobe cells --label a --repeats 2" "--predictions p" "--roc r"
	refused "ctaprobe cells --label a --protocol cz" "--inverse-penalty 2" "--search 3" --no-standardize
	refused "ctaprobe cells --target a" "--inverse-penalty 1" "--max-iter 9" \
		"--bootstrap 9" "--nearest 9"
	refused "ctaprobe cells --label a --nearest 9" "--inverse-penalty 1" "--search 3" "--max-iter 9"
	refused "ctaprobe cells --label a --search 3" "--inverse-penalty 1"
}

@test "standard input being a terminal is misuse, and records do not go to a terminal" {
	need_pty
	check() {
		[ -z "$3" ] || {
			run script -qec "$2" /dev/null
			assert_failure 2
			run script -qec "$2 -" /dev/null
			assert_failure 2
		}
		[ "$4" != records ] || {
			run script -qec "$2 $3" /dev/null
			assert_failure 2
			assert_output --partial "binary"
		}
	}
	each check
}

@test "no input, a folder, a text, an empty file, a missing file: one line, exit 1, no output" {
	echo "not a stream, but a text that is long enough" >text
	mkdir -p folder
	check() {
		[ -n "$3" ] || return 0
		for bad in folder text /dev/null missing https://x.org/a.h5ad; do
			one_line $2 -o out "$bad"
			[[ $bad != *:* || $output = *"$bad: the tools read files, not URLs"* ]] || fail "$output"
			no_output
		done
		[ "$1" = h5tok ] || {
			one_line $2 -o out
			no_output
			one_line $2 -o out -
		}
	}
	each check
}

@test "cut, damaged or foreign streams: one line, exit 1, no output" {
	check() {
		[ -n "$3" ] && [ "$1" != h5tok ] || return 0
		n=$(stat -c %s "$3")
		head -c $((n - 3)) "$3" >cut
		cat "$3" "$3" >twice
		for bad in cut twice; do
			one_line $2 -o out "$bad"
			no_output
		done
		[ "$1" = scview ] || {
			kind=sim.masked
			[ "$3" != sim.masked ] || kind=sim.tok
			one_line $2 -o out $kind
			assert_output --partial "$kind: "
			no_output
		}
	}
	each check
}

@test "a full disk: one line, exit 1" {
	check() {
		[ "$4" != model ] || return 0
		run bash -c "$2 $3 >/dev/full"
		assert_equal "$status" 1
		assert_equal "${#lines[@]}" 1
		assert_output --partial "No space left on device"
		run bash -c "$2 --report /dev/full $3 2>&1 >full.out"
		assert_equal "$status" 1
		assert_output --regexp "^$1[ a-z-]*: /dev/full: cannot write: No space left on device$"
		assert_file_empty full.out
	}
	each check
	check() {
		[ "$4" != model ] || return 0
		run bash -c "ulimit -f 0; $2 -o out $3"
		assert_equal "$status" 1
		assert_not_exist out
		one_line $2 -o /nonexistent/out $3
		assert_output --partial "/nonexistent"
	}
	each check
}

@test "a closed downstream is quiet" {
	check() {
		[ "$4" != model ] || return 0
		run bash -c "$2 $3 | head -c 1 | wc -c"
		assert_success
		assert_output 1
	}
	each check
}

@test "a killed upstream fails the downstream, which leaves no output" {
	command -v timeout >/dev/null || skip "no timeout command"
	check() {
		[ "$1" != h5tok ] && [ -n "$3" ] || return 0
		# all but the end of the stream, then the writer dies
		n=$(stat -c %s "$3")
		run bash -c "{ head -c $((n - 20)) $3; kill -9 \$BASHPID; } | $2 -o out"
		assert_equal "$status" 1
		assert_line --regexp "^$1( [a-z]+)?: standard input: .*cut short"
		no_output
	}
	each check
	# a real one, killed in the middle
	mkfifo pipe
	scsim -q --cells 100000000 -u >pipe 2>/dev/null &
	upstream=$!
	rankenc -q -m sim.vocab --min-matched 0 -o out <pipe 2>message &
	downstream=$!
	sleep 0.7
	kill -9 $upstream
	status=0
	wait $downstream || status=$?
	assert_equal "$status" 1
	assert_equal "$(wc -l <message)" 1
	assert_not_exist out
}

@test "SIGINT and SIGTERM remove the unfinished output" {
	for sig in INT TERM; do
		# in the background bash ignores SIGINT for a child, so a shell of its own
		run bash -c "set -m; scsim -q --cells 100000000 -o out & sleep 0.4; kill -$sig \$!; wait \$!"
		assert_equal "$status" $((128 + $(kill -l $sig)))
		run bash -c 'ls out*'
		assert_failure
	done
}

@test "the programs are hardened: position-independent, read-only relocations, stack protector, checked copies" {
	command -v readelf >/dev/null || skip "no readelf"
	for t in "$BIN"/*; do
		readelf -h "$t" 2>/dev/null | grep -q 'DYN.*Position-Independent' || { [[ $t = *.so ]] && continue || fail "$t: no PIE"; }
		run readelf -lds --wide "$t"
		for mark in GNU_RELRO BIND_NOW __stack_chk_fail '__[a-z]*_chk@'; do
			assert_line --regexp "$mark"
		done
		refute_line --regexp 'GNU_STACK.*RWE'
	done
}

@test "progress: on a terminal, of the last tool of a pipe; of others with --progress always" {
	need_pty
	terminal() { # COMMAND: what it prints on a terminal
		$PYTHON -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(["bash", "-c", "set -o pipefail; " + sys.argv[1]])))' "$1" < /dev/null
	}
	cd "$BATS_TEST_TMPDIR"
	scsim -q --cells 50 --genes 60 --modules 4 --seed 3 -o sim.counts
	rankenc -q --fit sim.counts -o vocab
	run -0 terminal "rankenc -m vocab sim.counts | depgraph -o graph"
	refute_output --regexp "rankenc: [0-9]"
	assert_output --regexp "depgraph: [0-9]"
	run -0 terminal "rankenc -m vocab sim.counts > tok"
	assert_output --regexp "rankenc: [0-9]"
	run -0 terminal "rankenc --progress always -m vocab sim.counts | depgraph -o graph"
	assert_output --regexp "rankenc: [0-9]"
	run -0 terminal "rankenc -m vocab sim.counts -o tok | cat"
	assert_output --regexp "rankenc: [0-9]"
}
