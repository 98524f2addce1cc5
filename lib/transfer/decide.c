#include "transfer/decide.h"

#include "base/softmax.h"

double rule_unsure(double probability)
{
	return (double)(float)(1 -
		probability); /* equal votes for different classes are ties, although their sums were rounded differently */
}

double rule_strange(const struct rule *r, double far, double unsure)
{
	return 2 - conformal_p(&r->far, far) - conformal_p(&r->unsure, unsure);
}

void decide_class(const struct rule *r, const double *logit, struct decision *d)
{
	d->class = (uint32_t)softmax_argmax(logit, r->k);
	for (size_t c = 0; c < r->k; c++)
		d->p[c] = logit[c] / r->temperature;
	softmax(d->p, r->k);
	d->probability = d->p[d->class];
}

void transfer_decide(const struct rule *r, const double *logit, double far, struct decision *d)
{
	decide_class(r, logit, d);
	for (size_t c = 0; c < r->k; c++)
		d->in_set[c] = c == d->class || 1 - d->p[c] <= r->most_missed;
	const struct limit *limit = &r->limit[r->of[d->class]];
	double strange = rule_strange(r, far, rule_unsure(d->probability));
	d->likeness = conformal_p(&limit->strange, strange);
	d->unlike = strange > limit->most;
	d->unknown = r->calls_unknown && d->unlike;
	d->term = r->detail ? finest_answer(&r->detail->holds, d->p, r->finest) : 0;
}

void rule_release(struct rule *r)
{
	for (size_t k = 0; r->limit && k <= r->k; k++)
		conformal_release(&r->limit[k].strange);
	conformal_release(&r->far);
	conformal_release(&r->unsure);
	free_all(r->limit, r->of);
	*r = (struct rule){0};
}
