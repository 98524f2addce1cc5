/*
 * The CUDA backend's table, memory and errors. Everything runs on one stream, in the order of the calls; the host runs ahead of it.
 *
 * In bf16 mode an allocation that holds parameters has a copy in bf16, made when the backend first hears of a change
 * (params_changed, adamw) and renewed with each; the products read the copy.
 */
#include "device.cuh"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "nn/ops_cuda.h"
}

/* ---- errors ---- */

void cuda_fault(struct cuda *c, const char *where, cudaError_t r)
{
	if (r != cudaSuccess && !c->fault[0])
		snprintf(c->fault, sizeof c->fault, "%s: %s", where, cudaGetErrorString(r));
}

void cuda_unsupported(struct cuda *c, const char *what)
{
	if (!c->fault[0])
		snprintf(c->fault, sizeof c->fault, "%s: not done by the CUDA backend, use --device cpu", what);
}

int cuda_error(struct error *e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (e)
		vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	return -1;
}

/* The answer of a query. "Not ready" is kept as the last error, which the next launch would take for its own. */
static int is_busy(cudaError_t r)
{
	if (r != cudaErrorNotReady)
		return 0;
	cudaGetLastError();
	return 1;
}

void cuda_settle(struct cuda *c, const char *where)
{
	while (c->group && is_busy(cudaStreamQuery(c->stream)) && group_lives(c))
		;
	cuda_fault(c, where, cudaStreamSynchronize(c->stream));
}

static int cuda_sync(struct ops *o, struct error *e)
{
	struct cuda *c = cuda_of(o);
	cuda_settle(c, "the GPU");
	if (c->sent) { /* a batch that the host waits for, as in an evaluation, is no turn: neither busy nor idle */
		c->sent = c->fetched = 0;
		c->gap = 1;
	}
	return c->fault[0] ? cuda_error(e, "cuda: %s", c->fault) : 0;
}

/* ---- work that comes again ---- */

static void drop_recording(struct recording *r)
{
	if (r->graph)
		cudaGraphExecDestroy(r->graph);
	memset(r, 0, sizeof *r);
}

/* Memory is about to go: wait for the work that uses it, and forget what was recorded with it. */
static void forget(struct cuda *c)
{
	cuda_settle(c, "the GPU");
	if (c->graphs <= 0)
		return;
	for (size_t i = 0; i < RECORDINGS; i++)
		drop_recording(&c->recording[i]);
	c->graphs = 0;
}

static int cuda_replay(struct ops *o, const uint64_t key[OPS_KEY])
{
	struct cuda *c = cuda_of(o);
	struct recording *oldest = c->recording;
	if (c->graphs < 0 || c->fault[0])
		return 0;
	c->clock++;
	for (struct recording *r = c->recording; r < c->recording + RECORDINGS; r++) {
		if (r->used && !memcmp(r->key, key, sizeof r->key)) {
			r->used = c->clock;
			if (r->graph) {
				cuda_fault(c, "replay", cudaGraphLaunch(r->graph, c->stream));
				return 1;
			}
			cudaError_t e = cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeRelaxed);
			cuda_fault(c, "recording", e);
			c->open = e == cudaSuccess ? r : NULL;
			return 0;
		}
		if (r->used < oldest->used)
			oldest = r;
	}
	drop_recording(oldest);
	memcpy(oldest->key, key, sizeof oldest->key);
	oldest->used = c->clock;
	return 0;
}

static void cuda_replay_end(struct ops *o)
{
	struct cuda *c = cuda_of(o);
	struct recording *r = c->open;
	cudaGraph_t graph = NULL;
	if (!r)
		return;
	c->open = NULL;
	cudaError_t e = cudaStreamEndCapture(c->stream, &graph);
	if (e == cudaSuccess)
		e = cudaGraphInstantiate(&r->graph, graph, 0);
	if (e == cudaSuccess) {
		c->graphs++;
		e = cudaGraphLaunch(r->graph, c->stream);
	}
	cuda_fault(c, "recording", e);
	if (graph)
		cudaGraphDestroy(graph);
}

/* ---- memory ---- */

static void *take(struct cuda *c, size_t bytes)
{
	void *p = NULL;
	cudaError_t r = cudaMalloc(&p, bytes ? bytes : 1);
	if (r != cudaSuccess) {
		fprintf(stderr, "corrmask: %zu MiB of GPU memory: %s\n", bytes >> 20, cudaGetErrorString(r));
		exit(1);
	}
	return p;
}

static void *cuda_alloc(struct ops *o, size_t bytes)
{
	struct cuda *c = cuda_of(o);
	void *p = take(c, bytes);
	cuda_fault(c, "alloc", cudaMemsetAsync(p, 0, bytes, c->stream));
	if (c->nspan == c->span_cap) {
		c->span_cap = c->span_cap ? 2 * c->span_cap : 16;
		c->span = (struct span *)realloc(c->span, c->span_cap * sizeof *c->span);
		if (!c->span)
			abort();
	}
	struct span s = {(char *)p, bytes, NULL};
	c->span[c->nspan++] = s;
	return p;
}

static void cuda_free(struct ops *o, void *p)
{
	struct cuda *c = cuda_of(o);
	if (!p)
		return;
	forget(c);
	for (size_t i = 0; i < c->nspan; i++) {
		if (c->span[i].base == p) {
			if (c->span[i].copy)
				cuda_fault(c, "free", cudaFree(c->span[i].copy));
			c->span[i] = c->span[--c->nspan];
			break;
		}
	}
	cuda_fault(c, "free", cudaFree(p));
}

void *scratch(struct cuda *c, enum scratch slot, size_t bytes)
{
	if (bytes > c->scratch[slot].bytes) {
		if (c->scratch[slot].p) {
			forget(c);
			cuda_fault(c, "scratch", cudaFree(c->scratch[slot].p));
		}
		c->scratch[slot].p = take(c, bytes);
		c->scratch[slot].bytes = bytes;
	}
	return c->scratch[slot].p;
}

static void cuda_zero(struct ops *o, void *p, size_t bytes)
{
	struct cuda *c = cuda_of(o);
	cuda_fault(c, "zero", cudaMemsetAsync(p, 0, bytes, c->stream));
}

static void move(struct cuda *c, void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
	if (!bytes)
		return;
	cuda_fault(c, "copy", cudaMemcpyAsync(to, from, bytes, kind, c->stream));
	if (kind != cudaMemcpyDeviceToDevice)
		cuda_settle(c, "copy");
}

static void cuda_upload(struct ops *o, void *dev, const void *host, size_t bytes)
{
	move(cuda_of(o), dev, host, bytes, cudaMemcpyHostToDevice);
}

static void cuda_download(struct ops *o, void *host, const void *dev, size_t bytes)
{
	memset(host, 0, bytes); /* after a fault there is at least no garbage */
	move(cuda_of(o), host, dev, bytes, cudaMemcpyDeviceToHost);
}

static void cuda_copy(struct ops *o, void *dst, const void *src, size_t bytes)
{
	move(cuda_of(o), dst, src, bytes, cudaMemcpyDeviceToDevice);
}

/* ---- copies that the caller does not wait for ---- */

static void *cuda_host_alloc(struct ops *o, size_t bytes)
{
	void *p = NULL;
	cudaError_t r = cudaMallocHost(&p, bytes ? bytes : 1);
	if (r != cudaSuccess) {
		fprintf(stderr, "corrmask: %zu MiB of pinned memory: %s\n", bytes >> 20, cudaGetErrorString(r));
		exit(1);
	}
	return p;
}

static void cuda_host_free(struct ops *o, void *p)
{
	struct cuda *c = cuda_of(o);
	if (p) {
		cuda_settle(c, "the GPU");
		cuda_fault(c, "host_free", cudaFreeHost(p));
	}
}

static void record(struct cuda *c, cudaEvent_t e)
{
	cuda_fault(c, "mark", cudaEventRecord(e, c->stream));
}

static void cuda_send(struct ops *o, void *dev, const void *host, size_t bytes)
{
	struct cuda *c = cuda_of(o);
	if (!c->sent)
		record(c, c->turn[c->turns % 4].begun);
	c->sent = 1;
	cuda_fault(c, "send", cudaMemcpyAsync(dev, host, bytes, cudaMemcpyHostToDevice, c->stream));
}

static void cuda_fetch(struct ops *o, void *host, const void *dev, size_t bytes)
{
	struct cuda *c = cuda_of(o);
	c->fetched = 1;
	cuda_fault(c, "fetch", cudaMemcpyAsync(host, dev, bytes, cudaMemcpyDeviceToHost, c->stream));
}

static void cuda_mark(struct ops *o, unsigned i)
{
	struct cuda *c = cuda_of(o);
	c->turn_of_mark[i] = 0;
	if (c->sent && c->fetched) {
		record(c, c->turn[c->turns % 4].ended);
		c->turn[c->turns % 4].after_gap = c->gap;
		c->gap = 0;
		c->turn_of_mark[i] = ++c->turns;
		c->sent = c->fetched = 0;
	}
	record(c, c->mark[i]);
}

static double seconds_between(struct cuda *c, cudaEvent_t a, cudaEvent_t b)
{
	float ms = 0;
	cuda_fault(c, "mark", cudaEventElapsedTime(&ms, a, b));
	return ms * 1e-3;
}

/* A mark that was never set is no wait. */
static int cuda_wait(struct ops *o, unsigned i, struct error *e)
{
	struct cuda *c = cuda_of(o);
	while (c->group && is_busy(cudaEventQuery(c->mark[i])) && group_lives(c))
		;
	cuda_fault(c, "the GPU", cudaEventSynchronize(c->mark[i]));
	if (c->fault[0])
		return cuda_error(e, "cuda: %s", c->fault);
	uint64_t k = c->turn_of_mark[i];
	if (k == c->measured + 1) {
		c->busy += seconds_between(c, c->turn[(k - 1) % 4].begun, c->turn[(k - 1) % 4].ended);
		if (k > 1 && !c->turn[(k - 1) % 4].after_gap)
			c->idle += seconds_between(c, c->turn[(k - 2) % 4].ended, c->turn[(k - 1) % 4].begun);
		c->measured = k;
	}
	return 0;
}

static void cuda_usage(struct ops *o, double *busy, double *idle)
{
	struct cuda *c = cuda_of(o);
	*busy = c->busy;
	*idle = c->idle;
}

static void cuda_remarks(struct ops *o, char *text, size_t n)
{
	struct cuda *c = cuda_of(o);
	int k = 0;
	*text = '\0';
	if (c->plain.heads)
		k = snprintf(text, n, "attention heads of %zu channels by plain kernels, the fast ones are for 16, 32 and 64%s",
			c->plain.heads, c->plain.products ? "; " : "");
	if (c->plain.products && k >= 0 && (size_t)k < n)
		snprintf(text + k, n - (size_t)k, "%u shapes of products by plain kernels: %s", c->plain.products, c->plain.shapes);
}

/* ---- types ---- */

enum {
	THREADS = 256,
};
static constexpr size_t CAST_PART = 1 << 24; /* activations turned into floats at a time */

template <class O, class I> static __global__ void cast_kernel(O *y, const I *x, size_t n)
{
	size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
	if (i < n)
		y[i] = of<O>::from(to_float(x[i]));
}

static void to_bf16(struct cuda *c, bf16 *y, const float *x, size_t n)
{
	launch(c, "cast", cast_kernel<bf16, float>, dim3(blocks(n, THREADS)), THREADS, 0, y, x, n);
}

static void cuda_download_act(struct ops *o, float *host, const void *dev, size_t n)
{
	struct cuda *c = cuda_of(o);
	if (!c->is_bf16) {
		cuda_download(o, host, dev, n * sizeof *host);
		return;
	}
	for (size_t i = 0; i < n; i += CAST_PART) {
		size_t m = n - i < CAST_PART ? n - i : CAST_PART;
		float *f = (float *)scratch(c, SCRATCH_CAST, m * sizeof *f);
		launch(c, "cast", cast_kernel<float, bf16>, dim3(blocks(m, THREADS)), THREADS, 0, f, (const bf16 *)dev + i, m);
		cuda_download(o, host + i, f, m * sizeof *f);
	}
}

static void cuda_upload_act(struct ops *o, void *dev, const float *host, size_t n)
{
	struct cuda *c = cuda_of(o);
	if (!c->is_bf16) {
		cuda_upload(o, dev, host, n * sizeof *host);
		return;
	}
	for (size_t i = 0; i < n; i += CAST_PART) {
		size_t m = n - i < CAST_PART ? n - i : CAST_PART;
		float *f = (float *)scratch(c, SCRATCH_CAST, m * sizeof *f);
		cuda_upload(o, f, host + i, m * sizeof *f);
		to_bf16(c, (bf16 *)dev + i, f, m);
	}
}

/* ---- parameters ---- */

static struct span *span_of(struct cuda *c, const float *p)
{
	for (size_t i = 0; i < c->nspan; i++)
		if ((const char *)p >= c->span[i].base && (const char *)p < c->span[i].base + c->span[i].bytes)
			return &c->span[i];
	return NULL;
}

static bf16 *copy_at(const struct span *s, const float *p)
{
	return s->copy + (p - (const float *)s->base);
}

bf16 *parameter_copy(struct cuda *c, const float *p, size_t n)
{
	struct span *s = c->is_bf16 ? span_of(c, p) : NULL;
	if (!s)
		return NULL;
	if (!s->copy) {
		s->copy = (bf16 *)take(c, s->bytes / sizeof(float) * sizeof(bf16));
		to_bf16(c, s->copy, (const float *)s->base, s->bytes / sizeof(float));
	}
	return copy_at(s, p);
}

static void cuda_params_changed(struct ops *o, const float *p, size_t n)
{
	struct cuda *c = cuda_of(o);
	bf16 *copy = parameter_copy(c, p, n);
	if (copy)
		to_bf16(c, copy, p, n);
}

const void *weights(struct cuda *c, const float *W, size_t n, enum scratch slot)
{
	if (!c->is_bf16)
		return W;
	struct span *s = span_of(c, W);
	if (s && s->copy)
		return copy_at(s, W);
	bf16 *w = (bf16 *)scratch(c, slot, n * sizeof *w);
	to_bf16(c, w, W, n);
	return w;
}

/* ---- the table ---- */

static void cuda_destroy(struct ops *o)
{
	struct cuda *c = cuda_of(o);
	forget(c);
	group_free(c);
	free(c->recording);
	for (int i = 0; i < OPS_MARKS; i++)
		cudaEventDestroy(c->mark[i]);
	for (int i = 0; i < 4; i++) {
		cudaEventDestroy(c->turn[i].begun);
		cudaEventDestroy(c->turn[i].ended);
	}
	blas_free(c);
	for (int i = 0; i < SCRATCHES; i++)
		cudaFree(c->scratch[i].p);
	for (size_t i = 0; i < c->nspan; i++) {
		cudaFree(c->span[i].copy);
		cudaFree(c->span[i].base);
	}
	free(c->span);
	cudaStreamDestroy(c->stream);
	free(c);
}

/* Long: a table. */
static void set_ops(struct ops *o)
{
	o->alloc = cuda_alloc;
	o->free = cuda_free;
	o->zero = cuda_zero;
	o->upload = cuda_upload;
	o->download = cuda_download;
	o->copy = cuda_copy;
	o->download_act = cuda_download_act;
	o->upload_act = cuda_upload_act;
	o->sync = cuda_sync;
	o->host_alloc = cuda_host_alloc;
	o->host_free = cuda_host_free;
	o->send = cuda_send;
	o->fetch = cuda_fetch;
	o->mark = cuda_mark;
	o->wait = cuda_wait;
	o->usage = cuda_usage;
	o->remarks = cuda_remarks;
	o->replay = cuda_replay;
	o->replay_end = cuda_replay_end;
	o->params_changed = cuda_params_changed;
	o->destroy = cuda_destroy;
	o->embed = cuda_embed;
	o->embed_back = cuda_embed_back;
	o->linear = cuda_linear;
	o->linear_back = cuda_linear_back;
	o->keep_bytes = cuda_keep_bytes;
	o->attention = cuda_attention;
	o->attention_back = cuda_attention_back;
	o->norm = cuda_norm;
	o->norm_back = cuda_norm_back;
	o->rms_norm = cuda_rms_norm;
	o->rms_norm_back = cuda_rms_norm_back;
	o->swiglu = cuda_swiglu;
	o->swiglu_back = cuda_swiglu_back;
	o->value_features = cuda_value_features;
	o->value_features_back = cuda_value_features_back;
	o->scale = cuda_scale;
	o->add = cuda_add;
	o->gather = cuda_gather;
	o->scatter = cuda_scatter;
	o->drop = cuda_drop;
	o->pool = cuda_pool;
	o->pool_back = cuda_pool_back;
	o->mlm_loss = cuda_mlm_loss;
	o->mlm_loss_back = cuda_mlm_loss_back;
	o->class_loss = cuda_class_loss;
	o->bag = cuda_bag;
	o->bag_back = cuda_bag_back;
	o->batch_norm = cuda_batch_norm;
	o->batch_norm_back = cuda_batch_norm_back;
	o->nb_loss = cuda_nb_loss;
	o->nb_loss_back = cuda_nb_loss_back;
	o->expression_loss = cuda_expression_loss;
	o->expression_loss_back = cuda_expression_loss_back;
	o->group_find = cuda_group_find;
	o->group_id = cuda_group_id;
	o->group_open = cuda_group_open;
	o->group_sum = cuda_group_sum;
	o->instructions = cuda_instructions;
	o->sumsq = cuda_sumsq;
	o->adamw = cuda_adamw;
}

struct ops *cuda_new(cudaStream_t stream, int is_bf16)
{
	struct cuda *c = (struct cuda *)calloc(1, sizeof *c);
	const char *graphs = getenv("CORRMASK_CUDA_GRAPHS"), *tile = getenv("CORRMASK_CUDA_LOSS_TILE"),
		   *wgmma = getenv("CORRMASK_CUDA_WGMMA");
	if (!c || !(c->recording = (struct recording *)calloc(RECORDINGS, sizeof *c->recording)))
		fputs("corrmask_cuda.so: out of memory\n", stderr), exit(1);
	c->stream = stream;
	c->is_bf16 = is_bf16;
	c->wgmma = !wgmma || strcmp(wgmma, "0");
	c->graphs = graphs && !strcmp(graphs, "0") ? -1 : 0;
	for (int i = 0; i < OPS_MARKS; i++)
		cuda_fault(c, "mark", cudaEventCreateWithFlags(&c->mark[i], cudaEventDisableTiming | cudaEventBlockingSync));
	for (int i = 0; i < 4; i++) {
		cuda_fault(c, "mark", cudaEventCreate(&c->turn[i].begun));
		cuda_fault(c, "mark", cudaEventCreate(&c->turn[i].ended));
	}
	/* 32 MiB of float logits and 16 of their gradient stay in a cache of 50 MiB; half as many rows would be twice as many launches */
	c->loss_rows = 4096;
	c->loss_vocab = 2048;
	if (tile && (sscanf(tile, "%zux%zu", &c->loss_rows, &c->loss_vocab) != 2 || !c->loss_rows || !c->loss_vocab))
		fputs("CORRMASK_CUDA_LOSS_TILE: expected ROWSxWORDS\n", stderr), exit(1);
	struct ops *o = &c->o;
	o->name = "cuda";
	o->queued = 1;
	o->round_tokens = 1024;
	o->round_rows = 128;
	o->act_size = is_bf16 ? sizeof(bf16) : sizeof(float);
	o->align = 128;
	set_ops(o);
	return o;
}
