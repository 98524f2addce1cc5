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

# The commands in the EXAMPLES of a page
examples() {
	awk '/^\.Sh / { on = $2 == "EXAMPLES" } /^\.Ed/ { code = 0 } on && code { print } on && /^\.Bd -literal/ { code = 1 }' "$1" |
		sed -e 's/\\e/\\/g' -e 's/\\-/-/g' -e 's/\\&//g' -e 's/--epochs [0-9]*/--epochs 1/'
}

@test "examples keep their backslashes: each is written as \\e" {
	local page
	for page in "$BATS_TEST_DIRNAME"/../man/*.[1-9]; do
		run grep -nF '\' <(awk '/^\.Sh / { on = $2 == "EXAMPLES" } /^\.Ed/ { code = 0 } on && code { gsub(/\\[e&-]/, ""); print } on && /^\.Bd -literal/ { code = 1 }' "$page")
		assert_output ""
	done
}

# bats test_tags=slow
@test "every page has examples that run, and is clean" {
	command -v mandoc >/dev/null && mandoc -Tlint -W warning "$BATS_TEST_DIRNAME"/../man/*.[1-9]
	for page in "$BATS_TEST_DIRNAME"/../man/*.[17]; do
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
		for name in $(grep -oP '(?<![\w/])(lib|src|tests|pipelines|cuda|docs|man|data)/[A-Za-z0-9_./-]*\.(c|h|cu|cc|md|tsv|mk|sh|awk|bats|py|[157])\b' "$doc" | sort -u); do
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
