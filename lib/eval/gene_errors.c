#include "eval/gene_errors.h"

#include "base/error.h"

#define LOGIT_BINS 128 /* 6 kB a gene: areas are known to about .005 */
#define VALUE_BINS 32 /* 1.5 kB: only the bin around the mean is not exact */

void gene_errors_init(struct gene_errors *x, size_t genes)
{
	x->n = genes;
	x->of = xcalloc(genes, sizeof *x->of);
}

void gene_errors_release(struct gene_errors *x)
{
	for (size_t i = 0; i < x->n; i++) {
		sketch_release(&x->of[i].logit);
		sketch_release(&x->of[i].value);
	}
	free(x->of);
	*x = (struct gene_errors){0};
}

void gene_errors_add(struct gene_errors *x, size_t gene, double y, double m, double a)
{
	struct gene_sums *s = &x->of[gene];
	double off = fabs((a > 0 ? 0 : m) - y);
	s->n++;
	s->y += y;
	s->gated += off;
	if (!isnan(a)) {
		s->logits++;
		sketch_add(&s->logit, LOGIT_BINS, (float)a, y == 0);
	}
	if (y == 0)
		return;
	s->expressed++;
	s->gated_expressed += off;
	s->ungated_expressed += fabs(m - y);
	sketch_add(&s->value, VALUE_BINS, (float)y, 0);
}

void gene_errors_score(struct gene_errors *x, size_t gene, struct gene_score *s)
{
	struct gene_sums *g = &x->of[gene];
	double n = (double)g->n, expressed = (double)g->expressed, error, error_expressed;
	*s = (struct gene_score){.n = g->n, .expressed = g->expressed, .auc = NAN, .auc_error = NAN};
	if (g->logits)
		s->auc = sketch_auc(&g->logit, &s->auc_error);
	s->zero_fraction = 1 - expressed / n;
	s->mean = g->y / n;
	s->mean_expressed = g->y / expressed;
	s->mae = g->gated / n;
	s->mae_expressed = g->gated_expressed / expressed;
	s->mae_expressed_ungated = g->ungated_expressed / expressed;
	s->null = (sketch_deviation(&g->value, s->mean, &error) + (n - expressed) * fabs(s->mean)) / n;
	s->null_expressed = sketch_deviation(&g->value, s->mean_expressed, &error_expressed) / expressed;
	s->null_error = fmax(error / n, g->expressed ? error_expressed / expressed : 0);
	s->rescaled = s->mae_expressed / s->mean_expressed;
	s->rescaled_ungated = s->mae_expressed_ungated / s->mean_expressed;
}
