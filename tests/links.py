"""links.py PAGE.md...: fail if a relative link of a page leads to no file or no heading, or if an .svg below docs is shown on no page.

Links to manual pages and to the page of all commands are those of the web site (man/sctrain.1.md, reference.md).
Anchors are made from headings as GitHub and MyST make them.
"""
import os
import re
import sys


def anchors(path):
    """The anchors of a page: its headings in lower case, without punctuation, with hyphens for spaces."""
    text = re.sub(r"^```.*?^```", "", open(path, encoding="utf-8").read(), flags=re.S | re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", h)).strip().lower().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)}


bad, shown, count = [], set(), 0
for page in sys.argv[1:]:
    text = re.sub(r"^```.*?^```", "", open(page, encoding="utf-8").read(), flags=re.S | re.M)
    for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'href="([^"]+)"', text):
        if re.match(r"[a-z]+:", link):
            continue
        count += 1
        name, _, anchor = link.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
        shown.add(path)
        if re.fullmatch(r"man/[a-z-]+\.\d\.md", path):
            path = path.removesuffix("md") + "in"
        if path == "docs/reference.md":  # make site writes it
            continue
        if not os.path.exists(path):
            bad.append(f"{page}: {link}: no such file")
        elif anchor and path.endswith(".md") and anchor not in anchors(path):
            bad.append(f"{page}: {link}: no such heading")
for folder, _, names in os.walk("docs"):
    bad += [f"{folder}/{n}: on no page" for n in names if n.endswith(".svg") and os.path.join(folder, n) not in shown]
print("\n".join(bad) if bad else f"{count} links")
sys.exit(bool(bad))
