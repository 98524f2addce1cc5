#!/usr/bin/env python3
"""The manual pages: what the tools' tables say of each option, and what the sources of the pages add.

    man/pages.py BIN OUT            writes the pages of man/*.in to the folder OUT
    man/pages.py --reference BIN    prints all commands and their options, for the web site

In a source, PAGE.in, options stand between two lines,

    .Options TOOL [COMMAND...]         or: .Options common
    .Option NAME
    text between what --help says of --NAME and its range and what it goes together with
    .End

Options without an .Option are listed too, in the order of --help. Those that all tools share (the last heading of --help) are named below the last
list of a page, and described in corrmask.7, unless they have an .Option. With several commands the list has the options of each, or, if these have
pages of their own (TOOL-COMMAND.1), those of all, which their pages then leave out.
"""
import functools, re, subprocess, sys
from pathlib import Path

MAN = Path(__file__).resolve().parent
COMMON = "Common options"


class Wrong(Exception):
    pass


def run(*command):
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True, stdin=subprocess.DEVNULL).stdout


class Option:
    def __init__(self, line):
        name, self.arg, self.help, self.letter, self.heading, limits, needs, excludes, modes = line.split("\t")
        chooses, *terms = modes.split()
        self.name = name[2:]
        self.range = [float(x) for x in limits.split()] if limits != "0 0" else []
        others = [t for t in terms if t.partition("=")[0] != self.name]
        self.needs = needs.split() or (terms if chooses == "with" and terms == others else [])
        self.excludes, self.others = excludes.split(), others if chooses == "not" else []

    def same(self, other):
        return (self.letter, self.arg, self.help) == (other.letter, other.arg, other.help)


@functools.cache
def commands(tool):
    """The commands of a tool, [""] if it has none."""
    words = [line.split("\t")[0] for line in run(f"{BIN}/{tool}", "--completion").splitlines()]
    return [""] if words[0].startswith("-") else words


@functools.cache
def table(tool, command):
    """Name and option, of a command."""
    rows = {o.name: o for o in map(Option, run(f"{BIN}/{tool}", *filter(None, [command]), "--manual").splitlines())}
    for o in rows.values():
        if not o.help:
            raise Wrong(" ".join(filter(None, [tool, command])) + f": --{o.name} has no help sentence")
    for o in list(rows.values()):  # what excludes one is excluded by it
        for other in [rows[t] for t in o.excludes if t in rows]:
            other.excludes += [o.name] if o.name not in other.excludes else []
    for o in rows.values():
        o.excludes += [t for t in o.others if t not in o.excludes]
    return rows


def common():
    """The options that all tools share, or several do."""
    return {o.name: o for t in tools() for c in commands(t) for o in table(t, c).values() if o.heading == COMMON}


# ---- mdoc ----

def text(s):
    s = re.sub(r"(?<!\w)-(?=[\w-])", r"\\-", s.replace("\\", r"\e"))
    return re.sub(r"^(?=[.'])", r"\\&", re.sub(r" ?\b([a-z]+)\((\d)\)(\S*)", lambda m: f"\n.Xr {m[1]} {m[2]} {m[3]}".rstrip(), s))


def sentence(s, keep=False):
    return text((s if keep else re.sub(r"^[a-z]+(?=[ -])", lambda m: m[0].capitalize(), s)) + "." * (s[-1] != "?"))


def number(x):
    return f"{int(x):,}" if x == int(x) else f"{x:g}".replace("e-0", "e-")


def terms(words, last):
    words = ["--" + w.replace("=", " ") for w in words]
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def rest(o):
    """Range, and what it goes together with, but for what is said already."""
    parts, said = [], f"{o.help} {o.heading}"
    if o.range and o.range[1] < 1e9:
        parts.append(f"from {number(o.range[0])} to {number(o.range[1])}")
    elif o.range and o.range[0] > 0:
        parts.append(f"at least {number(o.range[0])}")
    new = [[w for w in words if not re.search(rf"--{w.partition('=')[0]}\b(?!-)", said)] for words in (o.needs, o.excludes)]
    parts += [f"needs {terms(o.needs, 'or')}"] if o.needs and new[0] == o.needs else []
    parts += [f"not with {terms(new[1], 'or')}"] if new[1] else []
    return [sentence("; ".join(parts))] if parts else []


def argument(arg):
    """.It's macros for "A", "a|b" (words), "N|auto"."""
    parts = [("Ar" if re.search("[A-Z]", p) and not re.search("[a-z]", p.replace("auto", "")) else "Cm", p) for p in arg.split("|")]
    out = []
    for i, (macro, part) in enumerate(parts):
        out += ["|"] * (i > 0) + ([macro] if i == 0 or macro != parts[i - 1][0] else []) + [part]
    return out


def item(o, having, own, of):
    head = [".It", "Fl"] + ([o.letter, ","] if o.letter else []) + ["-" + o.name] + (argument(o.arg) if o.arg else [])
    lines = [" ".join(head)]
    if having != of:
        lines += [".Cm " + " , ".join(having) + " :", sentence(o.help, keep=True)]
    else:
        lines += [sentence(o.help)]
    return lines + own + rest(o)


def listed(options, blocks, of):
    """The list, under the headings of --help; with the options of several commands without headings."""
    lines, heading, mixed = [], None, any(having != of for _, having in options)
    for o, having in options:
        if heading is None or (o.heading != heading and not mixed):
            lines += [".El"] if lines else []
            if not mixed and o.heading not in ("Options", COMMON):
                lines += [".Pp", ".Em " + text(o.heading) + ":"]
            lines.append(".Bl -tag -width Ds")
            heading = o.heading
        lines += item(o, having, blocks.get(o.name, []), of)
    return lines + [".El"] * bool(lines)


def shared(others):
    """The paragraph of the options that all tools share: {name: commands that take it}."""
    most = max(len(having) for having in others.values())
    lines = [".Pp", ".Fl " + " , ".join(n for n, having in others.items() if len(having) == most) + " :", "as in all tools, see", ".Xr corrmask 7"]
    for some in sorted({tuple(having) for having in others.values() if len(having) < most}):
        lines[-1] += " ;"
        lines += [".Fl " + " , ".join(n for n, having in others.items() if tuple(having) == some), "only for", ".Cm " + " , ".join(some)]
    return lines[:-1] + [lines[-1] + " ."]


# ---- pages ----

class Page:
    def __init__(self, path):
        self.name, self.lists, self.lines = path.stem, [], []  # a list is (tool, commands, {name: text}), and a number in the lines
        block = None
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            word, *words = line.split(" ")
            if word == ".Options" and words and block is None:
                self.lists.append((words[0], words[1:] or [""], {}))
                self.lines.append(len(self.lists) - 1)
                block = []
            elif word == ".Option" and len(words) == 1 and block is not None:
                block = self.lists[-1][2].setdefault(words[0], [])
            elif word == ".End" and block is not None:
                block = None
            elif word in (".Options", ".Option", ".End") or (block is not None and not self.lists[-1][2]):
                raise Wrong(f"{self.name}:{n}: '{line}' is not expected here")
            else:
                (self.lines if block is None else block).append(line)
        if block is not None:
            raise Wrong(f"{self.name}: .Options {' '.join([self.lists[-1][0], *self.lists[-1][1]]).strip()} has no .End")

    def options(self, k, pages):
        """The options of list k, [(option, commands that have it)], and whether they are those that TOOL.1 leaves."""
        tool, of, blocks = self.lists[k]
        if tool == "common":
            return [(o, of) for o in common().values()], False
        if unknown := [c for c in of if c not in commands(tool)]:
            raise Wrong(f"{self.name}: {tool} has no command '{unknown[0]}'")
        found = {}
        for c, o in ((c, o) for c in of for o in table(tool, c).values()):
            first, having = found.setdefault(o.name, (o, []))
            having.append(c)
            if not first.same(o):
                raise Wrong(f"{self.name}: --{o.name} of {tool} {having[0]} and of {tool} {c} differ: give each a list of its own")
        shared = len(of) > 1 and f"{tool}-{of[0]}.1" in pages
        found = {n: (o, having) for n, (o, having) in found.items() if not shared or having == of}
        if bad := [n for n in blocks if n not in found]:
            raise Wrong(f"{self.name}: .Option {bad[0]}: {' '.join([tool, *of]).strip()} has no option --{bad[0]}{' in common' * shared}")
        above = pages[f"{tool}.1"] if self.name == f"{tool}-{of[0]}.1" else self
        left = [o.name for j in range(len(above.lists)) if above is not self and of[0] in above.lists[j][1] for o, _ in above.options(j, pages)[0]]
        return [f for n, f in found.items() if n not in left or n in blocks], bool(left)

    def built(self, pages):
        out, others = [], {}
        for line in self.lines:
            if isinstance(line, str):
                out.append(line)
                continue
            tool, of, blocks = self.lists[line]
            options, more = self.options(line, pages)
            own = [(o, having) for o, having in options if o.heading != COMMON or o.name in blocks or tool == "common"]
            for o, having in ((o, having) for o, having in options if (o, having) not in own):
                others.setdefault(o.letter or "-" + o.name, []).extend(having)
            if more:
                out += [".Pp", "Besides those of" if own else "The options are those of", f".Xr {tool} 1 {',' if own else '.'}"]
                out += ["the options are:"] * bool(own)
            lines = listed(own, blocks, of)
            out += lines[lines[:1] == [".Pp"] and out[-1].startswith(".Ss") :]
            if others and line == len(self.lists) - 1:
                out += shared(others)
        self.check_synopsis()
        return "\n".join(out) + "\n"

    def check_synopsis(self):
        """What the synopsis shows, the tool takes."""
        text = "\n".join(line for line in self.lines if isinstance(line, str)).partition(".Sh SYNOPSIS")[2].partition("\n.Sh ")[0]
        rows = [o for tool, _, _ in self.lists if tool != "common" for c in commands(tool) for o in table(tool, c).values()]
        for name in re.findall(r"\bFl -?(\S+)", text) if rows else []:
            if name not in [n for o in rows for n in (o.name, o.letter)]:
                raise Wrong(f"{self.name}: the synopsis shows -{name}, which is no option")


def check_lists(pages):
    """Each command has its list, in TOOL-COMMAND.1 if there is one, else in TOOL.1."""
    for tool, command in ((t, c) for t in tools() for c in commands(t)):
        own = f"{tool}-{command}.1"
        page = pages.get(own) or pages.get(f"{tool}.1")
        if not page or not any(t == tool and command in of for t, of, _ in page.lists):
            raise Wrong(f"{own if own in pages else tool + '.1'}: no .Options {tool} {command}".rstrip())


# ---- all commands ----

def tools():
    return [m[1] for m in re.finditer(r"^TOOL\((\w+)", (MAN.parent / "src/tools.def").read_text(encoding="utf-8"), re.M)]


def reference():
    yield "# Commands and options\n\nWhat `--help` prints of each command. The manual pages, which are linked, say more.\n"
    for tool in tools():
        yield f"## {tool}\n"
        for c in commands(tool):
            page = f"{tool}-{c}.1" if (MAN / f"{tool}-{c}.1.in").exists() else f"{tool}.1"
            yield (f"### {tool} {c}\n\n" if c else "") + f"[Manual page](man/{page}.md)\n"
            yield "```text\n" + run(f"{BIN}/{tool}", *filter(None, [c]), "--help") + "```\n"


def build(out):
    out.mkdir(parents=True, exist_ok=True)
    pages = {p.stem: Page(p) for p in sorted(MAN.glob("*.in"))}
    check_lists(pages)
    for name, page in pages.items():
        (out / name).write_text(page.built(pages), encoding="utf-8")


if __name__ == "__main__":
    first, second = sys.argv[1:]
    BIN = Path(second if first == "--reference" else first).resolve()
    try:
        if first == "--reference":
            print("\n".join(reference()))
        else:
            build(Path(second))
    except Wrong as wrong:
        sys.exit(f"man/pages.py: {wrong}")
