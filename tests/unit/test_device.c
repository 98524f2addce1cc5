/* Device names, and the messages if there is no GPU (tested with a library that does not exist). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "nn/device.h"

static void parse(void **state)
{
	static const struct {
		const char *spec;
		int cuda, index, fp32;
	} good[] = {
		{"cpu", 0, 0, 0},
		{"auto", -1, 0, 0},
		{"cuda", 1, 0, 0},
		{"cuda:0", 1, 0, 0},
		{"cuda:13", 1, 13, 0},
		{"cuda,float", 1, 0, 1},
		{"cuda:2,float", 1, 2, 1},
		{"auto,float", -1, 0, 1},
		{"auto:3", -1, 3, 0},
		{"auto:3,float", -1, 3, 1},
	};
	static const char *const bad[] = {"", "gpu", "cpu:1", "cpu,float", "cuda:", "cuda:x", "cuda:-1", "cuda:1024",
		"cuda:99999999999999999999", "cuda:1x", "cuda1", "auto:x", "cuda,", "cuda,bf16", "cuda,float,float", "CUDA", ",float",
		"cuda: 1", "cuda:+1"};
	struct error e;
	int cuda, index, fp32;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(device_parse(good[i].spec, &cuda, &index, &fp32, &e), 0);
		assert_true(cuda == good[i].cuda && index == good[i].index && fp32 == good[i].fp32);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		e.msg[0] = '\0';
		if (device_parse(bad[i], &cuda, &index, &fp32, &e) != -1)
			fail_msg("'%s' was taken", bad[i]);
		assert_non_null(strstr(e.msg, bad[i]));
	}
}

static void open_cpu(void **state)
{
	struct error e = {""};
	char what[256];
	struct ops *o = device_open("cpu", 3, 0, what, sizeof what, &e);
	assert_non_null(o);
	assert_string_equal(o->name, "cpu");
	assert_int_equal(strncmp(what, "cpu, 3 threads, OpenBLAS ", 25), 0);
	o->destroy(o);
	assert_null(device_open("tpu", 1, 0, what, sizeof what, &e));
}

/* cuda is had or refused with a reason; auto always gives something and says the same reason. */
static void open_either(void **state)
{
	struct error e = {""};
	char what[256];
	struct ops *o = device_open("cuda", 1, 0, what, sizeof what, &e);
	struct ops *a = device_open("auto", 1, 0, what, sizeof what, NULL);
	print_message("  cuda: %s; auto: %s\n", o ? "there" : e.msg, what);
	assert_non_null(a);
	assert_string_equal(a->name, o ? "cuda" : "cpu");
	if (!o) {
		assert_memory_equal(e.msg, "--device cuda: ", 15);
		assert_non_null(strstr(what, e.msg + 15));
	}
	if (o)
		o->destroy(o);
	a->destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(parse), cmocka_unit_test(open_cpu), cmocka_unit_test(open_either)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
