#!/usr/bin/env python3
"""Damage an HDF5 file in many ways and read each with h5tok.

    damage.py FILE [RUNS [SEED]]

Three of four runs flip one bit, the others overwrite 1 to 64 bytes by zeros, by ones or by bytes from elsewhere in the file.
Half of the places are in the first 4 kB and around the signatures of HDF5's own structures, where damage does most harm.
Allowed are a whole stream (scview --check) with status 0, and one line of message with status 1 and no output, within
10 s of processor time.
Prints how often each happened; status 1 if anything else did.
"""
import collections
import hashlib
import os
import random
import re
import resource
import subprocess
import sys
import tempfile


def damage(data, rng, marks):
    data = bytearray(data)
    at = rng.choice(marks) + rng.randrange(64) if rng.random() < 0.5 else rng.randrange(len(data))
    at = min(at, len(data) - 1)
    if rng.random() < 0.75:
        bit = rng.randrange(8)
        data[at] ^= 1 << bit
        return bytes(data), "bit %d of byte %d" % (bit, at)
    n = min(rng.randint(1, 64), len(data) - at)
    source = rng.randrange(len(data) - n)
    kind = rng.randrange(3)
    data[at:at + n] = [bytes(n), b"\xff" * n, bytes(data[source:source + n])][kind]
    return bytes(data), "%d bytes at %d %s" % (n, at, ["zeroed", "set to ones", "from %d" % source][kind])


def main(path, runs=300, seed=1):
    whole = open(path, "rb").read()
    marks = list(range(0, min(4096, len(whole)), 64)) + \
        [m.start() for m in re.finditer(b"TREE|SNOD|HEAP|GCOL|OHDR|FRHP|BTHD", whole)]
    rng, seen, bad = random.Random(int(seed)), collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        right = None
        for i in range(int(runs) + 1):
            data, what = (whole, "nothing") if i == 0 else damage(whole, rng, marks)
            with open("x.h5ad", "wb") as f:
                f.write(data)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            try:
                r = subprocess.run(["h5tok", "-q", "x.h5ad", "-o", "out"], capture_output=True, timeout=300)
            except subprocess.TimeoutExpired:
                r = None
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            lines = [] if r is None else r.stderr.decode("utf-8", "replace").splitlines()
            if r is None or cpu > 10:
                outcome = "too slow"
            elif r.returncode == 0 and not lines and subprocess.run(["scview", "--check", "out"], capture_output=True).returncode == 0:
                digest = hashlib.sha256(open("out", "rb").read()).digest()
                right = right or digest
                outcome = "the same stream" if digest == right else "another stream"
            elif r.returncode == 1 and len(lines) == 1 and lines[0].startswith("h5tok: x.h5ad: ") and os.listdir() == ["x.h5ad"]:
                outcome = "refused: HDF5 crashed" if "the HDF5 library" in lines[0] else \
                    "refused: HDF5 does not end" if "takes longer" in lines[0] else "refused"
            else:
                outcome = "wrong"
            seen[outcome] += i > 0
            if outcome in ("wrong", "too slow"):
                bad = 1
                print("%s: %s: status %s, %s" % (outcome, what, r and r.returncode, " / ".join(lines)[:300]))
            for name in os.listdir():
                os.unlink(name)
    for outcome, n in sorted(seen.items()):
        print("%s\t%d" % (outcome, n))
    return bad


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
