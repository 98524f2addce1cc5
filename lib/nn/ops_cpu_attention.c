/*
 * Attention on the CPU, forward and backward. A job is one (cell, head). Scores are computed tile by tile and never stored
 * [Dao et al. 2022, FlashAttention]. q, k, v and dy of the head are packed once, in the layout of mul_nn and mul_tn.
 */
#include "nn/ops_cpu.h"

#include <assert.h>

static_assert(QTILE % MR == 0 && KTILE % NR == 0 && KTILE % STEP == 0 && STEP % 8 == 0, "tiles are whole blocks");

size_t cpu_keep_bytes(const struct ops *o, size_t B, size_t T, size_t longest, size_t C, size_t NH)
{
	return T * NH * keep_stride(longest);
}

/* A row of scores is padded with -inf to a multiple of STEP. The exponentials of the padding are 0 in effect. */
static void pad_rows(real *S, size_t rows, size_t n)
{
	for (size_t j = n; j < round_up(n, STEP); j++)
		for (size_t i = 0; i < rows; i++)
			S[i * KTILE + j] = -(real)INFINITY;
}

/*
 * Turn scores S [Tq x Tk, rows at distance KTILE] into the exponentials that multiply the values. The running maximum m and sum l of each
 * row are updated, and the earlier sums O are scaled to the new maximum.
 */
static void soft_tile(
	real *S, real *O, real *m, real *l, size_t Dp, size_t i0, size_t Tq, size_t j0, size_t Tk, const struct decisions *w, uint8_t *row)
{
	real top[QTILE];
	size_t n = round_up(Tk, STEP);
	pad_rows(S, Tq, Tk);
	for (size_t i = 0; i < Tq; i++)
		top[i] = row_max(S + i * KTILE, n, j0 ? m[i] : S[i * KTILE]);
	for (size_t i = 0; i < Tq; i++) {
		real sum = soft_row(S + i * KTILE, decide(w, i0 + i, j0, Tk, row), n, top[i]);
		if (j0) {
			real shrink = exp_fast(m[i] - top[i]);
			sum += l[i] * shrink;
			if (top[i] != m[i])
				SIMD for (size_t c = 0; c < Dp; c++) O[i * Dp + c] *= shrink;
		}
		m[i] = top[i];
		l[i] = sum;
	}
}

static size_t attend_scratch(size_t len, size_t D)
{
	size_t Dp = round_up(D, NR);
	return round_up(len, NR) * D + len * Dp + QGROUP * QTILE * (2 * Dp + 2) + QTILE * KTILE + KEEP_REALS(KTILE);
}

/* Forward of one (cell, head). q, and C and 2C behind it k and v: rows at distance 3C; y: rows at distance C. */
static void attend(real *y, real *lse, const real *q, size_t len, size_t C, size_t D, size_t NH, const struct decisions *w, real *scratch)
{
	const size_t Dp = round_up(D, NR), G = QGROUP * QTILE;
	real *Kt = scratch, *V = Kt + round_up(len, NR) * D, *Q = V + len * Dp, *O = Q + G * Dp, *S = O + G * Dp;
	real *m = S + QTILE * KTILE, *l = m + G;
	uint8_t *row = (uint8_t *)(l + G);
	pack_panels(Kt, q + C, 3 * C, len, D);
	pack_columns(V, q + 2 * C, 3 * C, len, D);
	for (size_t g0 = 0; g0 < len; g0 += G) {
		size_t n = min_size(G, len - g0);
		pack_rows(Q, round_up(n, MR), Dp, q + g0 * 3 * C, 3 * C, n, D, 1 / (real)sqrt((double)D));
		for (size_t j0 = 0; j0 < len; j0 += KTILE) {
			size_t Tk = min_size(KTILE, len - j0);
			for (size_t i0 = 0; i0 < n; i0 += QTILE) {
				size_t Tq = min_size(QTILE, n - i0), M = round_up(Tq, MR);
				mul_nn(S, KTILE, Q + i0 * Dp, Dp, Kt + j0 * D, D * NR, NR, M, Tk, D, 0);
				soft_tile(S, O + i0 * Dp, m + i0, l + i0, Dp, g0 + i0, Tq, j0, Tk, w, row);
				mul_nn(O + i0 * Dp, Dp, S, KTILE, V + j0 * NR, len * NR, NR, M, Dp, Tk, j0 > 0);
			}
		}
		for (size_t i = 0; i < n; i++) {
			real f = keep_scale(w->d) / l[i];
			SIMD for (size_t c = 0; c < D; c++) y[(g0 + i) * C + c] = O[i * Dp + c] * f;
			lse[(g0 + i) * NH] = m[i] + (real)log(l[i]);
		}
	}
}

void cpu_attention(struct ops *o, void *y0, real *lse, const void *qkv0, const struct seq *s, size_t C, size_t NH, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	const real *qkv = qkv0;
	real *y = y0;
	size_t D = C / NH;
	own_need(c, attend_scratch(s->L, D));
	PARALLEL_FOR
	for (size_t job = 0; job < s->B * NH; job++) {
		size_t b = job / NH, h = job % NH, t0 = s->offset[b], len = s->offset[b + 1] - t0;
		struct decisions w = decisions_of(d, t0, NH, h, s->key[b]);
		attend(y + t0 * C + h * D, lse + t0 * NH + h, qkv + t0 * 3 * C + h * D, len, C, D, NH, &w, own(c));
	}
}

/*
 * Backward of one (cell, head). The scores are computed again, tile by tile. With P = exp(S - lse), M the dropout factors and
 * delta_i = dy_i . y_i,   dV += (P M)^T dY;  dS = P (M (dY V^T) - delta);  dQ += dS K / sqrt(D);  dK += dS^T Q / sqrt(D).
 * Q is packed times 1 / sqrt(D), so only dQ is scaled at the end. dY is packed times 1 / (1 - dropout), so M is 0 or 1.
 */
static size_t attend_back_scratch(size_t len, size_t D)
{
	size_t Dp = round_up(D, NR), rows = round_up(len, QTILE);
	return 2 * round_up(len, NR) * D + 4 * rows * Dp + 2 * round_up(KTILE, MR) * Dp + 2 * (QTILE * KTILE + NR) + len +
		KEEP_REALS(KTILE);
}

static void attend_back(real *dq, const real *dy, const real *y, const real *lse, const real *q, size_t len, size_t C, size_t D, size_t NH,
	const struct decisions *w, real *scratch)
{
	const size_t Dp = round_up(D, NR), rows = round_up(len, QTILE), KTp = round_up(KTILE, MR);
	const real scale = 1 / (real)sqrt((double)D);
	real *Kt = scratch, *Vt = Kt + round_up(len, NR) * D, *Q = Vt + round_up(len, NR) * D, *K = Q + rows * Dp;
	real *dY = K + rows * Dp, *dQ = dY + rows * Dp, *dK = dQ + rows * Dp, *dV = dK + KTp * Dp;
	real *S = dV + KTp * Dp, *G = S + QTILE * KTILE + NR, *delta = G + QTILE * KTILE + NR;
	uint8_t *row = (uint8_t *)(delta + len);
	pack_panels(Kt, q + C, 3 * C, len, D);
	pack_panels(Vt, q + 2 * C, 3 * C, len, D);
	pack_rows(Q, rows, Dp, q, 3 * C, len, D, scale);
	pack_columns(K, q + C, 3 * C, len, D);
	pack_rows(dY, rows, Dp, dy, C, len, D, keep_scale(w->d));
	for (size_t i = 0; i < len; i++) {
		real sum = 0;
		SIMD_SUM(sum)
		for (size_t c = 0; c < D; c++)
			sum += dy[i * C + c] * y[i * C + c];
		delta[i] = sum;
	}
	for (size_t j0 = 0; j0 < len; j0 += KTILE) {
		size_t Tk = min_size(KTILE, len - j0);
		for (size_t i0 = 0; i0 < len; i0 += QTILE) {
			size_t Tq = min_size(QTILE, len - i0);
			mul_nn(S, KTILE, Q + i0 * Dp, Dp, Kt + j0 * D, D * NR, NR, Tq, Tk, D, 0);
			mul_nn(G, KTILE, dY + i0 * Dp, Dp, Vt + j0 * D, D * NR, NR, Tq, Tk, D, 0);
			pad_rows(S, Tq, Tk);
			for (size_t i = 0; i < Tq; i++)
				soft_row_back(S + i * KTILE, G + i * KTILE, recall(w, i0 + i, j0, Tk, row), round_up(Tk, STEP),
					lse[(i0 + i) * NH], delta[i0 + i]);
			mul_tn(dV, Dp, S, KTILE, dY + i0 * Dp, NR, Dp, Tk, Dp, Tq, i0 > 0);
			mul_tn(dK, Dp, G, KTILE, Q + i0 * Dp, NR, Dp, Tk, Dp, Tq, i0 > 0);
			mul_nn(dQ + i0 * Dp, Dp, G, KTILE, K + j0 * NR, len * NR, NR, Tq, Dp, Tk, j0 > 0);
		}
		for (size_t j = 0; j < Tk; j++) {
			memcpy(dq + (j0 + j) * 3 * C + C, dK + j * Dp, D * sizeof *dq);
			memcpy(dq + (j0 + j) * 3 * C + 2 * C, dV + j * Dp, D * sizeof *dq);
		}
	}
	for (size_t i = 0; i < len; i++)
		for (size_t c = 0; c < D; c++)
			dq[i * 3 * C + c] = dQ[i * Dp + c] * scale;
}

void cpu_attention_back(struct ops *o, void *dqkv0, const void *dy0, const void *y0, const real *lse, const void *qkv0, const struct seq *s,
	size_t C, size_t NH, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	const real *qkv = qkv0, *dy = dy0, *y = y0;
	real *dqkv = dqkv0;
	size_t D = C / NH;
	own_need(c, attend_back_scratch(s->L, D));
	PARALLEL_FOR
	for (size_t job = 0; job < s->B * NH; job++) {
		size_t b = job / NH, h = job % NH, t0 = s->offset[b], len = s->offset[b + 1] - t0;
		size_t at = t0 * C + h * D, at3 = t0 * 3 * C + h * D;
		struct decisions w = decisions_of(d, t0, NH, h, s->key[b]);
		attend_back(dqkv + at3, dy + at, y + at, lse + t0 * NH + h, qkv + at3, len, C, D, NH, &w, own(c));
	}
}

/* Of one (cell, head): dS = P (dY V^T - delta), as in attend_back, summed over the queries. */
static void presence_of(real *presence, const real *dy, const real *y, const real *lse, const real *q, size_t len, size_t C, size_t D,
	size_t NH, real *scratch)
{
	const size_t Dp = round_up(D, NR), rows = round_up(len, QTILE);
	real *Kt = scratch, *Vt = Kt + round_up(len, NR) * D, *Q = Vt + round_up(len, NR) * D, *dY = Q + rows * Dp;
	real *S = dY + rows * Dp, *G = S + QTILE * KTILE + NR;
	pack_panels(Kt, q + C, 3 * C, len, D);
	pack_panels(Vt, q + 2 * C, 3 * C, len, D);
	pack_rows(Q, rows, Dp, q, 3 * C, len, D, 1 / (real)sqrt((double)D));
	pack_rows(dY, rows, Dp, dy, C, len, D, 1);
	for (size_t i0 = 0; i0 < len; i0 += QTILE)
		for (size_t j0 = 0; j0 < len; j0 += KTILE) {
			size_t Tq = min_size(QTILE, len - i0), Tk = min_size(KTILE, len - j0);
			mul_nn(S, KTILE, Q + i0 * Dp, Dp, Kt + j0 * D, D * NR, NR, Tq, Tk, D, 0);
			mul_nn(G, KTILE, dY + i0 * Dp, Dp, Vt + j0 * D, D * NR, NR, Tq, Tk, D, 0);
			pad_rows(S, Tq, Tk);
			for (size_t i = 0; i < Tq; i++) {
				real delta = 0, *g = G + i * KTILE;
				for (size_t c = 0; c < D; c++)
					delta += dy[(i0 + i) * C + c] * y[(i0 + i) * C + c];
				soft_row_back(S + i * KTILE, g, NULL, round_up(Tk, STEP), lse[(i0 + i) * NH], delta);
				SIMD for (size_t j = 0; j < Tk; j++) presence[j0 + j] += g[j];
			}
		}
}

void cpu_attention_presence(struct ops *o, real *presence, const void *dy0, const void *y0, const real *lse, const void *qkv0,
	const struct seq *s, size_t C, size_t NH)
{
	struct cpu *c = (struct cpu *)o;
	const real *qkv = qkv0, *dy = dy0, *y = y0;
	size_t D = C / NH;
	own_need(c, attend_back_scratch(s->L, D));
	PARALLEL_FOR
	for (size_t b = 0; b < s->B; b++) /* all heads add to the same numbers */
		for (size_t h = 0; h < NH; h++) {
			size_t t0 = s->offset[b], at = t0 * C + h * D;
			presence_of(presence + t0, dy + at, y + at, lse + t0 * NH + h, qkv + t0 * 3 * C + h * D, s->offset[b + 1] - t0, C,
				D, NH, own(c));
		}
}
