#include "stream/vocab.h"

#include "base/digest.h"
#include "base/sort.h"
#include "base/tsv.h"

#include <ctype.h>

void vocab_release(struct vocab *v)
{
	for (size_t i = 0; i < v->n; i++) {
		free_all(v->id[i], v->symbol[i]);
		if (v->alias)
			free(v->alias[i]);
	}
	free(v->alias);
	strmap_release(&v->aliases);
	free_all(v->id, v->symbol, v->median, v->sorted);
	*v = (struct vocab){0};
}

int vocab_is_bmfm(const struct vocab *v)
{
	return v->n && strcmp(v->id[0], "[UNK]") == 0;
}

/* Is a row with this id special, if all rows before it are? */
static int is_special(const struct vocab *v, const char *id)
{
	char last = *id ? id[strlen(id) - 1] : 0;
	return (id[0] == '<' && last == '>') || (id[0] == '[' && last == ']' && (vocab_is_bmfm(v) || (!v->n && !strcmp(id, "[UNK]"))));
}

void vocab_push(struct vocab *v, const char *id, const char *symbol, double median)
{
	if (v->n == v->cap) {
		v->cap = v->cap ? v->cap * 2 : 1024;
		v->id = xrealloc(v->id, v->cap, sizeof *v->id);
		v->symbol = xrealloc(v->symbol, v->cap, sizeof *v->symbol);
		v->median = xrealloc(v->median, v->cap, sizeof *v->median);
		if (v->alias)
			v->alias = xrealloc(v->alias, v->cap, sizeof *v->alias);
	}
	if (v->nspecial == v->n && is_special(v, id))
		v->nspecial++;
	v->id[v->n] = xstrdup(id);
	v->symbol[v->n] = xstrdup(symbol ? symbol : "");
	if (v->alias)
		v->alias[v->n] = xstrdup("");
	v->median[v->n++] = median;
	free(v->sorted);
	v->sorted = NULL;
}

void vocab_alias(struct vocab *v, const char *alias)
{
	if (!*alias)
		return;
	if (!v->alias) {
		v->alias = xcalloc(v->cap, sizeof *v->alias);
		for (size_t i = 0; i < v->n; i++)
			v->alias[i] = xstrdup("");
	}
	free(v->alias[v->n - 1]);
	v->alias[v->n - 1] = xstrdup(alias);
}

static int index_aliases(struct vocab *v, const char *name, struct error *e)
{
	strmap_release(&v->aliases);
	for (size_t i = 0; v->alias && i < v->n; i++)
		for (const char *s = v->alias[i], *end; *s; s = *end ? end + 1 : end) {
			end = s + strcspn(s, "|");
			uint32_t row = end > s ? strmap_put(&v->aliases, s, (size_t)(end - s), (uint32_t)i) : (uint32_t)i;
			if (row != i)
				return error_set(e, "%s: '%.*s' is an alias of %s and of %s; aliases must be unique", name, (int)(end - s),
					s, v->id[row], v->id[i]);
		}
	return 0;
}

void vocab_copy(struct vocab *to, const struct vocab *from)
{
	*to = (struct vocab){0};
	for (size_t i = 0; i < from->n; i++) {
		vocab_push(to, from->id[i], from->symbol[i], from->median[i]);
		vocab_alias(to, from->alias ? from->alias[i] : "");
	}
	to->nspecial = from->nspecial;
	if (from->sorted) {
		to->sorted = xmalloc(from->n * sizeof *to->sorted);
		memcpy(to->sorted, from->sorted, from->n * sizeof *to->sorted);
		index_aliases(to, "", NULL); /* those of `from` were unique */
	}
}

static int by_id(const void *a, const void *b, void *vocab)
{
	const struct vocab *v = vocab;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = strcmp(v->id[x], v->id[y]);
	return c ? c : (x > y) - (x < y);
}

unsigned char vocab_control(const char *s)
{
	while ((unsigned char)*s >= 0x20 && *s != 0x7f)
		s++;
	return (unsigned char)*s;
}

int vocab_index(struct vocab *v, const char *name, struct error *e)
{
	for (size_t i = 0; i < v->n; i++) {
		unsigned char c = vocab_control(v->id[i]) ? vocab_control(v->id[i]) : vocab_control(v->symbol[i]);
		if (!c && v->alias)
			c = vocab_control(v->alias[i]);
		if (c)
			return error_set(e, "%s: the name of gene %zu has the control character 0x%02x", name, i, c);
	}
	free(v->sorted);
	v->sorted = xmalloc(v->n * sizeof *v->sorted);
	for (size_t i = 0; i < v->n; i++)
		v->sorted[i] = (uint32_t)i;
	qsort_r(v->sorted, v->n, sizeof *v->sorted, by_id, v);
	for (size_t i = 1; i < v->n; i++) {
		uint32_t a = v->sorted[i - 1], b = v->sorted[i];
		if (strcmp(v->id[a], v->id[b]) == 0)
			return error_set(e, "%s: gene id %s occurs twice, in rows %u and %u; ids must be unique", name, v->id[a], a, b);
	}
	return index_aliases(v, name, e);
}

int64_t vocab_find(const struct vocab *v, const char *id)
{
	size_t k = LEADING(v->n, i, strcmp(v->id[v->sorted[i]], id) < 0);
	return k < v->n && !strcmp(v->id[v->sorted[k]], id) ? (int64_t)v->sorted[k] : -1;
}

int64_t vocab_find_alias(const struct vocab *v, const char *name, size_t n)
{
	uint32_t row = strmap_get(&v->aliases, name, n);
	return row == STRMAP_NONE ? -1 : (int64_t)row;
}

const char *vocab_token_name(const struct vocab *v, enum token which)
{
	static const char *const names[2][4] = {{"<pad>", "<mask>", "<cls>", "<eos>"}, {"[PAD]", "[MASK]", "[CLS]", "[SEP]"}};
	return names[vocab_is_bmfm(v)][which];
}

int64_t vocab_token(const struct vocab *v, enum token which)
{
	return vocab_find(v, vocab_token_name(v, which));
}

static void cls_name(char name[16], unsigned k)
{
	snprintf(name, 16, k ? "[CLS_%u]" : "[CLS]", k - 1);
}

int64_t vocab_cls(const struct vocab *v, unsigned k)
{
	char name[16];
	cls_name(name, k);
	return vocab_find(v, name);
}

void vocab_push_bmfm(struct vocab *v)
{
	static const char *const first[] = {"[UNK]", "[SEP]", "[PAD]"}, *const last[] = {"[S]", "[T]"};
	char name[16];
	for (size_t i = 0; i < 3; i++)
		vocab_push(v, first[i], "", NAN);
	for (unsigned k = 0; k < CLS_MAX; k++) {
		cls_name(name, k);
		vocab_push(v, name, "", NAN);
		if (!k)
			vocab_push(v, "[MASK]", "", NAN);
	}
	for (size_t i = 0; i < 2; i++)
		vocab_push(v, last[i], "", NAN);
}

static int parse_row(struct vocab *v, const struct tsv *t, size_t columns, struct error *e)
{
	char **f = t->field, *end;
	if (t->n != columns)
		return tsv_error(t, e, "found %zu fields, expected %zu, as in the first line", t->n, columns);
	unsigned long token = strtoul(f[0], &end, 10);
	if (!isdigit((unsigned char)f[0][0]) || *end || token != v->n)
		return tsv_error(t, e, "token '%.40s', expected %zu (tokens are numbered from 0 without gaps)", f[0], v->n);
	if (!f[1][0])
		return tsv_error(t, e, "empty gene_id");
	double median = NAN;
	if (strcmp(f[3], "NA")) {
		median = strtod(f[3], &end);
		if (!f[3][0] || *end || !(median > 0) || isinf(median))
			return tsv_error(t, e, "median '%.40s', expected a number above 0, or NA", f[3]);
	}
	if (v->n == VOCAB_MAX)
		return tsv_error(t, e, "more than %u genes", VOCAB_MAX);
	vocab_push(v, f[1], f[2], median);
	vocab_alias(v, columns == 5 ? f[4] : "");
	return 0;
}

static int load(struct vocab *v, struct tsv *t, const char *path, struct error *e)
{
	static const char *const names[] = {"token", "gene_id", "symbol", "median", "aliases"};
	int got = tsv_next(t, e);
	if (got < 0)
		return -1;
	size_t columns = t->n == 5 ? 5 : 4;
	for (size_t i = 0; got && i < columns; i++)
		if (t->n != columns || strcmp(t->field[i], names[i]))
			return tsv_error(t, e, "expected a vocabulary, which begins with the column names token, gene_id, symbol, median");
	while ((got = tsv_next(t, e)) > 0)
		if (parse_row(v, t, columns, e))
			return -1;
	if (got < 0)
		return -1;
	if (v->n == v->nspecial)
		return error_set(e, "%s: no genes in this vocabulary", path);
	return vocab_index(v, path, e);
}

int vocab_load(struct vocab *v, const char *path, struct error *e)
{
	RELEASED(tsv_close) struct tsv t;
	*v = (struct vocab){0};
	int bad = tsv_open(&t, path, e) || load(v, &t, path, e);
	if (bad)
		vocab_release(v);
	return bad ? -1 : 0;
}

/* The next line of a table of two columns; the line of column names is skipped. 1, 0 at the end, -1 with e set. */
static int next_pair(struct tsv *t, struct error *e)
{
	for (;;) {
		int got = tsv_next(t, e);
		if (got < 1)
			return got;
		if (t->n != 2)
			return tsv_error(t, e, "found %zu fields, expected 2", t->n);
		if (t->line > 1)
			return 1;
		char *end;
		strtod(t->field[1], &end);
		if (t->field[1][0] && !*end)
			return tsv_error(t, e, "this line holds data, expected column names");
	}
}

/* name [*n]: the token of each number, NULL if there is none. */
static int read_tokens(struct tsv *t, char ***name, size_t *n, struct error *e)
{
	size_t cap = 0;
	int got;
	while ((got = next_pair(t, e)) > 0) {
		char *end;
		unsigned long id = strtoul(t->field[1], &end, 10);
		if (!isdigit((unsigned char)t->field[1][0]) || *end || id >= VOCAB_MAX || !t->field[0][0])
			return tsv_error(t, e, "'%.40s', expected a token and its number", t->field[1]);
		size_t old = cap;
		grow(*name, cap, id + 1);
		memset(*name + old, 0, (cap - old) * sizeof **name);
		if (id < *n && (*name)[id])
			return tsv_error(t, e, "number %lu occurs twice", id);
		(*name)[id] = xstrdup(t->field[0]);
		*n = id + 1 > *n ? id + 1 : *n;
	}
	return got;
}

static int load_tokens(struct vocab *v, struct tsv *t, const char *path, struct error *e)
{
	FREED char **name = NULL;
	size_t n = 0;
	int bad = read_tokens(t, &name, &n, e);
	for (size_t i = 0; i < n; i++) {
		if (!bad && !name[i])
			bad = error_set(e, "%s: no token has number %zu, expected 0 to %zu without gaps", path, i, n - 1);
		if (!bad)
			vocab_push(v, name[i], "", NAN);
		free(name[i]);
	}
	if (!bad && v->n == v->nspecial)
		bad = error_set(e, "%s: no genes in this table", path);
	return bad ? bad : vocab_index(v, path, e);
}

static int load_medians(struct vocab *v, struct tsv *t, const char *path, struct error *e)
{
	int got;
	while ((got = next_pair(t, e)) > 0) {
		char *end;
		double m = strtod(t->field[1], &end);
		if (!t->field[1][0] || *end || !(m > 0) || isinf(m))
			return tsv_error(t, e, "median '%.40s', expected a number above 0", t->field[1]);
		int64_t i = vocab_find(v, t->field[0]);
		if (i >= 0)
			v->median[i] = m;
	}
	for (size_t i = v->nspecial; i < v->n && got == 0; i++)
		if (isnan(v->median[i]))
			got = error_set(
				e, "%s: no median for gene %s of the token table; the two tables do not belong together", path, v->id[i]);
	return got;
}

int vocab_load_geneformer(struct vocab *v, const char *tokens, const char *medians, struct error *e)
{
	RELEASED(tsv_close) struct tsv t = {0}, m = {0};
	*v = (struct vocab){0};
	int bad = tsv_open(&t, tokens, e) || load_tokens(v, &t, tokens, e) || tsv_open(&m, medians, e) || load_medians(v, &m, medians, e);
	if (bad)
		vocab_release(v);
	return bad ? -1 : 0;
}

int vocab_save(const struct vocab *v, FILE *f)
{
	fprintf(f, "token\tgene_id\tsymbol\tmedian%s\n", v->alias ? "\taliases" : "");
	for (size_t i = 0; i < v->n; i++) {
		fprintf(f, "%zu\t%s\t%s\t", i, v->id[i], v->symbol[i]);
		fprintf(f, isnan(v->median[i]) ? "NA" : "%.17g", v->median[i]);
		fprintf(f, v->alias ? "\t%s\n" : "\n", v->alias ? v->alias[i] : NULL);
	}
	return fflush(f) || ferror(f) ? -1 : 0;
}

void vocab_digest(const struct vocab *v, char hex[33])
{
	XXH3_state_t *x = xchecked(XXH3_createState());
	XXH3_128bits_reset(x);
	for (size_t i = 0; i < v->n; i++)
		XXH3_128bits_update(x, v->id[i], strlen(v->id[i]) + 1);
	digest_hex(XXH3_128bits_digest(x), hex);
	XXH3_freeState(x);
}

int vocab_equal(const struct vocab *a, const struct vocab *b)
{
	char x[33], y[33];
	vocab_digest(a, x);
	vocab_digest(b, y);
	return !strcmp(x, y);
}

void vocab_median_digest(const struct vocab *v, char hex[33])
{
	XXH3_state_t *x = xchecked(XXH3_createState());
	XXH3_128bits_reset(x);
	for (size_t i = 0; i < v->n; i++) {
		/* the same NaN for all, so that the digest does not depend on its bits */
		double m = isnan(v->median[i]) ? NAN : v->median[i];
		XXH3_128bits_update(x, &m, sizeof m);
	}
	digest_hex(XXH3_128bits_digest(x), hex);
	XXH3_freeState(x);
}
