# Metrics of several files side by side. Input: NAME <TAB> KEY <TAB> VALUE. what = metrics: a row for each metric, a column for each name.
# what = classes: a row for each class, from keys such as f1:CLASS; a column of a key has one value if all names agree.
# what = confusion: true class, predicted class, and a column of cells for each name.
BEGIN { FS = "\t" }
{
	if (!($1 in seen)) { seen[$1] = 1; name[++names] = $1 }
	if (!($2 in known)) { known[$2] = 1; key[++keys] = $2 }
	value[$1, $2] = $3
	i = index($2, ":")
	if (substr($2, 1, i) == "n:" && !(substr($2, i + 1) in is_class)) { is_class[substr($2, i + 1)] = 1; class[++classes] = substr($2, i + 1) }
}
function class_of(k,  i) { i = index(k, ":"); return i && substr(k, i + 1) in is_class ? substr(k, i + 1) : "" }

# true and predicted of confusion:TRUE:PREDICTED; names of classes may have colons
function pair(k,  rest, i, at) {
	rest = substr(k, 11)
	for (at = 0; (i = index(substr(rest, at + 1), ":")); ) {
		at += i
		truth = substr(rest, 1, at - 1)
		guess = substr(rest, at + 1)
		if (truth in is_class && guess in is_class)
			return 1
	}
	return 0
}
END {
	if (what == "metrics") {
		head[1] = "metric"
		for (i = 1; i <= names; i++) head[i + 1] = name[i]
		table_start(caption, head, names + 1)
		for (j = 1; j <= keys; j++) {
			if (class_of(key[j]) != "" || key[j] ~ /^confusion:/)
				continue
			line = "<tr>" cell(key[j])
			for (i = 1; i <= names; i++) line = line cell(value[name[i], key[j]])
			print line "</tr>"
		}
		table_end()
	}
	if (what == "classes" && classes) {
		for (j = 1; j <= keys; j++)
			if (class_of(key[j]) != "" && key[j] !~ /^confusion:/) {
				k = substr(key[j], 1, index(key[j], ":") - 1)
				if (!(k in listed)) { listed[k] = 1; list[++lists] = k }
			}
		m = 1
		head[1] = "class"
		for (l = 1; l <= lists; l++) {
			same = 1
			for (c = 1; c <= classes && same; c++)
				for (i = 2; i <= names; i++)
					if (value[name[i], list[l] ":" class[c]] != value[name[1], list[l] ":" class[c]]) same = 0
			for (i = 1; i <= (same ? 1 : names); i++) {
				head[++m] = list[l] (same ? "" : " " name[i])
				column[m] = list[l]
				of[m] = name[i]
			}
		}
		table_start(caption, head, m)
		for (c = 1; c <= classes; c++) {
			line = "<tr>" cell(class[c])
			for (i = 2; i <= m; i++) line = line cell(value[of[i], column[i] ":" class[c]])
			print line "</tr>"
		}
		table_end()
	}
	if (what == "confusion" && classes) {
		head[1] = "true class"
		head[2] = "predicted class"
		for (i = 1; i <= names; i++) head[i + 2] = name[i]
		table_start(caption, head, names + 2)
		for (j = 1; j <= keys; j++) {
			if (key[j] !~ /^confusion:/ || !pair(key[j]))
				continue
			line = "<tr>" cell(truth) cell(guess)
			for (i = 1; i <= names; i++) line = line cell((name[i], key[j]) in value ? value[name[i], key[j]] : 0)
			print line "</tr>"
		}
		table_end()
	}
}
