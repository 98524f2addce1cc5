/* The decoder of masked tokens with products in bfloat16. As ops_cpu_loss.c, but for the ranges of the vocabulary, which are whole panels. */
#include "nn/ops_cpu_bf16.h"

#ifdef USE_BF16

#include "nn/cpu_loss.h"

enum { HROWS = 240 }; /* rows of a tile of logits: HROWS x VTILE */

/* Vocabulary of a range: a multiple of the columns of a panel, and of those of a tall one where it is cut into tiles. */
static size_t range(size_t V)
{
	return round_up(chunks(V, VGROUPS), BF_N);
}

/* The rows of h, from `scratch` on; returns what follows. */
static pair *pack_rows_of(struct cpu *c, pair *scratch, const real *h, size_t N, size_t C)
{
	size_t P = pairs_of(C);
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(N, HROWS); k++)
		for (size_t i = k * HROWS; i < min_size(N, (k + 1) * HROWS); i++)
			pack_row(scratch + i * P, h + i * C, C, 1);
	return scratch + round_up(round_up(N, BF_M) * P, 16);
}

/* z [rows, n] = h W^T + b for the vocabulary from v0 on; padded with -inf to a multiple of STEP. */
static void logits(real *z, const pair *h, const pair *W, const real *b, size_t v0, size_t n, size_t rows, size_t P)
{
	bf_mul(z, VTILE, h, P, 1, W + v0 * P, BF_N * P, rows, n, P, 0);
	for (size_t i = 0; i < rows; i++)
		logit_row(z + i * VTILE, b + v0, n);
}

static void bf16_loss(struct ops *o, double *sum, real *lse, const void *h, const real *W, const real *b, const uint32_t *target, size_t N,
	size_t C, size_t V)
{
	struct cpu *c = (struct cpu *)o;
	const pair *B = bf16_across(c, W, C, V);
	size_t across = chunks(N, HROWS), group = range(V), P = pairs_of(C);
	struct tops t = tops_at(shared(c, tops_size(N) + round_up(N, BF_M) * P + 16), N);
	pair *A = (pair *)t.end;
	pack_rows_of(c, A, h, N, C);
	own_need(c, HROWS * VTILE);
	PARALLEL_FOR
	for (size_t job = 0; job < VGROUPS * across; job++) {
		size_t g = job / across, r0 = job % across * HROWS, rows = min_size(N, r0 + HROWS) - r0, end = min_size(V, (g + 1) * group);
		real *z = own(c);
		tops_start(&t, g, r0, rows);
		for (size_t v0 = g * group; v0 < end; v0 += VTILE) {
			size_t n = min_size(VTILE, end - v0);
			logits(z, A + r0 * P, B, b, v0, n, rows, P);
			tops_add(&t, z, target, g, r0, rows, v0, n);
		}
	}
	tops_finish(&t, sum, lse, target);
}

/* z becomes the gradient of the logits. Its rows are padded with 0 as the products read them, to whole tall panels. */
static void logits_back(real *z, real *db, const uint32_t *target, const real *lse, const real *scale, size_t v0, size_t n, size_t rows)
{
	for (size_t i = 0; i < rows; i++) {
		loss_row_back(z + i * VTILE, target[i], lse[i], scale, v0, n);
		if (db)
			add_parts(db + v0, z + i * VTILE, 1, 0, n);
	}
}

static void loss_back(struct ops *o, void *dh0, real *dW, real *db, const void *h0, const real *W, const real *b, const uint32_t *target,
	const real *lse, const real *scale, size_t N, size_t C, size_t V)
{
	struct cpu *c = (struct cpu *)o;
	const real *h = h0;
	real *dh = dh0;
	const pair *across = bf16_across(c, W, C, V), *down = bf16_down(c, W, C, V);
	size_t group = range(V), P = pairs_of(C), VP = pairs_of(V), NP = pairs_of(N), zrows = round_up(HROWS * VTILE / 2, 16);
	real *part = shared(c, VGROUPS * N * C + 16 + round_up(N, BF_M) * P + 16 + panels_size(C, NP, BF_N));
	pair *A = (pair *)part + round_up(VGROUPS * N * C, 16), *hdown = pack_rows_of(c, A, h, N, C);
	memset(part, 0, VGROUPS * N * C * sizeof(real));
	if (dW)
		PARALLEL_FOR
	for (size_t k = 0; k < chunks(N, HROWS); k++)
		pack_down(hdown, BF_N, NP, k * HROWS / 2, h + k * HROWS * C, C, min_size(HROWS, N - k * HROWS), C, 1);
	own_need(c, HROWS * VTILE + zrows + panels_size(VTILE, HROWS / 2, BF_GROUP));
	PARALLEL_FOR
	for (size_t g = 0; g < VGROUPS; g++) {
		real *z = own(c), *dpart = part + g * N * C;
		pair *dz = (pair *)(z + HROWS * VTILE), *dzt = dz + zrows;
		size_t end = min_size(V, (g + 1) * group);
		for (size_t v0 = g * group; v0 < end; v0 += VTILE) {
			size_t n = min_size(VTILE, end - v0), nP = pairs_of(n);
			for (size_t r0 = 0; r0 < N; r0 += HROWS) {
				size_t rows = min_size(HROWS, N - r0), rP = pairs_of(rows);
				logits(z, A + r0 * P, across, b, v0, n, rows, P);
				logits_back(z, db, target + r0, lse + r0, scale, v0, n, rows);
				for (size_t i = 0; i < rows; i++)
					pack_row(dz + i * nP, z + i * VTILE, n, 1);
				bf_mul(dpart + r0 * C, C, dz, nP, 1, down + v0 / 2 * BF_N, BF_N * VP, rows, C, nP, 1);
				if (!dW)
					continue;
				pack_down(dzt, BF_GROUP, rP, 0, z, VTILE, rows, n, 1);
				for (size_t j = 0; j < n; j += BF_GROUP)
					bf_mul(dW + (v0 + j) * C, C, dzt + j * rP, 1, BF_GROUP, hdown + r0 / 2 * BF_N, BF_N * NP,
						min_size(BF_GROUP, n - j), C, rP, 1);
			}
		}
	}
	memset(dh, 0, N * C * sizeof(real));
	PARALLEL_FOR
	for (size_t k = 0; k < chunks(N, HROWS); k++)
		add_parts(dh + k * HROWS * C, part + k * HROWS * C, VGROUPS, N * C, (min_size(N, (k + 1) * HROWS) - k * HROWS) * C);
}

void ops_cpu_bf16_loss(struct ops *o)
{
	o->mlm_loss = bf16_loss;
	o->mlm_loss_back = loss_back;
}

#endif
