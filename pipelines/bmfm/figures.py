"""Figures of make demo-bmfm, cells along the lineages (figure 3 of the BMFM-RNA paper), and of docs/experiments/bmfm.md."""
from plot import Arm, arms, flows

KINDS = {"exact": "c0", "finer": "c2", "coarser": "c1", "wrong": "c5"}


def lineages(t):
    rows = t("lineages.tsv")
    cells = [(r["label"], r["predicted"], r["kind"], r.number("number")) for r in rows if r["kind"] in KINDS]
    label = next(r for r in rows if r["kind"] == "label")
    return "Cells along the lineages", [
        flows("Test cells: label, and predicted term", cells, KINDS, "Left: labels, with their cells. Right: predicted terms. finer: a term below the label."),
        arms(f"Mean probability of the terms, {label['number']} cells of the label {label['label']}",
             [Arm(r["label"], r.number("number"), look="c2") for r in rows if r["kind"] == "lineage"], "mean probability", bars=True, x_range=(0, 1),
             note="Terms of its lineages, from the top down.")]


def docs_bmfm_ontology(t):
    names = {"wced+moved-hce": "half of the labels a term too high, ontology (moved-hce)", "wced+moved-ce": "the same, cross-entropy (moved-ce)",
             "wced+dropped-ce": "half of the labels dropped, cross-entropy (dropped-ce)", "wced+term-ce": "all labels, cross-entropy (term-ce)", "wced+hce": "all labels, ontology (hce)"}
    rows = [r for r in t("bmfm-ontology.tsv") if r["arm"] in names]

    def of(column, others=lambda r: None):
        return [Arm(names[r["arm"]], r.number(column), r.number(f"{column}_low"), r.number(f"{column}_high"), others=others(r)) for r in rows]
    interval = ("c0", "both", "95 % interval of the mean")
    return "Terms of the ontology", [
        arms("Macro F1 of terms", of("head_macro_f1"), "macro F1", x_range=(0, None), legend=[interval]),
        arms("Exact terms", of("head_exact", lambda r: {"diamond ink": r.number("head_exact") + r.number("head_finer")}), "share of the test cells", x_range=(0, None),
             legend=[interval, ("ink", "diamond", "exact or finer term (no interval)")])]
