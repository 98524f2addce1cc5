/*
 * Sums over the GPUs of several processes (ops.h: group), by NCCL, in order on the stream. The library is opened at run time, so neither a
 * build nor a training on one GPU needs it. What is used of it is declared here, as in nccl.h of version 2.
 *
 * The sum of an element goes around a ring of devices. Where it begins depends on the element, the number of devices and their connections,
 * so equal runs on the same machines give equal bits. By itself NCCL may take another algorithm, one of which sums in no fixed order: the
 * ring is asked for, unless the user asks for something.
 */
#include "device.cuh"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { /* of nccl.h */
	NCCL_SUCCESS = 0,
	NCCL_FLOAT = 7,
	NCCL_SUM = 0,
};

struct nccl_id {
	char bytes[GROUP_ID];
};

struct group {
	int (*ncclGetVersion)(int *version);
	int (*ncclGetUniqueId)(struct nccl_id *id);
	int (*ncclCommInitRank)(struct nccl_comm **comm, int size, struct nccl_id id, int rank);
	int (*ncclAllReduce)(const void *from, void *to, size_t n, int type, int op, struct nccl_comm *comm, cudaStream_t stream);
	int (*ncclCommGetAsyncError)(struct nccl_comm *comm, int *result);
	int (*ncclCommAbort)(struct nccl_comm *comm);
	int (*ncclCommDestroy)(struct nccl_comm *comm);
	const char *(*ncclGetErrorString)(int result);
	struct nccl_comm *comm; /* NULL: not joined, or given up */
};

#define LIBRARY "libnccl.so.2"
#define NCCL_FAILED "NCCL: %s: %s"

static int load(struct group *g, struct error *e)
{
	const struct {
		const char *name;
		void **to;
	} function[] = {
		{"ncclGetVersion", (void **)&g->ncclGetVersion},
		{"ncclGetUniqueId", (void **)&g->ncclGetUniqueId},
		{"ncclCommInitRank", (void **)&g->ncclCommInitRank},
		{"ncclAllReduce", (void **)&g->ncclAllReduce},
		{"ncclCommGetAsyncError", (void **)&g->ncclCommGetAsyncError},
		{"ncclCommAbort", (void **)&g->ncclCommAbort},
		{"ncclCommDestroy", (void **)&g->ncclCommDestroy},
		{"ncclGetErrorString", (void **)&g->ncclGetErrorString},
	};
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return cuda_error(e, "%s", dlerror());
	for (size_t i = 0; i < sizeof function / sizeof *function; i++)
		if (!(*function[i].to = dlsym(library, function[i].name)))
			return cuda_error(e, "%s", dlerror());
	return 0;
}

int cuda_group_find(struct ops *o, struct group_info *info, struct error *e)
{
	struct cuda *c = cuda_of(o);
	int version = 0;
	struct group *g = (struct group *)calloc(1, sizeof *g);
	if (!g)
		abort();
	if (load(g, e)) {
		free(g);
		return -1;
	}
	c->group = g;
	g->ncclGetVersion(&version);
	memcpy(info->device, c->device, sizeof info->device);
	snprintf(info->library, sizeof info->library, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
	return 0;
}

int cuda_group_id(struct ops *o, char id[GROUP_ID], struct error *e)
{
	struct group *g = cuda_of(o)->group;
	struct nccl_id made;
	int r = g->ncclGetUniqueId(&made);
	if (r != NCCL_SUCCESS)
		return cuda_error(e, NCCL_FAILED, "ncclGetUniqueId", g->ncclGetErrorString(r));
	memcpy(id, made.bytes, GROUP_ID);
	return 0;
}

int cuda_group_open(struct ops *o, const char id[GROUP_ID], int rank, int size, struct error *e)
{
	struct group *g = cuda_of(o)->group;
	struct nccl_id made;
	memcpy(made.bytes, id, GROUP_ID);
	setenv("NCCL_ALGO", "Ring", 0);
	setenv("NCCL_PROTO", "Simple", 0);
	int r = g->ncclCommInitRank(&g->comm, size, made, rank);
	if (r == NCCL_SUCCESS)
		return 0;
	g->comm = NULL;
	return cuda_error(e, NCCL_FAILED, "ncclCommInitRank", g->ncclGetErrorString(r));
}

static void group_fault(struct cuda *c, const char *what, int result)
{
	if (result != NCCL_SUCCESS && !c->fault[0])
		snprintf(c->fault, sizeof c->fault, NCCL_FAILED, what, c->group->ncclGetErrorString(result));
}

void cuda_group_sum(struct ops *o, float *x, size_t n)
{
	struct cuda *c = cuda_of(o);
	struct group *g = c->group;
	if (g->comm && !c->fault[0])
		group_fault(c, "ncclAllReduce", g->ncclAllReduce(x, x, n, NCCL_FLOAT, NCCL_SUM, g->comm, c->stream));
}

/* A sum on the stream waits for the other devices, for ever if one of them is lost. NCCL notices that, and ends its sums if it is told to. */
int group_lives(struct cuda *c)
{
	struct group *g = c->group;
	int result = NCCL_SUCCESS;
	if (!g || !g->comm)
		return 0;
	g->ncclCommGetAsyncError(g->comm, &result);
	if (result == NCCL_SUCCESS) {
		struct timespec nap = {0, 20000};
		nanosleep(&nap, NULL);
		return 1;
	}
	group_fault(c, "the sum over all ranks", result);
	g->ncclCommAbort(g->comm);
	g->comm = NULL;
	return 0;
}

void group_free(struct cuda *c)
{
	if (c->group && c->group->comm)
		c->group->ncclCommDestroy(c->group->comm);
	free(c->group);
}
