#include "encode/medians_sums.h"

#include "base/json.h"

/* The columns, in this order. */
enum { MODE, VALUES, BELOW, LO, HI, MIN, MAX, MEDIAN, KEPT, BIN, SUM, COLUMNS };
static const struct {
	const char *name;
	enum column_type type;
	enum column_shape shape;
} columns[] = {
	[MODE] = {"mode", U8, SCALAR},
	[VALUES] = {"values", U64, SCALAR},
	[BELOW] = {"below", U64, SCALAR},
	[LO] = {"lo", F64, SCALAR},
	[HI] = {"hi", F64, SCALAR},
	[MIN] = {"min", F64, SCALAR},
	[MAX] = {"max", F64, SCALAR},
	[MEDIAN] = {"median", F64, SCALAR},
	[KEPT] = {"kept", U32, SCALAR},
	[BIN] = {"bin", U16, RAGGED},
	[SUM] = {"sum", F64, RAGGED},
};
EVERY_ROW(columns, COLUMNS);

void medians_header(struct header *h, const struct vocab *genes, uint64_t pass, uint64_t cells)
{
	cJSON *o = cJSON_AddObjectToObject(h->extra, "medians");
	cJSON_AddNumberToObject(o, "pass", (double)pass);
	cJSON_AddNumberToObject(o, "cells", (double)cells);
	vocab_copy(&h->vocab, genes);
	for (int c = 0; c < COLUMNS; c++) {
		if (columns[c].shape == RAGGED)
			header_add_ragged(h, columns[c].name, columns[c].type, "bin");
		else
			header_add(h, columns[c].name, columns[c].type);
	}
}

/* Bins, or kept values, of a gene: how many there are room for. */
static size_t bins(const struct medians_gene *g)
{
	return g->mode == MEDIANS_COARSE ? MEDIANS_BINS : g->mode == MEDIANS_DIVIDE || g->mode == MEDIANS_KEEP ? MEDIANS_FINE : 0;
}

/* Bin k of gene i; a kept value is one too. */
static double sum_at(const struct medians *m, size_t i, size_t k)
{
	const struct medians_gene *g = &m->gene[i];
	return g->mode == MEDIANS_COARSE ? m->coarse[i * MEDIANS_BINS + k] : m->fine[(size_t)g->slot * MEDIANS_FINE + k];
}

static void sums_put_row(struct block *b, const struct medians *m, size_t i)
{
	const struct medians_gene *g = &m->gene[i];
	size_t r = b->rows, had = r ? block_items(b, 0) : 0, n = 0;
	block_set_rows(b, r + 1);
	block_set_items(b, 0, had + bins(g));
	((uint8_t *)b->col[MODE].data)[r] = (uint8_t)g->mode;
	((uint64_t *)b->col[VALUES].data)[r] = g->n;
	((uint64_t *)b->col[BELOW].data)[r] = g->below;
	((double *)b->col[LO].data)[r] = g->lo;
	((double *)b->col[HI].data)[r] = g->hi;
	((double *)b->col[MIN].data)[r] = g->min;
	((double *)b->col[MAX].data)[r] = g->max;
	((double *)b->col[MEDIAN].data)[r] = g->median;
	((uint32_t *)b->col[KEPT].data)[r] = g->kept;
	for (size_t k = 0; k < bins(g); k++) {
		if (g->mode == MEDIANS_KEEP ? k >= g->kept : sum_at(m, i, k) == 0)
			continue;
		((uint16_t *)b->col[BIN].data)[had + n] = (uint16_t)k;
		((double *)b->col[SUM].data)[had + n++] = sum_at(m, i, k);
	}
	b->group[0].offset[r + 1] = had + n;
}

int medians_write(const struct medians *m, struct stream *out, struct error *e)
{
	RELEASED(block_release) struct block b = {0};
	int bad = 0;
	block_reset(&b, stream_header(out));
	for (size_t i = 0; i < m->ngene && !bad; i++) {
		sums_put_row(&b, m, i);
		if (!block_full(&b) && i + 1 < m->ngene)
			continue;
		bad = stream_write(out, &b, e);
		block_reset(&b, stream_header(out));
	}
	return bad;
}

/* A gene's sums from row r. NULL, or what is wrong. */
static const char *take_row(struct medians *m, size_t i, const struct block *b, const int *col, size_t r)
{
	struct medians_gene *g = &m->gene[i];
	unsigned mode = ((const uint8_t *)b->col[col[MODE]].data)[r];
	*g = (struct medians_gene){.mode = mode,
		.n = ((const uint64_t *)b->col[col[VALUES]].data)[r],
		.below = ((const uint64_t *)b->col[col[BELOW]].data)[r],
		.lo = ((const double *)b->col[col[LO]].data)[r],
		.hi = ((const double *)b->col[col[HI]].data)[r],
		.min = ((const double *)b->col[col[MIN]].data)[r],
		.max = ((const double *)b->col[col[MAX]].data)[r],
		.median = ((const double *)b->col[col[MEDIAN]].data)[r],
		.kept = ((const uint32_t *)b->col[col[KEPT]].data)[r]};
	if (mode >= MEDIANS_MODES || (mode == MEDIANS_COARSE) != (m->coarse != NULL))
		return "unknown mode, or one of another pass";
	if (!(g->lo >= 0 && g->hi >= g->lo && g->hi < INFINITY))
		return "no interval";
	if (mode != MEDIANS_COARSE && mode != MEDIANS_DONE)
		g->slot = (uint32_t)m->left++;
	const uint64_t *offset = b->group[b->header->col[col[BIN]].group].offset;
	const uint16_t *bin = b->col[col[BIN]].data;
	const double *sum = b->col[col[SUM]].data;
	size_t items = offset[r + 1] - offset[r];
	if (mode == MEDIANS_KEEP && items != (g->kept < MEDIANS_FINE ? g->kept : MEDIANS_FINE))
		return "not as many values as were kept";
	for (uint64_t k = offset[r]; k < offset[r + 1]; k++) {
		if (bin[k] >= bins(g) || (k > offset[r] && bin[k] <= bin[k - 1]) || (mode == MEDIANS_KEEP && bin[k] != k - offset[r]))
			return "bins are not in order";
		if (!(sum[k] >= 0 && sum[k] <= (mode == MEDIANS_COARSE ? UINT32_MAX : 0x1p53)))
			return "a sum is out of range";
		if (mode == MEDIANS_COARSE)
			m->coarse[i * MEDIANS_BINS + bin[k]] = (uint32_t)sum[k];
		else
			m->fine[(size_t)g->slot * MEDIANS_FINE + bin[k]] = sum[k];
	}
	return NULL;
}

static int sums_find_columns(const struct header *h, int col[COLUMNS], const char *name, struct error *e)
{
	for (int c = 0; c < COLUMNS; c++)
		if ((col[c] = header_need(h, columns[c].name, columns[c].type, columns[c].shape, name, e)) < 0)
			return -1;
	if (h->col[col[BIN]].group != h->col[col[SUM]].group)
		return error_set(e, "%s: columns bin and sum are not one list", name);
	return 0;
}

int medians_read(struct medians *m, struct stream *in, uint64_t *pass, uint64_t *cells, struct error *e)
{
	const struct header *h = stream_header(in);
	const char *name = stream_name(in);
	const cJSON *o = json_get(h->extra, "medians");
	int col[COLUMNS], got, bad = 0;
	if (header_kind(h, STREAM_MEDIANS, name, e) || sums_find_columns(h, col, name, e))
		return -1;
	if (!cJSON_IsObject(o) || json_whole(o, "pass", 1, pass) || json_whole(o, "cells", 0, cells))
		return error_set(e, "%s: header: medians: expected pass and cells", name);
	size_t n = h->vocab.n, row = 0;
	*m = (struct medians){.ngene = n, .gene = xcalloc(n, sizeof *m->gene)};
	if (*pass == 1)
		m->coarse = xcalloc(n * MEDIANS_BINS, sizeof *m->coarse);
	else
		m->fine = xcalloc(n * MEDIANS_FINE, sizeof *m->fine);
	RELEASED(block_release) struct block b = {0};
	while (!bad && (got = stream_read(in, &b, e)) > 0)
		for (size_t r = 0; r < b.rows && !bad; r++, row++) {
			const char *why = row < n ? take_row(m, row, &b, col, r) : "the vocabulary has no such gene";
			if (why)
				bad = error_set(e, "%s: row %zu: %s", name, row, why);
		}
	if (!bad && got == 0 && row != n)
		bad = error_set(e, "%s: %zu rows, but the vocabulary has %zu genes", name, row, n);
	if (bad || got < 0)
		medians_release(m);
	return bad || got < 0 ? -1 : 0;
}

/* The sums of one gene in a later pass. */
static int merge_gene(struct medians *m, const struct medians *from, size_t i)
{
	struct medians_gene *g = &m->gene[i];
	const struct medians_gene *f = &from->gene[i];
	if (g->mode != f->mode || g->n != f->n || g->lo != f->lo || g->hi != f->hi || g->slot != f->slot)
		return -1;
	g->below += f->below;
	g->min = fmin(g->min, f->min);
	g->max = fmax(g->max, f->max);
	if (g->mode == MEDIANS_DIVIDE)
		for (size_t k = 0; k < MEDIANS_FINE; k++)
			m->fine[(size_t)g->slot * MEDIANS_FINE + k] += from->fine[(size_t)g->slot * MEDIANS_FINE + k];
	if (g->mode == MEDIANS_KEEP) {
		for (uint32_t k = 0; k < f->kept && k < MEDIANS_FINE && g->kept + k < MEDIANS_FINE; k++)
			m->fine[(size_t)g->slot * MEDIANS_FINE + g->kept + k] = from->fine[(size_t)g->slot * MEDIANS_FINE + k];
		g->kept = g->kept < UINT32_MAX - f->kept ? g->kept + f->kept : UINT32_MAX;
	}
	return 0;
}

int medians_merge(struct medians *m, const struct medians *from, const uint32_t *to, const char *name, struct error *e)
{
	int same = (m->coarse != NULL) == (from->coarse != NULL) && (to || m->ngene == from->ngene);
	for (size_t i = 0; i < from->ngene && same && m->coarse; i++)
		for (size_t k = 0; k < MEDIANS_BINS; k++) {
			uint32_t *sum = &m->coarse[(to ? to[i] : i) * MEDIANS_BINS + k], more = from->coarse[i * MEDIANS_BINS + k];
			if (*sum > UINT32_MAX - more)
				return error_set(e, "%s: more than %u cells express a gene", name, UINT32_MAX);
			*sum += more;
		}
	for (size_t i = 0; i < from->ngene && same && !m->coarse; i++)
		same = merge_gene(m, from, i) == 0;
	return same ? 0 : error_set(e, "%s: these are sums of another pass, or after the sums of other cells", name);
}

int medians_check(const struct medians *m, const char *name, struct error *e)
{
	for (size_t i = 0; i < m->ngene; i++) {
		const struct medians_gene *g = &m->gene[i];
		uint64_t k1 = g->n ? (g->n - 1) / 2 : 0, k2 = g->n / 2;
		double inside = g->mode == MEDIANS_KEEP ? g->kept : 0;
		for (size_t k = 0; k < bins(g) && g->mode == MEDIANS_DIVIDE; k++)
			inside += sum_at(m, i, k);
		int right = g->mode == MEDIANS_DONE || g->mode == MEDIANS_COARSE ||
			(g->mode == MEDIANS_EDGE ? isfinite(g->min) && isfinite(g->max)
						 : g->n && g->below <= k1 && (double)g->below + inside > (double)k2 &&
						(double)g->below + inside <= (double)g->n);
		if (!right)
			return error_set(e,
				"%s: gene %zu: its values are not those of the previous pass: a file is missing, or given twice", name, i);
	}
	return 0;
}
