/* The numbers that other tests judge by: tests/unit/numbers.h. */
#include "numbers.h"

#include <unistd.h>

/* The largest difference, relative to the largest true value; a value that is not finite is never near. */
static void how_far_apart(void **unused)
{
	const double b[] = {1, -8, 2};
	const real same[] = {1, -8, 2}, off[] = {1, -8, 4}, other[] = {3, -8, 2};
	assert_true(apart(same, b, 3) == 0);
	assert_true(apart(off, b, 3) == 0.25);
	assert_true(apart(other, b, 3) == 0.25);
	assert_true(apart(off, b, 2) == 0);
	assert_true(apart((real[]){0.5}, (double[]){0}, 1) == 0.5);
	assert_true(apart((real[]){-0.5}, (double[]){0}, 1) == 0.5);
	for (int i = 0; i < 3; i++) {
		const double odd[] = {NAN, INFINITY, -INFINITY};
		assert_true(isinf(apart((real[]){1, (real)odd[i]}, (double[]){1, 2}, 2)));
		assert_true(isinf(apart((real[]){1, 2}, (double[]){1, odd[i]}, 2)));
		assert_true(isinf(apart((real[]){1, (real)odd[i]}, (double[]){1, odd[i]}, 2)));
	}
}

static void random_numbers(void **unused)
{
	enum { N = 10000 };
	int seen[7] = {0};
	for (int i = 0; i < N; i++)
		seen[draw(7)]++;
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], N / 7 - 200, N / 7 + 200); /* six standard deviations */
	float *x = random_floats(N, 3), least = 0, most = 0;
	double sum = 0;
	for (int i = 0; i < N; i++) {
		least = fminf(least, x[i]);
		most = fmaxf(most, x[i]);
		sum += (double)x[i];
	}
	assert_true(least >= -3 && least < -2.99F && most < 3 && most > 2.99F);
	assert_true(fabs(sum / N) < 6 * 3 / sqrt(3.0 * N));
	free(x);
}

static int write_file(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	return f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0 ? 0 : -1;
}

static void arrays_of_files(void **unused)
{
	static const char golden[] = "one f8 2\n\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\x08\x40"
				     "x/two i4 1\n\x07\0\0\0";
	char path[] = "/tmp/corrmask-numbers-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(read_arrays("/nonexistent"), -1);
	assert_int_equal(write_file(path, "", 0), 0);
	assert_int_equal(read_arrays(path), -1);
	assert_int_equal(write_file(path, golden, sizeof golden - 1), 0);
	assert_int_equal(read_arrays(path), 0);
	assert_int_equal(narray, 2);
	const struct array *a = find("one");
	assert_int_equal(a->n, 2);
	assert_true(((double *)a->data)[0] == 1 && ((double *)a->data)[1] == 3);
	prefix = "x/";
	assert_int_equal(*(int32_t *)find("t%s", "wo")->data, 7);
	assert_int_equal(write_file(path, golden, sizeof golden - 2), 0); /* one byte is missing */
	assert_int_equal(read_arrays(path), -1);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(how_far_apart),
		cmocka_unit_test(random_numbers),
		cmocka_unit_test(arrays_of_files),
	};
	return cmocka_run_group_tests(tests, NULL, free_arrays);
}
