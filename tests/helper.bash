# Shared by all bats files: load helper. $BIN is the folder of the tools (make check-bats sets it).
bats_require_minimum_version 1.5.0
bats_load_library bats-support
bats_load_library bats-assert
bats_load_library bats-file

export LC_ALL=C.UTF-8           # the tests' own awk and printf write 0.5, not 0,5
export SETUPTOOLS_USE_DISTUTILS=stdlib # joblib imports distutils: else all of setuptools, a third of the time in which scikit-learn starts
unset CORRMASK_MAKE             # a make of a test is none of the make that runs the tests
BIN=${BIN:-$BATS_TEST_DIRNAME/../bin}
PYTHON=$BATS_TEST_DIRNAME/../build/anndata/bin/python # from make deps, where Debian has no anndata
[ -x "$PYTHON" ] || PYTHON=/usr/bin/python3
SHARED=${TEST_DATA:-$BATS_TEST_DIRNAME/../../shared/data} # real files, which some tests read; without them they are skipped
PATH=$BIN:$PATH

# lacking FILE...: the first of these files of TEST_DATA that is not there, as a reason to skip
lacking() {
	local f
	for f; do
		[ -e "$SHARED/$f" ] || { echo "no file $f in TEST_DATA=$SHARED"; return 0; }
	done
}

# skip_if REASON: skip, if there is a reason. (bats can skip in setup and tests, not in setup_file.)
skip_if() { [ -z "$1" ] || skip "$1"; }

# need FILE...: skip unless these files of TEST_DATA are there. Such a test has the tag data, by which make check-slow runs it.
need() { skip_if "$(lacking "$@")"; }

# need_pty: skip where no program gets a terminal (a chroot without /dev/pts)
need_pty() { $PYTHON -c 'import pty; pty.openpty()' 2>/dev/null || skip "no pseudo-terminals (/dev/pts)"; }

# need_tool NAME...: fails unless the tools are built
need_tool() {
	local t
	for t; do
		[ -x "$BIN/$t" ] || fail "no $t in $BIN"
	done
}

# status_of COMMAND...: its exit status, with no output and no effect on the test
status_of() {
	"$@" >/dev/null 2>&1 && echo 0 || echo $?
}

# names WORDS: one line of $output (and of $stderr, if it was separate) has all these words, in any order. What a message names (files, options,
# columns, values) is tested, not its sentence. A number is found as a whole.
names() {
	local line word words
	read -ra words <<<"$*"
	while IFS= read -r line; do
		for word in "${words[@]}"; do
			if [[ $word =~ ^[0-9.]+$ ]]; then
				[[ $line =~ (^|[^0-9.])"$word"([^0-9]|$) ]] || continue 2
			else
				[[ $line = *"$word"* ]] || continue 2
			fi
		done
		return 0
	done <<<"$output"$'\n'"${stderr:-}"
	fail "no line with all of: $*"$'\n'"$output"$'\n'"${stderr:-}"
}

# undigest FILE: an edited model.safetensors without the digests of what it was, of equal length
undigest() { LC_ALL=C sed -i 's/corrmask_digest/corrmask_edited/; s/"xxh3:/"none:/g' "$1"; }

# values TOKENS: columns cell, token and value as a value encoder reads them
values() { scview "$1" --columns cell,token,count | $PYTHON "$BATS_TEST_DIRNAME/ref/values.py"; }

# make_small DIR: the small simulated files that cli.bats, fault tests and the examples of the manual pages work on:
# sim.counts sim.vocab sim.tok sim.graph sim.masked sim.model sim.emb sim.h5ad. A tool that is not built leaves its file out.
make_small() {
	(
		cd "$1" || exit 1
		set -e
		scsim -q --cells 400 --genes 150 --types 4 --rarest 0.15 --depth 600 --donors 4 --seed 1 -o sim.counts
		scview -q -O h5ad sim.counts -o sim.h5ad
		rankenc -q --fit sim.counts -o sim.vocab
		rankenc -q -m sim.vocab sim.counts -o sim.tok
		[ ! -x "$BIN/depgraph" ] || depgraph -q sim.tok -o sim.graph
		maskgen -q sim.tok -o sim.masked
		if [ -x "$BIN/sctrain" ]; then
			sctrain mlm -q --config tiny sim.masked -o sim.model
			[ ! -x "$BIN/scembed" ] || scembed -q -M sim.model sim.tok -o sim.emb
		fi
	)
}

# pipelines ARGUMENT...: make with pipelines/Makefile. Links lead there, as make knows no file names with spaces.
pipelines() {
	ln -sfn "$BATS_TEST_DIRNAME/../pipelines" "$BATS_FILE_TMPDIR/pipelines"
	ln -sfn "$(realpath "$BIN")" "$BATS_FILE_TMPDIR/bin"
	make -s -f "$BATS_FILE_TMPDIR/pipelines/Makefile" BIN="$BATS_FILE_TMPDIR/bin" "$@"
}

# emptied IN OUT: the tokens stream with no tokens in every fourth cell
emptied() {
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - "$1" "$2" <<-'END'
		import sys, numpy as np, corrmask.stream as scstream
		stream = scstream.read(sys.argv[1])
		blocks = list(stream)
		for b in blocks:
		    full = np.arange(len(b["cell"])) % 4 > 0
		    for name in (c["name"] for c in stream.header["columns"] if c["shape"] == "ragged"):
		        offset, values = b[name]
		        n = np.diff(offset.astype(np.int64))
		        b[name] = np.concatenate([[0], np.cumsum(n * full)]).astype(np.uint64), values[np.repeat(full, n)]
		scstream.write(sys.argv[2], stream.header, blocks)
	END
}

# near FILE FILE: the same fields, numbers but for 1e-4. (Some processors' products round a row by its place in a batch.)
near() {
	paste <(tr ' ' '\t' < "$1") <(tr ' ' '\t' < "$2") | awk -F'\t' '{
		n = NF / 2
		for (i = 1; i <= n; i++) {
			d = $i - $(i + n)
			if ($i "" != $(i + n) "" && (d < -1e-4 || d > 1e-4 || d == 0)) { print; exit 1 }
		}
	}'
}
