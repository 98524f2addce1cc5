#include "cells/thin.h"

#include "base/json.h"

enum { ONE_BY_ONE = 16 };

static const char *provenance_text(const cJSON *line, const char *key)
{
	const char *text = json_text(line, key);
	return text ? text : "";
}

uint32_t thin_before(const struct header *h)
{
	uint32_t n = 0;
	const cJSON *p;
	cJSON_ArrayForEach(p, h->provenance)
	{
		FREED char *options = xasprintf(" %s ", provenance_text(p, "options"));
		if (!strcmp(provenance_text(p, "program"), "scsample") && strstr(options, " --thin "))
			n = 2 * n + (strstr(options, " --complement ") ? 2 : 1);
	}
	return n;
}

/* log C(n, k); lgamma writes a global variable. */
static double log_choose(double n, double k)
{
	int sign;
	return lgamma_r(n + 1, &sign) - lgamma_r(k + 1, &sign) - lgamma_r(n - k + 1, &sign);
}

/*
 * Inversion from the mode: u is used up by the probabilities of the mode m, m - 1, m + 1, m - 2, ... A step costs two products, and some
 * sqrt(n p (1 - p)) steps are needed.
 */
static uint64_t invert(double u, double n, double p)
{
	double m = floor((n + 1) * p), odds = p / (1 - p), below = exp(log_choose(n, m) + m * log(p) + (n - m) * log1p(-p)), above = below;
	u -= below;
	for (double low = m, high = m; u >= 0 && (below > 0 || above > 0);) {
		below *= low / ((n - low + 1) * odds); /* 0 below 0, and above n */
		above *= (n - high) / (high + 1) * odds;
		low--;
		high++;
		if ((u -= below) < 0)
			return (uint64_t)low;
		if ((u -= above) < 0)
			return (uint64_t)high;
	}
	return (uint64_t)m;
}

uint64_t thin_draw(struct rng *r, uint64_t n, double p)
{
	uint64_t kept = 0;
	if (n > ONE_BY_ONE)
		return invert(rng_unit(r), (double)n, p);
	for (uint64_t i = 0; i < n; i++)
		kept += rng_unit(r) < p;
	return kept;
}
