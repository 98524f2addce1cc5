/*
 * Attention with products in bfloat16: the scores, their sums and the softmax are float. As ops_cpu_attention.c; what a product reads is packed
 * once for a (cell, head), and the probabilities of a tile when they are made.
 */
#include "nn/ops_cpu_bf16.h"

#ifdef USE_BF16

#include <assert.h>

/* A tile of scores: queries x keys. */
enum { BF_QT = 96, BF_KT = 192 };
static_assert(BF_QT % BF_M == 0 && BF_QT % 2 == 0 && BF_KT % BF_N == 0 && BF_KT % STEP == 0 && BF_KT % BF_M == 0, "tiles are whole blocks");

/*
 * All that a product writes has room for whole blocks: rows up to a multiple of BF_M, columns up to one of BF_N. So every block is a fast one. What
 * is there past the end is not used, and does not reach what is: sums go over columns and rows of the other factor that are 0 there.
 */
static size_t columns(size_t D)
{
	return round_up(D, BF_N);
}

/* Pieces of a thread's scratch, one after the other. */
static void *attention_take(real **at, size_t n)
{
	real *p = *at;
	*at += round_up(n, 16);
	return p;
}

/* A row of scores is padded with -inf to a multiple of STEP. The exponentials of the padding are 0 in effect. */
static void pad_row(real *S, size_t n)
{
	for (size_t j = n; j < round_up(n, STEP); j++)
		S[j] = -(real)INFINITY;
}

/* len rows of D numbers, at distance ldx, as columns of panels. */
static void across(pair *to, const real *x, size_t ldx, size_t len, size_t D, real scale)
{
	for (size_t i = 0; i < len; i += BF_N)
		pack_across(to + i * pairs_of(D), x + i * ldx, ldx, min_size(BF_N, len - i), D, scale);
}

static void attention_rows(pair *to, const real *x, size_t ldx, size_t len, size_t D, real scale)
{
	for (size_t i = 0; i < len; i++)
		pack_row(to + i * pairs_of(D), x + i * ldx, D, scale);
}

struct forward {
	pair *K, *V, *Q, *P; /* keys across, values down, a tile of queries as rows, its probabilities as rows */
	real *S, *O, *m, *l; /* scores, sums of values, maxima and sums of exponentials of the tile */
	uint8_t *bits;
};

static size_t forward_at(struct forward *f, real *scratch, size_t len, size_t D)
{
	real *at = scratch;
	f->K = attention_take(&at, panels_size(len, pairs_of(D), BF_N));
	f->V = attention_take(&at, panels_size(D, pairs_of(len), BF_N));
	f->Q = attention_take(&at, BF_QT * pairs_of(D));
	f->P = attention_take(&at, BF_QT * BF_KT / 2);
	f->S = attention_take(&at, BF_QT * BF_KT);
	f->O = attention_take(&at, BF_QT * columns(D));
	f->m = attention_take(&at, BF_QT);
	f->l = attention_take(&at, BF_QT);
	f->bits = attention_take(&at, KEEP_REALS(BF_KT));
	return (size_t)(at - scratch);
}

/* Scores of query i and keys j0 .. j0 + n to probabilities; the running maximum and sum of the row are updated. */
static void soften(const struct forward *f, size_t row, size_t i, size_t j0, size_t n, size_t D, const struct decisions *w)
{
	real *s = f->S + row * BF_KT, *m = f->m + row, *l = f->l + row;
	pad_row(s, n);
	real top = row_max(s, round_up(n, STEP), j0 ? *m : s[0]);
	real sum = soft_row(s, decide(w, i, j0, n, f->bits), round_up(n, STEP), top);
	pack_row(f->P + row * BF_KT / 2, s, n, 1);
	if (j0) {
		real shrink = exp_fast(*m - top);
		sum += *l * shrink;
		if (top != *m)
			SIMD for (size_t c = 0; c < D; c++) f->O[row * columns(D) + c] *= shrink;
	}
	*m = top;
	*l = sum;
}

/* Forward of one (cell, head). q, and C and 2C behind it k and v: rows at distance 3C; y: rows at distance C. */
static void attend(real *y, real *lse, const real *q, size_t len, size_t C, size_t D, size_t NH, const struct decisions *w, real *scratch)
{
	const size_t DP = pairs_of(D), LP = pairs_of(len), Dp = columns(D);
	struct forward f;
	forward_at(&f, scratch, len, D);
	across(f.K, q + C, 3 * C, len, D, 1);
	pack_down(f.V, BF_N, LP, 0, q + 2 * C, 3 * C, len, D, 1);
	for (size_t i0 = 0; i0 < len; i0 += BF_QT) {
		size_t n = min_size(BF_QT, len - i0), M = round_up(n, BF_M);
		attention_rows(f.Q, q + i0 * 3 * C, 3 * C, n, D, 1 / (real)sqrt((double)D));
		for (size_t j0 = 0; j0 < len; j0 += BF_KT) {
			size_t keys = min_size(BF_KT, len - j0);
			bf_mul(f.S, BF_KT, f.Q, DP, 1, f.K + j0 * DP, BF_N * DP, M, columns(keys), DP, 0);
			for (size_t i = 0; i < n; i++)
				soften(&f, i, i0 + i, j0, keys, D, w);
			bf_mul(f.O, Dp, f.P, BF_KT / 2, 1, f.V + j0 / 2 * BF_N, BF_N * LP, M, Dp, pairs_of(keys), j0 > 0);
		}
		for (size_t i = 0; i < n; i++) {
			real factor = keep_scale(w->d) / f.l[i];
			SIMD for (size_t c = 0; c < D; c++) y[(i0 + i) * C + c] = f.O[i * Dp + c] * factor;
			lse[(i0 + i) * NH] = f.m[i] + (real)log(f.l[i]);
		}
	}
}

static void attention(
	struct ops *o, void *y0, real *lse, const void *qkv0, const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	const real *qkv = qkv0;
	real *y = y0;
	size_t D = C / NH;
	own_need(c, forward_at(&(struct forward){0}, NULL, s->L, D));
	PARALLEL_FOR
	for (size_t job = 0; job < s->B * NH; job++) {
		size_t b = job / NH, h = job % NH, t0 = s->offset[b], len = s->offset[b + 1] - t0;
		struct decisions w = decisions_of(d, t0, NH, h, s->key[b]);
		attend(y + t0 * C + h * D, lse + t0 * NH + h, qkv + t0 * 3 * C + h * D, len, C, D, NH, &w, own(c));
	}
}

/* The backward's (ops_cpu_attention.c has the equations). dY is packed times 1 / (1 - dropout), Q times 1 / sqrt(D). */
struct backward {
	pair *K, *V; /* [len] across */
	pair *Kdown, *Qdown, *Ydown; /* [len] down: K, Q, dY */
	pair *Q, *Y; /* [len] rows: Q, dY */
	pair *dS; /* a tile as rows: the gradient of the scores */
	pair *Ptall, *dStall; /* a tile: pairs of queries, [BF_QT / 2][BF_KT] */
	real *S, *G; /* a tile of scores, and of dY V^T, then of the gradient */
	real *dQ, *dK, *dV; /* [len], and of a tile of keys */
	real *delta; /* [len] */
	uint8_t *bits;
};

static size_t backward_at(struct backward *f, real *scratch, size_t len, size_t D)
{
	real *at = scratch;
	size_t DP = pairs_of(D), LP = pairs_of(len), rows_size = round_up(len, BF_M) * DP;
	f->K = attention_take(&at, panels_size(len, DP, BF_N));
	f->V = attention_take(&at, panels_size(len, DP, BF_N));
	f->Kdown = attention_take(&at, panels_size(D, LP, BF_N));
	f->Qdown = attention_take(&at, panels_size(D, LP, BF_N));
	f->Ydown = attention_take(&at, panels_size(D, LP, BF_N));
	f->Q = attention_take(&at, rows_size);
	f->Y = attention_take(&at, rows_size);
	f->dS = attention_take(&at, BF_QT * BF_KT / 2);
	f->Ptall = attention_take(&at, BF_QT / 2 * BF_KT);
	f->dStall = attention_take(&at, BF_QT / 2 * BF_KT);
	f->S = attention_take(&at, BF_QT * BF_KT);
	f->G = attention_take(&at, BF_QT * BF_KT);
	f->dQ = attention_take(&at, round_up(len, BF_QT) * columns(D));
	f->dK = attention_take(&at, BF_KT * columns(D));
	f->dV = attention_take(&at, BF_KT * columns(D));
	f->delta = attention_take(&at, len);
	f->bits = attention_take(&at, KEEP_REALS(BF_KT));
	return (size_t)(at - scratch);
}

/* The probabilities and the gradient of the scores of n queries from i0, keys j0 .. j0 + keys, packed. */
static void soften_back(
	const struct backward *f, const real *lse, size_t i0, size_t n, size_t j0, size_t keys, size_t NH, const struct decisions *w)
{
	for (size_t i = 0; i < n; i++) {
		real *s = f->S + i * BF_KT, *g = f->G + i * BF_KT;
		pad_row(s, keys);
		soft_row_back(s, g, recall(w, i0 + i, j0, keys, f->bits), round_up(keys, STEP), lse[(i0 + i) * NH], f->delta[i0 + i]);
		pack_row(f->dS + i * BF_KT / 2, g, keys, 1);
	}
	pack_down(f->Ptall, BF_KT, BF_QT / 2, 0, f->S, BF_KT, n, keys, 1);
	pack_down(f->dStall, BF_KT, BF_QT / 2, 0, f->G, BF_KT, n, keys, 1);
}

static void attend_back(real *dq, const real *dy, const real *y, const real *lse, const real *q, size_t len, size_t C, size_t D, size_t NH,
	const struct decisions *w, real *scratch)
{
	const size_t DP = pairs_of(D), LP = pairs_of(len), Dp = columns(D);
	const real scale = 1 / (real)sqrt((double)D), up = keep_scale(w->d);
	struct backward f;
	backward_at(&f, scratch, len, D);
	across(f.K, q + C, 3 * C, len, D, 1);
	across(f.V, q + 2 * C, 3 * C, len, D, 1);
	pack_down(f.Kdown, BF_N, LP, 0, q + C, 3 * C, len, D, 1);
	pack_down(f.Qdown, BF_N, LP, 0, q, 3 * C, len, D, scale);
	pack_down(f.Ydown, BF_N, LP, 0, dy, C, len, D, up);
	attention_rows(f.Q, q, 3 * C, len, D, scale);
	attention_rows(f.Y, dy, C, len, D, up);
	for (size_t i = 0; i < len; i++) /* of the dY that G is made from: what both lack cancels in G - delta */
		f.delta[i] = dot_rounded(dy + i * C, y + i * C, D, up) / up;
	for (size_t j0 = 0; j0 < len; j0 += BF_KT) {
		size_t keys = min_size(BF_KT, len - j0), Mk = round_up(keys, BF_M);
		for (size_t i0 = 0; i0 < len; i0 += BF_QT) {
			size_t n = min_size(BF_QT, len - i0), nP = pairs_of(n), M = round_up(n, BF_M);
			bf_mul(f.S, BF_KT, f.Q + i0 * DP, DP, 1, f.K + j0 * DP, BF_N * DP, M, columns(keys), DP, 0);
			bf_mul(f.G, BF_KT, f.Y + i0 * DP, DP, 1, f.V + j0 * DP, BF_N * DP, M, columns(keys), DP, 0);
			soften_back(&f, lse, i0, n, j0, keys, NH, w);
			bf_mul(f.dV, Dp, f.Ptall, 1, BF_KT, f.Ydown + i0 / 2 * BF_N, BF_N * LP, Mk, Dp, nP, i0 > 0);
			bf_mul(f.dK, Dp, f.dStall, 1, BF_KT, f.Qdown + i0 / 2 * BF_N, BF_N * LP, Mk, Dp, nP, i0 > 0);
			bf_mul(f.dQ + i0 * Dp, Dp, f.dS, BF_KT / 2, 1, f.Kdown + j0 / 2 * BF_N, BF_N * LP, M, Dp, pairs_of(keys), j0 > 0);
		}
		for (size_t j = 0; j < keys; j++) {
			memcpy(dq + (j0 + j) * 3 * C + C, f.dK + j * Dp, D * sizeof *dq);
			memcpy(dq + (j0 + j) * 3 * C + 2 * C, f.dV + j * Dp, D * sizeof *dq);
		}
	}
	for (size_t i = 0; i < len; i++)
		for (size_t c = 0; c < D; c++)
			dq[i * 3 * C + c] = f.dQ[i * Dp + c] * scale;
}

static void attention_back(struct ops *o, void *dqkv0, const void *dy0, const void *y0, const real *lse, const void *qkv0,
	const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	const real *qkv = qkv0, *dy = dy0, *y = y0;
	real *dqkv = dqkv0;
	size_t D = C / NH;
	own_need(c, backward_at(&(struct backward){0}, NULL, s->L, D));
	PARALLEL_FOR
	for (size_t job = 0; job < s->B * NH; job++) {
		size_t b = job / NH, h = job % NH, t0 = s->offset[b], len = s->offset[b + 1] - t0;
		size_t at = t0 * C + h * D, at3 = t0 * 3 * C + h * D;
		struct decisions w = decisions_of(d, t0, NH, h, s->key[b]);
		attend_back(dqkv + at3, dy + at, y + at, lse + t0 * NH + h, qkv + at3, len, C, D, NH, &w, own(c));
	}
}

void ops_cpu_bf16_attention(struct ops *o)
{
	o->attention = attention;
	o->attention_back = attention_back;
}

#endif
