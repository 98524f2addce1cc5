# For awk "$(cat stats.awk)"'...': means over seeds and paired gaps.

# Standard deviation of n values from their sum and sum of squares; 0 for one value
function sd(n, s, q,  v) {
	v = n > 1 ? (q - s * s / n) / (n - 1) : 0
	return v > 1e-12 ? sqrt(v) : 0
}
# Student's t of n paired differences; NA if their spread is unknown
function paired_t(n, s, q,  d) {
	d = sd(n, s, q)
	return d > 0 ? s / n / (d / sqrt(n)) : "NA"
}
# Its two-sided p, by gnuplot's incomplete beta function; NA without gnuplot
function paired_p(t, n,  command, p) {
	if (t == "NA")
		return t
	command = sprintf("gnuplot -e 'n = %d - 1.0; t = %.9g; set print \"-\"; print sprintf(\"%%.2g\", ibeta(n / 2, 0.5, n / (n + t * t)))' 2>/dev/null", n, t)
	p = "NA"
	command | getline p
	close(command)
	return p
}
