/*
 * Training speed of bmfm-47m and bmfm-tiny on whole cells, against the processor and the library's matrix product, in one run:
 *     bench_bmfm [bf16] 47m|tiny THREADS STEPS LENGTH BATCH
 * 19,321 tokens; LENGTH tokens a cell, [CLS] and genes with values; the head predicts all genes of the cell. Work is counted by what training
 * needs, not by what is run: per token forward L (2 (4 C^2 + 3 C F) + 4 C LENGTH), and 2 C (C + 2 V) for each cell in the head; three times that
 * with the backward pass. bench_sctrain.c says what the columns are.
 */
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

#include "timed_ops.h"
#include "nn/blas.h"
#include "nn/model.h"

TIMED(value_features, (struct ops * o, void *f, const real *x, const uint32_t *row, const struct value_features *v, size_t T),
	(inner, f, x, row, v, T))
TIMED(bag, (struct ops * o, void *y, const real *W, const struct seq *s, const real *value, size_t B, size_t C, int add),
	(inner, y, W, s, value, B, C, add))
TIMED(bag_back, (struct ops * o, real *dW, const void *dy, const struct seq *s, const real *value, size_t V, size_t C),
	(inner, dW, dy, s, value, V, C))
TIMED(add, (struct ops * o, void *y, const void *x, const void *z, size_t n), (inner, y, x, z, n))
TIMED(rms_norm,
	(struct ops * o, void *y, void *r, real *stat, const void *a, const void *x, const real *scale, size_t T, size_t C, double eps),
	(inner, y, r, stat, a, x, scale, T, C, eps))
TIMED(rms_norm_back,
	(struct ops * o, void *dx, real *ds, const void *dy, const void *r, const real *stat, const real *scale, size_t T, size_t C),
	(inner, dx, ds, dy, r, stat, scale, T, C))
TIMED(swiglu, (struct ops * o, void *y, const void *z, size_t T, size_t F), (inner, y, z, T, F))
TIMED(swiglu_back, (struct ops * o, void *dz, const void *dy, const void *z, size_t T, size_t F), (inner, dz, dy, z, T, F))
TIMED(expression_loss, (struct ops * o, double *sum, const void *z, const real *y, const uint32_t *in, size_t N, size_t G),
	(inner, sum, z, y, in, N, G))
TIMED(expression_loss_back, (struct ops * o, void *z, const real *y, const uint32_t *in, const real *scale, size_t N, size_t G),
	(inner, z, y, in, scale, N, G))

static struct ops timed_ops(void)
{
	struct ops table = *inner;
#define USE(op) (table.op = timed_##op)
	USE(value_features), USE(embed), USE(embed_back), USE(bag), USE(bag_back), USE(linear), USE(linear_back), USE(attention),
		USE(attention_back), USE(norm), USE(norm_back), USE(add), USE(rms_norm), USE(rms_norm_back), USE(swiglu), USE(swiglu_back),
		USE(expression_loss), USE(expression_loss_back), USE(sumsq), USE(adamw), USE(free), USE(params_changed);
	return table;
}

/* ---- training ---- */

enum { SPECIALS = 38, CLS = 3, VOCABULARY = 19321 };

struct work {
	uint32_t length, batch;
	uint32_t *offset, *id, *in; /* in: bits of the genes of the input */
	float *value, *target; /* of tokens; [batch, VOCABULARY] */
};

static void make_batch(struct work *w)
{
	size_t V = VOCABULARY, words = nb_words(V);
	memset(w->in, 0, w->batch * words * 4);
	for (uint32_t b = 0; b < w->batch; b++) {
		float *y = w->target + b * V;
		for (size_t g = 0; g < V; g++) /* a tenth of all genes beside those of the input */
			y[g] = g < SPECIALS ? NAN : rng(10) ? 0 : (float)(1 + rng(5000)) / 1000;
		w->offset[b + 1] = (b + 1) * w->length;
		for (uint32_t t = 0; t < w->length; t++) {
			uint32_t at = b * w->length + t, g = SPECIALS + rng(VOCABULARY - SPECIALS);
			w->id[at] = t ? g : CLS;
			w->value[at] = t ? (float)(1 + rng(5000)) / 1000 : -(CLS + 1);
			if (t) {
				y[g] = w->value[at];
				w->in[b * words + g / 32] |= 1u << g % 32;
			}
		}
	}
}

static void train_step(struct model *m, const struct optim *opt, const struct work *w, uint64_t k)
{
	struct error e;
	struct loss loss[LOSSES_MAX];
	double count[2 * LOSSES_MAX], scale[LOSSES_MAX];
	struct batch b = {.ncell = w->batch, .offset = w->offset, .id = w->id, .value = w->value};
	b.goal[0] = (struct goal){.n = (size_t)w->batch * VOCABULARY, .value = w->target, .mask = w->in};
	model_zero_grad(m);
	if (model_count(m, &b, k, count, &e))
		goto failed;
	double all = model_weigh(m, count, scale);
	if (model_forward(m, &b, &(struct forward){.train = 1, .step = k, .scale = scale}, loss, &e) || model_backward(m, &e) ||
		model_step(m, opt, k, all, NULL, &e))
		goto failed;
	double zero = loss[0].sum / loss[0].count;
	if (!k && !(fabs(zero / log(2) - 1) < 0.3)) {
		fprintf(stderr, "bench_bmfm: an untrained model has a cross-entropy of %g, expected about log 2\n", zero);
		exit(1);
	}
	return;
failed:
	fprintf(stderr, "bench_bmfm: %s\n", e.msg);
	exit(1);
}

/* ---- the report ---- */

static void report(const struct model *m, const struct work *w, int threads, const struct series *step, const struct floors *f)
{
	const struct model_config *c = model_config(m);
	double C = c->hidden_size, F = ceil(C * 8 / 3 / 256) * 256, L = c->num_hidden_layers, T = (double)w->length * w->batch;
	double flop = 3 * (T * L * (2 * (4 * C * C + 3 * C * F) + 4 * C * w->length) + w->batch * 2 * C * (C + 2.0 * VOCABULARY));
	double gemm = 2.0 * GEMM * GEMM * GEMM, fma = f->fma_flop;
	struct rusage ru;
	getrusage(RUSAGE_SELF, &ru);
	printf("config bmfm-%s length %u batch %u threads %d tokens_per_s %.0f (best %.0f) cells_per_s %.2f mflop_per_token %.1f "
	       "fma_share %.3f roofline_share %.3f fma_share_cpu %.3f roofline_share_cpu %.3f model_mb %.0f peak_mb %.0f\n",
		L > 2 ? "47m" : "tiny", w->length, w->batch, threads, T / step->wall[step->n / 2], T / step->wall[0],
		w->batch / step->wall[step->n / 2], flop / T * 1e-6, fma > 0 ? flop / fma * f->fma.wall[0] / step->wall[0] : 0,
		flop / gemm * f->gemm.wall[0] / step->wall[0], fma > 0 ? flop / fma * f->fma.cpu[0] / step->cpu[0] : 0,
		flop / gemm * f->gemm.cpu[0] / step->cpu[0], (double)model_bytes(m) / 1e6,
		(double)ru.ru_maxrss / 1e3 - 3.0 * GEMM * GEMM * 4 / 1e6); /* without the matrices of the floor */
	printf(" ");
	print_seconds("step_", step);
	putchar('\n');
	floors_print(f);
	ops_print();
	fflush(stdout);
}

static void bench(int bf16, const char *preset, int threads, int steps, uint32_t length, uint32_t batch)
{
	static struct series step;
	static struct floors floors;
	struct error e;
	struct model_config c;
	struct optim opt;
	if (model_preset(&c, preset, &e)) {
		fprintf(stderr, "bench_bmfm: %s\n", e.msg);
		exit(2);
	}
	c.vocab_size = VOCABULARY;
	inner = bf16 ? ops_cpu_new_bf16(threads) : ops_cpu_new(threads);
	struct ops table = timed_ops();
	struct model *m = model_new(&c, &(struct head_spec){.kind = &head_wced}, 1, &table, 1, &e);
	struct work w = {.length = length, .batch = batch};
	size_t T = (size_t)length * batch;
	w.offset = xcalloc(batch + (size_t)1, 4), w.id = xcalloc(T, 4), w.value = xcalloc(T, 4);
	w.target = xcalloc(batch * (size_t)VOCABULARY, 4), w.in = xcalloc(batch * nb_words(VOCABULARY), 4);
	opt = *c.arch->optim;
	floors_init(&floors);
	floors.bf16 = bf16;
	for (int k = 0; k <= steps; k++) {
		make_batch(&w);
		ops_reset();
		floors_measure(&floors, threads);
		measure(&step, 0);
		train_step(m, &opt, &w, (uint64_t)k);
		measure(&step, 1);
		if (!k) /* it warmed up */
			step.n = floors.fma.n = floors.gemm.n = 0;
		else
			ops_keep_best(k == 1);
	}
	series_sort(&step);
	series_sort(&floors.fma);
	series_sort(&floors.gemm);
	report(m, &w, threads, &step, &floors);
	floors_free(&floors);
	free(w.offset), free(w.id), free(w.value), free(w.target), free(w.in);
	model_free(m);
	inner->destroy(inner);
}

int main(int argc, char **argv)
{
	int bf16 = argc > 1 && !strcmp(argv[1], "bf16"), at = 1 + bf16;
	if (argc != at + 5)
		return fputs("usage: bench_bmfm [bf16] 47m|tiny THREADS STEPS LENGTH BATCH\n", stderr), 2;
	char preset[32];
	snprintf(preset, sizeof preset, "bmfm-%s", argv[at]);
	int threads = atoi(argv[at + 1]), steps = atoi(argv[at + 2]), length = atoi(argv[at + 3]), batch = atoi(argv[at + 4]);
	if (threads < 1 || steps < 1 || steps >= ROUNDS_MAX || length < 2 || batch < 1)
		return 2;
	if (blas_core_set()) /* as the tools do */
		execv("/proc/self/exe", argv);
	if (bf16 && !cpu_bf16()) {
		puts("bench_bmfm: no AVX512-BF16 here");
		return 1;
	}
	char blas[128] = CPU_DESCRIBE_BF16;
	if (!bf16)
		cpu_describe(blas, sizeof blas);
	printf("%s, FMA in vectors of %d floats\n", blas, fma_width());
	bench(bf16, preset, threads, steps, (uint32_t)length, (uint32_t)batch);
	return 0;
}
