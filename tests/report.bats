#!/usr/bin/env bats
# The page of a run: complete, well-formed, of one piece, and with the values of the tables
load helper

# A run by hand, with names that HTML would read as its own
setup_file() {
	cd "$BATS_FILE_TMPDIR"
	export R=$PWD/results/demo/run-12345678
	mkdir -p "$R/log" "$R/a.model" results/prepared/run-11111111/log results/other/x-2
	printf 'name = run\nDATA = \nLABEL = cell_type\nSEED = 1\nBATCH = <b>&"12'"'"'\n' > "$R/settings"
	printf 'name = run\nDATA = \nSEED = 1\n' > results/prepared/run-11111111/settings
	printf 'name = x\nDATA = \nSEED = 2\n' > results/other/x-2/settings
	scsim -q --cells 150 --genes 120 --types 3 --rarest 0.2 --depth 500 --donors 3 --seed 1 -o c.counts
	rankenc -q --fit c.counts -o c.vocab
	rankenc -q -m c.vocab c.counts -o results/prepared/run-11111111/train.tok
	depgraph -q --min-overlap 5 --min-cells 5 results/prepared/run-11111111/train.tok -o results/prepared/run-11111111/train.graph
	echo donor > results/prepared/run-11111111/group
	screduce pca -q -k 5 --train c.counts -o "$R/a.test.emb" c.counts
	for m in a b; do
		printf 'metric\tvalue\naccuracy\t0.83749999999999991\ncells\t7\nf1:T <b> & "x"\t0.5\nf1:B:2\t%s\nn:T <b> & "x"\t4\nn:B:2\t3\n' 0.25$m | sed 's/a$//; s/b$/1234567/' > "$R/$m.probe.tsv"
		printf 'train_n:T <b> & "x"\t40\ntrain_n:B:2\t30\nconfusion:T <b> & "x":B:2\t1\nconfusion:T <b> & "x":T <b> & "x"\t3\nconfusion:B:2:B:2\t3\n' >> "$R/$m.probe.tsv"
	done
	printf 'step\tloss\n1\t3.5\n2\t3.25\n3\t3\n' > "$R/a.model/train.tsv"
	printf 'fpr\ttpr\n0\t0\n0.5\t0.75\n1\t1\n' > "$R/a.roc.tsv"
	printf 'gene\tscore\n<i>G1</i>\t1e-5\nG2 & co\t-2.123456789\nG3\tNA\n' > "$R/genes.tsv"
	printf 'A text with <script>alert("&")</script>\n' > "$R/report.txt"
	printf 'name\tvalue\nprogram\tscview\nseconds\t0.1\npeak_memory_mb\t33\nprogram\tctaprobe cells\npeak_memory_mb\t30\nprogram\tstage\nseconds\t1.25\n' > "$R/log/ctaprobe-a.report"
	printf '# The <b>answer</b> & more\nmodel\tmacro F1\tinterval\na & <i>b</i>\t0.50\t0.4 - 0.6\n' > "$R/1.table"
	printf 'metric\tarm\treference\tn\tdifference\tlow\thigh\tp_corrected\nR\tcorrmask\trandom\t3\t-0.31\t-0.4\t-0.22\t0.0123\nR\tx\trandom\t1\t0.05\tNA\tNA\tNA\n' > "$R/differences.tsv"
	printf 'metric\tarm\tn\tdropped\tmean\tsd\tse\tlow\thigh\nR\ta\t3\t0\t0.25\t1\t1\t0\t1\nR\tb\t3\t0\t0.5\t1\t1\t0\t1\nF\tb\t3\t0\t0.75\t1\t1\t0\t1\n' > "$R/summary.tsv"
	printf 'Differs: a < b & c.\n  By 3.\n\nSecond.\n' > "$R/findings.txt"
	printf '<?xml version="1.0"?>\n<svg width="700" height="80" viewBox="0 0 700 80" xmlns="http://www.w3.org/2000/svg"><title>Another</title><defs><circle id="dot" r="1"/></defs><use href="#dot"/><path stroke="rgb(  0,   0,   0)" d="M0 0"/><path stroke="#dddddd" d="M0 0"/><path stroke="#4060a0" onclick="evil()" d="M0 0"/><script>evil()</script></svg>\n' > "$R/mine.svg"
	export BIN
	python3 -B "$BATS_TEST_DIRNAME/../pipelines/page/page.py" "$R" 2> log || { cat log >&2; return 1; }
	cat > page.py <<-'END'
		# The page as tables, figures, links and texts; an error if it is not well-formed
		import html.parser, re, sys
		VOID = {"meta", "br", "hr", "img", "input", "link"}
		class Page(html.parser.HTMLParser):
		    def __init__(self):
		        super().__init__(convert_charrefs=True)
		        self.open, self.ids, self.tables, self.figures, self.urls, self.text, self.names = [], [], {}, [], [], "", set()
		        self.cell = self.row = self.table = None
		    def handle_starttag(self, tag, attrs):
		        a = dict(attrs)
		        self.names.add(tag)
		        assert len(a) == len(attrs), (tag, attrs)
		        if "id" in a: self.ids.append(a["id"])
		        self.urls += [v for k, v in attrs if k in ("href", "src", "xlink:href", "action", "data")]
		        if tag == "table": self.table = []
		        if tag == "p": self.title = a.get("class") == "caption"
		        if tag == "tr": self.row = []
		        if tag in ("td", "th"): self.cell = ""
		        if tag == "th": assert a.get("scope") == "col"
		        if tag == "data" and self.cell is not None: self.value = a["value"]
		        if tag == "svg" and a.get("aria-hidden") != "true": self.figures.append(a); assert a["role"] == "img" and a["aria-label"], a
		        if tag not in VOID: self.open.append(tag)
		    def handle_startendtag(self, tag, attrs):
		        self.handle_starttag(tag, attrs)
		        if tag not in VOID: self.handle_endtag(tag)
		    value = None
		    def handle_endtag(self, tag):
		        assert self.open and self.open.pop() == tag, (tag, self.open, self.getpos())
		        if tag in ("td", "th"):
		            if self.value is not None:
		                shown, real = float(self.cell), float(self.value)
		                assert abs(shown - real) <= 6e-4 * max(abs(real), 1e-300), (self.cell, self.value)
		            self.row.append(self.value if self.value is not None else self.cell)
		            self.cell = self.value = None
		        if tag == "tr": self.table.append(self.row)
		        if tag == "p" and self.title: self.caption = self.last
		        if tag == "table": self.tables[self.caption] = self.table
		    def handle_data(self, data):
		        self.last = data
		        if self.cell is not None: self.cell += data
		        if not self.open or self.open[-1] not in ("script", "style"): self.text += data
		def load(path):
		    text = open(path, encoding="utf-8").read()
		    p = Page()
		    p.source = text
		    p.feed(text)
		    p.close()
		    assert not p.open, p.open
		    assert len(set(p.ids)) == len(p.ids), "an id twice"
		    return p
	END
}

setup() { cd "$BATS_FILE_TMPDIR"; }

page() { $PYTHON -c "$(printf '%s\n' 'import page, os' 'p = page.load(os.environ["R"] + "/report.html")' "$1")"; }

@test "report: the page is well-formed and of one piece: no address but its own" {
	run -0 page 'for u in p.urls: assert u.startswith("#") and u[1:] in p.ids, u
import re
assert not re.search(r"https?://|url\((?!#)|@import", p.source), re.search(r".{40}(https?://|url\((?!#)|@import).{40}", p.source)
assert p.text.count("corrmask demo: run-12345678") >= 1'
}

@test "report: names with <, & and quotes are text, not tags" {
	run -0 page 'assert "i" not in p.names, p.names
assert p.source.count("<script>") == 1
assert p.source.count("<b>") == p.source.count("</b>") == len([l for l in open(os.environ["R"] + "/settings") if not l.startswith("name") and l.split(" = ")[1].strip()])
for t in ("A text with <script>alert(\"&\")</script>", "<b>&\"12" + chr(39), "<i>G1</i>", "G2 & co"): assert t in p.text, t'
}

@test "report: every figure of the run is inside, with a text for those who do not see it" {
	run -0 page 'labels = [f["aria-label"] for f in p.figures]
for want in ("mine", "R, over trainings, with 95 % intervals", "Training loss", "ROC curves", "F1 of every class by its number of cells", "Confusion matrix: a", "Confusion matrix: b",
             "Map of cells by cell_type: a", "Map of cells by donor: a", "Modules of the dependency graph of the training cells"):
    assert labels.count(want) == 1, (want, labels)
assert len(labels) == 10, labels
assert "Another" not in p.text'
}

@test "report: the answer comes first, as sentences and tables, with F1 of every class; the report as text is folded" {
	run -0 page 's = p.source[p.source.index("id=\"summary\""):p.source.index("id=\"figures\"")]
assert s.index("<li>Differs: a &lt; b &amp; c. By 3.</li>") < s.index("\"caption\">The &lt;b&gt;answer") < s.index("<summary>The report as text") < s.index("\"caption\">F1 of every class")
assert p.tables["The <b>answer</b> & more"] == [["model", "macro F1", "interval"], ["a & <i>b</i>", "0.50", "0.4 - 0.6"]]
t = p.tables["F1 of every class"]
assert "cells of the class in training" in p.source
assert t == [["class", "training cells", "test cells", "a", "b"], ["T <b> & \"x\"", "40", "4", "0.500", "0.500"], ["B:2", "30", "3", "0.250", "0.251"]], t
assert "findings.txt" not in p.text
assert p.tables["Means"] == [["arm", "R", "F"], ["a", "0.25", ""], ["b", "0.5", "0.75"]]
t = p.tables["R, over trainings"]
assert t == [["metric", "arm", "", "difference", "95 % interval", "p, corrected"], ["R", "CorrMask", "- random masks", "-0.31", "-0.4 to -0.22", "0.012"],
             ["R", "x", "- random masks", "+0.05", "NA", "NA"]], t'
}

@test "report: a figure of another program has names of its own; scripts and handlers are left out" {
	run -0 page 's = p.source[p.source.index("<title>mine</title>"):]
s = s[:s.index("</svg>")]
assert "onclick" not in p.source and "evil" not in p.source
assert "id=\"f1-dot\"" in s and "href=\"#f1-dot\"" in s'
}

@test "report: one legend for all maps of a column, and on the clusters only the numbers of their classes" {
	run -0 page 's = p.source[p.source.index("class=\"maps\""):]
assert s[:s.index("</ul>")].count("<ul") == 1 and p.source.count("class=\"maps\"") == 2
import re
assert sorted(re.findall("<text[^>]*>([^<]*)", s[:s.index("class=\"legend")])) == ["1", "2", "3"]
for c in ("type1", "type2", "type3"): assert s[:s.index("</ul>")].count(c + "<span class=\"quiet\">") == 1, c'
}

@test "report: the tables have the values of the files" {
	run -0 page 't = p.tables["probe"]
assert t[0] == ["metric", "a", "b"] and t[1] == ["accuracy", "0.83749999999999991", "0.83749999999999991"] and t[2] == ["cells", "7", "7"] and len(t) == 3, t
t = p.tables["probe, classes"]
assert t[0] == ["class", "f1 a", "f1 b", "n", "train_n"], t[0]
assert t[1] == ["T <b> & \"x\"", "0.5", "0.5", "4", "40"] and t[2] == ["B:2", "0.25", "0.251234567", "3", "30"], t
t = p.tables["probe, confusion"]
assert t[1:] == [["T <b> & \"x\"", "B:2", "1", "1"], ["T <b> & \"x\"", "T <b> & \"x\"", "3", "3"], ["B:2", "B:2", "3", "3"]], t
for name in ("genes.tsv", "a.roc.tsv"):
    rows = [l.rstrip("\n").split("\t") for l in open(os.environ["R"] + "/" + name)]
    assert p.tables[name] == rows, p.tables[name]'
}

@test "report: settings, commands, times, digests and modules are told; what has other settings is not" {
	run -0 page 'assert ["BATCH", "<b>&\"12" + chr(39)] in p.tables["Settings"]
assert ["ctaprobe-a", "1.25", "33"] in p.tables["Time and memory"]
c = p.tables["commands"]
assert any(r[0] == "prepared/run-11111111/train.graph" and r[1] == "depgraph" and "--min-overlap 5" in r[3] for r in c), c
assert any(r[1] == "screduce pca" and "--components 5" in r[3] for r in c)
d = {r[0]: r[2] for r in p.tables["digests"]}
import hashlib
assert d["demo/run-12345678/genes.tsv"] == hashlib.sha256(open(os.environ["R"] + "/genes.tsv", "rb").read()).hexdigest()
assert not [f for f in d if f.startswith("other/")]
assert p.tables["Modules of the dependency graph of the training cells"][0][0] == "module" and len(p.tables["Modules of the dependency graph of the training cells"]) > 1'
}

@test "report: a run without results has a page; a folder that is no run is refused" {
	python3 -B "$BATS_TEST_DIRNAME/../pipelines/page/page.py" results/other/x-2
	R=$PWD/results/other/x-2 run -0 page 'assert "no table of results yet" in p.text'
	run -1 python3 -B "$BATS_TEST_DIRNAME/../pipelines/page/page.py" results/demo
	assert_output --partial "expected the folder of a run"
	run -2 pipelines report RUN=
	assert_output --partial "RUN= is needed"
}

# bats test_tags=slow
@test "report: a page that cannot be made costs no results" {
	run -0 pipelines fig3 SCALE=tiny SEEDS=2
	rm results/fig3/latest/report.html
	mkdir no
	printf '#!/bin/sh\ncase $* in *page.py*) echo "python3: broken" >&2; exit 1 ;; esac\nexec %s "$@"\n' "$(command -v python3)" > no/python3
	chmod 755 no/python3
	PATH=$PWD/no:$PATH run -0 pipelines fig3 SCALE=tiny SEEDS=2
	assert_output --partial "the report could not be made, but all results are there"
	assert_output --partial AUROC
	assert_not_exist results/fig3/latest/report.html
	PATH=$PWD/no:$PATH run -2 pipelines report RUN=fig3/latest
}

# bats test_tags=slow
@test "make fig3 ends with its page; make report makes it again" {
	run -0 pipelines fig3 SCALE=tiny SEEDS=1
	assert_line --regexp '^  report results/fig3/tiny-[0-9a-f]+/report.html$'
	rm results/fig3/latest/report.html
	run -0 pipelines report RUN=fig3/latest
	assert_output results/fig3/latest/report.html
	R=$PWD/results/fig3/latest run -0 page 'assert [f["aria-label"] for f in p.figures] == ["Adjacency A shows modules in part, C in full"]; assert "auroc-1.tsv" in p.tables'
}

# bats test_tags=slow
@test "report: headless Chromium shows it, wide and narrow" {
	command -v chromium > /dev/null || skip "no chromium"
	for width in 1200 400; do
		chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$PWD/profile" --window-size=$width,1500 --screenshot="$PWD/shot-$width.png" \
			"file://$R/report.html" > chromium.log 2>&1 || skip "chromium does not run here"
		assert_file_exist shot-$width.png
		[ "$(stat -c %s shot-$width.png)" -gt 20000 ]              # an empty page of this size has 5 KB
	done
}

@test "report: a demo's differences are one table and one figure; all matrices have the same classes; methods have names and their order" {
	R2=$PWD/results/demo/two-87654321
	mkdir -p "$R2"
	printf 'name = two\nDATA = x\nLABEL = y\n' > "$R2/settings"
	for f in differences:-0.5:0.01 cells:-0.5:0.00001 f1:-0.00000954:0.5 f1_cells:0.1:NA; do
		IFS=: read -r name d p <<< "$f"
		printf 'arm\treference\tn\tdifference\tlow\thigh\tp_corrected\ncorrmask\trandom\t3\t%s\t-1\t1\t%s\n' "$d" "$p" > "$R2/$name.tsv"
	done
	printf 'metric\tvalue\nf1:A\t1\nf1:B\t1\nn:A\t3\nn:B\t2\nconfusion:A:A\t3\nconfusion:B:B\t2\n' | tee "$R2/random-1.probe.tsv" "$R2/expression.probe.tsv" > "$R2/untrained-1.probe.tsv"
	# a class without test cells, for which one model takes a cell
	printf 'metric\tvalue\nf1:A\t1\nf1:B\t0\nf1:C\t0\nn:A\t3\nn:B\t2\nn:C\t0\nconfusion:A:A\t3\nconfusion:B:C\t2\n' > "$R2/corrmask-1.probe.tsv"
	python3 -B "$BATS_TEST_DIRNAME/../pipelines/page/page.py" "$R2"
	R=$R2 run -0 page 't = p.tables["Differences, CorrMask - random masks"]
assert t == [["value", "difference", "95 % interval", "p"], ["R, over trainings", "-0.5", "-1 to +1", "0.01"], ["R, over test cells", "-0.5", "-1 to +1", "<0.0001"],
             ["Macro F1, over trainings", "-0.00001", "-1 to +1", "0.5"], ["Macro F1, over draws of test cells", "+0.1", "-1 to +1", "NA"]], t
labels = [f["aria-label"] for f in p.figures]
assert labels.count("Differences, CorrMask - random masks, with 95 % intervals") == 1
assert p.tables["F1 of every class"][0] == ["class", "test cells", "expression", "untrained network", "random masks", "CorrMask"]
assert ">test cells of the class<" in p.source and "in training<" not in p.source
s = p.source[p.source.index("F1 of every class by"):p.source.index("Confusion matrix")]
assert s.count("cell m-untrained hollow") == 3 and "cell m-expression hollow" not in s, s  # two points, and the legend
assert s[:s.index("test cells of the class")].count("tick middle") >= 2, s
matrices = [l for l in labels if l.startswith("Confusion")]
assert matrices == ["Confusion matrix: " + n for n in ("expression", "untrained network, seed 1", "random masks, seed 1", "CorrMask, seed 1")], matrices
s = p.source[p.source.index("Confusion matrix"):]
assert s.count("<tspan class=\"faint\">3</tspan>  C</text>") == 4 and s.count("<tspan class=\"faint\">1</tspan>  A</text>") == 4, s'
}

@test "without python3 an experiment is refused at once" {
	mkdir without
	ln -s /usr/bin/* without
	rm -f without/python3*
	without=$PWD/without
	cd "$BATS_TEST_TMPDIR"
	PATH=$without run -2 pipelines -n demo SCALE=tiny
	assert_output --partial "python3 is not there"
}
