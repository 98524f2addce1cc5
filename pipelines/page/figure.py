#!/usr/bin/env python3
"""figure.py REPORT.html TITLE: one figure of a report, as an SVG of its own on standard output, in the light or dark colours of its reader."""
import re
import sys
from pathlib import Path

page, title = sys.argv[1:]
css = (Path(__file__).resolve().parent / "page.css").read_text(encoding="utf-8")
css = css[:css.index("* { box-sizing")] + css[css.index("/* Charts */"):css.index("/* Tables */")]
found = re.search(r'<svg class="chart"[^>]*aria-label="' + re.escape(title) + r'".*?</svg>', Path(page).read_text(encoding="utf-8"), re.S)
if not found:
    sys.exit(f"figure.py: {page}: no figure '{title}'")
head, body = found[0].split(">", 1)
print(f'{head} xmlns="http://www.w3.org/2000/svg"><style>{css} .chart {{ color: var(--ink); --card: var(--paper); }}</style>'
      f'<rect width="100%" height="100%" fill="var(--paper)"/>{body}')
