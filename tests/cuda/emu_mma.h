/* mma.cuh's instructions on the host, from the tables of the PTX ISA; all lanes of a warp must come along. */
#pragma once

#define SHARED(name) char *name = emu_shared

static inline uint32_t shared_at(const void *p)
{
	return (uint32_t)((const char *)p - emu_shared);
}

static inline float exp2_fast(float x)
{
	return exp2f(x);
}

static inline int __any_sync(unsigned mask, int x)
{
	int any = 0;
	char(*s)[64] = emu_exchange(&x, sizeof x);
	for (int i = 0; i < 32; i++) {
		int other;
		memcpy(&other, s[i], sizeof other);
		any |= other != 0;
	}
	emu_warp_barrier();
	return any;
}

static inline void emu_ldmatrix(uint32_t r[4], uint32_t where, bool trans)
{
	const bf16 *p = (const bf16 *)(emu_shared + where);
	unsigned lane = threadIdx.x % 32;
	if ((uintptr_t)p % 16)
		abort();
	char(*s)[64] = emu_exchange(&p, sizeof p);
	for (int i = 0; i < 4; i++) {
		uint32_t e[2];
		for (unsigned k = 0; k < 2; k++) {
			unsigned row = trans ? 2 * (lane % 4) + k : lane / 4, col = trans ? lane / 4 : 2 * (lane % 4) + k;
			const bf16 *at;
			memcpy(&at, s[8 * i + row], sizeof at);
			e[k] = at[col].bits;
		}
		r[i] = e[0] | e[1] << 16;
	}
	emu_warp_barrier();
}

static inline void ldmatrix(uint32_t r[4], uint32_t at)
{
	emu_ldmatrix(r, at, false);
}

static inline void ldmatrix_trans(uint32_t r[4], uint32_t at)
{
	emu_ldmatrix(r, at, true);
}

static inline float emu_half(uint32_t word, unsigned high)
{
	return __uint_as_float(high ? word & 0xffff0000 : word << 16);
}

static inline void mma(float c[2][2], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
	unsigned lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
	const uint32_t mine[6] = {a[0], a[1], a[2], a[3], b0, b1};
	char(*s)[64] = emu_exchange(mine, sizeof mine);
	for (unsigned i = 0; i < 4; i++) {
		unsigned row = g + 8 * (i / 2), col = 2 * q + i % 2;
		float sum = 0;
		for (unsigned k = 0; k < 16; k++) {
			/* A (row, k): lane 4 (row % 8) + k % 8 / 2, register row / 8 + 2 (k / 8); B (k, col): lane 4 col + k % 8 / 2 */
			uint32_t wa[6], wb[6];
			memcpy(wa, s[4 * (row % 8) + k % 8 / 2], sizeof wa);
			memcpy(wb, s[4 * col + k % 8 / 2], sizeof wb);
			sum += emu_half(wa[row / 8 + 2 * (k / 8)], k % 2) * emu_half(wb[4 + k / 8], k % 2);
		}
		c[i / 2][i % 2] += sum;
	}
	emu_warp_barrier();
}

static inline void emu_land(void *to, const void *from)
{
	if (from)
		memcpy(to, from, 16);
	else
		memset(to, 0, 16);
}

/* A copy happens between here and the wait for its group: here in one half of the blocks, there in the other. */
static inline void copy16(uint32_t to, const void *from, bool valid)
{
	if (to % 16 || (uintptr_t)from % 16)
		abort();
	if (emu_early)
		emu_land(emu_shared + to, valid ? from : NULL);
	else
		emu_copies[threadIdx.x].push_back({emu_shared + to, valid ? from : NULL, false});
}

static inline void copy_commit(void)
{
	emu_copies[threadIdx.x].push_back({NULL, NULL, true});
}

template <int N> static inline void copy_wait(void)
{
	std::vector<emu_copy> &q = emu_copies[threadIdx.x];
	size_t end = q.size();
	int groups = 0;
	while (end > 0 && groups <= N)
		groups += q[--end].commit;
	if (groups <= N)
		return;
	for (size_t i = 0; i < end; i++)
		if (!q[i].commit)
			emu_land(q[i].to, q[i].from);
	q.erase(q.begin(), q.begin() + (long)end + 1);
}
