/*
 * scembed --of genes: one vector a gene, the mean of its hidden states over the cells that have it, and how far these lie apart; with --by COL one
 * for each gene and class. scembed --of static: the rows of the table of token embeddings, with which the network begins.
 *
 * Sums are float64, in the order of the cells. Memory is that of the genes of one class, or of as many classes as fit into MEMORY together; with
 * several of such parts the stream is read once for each, but every cell goes through the network once.
 */
#include "scembed.h"
#include "cli.h"
#include "cli_labels.h"

#include "base/texts.h"

#define MEMORY ((size_t)512 << 20)

struct sums { /* of classes [first, last) */
	size_t first, last, V, C;
	double *sum; /* [classes, V, C] */
	double *square; /* [classes, V] sum of squared lengths */
	uint64_t *n; /* [classes, V] cells */
	float *h; /* [tokens of a batch, C] */
	size_t h_cap;
};

static void sums_init(struct sums *s, size_t first, size_t last, size_t V, size_t C)
{
	size_t rows = (last - first) * V;
	*s = (struct sums){.first = first, .last = last, .V = V, .C = C};
	s->sum = xcalloc(rows * C, sizeof *s->sum);
	s->square = xcalloc(rows, sizeof *s->square);
	s->n = xcalloc(rows, sizeof *s->n);
}

static void sums_release(struct sums *s)
{
	free_all(s->sum, s->square, s->n, s->h);
	*s = (struct sums){0};
}

/* ---- output ---- */

struct output {
	struct header h;
	struct block b;
	struct stream *to;
	int cell, barcode, symbol, token, cells, spread, x, by;
	uint64_t rows;
};

void genes_check(const char *by)
{
	static const char *const made[] = {"cell", "barcode", "symbol", "token", "cells", "spread", "x", NULL};
	if (text_among(by, made))
		usage_error("--by %s: the vectors of genes have a column '%s' of their own: expected a column of another name", by, by);
}

static void output_open(struct output *o, const struct inference *r, size_t C, int fixed, const char *by, const struct classes *class)
{
	const struct header *from = stream_header(r->in);
	*o = (struct output){.by = -1};
	header_init(&o->h, STREAM_EMBEDDING);
	vocab_copy(&o->h.vocab, &from->vocab);
	cJSON_Delete(o->h.provenance);
	o->h.provenance = cJSON_Duplicate(from->provenance, 1);
	o->cell = header_add(&o->h, "cell", U64);
	o->barcode = header_add(&o->h, "barcode", STR);
	o->symbol = header_add(&o->h, "symbol", STR);
	o->token = header_add(&o->h, "token", id_type(from->vocab.n));
	if (!fixed) {
		o->cells = header_add(&o->h, "cells", U64);
		o->spread = header_add(&o->h, "spread", F64);
	}
	if (by)
		o->by = header_add_categorical(&o->h, by, class->name, class->n);
	o->x = header_add_fixed(&o->h, "x", F32, (uint32_t)C);
	cli_provenance(r->cli, &o->h, r->identity);
	o->to = cli_create(r->cli, &o->h, ROWS_UNKNOWN);
	block_reset(&o->b, stream_header(o->to));
}

/* Write the rest; returns the number of rows. */
static uint64_t output_close(struct output *o)
{
	must_flush(o->to, &o->b);
	must_commit(o->to);
	block_release(&o->b);
	header_release(&o->h);
	return o->rows;
}

/* A row without its numbers; returns its index in the block. class: its name, or NULL. */
static size_t gene_vectors_add_row(struct output *o, size_t token, const char *class)
{
	const struct vocab *v = &o->h.vocab;
	size_t i = o->b.rows;
	block_set_rows(&o->b, i + 1);
	FREED char *name = class ? xasprintf("%s %s", v->id[token], class) : xstrdup(v->id[token]);
	((uint64_t *)o->b.col[o->cell].data)[i] = o->rows++;
	block_push_str(&o->b, o->barcode, name, strlen(name));
	block_push_str(&o->b, o->symbol, v->symbol[token], strlen(v->symbol[token]));
	block_set_id(&o->b, o->token, i, (uint32_t)token);
	return i;
}

/* The genes that have a cell: mean, number of cells, and the root of the mean squared distance from the mean. */
static void write_sums(struct output *o, const struct sums *s, const struct classes *c)
{
	for (size_t r = 0; r < (s->last - s->first) * s->V; r++) {
		double n = (double)s->n[r], length = 0;
		if (!s->n[r])
			continue;
		size_t class = s->first + r / s->V, i = gene_vectors_add_row(o, r % s->V, c ? c->name[class] : NULL);
		float *x = (float *)o->b.col[o->x].data + i * s->C;
		for (size_t j = 0; j < s->C; j++) {
			double mean = s->sum[r * s->C + j] / n;
			length += mean * mean;
			x[j] = (float)mean;
		}
		((uint64_t *)o->b.col[o->cells].data)[i] = s->n[r];
		((double *)o->b.col[o->spread].data)[i] = sqrt(fmax(0, s->square[r] / n - length));
		if (o->by >= 0)
			((uint32_t *)o->b.col[o->by].data)[i] = (uint32_t) class;
		if (block_full(&o->b))
			must_flush(o->to, &o->b);
	}
}

/* ---- contextual ---- */

/* Add the states of rows [from, to) of a block, all of class `class`. */
static void add_cells(struct inference *r, struct sums *s, const struct block *b, size_t from, size_t to, size_t class)
{
	inference_pack(r, b, from, to);
	const struct batch *p = &r->packed.b;
	size_t tokens = p->offset[to - from];
	grow(s->h, s->h_cap, tokens * s->C + 1);
	if (tokens)
		must(model_hidden(r->model, p, (int)r->layer, s->h, &failure));
	for (size_t t = 0; t < tokens; t++) {
		if (p->id[t] < b->header->vocab.nspecial)
			continue;
		size_t row = (class - s->first) * s->V + p->id[t];
		const float *h = s->h + t * s->C;
		double *sum = s->sum + row * s->C, square = 0;
		for (size_t j = 0; j < s->C; j++) {
			sum[j] += (double)h[j];
			square += (double)h[j] * (double)h[j];
		}
		s->square[row] += square;
		s->n[row]++;
	}
	progress_cells(r->cells, stream_expected(r->in));
}

/* The cells of a block in batches of one class each; class [rows], MISSING_CODE and others than those of s are passed over. */
static void add_block(struct inference *r, struct sums *s, const struct block *b, const uint32_t *class)
{
	for (size_t from = 0, to; from < b->rows; from = to) {
		size_t end = inference_batch(r, b, from);
		for (to = from + 1; to < end && class[to] == class[from]; to++)
			;
		if (class[from] >= s->first && class[from] < s -> last)
			add_cells(r, s, b, from, to, class[from]);
	}
}

/* Number the classes in the order of their names. rank [c->n] of the numbers that labels_at gives. */
static uint32_t *read_classes(struct labels *l, struct classes *c, struct stream *in)
{
	RELEASED(block_release) struct block b = {0};
	while (must_read_cells(in, &b))
		for (size_t i = 0; i < b.rows; i++)
			labels_at(l, &b, i);
	labels_read(l, l->spec->name, stream_name(in), "are left out");
	return classes_ranks(c);
}

static uint64_t contextual(struct inference *r, const char *by)
{
	RELEASED(classes_release) struct classes found = {0}, sorted = {0};
	RELEASED(labels_release) struct labels l = {0};
	RELEASED(block_release) struct block b = {0};
	struct sums s;
	struct output o;
	struct stream *in = r->in;
	size_t V = stream_header(in)->vocab.n, C = model_config(r->model)->hidden_size, each = V * C * sizeof(double), cap = 0;
	FREED uint32_t *rank = NULL, *class = NULL;
	if (by) {
		must(stream_index(in, &failure));
		labels_open(&l, stream_header(in), by, &found, r->name);
		rank = read_classes(&l, &found, in);
		FREED uint32_t *order = classes_sorted(&found);
		for (size_t i = 0; i < found.n; i++)
			classes_add(&sorted, found.name[order[i]], strlen(found.name[order[i]]));
	}
	size_t n = by ? sorted.n : 1, together = each < MEMORY ? MEMORY / each : 1;
	output_open(&o, r, C, 0, by, &sorted);
	for (size_t first = 0; first < n; first += together) {
		sums_init(&s, first, first + together < n ? first + together : n, V, C);
		while (must_read_cells(in, &b)) {
			grow(class, cap, b.rows);
			for (size_t i = 0; i < b.rows; i++) {
				uint32_t code = by ? labels_at(&l, &b, i) : 0;
				class[i] = by && code != MISSING_CODE ? rank[code] : code;
			}
			add_block(r, &s, &b, class);
		}
		write_sums(&o, &s, by ? &sorted : NULL);
		sums_release(&s);
	}
	return output_close(&o);
}

/* ---- static ---- */

static uint64_t table(struct inference *r)
{
	const struct model_config *c = model_config(r->model);
	const struct tensor *t = model_find(r->model, c->arch->table ? c->arch->table : "");
	const struct vocab *v = &stream_header(r->in)->vocab;
	struct output o;
	size_t C = c->hidden_size;
	if (!t || t->shape[1] != C || t->shape[0] < v->n)
		die("--of static: the model has no table of %zu token embeddings", v->n);
	FREED float *x = xmalloc(t->n * sizeof *x);
	model_read(r->model, PARAM, t, x);
	output_open(&o, r, C, 1, NULL, NULL);
	for (size_t token = v->nspecial; token < v->n; token++) {
		size_t i = gene_vectors_add_row(&o, token, NULL);
		memcpy((float *)o.b.col[o.x].data + i * C, x + token * C, C * sizeof *x);
		if (block_full(&o.b))
			must_flush(o.to, &o.b);
	}
	return output_close(&o);
}

void genes_run(struct inference *r, int fixed, const char *by)
{
	uint64_t genes = fixed ? table(r) : contextual(r, by);
	cli_measured_all({"cells", (double)r->cells}, {"tokens", (double)r->tokens}, {"genes", (double)genes});
	cli_report(r->cli, "%" PRIu64 " cells, %" PRIu64 " tokens, vectors of %" PRIu64 " genes", r->cells, r->tokens, genes);
}
