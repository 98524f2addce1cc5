/*
 * scembed of a model of counts (sctrain nb): the latent vector of cells whose counts are not masked, or with --reconstruct the expected
 * counts of masked genes, mu = library size x softmax(logits). Batch normalisation takes the running averages.
 */
#include "scembed.h"

#include "cli.h"
#include "base/softmax.h"

#include <stdlib.h>

void counts_open(struct run *r, const char *dir, const struct header *h, const char *name)
{
	struct error e;
	if (r->reconstruct) {
		char *config = xasprintf("%s/config.json", dir);
		must(config_heads_load(&r->heads, config, &e), &e);
		while (r->head < r->heads.n && r->heads.head[r->head].kind->target != TARGET_COUNTS)
			r->head++;
		if (r->head == r->heads.n)
			die("--reconstruct: the model in %s has no head that predicts counts", dir);
		free(config);
	}
	must(groups_load(&r->groups, dir, &e), &e);
	if (r->groups.column && header_find(h, r->groups.column) >= 0)
		must(labels_init(&r->labels, h, r->groups.column, &r->groups.classes, name, &e), &e);
}

void counts_header(struct run *r, struct header *h, const char *name)
{
	static const char *const made[] = {"library", "gene", "count", "expected"};
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		if (header_find(h, made[i]) >= 0)
			die("%s: has a column '%s', which the prediction needs", name, made[i]);
	r->library = header_add(h, "library", U64);
	r->gene = header_add_ragged(h, "gene", id_type(h->vocab.n), "gene");
	r->count = header_add_ragged(h, "count", U32, "gene");
	r->expected = header_add_ragged(h, "expected", F32, "gene");
}

void counts_pack(struct run *r, const struct block *b, size_t from, size_t to, const char *name)
{
	struct error e;
	must(batch_counts(&r->packed, &r->col, b, from, to, name, &e), &e);
	if (!r->groups.column)
		return;
	grow(r->group, r->group_cap, to - from);
	for (size_t i = from; i < to; i++) {
		r->group[i - from] = ROW_NONE;
		if (r->labels.spec)
			r->group[i - from] = groups_at(&r->groups, &r->labels, b, i);
		else
			r->groups.unknown++;
	}
	r->packed.b.group = r->group;
}

/* The list of one cell, at items at ..; returns where it ends. logit [genes]; z [genes] scratch. */
static uint64_t write_cell(struct run *r, size_t row, uint64_t at, size_t cell, const float *logit, double *z)
{
	struct block *b = &r->out;
	const struct batch *p = &r->packed.b;
	size_t genes = b->header->vocab.n, words = nb_words(genes);
	const uint32_t *mask = r->packed.masked.mask + cell * words;
	uint64_t library = 0;
	uint32_t t = p->offset[cell], end = p->offset[cell + 1];
	for (uint32_t k = t; k < end; k++)
		library += p->count[k];
	for (size_t g = 0; g < genes; g++)
		z[g] = (double)logit[g];
	softmax(z, genes);
	((uint64_t *)b->col[r->library].data)[row] = library;
	for (uint32_t g = 0; g < genes; g++) {
		while (t < end && p->id[t] < g)
			t++;
		if (!(mask[g / 32] >> g % 32 & 1))
			continue;
		block_set_id(b, r->gene, at, g);
		((uint32_t *)b->col[r->count].data)[at] = t < end && p->id[t] == g ? p->count[t] : 0;
		((float *)b->col[r->expected].data)[at++] = (float)((double)library * z[g]);
	}
	return at;
}

static void reconstruct_rows(struct run *r, size_t first, size_t n)
{
	struct error e;
	struct block *b = &r->out;
	int list = b->header->col[r->gene].group;
	size_t genes = b->header->vocab.n;
	uint64_t *offset = b->group[list].offset, at = offset[first];
	double *z = xmalloc(genes * sizeof *z);
	grow(r->h, r->h_cap, n * genes);
	must(model_logits(r->model, &r->packed.b, r->head, r->h, &e), &e);
	block_set_items(b, list, at + r->packed.masked.n);
	for (size_t i = 0; i < n; i++)
		offset[first + i + 1] = at = write_cell(r, first + i, at, i, r->h + i * genes, z);
	free(z);
}

void counts_rows(struct run *r, size_t first, size_t n)
{
	struct error e;
	if (r->reconstruct)
		reconstruct_rows(r, first, n);
	else
		must(model_hidden(r->model, &r->packed.b, 0, (float *)r->out.col[r->x].data + first * r->C, &e), &e);
}

void counts_release(struct run *r)
{
	labels_release(&r->labels);
	groups_release(&r->groups);
	free(r->group);
}
