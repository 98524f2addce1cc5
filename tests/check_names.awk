# Who names an architecture, a head or an objective:  awk -f tests/check_names.awk pass=1 FILE... pass=2 FILE...
# Only its own file, the table of its kind (the file of that name: head.c, arch.c, sctrain.c and their headers) and, for a head, the file of an
# objective may. So a new one is a new file and a line of a table. The same holds for the names of their tensors. Prints every other place, and
# ends with status 1 if there is one.
BEGIN { tables = " lib/nn/head.c lib/nn/head.h lib/nn/arch.c lib/nn/arch.h src/sctrain/sctrain.c src/sctrain/sctrain.h " }
function code(line,    at) { # without comments
	if (inside) {
		at = index(line, "*/")
		if (!at)
			return ""
		inside = 0
		return code(substr(line, at + 2))
	}
	at = index(line, "/*")
	if (!at)
		return line
	inside = 1
	return substr(line, 1, at - 1) " " code(substr(line, at + 2))
}
function words(line, f,    w) { # f: names of symbols that a declaration has
	gsub(/[^A-Za-z0-9_]/, " ", line)
	split(line, w, " ")
	for (f in w)
		if (w[f] !~ /^(extern|const|struct|head_kind|arch|objective_kind|train_task)$/)
			symbol[w[f]] = 1
}
function strings(line, name,    text) { # the texts in a line start names of tensors
	while (match(line, /"[a-z_]+\.[^"]*"/)) {
		text = substr(line, RSTART + 1, RLENGTH - 2)
		own[text, FILENAME] = tensor[text] = 1
		line = substr(line, RSTART + RLENGTH)
	}
}
function is_own(text, name,    longer) { # does the text start a longer name, which this file has?
	for (longer in tensor)
		if (((longer, FILENAME) in own) && index(longer, name) == 1 && index(text, "\"" longer))
			return 1
	return 0
}
function static_name(line) { # the function that a definition names, or ""
	sub(/__attribute__ *\(\(.*\)\) */, "", line)
	if (!match(line, /^static [^=;(]*\(/) && !match(line, /^COMPARE\([a-z_0-9]+/))
		return ""
	line = substr(line, 1, RLENGTH)
	sub(/^COMPARE\(/, "", line)
	sub(/\($/, "", line)
	sub(/.*[ *]/, "", line)
	return line
}
FNR == 1 { inside = 0 }
{ text = code($0) }
pass == 1 && (name = static_name(text)) && !((name, FILENAME) in stands) {
	stands[name, FILENAME] = 1
	in_files[name] = in_files[name] " " FILENAME
	files_of[name]++
}
pass == 1 && text ~ /^extern const struct (head_kind|arch|objective_kind|train_task) / { words(text) }
pass == 1 && text ~ /^(static )?const struct (head_kind|arch|objective_kind|train_task) [a-z_]+ = / {
	sub(/ = .*/, "", text)
	n = split(text, part, " ")
	own[part[n], FILENAME] = 1
	if (text ~ /objective_kind/)
		objective[FILENAME] = 1
}
pass == 1 && text ~ /\.(prefix|pooler) = / { strings(text) }
pass == 2 && !index(tables, " " FILENAME " ") {
	for (name in symbol)
		if (!((name, FILENAME) in own) && !(name ~ /^head_/ && FILENAME in objective) && text ~ "(^|[^A-Za-z0-9_])" name "([^A-Za-z0-9_(]|$)") {
			printf "%s:%d: names %s: only its own file and its table may\n", FILENAME, FNR, name
			bad = 1
		}
	for (name in tensor)
		if (!((name, FILENAME) in own) && index(text, "\"" name) && !is_own(text, name)) {
			printf "%s:%d: names tensors '%s': only the files of what has them may\n", FILENAME, FNR, name
			bad = 1
		}
}
END {
	for (name in files_of)
		if (files_of[name] > 3) {
			printf "static %s() stands in %d files: give each a name of its own:%s\n", name, files_of[name], in_files[name]
			bad = 1
		}
	exit bad
}
