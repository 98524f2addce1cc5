#!/usr/bin/env bats
# maskgen: order, shards, masks, resume

load helper

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	export PATH=$BIN:$PATH
	scsim -n 700 --genes 300 --modules 12 --depth 700 -u | tee s.counts | rankenc -q --fit -o vocab.tsv
	rankenc -q -m vocab.tsv s.counts -o s.tok
	depgraph --min-overlap 50 s.tok -o s.graph
	depgraph --pmi --tau 0.1 --min-count 3 s.tok -o s.pmi
	scsim --kind b1 -n 300 | depgraph --min-overlap 10 -o other.graph
}

setup() { cd "$BATS_FILE_TMPDIR" && rm -f x; }

# The value of key $2 in the "loader" of the header of stream $1.
loader() {
	scview -H "$1" | $PYTHON -c 'import json, sys; v = json.load(sys.stdin)["loader"][sys.argv[1]]; print(v if isinstance(v, str) else json.dumps(v))' "$2"
}

@test "maskgen: same bytes for any number of threads, file or pipe" {
	for how in "--strategy none" "--rate 0.3" "--bernoulli" "--strategy corrmask -g s.graph --partners weighted --rate-uniform 0:1" "--strategy pmi-rand -g s.pmi"; do
		maskgen $how --epochs 2 -b 7 s.tok > a
		maskgen $how --epochs 2 -b 7 -@ 2 s.tok > b
		maskgen $how --epochs 2 -b 7 -@ 3 < s.tok > c
		cat s.tok | maskgen $how --epochs 2 -b 7 > d
		cmp a b
		cmp a c
		cmp a d
	done
}

@test "maskgen: every cell once an epoch, its tokens back from input and target, budget exact" {
	maskgen --strategy corrmask -g s.graph --rate 0.2 --lambda 0.4 --epochs 3 -b 16 --keep cell_type,donor -o m s.tok
	scview -c cell,token,cell_type,donor s.tok > tok.tsv
	scview -c cell,epoch,step,input,position,target,cell_type,donor m > m.tsv
	$PYTHON - <<-'END'
		cells = {}
		for line in list(open("tok.tsv"))[1:]:
		    c, t, *label = line.rstrip("\n").split("\t")
		    cells[int(c)] = [int(x) for x in t.split()], label
		seen, changed = {}, 0
		rows = [line.rstrip("\n").split("\t") for line in open("m.tsv")][1:]
		for k, (c, epoch, step, i, p, t, *label) in enumerate(rows):
		    c, epoch, step = int(c), int(epoch), int(step)
		    i, p, t = ([int(x) for x in s.split()] for s in (i, p, t))
		    tokens, want = cells[c]
		    assert label == want
		    assert len(p) == len(t) == int(len(tokens) * 0.2 + 1e-9) and p == sorted(set(p))
		    changed += sum(i[a] != b for a, b in zip(p, t))
		    for a, b in zip(p, t):
		        assert b >= 2 and (i[a] == 1 or i[a] >= 2)
		        i[a] = b
		    assert i == tokens
		    seen[epoch, c] = seen.get((epoch, c), 0) + 1
		    steps = (len(cells) + 15) // 16
		    assert epoch == k // len(cells) and step == epoch * steps + k % len(cells) // 16
		assert len(seen) == 3 * len(cells) and set(seen.values()) == {1}
		first, second = ([r[0] for r in rows if r[1] == e] for e in "01")
		assert first != second and first != sorted(first, key=int)
	END
	[ "$(loader m steps)" = 132 ]
	[ "$(loader m rows)" = 700 ]
}

@test "maskgen: masks depend on seed, epoch, cell and rate alone" {
	maskgen -g s.graph --strategy corrmask -b 5 s.tok | scview -c cell,input,position | sort > a
	maskgen -g s.graph --strategy corrmask -b 64 s.tok | scview -c cell,input,position | sort > b
	cmp a b
	maskgen -g s.graph --strategy corrmask -b 64 --seed 2 s.tok | scview -c cell,input,position | sort > b
	run ! cmp -s a b
	maskgen -g s.graph --strategy corrmask --lambda 0 s.tok | scview -c cell,input,position | sort > a
	maskgen --strategy random s.tok | scview -c cell,input,position | sort > b
	cmp a b
}

@test "maskgen: shards of batch b interleave to one shard of batch n b" {
	maskgen -g s.graph --strategy corrmask --rate-uniform 0.1:0.9 -b 12 --epochs 2 s.tok | scview -c step,cell,input,position,target | tail -n +2 > whole
	for r in 0 1 2; do
		maskgen -g s.graph --strategy corrmask --rate-uniform 0.1:0.9 -b 4 --epochs 2 --shard $r/3 s.tok > shard$r
		scview -c step,cell,input,position,target shard$r | tail -n +2 > shard$r.tsv
		[ "$(loader shard$r steps)" = "$(loader shard0 steps)" ]
	done
	$PYTHON - <<-'END'
		from itertools import zip_longest
		step = lambda l: int(l.split("\t")[0])
		shards = [open(f"shard{r}.tsv").readlines() for r in range(3)]
		out = []
		for k in range(1 + max(step(s[-1]) for s in shards)):
		    for row in zip_longest(*([l for l in s if step(l) == k] for s in shards)):
		        out += [l for l in row if l]
		assert out == open("whole").readlines()
	END
	OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 maskgen -g s.graph --strategy corrmask --rate-uniform 0.1:0.9 -b 4 --epochs 2 --shard auto s.tok | cmp - shard2
	SLURM_PROCID=1 SLURM_NTASKS=9 SLURM_STEP_NUM_TASKS=3 maskgen -g s.graph --strategy corrmask --rate-uniform 0.1:0.9 -b 4 --epochs 2 --shard auto s.tok | cmp - shard1
	run -0 env PMI_RANK=0 PMI_SIZE=2 maskgen --shard auto s.tok -o x
	assert_output "maskgen: note: --shard auto: shard 0 of 2 (PMI_SIZE)"
}

@test "maskgen --balance-lengths: the same global batches, dealt out by length" {
	# half of the cells have a tenth of the tokens
	scsim -n 120 --genes 300 --depth 3000 --seed 1 -o deep.counts
	scsim -n 120 --genes 300 --depth 60 --seed 2 -o shallow.counts
	scsample deep.counts shallow.counts -o both.counts
	rankenc --fit -o both.tsv both.counts
	rankenc -m both.tsv both.counts -o both.tok
	maskgen -b 24 --epochs 2 both.tok | scview -c step,cell,input,position,target | tail -n +2 > whole
	for r in 0 1 2 3; do
		maskgen --balance-lengths -b 6 --epochs 2 --shard $r/4 -@ 2 both.tok | tee balanced$r | scview -c step,batch_row,cell,input,position,target | tail -n +2 > balanced$r.tsv
		maskgen -b 6 --epochs 2 --shard $r/4 both.tok | scview -c step,cell,input | tail -n +2 > turn$r.tsv
		scview --check balanced$r
	done
	$PYTHON - <<-'END'
		from collections import defaultdict
		import numpy as np
		whole, rows = defaultdict(list), defaultdict(dict)
		for l in open("whole"):
		    whole[l.split("\t")[0]].append(l.split("\t")[1:])
		cost, turn, number = defaultdict(lambda: np.zeros(4)), defaultdict(lambda: np.zeros(4)), defaultdict(lambda: np.zeros(4))
		for r in range(4):
		    last = ("", -1)
		    for l in open(f"balanced{r}.tsv"):
		        step, row, *rest = l.split("\t")
		        assert int(row) not in rows[step] and (step != last[0] or int(row) > last[1])       # in the batch's order
		        last = (step, int(row))
		        rows[step][int(row)] = rest
		        n = len(rest[1].split())
		        cost[step][r] += n * (1024 + n)
		        number[step][r] += 1
		    for l in open(f"turn{r}.tsv"):
		        n = len(l.split("\t")[2].split())
		        turn[l.split("\t")[0]][r] += n * (1024 + n)
		assert {s: [x[i] for i in range(len(x))] for s, x in rows.items()} == dict(whole)
		assert all(n.max() <= 6 and n.max() - n.min() <= 1 for n in number.values())
		share = lambda c: np.mean([x.mean() / x.max() for x in c.values()])
		print(share(turn), share(cost))
		assert share(turn) < 0.8 and share(cost) > 0.93
	END
	run maskgen --balance-lengths --keep batch_row both.tok -o x
	assert_failure 1
}

@test "maskgen: more shards than cells still give every shard the same number of batches" {
	scsim --kind b1 -n 5 -o few.tok
	for r in 0 6; do
		maskgen -b 1 --shard $r/7 --epochs 2 few.tok > x
		[ "$(loader x steps)" = 2 ]
	done
	[ "$(scview x | wc -l)" = 1 ]
	scview --check x
}

@test "maskgen: a rate for every batch, uniform or linear" {
	maskgen --rate-linear 0.6:0.2 -b 50 s.tok | scview -c step,input,position > m.tsv
	maskgen --rate-uniform 0.2:0.6 -b 50 s.tok | scview -c step,input,position > u.tsv
	$PYTHON - <<-'END'
		def rates(name):
		    out = {}
		    for line in list(open(name))[1:]:
		        s, i, p = line.rstrip("\n").split("\t")
		        n = len(i.split())
		        lo, hi = len(p.split()) / n, (len(p.split()) + 1) / n
		        a, b = out.get(int(s), (0, 1))
		        out[int(s)] = max(a, lo), min(b, hi)        # floor(L p) masked: p is in [lo, hi)
		    assert all(a <= b for a, b in out.values())     # one rate a batch explains all of its cells
		    return [out[k][0] for k in sorted(out)]
		m = rates("m.tsv")
		assert len(m) == 14 and all(abs(r - (0.6 - 0.4 * k / 13)) < 0.005 for k, r in enumerate(m)), m
		u = rates("u.tsv")
		assert min(u) > 0.19 and max(u) < 0.6 and max(u) - min(u) > 0.15, u
	END
	# lambda goes the same way: the first batch has the masks of lambda 0.9, the last those of 0.1
	cor() { maskgen --strategy corrmask -g s.graph "$@" -b 50 s.tok | scview -c step,cell,input,position; }
	cor --lambda 0.9:0.1 > l.tsv
	for e in "0 0.9" "13 0.1"; do
		set -- $e
		cor --lambda "$2" | awk -v s="$1" '$1 == s' > want
		[ "$(wc -l < want)" = 50 ]
		awk -v s="$1" '$1 == s' l.tsv | cmp - want
	done
	cor --lambda 0.1 | awk '$1 == 0' | { ! cmp -s - <(awk '$1 == 0' l.tsv); }
}

@test "maskgen: a shrinking range and a list of rates" {
	maskgen --rate-uniform 0.1:0.9:0.1 -b 10 --epochs 4 s.tok | scview -c step,input,position > s.tsv
	maskgen --rate-choice 0.1,0.3,0.5 -b 10 s.tok | scview -c step,input,position > c.tsv
	$PYTHON - <<-'END'
		def rates(name):
		    out = {}
		    for line in list(open(name))[1:]:
		        s, i, p = line.rstrip("\n").split("\t")
		        n = len(i.split())
		        a, b = out.get(int(s), (0, 1))
		        out[int(s)] = max(a, len(p.split()) / n), min(b, (len(p.split()) + 1) / n)
		    return [out[k] for k in sorted(out)]
		s = rates("s.tsv")
		assert len(s) == 280
		top = [.9 - .8 * k / 279 for k in range(280)]
		assert all(lo <= t + 1e-9 and hi > .1 for (lo, hi), t in zip(s, top))
		assert max((lo - .1) / (t - .1) for (lo, hi), t in list(zip(s, top))[:270]) > .95        # the whole range is used ...
		assert min((hi - .1) / (t - .1) for (lo, hi), t in list(zip(s, top))[:200]) < .1         # ... from its lower end
		c = rates("c.tsv")
		which = [[k for k, p in enumerate((.1, .3, .5)) if lo - 1e-9 <= p < hi + 1e-9] for lo, hi in c]
		assert all(len(w) == 1 for w in which) and min(sum(w == [k] for w in which) for k in range(3)) > 10, which
	END
	maskgen --rate-choice 0.1,0.3,0.5 s.tok -o x
	assert_equal "$(loader x rate)" '{"course": "choice", "values": [0.1, 0.3, 0.5]}'
	maskgen --rate-uniform 0.1:0.5:0.2 s.tok -o x
	assert_equal "$(loader x rate)" '{"course": "shrink", "from": 0.1, "to": 0.5, "last": 0.2}'
}

@test "maskgen --strategy columns: one set of genes for all cells of a batch, counts and labels as they were" {
	how="--strategy columns --rate 0.253 --epochs 2 -b 64 --keep cell_type,donor"
	maskgen $how s.counts -o m
	maskgen $how -@ 3 s.counts | cmp - m
	cat s.counts | maskgen $how | cmp - m
	maskgen $how --seed 2 s.counts -o seed2
	for r in 0 1; do
		maskgen ${how/64/32} --shard $r/2 s.counts -o shard$r
		maskgen ${how/64/32} --shard $r/2 --balance-lengths s.counts -o balanced$r
	done
	scview --check m balanced0
	scview -c cell,gene,count,cell_type,donor s.counts > counts.tsv
	for f in m seed2 shard0 shard1 balanced0 balanced1; do
		scview -c step,epoch,cell,masked,gene,count,cell_type,donor $f | tail -n +2 > $f.tsv
	done
	$PYTHON - <<-'END'
		cells = dict(line.rstrip("\n").split("\t", 1) for line in list(open("counts.tsv"))[1:])
		def read(name):
		    sets, seen = {}, set()
		    for line in open(name):
		        step, epoch, cell, masked, rest = line.rstrip("\n").split("\t", 4)
		        assert cells[cell] == rest and int(epoch) == int(step) // 11 and (epoch, cell) not in seen
		        seen.add((epoch, cell))
		        assert sets.setdefault(int(step), masked) == masked
		    return sets, seen
		sets, seen = read("m.tsv")
		assert len(seen) == 1400 and sorted(sets) == list(range(22)) and len(set(sets.values())) == 22
		times = [0] * 300
		for m in sets.values():
		    m = [int(x) for x in m.split()]
		    assert m == sorted(set(m)) and len(m) == 76 and 0 <= m[0] and m[-1] < 300      # round(0.253 x 300) = 75.9
		    for g in m:
		        times[g] += 1
		assert max(times) < 16 and sum(t == 0 for t in times) < 10                         # 22 draws of 76 of 300: mean 5.6, sd 2
		assert set(read("seed2.tsv")[0].values()).isdisjoint(sets.values())
		for a, b in ("shard0.tsv", "shard1.tsv"), ("balanced0.tsv", "balanced1.tsv"):
		    (x, s), (y, t) = read(a), read(b)
		    assert x == y == sets and not s & t and s | t == seen
	END
	assert_equal "$(loader m strategy)" columns
	assert_equal "$(loader m classes | $PYTHON -c 'import json, sys; print(sum(json.load(sys.stdin)["donor"].values()))')" 700
	# some genes are always masked, and some never
	maskgen --strategy columns --rate 0 s.counts | scview -c masked | tail -n +2 | awk 'NF != 1 { exit 1 }'
	maskgen --strategy columns --rate 1 s.counts | scview -c masked | tail -n +2 | awk 'NF != 299 { exit 1 }'
	maskgen --strategy columns s.counts -o x
	assert_equal "$(loader x batch)" 400
	maskgen --strategy columns --rate-choice 0.1,0.5 -b 50 s.counts | scview -c masked | tail -n +2 | awk '{ n[NF]++ } END { exit !(n[30] && n[150] && n[30] + n[150] == 700) }'
}

@test "maskgen --panel: all genes but those of a list, in every batch" {
	scview --vocab s.counts | awk -F '\t' 'NR > 1 && NR % 3 == 2 { print $2; print NR - 2 > "panel.rows" }' >panel.txt
	maskgen -q --strategy columns --panel panel.txt --epochs 2 -b 64 s.counts -o panel.mc
	scview -c masked panel.mc | tail -n +2 | sort -u >sets
	assert_equal "$(wc -l <sets)" 1
	tr ' ' '\n' <sets | cat - panel.rows | sort -n | diff - <(seq 0 299)
	assert_equal "$(loader panel.mc rate | cut -c 1-6)" 0.6666
	echo nothing-of-this >absent.txt
	run -1 maskgen -q --strategy columns --panel absent.txt s.counts -o x
	assert_output --partial "absent.txt"
	scview --vocab s.counts >all.tsv
	run -1 maskgen -q --strategy columns --panel all.tsv s.counts -o x
	assert_output --partial "all.tsv"
	run -2 maskgen --panel panel.txt s.tok -o x
	run -2 maskgen --strategy columns --panel panel.txt --rate .3 s.counts -o x
	assert_not_exist x
}

@test "maskgen --strategy columns-corrmask: genes of the graph's ids are masked with their partners" {
	rankenc -q --fit -o own.tsv s.counts
	rankenc -q -m own.tsv s.counts | depgraph -q --min-overlap 20 -o own.graph
	how="--rate 0.2 -b 100 --epochs 3"
	maskgen -q --strategy columns-corrmask -g own.graph $how --lambda 1 -o joint s.counts
	maskgen -q --strategy columns-corrmask -g own.graph $how --lambda 0 s.counts | scview -c masked >none.txt
	maskgen -q --strategy columns $how s.counts | scview -c masked | cmp - none.txt
	assert_equal "$(loader joint strategy)" columns-corrmask
	assert_equal "$(loader joint graph | wc -c)" 33
	for f in joint own.graph s.counts; do scview --vocab $f >$f.vocab; done
	scview -c masked joint >joint.txt
	scview -c token,neighbour own.graph | tail -n +2 >edges.txt
	$PYTHON - <<-'END'
		ids = lambda f: [l.split("\t")[1] for l in list(open(f))[1:]]
		a, b = ids("own.graph.vocab"), ids("joint.vocab")
		near = {a[int(t)]: {a[int(x)] for x in n.split()} for t, n in (l.rstrip("\n").split("\t") for l in open("edges.txt")) if n}
		def partners(f): # share of the masked genes with a masked partner
		    sets = [{b[int(x)] for x in l.split()} for l in list(open(f))[1:]]
		    assert all(len(s) == 60 for s in sets)
		    return sum(g in near and bool(near[g] & s) for s in sets for g in s) / sum(len(s) for s in sets)
		print(partners("joint.txt"), partners("none.txt"))
		assert partners("joint.txt") > 1.3 * partners("none.txt")
	END
}

@test "maskgen --strategy columns: one gene, no cells" {
	$PYTHON - "$BATS_TEST_DIRNAME/../python" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		import numpy, corrmask.stream as scstream
		h = scstream.read("s.counts").header
		h["vocab"] = {"id": ["G0"], "symbol": [""], "median": [1]}
		b = {c["name"]: numpy.zeros(1, int) for c in h["columns"]}
		b.update(barcode=["a"], gene=([0, 1], [0]), count=([0, 1], [2]))
		scstream.write("one.counts", h, [b])
	END
	run -1 maskgen --strategy columns one.counts -o x
	assert_output --partial "one.counts: the vocabulary has 1 gene, expected at least 2"
	assert_not_exist x
	scsim -n 0 | maskgen --strategy columns | scview --check
}

@test "maskgen --resume goes on where the checkpoint ended, on its own stream only" {
	need_tool sctrain
	local how="-g s.graph --strategy corrmask -b 20 --epochs 2 --keep cell_type"
	rm -rf model
	run maskgen $how --resume model s.tok -o whole
	assert_output --partial "no checkpoint: starting at step 0"
	maskgen $how s.tok | cmp - whole
	mkdir -p model
	sctrain mlm -q --config tiny --save-every 30 --keep-checkpoints 9 -o model < whole
	mkdir part
	mv model/checkpoint-30 part
	run maskgen $how --resume part s.tok -o rest
	assert_output --partial "resuming at step 30 of 70"
	[ "$(loader rest first_step)" = 30 ]
	scview -c step,cell,input,position,target whole | awk 'NR > 1 && $1 >= 30' > a
	scview -c step,cell,input,position,target rest | tail -n +2 | cmp - a
	run -1 maskgen $how --rate 0.2 --resume part s.tok -o x
	names "--resume part rate: 0.15 0.2"
	rm -rf part
}

@test "maskgen --audit equals a count by hand" {
	scview -c token,neighbour s.graph > graph.tsv
	for how in "--strategy corrmask -g s.graph" "--strategy random" "--strategy pmi -g s.pmi --rate 0.3"; do
		maskgen $how -b 9 s.tok | scview -c input,position,target > m.tsv
		maskgen $how -b 9 -@ 2 --audit s.graph s.tok > audit.tsv
		$PYTHON - <<-'END'
			N = {}
			for line in list(open("graph.tsv"))[1:]:
			    t, n = line.rstrip("\n").split("\t")
			    N[int(t)] = {int(x) for x in n.split()}
			cells = tokens = masked = runs = partners = present = hits = near = linked = linked_masked = 0
			grams = held = pairs = close = either = both = paired = 0
			for line in list(open("m.tsv"))[1:]:
			    i, p, t = ([int(x) for x in s.split()] for s in line.rstrip("\n").split("\t"))
			    for a, b in zip(p, t):
			        i[a] = b
			    cells, tokens, masked = cells + 1, tokens + len(i), masked + len(p)
			    runs += sum(a - 1 not in p for a in p)
			    for b in t:
			        partners += len(N[b])
			        present += len(N[b] & set(i))
			        hits += len(N[b] & set(t))
			        paired += bool(N[b] & set(t))
			        linked_masked += bool(N[b])
			    for k, u in enumerate(i):
			        linked += bool(N[u])
			        near += bool(N[u] & set(i[max(0, k - 5):k] + i[k + 1:k + 6]))
			        close += len(N[u] & set(i[k + 1:k + 6]))
			        pairs += len(N[u] & set(i[k + 1:]))
			        for v in N[u] & set(i[k + 1:]):
			            both += u in t and v in t
			            either += u in t or v in t
			    for k in range(len(i) - 4):
			        grams += 1
			        held += any(v in N[u] for u in i[k:k + 5] for v in i[k:k + 5])
			want = dict(cells=cells, tokens=tokens, masked=masked, masking_rate=masked / tokens, mean_span=masked / runs,
			            hit_rate_present=hits / present, hit_rate=hits / partners, neighbour_within_5=near / tokens,
			            neighbour_within_5_linked=near / linked, grams_5_with_pair=held / grams, pairs_within_5=close / pairs,
			            pair_span=(either + both) / either, hit_tokens=paired / tokens, masking_rate_linked=linked_masked / linked,
			            masking_rate_others=(masked - linked_masked) / (tokens - linked))
			got = dict(line.split("\t") for line in open("audit.tsv"))
			for k, v in want.items():
			    assert abs(float(got[k]) - v) < 2e-6, (k, got[k], v)
		END
	done
}

@test "maskgen notes that genes with partners are seldom seen, with and without --audit; not where all genes are masked as often" {
	depgraph -q --min-overlap 600 s.tok -o few.graph
	for more in "" "--audit few.graph"; do
		run -0 --separate-stderr maskgen --strategy corrmask -g few.graph $more -o x s.tok
		assert_regex "$stderr" "note: genes with partners are masked [78][0-9] % of the time, all others 8 %"
	done
	for masks in "-g s.graph" "-g few.graph --rate 0.95" "-g few.graph --lambda 0"; do
		run -0 --separate-stderr maskgen --strategy corrmask $masks -o x s.tok
		assert_equal "$stderr" ""
	done
}

@test "maskgen --module masks inside modules" {
	depgraph --leiden 1,4 s.graph -o mod.graph
	maskgen --strategy corrmask -g mod.graph --module module_4 --lambda 1 s.tok > a
	maskgen --strategy corrmask -g mod.graph --module module_4 --lambda 1 -@ 2 s.tok | cmp - a
	maskgen --strategy corrmask -g mod.graph --module module_1 --lambda 1 s.tok > b
	run ! cmp -s a b
	maskgen --strategy corrmask -g mod.graph s.tok | scview -c input | cmp - <(maskgen --strategy corrmask -g s.graph s.tok | scview -c input)
}

@test "maskgen --module without a graph, --seed-share: the masks of the CorrMask paper's appendix B.2" {
	scsim --kind b2 -n 3000 -o b2.tok
	for rate in 0.15 0.25; do
		share=$([ $rate = 0.15 ] && echo 0.5 || echo 0.1)
		how="--strategy corrmask --module token_module --partners-max 8 --seed-share $share --lambda 1 --rate $rate"
		maskgen $how b2.tok -o b2.masked
		maskgen $how -@ 2 b2.tok | cmp - b2.masked
		scview -c position b2.masked > b2.tsv
		$PYTHON - $rate $share <<-'END'
			import sys
			import numpy as np
			share = float(sys.argv[2])
			budget = round(60 * float(sys.argv[1]))
			rng = np.random.default_rng(1)
			def reference():    # the appendix's words, cut at the budget
			    M = []
			    while len(M) < budget:
			        g = rng.integers(60)
			        p = rng.permutation([h for h in range(60) if h // 20 == g // 20 and h != g])[:8]
			        for h in ([g] if rng.random() < share else []) + list(p):
			            if h not in M and len(M) < budget:
			                M.append(h)
			    return M
			def profile(masks):     # genes masked in the least, second and most masked module
			    for m in masks:
			        assert len(set(m)) == budget and 0 <= min(m) and max(m) < 60
			    return np.array([np.sort(np.bincount(np.array(m) // 20, minlength=3)) for m in masks])
			ours = profile([[int(x) - 1 for x in l.split()] for l in list(open("b2.tsv"))[1:]])
			want = profile([reference() for i in range(3000)])
			# standard error of a mean of 3000: at most 0.05
			assert np.abs(ours.mean(0) - want.mean(0)).max() < 0.2, (ours.mean(0), want.mean(0))
			assert np.abs(ours.std(0) - want.std(0)).max() < 0.2, (ours.std(0), want.std(0))
		END
	done
}

@test "maskgen: a reader that stops early" {
	run sh -c 'maskgen --epochs 1000 s.tok | head -c 100 | wc -c'
	assert_output 100
}

@test "maskgen: no cells and cells with few tokens" {
	scsim --kind b1 -n 0 | maskgen | scview --check
	scsim --kind b1 -n 9 --genes 8 --modules 1 | maskgen -o x
	[ "$(scview -c position x | tail -n +2 | tr -d '\n')" = "" ]
}

# The rule of what goes with what, as the manual page tells it.
refused() {     # STRATEGY RATE LAMBDA PARTNERS BERNOULLI
	case $1 in
	none) [ -n "$2$3$4$5" ] ;;
	random) [ -n "$3$4" ] ;;
	corrmask) [ -n "$5" ] || [[ $4 == *weighted*--module* ]] ;;
	*) [ -n "$4$5" ] ;;
	esac
}

# bats test_tags=slow
@test "maskgen: every strategy with every rate, lambda, choice of partners: it works and keeps its budget, or is refused with the reason" {
	depgraph --leiden 1 s.graph -o mod.graph
	scsample -q -n 60 s.tok -o few.tok
	scview -c cell,token few.tok > few.tsv
	rm -rf cross && mkdir cross
	local works s r l p b g
	for s in $(maskgen --completion | awk -F'\t' '$1 == "--strategy" { gsub(/\|/, " ", $2); print $2 }'); do
		case $s in
		corrmask) g="-g mod.graph" ;;
		pmi*) g="-g s.pmi" ;;
		runs | columns* | probe) continue ;; # of other inputs, with tests of their own
		*) g= ;;
		esac
		works=0
		for r in "" "--rate 0.3" "--rate-linear 0.6:0.2" "--rate-uniform 0:1"; do
			for l in "" "--lambda 0.25" "--lambda 1:0"; do
				for p in "" "--partners weighted" "--module module" "--partners weighted --module module"; do
					for b in "" --bernoulli; do
						if refused "$s" "$r" "$l" "$p" "$b"; then
							run -2 maskgen --strategy $s $g $r $l $p $b -b 10 few.tok -o x
							assert_line --regexp "^maskgen: .*--?(strategy|bernoulli|partners)"
							assert_not_exist x
							continue
						fi
						works=$((works + 1))
						maskgen --strategy $s $g $r $l $p $b -b 10 few.tok > cross/m
						maskgen --strategy $s $g $r $l $p $b -b 10 -@ 3 few.tok | cmp - cross/m
						echo "# $s$b $r" >> cross/all
						scview -c step,cell,input,position,target cross/m | tail -n +2 >> cross/all
					done
				done
			done
		done
		[ "$works" -gt 0 ]
	done
	$PYTHON - <<-'END'
		cells = {int(c): [int(x) for x in t.split()] for c, t in (l.rstrip("\n").split("\t") for l in list(open("few.tsv"))[1:])}
		between = {"": (.15, .15), "--rate 0.3": (.3, .3), "--rate-linear 0.6:0.2": (.2, .6), "--rate-uniform 0:1": (0, 1)}
		runs = 0
		for part in open("cross/all").read().split("# ")[1:]:
		    head, *rows = part.rstrip("\n").split("\n")
		    strategy, _, rate = head.partition(" ")
		    assert len(rows) == 60
		    span = {}
		    for row in rows:
		        step, cell, i, p, t = row.split("\t")
		        i, p, t = ([int(x) for x in s.split()] for s in (i, p, t))
		        tokens, n = cells[int(cell)], len(cells[int(cell)])
		        assert len(p) == len(t) and p == sorted(set(p))
		        for a, b in zip(p, t):
		            assert b >= 2 and (i[a] >= 1 or strategy == "random--bernoulli")
		            i[a] = b
		        assert i == tokens
		        if strategy == "none":
		            assert not p
		        elif strategy != "random--bernoulli":       # floor(n rate) masked: one rate explains all cells of a step
		            lo, hi = span.get(step, (0, 2))
		            span[step] = max(lo, len(p) / n), min(hi, (len(p) + 1) / n)
		    low, high = between[rate]
		    for lo, hi in span.values():
		        assert lo < hi + 1e-9 and hi > low and lo <= high + 1e-9, (head, lo, hi)
		    if rate == "--rate-linear 0.6:0.2" and span:
		        assert all(abs(span[str(k)][0] - (.6 - .08 * k)) < .01 for k in range(6)), span
		    runs += 1
		assert runs >= 69
	END
}
