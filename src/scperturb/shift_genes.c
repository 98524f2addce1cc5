/* scperturb shift --affected: how similar the state of each gene stays when another one is perturbed. */
#include "shift.h"

#include "base/tsv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pair {
	uint32_t set, gene;
	double n, mean, square; /* square: sum of squared deviations from the mean [Welford 1962] */
};

struct affected {
	struct strmap number; /* of (set, gene) */
	struct pair *pair; /* [n] */
	size_t n, cap;
};

struct affected *affected_new(void)
{
	return xcalloc(1, sizeof(struct affected));
}

void affected_free(struct affected *a)
{
	if (!a)
		return;
	strmap_release(&a->number);
	free(a->pair);
	free(a);
}

void affected_add(struct affected *a, uint32_t set, uint32_t gene, double cosine)
{
	const uint32_t key[2] = {set, gene};
	uint32_t k = strmap_put(&a->number, (const char *)key, sizeof key, (uint32_t)a->n);
	if (k == a->n) {
		grow(a->pair, a->cap, a->n + 1);
		a->pair[a->n++] = (struct pair){set, gene, 0, 0, 0};
	}
	struct pair *p = &a->pair[k];
	double d = cosine - p->mean;
	p->n++;
	p->mean += d / p->n;
	p->square += d * (cosine - p->mean);
}

static int compare(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	if (x->set != y->set)
		return x->set < y->set ? -1 : 1;
	if (x->mean != y->mean)
		return x->mean < y->mean ? -1 : 1;
	return (x->gene > y->gene) - (x->gene < y->gene);
}

void affected_write(const struct affected *a, const char *path, const struct shift_names *names, const struct vocab *v)
{
	char *text = NULL;
	size_t size;
	FILE *f = xmemopen(&text, &size);
	qsort(a->pair, a->n, sizeof *a->pair, compare);
	fputs("perturbed\tkind\taffected\tsymbol\tcells\tmean\tsd\n", f);
	for (size_t i = 0; i < a->n; i++) {
		const struct pair *p = &a->pair[i];
		const char *name = names->sets.name[p->set];
		char *label = tsv_escaped(name + 1);
		fprintf(f, "%s\t%s\t%s\t%s\t%.0f\t%.9g\t", label, perturb_name[name[0] - 'a'], v->id[p->gene], v->symbol[p->gene], p->n,
			p->mean);
		fprintf(f, p->n > 1 ? "%.9g\n" : "NA\n", sqrt(p->square / (p->n - 1)));
		free(label);
	}
	xmemclose(f, &text);
	cli_write(path, text);
}
