load helper

setup_file() {
	need_tool scsim scview
	cd "$BATS_FILE_TMPDIR"
	"$BIN/scsim" -q --cells 300 --genes 200 --seed 3 -o sim.counts
	"$BIN/scsim" -q --cells 200 --genes 200 --seed 4 --types 9 -o other.counts
	"$BIN/scview" -c cell,cell_type sim.counts >all
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

chosen() {              # the cells and types of what scsample writes with these options
	scsample "$@" -o out.s && scview -c cell,cell_type out.s >chosen
}

rule() {                # rule NAME ARG [SEED]: the cells chosen are those of tests/ref/sample.py
	run $PYTHON "$BATS_TEST_DIRNAME/ref/sample.py" "$1" "$2" all chosen ${3:-}
	assert_success
}

# ---- choices ----

@test "scsample: -n takes the smallest draws, order kept" {
	chosen -n 77 sim.counts
	rule number 77
	chosen -n 10 --seed 9 sim.counts
	rule number 10 9
	chosen -n 0 sim.counts
	assert_equal "$(wc -l <chosen)" 1
}

@test "scsample: -f takes the nearest whole number of cells" {
	chosen -f 0.335 sim.counts
	rule number 101
	chosen -f 1 sim.counts
	cmp all chosen
}

@test "scsample: samples nest, and a sample of a sample is the sample" {
	scsample -n 100 sim.counts | scsample -n 30 - | scview -c cell >a
	scsample -n 30 sim.counts | scview -c cell >b
	cmp a b
}

@test "scsample: --stratify, --balance and --cap follow the rules of the manual page" {
	chosen -n 61 --stratify cell_type sim.counts
	rule stratify 61
	chosen -n 90 --balance cell_type sim.counts
	rule balance 90
	chosen --balance cell_type sim.counts
	rule balance 0
	chosen --cap cell_type:20 sim.counts
	rule cap 20
}

@test "scsample: the two parts of a split by cells share the input out" {
	chosen --test-fraction 0.3 --part test sim.counts
	rule split 0.3
	cp chosen test
	chosen --test-fraction 0.3 --part train sim.counts
	assert_equal "$(tail -qn +2 test chosen | sort -n)" "$(tail -n +2 all)"
}

@test "scsample: a stratified split keeps the proportions" {
	chosen --test-fraction 0.5 --part test --stratify cell_type sim.counts
	cut -f2 all | sort | uniq -c >a
	cut -f2 chosen | sort | uniq -c >b
	run awk 'NR == FNR { n[$2] = $1; next } $2 != "cell_type" && ($1 - n[$2] / 2 > 1 || n[$2] / 2 - $1 > 1) { exit 1 }' a b
	assert_success
}

@test "scsample: a split by donor cuts no donor, and both calls agree" {
	for part in train test; do
		scsample --test-fraction 0.25 --group donor --part $part sim.counts | scview -c cell,donor | tail -n +2 >$part
		[ -s $part ]
	done
	assert_equal "$(cat train test | sort -n)" "$(scview -c cell,donor sim.counts | tail -n +2)"
	assert_equal "$(cut -f2 train | sort -u | comm -12 - <(cut -f2 test | sort -u))" ""
	# one whole donor can come no nearer to the share than the nearest donor
	run $PYTHON -c '
from collections import Counter
a, b = (Counter(l.split()[1] for l in open(p)) for p in ("train", "test"))
n = sum(a.values()) + sum(b.values())
assert abs(sum(b.values()) - n / 4) <= max((a + b).values()) / 2 + 1'
	assert_success
}

@test "scsample: the split sees the cells that the filters left, on both sides" {
	for part in train test; do
		scsample --min-class cell_type:30 --test-fraction 0.3 --part $part sim.counts | scview -c cell,cell_type | tail -n +2 >$part
	done
	scsample --min-class cell_type:30 sim.counts | scview -c cell,cell_type | tail -n +2 >both
	assert_equal "$(cat train test | sort -n)" "$(cat both)"
	assert_equal "$(cut -f2 both | sort | uniq -c | awk '$1 < 30')" ""
}

@test "scsample: --min-class by number and by share" {
	rare=$(tail -n +2 all | cut -f2 | sort | uniq -c | awk '$1 < 30 { n += $1 } END { print 300 - n }')
	assert_equal "$(scsample --min-class cell_type:30 sim.counts | scview -c cell | tail -n +2 | wc -l)" "$rare"
	assert_equal "$(scsample --min-class cell_type:0.1 sim.counts | scview -c cell | tail -n +2 | wc -l)" "$rare"
}

# ---- filters ----

# labelled PATH COLUMN~VALUE,VALUE...: an embedding with columns of labels; the value - is missing
labelled() {
	PYTHONPATH=$BATS_TEST_DIRNAME/../src:$BATS_TEST_DIRNAME/../python $PYTHON - "$@" <<-'P'
		import sys, numpy as np, corrmask.stream as scstream
		columns, block = [], {}
		for text in sys.argv[2:]:
		    name, values = text.rsplit("~", 1)
		    values = values.split(",")
		    names = sorted(set(values) - {"-"})
		    columns.append({"name": name, "type": "categorical", "shape": "scalar", "categories": names})
		    block[name] = np.array([-1 if v == "-" else names.index(v) for v in values], np.int32)
		n = len(values)
		columns = [{"name": "cell", "type": "u64", "shape": "scalar"}, *columns, {"name": "x", "type": "f32", "shape": "fixed", "n": 1}]
		block.update(cell=np.arange(n, dtype=np.uint64), x=np.zeros((n, 1), np.float32))
		scstream.write(sys.argv[1], {"kind": "embedding", "columns": columns, "provenance": []}, [block])
	P
}

@test "scsample: --where COL= is COL=NA, of texts NA and of missing values; an operator in the name of a column" {
	labelled na.s 't~NA,-,x'
	cells() { scsample -q --where "$1" "${2:-na.s}" | scview -c cell - | tail -n +2 | xargs; }
	assert_equal "$(cells t=NA)" "0 1"
	assert_equal "$(cells t=)" "0 1"
	assert_equal "$(cells 't!=NA')" "2"
	assert_equal "$(cells 't!=')" "2"
	assert_equal "$(cells 't = ')" "0 1"
	labelled odd.s 'a=b~1,2,-' 'c<d~1,2,-' '!~1,2,-' 'cell type: x=y<z~u,v=w,-' 'p~q=r,s,-'
	assert_equal "$(cells 'a=b=1' odd.s)" "0"
	assert_equal "$(cells 'a=b!=NA' odd.s)" "0 1"
	assert_equal "$(cells 'c<d>=2' odd.s)" "1"
	assert_equal "$(cells 'c<d >= 2 ' odd.s)" "1"
	assert_equal "$(cells '!=' odd.s 2>/dev/null)" ""
	assert_equal "$(cells 'cell type: x=y<z!=' odd.s)" "0 1"
	assert_equal "$(cells 'cell type: x=y<z=v=w' odd.s)" "1"
	assert_equal "$(cells 'p=q=r' odd.s)" "0"
	assert_equal "$(scsample -q --where 'a=b=1' --where 'a=b=2' odd.s | scview -c cell - | tail -n +2 | xargs)" "0 1"
	labelled two.s 'a~1,2,-' 'a=b~1,2,-'
	run -1 scsample --where 'a=b=1' two.s -o out.s
	names "--where two.s a=b=1 a=b 'a'"
	run -1 scsample --where 'z=b=1' two.s -o out.s
	assert_output --partial "no column 'z'"
}

@test "scsample: --where on categories, text and numbers" {
	scview -c cell,barcode,n_counts,cell_type,donor sim.counts >t
	n() { awk -F'\t' "NR > 1 && ($1)" t | wc -l; }
	got() { scsample "$@" sim.counts 2>/dev/null | scview -c cell | tail -n +2 | wc -l; }
	assert_equal "$(got --where cell_type=type2)" "$(n '$4 == "type2"')"
	assert_equal "$(got --where cell_type=type2 --where cell_type=type3)" "$(n '$4 == "type2" || $4 == "type3"')"
	assert_equal "$(got --where cell_type=type2 --where donor=donor1)" "$(n '$4 == "type2" && $5 == "donor1"')"
	assert_equal "$(got --where cell_type!=type2 --where cell_type!=type1)" "$(n '$4 != "type2" && $4 != "type1"')"
	assert_equal "$(got --where 'cell_type = type2')" "$(n '$4 == "type2"')"
	assert_equal "$(got --where ' cell_type !=type2 ' --where 'n_counts >= 3 ')" "$(n '$4 != "type2" && $3 >= 3')"
	# as written, where a column has the name
	assert_equal "$(got --where 'cell_type= type2')" 0
	for op in '<' '<=' '>' '>=' '=' '!='; do
		x=$(awk 'NR == 7 { print $3 }' t)
		assert_equal "$(got --where "n_counts$op$x")" "$(n "\$3 ${op/#=/==} $x")"
	done
	assert_equal "$(got --where "barcode=$(awk 'NR == 9 { print $2 }' t)")" 1
	# texts that are no numbers, however long
	PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON -c '
import corrmask.stream as scstream
s = scstream.read("sim.counts")
scstream.write("long.counts", s.header, [dict(b, barcode=["9" * (i % 90) for i in range(len(b["cell"]))]) for b in s])'
	assert_equal "$(scsample --where 'barcode>=9999' long.counts | scview -c barcode | awk 'NR > 1 && length($1) > 3 && length($1) < 64 { n++ } NR > 1 { all++ } END { print (n == all && n > 50) }')" 1
	assert_equal "$(got --where 'cell_type=')" 0
	assert_equal "$(got --where 'cell_type!=')" 300
	rm -f out.s
	run -1 scsample --where cell_type=nope -o out.s sim.counts
	assert_output --regexp "^scsample: --where: sim.counts: column 'cell_type' has no category 'nope' \(it has: .*type2.*\)$"
	assert_not_exist out.s
	run -0 scsample --where cell_type!=nope -o out.s sim.counts
	names "warning: sim.counts cell_type nope"
	run -0 scsample --where n_counts=0 -o out.s sim.counts
	names "warning: 300"
}

@test "scsample: quality filters count what scview shows" {
	scview -c n_counts,gene sim.counts | tail -n +2 | awk '{ print $1, NF - 1 }' >q
	read -r counts genes <<< "$(sed -n 7p q)"
	assert_equal "$(scsample --min-genes $genes sim.counts | scview -c cell | tail -n +2 | wc -l)" "$(awk -v n=$genes '$2 >= n' q | wc -l)"
	assert_equal "$(scsample --where "n_counts>=$counts" sim.counts | scview -c cell | tail -n +2 | wc -l)" "$(awk -v n=$counts '$1 >= n' q | wc -l)"
	rankenc -q -m <(rankenc -q --fit sim.counts) sim.counts -o few.tok
	read -r all some <<< "$(scview -c token few.tok | awk -v n=$genes 'NR > 1 { all++; some += NF >= n } END { print all, some }')"
	[ "$some" -gt 0 ]
	[ "$some" -lt "$all" ]
	assert_equal "$(scsample --min-genes $genes few.tok | scview -c cell | tail -n +2 | wc -l)" "$some"
	# a gene without a symbol has its id
	PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON -c '
import corrmask.stream as scstream
s = scstream.read("sim.counts")
header = dict(s.header, vocab=dict(s.header["vocab"], id=["mt-nd1"] + s.header["vocab"]["id"][1:]))
scstream.write("mito.counts", header, list(s))'
	share=$(scview -c gene,count,n_counts mito.counts | awk -F '\t' 'NR > 1 { n = 0; split($1, g, " "); split($2, c, " "); for (i in g) if (g[i] == 0) n = c[i]; if (n / $3 <= 0.0005) k++ } END { print k }')
	[ "$share" -gt 0 ]
	[ "$share" -lt 300 ]
	assert_equal "$(scsample --max-mito 0.0005 mito.counts | scview -c cell | tail -n +2 | wc -l)" "$share"
	run scsample --max-mito 0.1 -o out.s sim.counts
	assert_failure 1
	names "sim.counts --max-mito 200 MT-"
}

# bats test_tags=data
@test "scsample: --max-mito on real cells is scanpy's share" {
	need_tool h5tok
	f=$SHARED/scrna/pbmc_facs_zheng2017.h5ad
	need scrna/pbmc_facs_zheng2017.h5ad
	h5tok -q -u "$f" | scsample --max-mito 0.02 | scview -c barcode | tail -n +2 >got
	$PYTHON - "$f" >want <<-'P'
		import sys, anndata, numpy
		a = anndata.read_h5ad(sys.argv[1])
		mt = numpy.array([s.upper().startswith("MT-") for s in a.var_names])
		x = a.X.tocsr().astype(float)
		share = numpy.asarray(x[:, mt].sum(1)).ravel() / numpy.asarray(x.sum(1)).ravel()
		print("\n".join(a.obs_names[share <= 0.02]))
	P
	[ "$(wc -l <want)" -gt 10 ]
	cmp got want
}

# ---- joining ----

@test "scsample: joining unites categories, renumbers cells and keeps barcodes" {
	scsample sim.counts other.counts -o joined.s
	scview --check joined.s
	scview -c cell,barcode,n_counts,cell_type,donor,gene,count joined.s >j
	scview -c barcode,n_counts,cell_type,donor,gene,count sim.counts | tail -n +2 >want
	scview -c barcode,n_counts,cell_type,donor,gene,count other.counts | tail -n +2 >>want
	tail -n +2 j | cut -f2- | cmp - want
	assert_equal "$(cut -f1 j | tail -n +2)" "$(seq 0 499)"
}

@test "scsample: a column that one file lacks is missing there" {
	PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON -c '
import corrmask.stream as scstream
s = scstream.read("sim.counts")
blocks = [dict(b, batch=[0] * b.rows) for b in s]
columns = s.header["columns"] + [{"name": "batch", "type": "categorical", "shape": "scalar", "categories": ["sim.counts"]}]
scstream.write("a.s", dict(s.header, columns=columns), blocks)'
	scsample a.s other.counts -o joined.s
	assert_equal "$(scview -c batch joined.s | tail -n +2 | sort | uniq -c | awk '{ print $1, $2 }')" "$(printf '200 NA\n300 sim.counts')"
	assert_equal "$(scsample --where batch=NA joined.s | scview -c cell | tail -n +2 | wc -l)" 200
	# cells without a value are a class of their own; --min-class drops them
	assert_equal "$(scsample --cap batch:50 joined.s | scview -c batch | sort | uniq -c | awk '$1 == 50' | wc -l)" 2
	assert_equal "$(scsample --min-class batch:1 joined.s | scview -c cell | tail -n +2 | wc -l)" 300
}

@test "scsample: numbers that one file lacks are marked missing, categories are matched by name" {
	$PYTHON - "$BATS_TEST_DIRNAME/../python" <<-'P'
		import sys
		sys.path.insert(0, sys.argv[1])
		import numpy as np, corrmask.stream as scstream
		def make(path, columns, labels, **more):
		    n = 3
		    cols = [{"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "barcode", "type": "str", "shape": "scalar"}]
		    values = {"cell": np.arange(n) + 7, "barcode": list("abc"), "logit": np.ones((n, 2), "f4")}
		    for name, (spec, v) in columns.items():
		        cols.append({"name": name, "shape": "scalar", **spec})
		        values[name] = v
		    cols.append({"name": "logit", "type": "f32", "shape": "fixed", "n": 2})
		    scstream.write(path, {"kind": "prediction", "provenance": [], "columns": cols, "labels": labels, **more}, [values])
		cat = lambda *c: {"type": "categorical", "categories": list(c)}
		make("j1", {"t": (cat("B", "T"), [0, 1, -1]), "age": ({"type": "i64"}, [5, -6, 0]), "age.missing": ({"type": "u8"}, [0, 0, 1]),
		            "flag": ({"type": "u8"}, [1, 0, 1])}, ["p", "q"])
		make("j2", {"score": ({"type": "f64"}, [.5, np.nan, 2]), "note": ({"type": "str"}, ["x", "", "y"]), "t": (cat("NK", "B"), [1, 0, 1])}, ["p", "q"])
		make("j3", {}, ["p", "r"])
		make("j4", {"age": ({"type": "f32"}, [1, 2, 3])}, ["p", "q"])
	P
	scsample j1 j2 -o joined.s
	scview --check joined.s
	scview -c cell,barcode,t,age,flag,score,note joined.s >got
	printf '%s\n' 'cell barcode t age flag score note' '0 a B 5 1 NA ' '1 b T -6 0 NA ' '2 c NA NA 1 NA ' '3 a B NA NA 0.5 x' '4 b NK NA NA NA ' \
		'5 c B NA NA 2 y' | tr ' ' '\t' >want
	diff want got
	assert_equal "$(scsample --where age= joined.s | scview -c cell | tail -n +2 | xargs)" "2 3 4 5"
	run scsample j1 j3 -o bad.s
	assert_failure 1
	names "j3 label j1"
	run scsample j1 j4 -o bad.s
	assert_failure 1
	names "j4 age f32 1 i64 j1"
	run scsample j1 sim.counts -o bad.s
	assert_failure 1
	assert_not_exist bad.s
}

@test "several files: a column of obs that has other types in some is text or numbers, as of h5tok; missing values stay" {
	$PYTHON - <<-'P'
		import anndata as ad, numpy as np, pandas as pd
		whole, classes = pd.array([-7, None, 3, 3], dtype="Int64"), pd.Categorical(["1", "x", None, "1"])
		for name, lab, donor, dose in (("one", ["T cell"], [2**63 + 1], [1]), ("more", ["T cell", "B", None, "B"], whole, [.5, np.nan, 1e9, 2]),
		                               ("last", ["B", "B", "NK"], classes[:3], whole[:3])):
		    obs = pd.DataFrame({"lab": lab, "donor": donor, "dose": dose}, index=[f"{name}{i}" for i in range(len(lab))])
		    obs["half"] = np.array(dose, dtype="f8") if name == "more" else np.array(lab)
		    ad.AnnData(np.ones((len(lab), 2), "f4"), obs=obs, var=pd.DataFrame(index=["a", "b"])).write_h5ad(name + ".h5ad")
	P
	for f in one more last; do h5tok -q $f.h5ad -o $f.counts; done
	assert_equal "$(for f in one more last; do scview -q --header-tsv $f.counts | awk -F '\t' '$1 == "type:lab" { print $2 }'; done | xargs)" "str categorical categorical"
	for order in 'one more last' 'more last one' 'more one last'; do
		streams=() sources=()
		for f in $order; do streams+=("$f.counts") sources+=("$f.h5ad"); done
		h5tok -q "${sources[@]}" -o want.counts
		columns=cell,barcode,lab,lab.missing,donor,donor.missing,dose,half,half.missing,gene,count
		scview -q -c $columns want.counts >want
		scsample -q "${streams[@]}" | scview -q -c $columns - | diff want -
		scview -q -c $columns "${streams[@]}" | diff want -
	done
	assert_equal "$(scsample -q --where lab=NA "${streams[@]}" | scview -q -c barcode - | tail -n +2)" more2
	assert_equal "$(scsample -q --min-class lab:2 "${streams[@]}" | scview -q -c lab - | tail -n +2 | sort | uniq -c | xargs)" "4 B 2 T cell"
}

@test "scsample --group: two groups are enough for a split, one is not" {
	labelled two.groups 'g~a,a,a,b,b,b'
	labelled one.group 'g~a,a,a,a,a,a'
	for part in train test; do
		scsample -q --test-fraction 0.5 --group g --part $part two.groups | scview -c g - | tail -n +2 | sort -u >$part.g
		assert_equal "$(wc -l <$part.g)" 1
	done
	run ! cmp -s train.g test.g
	run -1 scsample --test-fraction 0.5 --group g --part test one.group -o never.s
	names "'g' 1 2"
}

@test "scsample: the two parts of joined files share them out" {
	for part in train test; do
		scsample --test-fraction 0.2 --part $part sim.counts other.counts | scview -c cell | tail -n +2 >$part
	done
	assert_equal "$(sort -n train test)" "$(seq 0 499)"
	assert_equal "$(wc -l <test)" 100
}

@test "scsample: files that do not fit together are refused" {
	scsim -q --cells 20 --genes 100 -o few.counts
	run scsample -o out2.s sim.counts few.counts
	assert_failure 1
	names "few.counts vocabulary 100"
	scsim -q --kind b1 --cells 20 -o b1.tok
	run scsample -o out2.s sim.counts b1.tok
	assert_failure 1
	names "b1.tok tokens counts"
	assert_not_exist out2.s
}

# ---- streams, misuse, faults ----

@test "scsample: file, stdin, pipe and - give the same bytes, in one pass and in two" {
	for o in "--where donor=donor1" "-n 50" "--cap donor:10"; do
		scsample $o sim.counts >a
		scsample $o <sim.counts >b
		cat sim.counts | scsample $o - >c
		scsample $o -o d sim.counts
		cmp a b && cmp a c && cmp a d
		scsample -u $o sim.counts | scview >e
		scview a | cmp - e
	done
}

@test "scsample: nothing in gives a whole stream of nothing" {
	scsample -q -n 0 sim.counts -o empty.s
	for o in "" "-n 5" "-f 0.5" "--test-fraction 0.5 --part test" "--test-fraction 0.5 --part train --group donor" "--cap donor:3" \
		"--balance donor" "-n 3 --stratify donor" "--min-class donor:2" "--where donor=donor1"; do
		run scsample -q $o empty.s -o out.s
		assert_success
		scview --check out.s
	done
}

@test "scsample: misuse is status 2 and one line" {
	for o in "-n 3 -f 0.1" "-n -1" "-f 1.1" "--part test" "--test-fraction 0.2" "--group donor" "--stratify donor" "--where donor" \
		"--where =x" "--where a!b" "--cap donor" "--cap donor:0" "--cap donor:1.5" "--min-class donor:x" "-n 3 --stratify donor --balance donor" \
		"--test-fraction 0.2 --part middle" "--nope"; do
		run scsample $o sim.counts
		assert_failure 2
		assert_equal "${#lines[@]}" 2
		assert_line -n 1 "Try 'scsample --help'."
	done
}

@test "scsample: columns that are not there or not of the kind" {
	for o in "--where tissue=lung" "--cap tissue:3" "--balance tissue" "--test-fraction 0.5 --part test --group tissue"; do
		run scsample $o sim.counts -o out3.s
		assert_failure 1
		names "tissue counts barcode"
	done
	run scsample --where 'cell_type>3' -o out3.s sim.counts
	assert_failure 1
	names "cell_type > compares"
	for word in many true; do
		run scsample --where "n_counts=$word" -o out3.s sim.counts
		assert_failure 1
		assert_output --partial "'$word' is not a number"
	done
	run scsample --where 'gene=3' -o out3.s sim.counts
	assert_failure 1
	scsample --where cell_type=type1 --where donor=donor1 sim.counts -o one.s
	run scsample --test-fraction 0.5 --part test --group donor one.s -o out3.s
	assert_failure 1
	names "--group donor 1 2"
	assert_not_exist out3.s
}

@test "scsample: damaged, cut and empty input, a folder, a full disk, a dead upstream" {
	head -c 20000 sim.counts >cut.s
	for f in cut.s /dev/null /usr nowhere; do
		for o in "" "-n 5"; do
			run scsample $o -o out4.s $f
			assert_failure 1
			assert_equal "${#lines[@]}" 1
			assert_not_exist out4.s
		done
	done
	run bash -c 'scsample sim.counts >/dev/full'
	assert_failure 1
	run bash -c 'set -o pipefail; head -c 20000 sim.counts | scsample -n 5 - | scview --check -'
	assert_failure 1
	run bash -c 'TMPDIR=/nowhere scsample -n 5 - < <(cat sim.counts) -o out4.s'
	assert_failure 1
	assert_output --partial "TMPDIR"
}

@test "scsample: a closed downstream is silent" {
	run bash -c 'scsample sim.counts | head -c 10 >/dev/null'
	assert_output ""
}

# ---- genes ----

hvg_lists() {           # NAME STREAM: the genes are those that scanpy chose (tests/ref/hvg.py)
	local name flavor key n genes
	while IFS=$'\t' read -r name flavor key n genes; do
		[ "$name" = "$1" ] || continue
		echo "-- $name $flavor $key"
		[ "$key" = - ] && key= || key="--batch-key $key"
		scsample -q --hvg "$n" --flavor "$flavor" $key "$2" -o few
		assert_equal "$(scview --vocab few | awk -F'\t' 'NR > 1 { printf "%s%s", s, $2; s = " " }')" "$genes"
	done <"$BATS_TEST_DIRNAME/ref/hvg_lists.tsv"
}

@test "scsample --hvg: the genes that scanpy chooses, three rules, with and without batches" {
	scsim -q --cells 600 --genes 400 --types 5 --donors 3 --seed 11 -o genes.counts
	hvg_lists sim genes.counts
}

# bats test_tags=data
@test "scsample --hvg: the genes that scanpy chooses in real cells" {
	need scrna/pbmc_kang2018_1287genes.h5ad scrna/pbmc_facs_zheng2017.h5ad
	h5tok -q "$SHARED/scrna/pbmc_kang2018_1287genes.h5ad" -o kang.counts
	h5tok -q --obs cell_type "$SHARED/scrna/pbmc_facs_zheng2017.h5ad" -o facs.counts
	hvg_lists kang kang.counts
	hvg_lists facs facs.counts
}

@test "scsample --hvg: only genes change: counts, columns, n_counts and cells stay" {
	scsample --hvg 50 --flavor seurat_v3 -n 150 --where donor!=donor2 sim.counts -o few
	cat few | scview --check
	scsample --hvg 50 --flavor seurat_v3 -n 150 --where donor!=donor2 <sim.counts -o again
	cmp again few
	scsample -n 150 --where donor!=donor2 sim.counts -o cells
	scsample --hvg 50 --flavor seurat_v3 cells | scview | cmp - <(scview few) # genes are chosen by the cells that stay
	scview --vocab few >few.vocab
	scview --vocab sim.counts >all.vocab
	for f in cells few; do scview -c cell,barcode,n_counts,cell_type,donor,gene,count --gene-names id $f >$f.tsv; done
	$PYTHON - <<-'END'
		rows = [l.rstrip("\n").split("\t") for l in list(open("few.vocab"))[1:]]
		old = {l.split("\t")[1]: l.rstrip("\n").split("\t")[2:] for l in list(open("all.vocab"))[1:]}
		assert len(rows) == 50 and all(old[r[1]] == r[2:] for r in rows)
		kept = [r[1] for r in rows]
		assert kept == [g for g in old if g in set(kept)]                 # in the old order
		a, b = ([l.rstrip("\n").split("\t") for l in list(open(f))[1:]] for f in ("cells.tsv", "few.tsv"))
		assert len(a) == len(b) > 100
		for x, y in zip(a, b):
		    assert x[:5] == y[:5]
		    want = [(g, c) for g, c in zip(x[5].split(), x[6].split()) if g in set(kept)]
		    assert want == list(zip(y[5].split(), y[6].split()))
	END
	# a second choice is one of the first, and cells with few of the genes can be dropped
	scsample --hvg 20 few -o fewer
	assert_equal "$(scview --vocab fewer | tail -n +2 | wc -l)" 20
	scsample --hvg 20 sim.counts | scsample --min-genes 12 | scview -c gene | tail -n +2 | awk 'NF < 12 { exit 1 }'
	# a list beside gene has a value for every gene, so it goes; another one stays
	$PYTHON - "$BATS_TEST_DIRNAME/../python" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		import numpy, corrmask.stream as scstream
		s = scstream.read("sim.counts")
		h, blocks = s.header, list(s)
		h["columns"] += [dict(name="beside", type="f32", shape="ragged", group="gene"), dict(name="own", type="i8", shape="ragged", group="own")]
		for b in blocks:
		    o, g = b["gene"]
		    b["beside"] = o, numpy.ones(len(g))
		    b["own"] = numpy.arange(b.rows + 1), numpy.arange(b.rows) % 100
		scstream.write("lists.counts", h, blocks)
	END
	run scsample --hvg 30 lists.counts -o few
	assert_success
	assert_output --partial "the list beside is left out"
	scview -c own few | cmp - <(scview -c own lists.counts)
	run scview -c beside few
	assert_failure
}

@test "scsample --keep-genes: the genes of a vocabulary, in the order of the stream; the rest stays, also what each file measured" {
	mkdir -p genes && cd genes
	# two files that measured different genes, and a list in another order with a gene that neither has
	$PYTHON -W ignore - <<-'END'
		import anndata, numpy as np
		rng = np.random.default_rng(1)
		for name, genes in ("a", range(0, 60)), ("b", range(30, 90)):
		    a = anndata.AnnData(rng.poisson(.5, (40, 60)).astype("f4") + np.eye(40, 60, dtype="f4"))
		    a.var_names = [f"g{g}" for g in genes]
		    a.obs_names = [f"{name}{i}" for i in range(40)]
		    a.write(name + ".h5ad")
		with open("list.tsv", "w") as f:
		    f.write("token\tgene_id\tsymbol\tmedian\n")
		    for k, g in enumerate([70, 20, 5, 40, 41, 88, 200]):
		        f.write(f"{k}\tg{g}\t\tNA\n")
	END
	h5tok -q a.h5ad b.h5ad -o all.counts
	run -0 scsample --keep-genes list.tsv all.counts -o few.counts
	names "list.tsv 1 7 all.counts"
	scview --check -q few.counts
	scsample -q --keep-genes list.tsv <all.counts | scview -q | cmp - <(scview -q few.counts)
	assert_equal "$(scview -q --vocab few.counts | cut -f 2 | paste -sd ' ')" "gene_id g5 g20 g40 g41 g70 g88"
	for f in all few; do scview -q -c barcode,n_counts,gene,count --gene-names id $f.counts >$f.tsv; done
	scview -q --header few.counts >few.json
	scview -q -c panel few.counts | tail -n +2 >panels
	$PYTHON - <<-'END'
		import json
		kept = "g5 g20 g40 g41 g70 g88".split()
		a, b = ([l.rstrip("\n").split("\t") for l in list(open(f))[1:]] for f in ("all.tsv", "few.tsv"))
		assert len(a) == len(b) == 80
		for x, y in zip(a, b):
		    assert x[:2] == y[:2]
		    assert [(g, c) for g, c in zip(x[2].split(), x[3].split()) if g in kept] == list(zip(y[2].split(), y[3].split())), (x, y)
		panels = [bytes.fromhex(p) for p in json.load(open("few.json"))["panels"]]
		got = [[g for i, g in enumerate(kept) if panels[int(p)][i // 8] >> i % 8 & 1] for p in open("panels")]
		assert got == [kept[:4]] * 40 + [kept[2:]] * 40, got
	END
	# one gene a line, an id or a symbol; a table with its own order of columns, between commas
	printf '%s\n' '' g41 G5 g20.3 g70 g88 '' g40 g200 g5 >lines
	run -0 scsample --keep-genes lines all.counts -o lines.counts
	names "3 8 all.counts" # G5, g20.3, g200: not Ensembl ids
	assert_equal "$(scview -q --vocab lines.counts | cut -f 2 | paste -sd ' ')" "gene_id g5 g40 g41 g70 g88"
	printf 'set,gene\nx,g20\n"y, z",g5\n' | gzip >table.csv.gz
	scsample --keep-genes table.csv.gz all.counts | scview --vocab | cut -f 2 | paste -sd ' ' | grep -x 'gene_id g5 g20'
	$PYTHON -W ignore - <<-'END'
		import anndata, numpy as np
		a = anndata.AnnData(np.ones((3, 4), "f4"))
		a.var_names = ["ENSG00000000001", "ENSG00000000002", "ENSG00000000003", "ENSG00000000004"]
		a.var["gene_name"] = ["AB1", "CD2", "C1orf3", "EF4"]
		a.write("symbols.h5ad")
	END
	h5tok -q symbols.h5ad -o symbols.counts
	printf '%s\n' cd2 ENSG00000000001.7 c1ORF3 | scsample --keep-genes /dev/stdin symbols.counts | scview -q --vocab | cut -f 3 | paste -sd ' ' | grep -x 'symbol AB1 CD2'
	for bad in 'g5 g20:2 fields, expected one gene per line' $'a\tgene\n1\n:1 fields, expected the gene in field 2' ':none of its 0 genes'; do
		tr ' ' '\t' <<<"${bad%%:*}" >bad
		run -1 scsample --keep-genes bad all.counts -o x
		assert_output --partial "${bad#*:}"
		assert_not_exist x
	done
	# genes are left out after cells are chosen, so a filter sees all of them
	scsample -q -n 30 --min-genes 20 --keep-genes list.tsv all.counts | scview -c cell | cmp - <(scsample -q -n 30 --min-genes 20 all.counts | scview -c cell)
	printf 'token\tgene_id\tsymbol\tmedian\n0\tother\t\tNA\n' >other.tsv
	run -1 scsample --keep-genes other.tsv all.counts -o x
	names "--keep-genes other.tsv 1 all.counts"
	assert_not_exist x
}

@test "scsample --hvg: misuse and bad input" {
	run scsample --hvg 5000 sim.counts -o x
	assert_success
	assert_output --regexp "5000 genes were requested, but [0-9]+ vary; these are kept"
	rm x
	$PYTHON - "$BATS_TEST_DIRNAME/../python" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		import numpy, corrmask.stream as scstream
		h = scstream.read("sim.counts").header
		h["columns"] = [c for c in h["columns"] if c["name"] in ("cell", "barcode", "n_counts", "gene", "count")]
		n = 12
		b = dict(cell=range(n), barcode=[""] * n, n_counts=[3] * n, gene=(range(0, 3 * n + 1, 3), [0, 1, 2] * n), count=(range(0, 3 * n + 1, 3), [1] * 3 * n))
		scstream.write("flat.counts", h, [b])
		for c in h["columns"]:
		    if c["name"] == "count":
		        c["type"] = "f32"
		b["count"] = b["count"][0], [1.5] * 3 * n
		scstream.write("fractions.counts", h, [b])
	END
	run -1 scsample --hvg 2 flat.counts -o x
	names "highly variable"
	run -1 scsample --hvg 2 --flavor seurat_v3 flat.counts -o x
	names "0 seurat_v3 10"
	run -1 scsample --hvg 2 fractions.counts -o x
	names "count f32 u32"
	assert_not_exist x
}

@test "scsample: --balance of crossed columns, as long as they have cells; a missing value is a class" {
	scview -c cell,cell_type,donor sim.counts >all3
	for n in 90 250 0; do
		# shellcheck disable=SC2046   # no words, or two
		scsample $([ $n = 0 ] || echo "-n $n") --balance cell_type,donor sim.counts -o out.s
		scview -c cell,cell_type,donor out.s >chosen
		run -0 $PYTHON "$BATS_TEST_DIRNAME/ref/sample.py" balance $n all3 chosen
	done
	scsample -n 90 --balance donor,cell_type sim.counts | scview -c cell,donor,cell_type >chosen
	scview -c cell,donor,cell_type sim.counts >all3
	run -0 $PYTHON "$BATS_TEST_DIRNAME/ref/sample.py" balance 90 all3 chosen
	# a column with a comma in its name is one column
	cells=$(scview -q -c cell sim.counts | sed 1d | wc -l)
	run -0 --separate-stderr scsample -n $((cells + 1)) --balance cell_type sim.counts -o out.s
	assert_equal "$stderr" "scsample: warning: $((cells + 1)) cells were requested, but there are $cells; all are kept"
	run -0 --separate-stderr scsample -n "$cells" --balance cell_type sim.counts -o out.s
	assert_equal "$stderr" ""
	for bad in ",donor" "donor," "donor,,cell_type" ","; do
		run -2 scsample -n 9 --balance "$bad" sim.counts
		names "--balance $bad"
	done
}

@test "scsample --thin again, with the same seed: no draw is used twice, of what was kept, of its complement, and of joined streams" {
	$PYTHON -W ignore - <<-'END'
		import anndata, numpy as np
		a = anndata.AnnData(np.tile(np.array([1, 2, 7, 40, 1000], "f4"), (6000, 1)))
		a.var_names = [f"g{i}" for i in range(5)]
		a.write("few.h5ad")
	END
	thin() { scsample -q --thin 0.5 "${@:2}" -o "$1"; }
	h5tok -q few.h5ad -o few.counts
	thin half few.counts
	thin rest --complement few.counts
	thin quarter half
	thin quarter-of-rest rest
	thin rest-of-half --complement half
	thin eighth quarter
	scsample -q quarter half -o joined
	thin of-joined joined
	scview -q -O h5ad half -o half.h5ad
	h5tok -q half.h5ad | thin quarter-of-file -
	$PYTHON - "$BATS_TEST_DIRNAME/../python" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		import numpy as np, corrmask.stream as scstream
		from scipy import stats
		sizes = [1, 2, 7, 40, 1000]
		def read(path):
		    out = []
		    for b in scstream.read(path):
		        x = np.zeros((b.rows, 5), int)
		        (start, gene), (_, count) = b["gene"], b["count"]
		        x[np.repeat(np.arange(b.rows), np.diff(start)), gene] = count
		        out.append(x)
		    return np.concatenate(out)
		def check(name, got, p):
		    for n, x in zip(sizes, got.T):
		        cuts = np.unique(stats.binom.ppf(np.arange(.05, 1, .05), n, p))
		        cuts = np.r_[-1, cuts[cuts < n], n]
		        expected = np.diff(stats.binom.cdf(cuts, n, p)) * len(x)
		        keep = expected > 1
		        seen = np.histogram(x, cuts + .5)[0]
		        p_value = stats.chi2.sf(((seen - expected) ** 2 / expected)[keep].sum(), max(keep.sum() - 1, 1))
		        assert p_value > 1e-4, (name, n, p_value)
		whole = {name: read(name) for name in ("half", "rest", "quarter", "quarter-of-rest", "rest-of-half", "quarter-of-file", "eighth", "of-joined")}
		for name, p in ("half", .5), ("rest", .5), ("quarter", .25), ("quarter-of-rest", .25), ("rest-of-half", .25), ("quarter-of-file", .25), ("eighth", .125):
		    check(name, whole[name], p)
		check("of joined quarters", whole["of-joined"][:6000], .125)
		check("of joined halves", whole["of-joined"][6000:], .25)
		# disjoint quarters of 1,000 molecules: a correlation of -1 / 3, as of a multinomial
		for other in "quarter-of-rest", "rest-of-half":
		    r = np.corrcoef(whole["quarter"][:, 4], whole[other][:, 4])[0, 1]
		    assert abs(r + 1 / 3) < .05, (other, r)
	END
}

@test "scsample --thin: binomial counts, whatever their size; n_counts counts genes that are not there" {
	$PYTHON -W ignore - <<-'END'
		import anndata, numpy as np
		a = anndata.AnnData(np.tile(np.array([1, 2, 7, 16, 17, 40, 1000, 300000, 500], "f4"), (4000, 1)))
		a.var_names = [f"g{i}" for i in range(9)]
		a.write("sizes.h5ad")
	END
	printf 'g%d\n' {0..7} >panel
	h5tok -q sizes.h5ad | scsample -q --keep-genes panel - -o sizes.counts
	for p in 0.03 0.5 0.9; do
		scsample -q --thin $p --seed 7 sizes.counts -o $p.kept
	done
	$PYTHON - "$BATS_TEST_DIRNAME/../python" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		import numpy as np, corrmask.stream as scstream
		from scipy import stats
		sizes = [1, 2, 7, 16, 17, 40, 1000, 300000]
		def read(path):
		    out = []
		    for b in scstream.read(path):
		        x = np.zeros((b.rows, 9), int)
		        (start, gene), (_, count) = b["gene"], b["count"]
		        assert (count > 0).all()
		        x[np.repeat(np.arange(b.rows), np.diff(start)), gene] = count
		        x[:, 8] = b["n_counts"]
		        out.append(x)
		    return np.concatenate(out)
		for p in .03, .5, .9:
		    kept = read(f"{p:g}.kept")
		    other = kept[:, 8] - kept[:, :8].sum(1)
		    for n, x in zip(sizes + [500], [*kept[:, :8].T, other]):
		        cuts = np.unique(stats.binom.ppf(np.arange(.05, 1, .05), n, p)) # about equally likely, but for small n
		        cuts = np.r_[-1, cuts[cuts < n], n]
		        expected = np.diff(stats.binom.cdf(cuts, n, p)) * len(x)
		        seen = np.histogram(x, cuts + .5)[0]
		        assert stats.chisquare(seen, expected).pvalue > 1e-4, (p, n, seen, expected)
		        assert abs(x.mean() - n * p) < 4 * np.sqrt(n * p * (1 - p) / len(x)), (p, n, x.mean())
		    assert abs(np.corrcoef(kept.T[[6, 7]])[0, 1]) < .07 # genes are independent
	END
	scsample -q --thin 0.5 --seed 8 sizes.counts | run ! cmp - 0.5.kept
	scsample -q --thin 0.5 --seed 7 <sizes.counts -o again
	cmp again 0.5.kept
	# a cell keeps its molecules when others are left out
	scsim -q --cells 200 --genes 100 --seed 3 -o all.counts
	scsample -q --thin 0.3 --where cell_type=type1 all.counts | scview >a
	scsample -q --thin 0.3 all.counts | scsample -q --where cell_type=type1 - | scview | cmp - a
	scsample -q --thin 0.3 all.counts | scview --check -
	scsample -q --thin 0.3 --complement all.counts -o rest.counts
	scsample -q --thin 0.3 all.counts -o kept.counts
	for f in all kept rest; do scview -c cell,n_counts,gene,count $f.counts | tail -n +2 >$f.tsv; done
	$PYTHON - <<-'END'
		from collections import Counter
		def read(f):
		    cells = {}
		    for l in open(f):
		        cell, n, gene, count = l.rstrip("\n").split("\t")
		        cells[cell] = Counter(dict(zip(gene.split(), map(int, count.split()))), total=int(n))
		    return cells
		a, b, c = map(read, ("all.tsv", "kept.tsv", "rest.tsv"))
		assert a and all(b[i] + c[i] == a[i] for i in a) and any(c[i] for i in c)
	END
	for bad in '--complement' '--thin 0' '--thin 1' '--thin 0.5 --hvg 5'; do
		run -2 scsample $bad all.counts -o x
		assert_output --partial -- '--thin'
	done
	assert_not_exist x
}
