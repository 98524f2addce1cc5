#include "transfer/promise.h"

const char *const promise_name[] = {[PROMISE_COVERAGE] = "coverage", [PROMISE_UNKNOWN] = "unknown", [PROMISE_ACCURACY] = "accuracy"};
EVERY_ROW(promise_name, PROMISES);

static const double close_to = 0.05; /* shares of right predictions that differ less are about the same */

/* Why nothing holds for new cells; malloced, NULL: it does. */
static char *withheld(const struct calibrated *c, const char *unit)
{
	const struct shift *s = &c->shift;
	double shift = shift_of(s, s->k);
	if (!unit)
		return xstrdup("cells of the reference were held out, not donors, and cells of one donor are alike");
	if (isnan(s->limit))
		return xasprintf("%zu values of column '%s' %s to say how much they differ", c->groups, unit,
			c->groups > 2 ? "have too few cells each" : "are too few");
	if (isnan(shift))
		return xstrdup("the new cells are too few to be compared with the reference");
	if (!(shift <= s->limit))
		return xasprintf("the new cells differ from the reference more than one %s does from the others", unit);
	return NULL;
}

/* Why the decisions on the held-out cells do not promise it. */
static char *not_kept(const struct measured *m, size_t groups, const char *unit, const char *what, const char *class)
{
	size_t needed = measured_groups(m->wanted);
	if (groups >= needed)
		return xasprintf("%.3g of the held-out cells%s%s%s %s", m->sum / (double)m->groups, class ? " that look like '" : "",
			class ? class : "", class ? "'" : "", what);
	if (class)
		return xasprintf(
			"only %zu values of column '%s' have cells that look like '%s', and it takes %zu", groups, unit, class, needed);
	return xasprintf("%zu values of column '%s' are too few, it takes %zu", groups, unit, needed);
}

/* The new cells are not like a group that was held out if more of them are unlike the reference, which needs no labels. Malloced, NULL:
 * they are not more. */
static char *many_unlike(const struct calibrated *c, const char *unit)
{
	double n = 0, unlike = 0;
	for (size_t k = 0; k < c->rule.k; k++) {
		n += c->of[k].cells;
		unlike += c->of[k].unlike;
	}
	double limit = fmax(unlike_limit(&c->unlike, n), 1 - c->known.wanted);
	if (!(c->known.wanted > 0) || isnan(c->shift.limit) || !(unlike / n > limit))
		return NULL;
	return xasprintf(
		"%.3g of the new cells are unlike the reference, and of a new %s at most %.3g are expected", unlike / n, unit, limit);
}

/* Of the types that the new cells have, fewer held-out cells are predicted rightly. Malloced, NULL: about as many are. */
static char *hard_types(const struct calibrated *c)
{
	if (!(c->expected_right < c->right - close_to))
		return NULL;
	return xasprintf("with the types that the new cells have, %.3g of the held-out cells are predicted rightly, and not %.3g",
		c->expected_right, c->right);
}

/* Of the types that the new cells have, the sets hold too few held-out cells. Malloced, NULL: they hold enough. */
static char *other_mix(const struct calibrated *c)
{
	if (!(c->expected_covered < c->coverage.wanted))
		return NULL;
	return xasprintf(
		"with the types that the new cells have, sets hold the true type of %.3g of the held-out cells", c->expected_covered);
}

/* A further reason, malloced; NULL: none. */
static void add(struct promises *p, enum promised i, char *reason)
{
	char **to[] = {&p->why[i], &p->nothing};
	for (size_t j = 0; reason && j < 2; j++)
		if (!(*to[j] && strstr(*to[j], reason)))
			xappend(to[j], "%s%s", *to[j] ? "; " : "", reason);
	free(reason);
}

/* Why one of them is not promised where others may be. */
static void add_own(struct promises *p, enum promised i, const struct calibrated *c, const char *unit, char *const *name)
{
	switch (i) {
	case PROMISE_COVERAGE:
		add(p, i,
			measured_keeps(&c->coverage) ? other_mix(c)
						     : not_kept(&c->coverage, c->whole, unit, "have their type in the set", NULL));
		break;
	case PROMISE_UNKNOWN:
		if (!measured_keeps(&c->known))
			add(p, i,
				not_kept(&c->known, c->known.groups, unit, "are not called unknown",
					c->known.of < c->rule.k ? name[c->known.of] : NULL));
		add(p, i, many_unlike(c, unit));
		break;
	case PROMISE_ACCURACY:
		add(p, i, many_unlike(c, unit));
		add(p, i, hard_types(c));
		break;
	case PROMISES:
		break;
	}
}

void promises_make(struct promises *p, const struct calibrated *c, const char *unit, char *const *name, const char *nothing)
{
	int some = 0;
	*p = (struct promises){0};
	for (enum promised i = 0; i < PROMISES; i++) {
		add(p, i, nothing ? xstrdup(nothing) : NULL);
		add(p, i, withheld(c, unit));
		if (unit)
			add_own(p, i, c, unit, name);
		some |= !p->why[i];
	}
	if (some) {
		free(p->nothing);
		p->nothing = NULL;
	}
}

void promises_release(struct promises *p)
{
	for (int i = 0; i < PROMISES; i++)
		free(p->why[i]);
	free(p->nothing);
	*p = (struct promises){0};
}
