#!/usr/bin/env python3
"""Which commands of this machine do scripts call that the packages of `make deps` do not bring?

    check_commands.py PACKAGE... -- FILE...

Every word in the place of a command is looked at: in scripts, in recipes of makefiles, in ```sh blocks of pages and in examples of manual pages. A
command that this machine has must be of an essential Debian package, of a PACKAGE, or of one that these depend on; else the script fails where only
those are installed. A file that asks `command -v NAME` may call NAME. Here documents and quoted text are skipped; what is no command of this machine
(functions, our tools) is not looked at.
"""
import re, shutil, subprocess, sys

BEFORE = set("! { if then elif else while until do time run exec env command xargs nice timeout setsid stdbuf".split())  # a command may follow
OF_A_CLUSTER = {"sbatch", "scontrol", "srun", "squeue", "scancel", "sinfo"}  # Slurm is there or not
NAMES = {"for", "case", "select", "function"}  # a name follows
DPKG = "/var/lib/dpkg/"


def scripts(path):
    """The text of a file that the shell reads, at its lines."""
    lines = open(path, encoding="utf-8").read().split("\n")
    begin, end = {"md": ("```sh", "```"), "mk": (None, None)}.get(path.rsplit(".", 1)[-1], ("", ""))
    if path.endswith(".in"):
        begin, end = ".Bd -literal", ".Ed"
    if begin is None:
        return "\n".join(re.sub(r"^\t[@+-]*", "", x).replace("$$", "$") if x.startswith("\t") else "" for x in lines)
    if begin:
        inside = False
        for i, x in enumerate(lines):
            was, inside = inside, x.startswith(begin) if not inside else not x.startswith(end)
            lines[i] = x if was and inside else ""
    documents = []  # ends of here documents
    for i, x in enumerate(lines):
        if documents:
            lines[i] = ""
            if x.lstrip("\t") == documents[0]:
                documents.pop(0)
        else:
            documents = [m[1] for m in re.finditer(r"(?<!<)<<-?\s*['\"\\]?(\w+)", x)]
    return "\n".join(lines)


TOKEN = re.compile(r"""(?P<comment>(?<![^\s;|&(])\#[^\n]*) | (?P<quoted>'[^']*') | (?P<escape>\\.) | (?P<sum>\$?\(\() | (?P<open>[$<>]\() |
    (?P<variable>\$\{) | (?P<file>[0-9&]?[<>]+[&|]?[ \t]*[^\s;|&()]*) | (?P<space>[ \t]+) | (?P<end>\n|[;|&]+) | (?P<text>.)""", re.X | re.S)


def commands(text):
    """(word, line) for every word where a command stands"""
    stack, word, first, at = [], "", True, 0
    found = []

    def over():
        nonlocal word, first
        if word and first:
            if word not in BEFORE and word not in NAMES:
                found.append((word, text.count("\n", 0, at) + 1))
            first = word in BEFORE or "=" in word or word.startswith("-") or word.isdigit()
        word = ""

    def skip(opening, closing):  # to the bracket that closes this one
        nonlocal at
        depth = 0
        while at < len(text) and (depth or text[at] in opening):
            depth += (text[at] in opening) - (text[at] in closing)
            at += 1
            if not depth:
                break

    while at < len(text):
        m = TOKEN.match(text, at)
        kind, s = m.lastgroup, m[0]
        quote = stack and stack[-1] == '"'
        if quote and kind not in ("escape", "sum", "open", "variable") and s[0] != '"':
            at += 1
            word += "x"
        elif kind in ("sum", "variable"):
            at += s.index("(" if kind == "sum" else "{")
            skip("({"[kind == "variable"], ")}"[kind == "variable"])
            word += "$"
        elif kind == "open" or s == "(" and not text.startswith("()", at):
            if s == "(" and not word.endswith("="):
                over()
            stack.append((word, first))
            word, first, at = "", not (s == "(" and stack[-1][0].endswith("=")), m.end()
        elif s == ")":
            if stack and stack[-1] != '"':
                over()
                word, first = stack.pop()
                word += "$"
            else:  # a pattern of case
                word, first = "", True
            at += 1
        elif s == "(":  # f()
            word, first, at = "", True, at + 2
        elif s == '"':
            stack.pop() if quote else stack.append('"')
            word += "$"
            at += 1
        else:
            if kind in ("space", "end", "file", "comment"):
                over()
                if kind == "end":
                    first = True
            else:
                word += s if kind == "text" else "$"
            at = m.end()
    over()
    return found


def closure(roots):
    """The files of the essential packages, these packages, and all that they depend on."""
    depends, todo = {}, list(roots)
    for line in subprocess.run(["dpkg-query", "-W", "-f", "${Package}\t${Essential}\t${Provides}\t${Pre-Depends}, ${Depends}\t${Architecture}\n"],
                               capture_output=True, text=True, check=True).stdout.splitlines():
        name, essential, provides, needs, arch = line.split("\t")
        names = set(re.findall(r"(?:^|[,|] *)([a-z0-9][a-z0-9.+-]+)", needs))
        for p in [name] + re.findall(r"(?:^|, *)([a-z0-9][a-z0-9.+-]+)", provides):
            depends.setdefault(p, []).append((name, arch, names))
        if essential == "yes":
            todo.append(name)
    files, seen = set(), set()
    while todo:
        for name, arch, names in depends.get(todo.pop(), []):
            if name not in seen:
                seen.add(name)
                todo += names
                for f in (DPKG + f"info/{name}.list", DPKG + f"info/{name}:{arch}.list"):
                    try:
                        files.update(open(f).read().split("\n"))
                    except FileNotFoundError:
                        pass
    return files


def brings(files, name):
    """Do these files have the command, or has this machine none of that name?"""
    places = [f"{folder}/{name}" for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin")]
    try:
        places += open(DPKG + "alternatives/" + name).read().split("\n")
    except FileNotFoundError:
        pass
    return any(p in files for p in places) or not shutil.which(name, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")


def main(args):
    split = args.index("--")
    if not shutil.which("dpkg-query"):
        print("check-commands: skipped: no dpkg-query")
        return 0
    files, bad = closure(args[:split]), 0
    builtins = subprocess.run(["bash", "-c", "compgen -b"], capture_output=True, text=True, check=True).stdout.split()
    for path in args[split + 1:]:
        text = scripts(path)
        own = OF_A_CLUSTER | set(builtins) | set(re.findall(r"([\w-]+) ?\(\)", text)) | set(re.findall(r"command -v (\S+)", text))
        for name, line in commands(text):
            if re.fullmatch(r"[A-Za-z][\w.+-]*", name) and name not in own and not brings(files, name):
                print(f"{path}:{line}: {name}: no package of make deps has it")
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
