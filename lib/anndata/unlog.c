#include "anndata/unlog.h"

#include "anndata/number.h"
#include "base/error.h"

enum {
	PARTS_MAX = 100,
	FEW = 2048
}; /* of the smallest value that are tried; counts that narrow the unit before larger ones are looked at */

const char *const unlog_formula[] = {
	[UNLOG_NOT] = "", [UNLOG_SAME] = "", [UNLOG_EXP] = "exp(value) - 1", [UNLOG_EXP2] = "2^value - 1", [UNLOG_EXP10] = "10^value - 1"};
EVERY_ROW(unlog_formula, UNLOGS);

double unlog_value(enum unlog by, double v)
{
	switch (by) {
	case UNLOG_EXP:
		return expm1(v);
	case UNLOG_EXP2:
		return exp2(v) - 1;
	case UNLOG_EXP10:
		return pow(10, v) - 1;
	case UNLOG_NOT:
	case UNLOG_SAME:
	case UNLOGS:
		break;
	}
	return v;
}

static double relative_error(enum unlog by, double y)
{
	return by == UNLOG_SAME ? UNLOG_ERROR : UNLOG_ERROR * ((log1p(y) + 1) * (1 + y) / y + 1);
}

/* The unit is the least value / parts: 1 all values are multiples, 0 they are not, -1 a value could be more than one multiple. */
static int divide_by_part(const double *y, const double *error, size_t n, size_t least, int parts, uint32_t *count, struct unlogged *u)
{
	double low = y[least] * (1 - error[least]) / parts, high = y[least] * (1 + error[least]) / parts, few = FEW * high;
	for (int large = 0; large < 2; large++)
		for (size_t i = 0; i < n; i++) {
			if (y[i] == 0 || (y[i] > few) != large)
				continue;
			double a = y[i] * (1 - error[i]), b = y[i] * (1 + error[i]), c = ceil(a / high), to = b / low;
			if (c > to)
				return 0;
			if (c + 1 <= to || c > NUMBER_COUNT_MAX)
				return -1;
			count[i] = (uint32_t)c;
			low = fmax(low, a / c);
			high = fmin(high, b / c);
		}
	u->unit = (low + high) / 2;
	u->spread = (high - low) / u->unit;
	return 1;
}

/* The chance that values were whole without being counts: those that are no multiples of `part`, each different count once. */
static double chance_of(const uint32_t *count, const double *error, size_t n, uint32_t part, const struct unlogged *u)
{
	double chance = 1;
	uint64_t seen = part == 1 ? 2 : 0; /* the unit is a count of 1 then */
	for (size_t i = 0; i < n; i++) {
		uint32_t c = count[i];
		if (!c || (part > 1 && c % part == 0) || (c < 64 && seen >> c & 1))
			continue;
		seen |= c < 64 ? 1ull << c : 0;
		chance *= fmin(1, c * (2 * error[i] + u->spread));
	}
	return chance;
}

int unlog_cell(enum unlog by, double *v, double *error, size_t n, uint32_t *count, struct unlogged *u)
{
	size_t least = n;
	*u = (struct unlogged){.chance = 1};
	for (size_t i = 0; i < n; i++) {
		count[i] = 0;
		if (v[i] == 0)
			continue;
		v[i] = unlog_value(by, v[i]);
		if (!(v[i] > 0 && isfinite(v[i])))
			return -1;
		error[i] = relative_error(by, v[i]);
		if (error[i] >= 1) /* it could be zero, which no unit divides */
			return -1;
		if (least == n || v[i] < v[least])
			least = i;
	}
	int r = least == n;
	for (int parts = 1; parts <= PARTS_MAX && r == 0; parts++) {
		r = divide_by_part(v, error, n, least, parts, count, u);
		if (r > 0)
			u->chance = chance_of(count, error, n, (uint32_t)parts, u);
		/* a fine unit must not rest on a value or two */
		for (int part = 2; part <= parts && r > 0; part++)
			if (part * chance_of(count, error, n, (uint32_t)part, u) > .05)
				return -1;
	}
	for (size_t i = 0; i < n && r > 0; i++)
		u->off = fmax(u->off, count[i] ? fabs(v[i] / u->unit - count[i]) : 0);
	return r > 0 ? 0 : -1;
}
