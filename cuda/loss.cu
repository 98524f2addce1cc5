/*
 * Cross-entropy. The decoder's: logits are made a tile of loss_rows x loss_vocab (struct cuda) at a time in a buffer of fixed size, in float; the
 * forward keeps a running maximum and sum for each row [online softmax, Milakov & Gimelshein 2018], the backward makes the
 * tile again, turns it into p - [target] in the activation type and multiplies it both ways. dh is summed in float over the
 * tiles of the vocabulary, one after the other, so the order is fixed.
 */
#include "device.cuh"

static constexpr uint32_t BACK_THREADS = 128, BACK_ROWS = 16; /* of a block of mlm_back_kernel */

/* ---- masked language model ---- */

struct running { /* of one row */
	float top, sum, at; /* largest logit so far, sum of exp(logit - top), the target's logit */
};

/*
 * A warp a row of the tile: z [rows, ldz] holds logits without bias of words v0 .. v0 + n; rows are readable to the next multiple of
 * 8. Each lane keeps a maximum and a sum of its own, so the tile is read once.
 */
static __global__ void mlm_kernel(
	struct running *run, const float *z, const float *b, const uint32_t *target, uint32_t rows, uint32_t n, uint32_t ldz, uint32_t v0)
{
	uint32_t lane = threadIdx.x % 32, i = blockIdx.x * 8 + threadIdx.x / 32;
	if (i >= rows)
		return;
	const float *s = z + (size_t)i * ldz;
	float top = -INFINITY, sum = 0;
	for (uint32_t j0 = lane * 8; j0 < n; j0 += 256) {
		float v[8], up = top, add = 0;
		load_vec(v, s + j0);
#pragma unroll
		for (uint32_t j = 0; j < 8; j++) {
			v[j] = j0 + j < n ? v[j] + b[v0 + j0 + j] : -INFINITY;
			up = fmaxf(up, v[j]);
		}
#pragma unroll
		for (uint32_t j = 0; j < 8; j++)
			add += expf(v[j] - up);
		sum = sum * expf(top - up) + add;
		top = up;
	}
	float mine = top;
	top = warp_max(top);
	sum = warp_sum(sum > 0 || sum != sum ? sum * expf(mine - top) : 0);
	if (lane == 0) {
		struct running r = run[i];
		if (v0 == 0) {
			r.top = top, r.sum = sum, r.at = 0;
		} else {
			float up = fmaxf(r.top, top);
			r.sum = r.sum * expf(r.top - up) + sum * expf(top - up);
			r.top = up;
		}
		if (target[i] - v0 < n)
			r.at = s[target[i] - v0] + b[target[i]];
		if (sum != sum) /* fmaxf drops NaN: the sum must not */
			r.sum = sum;
		run[i] = r;
	}
}

/* One block: losses and hits, thread k taking rows k, k + 1024, ... */
static __global__ void mlm_done_kernel(double *sum, float *lse, const struct running *run, const uint32_t *target, uint32_t N)
{
	__shared__ double loss[1024], hit[1024];
	double a = 0, h = 0;
	for (uint32_t i = threadIdx.x; i < N; i += 1024) {
		struct running r = run[i];
		float l = r.top + logf(r.sum);
		lse[i] = l;
		if (target[i] == ROW_NONE)
			continue;
		a += (double)(l - r.at);
		h += r.at >= r.top;
	}
	loss[threadIdx.x] = a;
	hit[threadIdx.x] = h;
	__syncthreads();
	for (unsigned d = 512; d; d /= 2) {
		if (threadIdx.x < d) {
			loss[threadIdx.x] += loss[threadIdx.x + d];
			hit[threadIdx.x] += hit[threadIdx.x + d];
		}
		__syncthreads();
	}
	if (threadIdx.x == 0) {
		sum[0] += loss[0];
		sum[1] += hit[0];
	}
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void logits(
	struct cuda *c, float *z, size_t ldz, const void *h, const void *W, size_t r0, size_t rows, size_t v0, size_t n, size_t C)
{
	struct product p = {.form = GEMM_NT,
		.M = rows,
		.N = n,
		.K = C,
		.a = (const char *)h + r0 * C * c->o.act_size,
		.b = (const char *)W + v0 * C * c->o.act_size,
		.lda = C,
		.ldb = C,
		.ldd = ldz,
		.d = z,
		.d_float = 1};
	gemm(c, &p);
}

void cuda_mlm_loss(struct ops *o, double *sum, float *lse, const void *h, const float *W, const float *b, const uint32_t *target, size_t N,
	size_t C, size_t V)
{
	struct cuda *c = cuda_of(o);
	const size_t most_rows = c->loss_rows, most_words = c->loss_vocab, tile = (least(V, most_words) + 63) / 64 * 64;
	const void *w = weights(c, W, V * C, SCRATCH_CAST);
	float *z = (float *)scratch(c, SCRATCH_TILE, least(N, most_rows) * tile * sizeof(float));
	struct running *run = (struct running *)scratch(c, SCRATCH_SUM, N * sizeof *run);
	for (size_t r0 = 0; r0 < N; r0 += most_rows) {
		size_t rows = least(most_rows, N - r0);
		for (size_t v0 = 0; v0 < V; v0 += most_words) {
			size_t n = least(most_words, V - v0);
			logits(c, z, tile, h, w, r0, rows, v0, n, C);
			launch(c, "mlm_loss", mlm_kernel, dim3(blocks(rows, 8)), 256, 0, run + r0, z, b, target + r0, rows, n, tile, v0);
		}
	}
	launch(c, "mlm_loss", mlm_done_kernel, dim3(1), 1024, 0, sum, lse, run, target, N);
}

/*
 * g [rows, ld] = (exp(z + b - lse) - [target]) * *scale; ld is a multiple of 8. Columns past n, rows without target: 0. A thread has 8 columns of
 * BACK_ROWS rows; part [blocks of rows, ld] = their sums, or NULL.
 */
template <class A>
static __global__ void __launch_bounds__(BACK_THREADS) mlm_back_kernel(A *__restrict__ g, float *part, const float *__restrict__ z,
	const float *b, const float *lse, const uint32_t *target, const float *scale, uint32_t rows, uint32_t n, uint32_t ld, uint32_t v0)
{
	uint32_t j0 = (blockIdx.x * BACK_THREADS + threadIdx.x) * 8, i0 = blockIdx.y * BACK_ROWS, i1 = min(rows, i0 + BACK_ROWS);
	if (j0 >= ld)
		return;
	float factor = scale ? *scale : 1, bias[8], s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll
	for (uint32_t j = 0; j < 8; j++)
		bias[j] = j0 + j < n ? b[v0 + j0 + j] : 0;
#pragma unroll 4
	for (uint32_t i = i0; i < i1; i++) {
		float v[8], l = lse[i];
		uint32_t t = target[i], hit = t - v0;
		load_vec(v, z + (size_t)i * ld + j0);
#pragma unroll
		for (uint32_t j = 0; j < 8; j++) {
			v[j] = j0 + j < n && t != ROW_NONE ? factor * (expf(v[j] + bias[j] - l) - (j0 + j == hit ? 1.0f : 0.0f)) : 0;
			v[j] = rounded<A>(v[j]);
			s[j] += v[j];
		}
		store_vec(g + (size_t)i * ld + j0, v);
	}
	if (part)
		store_vec(part + (size_t)blockIdx.y * ld + j0, s);
}

template <class A> static __global__ void mlm_cast_kernel(A *y, const float *x, size_t n)
{
	size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
	if (i < n)
		y[i] = of<A>::from(x[i]);
}

template <class A>
static void mlm_back(struct cuda *c, A *dh, float *dW, float *db, const A *h, const float *W, const float *b, const uint32_t *target,
	const float *lse, const float *scale, size_t N, size_t C, size_t V)
{
	const size_t most_rows = c->loss_rows, most_words = c->loss_vocab, tile = (least(V, most_words) + 63) / 64 * 64;
	const A *w = (const A *)weights(c, W, V * C, SCRATCH_CAST);
	float *z = (float *)scratch(c, SCRATCH_TILE, least(N, most_rows) * tile * sizeof(float));
	A *g = (A *)scratch(c, SCRATCH_GRAD, least(N, most_rows) * tile * sizeof(A));
	float *sum = (float *)scratch(c, SCRATCH_SUM, least(N, most_rows) * C * sizeof(float));
	float *part = db ? (float *)scratch(c, SCRATCH_PART, blocks(least(N, most_rows), BACK_ROWS) * tile * sizeof(float)) : NULL;
	for (size_t r0 = 0; r0 < N; r0 += most_rows) {
		size_t rows = least(most_rows, N - r0);
		for (size_t v0 = 0; v0 < V; v0 += most_words) {
			size_t n = least(most_words, V - v0);
			logits(c, z, tile, h, w, r0, rows, v0, n, C);
			unsigned strips = blocks(rows, BACK_ROWS);
			launch(c, "mlm_loss_back", mlm_back_kernel<A>, dim3(blocks(tile / 8, BACK_THREADS), strips), BACK_THREADS, 0, g,
				part, z, b, lse + r0, target + r0, scale, rows, n, tile, v0);
			if (db)
				add_parts(c, db + v0, part, strips, tile, n);
			struct product p = {.form = GEMM_NN,
				.M = rows,
				.N = C,
				.K = n,
				.a = g,
				.b = w + v0 * C,
				.lda = tile,
				.ldb = C,
				.ldd = C,
				.d = sum,
				.d_float = 1,
				.add = v0 > 0};
			gemm(c, &p);
			if (dW) {
				struct product q = {.form = GEMM_TN,
					.M = n,
					.N = C,
					.K = rows,
					.a = g,
					.b = h + r0 * C,
					.lda = tile,
					.ldb = C,
					.ldd = C,
					.d = dW + v0 * C,
					.d_float = 1,
					.add = 1};
				gemm(c, &q);
			}
		}
		launch(c, "mlm_loss_back", mlm_cast_kernel<A>, dim3(blocks(rows * C, 256)), 256, 0, dh + r0 * C, sum, rows * C);
	}
}

void cuda_mlm_loss_back(struct ops *o, void *dh, float *dW, float *db, const void *h, const float *W, const float *b,
	const uint32_t *target, const float *lse, const float *scale, size_t N, size_t C, size_t V)
{
	struct cuda *c = cuda_of(o);
	if (c->is_bf16)
		mlm_back<bf16>(c, (bf16 *)dh, dW, db, (const bf16 *)h, W, b, target, lse, scale, N, C, V);
	else
		mlm_back<float>(c, (float *)dh, dW, db, (const float *)h, W, b, target, lse, scale, N, C, V);
}

/* ---- classes ---- */

/* A warp a row; part [N][3] = weighted loss, right, weight. dlogit may be logit: a lane reads what it writes. */
template <class A>
static __global__ void class_kernel(
	double *part, A *dlogit, const A *logit, const int32_t *label, const float *weight, const float *scale, uint32_t N, uint32_t K)
{
	uint32_t lane = threadIdx.x % 32, i = blockIdx.x * 8 + threadIdx.x / 32;
	if (i >= N)
		return;
	const A *z = logit + (size_t)i * K;
	int32_t y = label[i];
	float top = -INFINITY, at = y >= 0 ? to_float(z[y]) : 0, w = y >= 0 ? (weight ? weight[y] : 1) : 0, l = 0;
	float ws = scale ? *scale * w : w;
	uint32_t best = K;
	for (uint32_t k = lane; k < K; k += 32) {
		float v = to_float(z[k]);
		if (v > top) {
			top = v;
			best = k;
		}
	}
	for (int d = 16; d; d /= 2) { /* the first of equals */
		float v = __shfl_xor_sync(WARP_ALL, top, d);
		uint32_t k = __shfl_xor_sync(WARP_ALL, best, d);
		if (v > top || (v == top && k < best)) {
			top = v;
			best = k;
		}
	}
	for (uint32_t k = lane; k < K; k += 32)
		l += expf(to_float(z[k]) - top);
	l = warp_sum(l);
	if (dlogit) /* every lane has read the row: warp_sum waited for them, and so for z[y] */
		for (uint32_t k = lane; k < K; k += 32)
			dlogit[(size_t)i * K + k] =
				of<A>::from(y < 0 ? 0 : ws * (expf(to_float(z[k]) - top) / l - (k == (uint32_t)y ? 1.0f : 0.0f)));
	if (lane == 0) {
		part[2 * (size_t)i] = y < 0 ? 0 : (double)(w * (logf(l) + top - at));
		part[2 * (size_t)i + 1] = y >= 0 && best == (uint32_t)y;
	}
}

/* Block k of two sums column k. */
static __global__ void class_done_kernel(double *sum, const double *part, uint32_t N)
{
	__shared__ double all[1024];
	double s = 0;
	for (uint32_t i = threadIdx.x; i < N; i += 1024)
		s += part[2 * (size_t)i + blockIdx.x];
	all[threadIdx.x] = s;
	__syncthreads();
	for (unsigned d = 512; d; d /= 2) {
		if (threadIdx.x < d)
			all[threadIdx.x] += all[threadIdx.x + d];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		sum[blockIdx.x] += all[0];
}

template <class A>
static void class_rows(struct cuda *c, double *sum, void *dlogit, const void *logit, const int32_t *label, const float *weight,
	const float *scale, size_t N, size_t K)
{
	double *part = (double *)scratch(c, SCRATCH_PART, 2 * N * sizeof(double));
	launch(c, "class_loss", class_kernel<A>, dim3(blocks(N, 8)), 256, 0, part, (A *)dlogit, (const A *)logit, label, weight, scale, N,
		K);
	launch(c, "class_loss", class_done_kernel, dim3(2), 1024, 0, sum, part, N);
}

void cuda_class_loss(struct ops *o, double *sum, void *dlogit, const void *logit, const int32_t *label, const float *weight,
	const float *scale, size_t N, size_t K)
{
	struct cuda *c = cuda_of(o);
	BY_TYPE(c, class_rows, c, sum, dlogit, logit, label, weight, scale, N, K);
}
