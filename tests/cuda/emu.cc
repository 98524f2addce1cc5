/* emu.h's machinery: fibers by makecontext for the first entry, _setjmp and _longjmp afterwards (no system calls). */
#include "emu.h"

#undef _FORTIFY_SOURCE
#include <setjmp.h>
#include <time.h>
#include <ucontext.h>

dim3 threadIdx, blockIdx, blockDim, gridDim;
char *emu_shared;
std::vector<emu_copy> emu_copies[1024];
unsigned emu_products;
int emu_broken;
unsigned emu_replays; /* graphs launched */

enum {
	STACK = 64 << 10,
	MAX_THREADS = 1024,
};

struct barrier {
	unsigned arrived, generation;
};

struct fiber {
	jmp_buf at;
	bool born; /* it has a stack, and waits at `at` for its next block when done */
	bool done;
	const barrier *waits; /* for this barrier to leave generation `seen` */
	unsigned seen;
};

static fiber fibers[MAX_THREADS];
static char *stacks;
static jmp_buf scheduler;
static barrier block_barrier, warp_barrier[MAX_THREADS / 32];
static char slots[MAX_THREADS / 32][2][32][64];
static unsigned turn[MAX_THREADS]; /* which of the two slot sets a lane uses next */
static const std::function<void()> *body;
static unsigned self;

static void fail(const char *what)
{
	fprintf(stderr, "emulated kernel: %s (block %u %u %u)\n", what, blockIdx.x, blockIdx.y, blockIdx.z);
	abort();
}

static void enter(void)
{
	for (;;) {
		(*body)();
		fibers[self].done = true;
		if (!_setjmp(fibers[self].at))
			_longjmp(scheduler, 1);
	}
}

static void wait_at(barrier *b, unsigned n)
{
	fiber *f = &fibers[self];
	unsigned seen = b->generation;
	if (++b->arrived == n) {
		b->arrived = 0;
		b->generation++;
		return;
	}
	f->waits = b;
	f->seen = seen;
	if (!_setjmp(f->at))
		_longjmp(scheduler, 1);
}

void emu_block_barrier(void)
{
	wait_at(&block_barrier, blockDim.x);
}

void emu_warp_barrier(void)
{
	wait_at(&warp_barrier[self / 32], 32);
}

char (*emu_exchange(const void *mine, size_t bytes))[64]
{
	char(*s)[64] = slots[self / 32][turn[self]++ % 2];
	if (bytes > 64)
		fail("exchange too wide");
	memcpy(s[self % 32], mine, bytes);
	emu_warp_barrier();
	return s;
}

static void bear(fiber *f, char *stack)
{
	static ucontext_t start;
	getcontext(&start);
	start.uc_stack.ss_sp = stack;
	start.uc_stack.ss_size = STACK;
	start.uc_link = NULL;
	makecontext(&start, enter, 0);
	f->born = true;
	setcontext(&start);
}

static void run_block(unsigned threads)
{
	static uint32_t random = 1;
	unsigned order[MAX_THREADS], left = threads;
	for (unsigned i = 0; i < threads; i++) {
		random = random * 1664525u + 1013904223u;
		unsigned j = (unsigned)((uint64_t)random * (i + 1) >> 32);
		order[i] = order[j];
		order[j] = i;
		fiber *f = &fibers[i];
		f->done = false;
		f->waits = NULL;
		turn[i] = 0;
		emu_copies[i].clear();
	}
	block_barrier = {};
	memset(warp_barrier, 0, sizeof warp_barrier);
	while (left) {
		static unsigned moved, k; /* static: they outlive the jumps */
		moved = 0;
		for (k = 0; k < threads; k++) {
			fiber *f = &fibers[order[k]];
			if (f->done || (f->waits && f->waits->generation == f->seen))
				continue;
			self = order[k];
			threadIdx = dim3(self, 0, 0);
			f->waits = NULL;
			moved = 1;
			if (!_setjmp(scheduler)) {
				if (f->born)
					_longjmp(f->at, 1);
				bear(f, stacks + (size_t)self * STACK);
			}
		}
		left = 0;
		for (unsigned i = 0; i < threads; i++)
			left += !fibers[i].done;
		if (left && !moved)
			fail("threads wait for a barrier that the others never reach");
	}
	if (block_barrier.arrived)
		fail("a barrier that not all threads reached");
}

void emu_run(dim3 grid, unsigned threads, size_t shared, const std::function<void()> &kernel)
{
	if (threads % 32 || threads > MAX_THREADS || shared > 99 << 10 || grid.y > 65535 || grid.z > 65535) {
		fprintf(stderr, "emulated kernel: impossible launch: %u threads, %zu bytes shared\n", threads, shared);
		abort();
	}
	if (!stacks)
		stacks = (char *)malloc((size_t)MAX_THREADS * STACK);
	/* a copy at a 128-byte boundary with nothing behind it, so that checkers see reads past the end */
	char *m = (char *)aligned_alloc(128, shared ? (shared + 127) / 128 * 128 : 128);
	emu_shared = m;
	gridDim = grid;
	blockDim = dim3(threads);
	body = &kernel;
	for (unsigned z = 0; z < grid.z; z++)
		for (unsigned y = 0; y < grid.y; y++)
			for (unsigned x = 0; x < grid.x; x++) {
				blockIdx = dim3(x, y, z);
				memset(m, 0xff, shared);
				run_block(threads);
			}
	free(m);
}

/* ---- streams ---- */

static cudaGraph_t recorded; /* NULL: nothing is being recorded */

void emu_do(const std::function<void()> &work)
{
	if (recorded)
		recorded->push_back(work);
	else
		work();
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, int mode)
{
	if (recorded)
		return cudaErrorStreamCaptureUnsupported;
	recorded = new std::vector<std::function<void()>>;
	return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
	*g = recorded;
	recorded = NULL;
	return *g ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, int flags)
{
	*x = new std::vector<std::function<void()>>(*g);
	return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s)
{
	emu_replays++;
	for (auto &work : *x)
		work();
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
	return recorded ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	*e = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
	return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
	*ms = (float)((*b - *a) * 1e3);
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
	if (recorded)
		return cudaErrorStreamCaptureUnsupported;
	*p = aligned_alloc(256, (bytes + 255) / 256 * 256);
	if (!*p)
		return cudaErrorMemoryAllocation;
	memset(*p, 0xff, bytes);
	return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
	if (recorded)
		return cudaErrorStreamCaptureUnsupported;
	free(p);
	return cudaSuccess;
}
