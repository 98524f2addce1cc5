# For awk "$(cat stats.awk)"'...': means over seeds and paired gaps.

# Standard deviation of n values from their sum and sum of squares; 0 for one value
function sd(n, s, q,  v) {
	v = n > 1 ? (q - s * s / n) / (n - 1) : 0
	return v > 1e-12 ? sqrt(v) : 0
}
# A value that prints as 0 with three digits is 0, not -0.000
function near(x) {
	return x < 0.0005 && x > -0.0005 ? 0 : x
}
# Student's t of n paired differences; NA if their spread is unknown
function paired_t(n, s, q,  d) {
	d = sd(n, s, q)
	return d > 0 ? s / n / (d / sqrt(n)) : "NA"
}
# P(|T| > t) of Student's t with v degrees of freedom [Abramowitz and Stegun 26.7.3 and 26.7.4]
function tail(t, v,  angle, c, i, term, sum) {
	angle = atan2(t < 0 ? -t : t, sqrt(v))
	c = cos(angle)
	term = v % 2 ? c : 1
	for (i = v % 2 ? 3 : 2; i <= v; i += 2) {
		sum += term
		term *= c * c * (i - 1) / i
	}
	sum *= sin(angle)
	return 1 - (v % 2 ? (angle + sum) / atan2(1, 0) : sum)
}
# The two-sided p of n paired differences with this t
function paired_p(t, n) {
	return t == "NA" ? t : sprintf("%.2g", tail(t, n - 1))
}
# The t that is exceeded, in either direction, with probability 5 % given v degrees of freedom, by bisection
function critical_t(v,  i, low, high) {
	if (!(v in critical_of)) {
		high = 20
		for (i = 0; i < 50; i++)
			if (tail((low + high) / 2, v) > 0.05)
				low = (low + high) / 2
			else
				high = (low + high) / 2
		critical_of[v] = high
	}
	return critical_of[v]
}
# Half the 95 % interval of the mean of n differences with standard deviation d
function half_interval(n, d) {
	return n > 1 ? critical_t(n - 1) * d / sqrt(n) : "NA"
}
# The mean difference, in standard deviations, that a paired two-sided t test at 5 % of n differences finds in 80 % of experiments. The
# power at m = sqrt(n) d is P(|T| > t) of a noncentral T: given s = sqrt(chi^2 / v), it is norm(m - t s) + norm(-m - t s); gnuplot sums it
# over the density of s by the midpoint rule. m is found by bisection. NA without gnuplot.
function effect(n,  v, command) {
	if (n < 2)
		return "NA"
	if (!(n in effect_of)) {
		v = n - 1
		command = sprintf("gnuplot -e '" \
			"v = %d.0; t = %.9f; h = 0.005; set print \"-\";" \
			"f(s) = exp(log(2) + v / 2 * log(v / 2) - lgamma(v / 2) + (v - 1) * log(s) - v * s * s / 2);" \
			"g(s, m) = f(s) * (norm(m - t * s) + norm(-m - t * s));" \
			"power(m) = h * (sum [i = 0:1199] g((i + 0.5) * h, m));" \
			"find(a, b, i) = i == 0 ? b : power((a + b) / 2) < 0.8 ? find((a + b) / 2, b, i - 1) : find(a, (a + b) / 2, i - 1);" \
			"print sprintf(\"%%.6g\", find(0.0, 40.0, 40) / sqrt(v + 1))' 2>/dev/null", v, critical_t(v))
		effect_of[n] = "NA"
		command | getline effect_of[n]
		close(command)
	}
	return effect_of[n]
}
# The difference that can be detected, given the standard deviation of the n paired differences
function detectable(n, d,  e) {
	e = effect(n)
	return e == "NA" || !(d > 0) ? "NA" : e * d
}
