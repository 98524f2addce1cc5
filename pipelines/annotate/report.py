"""table.py annotate/report DIR DATA REFERENCE LABEL COVERAGE: the report of make annotate from the predictions and scores under DIR. sentences.tsv there has its
sentences with their ids."""
import re
from pathlib import Path

from table import as_table, columns, fold, header_lines, plain, put, reported, rows, stage_times, tool, values, word, write

TYPES = ("Types: cells of the reference (ref), F1 and coverage of those that were held out; new cells, those unlike the reference, mean size of the label sets and "
         "mean probability")

SHOWN, MOST = 8, 18  # clusters, and characters of a list in a line
OF = ("coverage", "unknown", "accuracy")  # what may be promised
UNLIKE = ("Clusters of the new cells, the most unlike the reference first (column transfer_unlike). One is always first, whether the reference lacks a type or "
          "not: look at the genes. lacks: marker genes of the predicted type that are low; has more of: genes above that type. unlike.tsv has all, and those of fewer than five cells")


def n(text):
    """The number of a text, 0 of none."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return 0


def percent(x):
    return f"{100 * x:.1f}".removesuffix(".0") + " %"


def plural(name):
    return name + "es" if re.search("(s|x|z|ch|sh)$", name) else name[:-1] + "ies" if re.search("[^aeiou]y$", name) else name + "s"


def several(count, name):
    return f"{count} {name if n(count) == 1 else plural(name)}"


def furthest(found, form):
    """The three types with the largest key, of (key, type, value)."""
    return ", ".join(form(type_, value) for _, type_, value in sorted(found, key=lambda f: -f[0])[:3])


class Sentences:
    """The sentences in their order, each (id, does it hold, text), of what was measured: transfer by ctaprobe transfer, held and new by ctaprobe score, run
    here. A sentence whose value is not there does not hold. The first one says what is promised (promise), or that nothing is (no-promise)."""
    def __init__(self, transfer, held, new, run):
        self.transfer, self.held, self.new, self.run = transfer, held, new, run
        unit = self.t("unit")
        self.cells = unit in ("", "cell")
        self.unit = unit.removesuffix("_id")
        self.units = "cells" if self.cells else plural(self.unit)
        self.coverage, self.rare = self.n("promise:coverage") == 1, self.n("promise:unknown") == 1
        self.right = self.n("promise:accuracy") == 1
        self.wanted, self.few = percent(n(run["coverage"])), percent(self.n("unknown:share"))
        self.marked = self.n("unknown:share") > 0
        self.applied = self.marked and self.n("unknown:applied") == 1

    def t(self, name):
        return self.transfer.get(name, "")

    def n(self, name):
        return n(self.t(name))

    def has(self, name):
        return "nan" not in self.transfer.get(name, "nan")

    def of_types(self, name, *no_types):
        return {key.removeprefix(name): value for key, value in self.transfer.items() if key.startswith(name) and key.removeprefix(name) not in no_types}

    def why(self, of):
        """Why something is not promised, with the donors for the values of their column."""
        return re.sub("values of column '[^']*'", self.units, self.t(f"why:{of}")).replace(f"only 1 {self.units} have", f"only 1 {self.unit} has", 1)

    def promised(self):
        coverage, unknown = self.coverage, self.rare and self.marked
        told = f"label sets contain the true type of about {self.wanted} of the cells whose type is in the reference" if coverage else ""
        if unknown:
            told += (", and " if coverage else "") + f"at most about {self.few} of " + ("these cells" if coverage else "the cells whose type is in the reference") + " are called unknown"
        yield "promise", told, f"Promised for a new {self.unit} like the {several(self.t('units'), self.unit)} of the reference: {told}."
        yield "no-promise", not (coverage or unknown or self.right), f"Nothing is promised: {self.why('nothing')}."
        yield "no-promise-coverage", not coverage and (unknown or self.right), f"No coverage of the label sets is promised: {self.why('coverage')}."
        yield "no-promise-unknown", self.marked and not self.rare and (coverage or self.right), f"No share of unknown cells is promised: {self.why('unknown')}."
        yield "needs", self.cells and not coverage and self.has("units_needed:coverage"), (
            f"To promise a coverage of {self.wanted} takes a reference with {self.t('units_needed:coverage')} donors"
            + ("" if self.rare or not self.marked else f"; to promise that {self.few} are called unknown takes {self.t('units_needed:unknown')} with cells of each type") + ".")

    def measured(self):
        """On the reference."""
        held, units = n(self.held.get("accuracy")), self.units
        there = f"In held-out {units} of the reference, {percent(held)} of the predicted types are right" + (f" (macro F1 {n(self.held['macro_f1']):.2f})" if "macro_f1" in self.held else "")
        same = abs(self.n("expected:accuracy") - held) < 0.02
        yield "right", self.right, there + (f"; expect the same in new {units} like these." if same else ".")
        yield "expect", self.right and not same, (f"Your cells have types in other shares: expect about {percent(self.n('expected:accuracy'))} of them to be right in "
                                                  f"new {units} like these.")
        yield "right-there", not self.right, there + ". Do not expect this in your cells."
        yield "calibration", "ece" in self.held, f"Their probabilities are off by {n(self.held.get('ece')):.3f} on average (expected calibration error)."

    def compared(self):
        """The new cells with the reference."""
        t, limit = self.t, self.n("shift:limit")
        compared = self.has("shift:limit") and self.has("shift")
        differ = compared and self.n("shift") > limit
        yield "shift", differ, (f"The new cells differ from the reference more than its {self.units} do from each other (shift {self.n('shift'):.2f}, limit {limit:.2f}): "
                                "another platform, tissue or treatment?")
        yield "no-shift", compared and not differ, (f"We see no difference between the new cells and the reference beyond that between its {several(t('units'), self.unit)}; "
                                                    f"a distance below {self.n('shift:unseen'):.1f} times theirs would not be seen.")
        yield "shift-unknown", self.cells, "Without donors we cannot tell whether the new cells differ from the reference more than donors do."
        shown = lambda type_, value: f"{type_} ({value:.2g})"
        far = furthest([(n(v), c, n(v)) for c, v in self.of_types("shift:", "limit", "false_alarm", "unseen").items() if self.has("shift:limit") and n(v) > limit], shown)
        yield "shift-types", far, (f"But cells of these types differ more (shift, limit {limit:.2f}): " if compared and not differ
                                   else "Types whose cells differ most (shift): ") + f"{far}."
        new, old, thinned, no_molecules = self.n("depth:new"), self.n("depth:reference"), t("thinned") != "" and self.n("thinned") < 1, t("molecules") == "0"
        yield "depth", self.has("depth:new") and (thinned or 2 * new < old or new > 2 * old), (
            f"New cells have a median of {new:.0f} {'counts' if no_molecules else 'molecules'} of shared genes, reference cells {old:.0f}"
            + (f"; the reference was thinned to {percent(self.n('thinned'))} of its molecules" if thinned else
               ", which are not molecules (transcripts per million, reads?): the reference was not thinned" if no_molecules else "") + ".")
        shallow = furthest([(-n(v), c, n(v)) for c, v in self.of_types("depth_ratio:").items() if n(v) < 0.5], shown)
        yield "depth-types", shallow, f"Types whose new cells have less than half the molecules of the reference (ratio): {shallow}."
        named, few = t("genes:by_symbol"), self.has("genes:shared") and self.n("genes:fraction") < 0.995
        yield "genes", few or n(named) > 0, (
            f"Your file has {several(t('genes:shared'), 'gene')} of the reference ({percent(self.n('genes:fraction'))})"
            + (f", {'all' if n(named) == self.n('genes:shared') else named + ' of them'} found by symbol" if n(named) > 0 else "") + (f", which have {percent(self.n('molecules:fraction'))} of its molecules." if few and 0 < self.n("molecules:fraction") < 1 else "; only these are used." if few else "."))

    def left_out(self):
        """What was, or what was not tested."""
        t, donor = self.t, "donor" if self.cells else self.unit
        aside = ((self.n("set_aside:no_label") + n(self.run.get("no_type")), "without a type"),
                 (self.n("set_aside:unknown_label") + n(self.run.get("unknown_label")), "whose type is called unknown or the like"), (self.n("set_aside:no_group"), f"without a {donor}"))
        aside = ", ".join(f"{plain(count)} {why}" for count, why in aside if count > 0)
        yield "set-aside", aside, f"Cells of the reference that were left out: {aside}."
        rare = self.run.get("rare", "")
        yield "rare", n(rare) > 0, (f"{several(rare, 'cell')} of the reference {'was' if n(rare) == 1 else 'were'} left out: their types have fewer than MIN_CELLS cells. "
                                    "New cells of these types get a wrong type.")
        yield "in-reference", self.n("in_reference") > 0, f"{several(t('in_reference'), 'new cell')} are in the reference too: they get types, but test nothing."
        yield "coarse", self.n("labels:coarse") > 0, (
            f"{several(t('labels:coarse_cells'), 'cell')} of the reference {'has a type' if self.n('labels:coarse_cells') == 1 else 'have types'} that others refine. Coverage was measured on "
            + (f"the {several(t('units:fine'), 'cell' if self.cells else self.unit)} with hardly any of these." if self.n("units:fine") > 0
               else f"the other cells, as no {self.unit} is without these."))
        yield "no-term", self.n("labels:no_term") > 0, (f"{several(t('labels:no_term'), 'type')} of the reference {'matches' if self.n('labels:no_term') == 1 else 'match'} "
                                                        "no term of the ontology.")
        yield "untested", self.n("untested_cells") > 0, (f"{several(t('untested_cells'), 'new cell')} may be of types that only one {'fold' if self.cells else self.unit} has "
                                                         f"({', '.join(self.of_types('untested:'))}), which were never tested on another.")

    def new_cells(self):
        t, run, new, cells = self.t, self.run, self.new, several(self.t("cells"), "new cell")
        are = lambda count: " is" if n(count) == 1 or self.n("cells") == 1 else " are"
        yield "unknown", self.applied and self.n("cells") > 0, (
            f"{t('unknown_cells')} of {cells}{are(t('unknown_cells'))} unlike the reference, and called unknown"
            + ("." if self.rare else f", as UNKNOWN={t('unknown:share')} asks; how many cells of known types that takes is not promised."))
        yield "unlike", self.marked and not self.applied and self.n("unlike_cells") > 0, (
            f"{t('unlike_cells')} of {cells}{are(t('unlike_cells'))} less like the reference than {percent(1 - self.n('unknown:share'))} of its held-out cells of the same type; "
            "they keep their types, as no share of unknown cells is promised (UNKNOWN= calls them unknown all the same).")
        predicted = self.of_types("new:")
        far = furthest([(n(v), c, v) for c, v in self.of_types("unlike:").items() if self.marked and n(v) >= 5 and n(v) >= 0.2 * n(predicted.get(c))],
                       lambda type_, count: f"{count} of {predicted.get(type_, '')} {type_}")
        yield "unlike-types", far, f"Look at these predicted types, many of whose cells are unlike the reference: {far}."
        single = n(run.get("single"))
        yield "set-size", "set_size" in run, (
            ("All label sets have one type" if single == 1 else f"Label sets have {n(run.get('set_size')):.2f} types on average; {percent(single)} have one")
            + ("." if self.coverage else "; that they contain the true type is not promised."))
        yield "terms", self.has("term_classes"), (
            f"transfer_term_name is the finest term that includes the true type of {f'about {self.wanted} of these' if self.coverage else f'at least {self.wanted} of the held-out'} "
            f"cells; on average it includes {self.n('term_classes'):.2f} of the finest types of the reference.")
        yield "markers-elsewhere", run.get("elsewhere"), f"Look at the marker genes of these types, which are stronger in new cells of another type: {run.get('elsewhere')}."
        other, known = new.get("unknown"), n(new.get("cells")) - n(new.get("unknown"))
        if known > 0:
            yield "own-types", True, (
                f"Your file has types of its own in {run.get('label', '')}. Of the {several(plain(known), 'cell')} whose type is in the reference, "
                f"{percent(n(new.get('accuracy')) * n(new['cells']) / known)} have it predicted, {percent(n(new.get('coverage')))} have it in the label set"
                + (f", and {percent(n(new.get('known_called_unknown')))} are called unknown." if self.applied else "."))
        label = run.get("label", "")
        yield "own-names", run.get("names"), (f"Your file has types of its own in {label} ({run.get('names')}), none by a name of the reference: they are not "
                                              f"compared with these. CLUSTERS={label} lists them.")
        yield "own-new", n(other) > 0, (f"{several(other, 'cell')}{' has another type' if n(other) == 1 else ' have other types'}"
                                        + (f", of which {percent(n(new.get('novel_called_unknown')))} are called unknown" if self.applied else "")
                                        + ". Do these names mean types of the reference?")

    def go_on(self):
        drawn = self.run["map"]
        yield "columns", True, (f"annotated.h5ad has in obs transfer_assigned (type{' or unknown' if self.applied else ''}), transfer_predicted, transfer_probability, "
                                f"transfer_label_set, transfer_likeness, transfer_is_unlike, transfer_promised, transfer_unlike, and in obsm {drawn}. In scanpy:")
        yield "scanpy", True, ("sc.pl.umap(adata" if drawn == "X_umap" else f'sc.pl.embedding(adata, "{drawn}"') + ', color="transfer_assigned")'

    def __iter__(self):
        for part in (self.promised, self.measured, self.compared, self.left_out, self.new_cells, self.go_on):
            yield from ([name, text] for name, holds, text in part() if holds)


def score(folder, label, coarse):
    """What ctaprobe score says of the new cells, if they have types: name -> value."""
    out, curves, predicted = (Path(folder, name) for name in ("new.score.tsv", "new.curves.tsv", "new.pred"))
    out.unlink(missing_ok=True)
    curves.unlink(missing_ok=True)
    # A prediction can be finer than a coarse label; types that the reference lacks are not those of its own cells
    if n(coarse) or f"column\t{label}" not in header_lines(predicted) or not any(a == "0" and b not in ("", "NA") for a, b in columns(predicted, "in_reference", label)):
        return {}
    # Cells without a prediction, or with types of other names than the reference's, cannot be compared
    tool("ctaprobe", "score", "-q", "--label", label, "--curves", curves, "-o", out, predicted, may_fail=True)
    scores = values(out)
    if not scores or scores.get("coverage") == "nan":
        out.unlink(missing_ok=True)
        curves.unlink(missing_ok=True)
        names = sorted({b for _, b in columns(predicted, "in_reference", label) if b not in ("", "NA")})
        return {"names": ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")}
    return scores


def types(transfer, held, new, cells):
    """The types, the most frequent first: of the reference, of the cells that were held out, and of the new ones."""
    real = lambda x, digits: "-" if x in ("", None) or "nan" in str(x) else f"{n(x):.{digits}f}"
    f1 = lambda scores, c: real(scores.get(f"f1:{c}"), 2) if n(scores.get(f"n:{c}")) else "-"
    names = [key.removeprefix("train_n:") for key in held if key.startswith("train_n:")]
    for c in sorted(names, key=lambda c: -n(held[f"train_n:{c}"])) + ["unknown"] * (transfer.get("unknown:applied", "") not in ("", "0")):
        known, own = c != "unknown", [(p, s.count("1")) for a, p, s in cells if a == c]
        yield [c, held[f"train_n:{c}"] if known else "-", f1(held, c) if known else "-", real(transfer.get(f"held_out_coverage:{c}"), 2), str(len(own)),
               plain(n(transfer.get(f"unlike:{c}"))) if known else "-", *([f1(new, c) if known else "-"] if new else []),
               real(sum(s for _, s in own) / len(own), 1) if own else "-", real(sum(n(p) for p, _ in own) / len(own), 2) if own and known else "-"]


def elsewhere(path):
    """The types of ten new cells or more, most of whose markers have a higher mean in the new cells of another such type. Genes that hardly a cell of the type
    has in the reference say nothing."""
    found = rows(path)
    rare = {(r["marker_of"], r["rank"]) for r in found if r["class"] == r["marker_of"] and n(r["share"]) < 0.1}
    found = [r for r in found if n(r["new_cells"]) >= 10 and r["class"] != "unknown"]
    most = {}
    for r in found:
        gene = r["marker_of"], r["rank"]
        if gene not in rare and (gene not in most or n(r["new_mean"]) > most[gene][0]):
            most[gene] = n(r["new_mean"]), r["class"]
    for c in dict.fromkeys(r["class"] for r in found):
        at = [where for (of, _), (_, where) in most.items() if of == c]
        others = [where for where in at if where != c]
        if 2 * len(others) > len(at):
            yield f"{c} (in {max(others, key=others.count)})"


def few(names, apart=" "):
    """As many of the first names as fit, at least a part of one."""
    names = names.split(apart)
    while len(names) > 1 and len(apart.join(names)) > MOST:
        names.pop()
    if len(names[0]) <= MOST:
        return apart.join(names) or "-"
    name, space, count = names[0].rpartition(" ")
    return f"{name[:MOST - 3 - len(count)]}.. {count}" if space else count[:MOST]


def clusters(path, own):
    """The first of the list of unlike clusters; small ones, whose means are uncertain, only if they are the user's own."""
    for r in [r for r in rows(path) if own or int(r["cells"]) >= 5][:SHOWN]:
        yield [r["cluster" if own else "place"], r["cells"], few(r["types"], " | "), few(r["lacks"]), few(r["more"])]


def facts(folder, data, transfer, unlike):
    """What a table of samples has of this one: name -> text."""
    cells, promised = n(transfer.get("cells")), [transfer.get(f"promise:{of}", "0") for of in OF]
    rounded = lambda name: "NA" if "nan" in transfer.get(name, "nan") else f"{n(transfer[name]):.4g}"
    first = next((r for r in unlike if int(r["cells"]) >= 5), {})
    count = {key.removeprefix("new:"): n(value) for key, value in transfer.items() if key.startswith("new:")}
    return {"sample": re.sub(r"[.](h5ad|h5|h5mu|loom|zarr)/?$", "", Path(data).name) or "simulated", "status": "done", "cells": plain(cells), "depth": transfer.get("depth:new", "NA"),
            "shift": rounded("shift"), "shift_limit": rounded("shift:limit"), "promised": "yes" if "1" in promised else "no",
            **{f"promise:{of}": p for of, p in zip(OF, promised)}, "why_not": "; ".join(dict.fromkeys(part for of in OF for part in transfer.get(f"why:{of}", "").split("; ") if part)),
            "unlike_cells": transfer.get("unlike_cells", "0"), "unknown_cells": transfer.get("unknown_cells", "0"),
            "unlike_cluster": f"{first['types']}; lacks {first['lacks'] or '-'}; has more of {first['more'] or '-'}" if first else "", "folder": Path(folder).name, "file": data,
            **{f"share:{c}": f"{count.get(c, 0) / cells if cells else 0:.4f}" for c in sorted(key.removeprefix("held_out_coverage:") for key in transfer if key.startswith("held_out_coverage:"))}}


def main(folder, data, reference, label, coverage, own_clusters=""):
    transfer, held = values(f"{folder}/log/ctaprobe-transfer.report"), values(f"{folder}/held-out.score.tsv")
    if reference.endswith(".ref"):       # what scview says of it
        held = {key.replace("cells:", "train_n:", 1): value for key, value in held.items()} | {"accuracy": held["held_out_accuracy"]}
        label, coverage = held["label"], held["coverage"]
    new = score(folder, label, transfer.get("labels:coarse"))
    cells = columns(f"{folder}/new.pred", "assigned", "probability", "in_set")
    sets = [size for *_, s in cells if (size := s.count("1"))]
    sample = f"{folder}/log/scsample-reference.report"
    run = {"label": label, "coverage": coverage, "names": new.pop("names", ""), "map": word(f"{folder}/map") or "X_umap_transfer", "elsewhere": ", ".join(elsewhere(f"{folder}/markers.tsv")),
           "no_type": reported(sample, "set_aside:no_label"), "unknown_label": reported(sample, "set_aside:unknown_label"), "rare": reported(sample, "dropped:min-class"),
           **({"set_size": sum(sets) / len(sets), "single": sets.count(1) / len(sets)} if sets else {})}
    of_sample = facts(folder, data, transfer, rows(f"{folder}/unlike.tsv"))
    write(f"{folder}/samples.tsv", [*of_sample], [*of_sample.values()])
    said = [*Sentences(transfer, held, new, run)]
    write(f"{folder}/sentences.tsv", ["id", "sentence"], *said)
    put(f"{folder}/findings.txt", "".join(text + "\n" for _, text in said))
    reference = f"{reference or 'simulated cells of other donors'}, label {label}, {transfer.get('reference_cells', '')} cells, {transfer.get('classes', '')} types"
    for text in (*(text for _, text in said), "", f"corrmask annotate: {data or 'simulated cells'}", f"reference: {reference}", ""):
        print("\n  ".join(fold(text, 78)))
    as_table(f"{folder}/types.table", TYPES, [["type", "ref", "F1", "cover", "new", "unlike", *(["F1 new"] if new else []), "set", "prob"], *types(transfer, held, new, cells)], 80)
    print()
    unlike = [*clusters(f"{folder}/unlike.tsv", own_clusters)]
    if unlike:
        as_table(f"{folder}/unlike.table", UNLIKE, [[own_clusters or "place", "cells", "predicted", "lacks", "has more of"], *unlike], 80)
        print()
    stage_times(f"{folder}/log")
