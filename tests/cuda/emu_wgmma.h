/* wgmma.cuh's instructions on the host, at once, from the PTX ISA's description of matrices in shared memory. */
#pragma once

/* Element (row, column) of the tile that a descriptor names; 128-byte swizzle. `trans`: row and column as the tile has them for a factor that lies transposed. */
static inline float emu_wgmma_at(uint64_t tile, unsigned row, unsigned column)
{
	const uint32_t start = (uint32_t)(tile & 0x3fff) << 4, next = (uint32_t)(tile >> 32 & 0x3fff) << 4;
	if (tile >> 62 != 1)
		abort();
	uint32_t at = start + row / 8 * next + row % 8 * 128 + column * 2;
	at ^= (at >> 7 & 7) << 4;
	bf16 x;
	memcpy(&x, emu_shared + at, sizeof x);
	return __uint_as_float((uint32_t)x.bits << 16);
}

static inline void emu_wgmma_nt(float d[8][2][2], uint64_t a, uint64_t b, bool add)
{
	const unsigned lane = threadIdx.x % 32, first = threadIdx.x / 32 % 4 * 16;
	emu_warp_barrier();
	for (unsigned n = 0; n < 8; n++)
		for (unsigned r = 0; r < 2; r++)
			for (unsigned i = 0; i < 2; i++) {
				float sum = add ? d[n][r][i] : 0;
				for (unsigned k = 0; k < 16; k++)
					sum += emu_wgmma_at(a, first + lane / 4 + 8 * r, k) *
						emu_wgmma_at(b, 8 * n + 2 * (lane % 4) + i, k);
				d[n][r][i] = sum;
			}
	emu_warp_barrier();
}

static inline void wgmma_nt_first(float d[8][2][2], uint64_t a, uint64_t b)
{
	emu_wgmma_nt(d, a, b, false);
}

static inline void wgmma_nt_add(float d[8][2][2], uint64_t a, uint64_t b)
{
	emu_wgmma_nt(d, a, b, true);
}

static inline void wgmma_nn_add(float d[8][2][2], const uint32_t a[4], uint64_t b)
{
	const unsigned lane = threadIdx.x % 32;
	float left[2][16]; /* rows g and g + 8 */
	char(*s)[64] = emu_exchange(a, 16);
	for (unsigned r = 0; r < 2; r++)
		for (unsigned k = 0; k < 16; k++) {
			uint32_t word[4];
			memcpy(word, s[lane / 4 * 4 + k % 8 / 2], sizeof word);
			left[r][k] = emu_half(word[r + 2 * (k / 8)], k % 2);
		}
	emu_warp_barrier();
	for (unsigned n = 0; n < 8; n++)
		for (unsigned r = 0; r < 2; r++)
			for (unsigned i = 0; i < 2; i++)
				for (unsigned k = 0; k < 16; k++)
					d[n][r][i] += left[r][k] * emu_wgmma_at(b, k, 8 * n + 2 * (lane % 4) + i);
	emu_warp_barrier();
}

static inline void wgmma_fence(void)
{
}

static inline void wgmma_tiles_written(void)
{
}

static inline void wgmma_commit(void)
{
}

template <int N> static inline void wgmma_wait(float d[8][2][2])
{
	(void)d;
}
