load helper

setup_file() {
	need_tool scsim
	cd "$BATS_FILE_TMPDIR"
	"$BIN/scsim" -q --cells 300 --genes 200 --seed 3 -o sim.counts
	"$BIN/scsim" -q --cells 300 --genes 200 --seed 3 -u >sim.u
}

setup() {
	cd "$BATS_FILE_TMPDIR"
}

@test "scview: the table has a header line and one line a row, from file, stdin and -" {
	scview sim.counts >a
	scview <sim.counts >b
	scview - <sim.counts >c
	cat sim.u | scview >d
	cmp a b && cmp a c && cmp a d
	assert_equal "$(wc -l <a)" 301
	assert_equal "$(head -1 a | cut -f1-3)" "$(printf 'cell\tbarcode\tn_counts')"
	# a count for every gene, and they sum to n_counts
	run awk -F'\t' 'NR == 1 { for (i = 1; i <= NF; i++) f[$i] = i; next }
		{ n = split($f["gene"], g, " "); if (n != split($f["count"], c, " ")) exit 1
		  for (s = i = 0; i++ < n;) { s += c[i]; if (i > 1 && g[i] <= g[i-1]) exit 2 } if (s != $f["n_counts"]) exit 3 }' a
	assert_success
}

@test "scview: columns in the order asked for, rows stop at -n, an unknown column is an error that lists the others" {
	run scview -n 2 -c n_counts,cell sim.counts
	assert_success
	assert_line -n 0 "$(printf 'n_counts\tcell')"
	assert_equal "${#lines[@]}" 3
	run scview -c nothing sim.counts
	assert_failure 1
	assert_output --partial "no column 'nothing' in this counts stream (it has: cell, barcode"
}

@test "scview: genes by number, id and symbol" {
	scview -n 1 -c gene sim.counts | tail -1 | tr ' ' '\n' >number
	scview -n 1 -c gene --gene-names id sim.counts | tail -1 | tr ' ' '\n' >id
	scview --vocab sim.counts | tail -n +2 | cut -f1,2 >vocab
	assert_equal "$(paste number id)" "$(awk 'NR == FNR { v[$1] = $2; next } { print $1 "\t" v[$1] }' vocab number)"
}

@test "scview: the header is JSON with kind, columns, provenance" {
	scview -H sim.counts | $PYTHON -c '
import json, sys
h = json.load(sys.stdin)
assert h["kind"] == "counts" and h["vocab"]["rows"] == 200 and h["provenance"][0]["program"] == "scsim"
assert [c["name"] for c in h["columns"]][:3] == ["cell", "barcode", "n_counts"]'
}

@test "scview: statistics agree with the table" {
	scview -s sim.counts >s
	scview -c n_counts,gene sim.counts | tail -n +2 | $PYTHON -c '
import sys, numpy
stat = {tuple(l.split("\t")[:2]): l.rstrip("\n").split("\t")[2] for l in open("s")}
rows = [l.rstrip("\n").split("\t") for l in sys.stdin]
n = numpy.array([int(r[0]) for r in rows]); length = numpy.array([len(r[1].split()) for r in rows])
assert stat["-", "rows"] == "300" and stat["-", "kind"] == "counts"
assert float(stat["n_counts", "min"]) == n.min() and float(stat["n_counts", "mean"]) == n.mean()
assert float(stat["gene[]", "items"]) == length.sum() and float(stat["gene[]", "length_max"]) == length.max()
assert float(stat["gene[]", "length_median"]) == numpy.quantile(length, .5, method="inverted_cdf")
assert float(stat["gene[]", "length_q95"]) == numpy.quantile(length, .95, method="inverted_cdf")'
	scview -c cell_type sim.counts | tail -n +2 | sort | uniq -c | awk '{ print $2 "\t" $1 }' >want
	awk -F'\t' '$1 == "cell_type" && $2 ~ /^=/ && $3 > 0 { print substr($2, 2) "\t" $3 }' s | sort >got
	cmp want got
}

@test "scview --check: one line a file, 1 when one is cut, damaged or followed by bytes" {
	run scview --check sim.counts sim.u
	assert_success
	assert_line -n 0 --partial "sim.counts: complete, counts, 300 rows in"
	scsample -q -n 1 sim.counts -o one.counts
	run -0 scview --check one.counts
	assert_output "one.counts: complete, counts, 1 row in 1 block"
	n=$(stat -c %s sim.counts)
	head -c $((n - 1)) sim.counts >cut1
	head -c $((n / 2)) sim.counts >cut2
	cat sim.counts sim.counts >twice
	$PYTHON -c '
d = bytearray(open("sim.counts", "rb").read()); d[len(d) // 2] ^= 16; open("flip", "wb").write(d)'
	for bad in cut1 cut2 twice flip /dev/null /etc .; do
		run scview --check "$bad"
		assert_failure 1
		assert_equal "${#lines[@]}" 1
		run scview --check sim.counts "$bad" sim.u
		assert_failure 1
		assert_equal "${#lines[@]}" 3
	done
}

@test "scview: a cut stream shows its rows and fails" {
	scview sim.counts >whole
	head -c $(($(stat -c %s sim.u) - 40)) sim.u >cut
	run --separate-stderr scview cut
	assert_failure 1
	[[ "$stderr" == *"cut short after 300 rows"* ]]
	assert_equal "$output" "$(cat whole)"
}

@test "scview -O npy: scalars, categories and pipes, as numpy reads them" {
	scview -O npy -c n_counts sim.counts >n.npy
	cat sim.counts | scview -O npy -c cell_type -o type.npy
	scview -O npy -c cell -n 7 sim.counts -o seven.npy
	scview -c n_counts,cell_type sim.counts | tail -n +2 >t
	scview -H sim.counts >h.json
	$PYTHON -c '
import json, numpy
t = [l.rstrip("\n").split("\t") for l in open("t")]
n = numpy.load("n.npy"); assert n.dtype == "<u8" and n.tolist() == [int(r[0]) for r in t]
names = next(c for c in json.load(open("h.json"))["columns"] if c["name"] == "cell_type")["categories"]
c = numpy.load("type.npy"); assert c.dtype == "<i4" and [names[k] for k in c] == [r[1] for r in t]
assert numpy.load("seven.npy").shape == (7,)'
	run scview -O npy sim.counts
	assert_failure 2
	run scview -O npy -c gene sim.counts -o no.npy
	assert_failure 1
	assert_not_exist no.npy
	run scview -O npy -c barcode sim.counts -o no.npy
	assert_failure 1
	head -c 3000 sim.counts >cut
	run scview -O npy -c cell cut -o no.npy
	assert_failure 1
	assert_not_exist no.npy
}

@test "scview: quiet before a closed pipe, loud on a full disk" {
	run bash -c "scview sim.counts | head -1"
	assert_success
	assert_equal "${#lines[@]}" 1
	run bash -c "scview sim.counts >/dev/full"
	assert_failure 1
	assert_output "scview: standard output: cannot write: No space left on device"
	run scview -H -s sim.counts
	assert_failure 2
}

@test "scview -O h5ad: anndata reads counts, from files and pipes, the same as the table" {
	scview -O h5ad -o sim.h5ad sim.counts
	scview -O h5ad -c n_counts -o named.h5ad sim.counts
	cat sim.u | scview -O h5ad -n 50 -c cell_type >piped.h5ad
	scview sim.counts >t
	$PYTHON -W error -c '
import anndata, numpy
rows = [dict(zip(names, l)) for names, *ls in [[l.rstrip("\n").split("\t") for l in open("t")]] for l in ls]
a = anndata.read_h5ad("sim.h5ad")
assert "cell" not in a.obs and "n_counts" not in a.obs      # rows and their sums say it
assert a.X.shape == (300, 200) and a.X.dtype == "float32"
for r, x, name in zip(rows, a.X.toarray(), a.obs_names):
    want = numpy.zeros(200); want[[int(g) for g in r["gene"].split()]] = [int(c) for c in r["count"].split()]
    assert (x == want).all() and name == r["barcode"]
assert a.obs["cell_type"].astype(str).tolist() == [r["cell_type"] for r in rows]
assert anndata.read_h5ad("named.h5ad").obs["n_counts"].tolist() == [int(r["n_counts"]) for r in rows]
b = anndata.read_h5ad("piped.h5ad")
assert list(b.obs) == ["cell_type"] and (b.X != a.X[:50]).nnz == 0'
}

@test "scview -s: statistics of a fixed column are over all its values" {
	PYTHONPATH=$BATS_TEST_DIRNAME/../python $PYTHON - <<-'P'
		import numpy as np, corrmask.stream as scstream
		x = np.arange(60, dtype=np.float32).reshape(12, 5)
		x[11, 4] = 1000
		columns = [{"name": "cell", "type": "u64", "shape": "scalar"}, {"name": "x", "type": "f32", "shape": "fixed", "n": 5}]
		scstream.write("fixed.emb", {"kind": "embedding", "columns": columns, "provenance": []},
		               [{"cell": np.arange(7, dtype=np.uint64), "x": x[:7]}, {"cell": np.arange(7, 12, dtype=np.uint64), "x": x[7:]}])
		open("want", "w").write(f"x\tvalues\t60\nx\tmin\t0\nx\tmean\t{x.mean(dtype=float):.10g}\nx\tmax\t1000\n")
	P
	scview -s fixed.emb | grep "^x" | awk -F '\t' -v OFS='\t' '$2 == "mean" { $3 = sprintf("%.10g", $3) } 1' | diff want -
}

@test "scview, ctaprobe, h5tok --list-obs: characters that control a terminal are escaped, and nothing is lost" {
	$PYTHON -W ignore - <<-'P'
		import anndata as ad, numpy as np, pandas as pd
		odd = ["a\x1b[31mred", "b\x07\x7f", "c\u009b1m\u00a0\u00e9", "d\\x1b", "e\t\n\r"] * 8
		a = ad.AnnData(np.ones((40, 2), np.float32) + np.arange(80).reshape(40, 2) % 3,
		               obs=pd.DataFrame({"t": pd.Categorical(odd), "n\x1b[5m": odd}, index=[f"c{i}" for i in range(40)]),
		               var=pd.DataFrame(index=["A", "B"]))
		a.write_h5ad("odd.h5ad")
	P
	h5tok -q odd.h5ad -o odd.counts
	h5tok -q --list-obs odd.h5ad >list
	scview -s odd.counts >stats
	scview odd.counts >table
	scview -c t -n 5 odd.counts >t
	screduce pca -q -k 2 --train odd.counts odd.counts -o odd.emb
	ctaprobe cells -q -l t odd.emb -o scores
	ctaprobe cells -q -l t --train odd.emb --test odd.emb -o scores2
	run -0 $PYTHON - <<-'P'
		import re
		for f in "list", "stats", "table", "t", "scores", "scores2":
		    text = open(f, newline="", encoding="utf-8").read()
		    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), f
		rows = open("t", newline="", encoding="utf-8").read().splitlines()[1:]
		def back(s):
		    s = s.encode()
		    s = re.sub(rb"\\(x[0-9a-f]{2}|.)", lambda m: bytes([int(m[1][1:], 16)]) if len(m[1]) > 1 else {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"\\": b"\\"}[m[1]], s)
		    return s.decode()
		assert [back(s) for s in rows] == ["a\x1b[31mred", "b\x07\x7f", "c\u009b1m\u00a0\u00e9", "d\\x1b", "e\t\n\r"], rows
	P
}

@test "scview -O h5ad: counts above 2^24 are exact, and the largest count comes back" {
	$PYTHON -W ignore - <<-'P'
		import anndata as ad, numpy as np, scipy.sparse as sp
		r = np.random.default_rng(0)
		x = r.integers(0, 3, (6000, 40)).astype(np.int64)
		x[5500, 3:9] = [16777216, 16777217, 33554434, 2147483646, 2147483647, 16777219]
		for name, counts in ("large", x), ("small", np.where(x > 16777216, 16777216, x)):
		    a = ad.AnnData(sp.csr_matrix(x.shape, dtype=np.float64))
		    a.X = sp.csr_matrix(counts.astype(np.float64))
		    a.var_names = [f"g{i}" for i in range(40)]
		    a.write_h5ad(name + ".h5ad")
	P
	for f in large small; do
		h5tok -q $f.h5ad -o $f.counts
		scview -q -O h5ad $f.counts -o $f.back.h5ad
	done
	run -0 $PYTHON -W ignore -c 'if 1:
		import anndata as ad
		for f, t in ("large", "float64"), ("small", "float32"):
			a, b = ad.read_h5ad(f + ".h5ad"), ad.read_h5ad(f + ".back.h5ad")
			assert (a.X.toarray() == b.X.toarray()).all(), f
			assert b.X.data.dtype == t, (f, b.X.data.dtype)
	'
	h5tok -q large.back.h5ad | scview - | tail -n +2 | cmp - <(scview large.counts | tail -n +2)
}

# bats test_tags=data
@test "scview -O h5ad: the obs columns are those of the file h5tok read" {
	need original/placenta_cellxgene_220cells_anndata0.8.h5ad
	need_tool h5tok
	f=$SHARED/original/placenta_cellxgene_220cells_anndata0.8.h5ad
	h5tok -q "$f" | scview -O h5ad -o placenta.h5ad
	$PYTHON - "$f" <<-'END'
	import anndata, pandas, sys, warnings
	a = anndata.read_h5ad(sys.argv[1]); b = anndata.read_h5ad("placenta.h5ad")
	assert a.obs_names.tolist() == b.obs_names.tolist()
	shared = [c for c in a.obs if c in b.obs]
	assert len(shared) == len(a.obs.columns), set(a.obs) - set(b.obs)
	for c in shared:
	    x, y = a.obs[c], b.obs[c]
	    assert (x.isna() == y.isna()).all(), c
	    assert x.dropna().astype(str).tolist() == y.dropna().astype(str).tolist(), c
	    assert str(x.dtype)[:4] == str(y.dtype)[:4], (c, x.dtype, y.dtype)
	END
}

@test "scview -O h5ad: obs goes h5ad, stream, h5ad unchanged in names, types and values; provenance goes with it" {
	need_tool h5tok
	cat > obs.py <<-'END'
	import sys, anndata, h5py, json, numpy as np, pandas as pd
	def walk(a, b, path="obs"):
	    if path == "obs/barcode" and isinstance(a, h5py.Group): # anndata 0.13: names that could be missing, which none is
	        a = a["values"]
	    for k in "encoding-type", "encoding-version", "ordered", "column-order", "_index":
	        if k not in a.attrs:
	            continue
	        assert np.array_equal(a.attrs[k], b.attrs[k]), (path, k, a.attrs[k], b.attrs[k])
	    if isinstance(a, h5py.Group):
	        assert set(a) == set(b), (path, set(a) ^ set(b))
	        for k in set(a):
	            walk(a[k], b[k], path + "/" + k)
	        return
	    x, y = a[()], b[()]
	    if path.endswith("/values"):            # what lies under the mask does not matter
	        x, y = (v[~f.parent["mask"][()]] for v, f in ((x, a), (y, b)))
	    same = a.dtype == b.dtype or path.endswith("/codes") and a.dtype.kind == b.dtype.kind == "i"
	    assert same and np.array_equal(x, y, equal_nan=a.dtype.kind == "f"), (path, a.dtype, b.dtype, x, y)
	if sys.argv[1] == "same":
	    with h5py.File(sys.argv[2]) as a, h5py.File(sys.argv[3]) as b:
	        walk(a["obs"], b["obs"])
	        print(len(a["obs"].attrs["column-order"]), "columns")
	        print(*[l["program"] for l in json.loads(b["uns/corrmask_provenance"][()])])
	    sys.exit()
	n, r = 40, np.random.default_rng(1)
	o = pd.DataFrame(index=pd.Index(["cell%d" % i for i in range(n)], name="barcode"))
	for t in "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64":
	    top = np.iinfo(t)
	    o[t] = r.integers(top.min, top.max, n, dtype=t, endpoint=True)
	o["uint64"] = np.uint64(2) ** np.uint64(60) + np.arange(n, dtype="u8")
	o.iloc[0, o.columns.get_loc("uint64")] = 2 ** 64 - 1
	o["float32"] = r.normal(size=n).astype("f4")
	o["float64"] = r.normal(size=n)
	o.iloc[3:5, o.columns.get_loc("float32")] = np.nan
	o["bool"] = r.random(n) < .5
	o["boolean"] = pd.array([None, True, False, True] * (n // 4), dtype="boolean")
	o["Int32"] = pd.array([1, None, -3, 2 ** 31 - 1] * (n // 4), dtype="Int32")
	o["UInt64"] = pd.array([2 ** 63 + 5, 1, None, 4] * (n // 4), dtype="UInt64")
	o["text"] = ["a b", "", "µ", "NA"] * (n // 4)
	o["dose"] = pd.Categorical(["low", "high", None, "mid"] * (n // 4), ["low", "mid", "high"], ordered=True)
	o["type"] = pd.Categorical(["T", "B", "T", None] * (n // 4), ["T", "B", "never"])
	o["cluster"] = pd.Categorical([3, 1, 2, 1] * (n // 4))
	o["passed"] = pd.Categorical([True, None, False, True] * (n // 4), [True, False])
	o["quarter"] = pd.Categorical([.25, .5, .75, .1] * (n // 4))
	o["n_counts"] = np.arange(n, dtype="f4")
	o["cell"] = ["mine"] * n
	a = anndata.AnnData(r.poisson(2, (n, 20)).astype("f4"), o, pd.DataFrame(index=["ENSG%011d" % i for i in range(20)]))
	a.write_h5ad("in.h5ad")
	a.write_h5ad("plain.h5ad")
	with h5py.File("in.h5ad", "a") as f:      # as anndata 0.11 writes pandas' string type
	    f["obs"].attrs["column-order"] = list(f["obs"].attrs["column-order"]) + ["string"]
	    g = f["obs"].create_group("string")
	    g.attrs.update({"encoding-type": "nullable-string-array", "encoding-version": "0.1.0"})
	    v = g.create_dataset("values", data=["x", "", "y", ""] * (n // 4), dtype=h5py.string_dtype())
	    m = g.create_dataset("mask", data=[False, False, False, True] * (n // 4))
	    for d, t in (v, "string-array"), (m, "array"):
	        d.attrs.update({"encoding-type": t, "encoding-version": "0.2.0"})
	END
	$PYTHON -W ignore obs.py make
	h5tok -q in.h5ad -o in.counts
	scview -O h5ad -o out.h5ad in.counts
	run -0 $PYTHON obs.py same in.h5ad out.h5ad
	assert_output $'23 columns\nh5tok'
	# once more, and through a join
	h5tok -q out.h5ad | scview -O h5ad -o again.h5ad
	run -0 $PYTHON obs.py same in.h5ad again.h5ad
	assert_output $'23 columns\nh5tok h5tok'
	scsample -q --where 'cell<20' in.counts -o a.counts
	scsample -q --where 'cell>=20' in.counts -o b.counts
	scsample -q a.counts b.counts | scview -O h5ad -o joined.h5ad
	run -0 $PYTHON obs.py same in.h5ad joined.h5ad
	# two files with other types: what both can hold
	$PYTHON -W ignore - <<-'END'
	import anndata, pandas as pd
	a = anndata.read_h5ad("plain.h5ad")
	del a.obs["uint64"], a.obs["bool"]
	a.obs["int8"] = a.obs["int8"].astype("int16")
	a.obs["dose"] = a.obs["dose"].cat.set_categories(["high", "mid", "low"], ordered=True)
	a.write_h5ad("other.h5ad")
	END
	h5tok -q plain.h5ad other.h5ad | scview -O h5ad -o both.h5ad
	run -0 $PYTHON -W ignore - <<-'END'
	import anndata
	o = anndata.read_h5ad("both.h5ad").obs
	print(o["int8"].dtype, o["int16"].dtype, o["uint64"].dtype, o["bool"].dtype, o["dose"].cat.ordered, o["type"].cat.ordered, o["uint64"].iloc[0])
	END
	assert_output "int64 int16 UInt64 boolean False False 18446744073709551615"
}

# bats test_tags=slow
@test "scview -O h5ad: the index of obs keeps its name if all inputs have it and no column does" {
	need_tool h5tok
	$PYTHON -W ignore - <<-'END'
	import anndata, numpy as np, pandas as pd
	for file, name in ("cell", "cell"), ("cell2", "cell"), ("none", None):
	    o = pd.DataFrame({"n": range(3)}, index=pd.Index([file + c for c in "abc"], name=name))
	    anndata.AnnData(np.ones((3, 2), "f4") + np.eye(3, 2, dtype="f4"), o, pd.DataFrame(index=["g1", "g2"])).write_h5ad(file + ".h5ad")
	END
	index() {
		scview -O h5ad "$1" -o index.h5ad
		$PYTHON -W ignore -c 'import anndata
a = anndata.read_h5ad("index.h5ad"); print(a.obs.index.name, ",".join(a.obs), a.obs_names[0])'
	}
	for f in cell cell2 none; do h5tok -q $f.h5ad -o $f.counts; done
	run -0 index cell.counts
	assert_output "cell n cella"
	run -0 index none.counts
	assert_output "None n nonea"
	h5tok -q cell.h5ad cell2.h5ad -o both.counts
	run -0 index both.counts
	assert_output "cell n cella"
	for pair in "cell none" "none cell"; do
		set -- $pair
		h5tok -q "$1.h5ad" "$2.h5ad" -o both.counts
		run -0 index both.counts
		assert_output "None n $1a"
		run -0 --separate-stderr scsample "$1.counts" "$2.counts" -o joined.counts
		assert_equal "$stderr" ""
		run -0 index joined.counts
		assert_output "None n $1a"
	done
	scsample -q cell.counts cell2.counts -o joined.counts
	run -0 index joined.counts
	assert_output "cell n cella"
	# not a name, a name that HDF5 takes for a path, and the name of a column
	for name in 3 '""' '"a/b"' '"."' '"n"'; do
		PYTHONPATH="$BATS_TEST_DIRNAME/../python" $PYTHON - "$name" <<-'END'
		import json, sys, corrmask.stream as scstream
		s = scstream.read("cell.counts")
		scstream.write("odd.counts", {**s.header, "obs_index": json.loads(sys.argv[1])}, list(s))
		END
		run -0 index odd.counts
		assert_output "None n cella"
	done
}

@test "scview -O h5ad: the same cells are the same bytes, a second later too" {
	for i in 1 2; do
		scview -q -O h5ad sim.counts -o at$i.h5ad
		sleep 1.1
	done
	cmp at1.h5ad at2.h5ad
}

@test "scview -O h5ad: cut input or a full disk leaves no file" {
	head -c 9000 sim.counts >cut
	run scview -O h5ad -o no.h5ad cut
	assert_failure 1
	run bash -c "ulimit -f 8; scview -O h5ad -o no.h5ad sim.counts"
	assert_failure 1
	assert_output --partial "cannot write HDF5: File too large"
	run bash -c "scview -O h5ad sim.counts >/dev/full"
	assert_failure 1
	assert_output --partial "No space left"
	run bash -c "ls no.h5ad*"
	assert_failure
}
