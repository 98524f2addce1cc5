/* Little-endian integers in byte buffers, and the float of 16 bits. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "columns are copied without byte swaps: a big-endian host needs them in block.c"
#endif

static inline uint16_t get_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t get_le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t get_le64(const uint8_t *p)
{
	return get_le32(p) | (uint64_t)get_le32(p + 4) << 32;
}

static inline void put_le16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void put_le32(uint8_t *p, uint32_t v)
{
	put_le16(p, (uint16_t)v);
	put_le16(p + 2, (uint16_t)(v >> 16));
}

static inline void put_le64(uint8_t *p, uint64_t v)
{
	put_le32(p, (uint32_t)v);
	put_le32(p + 4, (uint32_t)(v >> 32));
}

/* IEEE half */
static inline float half_to_float(uint16_t h)
{
	unsigned exponent = h >> 10 & 31, fraction = h & 1023;
	float x = exponent == 31 ? (fraction ? NAN : INFINITY)
		: exponent       ? ldexpf((float)(1024 + fraction), (int)exponent - 25)
				 : ldexpf((float)fraction, -24);
	return h >> 15 ? -x : x;
}
