#!/usr/bin/env bats
# --report and scview --header-tsv: what scripts read instead of messages
load helper

setup_file() {
	need_tool scsim scsample rankenc scview h5tok
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 120 --genes 80 --types 3 --donors 4 --seed 1 -o c.counts
	rankenc -q --fit -o c.vocab c.counts
	scview -q -O h5ad -o c.h5ad c.counts
}

setup() { cd "$BATS_FILE_TMPDIR"; }

value() { awk -F '\t' -v n="$2" '$1 == n { print $2 }' "$1"; }

@test "--report: counts in, out and dropped by reason; time and memory; the same numbers as -v" {
	run -0 scsample -v --where cell_type=type1 --min-genes 20 --report r.tsv -o half.counts c.counts
	assert_equal "$(head -n 1 r.tsv)" $'name\tvalue'
	assert_equal "$(value r.tsv program)" scsample
	assert_equal "$(value r.tsv cells_in)" 120
	assert_equal "$(value r.tsv cells_out)" "$(scview -q half.counts | tail -n +2 | wc -l)"
	assert_equal "$(value r.tsv dropped:where)" $((120 - $(scview -c cell_type c.counts | grep -c type1)))
	assert_line --partial "$(value r.tsv dropped:where) dropped by --where"
	awk -F '\t' '$1 == "seconds" && $2 >= 0 && $2 < 60 { a = 1 } $1 == "cpu_seconds" && $2 >= 0 { b = 1 } $1 == "peak_memory_mb" && $2 > 1 { c = 1 }
		NF != 2 { bad = 1 } END { exit bad || !(a && b && c) }' r.tsv
}

@test "--report: h5tok, whose work is in a second process, and with its sandbox off; a warning is a row" {
	for sandbox in yes no; do
		CORRMASK_SANDBOX=$sandbox h5tok -q --report r.tsv -o x.counts c.h5ad
		assert_equal "$(value r.tsv cells_in)" 120
		assert_equal "$(value r.tsv genes)" 80
		[ "$(value r.tsv peak_memory_mb)" -gt 1 ]
		rm r.tsv
	done
	scsample --where 'n_counts<1' --report r.tsv -o none.counts c.counts
	assert_equal "$(value r.tsv warning)" "none of the 120 cells is left"
	scsample -q --where 'n_counts<1' --report r.tsv -o none.counts c.counts
	assert_equal "$(value r.tsv warning)" "none of the 120 cells is left"
}

@test "--report: the rows that scview shows or checks" {
	for format in tsv h5ad; do
		scview -q -n 3 -O $format -o shown --report r.tsv c.counts
		assert_equal "$(value r.tsv rows)" 3
	done
	scview -q --check --report r.tsv c.counts c.counts
	assert_equal "$(value r.tsv rows)" 240
}

@test "--report: a tool that fails leaves none" {
	printf 'old\n' > r.tsv
	run -1 scsample --where nothing=1 --report r.tsv -o no.counts c.counts
	assert_equal "$(cat r.tsv)" old
	assert_not_exist no.counts
}

@test "CORRMASK_REPORT: the tools of a pipe add their tables; CORRMASK_PROGRESS: the last line of progress" {
	rm -f r.tsv
	CORRMASK_REPORT=r.tsv bash -c 'set -e; scsample -q -n 50 c.counts | rankenc -q -m c.vocab -o x.tok; scview -q x.tok > x.txt'
	assert_equal "$(value r.tsv program | sort | paste -sd ' ')" "rankenc scsample scview"
	assert_equal "$(value r.tsv seconds | wc -l)" 3
	CORRMASK_REPORT=/dev/full run -1 scsim -q --cells 5 -o x.counts
	assert_output --partial "CORRMASK_REPORT"
	CORRMASK_PROGRESS=p scsim -q --cells 400 --genes 200 -o x.counts
	CORRMASK_PROGRESS=feeds scsim -q --cells 400 --genes 200 -u | cat > piped.counts # the last tool of a pipe alone
	assert_not_exist feeds
	grep -qE '^[0-9]+ of 400 cells(, 00:00:0[0-9] to go)?$' p
	assert_equal "$(wc -l < p)" 1
}

@test "scview --header-tsv: kind, columns, numbers of categories, vocabulary, provenance and every other value of the JSON" {
	rankenc -q -m c.vocab -o c.tok c.counts
	maskgen -q --strategy random --rate 0.2 --epochs 2 -o m.masked c.tok
	scview --header-tsv m.masked > t.tsv
	scview -H m.masked > h.json
	run -0 $PYTHON -c 'if 1:
		import json
		rows = [l.rstrip("\n").split("\t") for l in open("t.tsv")]
		assert rows[0] == ["key", "value"] and all(len(r) == 2 for r in rows)
		got = dict(rows[1:])
		h = json.load(open("h.json"))
		assert [v for k, v in rows if k == "column"] == [c["name"] for c in h["columns"]]
		for c in h["columns"]:
		    assert got["type:" + c["name"]] == c["type"] and got["shape:" + c["name"]] == c["shape"]
		    assert got.get("categories:" + c["name"]) == (str(len(c["categories"])) if "categories" in c else None)
		def walk(j, key):
		    if isinstance(j, dict):
		        for k in j: yield from walk(j[k], key + "." + k if key else k)
		    elif isinstance(j, list):
		        for i, v in enumerate(j): yield from walk(v, f"{key}.{i + 1}")
		    else: yield key, j
		del h["columns"]
		want = dict(walk(h, ""))
		for k, v in want.items():
		    if isinstance(v, bool): assert got[k] == str(v).lower(), k
		    elif isinstance(v, (int, float)): assert float(got[k]) == v, k
		    else: assert got[k] == v, k
		assert got["loader.rate"] == "0.2" and got["vocab.rows"] == "82" and got["provenance.1.program"] == "scsim"
		assert set(got) == set(want) | {k for k in got if k.split(":")[0] in ("column", "type", "shape", "group", "categories")}
	'
	scview --header-tsv c.counts | grep -qxP 'categories:cell_type\t3'
}
