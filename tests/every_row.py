#!/usr/bin/env python3
"""every_row.py FILE...: EVERY_ROW(table, N) counts rows, and does not see a hole between named ones. Has each member of the enum below N its row?"""
import re
import sys

text = {f: re.sub(r"/\*.*?\*/", "", open(f).read(), flags=re.S) for f in sys.argv[1:]}
bodies = {f: re.findall(r"\benum\b[^;{}()]*\{([^{}]*)\}", t) for f, t in text.items()}
members = lambda body: [m.split("=")[0].strip() for m in body.split(",") if m.strip() and not re.search(r"= -", m)]
enums = {f: [members(b) for b in found] for f, found in bodies.items()}
bad = []
for f, t in text.items():
    for use in re.finditer(r"^\s*EVERY_ROW\((\w+), (\w+)\)", t, re.M):
        table, end = use.groups()
        having = lambda files: [e for g in files for e in enums[g] if end in e]
        found = having([f]) or having(text)
        body = t[t.rindex(f"{table}[] = {{", 0, use.start()):use.start()]
        rows = re.findall(r"\[(\w+)\] =", body)
        if len(found) != 1:
            bad.append(f"{f}: {table}: {len(found)} enums have {end}, expected one")
        elif rows and sorted(rows) != sorted(found[0][:found[0].index(end)]):
            bad.append(f"{f}: {table}: no row [MEMBER] = for {', '.join(sorted(set(found[0][:found[0].index(end)]) - set(rows))) or 'each member once'}")
print(*bad, sep="\n", end="\n" if bad else "")
sys.exit(bool(bad))
