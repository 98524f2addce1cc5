#include "transfer/promise.h"

#include <math.h>
#include <stdlib.h>

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

void promises_make(struct promises *p, const struct calibrated *c, const char *unit, char *const *name)
{
	char *why = withheld(c, unit);
	*p = (struct promises){0};
	if (why)
		p->coverage.why = xstrdup(why);
	else if (!measured_keeps(&c->coverage))
		p->coverage.why = not_kept(&c->coverage, c->whole, unit, "have their type in the set", NULL);
	if (why)
		p->unknown.why = xstrdup(why);
	else if (!measured_keeps(&c->known))
		p->unknown.why = not_kept(
			&c->known, c->known.groups, unit, "are not called unknown", c->known.of < c->rule.k ? name[c->known.of] : NULL);
	p->accuracy.why = why;
	struct promise *each[] = {&p->coverage, &p->unknown, &p->accuracy};
	for (size_t i = 0; i < sizeof each / sizeof *each; i++)
		each[i]->kept = !each[i]->why;
}

void promises_release(struct promises *p)
{
	free_all(p->coverage.why, p->unknown.why, p->accuracy.why);
	*p = (struct promises){0};
}
