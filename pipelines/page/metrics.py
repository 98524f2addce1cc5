"""Tables of the page, and what tables of metrics say of models and classes."""
import re
from urllib.parse import quote

import chart
from chart import element
from run import number, read_table

MOST_ROWS = 1000  # of a table
MISSING = ("NA", "nan", "-nan", "inf", "-inf", "-", "")


# ---- tables ----

def cell(text, share=False):
    """A long number is shown with four digits; the element data has all of them. share: with a bar."""
    v = number(text)
    if text.endswith("/report.html"):
        return element("td", element("a", text.split("/")[-2], href=quote(text)))
    if v is None:
        return element("td", text, class_="n" if text in MISSING or text[:1] == "<" else "long" if len(text) > 40 else None)
    shown = text
    if len(text) > 7 and re.search("[.e]", text) and len(re.sub(r"e.*|\D", "", text).lstrip("0")) > 4:
        shown = f"{v:.1f}" if abs(v) >= 1000 else f"{v:.4g}"
    bar = share and 0 <= v <= 1
    return element("td", shown if shown == text else element("data", shown, value=text), class_="n bar" if bar else "n",
                   style=f"--v:{v:.3f}" if bar else None)


def table(caption, head, rows, shares=(), texts=False):
    """shares: numbers of the columns whose values between 0 and 1 get a bar. texts: numbers stay as they are, to the left."""
    most = element("p", f"The first {MOST_ROWS} of {len(rows)} rows.") if len(rows) > MOST_ROWS else None
    numeric = {i for i in range(len(head)) if not texts and any(number(row[i]) is not None for row in rows if i < len(row))
               and all(number(row[i].lstrip("<")) is not None or row[i] in MISSING for row in rows if i < len(row))}
    heads = [element("th", element("button", h, type="button"), scope="col", class_="n" if i in numeric else None) for i, h in enumerate(head)]
    body = [element("tr", [element("td", v, class_="long" if len(v) > 40 else None) if texts else cell(v, i in shares) for i, v in enumerate(row)]) for row in rows[:MOST_ROWS]]
    return element("div", element("p", caption, class_="caption"),
                   element("div", element("table", element("thead", element("tr", heads)), element("tbody", body)), most,
                           class_="scroll", tabindex="0", role="region", aria_label=caption), class_="table")


def details(title, *children):
    return element("details", element("summary", title), *children)


# ---- metrics of models ----

class Metrics:
    """Tables of metric and value, by kind: kind -> name -> metric -> text of the value."""
    def __init__(self, run):
        self.kinds, self.paths = {}, set()
        for f in run.named(".tsv"):
            with open(f, encoding="utf-8", errors="replace") as lines:
                if lines.readline().rstrip("\n") != "metric\tvalue":
                    continue
            stem = f.name[:-4]
            if f.parent != run.dir:
                name, kind = f.parent.name, stem
            elif "." in stem:
                name, kind = stem.split(".", 1)
            else:
                name, kind = stem, "metrics"
            self.paths.add(f)
            values = self.kinds.setdefault(kind, {}).setdefault(name, {})
            values.update((row[0], row[1] if len(row) > 1 else "") for row in read_table(f)[1:])
        self.kinds = {kind: dict(sorted(models.items(), key=lambda m: chart.rank(m[0]))) for kind, models in self.kinds.items()}

    def of(self, kind):
        """The kind in a title, where there are several."""
        return f", {kind}" if len(self.kinds) > 1 else ""

    @staticmethod
    def classes(values):
        return [k[2:] for k in values if k.startswith("n:")]

    @staticmethod
    def confusion(values, classes):
        """(true, predicted) -> cells; names of classes may have colons."""
        known, count = set(classes), {}
        for k, v in values.items():
            if k.startswith("confusion:"):
                rest = k[10:]
                for i in (m.start() for m in re.finditer(":", rest)):
                    if rest[:i] in known and rest[i + 1:] in known:
                        count[rest[:i], rest[i + 1:]] = v
                        break
        return count

    @staticmethod
    def groups(models):
        """Names that differ in the seed, NAME-1, NAME-2, are one group: group -> names."""
        out = {}
        for name in models:
            out.setdefault(re.sub(r"-\d+$", "", name), []).append(name)
        return out

    def class_tables(self):
        """For the summary: F1 of every class, means over the seeds, the most frequent class first."""
        for kind, models in self.kinds.items():
            groups = self.groups(m for m, v in models.items() if any(k.startswith("f1:") for k in v))
            if not groups or len(groups) > 12:
                continue
            first = models[next(iter(groups.values()))[0]]
            classes = sorted(self.classes(first), key=lambda c: -(number(first["n:" + c]) or 0))
            trained = any("train_n:" + c in first for c in classes)
            rows = []
            for c in classes:
                row = [c, *([first.get("train_n:" + c, "")] if trained else []), first["n:" + c]]
                for names in groups.values():
                    f1 = [number(models[n].get("f1:" + c, "")) for n in names]
                    f1 = [v for v in f1 if v is not None]
                    row.append(f"{sum(f1) / len(f1):.3f}" if f1 else "NA")
                rows.append(row)
            head = ["class", *(["training cells"] if trained else []), "test cells", *map(chart.words, groups)]
            yield table(f"F1 of every class{self.of(kind)}" + (", means over the seeds" if any(len(n) > 1 for n in groups.values()) else ""), head, rows,
                        range(2 + trained, len(head)))

    def tables(self):
        for kind, models in self.kinds.items():
            names = list(models)
            keys = list(dict.fromkeys(k for v in models.values() for k in v))
            classes = list(dict.fromkeys(c for v in models.values() for c in self.classes(v)))
            known = set(classes)
            of_class = [k for k in keys if ":" in k and k.split(":", 1)[1] in known and not k.startswith("confusion:")]
            plain = [k for k in keys if k not in set(of_class) and not k.startswith("confusion:")]
            yield table(kind, ["metric", *map(chart.words, names)], [[k, *(models[n].get(k, "") for n in names)] for k in plain])
            if not classes:
                continue
            head, values = ["class"], []
            for k in dict.fromkeys(k.split(":", 1)[0] for k in of_class):
                each = [[models[n].get(f"{k}:{c}", "") for c in classes] for n in names]
                if all(v == each[0] for v in each):
                    head.append(k)
                    values.append(each[0])
                else:
                    head += [f"{k} {chart.words(n)}" for n in names]
                    values += each
            yield details(f"{kind}: classes", table(f"{kind}, classes", head, [list(row) for row in zip(classes, *values)]))
            each = [self.confusion(models[n], classes) for n in names]
            pairs = list(dict.fromkeys(p for e in each for p in e))
            if pairs:
                yield details(f"{kind}: confusion", table(f"{kind}, confusion", ["true class", "predicted class", *map(chart.words, names)],
                                                          [[*p, *(e.get(p, "0") for e in each)] for p in pairs]))

    def trained(self, kind, name):
        """Does this model tell the training cells of its classes?"""
        return any(k.startswith("train_n:") for k in self.kinds[kind][name])

    def f1_groups(self, kind):
        """F1 and cells of every class, in training if all models tell these, else test cells; of runs that differ in the seed the first one, if there are many."""
        models, seen = self.kinds[kind], set()
        trained = all(self.trained(kind, name) for name in models)
        for name, v in models.items():
            group = re.sub(r"-\d+$", "", name) if len(models) > 8 else name
            if group in seen:
                continue
            seen.add(group)
            classes = self.classes(v)
            dots = [(number(v.get(("train_n:" if trained else "n:") + c, "")), number(v.get("f1:" + c, "")), c) for c in classes]
            dots = [(x, y, f"{c}: F1 {y:.3f}, {x:g} cells") for x, y, c in dots if x and y is not None and number(v["n:" + c])]
            if dots:
                yield name, dots

    def confusion_figures(self):
        """All matrices of a kind have the same classes in the same order: those that a model has, or takes another one for."""
        for kind, models in self.kinds.items():
            having = {n: v for n, v in models.items() if any(k.startswith("confusion:") for k in v)}
            groups = self.groups(having) if len(having) > 8 else {n: [n] for n in having}
            most, sums = {}, {}
            for group, names in groups.items():
                cells, count = {}, {}
                for n in names:
                    classes = self.classes(models[n])
                    for c in classes:
                        own = number(models[n]["n:" + c]) or 0
                        cells[c] = cells.get(c, 0) + own
                        most[c] = max(most.get(c, 0), own)
                    for p, v in self.confusion(models[n], classes).items():
                        count[p] = count.get(p, 0) + (number(v) or 0)
                sums[group] = cells, count
            guessed = {p for _, count in sums.values() for _, p in count}
            classes = sorted((c for c in most if most[c] or c in guessed), key=lambda c: -most[c])
            for group, (cells, count) in sums.items() if classes else ():
                title = f"Confusion matrix{self.of(kind)}: {chart.words(group)}" + (f" ({len(groups[group])} seeds)" if len(groups[group]) > 1 else "")
                yield title, chart.confusion(classes, cells, count, title)
