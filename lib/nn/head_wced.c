/*
 * The whole cell from the state of its first token [BMFM-RNA, whole-cell expression decoder]:
 *     t = LN(act(x W_t + b_t));   z = t W^T + b,   rows 2 g and 2 g + 1 of W are those of gene g
 *     z[2g] = m_g, its value if it is expressed;   z[2g+1] = a_g, the logit that it is not
 * The losses are those of ops.expression_loss: cross-entropy of a, over all genes that were measured, and squared error of m, over those of
 * them that are not 0. Both of all genes, of the genes of the input alone, and of the others; each is a mean over the global batch. (The
 * released code divides by the number of genes + 1e-6, and counts a loss without a gene as 0; here it is left out.)
 */

#include "nn/expression.h"

#define DECODER "cls.predictions.predictions.decoder.field_decoders.expressions_wced"

static int wced_check(const struct head_spec *s, const struct model_config *c, struct error *e)
{
	return c->arch->per_cell ? error_set(e, "head %s: architecture %s has no hidden states of tokens", s->kind->name, c->arch->name)
				 : 0;
}

static void wced_tensors(const struct head_spec *s, struct params *p, const struct model_config *c)
{
	int layer = (int)c->num_hidden_layers;
	transform_tensors(p, c, s->kind);
	params_add_last(p, layer, 2 * (size_t)c->vocab_size, c->hidden_size, DECODER);
}

static void wced_resolve(struct head *h, struct model *m)
{
	struct expression *k = (struct expression *)h;
	transform_resolve(&k->t, m, h->kind);
	k->w = params_at(&m->p, DECODER ".weight");
	k->b = params_at(&m->p, DECODER ".bias");
}

static void count_parts(const struct head *h, const struct model *m, const struct goal *g, size_t rows, double *count)
{
	size_t V = m->c.vocab_size, words = nb_words(V), n[3][2] = {{0}};
	for (size_t i = 0; i < rows && g->value; i++)
		for (size_t j = 0; j < V; j++) {
			real y = g->value[i * V + j];
			if (isnan(y))
				continue;
			size_t of = g->mask[i * words + j / 32] >> j % 32 & 1 ? 1 : 2;
			n[0][0]++;
			n[of][0]++;
			n[0][1] += y != 0;
			n[of][1] += y != 0;
		}
	for (size_t i = 0; i < PARTS_MAX; i++)
		count[i] = (double)n[i / 2][i % 2];
}

static const struct head_part parts[] = {
	{"is_zero", 1}, {"value", 1}, {"is_zero_input", 0}, {"value_input", 0}, {"is_zero_other", 0}, {"value_other", 0}, {0}};

static const struct head_metric metrics[] = {
	{"is_zero", head_mean, 0, 0},
	{"zero_accuracy", head_accuracy, 1, 0},
	{"mse", head_mean, 0, 1},
	{"is_zero_input", head_mean, 0, 2},
	{"mse_input", head_mean, 0, 3},
	{"is_zero_other", head_mean, 0, 4},
	{"mse_other", head_mean, 0, 5},
	{0},
};

const struct head_kind head_wced = {
	.name = "wced",
	.class_name = "ForWholeCell",
	.prefix = (const char *const[]){"cls.predictions.predictions.", NULL},
	.rows = ROWS_CELL,
	.target = TARGET_CELL,
	.part = parts,
	.metric = metrics,
	.check = wced_check,
	.tensors = wced_tensors,
	.resolve = wced_resolve,
	.count_parts = count_parts,
	EXPRESSION_HEAD,
};
