"""table.py annotate/samples DIR: the samples of make annotate, one page over all of them, from DIR/samples.runs (steps.sh) and the samples.tsv of the run of each."""
from pathlib import Path

from table import as_table, fields, num, put, rows, tell, tsv, write

TABLE = "Samples: cells, median molecules of a cell, shift from the reference (limit {}), is something promised?, cells unlike the reference, most frequent type"
SHARES = "Share of the cells of each sample that are predicted as each type"


def different(files, names):
    """Names of the samples; of those with the same name what differs in their paths."""
    parts = {i: Path(f).parts for i, (f, name) in enumerate(zip(files, names)) if names.count(name) > 1}
    for end, rest in (0, slice(1, None)), (-1, slice(-1)):
        while parts and all(len(p) > 1 for p in parts.values()) and len({p[end] for p in parts.values()}) == 1:
            parts = {i: p[rest] for i, p in parts.items()}
    return ["/".join(parts.get(i, [name])) for i, name in enumerate(names)]


def main(folder):
    samples, all_runs = [], Path(folder).parent
    for file, status, run, why in fields(f"{folder}/samples.runs"):
        found = rows(all_runs / run / "samples.tsv") if status == "0" else []
        samples.append(found[0] if found else {"sample": Path(file).stem, "status": "failed", "promised": "no", "why_not": why, "folder": run, "file": file})
    for s, name in zip(samples, different([s["file"] for s in samples], [s["sample"] for s in samples])):
        s["sample"] = name
    done = [s for s in samples if s["status"] == "done"]
    types = sorted({key for s in samples for key in s if key.startswith("share:")})
    names = [*dict.fromkeys(key for s in (*done, *samples) for key in s if key not in types), *types]
    write(f"{folder}/samples.tsv", names, *([s.get(key, "NA") for key in names] for s in samples))
    some = [s for s in done if s["promised"] == "yes"]
    tell(folder, f"{len(done)} of {len(samples)} samples have types. Promises are made for each on its own: for {len(some)} something is promised.",
         *(f"{s['sample']} failed: {s['why_not']}" for s in samples if s not in done),
         *(f"Nothing is promised for {s['sample']}: {s['why_not']}." for s in done if s not in some))
    print()
    limits = {num(s["shift_limit"], "%.2f") for s in done}
    head = ["sample", "cells", "depth", "shift", "promised", "unlike", "most frequent"]
    table = [[s["sample"], s.get("cells", "-"), num(s.get("depth", "NA"), "%.0f"), num(s.get("shift", "NA"), "%.2f"), s["promised"] if s in done else s["status"],
              s.get("unlike_cells", "-"), max(types, key=lambda t: float(s.get(t, 0))).removeprefix("share:") if s in done and types else "-"] for s in samples]
    caption = TABLE.format(", ".join(sorted(limits)) or "-")
    as_table(f"{folder}/samples.table", caption, [head, *table], 80)
    page = lambda s: f"../{s['folder']}/report.html" if s in done else "-"
    put(f"{folder}/samples.table", f"# {caption}\n" + tsv([[*head, "page"], *([*row, page(s)] for row, s in zip(table, samples))]))
    put(f"{folder}/shares.table", f"# {SHARES}\n" + tsv([["sample", *(t.removeprefix("share:") for t in types)], *([s["sample"], *(s.get(t, "NA") for t in types)] for s in samples)]))
    print()
    for s in done:
        print(f"  {s['sample']}: {all_runs / s['folder'] / 'report.html'}")
    print(f"{folder}/samples.tsv")
