# The sentences of make annotate's report, each where its condition holds: say(ID, CONDITION, SENTENCE), in the order of the report.
#     awk -f sentences.awk of=transfer REPORT of=held SCORES of=new SCORES of=run VALUES      prints ID and sentence, a tab between them
# The tables have a name and a value: REPORT is that of ctaprobe transfer, SCORES are those of ctaprobe score, VALUES are what report.sh adds. A
# sentence of a value that is not there is left out. The first sentence says what is promised (promise), or that nothing is (no-promise).
BEGIN { FS = "\t" }
{ v[of, $1] = $2 }
of == "transfer" && sub(/^shift:/, "", $1) && $1 !~ /^(limit|false_alarm|unseen)$/ { shift[$1] = $2 }
of == "transfer" && sub(/^depth_ratio:/, "", $1) { depth[$1] = $2 }
of == "transfer" && sub(/^new:/, "", $1) { predicted[$1] = $2 }
of == "transfer" && sub(/^unlike:/, "", $1) { unlike[$1] = $2 }
of == "transfer" && sub(/^untested:/, "", $1) { untested = untested (untested ? ", " : "") $1 }

function t(name) { return ("transfer", name) in v ? v["transfer", name] : "" }
function has(name) { return ("transfer", name) in v && t(name) !~ /nan/ }
function say(id, holds, sentence) { if (holds) print id "\t" sentence }
function percent(x) { x = sprintf("%.1f", 100 * x); sub(/\.0$/, "", x); return x " %" }
# The cells that were set aside for a reason, "" for none; a list without what is ""
function part(n, text) { return n > 0 ? n text : "" }
function listed(a, b) { return a (a != "" && b != "" ? ", " : "") b }
function plural(word) { return word ~ /(s|x|z|ch|sh)$/ ? word "es" : word ~ /[^aeiou]y$/ ? substr(word, 1, length(word) - 1) "ies" : word "s" }
# The reason why something is not promised, with the donors for the values of their column
function why(of,    s) { s = t("why:" of); gsub("values of column '[^']*'", units, s); sub("only 1 " units " have", "only 1 " unit " has", s); return s }
function several(n, word) { return n " " (n == 1 ? word : plural(word)) }
# The types whose value is beyond the limit (below: 1: under it), the furthest first, at most three
function beyond(of_type, limit, below,    c, best, list, n, done) {
	for (n = 0; n < 3; n++) {
		best = ""
		for (c in of_type)
			if (!(c in done) && of_type[c] != "nan" && (below ? of_type[c] + 0 < limit : of_type[c] + 0 > limit) &&
				(best == "" || (below ? of_type[c] + 0 < of_type[best] + 0 : of_type[c] + 0 > of_type[best] + 0)))
				best = c
		if (best == "")
			break
		done[best] = 1
		list = list (n ? ", " : "") best sprintf(" (%.2g)", of_type[best])
	}
	return list
}

# "384 of 388 CD14+ Monocyte": the predicted types of which a fifth of the new cells or more are unlike the reference, those with the most first, at most three
function unlike_types(    c, best, list, n, done) {
	for (n = 0; n < 3; n++) {
		best = ""
		for (c in unlike)
			if (!(c in done) && unlike[c] >= 5 && unlike[c] >= 0.2 * predicted[c] && (best == "" || unlike[c] + 0 > unlike[best] + 0))
				best = c
		if (best == "")
			break
		done[best] = 1
		list = list (n ? ", " : "") unlike[best] " of " predicted[best] " " best
	}
	return list
}

END {
	unit = t("unit")
	cells = unit == "" || unit == "cell"
	sub(/_id$/, "", unit)
	units = cells ? "cells" : plural(unit)
	coverage = t("promise:coverage") == 1
	rare = t("promise:unknown") == 1
	wanted = percent(v["run", "coverage"])
	few = percent(t("unknown:share"))
	marked = t("unknown:share") > 0
	applied = marked && t("unknown:applied") == 1

	# What is promised
	in_sets = coverage ? "label sets contain the true type of about " wanted " of the cells whose type is in the reference" : ""
	called = rare && marked ? (coverage ? ", and at most about " few " of these cells" : "at most about " few " of the cells whose type is in the reference") " are called unknown" : ""
	say("promise", in_sets called != "", "Promised for a new " unit " like the " several(t("units"), unit) " of the reference: " in_sets called ".")
	say("no-promise", !coverage && !(rare && marked) && t("promise:accuracy") != 1, "Nothing is promised: " why("coverage") ".")
	say("no-promise-coverage", !coverage && (rare && marked || t("promise:accuracy") == 1), "No coverage of the label sets is promised: " why("coverage") ".")
	say("no-promise-unknown", marked && !rare && (coverage || t("promise:accuracy") == 1), "No share of unknown cells is promised: " why("unknown") ".")
	say("needs", cells && !coverage && has("units_needed:coverage"), "To promise a coverage of " wanted " takes a reference with " t("units_needed:coverage") " donors" \
		(rare || !marked ? "" : "; to promise that " few " are called unknown takes " t("units_needed:unknown") " with cells of each type") ".")

	# What was measured on the reference
	accuracy = percent(v["held", "accuracy"]) " of the predicted types are right (macro F1 " sprintf("%.2f", v["held", "macro_f1"]) ")"
	same = t("expected:accuracy") - v["held", "accuracy"]
	same = same < 0.02 && same > -0.02
	say("right", t("promise:accuracy") == 1, "In held-out " units " of the reference, " accuracy (same ? "; expect the same in new " units " like these." : "."))
	say("expect", t("promise:accuracy") == 1 && !same, "Your cells have types in other shares: expect about " percent(t("expected:accuracy")) " of them to be right in new " units " like these.")
	say("right-there", t("promise:accuracy") != 1, "In held-out " units " of the reference, " accuracy ". Do not expect this in your cells.")
	say("calibration", ("held", "ece") in v, "Their probabilities are off by " sprintf("%.3f", v["held", "ece"]) " on average (expected calibration error).")

	# How the new cells compare with the reference
	compared = has("shift:limit") && has("shift")
	differ = compared && t("shift") + 0 > t("shift:limit") + 0
	limit = sprintf("%.2f", t("shift:limit"))
	say("shift", differ, "The new cells differ from the reference more than its " units " do from each other (shift " sprintf("%.2f", t("shift")) ", limit " limit \
		"): another platform, tissue or treatment?")
	say("no-shift", compared && !differ, "We see no difference between the new cells and the reference beyond that between its " several(t("units"), unit) "; a distance below " \
		sprintf("%.1f", t("shift:unseen")) " times theirs would not be seen.")
	say("shift-unknown", cells, "Without donors we cannot tell whether the new cells differ from the reference more than donors do.")
	far = has("shift:limit") ? beyond(shift, t("shift:limit")) : ""
	say("shift-types", far != "", (compared && !differ ? "But cells of these types differ more (shift, limit " limit "): " : "Types whose cells differ most (shift): ") far ".")
	thin = t("thinned") != "" && t("thinned") < 1
	say("depth", has("depth:new") && (thin || 2 * t("depth:new") < t("depth:reference") || t("depth:new") > 2 * t("depth:reference")), \
		"New cells have a median of " sprintf("%.0f", t("depth:new")) " " (t("molecules") == "0" ? "counts" : "molecules") " of shared genes, reference cells " sprintf("%.0f", t("depth:reference")) \
		(thin ? "; the reference was thinned to " percent(t("thinned")) " of its molecules" : \
		t("molecules") == "0" ? ", which are not molecules (transcripts per million, reads?): the reference was not thinned" : "") ".")
	shallow = beyond(depth, 0.5, 1)
	say("depth-types", shallow != "", "Types whose new cells have less than half the molecules of the reference (ratio): " shallow ".")
	named = t("genes:by_symbol")
	few_genes = has("genes:shared") && t("genes:share") < 0.995
	say("genes", few_genes || named > 0, "Your file has " several(t("genes:shared"), "gene") " of the reference (" percent(t("genes:share")) ")" \
		(named > 0 ? ", " (named == t("genes:shared") ? "all" : named " of them") " found by symbol" : "") (few_genes ? "; only these are used." : "."))

	# What was left out, or not tested
	no_type = t("set_aside:no_label") + v["run", "no_type"]
	no_word = t("set_aside:unknown_label") + v["run", "unknown_label"]
	aside = no_type + no_word + t("set_aside:no_group")
	say("set-aside", aside > 0, "Cells of the reference that were left out: " listed(listed(part(no_type, " without a type"), \
		part(no_word, " whose type is called unknown or the like")), part(t("set_aside:no_group"), " without a " (cells ? "donor" : unit))) ".")
	say("rare", v["run", "rare"] > 0, several(v["run", "rare"], "cell") " of the reference " (v["run", "rare"] == 1 ? "was" : "were") \
		" left out: their types have fewer than MIN_CELLS cells. New cells of these types get a wrong type.")
	say("in-reference", t("in_reference") > 0, several(t("in_reference"), "new cell") " are in the reference too: they get types, but test nothing.")
	say("coarse", t("labels:coarse") > 0, several(t("labels:coarse_cells"), "cell") " of the reference " (t("labels:coarse_cells") == 1 ? "has a type" : "have types") \
		" that others refine. Coverage was measured on " (t("units:fine") > 0 ? "the " several(t("units:fine"), cells ? "cell" : unit) " with hardly any of these." : \
		"the other cells, as no " unit " is without these."))
	say("no-term", t("labels:no_term") > 0, several(t("labels:no_term"), "type") " of the reference " (t("labels:no_term") == 1 ? "matches" : "match") " no term of the ontology.")
	say("untested", t("untested_cells") > 0, several(t("untested_cells"), "new cell") " may be of types that only one " (cells ? "fold" : unit) \
		" has (" untested "), which were never tested on another.")

	# The new cells
	say("unknown", applied && t("cells") > 0, t("unknown_cells") " of " several(t("cells"), "new cell") (t("unknown_cells") == 1 || t("cells") == 1 ? " is" : " are") \
		" unlike the reference, and called unknown" (rare ? "." : ", as UNKNOWN=" t("unknown:share") " asks; how many cells of known types that takes is not promised."))
	say("unlike", marked && !applied && t("unlike_cells") > 0, t("unlike_cells") " of " several(t("cells"), "new cell") (t("unlike_cells") == 1 || t("cells") == 1 ? " is" : " are") \
		" less like the reference than " percent(1 - t("unknown:share")) " of its held-out cells of the same type; they keep their types, as no share of unknown cells is promised (UNKNOWN= calls them unknown all the same).")
	of_types = marked ? unlike_types() : ""
	say("unlike-types", of_types != "", "Look at these predicted types, many of whose cells are unlike the reference: " of_types ".")
	say("set-size", ("run", "set_size") in v, (v["run", "single"] == 1 ? "All label sets have one type" : \
		"Label sets have " sprintf("%.2f", v["run", "set_size"]) " types on average; " percent(v["run", "single"]) " have one") \
		(coverage ? "." : "; that they contain the true type is not promised."))
	say("terms", has("term_classes"), "transfer_term_name is the finest term that includes the true type of " (coverage ? "about " wanted " of these cells" : \
		"at least " wanted " of the held-out cells") "; on average it includes " sprintf("%.2f", t("term_classes")) " of the finest types of the reference.")
	say("markers-elsewhere", v["run", "elsewhere"] != "", "Look at the marker genes of these types, which are stronger in new cells of another type: " \
		v["run", "elsewhere"] ".")
	known = v["new", "cells"] - v["new", "unknown"]
	say("own-types", known > 0, "Your file has types of its own in " v["run", "label"] ". Of the " several(known, "cell") " whose type is in the reference, " \
		percent(known > 0 ? v["new", "accuracy"] * v["new", "cells"] / known : 0) " have it predicted, " percent(v["new", "coverage"]) " have it in the label set" \
		(applied ? ", and " percent(v["new", "known_called_unknown"]) " are called unknown." : "."))
	say("own-new", v["new", "unknown"] > 0, several(v["new", "unknown"], "cell") (v["new", "unknown"] == 1 ? " has another type" : " have other types") \
		(applied ? ", of which " percent(v["new", "novel_called_unknown"]) " are called unknown" : "") ". Do these names mean types of the reference?")

	# How to go on
	map = v["run", "map"]
	say("columns", 1, "annotated.h5ad has in obs transfer_assigned (type" (applied ? " or unknown" : "") "), transfer_predicted, transfer_probability, transfer_label_set, " \
		"transfer_likeness, and in obsm " map ". In scanpy:")
	say("scanpy", 1, (map == "X_umap" ? "sc.pl.umap(adata" : "sc.pl.embedding(adata, \"" map "\"") ", color=\"transfer_assigned\")")
}
