/* scperturb shift --affected: how similar the state of each gene stays when another one is perturbed. */
#include "scperturb.h"

#include "base/tsv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	const struct affected_pair *x = a, *y = b;
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
		const struct affected_pair *p = &a->pair[i];
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
