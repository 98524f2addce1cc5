"""The kernels of one training step, from what ncu --csv --metrics gpu__time_duration.sum --print-units base wrote: a table, then an empty line.

A step ends with the optimiser's kernel. The last whole step is taken.
"""
import csv
import re
import sys


def kernel_name(signature):
    """Without its parameters: "void f<bf16, (int)1>(bf16 *, float)" is f<bf16, 1>."""
    return re.sub(r"\([a-z ]+\)(?=\d)", "", signature.removeprefix("void ")).split("(")[0]


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        lines = [x for x in f if x.startswith('"')]
    rows = list(csv.DictReader(lines))
    kernels = [(kernel_name(r["Kernel Name"]), float(r["Metric Value"].replace(",", "")) / 1e3) for r in rows]
    ends = [i for i, (name, _) in enumerate(kernels) if "adamw" in name]
    if len(ends) < 2:
        sys.exit(f"gpu_ncu.py: {len(kernels)} kernels, the end of {len(ends)} steps: expected those of 2 or more")
    step = kernels[ends[-2] + 1:ends[-1] + 1]
    total = sum(t for _, t in step)
    by_name = {}
    for name, t in step:
        by_name.setdefault(name, []).append(t)
    print("| kernel | launches | us | % | shortest | longest |\n|---|---|---|---|---|---|")
    for name, t in sorted(by_name.items(), key=lambda x: -sum(x[1])):
        print(f"| {name} | {len(t)} | {sum(t):.1f} | {100 * sum(t) / total:.1f} | {min(t):.1f} | {max(t):.1f} |")
    print(f"| all | {len(step)} | {total:.1f} | 100 | | |\n")


if __name__ == "__main__":
    main()
