"""Figures of make ties: the loss beside what a lookup reaches, the partner reliance, and cell types, by the order of the genes and the masks."""
from chart import METHODS, tint
from plot import Arm, arms

ORDERS = {"median": "median order", "random": "random order", "group": "shared positions", "value": "values"}
MASKS = {"runs": "masks over runs", **METHODS}


def words(arm):
    order, dash, masks = arm.partition("-")
    return METHODS.get(arm) or f"{ORDERS.get(order, order)}, {MASKS.get(masks, masks)}"


def ties(t):
    points, means = t("points.tsv"), {(r["metric"], r["arm"]): r.number("mean") for r in t("summary.tsv")}
    there = list(dict.fromkeys(r["arm"] for r in points))
    networks = [a for a in there if a not in METHODS]
    genes = [a for a in networks if not a.startswith("value-")]

    def seeds(arm, metric):
        return tuple(r.number("value") for r in points if r["arm"] == arm and r["metric"] == metric and r.number("value") is not None)

    def rows(some, metric):
        return [Arm(words(a), means.get((metric, a)), look=tint(a, 2), seeds=seeds(a, metric)) for a in some]
    note = "Points: seeds. Bars: means."
    loss = [Arm(words(a), look=tint(a, 2), seeds=seeds(a, "loss"), others={"ink dash2": means.get(("frequency", a)), "m-expression": means.get(("medians", a)),
                                                                        tint(a, 2): means.get(("loss", a))}) for a in genes]
    return "Order of the genes and masks", [
        arms("Loss of a masked token under random masks at test", loss, "loss (nats)", note="Points: seeds. Lines of their colour: means.",
             legend=[("ink dash2", "line", "gene frequencies"), ("m-expression", "line", "lookup"), ("m-corrmask", "dots", "CorrMask"), ("m-random", "dots", "random masks")]),
        arms("Partner reliance R", rows(genes, "R"), "R (nats)", bars=True, note=note, ends=("← copies less", "copies more →")),
        *(arms(title, rows(there, metric), "macro F1", bars=True, x_range=(0, None), note=note) for metric, title in (
            ("macro_f1", "Cell types, probe from all labels"), ("few_macro_f1", "Cell types, probe from few labels"),
            ("knn_macro_f1", "Cell types, 15 nearest neighbours")))]


def docs_forest(t):
    rows, best, base = [], {}, {}
    names = {"R": "Partner reliance R (nats)", "few_macro_f1": "Macro F1, five labels a class", "macro_f1": "Macro F1, all labels"}
    for r in t("ties-summary.tsv"):
        if r["training"] == "long" and r["method"] in ("expression", "50 components", "naive Bayes", "median order, random masks"):
            for m in ("few_macro_f1", "macro_f1"):
                k = r["data"], m
                if "masks" in r["method"]:
                    base[k] = r.number(m)
                else:
                    best[k] = max(r.number(m), best.get(k, 0))
    for r in t("ties-differences.tsv"):
        if r["training"] == "long" and r["method"] == "median order, CorrMask" and r["metric"] in names:
            k = r["data"], r["metric"]
            rows.append((r["metric"], Arm(r["data"], r.number("mean"), r.number("split_low"), r.number("split_high"), "m-corrmask",
                                          others={"diamond m-expression": best[k] - base[k]} if k in best else None)))
    legend = [("m-corrmask", "both", "CorrMask minus random masks, 95 % interval, not corrected for the number of comparisons"),
              ("m-expression", "diamond", "best method without a network minus random masks")]
    return "CorrMask minus random masks in five sets of cells", [
        arms(name, [row for metric, row in rows if metric == m], "difference", legend=legend if m == "R" else legend[1:],
             ends=("← copies less", "copies more →") if m == "R" else None) for m, name in names.items()]
