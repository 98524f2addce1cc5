#include "anndata/obstable.h"

#include "base/decimal.h"
#include "base/tsv.h"

#include <errno.h>

void obstable_release(struct obstable *t)
{
	for (size_t i = 0; i < t->ncol; i++) {
		free(t->col[i].name);
		texts_release(&t->col[i].value);
		strmap_release(&t->col[i].code);
	}
	free(t->col);
	strmap_release(&t->row);
	free_all(t->path, t->typical);
	*t = (struct obstable){0};
}

static int is_missing(const char *s)
{
	return !*s || !strcmp(s, "NA") || !strcmp(s, "nan") || !strcmp(s, "NaN");
}

static int is_boolean(const char *s)
{
	return !strcmp(s, "True") || !strcmp(s, "False") || !strcmp(s, "TRUE") || !strcmp(s, "FALSE");
}

static int is_integer(const char *s)
{
	char *end;
	errno = 0;
	strtoll(s, &end, 10);
	return !errno && end != s && !*end && s[0] != ' ' && s[0] != '+';
}

static int is_real(const char *s)
{
	char *end;
	double v = decimal_read(s, &end);
	return end != s && !*end && isfinite(v);
}

/* The columns that a value rules out. */
struct kinds {
	int integer, real, boolean, twice;
};

static void take_value(struct obstable_column *c, struct kinds *k, const char *s)
{
	if (is_missing(s)) {
		c->optional = 1;
		texts_push(&c->value, "", 0);
		return;
	}
	k->integer &= is_integer(s);
	k->real &= is_real(s);
	k->boolean &= is_boolean(s);
	uint32_t code = strmap_put(&c->code, s, strlen(s), (uint32_t)c->ncategory);
	k->twice |= code != c->ncategory;
	c->ncategory += code == c->ncategory;
	texts_push(&c->value, s, strlen(s));
}

static void choose_kind(struct obstable_column *c, const struct kinds *k)
{
	c->boolean = c->ncategory && k->boolean;
	c->kind = !c->ncategory          ? DATAFRAME_F64
		: k->integer             ? DATAFRAME_I64
		: k->real                ? DATAFRAME_F64
		: k->twice || k->boolean ? DATAFRAME_CATEGORICAL
					 : DATAFRAME_STR;
}

/* The names of the columns, from the first line; `fields` is the number of fields of the second. */
static int take_names(struct obstable *t, const struct tsv *f, char **name, size_t names, struct error *e)
{
	if (f->n != names && f->n != names + 1)
		return tsv_error(f, e, "%zu fields, but the first line names %zu columns", f->n, names);
	size_t first = f->n == names; /* R leaves out the name of the barcodes */
	t->ncol = names - first;
	if (!t->ncol)
		return error_set(e, "%s: expected a barcode and at least one other column, with tabs or commas between", f->path);
	t->col = xcalloc(t->ncol, sizeof *t->col);
	for (size_t i = 0; i < t->ncol; i++) {
		t->col[i].name = xstrdup(name[first + i]);
		if (!*t->col[i].name || strpbrk(t->col[i].name, "\r\n"))
			return error_set(e, "%s: line 1: column %zu has no name", f->path, first + i + 1);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(t->col[k].name, t->col[i].name))
				return error_set(e, "%s: line 1: two columns are called '%.80s'", f->path, t->col[i].name);
	}
	return 0;
}

static int take_line(struct obstable *t, struct kinds *kind, const struct tsv *f, struct error *e)
{
	const char *barcode = f->field[0];
	if (f->n != t->ncol + 1)
		return tsv_error(f, e, "%zu fields, expected %zu", f->n, t->ncol + 1);
	if (!*barcode)
		return tsv_error(f, e, "no barcode in the first column");
	if (t->rows == UINT32_MAX - 1)
		return tsv_error(f, e, "more than 2^32 lines");
	if (strmap_put(&t->row, barcode, strlen(barcode), (uint32_t)t->rows) != t->rows)
		return tsv_error(f, e, "barcode '%.80s' occurs twice", barcode);
	if (!t->rows)
		t->typical = xstrdup(barcode);
	for (size_t i = 0; i < t->ncol; i++)
		take_value(&t->col[i], &kind[i], f->field[i + 1]);
	t->rows++;
	return 0;
}

static int load(struct obstable *t, struct tsv *f, struct error *e)
{
	int got = tsv_first(f, e);
	if (got < 1)
		return got ? got : error_set(e, "%s: the table is empty", f->path);
	size_t names = f->n;
	char **name = xcalloc(names, sizeof *name);
	FREED struct kinds *kind = NULL;
	for (size_t i = 0; i < names; i++)
		name[i] = xstrdup(f->field[i]);
	while ((got = tsv_next(f, e)) > 0) {
		if (f->n == 1 && !*f->field[0])
			continue;
		if (!kind) {
			got = take_names(t, f, name, names, e);
			kind = xcalloc(t->ncol, sizeof *kind);
			for (size_t i = 0; i < t->ncol; i++)
				kind[i] = (struct kinds){1, 1, 1, 0};
		}
		if (got < 0 || (got = take_line(t, kind, f, e)) < 0)
			break;
	}
	if (got == 0 && !kind)
		got = error_set(e, "%s: column names and no cells", f->path);
	for (size_t i = 0; i < t->ncol && got == 0; i++)
		choose_kind(&t->col[i], &kind[i]);
	free_list(name, names);
	return got;
}

int obstable_load(struct obstable *t, const char *path, struct error *e)
{
	RELEASED(tsv_close) struct tsv f;
	*t = (struct obstable){.path = xstrdup(path)};
	int bad = tsv_open(&f, path, e) || load(t, &f, e);
	if (bad)
		obstable_release(t);
	return bad ? -1 : 0;
}

/* Row of the table for each cell of h. */
static int find_rows(const struct obstable *t, struct h5ad *h, const char *sample, uint32_t *row, uint64_t *found, struct error *e)
{
	RELEASED(texts_release) struct texts names = {0};
	int r = 0;
	*found = 0;
	for (uint64_t at = 0; at < h->ncell && r == 0; at += names.n) {
		size_t n = h->ncell - at < 4096 ? h->ncell - at : 4096;
		r = h5ad_cell_names(h, at, n, &names, e);
		for (size_t i = 0; i < n && r == 0; i++) {
			FREED char *name = texts_dup(&names, i), *unique = sample ? xasprintf("%s-%s", name, sample) : NULL;
			uint32_t k = unique ? strmap_get(&t->row, unique, strlen(unique)) : STRMAP_NONE;
			row[at + i] = k == STRMAP_NONE ? strmap_get(&t->row, name, strlen(name)) : k;
			*found += row[at + i] != STRMAP_NONE;
			if (!at && !i && t->typical)
				error_set(e, "%s: no barcode is in %s: they are like '%.80s' here and like '%.80s' there", h->path, t->path,
					unique ? unique : name, t->typical);
		}
	}
	return r ? r : *found || !h->ncell ? 0 : -1;
}

static void read_number(const struct dataframe_column *c, size_t i, const char *s, struct dataframe_values *v)
{
	if (c->kind == DATAFRAME_F64)
		v->f64[i] = *s ? strtod(s, NULL) : NAN;
	else
		v->i64[i] = *s ? strtoll(s, NULL, 10) : 0;
}

/* dataframe_column.read */
static void obstable_read_rows(const struct dataframe_column *c, uint64_t row, size_t n, struct dataframe_values *v)
{
	grow(v->code, v->code_cap, n);
	grow(v->i64, v->i64_cap, n);
	grow(v->f64, v->f64_cap, n);
	for (size_t i = 0; i < n; i++) {
		uint32_t at = c->row[row + i];
		FREED char *s = at == STRMAP_NONE ? xstrdup("") : texts_dup(&c->table->value, at);
		size_t len = strlen(s);
		v->missing[i] = !len;
		if (c->kind == DATAFRAME_STR)
			texts_push(&v->str, s, len);
		else if (c->kind != DATAFRAME_CATEGORICAL)
			read_number(c, i, s, v);
		else if (c->table->boolean)
			v->code[i] = !len ? UINT32_MAX : s[0] == 'T';
		else
			v->code[i] = len ? strmap_get(&c->table->code, s, len) : UINT32_MAX;
	}
}

static void make_column(
	struct dataframe_column *c, const struct obstable *t, const struct obstable_column *from, const uint32_t *row, uint64_t n)
{
	*c = (struct dataframe_column){.name = xstrdup(from->name),
		.kind = from->kind,
		.dataset = -1,
		.field = -1,
		.where = xasprintf("%s: %s", t->path, from->name),
		.read = obstable_read_rows,
		.table = from};
	c->row = xmalloc(n * sizeof *c->row);
	memcpy(c->row, row, n * sizeof *c->row);
	c->nullable = from->optional;
	for (uint64_t i = 0; i < n; i++)
		c->nullable |= row[i] == STRMAP_NONE;
	if (from->boolean) {
		c->dtype = c->nullable ? "boolean" : "bool";
		c->category = xcalloc(2, sizeof *c->category);
		c->category[c->ncategory++] = xstrdup("False");
		c->category[c->ncategory++] = xstrdup("True");
	} else if (from->kind == DATAFRAME_CATEGORICAL) {
		c->category = xcalloc(from->ncategory, sizeof *c->category);
		for (size_t i = 0; i < from->value.n && c->ncategory < from->ncategory; i++) {
			size_t len = from->value.offset[i + 1] - from->value.offset[i];
			if (len && strmap_get(&from->code, from->value.bytes + from->value.offset[i], len) == c->ncategory)
				c->category[c->ncategory++] = texts_dup(&from->value, i);
		}
	}
}

int obstable_join(const struct obstable *t, struct h5ad *h, const char *sample, uint64_t *found, struct error *e)
{
	FREED uint32_t *row = xmalloc(h->ncell * sizeof *row);
	if (find_rows(t, h, sample, row, found, e))
		return -1;
	for (size_t i = 0; i < t->ncol; i++)
		if (dataframe_find(&h->obs, t->col[i].name))
			return error_set(e, "%s: both the file and %s have a column '%.80s'", h->path, t->path, t->col[i].name);
	h->obs.col = xrealloc(h->obs.col, h->obs.ncol + t->ncol, sizeof *h->obs.col);
	for (size_t i = 0; i < t->ncol; i++)
		make_column(&h->obs.col[h->obs.ncol++], t, &t->col[i], row, h->ncell);
	return 0;
}
