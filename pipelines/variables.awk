# The variables that .mk files explain at their heads, in lines such as "# LABEL  obs column with the cell type". The line "# Also those of
# cells.mk, table6.mk" adds the variables of other files; what follows ": " stands above them in the list of one experiment. Those of runs.mk are of
# all experiments. An experiment is a target with ##.
#     awk -f variables.awk FILE.mk...                             the names of all variables
#     awk -v of='demo fig3' -v check='DTA SCALE' -f ...           what is wrong with these names, if these experiments are made
#     awk -v near=dmo -f variables.awk FILE.mk...                 " (did you mean demo?)", or nothing
#     awk -v of=demo -v words=1 -f variables.awk ...              the variables of one experiment, for the completion of a shell
#     LABEL_NOW=cell_type awk -v help=1 [-v of=demo] -f ...       a list under the targets of each file, with the value that NAME_NOW has

FNR == 1 {
	head = 1
	file = FILENAME
	sub(/.*\//, "", file)
	files[++n] = file
	known[file] = 1
}
!/^#/ { head = 0 }
head && /^# Also those of / {
	sub(/^# Also those of /, "")
	if (i = index($0, ": ")) {
		caption[file] = substr($0, i + 2)
		$0 = substr($0, 1, i - 1)
	}
	gsub(/,/, "")
	also[file] = $0
}
head && /^# [A-Z][A-Z0-9_]*  +[^ ]/ {
	text = $0
	sub(/^# [^ ]+ +/, "", text)
	names[file] = names[file] " " $2
	about[file, $2] = text
	if (!seen[$2]++) all[++variables] = $2
}
/^[a-z0-9-]+:.*##@? / {
	sub(/:.*/, "")
	targets[file] = targets[file] (targets[file] == "" ? "" : " ") $0
	home[$0] = file
	experiment[++experiments] = $0
}

# reach[TARGET, FILE]: the target has the variables of the file
function spread(target, f,    i, k, more) {
	if (f == "" || (target, f) in reach) return
	if (!(f in known)) print "variables.awk: no file " f > "/dev/stderr"
	reach[target, f] = 1
	k = split(also[f], more, " ")
	for (i = 1; i <= k; i++) spread(target, more[i])
}
# the experiments that have the file
function having(f,    i, list) {
	for (i = 1; i <= experiments; i++) if ((experiment[i], f) in reach) list = list (list == "" ? "" : ", ") experiment[i]
	return list
}
# the first one that has the variable
function owner(name,    i, j) {
	for (i = 1; i <= experiments; i++) for (j = 1; j <= n; j++) if ((experiment[i], files[j]) in reach && (files[j], name) in about) return experiment[i]
}
# edits that make a into b: letters inserted, deleted or replaced, neighbours swapped
function edits(a, b,    i, j, d, t, x, y) {
	for (i = 0; i <= length(a); i++)
		for (j = 0; j <= length(b); j++) {
			if (!i || !j) { t[i, j] = i + j; continue }
			x = substr(a, i, 1); y = substr(b, j, 1)
			d = t[i - 1, j - 1] + (x != y)
			if (t[i - 1, j] + 1 < d) d = t[i - 1, j] + 1
			if (t[i, j - 1] + 1 < d) d = t[i, j - 1] + 1
			if (i > 1 && j > 1 && x == substr(b, j - 1, 1) && y == substr(a, i - 1, 1) && t[i - 2, j - 2] + 1 < d) d = t[i - 2, j - 2] + 1
			t[i, j] = d
		}
	return t[length(a), length(b)]
}
function consider(word, name,    d) {
	d = edits(word, name)
	if (3 * d <= (length(name) > 3 ? length(name) : 3) && (best == "" || d < least)) { best = name; least = d }
}
function meant() { return best == "" ? "" : " (did you mean " best "?)" }
function closest(word,    i) {
	for (i = 1; i <= variables; i++) if (mine(all[i])) consider(toupper(word), all[i])
	return meant()
}
# one of the experiments `of` has the variable
function mine(name,    i, j) {
	for (i = 1; i <= wanted; i++)
		for (j = 1; j <= n; j++)
			if ((want[i], files[j]) in reach && (files[j], name) in about) return 1
	return 0
}
function print_file(f,    i, k, name, left) {
	k = split(names[f], name, " ")
	for (i = 1; i <= k; i++) {
		if (shown[name[i]]++ && of != "") continue
		if (words) { printf "%s=\t\t%s\n", name[i], about[f, name[i]]; continue }
		left = sprintf("    %s=%s", name[i], ENVIRON[name[i] "_NOW"])
		print (length(left) < 27 ? sprintf("%-28s", left) : left sprintf("\n%28s", "")) about[f, name[i]]
	}
}
END {
	if (near != "") {
		for (i = 1; i <= experiments; i++) consider(near, experiment[i])
		print meant()
		exit
	}
	for (i = 1; i <= experiments; i++) {
		spread(experiment[i], home[experiment[i]])
		spread(experiment[i], "runs.mk")
	}
	k = split(of, word, " ")
	for (i = 1; i <= k; i++) if (word[i] in home) want[++wanted] = word[i]
	if (of != "" && !help && !words) {
		k = split(check, name, " ")
		for (i = 1; i <= k && wanted; i++)
			if (!mine(name[i])) {
				where = name[i] in seen ? " (" owner(name[i]) " has one)" : closest(name[i])
				printf "%s has no variable %s%s; corrmask %s --help lists those it has\n", want[1], name[i], where, want[1]
				exit
			}
	} else if (wanted) {
		print_file(home[want[1]])
		if (help && home[want[1]] in caption) print "  " caption[home[want[1]]]
		for (i = 1; i <= n; i++) if (files[i] != "runs.mk" && (want[1], files[i]) in reach) print_file(files[i])
		if (help) print "  of all experiments:"
		print_file("runs.mk")
	} else if (help) {
		for (i = 1; i <= n; i++)
			if (names[files[i]] != "") {
				print "  " (files[i] == "runs.mk" ? "all experiments" : having(files[i]))
				print_file(files[i])
			}
	} else
		for (i = 1; i <= variables; i++) print all[i]
}
