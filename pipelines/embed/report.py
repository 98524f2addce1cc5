"""table.py embed/report DIR DATA MODEL LABEL: the report of make embed from the streams and the logs under DIR."""
import re
from pathlib import Path

from table import SIMULATED, columns, header_lines, lines, put, reported, sizes, stage_times, warnings


def findings(folder):
    logs = [f"{folder}/log/{name}.report" for name in ("h5tok", "rankenc")]
    first = lambda name: reported(logs[0], name) or reported(logs[1], name)
    cells, mapped = (sizes(f"{folder}/embedding.{kind}") for kind in ("emb", "map"))
    width = len(columns(f"{folder}/embedding.emb", "x", n=1)[0][0].split())
    yield (f"{cells} cells, {width} numbers each, in obsm/X_corrmask of embedded.h5ad; a map of {'them' if mapped == cells else f'{mapped} of them'} "
           "in obsm/X_umap.")
    share = float(first("percent_of_counts") or 0)
    yield f"{share:.1f} % of the counts are of genes that the model knows; {100 - share:.1f} % are lost."
    if first("dropped:no_gene") not in ("", "0"):
        yield f"{first('dropped:no_gene')} cells have no gene that the model knows: they have no embedding (NaN)."
    notes = [line for line in lines(f"{folder}/log/scview-into.log") if re.match("scview: note: .*: obsm ", line)][:1]
    replaced = [f"obsm/{name}" for line in notes for name in re.findall(r"(X_[a-z]+) \(replaced\)", line)]
    if replaced:
        yield f"Replaced in embedded.h5ad: {' and '.join(replaced)} of your file, which is itself unchanged."


def main(folder, data, model, label):
    said = "".join(s + "\n" for s in findings(folder))
    put(f"{folder}/findings.txt", said)
    print(f"corrmask embed: {data or SIMULATED}\nmodel: {model}\n{said}", end="")
    warnings(*Path(folder, "log").rglob("*.report"))
    if f"column\t{label}" not in header_lines(f"{folder}/embedding.emb"):
        print(f"The cells have no column {label}: the map has one colour. LABEL= names another column.")
    print()
    stage_times(f"{folder}/log")
