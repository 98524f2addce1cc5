"""table.py moa/report DIR DATA LABEL DRUG METHOD...: the table of make moa, from the scores in DIR."""
from table import SIMULATED, as_table, columns, stage_times, values

COLUMNS = {"AUC": "auroc", "recall": "balanced_accuracy", "macro F1": "macro_f1", "sd over draws": "macro_f1_repeat_sd"}


def number(text):
    return "" if text in (None, "nan", "NA") else f"{float(text):.4f}"


def main(folder, data, label, drug, *methods):
    scores = {m: values(f"{folder}/{m}.score.tsv") for m in methods}
    first = scores[methods[0]]
    drugs = {drug_ for of, drug_ in columns(f"{folder}/cells.counts", label, drug) if of not in ("NA", "")}
    print(f"corrmask moa: {data or SIMULATED}, mechanism {label}, drug {drug}")
    print(f"{int(float(first['cells']))} cells, {int(float(first['classes']))} mechanisms, {len(drugs)} drugs; no drug is in both the training and the test cells of a fold\n")
    as_table(f"{folder}/methods.table", "Mechanisms of drugs that the probe has not seen; recall is the mean over mechanisms", [
        ["method", *COLUMNS, "AvgBio"],
        *([m, *(number(v.get(of)) for of in COLUMNS.values()), number(values(f"{folder}/{m}.bio.tsv").get("avg_bio_swept"))] for m, v in scores.items())])
    print("""expression, pca: log-normalised expression, and its 50 principal components; no network
The paper (Sci-Plex, A549, 39 drugs, 9 mechanisms): AUC .881 (Geneformer 316M), .871 (WCED, two tokens), .865 (WCED), .812 (MLM); AvgBio .339, .355, .318, .265
""")
    stage_times(f"{folder}/log")
