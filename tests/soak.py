#!/usr/bin/python3
"""Does memory stay flat?   tests/soak.py [CELLS [LOG]]      BIN is the folder of the tools, TMPDIR that of the files (4 KB a cell)

Runs the pipeline on a quarter of CELLS simulated cells (default 1,000,000), then on all of them, and compares the largest resident memory of
each tool (of its child processes too). The tools that are documented as flat may grow by SLACK, and by what their manual page says they keep
for a cell. Prints a table; ends with status 1 if a tool fails or grows by more. The table has the resident memory after a quarter, a half and
three quarters of the tool's time too; LOG gets one line for each second: cells, tool, seconds, MB.
"""
import json, os, subprocess, sys, tempfile, threading, time

SLACK = 8.0  # MB: the longest cell so far, the allocator's granularity
TOKENS = 180  # of a simulated cell; depgraph has 12 bytes for each of those in its sample
# Whether memory is flat does not depend on the width of the network; the time does.
NETWORK = {"model_type": "bert", "vocab_size": 502, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64,
           "max_position_embeddings": 2048, "hidden_act": "relu", "hidden_dropout_prob": 0.02, "attention_probs_dropout_prob": 0.02}

# tool, bytes that it may keep for a cell beyond SLACK (None: only printed), command
STEPS = [
    ("scsim", 0, "scsim -q -n {n} --genes 500 --types 4 --rarest 0.1 --depth 400 --donors 4 --seed 7 -o counts"),
    ("scview -O h5ad", None, "scview -q -O h5ad counts -o cells.h5ad"),
    ("h5tok", 16, "h5tok -q cells.h5ad -o back"),
    ("rankenc --fit", 0, "rankenc -q --fit back -o vocab"),
    ("rankenc", 0, "rankenc -q -m vocab back -o tok"),
    ("h5tok --rank", 16, "h5tok -q --rank vocab cells.h5ad -o ranked"),
    ("depgraph", 12 * TOKENS, "depgraph -q tok -o graph"),
    ("maskgen", 0, "maskgen -q -g graph --strategy corrmask tok -o masked"),
    ("sctrain mlm", 0, "sctrain mlm -q --config config.json masked -o model"),
    ("scembed", 0, "scembed -q -M model --emb-layer 0 tok -o emb"),
    ("ctaprobe cells", 4 * NETWORK["hidden_size"] + 130, "ctaprobe cells -q --label cell_type --folds 2 emb -o scores"),
]


def resident(pid):
    """MB of a process and of its children."""
    try:
        with open(f"/proc/{pid}/statm") as f:
            mine = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return mine + sum(resident(child) for child in f.read().split())
    except (OSError, IndexError):
        return 0.0


def run(command):
    """Run it: seconds, peak resident memory in MB, and the resident memory at moments, as (seconds, MB)."""
    start, seen, done = time.monotonic(), [], threading.Event()
    tool = subprocess.Popen(command.split())

    def watch():
        while not done.wait(0.02 if len(seen) < 500 else 1):
            seen.append((time.monotonic() - start, resident(tool.pid)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, status, usage = os.wait4(tool.pid, 0)
    done.set()
    watcher.join()
    if status:
        sys.exit(f"soak.py: {command}: status {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - start, usage.ru_maxrss / 1024, seen


def pipeline(cells, log):
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("config.json", "w") as f:
            json.dump(NETWORK, f)
        for tool, _, command in STEPS:
            peaks.append(run(command.format(n=cells)))
            print(f"{cells} cells: {tool}: {peaks[-1][0]:.0f} s", file=sys.stderr)
            second = -1
            for at, mb in peaks[-1][2] if log else []:
                if int(at) > second:
                    second = int(at)
                    print(f"{cells}\t{tool}\t{second}\t{mb:.1f}", file=log, flush=True)
        os.chdir("/")
    return peaks


def along(seconds, seen):
    """The resident memory after 1/4, 1/2 and 3/4 of the time; nothing for a tool that is done at once."""
    if seconds < 1:
        return ""
    return " ".join("%.0f" % min(seen, key=lambda x: abs(x[0] - seconds * part))[1] for part in (0.25, 0.5, 0.75))


cells = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
os.environ["PATH"] = os.path.realpath(os.environ.get("BIN", "bin")) + ":" + os.environ["PATH"]
log = open(sys.argv[2], "w") if len(sys.argv) > 2 else None
part, whole = pipeline(cells // 4, log), pipeline(cells, log)
bad = 0
print(f"| tool | {cells // 4:,} cells, MB | {cells:,} cells, MB | grew by, MB | may grow by | after 1/4, 1/2, 3/4 of its time, MB | seconds |\n"
      "|---|---|---|---|---|---|---|")
for (tool, each, _), (_, a, _), (seconds, b, seen) in zip(STEPS, part, whole):
    limit = None if each is None else SLACK + each * (cells - cells // 4) / 2**20
    over = limit is not None and b - a > limit
    bad |= over
    print(f"| {tool} | {a:.1f} | {b:.1f} | {b - a:.1f}{' TOO MUCH' if over else ''} | {'' if limit is None else f'{limit:.1f}'} "
          f"| {along(seconds, seen)} | {seconds:.0f} |")
sys.exit(bad)
