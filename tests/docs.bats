#!/usr/bin/env bats
# The pages of docs/: every table below a line <!-- table: FILE | COLUMN=VALUE | COLUMNS --> prints the numbers of FILE, and what the files
# derive from other columns (intervals, p, Holm's correction) is computed again with scipy.

load helper

setup() { cd "$BATS_TEST_DIRNAME/.."; }

# COLUMNS names the columns of the file, one place for each column of the page, separated by ";". A place may name several numbers, and begin with
# "COLUMN=VALUE:", which picks the line of the file that has them.
compare_tables() {
	$PYTHON - "$@" <<-'END'
		import csv, re, sys
		tables = cells = 0
		bad = []
		for page in sys.argv[1:]:
		    lines = open(page).read().split("\n")
		    for at, line in enumerate(lines):
		        m = re.match(r"<!-- table: (.*) -->$", line)
		        if not m:
		            continue
		        name, *where, columns = [x.strip() for x in m[1].split("|")]
		        folder = re.sub(r"docs/(experiments/)?[^/]*$|README.md$", "docs/experiments/tables/", page)
		        rows = [r for r in csv.DictReader(open(folder + name), delimiter="\t") if all(r[k] == v for k, v in (w.split("=", 1) for w in where))]
		        pick, columns = zip(*(p.rpartition(":")[::2] for p in columns.split(";")))
		        pick, columns = [p.strip().split("=", 1) for p in pick], [c.split() for c in columns]
		        tables += 1
		        body = []
		        for l in lines[at + 3:]:
		            if not l.startswith("|"):
		                break
		            body.append([c.strip().replace("**", "") for c in l.strip().strip("|").split("|")])
		        if not body:
		            bad.append(f"{page}:{at + 1}: no table")
		        for cell in body:
		            if len(cell) != len(columns):
		                bad.append(f"{page}:{at + 1}: {len(cell)} columns, the line above names {len(columns)}: {cell}")
		                continue
		            def text(c):
		                return len(c) == 1 and any(not re.fullmatch(r"[-+0-9.e]+|NA", r[c[0]]) for r in rows)
		            keys = [i for i, c in enumerate(columns) if text(c) or c[0] in ("k", "gamma", "genes", "rows", "masking_rate")]
		            mine = [r for r in rows if all(cell[i].replace(",", "") == r[columns[i][0]].replace(",", "") for i in keys)]
		            for i, c in enumerate(columns):
		                if i in keys:
		                    continue
		                hit = [r for r in mine if pick[i] == [""] or r[pick[i][0]] == pick[i][1]]
		                if len(hit) != 1:
		                    bad.append(f"{page}:{at + 1}: {len(hit)} lines of {name} for {[cell[i] for i in keys]}")
		                    break
		                got = re.findall(r"[-+]?\d*\.?\d+", re.sub(r"(?<=\d),(?=\d{3})", "", cell[i]))
		                want = [hit[0][k] for k in c if hit[0][k] != "NA"]
		                ok = len(got) == len(want)
		                for g, w in zip(got, want):
		                    digits = len(g.partition(".")[2])
		                    ok = ok and abs(float(g) - float(w)) <= 0.5000001 * 10 ** -digits
		                    cells += 1
		                if not ok:
		                    bad.append(f"{page}:{at + 1}: {cell[i]!r} of {cell[0]!r} is {want} in {name} ({' '.join(c)})")
		print("\n".join(bad) if bad else f"{tables} tables, {cells} numbers")
		sys.exit(bool(bad))
	END
}

@test "the tables of the pages print the numbers of their files" {
	run -0 compare_tables README.md docs/experiments.md docs/experiments/*.md
	echo "$output"
	[[ $output =~ ^([0-9]+)" tables, "([0-9]+)" numbers"$ ]]
	((BASH_REMATCH[1] >= 12 && BASH_REMATCH[2] >= 250))
}

@test "the table of docs/agreement.md is that of docs/agreement.tsv" {
	run -0 $PYTHON -B tests/bench/agreement.py page docs/agreement.tsv docs/agreement.md
	diff <(echo "$output") docs/agreement.md
}

@test "a wrong number, a missing line and a missing table are found" {
	mkdir -p "$BATS_TEST_TMPDIR/docs/experiments"
	cp -r docs/experiments/tables "$BATS_TEST_TMPDIR/docs/experiments"
	cd "$BATS_TEST_TMPDIR"
	sed 's/12,784/12,785/; s/ 32\.9 / 32.8 /' "$BATS_TEST_DIRNAME/../docs/experiments/table3.md" > docs/experiments/a.md
	run -1 compare_tables docs/experiments/a.md
	assert_line --partial "'32.8' of 'CorrMask' is ['32.9']"
	assert_equal "${#lines[@]}" 1
	sed 's/^| PMI-Rand /| PMI-Rando /' "$BATS_TEST_DIRNAME/../docs/experiments/table3.md" > docs/experiments/a.md
	run -1 compare_tables docs/experiments/a.md
	assert_output --partial "0 lines of table3.tsv for ['PMI-Rando']"
	sed '/^| masks/,/^$/d' "$BATS_TEST_DIRNAME/../docs/experiments/table3.md" > docs/experiments/a.md
	run -1 compare_tables docs/experiments/a.md
	assert_output --partial "no table"
}

@test "links between the documents lead to files and headings, and every picture is on a page" {
	run -0 $PYTHON tests/links.py ./*.md docs/*.md docs/guide/*.md docs/experiments/*.md
	assert_output --regexp '^[0-9]+ links$'
}

@test "a dead link, a dead anchor and a picture on no page are found" {
	mkdir -p "$BATS_TEST_TMPDIR/docs"
	script=$PWD/tests/links.py
	cd "$BATS_TEST_TMPDIR"
	printf '# Top\n\n[a](b.md) [c](#top) [d](#bottom) [e](https://x.org/b.md)\n' > docs/a.md
	: > docs/f.svg
	run -1 $PYTHON "$script" docs/a.md
	assert_equal "${#lines[@]}" 3
	assert_line --partial "b.md"
	assert_line --partial "#bottom"
	assert_line --partial "f.svg"
}

@test "intervals, p and Holm's correction of the tables are scipy's" {
	run -0 $PYTHON - <<-'END'
		import csv
		import numpy as np
		from scipy import stats
		def read(name):
		    return list(csv.DictReader(open(f"docs/experiments/tables/{name}.tsv"), delimiter="\t"))
		def close(row, column, want, tol):
		    assert abs(float(row[column]) - want) <= tol * max(abs(want), 1e-3), (row, column, want)
		def holm(p):
		    order = np.argsort(p)
		    out = np.empty(len(p))
		    out[order] = np.minimum(1, np.maximum.accumulate(np.array(p)[order] * np.arange(len(p), 0, -1)))
		    return out
		def check(rows, overlap, prefix=""):
		    for r in rows:
		        n, mean, sd = int(r["seeds"]), float(r["mean"]), float(r["sd"])
		        se = sd * np.sqrt(1 / n + overlap)
		        half = stats.t.ppf(0.975, n - 1) * se
		        close(r, prefix + "low", mean - half, 1e-4)
		        close(r, prefix + "high", mean + half, 1e-4)
		        close(r, prefix + "p", 2 * stats.t.sf(abs(mean / se), n - 1), 1e-3)
		    if prefix + "p_holm" in rows[0]:
		        for r, q in zip(rows, holm([float(r[prefix + "p"]) for r in rows])):
		            close(r, prefix + "p_holm", q, 1e-4)
		ties = read("ties-differences")
		for which in ("long", "short"):
		    part = [r for r in ties if r["training"] == which]
		    check(part, 0)
		    check(part, 1 / 3, "split_") # a quarter of the cells for testing
		points = read("reliance-points")
		seeds = {}
		for r in points:
		    seeds.setdefault((r["experiment"], r["method"]), []).append(float(r["R"]))
		differences = read("reliance-differences")
		for r in differences:
		    d = np.array(seeds[r["experiment"], r["arm"]]) - seeds[r["experiment"], r["reference"]]
		    half = stats.t.ppf(0.975, len(d) - 1) * d.std(ddof=1) / np.sqrt(len(d))
		    for column, want in ("difference", d.mean()), ("sd", d.std(ddof=1)), ("low", d.mean() - half), ("high", d.mean() + half):
		        close(r, column, want, 1e-6)
		    close(r, "p", stats.ttest_1samp(d, 0).pvalue, 1e-6)
		for r, q in zip(differences, holm([float(r["p"]) for r in differences])):
		    close(r, "p_corrected", q, 1e-6)
		# means of the seeds are those of the printed tables, which were rounded to three digits
		for r in read("reliance-summary"):
		    if (r["experiment"], r["method"]) in seeds:
		        assert abs(np.mean(seeds[r["experiment"], r["method"]]) - float(r["R"])) < 0.0011, r
		for r in read("fig4"):
		    half = stats.t.ppf(0.975, int(r["trials"]) - 1) * float(r["gap_sd"]) / np.sqrt(int(r["trials"]))
		    close(r, "gap_low", float(r["gap"]) - half, 1e-4)
		    close(r, "gap_high", float(r["gap"]) + half, 1e-4)
		fig4 = [r for r in read("fig4") if r["run"] == "table"]
		for r, q in zip(fig4, holm([float(r["p"]) for r in fig4])):
		    close(r, "p_holm", q, 1e-4)
		for r in read("table6-differences"):
		    half = stats.t.ppf(0.975, 4) * float(r["sd"]) / np.sqrt(5)
		    close(r, "low", float(r["mean"]) - half, 1e-4)
		    close(r, "high", float(r["mean"]) + half, 1e-4)
		    assert abs(2 * stats.t.sf(abs(float(r["mean"]) / (float(r["sd"]) / np.sqrt(5))), 4) / float(r["p"]) - 1) < 0.1, r # sd has two digits
	END
}

@test "armstat compare writes the table of differences in partner reliance" {
	table=docs/experiments/tables/reliance
	armstat compare --metrics R --arm method --within experiment --pair seed --compare 'CorrMask:random masks' \
		--compare 'CorrMask, shuffled graph:random masks' --compare 'CorrMask:CorrMask, shuffled graph' $table-points.tsv > "$BATS_TEST_TMPDIR/got"
	cmp "$BATS_TEST_TMPDIR/got" $table-differences.tsv
}

@test "combine and bmfm: means, differences and parts are those of the seeds" {
	run -0 $PYTHON - <<-'END'
		import csv, glob
		import numpy as np
		from scipy import stats
		def read(name):
		    return list(csv.DictReader(open(f"docs/experiments/tables/{name}.tsv"), delimiter="\t"))
		metric = {"macro F1": "macro_f1", "F1 of the rarest third": "f1_rare", "AvgBio": "avg_bio_swept", "AvgBatch": "avg_batch",
		          "exact terms": "head_exact", "finer terms": "head_finer", "coarser terms": "head_coarser",
		          "hierarchical F1": "head_hierarchical_f1", "macro F1 of terms": "head_macro_f1"}
		known = {"log-normalised expression": "expression", "50 components": "pca", "naive Bayes of counts": "naive-bayes",
		         "untrained network": "untrained"}
		value = {}
		for r in read("bmfm-points"):
		    value.setdefault((r["data"], r["arm"], r["metric"]), {})[r["seed"]] = float(r["value"])
		def interval(x, overlap=0):
		    half = stats.t.ppf(.975, len(x) - 1) * np.std(x, ddof=1) * np.sqrt(1 / len(x) + overlap)
		    return np.mean(x), np.mean(x) - half, np.mean(x) + half
		def paired(data, m, a, b):
		    a, b = value[data, a, m], value[data, b, m]
		    return [a[k] - b[k] for k in a if k in b]
		n = 0
		def same(r, columns, want):
		    global n
		    for c, w in zip(columns, want):
		        assert abs(float(r[c]) - w) < 1e-4 * max(1, abs(w)), (r, c, w)
		        n += 1
		splits = {"simulated": 0, "bone marrow": 1 / 3}   # a quarter of the cells for testing, from one file
		for r in read("combine"):
		    o, m = known.get(r["objective"], r["objective"]), metric[r["metric"]]
		    for c, part in ("alone", ""), ("r2mae", "+r2mae"), ("hce", "+hce"), ("r2mae_hce", "+r2mae+hce"):
		        if r[c] == "NA":
		            continue
		        columns = [c, c + "_low", c + "_high"]
		        if r["minus"] == "nothing":
		            same(r, columns, interval(list(value[r["data"], o + part, m].values())))
		        else:
		            same(r, columns, interval(paired(r["data"], m, o + part, known[r["minus"]]), splits[r["data"]]))
		for r in read("combine-effects"):
		    by_seed = {}
		    for o in "mlm-random", "mlm-corrmask", "value", "wced":
		        for rest in "", {"+r2mae": "+hce", "+hce": "+r2mae"}[r["part"]]:
		            with_it = o + (r["part"] + rest if r["part"] == "+r2mae" else rest + r["part"])
		            a, b = (value[r["data"], x, metric[r["metric"]]] for x in (with_it, o + rest))
		            for k in a:
		                by_seed.setdefault(k, []).append(a[k] - b[k])
		    x = [np.mean(v) for v in by_seed.values()]
		    same(r, ["difference", "low", "high", "p"], [*interval(x), stats.ttest_1samp(x, 0).pvalue])
		for name in "objectives", "ontology", "learnability", "finetune":
		    for r in read("bmfm-" + name):
		        for c in r:
		            if c + "_low" in r and r[c] != "NA":
		                got = list(value[r["data"], known.get(r["arm"], r["arm"]), c].values())
		                same(r, [c, c + "_low", c + "_high"] if len(got) > 1 else [c], interval(got) if len(got) > 1 else got)
		    for r in read(f"bmfm-{name}-differences"):
		        x = paired(r["data"], metric.get(r["metric"], r["metric"]), *(known.get(r[k], r[k]) for k in ("arm", "minus")))
		        assert len(x) == int(r["seeds"]), r
		        same(r, ["difference", "low", "high"], interval(x, splits[r["data"]]))
		print(n)
	END
	((output >= 1000))
}

@test "corrmask-tables, wced: armstat compare of the points gives the tables of differences" {
	again() { # TABLE PAIR WITHIN OPTION...
		armstat compare -q --arm arm --pair "$2" --within "$3" "${@:4}" "docs/experiments/tables/$1-points.tsv" |
			awk -F '\t' -v OFS='\t' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } $c["n"] > 1 { print $c["arm"], $c["reference"], sprintf("%.9g %.9g %.9g %.9g", $c["difference"], $c["low"], $c["high"], $c["p"]) }' | sort
	}
	printed() {
		awk -F '\t' -v OFS='\t' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } { print $c["arm"], $c["minus"], sprintf("%.9g %.9g %.9g %.9g", $c["difference"], $c["low"], $c["high"], $c["p"]) }' "docs/experiments/tables/$1-differences.tsv" | sort
	}
	against() { for arm; do pairs+=(--compare "$arm:$reference"); done; }
	pairs=() reference=random
	against CorrMask shuffled PMI PMI-Rand "CorrMask, lambda 1" "CorrMask, lambda .25" "CorrMask, lambda .75"
	diff <(again corrmask-tables seed pretrained_on,metric "${pairs[@]}" --compare CorrMask:shuffled) <(printed corrmask-tables)
	for table in rare rare-simulated; do
		diff <(again $table seed metric --compare CorrMask:random --compare shuffled:random --compare CorrMask:shuffled) <(printed $table)
	done
	pairs=() reference='untrained network'
	against value-zeros wced wced-released
	diff <(again wced seed set,metric --splits 3:1 "${pairs[@]}" --compare wced:value-zeros --compare 'value-zeros:50 components' --compare 'wced:50 components' --compare wced-released:wced --compare wced-released:value-zeros --compare 'wced-released:50 components') <(printed wced)
	diff <(again table1 fold cells,metric --compare CorrMask:random --compare CorrMask:PMI --compare CorrMask:PMI-Rand --compare CorrMask:untrained) <(printed table1)
}

@test "bmfm-zeroshot: the seeds of a set are averaged, and sets are the units of intervals and differences" {
	run -0 $PYTHON - <<-'END'
		import csv
		import numpy as np
		from scipy import stats
		def read(name):
		    return list(csv.DictReader(open(f"docs/experiments/tables/bmfm-zeroshot{name}.tsv"), delimiter="\t"))
		seeds = {}
		for r in read("-points"):
		    seeds.setdefault((r["metric"], r["method"]), {}).setdefault(r["set"], []).append(float(r["value"]))
		mean = {k: {s: np.mean(v) for s, v in sets.items()} for k, sets in seeds.items()}
		def interval(x):
		    half = stats.t.ppf(.975, len(x) - 1) * np.std(x, ddof=1) / np.sqrt(len(x))
		    return np.mean(x), np.mean(x) - half, np.mean(x) + half
		n = 0
		def same(r, columns, want):
		    global n
		    for c, w in zip(columns, want):
		        assert abs(float(r[c]) - w) < 1e-4 * max(1, abs(w)), (r, c, w)
		        n += 1
		column = {"PBMC 3k": "pbmc3k", "PBMC 4k": "pbmc4k", "PBMC sorted": "sorted", "PBMC Kang": "kang"}
		for r in read(""):
		    m = mean[r["metric"], r["method"]]
		    assert len(m) == 4, r
		    same(r, [column[s] for s in m], m.values())
		    same(r, ["mean", "low", "high"], interval(list(m.values())))
		for r in read("-differences"):
		    a, b = mean[r["metric"], r["method"]], mean[r["metric"], r["minus"]]
		    x = [a[s] - b[s] for s in a]
		    assert len(x) == int(r["sets"]) == 4
		    same(r, ["difference", "low", "high"], interval(x))
		    p = stats.ttest_1samp(x, 0).pvalue
		    assert r["p"] == "NA" or abs(float(r["p"]) - p) < 2e-3, (r, p)   # the scores have six digits
		print(n)
	END
	((output >= 500))
}

@test "the differences of the table are those of its scores, to rounding" {
	run -0 $PYTHON - <<-'END'
		import csv
		def read(name):
		    return list(csv.DictReader(open(f"docs/experiments/tables/{name}.tsv"), delimiter="\t"))
		score = {(r["training"], r["data"], r["method"]): r for r in read("ties-summary")}
		n = 0
		for r in read("ties-differences"):
		    key = r["training"], r["data"]
		    a, b = score[*key, r["method"]][r["metric"]], score[*key, r["minus"]][r["metric"]]
		    assert abs(float(a) - float(b) - float(r["mean"])) < 0.0016, (r, a, b)
		    n += 1
		assert n == 190
	END
}

@test "make docs-figures: the figures are those of the tables" {
	cp -r docs pipelines "$BATS_TEST_TMPDIR"
	cd "$BATS_TEST_TMPDIR"
	rm docs/speed.svg docs/experiments/forest.svg
	make -s -f docs/docs.mk docs-figures
	for f in docs/speed.svg docs/loaders.svg docs/experiments/*.svg; do cmp "$f" "$BATS_TEST_DIRNAME/../$f"; done
	[ "$(ls docs/experiments/*.svg | wc -l)" -ge 8 ]
}

# A number in a sentence is one of a table that its page names, rounded (or a percentage of it), or one of these, which no table keeps: those of the
# papers, of the data, of settings, and intervals that were computed beside the tables. A wrong number may be in a large table by chance, but a table
# that was made again changes many.
@test "result pages: numbers in sentences are those of the page's tables" {
	run -0 $PYTHON - <<-'END'
		import glob, re
		elsewhere = {
		    "corrmask-tables.md": ".622 -.201 -.223 -.291 .412 .291 .357",
		    "data.md": "4.0 3.16 .906 .872 .923 .345",
		    "depth.md": ".034 .177 .070 .103 .075",
		    "figures.md": "33.3",
		    "methods.md": "1.9",
		    "r2mae-theory.md": "2.5 3.22 1.385 0.42",
		    "reliance.md": "4.0",
		    "screen.md": "10.5 1.7",
		    "table3.md": "11.4 9.34 23.01",
		    "transfer.md": ".812 .011 .028 .024 .954 .909 .937",
		}
		def numbers(path):
		    text = open(path).read()
		    return [float(x) for x in re.findall(r"(?<![\w.])-?\d*\.?\d+(?:[eE][-+]?\d+)?(?![\w.])", text)]
		bad, n = [], 0
		for path in sorted(glob.glob("docs/experiments/*.md")):
		    page = path.rpartition("/")[2]
		    text = re.sub(r"```.*?```", "", open(path).read(), flags=re.S)
		    tables = {t for t in re.findall(r"([\w-]+\.tsv)", text) if glob.glob(f"docs/experiments/tables/{t}")}
		    there = [abs(v) for t in tables for v in numbers(f"docs/experiments/tables/{t}")]
		    prose = "\n".join(line for line in text.split("\n") if line[:1] != "|" and line[:4] != "<!--")
		    prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", prose)
		    other = elsewhere.get(page, "").split()
		    used = set()
		    for m in re.finditer(r"(?<![\w.,/])[-+]?(\d*\.(\d+))(?![\w.]*\d)", prose):
		        n += 1
		        half = .5 * 10 ** -len(m[2]) + 1e-9
		        x = float(m[1])
		        if not any(abs(v - x) <= half or x >= 1 and abs(100 * v - x) <= half for v in there):
		            used.add(m[0])
		            if m[0] not in other:
		                bad.append(f"{page}: {m[0]}")
		    bad += [f"{page}: {x} is in a table now, or not on the page" for x in other if x not in used]
		assert not bad, bad
		print(n)
	END
	((output > 350))
}
