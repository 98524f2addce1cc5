/*
 * The float CPU ops of networks on cells (bag, batch_norm, nb_loss, expression_loss) against plain loops in double, at sizes with whole and broken chunks,
 * and the same bits for 1, 2 and 3 threads. tests/unit/test_nb.c and test_expression.c have their gradients.
 */
#include "numbers.h"

#include "base/gamma.h"

static float *copy(const float *x, size_t n)
{
	return memcpy(xcalloc(n, sizeof *x), x, n * sizeof *x);
}

/* Cells with a share of the genes each, the last one with none. */
struct counts {
	struct seq s;
	uint32_t *offset, *id, *cell, *order, *start, *count, *mask;
	float *value;
};

static void make_counts(struct counts *x, size_t B, size_t G)
{
	size_t words = nb_words(G), n = 0;
	*x = (struct counts){.offset = xcalloc(B + 1, 4),
		.id = xcalloc(B * G, 4),
		.cell = xcalloc(B * G, 4),
		.order = xcalloc(B * G, 4),
		.start = xcalloc(G + 1, 4),
		.count = xcalloc(B * G, 4),
		.mask = xcalloc(B * words, 4),
		.value = xcalloc(B * G, 4)};
	for (uint32_t b = 0; b < B; b++) {
		for (uint32_t g = 0; g < G; g++) {
			uint32_t masked = draw(3) == 0;
			x->mask[b * words + g / 32] |= masked << g % 32;
			if (b + 1 == B || draw(4))
				continue;
			x->id[n] = g;
			x->cell[n] = b;
			x->count[n] = draw(10) ? 1 + draw(5) : 1 + draw(2000);
			x->value[n] = masked ? 0 : logf(1 + (float)x->count[n]);
			n++;
		}
		x->offset[b + 1] = (uint32_t)n;
	}
	for (uint32_t g = 0, at = 0; g < G; g++) {
		for (uint32_t t = 0; t < n; t++)
			if (x->id[t] == g)
				x->order[at++] = t;
		x->start[g + 1] = at;
	}
	x->s = (struct seq){.B = B, .T = n, .offset = x->offset, .id = x->id, .cell = x->cell, .order = x->order, .start = x->start};
}

static void free_counts(struct counts *x)
{
	free(x->offset), free(x->id), free(x->cell), free(x->order), free(x->start), free(x->count), free(x->mask), free(x->value);
}

/* ---- bag ---- */

static void check_bag(size_t B, size_t G, size_t C, int weighted)
{
	struct counts x;
	make_counts(&x, B, G);
	float *W = random_floats(G * C, 1), *y = random_floats(B * C, 1), *dy = random_floats(B * C, 1), *dW = random_floats(G * C, 1);
	double *wy = xcalloc(B * C, 8), *wdW = xcalloc(G * C, 8), *wadd = xcalloc(B * C, 8);
	for (size_t i = 0; i < G * C; i++)
		wdW[i] = dW[i];
	for (size_t t = 0; t < x.s.T; t++) {
		for (size_t c = 0; c < C; c++) {
			double v = weighted ? x.value[t] : 1;
			wy[x.cell[t] * C + c] += v * W[x.id[t] * C + c];
			wdW[x.id[t] * C + c] += v * dy[x.cell[t] * C + c];
		}
	}
	for (size_t i = 0; i < B * C; i++)
		wadd[i] = wy[i] + y[i];
	for (int threads = 1; threads <= 3; threads++) {
		struct ops *o = ops_cpu_new(threads);
		float *a = copy(y, B * C), *d = copy(dW, G * C);
		const float *value = weighted ? x.value : NULL;
		o->bag(o, a, W, &x.s, value, B, C, 1);
		assert_true(apart(a, wadd, B * C) < 1e-6);
		o->bag(o, a, W, &x.s, value, B, C, 0);
		assert_true(apart(a, wy, B * C) < 1e-6);
		o->bag_back(o, d, dy, &x.s, value, G, C);
		assert_true(apart(d, wdW, G * C) < 1e-6);
		free(a);
		free(d);
		o->destroy(o);
	}
	free(W), free(y), free(dy), free(dW), free(wy), free(wdW), free(wadd);
	free_counts(&x);
}

static void bag(void **state)
{
	check_bag(1, 3, 1, 1);
	check_bag(7, 40, 64, 0);
	check_bag(70, 301, 150, 1);
}

/* ---- batch norm ---- */

static void check_norm(size_t N, size_t C, enum act act)
{
	float *x = random_floats(N * C, 3), *gamma = random_floats(C, 1), *beta = random_floats(C, 1), *dy = random_floats(N * C, 1);
	float *mean = random_floats(C, 1), *var = random_floats(C, 1), *dg = random_floats(C, 1), *db = random_floats(C, 1);
	double *wy = xcalloc(N * C, 8), *wdx = xcalloc(N * C, 8), *we = xcalloc(N * C, 8), *w[4], eps = 1e-3, move = 0.2;
	for (int i = 0; i < 4; i++)
		w[i] = xcalloc(C, 8);
	for (size_t c = 0; c < C; c++) {
		double m = 0, v = 0, sg = 0, sn = 0;
		var[c] = 1 + fabsf(var[c]);
		for (size_t k = 0; k < N; k++)
			m += x[k * C + c] / (double)N;
		for (size_t k = 0; k < N; k++)
			v += (x[k * C + c] - m) * (x[k * C + c] - m) / (double)N;
		w[0][c] = (1 - move) * mean[c] + move * m;
		w[1][c] = (1 - move) * var[c] + move * v * (double)N / (double)(N - 1);
		for (size_t k = 0; k < N; k++) {
			double n = (x[k * C + c] - m) / sqrt(v + eps), y = n * gamma[c] + beta[c];
			int on = act == ACT_NONE || y > 0;
			wy[k * C + c] = on ? y : 0;
			y = (x[k * C + c] - w[0][c]) / sqrt(w[1][c] + eps) * gamma[c] + beta[c];
			we[k * C + c] = act == ACT_NONE || y > 0 ? y : 0;
			wdx[k * C + c] = on ? dy[k * C + c] : 0;
			sg += wdx[k * C + c];
			sn += wdx[k * C + c] * n;
		}
		w[2][c] = dg[c] + sn;
		w[3][c] = db[c] + sg;
		for (size_t k = 0; k < N; k++) {
			double n = (x[k * C + c] - m) / sqrt(v + eps);
			wdx[k * C + c] = gamma[c] / sqrt(v + eps) * (wdx[k * C + c] - sg / (double)N - n * sn / (double)N);
		}
	}
	struct ops *o = ops_cpu_new(2);
	float *y = xcalloc(N * C, 4), *stat = xcalloc(2 * C, 4);
	o->batch_norm(o, y, stat, x, gamma, beta, mean, var, N, C, eps, move, 1, act);
	assert_true(apart(y, wy, N * C) < 1e-6 && apart(mean, w[0], C) < 1e-6 && apart(var, w[1], C) < 1e-6);
	o->batch_norm_back(o, dy, dg, db, dy, x, y, stat, gamma, N, C, act);
	assert_true(apart(dy, wdx, N * C) < 2e-6 && apart(dg, w[2], C) < 2e-6 && apart(db, w[3], C) < 2e-6);
	o->batch_norm(o, y, NULL, x, gamma, beta, mean, var, N, C, eps, move, 0, act);
	assert_true(apart(y, we, N * C) < 1e-6 && apart(mean, w[0], C) < 1e-6);
	o->destroy(o);
	free(x), free(gamma), free(beta), free(dy), free(mean), free(var), free(dg), free(db), free(y), free(stat), free(wy), free(wdx),
		free(we);
	for (int i = 0; i < 4; i++)
		free(w[i]);
}

static void batch_norm(void **state)
{
	check_norm(3, 1, ACT_RELU);
	check_norm(40, 64, ACT_NONE);
	check_norm(301, 550, ACT_RELU);
}

/* ---- negative binomial ---- */

/* Loss and gradients in double, gene by gene as the definition has it. w NULL: all weights are 1. loss [G]: of the genes, without weights. */
static double plain_nb(
	double *dz, double *dt, double *loss, const float *z, const float *t, const float *w, const struct counts *x, size_t B, size_t G)
{
	double sum = 0, *p = xcalloc(G, 8), *n = xcalloc(G, 8), *g = xcalloc(G, 8);
	for (size_t b = 0; b < B; b++) {
		double top = -INFINITY, total = 0, L = 0, all = 0;
		for (size_t j = 0; j < G; j++) {
			top = fmax(top, z[b * G + j]);
			n[j] = g[j] = 0;
		}
		for (size_t k = x->offset[b]; k < x->offset[b + 1]; k++)
			L += n[x->id[k]] = x->count[k];
		for (size_t j = 0; j < G; j++)
			total += p[j] = exp(z[b * G + j] - top);
		for (size_t j = 0; j < G; j++) {
			double mu = L * (p[j] /= total), theta = exp(t[j]), own = w ? w[j] : 1;
			if (!(x->mask[b * nb_words(G) + j / 32] >> j % 32 & 1))
				continue;
			double log_rest = log(theta / (theta + mu));
			double l = lgamma(n[j] + theta) - lgamma(theta) - lgamma(n[j] + 1) + theta * log_rest +
				(n[j] > 0 ? n[j] * log(mu / (theta + mu)) : 0);
			loss[j] -= l;
			sum -= own * l;
			g[j] = own * (n[j] - mu * (n[j] + theta) / (mu + theta));
			all += g[j];
			dt[j] -= own * theta * (digamma(n[j] + theta) - digamma(theta) + log_rest + 1 - (n[j] + theta) / (mu + theta));
		}
		for (size_t j = 0; j < G; j++)
			dz[b * G + j] = -(g[j] - p[j] * all);
	}
	free(p), free(n), free(g);
	return sum;
}

static void check_nb(size_t B, size_t G, int weighted)
{
	struct counts x;
	make_counts(&x, B, G);
	float *z = random_floats(B * G, 4), *t = random_floats(G, 3), *lse = xcalloc(B, 4), *first = NULL, *first_t = NULL;
	float *w = weighted ? random_floats(G, 1) : NULL, *loss = xcalloc(G, 4), *loss1 = NULL;
	for (size_t g = 0; w && g < G; g++)
		w[g] = fabsf(w[g]);
	double *dz = xcalloc(B * G, 8), *dt = xcalloc(G, 8), *of_gene = xcalloc(G, 8);
	double want = plain_nb(dz, dt, of_gene, z, t, w, &x, B, G), sum1 = 0;
	for (int threads = 1; threads <= 3; threads++) {
		struct ops *o = ops_cpu_new(threads);
		double sum = 1;
		float *got = copy(z, B * G), *got_t = xcalloc(G, 4);
		o->nb_loss(o, &sum, lse, z, t, &x.s, x.count, x.mask, w ? &(struct gene_weight){w, loss} : NULL, B, G);
		o->nb_loss_back(o, got, got_t, t, &x.s, x.count, x.mask, lse, NULL, w, B, G);
		if (threads == 1) {
			sum1 = sum;
			first = copy(got, B * G);
			first_t = copy(got_t, G);
			print_message("  %zu x %zu: loss %.1e, dz %.1e, dt %.1e\n", B, G, fabs(sum - 1 - want) / fmax(want, 1),
				apart(got, dz, B * G), apart(got_t, dt, G));
			assert_true(fabs(sum - 1 - want) <= (w ? 5e-6 : 2e-6) * want); /* weights near 0 for the largest losses */
			assert_true(apart(got, dz, B * G) < 5e-6);
			assert_true(apart(got_t, dt, G) < 5e-6);
			/* a loss of a large count is the difference of larger numbers */
			if (w)
				print_message("    of the genes: %.1e\n", apart(loss, of_gene, G));
			assert_true(!w || apart(loss, of_gene, G) < 1e-5);
			loss1 = copy(loss, G);
		}
		assert_memory_equal(loss, loss1, G * 4);
		assert_true(sum == sum1);
		assert_memory_equal(got, first, B * G * 4);
		assert_memory_equal(got_t, first_t, G * 4);
		/* twice the loss */
		memcpy(got, z, B * G * 4);
		o->nb_loss_back(o, got, got_t, t, &x.s, x.count, x.mask, lse, (float[]){2}, w, B, G);
		for (size_t i = 0; i < B * G; i++)
			assert_true(got[i] == 2 * first[i]);
		free(got), free(got_t);
		o->destroy(o);
	}
	free(z), free(t), free(w), free(lse), free(dz), free(dt), free(loss), free(loss1), free(of_gene), free(first), free(first_t);
	free_counts(&x);
}

static void nb_loss(void **state)
{
	for (int weighted = 0; weighted < 2; weighted++) {
		check_nb(3, 5, weighted);
		check_nb(9, 64, weighted);
		check_nb(301, 701, weighted);
	}
}

/* Genes of count 0, one by one, whose mu / theta goes from 1e-9 to 1e13. */
static void wide_theta(void **state)
{
	enum { G = 203, LISTED = 77 };
	struct seq s = {.B = 1, .T = 1, .offset = (uint32_t[]){0, 1}, .id = (uint32_t[]){LISTED}};
	uint32_t count = 1000, mask[7] = {0};
	float z[G] = {0}, t[G], weight[G], loss[G], dt[G] = {0}, lse;
	double sum = 0, total = 0, worst = 0, worst_t = 0;
	for (int g = 0; g < G; g++) {
		t[g] = (float)(25 - .25 * g);
		weight[g] = 1;
		mask[g / 32] |= (uint32_t)(g != LISTED && g % 5) << g % 32;
	}
	struct ops *o = ops_cpu_new(1);
	o->nb_loss(o, &sum, &lse, z, t, &s, &count, mask, &(struct gene_weight){weight, loss}, 1, G);
	o->nb_loss_back(o, z, dt, t, &s, &count, mask, &lse, NULL, NULL, 1, G);
	for (int g = 0; g < G; g++) {
		double theta = exp(t[g]), r = count / (double)G / theta, want = theta * log1p(r);
		if (!(mask[g / 32] >> g % 32 & 1)) {
			assert_true(loss[g] == 0 && dt[g] == 0);
			continue;
		}
		total += want;
		worst = fmax(worst, fabs(loss[g] / want - 1));
		worst_t = fmax(worst_t, fabs(dt[g] - (want - theta * r / (1 + r))) / want);
	}
	print_message("  worst %.1e of a loss, %.1e of dt, %.1e of the sum\n", worst, worst_t, fabs(sum / total - 1));
	assert_true(worst < 5e-7 && worst_t < 1e-6 && fabs(sum / total - 1) < 3e-7);
	sum = 0;
	z[3] = NAN;
	o->nb_loss(o, &sum, &lse, z, t, &s, &count, mask, NULL, 1, G);
	assert_true(isnan(sum));
	o->destroy(o);
}

/* ---- expression ---- */

/* The sums and gradients of one number, in double. */
static void one_expression(double sum[12], double d[2], double m, double a, double y, int in, int apart, const float *scale)
{
	double zero = log1p(exp(-fabs(a))) + fmax(a, 0) - (y == 0 ? a : 0), value = y == 0 ? 0 : (m - y) * (m - y);
	int right = (a > 0) == (y == 0), also = !apart ? 0 : in ? 4 : 8;
	for (int at = 0; at <= also; at += also ? also : 1) {
		sum[at] += zero;
		sum[at + 1] += right;
		sum[at + 2] += value;
	}
	double f0 = scale[0] + (also ? scale[also / 2] : 0), f1 = scale[1] + (also ? scale[also / 2 + 1] : 0);
	d[0] = y == 0 ? 0 : 2 * (m - y) * f1;
	d[1] = f0 * (1 / (1 + exp(-a)) - (y == 0));
}

static void check_expression(size_t N, size_t G, int apart)
{
	const float scale[] = {0.5f, 0.7f, 1.5f, 0.2f, 0.9f, 2};
	size_t words = nb_words(G);
	float *z = random_floats(2 * N * G, 3), *y = random_floats(N * G, 4), *first = NULL;
	uint32_t *in = xcalloc(N * words, 4);
	double want[12] = {0}, first_sum[12], worst = 0, worst_sum = 0, *d = xcalloc(2 * N * G, sizeof *d);
	for (size_t i = 0; i < N * G; i++) {
		y[i] = draw(3) == 0 ? 0 : draw(9) == 0 ? NAN : fabsf(y[i]);
		z[2 * i + 1] *= draw(6) ? 1 : 20;
		in[i / G * words + i % G / 32] |= (uint32_t)!draw(4) << i % G % 32;
		if (!isnan(y[i]))
			one_expression(want, d + 2 * i, z[2 * i], z[2 * i + 1], y[i], in[i / G * words + i % G / 32] >> i % G % 32 & 1,
				apart, scale);
	}
	for (int threads = 1; threads <= 3; threads++) {
		struct ops *o = ops_cpu_new(threads);
		double sum[12] = {0};
		float *got = copy(z, 2 * N * G);
		o->expression_loss(o, sum, got, y, apart ? in : NULL, N, G);
		o->expression_loss_back(o, got, y, apart ? in : NULL, scale, N, G);
		for (size_t i = 0; i < 12; i++)
			worst_sum = fmax(worst_sum, fabs(sum[i] - want[i]) / (1 + want[i]));
		for (size_t i = 0; i < 2 * N * G; i++)
			worst = fmax(worst, fabs((double)got[i] - d[i]));
		if (first) {
			assert_memory_equal(got, first, 2 * N * G * sizeof *got);
			assert_memory_equal(sum, first_sum, sizeof sum);
			free(got);
		} else {
			first = got;
			memcpy(first_sum, sum, sizeof sum);
		}
		o->destroy(o);
	}
	print_message("  worst %.1e of a gradient, %.1e of the sums\n", worst, worst_sum);
	assert_true(worst < 5e-6 && worst_sum < 1e-7);
	free(z), free(y), free(in), free(d), free(first);
}

static void expression_loss(void **state)
{
	check_expression(1, 1, 0);
	check_expression(701, 1, 0);
	check_expression(9, 64, 1);
	check_expression(5, 30011, 1);
	check_expression(3, 701, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(bag), cmocka_unit_test(batch_norm), cmocka_unit_test(nb_loss),
		cmocka_unit_test(wide_theta), cmocka_unit_test(expression_loss)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
