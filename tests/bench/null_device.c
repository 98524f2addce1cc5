/*
 * A corrmask_cuda.so that computes nothing: of a training or an embedding the host's work is left, reading, checking, packing and
 * asking for work that is known already. Its speed is the most that any GPU could be kept busy at (host.sh).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/ops_cuda.h"

static void *take(struct ops *o, size_t bytes)
{
	return calloc(bytes ? bytes : 1, 1);
}

static void give(struct ops *o, void *p)
{
	free(p);
}

static void zero(struct ops *o, void *p, size_t bytes)
{
}

static void copy(struct ops *o, void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

static void send(struct ops *o, void *dev, const void *host, size_t bytes)
{
}

static void mark(struct ops *o, unsigned i)
{
}

static int ready(struct ops *o, struct error *e)
{
	return 0;
}

static int wait(struct ops *o, unsigned i, struct error *e)
{
	return 0;
}

static void usage(struct ops *o, double *busy, double *idle)
{
	*busy = *idle = 0;
}

static int replay(struct ops *o, const uint64_t key[OPS_KEY])
{
	return 1;
}

static void params_changed(struct ops *o, const real *p, size_t n)
{
}

static void sumsq(struct ops *o, double *sum, const real *g, size_t n)
{
}

static void adamw(struct ops *o, real *p, const real *g, real *m, real *v, size_t n, const double *norm2, const struct adamw_args *a)
{
}

static void destroy(struct ops *o)
{
	free(o);
}

ops_cuda_open corrmask_cuda_open;

struct ops *corrmask_cuda_open(struct ops_cuda *a, struct error *e)
{
	struct ops *o = malloc(sizeof *o);
	if (!o)
		abort();
	*o = (struct ops){
		.name = "cuda",
		.queued = 1,
		.act_size = 2,
		.align = 128,
		.round_tokens = 1024,
		.round_rows = 128,
		.alloc = take,
		.free = give,
		.zero = zero,
		.upload = copy,
		.download = copy,
		.copy = copy,
		.sync = ready,
		.host_alloc = take,
		.host_free = give,
		.send = send,
		.fetch = copy,
		.mark = mark,
		.wait = wait,
		.usage = usage,
		.replay = replay,
		.params_changed = params_changed,
		.sumsq = sumsq,
		.adamw = adamw,
		.destroy = destroy,
	};
	snprintf(a->what, sizeof a->what, "a device that does nothing");
	return o;
}
