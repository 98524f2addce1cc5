/*
 * Training speed of corrmask-paper on the CPU against the processor and against the library's matrix product, in one run:
 *     bench_sctrain [bf16] [v2] [THREADS [STEPS [LENGTH BATCH]...]]
 * bf16: products in bfloat16, against the floors of bfloat16; v2: the shape of Geneformer V2-104M.
 * Work is counted by what training needs, not by what is run: per token forward 2 L (4 C^2 + 2 C F) in linear layers,
 * 4 L C length in attention, 2 C (C + V) for the masked share in the head; three times that with the backward pass.
 *
 * Every round (STEPS of them, after one to warm up) takes all three in turn, so that they meet the same machine: a loop of FMA in
 * registers (fma_peak.h), sgemm 4096^3, and a step of training.
 *     tokens_per_s      of the median step
 *     step_s cpu_s      seconds of a step, wall and CPU: best and median
 *     fma_gflops gemm_gflops    best and median
 *     fma_share roofline_share  the rate of the best step over that of the best FMA loop, and of the best sgemm
 *     fma_share_cpu roofline_share_cpu  the same by CPU seconds: the ones to trust while other programs run, but blind to idle threads
 * The times by op, wall and CPU, are each op's best step. Recomputing the scores in the backward pass is not counted, so a perfect run
 * at length 2,048 has a roofline_share of about 0.9.
 */
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

#include "timed_ops.h"
#include "nn/blas.h"
#include "nn/model.h"

TIMED(mlm_loss,
	(struct ops * o, double *sum, real *lse, const void *h, const real *W, const real *b, const uint32_t *target, size_t N, size_t C,
		size_t V),
	(inner, sum, lse, h, W, b, target, N, C, V))
TIMED(mlm_loss_back,
	(struct ops * o, void *dh, real *dW, real *db, const void *h, const real *W, const real *b, const uint32_t *target, const real *lse,
		const real *scale, size_t N, size_t C, size_t V),
	(inner, dh, dW, db, h, W, b, target, lse, scale, N, C, V))

/* ---- training ---- */

struct work {
	uint32_t length, batch;
	size_t T, n; /* tokens, masked */
	uint32_t *offset, *id, *mask, *target;
};

static void make_batch(struct work *w, uint32_t V)
{
	w->n = 0;
	for (uint32_t i = 0; i <= w->batch; i++)
		w->offset[i] = i * w->length;
	for (uint32_t t = 0; t < w->T; t++) {
		w->id[t] = 2 + rng(V - 2);
		if (rng(100) < 15) {
			w->mask[w->n] = t;
			w->target[w->n++] = w->id[t];
		}
	}
}

static void train_step(struct model *m, const struct optim *opt, const struct work *w, int k)
{
	struct error e;
	struct loss loss;
	struct batch b = {.ncell = w->batch, .offset = w->offset, .id = w->id, .goal = {{.n = w->n, .row = w->mask, .target = w->target}}};
	double expected = log(model_config(m)->vocab_size);
	model_zero_grad(m);
	if (model_forward(m, &b, &(struct forward){.train = 1, .step = (uint64_t)k}, &loss, &e) || model_backward(m, &e) ||
		model_step(m, opt, (uint64_t)k, loss.count, NULL, &e)) {
		fprintf(stderr, "bench_sctrain: %s\n", e.msg);
		exit(1);
	}
	if (!k && fabs(loss.sum / loss.count / expected - 1) > 0.05) {
		fprintf(stderr, "bench_sctrain: an untrained model has loss %g, expected about %g\n", loss.sum / loss.count, expected);
		exit(1);
	}
}

static struct ops timed_ops(void)
{
	struct ops table = *inner;
#define USE(op) (table.op = timed_##op)
	USE(embed);
	USE(embed_back);
	USE(linear);
	USE(linear_back);
	USE(attention);
	USE(attention_back);
	USE(norm);
	USE(norm_back);
	USE(mlm_loss);
	USE(mlm_loss_back);
	USE(sumsq);
	USE(adamw);
	USE(free);
	USE(params_changed);
	return table;
}

/* ---- the report ---- */

static void report(const struct model *m, const struct work *w, int threads, const struct series *step, const struct floors *f)
{
	const struct model_config *c = model_config(m);
	double C = c->hidden_size, F = c->intermediate_size, L = c->num_hidden_layers, T = (double)w->T, share = (double)w->n / T;
	double flop = 3 * (2 * L * (4 * C * C + 2 * C * F) + 4 * L * C * w->length + share * 2 * C * (C + c->vocab_size));
	double gemm = 2.0 * GEMM * GEMM * GEMM, fma = f->fma_flop, work = T * flop;
	struct rusage ru;
	getrusage(RUSAGE_SELF, &ru);
	printf("config %s length %u batch %u threads %d tokens_per_s %.0f (best %.0f) mflop_per_token %.1f "
	       "fma_share %.3f roofline_share %.3f fma_share_cpu %.3f roofline_share_cpu %.3f model_mb %.0f peak_mb %.0f\n",
		c->hidden_size == 768 ? "geneformer-v2-104m" : "corrmask-paper", w->length, w->batch, threads, T / step->wall[step->n / 2],
		T / step->wall[0], flop * 1e-6, fma > 0 ? work / fma * f->fma.wall[0] / step->wall[0] : 0,
		work / gemm * f->gemm.wall[0] / step->wall[0], fma > 0 ? work / fma * f->fma.cpu[0] / step->cpu[0] : 0,
		work / gemm * f->gemm.cpu[0] / step->cpu[0], (double)model_bytes(m) / 1e6, (double)ru.ru_maxrss / 1e3);
	printf(" ");
	print_seconds("step_", step);
	putchar('\n');
	floors_print(f);
	ops_print();
	fflush(stdout);
}

/* The V2-104M network of Geneformer, without dropout of 0.1: the presets' 0.02. */
static void config_v2(struct model_config *c)
{
	c->vocab_size = 20275;
	c->hidden_size = 768;
	c->num_hidden_layers = 12;
	c->num_attention_heads = 12;
	c->intermediate_size = 3072;
	c->max_position_embeddings = 4096;
}

static void bench(int bf16, int v2, int threads, int steps, uint32_t length, uint32_t batch)
{
	static struct series step;
	static struct floors floors;
	struct error e;
	struct model_config c;
	struct optim opt;
	model_preset(&c, "corrmask-paper", &e);
	c.vocab_size = 25426;
	if (v2)
		config_v2(&c);
	inner = bf16 ? ops_cpu_new_bf16(threads) : ops_cpu_new(threads);
	struct ops table = timed_ops();
	struct model *m = model_new(&c, &(struct head_spec){.kind = &head_mlm}, 1, &table, 1, &e);
	struct work w = {.length = length, .batch = batch, .T = (size_t)length * batch};
	w.offset = xcalloc(batch + (size_t)1, 4);
	w.id = xcalloc(w.T, 4);
	w.mask = xcalloc(w.T, 4);
	w.target = xcalloc(w.T, 4);
	optim_init(&opt);
	opt.total = 1000;
	floors_init(&floors);
	floors.bf16 = bf16;
	for (int k = 0; k <= steps; k++) {
		make_batch(&w, c.vocab_size);
		ops_reset();
		floors_measure(&floors, threads);
		measure(&step, 0);
		train_step(m, &opt, &w, k);
		measure(&step, 1);
		if (!k) /* it warmed up */
			step.n = floors.fma.n = floors.gemm.n = 0;
		if (k)
			ops_keep_best(k == 1);
	}
	series_sort(&step);
	series_sort(&floors.fma);
	series_sort(&floors.gemm);
	report(m, &w, threads, &step, &floors);
	memset(op_time, 0, sizeof op_time);
	step.n = 0;
	floors_free(&floors);
	free(w.offset);
	free(w.id);
	free(w.mask);
	free(w.target);
	model_free(m);
	inner->destroy(inner);
}

int main(int argc, char **argv)
{
	int at = 1, bf16 = 0, v2 = 0;
	for (; at < argc && !(argv[at][0] >= '0' && argv[at][0] <= '9'); at++) {
		bf16 |= !strcmp(argv[at], "bf16");
		v2 |= !strcmp(argv[at], "v2");
	}
	int threads = argc > at ? atoi(argv[at]) : 2, steps = argc > at + 1 ? atoi(argv[at + 1]) : 3;
	if (threads < 1 || steps < 1 || steps >= ROUNDS_MAX)
		return 2;
	if (blas_core_set()) /* as the tools do */
		execv("/proc/self/exe", argv);
	if (bf16 && !cpu_bf16()) {
		puts("bench_sctrain: no AVX512-BF16 here");
		return 1;
	}
	char blas[128] = CPU_DESCRIBE_BF16;
	if (!bf16)
		cpu_describe(blas, sizeof blas);
	printf("%s, FMA in vectors of %d floats\n", blas, fma_width());
	if (argc <= at + 2) {
		bench(bf16, v2, threads, steps, 256, 12);
		bench(bf16, v2, threads, steps, 2048, 12);
	}
	for (int i = at + 2; i + 1 < argc; i += 2)
		bench(bf16, v2, threads, steps, (uint32_t)atoi(argv[i]), (uint32_t)atoi(argv[i + 1]));
	return 0;
}
