# Several files as one corpus: operands, lists of files, lanes.
load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	for i in 1 2 3; do
		# shellcheck disable=SC2086
		scsim -q --cells ${i}00 --genes 120 --types 3 --depth 500 --donors $i --seed $i -o $i.counts
	done
	scsample -q --where 'cell_type!=type2' 3.counts -o x.counts && mv x.counts 3.counts
	rankenc -q --fit 1.counts 2.counts 3.counts -o vocab.tsv
	for i in 1 2 3; do rankenc -q -m vocab.tsv $i.counts -o $i.tok; done
	scsample -q 1.tok 2.tok 3.tok -o all.tok
	printf '# a corpus\n1.tok\n\n2.tok\r\n%s/3.tok\n' "$PWD" >list.txt
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# fails TEXT COMMAND...: exit status 1, and this one line
fails() {
	local text=$1
	shift
	run -1 --separate-stderr "$@"
	[ -z "$output" ] || fail "output: $output"
	[ "${#stderr_lines[@]}" = 1 ] || fail "$stderr"
	names "$text"
}

@test "corpus: every tool sees several files as scsample joins them" {
	cmp <(scview 1.tok 2.tok 3.tok) <(scview all.tok)
	cmp <(scview -s 1.tok 2.tok 3.tok | grep -v '^-.\(blocks\|bytes\)') <(scview -s all.tok | grep -v '^-.\(blocks\|bytes\|file_bytes\)')
	cmp <(depgraph -q --min-overlap 5 -O tsv 1.tok 2.tok 3.tok) <(depgraph -q --min-overlap 5 -O tsv all.tok)
	cmp <(screduce pca -q -k 3 1.counts 2.counts 3.counts | scview) <(scsample -q 1.counts 2.counts 3.counts | screduce pca -q -k 3 | scview)
	# the masks depend on the cell only; the blocks of the joined file are other ones, so the order is another one
	for keep in cell,input,position,target cell_type; do
		cmp <(maskgen -q --keep cell_type 1.tok 2.tok 3.tok | scview -c cell,$keep | sort) \
			<(maskgen -q --keep cell_type all.tok | scview -c cell,$keep | sort)
	done
	sctrain mlm -q --config tiny <(maskgen -q all.tok) -o m
	scembed -q -M m 1.tok 2.tok 3.tok | scview >three
	scembed -q -M m all.tok | scview >joined
	[ "$(wc -l <joined)" -gt 500 ]
	near three joined
}

@test "corpus: a list of files is its files" {
	cmp <(maskgen 1.tok 2.tok 3.tok) <(maskgen @list.txt)
	mkdir -p elsewhere && cd elsewhere
	cmp <(maskgen ../1.tok ../2.tok ../3.tok) <(maskgen @../list.txt)
	cmp <(maskgen ../1.tok ../2.tok ../3.tok) <(maskgen ../1.tok <(cat ../2.tok) ../3.tok)
	cmp <(scsample ../1.tok ../2.tok ../3.tok) <(scsample @../list.txt)
	sed 's/tok/counts/' ../list.txt >../counts.txt
	cmp <(rankenc -q --fit @../counts.txt) ../vocab.tsv
	run -0 scview --check @../list.txt
	assert_equal "${#lines[@]}" 3
	# one file: the bytes of the file
	echo 1.tok >../one.txt
	cmp <(maskgen ../1.tok) <(maskgen @../one.txt)
}

@test "corpus: a training goes on with the same files only" {
	maskgen -q @list.txt | sctrain mlm -q --config tiny --save-every 20 -o r -
	maskgen -q --resume r @list.txt | scview -n 1 >same
	scsample -q --where 'cell_type!=type1' 3.tok -o changed.tok
	for files in "1.tok 3.tok 2.tok" "1.tok 2.tok" "all.tok" "1.tok 2.tok changed.tok"; do
		# shellcheck disable=SC2086
		fails "--resume: files" maskgen --resume r $files
	done
	# rows and digest of every file
	run -0 bash -c "maskgen -q @list.txt | scview --header-tsv | grep '^loader.files'"
	assert_equal "${#lines[@]}" 6
	assert_equal "$(cut -f 2 <<<"${lines[4]}")" "$(scview 3.tok | tail -n +2 | wc -l)"
}

@test "corpus: more files than may be open by default" {
	mkdir many
	for i in {1..60}; do scsim -q --cells 5 --genes 80 --seed $i -o many/$i.counts; done
	printf '%s.counts\n' {1..60} >many/list.txt
	for command in "scsample -q -o many.counts" "rankenc -q --fit --min-cells 1 -o many.tsv" "scview -q -s"; do
		bash -c "ulimit -Sn 50; $command @many/list.txt" >/dev/null
	done
	assert_equal "$(scview -q -c cell many.counts | wc -l)" 301
}

@test "corpus: lanes: batches for every number of shards, each reads its share" {
	maskgen -q --lanes 4 -b 24 --epochs 2 @list.txt | scview -c step,cell,position,input >whole
	cut -f 2 whole | tail -n +2 | sort | uniq -c | awk '$1 != 2 { exit 1 }'
	for n in 2 4; do
		for ((r = 0; r < n; r++)); do
			maskgen -q --lanes 4 --shard $r/$n -b $((24 / n)) --epochs 2 @list.txt | scview -c step,cell,position,input | tail -n +2 | awk -v r=$r -v n=$n '
				$1 != last { row = 0; last = $1 } { print $1 * 1000 + row++ * n + r "\t" $0 }'
		done | sort -n | cut -f 2- | cmp - <(tail -n +2 whole)
	done
}

# corpus_of ARGUMENT...: make corpus of the folder `in`, in results of its own
corpus_of() { pipelines corpus DIR=in THREADS=2 "$@"; }

@test "make corpus: the tokens and medians of all cells, from files read one by one" {
	mkdir -p work/in/sub && cd work
	i=0
	for name in a 'b b' 'sub/c\tc' sub/a; do
		i=$((i + 1))
		scsim -q --cells $((i * 40)) --genes 80 --types 3 --rarest 0.2 --donors 2 --seed $i -o x.counts
		scview -q -O h5ad x.counts -o "in/$name.h5ad"
	done
	h5tok -q in/a.h5ad 'in/b b.h5ad' in/sub/a.h5ad 'in/sub/c\tc.h5ad' | scsample -q --where 'cell_type!=type1' --where donor=donor1 -o all.counts
	rankenc -q --fit all.counts -o vocab.tsv
	rankenc -q -m vocab.tsv all.counts -o all.tok
	run -0 --separate-stderr corpus_of WHERE=' cell_type!=type1; donor=donor1 '
	names "4 0 refused"
	run=$(realpath results/corpus/latest)
	cmp $run/vocab.tsv vocab.tsv
	cmp <(scview -c barcode,token @$run/corpus.txt) <(scview -c barcode,token all.tok)
	awk -F '\t' 'NR > 1 { files += $1 ~ /^[/].*[.]h5ad$/; all += $3; used += $6; if ($3 - $4 - $5 != $6) bad = 1 } END { exit bad || files != 4 || all != 400 || used != '"$(scview all.tok | tail -n +2 | wc -l)"' }' $run/corpus.tsv
	# nothing to do, a new file, a changed one
	run -0 corpus_of WHERE=' cell_type!=type1; donor=donor1 '
	assert_line "  tokens: 0 files to read"
	scsim -q --cells 30 --genes 80 --types 3 --rarest 0.2 --donors 1 --seed 9 -o x.counts
	scview -q -O h5ad x.counts -o in/new.h5ad
	run -0 corpus_of WHERE=' cell_type!=type1; donor=donor1 '
	names "medians 1"
	assert_line "  tokens: 5 files to read"
	# with medians, only the new file is read; a killed make goes on, to the bytes of an undisturbed one
	corpus_of MEDIANS=vocab.tsv >/dev/null
	undisturbed=$(cd results/corpus/latest/ && cat corpus.txt tok/* | md5sum)
	rm results/corpus/latest/tok/a-* results/corpus/latest/tok/c_tc-*
	setsid "$BASH" -c "$(declare -f pipelines corpus_of); BIN='$BIN' BATS_TEST_DIRNAME='$BATS_TEST_DIRNAME' BATS_FILE_TMPDIR='$BATS_FILE_TMPDIR' corpus_of MEDIANS=vocab.tsv" >/dev/null 2>&1 &
	pid=$!
	sleep 0.4
	kill -9 -- -$pid || true
	wait $pid || true
	corpus_of MEDIANS=vocab.tsv >/dev/null
	assert_equal "$(cd results/corpus/latest/ && cat corpus.txt tok/* | md5sum)" "$undisturbed"
}

@test "make corpus: RANK_ARGS chooses the style of the vocabulary that is learned" {
	mkdir -p style/in && cd style
	for i in 1 2; do scsim -q --cells 40 --genes 80 --seed $i | scview -q -O h5ad - -o in/$i.h5ad; done
	for args in '--vocab-style v2' '--cls 2 --vocab-style=bmfm'; do
		run -0 corpus_of RANK_ARGS="$args"
		# shellcheck disable=SC2086
		h5tok -q in/1.h5ad in/2.h5ad | rankenc -q --fit --vocab-style "${args##*[ =]}" | cmp - results/corpus/latest/vocab.tsv
	done
	# what a tool does not take is no file's fault
	for args in '--vocab-style bmfm --max-len 9' '--vocab-styl v2'; do
		run -2 --separate-stderr corpus_of REFUSED=skip RANK_ARGS="$args"
		[[ $stderr = *": rankenc: "*"--"*"corpus: stopped, not because of a file"* ]] || fail "$stderr"
	done
}

# row FILE: what corpus.tsv says of the file of this name
row() { awk -F '\t' -v OFS='|' -v name="/$1" 'substr($1, length($1) - length(name) + 1) == name { print $2, $8 }' results/corpus/latest/corpus.tsv; }

@test "make corpus: copies are found after the first pass, all pairs, by path; links are one file; bad files and links to nowhere are named before the other passes" {
	mkdir -p copies/in/b && cd copies
	for i in 1 2 3; do scsim -q --cells $((i * 20)) --genes 80 --seed $i | scview -q -O h5ad - -o in/$i.h5ad; done
	corpus_of >/dev/null
	whole=$(cat results/corpus/latest/vocab.tsv results/corpus/latest/tok/* | md5sum)
	rm -r results
	ln in/1.h5ad in/hard.h5ad
	ln -s 2.h5ad in/soft.h5ad
	run -0 corpus_of
	assert_equal "$(cat results/corpus/latest/vocab.tsv results/corpus/latest/tok/* | md5sum)" "$whole"
	assert_regex "$(row hard.h5ad)" '^same\|.*/in/1.h5ad$'
	# copies: bytes, and the same cells in another order of rows, with other names
	cp in/1.h5ad in/b/again.h5ad
	cp in/1.h5ad in/b/third.h5ad
	$PYTHON -W ignore - <<-'END'
		import anndata
		a = anndata.read_h5ad("in/3.h5ad")
		a = a[::-1].copy()
		a.obs_names = ["other-" + n for n in a.obs_names]
		a.write_h5ad("in/b/shuffled.h5ad")
	END
	ln -s /nowhere/at/all.h5ad in/gone.h5ad
	echo text >in/text.h5ad
	run -2 --separate-stderr corpus_of
	for pair in b/again.h5ad:1 b/third.h5ad:1 b/shuffled.h5ad:3; do
		[[ $stderr = *"copy: "*"/in/${pair%:*}: "*"/in/${pair#*:}.h5ad"* ]] || fail "$stderr"
		assert_regex "$(row "${pair%:*}")" "^copy\|.*/in/${pair#*:}.h5ad$"
	done
	[[ $stderr = *"gone.h5ad: no such file: a link to /nowhere/at/all.h5ad"* && $stderr = *"text.h5ad"* ]] || fail "$stderr"
	[[ $output != *"pass 2"* && $output != *tokens* ]] || fail "$output"
	assert_not_exist results/corpus/latest/corpus.txt
	run -0 --separate-stderr corpus_of REFUSED=skip
	assert_line --partial "9 files: 3 used, 0 empty, 2 refused, 3 copies, 1 other"
	assert_equal "$(cd results/corpus/latest && sed -n 's/^tok/&/p' corpus.txt | xargs cat vocab.tsv | md5sum)" "$whole"
	# with medians that are given there is no first pass
	cp results/corpus/latest/vocab.tsv .
	run -0 --separate-stderr corpus_of REFUSED=skip MEDIANS=vocab.tsv
	assert_line --partial "9 files: 3 used, 0 empty, 2 refused, 3 copies, 1 other"
	[[ $stderr = *"copy: "*"/in/b/shuffled.h5ad"* ]] || fail "$stderr"
	run -2 --separate-stderr corpus_of MEDIANS=vocab.tsv
	[[ $stderr = *"corpus: no list was made"*REFUSED=skip* ]] || fail "$stderr"
	assert_not_exist results/corpus/latest/corpus.txt
	# where donors are held out, the first pass counts cells
	run -2 --separate-stderr corpus_of HELD_OUT=donor
	[[ $stderr = *"copy: "*"/in/b/shuffled.h5ad"* && $stderr = *"copy: "*"/in/b/third.h5ad"* && $output != *medians* ]] || fail "$output $stderr"
	run -0 --separate-stderr corpus_of HELD_OUT=donor REFUSED=skip
	assert_line --partial "9 files: 3 used, 0 empty, 2 refused, 3 copies, 1 other"
	# files without counts, or as many cells, are no copies
	rm -r in/* results
	for i in 1 2; do scsim -q --cells 20 --genes 80 --seed $i | scview -q -O h5ad - -o in/$i.h5ad; done
	$PYTHON -W ignore - <<-'END'
		import anndata
		a = anndata.read_h5ad("in/1.h5ad")
		a.X.data[:] = 0
		a.X.eliminate_zeros()
		for name in "yz":
		    a.write_h5ad("in/%s.h5ad" % name)
		a[:0].write_h5ad("in/none.h5ad")
	END
	run -0 --separate-stderr corpus_of
	assert_line --partial "5 files: 2 used, 3 empty, 0 refused"
	run -0 --separate-stderr corpus_of MEDIANS=vocab.tsv
}

@test "make corpus: the process in which h5tok reads is killed, by any signal: no file is left out" {
	mkdir -p child/in child/tools && cd child
	scsim -q --cells 30 --genes 80 --seed 1 | scview -q -O h5ad - -o in/1.h5ad
	scsim -q --cells 5000 --genes 300 --seed 2 | scview -q -O h5ad - -o in/2.h5ad # time to be killed in
	corpus_of >/dev/null
	bytes() { (cd results/corpus/latest/ && cat vocab.tsv tok/* | md5sum); }
	undisturbed=$(bytes)
	REAL=$(realpath "$BIN")
	ln -s "$REAL"/* tools/
	rm tools/h5tok
	cat >tools/h5tok <<-'X'
		#!/usr/bin/python3
		import contextlib, os, subprocess, sys
		tool, signal = os.environ["H5TOK"], os.environ.get("SIGNAL")
		if not signal or "2.h5ad" not in sys.argv[-1]:
		    os.execv(tool, [tool] + sys.argv[1:])
		p = subprocess.Popen([tool] + sys.argv[1:])
		while p.poll() is None:
		    with contextlib.suppress(OSError):
		        for child in open("/proc/%d/task/%d/children" % (p.pid, p.pid)).read().split():
		            os.kill(int(child), int(signal))
		if p.returncode < 0:
		    os.kill(os.getpid(), -p.returncode)
		sys.exit(p.returncode)
	X
	chmod +x tools/h5tok
	export H5TOK=$REAL/h5tok SIGNAL
	BIN=$PWD/tools
	for SIGNAL in 9 11 6 10; do
		rm -r results
		run -2 --separate-stderr corpus_of REFUSED=skip
		[[ $stderr = *": stopped, not because of a file"* ]] || fail "$stderr"
		assert_not_exist results/corpus/latest/corpus.txt
	done
	SIGNAL=
	run -0 corpus_of REFUSED=skip
	assert_equal "$(bytes)" "$undisturbed"
}

@test "make corpus: what a tool has warned of is on the screen and in corpus.tsv, also when the file is not read again" {
	mkdir -p warn/in && cd warn
	for i in 1 2; do scsim -q --cells 30 --genes 80 --seed $i | scview -q -O h5ad - -o in/$i.h5ad; done
	$PYTHON -W ignore - <<-'END'
		import anndata
		a = anndata.read_h5ad("in/1.h5ad")
		a.X.data[:] = 1
		a.write_h5ad("in/1.h5ad")
	END
	for again in first second; do
		run -0 --separate-stderr corpus_of WHERE='cell_type!=none'
		[[ $stderr = *"/in/1.h5ad: warning: "* && $stderr != *"/in/2.h5ad"* ]] || fail "$again: $stderr"
		assert_line --regexp '^2 files: 2 used, .*; warnings of 1$'
		assert_regex "$(row 1.h5ad)" '^used\|warning: '
		assert_equal "$(row 2.h5ad)" "used|"
	done
	# genes of another species
	$PYTHON -W ignore -c 'import anndata; a = anndata.read_h5ad("in/2.h5ad"); a.var_names = "m" + a.var_names; a.write_h5ad("in/2.h5ad")'
	run -0 --separate-stderr corpus_of
	[[ $stderr = *"/in/2.h5ad: warning: shares no gene with "* ]] || fail "$stderr"
	assert_regex "$(row 2.h5ad)" '^used\|warning: shares no gene with '
}

# bats test_tags=slow
@test "make corpus: a script that is killed alone, a tool that is killed, two at once" {
	mkdir -p kill/in kill/slow && cd kill
	for i in 1 2 3 4; do scsim -q --cells $((i * 30)) --genes 80 --types 3 --rarest 0.2 --seed $i | scview -q -O h5ad - -o in/$i.h5ad; done
	bytes() { (cd results/corpus/latest/ && grep ^tok corpus.txt | xargs cat corpus.txt corpus.tsv vocab.tsv | md5sum); }
	corpus_of >/dev/null
	undisturbed=$(bytes)
	rm -r results
	# time to be killed in
	REAL=$(realpath "$BIN")
	ln -s "$REAL"/* slow/
	rm slow/h5tok
	# shellcheck disable=SC2016 # the tool's
	printf '#!/bin/sh\n! rm ../../../die 2>/dev/null || kill -9 $$\nread s <../../../wait 2>/dev/null && sleep $s\nexec %s/h5tok "$@"\n' "$(realpath "$BIN")" >slow/h5tok
	chmod +x slow/h5tok
	BIN=$PWD/slow
	echo 3 >wait
	corpus_of >/dev/null 2>&1 3>&- &
	pid=$!
	until compgen -G 'results/corpus/in-*/log/*.now' >/dev/null; do sleep 0.05; done
	# the script and not its copies for the files
	for p in $(pgrep -f 'corpus.sh results/corpus/in-'); do
		case $(realpath "/proc/$p/cwd") in "$(realpath .)"*) kill -9 "$p" ;; esac
	done
	wait $pid || true
	# what it left running ends while the next one reads the same files
	echo 4 >wait
	(sleep 4; rm wait) 3>&- &
	run -0 corpus_of
	assert_equal "$(bytes)" "$undisturbed"
	rm -r results
	corpus_of >/dev/null 2>&1 3>&- &
	pid=$!
	run -0 corpus_of
	wait $pid
	assert_equal "$(bytes)" "$undisturbed"
	# a tool that is killed is no reason to leave its file out
	rm -r results
	touch die
	run -2 --separate-stderr corpus_of REFUSED=skip
	[[ $stderr = *": a tool was killed (status 137)"*"corpus: stopped, not because of a file"* ]] || fail "$stderr"
	assert_not_exist results/corpus/latest/corpus.txt
	run -0 corpus_of REFUSED=skip
	assert_equal "$(bytes)" "$undisturbed"
	# the same behind other tools, and where one of them has warned of a category that the file lacks
	rm slow/rankenc
	# shellcheck disable=SC2016 # the tool's
	printf '#!/bin/sh\n! rm ../../../die 2>/dev/null || kill -9 $$\n%s/rankenc "$@" || exit\ncase "$*" in *tok/3-*) ! rm ../../../die3 2>/dev/null || kill -9 $PPID ;; esac\n' "$REAL" >slow/rankenc
	chmod +x slow/rankenc
	for where in '' 'cell_type!=none'; do
		rm -r results
		touch die
		mv slow/h5tok slow/h5tok.slow
		ln -s "$REAL/h5tok" slow/h5tok
		run -2 --separate-stderr corpus_of REFUSED=skip WHERE="$where"
		rm slow/h5tok
		mv slow/h5tok.slow slow/h5tok
		[[ $stderr = *": a tool was killed (status 137)"*"corpus: stopped, not because of a file"* ]] || fail "$stderr"
		assert_not_exist results/corpus/latest/corpus.txt
	done
	rm -r results
	run -0 corpus_of
	assert_equal "$(bytes)" "$undisturbed"
	# killed when the tokens of another set of files are there and nothing says so yet; then that set is the first one again
	scsim -q --cells 50 --genes 80 --types 3 --rarest 0.2 --seed 9 | scview -q -O h5ad - -o in/5.h5ad
	touch die3
	run -2 corpus_of
	assert_not_exist die3
	assert_not_exist results/corpus/latest/corpus.txt
	rm in/5.h5ad
	run -0 corpus_of
	assert_equal "$(bytes)" "$undisturbed"
}

# bats test_tags=slow
@test "make corpus: bad files and conditions" {
	mkdir -p bad/in && cd bad
	for i in 1 2; do
		scsim -q --cells 40 --genes 80 --types $i --rarest 0.3 --seed $i -o x.counts
		scview -q -O h5ad x.counts -o in/$i.h5ad
	done
	echo text >in/text.h5ad
	run -2 --separate-stderr corpus_of
	[[ $stderr = *"text.h5ad: this is text, expected .h5ad"*"corpus: no list was made, as 1 of the files cannot be read"* ]] || fail "$stderr"
	assert_not_exist results/corpus/latest/corpus.txt
	run -0 --separate-stderr corpus_of REFUSED=skip
	names "3 2 0 1"
	assert_equal "$(grep -c ^tok results/corpus/latest/corpus.txt)" 2
	rm in/text.h5ad
	# type2 is in one file only
	run -0 --separate-stderr corpus_of WHERE=cell_type=type2
	names "2 1 0"
	run -2 --separate-stderr corpus_of WHERE=cell_type=none
	[[ $stderr = *"corpus: no cells are left: column 'cell_type' has no category 'none'"* ]] || fail "$stderr"
	run -2 --separate-stderr corpus_of WHERE=column=1
	[[ $stderr = *"no obs column 'column' in the file"* ]] || fail "$stderr"
	run -2 --separate-stderr corpus_of WHERE='donor!=donor1;donor!=donor2;donor!=donor3;donor!=donor4'
	[[ $stderr = *"corpus: no cells are left: WHERE drops them all"* ]] || fail "$stderr"
	# a file that breaks off is no file without the category, which only a warning names
	scsim -q --cells 9000 --genes 80 | scview -q -O h5ad - -o in/torn.h5ad
	$PYTHON - <<-'END'
		import h5py
		with h5py.File("in/torn.h5ad", "r") as f:
		    d = f["X/data"]
		    at = d.id.get_chunk_info(d.id.get_num_chunks() * 6 // 10).byte_offset
		with open("in/torn.h5ad", "r+b") as f:
		    f.seek(at)
		    f.write(b"\xff" * 64)
	END
	run -2 --separate-stderr corpus_of WHERE='cell_type!=none'
	[[ $stderr = *"refused: "*"torn.h5ad: h5tok: "* ]] || fail "$stderr"
	assert_not_exist results/corpus/latest/corpus.txt
	rm in/torn.h5ad
	# a hidden file is none of them, and changes nothing
	cp in/2.h5ad in/.hidden.h5ad
	run -0 corpus_of
	assert_line --partial "2 files: 2 used"
	# tokens that are damaged are made again, and what a killed tool did not tell is counted again
	R=results/corpus/latest
	bytes() { cat $R/vocab.tsv $R/tok/* | md5sum; }
	whole=$(bytes)
	t=$(echo $R/tok/1-*)
	head -c 500 "$t" >cut && mv cut "$t"
	run -2 --separate-stderr corpus_of
	[[ $stderr = *"is damaged: the next make corpus makes it again"* ]] || fail "$stderr"
	rm $R/sums/all.1.report
	run -0 corpus_of
	assert_equal "$(bytes)" "$whole"
	run -2 --separate-stderr pipelines corpus
	[[ $stderr = *"corpus: give DIR=FOLDER, a folder of .h5ad files"* ]] || fail "$stderr"
	mkdir -p empty
	run -2 --separate-stderr pipelines corpus DIR=empty
	[[ $stderr = *"DIR=empty: no .h5ad file"* ]] || fail "$stderr"
}

# bats test_tags=slow
@test "examples/Snakefile: from .h5ad files to a model with Snakemake, once" {
	"$PEER_PYTHON" -m snakemake --version >/dev/null 2>&1 || skip "no snakemake in PEER_PYTHON=$PEER_PYTHON (make peers)"
	mkdir "$BATS_TEST_TMPDIR/snake"
	cd "$BATS_TEST_TMPDIR/snake"
	cp "$BATS_TEST_DIRNAME/../examples/Snakefile" .
	for s in 1 2; do scsim -q --cells 200 --genes 100 --seed $s | scview -q -O h5ad - -o $s.h5ad; done
	run -0 "$PEER_PYTHON" -m snakemake -j 2 --config 'files=["1.h5ad", "2.h5ad"]'
	assert_equal "$(scview -q 0.tok 1.tok | wc -l)" 401
	assert_file_exist my.model/model.safetensors
	run -0 "$PEER_PYTHON" -m snakemake -j 2 --config 'files=["1.h5ad", "2.h5ad"]'
	assert_output --partial "Nothing to be done"
}
