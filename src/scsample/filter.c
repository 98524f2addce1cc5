/* Filters on one row: --where, --min-genes, --max-mito. */
#include "scsample.h"
#include "cli.h"

#include "base/texts.h"

#include <strings.h>

/* The 13 protein genes of the human mitochondrion, for vocabularies without symbols. */
static const char *const mito_ids[] = {"ENSG00000198888", "ENSG00000198763", "ENSG00000198804", "ENSG00000198712", "ENSG00000228253",
	"ENSG00000198899", "ENSG00000198938", "ENSG00000198840", "ENSG00000212907", "ENSG00000198886", "ENSG00000198786", "ENSG00000198695",
	"ENSG00000198727", NULL};

static int is_mito(const struct vocab *v, size_t i)
{
	return strncasecmp(v->symbol[i], "MT-", 3) == 0 || strncasecmp(v->id[i], "MT-", 3) == 0 || text_among(v->id[i], mito_ids);
}

static int need(const struct header *h, const char *column, enum column_type type, enum column_shape shape, const char *file)
{
	int i = header_need(h, column, type, shape, file, &failure);
	must(i < 0);
	return i;
}

/* COL=VALUE with a value that no cell can have is an error, COL!=VALUE a warning. */
static void unknown_category(const struct condition *c, const struct header *h, const char *file)
{
	const struct column_spec *s = &h->col[c->col];
	char has[400] = "";
	for (size_t k = 0, at = 0; k < s->ncategory && at < sizeof has; k++)
		at += (size_t)snprintf(has + at, sizeof has - at, "%s%s", k ? ", " : "", s->category[k]);
	if (c->op == WHERE_EQ)
		die("--where: %s: column '%s' has no category '%s' (it has: %s)", file, c->column, c->value, has);
	warn("%s: column '%s' has no category '%s'", file, c->column, c->value);
}

void filter_init(struct filter *f, const struct header *h, const char *file)
{
	f->genes = f->counts = f->count = f->gene = -1;
	f->special = h->vocab.nspecial;
	for (size_t i = 0; i < sample_set.where.n; i++)
		if (where_add(&f->where, sample_set.where.item[i], &failure))
			usage_error("--where: %s", failure.msg);
	if (where_bind(&f->where, h, file, &failure))
		die("--where: %s", failure.msg);
	for (size_t i = 0; i < f->where.n; i++)
		if (!f->where.c[i].known)
			unknown_category(&f->where.c[i], h, file);
	if (sample_set.max_mito >= 0)
		f->counts = need(h, "n_counts", U64, SCALAR, file);
	if (sample_set.min_genes >= 0 || sample_set.max_mito >= 0) {
		int tokens = h->kind == STREAM_TOKENS && sample_set.max_mito < 0;
		f->gene = need(h, tokens ? "token" : "gene", U32, RAGGED, file);
		f->genes = h->col[f->gene].group;
	}
	if (sample_set.max_mito < 0)
		return;
	f->count = need(h, "count", U32, RAGGED, file);
	f->mito = xcalloc(h->vocab.n, 1);
	size_t n = 0;
	for (size_t i = 0; i < h->vocab.n; i++)
		n += f->mito[i] = (uint8_t)is_mito(&h->vocab, i);
	if (!n)
		die("%s: --max-mito: none of the %zu genes is mitochondrial (a symbol or id that begins with MT-)", file, h->vocab.n);
}

static uint64_t genes_of(const struct filter *f, const struct block *b, size_t row)
{
	const uint64_t *o = b->group[f->genes].offset;
	uint64_t n = 0;
	for (uint64_t i = o[row]; i < o[row + 1]; i++)
		n += block_id(b, f->gene, i) >= f->special;
	return n;
}

static double mito_share(const struct filter *f, const struct block *b, size_t row)
{
	const uint64_t *o = b->group[f->genes].offset;
	uint64_t n = 0, all = ((const uint64_t *)b->col[f->counts].data)[row];
	for (uint64_t i = o[row]; i < o[row + 1]; i++)
		n += f->mito[block_id(b, f->gene, i)] ? block_id(b, f->count, i) : 0;
	return all ? (double)n / (double)all : 0;
}

void filter_rows(struct filter *f, const struct block *b, uint64_t dropped[REASONS])
{
	grow(f->keep, f->cap, b->rows);
	memset(f->keep, 1, b->rows);
	where_rows(&f->where, b, f->keep);
	for (size_t i = 0; i < b->rows; i++) {
		int why = KEPT;
		if (!f->keep[i])
			why = BY_WHERE;
		else if (sample_set.min_genes >= 0 && genes_of(f, b, i) < (uint64_t)sample_set.min_genes)
			why = BY_GENES;
		else if (sample_set.max_mito >= 0 && mito_share(f, b, i) > sample_set.max_mito)
			why = BY_MITO;
		f->keep[i] = why == KEPT;
		dropped[why]++;
	}
	dropped[KEPT] = 0;
}
