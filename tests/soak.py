#!/usr/bin/python3
"""Does memory stay flat?   tests/soak.py [CELLS]      BIN is the folder of the tools, TMPDIR that of the files (5 KB a cell)

Runs the pipeline on a quarter of CELLS simulated cells (default 1,000,000), then on all of them, and compares the largest resident memory of
each tool (of its child processes too). The tools that are documented as flat may grow by SLACK, and by what their manual page says they keep
for a cell. Prints a table; ends with status 1 if a tool fails or grows by more.
"""
import os, subprocess, sys, tempfile, time

SLACK = 8.0  # MB: the longest cell so far, the allocator's granularity
WIDTH = 64  # values of a cell's embedding: sctrain's preset tiny
TOKENS = 180  # of a simulated cell; depgraph has 12 bytes for each of those in its sample

# tool, bytes that it may keep for a cell beyond SLACK (None: only printed), command
STEPS = [
    ("scsim", 0, "scsim -q -n {n} --genes 500 --types 4 --rarest 0.1 --depth 400 --donors 4 --seed 7 -o counts"),
    ("scview -O h5ad", None, "scview -q -O h5ad counts -o cells.h5ad"),
    ("h5tok", 8, "h5tok -q cells.h5ad -o back"),
    ("rankenc --fit", 0, "rankenc -q --fit back -o vocab"),
    ("rankenc", 0, "rankenc -q -m vocab back -o tok"),
    ("h5tok --rank", 8, "h5tok -q --rank vocab cells.h5ad -o ranked"),
    ("depgraph", 12 * TOKENS, "depgraph -q tok -o graph"),
    ("maskgen", 0, "maskgen -q --window 2 -g graph --strategy corrmask tok -o masked"),
    ("sctrain mlm", 0, "sctrain mlm -q --config tiny masked -o model"),
    ("scembed", 0, "scembed -q -M model tok -o emb"),
    ("ctaprobe cells", 4 * WIDTH + 130, "ctaprobe cells -q --label cell_type --folds 2 emb -o scores"),
]


def run(command):
    """Run it: seconds, peak resident memory in MB."""
    start = time.monotonic()
    tool = subprocess.Popen(command.split())
    _, status, usage = os.wait4(tool.pid, 0)
    if status:
        sys.exit(f"soak.py: {command}: status {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - start, usage.ru_maxrss / 1024


def pipeline(cells, only=None):
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for tool, _, command in STEPS:
            peaks.append(run(command.format(n=cells)))
            print(f"{cells} cells: {tool}: {peaks[-1][0]:.0f} s", file=sys.stderr)
        os.chdir("/")
    return peaks


cells = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
os.environ["PATH"] = os.path.realpath(os.environ.get("BIN", "bin")) + ":" + os.environ["PATH"]
part, whole = pipeline(cells // 4), pipeline(cells)
bad = 0
print(f"| tool | {cells // 4:,} cells, MB | {cells:,} cells, MB | grew by, MB | may grow by | seconds |\n|---|---|---|---|---|---|")
for (tool, each, _), (_, a), (seconds, b) in zip(STEPS, part, whole):
    limit = None if each is None else SLACK + each * (cells - cells // 4) / 2**20
    over = limit is not None and b - a > limit
    bad |= over
    print(f"| {tool} | {a:.1f} | {b:.1f} | {b - a:.1f}{' TOO MUCH' if over else ''} | {'' if limit is None else f'{limit:.1f}'} | {seconds:.0f} |")
sys.exit(bad)
