/* XXH3-128 digests as text: 32 hex digits, the most significant first. */
#ifndef DIGEST_H
#define DIGEST_H

#include <stddef.h>
#include <xxhash.h>

#define DIGEST_SIZE 33 /* with the NUL */

void digest_hex(XXH128_hash_t h, char hex[DIGEST_SIZE]);
void digest_bytes(const void *p, size_t n, char hex[DIGEST_SIZE]); /* of n bytes at p */

#endif
