#!/usr/bin/env python3
"""Who uses each option? A line for each tool, command and option of --help: in how many files of each part of the tree it occurs.

    BIN=bin tests/option_users.py >users.tsv         the last line has the numbers of options

A file counts if it names the tool and the option; a page of the manual, which names every option, does not count.
"""
import os, re, subprocess, sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("BIN", TOP / "bin"))
PARTS = {"pipelines": ["pipelines"], "examples": ["examples", "README.md", "python"], "docs": ["docs"], "bench": ["tests/bench"],
         "tests": ["tests/*.bats", "tests/*.*", "tests/slurm/*", "tests/faults/*", "tests/ref/*"]}
ROW = re.compile(r"^  (?:-(.), |    )--([a-z0-9-]+)")


def help_of(tool, *command):
    return subprocess.run([BIN / tool, *command, "--help"], capture_output=True, text=True, check=True).stdout


def options(text):
    """(letter, name) of the options of a help text that are the command's own."""
    return [m.groups() for m in map(ROW.match, text.split("\nCommon options:")[0].splitlines()) if m]


def files(patterns):
    for pattern in patterns:
        for path in TOP.glob(pattern):
            yield from (p for p in (path.rglob("*") if path.is_dir() else [path]) if p.is_file() and p.suffix not in (".svg", ".html", ".png"))


def commands():
    for line in (TOP / "src/tools.def").read_text().splitlines():
        if m := re.match(r'TOOL\("?([a-z0-9]+)', line) or re.match(r"\W*([a-z0-9]+)", line):
            tool = m[1]
            if (BIN / tool).exists():
                text = help_of(tool)
                subs = re.findall(r"^  ([a-z][a-z-]*)  ", text.split("Commands")[1], re.M) if "\nCommands" in text else []
                yield from ((tool, s, options(help_of(tool, s))) for s in subs) if subs else [(tool, "", options(text))]


def main():
    texts = {part: [p.read_text(errors="replace") for p in files(pats)] for part, pats in PARTS.items()}
    print("tool", "command", "option", *texts, sep="\t")
    slots, pairs, names = 0, set(), set()
    for tool, command, rows in commands():
        for letter, name in rows:
            slots, pairs, names = slots + 1, pairs | {(tool, name)}, names | {name}
            used = re.compile(rf"--{name}(?![a-z0-9-])" + (rf"|\b{tool}\b[^\n]* -{re.escape(letter)}\b" if letter else ""))
            print(tool, command, name, *(sum(1 for t in ts if re.search(rf"\b{tool}\b", t) and used.search(t)) for ts in texts.values()), sep="\t")
    print(f"{len(pairs)} options of tools, {len(names)} names, {slots} options of commands", file=sys.stderr)


main()
