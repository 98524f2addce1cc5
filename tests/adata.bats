#!/usr/bin/env bats
# The package corrmask: functions for AnnData. ADATA_PYTHON is another Python with anndata to test with too, such as one of a newer release.
load helper

setup_file() {
	need_tool h5tok scsample ctaprobe scview rankenc maskgen sctrain scembed scperturb scmetric
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 400 --genes 200 --types 3 --rarest .2 --depth 2000 --donors 8 --seed 1 -o a.counts
	for part in train:atlas test:new; do
		scsample -q --test-fraction .25 --group donor --part "${part%:*}" a.counts | scview -q -O h5ad -o "${part#*:}.h5ad" -
	done
	h5tok -q atlas.h5ad | rankenc -q --fit -o vocab.tsv -
	h5tok -q -u --rank vocab.tsv atlas.h5ad | maskgen -q -u - | sctrain mlm -q --config tiny -o small.model -
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$BATS_TEST_DIRNAME/../python
	$PYTHON -c 'import anndata' 2> /dev/null || skip "no anndata"
}

@test "annotate, embed, tokenize, perturb and integration give what the tools give, and leave no files" {
	for python in "$PYTHON" ${ADATA_PYTHON:+"$ADATA_PYTHON"}; do
		run -0 "$python" -W ignore "$BATS_TEST_DIRNAME/ref/adata.py"
		assert_line --regexp '^anndata .*: [0-9]+ cells'
	done
}

@test "an interrupt ends the tools, removes the files, and is KeyboardInterrupt" {
	mkdir -p slow tmp
	ln -sfn "$BATS_TEST_DIRNAME/../pipelines" pipelines
	printf '#!/bin/sh\necho "$$" > %q/pid\nsleep 60 & echo $! >> %q/pid; wait\n' "$PWD" "$PWD" > slow/h5tok
	chmod +x slow/h5tok
	cat > interrupt.py <<- 'END'
		import anndata, corrmask, os, signal, sys, threading, time
		signal.signal(signal.SIGINT, signal.default_int_handler) # a job in the background of a shell ignores it
		def interrupt():
		    while not os.path.exists("pid") or open("pid").read().count("\n") < 2:
		        time.sleep(.05)
		    os.kill(os.getpid(), signal.SIGINT)
		threading.Thread(target=interrupt, daemon=True).start()
		try:
		    corrmask.tokenize(anndata.read_h5ad("new.h5ad"), "vocab.tsv", progress=False)
		except KeyboardInterrupt:
		    print("interrupted", *open("pid").read().split())
	END
	# a shell's job in the background ignores the signal
	TMPDIR=$PWD/tmp PATH=$PWD/slow:$PATH run -0 $PYTHON -W ignore interrupt.py
	assert_output --regexp '^interrupted [0-9]+ [0-9]+$'
	sleep .2
	for pid in ${output#interrupted}; do
		[ ! -e "/proc/$pid" ] || grep -q 'State:.Z' "/proc/$pid/status"
	done
	assert_equal "$(ls tmp)" ""
}

@test "a Python that is killed leaves no tool and no folder; what is left after a power cut goes with the next call, not before" {
	export TMPDIR=$PWD/killed
	mkdir -p killed/corrmask-abandone killed/corrmask-inuse123 slow
	ln -sfn "$BATS_TEST_DIRNAME/../pipelines" pipelines
	touch killed/corrmask-abandone/.owner killed/corrmask-inuse123/.owner
	printf '#!/bin/sh\necho "$$" > %q/pid\nsleep 60 & echo $! >> %q/pid; wait\n' "$PWD" "$PWD" > slow/h5tok
	chmod +x slow/h5tok
	printf 'import anndata, corrmask\ncorrmask.tokenize(anndata.read_h5ad("new.h5ad"), "vocab.tsv", progress=False)\n' > forever.py
	exec 8< killed/corrmask-inuse123/.owner
	flock -x 8
	for signal in KILL TERM HUP; do
		rm -f pid
		PATH=$PWD/slow:$PATH $PYTHON -W ignore forever.py &
		python=$!
		until [ "$(wc -l < pid)" = 2 ] || [ ! -e /proc/$python ]; do sleep .05; done 2>/dev/null
		kill -$signal $python
		wait $python || :
		for _ in 1 2 3 4 5 6 7 8; do
			sleep .1
			[ "$(ls killed)" != corrmask-inuse123 ] || break
		done
		assert_equal "$(ls killed)" corrmask-inuse123
		for pid in $(< pid); do
			[ ! -e "/proc/$pid" ] || grep -q 'State:.Z' "/proc/$pid/status"
		done
	done
}

@test "what is missing is one sentence: a path for an AnnData, a Python package" {
	run -1 $PYTHON -W ignore -c 'import corrmask; corrmask.annotate("new.h5ad", "new.h5ad", label="a")'
	assert_line --regexp "^corrmask.Error: .*new.h5ad.*read_h5ad"
	run -1 $PYTHON -W ignore -c 'import anndata, corrmask
a = anndata.read_h5ad("new.h5ad")
b = a[:0].copy()
try: corrmask.annotate(b, a, label="cell_type")
finally: assert b.obs.columns.equals(a.obs.columns)'
	assert_line --regexp "^corrmask.Error: .*new.h5ad: no cells"
	mkdir -p without
	echo 'raise ModuleNotFoundError("no", name="xxhash")' > without/xxhash.py
	PYTHONPATH=without:$PYTHONPATH run -1 $PYTHON -W ignore -c 'import corrmask; corrmask.stream'
	assert_line --regexp '^ImportError: .*pip install .*xxhash'
}

@test "messages of tools go to standard error as they come; without progress only errors do, in the exception" {
	printf 'import anndata, corrmask, sys\ncorrmask.tokenize(anndata.read_h5ad("new.h5ad"), "vocab.tsv", progress=len(sys.argv) == 1)\n' > say.py
	run -0 --separate-stderr $PYTHON -W ignore say.py
	names h5tok: cells.h5ad
	refute [ -n "$output" ]
	run -0 --separate-stderr $PYTHON -W ignore say.py quiet
	assert_equal "$stderr$output" ""
}

@test "without tools beside the package or on PATH, one line says so" {
	mkdir -p alone
	cp -r "$BATS_TEST_DIRNAME/../python/corrmask" alone
	PATH=/usr/bin:/bin PYTHONPATH=$PWD/alone run -1 $PYTHON -W ignore -c 'import corrmask; corrmask.embed(__import__("anndata").read_h5ad("new.h5ad"), "small.model")'
	names corrmask.Error: tools PATH
}

@test "a processor that the wheel is not for is one line, before a tool runs" {
	mkdir -p wheel old
	cp -r "$BATS_TEST_DIRNAME/../python/corrmask" wheel
	ln -s "$(realpath "$BIN")" wheel/corrmask/bin
	printf 'processor\t: 0\nflags\t\t: fpu sse2 avx fma movbe\n' > old/cpuinfo
	cat > command.py <<- 'END'
		import sys, corrmask._tools as t
		t.CPUINFO = sys.argv.pop(1)
		sys.argv[0] = "scsim"
		t.main()
	END
	PYTHONPATH=$PWD/wheel run -1 $PYTHON command.py old/cpuinfo --version
	assert_equal "${#lines[@]}" 1
	names scsim corrmask: x86-64-v3 avx2 bmi2
	PYTHONPATH=$PWD/wheel run -0 $PYTHON command.py /proc/cpuinfo --version
	names scsim scstream
}

@test "the functions are typed, and every argument is in the docstring or in the text of all" {
	$PYTHON -W ignore -c '
import corrmask, inspect
for name in corrmask.__all__:
    f = getattr(corrmask, name)
    if inspect.isfunction(f):
        assert f.__doc__ and f.__annotations__["return"], name
        for p in inspect.signature(f).parameters.values():
            assert p.annotation is not p.empty, (name, p)
            assert p.name in f.__doc__ or p.name in ("adata", "copy", "key_added", "seed", "threads", "progress", "layer", "round", "unlog", "all_features", "max_len", "model", "group"), (name, p.name)'
}

# bats test_tags=slow
@test "the notebook examples/annotate.ipynb runs as it stands" {
	$PYTHON "$BATS_TEST_DIRNAME/ref/notebook.py" "$BATS_TEST_DIRNAME/../examples/annotate.ipynb"
}
