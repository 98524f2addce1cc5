/* Orders for qsort and bsearch: by the value that each element is, or begins with. */
#pragma once

#include <stdint.h>
#include <string.h>

#define ORDER(x, y) (((x) > (y)) - ((x) < (y))) /* -1: x comes before y, 0: neither, 1: after; a ?: b orders by a, then by b */

/* COMPARE(by_end, struct run, ORDER(a->end, b->end) ?: ORDER(a->row, b->row)): the function by_end for qsort, of elements a and b of this type. */
#define COMPARE(name, type, order) \
	static int name(const void *first, const void *second) \
	{ \
		const __typeof__(type) *a = first, *b = second; \
		return order; \
	}

static inline int compare_u32(const void *a, const void *b)
{
	return ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Of elements that begin with two of them */
static inline int compare_two_u32(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return ORDER(x[0], y[0]) ?: ORDER(x[1], y[1]);
}

static inline int compare_u64(const void *a, const void *b)
{
	return ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

static inline int compare_double(const void *a, const void *b)
{
	return ORDER(*(const double *)a, *(const double *)b);
}

static inline int compare_double_down(const void *a, const void *b)
{
	return compare_double(b, a);
}

/* LEADING(n, i, test): how many of 0, 1, ... n - 1 pass the test, an expression of i that holds up to one of them and for none after it. By halving. */
#define LEADING(n, i, test) \
	__extension__({ \
		size_t passed_ = 0, end_ = (n); \
		while (passed_ < end_) { \
			const size_t i = passed_ + (end_ - passed_) / 2; \
			if (test) \
				passed_ = i + 1; \
			else \
				end_ = i; \
		} \
		passed_; \
	})

struct ranked {
	double value; /* that gives the order; of equal ones the lower `at` is first */
	uint32_t at; /* what has it: the number of a row, a gene, ... */
};

static inline int compare_ranked(const void *first, const void *second)
{
	const struct ranked *a = first, *b = second;
	return ORDER(a->value, b->value) ?: ORDER(a->at, b->at);
}

static inline int compare_ranked_down(const void *first, const void *second)
{
	const struct ranked *a = first, *b = second;
	return ORDER(b->value, a->value) ?: ORDER(a->at, b->at);
}

static inline int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}
