/* What the backend tells about itself: time between batches, faults. See test_cuda.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "both.h"

#ifdef EMULATED
struct ops *cuda_emulated(int fp32, int small);
extern int emu_broken;
#endif

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void turn(uint32_t *host, void *dev)
{
	struct error e;
	gpu->send(gpu, dev, host, sizeof *host);
	gpu->fetch(gpu, host, dev, sizeof *host);
	gpu->mark(gpu, 0);
	if (gpu->wait(gpu, 0, &e))
		fail_msg("%s", e.msg);
}

/* Time between turns is idle; time around a batch that was waited for is neither idle nor busy. */
void usage(void)
{
	struct error e;
	uint32_t *host = gpu->host_alloc(gpu, sizeof *host);
	void *dev = gpu->alloc(gpu, sizeof *host);
	double busy, idle;
	turn(host, dev);
	pause_ms(20);
	turn(host, dev);
	gpu->usage(gpu, &busy, &idle);
	assert_true(idle > 0.019);
	gpu->send(gpu, dev, host, sizeof *host);
	assert_int_equal(gpu->sync(gpu, &e), 0);
	pause_ms(900);
	turn(host, dev);
	pause_ms(20);
	turn(host, dev);
	gpu->usage(gpu, &busy, &idle);
	assert_true(idle > 0.038 && idle < 0.85 && busy < 0.85);
	gpu->free(gpu, dev);
	gpu->host_free(gpu, host);
}

/* A fault sticks and is named. */
void faults(void)
{
	struct error e = {""};
	size_t C = 1288;
	struct arr *x = ACTS("x", C), *stat = REALS("stat", 2), *gamma = REALS("gamma", C);
	gpu->norm(gpu, x->d, x->d, stat->d, x->d, NULL, gamma->d, gamma->d, NULL, 1, C, 1e-12, NULL);
	assert_int_equal(gpu->sync(gpu, &e), -1);
	assert_non_null(strstr(e.msg, "1280"));
	assert_int_equal(gpu->sync(gpu, &e), -1);
#ifdef EMULATED
	/* cuBLASLt fails: not a reason to take the plain kernel */
	struct ops *o = cuda_emulated(fp32, 1);
	float *w = o->alloc(o, 64 * 64 * sizeof *w), *y = o->alloc(o, 64 * 64 * sizeof *w);
	char text[256];
	emu_broken = 1;
	o->linear(o, y, NULL, y, w, NULL, 64, 64, 64, ACT_NONE);
	emu_broken = 0;
	assert_int_equal(o->sync(o, &e), -1);
	assert_string_equal(e.msg, "cuda: cuBLASLt: internal error");
	o->remarks(o, text, sizeof text);
	assert_string_equal(text, "");
	o->free(o, w), o->free(o, y);
	o->destroy(o);
#endif
	while (narray) {
		free(arrays[--narray].x);
		gpu->free(gpu, arrays[narray].d);
	}
}
