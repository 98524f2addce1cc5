"""Figures of make demo-bmfm, cells along the lineages (figure 3 of the BMFM-RNA paper), and of docs/experiments/bmfm.md."""
from plot import Arm, arms, flows

KINDS = {"exact": "c0", "finer": "c2", "coarser": "c1", "wrong": "c5"}
NAMES = {"wced+moved-hce": "half of the labels a term too high, ontology (moved-hce)", "wced+moved-ce": "the same, cross-entropy (moved-ce)",
         "wced+dropped-ce": "half of the labels dropped, cross-entropy (dropped-ce)", "wced+term-ce": "all labels, cross-entropy (term-ce)",
         "wced+hce": "all labels, ontology (hce)"}
INTERVAL = ("c0", "both", "95 % interval of the mean")


def lineages(t):
    rows = t("lineages.tsv")
    label = next(r for r in rows if r["kind"] == "label")
    return "Cells along the lineages", [
        flows("Test cells: label, and predicted term", [(r["label"], r["predicted"], r["kind"], r.number("number")) for r in rows if r["kind"] in KINDS],
              KINDS, "Left: labels, with their cells. Right: predicted terms. finer: a term below the label."),
        arms(f"Mean probability of the terms, {label['number']} cells of the label {label['label']}",
             [Arm(r["label"], r.number("number"), look="c2") for r in rows if r["kind"] == "lineage"], "mean probability", bars=True, x_range=(0, 1),
             note="Terms of its lineages, from the top down.")]


def docs_bmfm_ontology(t):
    rows = [r for r in t("bmfm-ontology.tsv") if r["arm"] in NAMES]
    exact = [Arm(NAMES[r["arm"]], *r.numbers("head_exact head_exact_low head_exact_high"), others={"diamond ink": sum(r.numbers("head_exact head_finer"))})
             for r in rows]
    f1 = [Arm(NAMES[r["arm"]], *r.numbers("head_macro_f1 head_macro_f1_low head_macro_f1_high")) for r in rows]
    return "Terms of the ontology", [
        arms("Macro F1: the ontology loss finds fine types", f1, "macro F1", x_range=(0, None), legend=[INTERVAL]),
        arms("Exact or finer terms: most with the ontology loss", exact, "fraction of the test cells", x_range=(0, None),
             legend=[INTERVAL, ("ink", "diamond", "exact or finer term (no interval)")])]
