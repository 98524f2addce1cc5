load helper

setup_file() {
	need_tool rankenc maskgen scsim scview
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 120 --genes 150 --depth 900 --seed 3 -o sim.counts
	rankenc -q --fit --vocab-style v2 sim.counts -o v2.tsv
	rankenc -q --fit sim.counts -o v1.tsv
	local t
	for t in random group; do
		rankenc -q -m v1.tsv --max-len 48 --ties $t sim.counts -o $t.tok
		rankenc -q -m v2.tsv --max-len 48 --ties $t sim.counts -o $t.v2.tok
	done
	rankenc -q -m v1.tsv --max-len 48 sim.counts -o median.tok
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

@test "rankenc --ties: numbers of the counts against plain Python; tokens and their order are those of --ties median" {
	scview --gene-names id sim.counts >counts.tsv
	for o in "--vocab-style v1 --ties random" "--vocab-style v2 --ties random --value" "--vocab-style v2 --max-len 9 --ties random" \
		"--vocab-style v1 --ties group" "--vocab-style v2 --max-len 9 --ties group" "--vocab-style v1 --max-len 4 --ties group --value"; do
		rankenc -q -m v2.tsv $o sim.counts | scview >tok.tsv
		$PYTHON "$BATS_TEST_DIRNAME/ref/encode.py" v2.tsv counts.tsv tok.tsv $o
	done
	for t in random group; do
		cmp <(scview -c cell,token median.tok) <(scview -c cell,token $t.tok)
	done
	# counts above the size of rankenc's bitmap, and so many different ones that rank is cut
	$PYTHON - <<-'END'
		import anndata, numpy, pandas
		rng = numpy.random.default_rng(1)
		x = numpy.concatenate([rng.choice([4095, 4096, 4097, 70000, 2], (20, 60)), numpy.arange(1200).reshape(20, 60) * 997 + 1]).astype("f4")
		names = pandas.Index(["g%d" % i for i in range(60)])
		anndata.AnnData(x, obs=pandas.DataFrame(index=["c%d" % i for i in range(40)]), var=pandas.DataFrame(index=names)).write_h5ad("high.h5ad")
	END
	h5tok -q high.h5ad -o high.counts
	rankenc -q --fit high.counts -o high.tsv
	scview --gene-names id high.counts >counts.tsv
	for o in "--vocab-style v1 --max-len 40 --ties random" "--vocab-style v1 --ties random" "--vocab-style v1 --max-len 40 --ties group"; do
		rankenc -q -m high.tsv $o high.counts | scview >tok.tsv
		$PYTHON "$BATS_TEST_DIRNAME/ref/encode.py" high.tsv counts.tsv tok.tsv $o
	done
	# the highest rank is that of --max-len 40
	awk -F'\t' 'NR > 1 { n = split($NF, r, " "); for (i = 1; i <= n; i++) if (r[i] > most) most = r[i] } END { exit most != 39 }' tok.tsv
}

@test "h5tok --rank --ties is h5tok | rankenc --ties; what does not go together" {
	scview -q -O h5ad sim.counts -o sim.h5ad
	for t in random group; do
		h5tok -q --rank v1.tsv --max-len 48 --ties $t sim.h5ad -o one.tok
		h5tok -q sim.h5ad | rankenc -q -m v1.tsv --max-len 48 --ties $t -o two.tok
		cmp one.tok two.tok
	done
	run rankenc -m v1.tsv --ties random --max-len 65536 sim.counts -o never
	assert_failure 1
	assert_output --partial "for at most 65535 tokens a cell"
	run rankenc -m v1.tsv --ties rank sim.counts -o never
	assert_failure 2
	run maskgen --strategy runs median.tok -o never
	assert_failure 1
	assert_output --partial "no list 'tie' next to the tokens: --strategy runs needs tokens of rankenc --ties random"
	assert_file_not_exist never
}

@test "maskgen: a new order of equal counts in every epoch, from seed, cell and epoch alone" {
	for style in "" .v2; do
		maskgen -q --strategy none --epochs 3 --seed 5 random$style.tok -o none.masked
		scview -c cell,token,tie random$style.tok >t.tsv
		scview -c cell,epoch,input none.masked >m.tsv
		share=$($PYTHON "$BATS_TEST_DIRNAME/ref/ties.py" order t.tsv m.tsv)
		awk -v s="$share" 'BEGIN { exit !(s > 0.98 && s < 1.02) }'
	done
	maskgen -q --strategy none --epochs 3 --seed 5 --batch 7 -@ 2 random$style.tok | scview -c cell,epoch,input | sort >other.tsv
	cmp other.tsv <(sort m.tsv)
	maskgen -q --strategy none --epochs 3 --seed 6 random$style.tok | scview -c cell,epoch,input | sort >other.tsv
	run cmp -s other.tsv <(sort m.tsv)
	assert_failure
	# every order of three equal counts is drawn as often: chi square with 5 degrees of freedom, 1 in 10,000
	$PYTHON - <<-'END'
		import anndata, numpy, pandas
		x = numpy.ones((1, 3), "f4")
		anndata.AnnData(x, obs=pandas.DataFrame(index=["c"]), var=pandas.DataFrame(index=["a", "b", "c"])).write_h5ad("three.h5ad")
	END
	h5tok -q three.h5ad -o three.counts
	rankenc -q --fit three.counts -o three.tsv
	rankenc -q -m three.tsv --ties random three.counts | maskgen -q --strategy none --epochs 6000 | scview -c input | sed 1d | sort | uniq -c >orders
	awk '{ n++; x += ($1 - 1000) ^ 2 / 1000 } END { print n, x; exit !(n == 6 && x < 25.7) }' orders
}

@test "maskgen: masks after the draw: targets are the tokens of their places" {
	maskgen -q --strategy none --seed 5 --epochs 2 random.tok | scview -c cell,epoch,input >none.tsv
	maskgen -q --rate 0.3 --seed 5 --epochs 2 random.tok | scview -c cell,epoch,input,position,target >masked.tsv
	$PYTHON "$BATS_TEST_DIRNAME/ref/ties.py" targets none.tsv masked.tsv
}

@test "maskgen --strategy runs: stretches of equal counts side by side, an exact budget, the order of the medians" {
	scview -c cell,token,tie random.v2.tok >t.tsv
	for rate in 0.15 0.5 1; do
		maskgen -q --strategy runs --rate $rate --seed 2 random.v2.tok | scview -c cell,input,position,target >runs.tsv
		$PYTHON "$BATS_TEST_DIRNAME/ref/ties.py" runs $rate t.tsv runs.tsv
	done
}

@test "sctrain, scembed: tokens of one rank share a position, against a float64 trainer" {
	need_tool sctrain scembed
	maskgen -q --epochs 1 --batch 12 group.tok -o group.masked
	scview -c step,input,position,target,rank group.masked >steps.tsv
	sctrain mlm -q --config tiny --dropout 0 --lr 0 -o init group.masked
	sctrain mlm -q --config tiny --dropout 0 --lr 0.003 --warmup 4 -o model group.masked
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" train init model steps.tsv torch linear 0.003 4
	maskgen -q --epochs 1 --seed 9 group.tok -o test.masked
	sctrain eval -q -M model test.masked >eval.tsv
	scview -c input,position,target,rank test.masked >masked.tsv
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" mlm model masked.tsv eval.tsv
	scview -c token,rank group.tok >tokens.tsv
	for layer in 0 -2; do
		scembed -q -M model --emb-layer $layer group.tok -o x.emb
		scview -O npy x.emb >x.npy
		$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" embed model tokens.tsv $layer mean x.npy
	done
}

# refused MESSAGE COMMAND...: exit status 1 and this message
refused() {
	run "${@:2}"
	assert_failure 1
	assert_output --partial "$1"
}

@test "sctrain, scembed: a model of ranks and tokens without, and the other way round; a list of another type" {
	need_tool sctrain scembed
	maskgen -q group.tok -o g.masked
	maskgen -q median.tok -o m.masked
	sctrain mlm -q --config tiny -o g.model g.masked
	sctrain mlm -q --config tiny -o m.model m.masked
	grep -q '"shared_positions":[[:space:]]*true' g.model/config.json
	run grep -q shared_positions m.model/config.json
	assert_failure
	sed 's/"shared_positions":[[:space:]]*true/"shared_positions": 1/' g.model/config.json >number.json
	refused "number.json: shared_positions: expected true or false" sctrain mlm --config number.json -o never4 g.masked
	$PYTHON - "$BATS_TEST_DIRNAME/../python" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		import corrmask.stream as scstream
		for name in "random", "group":
		    s = scstream.read(name + ".tok")
		    columns = [dict(c, type="u32") if c["name"] in ("tie", "rank") else c for c in s.header["columns"]]
		    wide = lambda b: {k: (v[0], v[1].astype("u4")) if k in ("tie", "rank") else v for k, v in b.items()}
		    scstream.write(name + "32.tok", dict(s.header, columns=columns), map(wide, s))
	END
	refused "random32.tok: column 'tie' is u32, expected u16" maskgen random32.tok -o never
	refused "group32.tok: column 'rank' is u32, expected u16" maskgen group32.tok -o never
	refused "group32.tok: column 'rank' is u32, expected u16" scembed -M g.model group32.tok -o never
	for f in never never?; do assert_not_exist "$f"; done
}

@test "scembed: the order of equal counts is the one that maskgen --seed 1 draws in epoch 0" {
	need_tool sctrain scembed
	maskgen -q random.tok | sctrain mlm -q --config tiny -o rmodel
	maskgen -q --strategy none --seed 1 random.tok -o none.masked
	scview -c cell,input none.masked | sed 1d | sort -n | cut -f2 | sed '1i token' >tokens.tsv
	scembed -q -M rmodel --emb-layer 0 random.tok -o x.emb
	scview -O npy x.emb >x.npy
	$PYTHON "$BATS_TEST_DIRNAME/ref/model_dir.py" embed rmodel tokens.tsv 0 mean x.npy
}

@test "sctrain, scembed: a rank that the model has no position for" {
	need_tool sctrain scembed
	# 12 genes of 12 different counts: their ranks are 1 .. 12
	$PYTHON - <<-'END'
		import anndata, numpy, pandas
		names = pandas.Index(["g%d" % i for i in range(12)])
		x = numpy.arange(1, 13, dtype="f4")[None, :]
		anndata.AnnData(x, obs=pandas.DataFrame(index=["c"]), var=pandas.DataFrame(index=names)).write_h5ad("twelve.h5ad")
	END
	h5tok -q twelve.h5ad -o twelve.counts
	rankenc -q --fit twelve.counts -o twelve.tsv
	rankenc -q -m twelve.tsv --max-len 12 --ties group twelve.counts -o short.tok
	rankenc -q -m twelve.tsv --max-len 13 --ties group twelve.counts -o over.tok
	maskgen -q short.tok | sctrain mlm -q --config tiny -o tiny
	sed 's/"max_position_embeddings":\t[0-9]*/"max_position_embeddings": 12/' tiny/config.json >twelve.json
	maskgen -q short.tok | sctrain mlm -q --config twelve.json -o small
	scembed -q -M small short.tok -o /dev/null
	run scembed -M small over.tok -o never
	assert_failure 1
	assert_output --regexp "over.tok: cell 0, position [0-9]*: rank 12, but the model has 12 positions"
	maskgen -q over.tok -o over.masked
	run sctrain mlm --config twelve.json -o never over.masked
	assert_failure 1
	assert_output --regexp "over.masked: cell 0, position [0-9]*: rank 12, but the model has 12 positions"
	scembed -q --max-len 12 -M small over.tok -o /dev/null
	assert_file_not_exist never
}
