#include "anndata/obs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CATEGORIES_MAX 65536

/* Names that columns of some stream have (man scstream.5). */
static const char *const taken[] = {"cell", "barcode", "n_counts", "gene", "count", "token", "value", "input", "position", "target",
	"epoch", "step", "neighbour", "rho", "overlap", "x", "logit", NULL};

void obs_release(struct obs *o)
{
	for (size_t i = 0; i < o->ncol; i++) {
		struct obs_column *c = o->col + i;
		for (size_t k = 0; k < c->ncategory; k++)
			free(c->category[k]);
		free(c->category);
		strmap_release(&c->code);
		free(c->source);
		free(c->name);
		free(c->recode);
		dataframe_values_release(&c->values);
	}
	free(o->col);
	free(o->skipped);
	*o = (struct obs){0};
}

static struct obs_column *column(struct obs *o, const char *source)
{
	for (size_t i = 0; i < o->ncol; i++)
		if (strcmp(o->col[i].source, source) == 0)
			return o->col + i;
	grow(o->col, o->cap, o->ncol + 1);
	struct obs_column *c = o->col + o->ncol++;
	*c = (struct obs_column){.source = xstrdup(source), .kind = DATAFRAME_OTHER, .missing = -1};
	int reserved = 0;
	for (int i = 0; taken[i]; i++)
		reserved |= strcmp(taken[i], source) == 0;
	c->name = xasprintf("%s%s", reserved ? "obs_" : "", source);
	return c;
}

static enum dataframe_kind merge(enum dataframe_kind a, enum dataframe_kind b)
{
	if (a == DATAFRAME_OTHER || a == b)
		return b;
	int numbers = (a == DATAFRAME_I64 || a == DATAFRAME_F64) && (b == DATAFRAME_I64 || b == DATAFRAME_F64);
	return numbers ? DATAFRAME_F64 : DATAFRAME_STR;
}

static int wanted(const char *name, int all, char *const *want, size_t nwant)
{
	for (size_t i = 0; i < nwant && !all; i++)
		all |= strcmp(want[i], name) == 0;
	return all;
}

int obs_add(struct obs *o, struct h5ad *h, int all, char *const *want, size_t nwant, struct error *e)
{
	o->nfile++;
	for (size_t i = 0; i < h->obs.ncol; i++) {
		struct dataframe_column *f = h->obs.col + i;
		if (!wanted(f->name, all, want, nwant))
			continue;
		int odd = strpbrk(f->name, "\t\r\n") != NULL;
		if (f->kind == DATAFRAME_OTHER && !all)
			return error_set(e, "%s: %s, so it cannot be carried along", f->where, f->why);
		if (f->kind == DATAFRAME_OTHER || odd) {
			free(o->skipped);
			o->skipped = xasprintf("%s: %s", f->where, odd ? "a name with a tab or line break" : f->why);
			continue;
		}
		struct obs_column *c = column(o, f->name);
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

int obs_header(struct obs *o, struct header *h, char *const *want, size_t nwant, struct error *e)
{
	static const enum column_type type[] = {[DATAFRAME_STR] = STR, [DATAFRAME_I64] = I64, [DATAFRAME_F64] = F64};
	for (size_t i = 0; i < nwant; i++) {
		int there = 0;
		for (size_t k = 0; k < o->ncol; k++)
			there |= strcmp(o->col[k].source, want[i]) == 0;
		if (!there)
			return error_set(e, "no obs column '%s' in %s", want[i], o->nfile == 1 ? "the file" : "any of the files");
	}
	for (size_t i = 0; i < o->ncol; i++) {
		struct obs_column *c = o->col + i;
		char *companion = xasprintf("%s.missing", c->name);
		if (header_find(h, c->name) >= 0 || header_find(h, companion) >= 0) {
			free(companion);
			return error_set(
				e, "obs column '%s' clashes with another column of the stream; leave it out with --obs", c->source);
		}
		/* in a file without the column all values are missing; strings and integers need a companion column to say so */
		c->optional = (c->optional || c->files < o->nfile) && (c->kind == DATAFRAME_STR || c->kind == DATAFRAME_I64);
		c->col = c->kind == DATAFRAME_CATEGORICAL ? header_add_categorical(h, c->name, c->category, c->ncategory)
							  : header_add(h, c->name, type[c->kind]);
		if (c->optional)
			c->missing = header_add(h, companion, U8);
		free(companion);
	}
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
				int whole = c->from && c->from->kind == DATAFRAME_I64;
				((double *)out)[k] = !c->from || (whole && v->missing[at + k]) ? NAN
					: whole                                                ? (double)v->i64[at + k]
											       : v->f64[at + k];
			} else {
				int gone = !c->from || v->missing[at + k];
				((int64_t *)out)[k] = gone ? 0 : v->i64[at + k];
				if (missing)
					missing[k] = (uint8_t)gone;
			}
		}
	}
}
