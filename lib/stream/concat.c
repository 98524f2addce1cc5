#include "stream/concat.h"

#include "base/classes.h"
#include "base/json.h"
#include "base/texts.h"
#include "stream/counts.h"
#include "stream/panels.h"

/* Add the categories of `from` that `to` lacks. */
static void join_categories(struct column_spec *to, const struct column_spec *from)
{
	RELEASED(classes_release) struct classes c = {0};
	for (size_t k = 0; k < to->ncategory; k++)
		classes_add(&c, to->category[k], strlen(to->category[k]));
	for (size_t k = 0; k < from->ncategory; k++) {
		size_t before = c.n;
		classes_add(&c, from->category[k], strlen(from->category[k]));
		if (c.n == before)
			continue;
		to->category = xrealloc(to->category, to->ncategory + 1, sizeof *to->category);
		to->category[to->ncategory++] = xstrdup(from->category[k]);
	}
}

static int same_categories(const struct column_spec *a, const struct column_spec *b)
{
	int same = a->ncategory == b->ncategory;
	for (size_t i = 0; same && i < a->ncategory; i++)
		same = !strcmp(a->category[i], b->category[i]);
	return same;
}

static int is_integer(const struct column_spec *c)
{
	return c->type == I64 || c->type == U64;
}

/* Can it be a column of obs that h5tok has read? */
static int is_annotation(const struct column_spec *c)
{
	return c->shape == SCALAR && (c->type == STR || c->type == CATEGORICAL || c->type == F64 || is_integer(c));
}

/* NAME.missing, if the header does not have it. */
static int need_companion(struct header *all, const char *column, const char *name, struct error *e)
{
	FREED char *extra = xasprintf("%s%s", column, MISSING_SUFFIX);
	int there = header_missing(all, column) >= 0, clash = !there && header_find(all, extra) >= 0;
	if (clash)
		error_set(e, "%s: column '%s' needs %s, which is there and is not a u8 column", name, column, extra);
	else if (!there)
		header_add(all, extra, U8);
	return clash ? -1 : 0;
}

/* Column `at` is of another type in s. It becomes what h5tok makes of such files: doubles, if they are all integers and doubles, else text. */
static int make_common(struct header *to, int at, const struct column_spec *s, const char *name, struct error *e)
{
	struct column_spec *t = &to->col[at];
	int numbers = (t->type == F64 && is_integer(s)) || (s->type == F64 && is_integer(t));
	free_list(t->category, t->ncategory);
	free(t->dtype);
	*t = (struct column_spec){.name = t->name, .type = numbers ? F64 : STR, .n = 1, .group = -1};
	return numbers ? 0 : need_companion(to, t->name, name, e);
}

static int join_column(struct header *to, const struct header *from, size_t k, const char *first, const char *name, struct error *e)
{
	const struct column_spec *s = &from->col[k];
	int at = header_find(to, s->name);
	if (at < 0 && s->shape != SCALAR)
		return error_set(
			e, "%s: column '%s' is not in %s: only streams of the same lists and vectors can be joined", name, s->name, first);
	if (at < 0) {
		header_add_like(to, s);
		return 0;
	}
	struct column_spec *t = &to->col[at];
	if (is_annotation(t) && is_annotation(s) && t->type != s->type)
		return make_common(to, at, s, name, e);
	if (t->type != s->type || t->shape != s->shape || t->n != s->n ||
		(s->shape == RAGGED && strcmp(to->group[t->group], from->group[s->group])))
		return error_set(e, "%s: column '%s' is %s of %u, but %s of %u in %s", name, s->name, type_name(s->type), s->n,
			type_name(t->type), t->n, first);
	if (!t->dtype != !s->dtype || (t->dtype && strcmp(t->dtype, s->dtype))) {
		free(t->dtype);
		t->dtype = NULL;
	}
	t->ordered &= s->ordered && same_categories(t, s);
	if (s->type == CATEGORICAL)
		join_categories(t, s);
	return 0;
}

/* If input h lacks a list or vector, that is an error. If it lacks a whole number, the union needs a companion column. */
static int check_lacking(struct header *all, const struct header *h, const char *first, const char *name, struct error *e)
{
	size_t ncol = all->ncol;
	for (size_t k = 0; k < ncol; k++) {
		if (header_find(h, all->col[k].name) >= 0 || (panels_there(all) && !strcmp(all->col[k].name, PANEL_COLUMN)))
			continue;
		if (all->col[k].shape != SCALAR)
			return error_set(e, "%s: no column '%s', which %s has: only streams of the same lists and vectors can be joined",
				name, all->col[k].name, first);
		if (type_is_whole(all->col[k].type) && !header_companion(all->col[k].name) &&
			need_companion(all, all->col[k].name, name, e))
			return -1;
	}
	return 0;
}

static size_t times_there(const cJSON *list, const cJSON *line, const cJSON *last)
{
	const cJSON *one;
	size_t n = 0;
	cJSON_ArrayForEach(one, list)
	{
		n += cJSON_Compare(one, line, 1);
		if (one == last)
			break;
	}
	return n;
}

/* Each line stays as often as it is in one of the streams: to be thinned twice is something else than once. */
static void join_provenance(struct header *all, const struct header *h)
{
	const cJSON *line;
	cJSON_ArrayForEach(line, h->provenance)
	{
		if (times_there(all->provenance, line, NULL) < times_there(h->provenance, line, line))
			cJSON_AddItemToArray(all->provenance, cJSON_Duplicate(line, 1));
	}
}

/* The index of obs keeps its name if that is the same in all streams. */
static void join_index(struct header *all, const struct header *h)
{
	const cJSON *a = json_get(all->extra, HEADER_INDEX), *b = json_get(h->extra, HEADER_INDEX);
	if (a && !(b && cJSON_Compare(a, b, 1)))
		cJSON_DeleteItemFromObjectCaseSensitive(all->extra, HEADER_INDEX);
}

/* Are the extra keys the same but for the name of the index? */
static int same_keys(const struct header *a, const struct header *b)
{
	RELEASED(json_free_at) cJSON *x = cJSON_Duplicate(a->extra, 1), *y = cJSON_Duplicate(b->extra, 1);
	cJSON_DeleteItemFromObjectCaseSensitive(x, HEADER_INDEX);
	cJSON_DeleteItemFromObjectCaseSensitive(y, HEADER_INDEX);
	cJSON_DeleteItemFromObjectCaseSensitive(x, "panels");
	cJSON_DeleteItemFromObjectCaseSensitive(y, "panels");
	return cJSON_Compare(x, y, 1);
}

/* Tokens: both say which genes were measured, or neither does. And both cells begin alike. */
static int check_tokens(const struct header *all, const struct header *h, const char *first, const char *name, struct error *e)
{
	uint64_t cls_a, cls_b;
	if (h->kind != STREAM_TOKENS)
		return 0;
	if (panels_there(all) != panels_there(h))
		return error_set(e, "%s: its header %s which genes were measured, and that of %s %s: encode both in the same way", name,
			panels_there(h) ? "says" : "does not say", first, panels_there(h) ? "does not" : "does");
	if (json_whole(all->extra, HEADER_CLS, 0, &cls_a) || json_whole(h->extra, HEADER_CLS, 0, &cls_b))
		return error_set(e, "%s, %s: header: %s: expected a whole number", first, name, HEADER_CLS);
	return cls_a == cls_b ? 0
			      : error_set(e, "%s: it is of rankenc --cls %llu, and %s of --cls %llu", name, (unsigned long long)cls_b,
					first, (unsigned long long)cls_a);
}

/* The vocabularies must be the same. Different medians or extra keys are only a warning. */
static int check_rest(struct header *all, const struct header *h, const char *first, const char *name, char **warning, struct error *e)
{
	char a[33], b[33];
	if (h->kind != all->kind)
		return error_set(
			e, "%s: this stream is of kind %s, expected %s as in %s", name, kind_name(h->kind), kind_name(all->kind), first);
	vocab_digest(&all->vocab, a);
	vocab_digest(&h->vocab, b);
	if (strcmp(a, b))
		return error_set(e, "%s: its vocabulary of %zu rows (digest %.8s) is not that of %s (%zu rows, digest %.8s)", name,
			h->vocab.n, b, first, all->vocab.n, a);
	vocab_median_digest(&all->vocab, a);
	vocab_median_digest(&h->vocab, b);
	if (strcmp(a, b) && !*warning)
		*warning = xasprintf("%s: its medians differ from those of %s; the output has the latter", name, first);
	if (!cJSON_Compare(json_get(all->extra, "labels"), json_get(h->extra, "labels"), 1) &&
		(cJSON_HasObjectItem(all->extra, "labels") || cJSON_HasObjectItem(h->extra, "labels")))
		return error_set(e, "%s: its label names are not those of %s", name, first);
	if (check_tokens(all, h, first, name, e))
		return -1;
	if (!same_keys(all, h) && !*warning)
		*warning = xasprintf("%s: its header keys differ from those of %s; the output has the latter", name, first);
	if (!cJSON_Compare(json_get(all->extra, HEADER_TRAIN_N), json_get(h->extra, HEADER_TRAIN_N), 1))
		cJSON_DeleteItemFromObjectCaseSensitive(all->extra, HEADER_TRAIN_N);
	join_index(all, h);
	join_provenance(all, h);
	return 0;
}

/* Map the columns and codes of input p to those of the union. */
static void bind(struct concat *c, struct concat_input *p)
{
	size_t ncol = c->header.ncol;
	p->map = xmalloc(ncol * sizeof *p->map);
	p->code = xcalloc(ncol, sizeof *p->code);
	header_map(&c->header, p->header, p->map);
	for (size_t k = 0; k < ncol; k++) {
		const struct column_spec *t = &c->header.col[k];
		if (p->map[k] < 0 || t->type != CATEGORICAL)
			continue;
		const struct column_spec *s = &p->header->col[p->map[k]];
		RELEASED(classes_release) struct classes all = {0};
		uint32_t *at = xmalloc(t->ncategory * sizeof *at); /* if a table names a category twice, use the first */
		for (size_t i = 0; i < t->ncategory; i++) {
			size_t before = all.n;
			uint32_t number = classes_add(&all, t->category[i], strlen(t->category[i]));
			if (all.n > before)
				at[number] = (uint32_t)i;
		}
		p->code[k] = xmalloc(s->ncategory * sizeof *p->code[k]);
		for (size_t i = 0; i < s->ncategory; i++)
			p->code[k][i] = at[classes_add(&all, s->category[i], strlen(s->category[i]))];
		free(at);
	}
}

/* The panels of all inputs. If only some have them, the cells of the others are of a panel of all genes. */
static int join_all_panels(struct concat *c, const struct header *const *h, const char *const *name, size_t n, struct error *e)
{
	int some = 0;
	for (size_t i = 0; i < n; i++) {
		struct panels p;
		if (panels_there(h[i]) && header_need(h[i], PANEL_COLUMN, U32, SCALAR, name[i], e) < 0)
			return -1;
		if (panels_read(&p, h[i], name[i], e))
			return -1;
		some |= p.n > 0;
		panels_release(&p);
	}
	for (size_t i = 0; i < n && some; i++)
		c->input[i].panel = panels_join(&c->header, h[i], &c->input[i].npanel);
	c->panel = some ? header_find(&c->header, PANEL_COLUMN) : -1;
	return 0;
}

int concat_init(struct concat *c, const struct header *const *h, const char *const *name, size_t n, char **warning, struct error *e)
{
	*c = (struct concat){.n = n, .panel = -1};
	*warning = NULL;
	header_copy(&c->header, h[0]);
	c->input = xcalloc(n, sizeof *c->input);
	for (size_t i = 0; i < n; i++) {
		c->input[i].header = h[i];
		c->input[i].name = name[i];
		if (i && check_rest(&c->header, h[i], name[0], name[i], warning, e))
			return -1;
		for (size_t k = 0; i && k < h[i]->ncol; k++)
			if (join_column(&c->header, h[i], k, name[0], name[i], e))
				return -1;
	}
	if (join_all_panels(c, h, name, n, e))
		return -1;
	for (size_t i = 0; i < n; i++)
		if (check_lacking(&c->header, h[i], name[0], name[i], e))
			return -1;
	c->cell = header_need(&c->header, "cell", U64, SCALAR, name[0], e);
	if (c->cell < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		bind(c, &c->input[i]);
	return 0;
}

void concat_release(struct concat *c)
{
	for (size_t i = 0; i < c->n; i++) {
		for (size_t k = 0; c->input[i].code && k < c->header.ncol; k++)
			free(c->input[i].code[k]);
		free_all(c->input[i].code, c->input[i].panel, c->input[i].map);
	}
	free(c->input);
	header_release(&c->header);
	*c = (struct concat){0};
}

/* Is the value in row r of column `at` of input p missing? at < 0: the input has no such column. */
static int is_missing(const struct concat_input *p, int at, const struct block *in, size_t r)
{
	if (at < 0)
		return 1;
	const void *v = in->col[at].data;
	enum column_type type = p->header->col[at].type;
	int companion = header_missing_of(p->header, at);
	return (type == CATEGORICAL && ((const uint32_t *)v)[r] == MISSING_CODE) || (type == F64 && isnan(((const double *)v)[r])) ||
		(companion >= 0 && ((const uint8_t *)in->col[companion].data)[r]);
}

/* The same value, which is not missing, as text: what h5tok makes of it. buf [32] */
static const char *as_text(const struct column_spec *s, const void *v, size_t r, char *buf)
{
	if (s->type == CATEGORICAL)
		return s->category[((const uint32_t *)v)[r]];
	if (s->type == F64)
		buf[texts_double(((const double *)v)[r], buf)] = 0;
	else if (s->type == I64)
		snprintf(buf, 32, "%" PRId64, ((const int64_t *)v)[r]);
	else
		snprintf(buf, 32, "%" PRIu64, ((const uint64_t *)v)[r]);
	return buf;
}

/* Column k, which the input lacks, gets missing values; or the input has it in another type (make_common). */
static void fill_missing(const struct concat *c, const struct concat_input *p, int k, const struct block *in, struct block *out)
{
	const struct column_spec *s = &c->header.col[k];
	char buf[32];
	int at = header_find(p->header, s->name);
	if (s->type == STR) {
		for (size_t r = 0; r < out->rows; r++) {
			const char *text = is_missing(p, at, in, r) ? "" : as_text(&p->header->col[at], in->col[at].data, r, buf);
			block_push_str(out, k, text, strlen(text));
		}
		return;
	}
	type_fill_missing(s->type, out->col[k].data, out->rows * s->n);
	for (size_t r = 0; s->type == F64 && at >= 0 && r < out->rows; r++)
		if (!is_missing(p, at, in, r))
			((double *)out->col[k].data)[r] = p->header->col[at].type == I64 ? (double)((const int64_t *)in->col[at].data)[r]
											 : (double)((const uint64_t *)in->col[at].data)[r];
	size_t base = header_companion(s->name);
	if (base) {
		/* NAME.missing is 1 where the input has no NAME, or no value in it, else 0 */
		FREED char *column = xstrndup(s->name, base);
		at = header_find(p->header, column);
		for (size_t r = 0; header_find(&c->header, column) >= 0 && r < out->rows; r++)
			((uint8_t *)out->col[k].data)[r] = (uint8_t)is_missing(p, at, in, r);
	}
}

/* Number the panels of the cells as the union does. */
static int join_panels(const struct concat *c, const struct concat_input *p, struct block *out, struct error *e)
{
	uint32_t *panel = out->col[c->panel].data;
	for (size_t r = 0; r < out->rows; r++) {
		if (panel[r] >= p->npanel)
			return error_set(e, "%s: cell %llu: panel %u, but the header has %zu", p->name,
				(unsigned long long)((const uint64_t *)out->col[c->cell].data)[r], panel[r], p->npanel);
		panel[r] = p->panel[panel[r]];
	}
	return 0;
}

int concat_block(struct concat *c, size_t i, const struct block *in, struct block *out, struct error *e)
{
	struct concat_input *p = &c->input[i];
	block_reset(out, &c->header);
	block_take(out, p->map, in, NULL, 0);
	for (size_t k = 0; k < c->header.ncol; k++) {
		uint32_t *v = out->col[k].data;
		if (p->map[k] < 0)
			fill_missing(c, p, (int)k, in, out);
		else if (p->code[k])
			for (size_t r = 0; r < out->rows; r++)
				v[r] = v[r] == MISSING_CODE ? v[r] : p->code[k][v[r]];
	}
	if (c->panel >= 0 && join_panels(c, p, out, e))
		return -1;
	for (size_t r = 0; r < out->rows; r++)
		((uint64_t *)out->col[c->cell].data)[r] = c->cells++;
	return 0;
}
