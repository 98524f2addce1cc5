#!/usr/bin/env python3
"""A figure of an experiment as SVG on standard output, in the light or dark colours of its reader.

    figure.py NAME FOLDER [VARIABLE=VALUE...]   draws the tables of FOLDER as the function NAME of a figures.py of the pipelines says
    figure.py --of REPORT.html TITLE            one figure of a report
"""
import importlib.util
import os
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from plot import alone, figure  # noqa: E402
from run import number  # noqa: E402
from table import fields, lines, named  # noqa: E402


class Row(dict):
    """A line of a table, by the names of its columns. A number is None for NA, and where there is no such column."""
    def number(self, name):
        return number(self.get(name, ""))

    def numbers(self, names):
        return [self.number(name) for name in names.split()]

    def spread(self):
        """The mean, and one standard deviation around it if there is one."""
        mean, sd = self.numbers("mean sd")
        return (mean, mean - sd, mean + sd) if sd else (mean,)


class Tables:
    """The tables of a folder: tables("summary.tsv") is its rows, none without the file. columns: the names, if its first line has none."""
    def __init__(self, folder):
        self.folder = Path(folder)

    def __call__(self, name, columns=""):
        table = [row for row in fields(self.folder / name) if row[0][:1] != "#" and row != [""]]
        return [Row(row) for row in named([columns.split()] + table if columns else table or [[]])]

    def matrix(self, name):
        return [[float(v) for v in line.split()] for line in lines(self.folder / name)]


def drawn(name):
    """The function NAME of a figures.py; - of a name is _."""
    function = name.replace("-", "_")
    for path in sorted(HERE.parent.glob("*/figures.py")):
        if re.search(rf"^def {function}\(", path.read_text(encoding="utf-8"), re.M):
            spec = importlib.util.spec_from_file_location("figures", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return getattr(module, function)
    sys.exit(f"figure.py: {name}: no figures.py of {HERE.parent} has a figure of this name")


def of_report(page, title):
    found = re.search(r'<svg class="chart"[^>]*aria-label="' + re.escape(title) + r'".*?</svg>', Path(page).read_text(encoding="utf-8"), re.S)
    return alone(ET.fromstring(found[0])) if found else sys.exit(f"figure.py: {page}: no figure '{title}'")


def main(words):
    if len(words) < 2 or words[0].startswith("-") and (words[0] != "--of" or len(words) != 3):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    if words[0] == "--of":
        text = of_report(*words[1:])
    else:
        title, panels = drawn(words[0])(Tables(words[1]), **dict(w.split("=", 1) for w in words[2:]))
        text = figure(title, panels)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as e:
        os.write(2, f"figure.py: {e.strerror}\n".encode())
        os._exit(1)  # Python would try to write the rest


if __name__ == "__main__":
    main(sys.argv[1:])
