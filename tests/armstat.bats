# armstat: scipy's and statsmodels' numbers, families and pools, tables that are wrong
load helper

setup() {
	cd "$BATS_TEST_TMPDIR"
	REF=$BATS_TEST_DIRNAME/ref
	printf 'dataset\tarm\tseed\tf1\tloss\n' > t.tsv
	printf '%s\t%s\t%s\t%s\t%s\n' a random 1 .5 3.1 a random 2 .52 3.2 a random 3 .49 3 a corrmask 1 .55 2.9 a corrmask 2 .54 3 a corrmask 3 .58 2.7 \
		b random 1 .7 4 b random 2 .72 4.2 b random 3 .69 4.1 b corrmask 1 .71 4.2 b corrmask 2 .75 4 b corrmask 3 .74 4.1 >> t.tsv
}

compare() { armstat compare "$@"; }

# column NAME [FILE]: its fields, on one line
column() {
	awk -F '\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { printf "%s%s", (NR > 2 ? " " : ""), (c ? $c : "no column") }' "${2:--}"
}

# bats test_tags=slow
@test "random tables with ties, missing values and single seeds: every quantity equals scipy's" {
	for seed in 1 2 3; do $PYTHON -W ignore "$REF/compare.py" "$BIN/armstat" $seed; done
}

# bats test_tags=slow
@test "--cluster: of a thousand small samples without a difference, a twentieth has p below .05" {
	$PYTHON "$REF/small_samples.py" clusters "$BIN/armstat"
}

@test "--cluster: two clusters, or one that has nearly all values, have no interval, and a note says so" {
	printf 'arm\tcell\tdonor\tset\tvalue\n' > few
	for set in even two big; do
		for cell in 1 2 3 4 5 6; do
			case $set in even) donor=$((cell % 3)) ;; two) donor=$((cell % 2)) ;; big) donor=$((cell < 3 ? cell : 0)) ;; esac
			printf 'a\t%s\t%s\t%s\t%s\nb\t%s\t%s\t%s\t%s\n' $cell $donor $set .$((cell * 7 % 5)) $cell $donor $set .$((cell * 5 % 8))
		done
	done >> few
	# more cells of the large donor
	for cell in $(seq 11 50); do printf 'a\t%s\t0\tbig\t.%s\nb\t%s\t0\tbig\t.2\n' $cell $cell $cell; done >> few
	run -0 --separate-stderr compare --within set --pair cell --cluster donor few
	assert_equal "$stderr" "armstat compare: note: 2 rows have no interval: fewer than 3 clusters, or one has nearly all values (df below 1.2)"
	assert_equal "$(column set <<< "$output")" "even two big"
	assert_equal "$(column df <<< "$output" | cut -d ' ' -f 1,2)" "2 1"
	for name in low high t p p_corrected detectable; do
		assert_regex "$(column $name <<< "$output")" '^-?[0-9.]+ NA NA$'
	done
	assert_regex "$(column se <<< "$output")" '^[0-9.]+ [0-9.]+ [0-9.]+$'
}

@test "Holm and the detectable difference equal statsmodels'" {
	{
		printf 'dataset\tarm\tseed\tvalue\n'
		sed -n 's/^data\t//p' "$REF/compare.tsv"
	} > data.tsv
	compare -q --pair seed --within dataset data.tsv > holm.tsv
	# pairs with differences of sd 1: the detectable difference is the effect
	$PYTHON - > power.in <<-'END'
		import numpy as np
		print("dataset", "arm", "seed", "value", sep="\t")
		for n in range(3, 31):
		    x = np.arange(n) / np.std(np.arange(n), ddof=1)
		    for k in range(n):
		        print(n, "a", k, 0, sep="\t"), print(n, "b", k, repr(float(x[k])), sep="\t")
	END
	compare --pair seed --within dataset power.in > power.tsv
	$PYTHON - "$REF/compare.tsv" <<-'END'
		import sys
		def table(name):
		    lines = [l.rstrip("\n").split("\t") for l in open(name)]
		    return [dict(zip(lines[0], l)) for l in lines[1:]]
		def same(r, keys, want):
		    for k, w in zip(keys, want):
		        assert abs(float(r[k]) - float(w)) <= 1e-10 * abs(float(w)), (k, r, w)
		got = {n: {(r["dataset"], r["arm"]): r for r in table(n + ".tsv")} for n in ("holm", "power")}
		seen = 0
		for kind, *f in (l.rstrip("\n").split("\t") for l in open(sys.argv[1])):
		    if kind == "holm":
		        same(got["holm"][f[0], f[1]], ["p_corrected"], f[2:])
		    elif kind == "power":
		        same(got["power"][f[0], "b"], ["detectable"], f[1:])
		    seen += kind in ("holm", "power")
		assert seen == 15 + 28
	END
}

@test "arms, references, groups, means, several values" {
	compare --metrics f1 --within dataset --pair seed t.tsv > got
	assert_equal "$(column arm < got; echo; column reference < got; echo; column dataset < got)" $'corrmask corrmask\nrandom random\na b'
	compare --metrics f1 --within dataset --pair seed --compare random:corrmask < t.tsv > other
	assert_equal "$(column arm < other) $(column low < other)" "random random $(column high < got | sed 's/\(^\| \)-/\1+/g; s/\(^\| \)\([^+]\)/\1-\2/g; s/+//g')"
	# the same with commas, compressed, in two files, in another order of the columns
	sed 's/\t/,/g' t.tsv | gzip > t.csv.gz
	compare --metrics f1 --within dataset --pair seed t.csv.gz | diff - got
	head -7 t.tsv > one
	sed '2,7d' t.tsv | awk -F '\t' -v OFS='\t' '{ print $4, $2, $1, $3 }' > two
	compare --metrics f1 --within dataset --pair seed one two | diff - got
	compare --metrics f1,loss --within dataset --pair seed t.tsv > both
	assert_equal "$(column value < both)" "f1 loss f1 loss"
	assert_equal "$(awk -F '\t' 'NR == 1 || $2 == "f1"' both | cut -f 1,3-15)" "$(cut -f 1-14 got)"
	compare --metrics f1 --means --within dataset t.tsv > means
	assert_equal "$(column arm < means) $(column n < means)" "random corrmask random corrmask 3 3 3 3"
	assert_equal "$(column mean < means)" "0.5033333333333333 0.5566666666666666 0.7033333333333333 0.7333333333333333"
	# the means beside differences are those of the pairs
	sed '3s/\.52/NA/' t.tsv | armstat compare -q --metrics f1 --within dataset --pair seed > gap
	assert_equal "$(column mean < gap) $(column n < gap)" "0.565 0.7333333333333333 2 3"
	# names with tabs and quotes
	printf '"arm"\tseed\tvalue\n"a ""b"\t1\t2\n"c:d"\t1\t3\n"a ""b"\t2\t2\n"c:d"\t2\t4\n' > odd
	assert_equal "$(compare --pair seed --compare 'c:d:a "b' odd | column arm)" "c:d"
	assert_equal "$(compare --pair seed odd | column difference)" 1.5
}

@test "Holm over all rows" {
	for s in 1 2 3; do for a in x y z; do for k in 1 2 3 4; do echo "$s $a $k 0.$((k * k * (s + 1) % 7))$((s * k % 5))$(($(printf %d "'$a") * k * s % 9))"; done; done; done |
		sed '1i dataset arm seed value' | tr ' ' '\t' > f.tsv
	compare --pair seed --within dataset f.tsv > all
	$PYTHON - <<-'END'
		def table(name):
		    lines = [l.rstrip("\n").split("\t") for l in open(name)]
		    return [dict(zip(lines[0], l)) for l in lines[1:]]
		def holm(p):
		    out, most = [0] * len(p), 0
		    for i, k in enumerate(sorted(range(len(p)), key=lambda k: p[k])):
		        out[k] = most = max(most, min(1, p[k] * (len(p) - i)))
		    return out
		def check(rows):
		    for r, want in zip(rows, holm([float(r["p"]) for r in rows])):
		        assert abs(float(r["p_corrected"]) - want) < 1e-12, (r, want)
		every = table("all")
		assert len(every) == 6
		check(every)
	END
}

@test "what cannot be told is NA: one seed, no spread; missing values are counted" {
	printf 'arm\tseed\tvalue\na\t1\t0.3\nb\t1\t0.4\nc\t1\tNA\n' > one
	run -0 compare -q --pair seed one
	assert_line --regexp $'^b\ta\t1\t1\t0\t0.4\t0.3\t0.1[0-9]*(\tNA){11}$'
	assert_line --regexp $'^c\ta\t0\t0\t1(\tNA){14}$'
	# .1 each time, but for rounding
	printf 'arm\tseed\tvalue\na\t1\t0.3\nb\t1\t0.4\na\t2\t0.6\nb\t2\t0.7\na\t3\t0.8\nb\t3\t0.9\n' > same
	run -0 compare --pair seed same
	assert_equal "$(column sd <<< "$output") $(column t <<< "$output") $(column p <<< "$output") $(column detectable <<< "$output")" "0 NA NA NA"
	assert_equal "$(column low <<< "$output") $(column high <<< "$output")" "NA NA"
	# the draws of a bootstrap have quantiles all the same
	printf 'arm\tdraw\tvalue\na\t1\t0.25\nb\t1\t0.5\na\t2\t0.5\nb\t2\t0.75\na\t3\t0.125\nb\t3\t0.375\n' > draws
	run -0 compare --draws draw draws
	assert_equal "$(column low <<< "$output") $(column high <<< "$output")" "0.25 0.25"
	printf 'arm\tseed\tvalue\na\t1\t0.3\na\t2\t\na\t3\t1\nb\t1\t0.4\nb\t2\t1\nb\t4\tnan\nb\t3\t2\n' > gaps
	run -0 compare --pair seed gaps
	names "note: 2 dropped"
	run -0 compare -q --pair seed gaps
	assert_equal "$(column n <<< "$output") $(column dropped <<< "$output")" "2 2"
}

@test "two seeds with the same values in both arms are noted: they can be one split counted twice" {
	printf 'arm\tseed\tvalue\na\t1\t0.31\nb\t1\t0.4\na\t2\t0.3\nb\t2\t0.5\na\t5\t0.31\nb\t5\t0.4\n' > twice
	run -0 --separate-stderr compare --pair seed twice
	assert_equal "$stderr" "armstat compare: note: seed 1 and 5 have the same values in both arms: the same split?"
	assert_equal "$(column n <<< "$output")" 3
	run -0 --separate-stderr compare -q --pair seed twice
	assert_equal "$stderr" ""
	# in one arm only, and whole numbers, which are equal by chance
	sed 's/5\t0.31/5\t0.32/' twice > once
	sed 's/0\.//' twice > whole
	for f in once whole; do
		run -0 --separate-stderr compare --pair seed $f
		assert_equal "$stderr" ""
	done
}

@test "numbers of any size: those near 1e200 and 1e-200 have the tests of those near 1" {
	for size in e200 e-200 e306; do
		for how in "--pair seed" "--pair seed --cluster seed" ""; do
			awk -F '\t' -v OFS='\t' -v e=$size 'NR > 1 { $4 = $4 e } 1' t.tsv > size.tsv
			compare $how --within dataset --metrics f1 t.tsv > plain.tsv
			compare $how --within dataset --metrics f1 size.tsv > sized.tsv
			PYTHONPATH="$BATS_TEST_DIRNAME/ref" $PYTHON - $size <<-'END'
				import results, sys
				scale = float("1" + sys.argv[1])
				for a, b in zip(*(results.records(open(n + ".tsv")) for n in ("plain", "sized"))):
				    assert a.keys() == b.keys() and a["t"] is not None
				    for k in a:
				        if not isinstance(a[k], (int, float)):
				            continue
				        want = a[k] * (scale if k in ("mean", "reference_mean", "difference", "sd", "se", "low", "high", "detectable") else 1)
				        assert abs(b[k] - want) <= 1e-9 * abs(want), (k, a[k], b[k])
			END
		done
	done
	awk -F '\t' -v OFS='\t' 'NR > 1 { $4 = $4 "e200" } 1' t.tsv | compare --means --within dataset --metrics f1 > means.tsv
	run -0 column sd means.tsv
	refute_output --regexp 'NA|inf|^0| 0 '
}

@test "a byte order mark before the names of the columns is passed over" {
	{
		printf '\xef\xbb\xbf'
		cat t.tsv
	} > mark.tsv
	compare --arm dataset --metrics loss mark.tsv | diff - <(compare --arm dataset --metrics loss t.tsv)
	sed 's/\t/,/g; 1s/^/"/; 1s/,/",/' t.tsv > quoted.csv
	{
		printf '\xef\xbb\xbf'
		cat quoted.csv
	} > mark.csv
	compare --arm dataset --metrics loss mark.csv | diff - <(compare --arm dataset --metrics loss t.tsv)
}

@test "bad input: one line each" {
	refused() {
		local status=$1 message=$2
		shift 2
		run "-$status" armstat compare "$@"
		names "$message"
		assert [ "${#lines[@]}" -le 2 ]
	}
	refused 1 "t.tsv 1 seeds --pair f1" --metrics f1 --pair seeds t.tsv
	refused 1 "t.tsv 1 value --metrics f1" t.tsv
	refused 1 "t.tsv 1 method --arm f1" --metrics f1 --arm method t.tsv
	sed 's/\.54/x&/' t.tsv > x.tsv
	refused 1 "x.tsv 6 f1 x.54 NA" --metrics f1 --pair seed --within dataset x.tsv
	for bad in inf 1e999 0x3 ".5 " 1,5 --; do
		awk -F '\t' -v OFS='\t' -v b="$bad" 'NR == 4 { $4 = b } 1' t.tsv > x.tsv
		refused 1 "x.tsv 4 f1 $bad NA" --metrics f1 x.tsv
	done
	refused 1 "t.tsv 8 random 1 2" --metrics f1 --pair seed t.tsv
	cp t.tsv again.tsv
	refused 1 "again.tsv 2 random 1 t.tsv" --metrics f1 --pair dataset,seed t.tsv again.tsv
	grep -v corrmask t.tsv > x.tsv
	refused 1 "'arm' random" --metrics f1 x.tsv
	refused 2 "--metrics 'f1' twice" --metrics f1,loss,f1 t.tsv
	refused 1 "--compare pmi:random arm" --metrics f1 --compare pmi:random t.tsv
	awk -F '\t' 'NR == 1 || $2 == "random" && $1 == "a" || $2 == "corrmask" && $1 == "b"' t.tsv > x.tsv
	run -0 compare --metrics f1 --within dataset x.tsv
	names "warning: --within dataset"
	assert_line --index 1 --regexp $'^dataset\tarm\treference\tn\t'
	assert_equal "${#lines[@]}" 2
	sed '5s/\t[^\t]*$//' t.tsv > x.tsv
	refused 1 "x.tsv 5 4" --metrics f1 x.tsv
	sed '1s/loss/f1/' t.tsv > x.tsv
	refused 1 "x.tsv 1 2 'f1'" --metrics f1 x.tsv
	: > x.tsv
	refused 1 "x.tsv empty" x.tsv
	head -1 t.tsv > x.tsv
	refused 1 "table no line" --metrics f1 x.tsv
	refused 1 "no.tsv" no.tsv
	refused 2 "--splits needs --pair" --metrics f1 --splits 3:1 t.tsv
	for bad in 3 3:0 0:1 3:x a:b 3:1: :1 -3:1; do refused 2 "--splits $bad 3:1" --metrics f1 --pair seed "--splits=$bad" t.tsv; done
	refused 2 "--compare random A:B" --metrics f1 --compare random t.tsv
	refused 2 "--cluster needs --pair or --means" --metrics f1 --cluster seed t.tsv
	refused 2 "--means --pair" --metrics f1 --means --pair seed t.tsv
	refused 2 "--cluster --splits" --metrics f1 --pair seed --cluster seed --splits 3:1 t.tsv
	refused 2 "--draws --cluster" --metrics f1 --pair dataset --draws seed --cluster dataset t.tsv
	refused 2 "--arm needs the name of one column" --arm arm,seed t.tsv
	refused 2 "--metrics empty COL[,COL...]" --metrics "" t.tsv
}

# bats test_tags=slow
@test "hostile tables: a message or a table, never a crash" {
	$PYTHON - "$BIN/armstat" t.tsv <<-'END'
		import random, subprocess, sys
		tool, good = sys.argv[1], open(sys.argv[2], "rb").read()
		r = random.Random(5)
		options = [[], ["--pair", "seed"], ["--pair", "dataset", "--draws", "seed"], ["--means"],
		    ["--pair", "seed,dataset", "--cluster", "dataset"], ["--pair", "seed", "--within", "dataset"]]
		bits = [b"\t", b"\n", b"\r\n", b'"', b",", b"\0", b"\xff", b"NA", b"1e308", b"-1e308", b"1e-320", b"-0", b"random", b"9" * 400, b"\x1f", b"\t" * 300]
		seen = set()
		for i in range(400):
		    data = bytearray(good)
		    for _ in range(r.randint(1, 6)):
		        at = r.randrange(len(data) + 1)
		        if r.random() < .3:
		            del data[at:at + r.randint(1, 20)]
		        else:
		            data[at:at + r.randint(0, 4)] = r.choice(bits)
		    p = subprocess.run([tool, "compare", "-q", "--metrics", "f1", *r.choice(options)], input=bytes(data), capture_output=True, timeout=20)
		    assert p.returncode in (0, 1, 2), (p.returncode, bytes(data))
		    assert p.returncode == 0 or not p.stdout and p.stderr.count(b"\n") <= 2, (p.stderr, bytes(data))
		    assert p.returncode or b"inf" not in p.stdout.lower() and b"nan" not in p.stdout.lower(), (p.stdout, bytes(data))
		    seen.add(p.returncode)
		assert seen >= {0, 1}, seen
	END
}

@test "armstat leaderboard: mean score and mean rank, ties take the smallest rank" {
	result() { printf 'metric\tvalue\n%s' "$(printf '%s\t%s\n' "${@:2}")" >"$1"; }
	result a.type balanced_accuracy 0.8 macro_f1 0.7
	result b.type balanced_accuracy 0.8 macro_f1 0.75
	result c.type balanced_accuracy 0.6 macro_f1 0.9
	result a.age spearman 0.5
	result b.age spearman 0.25
	result c.age spearman 0.5
	armstat leaderboard --metrics balanced_accuracy+macro_f1,spearman a.type,a.age b.type,b.age c.type,c.age >ranks.tsv
	run $PYTHON "$REF/evaluation.py" ranks ranks.tsv
	assert_success
	assert_equal "$(cut -f 3 ranks.tsv | xargs)" "rank 1.6666666666666667 2 1.6666666666666667"
	assert_equal "$(armstat leaderboard a.type b.type | cut -f 1,3 | xargs)" "method rank a.type 1.5 b.type 1"
	# shortest numbers, and no two columns of one name
	result e.type macro_f1 0.8225
	run -0 armstat leaderboard -m macro_f1,macro_f1 e.type,e.type
	assert_line -n 0 "$(printf 'method\tscore\trank\tmacro_f1.1\tmacro_f1.2')"
	assert_line -n 1 "$(printf 'e.type,e.type\t0.8225\t1\t0.8225\t0.8225')"
	run armstat leaderboard -m macro_f1,spearman a.type
	assert_failure 2
	names "a.type 1 --metrics 2"
	run armstat leaderboard -m spearman a.type
	assert_failure 1
	names "a.type spearman"
	result bad.type balanced_accuracy 0.8 macro_f1 nan
	run armstat leaderboard bad.type
	assert_failure 1
	names "bad.type 3 macro_f1 nan"
}
