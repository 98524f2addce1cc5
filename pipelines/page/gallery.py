#!/usr/bin/env python3
"""docs/gallery from the page of a run (make docs-gallery): the page, a picture of its top, and some of its figures as files of their own.

    gallery.py RUN GALLERY
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIGURES = {"map-expression.test-type": "Map of cells by cell_type: expression", "confusion-probe-1": "Confusion matrix, probe: expression",
           "modules-corpus": "Modules of the dependency graph of the genes that the networks read"}


def light(css):
    """The rules of the charts, in the colours of a light page."""
    colours = re.search(r":root \{.*?\}", css, re.S)[0]
    return colours + css[css.index("/* Charts */"):css.index("/* Tables */")]


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: gallery.py RUN GALLERY")
    page, gallery = Path(sys.argv[1]) / "report.html", Path(sys.argv[2])
    work = page.resolve().parents[3]  # it says nothing to readers
    text = page.read_text(encoding="utf-8").replace(f"{work}/", "")
    css = light((HERE / "page.css").read_text(encoding="utf-8"))
    for name, title in FIGURES.items():
        found = re.search(r'<svg class="chart"[^>]*aria-label="' + re.escape(title) + r'".*?</svg>', text, re.S)
        if not found:
            sys.exit(f"gallery.py: {page}: no figure '{title}'")
        head, body = found[0].split(">", 1)
        style = f'<style>{css} .chart {{ color: var(--ink); --card: #ffffff; }}</style><rect width="100%" height="100%" fill="#ffffff"/>'
        (gallery / f"{name}.svg").write_text(f'{head} xmlns="http://www.w3.org/2000/svg">{style}{body}\n', encoding="utf-8")
    (gallery / "pbmc3k.html").write_text(text, encoding="utf-8")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}", "--window-size=1280,1500",
                        f"--screenshot={(gallery / 'page.png').resolve()}", (gallery / "pbmc3k.html").resolve().as_uri()],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)


main()
