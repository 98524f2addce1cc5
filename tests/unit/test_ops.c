/*
 * The float CPU ops against plain loops in double at sizes that fill several tiles, dropout bits against Random123's own
 * Philox, and what a whole training run must keep: the same bits for 1, 2 and 3 threads, and a batch learnt by heart.
 */
#include "numbers.h"

#include <Random123/philox.h>

#include "nn/model.h"
#include "base/rng.h"

/*
 * The Makefile compiles this file once more for the ops with products in bfloat16 (PRODUCTS_BF16). Inputs are then numbers of bfloat16, so a
 * product of them is as exact as in float; what is rounded on the way (probabilities, gradients) has another tolerance.
 */
#ifdef PRODUCTS_BF16
static float *inputs(size_t n, float size)
{
	float *x = random_floats(n, size);
	for (size_t i = 0; i < n; i++) {
		uint32_t bits;
		memcpy(&bits, &x[i], 4);
		bits &= 0xffff0000;
		memcpy(&x[i], &bits, 4);
	}
	return x;
}
enum { ROUNDED = 1 };
#else
#define inputs random_floats
enum { ROUNDED = 0 };
#endif

/* ops.h's rule, word for word */
static double keep(const struct dropout *d, uint32_t head, uint32_t position, uint32_t cell, uint32_t column)
{
	philox4x32_ctr_t c = {{*d->step, d->site << 28 | d->layer << 16 | head, position << 16 | column / 8, cell}};
	philox4x32_key_t k = {{d->seed, RNG_DROPOUT}};
	philox4x32_ctr_t x = philox4x32(c, k);
	uint32_t bits = x.v[column % 8 / 2] >> 16 * (column % 2) & 0xffff;
	return bits < d->threshold ? 0 : 65536.0 / (65536.0 - d->threshold);
}

struct packed {
	struct seq s;
	uint32_t offset[8], key[8], *pos, *cell;
};

static void pack(struct packed *p, const uint32_t *len, size_t B)
{
	*p = (struct packed){.s = {.B = B}};
	for (size_t b = 0; b < B; b++) {
		p->offset[b + 1] = p->offset[b] + len[b];
		p->key[b] = 1000 + (uint32_t)b;
		p->s.L = len[b] > p->s.L ? len[b] : p->s.L;
	}
	p->s.T = p->offset[B];
	p->pos = xcalloc(p->s.T, 4);
	p->cell = xcalloc(p->s.T, 4);
	for (uint32_t b = 0; b < B; b++) {
		for (uint32_t t = 0; t < len[b]; t++) {
			p->pos[p->offset[b] + t] = t;
			p->cell[p->offset[b] + t] = b;
		}
	}
	p->s.offset = p->offset;
	p->s.key = p->key;
	p->s.pos = p->pos;
	p->s.cell = p->cell;
}

static void unpack(struct packed *p)
{
	free(p->pos);
	free(p->cell);
}

static void dropout_bits(void **state)
{
	struct ops *o = ops_cpu_new(1);
	struct packed p;
	pack(&p, (uint32_t[]){5, 1, 40}, 3);
	for (size_t C = 1; C < 140; C += 23) {
		float *x = random_floats(p.s.T * C, 1), *y = xcalloc(p.s.T * C, 4);
		struct dropout d = {.seed = 123456789, .step = (uint32_t[]){77}, .site = SITE_FFN, .layer = 5, .threshold = 20000};
		o->drop(o, y, x, &p.s, 0, C, &d);
		for (uint32_t t = 0; t < p.s.T; t++)
			for (uint32_t c = 0; c < C; c++)
				assert_true(y[t * C + c] == x[t * C + c] * (float)keep(&d, 0, p.pos[t], p.key[p.cell[t]], c));
		o->drop(o, y, x, &p.s, 1, C, &d);
		for (uint32_t b = 0; b < 3; b++)
			for (uint32_t c = 0; c < C; c++)
				assert_true(y[b * C + c] == x[b * C + c] * (float)keep(&d, 0, 0, p.key[b], c));
		free(x);
		free(y);
	}
	unpack(&p);
	o->destroy(o);
}

static void check_attention(const uint32_t *len, size_t B, size_t NH, size_t D, uint32_t threshold, float size)
{
	struct ops *o = ops_cpu_new(2);
	struct packed p;
	pack(&p, len, B);
	size_t C = NH * D, T = p.s.T;
	float *qkv = inputs(T * 3 * C, size), *dy = inputs(T * C, 1);
	float *y = xcalloc(T * C, 4), *lse = xcalloc(T * NH, 4), *dqkv = random_floats(T * 3 * C, 9);
	double *want = xcalloc(T * C, 8), *dwant = xcalloc(T * 3 * C, 8), *P = xcalloc(p.s.L, 8), *dP = xcalloc(p.s.L, 8);
	struct dropout d = {.seed = 4, .step = (uint32_t[]){9}, .site = SITE_PROB, .layer = 1, .threshold = threshold};
	double scale = 1 / sqrt((double)D);
	for (size_t b = 0; b < B; b++) {
		for (size_t h = 0; h < NH; h++) {
			const float *q = qkv + p.offset[b] * 3 * C + h * D, *k = q + C, *v = k + C, *g = dy + p.offset[b] * C + h * D;
			double *w = want + p.offset[b] * C + h * D, *dq = dwant + p.offset[b] * 3 * C + h * D, *dk = dq + C, *dv = dk + C;
			for (uint32_t i = 0; i < len[b]; i++) {
				double top = -INFINITY, sum = 0, delta = 0;
				for (size_t j = 0; j < len[b]; j++) {
					P[j] = 0;
					for (size_t c = 0; c < D; c++)
						P[j] += scale * q[i * 3 * C + c] * k[j * 3 * C + c];
					top = fmax(top, P[j]);
				}
				for (size_t j = 0; j < len[b]; j++)
					sum += P[j] = exp(P[j] - top);
				for (uint32_t j = 0; j < len[b]; j++) {
					double f = threshold ? keep(&d, (uint32_t)h, i, p.key[b], j) : 1;
					P[j] /= sum;
					dP[j] = 0;
					for (size_t c = 0; c < D; c++) {
						w[i * C + c] += P[j] * f * v[j * 3 * C + c];
						dv[j * 3 * C + c] += P[j] * f * g[i * C + c];
						dP[j] += f * g[i * C + c] * v[j * 3 * C + c];
					}
					delta += P[j] * dP[j];
				}
				for (size_t j = 0; j < len[b]; j++) {
					for (size_t c = 0; c < D; c++) {
						dq[i * 3 * C + c] += P[j] * (dP[j] - delta) * scale * k[j * 3 * C + c];
						dk[j * 3 * C + c] += P[j] * (dP[j] - delta) * scale * q[i * 3 * C + c];
					}
				}
			}
		}
	}
	o->attention(o, y, lse, qkv, &p.s, C, NH, &d);
	o->attention_back(o, dqkv, dy, y, lse, qkv, &p.s, C, NH, &d);
	double a = apart(y, want, T * C), b = apart(dqkv, dwant, T * 3 * C);
	/* the same bits with stored decisions, also in room for longer cells; 7: another dropout than that which was stored is not looked at */
	float *again = random_floats(T * 3 * C, 9);
	d.longest = p.s.L + 100;
	d.keep = xcalloc(o->keep_bytes(o, B, T, d.longest, C, NH) + 1, 1);
	o->attention(o, y, lse, qkv, &p.s, C, NH, &d);
	d.seed = 7;
	o->attention_back(o, again, dy, y, lse, qkv, &p.s, C, NH, &d);
	assert_memory_equal(again, dqkv, T * 3 * C * sizeof *dqkv);
	free(again);
	free(d.keep);
	print_message("  D %zu, dropout %.2f: forward %.1e, backward %.1e\n", D, threshold / 65536.0, a, b);
	double large = fmax(1, size * size / 4); /* large scores lose more in float */
	assert_true(a < (ROUNDED ? 6e-3 : 2e-6 * large));
	assert_true(b < (ROUNDED ? 8e-3 : 2e-6 * large));
	free(qkv), free(dy), free(y), free(lse), free(dqkv), free(want), free(dwant), free(P), free(dP);
	unpack(&p);
	o->destroy(o);
}

static void attention(void **state)
{
	const uint32_t len[] = {1, 300, 17, 0, 513, 256, 9};
	check_attention(len, 7, 2, 64, 0, 1);
	check_attention(len, 7, 1, 64, 6554, 1);
	check_attention(len, 7, 1, 64, 1311, 12); /* scores of many sizes: the running maximum moves */
	check_attention(len, 7, 3, 32, 1311, 1);
	check_attention(len, 7, 3, 5, 1311, 2);
	check_attention((uint32_t[]){1}, 1, 2, 7, 6554, 1);
	check_attention((uint32_t[]){261}, 1, 1, 128, 1311, 1);
}

static void check_linear(size_t T, size_t K, size_t N, enum act act)
{
	struct ops *o = ops_cpu_new(3);
	float *x = inputs(T * K, 1), *W = inputs(N * K, 0.1f), *b = random_floats(N, 1), *dy = inputs(T * N, 1);
	float *y = xcalloc(T * N, 4), *dx = random_floats(T * K, 1), *dW = random_floats(N * K, 1), *db = random_floats(N, 1);
	double *wy = xcalloc(T * N, 8), *wdx = xcalloc(T * K, 8), *wdW = xcalloc(N * K, 8), *wdb = xcalloc(N, 8);
	for (size_t i = 0; i < T * K; i++)
		wdx[i] = dx[i];
	for (size_t i = 0; i < N * K; i++)
		wdW[i] = dW[i];
	for (size_t n = 0; n < N; n++)
		wdb[n] = db[n];
	for (size_t t = 0; t < T; t++) {
		for (size_t n = 0; n < N; n++) {
			double z = b[n], g = dy[t * N + n];
			for (size_t k = 0; k < K; k++)
				z += (double)x[t * K + k] * W[n * K + k];
			wy[t * N + n] = act == ACT_RELU ? fmax(z, 0) : act == ACT_TANH ? tanh(z) : act == ACT_LEAKY ? fmax(z, 0.01 * z) : z;
			g *= act == ACT_RELU ? z > 0 : act == ACT_TANH ? 1 - tanh(z) * tanh(z) : act == ACT_LEAKY && z <= 0 ? 0.01 : 1;
			wdb[n] += g;
			for (size_t k = 0; k < K; k++) {
				wdx[t * K + k] += g * W[n * K + k];
				wdW[n * K + k] += g * x[t * K + k];
			}
		}
	}
	o->linear(o, y, NULL, x, W, b, T, K, N, act);
	o->linear_back(o, dx, dW, db, dy, x, W, y, NULL, T, K, N, act, 1);
	assert_true(apart(y, wy, T * N) < 2e-6);
	print_message("  %zu x %zu x %zu: y %.1e, dx %.1e, dW %.1e\n", T, K, N, apart(y, wy, T * N), apart(dx, wdx, T * K),
		apart(dW, wdW, N * K));
	double rounded = ROUNDED && (act == ACT_TANH || act == ACT_LEAKY) ? 3e-3 : 0; /* the gradient before the activation */
	assert_true(apart(dx, wdx, T * K) < 2e-6 + rounded);
	assert_true(apart(dW, wdW, N * K) < 4e-6 + rounded);
	assert_true(apart(db, wdb, N) < 2e-6);
	free(x), free(W), free(b), free(dy), free(y), free(dx), free(dW), free(db), free(wy), free(wdx), free(wdW), free(wdb);
	o->destroy(o);
}

static void linear(void **state)
{
	check_linear(1, 1, 1, ACT_NONE);
	check_linear(1, 37, 70, ACT_RELU);
	check_linear(700, 65, 131, ACT_RELU);
	check_linear(259, 40, 300, ACT_TANH);
	check_linear(130, 37, 70, ACT_LEAKY);
	check_linear(2100, 16, 9, ACT_NONE);
	check_linear(4001, 33, 70, ACT_RELU);
	check_linear(40, 45, 2011, ACT_NONE);
}

/* RMSNorm of x + a, and its backward on top of a gradient that is there. */
static void check_rms(size_t T, size_t C, int with_x)
{
	float *a = random_floats(T * C, 1), *x = random_floats(T * C, 1), *scale = random_floats(C, 1), *dy = random_floats(T * C, 1);
	float *y = xcalloc(T * C, 4), *stat = xcalloc(T, 4), *dx = random_floats(T * C, 1), *ds = random_floats(C, 1), *first = NULL;
	double *wy = xcalloc(T * C, 8), *wdx = xcalloc(T * C, 8), *wds = xcalloc(C, 8), eps = 1e-2;
	for (size_t c = 0; c < C; c++)
		wds[c] = ds[c];
	for (size_t t = 0; t < T; t++) {
		double square = eps, m = 0, r[300];
		for (size_t c = 0; c < C; c++) {
			r[c] = (double)a[t * C + c] + (with_x ? (double)x[t * C + c] : 0);
			square += r[c] * r[c] / (double)C;
		}
		for (size_t c = 0; c < C; c++) {
			double n = r[c] / sqrt(square);
			wy[t * C + c] = n * scale[c];
			wds[c] += n * dy[t * C + c];
			m += n * dy[t * C + c] * scale[c] / (double)C;
		}
		for (size_t c = 0; c < C; c++)
			wdx[t * C + c] = dx[t * C + c] + (dy[t * C + c] * (double)scale[c] - m * r[c] / sqrt(square)) / sqrt(square);
	}
	for (int threads = 1; threads <= 3; threads++) {
		struct ops *o = ops_cpu_new(threads);
		float *r = xcalloc(T * C, 4), *d = xcalloc(T * C, 4), *g = xcalloc(C, 4);
		memcpy(r, a, T * C * 4), memcpy(d, dx, T * C * 4), memcpy(g, ds, C * 4);
		o->rms_norm(o, y, r, stat, r, with_x ? x : NULL, scale, T, C, eps);
		assert_true(apart(y, wy, T * C) < 1e-6);
		o->rms_norm_back(o, d, g, dy, r, stat, scale, T, C);
		assert_true(apart(d, wdx, T * C) < 2e-6 && apart(g, wds, C) < 4e-6);
		assert_true(!first || !memcmp(first, g, C * 4));
		free(first);
		first = g;
		free(r), free(d);
		o->destroy(o);
	}
	free(a), free(x), free(scale), free(dy), free(y), free(stat), free(dx), free(ds), free(first), free(wy), free(wdx), free(wds);
}

static void rms_norm(void **state)
{
	check_rms(1, 1, 0);
	check_rms(5, 37, 1);
	check_rms(2001, 64, 1);
	check_rms(700, 129, 0);
}

static void check_swiglu(size_t T, size_t F)
{
	struct ops *o = ops_cpu_new(2);
	float *z = random_floats(T * 2 * F, 40), *dy = random_floats(T * F, 1), *y = xcalloc(T * F, 4);
	double *wy = xcalloc(T * F, 8), *wdz = xcalloc(T * 2 * F, 8);
	if (T > 1)
		z[0] = -200; /* past the end of exp in float */
	for (size_t t = 0; t < T; t++) {
		for (size_t f = 0; f < F; f++) {
			double g = z[t * 2 * F + f], u = z[t * 2 * F + F + f], s = 1 / (1 + exp(-g));
			wy[t * F + f] = g * s * u;
			wdz[t * 2 * F + f] = dy[t * F + f] * u * (s + g * s * (1 - s));
			wdz[t * 2 * F + F + f] = dy[t * F + f] * g * s;
		}
	}
	o->swiglu(o, y, z, T, F);
	assert_true(apart(y, wy, T * F) < 1e-6);
	o->swiglu_back(o, z, dy, z, T, F);
	assert_true(apart(z, wdz, T * 2 * F) < 2e-6);
	free(z), free(dy), free(y), free(wy), free(wdz);
	o->destroy(o);
}

static void swiglu(void **state)
{
	check_swiglu(1, 1);
	check_swiglu(3, 45);
	check_swiglu(1001, 96);
}

static double leaky(double x)
{
	return x > 0 ? x : 0.01 * x;
}

/* units: with a table of special values, 2, or without, 1; 0: periodic. At the last of 48 frequencies a sine is that of a phase of 1e13. */
static void check_values(size_t T, size_t n, size_t m, int units)
{
	enum { ROWS_ = 5 };
	float *x = random_floats(T, 4), *w = random_floats(n, 2), *b = random_floats(n, 1), *table = random_floats(ROWS_ * n, 1);
	float *center = random_floats(m + 1, 1), *orientation = random_floats(m + 1, 4);
	uint32_t *row = xcalloc(T, 4);
	for (size_t k = 0; !units && k < n; k++)
		w[k] = ldexpf(0.0628318f, (int)k);
	for (size_t t = 0; t < T; t++)
		row[t] = units != 1 && draw(3) == 0 ? draw(ROWS_) : ROW_NONE;
	struct value_features v = {.n = n,
		.m = m,
		.shift = 0.25,
		.w = w,
		.b = units ? b : NULL,
		.center = center,
		.orientation = orientation,
		.table = units == 2 ? table : NULL};
	size_t F = value_width(&v);
	float *f = xcalloc(T * F, 4), *df = random_floats(T * F, 1), *dw = random_floats(n, 1), *db = random_floats(n, 1), *first = NULL;
	double *wf = xcalloc(T * F, 8), *wdf = xcalloc(T * F, 8), *wdw = xcalloc(n, 8), *wdb = xcalloc(n, 8);
	for (size_t k = 0; k < n; k++) {
		wdw[k] = dw[k];
		wdb[k] = db[k];
	}
	for (size_t t = 0; t < T; t++) {
		double y = (double)x[t] - 0.25;
		for (size_t k = 0; k < n && units; k++) {
			double z = row[t] == ROW_NONE ? leaky((double)w[k] * x[t] + b[k]) : (double)table[row[t] * n + k];
			double d = df[t * F + k] * (units == 2 && z <= 0 ? 0.01 : 1);
			wf[t * F + k] = units == 2 ? leaky(z) : z;
			d *= row[t] == ROW_NONE && z <= 0 ? 0.01 : 1;
			wdf[t * F + k] = d;
			wdw[k] += row[t] == ROW_NONE ? d * x[t] : 0;
			wdb[k] += row[t] == ROW_NONE ? d : 0;
		}
		for (size_t k = 0; k < n && !units && row[t] == ROW_NONE; k++) {
			wf[t * F + k] = sin(w[k] * y);
			wf[t * F + n + k] = cos(w[k] * y);
			wdw[k] += y * (df[t * F + k] * cos(w[k] * y) - df[t * F + n + k] * sin(w[k] * y));
		}
		for (size_t j = 0; j < m && !units && row[t] == ROW_NONE; j++)
			wf[t * F + 2 * n + j] = 1 / (1 + exp(center[j] - orientation[j] * y));
	}
	for (int threads = 1; threads <= 3; threads++) {
		struct ops *o = ops_cpu_new(threads);
		float *d = xcalloc(T * F, 4), *gw = xcalloc(n, 4), *gb = xcalloc(n, 4);
		memcpy(d, df, T * F * 4), memcpy(gw, dw, n * 4), memcpy(gb, db, n * 4);
		o->value_features(o, f, x, units == 1 ? NULL : row, &v, T);
		assert_true(apart(f, wf, T * F) < 1e-6);
		o->value_features_back(o, gw, units ? gb : NULL, d, x, units == 1 ? NULL : row, &v, T);
		assert_true(apart(gw, wdw, n) < 2e-6 && (!units || (apart(gb, wdb, n) < 2e-6 && apart(d, wdf, T * F) < 1e-6)));
		assert_true(!first || !memcmp(first, gw, n * 4));
		free(first);
		first = gw;
		free(d), free(gb);
		o->destroy(o);
	}
	free(x), free(w), free(b), free(table), free(center), free(orientation), free(row), free(f), free(df), free(dw), free(db),
		free(first);
	free(wf), free(wdf), free(wdw), free(wdb);
}

static void value_features(void **state)
{
	check_values(1, 1, 0, 0);
	check_values(700, 48, 0, 0);
	check_values(33, 7, 3, 0);
	check_values(300, 128, 0, 1);
	check_values(900, 128, 0, 2);
}

static void check_mlm(size_t N, size_t C, size_t V)
{
	struct ops *o = ops_cpu_new(2);
	float *h = inputs(N * C, 2), *W = inputs(V * C, 1), *b = random_floats(V, 1), *lse = xcalloc(N, 4);
	float *dh = random_floats(N * C, 1), *dW = xcalloc(V * C, 4), *db = xcalloc(V, 4);
	double *wdh = xcalloc(N * C, 8), *wdW = xcalloc(V * C, 8), *wdb = xcalloc(V, 8), *z = xcalloc(V, 8), sum = 1, hits = 2,
	       got[2] = {1, 2};
	uint32_t *target = xcalloc(N, 4);
	for (size_t i = 0; i < N; i++) {
		target[i] = i % 11 == 5 ? ROW_NONE : draw((uint32_t)V);
		if (target[i] == ROW_NONE)
			continue;
		double top = -INFINITY, l = 0;
		for (size_t v = 0; v < V; v++) {
			z[v] = b[v];
			for (size_t c = 0; c < C; c++)
				z[v] += (double)h[i * C + c] * W[v * C + c];
			top = fmax(top, z[v]);
		}
		for (size_t v = 0; v < V; v++)
			l += exp(z[v] - top);
		sum += log(l) + top - z[target[i]];
		hits += z[target[i]] == top;
		for (size_t v = 0; v < V; v++) {
			double p = exp(z[v] - top) / l - (v == target[i]);
			wdb[v] += p;
			for (size_t c = 0; c < C; c++) {
				wdh[i * C + c] += p * W[v * C + c];
				wdW[v * C + c] += p * h[i * C + c];
			}
		}
	}
	o->mlm_loss(o, got, lse, h, W, b, target, N, C, V);
	o->mlm_loss_back(o, dh, dW, db, h, W, b, target, lse, NULL, N, C, V);
	assert_true(fabs(got[0] - sum) < 1e-6 * (1 + sum));
	assert_true(got[1] == hits);
	print_message("  %zu x %zu x %zu: dh %.1e, dW %.1e\n", N, C, V, apart(dh, wdh, N * C), apart(dW, wdW, V * C));
	assert_true(apart(dh, wdh, N * C) < (ROUNDED ? 2e-3 : 4e-6));
	assert_true(apart(dW, wdW, V * C) < (ROUNDED ? 2e-3 : 4e-6));
	assert_true(apart(db, wdb, V) < 4e-6);
	free(h), free(W), free(b), free(lse), free(dh), free(dW), free(db), free(wdh), free(wdW), free(wdb), free(z), free(target);
	o->destroy(o);
}

static void mlm_loss(void **state)
{
	check_mlm(1, 3, 1);
	check_mlm(5, 12, 1);
	check_mlm(1, 8, 3000);
	check_mlm(300, 17, 1531);
	check_mlm(40, 33, 5000);
}

static void class_loss(void **state)
{
	struct ops *o = ops_cpu_new(1);
	/* by hand: logits (0, ln 3): p = 1/4, 3/4 */
	float z[] = {0, logf(3), 0, logf(3), 5, 5}, w[] = {2, 1}, dz[6];
	double s[2] = {0};
	o->class_loss(o, s, dz, z, (int32_t[]){0, 1, -1}, w, NULL, 3, 2);
	assert_true(fabs(s[0] - (2 * log(4) + log(4. / 3))) < 1e-6 && s[1] == 1);
	double want[] = {2 * (.25 - 1), 2 * .75, .25, .75 - 1, 0, 0};
	for (int i = 0; i < 6; i++)
		assert_true(fabs(dz[i] - want[i]) < 1e-6);
	o->destroy(o);
}

/* ---- whole training runs ---- */

struct run {
	struct batch b;
	uint32_t *offset, *id, *mask, *target;
};

static void make_run(struct run *r, const uint32_t *len, size_t B, uint32_t V)
{
	r->offset = xcalloc(B + 1, 4);
	for (size_t i = 0; i < B; i++)
		r->offset[i + 1] = r->offset[i] + len[i];
	size_t T = r->offset[B], n = 0;
	r->id = xcalloc(T, 4);
	r->mask = xcalloc(T, 4);
	r->target = xcalloc(T, 4);
	for (uint32_t t = 0; t < T; t++) {
		r->id[t] = 2 + draw(V - 2);
		if (draw(100) < 15) {
			r->mask[n] = t;
			r->target[n++] = r->id[t];
			r->id[t] = 1;
		}
	}
	r->b = (struct batch){.ncell = B, .offset = r->offset, .id = r->id, .goal = {{.n = n, .row = r->mask, .target = r->target}}};
}

static void free_run(struct run *r)
{
	free(r->offset);
	free(r->id);
	free(r->mask);
	free(r->target);
}

static const struct head_spec MLM[] = {{.kind = &head_mlm}};

static void threads(void **state)
{
	struct error e;
	struct model_config c;
	struct run r;
	float *p[3];
	double loss[3][3];
	size_t size = 0;
	assert_int_equal(model_preset(&c, "tiny", &e), 0);
	c.vocab_size = 3001;
	make_run(&r, (uint32_t[]){700, 3, 1, 1040, 256, 64}, 6, c.vocab_size);
	for (int n = 1; n <= 3; n++) {
		struct ops *o = ops_cpu_new(n);
		struct model *m = model_new(&c, MLM, 1, o, 5, &e);
		struct optim opt;
		optim_init(&opt);
		opt.total = 10;
		for (uint64_t k = 0; k < 3; k++) {
			struct loss l;
			model_zero_grad(m);
			assert_int_equal(model_forward(m, &r.b, &(struct forward){.train = 1, .step = k}, &l, &e), 0);
			assert_int_equal(model_backward(m, &e), 0);
			assert_int_equal(model_step(m, &opt, k, l.count, NULL, &e), 0);
			loss[n - 1][k] = l.sum;
		}
		size = model_size(m, PARAM);
		p[n - 1] = xcalloc(size, 4);
		model_read_all(m, PARAM, p[n - 1]);
		model_free(m);
		o->destroy(o);
	}
	for (int n = 1; n < 3; n++) {
		assert_memory_equal(loss[0], loss[n], sizeof loss[0]);
		assert_int_equal(memcmp(p[0], p[n], size * 4), 0);
	}
	for (int n = 0; n < 3; n++)
		free(p[n]);
	free_run(&r);
}

/* One batch by heart: the loss falls from ln V to almost nothing, with every masked token right. */
static void overfit(void **state)
{
	struct error e;
	struct model_config c;
	struct run r;
	struct loss l = {0};
	assert_int_equal(model_preset(&c, "tiny", &e), 0);
	c.vocab_size = 200;
	make_run(&r, (uint32_t[]){40, 60, 1, 20}, 4, c.vocab_size);
	struct ops *o = ops_cpu_new(2);
	struct model *m = model_new(&c, MLM, 1, o, 5, &e);
	struct optim opt;
	optim_init(&opt);
	opt.lr = 5e-3;
	opt.warmup = 10;
	opt.total = 200;
	for (uint64_t k = 0; k < opt.total; k++) {
		model_zero_grad(m);
		assert_int_equal(model_forward(m, &r.b, &(struct forward){.train = 1, .step = k}, &l, &e), 0);
		assert_int_equal(model_backward(m, &e), 0);
		assert_int_equal(model_step(m, &opt, k, l.count, NULL, &e), 0);
		if (k == 0)
			assert_true(fabs(l.sum / l.count - log(200)) < 0.2);
	}
	assert_int_equal(model_forward(m, &r.b, &(struct forward){0}, &l, &e), 0);
	print_message("  loss %.4f after %d updates\n", l.sum / l.count, (int)opt.total);
	assert_true(l.sum / l.count < 0.05);
	assert_true(l.measure == l.count);
	free_run(&r);
	model_free(m);
	o->destroy(o);
}

static void schedules(void **state)
{
	struct optim o;
	optim_init(&o);
	o.warmup = 4;
	o.total = 12;
	const double linear_want[] = {0, .25, .5, .75, 1, .875, .75, .625, .5, .375, .25, .125, 0, 0};
	for (uint64_t k = 0; k < 14; k++)
		assert_true(optim_factor(&o, k) == linear_want[k]);
	o.schedule = SCHEDULE_COSINE;
	assert_true(fabs(optim_factor(&o, 8) - 0.5) < 1e-15 && optim_factor(&o, 2) == 0.5 && optim_factor(&o, 99) == 0);
	o.schedule = SCHEDULE_CONSTANT;
	assert_true(optim_factor(&o, 4) == 1 && optim_factor(&o, 99) == 1);
	o.warmup = 0;
	o.schedule = SCHEDULE_LINEAR;
	assert_true(optim_factor(&o, 0) == 1);
	assert_string_equal(adamw_words[ADAMW_L2], "l2");
}

int main(void)
{
#ifdef PRODUCTS_BF16
	struct ops *here = ops_cpu_new(1);
	if (!here) {
		puts("skipped: this processor has no AVX512-BF16, or CORRMASK_CPU excludes it");
		return 0;
	}
	here->destroy(here);
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dropout_bits),
		cmocka_unit_test(attention),
		cmocka_unit_test(linear),
		cmocka_unit_test(rms_norm),
		cmocka_unit_test(swiglu),
		cmocka_unit_test(value_features),
		cmocka_unit_test(mlm_loss),
		cmocka_unit_test(class_loss),
		cmocka_unit_test(threads),
		cmocka_unit_test(overfit),
		cmocka_unit_test(schedules),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
