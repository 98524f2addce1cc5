#!/usr/bin/env bash
# The tables of make r2mae-cells from the scores under FOLDER/runs; runs without scores are left out. FOLDER/points.tsv has the values.
#     r2mae-table.sh FOLDER INPUTS "METHOD..." "SEED..." NETWORK
. "$(dirname "$0")/common.sh"
[ $# = 5 ] || usage
dir=$1 inputs=$2 methods=$3 seeds=$4 network=$5
base=${methods%% *}
stats=$(cat "$here/stats.awk")

# method, seed, stage, metric, value; the baselines have no seed
{
	for k in $seeds; do
		for m in untrained $methods; do
			[ ! -e "$dir/runs/$m-$k/scores.tsv" ] || sed "s/^/$m\t$k\t/" "$dir/runs/$m-$k/scores.tsv"
		done
	done
	[ ! -e "$inputs/baselines.tsv" ] || sed 's/\t/\t0\t/' "$inputs/baselines.tsv"
} > "$dir/scores.tsv"

# stage, metric, method, seeds, mean, sd, paired seeds, mean and sd of the gap to the first method, t, p
awk -F '\t' -v base="$base" -v seeds="$seeds" "$stats"'
	BEGIN {
		OFS = "\t"
		seed_n = split("0 " seeds, seed, " ")
	}
	$5 ~ /^-?[0-9.]/ && $4 !~ /:/ {
		value[$3, $4, $1, $2] = $5
		if (!(($3, $4, $1) in seen)) {
			seen[$3, $4, $1]
			order[++n_row] = $3 SUBSEP $4 SUBSEP $1
		}
	}
	END {
		for (r = 1; r <= n_row; r++) {
			split(order[r], o, SUBSEP)
			n = sum = square = m = gap = gaps = 0
			for (i = 1; i <= seed_n; i++) {
				if (!((o[1], o[2], o[3], seed[i]) in value))
					continue
				v = value[o[1], o[2], o[3], seed[i]]
				n++; sum += v; square += v * v
				if (o[3] == base || !((o[1], o[2], base, seed[i]) in value))
					continue
				g = v - value[o[1], o[2], base, seed[i]]
				m++; gap += g; gaps += g * g
			}
			t = paired_t(m, gap, gaps)
			print o[1], o[2], o[3], n, sum / n, (n > 1 ? sd(n, sum, square) : "NA"), m, (m ? gap / m : "NA"), (m > 1 ? sd(m, gap, gaps) : "NA"), t, paired_p(t, m)
		}
	}' "$dir/scores.tsv" > "$dir/points.tsv"

# table TITLE MEAN|GAP METHODS STAGE/METRIC=COLUMN...: one line for each method
table() {
	echo
	echo "$1"
	awk -F '\t' -v what="$2" -v methods="$3" -v columns="$4" -v want="$(echo "$seeds" | wc -w)" -v base="$base" '
		# printf counts bytes in some awks, and ± has two
		function pad(x, n,  y) { y = x; gsub(/±/, "+", y); while (length(y) < n) { y = " " y; x = " " x } return x }
		function few(n) { return n < want && n ? sprintf(" [%d]", n) : "" }
		{ at[$1 "/" $2, $3] = NR; line[NR] = $0 }
		END {
			c = split(columns, column, " ")
			width = what == "GAP" ? 30 : 20
			head = sprintf("%-16s", "")
			for (i = 1; i <= c; i++) {
				split(column[i], name, "=")
				key[i] = name[1]
				head = head pad(name[2], width)
			}
			print head
			k = split(methods, method, " ")
			for (j = 1; j <= k; j++) {
				any = 0
				text = sprintf("%-16s", method[j])
				for (i = 1; i <= c; i++) {
					value = "-"
					if ((key[i], method[j]) in at) {
						split(line[at[key[i], method[j]]], f, "\t")
						if (what == "GAP" && f[7])
							value = sprintf("%+.4f ± %s (p %s)%s", f[8], f[9] == "NA" ? "-" : sprintf("%.4f", f[9]), f[11], few(f[7]))
						else if (what == "MEAN")
							value = sprintf("%.4f", f[5]) (f[6] == "NA" ? "" : sprintf(" ± %.4f", f[6])) (method[j] ~ /^(expression|pca)$/ ? "" : few(f[4]))
						any += value != "-"
					}
					text = text pad(value, width)
				}
				if (any && (what == "MEAN" || method[j] != base))
					print text
			}
		}' "$dir/points.tsv"
}
# bootstrap METHODS: intervals of the gaps in the probe over draws of the tested cells. A draw is the same for all methods; of a method with seeds
# it is the mean over the seeds that the first method has too.
bootstrap() {
	local m k f
	for m in $1; do
		for k in $seeds; do
			f=$dir/runs/$m-$k/label.replicates.tsv
			[ "$m" != expression ] && [ "$m" != pca ] || f=$inputs/$m/label.replicates.tsv
			[ ! -e "$f" ] || [ ! -e "$dir/runs/$base-$k/label.replicates.tsv" ] ||
				paste "$dir/runs/$base-$k/label.replicates.tsv" "$f" | sed "1d; s/^/$m\t/"
		done
	done | awk -F '\t' -v methods="$1" '
		function quantile(x, p) { return x[int((draws - 1) * p + .5) + 1] }
		function show(g,  i, j, x, v) {
			for (i = 1; i <= draws; i++) { # insertion sort: a thousand numbers
				v = g[i]
				for (j = i; j > 1 && x[j - 1] > v; j--)
					x[j] = x[j - 1]
				x[j] = v
			}
			return sprintf("%30s", sprintf("%+.4f to %+.4f", quantile(x, .025), quantile(x, .975)))
		}
		# method; replicate, accuracy, balanced accuracy, macro F1 of the first method; the same of this one
		{ n[$1, $2]++; one[$1, $2] += $8 - $4; two[$1, $2] += $9 - $5; if ($2 > draws) draws = $2 }
		END {
			printf "%-16s%30s%30s\n", "", "BAcc", "F1"
			k = split(methods, method, " ")
			for (j = 1; j <= k; j++) {
				if (!n[method[j], draws])
					continue
				for (i = 1; i <= draws; i++) {
					b[i] = one[method[j], i] / n[method[j], i]
					f[i] = two[method[j], i] / n[method[j], i]
				}
				print sprintf("%-16s", method[j]) show(b) show(f)
			}
		}'
}
# The metric of every rate, and those of the probe
rates() { for r in 0.1 0.2 0.3 0.5 0.7; do printf 'valid-%s/%s=%s ' "$r" "$1" "$r"; done; }
probe='label/balanced_accuracy=BAcc label/macro_f1=F1 label/auroc=AUROC'
[ -z "$(cat "$inputs/target")" ] || probe="$probe target/spearman=Spearman target/group_spearman=by-group"
others=${methods#"$base"}

sed '1s/^/corrmask r2mae-cells: /' "$inputs/about"
echo "$network"
echo "mean ± standard deviation over seeds ($seeds); gaps to $base are paired by seed, with the two-sided p of a t test; [n]: only n seeds are done"
table "Masked genes of validation cells: Pearson correlation in a cell, by the share of genes that are masked" MEAN "untrained $methods" "$(rates pearson)"
table "  gap to $base" GAP "$others" "$(rates pearson)"
table "The same, Spearman correlation" MEAN "untrained $methods" "$(rates spearman)"
table "Probe of $(cat "$inputs/label")$(sed 's/^..*/ and &/' "$inputs/target") in cells of other donors" MEAN "expression pca untrained $methods" "$probe"
echo "expression, pca: log-normalised expression and its 50 principal components, no network; untrained: random weights"
table "  gap to $base" GAP "$others" "$probe"

group=$(cat "$inputs/group")
echo
echo "  gap to $base, mean over seeds: 95 % interval over 1,000 draws of the tested ${group:-cell}s"
bootstrap "expression pca untrained $others"

table "Effective rank of the embeddings of validation cells" MEAN "untrained $methods" "rank/entropy=entropy rank/effective_rank=exp(entropy)"

# Score and mean rank of the methods, by their mean metrics
metrics=$(for c in $probe; do echo "${c%=*}"; done | sed 's/.*\///' | tr '\n' '+')
mkdir -p "$dir/means"
ranked=()
for m in expression pca untrained $methods; do
	awk -F '\t' -v m="$m" -v probe="$probe" '
		BEGIN { print "metric\tvalue"; n = split(probe, p, " "); for (i = 1; i <= n; i++) { sub(/=.*/, "", p[i]); want[p[i]] } }
		$3 == m && ($1 "/" $2) in want { print $2 "\t" $5 }' "$dir/points.tsv" > "$dir/means/$m"
	[ "$(wc -l < "$dir/means/$m")" != "$(($(echo "$probe" | wc -w) + 1))" ] || ranked+=("$dir/means/$m")
done
[ ${#ranked[@]} -lt 2 ] || {
	echo
	echo "Score (mean of the metrics) and mean rank"
	ctaprobe leaderboard -q -m "${metrics%+}" "${ranked[@]}" | awk -F '\t' 'NR == 1 { next } { sub(/.*\//, "", $1); printf "%-16s%20.4f%20.2f\n", $1, $2, $3 }'
}
echo
cat "$here/r2mae-paper.txt"
echo
for stage in train reconstruct probe; do
	stage_times "$dir/log" | awk -F '\t' -v s=$stage 'index($1, s "-") == 1 { n++; t += $2; if ($3 > m) m = $3 }
		END { if (n) printf "%s: %.0f s in all, at most %d MB\n", s, t, m }'
done
