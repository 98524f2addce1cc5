/* emu.h's machinery: fibers by makecontext for the first entry, _setjmp and _longjmp afterwards (no system calls). */
#include "emu.h"

#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <deque>

dim3 threadIdx, blockIdx, blockDim, gridDim;
char *emu_shared;
std::vector<emu_copy> emu_copies[1024];
bool emu_early;
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

static ucontext_t born_with;

static void bear(fiber *f, char *stack)
{
	getcontext(&born_with);
	born_with.uc_stack.ss_sp = stack;
	born_with.uc_stack.ss_size = STACK;
	born_with.uc_link = NULL;
	makecontext(&born_with, enter, 0);
	f->born = true;
	setcontext(&born_with);
}

static uint32_t drawn = 1;

static unsigned draw(unsigned n)
{
	drawn = drawn * 1664525u + 1013904223u;
	return (unsigned)((uint64_t)drawn * n >> 32);
}

/* The block's threads: warps in a random order, and lanes in a random order within each. */
static void shuffle(unsigned *order, unsigned threads)
{
	unsigned warp[MAX_THREADS / 32], lane[32];
	for (unsigned i = 0; i < threads / 32; i++) {
		unsigned j = draw(i + 1);
		warp[i] = warp[j];
		warp[j] = i;
	}
	for (unsigned w = 0; w < threads / 32; w++) {
		for (unsigned i = 0; i < 32; i++) {
			unsigned j = draw(i + 1);
			lane[i] = lane[j];
			lane[j] = i;
		}
		for (unsigned i = 0; i < 32; i++)
			order[w * 32 + i] = warp[w] * 32 + lane[i];
	}
}

static bool can_run(const fiber *f)
{
	return !f->done && !(f->waits && f->waits->generation == f->seen);
}

static bool moved, again; /* run_warp's, which jumps leave alone here */
static unsigned k;

/* The warp's lanes, until all are done or wait for other warps. Returns whether any moved. */
static bool run_warp(const unsigned *order)
{
	moved = false;
	do {
		again = false;
		for (k = 0; k < 32; k++) {
			fiber *f = &fibers[order[k]];
			if (!can_run(f))
				continue;
			self = order[k];
			threadIdx = dim3(self, 0, 0);
			f->waits = NULL;
			moved = again = true;
			if (!_setjmp(scheduler)) {
				if (f->born)
					_longjmp(f->at, 1);
				bear(f, stacks + (size_t)self * STACK);
			}
		}
	} while (again);
	return moved;
}

static void run_block(unsigned threads)
{
	unsigned order[MAX_THREADS], left = threads;
	shuffle(order, threads);
	emu_early = draw(2);
	for (unsigned i = 0; i < threads; i++) {
		fibers[i].done = false;
		fibers[i].waits = NULL;
		turn[i] = 0;
		emu_copies[i].clear();
	}
	block_barrier = {};
	memset(warp_barrier, 0, sizeof warp_barrier);
	while (left) {
		bool any = false;
		for (unsigned w = 0; w < threads; w += 32)
			any |= run_warp(order + w);
		left = 0;
		for (unsigned i = 0; i < threads; i++)
			left += !fibers[i].done;
		if (left && !any)
			fail("threads wait for a barrier that the others never reach");
	}
	if (block_barrier.arrived)
		fail("a barrier that not all threads reached");
}

/* ---- static shared memory ---- */

struct area {
	char *at;
	size_t bytes;
};

/*
 * The kernels' __shared__ arrays are static variables of functions here. g++ cannot put those of templates into a section of their own, so
 * their addresses are read from this program's table of symbols: _ZZ begins the name of such a variable; no other source of the emulation has
 * one without a first value.
 */
static std::vector<area> find_statics(void)
{
	std::vector<area> found;
	Dl_info info;
	struct link_map *map;
	if (!dladdr1((void *)emu_run, &info, (void **)&map, RTLD_DL_LINKMAP))
		abort();
	int fd = open(*map->l_name ? map->l_name : "/proc/self/exe", O_RDONLY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st))
		abort();
	const char *file = (const char *)mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)file;
	const ElfW(Shdr) *section = (const ElfW(Shdr) *)(file + head->e_shoff);
	for (unsigned i = 0; i < head->e_shnum; i++) {
		if (section[i].sh_type != SHT_SYMTAB)
			continue;
		const ElfW(Sym) *sym = (const ElfW(Sym) *)(file + section[i].sh_offset);
		const char *names = file + section[section[i].sh_link].sh_offset;
		for (size_t k = 0; k < section[i].sh_size / sizeof *sym; k++) {
			const char *name = names + sym[k].st_name;
			if (ELF64_ST_TYPE(sym[k].st_info) == STT_OBJECT && !strncmp(name, "_ZZ", 3) && sym[k].st_shndx < head->e_shnum &&
				section[sym[k].st_shndx].sh_type == SHT_NOBITS)
				found.push_back({(char *)map->l_addr + sym[k].st_value, sym[k].st_size});
		}
	}
	munmap((void *)file, (size_t)st.st_size);
	if (found.empty())
		fail("no static shared memory found: is this program stripped?");
	return found;
}

static const std::vector<area> *statics;

static void poison(char *dynamic, size_t bytes)
{
	if (!statics)
		statics = new std::vector<area>(find_statics());
	memset(dynamic, 0xff, bytes);
	for (const area &a : *statics)
		memset(a.at, 0xff, a.bytes);
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
				poison(m, shared);
				run_block(threads);
			}
	free(m);
}

/* ---- streams ---- */

struct emu_stream {
	std::deque<std::function<bool()>> queue; /* false: not done, call it again */
	uint64_t asked, done;                    /* works so far; asked - done of them are in the queue */
	cudaGraph_t recorded;                    /* NULL: nothing is being recorded */
};

struct emu_event {
	cudaStream_t stream; /* NULL: never recorded */
	uint64_t after;      /* works of the stream that come before it */
	double time;
};

static emu_stream first;
static std::vector<emu_stream *> streams = {&first};

static emu_stream *stream_of(cudaStream_t s)
{
	return s ? s : &first;
}

static void ask(emu_stream *s, const std::function<bool()> &work)
{
	s->queue.push_back(work);
	s->asked++;
}

void emu_do(cudaStream_t stream, const std::function<void()> &work)
{
	emu_stream *s = stream_of(stream);
	if (s->recorded)
		s->recorded->push_back(work);
	else
		ask(s, [=] {
			work();
			return true;
		});
}

extern "C" void emu_poll(cudaStream_t stream, int (*work)(void *), void *arg)
{
	emu_stream *s = stream_of(stream);
	if (s->recorded)
		fail("work that waits for another process is recorded");
	ask(s, [=] { return work(arg) != 0; });
}

/* Run works while they end at once. */
static bool run_some(emu_stream *s, uint64_t work)
{
	while (s->done < work && s->queue.front()()) {
		s->queue.pop_front();
		s->done++;
	}
	return s->done >= work;
}

static void run_until(emu_stream *s, uint64_t work)
{
	while (!run_some(s, work))
		usleep(50);
}

static cudaError_t run_all(void)
{
	for (emu_stream *s : streams)
		if (s->recorded)
			return cudaErrorStreamCaptureUnsupported;
	for (emu_stream *s : streams)
		run_until(s, s->asked);
	return cudaSuccess;
}

cudaStream_t emu_stream_new(void)
{
	streams.push_back(new emu_stream());
	return streams.back();
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
	if (!s)
		return cudaSuccess;
	for (size_t i = 0; i < streams.size(); i++)
		if (streams[i] == s)
			streams.erase(streams.begin() + (long)i);
	delete s;
	return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, int mode)
{
	if (stream_of(s)->recorded)
		return cudaErrorStreamCaptureUnsupported;
	stream_of(s)->recorded = new emu_works;
	return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
	*g = stream_of(s)->recorded;
	stream_of(s)->recorded = NULL;
	return *g ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, int flags)
{
	*x = new emu_works(*g);
	return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s)
{
	emu_replays++;
	for (auto &work : *x)
		emu_do(s, work);
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	emu_stream *s = stream_of(stream);
	if (s->recorded)
		return cudaErrorStreamCaptureUnsupported;
	run_until(s, s->asked);
	return cudaSuccess;
}

static cudaError_t last_error;

cudaError_t cudaGetLastError(void)
{
	cudaError_t r = last_error;
	last_error = cudaSuccess;
	return r;
}

static cudaError_t answer(bool done)
{
	if (!done)
		last_error = cudaErrorNotReady;
	return done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	emu_stream *s = stream_of(stream);
	if (s->recorded)
		return cudaErrorStreamCaptureUnsupported;
	return answer(run_some(s, s->asked));
}

/* ---- events ---- */

cudaError_t cudaEventCreate(cudaEvent_t *e)
{
	*e = new emu_event();
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
	delete e;
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
	emu_do(s, [=] {
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		e->time = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
	});
	e->stream = stream_of(s);
	e->after = e->stream->asked;
	return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
	if (!e->stream)
		return cudaSuccess;
	if (e->stream->recorded)
		return cudaErrorStreamCaptureUnsupported;
	run_until(e->stream, e->after);
	return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
	if (!e->stream)
		return cudaSuccess;
	if (e->stream->recorded)
		return cudaErrorStreamCaptureUnsupported;
	return answer(run_some(e->stream, e->after));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
	*ms = (float)((b->time - a->time) * 1e3);
	return cudaSuccess;
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **p, size_t bytes)
{
	for (emu_stream *s : streams)
		if (s->recorded)
			return cudaErrorStreamCaptureUnsupported;
	*p = aligned_alloc(256, (bytes + 255) / 256 * 256);
	if (!*p)
		return cudaErrorMemoryAllocation;
	memset(*p, 0xff, bytes);
	return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
	cudaError_t r = run_all();
	if (r == cudaSuccess)
		free(p);
	return r;
}

cudaError_t cudaFreeHost(void *p)
{
	return cudaFree(p);
}
