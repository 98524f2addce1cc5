/*
 * scembed --reconstruct of a model of whole cells (sctrain wced): for each chosen gene its value m if it is expressed, the probability that it
 * is, sigmoid(-a), and the released prediction, 0 where the logit a of zero is above 0 and m elsewhere. Values are log-normalised.
 */
#include "scembed.h"

#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_row(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* The row of a gene by its id, or else by its symbol. */
static uint32_t gene_row(const struct vocab *v, const char *gene)
{
	int64_t row = vocab_find(v, gene);
	size_t same = 0;
	for (size_t i = v->nspecial; i < v->n && row < 0; i++)
		same += strcmp(v->symbol[i], gene) == 0;
	for (size_t i = v->nspecial; i < v->n && row < 0; i++)
		row = same == 1 && strcmp(v->symbol[i], gene) == 0 ? (int64_t)i : -1;
	if (row < (int64_t)v->nspecial)
		die("--gene %s: %s", gene,
			same > 1 ? "several genes have this symbol: expected an id" : "no gene of the vocabulary has this id or symbol");
	return (uint32_t)row;
}

static void choose_genes(struct run *r, const struct vocab *v, const struct opt_values *genes)
{
	size_t n = genes->n ? genes->n : v->n - v->nspecial;
	r->gene_row = xcalloc(n, sizeof *r->gene_row);
	for (size_t i = 0; i < n; i++)
		r->gene_row[i] = genes->n ? gene_row(v, genes->item[i]) : (uint32_t)(v->nspecial + i);
	qsort(r->gene_row, n, sizeof *r->gene_row, by_row);
	for (size_t i = 0; i < n; i++)
		if (!i || r->gene_row[i] != r->gene_row[i - 1])
			r->gene_row[r->ngene_row++] = r->gene_row[i];
}

void whole_open(struct run *r, const char *dir, const struct header *h, const struct opt_values *genes)
{
	struct error e;
	char *config = xasprintf("%s/config.json", dir);
	must(config_heads_load(&r->heads, config, &e), &e);
	while (r->head < r->heads.n && r->heads.head[r->head].kind->target != TARGET_CELL)
		r->head++;
	if (r->head == r->heads.n)
		die("--reconstruct: the model in %s predicts neither counts nor whole cells: train it with sctrain nb or sctrain wced",
			dir);
	choose_genes(r, &h->vocab, genes);
	free(config);
}

void whole_header(struct run *r, struct header *h, const char *name)
{
	static const char *const made[] = {"gene", "value", "expressed", "gated"};
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		if (header_find(h, made[i]) >= 0)
			die("%s: has a column '%s', which the prediction needs", name, made[i]);
	r->gene = header_add_ragged(h, "gene", id_type(h->vocab.n), "gene");
	r->value = header_add_ragged(h, "value", F32, "gene");
	r->probability = header_add_ragged(h, "expressed", F32, "gene");
	r->gated = header_add_ragged(h, "gated", F32, "gene");
}

void whole_rows(struct run *r, size_t first, size_t n)
{
	struct error e;
	struct block *b = &r->out;
	const struct batch *p = &r->packed.b;
	int list = b->header->col[r->gene].group;
	size_t V = b->header->vocab.n, genes = r->ngene_row;
	uint64_t *offset = b->group[list].offset, at = offset[first];
	grow(r->h, r->h_cap, n * 2 * V);
	if (p->offset[n])
		must(model_logits(r->model, p, r->head, r->h, &e), &e);
	block_set_items(b, list, at + n * genes);
	for (size_t i = 0; i < n; i++) {
		int empty = p->offset[i] == p->offset[i + 1];
		const float *z = r->h + i * 2 * V;
		for (size_t k = 0; k < genes; k++, at++) {
			uint32_t g = r->gene_row[k];
			float m = empty ? NAN : z[2 * g], a = empty ? NAN : z[2 * g + 1];
			if (!empty && !(isfinite(m) && isfinite(a)))
				die("--reconstruct: a prediction is %g, expected a finite number: are the weights those of this config.json?",
					(double)(isfinite(m) ? a : m));
			block_set_id(b, r->gene, at, g);
			((float *)b->col[r->value].data)[at] = m;
			((float *)b->col[r->probability].data)[at] = (float)(1 / (1 + exp((double)a)));
			((float *)b->col[r->gated].data)[at] = a > 0 ? 0 : m;
		}
		r->empty += (uint64_t)empty;
		offset[first + i + 1] = at;
	}
}
