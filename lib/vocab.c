#include "vocab.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>

void vocab_release(struct vocab *v)
{
	for (size_t i = 0; i < v->n; i++) {
		free(v->id[i]);
		free(v->symbol[i]);
	}
	free(v->id);
	free(v->symbol);
	free(v->median);
	free(v->sorted);
	*v = (struct vocab){0};
}

void vocab_push(struct vocab *v, const char *id, const char *symbol, double median)
{
	if (v->n == v->cap) {
		v->cap = v->cap ? v->cap * 2 : 1024;
		v->id = xrealloc(v->id, v->cap, sizeof *v->id);
		v->symbol = xrealloc(v->symbol, v->cap, sizeof *v->symbol);
		v->median = xrealloc(v->median, v->cap, sizeof *v->median);
	}
	if (v->nspecial == v->n && id[0] == '<' && id[strlen(id) - 1] == '>')
		v->nspecial++;
	v->id[v->n] = xstrdup(id);
	v->symbol[v->n] = xstrdup(symbol ? symbol : "");
	v->median[v->n++] = median;
	free(v->sorted);
	v->sorted = NULL;
}

void vocab_copy(struct vocab *to, const struct vocab *from)
{
	*to = (struct vocab){0};
	for (size_t i = 0; i < from->n; i++)
		vocab_push(to, from->id[i], from->symbol[i], from->median[i]);
	to->nspecial = from->nspecial;
	if (from->sorted) {
		to->sorted = xmalloc(from->n * sizeof *to->sorted);
		memcpy(to->sorted, from->sorted, from->n * sizeof *to->sorted);
	}
}

static int by_id(const void *a, const void *b, void *vocab)
{
	const struct vocab *v = vocab;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = strcmp(v->id[x], v->id[y]);
	return c ? c : (x > y) - (x < y);
}

int vocab_index(struct vocab *v, const char *name, struct error *e)
{
	free(v->sorted);
	v->sorted = xmalloc(v->n * sizeof *v->sorted);
	for (size_t i = 0; i < v->n; i++)
		v->sorted[i] = (uint32_t)i;
	qsort_r(v->sorted, v->n, sizeof *v->sorted, by_id, v);
	for (size_t i = 1; i < v->n; i++) {
		uint32_t a = v->sorted[i - 1], b = v->sorted[i];
		if (strcmp(v->id[a], v->id[b]) == 0)
			return error_set(e, "%s: gene id %s stands twice, at rows %u and %u; ids must be unique",
					 name, v->id[a], a, b);
	}
	return 0;
}

int64_t vocab_find(const struct vocab *v, const char *id)
{
	size_t lo = 0, hi = v->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = strcmp(v->id[v->sorted[mid]], id);
		if (c == 0)
			return v->sorted[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -1;
}

/* Split a line in place at tabs; returns the number of fields, at most max. */
static int split(char *line, char **field, int max)
{
	int n = 0;
	for (char *p = line; n < max; p++) {
		field[n++] = p;
		p = strchr(p, '\t');
		if (!p)
			break;
		*p = 0;
	}
	return n;
}

static int parse_row(struct vocab *v, char *line, const char *path, size_t lineno, struct error *e)
{
	char *f[5], *end;
	int n = split(line, f, 5);
	if (n != 4)
		return error_set(e, "%s: line %zu: found %d fields, expected 4 (token, gene_id, symbol, median)", path, lineno, n);
	unsigned long token = strtoul(f[0], &end, 10);
	if (!isdigit((unsigned char)f[0][0]) || *end || token != v->n)
		return error_set(e, "%s: line %zu: token '%.40s', expected %zu (tokens are numbered from 0 without gaps)",
				 path, lineno, f[0], v->n);
	if (!f[1][0])
		return error_set(e, "%s: line %zu: empty gene_id", path, lineno);
	double median = NAN;
	if (strcmp(f[3], "NA")) {
		median = strtod(f[3], &end);
		if (!f[3][0] || *end || !(median > 0) || isinf(median))
			return error_set(e, "%s: line %zu: median '%.40s', expected a number above 0, or NA", path, lineno, f[3]);
	}
	if (v->n == VOCAB_MAX)
		return error_set(e, "%s: more than %u genes", path, VOCAB_MAX);
	vocab_push(v, f[1], f[2], median);
	return 0;
}

static int load(struct vocab *v, gzFile f, const char *path, struct error *e)
{
	char line[4096];
	for (size_t lineno = 1; gzgets(f, line, sizeof line); lineno++) {
		size_t n = strlen(line);
		if (n == sizeof line - 1 && line[n - 1] != '\n')
			return error_set(e, "%s: line %zu is longer than %zu bytes", path, lineno, sizeof line - 2);
		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = 0;
		if (lineno == 1 && strcmp(line, "token\tgene_id\tsymbol\tmedian") == 0)
			continue;
		if (lineno == 1)
			return error_set(e, "%s: line 1 is '%.60s', expected the column names token, gene_id, symbol, median",
					 path, line);
		if (parse_row(v, line, path, lineno, e))
			return -1;
	}
	int code;
	const char *why = gzerror(f, &code);
	if (code != Z_OK && code != Z_STREAM_END)
		return error_set(e, "%s: %s", path, code == Z_ERRNO ? strerror(errno) : why);
	if (v->n == v->nspecial)
		return error_set(e, "%s: no genes in this vocabulary", path);
	return vocab_index(v, path, e);
}

int vocab_load(struct vocab *v, const char *path, struct error *e)
{
	*v = (struct vocab){0};
	gzFile f = gzopen(path, "rb");
	if (!f)
		return error_set(e, "%s: %s", path, strerror(errno));
	int r = load(v, f, path, e);
	gzclose(f);
	if (r)
		vocab_release(v);
	return r;
}

/* Next line of a two-column table: 1 (field[0], field[1] set), 0 at the end, -1 error. Skips the line of column names. */
static int next_pair(gzFile f, char *line, size_t cap, const char *path, size_t *lineno, char **field, struct error *e)
{
	while (gzgets(f, line, (int)cap)) {
		size_t n = strlen(line);
		(*lineno)++;
		if (n == cap - 1 && line[n - 1] != '\n')
			return error_set(e, "%s: line %zu is longer than %zu bytes", path, *lineno, cap - 2);
		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = 0;
		char *rest[3];
		int got = split(line, rest, 3);
		if (got != 2)
			return error_set(e, "%s: line %zu: found %d fields, expected 2", path, *lineno, got);
		field[0] = rest[0];
		field[1] = rest[1];
		if (*lineno > 1)
			return 1;
		char *end;
		strtod(rest[1], &end);
		if (rest[1][0] && !*end)
			return error_set(e, "%s: line 1 is data, expected column names", path);
	}
	int code;
	const char *why = gzerror(f, &code);
	return code == Z_OK || code == Z_STREAM_END ? 0 : error_set(e, "%s: %s", path, code == Z_ERRNO ? strerror(errno) : why);
}

static int load_tokens(struct vocab *v, gzFile f, const char *path, struct error *e)
{
	char line[4096], *field[2], **name = NULL, *end;
	size_t cap = 0, n = 0, lineno = 0;
	int got;
	while ((got = next_pair(f, line, sizeof line, path, &lineno, field, e)) > 0) {
		unsigned long id = strtoul(field[1], &end, 10);
		if (!isdigit((unsigned char)field[1][0]) || *end || id >= VOCAB_MAX || !field[0][0]) {
			got = error_set(e, "%s: line %zu: '%.40s', expected a token and its number", path, lineno, field[1]);
			break;
		}
		size_t old = cap;
		grow(name, cap, id + 1);
		memset(name + old, 0, (cap - old) * sizeof *name);
		if (name[id]) {
			got = error_set(e, "%s: line %zu: number %lu stands twice", path, lineno, id);
			break;
		}
		name[id] = xstrdup(field[0]);
		n = id + 1 > n ? id + 1 : n;
	}
	for (size_t i = 0; i < n; i++) {
		if (got == 0 && !name[i])
			got = error_set(e, "%s: no token has number %zu, expected 0 to %zu without gaps", path, i, n - 1);
		if (got == 0)
			vocab_push(v, name[i], "", NAN);
		free(name[i]);
	}
	free(name);
	if (got == 0 && v->n == v->nspecial)
		got = error_set(e, "%s: no genes in this table", path);
	return got ? got : vocab_index(v, path, e);
}

static int load_medians(struct vocab *v, gzFile f, const char *path, struct error *e)
{
	char line[4096], *field[2], *end;
	size_t lineno = 0;
	int got;
	while ((got = next_pair(f, line, sizeof line, path, &lineno, field, e)) > 0) {
		double m = strtod(field[1], &end);
		if (!field[1][0] || *end || !(m > 0) || isinf(m))
			return error_set(e, "%s: line %zu: median '%.40s', expected a number above 0", path, lineno, field[1]);
		int64_t i = vocab_find(v, field[0]);
		if (i >= 0)
			v->median[i] = m;
	}
	for (size_t i = v->nspecial; i < v->n && got == 0; i++)
		if (isnan(v->median[i]))
			got = error_set(e, "%s: no median for gene %s of the token table: do the two belong together?", path, v->id[i]);
	return got;
}

int vocab_load_geneformer(struct vocab *v, const char *tokens, const char *medians, struct error *e)
{
	*v = (struct vocab){0};
	const char *path[2] = {tokens, medians};
	int r = 0;
	for (int i = 0; i < 2 && r == 0; i++) {
		gzFile f = gzopen(path[i], "rb");
		if (!f) {
			r = error_set(e, "%s: %s", path[i], strerror(errno));
			break;
		}
		r = i == 0 ? load_tokens(v, f, tokens, e) : load_medians(v, f, medians, e);
		gzclose(f);
	}
	if (r)
		vocab_release(v);
	return r;
}

int vocab_save(const struct vocab *v, FILE *f)
{
	fputs("token\tgene_id\tsymbol\tmedian\n", f);
	for (size_t i = 0; i < v->n; i++) {
		fprintf(f, "%zu\t%s\t%s\t", i, v->id[i], v->symbol[i]);
		if (isnan(v->median[i]))
			fputs("NA\n", f);
		else
			fprintf(f, "%.17g\n", v->median[i]);
	}
	return fflush(f) || ferror(f) ? -1 : 0;
}

static void hex128(XXH128_hash_t h, char hex[33])
{
	snprintf(hex, 33, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

void vocab_digest(const struct vocab *v, char hex[33])
{
	XXH3_state_t *x = XXH3_createState();
	XXH3_128bits_reset(x);
	for (size_t i = 0; i < v->n; i++)
		XXH3_128bits_update(x, v->id[i], strlen(v->id[i]) + 1);
	hex128(XXH3_128bits_digest(x), hex);
	XXH3_freeState(x);
}

void vocab_median_digest(const struct vocab *v, char hex[33])
{
	XXH3_state_t *x = XXH3_createState();
	XXH3_128bits_reset(x);
	for (size_t i = 0; i < v->n; i++) {
		/* one NaN for all, so that "unknown" hashes alike wherever it came from */
		double m = isnan(v->median[i]) ? NAN : v->median[i];
		XXH3_128bits_update(x, &m, sizeof m);
	}
	hex128(XXH3_128bits_digest(x), hex);
	XXH3_freeState(x);
}
