"""table.py genes/report DIR DATA CROSS LABELS START...: the table of make genes, from the scores under DIR."""
from table import SIMULATED, as_table, fields, values


def print_table(folder, suffix, caption, starts):
    def number(v, name):
        return f"{float(v[name]):.4f}" if name in v else "-"
    table = [["start", "AUC by token", "Geneformer's", "AUC by gene", "macro F1"]]
    for start in starts:
        v = values(f"{folder}/{start}.{suffix}.tsv")
        pairs = (("auc_fold_mean", "auc_fold_sd"), ("auc_weighted", "auc_weighted_sd"), ("gene_auc_fold_mean", "gene_auc_fold_sd"))
        table.append([start, *(f"{number(v, mean)} ± {number(v, sd)}" for mean, sd in pairs), number(v, "macro_f1")])
    as_table(f"{folder}/{suffix}.table", caption, table)
    print()


def main(folder, data, cross, labels, *starts):
    data, first = data or SIMULATED, values(f"{folder}/{starts[0]}.score.tsv")
    print(f"corrmask classes of genes: {data}, {labels or 'genes of odd or even modules'}")
    print(f"{first['genes']} genes scored in {first['folds']} folds, {first['tokens']} tokens" + (f", positive: {first['positive']}" if "positive" in first else ""))
    if cross:
        print(f"across tissues: the same models on the cells of {cross}, {values(f'{folder}/{starts[0]}.cross.score.tsv')['tokens']} tokens")
    print("".join(row[1] + "\n" for row in fields(f"{folder}/log/sctrain-{starts[0]}-0.report") if row[0] == "warning"))
    print_table(folder, "score", f"{f'Within the tissue: test cells of {data}. ' if cross else ''}Mean and standard deviation over folds", starts)
    if cross:
        print_table(folder, "cross.score", f"Across tissues: cells of {cross}", starts)
    print("mean and standard deviation over folds; Geneformer's are weighted by the points of the ROC curves (ctaprobe(1))")
    print(f"each gene's probabilities: {folder}/START.genes.tsv; curves: {folder}/START.roc.tsv")
