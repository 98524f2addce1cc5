#include "base/digest.h"

#include <stdio.h>

void digest_hex(XXH128_hash_t h, char hex[DIGEST_SIZE])
{
	snprintf(hex, DIGEST_SIZE, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

void digest_bytes(const void *p, size_t n, char hex[DIGEST_SIZE])
{
	digest_hex(XXH3_128bits(p, n), hex);
}
