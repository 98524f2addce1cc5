"""Where the tools are, and how they are run: as pipes, with their messages passed on, and without anything left when they or Python are interrupted."""
from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from typing import IO, Any, Iterator, List, Sequence

HERE = os.path.dirname(os.path.realpath(__file__))
WHEEL, INSTALLED, SOURCES = (os.path.join(HERE, place, "bin") for place in ("", "../../../..", "../.."))
PIPELINES = ("../share/corrmask/pipelines", "../pipelines")
SIGPIPE = -13
CPUINFO = "/proc/cpuinfo"
OF_OURS = re.compile(r"[^\s:]*/corrmask-\w{8}/")      # a message names new.h5ad, not the folder for an hour in which it is


class Error(RuntimeError):
    """A tool failed. The text is its own line; .tool is its name, .status its exit status, .messages all that was printed."""

    def __init__(self, text: str, tool: str = "", status: int = 1, messages: str = "") -> None:
        super().__init__(text)
        self.tool, self.status, self.messages = tool, status, messages


Error.__module__ = "corrmask"


# ---- files that are whole, or not there ----

def temporary(path: str) -> Any:
    """A file beside `path`, for its owner alone, which put_in_place or abandon ends. path has no symbolic links (os.path.realpath)."""
    try:
        os.lstat(path)
    except FileNotFoundError:       # a name that is too long is refused now, not after the work
        pass
    folder, name = (os.fsencode(x) for x in os.path.split(path))
    room = max(0, min(255, 4094 - len(folder)) - len(".tmp.") - 8)
    return tempfile.NamedTemporaryFile(dir=os.path.dirname(path), prefix=os.fsdecode(name[:room]) + ".tmp.", delete=False)


def put_in_place(file: Any, path: str) -> None:
    """The complete file takes the place of path, with the permissions of what it replaces, or those of a new file."""
    file.flush()
    try:
        mode = os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    os.chmod(file.name, mode)
    os.fsync(file.fileno())
    file.close()
    os.replace(file.name, path)
    sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """The names in a folder are on disk only when the folder is."""
    folder = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError:
        pass  # some file systems cannot do that
    finally:
        os.close(folder)


def abandon(file: Any) -> None:
    if os.path.exists(file.name):
        file.close()
        os.unlink(file.name)


def save(path: str, data: bytes) -> None:
    """The whole file, or none."""
    path = os.path.realpath(path)
    file = temporary(path)
    try:
        file.write(data)
        put_in_place(file, path)
    except BaseException:
        abandon(file)
        raise


# ---- tools ----

def _check_processor() -> None:
    """The wheel's tools are built for x86-64-v3: say so before one ends by an illegal instruction."""
    with open(CPUINFO) as f:
        flags: List[str] = next((line.split() for line in f if line.startswith("flags")), [])
    missing = [name for name in ("avx2", "fma", "bmi2", "movbe") if flags and name not in flags]
    if missing:
        raise Error("corrmask: the wheel is for x86-64-v3, and this processor has no %s: build the tools from the sources" % ", ".join(missing))


def folder_of_tools() -> str:
    """The folder of the tools: in the wheel, of make install, of PATH, or in the sources."""
    on_path = os.path.dirname(os.path.realpath(shutil.which("h5tok") or "/h5tok"))
    for place in (WHEEL, INSTALLED, on_path, SOURCES):
        if os.access(os.path.join(place, "h5tok"), os.X_OK):
            if place == WHEEL:
                _check_processor()
            return os.path.realpath(place)
    raise Error("corrmask: no tools next to this package or on PATH: install the wheel, or make install")


def script(name: str) -> str:
    """The path of a script of the pipelines."""
    for place in PIPELINES:
        path = os.path.normpath(os.path.join(folder_of_tools(), place, name))
        if os.path.exists(path):
            return path
    raise Error("corrmask: no pipelines next to %s" % folder_of_tools())


def environment() -> dict[str, str]:
    """Tools are found first; then this Python and what is installed with it; a make that is in the wheel is the last one."""
    bin, own = folder_of_tools(), os.path.dirname(os.path.abspath(sys.executable))
    path = [bin, own, os.environ.get("PATH", os.defpath), os.path.join(HERE, "make")]
    return dict(os.environ, BIN=bin, PATH=os.pathsep.join(path))


def _pass_on(source: IO[bytes], kept: List[str], show: bool) -> None:
    with source:
        for piece in iter(lambda: os.read(source.fileno(), 4096), b""):
            text = OF_OURS.sub("", piece.decode("utf-8", "replace"))
            kept.append(text)
            if show:
                sys.stderr.write(text)
                sys.stderr.flush()


def _line_of(name: str, messages: str) -> str:
    """The last line of a tool that is no warning or note; a line of progress was rewritten, up to the last return."""
    lines = [line.split("\r")[-1].strip() for line in messages.split("\n")]
    own = [line for line in lines if line.startswith(name) and ": warning: " not in line and ": note: " not in line]
    return (own or [line for line in lines if line] or [""])[-1]


# A shell reads a pipe that this Python alone can write to. A line says that all is well; the end of the pipe, that Python is gone, however it went.
WATCH = 'trap "" HUP INT TERM; read -r well && exit; '


@contextlib.contextmanager
def _watched(action: str, *arguments: str) -> Iterator[int]:
    """If Python ends inside the block, a shell does the action. The value is the shell's process group."""
    p = subprocess.Popen(["/bin/sh", "-c", WATCH + action, "sh", *arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         **_in_group(0))
    assert p.stdin
    try:
        yield p.pid
    finally:
        with contextlib.suppress(OSError), p.stdin:
            p.stdin.write(b"\n")
        p.wait()


def _in_group(group: int) -> Any:
    """Options of Popen: in this process group, 0: a new one, from before the program starts."""
    return {"process_group": group} if sys.version_info >= (3, 11) else {"preexec_fn": lambda: os.setpgid(0, group)}


def _remove_abandoned() -> None:
    """Folders of workspace() whose Python was killed, and whose shell, too."""
    for path in glob.glob(os.path.join(tempfile.gettempdir(), "corrmask-????????", ".owner")):
        with contextlib.suppress(OSError), open(path, "rb") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(os.path.dirname(path), ignore_errors=True)


@contextlib.contextmanager
def workspace() -> Iterator[str]:
    """A temporary folder. It goes at the end of the block, and when Python is killed; .owner is locked as long as Python lives."""
    _remove_abandoned()
    with tempfile.TemporaryDirectory(prefix="corrmask-") as folder, open(os.path.join(folder, ".unlocked"), "wb") as owner:
        with _watched('for i in 1 2 3 4 5; do rm -rf -- "$1" && exit; sleep 1; done', folder):
            fcntl.flock(owner, fcntl.LOCK_EX)
            os.rename(owner.name, os.path.join(folder, ".owner"))
            yield folder


@contextlib.contextmanager
def pipe(*commands: Sequence[str], progress: bool = True) -> Iterator[IO[bytes]]:
    """Run commands, each reading what the one before writes; the value is the standard output of the last one. At the end of the block all have
    ended well, or Error is raised. If the block ends by an exception, KeyboardInterrupt too, or Python is killed, all are killed."""
    env, running, kept = environment(), [], []  # type: ignore[var-annotated]
    names = [os.path.basename(c[0]) for c in commands]
    get, put = os.pipe()
    thread = threading.Thread(target=_pass_on, args=(open(get, "rb", 0), kept, progress), daemon=True)
    thread.start()
    with _watched("kill -KILL 0") as group:     # the group has what a script runs, too
        try:
            before: Any = subprocess.DEVNULL
            try:
                for c in commands:
                    p = subprocess.Popen(c, stdin=before, stdout=subprocess.PIPE, stderr=put, env=env, **_in_group(group))
                    if running:
                        before.close()
                    running.append(p)
                    before = p.stdout
            finally:
                os.close(put)
            yield before
            before.read()       # what the block left is not needed, but the tool must not end by it
            status = [p.wait() for p in running]
            thread.join()
        finally:
            if any(p.poll() is None for p in running):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
            for p in running:
                p.wait()
                if p.stdout:
                    p.stdout.close()
    # a tool whose reader ended before it has no fault
    failed = [i for i, s in enumerate(status) if s not in (0, SIGPIPE)] or [i for i, s in enumerate(status) if s]
    if failed:
        name, text = names[failed[0]], "".join(kept)
        line = _line_of(os.path.splitext(name)[0], text) or "%s: ended with status %d" % (name, status[failed[0]])
        tool = re.split("[: ]", line)[0]        # of a script, the tool that failed
        raise Error(line, tool if os.path.exists(os.path.join(env["BIN"], tool)) else name, status[failed[0]], text)


def talk(progress: bool) -> list[str]:
    """Options of the tool whose progress is shown: a line that is rewritten, where that can be seen."""
    return (["--progress", "always"] if sys.stderr.isatty() or "ipykernel" in sys.modules else []) if progress else ["-q"]


def run(*commands: Sequence[str], progress: bool = True) -> bytes:
    """pipe(), and what the last command prints."""
    with pipe(*commands, progress=progress) as out:
        return out.read()


def main() -> None:
    """The commands of the wheel: this program gives way to the tool of its own name."""
    name = os.path.basename(sys.argv[0])
    try:
        path, env = os.path.join(folder_of_tools(), name), environment()
        del env["BIN"]
        env["PATH"] = env["PATH"].split(os.pathsep, 1)[1]      # the tools are those of the same names in the folder of this program
        os.execve(path, [name] + sys.argv[1:], env)
    except (Error, OSError) as error:
        sys.exit("%s: %s" % (name, error))
