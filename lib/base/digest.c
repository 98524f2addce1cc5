#include "base/digest.h"

#include <stdio.h>
#include <string.h>

void digest_hex(XXH128_hash_t h, char hex[DIGEST_SIZE])
{
	snprintf(hex, DIGEST_SIZE, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

void digest_bytes(const void *p, size_t n, char hex[DIGEST_SIZE])
{
	digest_hex(XXH3_128bits(p, n), hex);
}

const char *digest_digits(const char *text)
{
	size_t prefix = strlen(DIGEST_PREFIX), n = strlen(DIGEST_ZEROS);
	const char *hex = text && !strncmp(text, DIGEST_PREFIX, prefix) ? text + prefix : "";
	return strspn(hex, "0123456789abcdef") == n && !hex[n] ? hex : NULL;
}

int digest_take(char *bytes, size_t n, const char *text, char hex[DIGEST_SIZE])
{
	const char *digits = digest_digits(text);
	char *at = digits ? memmem(bytes, n, text, strlen(text)) : NULL;
	if (!at)
		return -1;
	memcpy(hex, digits, DIGEST_SIZE);
	memcpy(at + strlen(DIGEST_PREFIX), DIGEST_ZEROS, strlen(DIGEST_ZEROS));
	return 0;
}
