#!/usr/bin/env bats
# pipelines/page/table.py: what the tables of all experiments share, each branch on a tiny table. The tables themselves are tested with their experiments.
load helper

T=$BATS_TEST_DIRNAME/../pipelines/page/table.py

setup() { cd "$BATS_TEST_TMPDIR"; }

# python CODE: with the functions of table.py
python() { SCALE=${SCALE:-} $PYTHON -B -c "import sys; sys.path.insert(0, '$BATS_TEST_DIRNAME/../pipelines/page'); sys.argv = ['']
from table import *
def same(a, b): assert a == b, (a, b)
$1"; }

@test "table.py: numbers, intervals and lists of words" {
	python 'same(num("NA", "%.2f"), "-"); same(num("", "%.2f"), "-"); same(num(None, "%.2f"), "-"); same(num("-.001", "%+.2f"), "+0.00"); same(num("-.01", "%+.2f"), "-0.01")
same(text("NA", "%.2f"), "NA"); same(text(".5", "%.2f"), "0.50")
r, none = {"low": "-1", "high": ".0001"}, {"low": "NA", "high": "NA"}
same(span(r, "%+.1f"), "-1.0 to +0.0"); same(span(none, "%.1f"), "-"); same(bracket(r), "[-1.000, 0.000]"); same(bracket(none), "[NA]")
same([plain(x) for x in (3.0, -0.0, 1234567.5, 1 / 3, float("nan"))], ["3", "0", "1.23457e+06", "0.333333", "nan"]); same(plain(1 / 3, 9), "0.333333333")
same([median(x) for x in ([3, 1, 2], [4, 1, 3, 2], [5])], [2, 2, 5])
same(fold("one two three", 8), ["one two", "three"]); same(fold("abcdefghij k", 4), ["abcd", "efgh", "ij k"]); same(fold("", 4), [""])
same(padded(["ä", "bcd"]), ["ä  ", "bcd"])
same(crossed("of", [("a", "x", "1"), ("b", "y", "2"), ("a", "z", "3")]), [["of", "x", "y", "z"], ["a", "1", "-", "3"], ["b", "-", "2", "-"]]); same(crossed("of", []), [["of"]])'
}

@test "table.py: a table as text and for the page: numbers to the right, the first column is cut to the width" {
	python 'as_table("t", "A caption of some words", [["", "n", "of"], ["a name", "1", "x"], ["b", "-2.5e3", ""], ["c", "NA"]], 17)' > out
	printf '# A caption of some words\n\tn\tof\na name\t1\tx\nb\t-2.5e3\t\nc\tNA\n' | cmp - t
	printf 'A caption of\nsome words\n           n   of\na..        1   x\nb     -2.5e3\nc         NA\n' | diff out -
	python 'as_table("t", "wide", [["name"], ["a name"]])' | diff - <(printf 'wide\nname\na name\n')
}

@test "table.py: scores of runs that are missing are left out; pairs without values are no pairs; a failing armstat ends it" {
	mkdir -p runs/a-1 runs/b-2
	printf 'metric\tvalue\nx\t1\n' > runs/a-1/scores.tsv
	printf 'x\t2\n' > runs/b-2/scores.tsv
	python 'same(collect("runs", ["a", "b"], ["1", "2"]), [["a", "1", "x", "1"], ["b", "2", "x", "2"]])
table = [["arm", "seed", "value"]] + [[a, k, str(i * j + (a == "b"))] for i, a in enumerate("ab", 1) for j, k in enumerate("123", 1)]
same(differences("none.tsv", table, [("a", "a"), ("a", "c")], "--pair", "seed"), []); same(Path("none.tsv").read_text(), "")
r, = differences("d.tsv", table, [("b", "a"), ("c", "a")], "--pair", "seed"); same([r["arm"], r["reference"], r["n"], float(r["difference"])], ["b", "a", "3", 3.0])
same([m["mean"] for m in means(None, table)], ["2", "5"]); same(rows("d.tsv"), [r])
same(rows("not there"), []); same(values("not there"), {}); same(word("not there"), "")'
	run -1 --separate-stderr python 'means(None, [["arm", "seed", "value"], ["a", "1", "x"]])'
	assert_not_equal "$stderr" ""
}

@test "table.py: what is said of differences, and why networks are not compared" {
	python 'd = [{"p": "NA", "p_corrected": "NA"}, {"p": ".01", "p_corrected": ".02"}, {"p": ".04", "p_corrected": ".08"}, {"p": ".05", "p_corrected": ".1"}]
same(counted(d, " here"), "3 differences here; without any effect 0.2 of them would have p below .05 on average, and 2 have."); same(shown(d), d[1:2])
assert after_holm([]).startswith("None"); same(after_holm(["  x"]).split("\n")[1], "  x")
points = [{"strategy": s, "visible": v} for s, v in (("random", "7"), ("random", "6"), ("corrmask", "6"), ("corrmask", "6.4"))]
reference = [{"masks": "hidden", "frequency": "6.5"}, {"masks": "visible", "frequency": "6.15"}]
same(highest_visible(points, reference, ["random", "corrmask"]), (6.5, "6.15")); same(highest_visible(points, reference, ["corrmask"]), (6.2, "6.15"))
same(highest_visible([], [], ["random"]), (None, ""))
same([not_learned(*x) for x in ((6.1, "6.15"), (None, "6.15"), (6.2, ""), (6.2, "-"))], [""] * 4); assert not_learned(6.2, "6.15").endswith("EPOCHS=.")
same([bool(no_edges(x)) for x in ("0", "1", "")], [True, False, False])
same(units({"bootstrap_units": "6", "cells": "60"}), "6 groups"); same(units({"bootstrap_units": "60", "cells": "60"}), "60 cells")'
	SCALE=tiny python 'assert not_learned(6.2, "6.15").endswith(", or leave out SCALE=tiny."), not_learned(6.2, "6.15")'
	python 'tell(".", "one", "", "two")' > out
	cmp out findings.txt
	assert_equal "$(cat findings.txt)" $'one\ntwo'
}

@test "table.py: how cells are split, and which columns could have been named" {
	scsim -q --cells 40 --genes 200 --seed 1 -o c.counts
	printf 'LABEL = cell_type\nGROUP = auto\n' > settings
	touch group
	python 'same(split_by("."), "split by cell"); split_note(".", "c.counts")' > out
	grep -q 'GROUP=COLUMN names one (such as: donor.*); GROUP=none' out
	grep cell_type out && fail "the label is no donor"
	echo donor > group
	python 'same(split_by("."), "split by donor"); split_note(".", "c.counts")' > out
	assert_file_empty out
	printf 'GROUP = none\n' > settings
	: > group
	python 'split_note(".", "c.counts"); split_note("elsewhere", "c.counts")' > out
	assert_file_empty out
}

@test "table.py: times of stages by the first word of their names, in the order of the run" {
	mkdir -p log/more
	printf 'program\ta\npeak_memory_mb\t85.9\nprogram\tb\npeak_memory_mb\t9\nseconds\t1.006\n' > log/x-1.report
	printf 'seconds\t2\n' > log/more/x-2.report
	printf 'peak_memory_mb\t7\n' > log/w.report
	touch -d 2020-01-01 log/more/x-2.report
	touch -d 2021-01-01 log/w.report
	python 'stage_times("log", "none")' | diff - <(printf '%-16s %5s %10s %12s\n' stages runs seconds 'peak memory' x 2 3.01 '85 MB' w 1 0.00 '7 MB')
}

@test "table.py: a wrong number of arguments is told by the synopsis" {
	run -1 "$T"
	assert_output --partial "table.py EXPERIMENT/NAME ARGUMENT..."
	run -1 "$T" fig4/table
	assert_output --partial "table.py fig4/table DIR FILE..."
	run -1 "$T" other/table a b c d e
	assert_output --partial "table.py other/table FOLDER"
}
