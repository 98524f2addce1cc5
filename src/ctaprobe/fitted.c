#include "fitted.h"
#include "cli.h"

#include "eval/moments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void fitted_release(struct fitted *f)
{
	probe_release(&f->p);
	free_all(f->local, f->back);
	*f = (struct fitted){0};
}

/* Number the classes of rows row[0..n). */
static size_t number_classes(struct fitted *f, const struct embeddings *d, const uint32_t *row, size_t n, const struct classes *c,
	const char *label, const char *what)
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
		die("%s: %s: the %zu training cells are all '%s' in column '%s'; a probe needs two classes", stream_name(d->s), what, n,
			n ? c->name[f->back[0]] : "", label);
	return k;
}

void fitted_train(struct fitted *f, const struct embeddings *d, const uint32_t *row, size_t n, const struct classes *c, const char *label,
	const struct probe_options *o, const char *what)
{
	size_t k = number_classes(f, d, row, n, c, label, what);
	uint32_t *y = xmalloc(d->n * sizeof *y);
	for (size_t i = 0; i < d->n; i++)
		y[i] = f->local[d->y[i]];
	progress("%s: fitting %zu cells, %zu classes, %zu features", what, n, k, d->d);
	struct probe_options with = *o;
	if (o->start && o->start->k != k)
		with.start = NULL;
	if (probe_fit(&f->p, d->x, d->d, row, n, y, k, &with, &failure))
		die("%s: %s: %s", stream_name(d->s), what, failure.msg);
	free(y);
}

void fitted_logits(const struct fitted *f, const float *x, double *logit)
{
	probe_logits(&f->p, x, logit);
	/* move the k logits to their classes, the last one first, so that none is overwritten */
	for (size_t c = f->all, j = f->p.k; c-- > 0;)
		logit[c] = f->local[c] == MISSING_CODE ? -INFINITY : logit[--j];
}

float *rows_taken(const struct embeddings *d, const uint32_t *row, size_t n)
{
	float *x = xmalloc(n * d->d * sizeof *x);
	for (size_t i = 0; i < n; i++)
		memcpy(x + i * d->d, d->x + row[i] * d->d, d->d * sizeof *x);
	return x;
}

double *rows_scale(const struct embeddings *d, const uint32_t *row, size_t n, int as_given)
{
	double *scale = xmalloc(d->d * sizeof *scale), *mean = xmalloc(d->d * sizeof *mean);
	moments(d->x, d->d, row, n, mean, scale);
	for (size_t j = 0; j < d->d; j++)
		scale[j] = !as_given && sqrt(scale[j]) > 1e-12 * fabs(mean[j]) ? sqrt(scale[j]) : 1;
	free(mean);
	return scale;
}
