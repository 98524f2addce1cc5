"""Figures of make ties: the loss beside what a lookup reaches, the partner reliance, and cell types, by the order of the genes and the masks."""
from chart import METHODS, tint
from plot import Arm, arms

ORDERS = {"median": "median order", "random": "random order", "group": "shared positions", "value": "values"}
MASKS = {"runs": "masks over runs", **METHODS}
ENDS = ("← copies less", "copies more →")


def words(arm):
    order, _, masks = arm.partition("-")
    return METHODS.get(arm) or f"{ORDERS.get(order, order)}, {MASKS.get(masks, masks)}"


def ties(t):
    points, mean = t("points.tsv"), {(r["metric"], r["arm"]): r.number("mean") for r in t("summary.tsv")}
    there = list(dict.fromkeys(r["arm"] for r in points))
    genes = [a for a in there if a not in METHODS and not a.startswith("value-")]

    def row(arm, metric):
        seeds = [r.number("value") for r in points if (r["arm"], r["metric"]) == (arm, metric) and r["value"] != "NA"]
        return Arm(words(arm), mean.get((metric, arm)), look=tint(arm, 2), seeds=seeds)

    def loss(arm):
        row_of = row(arm, "loss")
        row_of.others = {"ink dash2": mean.get(("frequency", arm)), "m-expression": mean.get(("medians", arm)), row_of.look: row_of.value}
        return row_of
    note = "Points: seeds. Bars: means."
    return "Order of the genes and masks", [
        arms("Loss of a masked token under random masks at test", [loss(a) for a in genes], "loss (nats)", note="Points: seeds. Lines of their colour: means.",
             legend=[("ink dash2", "line", "gene frequencies"), ("m-expression", "line", "lookup"), ("m-corrmask", "dots", "CorrMask"),
                     ("m-random", "dots", "random masks")]),
        arms("Partner reliance R", [row(a, "R") for a in genes], "R (nats)", bars=True, note=note, ends=ENDS),
        *(arms(title, [row(a, metric) for a in there], "macro F1", bars=True, x_range=(0, None), note=note) for metric, title in (
            ("macro_f1", "Cell types, probe from all labels"), ("few_macro_f1", "Cell types, probe from few labels"),
            ("knn_macro_f1", "Cell types, 15 nearest neighbours")))]


def docs_forest(t):
    f1 = {r["data"] + r["method"]: r for r in t("ties-summary.tsv") if r["training"] == "long"}
    rows = [r for r in t("ties-differences.tsv") if r["training"] == "long" and r["method"] == "median order, CorrMask"]

    def arm(r, metric):
        """With the best method without a network minus random masks."""
        best = max((f1[r["data"] + m].number(metric) or 0 for m in ("expression", "50 components", "naive Bayes")), default=0)
        others = {"diamond m-expression": best - f1[r["data"] + "median order, random masks"].number(metric)} if metric != "R" else None
        return Arm(r["data"], *r.numbers("mean split_low split_high"), "m-corrmask", others=others)
    diamond = ("m-expression", "diamond", "best method without a network minus random masks")
    ours = ("m-corrmask", "both", "CorrMask minus random masks, 95 % interval, not corrected for the number of comparisons")
    return "CorrMask minus random masks in five sets of cells", [
        arms(title, [arm(r, m) for r in rows if r["metric"] == m], "difference", legend=legend, ends=ends) for m, title, legend, ends in (
            ("R", "Partner reliance R (nats): lower on four of five", [ours], ENDS), ("few_macro_f1", "Macro F1, five labelled cells per type: not decided", [ours, diamond], None),
            ("macro_f1", "Macro F1, all labels: no difference found", [ours, diamond], None))]
