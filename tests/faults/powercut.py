#!/usr/bin/python3
"""What does a power cut leave?   tests/faults/powercut.py [-n RESUMES] [-s SEED] [CASE]...      BIN is the folder of the tools, PEER_PYTHON a Python with pyarrow

strace records the order in which a tool creates, writes, flushes, renames and removes files. Every prefix of this record is a moment of a power
cut. What POSIX promises then is little: data that was not flushed (fsync) may be there, be lost, or be zeros of the right length; an entry of a
folder that was not flushed may be there or not. So each moment leaves many states: none, all, or a first part of the entries that are not flushed,
those of one folder, those of all others, one alone, all but one; and for each of these, three states of the data that is not flushed.

In every state of the file-writing cases (tests/faults/cases.sh, scstream) the output must be the old file or the whole new one; after the end
of the tool only the new one. In every state of the trainings, a model.safetensors in the model directory means that the whole model is there, the
newest checkpoint-N is whole, train.tsv reaches as far, and a checkpoint that was whole before is not lost without a newer one; RESUMES (default 40; 0: all)
of these states are made into folders, and sctrain --resume must end with the model of an undisturbed training.
"""
import argparse, itertools, os, random, re, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
CALLS = ("open,openat,creat,write,writev,pwrite64,pwritev,pwritev2,ftruncate,truncate,fallocate,copy_file_range,sendfile,fsync,fdatasync,"
         "rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,mmap")
OLD = "old\n"
PYTHON = """/usr/bin/python3 -c 'import sys, corrmask.stream as scstream
s = scstream.Reader(sys.argv[1])
scstream.write(sys.argv[2], s.header, s)' $I/counts out"""

PEER = os.environ.get("PEER_PYTHON", HERE + "/../../build/peers/bin/python")
DATASET = f"{PEER} {HERE}/../../python/scstream to-dataset $I/tok out"
# a file that a recipe of the pipelines makes with the shell, and one that their scripts make
PIPELINES = [
    ["pipelines, make", f"make -sB -f {HERE}/../../pipelines/Makefile -f <(printf 'out:\\n\\t@seq 9 $(whole)\\n') out"],
    ["pipelines, script", f". {HERE}/../../pipelines/common.sh && seq 9 > out.new && whole out"],
]


class File:
    """length, writes and cuts (truncations): as the program sees them now, and `kept`, as they are on disk."""

    def __init__(self, number, initial=None):
        self.number, self.initial = number, initial  # initial: its bytes, of a file that was there before
        self.length, self.writes, self.cuts = len(initial or b""), 0, 0
        self.kept = self.state()
        self.name = None  # the last name that it got

    def state(self):
        return self.length, self.writes, self.cuts


class Folder:
    def __init__(self, number):
        self.number, self.name = number, None


class Record:
    """The calls of a run in folder `root`, replayed one by one. `now` has what the program sees, `disk` what is flushed: {(folder, name): node};
    `pending` are the changes of entries between the two, in order: ([((folder, name), node or None), ...])."""

    def __init__(self, root):
        self.root, self.count = os.path.realpath(root), itertools.count()
        self.top = Folder(next(self.count))
        self.now, self.disk, self.pending, self.unnamed, self.opened_as = {}, {}, [], {}, {}
        self.files = []
        self._before(self.root, self.top)

    def _before(self, path, folder):
        for entry in sorted(os.scandir(path), key=lambda x: x.name):
            if entry.is_dir(follow_symlinks=False):
                node = Folder(next(self.count))
                self._before(entry.path, node)
            else:
                with open(entry.path, "rb") as f:
                    node = self._file(f.read())
            node.name = os.path.relpath(entry.path, self.root)
            self.now[folder, entry.name] = self.disk[folder, entry.name] = node

    def _file(self, initial=None):
        self.files.append(File(next(self.count), initial))
        return self.files[-1]

    def place(self, path):
        """(folder, name) of an absolute path, None if it is outside."""
        path = os.path.normpath(path)
        if not path.startswith(self.root + "/"):
            return None
        *folders, name = path[len(self.root) + 1 :].split("/")
        at = self.top
        for x in folders:
            at = self.now.get((at, x))
            if at is None:
                return None
        return at, name

    def node(self, path):
        if os.path.normpath(path) == self.root:
            return self.top
        place = self.place(path)
        return self.unnamed.get(path) or (self.now.get(place) if place else None)

    def change(self, *entries):
        for place, node in entries:
            if node is None:
                self.now.pop(place, None)
            else:
                self.now[place] = node
        self.pending.append(entries)

    def named(self, path, node):
        node.name = os.path.relpath(path, self.root)

    def call(self, name, args, result):
        """Replay one call. False if it changes nothing here."""
        words = re.findall(r'"((?:[^"\\]|\\.)*)"', args)
        base = re.findall(r"AT_FDCWD<([^>]*)>|^(\d+)<([^>]*)>", args)
        folder = next((a or b for a, _, b in base), self.root)
        paths = [os.path.join(folder, w) for w in words]
        fd = re.match(r"(\d+)<([^>]*)>", args)
        if fd and isinstance(self.node(fd[2]), File):
            self.opened_as[fd[1]] = self.node(fd[2])
        if name in ("open", "openat", "creat"):
            return self.opened(paths[0] if paths else None, args, result)
        if name in ("write", "writev", "pwrite64", "pwritev", "pwritev2", "ftruncate", "fallocate", "copy_file_range", "sendfile"):
            node = self.node(fd[2]) if fd else None
            if name == "copy_file_range":
                node = self.node(re.findall(r"\d+<([^>]*)>", args)[1])
            if not isinstance(node, File):
                return False
            number = int(result.split()[0])
            if name == "ftruncate":
                node.length = int(args.rsplit(",", 1)[1])
                node.cuts += 1
            elif name in ("pwrite64", "pwritev", "pwritev2"):
                node.length = max(node.length, int(args.rsplit(",", 1)[1]) + number)
            else:
                node.length += number
            node.writes += 1
            return True
        if name in ("fsync", "fdatasync"):
            node = self.node(fd[2])
            return self.synced(node)
        if name in ("rename", "renameat", "renameat2"):
            old, new = (self.place(p) for p in paths)
            if not old or not new:
                return False
            node = self.now[old]
            self.named(paths[1], node)
            self.change((old, None), (new, node))
            return True
        if name in ("link", "linkat"):
            proc = re.match(r"/proc/self/fd/(\d+)$", words[0])
            node = self.opened_as.get(proc[1]) if proc else self.node(paths[0])
            assert isinstance(node, File), f"unknown file: {args}"
            self.named(os.path.join(folder, words[1]), node)
            self.change((self.place(os.path.join(folder, words[1])), node))
            return True
        if name in ("unlink", "unlinkat", "rmdir"):
            place = self.place(paths[0])
            if not place or place not in self.now:
                return False
            self.change((place, None))
            return True
        if name in ("mkdir", "mkdirat"):
            place = self.place(paths[0])
            if not place:
                return False
            node = Folder(next(self.count))
            self.named(paths[0], node)
            self.change((place, node))
            return True
        if name == "mmap":
            assert "MAP_SHARED" not in args or "PROT_WRITE" not in args or not fd or not isinstance(self.node(fd[2]), File), f"written through mmap: {args}"
            return False
        raise AssertionError(f"{name}({args}): not known to powercut.py")

    def opened(self, path, args, result):
        flags = args.split(",")
        if "O_TMPFILE" in args:
            shown = re.search(r"<([^>]*)>", result)[1]
            if not shown.startswith(self.root + "/"):
                return False
            self.unnamed[shown] = self._file()
            return False
        place = self.place(path) if path else None
        if not place or "O_CREAT" not in args and "O_TRUNC" not in args or not flags:
            return False
        if place not in self.now:
            node = self._file()
            self.named(path, node)
            self.change((place, node))
            return True
        if "O_TRUNC" in args:
            node = self.now[place]
            node.length, node.writes, node.cuts = 0, node.writes + 1, node.cuts + 1
            return True
        return False

    def synced(self, node):
        if isinstance(node, File):
            node.kept = node.state()
            return True
        if not isinstance(node, Folder):
            return False
        rest = []
        for entries in self.pending:  # a rename between two folders is on disk when one of them is
            if any(place[0] is node for place, _ in entries):
                self.apply(self.disk, entries)
            else:
                rest.append(entries)
        self.pending = rest
        return True

    @staticmethod
    def apply(entries_of, entries):
        for place, node in entries:
            if node is None:
                entries_of.pop(place, None)
            else:
                entries_of[place] = node

    def states(self):
        """All that this moment may leave: {(folder, name): node}."""
        p = self.pending
        folders = {place[0] for entries in p for place, _ in entries}
        chosen = [p[:i] for i in range(len(p) + 1)]
        for f in folders:
            chosen += [[x for x in p if any(place[0] is f for place, _ in x)], [x for x in p if all(place[0] is not f for place, _ in x)]]
        chosen += [[x] for x in p] + [p[:i] + p[i + 1 :] for i in range(len(p))]
        seen = set()
        for part in chosen:
            key = tuple(map(id, part))
            if key not in seen:
                seen.add(key)
                state = dict(self.disk)
                for entries in part:
                    self.apply(state, entries)
                yield state


def calls(log):
    """Finished calls of a strace log in the order of their ends: name, arguments, result."""
    started = {}
    with open(log, errors="replace") as f:
        for line in f:
            m = re.match(r"(\d+) +(.*)$", line.rstrip("\n"))
            tid, text = m[1], m[2]
            if text.endswith("<unfinished ...>"):
                started[tid] = text[: -len("<unfinished ...>")]
                continue
            m = re.match(r"<\.\.\. \w+ resumed>(.*)$", text)
            if m:
                text = started.pop(tid) + m[1]
            text = text.replace(">(deleted)", ">")
            m = re.match(r"(\w+)\((.*)\) += (.*)$", text)
            if m and not m[3].startswith(("-1", "?")):
                yield m[1], m[2], m[3]


def recorded(command, folder, log):
    """Run a command in the folder under strace."""
    r = subprocess.run(["strace", "-f", "-y", "-qq", "-s", "0", "-e", "signal=none", "-e", "trace=" + CALLS, "-o", log, "bash", "-c", command], cwd=folder,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if r.returncode:
        sys.exit(f"powercut.py: {command}: status {r.returncode}: {r.stderr}")


def moments(record, log):
    """Replay: yields after each call that changes something, with its name."""
    yield "start"
    for name, args, result in calls(log):
        if record.call(name, args, result):
            yield f"{name}({args})"


# ---- tools that write a file ----


def file_case(name, command, output, work):
    """Returns moments, states, and what is wrong."""
    wrong, n_moments, n_states = [], 0, 0
    for old in (False, True):
        folder = tempfile.mkdtemp(dir=work)
        if old:
            with open(os.path.join(folder, output), "w") as f:
                f.write(OLD)
        final, replay = Record(folder), Record(folder)
        recorded(command, folder, work + "/log")
        for _ in moments(final, work + "/log"):
            pass
        new = final.now.get((final.top, output))
        if new is None or not new.writes:
            return 0, 0, [f"{name}: no output was recorded"]
        for last in moments(replay, work + "/log"):
            n_moments += 1
            for state in replay.states():
                n_states += 1
                node, bad = state.get((replay.top, output)), None
                if node is None:
                    bad = old and "the old file is lost"
                elif node.initial is not None:
                    bad = node.writes and "the old file is changed"
                else:
                    bad = node.kept[1] < new.writes and "the new file is there, but not all of its data"
                if bad:
                    wrong.append(f"{name}: {bad}, at {last}")
                    break
            if len(wrong) > 3:
                break
        node = replay.disk.get((replay.top, output))
        if not wrong and (node is None or node.number != new.number):
            wrong.append(f"{name}: the tool has ended, but a power cut may take the new file")
        shutil.rmtree(folder)
    return n_moments, n_states, wrong


def folder_case(name, command, work):
    """The same for a command that makes the folder out: it is not there, or is whole."""
    wrong, n_moments, n_states = [], 0, 0
    folder = tempfile.mkdtemp(dir=work)
    final, replay = Record(folder), Record(folder)
    recorded(command, folder, work + "/log")
    for _ in moments(final, work + "/log"):
        pass
    new = final.now.get((final.top, "out"))
    members = tree(final.now, new) if new else {}
    if not members:
        return 0, 0, [f"{name}: no output was recorded"]

    def lacks(state):
        files = tree(state, state.get((replay.top, "out")))
        return [x for x, n in members.items() if x not in files or files[x].number != n.number or files[x].kept[1] < n.writes]

    for last in moments(replay, work + "/log"):
        n_moments += 1
        for state in replay.states():
            n_states += 1
            if (replay.top, "out") in state and lacks(state):
                wrong.append(f"{name}: the folder is there, but not all of {', '.join(lacks(state))}, at {last}")
                break
        if len(wrong) > 3:
            break
    if not wrong and lacks(replay.disk):
        wrong.append(f"{name}: the tool has ended, but a power cut may take the new folder")
    return n_moments, n_states, wrong


# ---- trainings ----

# name, what was done before (in the folder of the run), options of the training
TRAININGS = [
    ("mlm", "", "sctrain mlm -q --config tiny --save-every 2 $I/masked"),
    ("cells, --eval", "", "sctrain cells -q --label cell_type --init $I/model --save-every 2 --eval $I/none --eval-every 2 $I/none"),
    ("mlm, one checkpoint kept", "", "sctrain mlm -q --config tiny --keep-checkpoints 1 --save-every 2 $I/masked"),
    ("genes, all checkpoints kept", "", "sctrain genes -q --gene-labels $I/genes.tsv --init $I/model --keep-checkpoints 99 --save-every 2 $I/none"),
    ("value", "", "sctrain value -q --config tiny --save-every 2 $I/values"),
    ("nb", "", "sctrain nb -q --config mlp-nb-tiny --save-every 2 $I/masked.counts"),
    ("mlm, after a kill", "size=$(stat -c %s $I/masked); head -c $((size * 2 / 3)) $I/masked >part; sctrain mlm -q --config tiny --save-every 2 -o out part; rm part",
     "sctrain mlm -q --config tiny --save-every 2 $I/masked"),
    ("mlm, --force", "sctrain mlm -q --config tiny --seed 2 -o out $I/masked", "sctrain mlm -q --config tiny --save-every 2 --force $I/masked"),
]


def tree(state, folder):
    """{name: node} of a folder in a state; None if the folder is not there."""
    return {name: node for (at, name), node in state.items() if at is folder}


def step_of(name):
    m = re.match(r"checkpoint-(\d+)$", name)
    return int(m[1]) if m else None


class Training:
    """A recorded training: its record and what each of its files and checkpoints must be when it is whole."""

    def __init__(self, folder, log, reference):
        self.folder, self.log, self.reference = folder, log, reference
        self.final = Record(folder)
        self.replay = Record(folder)

    def finish(self):
        self.members = {}  # of a checkpoint, by the number of its folder: {name: number}, when it got its name
        for _ in moments(self.final, self.log):
            for (_, name), node in self.final.now.items():
                if isinstance(node, Folder) and step_of(name) is not None and node.number not in self.members:
                    self.members[node.number] = {x: n.number for x, n in tree(self.final.now, node).items()}
        self.writes = {f.number: f.writes for f in self.final.files}
        out = self.final.now[self.final.top, "out"]
        self.top = {x: n.number for x, n in tree(self.final.now, out).items() if isinstance(n, File) and x != "train.tsv"}
        before = self.replay.now.get((self.replay.top, "out"))
        self.top_before = {x: n.number for x, n in tree(self.replay.now, before).items() if isinstance(n, File) and x != "train.tsv"} if before else None

    def whole(self, node):
        return node.kept[1] >= self.writes[node.number] if node.initial is None else not node.writes

    def same(self, files, members):
        return all(x in files and files[x].number == number and self.whole(files[x]) for x, number in members.items())

    def newest(self, state, out):
        """The step of the newest checkpoint, whole or not (0: there is none), and is it whole?"""
        steps = {step_of(x): n for x, n in tree(state, out).items() if step_of(x) is not None}
        if not steps:
            return 0, True
        node = steps[max(steps)]
        return max(steps), self.same(tree(state, node), self.members[node.number])

    def content(self, node, kind):
        """Bytes of a file whose data that is not flushed is "kept" (lost), "now" (there) or "zeros"."""
        length, _, cuts = node.state() if kind != "kept" else node.kept
        if node.initial is not None and not cuts:
            data = node.initial
        else:
            path = next((p for p in (f"{x}/{node.name.replace('.tmp', '')}" for x in (self.folder, self.reference)) if os.path.exists(p)), None)
            data = b"?" * length
            if path:
                with open(path, "rb") as f:
                    data = f.read()
            if node.kept[1] == self.writes[node.number]:
                return data  # of the reference, the seconds in trainer_state.json have other lengths
        if kind == "zeros" and node.kept != node.state():
            return data[: node.kept[0]].ljust(length, b"\0")
        return data[:length]

    def wrong_with(self, state):
        """What a state of the disk has that it must not, or None."""
        out = state.get((self.replay.top, "out"))
        files = tree(state, out) if out else {}
        if "model.safetensors" in files and not self.same(files, self.top) and not (self.top_before and self.same(files, self.top_before)):
            return "model.safetensors is there, but not the whole model"
        if "model.safetensors" in files or not out:
            return None
        step, whole = self.newest(state, out)
        if not whole:
            return f"checkpoint-{step}, the newest one, is not whole"
        durable = self.replay.disk.get((self.replay.top, "out"))
        if durable and self.newest(self.replay.disk, durable)[0] > step:
            return "the newest checkpoint is lost"
        if step:
            lines = self.content(files["train.tsv"], "kept").split(b"\n") if "train.tsv" in files else [b""]
            last = [x.split(b"\t")[0] for x in lines[:-1]][-1:]
            if not last or not last[0].isdigit() or int(last[0]) < step:
                return f"train.tsv does not reach checkpoint-{step}"
        return None

    def signature(self, state, kind):
        found = []

        def walk(folder, path):
            for name, node in sorted(tree(state, folder).items()):
                if isinstance(node, Folder):
                    found.append((path + name, "folder"))
                    walk(node, path + name + "/")
                else:
                    found.append((path + name, node.number, kind if node.kept != node.state() else "", node.state() if kind != "kept" else node.kept))

        walk(self.replay.top, "")
        return tuple(found)

    def make(self, state, kind, to):
        def walk(folder, path):
            os.mkdir(path)
            for name, node in tree(state, folder).items():
                if isinstance(node, Folder):
                    walk(node, f"{path}/{name}")
                else:
                    with open(f"{path}/{name}", "wb") as f:
                        f.write(self.content(node, kind))

        walk(self.replay.top, to)


def curve(folder):
    with open(folder + "/train.tsv") as f:
        return [[x for i, x in enumerate(line.split("\t")) if i not in (4, 5)] for line in f]


def same_model(a, b):
    for x in sorted(set(os.listdir(a)) | set(os.listdir(b))):
        if ".tmp." in x:
            continue  # a power cut may leave the name of an unfinished file
        if step_of(x) is None and x != "train.tsv" and (not os.path.exists(f"{a}/{x}") or not os.path.exists(f"{b}/{x}") or
                                                        open(f"{a}/{x}", "rb").read() != open(f"{b}/{x}", "rb").read()):
            return f"{x} is another"
    return None if curve(a) == curve(b) else "train.tsv is another"


def resume(training, command, state, kind, whole, work):
    """Make the state a folder, go on with the training there, and compare. None or what is wrong."""
    folder = work + "/state"
    shutil.rmtree(folder, ignore_errors=True)
    training.make(state, kind, folder)
    again = command if "--force" in command else command + " --resume"
    r = subprocess.run(["bash", "-c", again + " -o out"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if r.returncode:
        return f"--resume has status {r.returncode}: {r.stderr.strip()}"
    return same_model(whole, folder + "/out")


def training_case(name, before, command, work, resumes, rng):
    """Returns moments, states, resumed trainings, and what is wrong."""
    wrong, n_moments, n_states, states = [], 0, 0, {}
    for x in ("reference", "run"):
        shutil.rmtree(f"{work}/{x}", ignore_errors=True)
        os.mkdir(f"{work}/{x}")
        subprocess.run(["bash", "-c", before], cwd=f"{work}/{x}", stderr=subprocess.DEVNULL)
    if before and "--force" not in command:
        command += " --resume"
    whole = f"{work}/reference/out"
    all_kept = re.sub(" --keep-checkpoints [0-9]+", "", command) + " --keep-checkpoints 99"
    subprocess.run(["bash", "-c", all_kept + " -o out"], cwd=f"{work}/reference", check=True, stderr=subprocess.DEVNULL)
    training = Training(f"{work}/run", work + "/log", f"{work}/reference")
    recorded(f"{command} -o out", f"{work}/run", work + "/log")
    training.finish()
    replay = training.replay
    for last in moments(replay, training.log):
        n_moments += 1
        for state in replay.states():
            n_states += 1
            bad = training.wrong_with(state)
            if bad:
                wrong.append(f"sctrain {name}: {bad}, at {last}")
                break
            for kind in ("kept", "now", "zeros"):
                states.setdefault(training.signature(state, kind), (state, kind, last, {f: (f.state(), f.kept) for f in replay.files}))
        if len(wrong) > 3:
            return n_moments, n_states, 0, wrong
    out = replay.disk.get((replay.top, "out"))
    if not out or not training.same(tree(replay.disk, out), training.top):
        wrong.append(f"sctrain {name}: the training has ended, but a power cut may take the model")
    chosen = list(states.values())
    if resumes and len(chosen) > resumes:
        chosen = rng.sample(chosen, resumes)
    for state, kind, last, files in chosen:
        for f, (now, f.kept) in files.items():
            f.length, f.writes, f.cuts = now
        bad = resume(training, command, state, kind, whole, work)
        if bad:
            wrong.append(f"sctrain {name}: {bad}, at {last}, data not flushed: {kind}")
        if len(wrong) > 3:
            break
    return n_moments, n_states, len(chosen), wrong


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("-n", type=int, default=40)
    p.add_argument("-s", type=int, default=1)
    p.add_argument("case", nargs="*")
    o = p.parse_args()
    if subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL).returncode:
        sys.exit("powercut.py: strace cannot be used here")
    os.environ["PATH"] = os.path.realpath(os.environ.get("BIN", "bin")) + ":" + os.environ["PATH"]
    os.environ.update(OMP_WAIT_POLICY="passive", OPENBLAS_NUM_THREADS="1", PYTHONPATH=os.path.join(HERE, "../../python"), PYTHONDONTWRITEBYTECODE="1")
    failed, total = [], [0, 0, 0]
    with tempfile.TemporaryDirectory() as work:
        os.environ.update(work=work, I=work + "/in")
        os.mkdir(work + "/in")
        subprocess.run([HERE + "/cases.sh", "inputs"], check=True)
        listed = subprocess.run([HERE + "/cases.sh", "cases"], check=True, capture_output=True, text=True).stdout
        files = [x.split("\t") for x in listed.splitlines() if not re.search(r"\tsctrain (?!eval)|^sctrain-mpi", x)]
        files += [["scstream", PYTHON]] + PIPELINES
        print("| case | moments | states | resumed | wrong |\n|---|---|---|---|---|")

        def row(name, n_moments, n_states, resumed, wrong):
            print(f"| {name} | {n_moments:,} | {n_states:,} | {resumed or ''} | {len(wrong)} |", flush=True)
            failed.extend(wrong)
            total[:] = [a + b for a, b in zip(total, (n_moments, n_states, resumed))]

        for name, command in files:
            if not o.case or name in o.case:
                n_moments, n_states, wrong = file_case(name, command, command.split()[-1], work)
                row(name, n_moments, n_states, 0, wrong)
        if not o.case or "scstream to-dataset" in o.case:
            if not shutil.which(PEER) or subprocess.run([PEER, "-c", "import pyarrow"], stderr=subprocess.DEVNULL).returncode:
                print("powercut.py: no pyarrow in PEER_PYTHON: scstream to-dataset is left out", file=sys.stderr)
            else:
                n_moments, n_states, wrong = folder_case("scstream to-dataset", DATASET, work)
                row("scstream to-dataset", n_moments, n_states, 0, wrong)
        for name, before, command in TRAININGS:
            if not o.case or "sctrain " + name in o.case:
                row("sctrain " + name, *training_case(name, before, command, work, o.n, random.Random(f"{o.s} {name}")))
        row("all", *total, failed[:0])
    for line in failed:
        print("wrong:", line)
    sys.exit(bool(failed))


main()
