#!/usr/bin/env python3
"""Every option that names a column of labels or of groups, in every command: words that are no label, numbers, ids and names of streams' own columns.

    BIN=bin tests/labels.py FOLDER

FOLDER gets the inputs. The options are those whose argument is a column (COL) in --completion: one that is not listed here is an error. Exit status 1 and a
line for each that does not do what the others do.
"""
import os, re, shutil, subprocess, sys
from pathlib import Path

from options import BIN, completion, heads

CELLS, WORDS = 240, ["unknown", "nan", "<NA>", "Not assigned", "-", "NULL"]
MAKE = """
scsim -q --cells 240 --genes 60 --modules 6 --types 3 --rarest .2 --depth 300 --donors 4 -o sim.counts
scview -q -O h5ad sim.counts -o sim.h5ad
COLUMNS
h5tok -q a.h5ad -o a.counts
rankenc -q --fit a.counts -o vocab
rankenc -q -m vocab a.counts -o tok
screduce pca -q -k 5 a.counts -o emb
maskgen -q --strategy none --keep cell_type,donor,n_umi,clusters,bc,obs_n_counts,spelt tok -o plain
maskgen -q --count-kept --keep cell_type,donor,n_umi,clusters,bc,obs_n_counts,spelt tok -o masked
maskgen -q --strategy columns --rate .3 -b 30 --keep cell_type,donor,n_umi,clusters,bc,obs_n_counts,spelt a.counts -o columns.masked
sctrain mlm -q -c tiny masked -o mlm
sctrain cells -q -c tiny --label cell_type plain -o classes
scpredict cells -q -M classes tok -o pred
scperturb apply -q --delete SIMG000003 tok -o deleted
scembed -q -M mlm deleted -o deleted.emb
"""
# LABEL: a column of classes; GROUP: of donors or batches; CLASS: of classes that may be numbers. COL is the column. The last word is the option.
COMMANDS = """
LABEL h5tok --list-obs a.h5ad --label COL
GROUP h5tok --list-obs a.h5ad --group COL
LABEL ctaprobe cells emb --label COL
GROUP ctaprobe cells emb --label clusters --folds 3 --group COL
LABEL ctaprobe transfer --reference a.counts sim.counts --label COL
GROUP ctaprobe transfer --reference a.counts --label clusters sim.counts --group COL
LABEL ctaprobe score pred --label COL
GROUP ctaprobe score pred --label clusters --bootstrap 2 --group COL
GROUP ctaprobe panel --panel genes --train a.counts --method ridge a.counts --group COL
LABEL scmetric integration emb --label COL
GROUP scmetric integration emb --label clusters --batch-key COL
LABEL scgenes markers a.counts --label COL
LABEL scembed -M mlm --of genes tok --by COL
LABEL sctrain cells -c tiny --force plain --label COL
LABEL sctrain mlm -c tiny --force masked --head COL:ce
LABEL sctrain cells -c tiny --force --ontology types.obo plain --head COL:hce
GROUP sctrain nb -c mlp-nb-tiny --force columns.masked --batch-key COL
CLASS scsample a.counts --balance COL
CLASS scsample a.counts --cap COL:20
CLASS scsample a.counts --min-class COL:2
CLASS scsample -n 100 a.counts --stratify COL
GROUP scsample --test-fraction .5 --part test a.counts --group COL
GROUP scsample --hvg 20 a.counts --batch-key COL
GROUP scperturb shift deleted.emb --group COL
GROUP depgraph a.counts --within COL
"""
# Options with a column that is no label: numbers, clusters, values that a user names, two states, columns to copy, and the tables of armstat.
OTHERS = {"ctaprobe cells --target", "ctaprobe transfer --clusters", "ctaprobe cells --fold-column", "ctaprobe score --target", "maskgen --keep", "maskgen --module", "scperturb shift --state",
          "scgenes genesets --module", "depgraph --states"}
# Where words cannot be labels: 'unknown' is what transfer calls cells, and words are no terms.
KEPT_REFUSED = {"transfer": "'unknown'", "--ontology": "'unknown'"}
SAME_KIND = {"sctrain " + c + " --head" for c in ("genes", "nb", "value", "wced", "cells")}     # one table: mlm stands for all


def columns():
	import anndata
	import numpy as np
	a = anndata.read_h5ad("sim.h5ad")
	types, donors, n = a.obs["cell_type"].astype(str).to_numpy().astype(object), a.obs["donor"].astype(object).to_numpy(), np.arange(CELLS)
	a.obs["n_counts"], a.obs["spelt"] = types.copy(), [t.upper() + " " if i % 3 == 0 else t for i, t in enumerate(types)]
	types[:30] = [WORDS[i % len(WORDS)] for i in range(30)]
	donors[40:45], donors[45:48] = None, "NA"
	a.obs["cell_type"], a.obs["donor"], a.obs["n_umi"], a.obs["clusters"] = types, donors, n // 2, n % 5
	a.obs["bc"] = [f"c{i}" for i in n]
	a.write_h5ad("a.h5ad")


def make_inputs():
	rows = [f"SIMG{i:06d}" for i in range(1, 61)]
	Path("genes").write_text("\n".join(rows[:20]) + "\n")
	Path("types.obo").write_text("format-version: 1.2\n\n[Term]\nid: T0\nname: cell\n" + "".join(
		f"\n[Term]\nid: T{i}\nname: type{i}\nis_a: T0\n" for i in (1, 2, 3)) + "".join(f"\n[Term]\nid: C{i}\nname: {i}\nis_a: T0\n" for i in range(5)))
	for line in MAKE.strip().splitlines():
		tool, *words = line.split()
		if tool == "COLUMNS":
			columns()
		else:
			subprocess.run([BIN / tool, *words], check=True)


def listed():
	"""TOOL [COMMAND] --OPTION of all rows."""
	for line in COMMANDS.strip().splitlines():
		_, *words = line.split()
		yield " ".join(w for w in (words[0], words[1] if [words[0], words[1]] in HEADS else "", words[-2]) if w)


def run(words, column, *more):
	"""Status, messages, whether there is an output, and the report."""
	for name in ("out", "report"):
		shutil.rmtree(name, ignore_errors=True)
		Path(name).unlink(missing_ok=True)
	done = subprocess.run([BIN / words[0], *(w.replace("COL", column) for w in words[1:]), *more, "--report", "report", "-o", "out"],
	                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
	there = os.path.exists("out/config.json") if os.path.isdir("out") else os.path.exists("out")
	report = dict(line.split("\t", 1) for line in Path("report").read_text().splitlines()) if os.path.exists("report") else {}
	return done.returncode, done.stderr, there, report


def refused(words, column, *names):
	status, said, there, _ = run(words, column)
	missing = [n for n in (column, *names) if not re.search(rf"(?<![\w.]){re.escape(n)}(?![\w.])", said)]
	if status != 1 or there or missing or len([line for line in said.splitlines() if ": note: " not in line and ": warning: " not in line]) != 1:
		yield f"{column}: status {status}, {'an output, ' if there else ''}{missing} not named: {said.strip()}"


def wrong_with(kind, words):
	row, column, n = ("no_group", "donor", 8) if kind == "GROUP" else ("unknown_label", "cell_type", 30)
	status, said, there, report = run(words, column)
	aside = float(report.get("set_aside:" + row, "nan"))
	if status or not there or not (aside == n or (words[0] == "scperturb" and aside > 0)):
		yield f"{column}: status {status}, set aside {aside}: {said.strip()}"
	if not re.search(rf": note: .*\b{aside:.0f}\b", said) or (kind == "GROUP" and "NA 3" not in said and words[0] != "scperturb") or (
			kind != "GROUP" and any(f"{w} 5" not in said for w in WORDS)):
		yield f"{column}: no note of {aside:.0f} cells with the words: {said.strip()}"
	if kind != "GROUP" and sum(float(v) for k, v in report.items() if k.startswith("set_aside:unknown_label:")) != n:
		yield f"{column}: the words are not in the report"
	status, said, there, kept = run(words, column, "--keep-unknown-labels")
	reason = next((r for w, r in KEPT_REFUSED.items() if w in words[1:] and kind != "GROUP"), "")
	left = float(kept.get("set_aside:" + row, "nan"))
	if reason and (status != 1 or reason not in said):
		yield f"{column} --keep-unknown-labels: status {status}, {reason} is not named: {said.strip()}"
	elif not reason and (status or not there or not left < aside or (kind != "GROUP" and left)):
		yield f"{column} --keep-unknown-labels: status {status}, set aside {kept.get('set_aside:' + row)}: {said.strip()}"
	said = "" if kind == "CLASS" else run(words, "spelt")[1]
	if kind != "CLASS" and not re.search(r": warning: .*'spelt': '(type\d)' and '\1 ' differ in case|: warning: .*'spelt': '(type\d) ' and '\2' differ in case", said, re.I):
		yield f"spelt: types that are spelt in two ways are not named: {said.strip()}"
	yield from refused(words, "n_counts", "obs_n_counts")
	if kind == "LABEL":
		yield from refused(words, "n_umi", "120")
		yield from refused(words, "bc", "240")
		if run(words, "clusters")[0]:
			yield "clusters: five numbers are refused"


def main():
	global HEADS
	os.makedirs(sys.argv[1], exist_ok=True)
	os.chdir(sys.argv[1])
	os.environ.update(OMP_WAIT_POLICY="passive", OPENBLAS_NUM_THREADS="1")
	HEADS = list(heads())
	if not Path("deleted.emb").exists():
		make_inputs()
	known = set(listed()) | OTHERS | SAME_KIND
	found = {" ".join([*h, row[0]]) for h in HEADS if h[0] != "armstat" for row in completion(*h) if len(row) > 1 and "COL" in row[1]}
	wrong = [f"{o}: a column, but in none of the lists of {os.path.basename(__file__)}" for o in sorted(found - known)]
	wrong += [f"{o}: no option with a column" for o in sorted(known - found)]
	for line in COMMANDS.strip().splitlines():
		kind, *words = line.split()
		wrong += [f"{line}: {text}" for text in wrong_with(kind, words)]
	print("\n".join(wrong) or f"{len(found)} options with a column, {len(COMMANDS.strip().splitlines())} commands")
	sys.exit(len(wrong) > 0)


main()
