#!/usr/bin/env python3
"""Tokens with counts, the inputs and targets made from them, and the losses on them, in plain Python and float64. Tables are scview's.

wced.py tokens K COUNTS.tsv VOCAB.tsv TOKENS.tsv LIBRARY    columns cell,gene,count of the counts (rows of their table of genes, which are named
    SIMG000001 ...); the vocabulary; cell,panel,token,count,value of rankenc --vocab-style bmfm --cls K --value
    K tokens for the cell, its genes by count, then token, [SEP]; values by LIBRARY, kept or all.
wced.py cell VOCAB.tsv TOKENS.tsv MASKED.tsv LIBRARY OPTIONS    columns cell,n_counts,panel,token,count; cell,epoch,input,input_value,target,value
    of maskgen --objective cell. OPTIONS: JSON of rate, and of max_len, zeros, without, panels where they are given.
    Prints the share of genes that were left out, and of tokens that are zeros.
wced.py value VOCAB.tsv TOKENS.tsv MASKED.tsv LIBRARY OPTIONS    columns ..., input,input_value,position,target[,value] of --objective value
wced.py eval MODEL VOCAB.tsv MASKED.tsv EVAL.tsv [PANELS [GENES.tsv]]    columns cell,panel,input,input_value,target,value; what sctrain eval
    printed, and its --gene-scores
wced.py expression MODEL MASKED.tsv EVAL.tsv [VOCAB.tsv GENES.tsv]    columns input,input_value,position,value
wced.py reconstruct MODEL TOKENS.tsv PREDICTION.tsv    columns token,count; gene,value,expressed,gated
"""
import json
import math
import os
import sys
import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bert  # noqa: E402

SPECIAL = 38


def rows(path):
    for line in open(path).read().split("\n")[1:-1]:
        yield [f.split() for f in line.split("\t")]


def vocab(path):
    return [line.split("\t")[1] for line in open(path).read().split("\n")[1:-1]]


def released():
    """The special tokens of the released vocabulary."""
    return ["[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"] + [f"[CLS_{i}]" for i in range(31)] + ["[S]", "[T]"]


def expression(count, total, library):
    return math.log(1 + 1e4 * count / (total + (library == "kept")))


def near(a, b, tol=1e-6):
    assert len(a) == len(b), (len(a), len(b))
    for x, y in zip(a, b):
        assert abs(float(x) - y) <= tol * max(1, abs(y)), (x, y)


def tokens(k, counts, vocabulary, table, library):
    names = vocab(vocabulary)
    assert names[:SPECIAL] == released() and names[SPECIAL:] == sorted(names[SPECIAL:])
    before = [3] + list(range(5, 4 + int(k)))
    n = 0
    for (cell, gene, count), (cell2, panel, got, have, value) in zip(rows(counts), rows(table)):
        assert cell == cell2 and panel == ["0"]
        pairs = [(-int(c), names.index(f"SIMG{int(g) + 1:06d}")) for g, c in zip(gene, count) if f"SIMG{int(g) + 1:06d}" in names]
        pairs = sorted(p for p in pairs if p[0])
        total = sum(-c for c, _ in pairs) if library == "kept" else sum(map(int, count))
        assert [int(t) for t in got] == before + [t for _, t in pairs] + [1], cell
        assert [int(c) for c in have] == [0] * len(before) + [-c for c, _ in pairs] + [0], cell
        near(value, [0] * len(before) + [expression(-c, total, library) for c, _ in pairs] + [0])
        n += 1
    assert n
    print(n)


def read_tokens(table):
    return {cell[0]: (int(n[0]), int(panel[0]), [int(t) for t in token], [int(c) for c in count]) for cell, n, panel, token, count in rows(table)}


def measured(options, panel, size):
    """Genes that a panel measured, of its hex digits."""
    if "panels" not in options:
        return set(range(SPECIAL, size))
    bits = bytes.fromhex(options["panels"][panel])
    return {g for g in range(size) if bits[g // 8] >> g % 8 & 1}


def check_order(options, order, genes, zeros_at, limit, left, free):
    """Order of the genes, and where zeros stand among the tokens between the special ones. Returns whether there are zeros."""
    kind = options.get("zeros", "none")
    if not zeros_at:
        return False
    assert kind != "none"
    n = len(genes) + len(zeros_at)
    if len(left) < 2:
        assert len(zeros_at) <= 128
    else:
        assert n == min(limit, len(left) + free), (n, limit, free)
    for k in range(n):
        zero = k in zeros_at
        if kind == "random":
            assert zero == (k >= len(left))
        elif k < n - 1 and any(j not in zeros_at for j in range(k + 1, n)) and any(j in zeros_at for j in range(k + 1, n)):
            assert zero == (k % 10 >= 9), k
    return True


def check_input(options, library, cell, size, ids, values, hidden=()):
    """The input of a cell against its tokens; returns its genes with a count, and its zeros."""
    n_counts, panel, token, count = cell
    have = {t: c for t, c in zip(token, count) if c}
    first = next(i for i, t in enumerate(token) if t >= SPECIAL)
    assert ids[:first] == token[:first] and ids[-1] == token[-1] == 1
    genes, zeros = ids[first:-1], []
    limit = options.get("max_len", 1 << 20) - first - 1
    assert len(genes) <= limit
    near(values[:first] + values[-1:], [-(t + 1) for t in token[:first] + [1]])
    visible = [(g, v) for i, (g, v) in enumerate(zip(genes, values[first:-1])) if i + first not in hidden]
    assert len({g for g, _ in visible}) == len(visible)
    zeros = [g for g, v in visible if float(v) == 0]
    assert all(g not in have and g in measured(options, panel, size) for g in zeros)
    return have, genes, zeros, visible, first, limit


def cell(vocabulary, table, masked, library, options):
    options, size, cells = json.loads(options), len(vocab(vocabulary)), read_tokens(table)
    left = all_genes = zeros_seen = tokens_seen = without = n = 0
    seen = set()
    for name, epoch, ids, values, target, value in rows(masked):
        n_counts, panel, token, count = cells[name[0]]
        ids = [int(t) for t in ids]
        have, genes, zeros, visible, first, limit = check_input(options, library, cells[name[0]], size, ids, values)
        kept = [g for g in genes if g in have]
        # the sum of the input is that of the genes that are left, and the input is cut after it
        total = None
        if library == "all":
            total = n_counts
        elif len(genes) < limit or not kept:
            total = sum(have[g] for g in kept)
        else:  # cut: found from the first value
            total = have[kept[0]] * 1e4 / math.expm1(float(values[ids.index(kept[0])])) - 1
        near([v for g, v in visible if g in have], [expression(have[g], total, library) for g in kept], 2e-5)
        assert [int(t) for t in target] == sorted(have)
        near(value, [expression(have[g], n_counts if library == "all" else sum(have.values()), library) for g in sorted(have)])
        at = [i for i, g in enumerate(genes) if g in set(zeros)]
        whole = kept if len(genes) < limit or at else kept + [None] * 2
        without += not check_order(options, [t for t in token if t >= SPECIAL], kept, at, limit, whole, len(measured(options, panel, size) - set(have)))
        if len(genes) < limit and not at:
            left, all_genes = left + len(have) - len(kept), all_genes + len(have)
        zeros_seen, tokens_seen, n = zeros_seen + len(zeros), tokens_seen + len(genes), n + 1
        seen.add(tuple(ids))
    assert n and len(seen) > 1
    print(f"{left / all_genes if all_genes else float('nan'):.4f} {zeros_seen / tokens_seen:.4f} {without / n:.4f}")


def value(vocabulary, table, masked, library, options):
    options, size, cells = json.loads(options), len(vocab(vocabulary)), read_tokens(table)
    field, chosen, hid, every = options.get("field", "value"), 0, 0, 0
    for name, epoch, ids, values, position, target, *numbers in rows(masked):
        n_counts, panel, token, count = cells[name[0]]
        ids, position, target = [int(t) for t in ids], [int(p) for p in position], [int(t) for t in target]
        assert position == sorted(set(position)) and (numbers == []) == (field == "gene")
        hidden = [p for p in position if (float(values[p]) == -5 if field != "gene" else ids[p] == 4)]
        have, genes, zeros, visible, first, limit = check_input(options, library, cells[name[0]], size, ids, values, hidden)
        total = n_counts if library == "all" else sum(have.values())
        near([v for _, v in visible], [expression(have.get(g, 0), total, library) for g, _ in visible])
        for p, t in zip(position, target):
            assert (ids[p] == 4) == (p in hidden and field != "value")
            assert ids[p] in (t, 4) and t >= SPECIAL
            if p in hidden and field == "gene":
                near([values[p]], [expression(have.get(t, 0), total, library)])
        if numbers:
            near(numbers[0], [expression(have.get(t, 0), total, library) for t in target])
        chosen, hid, every = chosen + len(position), hid + len(hidden), every + len(genes)
    print(f"{chosen / every:.4f} {hid / chosen:.4f}")


# ---- models ----

def gelu(x):
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def transform(config, w, x):
    z = x @ w["cls.predictions.predictions.transform.dense.weight"].T + w["cls.predictions.predictions.transform.dense.bias"]
    z = gelu(z) if config["hidden_act"] == "gelu" else np.maximum(z, 0)
    z = (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + config["layer_norm_eps"])
    return z * w["cls.predictions.predictions.transform.LayerNorm.weight"] + w["cls.predictions.predictions.transform.LayerNorm.bias"]


DECODER = "cls.predictions.predictions.decoder.field_decoders.expressions_"


def whole(config, w, ids):
    x = bert.encode(config, w, ids)[-1][:1]
    z = transform(config, w, x) @ w[DECODER + "wced.weight"].T + w[DECODER + "wced.bias"]
    return z.reshape(-1, 2).T  # value, logit of zero


def bce(a, zero):
    return np.maximum(a, 0) + np.log1p(np.exp(-np.abs(a))) - np.where(zero, a, 0)


def compare(table, want):
    got = dict(line.split("\t") for line in open(table).read().split("\n")[1:-1])
    for name, x in want.items():
        print(f"{name}: {float(got[name]):.9g}, here {x:.9g}")
        assert abs(float(got[name]) - x) <= 1e-5 * abs(x), name


def mean_distance(x, c):
    return np.abs(x - c).mean() if len(x) else math.nan


def by_gene(vocabulary, table, gene, y, m, a):
    """The table of --gene-scores, of all pairs. Areas may differ by what the table says, and by float32 logits that are almost equal."""
    from sklearn.metrics import roc_auc_score
    lines = [line.split("\t") for line in open(table).read().split("\n")[:-1]]
    names = vocab(vocabulary)
    assert [line[0] for line in lines[1:]] == names[SPECIAL:]
    areas = 0
    for line in lines[1:]:
        got = dict(zip(lines[0][2:], (math.nan if v == "NA" else float(v) for v in line[2:])))
        of = gene == names.index(line[0])
        t, p, z = y[of], m[of], a[of]
        gated, on = np.where(z > 0, 0, p), t != 0
        mean, mean_on = (t.mean() if len(t) else math.nan), (t[on].mean() if on.any() else math.nan)
        want = {"n": len(t), "expressed": on.sum(), "zero_fraction": 1 - on.mean() if len(t) else math.nan, "mean": mean, "mean_expressed": mean_on,
                "mae": mean_distance(gated, t), "mae_expressed": mean_distance(gated[on], t[on]),
                "mae_expressed_ungated": mean_distance(p[on], t[on]), "null": mean_distance(t, mean), "null_expressed": mean_distance(t[on], mean_on)}
        want["rescaled"], want["rescaled_ungated"] = want["mae_expressed"] / mean_on, want["mae_expressed_ungated"] / mean_on
        for key, v in want.items():
            # a logit that is 0 but for rounding may be gated or not
            off = 1e-5 * max(1, abs(v)) + (got["null_error"] if key.startswith("null") else 0)
            assert math.isnan(v) and math.isnan(got[key]) or abs(got[key] - v) <= off, (line[0], key, got[key], v)
        if 0 < on.sum() < len(t):
            areas += 1
            off = got["auc_error"] + 1e-9 + np.mean(np.abs(z[on][:, None] - z[~on][None]) < 1e-5)
            assert abs(got["auc"] - roc_auc_score(t == 0, z)) <= off, (line[0], got, off)
        else:
            assert math.isnan(got["auc"])
    assert areas > 50
    assert len(lines) - 1 == len(names) - SPECIAL


def evaluate(model, vocabulary, masked, table, panels="null", genes=None):
    config, w = bert.load(model)
    options = {} if panels == "null" else {"panels": json.loads(panels)}
    size = len(vocab(vocabulary))
    sums = np.zeros((3, 2, 2))
    right = 0
    pairs = []
    for _, panel, ids, _, target, values in rows(masked):
        ids = [int(t) for t in ids]
        m, a = whole(config, w, ids)
        y = np.full(size, np.nan)
        y[sorted(measured(options, int(panel[0]) if panel else 0, size))] = 0
        y[[int(t) for t in target]] = [float(v) for v in values]
        there = ~np.isnan(y)
        inside = np.isin(np.arange(size), ids)
        for k, of in enumerate((there, there & inside, there & ~inside)):
            sums[k, 0] += bce(a, y == 0)[of].sum(), of.sum()
            sums[k, 1] += ((m - y) ** 2)[of & (y != 0)].sum(), (of & (y != 0)).sum()
        right += ((a > 0) == (y == 0))[there].sum()
        pairs.append(np.stack([np.arange(size), y, m, a])[:, there])
    mean = sums[:, :, 0] / sums[:, :, 1]
    compare(table, {"loss": mean[0].mean(), "is_zero": mean[0, 0], "mse": mean[0, 1], "is_zero_input": mean[1, 0], "mse_input": mean[1, 1],
                    "is_zero_other": mean[2, 0], "mse_other": mean[2, 1], "masked": sums[0, 0, 1], "zero_accuracy": right / sums[0, 0, 1]})
    if genes:
        by_gene(vocabulary, genes, *np.concatenate(pairs, 1))


def expression_eval(model, masked, table, vocabulary=None, genes=None):
    config, w = bert.load(model)
    zero = square = n = nonzero = 0
    pairs = []
    for ids, _, position, values in rows(masked):
        x = bert.encode(config, w, [int(t) for t in ids])[-1][[int(p) for p in position]]
        t = transform(config, w, x)
        m = t @ w[DECODER + "regression.weight"][0] + w[DECODER + "regression.bias"]
        a = t @ w[DECODER + "is_zero.weight"][0] + w[DECODER + "is_zero.bias"]
        y = np.array([float(v) for v in values])
        pairs.append(np.stack([[int(ids[int(p)]) for p in position], y, m, a]))
        zero, n = zero + bce(a, y == 0).sum(), n + len(y)
        square, nonzero = square + ((m - y) ** 2)[y != 0].sum(), nonzero + (y != 0).sum()
    compare(table, {"is_zero": zero / n, "mse": square / nonzero, "loss": (1.5 * zero / n + square / nonzero) / 2.5, "masked": n})
    if genes:
        by_gene(vocabulary, genes, *np.concatenate(pairs, 1))


def reconstruct(model, table, prediction):
    config, w = bert.load(model)
    n = 0
    for (ids, _), (gene, got, expressed, gated) in zip(rows(table), rows(prediction)):
        m, a = whole(config, w, [int(t) for t in ids])
        g = [int(x) for x in gene]
        near(got, m[g], 1e-5)
        near(expressed, 1 / (1 + np.exp(a[g])), 1e-5)
        near(gated, np.where(a[g] > 0, 0, m[g]), 1e-5)
        n += 1
    assert n
    print(n)


{"tokens": tokens, "cell": cell, "value": value, "eval": evaluate, "expression": expression_eval, "reconstruct": reconstruct}[sys.argv[1]](*sys.argv[2:])
