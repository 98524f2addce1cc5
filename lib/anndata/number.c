#include "anndata/number.h"

#include "base/error.h"

/* the largest counts; as a float, the largest one below 2^31 */
#define MOST_f32 2147483520.0f
#define MOST_f64 ((double)NUMBER_COUNT_MAX)

#define TO_F64(name, ctype) \
	static void f64_##name(const void *in, size_t n, double *restrict out) \
	{ \
		const ctype *restrict v = in; \
		for (size_t i = 0; i < n; i++) \
			out[i] = (double)v[i]; \
	}

/* The functions of one integer type. A negative value becomes a large one when it is made unsigned, so one comparison is enough. */
#define INTEGERS(name, ctype) \
	static size_t indices_##name(const void *in, size_t n, uint64_t limit, uint32_t *restrict out) \
	{ \
		const ctype *restrict v = in; \
		unsigned bad = 0; \
		for (size_t i = 0; i < n; i++) { \
			bad |= (uint64_t)v[i] >= limit; \
			out[i] = (uint32_t)v[i]; \
		} \
		size_t first = bad ? 0 : n; \
		while (first < n && (uint64_t)v[first] < limit) \
			first++; \
		return first; \
	} \
	static size_t counts_##name(const void *in, size_t n, uint32_t *restrict out) \
	{ \
		return indices_##name(in, n, (uint64_t)NUMBER_COUNT_MAX + 1, out); \
	} \
	static void i64_##name(const void *in, size_t n, int64_t *restrict out) \
	{ \
		const ctype *restrict v = in; \
		for (size_t i = 0; i < n; i++) \
			out[i] = (int64_t)v[i]; \
	} \
	TO_F64(name, ctype)

INTEGERS(i8, int8_t)
INTEGERS(u8, uint8_t)
INTEGERS(i16, int16_t)
INTEGERS(u16, uint16_t)
INTEGERS(i32, int32_t)
INTEGERS(u32, uint32_t)
INTEGERS(i64, int64_t)
INTEGERS(u64, uint64_t)

/* NaN fails every comparison, so it is out of range. */
#define FLOATS(name, ctype) \
	static size_t any_counts_##name(const void *in, size_t n, uint32_t *restrict out) \
	{ \
		const ctype *restrict v = in; \
		unsigned bad = 0; \
		for (size_t i = 0; i < n; i++) { \
			int in_range = v[i] >= 0 && v[i] <= MOST_##name; \
			int32_t c = (int32_t)(in_range ? v[i] : 0); \
			out[i] = (uint32_t)c; \
			bad |= !in_range | ((ctype)c != v[i]); \
		} \
		size_t first = bad ? 0 : n; \
		while (first < n && v[first] >= 0 && v[first] <= MOST_##name && (double)v[first] == floor((double)v[first])) \
			first++; \
		return first; \
	} \
	TO_F64(name, ctype)

FLOATS(f32, float)
FLOATS(f64, double)

static size_t counts_f32(const void *in, size_t n, uint32_t *restrict out)
{
	const float *restrict v = in;
	uint32_t bad = 0;
	for (size_t i = 0; i < n; i++)
		bad |= number_small_count(v[i], out + i);
	return bad ? any_counts_f32(in, n, out) : n;
}

static const struct {
	size_t size;
	size_t (*counts)(const void *in, size_t n, uint32_t *out);
	size_t (*indices)(const void *in, size_t n, uint64_t limit, uint32_t *out);
	void (*i64)(const void *in, size_t n, int64_t *out);
	void (*f64)(const void *in, size_t n, double *out);
} convert[] = {
	[NUMBER_I8] = {1, counts_i8, indices_i8, i64_i8, f64_i8},
	[NUMBER_U8] = {1, counts_u8, indices_u8, i64_u8, f64_u8},
	[NUMBER_I16] = {2, counts_i16, indices_i16, i64_i16, f64_i16},
	[NUMBER_U16] = {2, counts_u16, indices_u16, i64_u16, f64_u16},
	[NUMBER_I32] = {4, counts_i32, indices_i32, i64_i32, f64_i32},
	[NUMBER_U32] = {4, counts_u32, indices_u32, i64_u32, f64_u32},
	[NUMBER_I64] = {8, counts_i64, indices_i64, i64_i64, f64_i64},
	[NUMBER_U64] = {8, counts_u64, indices_u64, i64_u64, f64_u64},
	[NUMBER_F32] = {4, counts_f32, NULL, NULL, f64_f32},
	[NUMBER_F64] = {8, any_counts_f64, NULL, NULL, f64_f64},
};
EVERY_ROW(convert, NUMBER_TYPES);

size_t number_counts(enum number_type type, const void *in, size_t n, uint32_t *out)
{
	return convert[type].counts(in, n, out);
}

size_t number_rounded(enum number_type type, const void *in, size_t n, int round, uint32_t *out, double *off)
{
	double v[256];
	for (size_t at = number_counts(type, in, n, out), k; at < n; at += k) {
		k = n - at < 256 ? n - at : 256;
		number_f64(type, (const char *)in + at * convert[type].size, k, v);
		for (size_t i = 0; i < k; i++) {
			double whole = rint(v[i]), far = fabs(v[i] - whole);
			if (!number_is_fraction(v[i]) || (!round && far > number_noise(v[i])))
				return at + i;
			out[at + i] = (uint32_t)whole;
			*off = fmax(*off, far);
		}
	}
	return n;
}

size_t number_indices(enum number_type type, const void *in, size_t n, uint64_t limit, uint32_t *out)
{
	return convert[type].indices(in, n, limit, out);
}

size_t number_i64(enum number_type type, const void *in, size_t n, int64_t *out)
{
	convert[type].i64(in, n, out);
	size_t first = type == NUMBER_U64 ? 0 : n;
	while (first < n && out[first] >= 0)
		first++;
	return first;
}

void number_f64(enum number_type type, const void *in, size_t n, double *out)
{
	convert[type].f64(in, n, out);
}

double number_at(enum number_type type, const void *in, size_t i)
{
	double v;
	number_f64(type, (const char *)in + i * convert[type].size, 1, &v);
	return v;
}

const char *number_fault(double v)
{
	return isnan(v)                ? "a missing value"
		: v < 0                ? "a negative value"
		: isinf(v)             ? "infinite"
		: v > NUMBER_COUNT_MAX ? "too large"
				       : "not a whole number";
}

int number_is_fraction(double v)
{
	return v >= 0 && v <= NUMBER_COUNT_MAX;
}
