# A member that is added to a table of the sources, with nothing else changed: is what the tools then say of it true? The tree is copied, changed and built.
load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	mkdir tree
	tar -C "$BATS_TEST_DIRNAME/.." --exclude=./build --exclude=./bin --exclude=./.git --exclude=./results -cf - . | tar -xf - -C tree
	cat >add.py <<-'P'
		"""add.py BEFORE TEXT: in the one source that has the line BEFORE (a regular expression), put TEXT before it"""
		import pathlib, re, sys
		before, text = sys.argv[1:]
		files = [(p, m) for d in ("lib", "src") for p in pathlib.Path(d).rglob("*.[ch]") for m in re.finditer(before, p.read_text(), re.M)]
		assert len(files) == 1, (before, [str(p) for p, _ in files])
		(path, m), = files
		s = path.read_text()
		path.write_text(s[:m.start()] + text + "\n" + s[m.start():])
	P
	cd tree
	add() { $PYTHON ../add.py "$@"; }
	add '^\tINTEGRATION_METRICS$' $'\tDUMMY,'
	add '^\t\{ISOLATED_LABELS, "isolated_labels"' $'\t{DUMMY, "dummy", BIO, SCIB_METRICS | SCIB},'
	add '^\t\[ISOLATED_LABELS\] = \{' $'\t[DUMMY] = {0},'
	add '^\t\{"probe", MASK_PROBE' $'\t{"dummy", MASK_RANDOM, RATE | LAMBDA, 0.5, .no_cell = "is a dummy"},'
	# another loss; the measures are what they were
	add '^\t\tsum\[1\] \+= off \* off;' $'\t\tsum[0] += fabs(off) - off * off;'
	make -s -j2 CUDA=0 MPI=0 BIN=bin bin/scsim bin/h5tok bin/depgraph bin/rankenc bin/maskgen bin/sctrain bin/screduce bin/scmetric bin/scpredict bin/ctaprobe bin/scview \
		>"$BATS_FILE_TMPDIR/build" 2>&1 || { tail -n 20 "$BATS_FILE_TMPDIR/build" >&2; false; }
	export PATH=$PWD/bin:$PATH
	cd ..
	scsim -q -n 300 --genes 200 --types 3 -o s.counts
	rankenc -q --fit s.counts -o vocab.tsv
	rankenc -q -m vocab.tsv s.counts -o s.tok
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	PATH=$BATS_FILE_TMPDIR/tree/bin:$PATH
}

# bats test_tags=slow
@test "dummies: a strategy is in the help, the completion and the header, and is refused where its row says so" {
	run -0 maskgen --help
	assert_output --partial "dummy"
	maskgen -q --strategy dummy --rate 0.3 s.tok -o d.masked
	run -0 scview -H d.masked
	assert_output --regexp '"strategy":[[:space:]]*"dummy"'
	run -2 maskgen --strategy dummy -g no.graph s.tok -o x
	names graph strategy dummy
	run -2 maskgen --strategy dummy --objective cell s.tok -o x
	names objective strategy dummy
	run -2 maskgen --strategy none-such s.tok -o x
	names dummy
	run env -i PATH="${PATH//$BATS_LIBEXEC:/}" HOME="$HOME" BIN="$PWD/tree/bin" bats -f "every strategy with every rate" tree/tests/maskgen.bats
	assert_success
}

# bats test_tags=slow
@test "dummies: a metric without a value is NA with a reason, which is not another metric's" {
	screduce pca -q -k 5 s.counts -o s.emb
	scmetric integration -q -l cell_type --batch-key donor s.emb -o with.tsv
	scmetric integration -q -l cell_type s.emb -o without.tsv
	for table in with without; do
		run -0 awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i } $1 == "dummy" { print $2 "|" $c["range"] "|" $c["note"] }' $table.tsv
		assert_output 'NA|0 to 1|not computed'
	done
}

# bats test_tags=slow
@test "dummies: with another loss, the measures of a head are still what their names say" {
	maskgen -q --strategy none --keep n_counts s.tok -o n.masked
	sctrain cells -q --config tiny --head n_counts:mse -o m n.masked
	sctrain eval -q -M m n.masked -o eval.tsv
	scpredict cells -q -M m s.tok -o p.pred
	run -0 ctaprobe score -q --target n_counts p.pred
	echo "$output" >score.tsv
	awk -F '\t' '
		NR == FNR { score[$1] = $2; next }
		{ eval[$1] = $2 }
		function near(a, b) { return a > b * .999 && a < b * 1.001 }
		END { exit !(near(eval["rmse.n_counts"] ^ 2, score["mse"]) && near(eval["r2.n_counts"], score["r2"])) }' score.tsv eval.tsv
}

# bats test_tags=slow
@test "dummies: a column type without a row, or without its cases, does not compile" {
	cp -r tree/lib lib
	$PYTHON add.py 'header has no such line' '' 2>/dev/null && fail "add.py finds what is not there"
	sed -i 's/^\(enum column_type {.*\) COLUMN_TYPES/\1 F16, COLUMN_TYPES/' lib/stream/header.h
	run -0 grep -c F16 lib/stream/header.h
	local f bad=0
	for f in lib/stream/*.c lib/anndata/*.c; do
		# shellcheck disable=SC2046 # several flags
		gcc -fsyntax-only -std=gnu11 -fopenmp -D_GNU_SOURCE -DCORRMASK_VERSION='""' -Werror=switch-enum -Ilib $(pkg-config --cflags hdf5 libcjson) "$f" 2>>errors || bad=$((bad + 1))
	done
	run -0 cat errors
	assert_output --partial "its row in types"
	[ "$bad" -gt 0 ]
}
