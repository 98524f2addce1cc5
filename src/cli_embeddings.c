/* Embeddings of cells in memory, with a label, a number and a group for each cell. */
#include "cli_embeddings.h"
#include "cli.h"

#include "cli_genes.h"
#include "cli_labels.h"

#include "base/json.h"
#include "base/memory.h"
#include "cells/expressed.h"

/* Where the columns of one stream are. */
struct columns {
	int x, cell, target, target_missing; /* -1: none */
	int logits; /* x has logits */
	struct expressed expressed; /* in place of x */
	struct labels label, group, part;
};

static void open_columns(struct columns *c, struct embeddings *d, const struct wanted *w)
{
	const struct header *h = stream_header(d->s);
	const char *name = stream_name(d->s);
	*c = (struct columns){.x = -1, .target = -1, .target_missing = -1};
	if (w->with) {
		must(expressed_init(&c->expressed, h, name, w->genes ? w->genes : &h->vocab, w->with, w->with_name, &failure));
		d->shared = c->expressed.shared;
		const struct gene_matched *m = &c->expressed.matched;
		if (!w->genes && w->with != &h->vocab)
			say_matched(w->with_name, name, m);
		else if (w->genes && gene_share(m->shared, m->from, m->to) == GENES_OTHER)
			check_shared(name, w->with_name, m, 0);
	} else {
		c->logits = w->logits && h->kind == STREAM_PREDICTION;
		if (!c->logits)
			must_kind(d->s, STREAM_EMBEDDING);
		c->x = must_column(d->s, c->logits ? "logit" : "x", F32, FIXED);
	}
	c->cell = must_column(d->s, "cell", U64, SCALAR);
	if (w->target)
		c->target = must_column(d->s, w->target, COLUMN_TYPES, SCALAR);
	if (w->label)
		labels_open(&c->label, h, w->label, w->classes, name);
	if (w->group)
		labels_open(&c->group, h, w->group, w->groups, name);
	if (w->part)
		labels_open(&c->part, h, w->part, w->parts, name);
	if (!w->target)
		return;
	enum column_type t = h->col[c->target].type;
	if (!type_is_number(t))
		die("%s: column '%s' is %s, expected numbers", name, w->target, type_name(t));
	c->target_missing = header_missing(h, w->target);
}

void embedding_warn(const char *name, size_t empty)
{
	if (empty)
		warn("%s: %zu %s left out", name, empty,
			empty == 1 ? "cell has no embedding, as it has no token, and is"
				   : "cells have no embedding, as they have no token, and are");
}

void embedding_check(const float *x, size_t d, uint64_t cell, const char *name)
{
	for (size_t j = 0; j < d; j++)
		if (!isfinite(x[j]))
			die("%s: cell %" PRIu64 ": x[%zu] is %g, expected a finite number", name, cell, j, (double)x[j]);
}

/* The value of an option in a text of options, or `usual`. Malloced. */
static char *value_of(const char *options, const char *option, const char *usual)
{
	const char *at = strstr(options, option);
	at = at ? at + strlen(option) : usual;
	return xstrndup(at, strcspn(at, " ,"));
}

char *embedding_source(const struct header *h)
{
	char *source = NULL;
	const cJSON *entry;
	cJSON_ArrayForEach(entry, h->provenance)
	{
		const char *program = json_text(entry, "program");
		const char *options = json_text(entry, "options");
		if (!program || !options || (strcmp(program, "scembed") && strncmp(program, "screduce ", 9)))
			continue;
		free(source);
		source = NULL;
		if (!strstr(options, " xxh3:"))
			continue;
		FREED char *digest = value_of(options, " xxh3:", ""), *layer = value_of(options, "--emb-layer ", "unknown"),
			   *pool = value_of(options, "--pool ", "latent"), *of = value_of(options, "--of ", "");
		source = xasprintf("xxh3:%s, layer %s, %s%s%s", digest, layer, pool, *of ? ", of " : "", of);
	}
	return source;
}

static int has_value(const struct columns *c, const struct block *b, size_t i)
{
	return (c->target_missing < 0 || !((const uint8_t *)b->col[c->target_missing].data)[i]) && !isnan(block_number(b, c->target, i));
}

/* The embedding or the expression of row i, as that of cell d->n; 0: it has none. */
static int add_values(struct embeddings *d, const struct block *b, struct columns *c, size_t i, uint64_t cell)
{
	if (c->x < 0) {
		grow(d->depth, d->depth_cap, d->n + 1);
		d->depth[d->n] = expressed_pack(&c->expressed, b, i, &d->sparse);
		return d->depth[d->n] > 0;
	}
	const float *x = (const float *)b->col[c->x].data + i * d->d;
	if (embedding_missing(x, d->d))
		return 0;
	grow(d->x, d->x_cap, (d->n + 1) * d->d);
	float *to = memcpy(d->x + d->n * d->d, x, d->d * sizeof *x);
	for (size_t j = 0; c->logits && j < d->d; j++)
		to[j] = to[j] == -INFINITY ? 0 : to[j];
	embedding_check(to, d->d, cell, stream_name(d->s));
	return 1;
}

static void read_block(struct embeddings *d, const struct block *b, struct columns *c, const struct wanted *w)
{
	for (size_t i = 0; i < b->rows; i++, d->rows++) {
		uint64_t cell = ((const uint64_t *)b->col[c->cell].data)[i];
		uint32_t y = w->label ? labels_at(&c->label, b, i) : 0;
		if (y == MISSING_CODE || (w->target && !has_value(c, b, i))) {
			d->unlabelled++;
			continue;
		}
		uint32_t group = w->group ? labels_at(&c->group, b, i) : 0;
		if (group == MISSING_CODE) {
			d->groupless++;
			continue;
		}
		if (!add_values(d, b, c, i, cell)) {
			d->empty++;
			continue;
		}
		grow(d->cell, d->cell_cap, d->n + 1);
		grow(d->y, d->y_cap, d->n + 1);
		d->y[d->n] = y;
		grow(d->row, d->row_cap, d->n + 1);
		d->cell[d->n] = cell;
		d->row[d->n] = d->rows;
		if (w->target) {
			grow(d->target, d->target_cap, d->n + 1);
			d->target[d->n] = block_number(b, c->target, i);
			if (isinf(d->target[d->n]))
				die("%s: cell %" PRIu64 ": column '%s' is infinite", stream_name(d->s), cell, w->target);
		}
		if (w->group) {
			grow(d->group, d->group_cap, d->n + 1);
			d->group[d->n] = group;
		}
		if (w->part) {
			grow(d->part, d->part_cap, d->n + 1);
			d->part[d->n] = labels_at(&c->part, b, i);
		}
		d->n++;
	}
}

#define CELL_BYTES 130 /* of a labelled cell, without its values */

/* Why n cells do not fit into memory, and what to do. Malloced. NULL: they fit. */
static char *too_large(const struct embeddings *d, const char *more, uint64_t n, uint64_t memory, const char *of)
{
	uint64_t values = d->sparse.n ? d->sparse.offset[d->sparse.n] / d->sparse.n : d->d * sizeof *d->x, bytes = values + CELL_BYTES,
		 fits = memory / bytes;
	if (n <= fits)
		return NULL;
	return xasprintf("%s: %s%" PRIu64
			 " cells of %zu values take %.3g GB of memory, and %s has %.3g GB: take a sample with scsample -n %" PRIu64
			 " (--stratify keeps the share of each class)",
		stream_name(d->s), more, n, d->d, 1e-9 * (double)(n * bytes), of, 1e-9 * (double)memory,
		fits / 10 * 8); /* the probe and its results need some too */
}

/* Say which cells were left out, and die if none is left. */
static void say_left_out(const struct embeddings *d, const struct columns *c, const struct wanted *w)
{
	const char *name = stream_name(d->s);
	if (c->x >= 0)
		embedding_warn(name, d->empty);
	else if (d->empty)
		warn("%s: cells left out, as they have no count of a shared gene: %zu", name, d->empty);
	if (w->label)
		labels_read(&c->label, w->label, name, "are left out");
	else if (w->target && d->unlabelled)
		info("%s: %zu of %zu cells have no value in column '%s' and are left out", name, d->unlabelled, d->rows, w->target);
	if (w->group)
		groups_read(&c->group, w->group, name, "are left out");
	if (!d->n && d->empty)
		die("%s: no cell has %s", name, c->x < 0 ? "a count of a shared gene" : "an embedding");
	if (!d->n && d->groupless)
		die("%s: no cell with a value in column '%s' has one in column '%s'", name, w->label ? w->label : w->target, w->group);
	if (!d->n && w->target)
		die("%s: no cell has a value in column '%s' (%zu cell%s read)", name, w->target, d->unlabelled,
			d->unlabelled == 1 ? "" : "s");
	if (d->n > INT32_MAX)
		die("%s: more than %d labelled cells; take a sample with scsample -n", name, INT32_MAX);
}

void embeddings_check(const struct stream *s, const struct wanted *w)
{
	const char *const column[] = {w->label, w->group, w->part};
	for (size_t i = 0; i < sizeof column / sizeof *column; i++) {
		struct labels l = {0};
		struct classes unused = {0};
		if (column[i])
			labels_open(&l, stream_header(s), column[i], &unused, stream_name(s));
		labels_release(&l);
		classes_release(&unused);
	}
}

void embeddings_read(struct embeddings *d, struct stream *s, const struct wanted *w, int again)
{
	struct columns c;
	RELEASED(block_release) struct block b = {0};
	*d = (struct embeddings){.s = s};
	open_columns(&c, d, w);
	d->d = c.x < 0 ? (w->genes ? w->genes : &stream_header(s)->vocab)->n : stream_header(s)->col[c.x].n;
	d->sparse.d = d->d;
	const char *of;
	uint64_t memory = memory_limit(&of);
	uint64_t ahead = stream_expected(s);
	char *large;
	if (again)
		must(stream_index(s, &failure));
	while ((w->label || w->target ? must_read_cells : must_read)(s, &b)) { /* a map may show copies beside cells */
		read_block(d, &b, &c, w);
		if (ahead != ROWS_UNKNOWN && d->n) { /* the first block says how many bytes counts take; cells without a label take none */
			if ((large = too_large(d, "up to ", ahead, memory, of)))
				warn("%s", large);
			free(large);
			ahead = ROWS_UNKNOWN;
		}
		if ((large = too_large(d, "more than ", d->n, memory, of)))
			die("%s", large);
		progress_cells(d->rows, stream_expected(s));
	}
	say_left_out(d, &c, w);
	expressed_release(&c.expressed);
	labels_release(&c.label);
	labels_release(&c.group);
	labels_release(&c.part);
}
