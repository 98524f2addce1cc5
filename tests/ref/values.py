#!/usr/bin/python3
"""scview TOKENS --columns cell,token,count | values.py: columns cell, token and value as a value encoder reads them, from the counts."""
import math
import sys

import numpy as np

print(next(sys.stdin).strip())
for line in sys.stdin:
    cell, token, count = line.rstrip("\n").split("\t")
    ids, n = [int(t) for t in token.split()], [int(c) for c in count.split()]
    x = [np.float32(math.log1p(1e4 * c / (1 + sum(n)))) if t >= 38 else -(t + 1) for t, c in zip(ids, n)]
    print(cell, token, " ".join(repr(float(v)) for v in x), sep="\t")
