/* Numbers for tests: random ones, those of golden files, and how far two arrays are apart. */
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "nn/ops.h"

/* The next of a fixed sequence, < n. */
static inline uint32_t draw(uint32_t n)
{
	static uint32_t x = 1;
	x = x * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)x * n >> 32);
}

static inline float *random_floats(size_t n, float size)
{
	float *x = xcalloc(n, sizeof *x);
	for (size_t i = 0; i < n; i++)
		x[i] = size * ((float)draw(1 << 20) / (1 << 19) - 1);
	return x;
}

/* Largest |a - b| relative to the largest |b|; infinite if a value of either is not finite. */
static inline double apart(const real *a, const double *b, size_t n)
{
	double d = 0, top = 0;
	for (size_t i = 0; i < n; i++) {
		d = fmax(d, fabs(a[i] - b[i]));
		top = fmax(top, fabs(b[i]));
		if (!isfinite(a[i]) || !isfinite(b[i]))
			return INFINITY;
	}
	return top > 0 ? d / top : d;
}

/* The arrays of all golden files that were read: lines of name, numpy's type and length, each before its values. */
static struct array {
	char name[128], type[8];
	size_t n;
	void *data;
} * array;
static size_t narray;
static const char *prefix = ""; /* of the names that find is given */

static inline int read_arrays(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct array a;
	if (!f)
		return -1;
	while (fscanf(f, "%127s %7s %zu", a.name, a.type, &a.n) == 3) {
		size_t bytes = (size_t)(a.type[1] - '0');
		a.data = xcalloc(a.n, bytes);
		array = xrealloc(array, narray + 1, sizeof *array);
		array[narray++] = a;
		if (fgetc(f) != '\n' || fread(a.data, bytes, a.n, f) != a.n)
			return -1;
	}
	fclose(f);
	return narray ? 0 : -1;
}

static inline int free_arrays(void **state)
{
	for (size_t i = 0; i < narray; i++)
		free(array[i].data);
	free(array);
	return 0;
}

/* The array of this name. */
static inline const struct array *find(const char *fmt, ...)
{
	char name[sizeof array->name];
	va_list ap;
	int n = snprintf(name, sizeof name, "%s", prefix);
	va_start(ap, fmt);
	vsnprintf(name + n, sizeof name - (size_t)n, fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < narray; i++)
		if (!strcmp(array[i].name, name))
			return &array[i];
	fail_msg("no array %s", name);
	return NULL;
}
