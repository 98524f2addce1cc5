#include "cli_recalibrate.h"
#include "cli.h"

enum { AT_ONCE = 1 << 18 }; /* counts of a batch */

struct recalibration *recalibration_new(const char *path, struct model *m, const char *dir, const struct stream *in)
{
	if (!path)
		return NULL;
	if (!model_config(m)->arch->counts)
		die("--recalibrate: the model in %s is not a model of counts (sctrain nb)", dir);
	struct recalibration *x = xcalloc(1, sizeof *x);
	struct inference *r = &x->of;
	*r = (struct inference){.in = must_open(path), .counts = 1, .model = m, .most = AT_ONCE};
	r->name = stream_name(r->in);
	must(counts_columns(&r->col, stream_header(r->in), 1, r->name, &failure));
	if (!vocab_equal(&stream_header(r->in)->vocab, &stream_header(in)->vocab))
		die("%s: its genes are not those of %s", r->name, stream_name(in));
	inference_groups(r, dir);
	do {
		x->block = xrealloc(x->block, x->n + 1, sizeof *x->block);
		x->block[x->n] = (struct block){0};
	} while (must_read(r->in, &x->block[x->n++]));
	block_release(&x->block[--x->n]);
	return x;
}

/* The next batch of cells, without the masked genes. */
static int next(void *arg, struct batch *b, struct error *e)
{
	struct recalibration *x = arg;
	struct inference *r = &x->of;
	(void)e;
	while (x->at < x->n && x->from == x->block[x->at].rows) {
		x->at++;
		x->from = 0;
	}
	if (x->at == x->n) {
		x->at = x->from = 0;
		return 0;
	}
	const struct block *from = &x->block[x->at];
	size_t to = inference_batch(r, from, x->from);
	inference_pack(r, from, x->from, to);
	for (size_t i = 0; i < to - x->from; i++) /* genes of a cell and masked ones are in order */
		for (size_t t = r->packed.offset[i], k = 0; t < r->packed.offset[i + 1]; t++) {
			while (k < x->nmasked && x->masked[k] < r->packed.id[t])
				k++;
			if (k < x->nmasked && x->masked[k] == r->packed.id[t])
				r->packed.value[t] = 0;
		}
	x->from = to;
	*b = r->packed.b;
	return 1;
}

/* Are the masked genes of row `row` those of x? */
static int same(const struct recalibration *x, const struct masked_columns *c, const struct block *b, size_t row)
{
	const uint64_t *o = b->group[c->masked_group].offset + row;
	uint64_t k = 0, n = o[1] - o[0];
	while (k < n && n == x->nmasked && block_id(b, c->target, o[0] + k) == x->masked[k])
		k++;
	return k == n && n == x->nmasked;
}

void recalibration_fit(struct recalibration *x, const struct masked_columns *c, const struct block *b, const char *name)
{
	if (!x || !b->rows)
		return;
	int masks = c->masked_group >= 0, known = x->ready && (!masks || same(x, c, b, 0));
	if (!known) {
		x->nmasked = masks ? (uint32_t)b->group[c->masked_group].offset[1] : 0;
		grow(x->masked, x->masked_cap, x->nmasked);
		for (uint32_t k = 0; k < x->nmasked; k++)
			x->masked[k] = block_id(b, c->target, k);
	}
	for (size_t i = 1; masks && i < b->rows; i++)
		if (!same(x, c, b, i))
			die("%s: row %zu of a block does not mask the genes of its first row: --recalibrate needs the same masks", name,
				i + 1);
	if (!known && model_recalibrate(x->of.model, next, x, &failure))
		die("%s: %s", x->of.name, failure.msg);
	x->ready = 1;
}

void masks_beyond(const struct model_config *m, const struct masked_columns *c, const struct block *b, const char *name)
{
	static int said;
	double genes = (double)(b->header->vocab.n - b->header->vocab.nspecial), hidden = 0;
	if (said || !m->arch->counts || !(m->masked_most > 0) || c->masked_group < 0)
		return;
	for (size_t i = 0; i < b->rows; i++)
		hidden = fmax(hidden, (double)(b->group[c->masked_group].offset[i + 1] - b->group[c->masked_group].offset[i]));
	if (hidden <= m->masked_most * genes + 1)
		return;
	said = 1;
	char range[40];
	snprintf(range, sizeof range, m->masked_least < m->masked_most ? "%.0f to %.0f" : "%.0f", 100 * m->masked_least,
		100 * m->masked_most);
	warn("%s: %.0f %% of the genes are masked; the model was trained with %s %% masked", name, 100 * hidden / genes, range);
}
