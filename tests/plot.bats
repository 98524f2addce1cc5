#!/usr/bin/env bats
# The pen of all figures (pipelines/page/plot.py, figure.py): a panel of each shape from a tiny table, its places against the numbers

load helper

setup() {
	cd "$BATS_TEST_TMPDIR"
	P=$BATS_TEST_DIRNAME/../pipelines
	cat > shapes.py <<-'END'
		import os, re, sys
		import xml.etree.ElementTree as ET
		sys.path.insert(0, os.environ["PAGE"])
		from plot import *
		def of(panel, tag, *classes):
		    """The elements with these classes."""
		    return [e for e in panel.iter(tag) if set(classes) <= set(e.get("class", "").split())]
		def texts(panel, *classes):
		    return [(e.text, float(e.get("x")), float(e.get("y"))) for e in of(panel, "text", *classes)]
		def scale(panel, end, at):
		    """A straight line through the numbers of the ticks: the place of a number. at: 1 for x, 2 for y."""
		    ticks = [(float(t[0].replace(",", "")), t[at]) for t in texts(panel, "tick", end)]
		    (a, u), (b, v) = ticks[0], ticks[-1]
		    assert len(ticks) > 2 and all(abs(u + (v - u) * (x - a) / (b - a) - y) < 0.2 for x, y in ticks), ticks
		    return lambda x: u + (v - u) * (x - a) / (b - a)
		def places(panel, *classes):
		    return [(float(e.get("cx")), float(e.get("cy"))) for e in of(panel, "circle", *classes)]
		def close(got, want, by=0.2):
		    assert len(got) == len(want) and all(abs(g - w) < by for a, b in zip(got, want) for g, w in zip(a, b)), (got, want)
	END
	export PAGE=$P/page
}

shape() { $PYTHON -B -c "$(printf '%s\n' 'from shapes import *' "$1")"; }

@test "plot: points, curves, error bars and reference lines are at their numbers; NA leaves a gap, what leaves the panel is cut" {
	shape 'p = plot("t", [Series("one", [(1, 10, 8, 12), (2, 20), (4, 50)], "m-corrmask"), Series("two", [(1, None), (3, 30)], "m-random", "dots")], "x name", "y name",
         x_range=(0, 4), y_range=(0, 40), across=[(25, "line", "ink", 1)])
x, y = scale(p, "middle", 1), scale(p, "end", 2)
y = lambda v, y=y: y(v) - 4
plotted = [q for q in places(p, "m-corrmask") if q[1] > y(40) - 1]
close(plotted, [(x(1), y(10)), (x(2), y(20))])
close([q for q in places(p, "m-random") if q[1] > y(40) - 1], [(x(3), y(30))])
curve = [e for e in of(p, "path", "m-corrmask", "dash0") if "L" in e.get("d")]
close([tuple(map(float, q.split())) for q in curve[0].get("d")[1:].split("L")][:2], [(x(1), y(10)), (x(2), y(20))])
bar = of(p, "path", "thin", "m-corrmask")[0].get("d")
a, b = re.match(r"M[\d.]+ ([\d.]+)h6m-3 0V([\d.]+)", bar).groups()
close([(float(a), float(b))], [(y(8), y(12))])
across = [float(re.match(r"M[\d.]+ ([\d.]+)H", e.get("d"))[1]) for e in of(p, "path", "ink", "dash1") if "H" in e.get("d")]
close([(across[0],)], [(y(25),)])
inner = [e for e in p.iter("svg") if e is not p][0]
assert curve[0] in list(inner) and float(inner.get("y")) > 0 and abs(float(inner.get("height")) - 228) < 1
assert [t[0] for t in texts(p, "name")] == ["y name", "x name"] and {"one", "two", "line"} <= {t[0] for t in texts(p, "tick")}'
}

@test "plot: decades of a logarithmic axis are evenly spaced, and numbers that have no logarithm are left out" {
	shape 'p = plot("t", [Series("", [(1, 1), (10, 2), (100, 3), (0, 4)], "c1", "dots")], "x", "y", log_x=True)
(a, _), (b, _), (c, _) = places(p, "c1")
assert abs((b - a) - (c - b)) < 0.2 and b - a > 50, (a, b, c)'
}

@test "arms: bars begin at 0 and end at the value, seeds and intervals are at their numbers, words beside them" {
	shape 'p = arms("t", [Arm("first", 0.5, look="m-random", seeds=((0.4, 0.3, 0.6), (0.6, None, None))), Arm("second", 0.25, 0.1, 0.3, "m-corrmask", words="text"),
                           Arm("third", look="c1", others={"m-expression": 0.45, "diamond ink": 0.2})], "x", bars=True, x_range=(0, 1))
x = scale(p, "middle", 1)
for r, value in zip(of(p, "rect", "bar"), (0.5, 0.25)):
    close([(float(r.get("x")), float(r.get("width")))], [(x(0), x(value) - x(0))])
close([q[:1] for q in places(p, "m-random")], [(x(0.4),), (x(0.6),)])
lines = {e.get("class"): list(map(float, re.findall(r"M([\d.]+) .*?H([\d.]+)", e.get("d"))[0])) for e in of(p, "path", "thin")}
assert abs(lines["line thin m-random"][0] - x(0.3)) < 0.2 and abs(lines["line thin m-random"][1] - x(0.6)) < 0.2, lines
assert abs(lines["line thin ink"][0] - x(0.1)) < 0.2 and abs(lines["line thin ink"][1] - x(0.3)) < 0.2, lines
assert abs(float(re.match("M([0-9.]+) ", of(p, "path", "m-expression")[0].get("d"))[1]) - x(0.45)) < 0.2
assert abs(float(re.match("M([0-9.]+) ", [e for e in of(p, "path", "ink") if "l6 6" in e.get("d")][0].get("d"))[1]) - x(0.2)) < 0.2
text = [t for t in texts(p, "tick") if t[0] == "text"][0]
assert x(0.3) < text[1] < x(0.3) + 20
rows = [t[2] for t in texts(p, "tick", "end")]
assert rows == sorted(rows) and len(set(rows)) == 3'
}

@test "arms: points with intervals have a line at 0, or at the number that the figure names" {
	shape 'for line, log in ((0, False), (1, True)):
    p = arms("t", [Arm("a", 2, 0.5, 4), Arm("b", -1 if not log else 0.25)], "x", line=line, log=log)
    at = [float(m[1]) for e in of(p, "path", "axis") for m in [re.match(r"M([\d.]+) [\d.]+V", e.get("d"))] if m]
    tick = [t[1] for t in texts(p, "tick", "middle") if float(t[0]) == line]
    assert len(at) == 1 and abs(at[0] - tick[0]) < 0.2, (at, tick)
    (a, _), (b, _) = places(p, "c0")
    assert b < at[0] < a'
}

@test "matrices: the strength of a point is its number, as a share of the strongest" {
	shape 'import base64, struct, zlib
p = matrices("t", [("one", [[0, 1], [2, 8]], 4), ("two", [[1, 0], [0, 1]], 1)], ("first", "last"), "note")
for e, want in zip(p.iter("image"), ([[0, 63], [127, 255]], [[255, 0], [0, 255]])):
    png = base64.b64decode(e.get("href").partition(",")[2])
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", png[16:24]) == (2, 2)
    data = zlib.decompress(png[png.index(b"IDAT") + 4:png.index(b"IEND") - 8])
    assert [list(data[1:3]), list(data[4:6])] == want and png[png.index(b"tRNS") + 4:][:256] == bytes(range(256)), list(data)'
}

@test "flows: a flow is as thick as its number, at both ends, and a name has its sum" {
	shape 'p = flows("t", [("a", "x", "same", 6), ("a", "y", "other", 2), ("b", "y", "same", 4)], {"same": "c0", "other": "c1"}, "note")
thick = [float(re.search(r"v([\d.]+)C", e.get("d"))[1]) for e in of(p, "path", "bar")]
assert abs(thick[0] / thick[1] - 1.5) < 0.02 and abs(thick[0] / thick[2] - 3) < 0.05, thick
assert [t[0] for t in texts(p, "tick")][2:] == ["a (8)", "b (4)", "x (6)", "y (6)"], texts(p)'
}

@test "a figure has its colours for light and dark in itself, no name of another file, and no text beyond its width" {
	shape 'long_name = "a name of many words that is far longer than the place which it has beside its row"
text = figure("all", [arms("A title " * 12, [Arm(long_name, 1, 0.5, 2, "m-corrmask", words="words")], "an axis with many words " * 5, legend=[("c0", "both", long_name)], note=long_name * 2),
                      plot("x" * 90, [Series(long_name, [(0, 1e-5), (1e6, 2e-5)], "m-random")], "x", "y")])
root = ET.fromstring(text)
style = root.find(".//{*}style").text
light, dark = style.split("@media")
assert ".m-corrmask { color: #c04020; }" in light and "prefers-color-scheme: dark" in dark and ".m-corrmask { color: #ff8a66; }" in dark and "var(--c" not in style and "m-pca" not in style
assert not re.search(r"https?://(?!www.w3.org/2000/svg)|url\(", text)
for e in root.iter("{*}text"):
    width = len(e.text) * 6.2
    x = float(e.get("x")) - {"end": width, "middle": width / 2}.get(e.get("class").split()[-1], 0)
    assert x > -4 and x + width < WIDE + 10, (e.text, x, width)'
}

@test "figure.py: a name that no experiment has, and words that are missing, are refused" {
	run -1 python3 -B $P/page/figure.py bogus .
	names figure.py bogus figures.py
	run -2 python3 -B $P/page/figure.py demo
	run -1 python3 -B $P/page/figure.py --of /dev/null title
	names /dev/null title
}

@test "figures: every strategy of table6 has its name in the legend, whatever the strategies; CorrMask is red, random masks grey, no network blue" {
	long="random random+10 random+25 random+50 random+r2mae random+dyn random+mdlm pmi pmi-rand corrmask corrmask+10 corrmask+25 corrmask+50 corrmask+r2mae corrmask+dyn corrmask+mdlm bernoulli corrmask-100 pmi+10 pmi+25"
	for strategies in "random corrmask" "$long"; do
		{
			printf 'stage\tmetric\tcells\tarm\tn\tdropped\tmean\tsd\n'
			for stage in finetune probe; do
				printf '%s\tmacro_f1\t0\tscratch\t3\t0\t0.4\t0.01\n' $stage
				for s in $strategies; do printf '%s\tmacro_f1\t%s\t%s\t3\t0\t0.5\t0.01\n' $stage 300 $s $stage 900 $s; done
			done
		} > summary.tsv
		{
			echo "classes cells class $(sed 's/corrmask//' <<< "$strategies")" | tr -s ' ' '\t'
			for i in $(seq 70); do printf '%d\t5\tx\t0.1\t0.2\n' $i; done
		} > rare.tsv
		printf '%s\tmacro_f1\t0.6\t0.5\t0.7\t1\n' expression pca > baselines.tsv
		python3 -B $P/page/figure.py table6 . > table6.svg
		$PYTHON - "$strategies" <<-'END'
			import re, sys
			panels = re.split("<svg[^>]*role=.img", open("table6.svg").read())[2:]
			assert len(panels) == 3
			names = [re.findall(r"class=.tick.>([^<]*)", p) for p in panels]
			assert names[0] == sys.argv[1].split() + ["not pre-trained"], names[0]
			assert names[1] == names[0] + ["expression", "50 components"], names[1]
			look = {name: look for look, name in re.findall(r"class=.line (m-[a-z0-9-]+) dash.[^>]*/>(?:<circle[^>]*/>)?<text[^>]*>([^<]*)", panels[1])}
			assert (look["corrmask"], look["random"], look["expression"], look["50 components"]) == ("m-corrmask", "m-random", "m-expression", "m-pca"), look
		END
	done
}

@test "figures: a full disk fails the figure, and leaves no file of its name" {
	mkdir model
	printf 'step\tloss\tgrad_norm\tlr\n1\t3\t1\t.1\n2\t2\t1\t.1\n' > model/train.tsv
	printf '0 1 0\n1 0 1\n0 1 1\n' | tee matrix-A.txt matrix-C.txt > matrix-truth.txt
	run -1 bash -c "python3 -B $P/page/figure.py fig3 . > /dev/full"
	names figure.py space
	ln -s /dev/full model/train.svg.new
	run ! env -u MAKEFLAGS -u MAKELEVEL make -s -f $P/Makefile plot-train MODEL=model
	assert_output --partial "No space left on device"
	assert_equal "$(find model | sort | paste -sd ' ')" "model model/train.tsv"
	run -0 env -u MAKEFLAGS -u MAKELEVEL make -s -f $P/Makefile plot-train MODEL=model
	grep -q "</svg>" model/train.svg
	assert_equal "$(find model | sort | paste -sd ' ')" "model model/train.svg model/train.tsv"
}

@test "colours: every method has one in page.css, for light and dark; arms and runs have those of their methods" {
	shape 'import chart
css = open(os.environ["PAGE"] + "/page.css").read()
light, dark = re.findall(r":root \{(.*?)\}", css, re.S)[:2]
for m in (*chart.METHODS, *chart.MASKS):
    name = re.search(rf"\.m-{m}\b[^{{]*\{{ color: var\(--([\w-]+)\)", css)[1]
    assert f"--{name}: #" in light and f"--{name}: #" in dark, m
for arm, want in {"corrmask-100": "m-corrmask", "corrmask+10": "m-corrmask", "median-corrmask": "m-corrmask", "group-random": "m-random", "pmi-rand": "m-pmi-rand",
                  "pmi+25": "m-pmi", "fixed-0.25": "m-fixed", "naive-bayes": "m-naive-bayes", "other": "c3 shade0"}.items():
    assert chart.tint(arm, 3) == want, (arm, chart.tint(arm, 3))
assert chart.look("corrmask-2.test", 5) == ("m-corrmask", 1) and chart.words("corrmask-2.test") == "CorrMask, seed 2" and chart.words("naive-bayes") == "naive Bayes"'
}
