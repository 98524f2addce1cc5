"""table.py fig3/table FILE...: mean and standard deviation over the simulations, one file each."""
from table import fields, means, num

METHODS = {"A": "adjacency A", "C": "co-occurrence C", "npmi": "NPMI of neighbours in rank (depgraph --pmi)",
           "graph": "Algorithm 1, 50 neighbours (edge or none)", "all": "Algorithm 1, any number of neighbours (edge or none)"}


def main(first, *others):
    table = [["arm", "auroc", "edges", "within"], *([*row, *["NA"] * (4 - len(row))] for f in (first, *others) for row in fields(f))]
    of = {(r["value"], r["arm"]): r for r in means(None, table, "--metrics", "auroc,edges,within")}
    n = int(of["auroc", table[-1][0]]["n"])
    print("Recovery of modules (CorrMask paper, figure 3, appendix B.1): 1,000 genes in 5 modules, 1,000 cells of 100 tokens")
    print(f"AUROC of gene pairs within a module against pairs between modules, over {n} simulation{'s' * (n != 1)}\n")
    print(f"{'':56} {'mean':>7} {'sd':>8} {'edges':>9} {'in a module':>11}")
    for arm, name in METHODS.items():
        auroc, edges, within = (of[value, arm] for value in ("auroc", "edges", "within"))
        print(f"{name:56} {float(auroc['mean']):7.4f} {num(auroc['sd'], '%.4f'):>8}"
              + (f" {float(edges['mean']):9.0f} {float(within['mean']):11.4f}" if edges["mean"] != "NA" else ""))
    print()
    edges, kept = (of["edges", arm]["mean"] for arm in ("all", "graph"))
    if edges != "NA" and float(edges) > 0:
        print(f"With 50 neighbours, Algorithm 1 keeps {100 * float(kept) / float(edges):.0f} % of its edges. Pairs without an edge are ties.")
    print('The paper shows pictures and no numbers: A "partially recovers structure", C "reconstructs modular signal strongly".')
