#include "transfer/fitted.h"

void fitted_release(struct fitted *f)
{
	probe_release(&f->p);
	free_all(f->local, f->back);
	*f = (struct fitted){0};
}

int fitted_train(struct fitted *f, const struct embeddings *d, const uint32_t *row, size_t n, const struct classes *c, const char *label,
	const struct probe_options *o, struct error *e)
{
	size_t k = 0;
	*f = (struct fitted){.all = c->n, .local = xmalloc(c->n * sizeof *f->local), .back = xmalloc(c->n * sizeof *f->back)};
	memset(f->local, 0xFF, c->n * sizeof *f->local);
	for (size_t i = 0; i < n; i++)
		f->local[d->y[row[i]]] = 0;
	for (size_t i = 0; i < c->n; i++)
		if (f->local[i] != MISSING_CODE) {
			f->local[i] = (uint32_t)k;
			f->back[k++] = (uint32_t)i;
		}
	if (k < 2)
		return error_set(e, "the %zu training cells are all '%s' in column '%s'; a probe needs two classes", n,
			n ? c->name[f->back[0]] : "", label);
	FREED uint32_t *y = xmalloc(d->n * sizeof *y);
	for (size_t i = 0; i < d->n; i++)
		y[i] = f->local[d->y[i]];
	struct probe_options with = *o;
	if (o->start && o->start->k != k)
		with.start = NULL;
	return probe_fit(&f->p, d->x, d->d, row, n, y, k, &with, e);
}

void fitted_logits(const struct fitted *f, const float *x, double *logit)
{
	probe_logits(&f->p, x, logit);
	/* move the k logits to their classes, the last one first, so that none is overwritten */
	for (size_t c = f->all, j = f->p.k; c-- > 0;)
		logit[c] = f->local[c] == MISSING_CODE ? -INFINITY : logit[--j];
}
