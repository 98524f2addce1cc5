#!/usr/bin/env bash
# The tables of make panel from the scores under FOLDER/runs; runs without scores are left out. FOLDER/points.tsv has the values, summary.tsv their
# means, differences.tsv the gaps to poisson, genes.tsv the scores of each gene by the first arm.
#     panel/table.sh FOLDER "ARM..." "SEED..." DATA HOW
. "$(dirname "$0")/../tables.sh"
[ $# = 5 ] || usage
shopt -s extglob
dir=$1 arms=$2 seeds=$3 data=$4 how=$5
base=poisson
{
	printf 'arm\tseed\tpanel\tmetric\tvalue\n'
	collect "$dir/runs" "$arms" "$seeds" | awk -F '\t' -v OFS='\t' '{ print $1 ($4 == "decoder" ? "-decoder" : ""), $2, $3, $5, $6 }'
} > "$dir/points.tsv"
splits=(--splits 3:1)
means --within panel,metric "$dir/points.tsv" > "$dir/summary.tsv"
those_in "$dir/points.tsv"
all=
for a in $arms; do for b in "$a" "$a-decoder"; do [[ " $there " != *" $b "* ]] || all="$all $b"; done; done
for a in $all; do pair "$a" "$base"; done
awk -F '\t' 'NR == 1 || $4 ~ /^(pearson|spearman|deviance_explained)$/' "$dir/points.tsv" > "$dir/compared.tsv"
differences --pair seed --within panel,metric "${splits[@]}" "$dir/compared.tsv" > "$dir/differences.tsv"
rm "$dir/compared.tsv"

# The scores of each gene by the first arm: mean, least and most over the splits
first=${arms%% *}
{
	printf 'panel\tgene\tsymbol\tsplits\tmean_count\tpearson\tlow\thigh\tspearman\tdeviance_explained\n'
	for f in "$dir"/runs/"$first"-*/*=@(readout|fit).genes.tsv; do
		[ ! -e "$f" ] || sed "1d; s/^/$(basename "${f%=*}")\t/" "$f"
	done | awk -F '\t' -v OFS='\t' '
		$5 == "nan" || $5 == "-nan" { next }
		{ k = $1 OFS $2 OFS $3; if (!n[k]++) { low[k] = high[k] = $5 } m[k] += $4; p[k] += $5; s[k] += $6; d[k] += $7; if ($5 < low[k]) low[k] = $5; if ($5 > high[k]) high[k] = $5 }
		END { for (k in n) print k, n[k], m[k] / n[k], p[k] / n[k], low[k], high[k], s[k] / n[k], d[k] / n[k] }' | LC_ALL=C sort -t "$(printf '\t')" -k 1,1 -k 6,6gr -k 2,2
} > "$dir/genes.tsv"

echo "corrmask panel: ${data:-simulated cells (scsim)}"
for k in $seeds; do [ ! -e "$dir/split-$k/about" ] || { cat "$dir/split-$k/about"; break; }; done
echo "$how; splits $seeds"
echo
echo "Counts of the genes outside the panel, in cells of other donors. pearson: of log(1 + count) and log(1 + expected), spearman, mean over genes; deviance:"
echo "share of Poisson's deviance explained. gap: to $base, with a 95 % interval over the splits, corrected for the cells that they share"
panels=$(awk -F '\t' 'NR > 1 { print $3 }' "$dir/points.tsv" | sort -uV)
for panel in $panels; do
	echo
	own=
	[[ $panel =~ ^(graph-)?[0-9]+$ ]] || own=": $(tail -qn +2 "$dir"/split-*/"$panel.tsv" | sort -u | wc -l) genes"
	echo "panel $panel$own"
	awk -F '\t' -v panel="$panel" "$by_name"'
		$c["panel"] == panel && !($c["metric"] in of) { of[$c["metric"]] = $c["mean"] }
		END {
			without = of["without_panel"]
			if (without > 0) printf "%.0f of %.0f cells have no count in the panel and are left out\n", without, without + of["train_cells"] + of["cells"]
		}' "$dir/summary.tsv"
	awk -F '\t' -v panel="$panel" -v arms="$all" "$tables"'
		FNR == 1 { file++; split("", c); for (i = 1; i <= NF; i++) c[$i] = i; next }
		$c["panel"] != panel { next }
		file == 1 { mean[$c["arm"], $c["metric"]] = num($c["mean"], "%.3f") }
		file == 2 { gap[$c["arm"], $c["metric"]] = num($c["difference"], "%+.3f") ($c["low"] == "NA" ? "" : " (" span("%+.3f") ")") }
		END {
			n = split(arms, arm, " ")
			m = split("pearson spearman deviance_explained", metric, " ")
			printf "%-20s%9s%28s%9s%28s%9s%28s\n", "", "pearson", "gap", "spearman", "gap", "deviance", "gap"
			for (i = 1; i <= n; i++) {
				line = sprintf("%-20s", arm[i])
				for (j = 1; j <= m; j++) line = line sprintf("%9s%28s", (arm[i], metric[j]) in mean ? mean[arm[i], metric[j]] : "-", (arm[i], metric[j]) in gap ? gap[arm[i], metric[j]] : "")
				sub(/ +$/, "", line)
				print line
			}
		}' "$dir/summary.tsv" "$dir/differences.tsv"
done
for panel in $panels; do
	awk -F '\t' -v panel="$panel" -v first="$first" 'FNR > 1 && $1 == panel { n++; high += $6 >= .5; low += $6 < .2; if (n <= 8) best = best (n > 1 ? ", " : "") ($3 == "" ? $2 : $3) sprintf(" %.2f", $6) }
		END { if (n) printf "Panel %s, %s: of %d genes outside it, %d have a Pearson correlation of 0.5 or more, %d below 0.2. Best: %s.\n", panel, first, n, high, low, best }' "$dir/genes.tsv"
done > "$dir/findings.txt"
echo
cat "$dir/findings.txt"
