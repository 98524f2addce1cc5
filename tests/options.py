#!/usr/bin/env python3
"""Add every option of --help in turn to a working command, in every mode of every tool: it makes another output, or is refused by its name.

    BIN=bin tests/options.py FOLDER [WORD]      only the commands that have WORD

FOLDER gets the inputs. An option is tried with the words of its choice, or with the values of VALUES, or with those that fit the name of its
argument. What the header says about the run (provenance) is no output. Exit status 1 and a line for each option that is accepted and ignored,
or refused as misuse by a message without its name.
"""
import hashlib, os, re, shutil, subprocess, sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
import corrmask.stream as scstream
BIN = Path(os.environ["BIN"]).resolve()
MAKE = f"""
scsim -q --cells 120 --genes 80 --modules 6 --types 3 --rarest .2 --depth 300 --donors 4 -o a.counts
scsim -q --cells 60 --genes 60 --modules 6 --types 3 --rarest .2 --depth 300 --donors 4 --seed 2 -o b.counts
scview -q -O h5ad a.counts -o a.h5ad
rankenc -q --fit a.counts -o vocab
rankenc -q --fit b.counts -o part.vocab
rankenc -q --fit --vocab-style bmfm a.counts -o bvocab
rankenc -q --fit --vocab-style bmfm b.counts -o part.bvocab
rankenc -q --fit --sums a.counts -o sums
rankenc -q -m vocab a.counts -o tok
rankenc -q -m vocab b.counts -o b.tok
rankenc -q -m vocab --ties random a.counts -o ties.tok
rankenc -q -m vocab --ties group --value a.counts -o value.tok
rankenc -q -m bvocab --cls 2 a.counts -o btok
rankenc -q -m bvocab --cls 2 b.counts -o b.btok
scsample -q btok b.btok -o both.btok
scsample -q -n 60 a.counts -o less.counts
depgraph -q --min-overlap 10 --leiden 1 tok -o graph
depgraph -q --min-overlap 10 --rho-min .4 tok -o graph2
depgraph -q --pmi --min-count 2 --tau 0 tok -o pmi
maskgen -q tok -o masked
maskgen -q --count-kept --keep cell_type,n_counts tok -o kept.masked
maskgen -q b.tok -o b.masked
maskgen -q --strategy none --keep cell_type,donor,n_counts tok -o plain
maskgen -q --strategy none --keep cell_type,donor b.tok -o b.plain
maskgen -q --strategy none tok -o tok.plain
maskgen -q --objective value value.tok -o value.masked
maskgen -q --objective value --max-len 40 btok -o bvalue.masked
maskgen -q --objective cell btok -o cell.masked
maskgen -q --strategy columns --rate .3 -b 30 --keep donor,cell_type a.counts -o columns.masked
maskgen -q --strategy probe -g graph --partners hidden tok -o probe.masked
sctrain mlm -q -c tiny masked -o mlm
scsample -q --where cell_type!=type3 tok -o two.tok
maskgen -q --strategy none --keep cell_type,donor two.tok -o two.plain
sctrain cells -q -c tiny --label cell_type --label donor two.plain -o classes
sctrain cells -q -c tiny --head n_counts:mse plain -o number
sctrain cells -q -c tiny --head cell_type:hce --ontology types.obo plain -o terms
sctrain genes -q -c tiny --gene-labels labels --fold 0/2 tok.plain -o genes
sctrain value -q -c tiny bvalue.masked -o value
sctrain wced -q -c tiny cell.masked -o wced
sctrain nb -q -c mlp-nb-tiny --batch-key donor columns.masked -o nb
scperturb apply -q --delete SIMG000010,SIMG000020,SIMG000030,SIMG000040 --controls 2 tok -o deleted
scembed -q -M mlm tok -o emb
scembed -q -M mlm b.tok -o b.emb
scembed -q -M mlm --of genes tok -o genes.emb
scpredict cells -q -M classes --head cell_type tok -o pred
scpredict cells -q -M number tok -o number.pred
scpredict cells -q -M terms tok -o terms.pred
scpredict genes -q -M genes tok -o genes.pred
scpredict expression -q -M nb columns.masked -o counts.pred
scembed -q -M mlm deleted -o deleted.emb
scembed -q -M mlm --similarity mean deleted -o similarity
"""

# A command for each mode of each tool and command. {out}: the folder that a command needs to write to.
COMMANDS = """
h5tok a.h5ad
h5tok --map part.map a.h5ad
h5tok --rank part.vocab a.h5ad
h5tok --rank part.bvocab a.h5ad
h5tok --list-obs a.h5ad
rankenc -m part.vocab a.counts
rankenc -m part.bvocab a.counts
rankenc --fit a.counts
rankenc --fit --sums a.counts
depgraph --min-overlap 10 tok
depgraph --pmi --tau 0 tok
depgraph graph
depgraph --within donor --min-cells 20 a.counts
depgraph --within donor,cell_type --min-cells 10 --halves 2 a.counts
depgraph --compare graph2 graph
maskgen --strategy none tok
maskgen tok
maskgen --strategy runs ties.tok
maskgen --strategy columns a.counts
maskgen --strategy corrmask -g graph tok
maskgen --strategy pmi -g pmi tok
maskgen --strategy pmi-rand -g pmi tok
maskgen --strategy probe -g graph --partners hidden tok
maskgen --audit graph --rate-uniform .1:.4 tok
maskgen --objective value value.tok
maskgen --objective value --max-len 40 btok
maskgen --objective value --zeros batch --max-len 40 btok
maskgen --objective cell both.btok
sctrain mlm -c tiny -o {out}/m masked
sctrain value -c tiny -o {out}/m value.masked
sctrain value -c tiny -o {out}/m bvalue.masked
sctrain wced -c tiny -o {out}/m cell.masked
sctrain cells -c tiny --label cell_type -o {out}/m plain
sctrain cells -c tiny --head n_counts:mse -o {out}/m plain
sctrain genes -c tiny --gene-labels labels -o {out}/m tok.plain
sctrain nb -c mlp-nb-tiny -o {out}/m columns.masked
sctrain eval -M mlm masked
sctrain eval -M wced cell.masked
sctrain eval -M nb columns.masked
scperturb apply --delete all tok
scperturb apply --delete SIMG000010,SIMG000020 tok
scperturb apply --activate SIMG000010,SIMG000020 tok
scembed -M mlm tok
scembed -M nb a.counts
scembed -M mlm --of genes tok
scembed -M mlm --of static tok
scembed -M mlm --similarity mean deleted
scperturb screen -M mlm --top 3 --towards b.emb tok
scpredict cells -M classes --head cell_type tok
scpredict cells -M number tok
scpredict cells -M terms tok
scpredict genes -M genes tok
scpredict expression -M nb columns.masked
scpredict expression -M wced btok
scpredict attribution -M classes --head cell_type tok
screduce expression a.counts
screduce pca a.counts
ctaprobe cells --label cell_type emb
ctaprobe cells --label cell_type --nearest 5 emb
ctaprobe cells --label cell_type --naive-bayes a.counts
ctaprobe cells --target n_counts emb
ctaprobe cells --label cell_type --train emb --test b.emb
ctaprobe transfer --reference emb --label cell_type b.emb
ctaprobe transfer --reference emb --label cell_type --nearest 5 b.emb
ctaprobe transfer --reference a.counts --label cell_type --ontology types.obo b.counts
ctaprobe score --label cell_type pred
ctaprobe score --target n_counts number.pred
ctaprobe score --label cell_type --ontology types.obo terms.pred
ctaprobe genes genes.pred
ctaprobe genes --gene-labels labels genes.emb
ctaprobe panel --panel few.genes --train less.counts a.counts
scmetric reconstruction counts.pred
scmetric effective-rank emb
scmetric learnability --min-expressed 5 gene-errors
armstat leaderboard r1.tsv r2.tsv
armstat compare arms
armstat compare --pair seed arms
armstat compare --means arms
scmetric reference --train tok masked
scmetric integration --label cell_type emb
scmetric integration --label cell_type --batch-key donor emb
scmetric integration --label cell_type --exact-cells 100 emb
screduce map emb
scgenes markers --label cell_type a.counts
scgenes network genes.emb
scgenes genesets --sets sets graph
scgenes genesets --sets sets --module module graph
scperturb shift --state cell_type --from type1 --to type2 deleted.emb
scperturb shift similarity
scsample -n 20 tok
scsample -n 20 a.counts
scsample --test-fraction .5 --part test --group donor tok
scsample --test-fraction .5 --part test tok
scsample --balance cell_type tok
scsample --hvg 20 a.counts
scsample --thin .5 a.counts
scsample --thin .5 --complement a.counts
scsample tok
scsample emb
scsim --cells 50
scsim --kind b1 --cells 50
scsim --kind b2 --gamma .5 --cells 50
scview tok
scview --format npy emb
scview --format h5ad emb
scview --format h5ad --into a.h5ad -o {out}/x.h5ad emb
scview --header tok
scview --header-tsv tok
scview --vocab tok
scview --stats tok
scview --check tok
"""


# [TOOL ][COMMAND ]OPTION: values that may make another output. Others: the words of a choice, or those for the name of the argument.
VALUES = {
	"h5tok --obs": ["donor"], "h5tok --sample-column": ["sample"], "h5tok --obs-table": ["table"], "h5tok --layer": ["X", "nothing"],
	"h5tok --gene-column": ["index", "nothing"], "--map": ["map", "few.map"], "--rank": ["vocab"], "--tokens": ["tokens"],
	"--vocab": ["vocab", "bvocab"], "--after": ["sums"],
	"--module": ["module"], "--leiden": ["1", "20"], "--graph": ["graph2", "graph", "pmi"], "--rate-choice": [".1,.3"],
	"--shard": ["1/2"], "--audit": ["graph"], "maskgen --resume": ["mlm"],
	"--config": ["geneformer-v1-10m", "mlp-nb-tiny", "bmfm-tiny"], "--init": ["mlm", "nb"], "--head": ["donor:ce", "cell_type", "donor"],
	"--ontology": ["types.obo"], "--eval": ["b.masked", "b.plain"], "--gene-labels": ["labels", "other.labels"], "--fold": ["0/3"], "--fold-column": ["donor"],
	"--model": ["classes"], "--delete": ["SIMG000010"], "--overexpress": ["SIMG000010"], "--activate": ["SIMG000010"],
	"--inhibit": ["SIMG000010"], "--where": ["cell_type=type1"], "--pool": ["first", "token:1", "cls", "cell_type"],
	"--towards": ["b.emb"], "--node": ["T1"], "--attribute": ["cell_type"], "--train": ["b.counts"],
	"--shared-with": ["b.counts"], "ctaprobe cells --train": ["emb"], "--test": ["b.emb"], "maskgen --panel": ["few.genes"], "ctaprobe score --train": ["b.tok"],
	"reference --train": ["b.tok"], "transfer --reference": ["emb"], "panel --group": ["donor", "nothing"], "--calibration": ["b.emb"], "--label": ["cell_type", "donor"],
	"--target": ["n_counts"], "learnability --groups": ["groups"], "--metrics": ["accuracy"],
	"compare --metrics": ["loss"], "--arm": ["seed", "donor"], "--by": ["donor"], "scsample --group": ["donor"], "--within": ["seed"], "--pair": ["seed"],
	"--compare": ["a:b"], "--splits": ["3:1"], "--cluster": ["donor"], "--draws": ["seed"],
	"--clusters": ["donor"], "--sets": ["sets"], "--state": ["cell_type"], "--from": ["type2"], "--to": ["type3"], "--other": ["type3"],
	"--states": ["b.emb"], "--cap": ["cell_type:5"], "--min-class": ["cell_type:35"],
	"scsample --keep-genes": ["b.genes"], "--format": ["tsv", "npy", "h5ad", "stats", "graphml"], "scview --columns": ["cell"], "--into": ["a.h5ad"],
	"--key": ["name"], "--lambda": [".2", ".1:.9"], "--cells": ["40"],
	"--rate-uniform": [".1:.4"], "--rate-linear": [".1:.4"],
}
ARGUMENTS = {"COL": ["cell_type", "donor"], "COL,...": ["cell_type"], "COL[,COL]": ["cell_type"], "PERCENT": ["90", "100", "0"],
	"P": [".5", ".05"], "F": [".3"], "SD": ["1"]}
NUMBERS = ["2", "7", ".5", "-1", "40", "100"]

# Options that change no output by design: speed and memory, messages, and what these inputs or a first run do not need.
SAME = {"uncompressed", "seed", "device", "precision", "threads", "quiet", "verbose", "progress", "keep-checkpoints", "resume", "force",
	"same-kernels", "mpi", "round", "unlog", "all-features", "decode",
	"keep-unknown-labels", "h5tok label", "h5tok group", "scview replace"}


# The part of the cells is no setting of a run
UNSAID = {"shard"}


def make_inputs():
	"""The inputs in the current folder."""
	rows = [f"SIMG{i:06d}" for i in range(1, 81)]
	Path("map").write_text("".join(f"{g}\t{h}\n" for g, h in zip(rows, rows[1:])))
	Path("part.map").write_text("".join(f"{g}\t{g}.1\n" for g in rows[:50]))
	Path("few.map").write_text("".join(f"{g}\t{g}.1\n" for g in rows[:40]))
	Path("labels").write_text("gene\tlabel\n" + "".join(f"{g}\t{('one', 'two')[i % 2]}\n" for i, g in enumerate(rows[:40])))
	Path("other.labels").write_text("gene\tlabel\n" + "".join(f"{g}\t{('one', 'two')[i // 20]}\n" for i, g in enumerate(rows[:40])))
	Path("groups").write_text("gene\tgroup\n" + "".join(f"{g}\t{'xy'[i % 2]}\n" for i, g in enumerate(rows)))
	Path("sets").write_text("".join("\t".join([f"s{i}", "-", *rows[5 * i:5 * i + 8]]) + "\n" for i in range(12)))
	Path("b.genes").write_text("\n".join(rows[:60]) + "\n")
	Path("few.genes").write_text("\n".join(rows[:20]) + "\n")
	Path("table").write_text("barcode\tage\n" + "".join(f"sim{i}\t{i}\n" for i in range(1, 121)))
	Path("types.obo").write_text("format-version: 1.2\n\n[Term]\nid: T0\nname: cell\n\n[Term]\nid: T9\nname: some\nis_a: T0\n" + "".join(
		f"\n[Term]\nid: T{i}\nname: type{i}\nis_a: {('T9', 'T9', 'T0')[i - 1]}\n" for i in (1, 2, 3)))
	Path("arms").write_text("arm\tseed\tdonor\tvalue\tloss\n" + "".join(
		f"{a}\t{s}\td{s % 2}\t{.1 * s * s + .2 * i + s * i * .03 % .1}\t{s + i * i}\n" for i, a in enumerate("abc") for s in range(1, 7)))
	names = ("expressed", "zero_fraction", "mae_expressed", "mae_expressed_ungated", "null_expressed", "rescaled", "rescaled_ungated")
	Path("gene-errors").write_text("\t".join(("gene", "symbol", *names)) + "\n" + "".join(
		f"{g}\t{g}\t{9 + i}\t{i / 90}\t.5\t.4\t.6\t{.2 + i * 37 % 80 / 100}\t{.2 + i * 23 % 80 / 100}\n" for i, g in enumerate(rows)))
	for i in (1, 2):
		Path(f"r{i}.tsv").write_text("metric\tvalue\naccuracy\t.%d\nbalanced_accuracy\t.%d\nmacro_f1\t.%d\n" % (i + 3, i + 2, i + 1))
	for line in MAKE.strip().splitlines():
		tool, *words = line.split()
		subprocess.run([BIN / tool, *words], check=True)


def completion(*command):
	text = subprocess.run([BIN / command[0], *command[1:], "--completion"], capture_output=True, text=True, check=True).stdout
	return [line.split("\t") for line in text.splitlines()]


def heads():
	"""[tool] or [tool, command], for each there is."""
	for tool in sorted(p.name for p in BIN.iterdir() if p.name != "corrmask" and "." not in p.name and p.is_file()):
		names = [row[0] for row in completion(tool) if not row[0].startswith("--")]
		yield from ([tool, name] for name in names) if names else [[tool]]


def options(command):
	"""Name and argument of every option."""
	return {name[2:]: arg for name, arg, _ in completion(*command)}


def content(path):
	"""What a file says, without what only tells how it was made."""
	data = path.read_bytes()
	if data[:4] == b"\x28\xb5\x2f\xfd":
		stream = scstream.read(path)
		columns = [part for block in stream for name in sorted(block) for part in (block[name] if isinstance(block[name], tuple) else [block[name]])]
		return repr({k: v for k, v in stream.header.items() if k != "provenance"}).encode() + b"".join(
			np.asarray(c).tobytes() if not isinstance(c, list) else repr(c).encode() for c in columns)
	if path.name == "train.tsv":
		rows = [line.split("\t") for line in data.decode().splitlines()]
		return repr([[v for k, v in zip(rows[0], row) if k not in ("tokens_per_s", "cells_per_s", "seconds")] for row in rows]).encode()
	if path.suffix == ".safetensors":
		return data[8 + int.from_bytes(data[:8], "little"):]
	return data


def provenance(path):
	"""The programs that made a stream with their options, which are those that change it, but for the names of inputs; of other files None."""
	return scstream.read(path).header["provenance"] if path.read_bytes()[:4] == b"\x28\xb5\x2f\xfd" else None


def unsaid(made, base):
	"""A stream that an option changed whose provenance does not say so."""
	return next((f for f in made if f in base and made[f][1] is not None and made[f][0] != base[f][0] and made[f][1] == base[f][1]), None)


def run(command, option=()):
	"""Status, message and what it makes."""
	out = Path("out")
	shutil.rmtree(out, ignore_errors=True)
	out.mkdir()
	words = [w.replace("{out}", "out") for w in command.split()]
	with open("out/stdout", "wb") as f:
		done = subprocess.run([BIN / words[0], *words[1:], "-q", *option], stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.PIPE)
	made = {str(p): (hashlib.sha256(content(p)).hexdigest(), provenance(p)) for p in sorted(out.rglob("*")) if p.is_file()} if done.returncode == 0 else {}
	return done.returncode, done.stderr.decode(), made


def values(command, name, arg):
	words = command.split()
	if not arg:
		return [None]
	for key in (f"{words[0]} {words[1]} --{name}", f"{words[1]} --{name}", f"{words[0]} --{name}", f"--{name}"):
		if key in VALUES:
			return VALUES[key]
	if re.fullmatch(r"[\w-]+(\|[\w-]+)+", arg):
		return arg.split("|")
	return ARGUMENTS.get(arg, NUMBERS) if not arg.startswith("FILE") and arg not in ("DIR", "MODEL") else ["out/file"]


def verdict(command, name, arg, base):
	"""What is wrong with this option of this command, or None."""
	tried = []
	for value in values(command, name, arg):
		option = [f"--{name}"] + ([value] if value is not None else [])
		status, message, made = run(command, option)
		named = f"--{name}" in message or (value is not None and value in message)
		if status == 0 and not re.match(r"FILE|DIR|MODEL", arg or "") and name not in UNSAID and (f := unsaid(made, base)):
			return f"{command} {' '.join(option)}: it changes {f}, and provenance does not say so"
		if status == 0 and (made != base or SAME & {name, f"{command.split()[0]} {name}"}):
			return None
		if status == 1 or (status == 2 and named):  # 1: the input lacks something
			tried.append("refused")
		elif status:
			return f"{command} {' '.join(option)}: status {status}, a message without its name: {message.splitlines()[0]}"
		else:
			tried.append(f"{value or ''} changes nothing")
	wrong = [t for t in tried if t != "refused"]  # the word that is the default may change nothing where the others are refused
	return f"{command} --{name}: {'; '.join(wrong)}" if len(wrong) > (len(tried) > 1) else None


def main():
	folder, *words = sys.argv[1:]
	os.makedirs(folder, exist_ok=True)
	os.chdir(folder)
	os.environ.update(OMP_WAIT_POLICY="passive", OPENBLAS_NUM_THREADS="1")
	if not Path("arms").exists():
		make_inputs()
	wrong, n = [], 0
	wrong += [f"no command of {' '.join(h)}" for h in heads() if not words and not any(c.split()[:len(h)] == h for c in COMMANDS.splitlines())]
	for command in COMMANDS.strip().splitlines():
		if words and words[0] not in command:
			continue
		head = next(h for h in heads() if command.split()[:len(h)] == h)
		status, message, base = run(command)
		if status:
			wrong.append(f"{command}: status {status}: {message}")
			print(wrong[-1], flush=True)
			continue
		for name, arg in options(head).items():
			if name in ("help", "version", "output") or re.search(rf"(^| )--{name}( |$)", command):
				continue
			n += 1
			if bad := verdict(command, name, arg, base):
				wrong.append(bad)
				print(bad, flush=True)
	print(*(w for w in wrong if w.startswith("no command")), f"{n} options, {len(wrong)} wrong", sep="\n", file=sys.stderr)
	sys.exit(bool(wrong))


if __name__ == "__main__":
	main()
