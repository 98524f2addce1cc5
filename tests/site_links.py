"""site_links.py FOLDER: fail if a page of the folder refers to a file or an anchor that is not there. Links to other hosts are not followed."""
import html.parser
import os
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(open(path, encoding="utf-8").read())

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


root = os.path.realpath(sys.argv[1])
paths = [os.path.join(d, f) for d, _, files in os.walk(root) for f in files if f.endswith(".html")]
pages = {p: Page(p) for p in paths}
bad = []
count = 0
for path, page in pages.items():
    for link in page.links:
        url = urllib.parse.urlsplit(link)
        if url.scheme or url.netloc:
            continue
        count += 1
        target = os.path.realpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(url.path))) if url.path else path
        fragment = urllib.parse.unquote(url.fragment)
        if not os.path.isfile(target) or not target.startswith(root):
            bad.append(f"{os.path.relpath(path, root)}: {link}: no such file")
        elif fragment and target in pages and fragment not in pages[target].ids:
            bad.append(f"{os.path.relpath(path, root)}: {link}: no such place in the page")
print("\n".join(sorted(set(bad))) if bad else f"{len(pages)} pages, {count} links")
sys.exit(bool(bad))
