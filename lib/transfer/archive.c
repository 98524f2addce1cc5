#include "transfer/archive.h"

#include "base/json.h"

#define LARGEST 1e15f /* squares of it, and their sums, are finite */

void archive_refuse(struct archive *a, const char *name, const char *expected)
{
	if (!a->bad)
		a->bad = error_set(a->e, "%s: '%s' of the reference: expected %s", a->path, name, expected);
}

/* The value that is read, of this many items if it is a list; or NULL. */
static const cJSON *field(struct archive *a, const char *name, int list, size_t n)
{
	const cJSON *j = a->bad ? NULL : json_get(a->at, name);
	if (j && (!list || (cJSON_IsArray(j) && (size_t)cJSON_GetArraySize(j) == n)))
		return j;
	archive_refuse(a, name, list ? "a list of another length" : "a value");
	return NULL;
}

/* ---- numbers ---- */

static cJSON *real_of(double x)
{
	char text[DECIMAL];
	return isfinite(x) ? cJSON_CreateRaw(decimal_print(text, x)) : cJSON_CreateString(isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

static int real_from(const cJSON *j, double *x)
{
	const char *text = cJSON_GetStringValue(j);
	*x = !text ? cJSON_GetNumberValue(j) : !strcmp(text, "inf") ? INFINITY : !strcmp(text, "-inf") ? -INFINITY : NAN;
	return cJSON_IsNumber(j) || (text && (isinf(*x) || !strcmp(text, "nan"))) ? 0 : -1;
}

/* n numbers, each `step` bytes behind the last. */
void archive_reals(struct archive *a, const char *name, double *x, size_t n, size_t step)
{
	if (!a->reading) {
		cJSON *list = cJSON_AddArrayToObject(a->at, name);
		for (size_t i = 0; i < n; i++)
			cJSON_AddItemToArray(list, real_of(*(double *)((char *)x + i * step)));
		return;
	}
	const cJSON *list = field(a, name, 1, n), *j;
	size_t i = 0;
	cJSON_ArrayForEach(j, list) if (real_from(j, (double *)((char *)x + i++ * step))) archive_refuse(a, name, "numbers");
}

void archive_real(struct archive *a, const char *name, double *x)
{
	if (!a->reading) {
		cJSON_AddItemToObject(a->at, name, real_of(*x));
		return;
	}
	const cJSON *j = field(a, name, 0, 0);
	if (j && real_from(j, x))
		archive_refuse(a, name, "a number");
}

/* n whole numbers of 4 bytes, or of 8, up to `most`. */
void archive_wholes(struct archive *a, const char *name, void *x, size_t size, size_t n, double most)
{
	FREED double *y = xcalloc(n + 1, sizeof *y);
	for (size_t i = 0; i < n && !a->reading; i++)
		y[i] = size == 4 ? (double)((uint32_t *)x)[i] : (double)((uint64_t *)x)[i];
	archive_reals(a, name, y, n, sizeof *y);
	for (size_t i = 0; i < n && a->reading && !a->bad; i++) {
		if (!(y[i] >= 0 && y[i] <= most && y[i] == floor(y[i])))
			archive_refuse(a, name, "whole numbers in their range");
		else if (size == 4)
			((uint32_t *)x)[i] = (uint32_t)y[i];
		else
			((uint64_t *)x)[i] = (uint64_t)y[i];
	}
}

void archive_whole(struct archive *a, const char *name, size_t *x, size_t most)
{
	uint64_t v = *x;
	archive_wholes(a, name, &v, sizeof v, 1, (double)most);
	*x = (size_t)v;
}

void archive_flag(struct archive *a, const char *name, int *x)
{
	size_t v = (size_t)*x;
	archive_whole(a, name, &v, 1);
	*x = (int)v;
}

/* The places of the ones among n flags. */
void archive_flags(struct archive *a, const char *name, uint8_t **x, size_t n)
{
	size_t ones = 0;
	for (size_t i = 0; i < n && !a->reading; i++)
		ones += (*x)[i];
	if (a->reading) {
		*x = xcalloc(n + 1, 1);
		ones = (size_t)cJSON_GetArraySize(json_get(a->at, name));
	}
	FREED uint64_t *at = xcalloc(ones + 1, sizeof *at);
	for (size_t i = 0, k = 0; i < n && !a->reading; i++)
		if ((*x)[i])
			at[k++] = i;
	archive_wholes(a, name, at, sizeof *at, ones, (double)n - 1);
	for (size_t i = 0; i < ones && a->reading && !a->bad; i++)
		(*x)[at[i]] = 1;
}

/* ---- texts ---- */

void archive_text(struct archive *a, const char *name, char **x)
{
	if (!a->reading) {
		cJSON_AddItemToObject(a->at, name, *x ? cJSON_CreateString(*x) : cJSON_CreateNull());
		return;
	}
	const cJSON *j = field(a, name, 0, 0);
	if (cJSON_IsString(j))
		*x = xstrdup(j->valuestring);
	else if (j && !cJSON_IsNull(j))
		archive_refuse(a, name, "a text");
}

void archive_texts(struct archive *a, const char *name, char ***x, size_t n)
{
	size_t i = 0;
	if (!a->reading) {
		cJSON_AddItemToObject(a->at, name, cJSON_CreateStringArray((const char *const *)*x, (int)n));
		return;
	}
	const cJSON *list = field(a, name, 1, n), *j;
	*x = xcalloc(n + 1, sizeof **x);
	cJSON_ArrayForEach(j, list)
	{
		if (!cJSON_IsString(j))
			archive_refuse(a, name, "texts");
		(*x)[i++] = xstrdup(cJSON_IsString(j) ? j->valuestring : "");
	}
	for (; a->bad && i < n; i++)
		(*x)[i] = xstrdup("");
}

size_t archive_length(const struct archive *a, const char *name)
{
	return (size_t)cJSON_GetArraySize(json_get(a->at, name));
}

/* ---- tensors ---- */

void archive_copy(const struct safetensor_out *t, float *values, void *arg)
{
	const struct matrix *m = (const struct matrix *)arg + t->which;
	for (size_t j = 0; j < m->rows; j++)
		for (size_t c = 0; c < m->columns && !(m->share && !(m->share[j] > 0)); c++) {
			size_t at = j * m->per_row + c * m->per_column;
			*values++ = m->x ? m->x[at] : (float)m->y[at];
		}
}

void archive_tensor(struct archive *a, const char *name, struct matrix m)
{
	size_t rows = 0;
	for (size_t j = 0; j < m.rows; j++)
		rows += !m.share || m.share[j] > 0;
	char *full = xasprintf("%s%s", a->prefix, name);
	if (!a->reading) {
		grow(a->matrix, a->matrix_cap, a->n + 1);
		grow(a->out, a->cap, a->n + 1);
		a->matrix[a->n] = m;
		a->out[a->n] = (struct safetensor_out){.name = full, .ndim = 2, .shape = {rows, m.columns}, .which = (int)a->n};
		a->n++;
		return;
	}
	const struct safetensor *t = a->bad ? NULL : safetensors_find(a->from, full);
	if (!a->bad && (!t || t->ndim != 2 || t->shape[0] != rows || t->shape[1] != m.columns || strcmp(t->dtype, "F32")))
		a->bad = error_set(a->e, "%s: tensor '%s': expected F32 [%zu, %zu]", a->path, full, rows, m.columns);
	FREED float *values = a->bad ? NULL : xmalloc((rows * m.columns + 1) * sizeof *values);
	const float *from = values;
	if (!a->bad)
		a->bad = safetensors_read(a->from, t, values, a->e);
	for (size_t j = 0; j < m.rows && !a->bad; j++)
		for (size_t c = 0; c < m.columns && !(m.share && !(m.share[j] > 0)); c++, from++) {
			size_t at = j * m.per_row + c * m.per_column;
			if (!(fabsf(*from) < LARGEST))
				archive_refuse(a, full, "smaller numbers");
			if (m.x)
				m.x[at] = *from;
			else
				m.y[at] = (double)*from;
		}
	free(full);
}

struct cJSON *archive_enter(struct archive *a, const char *name)
{
	struct cJSON *before = a->at;
	a->at = a->reading ? json_get(before, name) : cJSON_AddObjectToObject(before, name);
	return before;
}
