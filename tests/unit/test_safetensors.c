/* safetensors: what is written comes back; every malformed header and flipped bit is refused; half and bfloat16 are the compiler's. */
#include "base/bytes.h"
#include "base/safetensors.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/corrmask-test-XXXXXX";
static char path[64];

static void fill(const struct safetensor_out *t, float *values, void *arg)
{
	for (int i = 0; i < 6; i++)
		values[i] = (float)(t->which * 10 + i) / 3;
}

static void put_file(const char *json, size_t pad, const void *data, size_t n)
{
	uint8_t head[8];
	FILE *f = fopen(path, "w");
	put_le64(head, strlen(json) + pad);
	fwrite(head, 1, 8, f);
	fputs(json, f);
	for (size_t i = 0; i < pad; i++)
		fputc(' ', f);
	fwrite(data, 1, n, f);
	fclose(f);
}

enum { SMALL = 512 };

/* The bytes of the file, of which there are fewer than SMALL. */
static size_t get_file(char bytes[SMALL])
{
	FILE *f = fopen(path, "r");
	size_t n = fread(bytes, 1, SMALL, f);
	assert_true(n < SMALL);
	fclose(f);
	return n;
}

static void put_bytes(const char *bytes, size_t n)
{
	FILE *f = fopen(path, "w");
	fwrite(bytes, 1, n, f);
	fclose(f);
}

static void refused(const char *json, size_t n, const char *why)
{
	struct safetensors s;
	struct error e;
	char zeros[64] = {0};
	put_file(json, 0, zeros, n);
	if (safetensors_open(&s, path, &e) == 0)
		fail_msg("accepted: %s", json);
	if (!strstr(e.msg, why) || !strstr(e.msg, path))
		fail_msg("%s\n  gives: %s\n  expected: %s", json, e.msg, why);
}

static void round_trip(void **state)
{
	struct safetensors s;
	struct error e;
	struct safetensor_out out[] = {
		{.name = "b", .ndim = 2, .shape = {2, 3}, .which = 1}, {.name = "a\"", .ndim = 1, .shape = {6}, .which = 2}};
	assert_int_equal(safetensors_write(path, out, 2, fill, NULL, NULL, 0, &e), 0);
	/* the bytes of the reference library, header padded to a multiple of 8; the digest with zeros in its place */
	char want[] =
		"{\"__metadata__\":{\"corrmask_digest\":\"xxh3:00000000000000000000000000000000\",\"format\":\"pt\"},\"a\\\"\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]},"
		"\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24,48]}}",
	     got[SMALL], hex[DIGEST_SIZE], again[DIGEST_SIZE];
	size_t n = get_file(got), len = (strlen(want) + 7) / 8 * 8;
	char *digest = strstr(got + 8, "xxh3:") + 5;
	assert_int_equal(n, 8 + len + 48);
	assert_int_equal(get_le64((uint8_t *)got), len);
	memcpy(hex, digest, 32);
	hex[32] = 0;
	memset(digest, '0', 32);
	assert_memory_equal(got + 8, want, strlen(want));
	digest_bytes(got, n, again);
	assert_string_equal(again, hex);
	assert_int_equal(safetensors_open(&s, path, &e), 0);
	assert_int_equal(s.n, 2);
	const struct safetensor *t = safetensors_find(&s, "b");
	assert_non_null(t);
	assert_int_equal(t->ndim, 2);
	assert_int_equal(t->shape[1], 3);
	float x[6], y[6];
	fill(&out[1], y, NULL);
	assert_int_equal(safetensors_read(&s, t, x, &e), 0);
	assert_memory_equal(x, y, sizeof x);
	assert_null(safetensors_find(&s, "c"));
	assert_int_equal(safetensors_digest(&s, again, &e), 0); /* in another order than that of the data */
	assert_string_equal(again, hex);
	safetensors_close(&s);
	out[1].name = "a\"";
	assert_int_equal(safetensors_write(path, out, 2, fill, NULL, NULL, 0, &e), -1);
	assert_non_null(strstr(e.msg, "two tensors named"));
	assert_int_equal(safetensors_write("/dev/full", out, 1, fill, NULL, NULL, 0, &e), -1);
}

/* All values and the digest, in this order. */
static int read_all(struct error *e)
{
	struct safetensors s;
	char hex[DIGEST_SIZE];
	float x[16];
	if (safetensors_open(&s, path, e))
		return -1;
	int bad = 0;
	for (size_t i = 0; i < s.n && !bad; i++)
		bad = safetensors_read(&s, &s.tensor[i], x, e);
	bad = bad || safetensors_digest(&s, hex, e);
	safetensors_close(&s);
	return bad;
}

static void every_bit(void **state)
{
	struct error e;
	char bytes[SMALL];
	struct text_file beside = {"table.tsv", (char[]){"a\tb\n"}};
	for (size_t nbeside = 0; nbeside < 2; nbeside++) {
		struct safetensor_out out[] = {{.name = "w", .ndim = 2, .shape = {2, 3}}, {.name = "b", .ndim = 1, .shape = {6}}};
		assert_int_equal(safetensors_write(path, out, 2, fill, NULL, &beside, nbeside, &e), 0);
		assert_int_equal(read_all(&e), 0);
		size_t n = get_file(bytes);
		for (size_t bit = 0; bit < 8 * n; bit++) {
			bytes[bit / 8] ^= (char)(1 << bit % 8);
			put_bytes(bytes, n);
			if (read_all(&e) == 0)
				fail_msg("bit %zu of byte %zu of %zu flipped: read without a word", bit % 8, bit / 8, n);
			bytes[bit / 8] ^= (char)(1 << bit % 8);
		}
	}
}

/* Other programs leave the digests away when they write changed tensors, and have metadata of their own. */
static void foreign(void **state)
{
	static const char *const metadata[] = {
		"{\"format\":\"pt\"}",
		"{}",
		"{\"format\":\"pt\",\"modelspec.hash_sha256\":\"0x57a116988f24a1d2b7188f0d447fbb94\"}",
		"{\"hash\":\"57a116988f24a1d2b7188f0d447fbb94\",\"vocab.tsv\":\"1\",\"digest\":7}",
		"7",
	};
	struct safetensors s;
	struct error e;
	float x[2] = {1, 2};
	char bytes[SMALL], hex[DIGEST_SIZE], want[DIGEST_SIZE];
	for (size_t i = 0; i < sizeof metadata / sizeof *metadata; i++) {
		char *json = xasprintf("{\"__metadata__\":%s,\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", metadata[i]);
		put_file(json, 3, x, sizeof x);
		digest_bytes(bytes, get_file(bytes), want);
		assert_int_equal(safetensors_open(&s, path, &e), 0);
		assert_int_equal(safetensors_digest(&s, hex, &e), 0);
		assert_string_equal(hex, want);
		assert_int_equal(safetensors_check_beside(&s, &e), 0);
		safetensors_close(&s);
		free(json);
	}
}

static void beside(void **state)
{
	struct safetensors s;
	struct error e;
	char *table = xasprintf("%s/table.tsv", dir);
	struct text_file file = {"table.tsv", (char[]){"a\tb\n"}};
	struct safetensor_out out[] = {{.name = "w", .ndim = 2, .shape = {2, 3}}};
	assert_int_equal(safetensors_write(path, out, 1, fill, NULL, &file, 1, &e), 0);
	assert_int_equal(safetensors_open(&s, path, &e), 0);
	for (int i = 0; i < 3; i++) { /* not there, damaged, as it was */
		FILE *f = i ? fopen(table, "w") : NULL;
		if (f)
			fputs(i == 1 ? "a\tc\n" : file.text, f), fclose(f);
		assert_int_equal(safetensors_check_beside(&s, &e), i < 2 ? -1 : 0);
		assert_non_null(strstr(e.msg, table));
	}
	safetensors_close(&s);
	unlink(table);
	free(table);
}

static void every_prefix(void **state)
{
	struct safetensors s;
	struct error e;
	struct safetensor_out out[] = {{.name = "w", .ndim = 2, .shape = {2, 3}}};
	assert_int_equal(safetensors_write(path, out, 1, fill, NULL, NULL, 0, &e), 0);
	char bytes[SMALL];
	size_t n = get_file(bytes);
	for (size_t k = 0; k <= n + 1; k++) {
		put_bytes(bytes, k);
		int got = safetensors_open(&s, path, &e);
		assert_int_equal(got, k == n ? 0 : -1);
		if (!got)
			safetensors_close(&s);
	}
}

static void malformed(void **state)
{
	refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 9, "cut short");
	refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7, "cut short");
	refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,12]}}", 12, "F32[2] do not fill its 12 bytes");
	refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "not a range");
	refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "not a usable size");
	refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,6]}}", 8, "not a usable size");
	refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,8]}}", 8, "not a usable size");
	refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, "dimensions");
	refused("{\"a\":{\"dtype\":\"Q4\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "unknown dtype 'Q4'");
	refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "expected dtype, shape and two data_offsets");
	refused("{\"a\":[]}", 8, "expected dtype");
	refused("[1, 2]", 8, "not a JSON object");
	refused("{\"a\"", 8, "not a JSON object");
	refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[5,9]}}",
		9, "starts at byte 5 of the data, expected 4");
	refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
		4, "expected 4");
	refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
		8, "occurs twice");
	struct safetensors s;
	struct error e;
	uint8_t head[12] = {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'};
	int fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, head, sizeof head), sizeof head);
	close(fd);
	assert_int_equal(safetensors_open(&s, path, &e), -1);
	assert_int_equal(safetensors_open(&s, dir, &e), -1);
	assert_non_null(strstr(e.msg, "not a regular file"));
}

static void dtypes(void **state)
{
	struct safetensors s;
	struct error e;
	float x[3];
	uint16_t half[] = {0x3c00, 0xc500, 0x0001, 0x3f80, 0xc0a0, 0x0001};
	put_file(
		"{\"h\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[0,6]},\"b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[6,12]}}",
		3, half, sizeof half);
	assert_int_equal(safetensors_open(&s, path, &e), 0);
	assert_int_equal(safetensors_read(&s, safetensors_find(&s, "h"), x, &e), 0);
	assert_true(x[0] == 1 && x[1] == -5 && x[2] == 0x1p-24f);
	assert_int_equal(safetensors_read(&s, safetensors_find(&s, "b"), x, &e), 0);
	assert_true(x[0] == 1 && x[1] == -5 && x[2] == 0x1p-133f);
	safetensors_close(&s);
	put_file("{\"i\":{\"dtype\":\"I32\",\"shape\":[3],\"data_offsets\":[0,12]}}", 0, half, sizeof half);
	assert_int_equal(safetensors_open(&s, path, &e), 0);
	assert_int_equal(safetensors_read(&s, &s.tensor[0], x, &e), -1);
	assert_non_null(strstr(e.msg, "'i' is I32: expected F32, F16 or BF16"));
	safetensors_close(&s);
	half[1] = 0x7c00;
	put_file("{\"h\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[0,6]}}", 0, half, 6);
	assert_int_equal(safetensors_open(&s, path, &e), 0);
	assert_int_equal(safetensors_read(&s, &s.tensor[0], x, &e), -1);
	assert_non_null(strstr(e.msg, "'h': value 1 is inf"));
	safetensors_close(&s);
}

#ifdef __FLT16_MANT_DIG__
static void every_half(void **state)
{
	for (uint32_t i = 0; i < 65536; i++) {
		_Float16 h;
		uint16_t bits = (uint16_t)i;
		memcpy(&h, &bits, 2);
		float want = (float)h, got = half_to_float(bits);
		assert_true(isnan(want) ? isnan(got) : memcmp(&want, &got, 4) == 0);
	}
}
#endif

static int cleanup(void **state)
{
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(every_prefix),
		cmocka_unit_test(every_bit),
		cmocka_unit_test(foreign),
		cmocka_unit_test(beside),
		cmocka_unit_test(malformed),
		cmocka_unit_test(dtypes),
#ifdef __FLT16_MANT_DIG__
		cmocka_unit_test(every_half),
#endif
	};
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof path, "%s/x.safetensors", dir);
	return cmocka_run_group_tests(tests, NULL, cleanup);
}
