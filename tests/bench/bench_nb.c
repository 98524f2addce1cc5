/*
 * Training speed of the MLP-NB model on the CPU against the processor and against the library's matrix product, in one run:
 *     bench_nb [THREADS [STEPS [GENES HIDDEN LATENT CELLS EXPRESSED]]]        (2 5 5000 1024 512 400 500)
 * A cell expresses EXPRESSED random genes; a quarter of the genes is masked. Work is counted by what training needs: three products a
 * linear layer, and for the first layer two, of the visible expressed genes only. A dense first layer needs dense_gflop.
 * bench_sctrain.c explains the columns.
 */
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

#include "floors.h"
#include "nn/blas.h"
#include "nn/model.h"

TIMED(linear, (struct ops * o, void *y, void *pre, const void *x, const real *W, const real *b, size_t T, size_t K, size_t N, enum act act),
	(inner, y, pre, x, W, b, T, K, N, act))
TIMED(linear_back,
	(struct ops * o, void *dx, real *dW, real *db, void *dy, const void *x, const real *W, const void *y, const void *pre, size_t T,
		size_t K, size_t N, enum act act, int add),
	(inner, dx, dW, db, dy, x, W, y, pre, T, K, N, act, add))
TIMED(bag, (struct ops * o, void *y, const real *W, const struct seq *s, const real *value, size_t B, size_t C, int add),
	(inner, y, W, s, value, B, C, add))
TIMED(bag_back, (struct ops * o, real *dW, const void *dy, const struct seq *s, const real *value, size_t V, size_t C),
	(inner, dW, dy, s, value, V, C))
TIMED(batch_norm,
	(struct ops * o, void *y, real *stat, const void *x, const real *ga, const real *be, real *mean, real *var, size_t N, size_t C,
		double eps, double momentum, int train, enum act act),
	(inner, y, stat, x, ga, be, mean, var, N, C, eps, momentum, train, act))
TIMED(batch_norm_back,
	(struct ops * o, void *dx, real *dg, real *db, const void *dy, const void *x, const void *y, const real *stat, const real *ga,
		size_t N, size_t C, enum act act),
	(inner, dx, dg, db, dy, x, y, stat, ga, N, C, act))
TIMED(nb_loss,
	(struct ops * o, double *sum, real *lse, const void *z, const real *lt, const struct seq *s, const uint32_t *count,
		const uint32_t *mask, const struct gene_weight *w, size_t B, size_t G),
	(inner, sum, lse, z, lt, s, count, mask, w, B, G))
TIMED(nb_loss_back,
	(struct ops * o, void *z, real *dt, const real *lt, const struct seq *s, const uint32_t *count, const uint32_t *mask,
		const real *lse, const real *scale, const real *w, size_t B, size_t G),
	(inner, z, dt, lt, s, count, mask, lse, scale, w, B, G))
TIMED(zero, (struct ops * o, void *p, size_t n), (inner, p, n))
TIMED(sumsq, (struct ops * o, double *sum, const real *g, size_t n), (inner, sum, g, n))
TIMED(adamw, (struct ops * o, real *p, const real *g, real *m, real *v, size_t n, const double *norm2, const struct adamw_args *a),
	(inner, p, g, m, v, n, norm2, a))

static struct ops timed_ops(void)
{
	struct ops table = *inner;
#define USE(op) (table.op = timed_##op)
	USE(linear);
	USE(linear_back);
	USE(bag);
	USE(bag_back);
	USE(batch_norm);
	USE(batch_norm_back);
	USE(nb_loss);
	USE(nb_loss_back);
	USE(zero);
	USE(sumsq);
	USE(adamw);
	return table;
}

struct work {
	uint32_t genes, hidden, latent, cells, expressed;
	size_t visible; /* expressed genes that are not masked */
	struct batch b;
	uint32_t *offset, *id, *count, *mask;
	float *value;
};

static uint32_t rng(uint32_t n)
{
	static uint32_t x = 1;
	x = x * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)x * n >> 32);
}

static void make_batch(struct work *w)
{
	size_t words = nb_words(w->genes), n = 0, masked = 0;
	uint32_t *mask = w->mask;
	memset(mask, 0, w->cells * words * sizeof *mask);
	for (uint32_t g = 0; g < w->genes; g++)
		mask[g / 32] |= (uint32_t)!rng(4) << g % 32;
	w->visible = 0;
	for (uint32_t b = 0; b < w->cells; b++) {
		memcpy(mask + b * words, mask, words * sizeof *mask);
		for (uint32_t g = 0; g < w->genes; g++) {
			int hidden = mask[g / 32] >> g % 32 & 1;
			masked += (size_t)hidden;
			if (rng(w->genes) >= w->expressed && g)
				continue;
			w->id[n] = g;
			w->count[n] = 1 + rng(rng(10) ? 3 : 100);
			w->value[n] = hidden ? 0 : log1pf((float)w->count[n]);
			w->visible += !hidden;
			n++;
		}
		w->offset[b + 1] = (uint32_t)n;
	}
	w->b = (struct batch){.ncell = w->cells, .offset = w->offset, .id = w->id, .value = w->value, .count = w->count};
	w->b.goal[0] = (struct goal){.n = masked, .mask = mask};
}

static void train_step(struct model *m, const struct optim *opt, const struct work *w, uint64_t k)
{
	struct error e;
	struct loss loss;
	model_zero_grad(m);
	if (model_forward(m, &w->b, &(struct forward){.train = 1, .step = k}, &loss, &e) || model_backward(m, &e) ||
		model_step(m, opt, k, loss.count, NULL, &e)) {
		fprintf(stderr, "bench_nb: %s\n", e.msg);
		exit(1);
	}
}

static void report(const struct work *w, int threads, struct series *step, struct floors *f)
{
	double H = w->hidden, B = w->cells, G = w->genes, gemm = 2.0 * GEMM * GEMM * GEMM, fma = f->fma_flop;
	double layers = 3 * 2 * B * (H * H + 2 * H * w->latent + H * G), work = layers + 2 * 2 * (double)w->visible * H;
	struct rusage ru;
	series_sort(step);
	series_sort(&f->fma);
	series_sort(&f->gemm);
	getrusage(RUSAGE_SELF, &ru);
	printf("nb genes %u hidden %u latent %u cells %u expressed %u threads %d cells_per_s %.0f (best %.0f) gflop %.1f dense_gflop %.1f "
	       "fma_share %.3f roofline_share %.3f fma_share_cpu %.3f roofline_share_cpu %.3f peak_mb %.0f\n ",
		w->genes, w->hidden, w->latent, w->cells, w->expressed, threads, B / step->wall[step->n / 2], B / step->wall[0],
		work * 1e-9, (layers + 2 * 2 * B * G * H) * 1e-9, fma > 0 ? work / fma * f->fma.wall[0] / step->wall[0] : 0,
		work / gemm * f->gemm.wall[0] / step->wall[0], fma > 0 ? work / fma * f->fma.cpu[0] / step->cpu[0] : 0,
		work / gemm * f->gemm.cpu[0] / step->cpu[0], (double)ru.ru_maxrss / 1e3);
	print_seconds("step_", step);
	putchar('\n');
	floors_print(f);
	ops_print();
}

static void bench(struct work *w, int threads, int steps)
{
	static struct series step;
	static struct floors floors;
	struct error e;
	struct model_config c = {
		.arch = &arch_mlp_nb, .vocab_size = w->genes, .hidden_size = w->latent, .intermediate_size = w->hidden, .own = {1e-5, 0.1}};
	struct optim opt;
	optim_init(&opt);
	opt.variant = ADAMW_L2;
	opt.schedule = SCHEDULE_CONSTANT;
	opt.max_norm = 0;
	size_t most = (size_t)w->cells * w->genes;
	w->offset = xcalloc(w->cells + (size_t)1, 4);
	w->id = xcalloc(most, 4), w->count = xcalloc(most, 4), w->value = xcalloc(most, 4);
	w->mask = xcalloc(w->cells * nb_words(w->genes), 4);
	inner = ops_cpu_new(threads);
	struct ops table = timed_ops();
	struct model *m = model_new(&c, &(struct head_spec){.kind = &head_nb}, 1, &table, 1, &e);
	floors_init(&floors);
	for (int k = 0; k <= steps; k++) {
		make_batch(w);
		ops_reset();
		floors_measure(&floors, threads);
		measure(&step, 0);
		train_step(m, &opt, w, (uint64_t)k);
		measure(&step, 1);
		if (!k) /* it warmed up */
			step.n = floors.fma.n = floors.gemm.n = 0;
		else
			ops_keep_best(k == 1);
	}
	report(w, threads, &step, &floors);
	floors_free(&floors);
	free(w->offset), free(w->id), free(w->count), free(w->value), free(w->mask);
	model_free(m);
	inner->destroy(inner);
}

int main(int argc, char **argv)
{
	static const int usual[] = {2, 5, 5000, 1024, 512, 400, 500};
	int x[7];
	for (int i = 0; i < 7; i++)
		x[i] = argc > i + 1 ? atoi(argv[i + 1]) : usual[i];
	for (int i = 0; i < 7; i++)
		if (x[i] < 1)
			return 2;
	if (x[1] >= ROUNDS_MAX)
		return 2;
	if (blas_core_set()) /* as the tools do */
		execv("/proc/self/exe", argv);
	struct work w = {.genes = (uint32_t)x[2],
		.hidden = (uint32_t)x[3],
		.latent = (uint32_t)x[4],
		.cells = (uint32_t)x[5],
		.expressed = (uint32_t)x[6]};
	bench(&w, x[0], x[1]);
	return 0;
}
