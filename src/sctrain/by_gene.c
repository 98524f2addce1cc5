/*
 * sctrain eval --gene-scores: how well each gene is predicted (lib/eval/gene_errors.h), by a head of whole cells or of values at masked positions.
 * A gene belongs to one thread, so the table does not depend on their number.
 */
#include "sctrain.h"
#include "cli.h"

#include "base/threads.h"

#define GENES_AT_ONCE 64

int by_gene_predicts(const struct objective *o)
{
	const struct head_kind *k = o->head.kind;
	return k->target == TARGET_CELL || (k->target == TARGET_VALUE && k->rows == ROWS_LISTED);
}

void by_gene_reset(struct score *y, const struct model *m)
{
	gene_errors_release(&y->genes);
	if (y->by_gene)
		gene_errors_init(&y->genes, model_config(m)->vocab_size);
}

/* ---- whole cells ---- */

struct cells {
	struct gene_errors *genes;
	const real *z, *value; /* [cells, 2 V] prediction and logit; [cells, V] */
	size_t n, V;
};

static void add_genes(void *arg, size_t i, int thread)
{
	const struct cells *c = arg;
	size_t from = i * GENES_AT_ONCE, to = from + GENES_AT_ONCE < c->V ? from + GENES_AT_ONCE : c->V;
	for (size_t k = 0; k < c->n; k++)
		for (size_t g = from; g < to; g++) {
			double y = (double)c->value[k * c->V + g];
			const real *z = c->z + 2 * (k * c->V + g);
			if (isnan(y))
				continue;
			gene_errors_add(c->genes, g, y, (double)z[0], (double)z[1]);
		}
}

/* ---- masked positions ---- */

/* A head of one loss predicts a number, one of several the number and the logit. */
static void add_positions(struct gene_errors *genes, const struct goal *g, const real *z, int gated)
{
	for (size_t i = 0; i < g->n; i++) {
		const real *p = z + i * (size_t)(1 + gated);
		if (isnan(g->value[i]))
			continue;
		gene_errors_add(genes, g->target[i], (double)g->value[i], (double)p[0], gated ? (double)p[1] : NAN);
	}
}

/* Values in a row of the head, of which there is one for each cell, or each masked position. */
static size_t values(const struct score *y, const struct model *m, const struct objective *o, size_t *rows)
{
	const struct head_kind *k = o->head.kind;
	*rows = k->target == TARGET_CELL ? y->packed.b.ncell : y->packed.b.goal[o->index].n;
	return k->target == TARGET_CELL ? 2 * (size_t)model_config(m)->vocab_size : head_parts(k);
}

void by_gene_add(struct score *y, const struct model *m, const struct objective *o)
{
	const struct goal *g = &y->packed.b.goal[o->index];
	const real *z = y->of[o->index].logit;
	size_t V = model_config(m)->vocab_size, rows, per = values(y, m, o, &rows);
	for (size_t i = 0; i < rows * per; i++)
		if (!isfinite(z[i]))
			die("the prediction of a gene is %g, expected a finite number", (double)z[i]);
	if (o->head.kind->target == TARGET_CELL)
		pool_for(y->by_gene, (V + GENES_AT_ONCE - 1) / GENES_AT_ONCE, add_genes,
			&(struct cells){.genes = &y->genes, .z = z, .value = g->value, .n = rows, .V = V});
	else
		add_positions(&y->genes, g, z, per == 2);
}

void by_gene_forward(struct score *y, struct model *m, const struct objective *o)
{
	size_t rows, per = values(y, m, o, &rows);
	if (!by_gene_predicts(o))
		return;
	grow(y->of[o->index].logit, y->of[o->index].logit_cap, rows * per);
	model_last_logits(m, o->index, y->of[o->index].logit);
	by_gene_add(y, m, o);
}

/* ---- the table ---- */

#define COLUMNS \
	"gene\tsymbol\tn\texpressed\tzero_fraction\tauc\tauc_error\tmean\tmean_expressed\tmae\tmae_expressed\tmae_expressed_ungated\tnull\t" \
	"null_expressed\tnull_error\trescaled\trescaled_ungated\n"

static void by_gene_put(FILE *f, double v)
{
	if (isnan(v))
		fputs("\tNA", f);
	else
		fprintf(f, "\t%.9g", v);
}

void by_gene_write(struct score *y, const struct vocab *v, const char *path)
{
	char *text = NULL;
	FILE *f = xmemopen(&text, &(size_t){0});
	fputs(COLUMNS, f);
	for (size_t g = v->nspecial; g < v->n; g++) {
		struct gene_score s;
		gene_errors_score(&y->genes, g, &s);
		fprintf(f, "%s\t%s\t%llu\t%llu", v->id[g], v->symbol[g], (unsigned long long)s.n, (unsigned long long)s.expressed);
		const double value[] = {s.zero_fraction, s.auc, s.auc_error, s.mean, s.mean_expressed, s.mae, s.mae_expressed,
			s.mae_expressed_ungated, s.null, s.null_expressed, s.null_error, s.rescaled, s.rescaled_ungated};
		for (size_t i = 0; i < sizeof value / sizeof *value; i++)
			by_gene_put(f, value[i]);
		fputc('\n', f);
	}
	xmemclose(f, &text);
	cli_write(path, text);
}
