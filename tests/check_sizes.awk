# awk -f tests/check_sizes.awk FILE...: prints every function of more than 60 lines, every file of more than 600 and every manual page (.1) of
# more than 400, and ends with status 1 if there is one. A comment with "Long:" above it, which says why, allows a function.
FNR == 1 { lines[FILENAME] = 0; reason = 0 }
{ lines[FILENAME]++ }
/^(\/\*| \*) Long: / { reason = 1 }
/^{$/ { start = FNR }
/^}/ {
	if (start && FNR - start - 1 > 60 && !reason) {
		printf "%s:%d: a function of %d lines, at most 60\n", FILENAME, start, FNR - start - 1
		bad = 1
	}
	start = reason = 0
}
END {
	for (name in lines) {
		most = name ~ /\.1$/ ? 400 : 600
		if (lines[name] > most) {
			printf "%s: %d lines, at most %d\n", name, lines[name], most
			bad = 1
		}
	}
	exit bad
}
