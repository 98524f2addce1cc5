/* The CPU backend's LayerNorm and RMSNorm, and embeddings, which end with a LayerNorm. */
#include "nn/ops_cpu.h"

/* y = (r - mean) / std gamma + beta; y may be r */
static void norm_row(real *y, real *stat, const real *r, const real *gamma, const real *beta, size_t C, real eps)
{
	real sum = 0, var = 0;
	SIMD_SUM(sum)
	for (size_t i = 0; i < C; i++)
		sum += r[i];
	real mean = sum / (real)C;
	SIMD_SUM(var)
	for (size_t i = 0; i < C; i++)
		var += (r[i] - mean) * (r[i] - mean);
	real rstd = 1 / (real)sqrt(var / (real)C + eps);
	SIMD for (size_t i = 0; i < C; i++) y[i] = (r[i] - mean) * rstd * gamma[i] + beta[i];
	stat[0] = mean;
	stat[1] = rstd;
}

/* dr from dy (may be the same); dgamma and dbeta are added to */
static void norm_row_back(real *dr, real *dgamma, real *dbeta, const real *dy, const real *r, const real *stat, const real *gamma, size_t C)
{
	real mean = stat[0], rstd = stat[1], m1 = 0, m2 = 0;
	_Pragma("omp simd reduction(+ : m1, m2)") for (size_t i = 0; i < C; i++)
	{
		real g = dy[i] * gamma[i], xhat = (r[i] - mean) * rstd;
		m1 += g;
		m2 += g * xhat;
		dgamma[i] += dy[i] * xhat;
		dbeta[i] += dy[i];
	}
	m1 /= (real)C;
	m2 /= (real)C;
	SIMD for (size_t i = 0; i < C; i++) dr[i] = rstd * (dy[i] * gamma[i] - m1 - (r[i] - mean) * rstd * m2);
}

void cpu_norm(struct ops *o, void *y0, void *r0, real *stat, const void *a0, const void *x0, const real *gamma, const real *beta,
	const struct seq *s, size_t T, size_t C, double eps, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	const real *a = a0, *x = x0;
	real *y = y0, *r = r0;
	size_t R = chunk_rows(T);
	own_need(c, KEEP_REALS(C));
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(T, R); k++) {
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++) {
			const real *at = a + t * C, *xt = x ? x + t * C : NULL;
			real *rt = r + t * C, *keep = own(c);
			if (drop_on(d)) {
				drop_row(rt, at, keep, C, d, s->pos[t], s->key[s->cell[t]]);
				at = rt;
			}
			if (xt)
				SIMD for (size_t i = 0; i < C; i++) rt[i] = at[i] + xt[i];
			else if (rt != at)
				memcpy(rt, at, C * sizeof(real));
			norm_row(y + t * C, stat + 2 * t, rt, gamma, beta, C, (real)eps);
		}
	}
}

void cpu_norm_back(struct ops *o, void *da0, void *dx0, real *dgamma, real *dbeta, real *dbias, const void *dy0, const void *r0,
	const real *stat, const real *gamma, const struct seq *s, size_t T, size_t C, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	const real *dy = dy0, *r = r0;
	real *da = da0, *dx = dx0;
	size_t R = chunk_rows(T), n = chunks(T, R);
	real *part = shared(c, n * 2 * C);
	own_need(c, C + KEEP_REALS(C));
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++) {
		real *dg = part + k * 2 * C, *db = dg + C, *tmp = own(c), *keep = tmp + C;
		memset(dg, 0, 2 * C * sizeof(real));
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++) {
			real *dr = dx ? dx + t * C : tmp;
			norm_row_back(dr, dg, db, dy + t * C, r + t * C, stat + 2 * t, gamma, C);
			if (da && drop_on(d))
				drop_row(da + t * C, dr, keep, C, d, s->pos[t], s->key[s->cell[t]]);
			else if (da)
				memcpy(da + t * C, dr, C * sizeof(real));
		}
	}
	add_parts(dgamma, part, n, 2 * C, C);
	add_parts(dbeta, part + C, n, 2 * C, C);
	if (dbias)
		bias_back(c, dbias, da, T, C);
}

/* ---- RMSNorm ---- */

void cpu_rms_norm(
	struct ops *o, void *y0, void *r0, real *stat, const void *a0, const void *x0, const real *scale, size_t T, size_t C, double eps)
{
	struct cpu *c = (struct cpu *)o;
	const real *a = a0, *x = x0;
	real *y = y0, *r = r0;
	size_t R = chunk_rows(T);
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(T, R); k++) {
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++) {
			const real *at = a + t * C, *xt = x ? x + t * C : NULL;
			real *rt = r + t * C, square = 0;
			if (xt)
				SIMD for (size_t i = 0; i < C; i++) rt[i] = at[i] + xt[i];
			else if (rt != at)
				memcpy(rt, at, C * sizeof(real));
			SIMD_SUM(square)
			for (size_t i = 0; i < C; i++)
				square += rt[i] * rt[i];
			stat[t] = 1 / (real)sqrt(square / (real)C + (real)eps);
			SIMD for (size_t i = 0; i < C; i++) y[t * C + i] = rt[i] * stat[t] * scale[i];
		}
	}
}

/* With n = r stat and g = dy scale:  dx += stat (g - n mean(g n));  dscale += dy n */
static void rms_row_back(real *dx, real *dscale, const real *dy, const real *r, real stat, const real *scale, size_t C)
{
	real m = 0;
	SIMD_SUM(m)
	for (size_t i = 0; i < C; i++) {
		real n = r[i] * stat;
		m += dy[i] * scale[i] * n;
		dscale[i] += dy[i] * n;
	}
	m /= (real)C;
	SIMD for (size_t i = 0; i < C; i++) dx[i] += stat * (dy[i] * scale[i] - r[i] * stat * m);
}

void cpu_rms_norm_back(
	struct ops *o, void *dx0, real *dscale, const void *dy0, const void *r0, const real *stat, const real *scale, size_t T, size_t C)
{
	struct cpu *c = (struct cpu *)o;
	const real *dy = dy0, *r = r0;
	real *dx = dx0;
	size_t R = chunk_rows(T), n = chunks(T, R);
	real *part = shared(c, n * C);
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++) {
		memset(part + k * C, 0, C * sizeof(real));
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++)
			rms_row_back(dx + t * C, part + k * C, dy + t * C, r + t * C, stat[t], scale, C);
	}
	add_parts(dscale, part, n, C, C);
}

/* ---- embedding ---- */

/* w, type, p and more may be NULL, not all of them */
static void embed_row(real *e, const real *w, const real *type, const real *p, const real *more, size_t C)
{
	if (!w) {
		SIMD for (size_t i = 0; i < C; i++) e[i] = (type ? type[i] : 0) + (p ? p[i] : 0);
	} else if (type && p) {
		SIMD for (size_t i = 0; i < C; i++) e[i] = w[i] + type[i] + p[i];
	} else {
		SIMD for (size_t i = 0; i < C; i++) e[i] = w[i] + (type ? type[i] : 0) + (p ? p[i] : 0);
	}
	if (more)
		SIMD for (size_t i = 0; i < C; i++) e[i] += more[i];
}

void cpu_embed(struct ops *o, void *y0, real *stat, const real *word, const real *posw, const real *type, const void *more0,
	const real *gamma, const real *beta, const struct seq *s, size_t C, double eps, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	const real *more = more0;
	real *y = y0;
	size_t R = chunk_rows(s->T);
	own_need(c, KEEP_REALS(C));
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(s->T, R); k++) {
		for (size_t t = k * R; t < min_size(s->T, (k + 1) * R); t++) {
			real *yt = y + t * C;
			embed_row(yt, word ? word + s->id[t] * C : NULL, type, posw ? posw + (s->rank ? s->rank : s->pos)[t] * C : NULL,
				more ? more + t * C : NULL, C);
			norm_row(yt, stat + 2 * t, yt, gamma, beta, C, (real)eps);
			if (drop_on(d))
				drop_row(yt, yt, own(c), C, d, s->pos[t], s->key[s->cell[t]]);
		}
	}
}

void cpu_embed_back(struct ops *o, real *dword, real *dposw, real *dtype, real *dgamma, real *dbeta, void *dy0, const real *stat,
	const real *word, const real *posw, const real *type, const void *more0, const real *gamma, const struct seq *s, size_t V, size_t P,
	size_t C, uint32_t pad, const struct dropout *d)
{
	struct cpu *c = (struct cpu *)o;
	const real *more = more0;
	real *dy = dy0;
	size_t T = s->T, R = chunk_rows(T), n = chunks(T, R);
	real *part = shared(c, n * 3 * C);
	own_need(c, C + KEEP_REALS(C));
	PARALLEL_FOR
	for (size_t k = 0; k < n; k++) {
		real *dg = part + k * 3 * C, *db = dg + C, *dt = db + C, *e = own(c), *keep = e + C;
		memset(dg, 0, 3 * C * sizeof(real));
		for (size_t t = k * R; t < min_size(T, (k + 1) * R); t++) {
			real *g = dy + t * C;
			if (drop_on(d))
				drop_row(g, g, keep, C, d, s->pos[t], s->key[s->cell[t]]);
			embed_row(e, word ? word + s->id[t] * C : NULL, type, posw ? posw + (s->rank ? s->rank : s->pos)[t] * C : NULL,
				more ? more + t * C : NULL, C);
			norm_row_back(g, dg, db, g, e, stat + 2 * t, gamma, C);
			SIMD for (size_t i = 0; i < C; i++) dt[i] += g[i];
		}
	}
	add_parts(dgamma, part, n, 3 * C, C);
	add_parts(dbeta, part + C, n, 3 * C, C);
	if (dtype)
		add_parts(dtype, part + 2 * C, n, 3 * C, C);
	PARALLEL_FOR
	for (size_t k = 0; k < (dword ? chunks(V, ROWS) : 0); k++)
		for (size_t v = k * ROWS; v < min_size(V, (k + 1) * ROWS); v++)
			for (size_t j = s->start[v]; v != pad && j < s->start[v + 1]; j++)
				add_parts(dword + v * C, dy + s->order[j] * C, 1, 0, C);
	PARALLEL_FOR
	for (size_t p = 0; p < (dposw && s->rank ? P : 0); p++)
		for (size_t j = s->rank_start[p]; j < s->rank_start[p + 1]; j++)
			add_parts(dposw + p * C, dy + s->rank_order[j] * C, 1, 0, C);
	PARALLEL_FOR
	for (size_t p = 0; p < (dposw && !s->rank ? s->L : 0); p++)
		for (size_t b = 0; b < s->B; b++)
			if (s->offset[b] + p < s->offset[b + 1])
				add_parts(dposw + p * C, dy + (s->offset[b] + p) * C, 1, 0, C);
}
