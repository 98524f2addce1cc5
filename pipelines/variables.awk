# The variables that .mk files explain at their heads, in lines such as "# LABEL  obs column with the cell type".
#     awk -f variables.awk FILE.mk...                         their names
#     LABEL_NOW=cell_type awk -v help=1 -f variables.awk ...  a list under the targets of each file, with the value that NAME_NOW has
FNR == 1 {
	head = 1
	file = FILENAME
	sub(/.*\//, "", file)
}
!/^#/ { head = 0 }
head && /^# [A-Z][A-Z0-9_]*  +[^ ]/ {
	if (!help) print $2
	text = $0
	sub(/^# [^ ]+ +/, "", text)
	left = sprintf("    %s=%s", $2, ENVIRON[$2 "_NOW"])
	lines[file] = lines[file] (length(left) < 27 ? sprintf("%-28s", left) : left sprintf("\n%28s", "")) text "\n"
}
/^[a-z0-9-]+:.*## / {
	sub(/:.*/, "")
	targets[file] = targets[file] (targets[file] == "" ? "" : ", ") $0
}
FNR == 1 { files[++n] = file }
END {
	targets["runs.mk"] = "all experiments"
	targets["cells.mk"] = "demo, finetune, genes, table6, r2mae-cells"
	for (i = 1; help && i <= n; i++)
		if (lines[files[i]] != "") printf "  %s\n%s", targets[files[i]], lines[files[i]]
}
