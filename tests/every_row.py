#!/usr/bin/env python3
"""every_row.py FILE...: below EVERY_ROW(table, N) the compiler counts rows, and does not see a hole. Has each member of the enum that ends with N its row?

A table's rows are named, [MEMBER] = ...
"""
import re
import sys

text = {f: re.sub(r"/\*.*?\*/", "", open(f).read(), flags=re.S) for f in sys.argv[1:]}
enums = {f: [[m.split("=")[0].strip() for m in body.split(",") if m.strip()] for body in re.findall(r"\benum\b[^;{}()]*\{([^{}]*)\}", t)] for f, t in text.items()}
bad = []
for f, t in text.items():
    for table, end in re.findall(r"^EVERY_ROW\((\w+), (\w+)\)", t, re.M):
        ends = lambda files: [e for g in files for e in enums[g] if e and e[-1] == end]
        found = ends([f]) or ends(text)
        body = re.search(rf"\b{table}\[\] = \{{(.*?)\n?\}};", t, re.S)
        rows = re.findall(r"\[(\w+)\] =", body[1]) if body else []
        want = found[0][:-1] if len(found) == 1 else None
        if want is None:
            bad.append(f"{f}: {table}: {len(found)} enums end with {end}, expected one")
        elif sorted(rows) != sorted(want):
            bad.append(f"{f}: {table}: no row [MEMBER] = for {', '.join(sorted(set(want) - set(rows))) or 'each member once'}")
print(*bad, sep="\n", end="\n" if bad else "")
sys.exit(bool(bad))
