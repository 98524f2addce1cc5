#!/usr/bin/env python3
"""What the arms of experiments are, from arms.tsv: an arm is the name of a row, and parts that are rows too, as wced+r2mae+hce.

    arms.py check EXPERIMENT ARM...      what is wrong with these, if anything
    arms.py set EXPERIMENT ARM           lines for bash that set task, cells and options (what is wrong, with exit status 1): masks, plain_masks
                                         (without the parts of the name) of maskgen, learn of sctrain, embed of scembed or the command of screduce;
                                         graph_options of depgraph, for a graph of the arm's own

In a name, N is a number, N% a percentage and COL a column, and stands for itself in the row. <NAME>: the same column of another row. GRAPH, PMI,
SHUFFLED, ONTOLOGY and SIZE are variables of bash.
of: the experiments that have the row; parts: kinds of parts that may follow, in this order, one of each; of a part its own kind.
"""
import re
import shlex
import sys
from pathlib import Path

VALUES = {"N": r"\d*[.]?\d+", "N%": r"\d{1,2}|100|0\d\d", "COL": r"\S+"}
VARIABLES = ["GRAPH", "PMI", "SHUFFLED", "ONTOLOGY"]


class Wrong(Exception):
    pass


class Arms:
    def __init__(self, experiment):
        head, *table = [line.split("\t") for line in Path(__file__).with_name("arms.tsv").read_text(encoding="utf-8").splitlines()]
        self.all = [dict(zip(head, ("" if x == "-" else x for x in row))) for row in table]
        self.own = [row for row in self.all if experiment in row["of"].split(",")]

    @staticmethod
    def value(row, name):
        """What N, N% or COL of the row is in this name, with its word; None if it is another row's."""
        before, word, after = re.fullmatch("(.*?)(N%|N|COL|$)(.*)", row["arm"]).groups()
        found = re.fullmatch(f"{re.escape(before)}({VALUES.get(word, '')}){re.escape(after)}", name)
        return found and (word, f"{int(found[1]) / 100:.6g}" if word == "N%" else found[1])

    def find(self, name, rows):
        """The row of this name, its values filled in, and those of the rows that it names."""
        for row in rows:
            value = self.value(row, name)
            if value:
                filled = {column: text.replace(*value) if value[0] else text for column, text in row.items()}
                return {column: re.sub("<([^>]*)>", lambda m, c=column: self.find(m[1], self.all)[c], text) for column, text in filled.items()}
        return None

    def arm(self, name):
        first, *parts = name.split("+")
        arm = self.find(first, self.own)
        if not arm:
            raise Wrong(f"unknown arm '{name}' (expected {', '.join(row['arm'] for row in self.own if row['arm'][0] != '+')})")
        arm["alone"], kinds = arm["maskgen"], arm["parts"].split(",") if arm["parts"] else []
        left = kinds
        for part in (self.find("+" + p, self.own) or p for p in parts):
            if isinstance(part, str):
                raise Wrong(f"unknown part '+{part}' of arm '{name}'")
            if part["parts"] not in left:
                raise Wrong(f"arm '{name}': expected {first}" + ("".join(f"[+{kind}]" for kind in kinds) or " without parts"))
            left = left[left.index(part["parts"]) + 1:]
            for column in ("depgraph", "maskgen", "sctrain"):
                arm[column] = f"{arm[column]} {part[column]}".strip()
            arm["vectors"] = part["vectors"] or arm["vectors"]
        return arm

    def check(self, names):
        """No two are the same network and measured alike."""
        seen = {}
        for name in names:
            arm = self.arm(name)
            what = (*(arm[c] for c in ("task", "cells", "depgraph", "maskgen", "alone", "sctrain", "vectors")), name.endswith("+tuned"))
            if what in seen:
                raise Wrong(f"arm '{name}' is {seen[what]}")
            seen[what] = name
        return ""


def bash(arm):
    """Lines that set the variables of bash."""
    yield f"task={arm['task']} cells={arm['cells'].replace('SIZE', '${SIZE:-}')}"
    for variable, column in (("graph_options", "depgraph"), ("masks", "maskgen"), ("plain_masks", "alone"), ("learn", "sctrain"), ("embed", "vectors")):
        words = (f'"${w}"' if w in VARIABLES else shlex.quote(w) for w in arm[column].split())
        yield f"{variable}=({' '.join(words)})"


if __name__ == "__main__":
    if not (sys.argv[1:2] == ["check"] and len(sys.argv) > 2 or sys.argv[1:2] == ["set"] and len(sys.argv) == 4):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    try:
        arms = Arms(sys.argv[2])
        print(end=arms.check(sys.argv[3:]) if sys.argv[1] == "check" else "\n".join([*bash(arms.arm(sys.argv[3])), ""]))
    except Wrong as wrong:
        print(wrong)
        sys.exit(sys.argv[1] == "set")
