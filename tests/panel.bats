# ctaprobe panel and make panel: which genes does a panel of genes predict?
load helper

setup_file() {
	need_tool scsim scsample maskgen sctrain scembed scpredict ctaprobe scview
	cd "$BATS_FILE_TMPDIR"
	scsim -q --cells 500 --genes 120 --modules 8 --types 4 --depth 800 --seed 3 -o all.counts
	scsample -q --test-fraction 0.25 --part train -o train.counts all.counts
	scsample -q --test-fraction 0.25 --part test -o test.counts all.counts
	scsample -q --hvg 25 -o hvg.counts train.counts
	scview --vocab hvg.counts >panel.tsv
}
setup() { cd "$BATS_FILE_TMPDIR"; }
panel() { ctaprobe panel -q --panel panel.tsv --train train.counts "$@" test.counts; }

@test "ctaprobe panel: regressions, their penalties by donor, the mean, and the scores of each gene are those of numpy" {
	for m in poisson ridge mean; do panel --method $m --group donor --gene-scores $m.genes.tsv -o $m.tsv; done
	for p in train test; do scview -c gene,count,donor $p.counts >$p.tsv; done
	scview --vocab train.counts >vocab.tsv
	$PYTHON - <<-'END'
		import csv
		import numpy as np
		from scipy.stats import spearmanr
		table = lambda f: list(csv.DictReader(open(f), delimiter="\t"))
		ids = [r["gene_id"] for r in table("vocab.tsv")]
		panel = np.array([i in {r["gene_id"] for r in table("panel.tsv")} for i in ids])
		def matrix(f):
		    x = np.zeros((len(table(f)), len(ids)))
		    for i, r in enumerate(table(f)):
		        x[i, np.array(r["gene"].split(), int)] = np.array(r["count"].split(), int)
		    use = x[:, panel].sum(1) > 0
		    return x[use], np.array([r["donor"] for r in table(f)])[use]
		(a, donor), (b, _) = matrix("train.tsv"), matrix("test.tsv")
		assert len(set(donor)) == 4
		hidden = ~panel & ((a > 0).mean(0) >= .05)
		sa, sb = a[:, panel].sum(1, keepdims=True), b[:, panel].sum(1, keepdims=True)
		median = np.sort(sa[:, 0])[len(sa) // 2]
		f = lambda x, s: np.hstack([np.log1p(x[:, panel] * median / s), np.log(s)])
		def standard(fa, fb):
		    m, sd = fa.mean(0), fa.std(0)
		    sd[sd < 1e-9] = np.inf
		    return np.clip((fa - m) / sd, -10, 10), np.clip((fb - m) / sd, -10, 10)
		both = lambda x, s: np.hstack([f(x, s), np.log1p(x[:, panel])])
		features = {"poisson": standard(f(a, sa), f(b, sb)), "ridge": standard(both(a, sa), both(b, sb))}
		y, t = a[:, hidden], b[:, hidden]
		base = sb * y.sum(0) / sa.sum()
		def deviance(t, mu):
		    mu = np.maximum(mu, 1e-6)
		    return 2 * (np.where(t > 0, t * np.log(np.maximum(t, 1) / mu), 0) - t + mu)
		def poisson(penalty, fa, y, sa, fb, sb):
		    x, q, mu = np.hstack([fa, np.ones((len(fa), 1))]), np.hstack([fb, np.ones((len(fb), 1))]), np.zeros((len(fb), y.shape[1]))
		    for g in range(y.shape[1]):
		        w = np.zeros(x.shape[1])
		        w[-1] = np.log(max(y[:, g].sum(), .5) / sa.sum())
		        h = np.full(len(w), penalty)
		        h[-1] = 0
		        for _ in range(60):
		            e = sa[:, 0] * np.exp(np.minimum(x @ w, 5))
		            step = np.linalg.solve((x * e[:, None]).T @ x / len(x) + np.diag(h), x.T @ (e - y[:, g]) / len(x) + h * w)
		            w -= np.clip(step, -1, 1)
		            if abs(step).max() < 1e-7:
		                break
		        mu[:, g] = sb[:, 0] * np.exp(q @ w)
		    return mu
		def ridge(penalty, fa, y, sa, fb, sb):
		    z = np.log1p(y)
		    c = fa.mean(0)
		    w = np.linalg.solve((fa - c).T @ (fa - c) + penalty * len(fa) * np.eye(fa.shape[1]), (fa - c).T @ (z - z.mean(0)))
		    p = lambda x: np.maximum(np.expm1((x - c) @ w + z.mean(0)), 0)
		    return p(fb) * y.sum(0) / np.maximum(p(fa).sum(0), 1e-300)
		def loss(method, penalty): # of each donor by the others
		    some, sum = y[:, np.arange(40) * y.shape[1] // 40], 0
		    for d in set(donor):
		        k = donor == d
		        mu = method(penalty, fa[~k], some[~k], sa[~k], fa[k], sa[k])
		        sum += deviance(some[k], mu).sum() if method is poisson else ((np.log1p(mu) - np.log1p(some[k])) ** 2).sum()
		    return sum
		def choose(method):
		    best, at = np.inf, None
		    for p in 10. ** np.arange(2, -5, -1):
		        l = loss(method, p)
		        if l >= best:
		            break
		        best, at = l, p
		    return at
		for name, tolerance in ("mean", 1e-5), ("ridge", 1e-4), ("poisson", 5e-3):
		    got = {r["metric"]: float(r["value"]) for r in table(f"{name}.tsv")}
		    mu = base
		    if name != "mean":
		        method = poisson if name == "poisson" else ridge
		        fa, fb = features[name]
		        best = choose(method)
		        assert np.isclose(got["penalty"], best) and 1e-4 < best < 100, (name, got["penalty"], best)
		        mu = method(best, fa, y, sa, fb, sb)
		    if name == "ridge":
		        mu = np.maximum(mu, .05 * base)
		    use = t.std(0) > 0
		    r = [np.corrcoef(np.log1p(mu[:, g]), np.log1p(t[:, g]))[0, 1] for g in np.flatnonzero(use)]
		    s = [spearmanr(mu[:, g], t[:, g])[0] for g in np.flatnonzero(use)]
		    d = 1 - deviance(t, mu).sum() / deviance(t, base).sum()
		    print(name, got["pearson"] - np.mean(r), got["spearman"] - np.mean(s), got["deviance_explained"] - d)
		    assert got["genes"] == hidden.sum() and got["cells"] == len(t)
		    for metric, want in ("pearson", np.mean(r)), ("spearman", np.mean(s)), ("deviance_explained", d):
		        assert abs(got[metric] - want) < tolerance, (name, metric, got[metric], want)
		    rows = [x for x in table(f"{name}.genes.tsv") if x["pearson"] not in ("nan", "-nan")]
		    assert np.allclose([float(x["pearson"]) for x in rows], r, atol=5 * tolerance)
	END
}

@test "ctaprobe panel: vectors and predictions of a network, found by the cells' numbers" {
	maskgen -q --strategy columns --rate-uniform 0.1:0.9 --epochs 10 --batch 40 train.counts | sctrain nb -q -c mlp-nb-tiny -o model
	maskgen -q --strategy columns --panel panel.tsv --batch 100 -o all.mcounts all.counts
	scembed -q -M model --recalibrate train.counts -o latent.emb all.mcounts
	scpredict expression -q -M model --recalibrate train.counts -o decoder.pred all.mcounts
	of() { awk -F '\t' -v m="$1" '$1 == m { print $2 }'; }
	mean=$(panel --method mean | of pearson)
	for v in latent.emb decoder.pred; do
		got=$(panel --vectors $v | of pearson)
		echo "$v: $got, mean $mean"
		$PYTHON -c "assert -1 < $got < 1"
	done
	panel --vectors latent.emb --method nearest | of cells
	# of other cells
	scembed -q -M model -o test.emb test.counts
	run -1 panel --vectors test.emb
	assert_output --partial "test.emb"
}

@test "a model meets masks that hide more than those of its training did: a warning with their range" {
	maskgen -q --strategy columns --rate-uniform 0.1:0.3 --batch 200 train.counts | sctrain nb -q -c mlp-nb-tiny -o few
	config() { $PYTHON -c 'import json, sys; c = json.load(open("few/config.json")); exec(sys.argv[1]); json.dump(c, open("few/config.json", "w"))' "$1"; }
	config 'assert (c["masked_min"], c["masked_max"]) == (0.1, 0.3)'
	maskgen -q --strategy columns --rate 0.3 -o fits.mcounts test.counts
	maskgen -q --strategy columns --panel panel.tsv -o beyond.mcounts test.counts
	for tool in "scembed -M few" "scpredict expression -M few" "sctrain eval -M few"; do
		$tool -o x fits.mcounts 2>said
		run ! grep -F warning said
		$tool -o x beyond.mcounts 2>said
		grep -F warning said | grep -F beyond.mcounts | grep -F '79 %' | grep -qF '10 to 30 %'
	done
	# of one rate
	config 'c["masked_min"] = 0.3'
	scembed -M few -o x beyond.mcounts 2>&1 | grep -qF 'was trained with 30 % masked'
	# one that does not say
	config 'del c["masked_min"], c["masked_max"]'
	scembed -M few -o x beyond.mcounts 2>said
	run ! grep -F warning said
	config 'c["masked_min"] = 2'
	run -1 scembed -q -M few -o y beyond.mcounts
	assert_output --partial masked_min
}

@test "ctaprobe panel: cells that were learned from are told" {
	scsim -q --cells 60 --genes 120 --modules 8 --types 4 --donors 1 -o one.counts
	ctaprobe panel -q --panel panel.tsv --train one.counts test.counts
	# cells that were learned from, and others of the same numbers
	panel 2>said && run ! grep -F warning said
	ctaprobe panel --panel panel.tsv --train train.counts --method mean all.counts 2>&1 >x |
		grep -F "warning: all.counts: 375 of 500 cells are in train.counts too"
	ctaprobe panel --panel panel.tsv --train train.counts --method mean one.counts 2>said && run ! grep -F warning said
}

@test "panel/table.py: how many cells have no count in a panel, if some have none" {
	local k arm
	for k in 1 2; do
		for arm in poisson ridge; do
			mkdir -p made/runs/$arm-$k
			printf '%s\tfit\t%s\t%s\n' 20 pearson .5 20 train_cells 300 20 cells 90 20 without_panel $((8 + 2 * k)) \
				40 pearson .6 40 train_cells 310 40 cells 91 40 without_panel 0 >made/runs/$arm-$k/scores.tsv
		done
	done
	run -0 "$BATS_TEST_DIRNAME/../pipelines/page/table.py" panel/table made "poisson ridge" "1 2" x.h5ad how
	assert_line "11 of 401 cells have no count in the panel and are left out"
	assert_equal "$(grep -c "left out" <<<"$output")" 1
}

# bats test_tags=slow
@test "make panel: a panel of each kind, simulated cells" {
	# a panel of the user's: with genes that are not among the HVG most variable ones, and one that is not there
	{
		scview --vocab all.counts | awk -F '\t' 'NR > 1 { print $2 }' | head -n 30
		echo absent
	} >genes.txt
	run -0 make -s -f "$BATS_TEST_DIRNAME/../pipelines/Makefile" BIN="$(dirname "$(command -v sctrain)")" RESULTS="$PWD/results" THREADS=2 panel SCALE=tiny SEEDS=1 \
		PANEL="20 graph-20 genes.txt" HVG=60 ARMS="r2mae-wide poisson components wced-wide"
	R=results/panel/latest
	for p in 20 graph-20; do
		assert_equal "$(tail -n +2 $R/split-1/$p.tsv | wc -l)" 20
		for a in r2mae-wide r2mae-wide-decoder poisson components untrained; do
			awk -F '\t' -v a=$a -v p=$p '$1 == a && $3 == p && $4 == "pearson" && $5 ~ /^-?[0-9.]/ { n++ } END { exit n != 1 }' $R/points.tsv
		done
	done
	assert_equal "$(tail -n +2 $R/split-1/genes.tsv | wc -l)" 30
	assert_line "panel genes: 30 genes"
	awk -F '\t' '$1 == "wced-wide" && $3 == "genes" && $4 == "pearson" && $5 ~ /^-?[0-9.]/ { n++ } END { exit n != 1 }' $R/points.tsv
	head -n 1 $R/genes.tsv | grep -q pearson
	# the printed mean is that of summary.tsv
	mean=$(awk -F '\t' '$1 == 20 && $2 == "pearson" && $3 == "poisson" { printf "%.3f", $6 }' $R/summary.tsv | sed 's/^0//')
	grep -q "^poisson *0\?$mean" $R/table.txt
	assert_file_not_empty $R/panel.svg
	assert_equal "$(grep -c '^Panel [^ ]*, r2mae-wide: of [0-9]* genes outside it, .* Best: .*\.$' $R/findings.txt)" 3
	for bad in "none.txt:is not a number K" "0:is not a number K" "20 60:expected fewer genes than HVG, 60"; do
		run -1 "$BATS_TEST_DIRNAME/../pipelines/panel/split.sh" results/prepared/latest refused "${bad%:*}" 60 1
		assert_output --regexp "^PANEL: '.*'.* ${bad#*:}"
	done
}
