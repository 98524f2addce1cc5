# The examples of the manual pages run as they stand, but that each training has one epoch.
#
# In the section EXAMPLES of a page, the lines of every ".Bd -literal" block are run, in order, by one bash with -e and pipefail
# in a folder of their own. (Blocks that are not to be run are ".Bd -unfilled".) The folder holds small files of simulated cells,
# each under the names sim, cells and lung: sim.counts sim.h5ad sim.vocab sim.tok sim.graph sim.masked sim.emb and the folder
# sim.model (make_small in helper.bash), and the files of data/make_layouts.py, such as tenx3.h5. The tools are in PATH. \e is a backslash, \- a minus, and \& nothing.
load helper

setup_file() {
	export SMALL=$BATS_FILE_TMPDIR/small
	mkdir "$SMALL"
	$PYTHON "$BATS_TEST_DIRNAME/../data/make_layouts.py" "$SMALL"
	rm -f "$SMALL"/*.expected
	make_small "$SMALL"
	for f in "$SMALL"/sim.*; do
		for name in cells lung; do
			cp -r "$f" "$SMALL/$name.${f##*.}"
		done
	done
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	SOURCES=$BATS_TEST_DIRNAME/../man
}

# A copy of the sources, without a list, or with another line: made PAGE SED_SCRIPT
made() {
	rm -rf copy
	mkdir -p copy/src
	cp -r "$SOURCES" copy/man
	cp "$SOURCES/../src/tools.def" copy/src
	sed -i "$2" "copy/man/$1.in"
	run "$PYTHON" copy/man/pages.py "${3:-$BIN}" built
}

@test "pages: every option of --help stands in the page of its command, with range, words and what it excludes" {
	made h5tok.1 ""
	assert_success
	for tool in $(sed -n 's/^TOOL(\([a-z0-9]*\),.*/\1/p' "$SOURCES/../src/tools.def"); do
		for sub in $("$tool" --help | sed -n '/Commands/,/^$/s/^  \([a-z][a-z-]*\)  .*/\1/p') ""; do
			pages=("built/$tool.1" built/corrmask.7)
			[ ! -e "built/$tool-$sub.1" ] || pages+=("built/$tool-$sub.1")
			# shellcheck disable=SC2086 # no command: no word
			! "$tool" $sub --help | grep -Pzq ':\n\n' || fail "$tool $sub: a heading without options"
			# shellcheck disable=SC2086
			"$tool" $sub --help | grep -oP '^ +(-., )?-\K-[a-z][a-z0-9-]+' | while read -r name; do
				grep -qE -- "^\.It Fl (. , )?$name( |$)" "${pages[@]}" || fail "$tool $sub: -$name"
			done
		done
	done
	item() { sed -n "/^\.It Fl \(. , \)\?-$2\( \|$\)/,/^\.\(It\|El\)/p" "built/$1" | sed '$d'; }
	assert_equal "$(item depgraph.1 tau)" $'.It Fl -tau Ar T\npmi: minimum NPMI of an edge (default 0.5).\nFrom \\-1 to 1; needs \\-\\-pmi.'
	assert_equal "$(item ctaprobe-cells.1 fold-column | tail -n 1)" 'Not with \-\-folds, \-\-repeats, \-\-every-class or \-\-test.'
	assert_equal "$(item scview.1 format | head -n 1)" ".It Fl O , -format Cm tsv | npy | h5ad"
	assert_equal "$(item sctrain-genes.1 fold | head -n 1)" ".It Fl -fold Ar K/N"
	run grep -c 'It Fl -lr' built/sctrain-mlm.1 built/sctrain.1
	assert_output $'built/sctrain-mlm.1:0\nbuilt/sctrain.1:1'
}

@test "pages: a text of no option, a command without its options, an option without a sentence end the build with one line" {
	check() {
		made "$1" "$2" "${4:-}"
		assert_equal "$status ${#lines[@]}" "1 1"
		assert_output --partial "$3"
	}
	check h5tok.1 's/^\.Option layer/.Option layers/' "h5tok.1: .Option layers: h5tok has no option --layers"
	check sctrain.1 's/^\.Option head/.Option label/' "sctrain.1: .Option label: "
	check sctrain-nb.1 's/^\.Options sctrain nb/.Options sctrain bn/' "sctrain-nb.1: no .Options sctrain nb"
	check scgenes.1 's/^\(\.Options .*\) markers/\1/' "scgenes.1: no .Options scgenes markers"
	check depgraph.1 '/^\.End/d' "depgraph.1: .Options depgraph has no .End"
	check depgraph.1 's/^\.End/&\n&/' "depgraph.1:"
	check ctaprobe-cells.1 's/^\.Op Fl -test/.Op Fl -tests/' "ctaprobe-cells.1: the synopsis shows -tests"
	mkdir bin
	ln -s "$BIN"/* bin
	rm bin/depgraph
	printf '#!/bin/sh\nprintf -- "--cells\\tN\\t\\tn\\tOptions\\t1 2\\t\\t\\tnot\\n"\n' >bin/depgraph
	chmod +x bin/depgraph
	check h5tok.1 "" "depgraph: --cells has no help sentence" bin
}

# The commands in the EXAMPLES of a page
examples() {
	awk '/^\.Sh / { on = $2 == "EXAMPLES" } /^\.Ed/ { code = 0 } on && code { print } on && /^\.Bd -literal/ { code = 1 }' "$1" |
		sed -e 's/\\e/\\/g' -e 's/\\-/-/g' -e 's/\\&//g' -e 's/--epochs [0-9]*/--epochs 1/'
}

@test "examples keep their backslashes: each is written as \\e" {
	local page
	for page in "$SOURCES"/*.in; do
		run grep -nF '\' <(awk '/^\.Sh / { on = $2 == "EXAMPLES" } /^\.Ed/ { code = 0 } on && code { gsub(/\\[e&-]/, ""); print } on && /^\.Bd -literal/ { code = 1 }' "$page")
		assert_output ""
	done
}

# bats test_tags=slow
@test "every page has examples that run, and is clean" {
	$PYTHON "$SOURCES/pages.py" "$BIN" built
	command -v mandoc >/dev/null && mandoc -Tlint -W warning built/*.[1-9]
	for page in built/*.[17]; do
		name=${page##*/}
		work=$BATS_TEST_TMPDIR/$name
		cp -r "$SMALL" "$work"
		{
			# a pipe into head or scview -n must not fail for what these do not read
			echo "scstream() { $PYTHON -B '$BATS_TEST_DIRNAME/../python/scstream' \"\$@\"; }"
			echo 'set -eo pipefail; for t in head scview; do eval "$t() { command $t \"\$@\" && cat >/dev/null; }"; done; set -v'
			examples "$page"
		} >"$work/commands"
		[ "$(wc -l <"$work/commands")" -gt 1 ] || fail "$name has no examples"
		echo "-- $name"
		(cd "$work" && bash commands </dev/null 2>&1)
	done
}

# Lines of "FILE: NAME" for every name that a document gives to something that is not there; words in capitals are placeholders.
missing_names() {
	local doc name target targets
	targets=$(env -u MAKEFLAGS -u MAKELEVEL make -s help OF=all | awk '{ print $1 }')
	for doc in README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs/*.md docs/experiments/*.md docs/guide/*.md; do
		for name in $(grep -oP '(?<![\w/])(lib|src|tests|pipelines|cuda|docs|man|data)/[A-Za-z0-9_./-]*\.(c|h|cu|cc|md|tsv|mk|sh|awk|bats|py|[157]\.in|[157])\b' "$doc" | sort -u); do
			[ -e "$name" ] || [[ $name =~ (^|/)[A-Z]+[./] ]] || echo "$doc: $name"
		done
		for target in $(grep -oE '`make [^`]*`' "$doc" | tr -d '`' | sed 's/"[^"]*"//g' | tr ' ' '\n' | grep -xE '[a-z][a-z0-9-]+' | sort -u); do
			case $target in
			make) ;;
			bats-*) [ -e "tests/${target#bats-}.bats" ] || echo "$doc: make $target" ;;
			*-commands) grep -q "(call commands,${target%-commands}," pipelines/*/*.mk pipelines/*.mk || echo "$doc: make $target" ;;
			unit-*) [ -e "tests/unit/test_${target#unit-}.c" ] || echo "$doc: make $target" ;;
			*) grep -qx -- "$target" <<<"$targets" || echo "$doc: make $target" ;;
			esac
		done
	done
}

@test "the documents name files and make targets that exist" {
	cd "$BATS_TEST_DIRNAME/.."
	run missing_names
	assert_output ""
}

@test "make help fits a screen, and OF= shows the rest" {
	cd "$BATS_TEST_DIRNAME/.."
	export -n MAKEFLAGS MAKELEVEL
	run -0 make -s help
	[ "${#lines[@]}" -le 40 ]
	assert_line --regexp '^  demo '
	run -0 make -s help OF=all
	assert_line --regexp '^  r2mae-table9 '
	assert_line --regexp '^    SEEDS='
	run -0 make -s help OF=annotate
	assert_line --regexp '^    REFERENCE='
	refute_line --regexp '^    SIZES='
	run -2 make -s help OF=nothere
}
