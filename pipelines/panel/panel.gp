# Pearson correlation of each gene outside a panel, the best one first, by the first arm (genes.tsv).
genes = dir."/genes.tsv" # panel, gene, symbol, splits, mean_count, pearson, ...
size = "700,480"; load axes
panels = system("cut -f 1 ".genes." | sed 1d | sort -uV | tr '\n' ' '")
set xlabel "genes outside the panel, the best one first"
set ylabel "Pearson correlation in cells of other donors"
set key top right noenhanced
plot for [i = 1:words(panels)] "< awk -F '\t' '$1 == \"".word(panels, i)."\" { print ++n \"\t\" $6 }' ".genes using 1:2 with lines lw 2 title "panel ".word(panels, i)
