/*
 * Numbers as they are stored in a file, of ten types, and what the readers make of them: counts, indices, integers, doubles.
 *
 * A function that can refuse a value returns the number of the first one that it refuses, and n if it takes all of them. The loops
 * are written so that a run of good values has no branch. Only a run that holds a bad value is searched again.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NUMBER_COUNT_MAX INT32_MAX /* largest count */

enum number_type {
	NUMBER_I8,
	NUMBER_U8,
	NUMBER_I16,
	NUMBER_U16,
	NUMBER_I32,
	NUMBER_U32,
	NUMBER_I64,
	NUMBER_U64,
	NUMBER_F32,
	NUMBER_F64,
	NUMBER_TYPES
};

static inline int number_is_float(enum number_type type)
{
	return type == NUMBER_F32 || type == NUMBER_F64;
}

/* The smallest type for integers of this many bytes, 1 to 8. In the enum, each signed type is before its unsigned one. */
static inline enum number_type number_integer(size_t size, int is_signed)
{
	enum number_type type = size == 1 ? NUMBER_U8 : size == 2 ? NUMBER_U16 : size <= 4 ? NUMBER_U32 : NUMBER_U64;
	return is_signed ? type - 1 : type;
}

/* in [n] to counts: whole numbers from 0 to NUMBER_COUNT_MAX. */
size_t number_counts(enum number_type type, const void *in, size_t n, uint32_t *out);

/* The same, but values that are whole but for noise are rounded to the nearest whole number; with `round` all are, halves to the even one. *off is
 * raised to the largest distance from a whole number. */
size_t number_rounded(enum number_type type, const void *in, size_t n, int round, uint32_t *out, double *off);

/* Counts that were once divided and multiplied back in float32 differ from whole numbers by so much. */
static inline double number_noise(double v)
{
	return v < 25000 ? 1e-4 + 4e-6 * v : .1;
}

/* in [n], integers, to indices: from 0 to limit - 1. */
size_t number_indices(enum number_type type, const void *in, size_t n, uint64_t limit, uint32_t *out);

/* in [n], integers, to signed integers. Only values from 2^63 on are refused. */
size_t number_i64(enum number_type type, const void *in, size_t n, int64_t *out);

/* in [n] to doubles. Integers beyond 2^53 are rounded. */
void number_f64(enum number_type type, const void *in, size_t n, double *out);

/* Value i of in, for messages. */
double number_at(enum number_type type, const void *in, size_t i);

/* What keeps v, which is no count, from being one, for messages; and whether it is only that it is not whole. */
const char *number_fault(double v);
int number_is_fraction(double v);

/*
 * The common case, a float that is a count below 2^23. Adding 2^23 to such a v gives a float whose low bits are the count:
 *
 *     v + 2^23 =  | sign 0 | exponent 150 (8 bits) | count (23 bits) |        upper 9 bits: 0x4b000000 >> 23
 *
 * Returns 0 if v is such a count. NaN, negative and large values give other upper bits, and a fraction does not survive the addition.
 */
static inline uint32_t number_small_count(float v, uint32_t *count)
{
	float shifted = v + 0x1p23f;
	uint32_t bits;
	memcpy(&bits, &shifted, 4);
	*count = bits & 0x7fffff;
	return (bits ^ 0x4b000000) >> 23 | (uint32_t)(shifted - 0x1p23f != v);
}
