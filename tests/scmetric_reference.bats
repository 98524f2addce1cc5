# scmetric reference: the same losses as an independent Python; streams that do not fit
load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 500 --genes 200 --depth 150 --seed 2 -o t.counts # most counts are 1
	rankenc -q --fit t.counts -o t.vocab
	rankenc -q -m t.vocab t.counts -o t.tok
	rankenc -q -m t.vocab --ties group t.counts -o group.tok
	rankenc -q -m t.vocab --ties group --value t.counts -o value.tok
	for e in t group; do maskgen -q --seed 3 $e.tok -o $e.masked; done
	maskgen -q --seed 3 --objective value value.tok -o value.masked
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# tables STREAM.tok [,rank]: what lookup.py reads
tables() {
	maskgen -q --strategy none -u "$1.tok" > none.masked
	scview -c "input$2" none.masked > train.tsv
	scview -c "input,position,target$2" "$1.masked" > test.tsv
	scview --vocab "$1.tok" > t.tsv
}

@test "frequencies and medians of neighbours equal Python's; where equal counts are sorted, medians tell much; by ranks, less" {
	for e in t group; do
		rank=
		[ $e = t ] || rank=,rank
		tables $e $rank
		scmetric reference --train none.masked $e.masked > $e.got
		BIN=$BIN "$BATS_TEST_DIRNAME/../pipelines/reference.sh" $e.tok 1 $e.masked | diff - $e.got
		$PYTHON "$BATS_TEST_DIRNAME/ref/lookup.py" t.tsv train.tsv test.tsv > want
		$PYTHON - $e.got $e "$(cut -f 3 test.tsv | tail -n +2 | wc -w)" <<-'END'
			import sys
			head, row = (l.rstrip("\n").split("\t") for l in open(sys.argv[1]))
			want = [float(x) for x in open("want").read().split()]
			assert head == ["masks", "frequency", "medians", "n"] and row[0] == sys.argv[2] and row[3] == sys.argv[3], (head, row)
			for got, w in zip(row[1:3], want):
			    assert abs(float(got) / w - 1) < 1e-12, (row, want)
			assert want[1] < want[0] - (0.3 if sys.argv[2] == "t" else 0.01), want
		END
	done
}

@test "means of values equal numpy's" {
	scmetric reference --train value.tok value.masked value.masked > got
	BIN=$BIN "$BATS_TEST_DIRNAME/../pipelines/reference.sh" value.tok 1 value.masked value.masked | diff - got
	scview -c token,value value.tok > values.tsv
	scview -c target,value value.masked > masked.tsv
	$PYTHON - <<-'END'
		import numpy as np
		def read(f):
		    rows = [l.rstrip("\n").split("\t") for l in open(f)][1:]
		    return [np.array([t(x) for r in rows for x in r[i].split()]) for i, t in ((0, int), (1, float))]
		(g, v), (target, truth) = read("values.tsv"), read("masked.tsv")
		n = max(g.max(), target.max()) + 1
		mean = (np.bincount(g, v, n) + v.mean()) / (np.bincount(g, minlength=n) + 1)
		want = [((truth - v.mean()) ** 2).mean(), ((truth - mean[target]) ** 2).mean()]
		head, *rows = (l.rstrip("\n").split("\t") for l in open("got"))
		assert head == ["masks", "mean", "gene_mean", "n"] and len(rows) == 2 and rows[0] == rows[1] and int(rows[0][3]) == len(target) > 1000
		assert np.allclose([float(x) for x in rows[0][1:3]], want, rtol=1e-6, atol=0), (rows, want)   # scview prints floats with few digits
	END
}

@test "tokens as they are, and nothing to score" {
	tables t
	scmetric reference --train t.tok t.masked | awk 'END { exit !($1 == "t" && $3 < $2 && $4 > 1000) }'
	# no gene is masked
	maskgen -q --strategy none t.tok -o nothing.masked
	assert_equal "$(scmetric reference --train t.tok nothing.masked | tail -n 1)" "$(printf 'nothing\tNA\tNA\t0')"
}

@test "streams that do not fit: one line" {
	refused() { # STATUS WORDS ARGUMENT...
		local status=$1 words=$2
		shift 2
		run "-$status" scmetric reference "$@"
		names "scmetric reference: $words"
		assert [ "${#lines[@]}" -le 2 ]
	}
	scsample -q -n 0 t.tok -o empty.tok 2> /dev/null || scsample -q --where 'cell<0' t.tok -o empty.tok
	refused 1 "empty.tok cells" --train empty.tok t.masked
	# a position beyond the cell, a special token as a target
	PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON - <<-'END'
		import corrmask.stream as scstream
		for name, column, value in ("far", "position", 200), ("special", "target", 0):
		    s = scstream.read("t.masked")
		    blocks = list(s)
		    blocks[0][column].values[3] = value
		    scstream.write(f"{name}.masked", s.header, blocks)
	END
	refused 1 "far.masked position 200 tokens" --train t.tok far.masked
	refused 1 "special.masked target <pad>" --train t.tok special.masked
}
