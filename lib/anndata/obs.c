#include "anndata/obs.h"

#define CATEGORIES_MAX 65536

void obs_release(struct obs *o)
{
	for (size_t i = 0; i < o->ncol; i++) {
		struct obs_column *c = o->col + i;
		free_list(c->category, c->ncategory);
		strmap_release(&c->code);
		free_all(c->source, c->name, c->recode);
		dataframe_values_release(&c->values);
	}
	free_all(o->col, o->index, o->names, o->elsewhere, o->skipped);
	*o = (struct obs){0};
}

const char *obs_source_name(const char *name)
{
	return strncmp(name, "obs_", 4) == 0 && header_reserved(name + 4) ? name + 4 : name;
}

static struct obs_column *column(struct obs *o, const char *source)
{
	for (size_t i = 0; i < o->ncol; i++)
		if (strcmp(o->col[i].source, source) == 0)
			return o->col + i;
	grow(o->col, o->cap, o->ncol + 1);
	struct obs_column *c = o->col + o->ncol++;
	*c = (struct obs_column){.source = xstrdup(source), .kind = DATAFRAME_OTHER, .missing = -1};
	c->name = xasprintf("%s%s", header_reserved(source) ? "obs_" : "", source);
	return c;
}

static enum dataframe_kind merge(enum dataframe_kind a, enum dataframe_kind b)
{
	if (a == DATAFRAME_OTHER || a == b)
		return b;
	int whole_a = a == DATAFRAME_I64 || a == DATAFRAME_U64, whole_b = b == DATAFRAME_I64 || b == DATAFRAME_U64;
	int numbers = (whole_a && b == DATAFRAME_F64) || (a == DATAFRAME_F64 && whole_b);
	return numbers ? DATAFRAME_F64 : DATAFRAME_STR; /* I64 and U64: no integer holds both */
}

static int is_boolean(const char *dtype)
{
	return !strcmp(dtype, "bool") || !strcmp(dtype, "boolean");
}

/* What is left of the exact type when c, so far of `files` files, takes column f too. */
static void merge_dtype(struct obs_column *c, const struct dataframe_column *f)
{
	int same = c->kind == f->kind && c->ordered == f->ordered && c->ncategory == f->ncategory;
	for (size_t k = 0; same && k < f->ncategory; k++)
		same = strcmp(c->category[k], f->category[k]) == 0;
	const char *a = c->dtype ? c->dtype : "", *b = f->dtype ? f->dtype : "";
	int booleans = is_boolean(a) && is_boolean(b);
	if (!c->files)
		c->dtype = f->dtype;
	else if (strcmp(a, b))
		c->dtype = booleans ? "boolean" : NULL;
	c->ordered = c->files ? c->ordered && same : f->ordered;
}

/* anndata calls an index without a name "_index". */
static void add_index(struct obs *o, const char *name)
{
	if (name && !strcmp(name, "_index"))
		name = NULL;
	if (!o->nfile && name) {
		o->index = xstrdup(name);
	} else if (o->index && (!name || strcmp(o->index, name))) {
		free(o->index);
		o->index = NULL;
	}
}

static int obs_wanted(const char *name, int all, char *const *want, size_t nwant)
{
	for (size_t i = 0; i < nwant && !all; i++)
		all |= strcmp(want[i], name) == 0;
	return all;
}

int obs_add(struct obs *o, struct h5ad *h, int all, char *const *want, size_t nwant, struct error *e)
{
	add_index(o, h->obs.index.name);
	o->nfile++;
	for (size_t i = 0; i < h->obs.ncol && o->nfile == 1; i++) {
		char *names = xasprintf("%s%s%s", o->names ? o->names : "", o->names ? ", " : "", h->obs.col[i].name);
		free(o->names);
		o->names = names;
	}
	for (size_t i = 0; i < nwant && !all && !o->elsewhere; i++)
		o->elsewhere = dataframe_find(&h->obs, want[i]) ? NULL : h5ad_elsewhere(h, want[i]);
	for (size_t i = 0; i < h->obs.ncol; i++) {
		struct dataframe_column *f = h->obs.col + i;
		if (!obs_wanted(f->name, all, want, nwant))
			continue;
		int odd = strpbrk(f->name, "\t\r\n") || !text_is_utf8(f->name, strlen(f->name));
		if (f->kind == DATAFRAME_OTHER && !all)
			return error_set(e, "%s: %s, so it cannot be carried along", f->where, f->why);
		if (f->kind == DATAFRAME_OTHER || odd) {
			xappend(&o->skipped, "%s%s: %s", o->skipped ? "; " : "", f->where,
				odd ? "a name with a tab or line break, or not in UTF-8" : f->why);
			continue;
		}
		struct obs_column *c = column(o, f->name);
		merge_dtype(c, f);
		c->kind = merge(c->kind, f->kind);
		c->optional |= f->nullable || f->kind == DATAFRAME_CATEGORICAL || f->kind == DATAFRAME_F64;
		c->files++;
		if (c->kind == DATAFRAME_CATEGORICAL && f->ncategory > CATEGORIES_MAX)
			c->kind = DATAFRAME_STR;
		for (size_t k = 0; k < f->ncategory && c->kind == DATAFRAME_CATEGORICAL; k++) {
			const char *s = f->category[k];
			if (strmap_put(&c->code, s, strlen(s), (uint32_t)c->ncategory) == c->ncategory) {
				grow(c->category, c->category_cap, c->ncategory + 1);
				c->category[c->ncategory++] = xstrdup(s);
			}
		}
		if (c->ncategory > CATEGORIES_MAX)
			c->kind = DATAFRAME_STR;
	}
	return 0;
}

/* gaps: some files lack the column. */
static void note_dtype(struct column_spec *s, const struct obs_column *c, int gaps)
{
	const char *dtype = c->dtype;
	if (dtype && !strcmp(dtype, "bool") && gaps)
		dtype = "boolean";
	int text = s->type == STR;
	if (dtype && (!text || !strcmp(dtype, "string")))
		s->dtype = xstrdup(dtype);
	s->ordered = c->ordered && s->type == CATEGORICAL;
}

int obs_header(struct obs *o, struct header *h, char *const *want, size_t nwant, struct error *e)
{
	static const enum column_type type[] = {[DATAFRAME_STR] = STR,
		[DATAFRAME_I64] = I64,
		[DATAFRAME_U64] = U64,
		[DATAFRAME_F64] = F64,
		[DATAFRAME_CATEGORICAL] = CATEGORICAL};
	EVERY_ROW(type, DATAFRAME_OTHER); /* which no column of a stream is */
	for (size_t i = 0; i < nwant; i++) {
		int there = 0;
		for (size_t k = 0; k < o->ncol; k++)
			there |= strcmp(o->col[k].source, want[i]) == 0;
		if (!there)
			return error_set(e, "no obs column '%s' in %s (%s has: %.300s)%s%s", want[i],
				o->nfile == 1 ? "the file" : "any of the files", o->nfile == 1 ? "it" : "the first",
				o->names ? o->names : "none", o->elsewhere ? "; " : "", o->elsewhere ? o->elsewhere : "");
	}
	for (size_t i = 0; i < o->ncol; i++) {
		struct obs_column *c = o->col + i;
		FREED char *companion = xasprintf("%s.missing", c->name);
		if (header_find(h, c->name) >= 0 || header_find(h, companion) >= 0) {
			return error_set(
				e, "obs column '%s' clashes with another column of the stream; leave it out with --obs", c->source);
		}
		/* in a file without the column all values are missing; strings and integers need a companion column to say so */
		int somewhere = c->files < o->nfile, whole = c->kind == DATAFRAME_I64 || c->kind == DATAFRAME_U64;
		c->optional = (c->optional || somewhere) && (c->kind == DATAFRAME_STR || whole);
		c->col = c->kind == DATAFRAME_CATEGORICAL ? header_add_categorical(h, c->name, c->category, c->ncategory)
							  : header_add(h, c->name, type[c->kind]);
		note_dtype(&h->col[c->col], c, somewhere);
		if (c->optional)
			c->missing = header_add(h, companion, U8);
	}
	if (o->index)
		cJSON_AddStringToObject(h->extra, HEADER_INDEX, o->index);
	return 0;
}

void obs_file(struct obs *o, struct h5ad *h)
{
	for (size_t i = 0; i < o->ncol; i++) {
		struct obs_column *c = o->col + i;
		c->from = NULL;
		for (size_t k = 0; k < h->obs.ncol; k++)
			if (strcmp(h->obs.col[k].name, c->source) == 0 && h->obs.col[k].kind != DATAFRAME_OTHER)
				c->from = h->obs.col + k;
		if (!c->from || c->kind != DATAFRAME_CATEGORICAL)
			continue;
		c->recode = xrealloc(c->recode, c->from->ncategory, sizeof *c->recode);
		for (size_t k = 0; k < c->from->ncategory; k++)
			c->recode[k] = strmap_get(&c->code, c->from->category[k], strlen(c->from->category[k]));
	}
}

int obs_read(struct obs *o, uint64_t row, size_t n, int threads, struct error *e)
{
	for (size_t i = 0; i < o->ncol; i++)
		if (o->col[i].from && dataframe_read(o->col[i].from, row, n, &o->col[i].values, threads, e))
			return -1;
	return 0;
}

static void fill_texts(struct obs_column *c, size_t at, size_t n, struct block *b, uint8_t *missing)
{
	for (size_t i = 0; i < n; i++) {
		const char *s = "";
		char buf[32];
		int gone = 1;
		size_t len = c->from ? dataframe_text(c->from, &c->values, at + i, buf, &s, &gone) : 0;
		block_push_str(b, c->col, s, len);
		if (missing)
			missing[i] = (uint8_t)gone;
	}
}

void obs_fill(struct obs *o, size_t at, size_t n, struct block *b)
{
	for (size_t i = 0; i < o->ncol; i++) {
		struct obs_column *c = o->col + i;
		const struct dataframe_values *v = &c->values;
		uint8_t *missing = c->missing < 0 ? NULL : b->col[c->missing].data;
		void *out = b->col[c->col].data;
		if (c->kind == DATAFRAME_STR) {
			fill_texts(c, at, n, b, missing);
			continue;
		}
		for (size_t k = 0; k < n; k++) {
			if (c->kind == DATAFRAME_CATEGORICAL) {
				uint32_t code = c->from ? v->code[at + k] : MISSING_CODE;
				((uint32_t *)out)[k] = code == MISSING_CODE ? code : c->recode[code];
			} else if (c->kind == DATAFRAME_F64) {
				((double *)out)[k] = c->from ? dataframe_number(c->from, v, at + k) : NAN;
			} else {
				int gone = !c->from || v->missing[at + k];
				((int64_t *)out)[k] = gone ? 0 : v->i64[at + k];
				if (missing)
					missing[k] = (uint8_t)gone;
			}
		}
	}
}
